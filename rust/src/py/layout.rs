//! Set of features, as a Python object.

use crate::dataset::growth;
use crate::dataset::layout::{Choice, Layout, LayoutArrays};
use crate::error::Error;
use crate::py::common::{guard, run_of};
use crate::py::encode::PyDataset;
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::Arc;

/// Set of features and the position of each in the weight vector.
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
        let steps = 4 * n_labels * if all_pairs { n_attributes } else { 0 } + 100 * data.node.sparse().ids.len();
        let choice = Choice { all_pairs, start_end };
        let build = || Layout::build(data, n_attributes, n_labels, choice);
        let layout = run_of(py, 1, steps + 10 * n_attributes, build)??;
        Ok(PyLayout { inner: Arc::new(layout) })
    }

    /// Build a layout from the arrays that `arrays` returns.
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

    /// Return the layout with the features of both, and the position in it of each feature of this one. The other
    /// layout has the attributes and labels of this one under the same numbers, and may have more.
    fn united<'py>(&self, py: Python<'py>, other: &PyLayout) -> PyResult<(PyLayout, Bound<'py, PyArray1<i64>>)> {
        let steps = 10 * (self.inner.len() + other.inner.len() + other.inner.attributes);
        let (layout, places) = run_of(py, 1, steps, || growth::united(&self.inner, &other.inner))??;
        Ok((PyLayout { inner: Arc::new(layout) }, PyArray1::from_vec(py, places)))
    }

    /// Return the part of the layout that these sentences use, the sentences with the attribute numbers of that part,
    /// and the position of each of its features in the whole layout. None if tokens have vectors.
    #[allow(clippy::type_complexity)]
    fn narrowed<'py>(
        &self,
        py: Python<'py>,
        dataset: &PyDataset,
    ) -> PyResult<Option<(PyLayout, PyDataset, Bound<'py, PyArray1<i64>>)>> {
        let data = &dataset.inner;
        let steps = 200 * data.node.sparse().ids.len() + 10 * data.tokens();
        let found = run_of(py, 1, steps, || growth::narrowed(&self.inner, data))??;
        Ok(found.map(|(layout, data, places)| {
            (PyLayout { inner: Arc::new(layout) }, PyDataset { inner: data.into() }, PyArray1::from_vec(py, places))
        }))
    }

    /// Arrays of the layout.
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
    /// Number of node features, which come first.
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
