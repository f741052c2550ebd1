//! Options that learners share, one class per concept: constraints on paths, the schedule of epochs, the rule of an
//! online learner, the cost of a wrong path.

use crate::chain::limits::at_most_once::Groups;
use crate::chain::limits::entities::Entities;
use crate::chain::limits::Limits;
use crate::error::{Error, Result};
use crate::learners::online::cost::{Cost, CostKind, CostOptions};
use crate::learners::online::rule::{Rule, RuleKind};
use crate::learners::online::{EpochOptions, OnlineOptions};
use crate::learners::tally::Tally;
use crate::py::arrays::{Array, Array2};
use crate::py::common::{add_names, add_pairs, groups, support, PyGroups, PySupport};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use std::sync::{Arc, Mutex};

/// Slot for the exception of a Python function called by the core, until the call returns to Python.
pub type Raised = Arc<Mutex<Option<PyErr>>>;

/// Take the exception that Python code raised, if any.
pub fn raised(slot: &Raised) -> Option<PyErr> {
    match slot.lock() {
        Ok(mut slot) => slot.take(),
        Err(poisoned) => poisoned.into_inner().take(),
    }
}

/// Keep the exception of a Python function, and return an error that `what` failed.
pub fn keep_exception(slot: &Raised, what: &str, error: PyErr) -> Error {
    let message = error.to_string();
    if let Ok(mut slot) = slot.lock() {
        slot.get_or_insert(error);
    }
    Error::Training(format!("{what} failed: {message}"))
}

/// Return the sums of an epoch, or its error. An exception of Python code takes precedence.
pub fn epoch_sums<'py>(py: Python<'py>, tally: Result<Tally>, slot: &Raised) -> PyResult<Bound<'py, PyDict>> {
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

/// Array of a state, by name.
pub fn array<T: numpy::Element + Clone>(state: &Bound<'_, PyDict>, name: &str) -> PyResult<Vec<T>> {
    let found = state.get_item(name)?.ok_or_else(|| Error::Value(format!("the state has no {name:?}")))?;
    Ok(found.extract::<Array<T>>()?.0)
}

/// Number of a state, by name.
pub fn number(state: &Bound<'_, PyDict>, name: &str) -> PyResult<f64> {
    let found = state.get_item(name)?.ok_or_else(|| Error::Value(format!("the state has no {name:?}")))?;
    found.extract::<f64>()
}

/// Constraints on the paths of sentences.
#[pyclass(name = "Limits", module = "tagwise._core", frozen)]
pub struct PyLimits {
    forbidden: Vec<u32>,
    allowed: Option<PySupport>,
    once: Option<Groups>,
}

#[pymethods]
impl PyLimits {
    #[new]
    #[pyo3(signature = (forbidden = None, allowed = None, once = None))]
    fn new(forbidden: Option<Array<u32>>, allowed: Option<PySupport>, once: Option<PyGroups>) -> Self {
        PyLimits { forbidden: forbidden.unwrap_or_default().0, allowed, once: once.map(groups) }
    }
}

/// Constraints for these numbers of tokens and labels. Unconstrained by default.
pub fn limits(given: Option<&PyLimits>, tokens: usize, labels: usize) -> PyResult<Limits> {
    let Some(PyLimits { forbidden, allowed, once }) = given else { return Ok(Limits::default()) };
    let support = support(allowed.clone(), tokens, labels)?;
    Ok(Limits { forbidden: forbidden.clone(), support, once: once.clone() })
}

/// Schedule of an online learner's epochs.
#[pyclass(name = "Epochs", module = "tagwise._core", frozen)]
pub struct PyEpochs {
    inner: EpochOptions,
}

#[pymethods]
impl PyEpochs {
    #[new]
    #[pyo3(signature = (*, average = true, batch = false, shuffle = true, seed = 0, shards = 1))]
    fn new(average: bool, batch: bool, shuffle: bool, seed: u64, shards: usize) -> Self {
        PyEpochs { inner: EpochOptions { average, batch, shuffle, seed, shards } }
    }
}

impl PyEpochs {
    /// Options passed by the caller, or the defaults.
    pub fn of(given: Option<&PyEpochs>) -> EpochOptions {
        given.map_or(PyEpochs::new(true, false, true, 0, 1).inner, |epochs| epochs.inner)
    }
}

/// Entity types of labels, `kind` [L], and boundaries between labels, `boundary` [L + 1, L].
pub type PyEntities = (Array<u16>, Array2<u8>);

pub fn entities((kind, boundary): PyEntities) -> PyResult<Entities> {
    Ok(Entities::new(kind.0, boundary.0)?)
}

/// Cost of a wrong path: one of `COSTS` and its parameters, or a function of (gold, guess), lists of label ids.
#[pyclass(name = "Cost", module = "tagwise._core", frozen)]
pub struct PyCost {
    cost: Py<PyAny>,
    numbers: Vec<f64>,
    entities: Option<Entities>,
    augment: bool,
}

#[pymethods]
impl PyCost {
    #[new]
    #[pyo3(signature = (cost, numbers = Vec::new(), entities = None, *, augment = false))]
    fn new(cost: Bound<'_, PyAny>, numbers: Vec<f64>, entities: Option<PyEntities>, augment: bool) -> PyResult<Self> {
        let entities = entities.map(self::entities).transpose()?;
        let out = PyCost { cost: cost.clone().unbind(), numbers, entities, augment };
        out.cost(cost.py(), &Raised::default())?; // fails if the cost does not exist
        Ok(out)
    }
}

impl PyCost {
    pub fn entities(&self) -> Option<&Entities> {
        self.entities.as_ref()
    }

    /// Return the cost. An exception of a Python function is kept in `slot`.
    pub fn cost(&self, py: Python<'_>, slot: &Raised) -> PyResult<Cost> {
        let given = self.cost.bind(py);
        if !given.is_callable() {
            return Ok(CostKind::named(&given.extract::<String>()?)?.with(&self.numbers)?);
        }
        let (function, slot) = (self.cost.clone_ref(py), slot.clone());
        Ok(Cost::Function(Box::new(move |gold, guess| {
            Python::attach(|py| {
                let result = PyList::new(py, gold)
                    .and_then(|gold| PyList::new(py, guess).and_then(|guess| function.call1(py, (gold, guess))))
                    .and_then(|x| {
                        let wrong = || Error::Value(format!("the cost function gave {x}, expected a number"));
                        x.extract::<f64>(py).map_err(|_| wrong().into())
                    });
                result.map_err(|error| keep_exception(&slot, "the cost function", error))
            })
        })))
    }
}

/// Update rule of an online learner for a wrong guess: one of `RULES` and its parameters. MIRA: k, limit.
/// Passive-aggressive: variant, limit. AROW: gamma, variance.
#[pyclass(name = "Rule", module = "tagwise._core", frozen)]
pub struct PyRule {
    rule: Rule,
    cost: Option<Py<PyCost>>,
}

#[pymethods]
impl PyRule {
    #[new]
    #[pyo3(signature = (kind, *, k = 1, limit = None, variant = 1, gamma = 1.0, variance = 1.0, cost = None))]
    fn new(
        kind: &str,
        k: usize,
        limit: Option<f64>,
        variant: u8,
        gamma: f64,
        variance: f64,
        cost: Option<Py<PyCost>>,
    ) -> PyResult<Self> {
        let c = limit.unwrap_or(1.0);
        let rule = match (RuleKind::named(kind)?, variant) {
            (RuleKind::Perceptron, _) => Rule::Perceptron,
            (RuleKind::Mira, _) => Rule::Mira { k, limit },
            (RuleKind::PassiveAggressive, 0) => Rule::Mira { k: 1, limit: None },
            (RuleKind::PassiveAggressive, 1) => Rule::PassiveAggressive { second: false, c },
            (RuleKind::PassiveAggressive, 2) => Rule::PassiveAggressive { second: true, c },
            (RuleKind::PassiveAggressive, 3..) => {
                return Err(Error::Value(format!("pa has the variants 0, 1 and 2; {variant} was given")).into())
            }
            (RuleKind::Arow, _) => Rule::Arow { gamma, variance },
        };
        Ok(PyRule { rule, cost })
    }
}

impl PyRule {
    /// All options of an online learner. An exception of a cost function is kept in `slot`.
    pub fn options(
        &self,
        py: Python<'_>,
        slot: &Raised,
        epochs: Option<&PyEpochs>,
        limits: Limits,
        sample_weight: Option<Array<f32>>,
    ) -> PyResult<OnlineOptions> {
        let cost_options = match &self.cost {
            None => CostOptions { cost: Cost::Accuracy, entities: None, augment: false },
            Some(given) => {
                let given = given.get();
                CostOptions { cost: given.cost(py, slot)?, entities: given.entities.clone(), augment: given.augment }
            }
        };
        let epochs = PyEpochs::of(epochs);
        Ok(OnlineOptions {
            rule: self.rule,
            cost_options,
            epochs,
            limits,
            sample_weight: sample_weight.unwrap_or_default().0,
        })
    }
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    add_names(m, "RULES", RuleKind::names())?;
    add_pairs(m, "COSTS", CostKind::ALL.iter().map(|cost| (cost.name(), cost.defaults())))?;
    m.add_class::<PyLimits>()?;
    m.add_class::<PyEpochs>()?;
    m.add_class::<PyCost>()?;
    m.add_class::<PyRule>()
}
