//! Labels that occur at most once, and feasibility of constraints, as Python functions.

use crate::chain;
use crate::decoding::at_most_once;
use crate::error::Error;
use crate::py::common::{self, groups, run, support, PyGroups, PyLists, PySupport};
use crate::py::encode::PyDataset;
use crate::py::scorer::PyScorer;
use numpy::{PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// Marginals [tokens, L] and log Z [N].
type Marginals<'py> = (Bound<'py, PyArray2<f32>>, Bound<'py, PyArray1<f64>>);

/// The k best paths of each sentence in which every group of labels begins at most one span: the number per sentence
/// [N], their scores, their labels concatenated.
#[pyfunction]
#[pyo3(signature = (scorer, dataset, once, k = 1, *, allowed = None, n_jobs = 0))]
fn once_kbest<'py>(
    py: Python<'py>,
    scorer: &PyScorer,
    dataset: &PyDataset,
    once: PyGroups<'_>,
    k: usize,
    allowed: Option<PySupport<'_>>,
    n_jobs: usize,
) -> PyResult<PyLists<'py>> {
    let (data, groups) = (&dataset.inner, groups(once));
    let support = support(allowed, data.tokens(), scorer.inner.layout().labels)?;
    let found = run(py, n_jobs, || at_most_once::kbest(&scorer.inner, data, support.as_ref(), &groups, k))??;
    Ok(common::lists(py, found))
}

/// Marginals over the paths in which every group begins at most one span, [tokens, L], and log Z of each sentence, [N].
#[pyfunction]
#[pyo3(signature = (scorer, dataset, once, *, allowed = None, n_jobs = 0))]
fn once_marginals<'py>(
    py: Python<'py>,
    scorer: &PyScorer,
    dataset: &PyDataset,
    once: PyGroups<'_>,
    allowed: Option<PySupport<'_>>,
    n_jobs: usize,
) -> PyResult<Marginals<'py>> {
    let (data, groups) = (&dataset.inner, groups(once));
    let l = scorer.inner.layout().labels;
    let support = support(allowed, data.tokens(), l)?;
    let (p, log_z) = run(py, n_jobs, || at_most_once::marginals(&scorer.inner, data, support.as_ref(), &groups))??;
    Ok((PyArray1::from_vec(py, p).reshape([data.tokens(), l])?, PyArray1::from_vec(py, log_z)))
}

/// Whether each sentence has a path within the label sets of its tokens and the allowed pairs [L, L]: [N].
#[pyfunction]
fn feasible<'py>(
    py: Python<'py>,
    offsets: PyReadonlyArray1<'_, u64>,
    sets: PyReadonlyArray2<'_, bool>,
    of: PyReadonlyArray1<'_, u32>,
    pairs: PyReadonlyArray2<'_, bool>,
) -> PyResult<Bound<'py, PyArray1<bool>>> {
    let (offsets, (n, l)) = (offsets.as_array().to_vec(), sets.as_array().dim());
    let (sets, of): (Vec<bool>, Vec<u32>) = (sets.as_array().iter().copied().collect(), of.as_array().to_vec());
    let tokens = offsets.last().map_or(0, |&t| t as usize);
    let ordered = offsets.windows(2).all(|o| o[0] <= o[1]);
    if pairs.as_array().dim() != (l, l) || of.len() != tokens || !ordered || of.iter().any(|&s| s as usize >= n) {
        return Err(Error::Value("offsets, sets and pairs do not fit each other".into()).into());
    }
    let pairs: Vec<bool> = pairs.as_array().iter().copied().collect();
    let found = run(py, 0, || chain::limits::support::feasible(&offsets, &sets, &of, &pairs, l))?;
    Ok(PyArray1::from_vec(py, found))
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add("NO_GROUP", chain::limits::at_most_once::NONE)?;
    m.add("ONCE_LISTS", PyTuple::new(m.py(), chain::limits::at_most_once::LISTS)?)?;
    m.add_function(wrap_pyfunction!(once_kbest, m)?)?;
    m.add_function(wrap_pyfunction!(once_marginals, m)?)?;
    m.add_function(wrap_pyfunction!(feasible, m)?)
}
