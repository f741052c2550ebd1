//! Chains of order 2 and 3 as Python objects.

use crate::decoding::order;
use crate::error::Error;
use crate::learners::batch::order::{Order, OrderObjective};
use crate::py::arrays::{Array, Array2};
use crate::py::common::{run, support, In, Out, PySupport};
use crate::py::encode::PyDataset;
use crate::py::layout::PyLayout;
use crate::py::lookback::PyHistoryScorer;
use crate::py::scorer::PyScorer;
use pyo3::prelude::*;
use std::sync::Arc;

/// States and features of order 2 or 3 of a training set.
#[pyclass(name = "Order", module = "tagwise._core", frozen)]
pub struct PyOrder {
    inner: Arc<Order>,
}

#[pymethods]
impl PyOrder {
    #[new]
    #[pyo3(signature = (dataset, layout, order, forbidden = None))]
    fn new(
        py: Python<'_>,
        dataset: &PyDataset,
        layout: &PyLayout,
        order: usize,
        forbidden: Option<Array<u32>>,
    ) -> PyResult<Self> {
        let forbidden = forbidden.unwrap_or_default().0;
        let (data, layout) = (&dataset.inner, layout.inner.clone());
        Ok(PyOrder { inner: Arc::new(run(py, 1, || Order::new(data, layout, order, &forbidden))??) })
    }

    /// Number of features beyond the first order.
    fn __len__(&self) -> usize {
        self.inner.len()
    }

    /// Number of states.
    #[getter]
    fn n_states(&self) -> usize {
        self.inner.graph.states()
    }

    /// Number of arcs.
    #[getter]
    fn n_arcs(&self) -> usize {
        self.inner.graph.arcs()
    }

    /// Weights of the features beyond the first order, in the layout of `LookbackSpec` with tuples.
    fn dense(&self, py: Python<'_>, weights: Array<f64>) -> PyResult<Array<f32>> {
        let w = weights.0;
        if w.len() != self.inner.len() {
            return Err(Error::Value(format!("{} weights are needed, got {}", self.inner.len(), w.len())).into());
        }
        Ok(Array(run(py, 1, || self.inner.dense(&w))?))
    }
}

/// Log-loss of a chain of order 2 or 3.
#[pyclass(name = "OrderObjective", module = "tagwise._core", frozen)]
pub struct PyOrderObjective {
    inner: OrderObjective,
}

#[pymethods]
impl PyOrderObjective {
    #[new]
    #[pyo3(signature = (order, dataset, *, sample_weight = None, allowed = None))]
    fn new(
        py: Python<'_>,
        order: &PyOrder,
        dataset: &PyDataset,
        sample_weight: Option<Array<f64>>,
        allowed: Option<PySupport>,
    ) -> PyResult<Self> {
        let (order, data) = (order.inner.clone(), dataset.inner.clone());
        let support = support(allowed, data.tokens(), order.graph.labels)?;
        let weights = sample_weight.unwrap_or_default().0;
        Ok(PyOrderObjective { inner: run(py, 1, || OrderObjective::new(order, data, weights, support))?? })
    }

    /// Number of features.
    fn __len__(&self) -> usize {
        self.inner.len()
    }

    /// Return the loss at `w`, and write the gradient to `gradient`. The second number is always 0, since a log loss
    /// cannot leave its range.
    #[pyo3(signature = (w, gradient, n_jobs = 0))]
    fn value(&self, py: Python<'_>, w: In<'_>, mut gradient: Out<'_>, n_jobs: usize) -> PyResult<(f64, f64)> {
        let (w, gradient) = (w.as_slice()?, gradient.as_slice_mut()?);
        let loss = run(py, n_jobs, || self.inner.evaluate(w, gradient))??;
        Ok((loss, 0.0))
    }

    /// `value`, which is in double precision already.
    #[pyo3(signature = (w, gradient, n_jobs = 0))]
    fn precise_value(&self, py: Python<'_>, w: In<'_>, gradient: Out<'_>, n_jobs: usize) -> PyResult<(f64, f64)> {
        self.value(py, w, gradient, n_jobs)
    }
}

/// Marginals of each token, [tokens, L], and log Z of each sentence, [N], of a chain of order 2 or 3.
#[pyfunction]
#[pyo3(signature = (scorer, history, dataset, *, allowed = None, n_jobs = 0))]
#[allow(clippy::type_complexity)]
fn order_marginals(
    py: Python<'_>,
    scorer: &PyScorer,
    history: &PyHistoryScorer,
    dataset: &PyDataset,
    allowed: Option<PySupport>,
    n_jobs: usize,
) -> PyResult<(Array2<f32>, Array<f64>)> {
    let (data, l) = (&dataset.inner, history.terms.labels);
    let support = support(allowed, data.tokens(), l)?;
    let (p, log_z) =
        run(py, n_jobs, || order::marginals(&scorer.inner, &history.terms, &history.rows, data, support.as_ref()))??;
    Ok((Array2(p, [data.tokens(), l]), Array(log_z)))
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PyOrder>()?;
    m.add_class::<PyOrderObjective>()?;
    m.add_function(wrap_pyfunction!(order_marginals, m)?)
}
