//! Labels that occur at most once, and feasibility of constraints, as Python functions.

use crate::chain;
use crate::decoding::at_most_once;
use crate::error::Error;
use crate::py::arrays::{Array, Array2};
use crate::py::common::{self, groups, run, support, PyGroups, PyLists, PySupport};
use crate::py::encode::PyDataset;
use crate::py::scorer::PyScorer;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// Marginals [tokens, L] and log Z [N].
type Marginals = (Array2<f32>, Array<f64>);

/// The k best paths of each sentence in which every group of labels begins at most one span: the number per sentence
/// [N], their scores, their labels concatenated.
#[pyfunction]
#[pyo3(signature = (scorer, dataset, once, k = 1, *, allowed = None, n_jobs = 0))]
fn once_kbest(
    py: Python<'_>,
    scorer: &PyScorer,
    dataset: &PyDataset,
    once: PyGroups,
    k: usize,
    allowed: Option<PySupport>,
    n_jobs: usize,
) -> PyResult<PyLists> {
    let (data, groups) = (&dataset.inner, groups(once));
    let support = support(allowed, data.tokens(), scorer.inner.layout().labels)?;
    let found = run(py, n_jobs, || at_most_once::kbest(&scorer.inner, data, support.as_ref(), &groups, k))??;
    Ok(common::lists(found))
}

/// Marginals over the paths in which every group begins at most one span, [tokens, L], and log Z of each sentence, [N].
#[pyfunction]
#[pyo3(signature = (scorer, dataset, once, *, allowed = None, n_jobs = 0))]
fn once_marginals(
    py: Python<'_>,
    scorer: &PyScorer,
    dataset: &PyDataset,
    once: PyGroups,
    allowed: Option<PySupport>,
    n_jobs: usize,
) -> PyResult<Marginals> {
    let (data, groups) = (&dataset.inner, groups(once));
    let l = scorer.inner.layout().labels;
    let support = support(allowed, data.tokens(), l)?;
    let (p, log_z) = run(py, n_jobs, || at_most_once::marginals(&scorer.inner, data, support.as_ref(), &groups))??;
    Ok((Array2(p, [data.tokens(), l]), Array(log_z)))
}

/// Whether each sentence has a path within the label sets of its tokens and the allowed pairs [L, L]: [N].
#[pyfunction]
fn feasible(
    py: Python<'_>,
    offsets: Array<u64>,
    sets: Array2<bool>,
    of: Array<u32>,
    pairs: Array2<bool>,
) -> PyResult<Array<bool>> {
    let (offsets, of, Array2(sets, [n, l])) = (offsets.0, of.0, sets);
    let tokens = offsets.last().map_or(0, |&t| t as usize);
    let ordered = offsets.windows(2).all(|o| o[0] <= o[1]);
    if pairs.1 != [l, l] || of.len() != tokens || !ordered || of.iter().any(|&s| s as usize >= n) {
        return Err(Error::Value("offsets, sets and pairs do not fit each other".into()).into());
    }
    let found = run(py, 0, || chain::limits::support::feasible(&offsets, &sets, &of, &pairs.0, l))?;
    Ok(Array(found))
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add("NO_GROUP", chain::limits::at_most_once::NONE)?;
    m.add("ONCE_LISTS", PyTuple::new(m.py(), chain::limits::at_most_once::LISTS)?)?;
    m.add_function(wrap_pyfunction!(once_kbest, m)?)?;
    m.add_function(wrap_pyfunction!(once_marginals, m)?)?;
    m.add_function(wrap_pyfunction!(feasible, m)?)
}
