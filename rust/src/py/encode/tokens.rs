//! Token strings -> dataset through a template: strings are copied into the flat table, the rest runs without the GIL.

use crate::dataset::extract::{Extractor, Settled};
use crate::dataset::runs::Spare;
use crate::error::Error;
use crate::features::template::Template;
use crate::features::tokens::Tokens;
use crate::py::common::{guard, run, run_of};
use crate::py::encode::{corpus_error, utf8, PyDataset, PyVocab};
use crate::py::words::PyWordSets;
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString, PyTuple};
use std::sync::Arc;

/// Compiled templates over named columns.
#[pyclass(name = "Template", module = "tagwise._core", frozen)]
pub struct PyTemplate {
    pub inner: Template,
    text: String,
    spare: Arc<Spare>, // of datasets made with it
}

#[pymethods]
impl PyTemplate {
    #[new]
    #[pyo3(signature = (text, columns, lists = None))]
    fn new(text: String, columns: Vec<String>, lists: Option<Vec<Vec<String>>>) -> PyResult<Self> {
        guard(|| {
            let mut inner = Template::compile(&text, &columns)?;
            if let Some(lists) = lists {
                inner = inner.with_lists(lists)?;
            }
            Ok(PyTemplate { inner, text, spare: Arc::default() })
        })
    }

    /// Whether a list of frequent texts (is_rare, is_frequent) is still to be learnt.
    #[getter]
    fn is_open(&self) -> bool {
        self.inner.is_open()
    }

    /// Learnt lists of frequent texts, one for each part that asks for one; empty before `learn`.
    #[getter]
    fn lists(&self) -> Vec<Vec<String>> {
        self.inner.lists().into_iter().flatten().map(|list| list.to_vec()).collect()
    }

    /// The template with its lists of frequent texts taken from training sentences, given by their columns.
    fn learn(&self, py: Python<'_>, sentences: &Bound<'_, PyAny>) -> PyResult<Self> {
        let tokens = table(&self.inner, sentences)?;
        let inner = run(py, 1, || self.inner.learn(&tokens))?;
        Ok(PyTemplate { inner, text: self.text.clone(), spare: self.spare.clone() })
    }

    /// The template as it was written.
    #[getter]
    fn source(&self) -> &str {
        &self.text
    }

    #[getter]
    fn columns(&self) -> Vec<String> {
        self.inner.columns.clone()
    }

    /// The columns that some rule looks at; CRF++ counts columns, so its templates use all up to the last they name.
    #[getter]
    fn used_columns(&self) -> Vec<String> {
        let columns = self.inner.columns.iter().enumerate();
        let last = columns.clone().map(|(i, _)| i).filter(|&i| self.inner.uses(i)).max();
        let counted = crate::features::crfpp::recognise(&self.text);
        let used = columns.filter(|&(i, _)| self.inner.uses(i) || (counted && Some(i) <= last));
        used.map(|(_, name)| name.clone()).collect()
    }

    #[getter]
    fn has_edges(&self) -> bool {
        self.inner.has_edges()
    }

    /// Number of rules, ranges expanded: the most attributes a token can have.
    fn __len__(&self) -> usize {
        self.inner.rules.len()
    }

    fn __repr__(&self) -> String {
        format!("<Template: {} rules over {}>", self.inner.rules.len(), self.inner.columns.join(", "))
    }

    /// Texts of every token's attributes in one sentence given by its columns.
    fn render(&self, columns: &Bound<'_, PyAny>) -> PyResult<Vec<Vec<String>>> {
        closed(&self.inner)?;
        let mut tokens = Tokens::new(self.inner.columns.len());
        push(&mut tokens, &self.inner, 0, columns)?;
        guard(|| Ok(Extractor::new(&self.inner, &tokens, 1, self.spare.clone(), None).texts()))
    }

    #[allow(clippy::type_complexity)]
    fn __reduce__<'py>(&self, py: Python<'py>) -> (Bound<'py, PyAny>, (String, Vec<String>, Option<Vec<Vec<String>>>)) {
        let lists = (!self.inner.is_open()).then(|| self.lists());
        (py.get_type::<PyTemplate>().into_any(), (self.text.clone(), self.columns(), lists))
    }
}

/// Refuse a template whose lists are not learnt.
fn closed(template: &Template) -> PyResult<()> {
    if template.is_open() {
        return Err(Error::Template(
            "is_rare and is_frequent need the words of the training sentences; fit a tagger, or call learn with them"
                .into(),
        )
        .into());
    }
    Ok(())
}

/// The flat table of sentences given by their columns.
fn table(template: &Template, sentences: &Bound<'_, PyAny>) -> PyResult<Tokens> {
    let mut tokens = Tokens::new(template.columns.len());
    let wrong = || format!("expected a list of sentences, found {}", kind(sentences));
    each(sentences, wrong, |s, sentence| push(&mut tokens, template, s, sentence))?;
    Ok(tokens)
}

/// Items between two looks for signals.
const LOOK: usize = 64;

/// Items of a list, a tuple or another iterable that is not a string, bytes or a mapping.
pub fn each<'py>(
    items: &Bound<'py, PyAny>,
    wrong: impl FnOnce() -> String,
    mut f: impl FnMut(usize, &Bound<'py, PyAny>) -> PyResult<()>,
) -> PyResult<usize> {
    let mut n = 0;
    let mut f = |item: &Bound<'py, PyAny>| -> PyResult<()> {
        if n % LOOK == LOOK - 1 {
            item.py().check_signals()?;
        }
        f(n, item)?;
        n += 1;
        Ok(())
    };
    if let Ok(list) = items.cast::<PyList>() {
        for item in list.iter() {
            f(&item)?;
        }
    } else if let Ok(tuple) = items.cast::<PyTuple>() {
        for item in tuple.iter_borrowed() {
            f(&item)?;
        }
    } else {
        let unfit =
            items.is_instance_of::<PyString>() || items.is_instance_of::<PyBytes>() || items.is_instance_of::<PyDict>();
        let iterator = if unfit { None } else { items.try_iter().ok() };
        let Some(iterator) = iterator else {
            return Err(corpus_error(items.py(), wrong()));
        };
        for item in iterator {
            f(&item?)?;
        }
    }
    Ok(n)
}

/// Name of an object's type, for messages.
pub fn kind(object: &Bound<'_, PyAny>) -> String {
    object.get_type().name().map_or_else(|_| "an unknown type".into(), |n| n.to_string())
}

/// Append one sentence, given by its columns, to the flat table.
fn push(tokens: &mut Tokens, template: &Template, s: usize, columns: &Bound<'_, PyAny>) -> PyResult<()> {
    let names = &template.columns;
    let py = columns.py();
    let mut length = None;
    let wrong = || format!("sentence {s}: expected a list of {} columns, found {}", names.len(), kind(columns));
    let found = each(columns, wrong, |c, values| {
        let Some(column) = tokens.columns.get_mut(c) else {
            return Err(corpus_error(
                py,
                format!("sentence {s} has more than {} columns ({}); pass only these", names.len(), names.join(", ")),
            ));
        };
        let wrong =
            || format!("sentence {s}, column {:?}: expected a list of strings, found {}", names[c], kind(values));
        let n = each(values, wrong, |t, value| {
            let place = || format!("sentence {s}, token {t}, column {:?}", names[c]);
            let value = value.cast::<PyString>().map_err(|_| {
                corpus_error(
                    py,
                    format!("{}: expected a string, found {}; convert it with str()", place(), kind(value)),
                )
            })?;
            Ok(column.push(utf8(value, place)?)?)
        })?;
        if *length.get_or_insert(n) != n {
            return Err(corpus_error(
                py,
                format!(
                    "sentence {s}: column {:?} has {n} tokens, column {:?} has {}; every column needs one value a token",
                    names[c],
                    names[0],
                    length.unwrap_or(0)
                ),
            ));
        }
        Ok(())
    })?;
    if found != names.len() {
        return Err(corpus_error(
            py,
            format!("sentence {s} has {found} columns; the template needs {} ({})", names.len(), names.join(", ")),
        ));
    }
    tokens.end_sentence(length.unwrap_or(0));
    Ok(())
}

/// Dataset of sentences given by their columns. A growing vocabulary gets new attributes, a locked one drops them.
#[pyfunction]
#[pyo3(signature = (template, vocab, sentences, n_jobs=1))]
pub(super) fn encode_tokens(
    py: Python<'_>,
    template: &Bound<'_, PyTemplate>,
    vocab: &Bound<'_, PyVocab>,
    sentences: &Bound<'_, PyAny>,
    n_jobs: usize,
) -> PyResult<PyDataset> {
    let tokens = table(&template.get().inner, sentences)?;
    dataset(py, template.get(), vocab, &tokens, None, n_jobs)
}

/// The same, and the number that `words` has for each token's text in a column: every distinct text is looked up once.
/// `settled`: numbers of words whose tokens a locked vocabulary gets no node attributes of.
#[pyfunction]
#[pyo3(signature = (template, vocab, sentences, words, column, n_jobs=1, settled=None))]
pub(super) fn encode_words<'py>(
    py: Python<'py>,
    template: &Bound<'_, PyTemplate>,
    vocab: &Bound<'_, PyVocab>,
    sentences: &Bound<'_, PyAny>,
    words: &Bound<'_, PyWordSets>,
    column: usize,
    n_jobs: usize,
    settled: Option<PyReadonlyArray1<'py, bool>>,
) -> PyResult<(PyDataset, Bound<'py, PyArray1<u32>>)> {
    let tokens = table(&template.get().inner, sentences)?;
    let Some(texts) = tokens.columns.get(column) else {
        return Err(Error::Value(format!("no column {column}; the template has {}", tokens.columns.len())).into());
    };
    let numbers: Vec<u32> = (0..texts.texts()).map(|text| words.get().look(texts.key(text))).collect();
    let found = PyArray1::from_iter(py, texts.cells.iter().map(|&text| numbers[text as usize]));
    let settled = match settled {
        None => None,
        Some(marks) => {
            let marks = marks.as_slice()?;
            let texts = numbers.iter().map(|&n| marks.get(n as usize).copied().unwrap_or(false)).collect();
            Some(Settled { column, texts })
        }
    };
    Ok((dataset(py, template.get(), vocab, &tokens, settled, n_jobs)?, found))
}

fn dataset(
    py: Python<'_>,
    template: &PyTemplate,
    vocab: &Bound<'_, PyVocab>,
    tokens: &Tokens,
    settled: Option<Settled>,
    n_jobs: usize,
) -> PyResult<PyDataset> {
    let (template, spare) = (&template.inner, template.spare.clone());
    closed(template)?;
    let locked = vocab.try_borrow()?.inner.is_locked();
    let cells: usize = tokens.columns.iter().map(|column| column.cells.len()).sum();
    let steps = cells.saturating_mul(60 * (1 + template.rules.len())); // a rule at a token: a text, its hash, a look
    let inner = if locked {
        let vocab = vocab.try_borrow()?;
        let vocab = &vocab.inner;
        run_of(py, n_jobs, steps, || Extractor::new(template, tokens, n_jobs, spare, settled).locked(vocab))?
    } else {
        let mut vocab = vocab.try_borrow_mut()?;
        let vocab = &mut vocab.inner;
        run_of(py, n_jobs, steps, || Extractor::new(template, tokens, n_jobs, spare, None).grow(vocab))??
    };
    Ok(PyDataset { inner: inner.into() })
}
