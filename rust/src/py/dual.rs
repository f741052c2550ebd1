//! Dual ascent as a Python object.

use crate::error::Error;
use crate::learners::dual::{bounds, Block, BoundTerms, Dual, DualState};
use crate::machine::system::paged::Pages;
use crate::py::arrays::Array;
use crate::py::common::{guard, run};
use crate::py::encode::PyDataset;
use crate::py::layout::PyLayout;
use crate::py::options::{self, PyLimits};
use pyo3::prelude::*;
use std::path::PathBuf;

/// Dual block ascent on the log loss of a training set with l2 |w|^2.
#[pyclass(name = "Dual", module = "tagwise._core")]
pub struct PyDual {
    inner: Dual,
}

/// Weights, marginals, pair sums, three numbers per sentence [N, 3], epochs.
type Parts = (Array<f32>, Array<f32>, Array<f32>, Array<f64>, u64);

#[pymethods]
impl PyDual {
    #[new]
    #[pyo3(signature = (dataset, layout, l2, *, sample_weight = None, limits = None, sweeps = 0, folder = None))]
    fn new(
        py: Python<'_>,
        dataset: &PyDataset,
        layout: &PyLayout,
        l2: f64,
        sample_weight: Option<Array<f64>>,
        limits: Option<&PyLimits>,
        sweeps: usize,
        folder: Option<PathBuf>,
    ) -> PyResult<Self> {
        let (data, layout) = (dataset.inner.clone(), layout.inner.clone());
        let limits = options::limits(limits, data.tokens(), layout.labels)?;
        let weights = sample_weight.unwrap_or_default().0;
        let mut inner = run(py, 0, || Dual::new(data, layout, l2, weights, &limits, folder.map(Pages::new)))??;
        inner.set_sweeps(sweeps);
        Ok(PyDual { inner })
    }

    /// Run one epoch of visits. Return (tokens visited, visits out of range for float32, sum of the distances that the
    /// visits found). With `together` two threads share the visits, and each visit reads the weights after the visit
    /// two before it. None: use two threads for 512 sentences or more. The result does not depend on n_jobs, bit for
    /// bit.
    #[pyo3(signature = (seed = 0, n_jobs = 0, together = None))]
    fn epoch(
        &mut self,
        py: Python<'_>,
        seed: u64,
        n_jobs: usize,
        together: Option<bool>,
    ) -> PyResult<(usize, usize, f64)> {
        let inner = &mut self.inner;
        let visited = run(py, n_jobs, || inner.epoch(seed, together))?;
        Ok((visited.tokens, visited.failed, visited.distance))
    }

    /// Primal objective of the current weights in single precision. NaN if a sentence is out of range.
    #[pyo3(signature = (n_jobs = 0))]
    fn primal(&self, py: Python<'_>, n_jobs: usize) -> PyResult<f64> {
        run(py, n_jobs, || self.inner.primal())
    }

    /// (primal, a lower bound of all objectives) in double precision. The primal is NaN if a sentence is out of range.
    #[pyo3(signature = (n_jobs = 0))]
    fn certificate(&self, py: Python<'_>, n_jobs: usize) -> PyResult<(f64, f64)> {
        run(py, n_jobs, || self.inner.certificate())
    }

    /// Bytes of large arrays in files.
    #[getter]
    fn paged_bytes(&self) -> usize {
        self.inner.pages().map_or(0, Pages::bytes)
    }

    /// Drop arrays in files from memory.
    fn release(&self) {
        self.inner.pages().iter().for_each(|pages| pages.release());
    }

    /// Have the system read arrays in files in the background.
    fn prefetch(&self) {
        self.inner.pages().iter().for_each(|pages| pages.prefetch());
    }

    /// Number of epochs so far.
    #[getter]
    fn epochs(&self) -> u64 {
        self.inner.epochs()
    }

    /// Current weights, one per feature.
    fn weights(&self) -> PyResult<Array<f64>> {
        Ok(Array(guard(|| Ok(self.inner.weights()))?))
    }

    /// Replace the weights, one per feature. The dual point is unchanged.
    fn set_weights(&mut self, weights: Array<f64>) -> PyResult<()> {
        let inner = &mut self.inner;
        guard(|| Ok(inner.set_weights(&weights.0)?))
    }

    /// (loss, divergence, slack, [features] observed minus expected), in double precision and without the penalty. The
    /// loss is NaN if a sentence is out of range.
    #[pyo3(signature = (n_jobs = 0))]
    fn terms(&self, py: Python<'_>, n_jobs: usize) -> PyResult<(f64, f64, f64, Array<f64>)> {
        let terms = run(py, n_jobs, || self.inner.terms())?;
        Ok((terms.loss, terms.divergence, terms.slack, Array(terms.observed)))
    }

    /// Loss of the current weights in single precision, without the penalty. NaN if a sentence is out of range.
    #[pyo3(signature = (n_jobs = 0))]
    fn loss(&self, py: Python<'_>, n_jobs: usize) -> PyResult<f64> {
        run(py, n_jobs, || self.inner.loss())
    }

    /// State from which training resumes bit for bit.
    fn state(&self) -> PyResult<Parts> {
        let state = guard(|| Ok(self.inner.state()))?;
        let blocks = state.blocks.iter().flat_map(|b| [b.distance, b.kappa, f64::from(b.visits)]);
        Ok((Array(state.weights), Array(state.nodes), Array(state.pairs), Array(blocks.collect()), state.epochs))
    }

    /// Resume from a state.
    fn restore(
        &mut self,
        weights: Array<f32>,
        nodes: Array<f32>,
        pairs: Array<f32>,
        blocks: Array<f64>,
        epochs: u64,
    ) -> PyResult<()> {
        let block = |b: &[f64]| Block { distance: b[0], kappa: b[1], visits: b[2] as u32 };
        let state = DualState {
            weights: weights.0,
            nodes: nodes.0,
            pairs: pairs.0,
            blocks: blocks.0.chunks_exact(3).map(block).collect(),
            epochs,
        };
        let inner = &mut self.inner;
        guard(|| Ok(inner.restore(state)?))
    }
}

/// (P, D) of weights and a penalty, from the terms of all sentences as `Dual.terms` returns them.
#[pyfunction]
fn dual_bounds(
    w: Array<f64>,
    l2: f64,
    loss: f64,
    divergence: f64,
    slack: f64,
    observed: Array<f64>,
) -> PyResult<(f64, f64)> {
    let (w, observed) = (w.0, observed.0);
    if w.len() != observed.len() {
        return Err(Error::Value(format!("{} weights and {} sums of features", w.len(), observed.len())).into());
    }
    guard(|| Ok(bounds(&w, l2, &BoundTerms { loss, divergence, slack, observed })))
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(dual_bounds, m)?)?;
    m.add_class::<PyDual>()
}
