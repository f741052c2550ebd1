//! Online learners as a Python object: one call per epoch.

use crate::chain::limits::entities::OUTSIDE;
use crate::error::Error;
use crate::learners::online::cost::SpanScratch;
use crate::learners::online::{program, Online, OnlineState};
use crate::machine::system::threads;
use crate::py::arrays::{Array, Array2};
use crate::py::common::{guard, run, run_of};
use crate::py::encode::PyDataset;
use crate::py::layout::PyLayout;
use crate::py::options::{self, epoch_sums, PyCost, PyEpochs, PyLimits, PyRule, Raised};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// An online learner and its training set.
#[pyclass(name = "Online", module = "tagwise._core")]
pub struct PyOnline {
    inner: Online,
    n_jobs: usize,
    raised: Raised,
}

#[pymethods]
impl PyOnline {
    #[new]
    #[pyo3(signature = (dataset, layout, rule, *, epochs = None, limits = None, sample_weight = None))]
    fn new(
        py: Python<'_>,
        dataset: &PyDataset,
        layout: &PyLayout,
        rule: &PyRule,
        epochs: Option<&PyEpochs>,
        limits: Option<&PyLimits>,
        sample_weight: Option<Array<f32>>,
    ) -> PyResult<Self> {
        let (data, layout, raised) = (dataset.inner.clone(), layout.inner.clone(), Raised::default());
        let limits = options::limits(limits, data.tokens(), layout.labels)?;
        let mut options = rule.options(py, &raised, epochs, limits, sample_weight)?;
        let n_jobs = options.epochs.shards;
        if n_jobs == 0 {
            options.epochs.shards = threads::cores();
        }
        let steps = 20 * layout.len() + 100 * data.node.csr().ids.len();
        let inner = run_of(py, 1, steps, || Online::new(data, &layout, options))??;
        Ok(PyOnline { inner, n_jobs, raised })
    }

    /// Run one pass over the training set, or over the sentences of `order`. Return sums over its steps.
    #[pyo3(signature = (order = None))]
    fn epoch<'py>(&mut self, py: Python<'py>, order: Option<Array<u32>>) -> PyResult<Bound<'py, PyDict>> {
        let order = order.map(|array| array.0);
        let (inner, n_jobs) = (&mut self.inner, self.n_jobs);
        let steps = inner.epoch_steps();
        let tally = run_of(py, n_jobs, steps, || inner.epoch(order))?;
        epoch_sums(py, tally, &self.raised)
    }

    /// Run the steps `begin..end` of the next epoch and return sums over them. The epoch ends with its last step.
    fn part<'py>(&mut self, py: Python<'py>, begin: usize, end: usize) -> PyResult<Bound<'py, PyDict>> {
        let (inner, n_jobs) = (&mut self.inner, self.n_jobs);
        let tally = run(py, n_jobs, || inner.part(begin, end))?;
        epoch_sums(py, tally, &self.raised)
    }

    /// Current weights, or their average over all steps, one per feature.
    #[pyo3(signature = (averaged = true))]
    fn weights(&self, py: Python<'_>, averaged: bool) -> PyResult<Array<f64>> {
        let weights = run_of(py, 1, 5 * self.inner.features(), || self.inner.weights(averaged))??;
        Ok(Array(weights))
    }

    /// Number of epochs so far.
    #[getter]
    fn epochs(&self) -> u64 {
        self.inner.epochs()
    }

    /// Number of steps so far: sentences, or epochs in batch mode.
    #[getter]
    fn steps(&self) -> f64 {
        self.inner.steps()
    }

    /// State from which training resumes.
    fn state<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        state_to_dict(py, guard(|| Ok(self.inner.state()))?)
    }

    /// Resume from a state returned by `state`, or from weights alone.
    fn restore(&mut self, state: &Bound<'_, PyDict>) -> PyResult<()> {
        let given = state_from_dict(state)?;
        guard(|| Ok(self.inner.restore(&given)?))
    }
}

/// Convert the state of an online learner to a dict.
pub fn state_to_dict(py: Python<'_>, state: OnlineState) -> PyResult<Bound<'_, PyDict>> {
    let out = PyDict::new(py);
    out.set_item("weights", Array(state.weights))?;
    out.set_item("sums", Array(state.sums))?;
    out.set_item("variance", Array(state.variance))?;
    out.set_item("steps", state.steps)?;
    out.set_item("epochs", state.epochs)?;
    Ok(out)
}

/// Read the state of an online learner from a dict. Missing arrays are empty and missing numbers 0.
pub fn state_from_dict(state: &Bound<'_, PyDict>) -> PyResult<OnlineState> {
    let array = |name: &str| -> PyResult<Vec<f64>> {
        match state.get_item(name)? {
            None => Ok(Vec::new()),
            Some(x) => Ok(x.extract::<Array<f64>>()?.0),
        }
    };
    Ok(OnlineState {
        weights: array("weights")?,
        sums: array("sums")?,
        variance: array("variance")?,
        steps: state.get_item("steps")?.map_or(Ok(0.0), |x| x.extract())?,
        epochs: state.get_item("epochs")?.map_or(Ok(0), |x| x.extract())?,
    })
}

/// Return tau that maximises b.tau - 1/2 tau' G tau over tau >= 0, and sum tau <= limit if there is a limit.
#[pyfunction]
#[pyo3(signature = (gram, b, limit = None))]
fn small_program(py: Python<'_>, gram: Array2<f64>, b: Array<f64>, limit: Option<f64>) -> PyResult<Array<f64>> {
    let (Array2(g, shape), b) = (gram, b.0);
    if shape != [b.len(), b.len()] {
        return Err(Error::Value(format!("a Gram matrix of {0} by {0} is needed", b.len())).into());
    }
    let mut tau = Vec::new();
    run(py, 1, || program::solve(&g, &b, limit, &mut tau))?;
    Ok(Array(tau))
}

/// Cost of `guess` if `gold` is right, both [T] of label ids. `cost` has the table of their entities.
#[pyfunction]
fn sequence_cost(py: Python<'_>, cost: &PyCost, gold: Array<u16>, guess: Array<u16>) -> PyResult<f64> {
    let table = cost.entities().ok_or_else(|| Error::Value("the cost needs its table of entities here".into()))?;
    let (gold, guess) = (gold.0, guess.0);
    if gold.len() != guess.len() || gold.iter().chain(&guess).any(|&y| y as usize >= table.kind.len()) {
        return Err(Error::Value("gold and guess need the same length and labels of the table".into()).into());
    }
    let (cost, mut span_scratch) = (cost.cost(py, &Raised::default())?, SpanScratch::default());
    guard(|| {
        cost.begin(table, &mut span_scratch, &gold);
        Ok(cost.of(table, &mut span_scratch, &gold, &guess)?)
    })
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PyOnline>()?;
    m.add("OUTSIDE", OUTSIDE)?;
    m.add("PROGRAM_TOLERANCE", program::TOLERANCE)?;
    m.add_function(wrap_pyfunction!(small_program, m)?)?;
    m.add_function(wrap_pyfunction!(sequence_cost, m)?)
}
