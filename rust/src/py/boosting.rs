//! Boosting as a Python object: many rounds per call.

use crate::error::Error;
use crate::learners::boosting::bound::{self, StepLimits};
use crate::learners::boosting::loss::{Boosted, Target};
use crate::learners::boosting::select::Draw;
use crate::learners::boosting::{Boosting, BoostingOptions, RoundOptions};
use crate::py::arrays::Array;
use crate::py::common::{add_names, attempt, run};
use crate::py::encode::PyDataset;
use crate::py::layout::PyLayout;
use crate::py::options::array;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::time::Duration;

/// How boosting chooses features and their steps.
#[pyclass(name = "Rounds", module = "tagwise._core", frozen)]
pub struct PyRounds {
    inner: RoundOptions,
}

#[pymethods]
impl PyRounds {
    #[new]
    #[pyo3(signature = (
        bound = "loose", *, line_search = false, joint = false, smoothing = 0.0, max_step = 10.0, candidates = 1.0,
        features_per_round = 1, overlap = false, seed = 0,
    ))]
    fn new(
        bound: &str,
        line_search: bool,
        joint: bool,
        smoothing: f64,
        max_step: f64,
        candidates: f64,
        features_per_round: usize,
        overlap: bool,
        seed: u64,
    ) -> PyResult<Self> {
        let bound = bound::Bound::named(bound)?;
        let limits = StepLimits { smoothing, cap: max_step };
        let draw = Draw { fraction: candidates, seed };
        Ok(PyRounds { inner: RoundOptions { bound, line_search, joint, limits, draw, features_per_round, overlap } })
    }
}

/// A boosting run and its training set.
#[pyclass(name = "Boosting", module = "tagwise._core")]
pub struct PyBoosting {
    inner: Boosting,
    n_jobs: usize,
}

#[pymethods]
impl PyBoosting {
    #[new]
    #[pyo3(signature = (
        dataset, layout, rounds = None, *, loss = "exp", over = "wrong", sample_weight = None, start = None, n_jobs = 0,
    ))]
    fn new(
        py: Python<'_>,
        dataset: &PyDataset,
        layout: &PyLayout,
        rounds: Option<&PyRounds>,
        loss: &str,
        over: &str,
        sample_weight: Option<Array<f64>>,
        start: Option<Array<f64>>,
        n_jobs: usize,
    ) -> PyResult<Self> {
        let (data, layout) = (dataset.inner.clone(), layout.inner.clone());
        let rounds = match rounds {
            Some(rounds) => rounds.inner,
            None => PyRounds::new(bound::Bound::Loose.name(), false, false, 0.0, 10.0, 1.0, 1, false, 0)?.inner,
        };
        let (sample_weight, start) = (sample_weight.unwrap_or_default().0, start.unwrap_or_default().0);
        let target = Target { loss: Boosted::named(loss)?, over: bound::Over::named(over)? };
        let options = BoostingOptions { rounds, target, sample_weight, start };
        let inner = run(py, n_jobs, || Boosting::new(data, layout, options))??;
        Ok(PyBoosting { inner, n_jobs })
    }

    /// Run up to `max_rounds` rounds, fewer once `seconds` have passed. Return arrays with one entry per chosen
    /// feature, and whether more rounds may follow. `raised` is the exception of a signal handler that ended the rounds
    /// early, or None.
    #[pyo3(signature = (max_rounds, seconds = f64::INFINITY))]
    fn run<'py>(&mut self, py: Python<'py>, max_rounds: u64, seconds: f64) -> PyResult<Dict<'py>> {
        let time_limit = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
        let (inner, n_jobs, mut steps) = (&mut self.inner, self.n_jobs, Vec::new());
        let (more, raised) = attempt(py, n_jobs, || inner.run(max_rounds, time_limit, &mut steps))?;
        if more.is_none() {
            self.inner.restore_backup();
        }
        let more = more.unwrap_or(Ok(true))?;
        steps.retain(|s| s.round < self.inner.rounds());
        let out = PyDict::new(py);
        out.set_item("round", Array(steps.iter().map(|s| s.round as u32).collect()))?;
        out.set_item("feature", Array(steps.iter().map(|s| s.feature).collect()))?;
        out.set_item("step", Array(steps.iter().map(|s| s.step).collect()))?;
        out.set_item("bound", Array(steps.iter().map(|s| s.bound).collect()))?;
        out.set_item("log_loss", Array(steps.iter().map(|s| s.log_loss).collect()))?;
        out.set_item("slope", Array(steps.iter().map(|s| s.slope).collect()))?;
        out.set_item("sentences", Array(steps.iter().map(|s| s.sentences).collect()))?;
        out.set_item("more", more)?;
        out.set_item("raised", raised)?;
        Ok(out)
    }

    /// Weights of all features.
    fn weights(&self) -> Array<f64> {
        Array(self.inner.state.w.to_vec())
    }

    /// Number of rounds so far.
    #[getter]
    fn rounds(&self) -> u64 {
        self.inner.rounds()
    }

    /// Whether a signal stopped a round halfway. Weights and loss are those before that round, and no round can
    /// follow.
    #[getter]
    fn interrupted(&self) -> bool {
        self.inner.is_interrupted()
    }

    /// Logarithm of the exponential loss.
    #[getter]
    fn log_loss(&self) -> f64 {
        self.inner.state.log_loss()
    }

    /// Number of gains computed and number of estimates made so far to choose features.
    #[getter]
    fn selection(&self) -> (u64, u64) {
        self.inner.selection()
    }

    /// Logarithm of every sentence's loss over all label sequences, [N]: -log P(gold), or of sum_t 1 / p_t(gold).
    fn losses(&self) -> Array<f64> {
        Array(self.inner.state.l.to_vec())
    }

    /// Derivative of the logarithm of the loss with respect to every weight, [features]: the kept sums divided by N.
    fn slopes(&self) -> Array<f64> {
        let state = &self.inner.state;
        Array((0..state.layout.len()).map(|k| state.slope(k) / state.n).collect())
    }

    /// Compute all sentences and all sums again.
    fn recompute(&mut self, py: Python<'_>) -> PyResult<()> {
        let (inner, n_jobs) = (&mut self.inner, self.n_jobs);
        Ok(run(py, n_jobs, || inner.recompute())??)
    }

    /// State from which training resumes bit for bit: arrays by name.
    fn state<'py>(&self, py: Python<'py>) -> PyResult<Dict<'py>> {
        let out = PyDict::new(py);
        for (name, array) in run(py, 1, || self.inner.saved())? {
            out.set_item(name, Array(array))?;
        }
        Ok(out)
    }

    /// Resume from a state of a booster with the same data and options.
    fn restore(&mut self, state: &Bound<'_, PyDict>) -> PyResult<()> {
        Ok(self.inner.restore(|name| array(state, name).map_err(|error| Error::Value(error.to_string())))?)
    }

    /// The best step of every feature and its bound on Z, under loose, tight or exact: two arrays [features].
    fn bounds<'py>(&self, py: Python<'py>, bound: &str) -> PyResult<(Float64Array<'py>, Float64Array<'py>)> {
        let bound = bound::Bound::named(bound)?;
        let found = run(py, 1, || self.inner.bounds(bound))??;
        let (steps, z): (Vec<f64>, Vec<f64>) = found.into_iter().unzip();
        Ok((Array(steps), Array(z)))
    }
}

type Float64Array<'py> = Array<f64>;
type Dict<'py> = Bound<'py, PyDict>;

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    add_names(m, "BOUNDS", bound::Bound::names())?;
    add_names(m, "SUMS", bound::Over::names())?;
    add_names(m, "BOOSTED", Boosted::names())?;
    m.add_class::<PyRounds>()?;
    m.add_class::<PyBoosting>()
}
