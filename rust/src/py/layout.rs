//! Set of features, as a Python object.

use crate::dataset::growth;
use crate::dataset::layout::{Choice, Layout, LayoutArrays};
use crate::error::Error;
use crate::py::arrays::Array;
use crate::py::common::{guard, run_of};
use crate::py::encode::PyDataset;
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
            Ok(item.extract::<Array<T>>()?.0)
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
    fn united(&self, py: Python<'_>, other: &PyLayout) -> PyResult<(PyLayout, Array<i64>)> {
        let steps = 10 * (self.inner.len() + other.inner.len() + other.inner.attributes);
        let (layout, places) = run_of(py, 1, steps, || growth::united(&self.inner, &other.inner))??;
        Ok((PyLayout { inner: Arc::new(layout) }, Array(places)))
    }

    /// Return the part of the layout that these sentences use, the sentences with the attribute numbers of that part,
    /// and the position of each of its features in the whole layout. None if tokens have vectors.
    #[allow(clippy::type_complexity)]
    fn narrowed(&self, py: Python<'_>, dataset: &PyDataset) -> PyResult<Option<(PyLayout, PyDataset, Array<i64>)>> {
        let data = &dataset.inner;
        let steps = 200 * data.node.sparse().ids.len() + 10 * data.tokens();
        let found = run_of(py, 1, steps, || growth::narrowed(&self.inner, data))??;
        Ok(found.map(|(layout, data, places)| {
            (PyLayout { inner: Arc::new(layout) }, PyDataset { inner: data.into() }, Array(places))
        }))
    }

    /// Arrays of the layout.
    fn arrays<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (out, l) = (PyDict::new(py), &self.inner);
        out.set_item("node_ptr", Array(l.node_ptr.to_vec()))?;
        out.set_item("node_label", Array(l.node_label.to_vec()))?;
        out.set_item("edges", Array(l.edges.to_vec()))?;
        out.set_item("starts", Array(l.starts.to_vec()))?;
        out.set_item("ends", Array(l.ends.to_vec()))?;
        out.set_item("pair_ptr", Array(l.pair_ptr.to_vec()))?;
        out.set_item("pair", Array(l.pair.to_vec()))?;
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
