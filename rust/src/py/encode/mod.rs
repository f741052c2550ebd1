//! From Python sentences to a dataset: the vocabulary, the dataset and the encoders (`attributes`, `tokens`).

mod attributes;
pub mod items;
mod labels;
mod strings;
mod texts;
mod tokens;

use crate::dataset::csr::{Csr, CsrRef};
use crate::dataset::dense::Dense;
use crate::dataset::vocab::{Vocab, NONE};
use crate::dataset::{Dataset, NO_LABEL};
use crate::error::Error;
use crate::machine::system::paged::Pages;
use crate::py::arrays::Array;
use crate::py::common::{guard, run};
use crate::py::exception;
use numpy::PyReadonlyArray2;
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString};
use std::path::PathBuf;
use std::sync::Arc;

pub use tokens::{each, kind, read_bare, PyTemplate};

/// Return a tagwise.base.exceptions.CorpusError with this message.
pub fn corpus_error(py: Python<'_>, message: String) -> PyErr {
    exception(py, "CorpusError", None, message)
}

/// Add the sentence number to a `CorpusError` raised while reading one sentence.
pub fn in_sentence<T>(py: Python<'_>, s: usize, read: PyResult<T>) -> PyResult<T> {
    if let Err(error) = &read {
        let class = py.import("tagwise.base.exceptions")?.getattr("CorpusError")?;
        if error.value(py).is_instance(&class)? {
            error.value(py).setattr("sentence", s)?;
        }
    }
    read
}

/// UTF-8 of a string, without a copy. Only a lone surrogate has none.
pub fn utf8<'a>(text: &'a Bound<'_, PyString>, place: impl FnOnce() -> String) -> PyResult<&'a str> {
    text.to_str().map_err(|_| {
        let shown = text.repr().map_or_else(|_| String::new(), |r| r.to_string());
        let what = "holds a lone surrogate and is no Unicode text";
        corpus_error(text.py(), format!("{}: {shown} {what}; read the input as UTF-8, or replace it", place()))
    })
}

/// Attribute texts and their ids, in order of first occurrence.
#[pyclass(name = "Vocabulary", module = "tagwise._core")]
pub struct PyVocab {
    pub inner: Vocab,
}

#[pymethods]
impl PyVocab {
    #[new]
    fn new() -> Self {
        PyVocab { inner: Vocab::new() }
    }

    fn __len__(&self) -> usize {
        self.inner.len()
    }

    fn __repr__(&self) -> String {
        let state = if self.inner.is_locked() { "locked" } else { "growing" };
        format!("<Vocabulary: {} attributes, {state}>", self.inner.len())
    }

    #[getter]
    fn locked(&self) -> bool {
        self.inner.is_locked()
    }

    fn lock(&mut self) {
        self.inner.lock();
    }

    /// A copy to which new attributes can be added. Existing attributes keep their ids.
    fn growing(&self) -> PyResult<PyVocab> {
        Ok(PyVocab { inner: self.inner.growing()? })
    }

    /// A copy with the attributes that `keep` ([attributes]) marks, in the same order.
    fn kept(&self, keep: Array<bool>) -> PyResult<PyVocab> {
        let keep = keep.0;
        if keep.len() != self.inner.len() {
            return Err(Error::Value(format!("{} marks for {} attributes", keep.len(), self.inner.len())).into());
        }
        let mut inner = self.inner.clone();
        inner.retain(|id| keep[id as usize])?;
        Ok(PyVocab { inner })
    }

    /// Id of an attribute by its text, or None.
    fn get(&self, text: &str) -> Option<u32> {
        Some(self.inner.find(text)).filter(|&id| id != NONE)
    }

    fn __contains__(&self, text: &str) -> bool {
        self.inner.find(text) != NONE
    }

    /// Text of an attribute.
    fn text(&self, id: u32) -> PyResult<&str> {
        self.inner.text(id).ok_or_else(|| {
            PyIndexError::new_err(format!("no attribute {id}; there are {}, numbered from 0", self.inner.len()))
        })
    }

    /// All texts, in order of their ids.
    fn texts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, (0..self.inner.len() as u32).map(|id| self.inner.text(id).unwrap_or("")).collect::<Vec<_>>())
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(self.texts(py)?.as_any().try_iter()?.into_any())
    }

    /// Occurrences of each attribute while the vocabulary grew. Empty once it is locked.
    fn counts(&self) -> Array<u32> {
        Array(self.inner.counts().to_vec())
    }

    /// Arrays of the vocabulary: keys, table, text, text_end.
    #[allow(clippy::type_complexity)]
    fn arrays(&self) -> (Array<u64>, Array<u32>, Array<u8>, Array<u64>) {
        let (keys, table, text, text_end) = self.inner.parts();
        (Array(keys.to_vec()), Array(table.to_vec()), Array(text.to_vec()), Array(text_end.to_vec()))
    }

    /// Build a vocabulary from its arrays. The table may be None, since it follows from the keys. The vocabulary is
    /// locked, or continues to grow if checks and counts are passed.
    #[staticmethod]
    #[pyo3(signature = (keys, table, text, text_end, checks=None, counts=None))]
    fn from_arrays(
        keys: Array<u64>,
        table: Option<Array<u32>>,
        text: Array<u8>,
        text_end: Array<u64>,
        checks: Option<Array<u64>>,
        counts: Option<Array<u32>>,
    ) -> PyResult<PyVocab> {
        guard(|| {
            let table = table.map(|table| table.0.into());
            let mut inner = Vocab::from_parts(keys.0.into(), table, text.0.into(), text_end.0.into())?;
            if let (Some(checks), Some(counts)) = (checks, counts) {
                inner = inner.unlock(checks.0, counts.0)?;
            }
            Ok(PyVocab { inner })
        })
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        let (keys, table, text, text_end) = self.arrays();
        let growth = (!self.inner.is_locked()).then(|| {
            let (checks, counts) = self.inner.growth();
            (Array(checks.to_vec()), Array(counts.to_vec()))
        });
        let (checks, counts) = growth.unzip();
        let arguments = (keys, table, text, text_end, checks, counts).into_pyobject(py)?;
        Ok((py.get_type::<PyVocab>().getattr("from_arrays")?, arguments.into_any()))
    }
}

/// Sentences as flat arrays of attribute ids, with gold labels if known.
#[pyclass(name = "Dataset", module = "tagwise._core", frozen)]
pub struct PyDataset {
    pub inner: Arc<Dataset>,
}

#[pymethods]
impl PyDataset {
    /// Number of sentences.
    fn __len__(&self) -> usize {
        self.inner.len()
    }

    fn __repr__(&self) -> String {
        let attributes = self.n_attributes() + self.inner.edge.ids.len();
        format!("<Dataset: {} sentences, {} tokens, {attributes} attributes>", self.inner.len(), self.inner.tokens())
    }

    #[getter]
    fn n_tokens(&self) -> usize {
        self.inner.tokens()
    }

    /// Number of node attributes of all tokens together.
    #[getter]
    fn n_attributes(&self) -> usize {
        self.inner.node.sparse().ids.len() + self.vectors().map_or(0, |(_, size)| size * self.inner.tokens())
    }

    /// Number of edge attributes of all tokens together.
    #[getter]
    fn n_edge_attributes(&self) -> usize {
        self.inner.edge.ids.len()
    }

    /// First token of each sentence, and the number of tokens last: [N + 1].
    #[getter]
    fn offsets(&self) -> Array<u64> {
        Array(self.inner.sentences.iter().map(|&t| t as u64).collect())
    }

    /// Gold label ids: [tokens], empty for an unlabelled dataset.
    #[getter]
    fn gold(&self) -> Array<u16> {
        Array(self.inner.gold.to_vec())
    }

    /// Node attributes in CSR form: row pointers [tokens + 1], ids, values (empty: all are 1).
    fn node(&self) -> CsrArrays {
        csr(self.inner.node.csr())
    }

    /// Node attributes in CSR form, without those of vectors.
    fn sparse(&self) -> CsrArrays {
        csr(self.inner.node.sparse())
    }

    /// First attribute and length of the tokens' vectors, or None without vectors.
    #[getter]
    fn vectors(&self) -> Option<(u32, usize)> {
        self.inner.node.dense().map(|dense| (dense.first, dense.size))
    }

    /// Edge attributes in CSR form, without rows if the dataset has none.
    fn edge(&self) -> CsrArrays {
        csr(self.inner.edge.view())
    }

    /// Concatenate the sentences of several labelled datasets, without edge attributes, vectors and cuts. With a
    /// folder the rows are written to files there, one dataset at a time.
    #[staticmethod]
    #[pyo3(signature = (parts, folder = None))]
    fn joined(parts: &Bound<'_, PyAny>, folder: Option<PathBuf>) -> PyResult<PyDataset> {
        let mut parts = parts.try_iter()?;
        let parts = std::iter::from_fn(|| {
            let next = parts.next()?;
            Some(next.and_then(|part| Ok::<_, PyErr>(part.cast::<PyDataset>()?.get().inner.clone())))
        });
        guard(|| Ok(PyDataset { inner: Dataset::joined(parts, folder.map(Pages::new))?.into() }))
    }

    /// Cut sentences of more than `most` tokens into pieces of similar length. Return the dataset and the sentence of
    /// each piece. Pieces record their cuts: start and end features fire at the true ends of sentences only.
    fn cut(&self, py: Python<'_>, most: usize) -> PyResult<(PyDataset, Array<u32>)> {
        let (data, from) = run(py, 1, || self.inner.cut(most))?;
        Ok((PyDataset { inner: data.into() }, Array(from)))
    }

    /// Every labelled token as a sentence of its own, with its context as further attributes from `first` on: one for
    /// each of the `labels` labels as the previous label, one for the first token of a sentence, one for the last.
    #[pyo3(signature = (first, labels, start_end = true))]
    fn steps(&self, py: Python<'_>, first: u32, labels: u32, start_end: bool) -> PyResult<PyDataset> {
        let data = run(py, 1, || self.inner.steps(first, labels, start_end))??;
        Ok(PyDataset { inner: data.into() })
    }

    /// These sentences with a vector for every token, `values` [tokens, size] times `scale`, whose components are the
    /// attributes from `first` on.
    #[pyo3(signature = (first, values, scale = 1.0))]
    fn with_vectors(
        &self,
        py: Python<'_>,
        first: u32,
        values: PyReadonlyArray2<'_, f32>,
        scale: f32,
    ) -> PyResult<PyDataset> {
        let (size, values) = (values.as_array().ncols(), values.as_slice()?);
        let inner = run(py, 1, || self.inner.with_vectors(Dense::new(first, size, values, scale)?))??;
        Ok(PyDataset { inner: inner.into() })
    }

    /// Build a dataset from its arrays: offsets, gold (empty: unlabelled), and rows in the form of `node` and `edge`.
    /// Values are checked against each other and copied.
    #[staticmethod]
    #[pyo3(signature = (offsets, gold, node, edge = None))]
    fn from_arrays(
        offsets: Array<u64>,
        gold: Array<u16>,
        node: CsrArrays,
        edge: Option<CsrArrays>,
    ) -> PyResult<PyDataset> {
        guard(|| {
            let node = rows(node, "node")?;
            let sentences = pointers(&offsets.0, node.rows(), "offsets")?;
            let edge = edge.map_or_else(|| Ok(Csr::default()), |edge| rows(edge, "edge"))?;
            if edge.rows() != 0 && edge.rows() != node.rows() {
                let message = format!("{} rows of edge attributes for {} tokens", edge.rows(), node.rows());
                return Err(Error::Value(message).into());
            }
            let mut inner = Dataset { sentences, node: node.into(), edge, ..Dataset::default() };
            if !gold.0.is_empty() {
                inner.set_gold(gold.0)?;
            }
            Ok(PyDataset { inner: inner.into() })
        })
    }

    /// These sentences with other gold labels ([tokens], 65535 for an unknown label).
    fn with_gold(&self, gold: Array<u16>) -> PyResult<PyDataset> {
        let mut inner = Dataset::clone(&self.inner);
        inner.set_gold(gold.0)?;
        Ok(PyDataset { inner: inner.into() })
    }
}

/// Row pointers, ids and values, passed from Python.
type CsrArrays = (Array<u64>, Array<u32>, Array<f32>);

/// Check that the numbers ascend from 0 to `end`.
fn pointers(given: &[u64], end: usize, name: &str) -> PyResult<Vec<usize>> {
    let ascending = given.windows(2).all(|p| p[0] <= p[1]);
    if !ascending || given.first() != Some(&0) || given.last() != Some(&(end as u64)) {
        return Err(Error::Value(format!("{name} does not ascend from 0 to {end}")).into());
    }
    Ok(given.iter().map(|&p| p as usize).collect())
}

/// Build rows after checking them.
fn rows((ptr, ids, values): CsrArrays, name: &str) -> PyResult<Csr> {
    let (ids, values) = (ids.0, values.0);
    if !values.is_empty() && values.len() != ids.len() || values.iter().any(|x| !x.is_finite()) {
        let message = format!("{name}: {} values for {} ids; one finite number each, or none", values.len(), ids.len());
        return Err(Error::Value(message).into());
    }
    let ptr = pointers(&ptr.0, ids.len(), &format!("{name}: the row pointer"))?;
    Ok(Csr { ptr, ids, values })
}

fn csr(rows: CsrRef<'_>) -> CsrArrays {
    (Array(rows.ptr.iter().map(|&p| p as u64).collect()), Array(rows.ids.to_vec()), Array(rows.values.to_vec()))
}

/// Drop the attributes that occur fewer than min_count times from a growing vocabulary and from its dataset.
#[pyfunction]
fn prune(
    py: Python<'_>,
    vocab: &Bound<'_, PyVocab>,
    dataset: &Bound<'_, PyDataset>,
    min_count: u32,
) -> PyResult<PyDataset> {
    let mut vocab = vocab.try_borrow_mut()?;
    if vocab.inner.is_locked() {
        return Err(corpus_error(
            py,
            "min_count needs the counts of a growing vocabulary; prune before it is locked".into(),
        ));
    }
    let (vocab, data) = (&mut vocab.inner, &dataset.get().inner);
    if data.check_model(vocab.len()).is_err() {
        return Err(corpus_error(
            py,
            "the dataset was encoded with another vocabulary; prune it with the one that encoded it".into(),
        ));
    }
    let inner = run(py, 1, || {
        let counts = vocab.counts().to_vec();
        let map = vocab.retain(|id| counts[id as usize] >= min_count)?;
        let mut data = Dataset::clone(data);
        let mut rows = data.node.csr().to_owned();
        rows.renumber(&map);
        data.node = rows.into();
        data.edge.renumber(&map);
        Ok::<_, Error>(data)
    })??;
    Ok(PyDataset { inner: inner.into() })
}

/// Disables Python's garbage collector while it exists. Otherwise the collector would scan the young objects after
/// every few hundred new lists, and often all objects, without finding garbage.
pub struct GcPause<'py> {
    was_on: bool,
    _gil: Python<'py>,
}

impl<'py> GcPause<'py> {
    pub fn new(py: Python<'py>) -> GcPause<'py> {
        // SAFETY: the GIL is held here and in `drop`.
        GcPause { was_on: unsafe { pyo3::ffi::PyGC_Disable() } != 0, _gil: py }
    }
}

impl Drop for GcPause<'_> {
    fn drop(&mut self) {
        if self.was_on {
            // SAFETY: the GIL is held, as `_gil` proves.
            unsafe { pyo3::ffi::PyGC_Enable() };
        }
    }
}

/// Convert the label ids of all tokens ([tokens]) to one list of labels per sentence. `offsets` [N + 1] are the
/// dataset's.
#[pyfunction]
fn name_paths<'py>(
    py: Python<'py>,
    path: Array<u16>,
    offsets: Array<u64>,
    labels: Vec<Py<PyString>>,
) -> PyResult<Bound<'py, PyList>> {
    let (path, offsets) = (path.0, offsets.0);
    let fits = offsets.windows(2).all(|o| o[0] <= o[1]) && offsets.last().is_none_or(|&n| n as usize == path.len());
    if !fits || path.iter().any(|&y| y as usize >= labels.len()) {
        return Err(Error::Value("label ids, offsets and labels do not fit each other".into()).into());
    }
    let _gc_pause = GcPause::new(py);
    let out = PyList::empty(py);
    for o in offsets.windows(2) {
        let names = path[o[0] as usize..o[1] as usize].iter().map(|&y| labels[y as usize].bind(py));
        out.append(PyList::new(py, names)?)?;
    }
    Ok(out)
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PyVocab>()?;
    m.add_class::<PyDataset>()?;
    m.add_class::<PyTemplate>()?;
    m.add_class::<texts::PyTexts>()?;
    m.add_function(wrap_pyfunction!(attributes::encode_attributes, m)?)?;
    m.add_function(wrap_pyfunction!(tokens::encode_tokens, m)?)?;
    m.add_function(wrap_pyfunction!(tokens::encode_words, m)?)?;
    m.add_function(wrap_pyfunction!(labels::count_texts, m)?)?;
    m.add_function(wrap_pyfunction!(labels::text_ids, m)?)?;
    m.add_function(wrap_pyfunction!(prune, m)?)?;
    m.add_function(wrap_pyfunction!(name_paths, m)?)?;
    m.add("NO_LABEL", NO_LABEL)
}
