//! Training objective and stochastic steps as Python objects.

use crate::dataset::layout::Layout;
use crate::dataset::Dataset;
use crate::error::Error;
use crate::learners::batch::descent::Stochastic;
use crate::learners::batch::loss::Loss;
use crate::learners::batch::objective::Objective;
use crate::learners::batch::terms::Terms;
use crate::learners::batch::total;
use crate::machine::system::paged::Pages;
use crate::machine::system::shuffle::Generator;
use crate::py::arrays::{Array, Array2};
use crate::py::common::{self, guard, run, support, In, Out, PySupport};
use crate::py::encode::PyDataset;
use crate::py::layout::PyLayout;
use crate::py::options::{self, PyLimits};
use pyo3::prelude::*;
use std::path::PathBuf;

/// Terms of an objective from Python values.
fn terms(
    data: &Dataset,
    layout: &Layout,
    loss: &str,
    sample_weight: Option<Array<f64>>,
    limits: Option<&PyLimits>,
) -> PyResult<Terms> {
    let limits = options::limits(limits, data.tokens(), layout.labels)?;
    if limits.forbidden.iter().any(|&e| e as usize >= layout.labels * layout.labels) {
        return Err(Error::Value("a forbidden edge names a label that does not exist".into()).into());
    }
    let (loss, weights) = (Loss::named(loss)?, sample_weight.unwrap_or_default().0);
    Ok(Terms { loss, weights, limits, partial: None, cost: Vec::new() })
}

/// `terms`, and the options that stochastic steps do not support.
fn full_terms(
    (data, layout): (&Dataset, &Layout),
    loss: &str,
    sample_weight: Option<Array<f64>>,
    limits: Option<&PyLimits>,
    partial: Option<PySupport>,
    cost: Option<Array2<f64>>,
) -> PyResult<Terms> {
    let mut terms = terms(data, layout, loss, sample_weight, limits)?;
    terms.partial = support(partial, data.tokens(), layout.labels)?;
    terms.cost = cost.map(|cost| cost.0).unwrap_or_default();
    Ok(terms)
}

/// Stochastic gradient descent on the loss of a training set.
#[pyclass(name = "Stochastic", module = "tagwise._core")]
pub struct PyStochastic {
    inner: Stochastic,
    size: usize,
}

#[pymethods]
impl PyStochastic {
    #[new]
    #[pyo3(signature = (dataset, layout, *, loss = "log", sample_weight = None, limits = None))]
    fn new(
        py: Python<'_>,
        dataset: &PyDataset,
        layout: &PyLayout,
        loss: &str,
        sample_weight: Option<Array<f64>>,
        limits: Option<&PyLimits>,
    ) -> PyResult<Self> {
        let (data, layout) = (dataset.inner.clone(), layout.inner.clone());
        let terms = terms(&data, &layout, loss, sample_weight, limits)?;
        let size = layout.len();
        Ok(PyStochastic { inner: run(py, 1, || Stochastic::new(data, layout, terms))??, size })
    }

    /// Number of steps per epoch. A step is a batch of up to sixteen sentences.
    #[getter]
    fn n_batches(&self) -> usize {
        self.inner.batches()
    }

    /// Resume from these weights.
    fn set(&mut self, w: In<'_>) -> PyResult<()> {
        let w = w.as_slice()?;
        if w.len() != self.size {
            return Err(Error::Value(format!("expected {} weights, got {}", self.size, w.len())).into());
        }
        let inner = &mut self.inner;
        guard(|| {
            inner.set(w);
            Ok(())
        })
    }

    /// Current weights, one per feature.
    fn weights(&self) -> PyResult<Array<f64>> {
        let mut w = vec![0.0; self.size];
        guard(|| {
            self.inner.read(&mut w);
            Ok(())
        })?;
        Ok(Array(w))
    }

    /// Order of the batches in an epoch.
    fn order(&self, seed: u64, epoch: u64) -> Array<u32> {
        let mut order: Vec<u32> = (0..self.inner.batches() as u32).collect();
        Generator::new(seed, epoch, 0).shuffle(&mut order);
        Array(order)
    }

    /// Take steps over the batches of `order`, starting after `seen` sentences. Return the sum of the losses before
    /// each step, or NaN if the steps were too long.
    fn run(&mut self, py: Python<'_>, order: Array<u32>, eta: f64, l2: f64, seen: f64) -> PyResult<f64> {
        let order = order.0;
        if order.iter().any(|&b| b as usize >= self.inner.batches()) {
            return Err(Error::Value(format!("there are {} batches", self.inner.batches())).into());
        }
        let inner = &mut self.inner;
        run(py, 1, || inner.run(&order, eta, l2, seen))
    }
}

/// Loss and gradient of a training set.
#[pyclass(name = "Objective", module = "tagwise._core", frozen)]
pub struct PyObjective {
    inner: Objective,
    pages: Option<Pages>, // files of large arrays
}

#[pymethods]
impl PyObjective {
    #[new]
    #[pyo3(signature = (
        dataset, layout, *, loss = "log", sample_weight = None, limits = None, partial = None, cost = None, folder = None,
    ))]
    fn new(
        py: Python<'_>,
        dataset: &PyDataset,
        layout: &PyLayout,
        loss: &str,
        sample_weight: Option<Array<f64>>,
        limits: Option<&PyLimits>,
        partial: Option<PySupport>,
        cost: Option<Array2<f64>>,
        folder: Option<PathBuf>,
    ) -> PyResult<Self> {
        let (data, layout) = (dataset.inner.clone(), layout.inner.clone());
        let terms = full_terms((&data, &layout), loss, sample_weight, limits, partial, cost)?;
        let mut pages = folder.map(Pages::new);
        let inner = run(py, 0, || {
            let mut inner = Objective::new(data, layout, terms)?;
            pages.iter_mut().try_for_each(|pages| inner.page(pages))?;
            Ok::<_, Error>(inner)
        })??;
        Ok(PyObjective { inner, pages })
    }

    /// Return the loss at `w` and write the gradient to `gradient`. Both arrays have one entry per feature.
    #[pyo3(signature = (w, gradient, n_jobs = 0))]
    fn evaluate(&self, py: Python<'_>, w: In<'_>, gradient: Out<'_>, n_jobs: usize) -> PyResult<f64> {
        Ok(self.at(py, w, gradient, n_jobs, (false, false))?.0)
    }

    /// Like `evaluate`, with the distance of the exponential losses from their safe range: (loss, largest log of e^l
    /// or of 1/p).
    #[pyo3(signature = (w, gradient, n_jobs = 0))]
    fn value(&self, py: Python<'_>, w: In<'_>, gradient: Out<'_>, n_jobs: usize) -> PyResult<(f64, f64)> {
        self.at(py, w, gradient, n_jobs, (false, false))
    }

    /// Like `value`, for log sum_i w_i e^{l_i} in place of the exponential loss.
    #[pyo3(signature = (w, gradient, n_jobs = 0))]
    fn log_value(&self, py: Python<'_>, w: In<'_>, gradient: Out<'_>, n_jobs: usize) -> PyResult<(f64, f64)> {
        self.at(py, w, gradient, n_jobs, (true, false))
    }

    /// `value` in double precision.
    #[pyo3(signature = (w, gradient, n_jobs = 0))]
    fn precise_value(&self, py: Python<'_>, w: In<'_>, gradient: Out<'_>, n_jobs: usize) -> PyResult<(f64, f64)> {
        self.at(py, w, gradient, n_jobs, (false, true))
    }

    /// Bytes of large arrays in files.
    #[getter]
    fn paged_bytes(&self) -> usize {
        self.pages.as_ref().map_or(0, Pages::bytes)
    }

    /// Free the buffers of evaluations, and drop arrays in files from memory.
    fn release(&self) -> PyResult<()> {
        guard(|| {
            self.inner.free_buffers();
            self.pages.iter().for_each(Pages::release);
            Ok(())
        })
    }

    /// Have the system read arrays in files in the background.
    fn prefetch(&self) {
        self.pages.iter().for_each(Pages::prefetch);
    }
}

impl PyObjective {
    fn at(
        &self,
        py: Python<'_>,
        w: In<'_>,
        mut gradient: Out<'_>,
        n_jobs: usize,
        (log_domain, precise): (bool, bool),
    ) -> PyResult<(f64, f64)> {
        let (w, gradient) = (w.as_slice()?, gradient.as_slice_mut()?);
        let value = run(py, n_jobs, || self.inner.evaluate(w, gradient, log_domain, precise))??;
        Ok((value.loss, value.largest))
    }
}

/// Return the loss of a training set at `w` in double precision, without its gradient.
#[pyfunction]
#[pyo3(signature = (
    dataset, layout, w, *, loss = "log", sample_weight = None, limits = None, partial = None, cost = None, n_jobs = 0,
))]
fn total_loss(
    py: Python<'_>,
    dataset: &PyDataset,
    layout: &PyLayout,
    w: In<'_>,
    loss: &str,
    sample_weight: Option<Array<f64>>,
    limits: Option<&PyLimits>,
    partial: Option<PySupport>,
    cost: Option<Array2<f64>>,
    n_jobs: usize,
) -> PyResult<f64> {
    let (data, layout) = (dataset.inner.clone(), layout.inner.clone());
    let terms = full_terms((&data, &layout), loss, sample_weight, limits, partial, cost)?;
    let w = w.as_slice()?;
    Ok(run(py, n_jobs, || total::total_loss(&data, &layout, terms, w))??)
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    let (sequential, shifted) = (|loss: &Loss| !loss.is_pointwise(), |loss: &Loss| loss.is_shifted());
    let those = |which: fn(&Loss) -> bool| Loss::ALL.iter().copied().filter(which).map(Loss::name);
    common::add_names(m, "LOSSES", Loss::names())?;
    common::add_names(m, "SEQUENTIAL_LOSSES", those(sequential))?;
    common::add_names(m, "EXPONENTIAL_LOSSES", those(shifted))?;
    m.add_function(wrap_pyfunction!(total_loss, m)?)?;
    m.add_class::<PyObjective>()?;
    m.add_class::<PyStochastic>()
}
