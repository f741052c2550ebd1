//! Attribute lists and feature dicts to a dataset, with python-crfsuite's conventions.
//!
//! A token is a list of attributes, each a string (value 1) or a pair (string, number), or a dict: `{"name": number}`
//! and `{"name": bool}` give the attribute "name" that value, `{"name": "text"}` gives "name:text" the value 1, and a
//! list, set or dict as value puts "name:" before each of its attributes.

use crate::dataset::csr::Csr;
use crate::dataset::Dataset;
use crate::error::Result;
use crate::foreign::names::Names;
use crate::machine::system::hash::Key;
use crate::py::encode::strings::{plain, Ids};
use crate::py::encode::tokens::{each, kind};
use crate::py::encode::{corpus_error, in_sentence, utf8, PyDataset, PyVocab};
use crate::py::exception;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyFrozenSet, PyList, PySet, PyString, PyTuple};

/// Maximum depth of nested dicts: far beyond practical use, well before the stack overflows.
const MAX_DEPTH: usize = 64;

/// Position of a value in X, for messages.
#[derive(Clone, Copy)]
struct ValuePlace<'a> {
    name: &'a str, // X or edge
    sentence: usize,
    token: usize,
}

impl std::fmt::Display for ValuePlace<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "sentence {}, token {} ({}[{0}][{1}])", self.sentence, self.token, self.name)
    }
}

struct Encoder<'a> {
    ids: Ids<'a>,
    rows: Csr,
    names: Names,   // attributes of the current sentence
    prefix: String, // enclosing names of the attribute: "outer:inner:"
    keys: Vec<Key>,
    hashes: Vec<u64>,
    found: Vec<u32>,
}

impl Encoder<'_> {
    /// Append an attribute under its enclosing names.
    #[inline]
    fn push_prefixed(&mut self, text: &str, value: f32) {
        if value != 0.0 {
            self.names.bytes.extend_from_slice(self.prefix.as_bytes());
            self.names.bytes.extend_from_slice(text.as_bytes());
            self.names.end(f64::from(value));
        }
    }

    /// Append the rows of the sentence. All attributes are numbered at once because their data are scattered over
    /// memory.
    fn end_sentence(&mut self) -> Result<()> {
        let names = &self.names;
        // Only valid UTF-8 was appended.
        let text = |i: usize| std::str::from_utf8(names.name(i)).unwrap_or("");
        let all = 0..names.ends.len();
        self.found.clear();
        match &mut self.ids {
            Ids::Locked(vocab) => {
                self.hashes.clear();
                self.hashes.extend(all.map(|i| Key::lookup(text(i))));
                vocab.get_many(&self.hashes, &mut self.found);
            }
            Ids::Growing(vocab) => {
                self.keys.clear();
                self.keys.extend(all.map(|i| Key::of_text(text(i))));
                vocab.intern_many(&self.keys, &mut self.found, |i| names.name(i))?;
            }
        }
        let mut from = 0;
        for &to in &names.items {
            (from..to).for_each(|i| self.rows.push(self.found[i], names.value(i) as f32));
            self.rows.end_row();
            from = to;
        }
        self.names.clear();
        Ok(())
    }

    fn token(&mut self, token: &Bound<'_, PyAny>, place: ValuePlace<'_>) -> PyResult<()> {
        match token.cast::<PyDict>() {
            Ok(dict) => self.dict(dict, place, 0),
            Err(_) => self.items(token, place),
        }
    }

    /// Append the attributes of a list, tuple or set.
    fn items(&mut self, items: &Bound<'_, PyAny>, place: ValuePlace<'_>) -> PyResult<()> {
        let wrong = || match items.is_instance_of::<PyString>() {
            true => format!(
                "{place}: a token is a list of attributes or a dict, found the string {}; \
                 for plain tokens choose a feature set such as features=\"default\"",
                short_repr(items)
            ),
            false => format!("{place}: expected a list of attributes or a dict, found {}", kind(items)),
        };
        each(items, wrong, |_, item| self.item(item, place))?;
        Ok(())
    }

    /// Append a string, or a pair of a string and a number.
    fn item(&mut self, item: &Bound<'_, PyAny>, place: ValuePlace<'_>) -> PyResult<()> {
        if let Ok(text) = item.cast::<PyString>() {
            self.push_prefixed(utf8(text, || place.to_string())?, 1.0);
            return Ok(());
        }
        if let Ok(pair) = item.cast::<PyTuple>() {
            if pair.len() == 2 {
                let (name, value) = (pair.get_item(0)?, pair.get_item(1)?);
                if let Ok(name) = name.cast::<PyString>() {
                    let name = utf8(name, || place.to_string())?;
                    let value = number(&value, name, place)?;
                    self.push_prefixed(name, value);
                    return Ok(());
                }
            }
        }
        Err(corpus_error(
            item.py(),
            format!("{place}: the attribute {} is neither a string nor a pair (string, number)", short_repr(item)),
        ))
    }

    fn dict(&mut self, dict: &Bound<'_, PyDict>, place: ValuePlace<'_>, depth: usize) -> PyResult<()> {
        if depth > MAX_DEPTH {
            return Err(corpus_error(
                dict.py(),
                format!("{place}: feature dicts are nested more than {MAX_DEPTH} deep; flatten them"),
            ));
        }
        for (name, value) in dict.iter() {
            let Ok(name) = name.cast::<PyString>() else {
                return Err(corpus_error(
                    dict.py(),
                    format!("{place}: the attribute name {} is not a string; convert it with str()", short_repr(&name)),
                ));
            };
            let name = utf8(name, || place.to_string())?;
            let length = self.prefix.len();
            if let Ok(text) = value.cast::<PyString>() {
                let text = utf8(text, || format!("{place}, attribute {name:?}"))?;
                self.prefix.push_str(name);
                self.prefix.push(':');
                self.push_prefixed(text, 1.0);
            } else if let Ok(inner) = value.cast::<PyDict>() {
                self.prefix.push_str(name);
                self.prefix.push(':');
                self.dict(inner, place, depth + 1)?;
            } else if value.is_instance_of::<PyList>()
                || value.is_instance_of::<PyTuple>()
                || value.is_instance_of::<PySet>()
                || value.is_instance_of::<PyFrozenSet>()
            {
                self.prefix.push_str(name);
                self.prefix.push(':');
                self.items(&value, place)?;
            } else {
                let value = number(&value, name, place)?;
                self.push_prefixed(name, value);
            }
            self.prefix.truncate(length);
        }
        Ok(())
    }
}

/// Truncated representation of an object, for messages.
fn short_repr(object: &Bound<'_, PyAny>) -> String {
    let text = object.repr().map_or_else(|_| kind(object), |r| r.to_string());
    match text.char_indices().nth(60) {
        Some((at, _)) => format!("{}...", &text[..at]),
        None => text,
    }
}

/// Convert a value to float32, or raise an error if it is out of range.
fn number(value: &Bound<'_, PyAny>, name: &str, place: ValuePlace<'_>) -> PyResult<f32> {
    if let Ok(value) = value.cast::<PyBool>() {
        return Ok(f32::from(u8::from(value.is_true())));
    }
    let parsed = match value.cast::<PyFloat>() {
        Ok(float) => Some(float.value()),
        Err(_) => value.extract::<f64>().ok(),
    };
    let wrong = |what: &str| corpus_error(value.py(), format!("{place}, attribute {name:?}: {what}"));
    match parsed {
        None => Err(wrong(&format!(
            "the value {} is not a string, a bool, a number within float64, a list, a set or a dict",
            short_repr(value)
        ))),
        Some(v) if !v.is_finite() => Err(wrong(&format!("the value {v} is not finite; leave the attribute out"))),
        Some(v) if !(v as f32).is_finite() => {
            Err(wrong(&format!("the value {v:e} is beyond float32 (3.4e38); scale it, for example by its logarithm")))
        }
        Some(v) => Ok(v as f32),
    }
}

/// Whether a sentence looks like lists of strings: its first attribute is a string.
fn starts_with_string(sentence: &Bound<'_, PyAny>) -> bool {
    let token = sentence.cast_exact::<PyList>().ok().and_then(|list| list.get_item(0).ok());
    let name = token.and_then(|token| token.cast_exact::<PyList>().ok()?.get_item(0).ok());
    name.is_some_and(|name| name.is_exact_instance_of::<PyString>())
}

fn read(ids: Ids<'_>, name: &'static str, sentences: &Bound<'_, PyAny>, jobs: usize) -> PyResult<(Csr, Vec<usize>)> {
    let mut encoder = Encoder {
        ids,
        rows: Csr::default(),
        names: Names::default(),
        prefix: String::new(),
        keys: Vec::new(),
        hashes: Vec::new(),
        found: Vec::new(),
    };
    let mut bounds = vec![0];
    let listed = sentences.cast::<PyList>().ok();
    if let Some(list) = listed {
        plain(&mut encoder.ids, list, jobs, &mut encoder.rows, &mut bounds)?;
    }
    let wrong = || format!("{name}: expected a list of sentences, found {}", kind(sentences));
    each(sentences, wrong, |s, sentence| {
        if let Some(list) = listed.filter(|_| s + 1 == bounds.len() && starts_with_string(sentence)) {
            plain(&mut encoder.ids, list, 1, &mut encoder.rows, &mut bounds)?;
        }
        if s + 1 < bounds.len() {
            return Ok(());
        }
        let wrong = || format!("sentence {s} ({name}[{s}]): expected a list of tokens, found {}", kind(sentence));
        let read = each(sentence, wrong, |t, token| {
            encoder.token(token, ValuePlace { name, sentence: s, token: t })?;
            encoder.names.end_item();
            Ok(())
        });
        in_sentence(sentence.py(), s, read)?;
        encoder.end_sentence()?;
        bounds.push(encoder.rows.rows());
        Ok(())
    })?;
    Ok((encoder.rows, bounds))
}

/// Dataset of attribute lists or feature dicts. `edge` holds edge attributes in the same form, token by token.
#[pyfunction]
#[pyo3(signature = (vocab, sentences, edge=None, n_jobs=1))]
pub(super) fn encode_attributes(
    vocab: &Bound<'_, PyVocab>,
    sentences: &Bound<'_, PyAny>,
    edge: Option<&Bound<'_, PyAny>>,
    n_jobs: usize,
) -> PyResult<PyDataset> {
    let py = vocab.py();
    let mut inner = Dataset::default();
    let rows;
    let mut bounds = None;
    if vocab.try_borrow()?.inner.is_locked() {
        let vocab = vocab.try_borrow()?;
        (rows, inner.sentences) = read(Ids::Locked(&vocab.inner), "X", sentences, n_jobs)?;
        if let Some(edge) = edge {
            let (rows, found) = read(Ids::Locked(&vocab.inner), "edge", edge, n_jobs)?;
            (inner.edge, bounds) = (rows, Some(found));
        }
    } else {
        let mut vocab = vocab.try_borrow_mut()?;
        (rows, inner.sentences) = read(Ids::Growing(&mut vocab.inner), "X", sentences, n_jobs)?;
        if let Some(edge) = edge {
            let (rows, found) = read(Ids::Growing(&mut vocab.inner), "edge", edge, n_jobs)?;
            (inner.edge, bounds) = (rows, Some(found));
        }
    }
    inner.node = rows.into();
    if let Some(bounds) = bounds {
        if bounds != inner.sentences {
            let first = bounds.iter().zip(&inner.sentences).position(|(a, b)| a != b);
            let s = first.unwrap_or(bounds.len().min(inner.sentences.len())).saturating_sub(1);
            let message = "edge and X differ in tokens; give every token of X its edge attributes, if only []";
            return Err(exception(py, "CorpusError", Some(s), format!("sentence {s}: {message}")));
        }
    }
    Ok(PyDataset { inner: inner.into() })
}
