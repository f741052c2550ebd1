//! Which features exist, as a Python object.

use crate::dataset::layout::{Choice, Layout, LayoutArrays};
use crate::error::Error;
use crate::py::common::{guard, run};
use crate::py::encode::PyDataset;
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::Arc;

/// Which features exist and where each lies in the weight vector.
#[pyclass(name = "Layout", module = "tagwise._core", frozen)]
pub struct PyLayout {
    pub inner: Arc<Layout>,
}

#[pymethods]
impl PyLayout {
    /// Features of a labelled dataset.
    #[staticmethod]
    #[pyo3(signature = (dataset, n_attributes, n_labels, *, all_pairs = false, start_end = true))]
    fn build(
        py: Python<'_>,
        dataset: &PyDataset,
        n_attributes: usize,
        n_labels: usize,
        all_pairs: bool,
        start_end: bool,
    ) -> PyResult<PyLayout> {
        let data = &dataset.inner;
        let layout = run(py, 1, || Layout::build(data, n_attributes, n_labels, Choice { all_pairs, start_end }))??;
        Ok(PyLayout { inner: Arc::new(layout) })
    }

    /// A layout from its arrays, as `arrays` gives them.
    #[staticmethod]
    fn from_arrays(n_attributes: usize, n_labels: usize, arrays: &Bound<'_, PyDict>) -> PyResult<PyLayout> {
        fn take<'py, T: numpy::Element + Clone>(arrays: &Bound<'py, PyDict>, name: &str) -> PyResult<Vec<T>> {
            let item = arrays.get_item(name)?.ok_or_else(|| Error::Value(format!("array {name:?} is missing")))?;
            Ok(item.extract::<PyReadonlyArray1<'py, T>>()?.as_array().to_vec())
        }
        let arrays = LayoutArrays {
            labels: n_labels,
            attributes: n_attributes,
            node_ptr: take::<u64>(arrays, "node_ptr")?.into(),
            node_label: take::<u16>(arrays, "node_label")?.into(),
            edges: take(arrays, "edges")?,
            starts: take(arrays, "starts")?,
            ends: take(arrays, "ends")?,
            pair_ptr: take::<u64>(arrays, "pair_ptr")?.into(),
            pair: take::<u32>(arrays, "pair")?.into(),
        };
        guard(|| Ok(PyLayout { inner: Arc::new(Layout::new(arrays)?) }))
    }

    /// The arrays that make the layout up.
    fn arrays<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (out, l) = (PyDict::new(py), &self.inner);
        out.set_item("node_ptr", PyArray1::from_slice(py, &l.node_ptr))?;
        out.set_item("node_label", PyArray1::from_slice(py, &l.node_label))?;
        out.set_item("edges", PyArray1::from_slice(py, &l.edges))?;
        out.set_item("starts", PyArray1::from_slice(py, &l.starts))?;
        out.set_item("ends", PyArray1::from_slice(py, &l.ends))?;
        out.set_item("pair_ptr", PyArray1::from_slice(py, &l.pair_ptr))?;
        out.set_item("pair", PyArray1::from_slice(py, &l.pair))?;
        Ok(out)
    }

    /// Number of features.
    fn __len__(&self) -> usize {
        self.inner.len()
    }
    #[getter]
    fn n_labels(&self) -> usize {
        self.inner.labels
    }
    #[getter]
    fn n_attributes(&self) -> usize {
        self.inner.attributes
    }
    /// Number of node features; they come first.
    #[getter]
    fn n_node(&self) -> usize {
        self.inner.n_node()
    }
    #[getter]
    fn n_edge(&self) -> usize {
        self.inner.edges.len()
    }
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PyLayout>()
}
