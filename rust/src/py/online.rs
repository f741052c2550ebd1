//! Online learners as a Python object: one call an epoch.

use crate::chain::entities::{Entities, OUTSIDE};
use crate::error::{Error, Result};
use crate::learners::online::cost::{Cost, Judge};
use crate::learners::online::rule::Rule;
use crate::learners::online::{program, Online, OnlineOptions, OnlineState};
use crate::learners::tally::Tally;
use crate::machine::threads;
use crate::py::common::{groups, guard, run, support, PyGroups, PySupport};
use crate::py::encode::PyDataset;
use crate::py::layout::PyLayout;
use numpy::{PyArray1, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use std::sync::{Arc, Mutex};

/// What a Python cost function raised, until the epoch is back in Python.
pub(super) type Raised = Arc<Mutex<Option<PyErr>>>;

/// How entities are read: `kind` [L] and `boundary` [L + 1, L].
pub(super) type PyEntities<'py> = (PyReadonlyArray1<'py, u16>, PyReadonlyArray2<'py, u8>);

pub(super) fn entities(given: Option<PyEntities<'_>>) -> PyResult<Option<Entities>> {
    let Some((kind, boundary)) = given else { return Ok(None) };
    Ok(Some(Entities::new(kind.as_array().to_vec(), boundary.as_array().iter().copied().collect())?))
}

/// What Python code raised meanwhile, if anything.
pub(super) fn raised(slot: &Raised) -> Option<PyErr> {
    match slot.lock() {
        Ok(mut slot) => slot.take(),
        Err(poisoned) => poisoned.into_inner().take(),
    }
}

/// The sums of an epoch, or what went wrong in it: Python's own exception first.
pub(super) fn answer<'py>(py: Python<'py>, tally: Result<Tally>, slot: &Raised) -> PyResult<Bound<'py, PyDict>> {
    if let Some(error) = raised(slot) {
        return Err(error);
    }
    let (tally, out) = (tally?, PyDict::new(py));
    out.set_item("sentences", tally.sentences)?;
    out.set_item("tokens", tally.tokens)?;
    out.set_item("updates", tally.updates)?;
    out.set_item("wrong_sentences", tally.wrong_sentences)?;
    out.set_item("wrong_tokens", tally.wrong_tokens)?;
    out.set_item("loss", tally.loss)?;
    Ok(out)
}

/// A cost by its name and numbers, or a function of (gold, guess), lists of label ids.
pub(super) fn cost(given: &Bound<'_, PyAny>, numbers: &[f64], raised: &Raised) -> PyResult<Cost> {
    if given.is_callable() {
        let (function, raised) = (given.clone().unbind(), raised.clone());
        return Ok(Cost::Function(Box::new(move |gold, guess| {
            Python::attach(|py| {
                let answer = PyList::new(py, gold)
                    .and_then(|gold| PyList::new(py, guess).and_then(|guess| function.call1(py, (gold, guess))))
                    .and_then(|x| x.extract::<f64>(py));
                answer.map_err(|e| {
                    let message = e.to_string();
                    if let Ok(mut slot) = raised.lock() {
                        slot.get_or_insert(e);
                    }
                    Error::Training(format!("the cost function failed: {message}"))
                })
            })
        })));
    }
    let name: String = given.extract()?;
    let cost = match (name.as_str(), numbers) {
        ("accuracy", []) => Cost::Accuracy,
        ("root", []) => Cost::Root,
        ("zero_one", []) => Cost::ZeroOne,
        ("f1", &[cap]) => Cost::F1 { cap },
        ("precision_recall", &[alpha]) => Cost::PrecisionRecall { alpha },
        ("weighted_accuracy", &[alpha, beta, gamma]) => Cost::Weighted { alpha, beta, gamma },
        _ => {
            return Err(Error::Value(format!(
                "no cost {name:?} with {} numbers; use accuracy, root, zero_one, f1 (cap), precision_recall (alpha), \
                 weighted_accuracy (alpha, beta, gamma) or a function",
                numbers.len()
            ))
            .into())
        }
    };
    Ok(cost)
}

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
    #[pyo3(signature = (
        dataset, layout, kind, *, average = true, batch = false, k = 1, limit = None, variant = 1, gamma = 1.0,
        variance = 1.0, cost = None, cost_numbers = Vec::new(), entities = None, augment = false, shuffle = true,
        seed = 0, n_jobs = 1, sample_weight = None, forbidden = None, allowed = None, once = None,
    ))]
    fn new(
        py: Python<'_>,
        dataset: &PyDataset,
        layout: &PyLayout,
        kind: &str,
        average: bool,
        batch: bool,
        k: usize,
        limit: Option<f64>,
        variant: u8,
        gamma: f64,
        variance: f64,
        cost: Option<Bound<'_, PyAny>>,
        cost_numbers: Vec<f64>,
        entities: Option<PyEntities<'_>>,
        augment: bool,
        shuffle: bool,
        seed: u64,
        n_jobs: usize,
        sample_weight: Option<PyReadonlyArray1<'_, f32>>,
        forbidden: Option<PyReadonlyArray1<'_, u32>>,
        allowed: Option<PySupport<'_>>,
        once: Option<PyGroups<'_>>,
    ) -> PyResult<Self> {
        let rule = match (kind, variant) {
            ("perceptron", _) => Rule::Perceptron,
            ("mira", _) => Rule::Mira { k, limit },
            ("pa", 0) => Rule::Mira { k: 1, limit: None },
            ("pa", 1 | 2) => Rule::PassiveAggressive { second: variant == 2, c: limit.unwrap_or(1.0) },
            ("arow", _) => Rule::Arow { gamma },
            _ => {
                return Err(Error::Value(format!(
                    "no online learner {kind:?} (variant {variant}); use perceptron, mira, pa (variant 0, 1, 2) or arow"
                ))
                .into())
            }
        };
        let raised = Raised::default();
        let cost = match cost {
            None => Cost::Accuracy,
            Some(given) => self::cost(&given, &cost_numbers, &raised)?,
        };
        let entities = self::entities(entities)?;
        let (data, layout) = (dataset.inner.clone(), layout.inner.clone());
        let options = OnlineOptions {
            rule,
            cost,
            entities,
            augment,
            average,
            batch,
            shuffle,
            seed,
            shards: if n_jobs == 0 { threads::cores() } else { n_jobs },
            variance,
            sample_weight: sample_weight.map(|w| w.as_array().to_vec()).unwrap_or_default(),
            forbidden: forbidden.map(|f| f.as_array().to_vec()).unwrap_or_default(),
            support: support(allowed, data.tokens(), layout.labels)?,
            once: once.map(groups),
        };
        let inner = run(py, 1, || Online::new(data, &layout, options))??;
        Ok(PyOnline { inner, n_jobs, raised })
    }

    /// One pass over the training set, or over the sentences of `order`; sums over its steps.
    #[pyo3(signature = (order = None))]
    fn epoch<'py>(
        &mut self,
        py: Python<'py>,
        order: Option<PyReadonlyArray1<'_, u32>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let order = order.map(|o| o.as_array().to_vec());
        let (inner, n_jobs) = (&mut self.inner, self.n_jobs);
        let tally = run(py, n_jobs, || inner.epoch(order))?;
        answer(py, tally, &self.raised)
    }

    /// The weights now, or their average over all steps: one a feature.
    #[pyo3(signature = (averaged = true))]
    fn weights<'py>(&self, py: Python<'py>, averaged: bool) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let weights = run(py, 1, || self.inner.weights(averaged))??;
        Ok(PyArray1::from_vec(py, weights))
    }

    /// Epochs so far.
    #[getter]
    fn epochs(&self) -> u64 {
        self.inner.epochs()
    }

    /// Steps so far: sentences, or epochs in batch mode.
    #[getter]
    fn steps(&self) -> f64 {
        self.inner.steps()
    }

    /// What training can be resumed from.
    fn state<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (out, state) = (PyDict::new(py), guard(|| Ok(self.inner.state()))?);
        out.set_item("weights", PyArray1::from_vec(py, state.weights))?;
        out.set_item("sums", PyArray1::from_vec(py, state.sums))?;
        out.set_item("variance", PyArray1::from_vec(py, state.variance))?;
        out.set_item("steps", state.steps)?;
        out.set_item("epochs", state.epochs)?;
        Ok(out)
    }

    /// Go on from a state: one of `state`, or weights alone.
    fn restore(&mut self, state: &Bound<'_, PyDict>) -> PyResult<()> {
        let array = |name: &str| -> PyResult<Vec<f64>> {
            match state.get_item(name)? {
                None => Ok(Vec::new()),
                Some(x) => Ok(x.extract::<PyReadonlyArray1<'_, f64>>()?.as_array().to_vec()),
            }
        };
        let given = OnlineState {
            weights: array("weights")?,
            sums: array("sums")?,
            variance: array("variance")?,
            steps: state.get_item("steps")?.map_or(Ok(0.0), |x| x.extract())?,
            epochs: state.get_item("epochs")?.map_or(Ok(0), |x| x.extract())?,
        };
        guard(|| Ok(self.inner.restore(&given)?))
    }
}

/// tau of max b.tau - 1/2 tau' G tau over tau >= 0, and sum tau <= limit where it is given.
#[pyfunction]
#[pyo3(signature = (gram, b, limit = None))]
fn small_program<'py>(
    py: Python<'py>,
    gram: PyReadonlyArray2<'_, f64>,
    b: PyReadonlyArray1<'_, f64>,
    limit: Option<f64>,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let (g, b): (Vec<f64>, Vec<f64>) = (gram.as_array().iter().copied().collect(), b.as_array().to_vec());
    if gram.as_array().dim() != (b.len(), b.len()) {
        return Err(Error::Value(format!("a Gram matrix of {0} by {0} is needed", b.len())).into());
    }
    let mut tau = Vec::new();
    run(py, 1, || program::solve(&g, &b, limit, &mut tau))?;
    Ok(PyArray1::from_vec(py, tau))
}

/// Cost of `guess` where `gold` is right, both [T] of label ids.
#[pyfunction]
#[pyo3(signature = (name, numbers, gold, guess, entities))]
fn sequence_cost(
    name: &Bound<'_, PyAny>,
    numbers: Vec<f64>,
    gold: PyReadonlyArray1<'_, u16>,
    guess: PyReadonlyArray1<'_, u16>,
    entities: PyEntities<'_>,
) -> PyResult<f64> {
    let entities = self::entities(Some(entities))?.unwrap_or_default();
    let (gold, guess) = (gold.as_array().to_vec(), guess.as_array().to_vec());
    if gold.len() != guess.len() || gold.iter().chain(&guess).any(|&y| y as usize >= entities.kind.len()) {
        return Err(Error::Value("gold and guess need the same length and labels of the table".into()).into());
    }
    let (cost, mut judge) = (cost(name, &numbers, &Raised::default())?, Judge::default());
    guard(|| {
        cost.begin(&entities, &mut judge, &gold);
        Ok(cost.of(&entities, &mut judge, &gold, &guess)?)
    })
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PyOnline>()?;
    m.add("OUTSIDE", OUTSIDE)?;
    m.add("PROGRAM_TOLERANCE", program::TOLERANCE)?;
    m.add_function(wrap_pyfunction!(small_program, m)?)?;
    m.add_function(wrap_pyfunction!(sequence_cost, m)?)
}
