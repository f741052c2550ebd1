//! Model files.

use crate::dataset::layout::{Layout, LayoutArrays};
use crate::dataset::vocab::Vocab;
use crate::error::Error;
use crate::machine::container::{self, Container, Entry};
use crate::py::common::{guard, run};
use crate::py::encode::PyVocab;
use crate::py::scorer::PyScorer;
use crate::scores::scorer::Scorer;
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use std::path::PathBuf;
use std::sync::Arc;

/// An open, verified model file: read into memory, or used where it lies (`mmap`).
#[pyclass(name = "ModelFile", module = "tagwise._core", frozen)]
pub struct PyModelFile {
    inner: Container,
}

#[pymethods]
impl PyModelFile {
    #[new]
    #[pyo3(signature = (path, *, mmap = false))]
    fn open(py: Python<'_>, path: PathBuf, mmap: bool) -> PyResult<Self> {
        Ok(PyModelFile { inner: run(py, 1, || Container::open(&path, mmap))?? })
    }

    /// The JSON header.
    #[getter]
    fn header(&self) -> &str {
        self.inner.header()
    }

    /// Names and types of the arrays.
    #[getter]
    fn arrays(&self) -> Vec<(String, String)> {
        self.inner.arrays().map(|(name, dtype)| (name.to_owned(), dtype.to_owned())).collect()
    }

    /// A copy of an array.
    fn array<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let dtype = self.inner.arrays().find(|(n, _)| *n == name).map(|(_, d)| d.to_owned());
        let file = &self.inner;
        Ok(match dtype.as_deref() {
            Some("u8") => PyArray1::from_slice(py, &file.array::<u8>(name)?).into_any(),
            Some("u16") => PyArray1::from_slice(py, &file.array::<u16>(name)?).into_any(),
            Some("u32") => PyArray1::from_slice(py, &file.array::<u32>(name)?).into_any(),
            Some("u64") => PyArray1::from_slice(py, &file.array::<u64>(name)?).into_any(),
            Some("f32") => PyArray1::from_slice(py, &file.array::<f32>(name)?).into_any(),
            _ => PyArray1::from_slice(py, &file.array::<f64>(name)?).into_any(),
        })
    }

    /// The vocabulary; its texts are used in place.
    fn vocabulary(&self) -> PyResult<PyVocab> {
        let f = &self.inner;
        let parts = (f.array("vocab.keys")?, f.indices("vocab.table")?, f.array("vocab.text")?, f.array("vocab.end")?);
        guard(|| Ok(PyVocab { inner: Vocab::from_parts(parts.0, parts.1, parts.2, parts.3)? }))
    }

    /// The scorer; its weights are used in place.
    #[pyo3(signature = (n_attributes, n_labels, forbidden = None, *, local = false))]
    fn scorer(
        &self,
        n_attributes: usize,
        n_labels: usize,
        forbidden: Option<PyReadonlyArray1<'_, u32>>,
        local: bool,
    ) -> PyResult<PyScorer> {
        let f = &self.inner;
        let arrays = LayoutArrays {
            labels: n_labels,
            attributes: n_attributes,
            node_ptr: f.indices("node_ptr")?,
            node_label: f.indices("node_label")?,
            edges: f.indices("edges")?.to_vec(),
            starts: f.indices("starts")?.to_vec(),
            ends: f.indices("ends")?.to_vec(),
            pair_ptr: f.indices("pair_ptr")?,
            pair: f.indices("pair")?,
        };
        let forbidden = forbidden.map(|f| f.as_array().to_vec()).unwrap_or_default();
        guard(|| {
            let layout = Layout::new(arrays)?;
            let scorer = Scorer::new(Arc::new(layout), f.array("weights")?, &forbidden)?;
            Ok(PyScorer { inner: scorer.locally(local) })
        })
    }
}

/// Bytes that are handed to a Python stream at once: between two of them signals are seen.
const PIECE: usize = 1 << 20;

/// Write a model to an open binary stream: header, vocabulary, scorer, and further named arrays (float64, float32, uint32 or
/// uint8).
#[pyfunction]
fn write_model(
    py: Python<'_>,
    stream: &Bound<'_, PyAny>,
    header: &str,
    vocabulary: &PyVocab,
    scorer: &PyScorer,
    extra: &Bound<'_, PyDict>,
) -> PyResult<()> {
    let mut doubles: Vec<(String, Vec<f64>)> = Vec::new();
    let mut numbers: Vec<(String, Vec<u32>)> = Vec::new();
    let mut singles: Vec<(String, Vec<f32>)> = Vec::new();
    let mut bytes: Vec<(String, Vec<u8>)> = Vec::new();
    for (name, array) in extra {
        let name: String = name.extract()?;
        if let Ok(a) = array.extract::<PyReadonlyArray1<'_, f64>>() {
            doubles.push((name, a.as_array().to_vec()));
        } else if let Ok(a) = array.extract::<PyReadonlyArray1<'_, u32>>() {
            numbers.push((name, a.as_array().to_vec()));
        } else if let Ok(a) = array.extract::<PyReadonlyArray1<'_, f32>>() {
            singles.push((name, a.as_array().to_vec()));
        } else if let Ok(a) = array.extract::<PyReadonlyArray1<'_, u8>>() {
            bytes.push((name, a.as_array().to_vec()));
        } else {
            return Err(Error::Value(format!("array {name:?} is none of float64, float32, uint32, uint8")).into());
        }
    }
    let (layout, weights) = (scorer.inner.layout(), scorer.inner.weights());
    let (keys, table, text, end) = vocabulary.inner.parts();
    let mut entries = vec![
        Entry::new("vocab.keys", keys),
        Entry::new("vocab.table", table),
        Entry::new("vocab.text", text),
        Entry::new("vocab.end", end),
        Entry::new("node_ptr", &layout.node_ptr),
        Entry::new("node_label", &layout.node_label),
        Entry::new("edges", &layout.edges),
        Entry::new("starts", &layout.starts),
        Entry::new("ends", &layout.ends),
        Entry::new("pair_ptr", &layout.pair_ptr),
        Entry::new("pair", &layout.pair),
        Entry::new("weights", weights),
    ];
    entries.extend(doubles.iter().map(|(name, a)| Entry::new(name, a)));
    entries.extend(numbers.iter().map(|(name, a)| Entry::new(name, a)));
    entries.extend(singles.iter().map(|(name, a)| Entry::new(name, a)));
    entries.extend(bytes.iter().map(|(name, a)| Entry::new(name, a)));
    let image = run(py, 1, || container::image(header, &entries))??;
    for piece in image.chunks(PIECE) {
        stream.call_method1("write", (PyBytes::new(py, piece),))?;
    }
    Ok(())
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PyModelFile>()?;
    m.add_function(wrap_pyfunction!(write_model, m)?)?;
    m.add("MODEL_FORMAT", container::VERSION)
}
