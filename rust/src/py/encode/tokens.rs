//! Token strings to a dataset through a template. Strings are copied into the flat table, and the rest runs without
//! the GIL.

use crate::dataset::extract::known::TextCache;
use crate::dataset::extract::Extractor;
use crate::dataset::runs::BufferPool;
use crate::error::Error;
use crate::features::template::{Derived, Template};
use crate::features::text::Function;
use crate::features::tokens::{Column, Tokens};
use crate::machine::simd::prefetch;
use crate::machine::system::reused::Reused;
use crate::py::arrays::Array;
use crate::py::class_table::PyClassTable;
use crate::py::common::{guard, run, run_of};
use crate::py::encode::texts::PyTexts;
use crate::py::encode::{corpus_error, in_sentence, utf8, PyDataset, PyVocab};
use crate::py::words::PyWordSets;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString, PyTuple};
use std::sync::Arc;

/// Name of a derived column, index of the column with its words, and the classes of words.
type PyClasses = Vec<(String, usize, Py<PyClassTable>)>;

/// Compiled templates over named columns.
#[pyclass(name = "Template", module = "tagwise._core", frozen)]
pub struct PyTemplate {
    pub inner: Template,
    text: String,
    classes: PyClasses,
    buffers: Arc<BufferPool>,  // of datasets built with it
    cached: Reused<TextCache>, // attributes of distinct texts
}

#[pymethods]
impl PyTemplate {
    /// `classes`: name of a derived column, the index of the column with its words, and their classes.
    #[new]
    #[pyo3(signature = (text, columns, lists = None, classes = Vec::new()))]
    fn new(text: String, columns: Vec<String>, lists: Option<Vec<Vec<String>>>, classes: PyClasses) -> PyResult<Self> {
        guard(|| {
            let derived = |(name, column, table): &(String, usize, Py<PyClassTable>)| Derived {
                name: name.clone(),
                column: *column,
                function: Function::Class(table.get().inner.clone()),
            };
            let derived: Vec<Derived> = classes.iter().map(derived).collect();
            let mut inner = Template::compile_derived(&text, &columns, &derived)?;
            if let Some(lists) = lists {
                inner = inner.with_lists(lists)?;
            }
            Ok(PyTemplate { inner, text, classes, buffers: Arc::default(), cached: Reused::default() })
        })
    }

    /// Whether a list of frequent texts (is_rare, is_frequent) is not learned yet.
    #[getter]
    fn is_open(&self) -> bool {
        self.inner.is_open()
    }

    /// Learned lists of frequent texts, one for each part that uses one. Empty before `learn`.
    #[getter]
    fn lists(&self) -> Vec<Vec<String>> {
        self.inner.lists().into_iter().flatten().map(|list| list.to_vec()).collect()
    }

    /// Return the template with lists of frequent texts learned from training sentences, which are passed by columns.
    fn learn(&self, py: Python<'_>, sentences: &Bound<'_, PyAny>) -> PyResult<Self> {
        let mut tokens = Tokens::new(self.inner.columns.len());
        read(&mut tokens, &self.inner, sentences, false)?;
        let inner = run(py, 1, || self.inner.learn(&tokens))?;
        let classes = self.classes.iter().map(|(name, column, table)| (name.clone(), *column, table.clone_ref(py)));
        Ok(PyTemplate {
            inner,
            text: self.text.clone(),
            classes: classes.collect(),
            buffers: self.buffers.clone(),
            cached: Reused::default(),
        })
    }

    /// Source text of the template.
    #[getter]
    fn source(&self) -> &str {
        &self.text
    }

    #[getter]
    fn columns(&self) -> Vec<String> {
        self.inner.columns.clone()
    }

    /// Columns that some rule reads. CRF++ counts columns, so its templates use all columns up to the last one they
    /// name.
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

    /// Number of rules after expanding ranges, which is the maximum number of attributes of a token.
    fn __len__(&self) -> usize {
        self.inner.rules.len()
    }

    fn __repr__(&self) -> String {
        format!("<Template: {} rules over {}>", self.inner.rules.len(), self.inner.columns.join(", "))
    }

    /// Texts of every token's attributes in one sentence, which is passed by columns.
    fn render(&self, columns: &Bound<'_, PyAny>) -> PyResult<Vec<Vec<String>>> {
        check_learned(&self.inner)?;
        let mut tokens = Tokens::new(self.inner.columns.len());
        push(&mut tokens, &self.inner, 0, columns)?;
        guard(|| Ok(Extractor::new(&self.inner, &tokens, 1, self.buffers.clone(), Vec::new()).texts()))
    }

    #[allow(clippy::type_complexity)]
    fn __reduce__<'py>(
        &self,
        py: Python<'py>,
    ) -> (Bound<'py, PyAny>, (String, Vec<String>, Option<Vec<Vec<String>>>, PyClasses)) {
        let lists = (!self.inner.is_open()).then(|| self.lists());
        let classes = self.classes.iter().map(|(name, column, table)| (name.clone(), *column, table.clone_ref(py)));
        (py.get_type::<PyTemplate>().into_any(), (self.text.clone(), self.columns(), lists, classes.collect()))
    }
}

/// Reject a template whose lists are not learned.
fn check_learned(template: &Template) -> PyResult<()> {
    if template.is_open() {
        return Err(Error::Template(
            "is_rare and is_frequent need the words of the training sentences; fit a tagger, or call learn with them"
                .into(),
        )
        .into());
    }
    Ok(())
}

/// Append sentences, passed by columns, to the flat table. With `bare` they are the values of the template's only
/// column.
fn read(tokens: &mut Tokens, template: &Template, sentences: &Bound<'_, PyAny>, bare: bool) -> PyResult<()> {
    let wrong = || format!("expected a list of sentences, found {}", kind(sentences));
    if bare && template.columns.len() != 1 {
        return Err(Error::Value(format!(
            "bare sentences are one column; the template has {}",
            template.columns.len()
        ))
        .into());
    }
    if let Some(texts) = bare.then(|| sentences.cast::<PyTexts>().ok()).flatten() {
        return texts.get().read(sentences.py(), tokens);
    }
    each(sentences, wrong, |s, sentence| {
        let read = if bare {
            let list = sentence.cast_exact::<PyList>().ok();
            let length = list.and_then(|list| push_strings(&mut tokens.columns[0], list));
            let length = length.unwrap_or_else(|| values(tokens, template, s, 0, sentence));
            length.map(|length| tokens.end_sentence(length))
        } else {
            push(tokens, template, s, sentence)
        };
        in_sentence(sentence.py(), s, read)
    })?;
    Ok(())
}

/// Append sentences, which are lists of strings, to the flat table of a template's only column.
pub fn read_bare(tokens: &mut Tokens, template: &Template, sentences: &Bound<'_, PyAny>) -> PyResult<()> {
    read(tokens, template, sentences, true)
}

/// Number of strings by which a list is prefetched.
const PREFETCH_DISTANCE: usize = 6;

/// Append the strings of a list. Return None, with nothing appended, if it contains other objects, which `values`
/// reports.
fn push_strings(column: &mut Column, list: &Bound<'_, PyList>) -> Option<PyResult<usize>> {
    let (before, length) = (column.cells.len(), list.len());
    for t in 0..length {
        // SAFETY: items within the list's length, borrowed while the GIL is held. No Python code runs meanwhile.
        let text = unsafe {
            let at = |t: usize| ffi::PyList_GetItem(list.as_ptr(), t as ffi::Py_ssize_t);
            if t + PREFETCH_DISTANCE < length {
                prefetch(at(t + PREFETCH_DISTANCE));
            }
            let (text, mut len) = (at(t), 0);
            let is_string = ffi::PyUnicode_CheckExact(text) != 0;
            let bytes = if is_string { ffi::PyUnicode_AsUTF8AndSize(text, &mut len) } else { std::ptr::null() };
            if bytes.is_null() {
                ffi::PyErr_Clear();
                column.cells.truncate(before);
                return None;
            }
            std::str::from_utf8_unchecked(std::slice::from_raw_parts(bytes.cast(), len as usize))
        };
        if let Err(error) = column.push(text) {
            return Some(Err(error.into()));
        }
    }
    Some(Ok(length))
}

/// Number of items between two checks for signals.
const SIGNAL_INTERVAL: usize = 64;

/// Items of a list, a tuple or another iterable that is not a string, bytes or a mapping.
pub fn each<'py>(
    items: &Bound<'py, PyAny>,
    wrong: impl FnOnce() -> String,
    mut f: impl FnMut(usize, &Bound<'py, PyAny>) -> PyResult<()>,
) -> PyResult<usize> {
    let mut n = 0;
    let mut f = |item: &Bound<'py, PyAny>| -> PyResult<()> {
        if n % SIGNAL_INTERVAL == SIGNAL_INTERVAL - 1 {
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
        let is_not_a_list =
            items.is_instance_of::<PyString>() || items.is_instance_of::<PyBytes>() || items.is_instance_of::<PyDict>();
        let iterator = if is_not_a_list { None } else { items.try_iter().ok() };
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

/// Append the values of a column of one sentence. Return their number.
fn values(tokens: &mut Tokens, template: &Template, s: usize, c: usize, values: &Bound<'_, PyAny>) -> PyResult<usize> {
    let (py, name, column) = (values.py(), &template.columns[c], &mut tokens.columns[c]);
    let wrong = || format!("sentence {s}, column {name:?}: expected a list of strings, found {}", kind(values));
    each(values, wrong, |t, value| {
        let place = || format!("sentence {s}, token {t}, column {name:?}");
        let value = value.cast::<PyString>().map_err(|_| {
            corpus_error(py, format!("{}: expected a string, found {}; convert it with str()", place(), kind(value)))
        })?;
        Ok(column.push(utf8(value, place)?)?)
    })
}

/// Append one sentence, passed by columns, to the flat table.
fn push(tokens: &mut Tokens, template: &Template, s: usize, columns: &Bound<'_, PyAny>) -> PyResult<()> {
    let names = &template.columns;
    let py = columns.py();
    let mut length = None;
    let wrong = || format!("sentence {s}: expected a list of {} columns, found {}", names.len(), kind(columns));
    let found = each(columns, wrong, |c, values_of| {
        if c >= names.len() {
            return Err(corpus_error(
                py,
                format!("sentence {s} has more than {} columns ({}); pass only these", names.len(), names.join(", ")),
            ));
        }
        let n = values(tokens, template, s, c, values_of)?;
        if *length.get_or_insert(n) != n {
            return Err(corpus_error(
                py,
                format!(
                    "sentence {s}: column {:?} has {n} tokens, column {:?} has {}; every column needs one value per token",
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

/// Dataset of sentences passed by columns or, with `bare`, as the values of the only column. A growing vocabulary adds
/// new attributes. A locked one drops them.
#[pyfunction]
#[pyo3(signature = (template, vocab, sentences, n_jobs=1, *, bare=false))]
pub(super) fn encode_tokens(
    py: Python<'_>,
    template: &Bound<'_, PyTemplate>,
    vocab: &Bound<'_, PyVocab>,
    sentences: &Bound<'_, PyAny>,
    n_jobs: usize,
    bare: bool,
) -> PyResult<PyDataset> {
    let mut cached = text_cache(template.get(), vocab)?;
    read(&mut cached.tokens, &template.get().inner, sentences, bare)?;
    dataset(py, template.get(), vocab, cached, n_jobs)
}

/// Return the dataset of `encode_tokens`, and the number in `words` of each token's text in a column.
#[pyfunction]
#[pyo3(signature = (template, vocab, sentences, words, column, n_jobs=1, *, bare=false))]
pub(super) fn encode_words(
    py: Python<'_>,
    template: &Bound<'_, PyTemplate>,
    vocab: &Bound<'_, PyVocab>,
    sentences: &Bound<'_, PyAny>,
    words: &Bound<'_, PyWordSets>,
    column: usize,
    n_jobs: usize,
    bare: bool,
) -> PyResult<(PyDataset, Array<u32>)> {
    let mut cached = text_cache(template.get(), vocab)?;
    read(&mut cached.tokens, &template.get().inner, sentences, bare)?;
    let Some(texts) = cached.tokens.columns.get(column) else {
        return Err(
            Error::Value(format!("no column {column}; the template has {}", cached.tokens.columns.len())).into()
        );
    };
    let numbers = word_numbers(texts, words.get());
    let found = Array(numbers.to_vec());
    Ok((dataset(py, template.get(), vocab, cached, n_jobs)?, found))
}

/// Number of each token's text. If there are many tokens, every distinct text is looked up once.
fn word_numbers(column: &Column, words: &PyWordSets) -> Vec<u32> {
    let number = |text: u32| words.get(column.key(text as usize));
    if column.cells.len() < column.texts() {
        return column.cells.iter().map(|&text| number(text)).collect();
    }
    let numbers: Vec<u32> = (0..column.texts() as u32).map(number).collect();
    column.cells.iter().map(|&text| numbers[text as usize]).collect()
}

/// Cached attributes of distinct texts. Empty if the vocabulary grows.
fn text_cache(template: &PyTemplate, vocab: &Bound<'_, PyVocab>) -> PyResult<TextCache> {
    let (columns, stamp) = (template.inner.columns.len(), vocab.try_borrow()?.inner.stamp());
    Ok(stamp.map_or_else(|| TextCache::new(columns, 0), |stamp| TextCache::take(&template.cached, columns, stamp)))
}

fn dataset(
    py: Python<'_>,
    of: &PyTemplate,
    vocab: &Bound<'_, PyVocab>,
    mut cached: TextCache,
    n_jobs: usize,
) -> PyResult<PyDataset> {
    let (template, buffers) = (&of.inner, of.buffers.clone());
    check_learned(template)?;
    let locked = vocab.try_borrow()?.inner.is_locked();
    let cells: usize = cached.tokens.columns.iter().map(|column| column.cells.len()).sum();
    let steps = cells.saturating_mul(60 * (1 + template.rules.len())); // per rule and token: a text, its hash, a lookup
    let inner = if locked {
        let vocab = vocab.try_borrow()?;
        let vocab = &vocab.inner;
        let since = cached.since();
        let (tokens, found) = (&cached.tokens, &mut cached.found);
        let inner = run_of(py, n_jobs, steps, || {
            Extractor::new(template, tokens, n_jobs, buffers, since).locked(vocab, found)
        })?;
        cached.put_back(&of.cached);
        inner
    } else {
        let mut vocab = vocab.try_borrow_mut()?;
        let vocab = &mut vocab.inner;
        run_of(py, n_jobs, steps, || {
            Extractor::new(template, &cached.tokens, n_jobs, buffers, Vec::new()).grow(vocab)
        })??
    };
    Ok(PyDataset { inner: inner.into() })
}
