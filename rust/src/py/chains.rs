//! Chains of a whole batch, passed as arrays.

use crate::chain::emissions::Chains;
use crate::error::{Error, Result};
use crate::py::arrays::Array;
use crate::py::common::{guard, run};
use numpy::{PyArray2, PyArray3, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2, PyReadwriteArray1};
use numpy::{PyReadwriteArray2, PyReadwriteArray3};
use pyo3::prelude::*;
use pyo3::types::PyList;

/// Node scores [B, T, L], lengths [B] (default: T each), edge scores [L, L], start and end scores [L] of a batch of
/// sentences, and their tags [B, T] if log-likelihoods are computed.
#[pyclass(name = "Chains", module = "tagwise._core", frozen)]
pub struct PyChains {
    node: Py<PyArray3<f32>>,
    tags: Option<Py<PyArray2<i64>>>,
    shape: (usize, usize, usize),
    lengths: Vec<u32>,
    edge: Vec<f64>,
    start: Vec<f32>,
    end: Vec<f32>,
}

impl PyChains {
    fn with<R: Send>(&self, py: Python<'_>, n_jobs: usize, work: impl FnOnce(&Chains<'_>) -> R + Send) -> PyResult<R> {
        let array = self.node.bind(py).try_readonly()?;
        let node = array.as_slice()?;
        let tags = self.tags.as_ref().map(|tags| tags.bind(py).try_readonly()).transpose()?;
        let tags = tags.as_ref().map(|tags| tags.as_slice()).transpose()?;
        let (_, time, labels) = self.shape;
        let (lengths, edge, start, end) = (&self.lengths, &self.edge, &self.start, &self.end);
        let chains = Chains { labels, time, node, lengths, edge, start, end, tags };
        match chains.is_small() {
            true => guard(|| Ok(py.detach(|| work(&chains)))),
            false => run(py, n_jobs, || work(&chains)),
        }
    }

    /// Reject an array whose size differs from the expected one.
    fn check_size(what: &str, size: usize, expected: usize) -> Result<()> {
        match size == expected {
            true => Ok(()),
            false => Err(Error::Value(format!("{what}: expected {expected} numbers, got {size}"))),
        }
    }
}

fn check_shapes(
    shape: (usize, usize, usize),
    lengths: &[u32],
    edge: (usize, usize),
    ends: (usize, usize),
) -> Result<()> {
    let (batch, time, labels) = shape;
    if edge != (labels, labels) || ends != (labels, labels) || lengths.len() != batch || labels == 0 || labels >= 65535
    {
        return Err(Error::Value(format!(
            "node scores of shape {shape:?} need a length a sentence, edge scores [{labels}, {labels}] and start and end \
             scores [{labels}]; got {}, {edge:?}, {ends:?}",
            lengths.len()
        )));
    }
    match lengths.iter().find(|&&n| n as usize > time) {
        Some(n) => Err(Error::Value(format!("a sentence of {} tokens in a batch of {time}", *n as i32))),
        None => Ok(()),
    }
}

#[pymethods]
impl PyChains {
    #[new]
    #[pyo3(signature = (node, lengths, edge, start, end, tags = None))]
    fn new(
        node: Bound<'_, PyArray3<f32>>,
        lengths: Option<PyReadonlyArray1<'_, i32>>,
        edge: PyReadonlyArray2<'_, f32>,
        start: PyReadonlyArray1<'_, f32>,
        end: PyReadonlyArray1<'_, f32>,
        tags: Option<Bound<'_, PyArray2<i64>>>,
    ) -> PyResult<PyChains> {
        let shape = {
            let array = node.try_readonly()?;
            array.as_slice().map_err(|_| Error::Value("node scores must lie one after the other".into()))?;
            array.as_array().dim()
        };
        let lengths: Vec<u32> = match lengths {
            Some(lengths) => lengths.as_array().iter().map(|&n| n as u32).collect(),
            None => vec![shape.1 as u32; shape.0],
        };
        let (start, end) = (start.as_array().to_vec(), end.as_array().to_vec());
        check_shapes(shape, &lengths, edge.as_array().dim(), (start.len(), end.len()))?;
        if let Some(tags) = &tags {
            let array = tags.try_readonly()?;
            if array.as_slice().is_err() || array.as_array().dim() != (shape.0, shape.1) {
                return Err(Error::Value("tags must be contiguous, with one tag per token".into()).into());
            }
        }
        let edge = edge.as_array().iter().map(|&x| f64::from(x)).collect();
        Ok(PyChains { node: node.unbind(), tags: tags.map(Bound::unbind), shape, lengths, edge, start, end })
    }

    /// Return log Z of every sentence, or the log-likelihood of its tags if there are tags: [B].
    #[pyo3(signature = (n_jobs = 0))]
    fn values(&self, py: Python<'_>, n_jobs: usize) -> PyResult<Array<f64>> {
        Ok(Array(self.with(py, n_jobs, |chains| chains.values())?))
    }

    /// Return the values [B], and write the gradient of their sum, weighted by `weights` (None: 1 per sentence), to
    /// the arrays passed: with respect to node scores [B, T, L], edge scores [L, L], start and end scores [L].
    #[pyo3(signature = (weights, node, edge, start, end, n_jobs = 0))]
    #[allow(clippy::too_many_arguments)]
    fn gradient(
        &self,
        py: Python<'_>,
        weights: Option<PyReadonlyArray1<'_, f64>>,
        mut node: PyReadwriteArray3<'_, f32>,
        mut edge: PyReadwriteArray2<'_, f32>,
        mut start: PyReadwriteArray1<'_, f32>,
        mut end: PyReadwriteArray1<'_, f32>,
        n_jobs: usize,
    ) -> PyResult<Array<f64>> {
        let (batch, time, labels) = self.shape;
        let weights = weights.map_or_else(|| vec![1.0; batch], |weights| weights.as_array().to_vec());
        Self::check_size("weights", weights.len(), batch)?;
        let cells = node.as_slice_mut()?;
        Self::check_size("node", cells.len(), batch * time * labels)?;
        let (values, sums) = self.with(py, n_jobs, |chains| chains.gradient(&weights, cells))?;
        let parts = [
            ("edge", edge.as_slice_mut()?, sums.edge),
            ("start", start.as_slice_mut()?, sums.start),
            ("end", end.as_slice_mut()?, sums.end),
        ];
        for (name, out, found) in parts {
            Self::check_size(name, out.len(), found.len())?;
            out.iter_mut().zip(found).for_each(|(cell, x)| *cell = x as f32);
        }
        Ok(Array(values))
    }

    /// Write the best paths to `paths` [B, T], -1 after the end of a sentence. Return their scores [B].
    #[pyo3(signature = (paths, n_jobs = 0))]
    fn best(&self, py: Python<'_>, mut paths: PyReadwriteArray2<'_, i64>, n_jobs: usize) -> PyResult<Array<f64>> {
        let cells = paths.as_slice_mut()?;
        Self::check_size("paths", cells.len(), self.shape.0 * self.shape.1)?;
        Ok(Array(self.with(py, n_jobs, |chains| chains.best(cells))?))
    }
}

/// Return the rows of an array [B, T] as lists, each cut to its length if lengths are passed.
#[pyfunction]
#[pyo3(signature = (rows, lengths = None))]
fn row_lists<'py>(
    py: Python<'py>,
    rows: PyReadonlyArray2<'_, i64>,
    lengths: Option<PyReadonlyArray1<'_, i32>>,
) -> PyResult<Bound<'py, PyList>> {
    let (rows, lengths) = (rows.as_array(), lengths.as_ref().map(|n| n.as_array()));
    let (batch, time) = rows.dim();
    PyChains::check_size("lengths", lengths.map_or(batch, |n| n.len()), batch)?;
    let out = PyList::empty(py);
    for (b, row) in rows.outer_iter().enumerate() {
        let size = lengths.map_or(time, |n| usize::try_from(n[b]).map_or(0, |n| n.min(time)));
        out.append(PyList::new(py, row.iter().take(size))?)?;
    }
    Ok(out)
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(row_lists, m)?)?;
    m.add_class::<PyChains>()
}
