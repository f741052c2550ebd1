//! The Hidden Markov SVM as a Python object: one call an epoch.

use crate::learners::svm::space::Linear;
use crate::learners::svm::{Solver, SvmOptions};
use crate::py::common::{run, support, PySupport};
use crate::py::encode::PyDataset;
use crate::py::layout::PyLayout;
use crate::scores::cells::TokenCells;
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

/// A Hidden Markov SVM with explicit weights, and its training set.
#[pyclass(name = "Svm", module = "tagwise._core")]
pub struct PySvm {
    inner: Solver<Linear>,
    n_jobs: usize,
}

#[pymethods]
impl PySvm {
    #[new]
    #[pyo3(signature = (
        dataset, layout, *, c = 1.0, slack = "instance", rescale = false, tolerance = 1e-2, most = 50, shuffle = true,
        seed = 0, n_jobs = 0, sample_weight = None, forbidden = None, allowed = None,
    ))]
    fn new(
        py: Python<'_>,
        dataset: &PyDataset,
        layout: &PyLayout,
        c: f64,
        slack: &str,
        rescale: bool,
        tolerance: f64,
        most: usize,
        shuffle: bool,
        seed: u64,
        n_jobs: usize,
        sample_weight: Option<PyReadonlyArray1<'_, f64>>,
        forbidden: Option<PyReadonlyArray1<'_, u32>>,
        allowed: Option<PySupport<'_>>,
    ) -> PyResult<Self> {
        let (data, layout) = (dataset.inner.clone(), layout.inner.clone());
        let options = SvmOptions {
            c,
            shared: shared(slack)?,
            rescale,
            tolerance,
            most,
            shuffle,
            seed,
            sample_weight: sample_weight.map(|w| w.as_array().to_vec()).unwrap_or_default(),
        };
        let forbidden = forbidden.map(|f| f.as_array().to_vec()).unwrap_or_default();
        let support = support(allowed, data.tokens(), layout.labels)?;
        let inner = run(py, 1, || {
            let tokens = TokenCells::new(data, &layout, &forbidden, support.as_ref())?;
            Solver::new(Linear::new(tokens), layout.labels, options)
        })??;
        Ok(PySvm { inner, n_jobs })
    }

    /// One epoch: decoding, working sets, duality gap. Where training stands after it.
    fn epoch<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (inner, n_jobs) = (&mut self.inner, self.n_jobs);
        let state = run(py, n_jobs, || inner.epoch())??;
        standing(py, &state)
    }

    /// The weights: one a feature.
    fn weights<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<f64>>> {
        Ok(PyArray1::from_vec(py, run(py, 1, || self.inner.space.weights())?))
    }

    /// Wrong paths with alpha > 0 as (sentence, labels, alpha).
    fn alphas<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let all = self.inner.alphas().map(|(i, path, alpha)| (i, PyArray1::from_slice(py, path), alpha));
        PyList::new(py, all.collect::<Vec<_>>())
    }

    /// Epochs so far.
    #[getter]
    fn epochs(&self) -> u64 {
        self.inner.epochs()
    }
}

/// Whether a sentence's paths share a slack.
pub fn shared(slack: &str) -> PyResult<bool> {
    match slack {
        "instance" => Ok(true),
        "sequence" => Ok(false),
        _ => Err(crate::error::Error::Value(format!("no slack {slack:?}; use instance or sequence")).into()),
    }
}

/// A state as a dict.
pub fn standing<'py>(py: Python<'py>, state: &crate::learners::svm::SolverState) -> PyResult<Bound<'py, PyDict>> {
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
    m.add_class::<PySvm>()
}
