//! Kernel learners and kernel models as Python objects.

use crate::dataset::csr::Csr;
use crate::decoding::kernel::{Frame, KernelScorer, SupportTokens};
use crate::error::Error;
use crate::learners::online::kernel::{DualOptions, KernelPerceptron};
use crate::learners::svm::kernel::KernelSpace;
use crate::learners::svm::Solver;
use crate::py::arrays::{Array, Array2};
use crate::py::common::{self, run, support, PyLists, PySupport};
use crate::py::encode::PyDataset;
use crate::py::layout::PyLayout;
use crate::py::options::{self, array, epoch_sums, keep_exception, number, raised, PyEpochs, PyLimits, Raised};
use crate::py::scorer::PyScorer;
use crate::py::svm::{self, progress_dict, read_weights, write_weights, PyMargins};
use crate::scores::kernel::rows::Distinct;
use crate::scores::kernel::table::Betas;
use crate::scores::kernel::{Form, Kernel, KernelKind};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::Arc;

/// A block of rows as (ptr, ids, values).
type PyBlock = (Array<u64>, Array<u32>, Array<f64>);

fn to_block(rows: &Csr) -> PyBlock {
    (
        Array(rows.ptr.iter().map(|&p| p as u64).collect()),
        Array(rows.ids.to_vec()),
        Array((0..rows.ids.len()).map(|at| f64::from(rows.value(at))).collect()),
    )
}

/// A kernel: one of `KERNELS` and its parameters, or a function of two blocks of rows. Also the form in which its
/// values are kept, and the memory for them during training.
#[pyclass(name = "Kernel", module = "tagwise._core", frozen)]
pub struct PyKernel {
    kernel: Py<PyAny>,
    numbers: (u32, f64, f64), // degree, coef, gamma
    form: Form,
    bytes: usize,
}

#[pymethods]
impl PyKernel {
    #[new]
    #[pyo3(signature = (kernel, degree = 2, coef = 1.0, gamma = 1.0, *, form = "auto", cache_bytes = 1 << 28))]
    fn new(
        kernel: Bound<'_, PyAny>,
        degree: u32,
        coef: f64,
        gamma: f64,
        form: &str,
        cache_bytes: usize,
    ) -> PyResult<Self> {
        let (numbers, form, py) = ((degree, coef, gamma), Form::named(form)?, kernel.py());
        let out = PyKernel { kernel: kernel.unbind(), numbers, form, bytes: cache_bytes };
        out.kernel(py, &Raised::default())?; // fails if the kernel does not exist
        Ok(out)
    }
}

impl PyKernel {
    /// Return the kernel. An exception of a Python function is kept in `slot`.
    fn kernel(&self, py: Python<'_>, slot: &Raised) -> PyResult<Kernel> {
        let (given, (degree, coef, gamma)) = (self.kernel.bind(py), self.numbers);
        if !given.is_callable() {
            return Ok(KernelKind::named(&given.extract::<String>()?)?.with(degree, coef, gamma));
        }
        let (function, slot) = (self.kernel.clone_ref(py), slot.clone());
        Ok(Kernel::Function(Arc::new(move |a: &Csr, b: &Csr| {
            Python::attach(|py| {
                values(py, &function, a, b).map_err(|error| keep_exception(&slot, "the kernel function", error))
            })
        })))
    }
}

/// Values of a kernel function for two blocks: [rows, rows].
fn values(py: Python<'_>, function: &Py<PyAny>, a: &Csr, b: &Csr) -> PyResult<Vec<f64>> {
    let result = function.call1(py, (to_block(a), to_block(b)))?;
    let values = result.extract::<Array2<f64>>(py).map_err(|_| {
        Error::Value("the kernel function gave no array of float64 of two dimensions; return one [rows, rows]".into())
    })?;
    let (Array2(values, [m, n]), rows) = (values, [a.rows(), b.rows()]);
    if [m, n] != rows {
        let message = format!("an array of shape ({m}, {n}) for {} and {} tokens", rows[0], rows[1]);
        return Err(Error::Value(format!("the kernel function gave {message}")).into());
    }
    Ok(values)
}

/// The dual perceptron and its training set.
#[pyclass(name = "KernelPerceptron", module = "tagwise._core")]
pub struct PyKernelPerceptron {
    inner: KernelPerceptron,
    raised: Raised,
}

#[pymethods]
impl PyKernelPerceptron {
    #[new]
    #[pyo3(signature = (dataset, layout, kernel, *, epochs = None, budget = None, limits = None, sample_weight = None))]
    fn new(
        py: Python<'_>,
        dataset: &PyDataset,
        layout: &PyLayout,
        kernel: &PyKernel,
        epochs: Option<&PyEpochs>,
        budget: Option<usize>,
        limits: Option<&PyLimits>,
        sample_weight: Option<Array<f32>>,
    ) -> PyResult<Self> {
        let (data, layout, slot) = (dataset.inner.clone(), layout.inner.clone(), Raised::default());
        let options = DualOptions {
            epochs: PyEpochs::of(epochs),
            budget,
            sample_weight: sample_weight.unwrap_or_default().0,
            limits: options::limits(limits, data.tokens(), layout.labels)?,
            form: kernel.form,
            bytes: kernel.bytes,
        };
        let kernel = kernel.kernel(py, &slot)?;
        let inner = run(py, 1, || KernelPerceptron::new(data, layout, kernel, options))?;
        match raised(&slot) {
            Some(error) => Err(error),
            None => Ok(PyKernelPerceptron { inner: inner?, raised: slot }),
        }
    }

    /// Run one pass over the training set, or over the sentences of `order`. Return sums over its steps.
    #[pyo3(signature = (order = None))]
    fn epoch<'py>(&mut self, py: Python<'py>, order: Option<Array<u32>>) -> PyResult<Bound<'py, PyDict>> {
        let order = order.map(|array| array.0);
        let inner = &mut self.inner;
        let tally = run(py, 1, || inner.epoch(order))?;
        epoch_sums(py, tally, &self.raised)
    }

    /// Weights of the layout's features, then beta [distinct tokens, L]: current values, or averages over all steps.
    #[pyo3(signature = (averaged = true))]
    fn weights(&self, py: Python<'_>, averaged: bool) -> PyResult<Array<f64>> {
        let weights = run(py, 1, || self.inner.weights(averaged).map(|w| w.flat(&self.inner.table.layout)))??;
        Ok(Array(weights))
    }

    /// Number of epochs so far.
    #[getter]
    fn epochs(&self) -> u64 {
        self.inner.epochs()
    }

    /// State from which training resumes bit for bit.
    fn state<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (out, table) = (PyDict::new(py), &self.inner.table);
        let (sums, clock, epochs) = self.inner.state();
        write_weights(&out, "", table.weights.clone())?;
        write_weights(&out, "sums.", sums.clone())?;
        out.set_item("kept", Array(table.kept().to_vec()))?;
        out.set_item("steps", clock)?;
        out.set_item("epochs", epochs)?;
        Ok(out)
    }

    /// Resume from a state of a learner with the same data and options.
    fn restore(&mut self, state: &Bound<'_, PyDict>) -> PyResult<()> {
        let (weights, sums) = (read_weights(state, "")?, read_weights(state, "sums.")?);
        let kept: Vec<f64> = array(state, "kept")?;
        let (clock, epochs) = (number(state, "steps")?, number(state, "epochs")? as u64);
        Ok(self.inner.restore(weights, &kept, sums, clock, epochs)?)
    }

    /// Number of distinct tokens whose beta is not 0.
    #[getter]
    fn n_support(&self) -> usize {
        self.inner.n_support()
    }

    /// Whether the kernel is expanded into products of attributes.
    #[getter]
    fn expanded(&self) -> bool {
        self.inner.table.is_expanded()
    }
}

/// A Hidden Markov SVM with a kernel, and its training set.
#[pyclass(name = "KernelSvm", module = "tagwise._core")]
pub struct PyKernelSvm {
    inner: Solver<KernelSpace>,
    n_jobs: usize,
    raised: Raised,
}

#[pymethods]
impl PyKernelSvm {
    #[new]
    #[pyo3(signature = (dataset, layout, kernel, margins = None, *, limits = None, sample_weight = None, n_jobs = 0))]
    fn new(
        py: Python<'_>,
        dataset: &PyDataset,
        layout: &PyLayout,
        kernel: &PyKernel,
        margins: Option<&PyMargins>,
        limits: Option<&PyLimits>,
        sample_weight: Option<Array<f64>>,
        n_jobs: usize,
    ) -> PyResult<Self> {
        let (data, layout, slot) = (dataset.inner.clone(), layout.inner.clone(), Raised::default());
        let limits = options::limits(limits, data.tokens(), layout.labels)?;
        limits.refuse_once()?;
        let options = PyMargins::options(margins, sample_weight)?;
        let (labels, form, bytes) = (layout.labels, kernel.form, kernel.bytes);
        let kernel = kernel.kernel(py, &slot)?;
        let inner = run(py, 1, || {
            let table = Betas::new(data, layout, kernel, limits, form, bytes)?;
            Solver::new(KernelSpace::new(table), labels, options)
        })??;
        Ok(PyKernelSvm { inner, n_jobs, raised: slot })
    }

    /// Run one epoch: decoding, working sets, duality gap. Return the state of training after it.
    fn epoch<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (inner, n_jobs) = (&mut self.inner, self.n_jobs);
        let state = run(py, n_jobs, || inner.epoch())?;
        if let Some(error) = raised(&self.raised) {
            return Err(error);
        }
        self.inner.space.failure()?;
        progress_dict(py, &state?)
    }

    /// State from which training resumes bit for bit after an epoch.
    fn state<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        svm::state_to_dict(py, run(py, 1, || self.inner.state())?)
    }

    /// Resume from a state of a solver with the same data and options.
    fn restore(&mut self, state: &Bound<'_, PyDict>) -> PyResult<()> {
        let (py, given) = (state.py(), svm::state_from_dict(state)?);
        let inner = &mut self.inner;
        Ok(run(py, 1, || inner.restore(given))??)
    }

    /// Weights of the layout's features, then beta [distinct tokens, L].
    fn weights(&self, py: Python<'_>) -> PyResult<Array<f64>> {
        let table = &self.inner.space.table;
        Ok(Array(run(py, 1, || table.weights.flat(&table.layout))?))
    }

    /// Number of epochs so far.
    #[getter]
    fn epochs(&self) -> u64 {
        self.inner.epochs()
    }

    /// Whether the kernel is expanded into products of attributes.
    #[getter]
    fn expanded(&self) -> bool {
        self.inner.space.table.is_expanded()
    }
}

/// Support tokens, ready to label sentences.
#[pyclass(name = "KernelScorer", module = "tagwise._core", frozen)]
pub struct PyKernelScorer {
    inner: KernelScorer,
    raised: Raised,
}

impl PyKernelScorer {
    fn done<T>(&self, result: crate::error::Result<T>) -> PyResult<T> {
        match raised(&self.raised) {
            Some(error) => Err(error),
            None => Ok(result?),
        }
    }
}

fn take<'py, T: numpy::Element + Clone>(arrays: &Bound<'py, PyDict>, name: &str) -> PyResult<Vec<T>> {
    let item = arrays.get_item(name)?.ok_or_else(|| Error::ModelFile(format!("array {name:?} is missing")))?;
    Ok(item.extract::<Array<T>>()?.0)
}

#[pymethods]
impl PyKernelScorer {
    /// Build from the arrays that `arrays` returns. `base` has the transitions, starts and ends.
    #[new]
    fn new(py: Python<'_>, base: &PyScorer, kernel: &PyKernel, arrays: &Bound<'_, PyDict>) -> PyResult<Self> {
        let (slot, form) = (Raised::default(), kernel.form);
        let kernel = kernel.kernel(py, &slot)?;
        let ptr: Vec<usize> = take::<u32>(arrays, "support.ptr")?.into_iter().map(|p| p as usize).collect();
        let ids: Vec<u32> = take(arrays, "support.ids")?;
        let values: Vec<f32> = take::<f64>(arrays, "support.values")?.into_iter().map(|v| v as f32).collect();
        let labels: Vec<u32> = take(arrays, "beta.label")?;
        let bad = ptr.first() != Some(&0)
            || ptr.last() != Some(&ids.len())
            || ptr.windows(2).any(|w| w[0] > w[1])
            || !(values.is_empty() || values.len() == ids.len())
            || labels.iter().any(|&y| y >= 1 << 16);
        if bad {
            return Err(Error::ModelFile("the support tokens are inconsistent; train and save again".into()).into());
        }
        let tokens = SupportTokens {
            rows: Csr { ptr, ids, values },
            beta_ptr: take(arrays, "beta.ptr")?,
            beta_label: labels.into_iter().map(|y| y as u16).collect(),
            beta: take(arrays, "beta.value")?,
        };
        let (frame, attributes) = frame(base);
        let inner = run(py, 1, || KernelScorer::new(tokens, frame, kernel, attributes, form))??;
        Ok(PyKernelScorer { inner, raised: slot })
    }

    /// Build from the training set and beta [distinct tokens, L] in order of first occurrence. Tokens whose beta is 0
    /// are left out.
    #[staticmethod]
    fn of_training(
        py: Python<'_>,
        base: &PyScorer,
        kernel: &PyKernel,
        dataset: &PyDataset,
        beta: Array<f64>,
    ) -> PyResult<Self> {
        let (slot, form) = (Raised::default(), kernel.form);
        let kernel = kernel.kernel(py, &slot)?;
        let (data, beta) = (dataset.inner.clone(), beta.0);
        let (frame, attributes) = frame(base);
        let inner = run(py, 1, || {
            let (distinct, l) = (Distinct::new(data.node.csr()), frame.labels);
            if beta.len() != distinct.len() * l {
                return Err(Error::Value(format!(
                    "{} betas for {} distinct tokens and {l} labels",
                    beta.len(),
                    distinct.len()
                )));
            }
            let mut tokens = SupportTokens { beta_ptr: vec![0], ..SupportTokens::default() };
            for (u, row) in beta.chunks_exact(l).enumerate().filter(|(_, row)| row.iter().any(|&x| x != 0.0)) {
                for (a, v) in distinct.rows.row(u) {
                    tokens.rows.push(a, v);
                }
                tokens.rows.end_row();
                for (y, &x) in row.iter().enumerate().filter(|(_, &x)| x != 0.0) {
                    tokens.beta_label.push(y as u16);
                    tokens.beta.push(x);
                }
                tokens.beta_ptr.push(tokens.beta.len() as u32);
            }
            KernelScorer::new(tokens, frame, kernel, attributes, form)
        })??;
        Ok(PyKernelScorer { inner, raised: slot })
    }

    /// The support tokens and their betas, for a model file.
    fn arrays<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (out, t) = (PyDict::new(py), &self.inner.tokens);
        let wide = |values: &[f32]| values.iter().map(|&v| f64::from(v)).collect::<Vec<f64>>();
        out.set_item("support.ptr", Array(t.rows.ptr.iter().map(|&p| p as u32).collect()))?;
        out.set_item("support.ids", Array(t.rows.ids.to_vec()))?;
        out.set_item("support.values", Array(wide(&t.rows.values)))?;
        out.set_item("beta.ptr", Array(t.beta_ptr.to_vec()))?;
        out.set_item("beta.label", Array(t.beta_label.iter().map(|&y| u32::from(y)).collect()))?;
        out.set_item("beta.value", Array(t.beta.to_vec()))?;
        Ok(out)
    }

    /// Number of support tokens.
    fn __len__(&self) -> usize {
        self.inner.tokens.rows.rows()
    }

    /// Whether the kernel is expanded into products of attributes.
    #[getter]
    fn expanded(&self) -> bool {
        self.inner.is_expanded()
    }

    /// Node scores of each token, starts and ends included: [tokens, L].
    #[pyo3(signature = (dataset, *, n_jobs = 0))]
    fn node_scores(&self, py: Python<'_>, dataset: &PyDataset, n_jobs: usize) -> PyResult<Array2<f32>> {
        let data = &dataset.inner;
        let nodes = run(py, n_jobs, || self.inner.nodes(data))?;
        Ok(Array2(self.done(nodes)?, [data.tokens(), self.inner.labels()]))
    }

    /// Best path of each sentence, one label id per token: [tokens].
    #[pyo3(signature = (dataset, *, allowed = None, n_jobs = 0))]
    fn viterbi(
        &self,
        py: Python<'_>,
        dataset: &PyDataset,
        allowed: Option<PySupport>,
        n_jobs: usize,
    ) -> PyResult<Array<u16>> {
        let data = &dataset.inner;
        let support = support(allowed, data.tokens(), self.inner.labels())?;
        let found = run(py, n_jobs, || self.inner.lists(data, support.as_ref(), 1))?;
        Ok(Array(self.done(found)?.labels))
    }

    /// The k best paths of each sentence: the number per sentence [N], their scores, their labels concatenated.
    #[pyo3(signature = (dataset, k, *, allowed = None, n_jobs = 0))]
    fn kbest(
        &self,
        py: Python<'_>,
        dataset: &PyDataset,
        k: usize,
        allowed: Option<PySupport>,
        n_jobs: usize,
    ) -> PyResult<PyLists> {
        let data = &dataset.inner;
        let support = support(allowed, data.tokens(), self.inner.labels())?;
        let found = run(py, n_jobs, || self.inner.lists(data, support.as_ref(), k))?;
        let found = self.done(found)?;
        Ok(common::lists(found))
    }
}

fn frame(base: &PyScorer) -> (Frame, usize) {
    let scorer = &base.inner;
    let frame = Frame {
        labels: scorer.layout().labels,
        edge: scorer.edge_scores().iter().map(|&x| x as f32).collect(),
        start: scorer.start.clone(),
        end: scorer.end.clone(),
    };
    (frame, scorer.layout().attributes)
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    common::add_names(m, "FORMS", Form::names())?;
    common::add_pairs(m, "KERNELS", KernelKind::ALL.iter().map(|kernel| (kernel.name(), kernel.numbers())))?;
    m.add_class::<PyKernel>()?;
    m.add_class::<PyKernelPerceptron>()?;
    m.add_class::<PyKernelSvm>()?;
    m.add_class::<PyKernelScorer>()
}
