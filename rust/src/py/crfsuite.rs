//! CRFsuite's trainers: instances, their features, training instance by instance.

use crate::error::Error;
use crate::foreign::instances::Instances;
use crate::foreign::names::Names;
use crate::foreign::online::{CrfsuiteRule, Training};
use crate::py::arrays::Array;
use crate::py::common::run;
use crate::py::encode::{items, PyDataset};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString, PyTuple};
use std::sync::RwLock;

/// Instances appended to a trainer.
#[pyclass(name = "CrfsuiteInstances", module = "tagwise._core", frozen)]
pub struct PyInstances {
    inner: RwLock<Instances>,
}

fn interrupted_append() -> PyErr {
    Error::Internal("instances of a trainer were left in the middle of a change".into()).into()
}

/// Return the text of a label, or None if the Python package has to read it.
fn label<'a>(text: &'a Bound<'_, PyAny>) -> Option<&'a str> {
    let text = text.cast_exact::<PyString>().ok()?.to_str().ok()?;
    (!text.bytes().any(|b| b == 0 || b == 0xf4)).then_some(text)
}

#[pymethods]
impl PyInstances {
    #[new]
    fn new() -> PyInstances {
        PyInstances { inner: RwLock::new(Instances::new()) }
    }

    /// Append a sequence and its labels. Return False, with nothing appended, if the Python package has to read them.
    fn append(&self, sequence: &Bound<'_, PyAny>, labels: &Bound<'_, PyAny>, group: i64) -> PyResult<bool> {
        let given: Vec<Bound<'_, PyAny>> = if let Ok(list) = labels.cast_exact::<PyList>() {
            list.iter().collect()
        } else if let Ok(tuple) = labels.cast_exact::<PyTuple>() {
            tuple.iter().collect()
        } else {
            return Ok(false);
        };
        let Some(known) = given.iter().map(label).collect::<Option<Vec<&str>>>() else { return Ok(false) };
        let mut names = Names::default();
        if !items::read(sequence, &mut names) || names.items.len() != known.len() {
            return Ok(false);
        }
        self.inner.write().map_err(|_| interrupted_append())?.append(&names, &known, group)?;
        Ok(true)
    }

    /// Append a sequence of lists of pairs (name, value), and a label for each.
    fn append_pairs(&self, sequence: &Bound<'_, PyList>, labels: Vec<String>, group: i64) -> PyResult<()> {
        let mut names = Names::default();
        items::read_pairs(sequence, &mut names)?;
        if names.items.len() != labels.len() {
            return Err(Error::Value(format!("{} items, {} labels", names.items.len(), labels.len())).into());
        }
        let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
        Ok(self.inner.write().map_err(|_| interrupted_append())?.append(&names, &labels, group)?)
    }

    /// Labels, by number.
    #[getter]
    fn labels(&self) -> PyResult<Vec<String>> {
        Ok(self.inner.read().map_err(|_| interrupted_append())?.labels.clone())
    }

    /// Attributes, by number.
    fn texts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let data = self.inner.read().map_err(|_| interrupted_append())?;
        PyList::new(py, (0..data.vocab.len() as u32).map(|id| data.vocab.text(id).unwrap_or("")).collect::<Vec<_>>())
    }

    /// Number of items of each training sequence, or of each sequence of the holdout group.
    fn lengths(&self, holdout: i64, inside: bool) -> PyResult<Array<i64>> {
        let data = self.inner.read().map_err(|_| interrupted_append())?;
        Ok(Array(data.chosen(holdout, inside).into_iter().map(|s| data.items(s).len() as i64).collect()))
    }

    /// Codes of the state features and transitions of the training sequences, and the number of features left out
    /// because their sum is below 0.
    #[allow(clippy::type_complexity)]
    fn features(
        &self,
        py: Python<'_>,
        holdout: i64,
        least: f64,
        states: bool,
        transitions: bool,
    ) -> PyResult<(Array<i64>, Array<i64>, usize)> {
        let data = self.inner.read().map_err(|_| interrupted_append())?;
        let found = run(py, 1, || data.features(&data.chosen(holdout, false), least, states, transitions))??;
        Ok((Array(found.node), Array(found.edge), found.negative))
    }

    /// Dataset of the training sequences, or of those of the holdout group.
    fn dataset(&self, py: Python<'_>, holdout: i64, inside: bool) -> PyResult<PyDataset> {
        let data = self.inner.read().map_err(|_| interrupted_append())?;
        let found = run(py, 1, || data.dataset(&data.chosen(holdout, inside)))??;
        Ok(PyDataset { inner: found.into() })
    }
}

/// Training instance by instance.
#[pyclass(name = "CrfsuiteOnline", module = "tagwise._core")]
pub struct PyTraining {
    data: Py<PyInstances>,
    chosen: Vec<usize>,
    inner: Training,
}

#[pymethods]
impl PyTraining {
    /// `rule` is ap, pa (kind, c, sensitive), arow (gamma, variance) or l2sgd (penalty, t0), with its parameters.
    #[new]
    #[pyo3(signature = (data, holdout, node, edge, rule, numbers))]
    fn new(
        py: Python<'_>,
        data: Py<PyInstances>,
        holdout: i64,
        node: Array<i64>,
        edge: Array<i64>,
        rule: &str,
        numbers: Vec<f64>,
    ) -> PyResult<PyTraining> {
        let (rule, variance) = match (rule, numbers.as_slice()) {
            ("ap", []) => (CrfsuiteRule::Perceptron, 0.0),
            ("pa", &[kind, c, sensitive]) => {
                (CrfsuiteRule::Passive { kind: kind as i64, c, sensitive: sensitive != 0.0 }, 0.0)
            }
            ("arow", &[gamma, variance]) => (CrfsuiteRule::Arow { gamma }, variance),
            ("l2sgd", &[penalty, t0]) => (CrfsuiteRule::Descent { penalty, t0 }, 0.0),
            _ => {
                return Err(Error::Value(format!("rule={rule:?} with {numbers:?}; expected ap, pa, arow, l2sgd")).into())
            }
        };
        let (chosen, labels, attributes) = {
            let data = data.bind(py).get().inner.read().map_err(|_| interrupted_append())?;
            (data.chosen(holdout, false), data.labels.len(), data.vocab.len())
        };
        let inner = Training::new(labels, attributes, &node.0, &edge.0, rule, variance)?;
        Ok(PyTraining { data, chosen, inner })
    }

    /// Take a step for each of these instances, in this order. Return the sum of their losses.
    fn steps(&mut self, py: Python<'_>, order: Array<i64>) -> PyResult<f64> {
        let order = order.0;
        if order.iter().any(|&i| i < 0 || i as usize >= self.chosen.len()) {
            return Err(Error::Value(format!("an instance outside the {} that there are", self.chosen.len())).into());
        }
        let PyTraining { data, chosen, inner } = self;
        let data = data.bind(py).get().inner.read().map_err(|_| interrupted_append())?;
        let data = &*data;
        run(py, 1, || {
            let mut loss = 0.0;
            for &i in &order {
                crate::machine::system::stop::check();
                loss += inner.step(data, chosen[i as usize]);
            }
            loss
        })
    }

    /// Apply the decay of the steps to the weights. Return the square of their norm.
    fn apply_decay(&mut self) -> f64 {
        self.inner.apply_decay()
    }

    /// Weights, state features first.
    fn weights(&self) -> Array<f64> {
        Array(self.inner.w.to_vec())
    }

    /// Averaged weights w - ws / c.
    fn averaged(&self) -> Array<f64> {
        let of = &self.inner;
        Array(of.w.iter().zip(&of.sums).map(|(w, sum)| w - sum / of.count).collect())
    }

    /// Learning rate of the last step, and number of steps.
    #[getter]
    fn rate(&self) -> (f64, f64) {
        (self.inner.eta, self.inner.steps())
    }
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PyInstances>()?;
    m.add_class::<PyTraining>()
}
