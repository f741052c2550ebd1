//! Features, training objective and scorer as Python objects.

use crate::chain::once::Groups;
use crate::dataset::layout::{Choice, Layout};
use crate::dataset::Dataset;
use crate::error::Error;
use crate::learners::batch::descent::Stochastic;
use crate::learners::batch::loss::Loss;
use crate::learners::batch::objective::{Objective, Terms};
use crate::machine::shuffle::Generator;
use crate::py::encode::PyDataset;
use crate::scores::nodes::Support;
use crate::scores::scorer::Scorer;
use numpy::{PyArray1, PyArray2, PyReadonlyArray1, PyReadonlyArray2, PyReadwriteArray1};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock};

type In<'py> = PyReadonlyArray1<'py, f64>;
type Out<'py> = PyReadwriteArray1<'py, f64>;

/// A pool of `n_jobs` threads (0: as many as the machine has cores), made once and kept.
pub fn pool(n_jobs: usize) -> PyResult<Arc<ThreadPool>> {
    static POOLS: OnceLock<Mutex<HashMap<usize, Arc<ThreadPool>>>> = OnceLock::new();
    let n = if n_jobs == 0 { std::thread::available_parallelism().map_or(1, |n| n.get()) } else { n_jobs };
    let mut pools = match POOLS.get_or_init(Mutex::default).lock() {
        Ok(guard) => guard,
        Err(poisoned) => poisoned.into_inner(),
    };
    if let Some(pool) = pools.get(&n) {
        return Ok(pool.clone());
    }
    let built = ThreadPoolBuilder::new().num_threads(n).thread_name(|i| format!("tagwise-{i}")).build();
    let pool =
        Arc::new(built.map_err(|e| Error::Value(format!("cannot start {n} threads: {e}; use a smaller n_jobs")))?);
    pools.insert(n, pool.clone());
    Ok(pool)
}

/// Allowed label sets: `sets` [sets, L] of bool, `of` [tokens] the set of each token.
pub type PySupport<'py> = (PyReadonlyArray2<'py, bool>, PyReadonlyArray1<'py, u32>);

pub fn support(given: Option<PySupport<'_>>, tokens: usize, labels: usize) -> PyResult<Option<Support>> {
    let Some((sets, of)) = given else { return Ok(None) };
    let shape = sets.as_array().dim();
    let support = Support { sets: sets.as_array().iter().copied().collect(), of: of.as_array().to_vec() };
    if shape.1 != labels || support.of.len() != tokens || support.of.iter().any(|&s| s as usize >= shape.0) {
        return Err(Error::Value(format!(
            "allowed sets of shape {shape:?} for {} tokens do not fit {labels} labels and {tokens} tokens",
            support.of.len()
        ))
        .into());
    }
    Ok(Some(support))
}

/// Labels that may occur once: `group` [L], 2^32 - 1 for none; `begins` [L + 1, L], whether a span begins between two.
pub type PyGroups<'py> = (PyReadonlyArray1<'py, u32>, PyReadonlyArray2<'py, bool>);

pub fn groups((group, begins): PyGroups<'_>) -> Groups {
    Groups { of: group.as_array().to_vec(), begins: begins.as_array().iter().copied().collect() }
}

/// Which features exist and where each lies in the weight vector.
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
        let layout = py.detach(|| Layout::build(data, n_attributes, n_labels, Choice { all_pairs, start_end }))?;
        Ok(PyLayout { inner: Arc::new(layout) })
    }

    /// A layout from its arrays, as `arrays` gives them.
    #[staticmethod]
    fn from_arrays(n_attributes: usize, n_labels: usize, arrays: &Bound<'_, PyDict>) -> PyResult<PyLayout> {
        fn take<'py, T: numpy::Element + Clone>(arrays: &Bound<'py, PyDict>, name: &str) -> PyResult<Vec<T>> {
            let item = arrays.get_item(name)?.ok_or_else(|| Error::Value(format!("array {name:?} is missing")))?;
            Ok(item.extract::<PyReadonlyArray1<'py, T>>()?.as_array().to_vec())
        }
        let layout = Layout {
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
        layout.check()?;
        Ok(PyLayout { inner: Arc::new(layout) })
    }

    /// The arrays that make the layout up.
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
    /// Number of node features; they come first.
    #[getter]
    fn n_node(&self) -> usize {
        self.inner.n_node()
    }
    #[getter]
    fn n_edge(&self) -> usize {
        self.inner.edges.len()
    }
}

/// What an objective is made of, from Python's values.
fn terms(
    data: &Dataset,
    layout: &Layout,
    loss: &str,
    sample_weight: Option<PyReadonlyArray1<'_, f64>>,
    forbidden: Option<PyReadonlyArray1<'_, u32>>,
    allowed: Option<PySupport<'_>>,
    partial: Option<PySupport<'_>>,
    cost: Option<PyReadonlyArray2<'_, f64>>,
    once: Option<PyGroups<'_>>,
) -> PyResult<Terms> {
    let known = Loss::named(loss).ok_or_else(|| {
        Error::Value(format!("no loss {loss:?}; there are log, exp, pointwise_log and pointwise_exp"))
    })?;
    let terms = Terms {
        loss: known,
        weights: sample_weight.map(|w| w.as_array().to_vec()).unwrap_or_default(),
        forbidden: forbidden.map(|f| f.as_array().to_vec()).unwrap_or_default(),
        support: support(allowed, data.tokens(), layout.labels)?,
        partial: support(partial, data.tokens(), layout.labels)?,
        cost: cost.map(|c| c.as_array().iter().copied().collect()).unwrap_or_default(),
        once: once.map(groups),
    };
    if terms.forbidden.iter().any(|&e| e as usize >= layout.labels * layout.labels) {
        return Err(Error::Value("a forbidden edge names a label that does not exist".into()).into());
    }
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
    #[pyo3(signature = (dataset, layout, *, loss = "log", sample_weight = None, forbidden = None, allowed = None))]
    fn new(
        py: Python<'_>,
        dataset: &PyDataset,
        layout: &PyLayout,
        loss: &str,
        sample_weight: Option<PyReadonlyArray1<'_, f64>>,
        forbidden: Option<PyReadonlyArray1<'_, u32>>,
        allowed: Option<PySupport<'_>>,
    ) -> PyResult<Self> {
        let (data, layout) = (dataset.inner.clone(), layout.inner.clone());
        let terms = terms(&data, &layout, loss, sample_weight, forbidden, allowed, None, None, None)?;
        let size = layout.len();
        Ok(PyStochastic { inner: py.detach(|| Stochastic::new(data, layout, terms))?, size })
    }

    /// Steps of an epoch: batches of up to sixteen sentences.
    #[getter]
    fn n_batches(&self) -> usize {
        self.inner.batches()
    }

    /// Go on from these weights.
    fn set(&mut self, w: In<'_>) -> PyResult<()> {
        let w = w.as_slice()?;
        if w.len() != self.size {
            return Err(Error::Value(format!("expected {} weights, got {}", self.size, w.len())).into());
        }
        self.inner.set(w);
        Ok(())
    }

    /// The weights now, one a feature.
    fn weights<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        let mut w = vec![0.0; self.size];
        self.inner.read(&mut w);
        PyArray1::from_vec(py, w)
    }

    /// The order of the batches in an epoch.
    fn order<'py>(&self, py: Python<'py>, seed: u64, epoch: u64) -> Bound<'py, PyArray1<u32>> {
        let mut order: Vec<u32> = (0..self.inner.batches() as u32).collect();
        Generator::new(seed, epoch, 0).shuffle(&mut order);
        PyArray1::from_vec(py, order)
    }

    /// Steps over the batches of `order`, `seen` sentences after the start: the sum of the losses met on the way, or NaN
    /// where the steps were too long.
    fn run(&mut self, py: Python<'_>, order: PyReadonlyArray1<'_, u32>, eta: f64, l2: f64, seen: f64) -> PyResult<f64> {
        let order = order.as_array().to_vec();
        if order.iter().any(|&b| b as usize >= self.inner.batches()) {
            return Err(Error::Value(format!("there are {} batches", self.inner.batches())).into());
        }
        let inner = &mut self.inner;
        Ok(py.detach(|| inner.run(&order, eta, l2, seen)))
    }
}

/// Loss and gradient of a training set.
#[pyclass(name = "Objective", module = "tagwise._core", frozen)]
pub struct PyObjective {
    inner: Objective,
}

#[pymethods]
impl PyObjective {
    #[new]
    #[pyo3(signature = (dataset, layout, *, loss = "log", sample_weight = None, forbidden = None, allowed = None, partial = None, cost = None, once = None))]
    fn new(
        py: Python<'_>,
        dataset: &PyDataset,
        layout: &PyLayout,
        loss: &str,
        sample_weight: Option<PyReadonlyArray1<'_, f64>>,
        forbidden: Option<PyReadonlyArray1<'_, u32>>,
        allowed: Option<PySupport<'_>>,
        partial: Option<PySupport<'_>>,
        cost: Option<PyReadonlyArray2<'_, f64>>,
        once: Option<PyGroups<'_>>,
    ) -> PyResult<Self> {
        let (data, layout) = (dataset.inner.clone(), layout.inner.clone());
        let terms = terms(&data, &layout, loss, sample_weight, forbidden, allowed, partial, cost, once)?;
        Ok(PyObjective { inner: py.detach(|| Objective::new(data, layout, terms))? })
    }

    /// Loss at `w`; the gradient is written to `gradient`. Both have one entry a feature.
    #[pyo3(signature = (w, gradient, n_jobs = 0))]
    fn evaluate(&self, py: Python<'_>, w: In<'_>, gradient: Out<'_>, n_jobs: usize) -> PyResult<f64> {
        Ok(self.value(py, w, gradient, n_jobs, false)?.0)
    }

    /// The same with how far the exponential losses are from their safe range: (loss, largest log of e^l or of 1/p).
    /// `log_domain`: log sum_i w_i e^{l_i} in place of the exponential loss.
    #[pyo3(signature = (w, gradient, n_jobs = 0, log_domain = false))]
    fn value(
        &self,
        py: Python<'_>,
        w: In<'_>,
        mut gradient: Out<'_>,
        n_jobs: usize,
        log_domain: bool,
    ) -> PyResult<(f64, f64)> {
        let (w, gradient, pool) = (w.as_slice()?, gradient.as_slice_mut()?, pool(n_jobs)?);
        let value = py.detach(|| pool.install(|| self.inner.evaluate(w, gradient, log_domain)))?;
        Ok((value.loss, value.largest))
    }
}

/// Features and weights, ready to label sentences.
#[pyclass(name = "Scorer", module = "tagwise._core", frozen)]
pub struct PyScorer {
    pub inner: Scorer,
}

#[pymethods]
impl PyScorer {
    #[new]
    #[pyo3(signature = (layout, weights, forbidden = None, *, local = false))]
    fn new(
        layout: &PyLayout,
        weights: PyReadonlyArray1<'_, f32>,
        forbidden: Option<PyReadonlyArray1<'_, u32>>,
        local: bool,
    ) -> PyResult<Self> {
        let forbidden = forbidden.map(|f| f.as_array().to_vec()).unwrap_or_default();
        let inner = Scorer::new(layout.inner.clone(), weights.as_array().to_vec().into(), &forbidden)?;
        Ok(PyScorer { inner: inner.locally(local) })
    }

    #[getter]
    fn layout(&self) -> PyLayout {
        PyLayout { inner: self.inner.layout().clone() }
    }

    /// Whether every step is normalised by itself, given the label before it.
    #[getter]
    fn local(&self) -> bool {
        self.inner.is_local()
    }

    /// Weights of all features.
    #[getter]
    fn weights<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f32>> {
        PyArray1::from_slice(py, self.inner.weights())
    }

    /// Edge scores [L, L], -inf where forbidden.
    #[getter]
    fn edge_scores<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let l = self.inner.layout().labels;
        let flat = PyArray1::from_slice(py, self.inner.edge_scores());
        use numpy::PyArrayMethods;
        flat.reshape([l, l])
    }

    /// Best path of each sentence, one label id a token: [tokens].
    #[pyo3(signature = (dataset, *, allowed = None, n_jobs = 0))]
    fn viterbi<'py>(
        &self,
        py: Python<'py>,
        dataset: &PyDataset,
        allowed: Option<PySupport<'_>>,
        n_jobs: usize,
    ) -> PyResult<Bound<'py, PyArray1<u16>>> {
        let data = &dataset.inner;
        let (support, pool) = (support(allowed, data.tokens(), self.inner.layout().labels)?, pool(n_jobs)?);
        let paths = py.detach(|| pool.install(|| self.inner.viterbi(data, support.as_ref())))?;
        Ok(PyArray1::from_vec(py, paths))
    }

    /// The k best paths of each sentence: how many of each [N], their scores, their labels one after the other.
    #[pyo3(signature = (dataset, k, *, allowed = None, n_jobs = 0))]
    fn kbest<'py>(
        &self,
        py: Python<'py>,
        dataset: &PyDataset,
        k: usize,
        allowed: Option<PySupport<'_>>,
        n_jobs: usize,
    ) -> PyResult<crate::py::kbest::Lists<'py>> {
        crate::py::kbest::scorer_kbest(py, self, dataset, k, allowed, n_jobs)
    }

    /// Marginals of each token, [tokens, L], and log Z of each sentence, [N].
    #[pyo3(signature = (dataset, *, allowed = None, n_jobs = 0))]
    #[allow(clippy::type_complexity)]
    fn marginals<'py>(
        &self,
        py: Python<'py>,
        dataset: &PyDataset,
        allowed: Option<PySupport<'_>>,
        n_jobs: usize,
    ) -> PyResult<(Bound<'py, PyArray2<f32>>, Bound<'py, PyArray1<f64>>)> {
        use numpy::PyArrayMethods;
        let (data, l) = (&dataset.inner, self.inner.layout().labels);
        let (support, pool) = (support(allowed, data.tokens(), l)?, pool(n_jobs)?);
        let (p, log_z) = py.detach(|| pool.install(|| self.inner.marginals(data, support.as_ref())))?;
        Ok((PyArray1::from_vec(py, p).reshape([data.tokens(), l])?, PyArray1::from_vec(py, log_z)))
    }
}

/// For tests: take these ways (names between commas) wherever the core may choose; answers those forced before.
#[pyfunction]
#[pyo3(signature = (ways = ""))]
fn force(ways: &str) -> PyResult<String> {
    Ok(crate::machine::force::force(ways)?)
}

/// For tests: what was done, and how often, since this was asked last.
#[pyfunction]
fn taken() -> HashMap<&'static str, u64> {
    crate::machine::force::TAKEN.into_iter().zip(crate::machine::force::taken()).filter(|(_, n)| *n > 0).collect()
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(force, m)?)?;
    m.add_function(wrap_pyfunction!(taken, m)?)?;
    m.add_class::<PyLayout>()?;
    m.add_class::<PyObjective>()?;
    m.add_class::<PyStochastic>()?;
    m.add_class::<PyScorer>()?;
    m.add("SIMD", format!("{:?}", crate::machine::simd::level()).to_lowercase())
}
