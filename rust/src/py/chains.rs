//! Chains of a whole batch, given as arrays.

use crate::chain::batch::Chains;
use crate::error::{Error, Result};
use crate::py::common::run;
use numpy::{PyArray1, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2, PyReadonlyArray3};
use pyo3::prelude::*;

type Floats<'py> = Bound<'py, PyArray1<f64>>;

/// Node scores [B, T, L], lengths [B], edge scores [L, L], start and end scores [L] of a batch of sentences.
#[pyclass(name = "Chains", module = "tagwise._core", frozen)]
pub struct PyChains {
    node: Py<numpy::PyArray3<f32>>,
    shape: (usize, usize, usize),
    lengths: Vec<u32>,
    edge: Vec<f64>,
    start: Vec<f64>,
    end: Vec<f64>,
}

impl PyChains {
    fn with<R: Send>(&self, py: Python<'_>, n_jobs: usize, work: impl FnOnce(&Chains<'_>) -> R + Send) -> PyResult<R> {
        let array = self.node.bind(py).try_readonly()?;
        let node = array.as_slice()?;
        let (_, time, labels) = self.shape;
        let (lengths, edge, start, end) = (&self.lengths, &self.edge, &self.start, &self.end);
        run(py, n_jobs, move || work(&Chains { labels, time, node, lengths, edge, start, end }))
    }
}

fn checked(shape: (usize, usize, usize), lengths: &[i32], edge: (usize, usize), ends: (usize, usize)) -> Result<()> {
    let (batch, time, labels) = shape;
    if edge != (labels, labels) || ends != (labels, labels) || lengths.len() != batch || labels == 0 || labels >= 65535
    {
        return Err(Error::Value(format!(
            "node scores of shape {shape:?} need a length a sentence, edge scores [{labels}, {labels}] and start and end \
             scores [{labels}]; got {}, {edge:?}, {ends:?}",
            lengths.len()
        )));
    }
    match lengths.iter().find(|&&n| n < 0 || n as usize > time) {
        Some(n) => Err(Error::Value(format!("a sentence of {n} tokens in a batch of {time}"))),
        None => Ok(()),
    }
}

#[pymethods]
impl PyChains {
    #[new]
    fn new(
        node: Bound<'_, numpy::PyArray3<f32>>,
        lengths: PyReadonlyArray1<'_, i32>,
        edge: PyReadonlyArray2<'_, f64>,
        start: PyReadonlyArray1<'_, f64>,
        end: PyReadonlyArray1<'_, f64>,
    ) -> PyResult<PyChains> {
        let shape = {
            let array: PyReadonlyArray3<'_, f32> = node.try_readonly()?;
            array.as_slice().map_err(|_| Error::Value("node scores must lie one after the other".into()))?;
            array.as_array().dim()
        };
        let lengths: Vec<i32> = lengths.as_array().to_vec();
        let (start, end) = (start.as_array().to_vec(), end.as_array().to_vec());
        checked(shape, &lengths, edge.as_array().dim(), (start.len(), end.len()))?;
        let lengths = lengths.into_iter().map(|n| n as u32).collect();
        let edge = edge.as_array().iter().copied().collect();
        Ok(PyChains { node: node.unbind(), shape, lengths, edge, start, end })
    }

    /// log Z of every sentence: [B].
    #[pyo3(signature = (n_jobs = 0))]
    fn log_z<'py>(&self, py: Python<'py>, n_jobs: usize) -> PyResult<Floats<'py>> {
        Ok(PyArray1::from_vec(py, self.with(py, n_jobs, |chains| chains.log_z())?))
    }

    /// Weighted marginals [B * T * L] and weighted sums over pairs [L * L], first labels [L], last labels [L].
    #[pyo3(signature = (weights, n_jobs = 0))]
    #[allow(clippy::type_complexity)]
    fn expect<'py>(
        &self,
        py: Python<'py>,
        weights: PyReadonlyArray1<'_, f64>,
        n_jobs: usize,
    ) -> PyResult<(Bound<'py, PyArray1<f32>>, Floats<'py>, Floats<'py>, Floats<'py>)> {
        let weights = weights.as_array().to_vec();
        if weights.len() != self.shape.0 {
            let message = format!("{} sentences need as many weights, got {}", self.shape.0, weights.len());
            return Err(Error::Value(message).into());
        }
        let (p, sums) = self.with(py, n_jobs, |chains| chains.expect(&weights))?;
        let floats = |v: Vec<f64>| PyArray1::from_vec(py, v);
        Ok((PyArray1::from_vec(py, p), floats(sums.edge), floats(sums.start), floats(sums.end)))
    }

    /// Best paths [B * T], -1 beyond an end, and their scores [B].
    #[pyo3(signature = (n_jobs = 0))]
    fn best<'py>(&self, py: Python<'py>, n_jobs: usize) -> PyResult<(Bound<'py, PyArray1<i64>>, Floats<'py>)> {
        let (paths, scores) = self.with(py, n_jobs, |chains| chains.best())?;
        Ok((PyArray1::from_vec(py, paths), PyArray1::from_vec(py, scores)))
    }
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PyChains>()
}
