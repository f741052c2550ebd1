//! From Python sentences to a dataset: vocabulary, attribute lists, labels.

use crate::dataset::{Dataset, NO_LABEL};
use crate::vocab::{Key, Vocab, NONE};
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString};
use std::sync::Arc;

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

    #[getter]
    fn locked(&self) -> bool {
        self.inner.is_locked()
    }

    fn lock(&mut self) {
        self.inner.lock();
    }

    /// Id of an attribute given by its text, or None.
    fn get(&self, text: &str) -> Option<u32> {
        Some(self.inner.get(Key::lookup(text))).filter(|&id| id != NONE)
    }

    /// Text of an attribute.
    fn text(&self, id: u32) -> PyResult<&str> {
        self.inner
            .text(id)
            .ok_or_else(|| PyValueError::new_err(format!("no attribute {id}; there are {}", self.inner.len())))
    }

    /// Occurrences of each attribute while the vocabulary grew.
    fn counts<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u32>> {
        PyArray1::from_slice(py, self.inner.counts())
    }
}

/// Sentences as flat arrays of attribute ids, with gold labels where known.
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

    #[getter]
    fn n_tokens(&self) -> usize {
        self.inner.tokens()
    }

    #[getter]
    fn n_attributes(&self) -> usize {
        self.inner.node.ids.len()
    }

    /// First token of each sentence, and the number of tokens last: [N + 1].
    #[getter]
    fn offsets<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u64>> {
        PyArray1::from_iter(py, self.inner.sentences.iter().map(|&t| t as u64))
    }

    /// Gold label ids: [tokens], empty for an unlabelled dataset.
    #[getter]
    fn gold<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u16>> {
        PyArray1::from_slice(py, &self.inner.gold)
    }

    /// The same sentences with these gold labels ([tokens]; 65535 marks an unknown one).
    fn with_gold(&self, gold: PyReadonlyArray1<'_, u16>) -> PyResult<PyDataset> {
        let mut inner = Dataset::clone(&self.inner);
        inner.set_gold(gold.as_slice()?.to_vec())?;
        Ok(PyDataset { inner: Arc::new(inner) })
    }
}

/// Dataset of attribute lists: sentences of tokens of attribute strings. A locked vocabulary drops unknown attributes.
#[pyfunction]
fn encode_attributes(vocab: &mut PyVocab, sentences: &Bound<'_, PyList>) -> PyResult<PyDataset> {
    let mut data = Dataset::default();
    let locked = vocab.inner.is_locked();
    for (s, sentence) in sentences.iter().enumerate() {
        let sentence = sentence.cast::<PyList>().map_err(|_| {
            PyValueError::new_err(format!(
                "sentence {s} is not a list of tokens; X is a list of sentences of attribute lists"
            ))
        })?;
        for (t, token) in sentence.iter().enumerate() {
            let token = token.cast::<PyList>().map_err(|_| {
                PyValueError::new_err(format!("sentence {s}, token {t}: expected a list of attribute strings"))
            })?;
            for attribute in token.iter() {
                let attribute = attribute.cast::<PyString>().map_err(|_| {
                    PyValueError::new_err(format!("sentence {s}, token {t}: an attribute is not a string"))
                })?;
                let text = attribute.to_str()?;
                let id = if locked {
                    vocab.inner.get(Key::lookup(text))
                } else {
                    vocab.inner.intern(Key::of_text(text), |b| b.extend_from_slice(text.as_bytes()))?
                };
                data.node.push(id, 1.0);
            }
            data.node.end_row();
        }
        data.end_sentence();
    }
    Ok(PyDataset { inner: Arc::new(data) })
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PyVocab>()?;
    m.add_class::<PyDataset>()?;
    m.add_function(wrap_pyfunction!(encode_attributes, m)?)?;
    m.add("NO_LABEL", NO_LABEL)
}
