//! Attribute lists and feature dicts -> dataset, python-crfsuite's conventions.
//!
//! A token is a list of attributes, each a string (value 1) or a pair (string, number), or a dict: `{"name": number}`
//! and `{"name": bool}` give the attribute "name" that value, `{"name": "text"}` gives "name:text" the value 1, and a
//! list, set or dict as value puts "name:" before each of its attributes.

use crate::dataset::vocab::Vocab;

use crate::dataset::csr::Csr;
use crate::dataset::Dataset;
use crate::machine::hash::Key;
use crate::py::encode::strings::{leading, Lookup, Objects, Strings};
use crate::py::encode::tokens::{each, kind};
use crate::py::encode::{corpus_error, utf8, PyDataset, PyVocab};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyFrozenSet, PyList, PySet, PyString, PyTuple};

/// Dicts within dicts: far beyond use, well before the stack ends.
const DEEPEST: usize = 64;

/// The vocabulary, read or grown.
enum Ids<'a> {
    Locked(&'a Vocab),
    Growing(&'a mut Vocab),
}

/// Where a value stands in X, for messages.
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
    objects: Objects,
    strings: Strings,
    lookup: Lookup,
    prefix: String, // names around the attribute: "outer:inner:"
}

impl Encoder<'_> {
    #[inline]
    fn push(&mut self, text: &str, value: f32) -> PyResult<()> {
        if value == 0.0 {
            return Ok(());
        }
        let id = match &mut self.ids {
            Ids::Locked(vocab) => vocab.get(Key::lookup(text)),
            Ids::Growing(vocab) => vocab.intern(Key::of_text(text), |b| b.extend_from_slice(text.as_bytes()))?,
        };
        self.rows.push(id, value);
        Ok(())
    }

    /// A sentence of lists of strings; false, and nothing encoded, where it is anything else.
    fn plain(&mut self, sentence: &Bound<'_, PyAny>) -> PyResult<bool> {
        let Ok(sentence) = sentence.cast::<PyList>() else { return Ok(false) };
        if !self.strings.collect(sentence, &mut self.objects) {
            return Ok(false);
        }
        match &mut self.ids {
            Ids::Locked(vocab) => self.lookup.known(vocab, &mut self.strings, &mut self.rows),
            Ids::Growing(vocab) => self.lookup.grown(vocab, &mut self.strings, &mut self.rows)?,
        }
        Ok(true)
    }

    /// An attribute under the names around it.
    fn push_under(&mut self, text: &str, value: f32) -> PyResult<()> {
        if self.prefix.is_empty() {
            return self.push(text, value);
        }
        let length = self.prefix.len();
        self.prefix.push_str(text);
        let whole = std::mem::take(&mut self.prefix);
        let pushed = self.push(&whole, value);
        self.prefix = whole;
        self.prefix.truncate(length);
        pushed
    }

    fn token(&mut self, token: &Bound<'_, PyAny>, place: ValuePlace<'_>) -> PyResult<()> {
        match token.cast::<PyDict>() {
            Ok(dict) => self.dict(dict, place, 0),
            Err(_) => self.items(token, place),
        }
    }

    /// The attributes of a list, tuple or set.
    fn items(&mut self, items: &Bound<'_, PyAny>, place: ValuePlace<'_>) -> PyResult<()> {
        let wrong = || match items.is_instance_of::<PyString>() {
            true => format!(
                "{place}: a token is a list of attributes or a dict, found the string {}; \
                 for plain tokens choose a feature set such as features=\"default\"",
                shown(items)
            ),
            false => format!("{place}: expected a list of attributes or a dict, found {}", kind(items)),
        };
        each(items, wrong, |_, item| self.item(item, place))?;
        Ok(())
    }

    /// A string, or a pair of a string and a number.
    fn item(&mut self, item: &Bound<'_, PyAny>, place: ValuePlace<'_>) -> PyResult<()> {
        if let Ok(text) = item.cast::<PyString>() {
            return self.push_under(utf8(text, || place.to_string())?, 1.0);
        }
        if let Ok(pair) = item.cast::<PyTuple>() {
            if pair.len() == 2 {
                let (name, value) = (pair.get_item(0)?, pair.get_item(1)?);
                if let Ok(name) = name.cast::<PyString>() {
                    let name = utf8(name, || place.to_string())?;
                    let value = number(&value, name, place)?;
                    return self.push_under(name, value);
                }
            }
        }
        Err(corpus_error(
            item.py(),
            format!("{place}: the attribute {} is neither a string nor a pair (string, number)", shown(item)),
        ))
    }

    fn dict(&mut self, dict: &Bound<'_, PyDict>, place: ValuePlace<'_>, depth: usize) -> PyResult<()> {
        if depth > DEEPEST {
            return Err(corpus_error(
                dict.py(),
                format!("{place}: feature dicts are nested more than {DEEPEST} deep; flatten them"),
            ));
        }
        for (name, value) in dict.iter() {
            let Ok(name) = name.cast::<PyString>() else {
                return Err(corpus_error(
                    dict.py(),
                    format!("{place}: the attribute name {} is not a string; convert it with str()", shown(&name)),
                ));
            };
            let name = utf8(name, || place.to_string())?;
            let length = self.prefix.len();
            if let Ok(text) = value.cast::<PyString>() {
                let text = utf8(text, || format!("{place}, attribute {name:?}"))?;
                self.prefix.push_str(name);
                self.prefix.push(':');
                self.push_under(text, 1.0)?;
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
                self.push_under(name, value)?;
            }
            self.prefix.truncate(length);
        }
        Ok(())
    }
}

/// What an object looks like, cut short.
fn shown(object: &Bound<'_, PyAny>) -> String {
    let text = object.repr().map_or_else(|_| kind(object), |r| r.to_string());
    match text.char_indices().nth(60) {
        Some((at, _)) => format!("{}...", &text[..at]),
        None => text,
    }
}

/// A value that float32 can hold.
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
            shown(value)
        ))),
        Some(v) if !v.is_finite() => Err(wrong(&format!("the value {v} is not finite; leave the attribute out"))),
        Some(v) if !(v as f32).is_finite() => {
            Err(wrong(&format!("the value {v:e} is beyond float32 (3.4e38); scale it, for example by its logarithm")))
        }
        Some(v) => Ok(v as f32),
    }
}

fn read(ids: Ids<'_>, name: &'static str, sentences: &Bound<'_, PyAny>, jobs: usize) -> PyResult<(Csr, Vec<usize>)> {
    let mut encoder = Encoder {
        ids,
        rows: Csr::default(),
        objects: Objects::default(),
        strings: Strings::default(),
        lookup: Lookup::default(),
        prefix: String::new(),
    };
    let mut bounds = vec![0];
    if let (Ids::Locked(vocab), Ok(list)) = (&encoder.ids, sentences.cast::<PyList>()) {
        leading(vocab, list, jobs, &mut encoder.rows, &mut bounds)?;
    }
    let done = bounds.len() - 1;
    let wrong = || format!("{name}: expected a list of sentences, found {}", kind(sentences));
    each(sentences, wrong, |s, sentence| {
        if s < done {
            return Ok(());
        }
        let wrong = || format!("sentence {s} ({name}[{s}]): expected a list of tokens, found {}", kind(sentence));
        if encoder.plain(sentence)? {
            bounds.push(encoder.rows.rows());
            return Ok(());
        }
        each(sentence, wrong, |t, token| {
            encoder.token(token, ValuePlace { name, sentence: s, token: t })?;
            encoder.rows.end_row();
            Ok(())
        })?;
        bounds.push(encoder.rows.rows());
        Ok(())
    })?;
    Ok((encoder.rows, bounds))
}

/// Dataset of attribute lists or feature dicts; `edge` holds edge attributes in the same form, token for token.
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
    let mut bounds = None;
    if vocab.try_borrow()?.inner.is_locked() {
        let vocab = vocab.try_borrow()?;
        (*inner.node.csr_mut(), inner.sentences) = read(Ids::Locked(&vocab.inner), "X", sentences, n_jobs)?;
        if let Some(edge) = edge {
            let (rows, found) = read(Ids::Locked(&vocab.inner), "edge", edge, n_jobs)?;
            (inner.edge, bounds) = (rows, Some(found));
        }
    } else {
        let mut vocab = vocab.try_borrow_mut()?;
        (*inner.node.csr_mut(), inner.sentences) = read(Ids::Growing(&mut vocab.inner), "X", sentences, n_jobs)?;
        if let Some(edge) = edge {
            let (rows, found) = read(Ids::Growing(&mut vocab.inner), "edge", edge, n_jobs)?;
            (inner.edge, bounds) = (rows, Some(found));
        }
    }
    if let Some(bounds) = bounds {
        if bounds != inner.sentences {
            let first = bounds.iter().zip(&inner.sentences).position(|(a, b)| a != b);
            let s = first.unwrap_or(bounds.len().min(inner.sentences.len())).saturating_sub(1);
            return Err(corpus_error(
                py,
                format!(
                    "sentence {s}: edge and X differ in tokens; give every token of X its edge attributes, if only []"
                ),
            ));
        }
    }
    Ok(PyDataset { inner: inner.into() })
}
