//! The Hidden Markov SVM as a Python object: one call per epoch.

use crate::learners::svm::options::{Slack, SvmOptions};
use crate::learners::svm::saved::SvmState;
use crate::learners::svm::space::{Linear, SpaceState};
use crate::learners::svm::Solver;
use crate::py::arrays::Array;
use crate::py::common::{add_names, run};
use crate::py::encode::PyDataset;
use crate::py::layout::PyLayout;
use crate::py::options::{self, array, number, PyLimits};
use crate::scores::kernel::table::Weights;
use crate::scores::online_layout::TokenCells;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

/// Margins of a Hidden Markov SVM, their price, and the search for violated ones.
#[pyclass(name = "Margins", module = "tagwise._core", frozen)]
pub struct PyMargins {
    inner: SvmOptions,
}

#[pymethods]
impl PyMargins {
    #[new]
    #[pyo3(signature = (
        c = 1.0, *, slack = "instance", rescale = false, tolerance = 1e-2, most = 50, shuffle = true, seed = 0,
    ))]
    fn new(
        c: f64,
        slack: &str,
        rescale: bool,
        tolerance: f64,
        most: usize,
        shuffle: bool,
        seed: u64,
    ) -> PyResult<Self> {
        let (slack, sample_weight) = (Slack::named(slack)?, Vec::new());
        Ok(PyMargins { inner: SvmOptions { c, slack, rescale, tolerance, most, shuffle, seed, sample_weight } })
    }
}

impl PyMargins {
    /// Options passed by the caller, or the defaults, with the weights of the sentences.
    pub fn options(given: Option<&PyMargins>, sample_weight: Option<Array<f64>>) -> PyResult<SvmOptions> {
        let options = match given {
            Some(margins) => margins.inner.clone(),
            None => PyMargins::new(1.0, Slack::Instance.name(), false, 1e-2, 50, true, 0)?.inner,
        };
        Ok(SvmOptions { sample_weight: sample_weight.unwrap_or_default().0, ..options })
    }
}

/// A Hidden Markov SVM with explicit weights, and its training set.
#[pyclass(name = "Svm", module = "tagwise._core")]
pub struct PySvm {
    inner: Solver<Linear>,
    n_jobs: usize,
}

#[pymethods]
impl PySvm {
    #[new]
    #[pyo3(signature = (dataset, layout, margins = None, *, limits = None, sample_weight = None, n_jobs = 0))]
    fn new(
        py: Python<'_>,
        dataset: &PyDataset,
        layout: &PyLayout,
        margins: Option<&PyMargins>,
        limits: Option<&PyLimits>,
        sample_weight: Option<Array<f64>>,
        n_jobs: usize,
    ) -> PyResult<Self> {
        let (data, layout) = (dataset.inner.clone(), layout.inner.clone());
        let limits = options::limits(limits, data.tokens(), layout.labels)?;
        limits.refuse_once()?;
        let options = PyMargins::options(margins, sample_weight)?;
        let inner = run(py, 1, || {
            let tokens = TokenCells::new(data, &layout, &limits.forbidden, limits.support.as_ref())?;
            Solver::new(Linear::new(tokens), layout.labels, options)
        })??;
        Ok(PySvm { inner, n_jobs })
    }

    /// Run one epoch: decoding, working sets, duality gap. Return the state of training after it.
    fn epoch<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (inner, n_jobs) = (&mut self.inner, self.n_jobs);
        let state = run(py, n_jobs, || inner.epoch())??;
        progress_dict(py, &state)
    }

    /// Weights, one per feature.
    fn weights(&self, py: Python<'_>) -> PyResult<Array<f64>> {
        Ok(Array(run(py, 1, || self.inner.space.weights())?))
    }

    /// Wrong paths with alpha > 0 as (sentence, labels, alpha).
    fn alphas<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let all = self.inner.alphas().map(|(i, path, alpha)| (i, Array(path.to_vec()), alpha));
        PyList::new(py, all.collect::<Vec<_>>())
    }

    /// Number of epochs so far.
    #[getter]
    fn epochs(&self) -> u64 {
        self.inner.epochs()
    }

    /// State from which training resumes bit for bit after an epoch.
    fn state<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        state_to_dict(py, run(py, 1, || self.inner.state())?)
    }

    /// Resume from a state of a solver with the same data and options.
    fn restore(&mut self, state: &Bound<'_, PyDict>) -> PyResult<()> {
        let (py, given) = (state.py(), state_from_dict(state)?);
        let inner = &mut self.inner;
        Ok(run(py, 1, || inner.restore(given))??)
    }
}

/// Convert a state from which training resumes to a dict.
pub fn state_to_dict(py: Python<'_>, state: SvmState) -> PyResult<Bound<'_, PyDict>> {
    let out = PyDict::new(py);
    out.set_item("sizes", Array(state.sizes))?;
    out.set_item("paths", Array(state.paths))?;
    out.set_item("alpha", Array(state.alpha))?;
    out.set_item("bound", Array(state.bound))?;
    out.set_item("gram", Array(state.gram))?;
    out.set_item("idle", Array(state.idle))?;
    out.set_item("quiet", Array(state.quiet))?;
    out.set_item("epsilon", state.epsilon)?;
    out.set_item("epochs", state.epochs)?;
    write_weights(&out, "", state.space.weights)?;
    out.set_item("kept", Array(state.space.kept))?;
    Ok(out)
}

/// Read a state from a dict.
pub fn state_from_dict(state: &Bound<'_, PyDict>) -> PyResult<SvmState> {
    Ok(SvmState {
        sizes: array(state, "sizes")?,
        paths: array(state, "paths")?,
        alpha: array(state, "alpha")?,
        bound: array(state, "bound")?,
        gram: array(state, "gram")?,
        idle: array(state, "idle")?,
        quiet: array(state, "quiet")?,
        epsilon: number(state, "epsilon")?,
        epochs: number(state, "epochs")? as u64,
        space: SpaceState { weights: read_weights(state, "")?, kept: array(state, "kept")? },
    })
}

/// Write the weights of support tokens, transitions, starts and ends to a dict.
pub fn write_weights(out: &Bound<'_, PyDict>, of: &str, weights: Weights) -> PyResult<()> {
    let Weights { beta, edge, start, end } = weights;
    for (name, array) in [("beta", beta), ("edge", edge), ("start", start), ("end", end)] {
        out.set_item(format!("{of}{name}"), Array(array))?;
    }
    Ok(())
}

/// Read weights from a dict.
pub fn read_weights(state: &Bound<'_, PyDict>, of: &str) -> PyResult<Weights> {
    let part = |name: &str| array(state, &format!("{of}{name}"));
    Ok(Weights { beta: part("beta")?, edge: part("edge")?, start: part("start")?, end: part("end")? })
}

/// Convert the progress of training to a dict.
pub fn progress_dict<'py>(py: Python<'py>, state: &crate::learners::svm::SolverState) -> PyResult<Bound<'py, PyDict>> {
    let out = PyDict::new(py);
    out.set_item("primal", state.primal)?;
    out.set_item("dual", state.dual)?;
    out.set_item("norm", state.norm)?;
    out.set_item("slack", state.slack)?;
    out.set_item("violated", state.violated)?;
    out.set_item("paths", state.paths)?;
    out.set_item("active", state.active)?;
    out.set_item("decoded", state.decoded)?;
    out.set_item("truncated", state.truncated)?;
    Ok(out)
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    add_names(m, "SLACKS", Slack::names())?;
    m.add_class::<PyMargins>()?;
    m.add_class::<PySvm>()
}
