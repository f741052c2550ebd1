//! k-best lists: of one sentence's scores, and of a corpus.

use crate::chain::kbest;
use crate::chain::log::Scores;
use crate::decoding::lists;
use crate::py::encode::PyDataset;
use crate::py::lattice::scores;
use crate::py::objective::{pool, support, PyScorer, PySupport};
use numpy::{PyArray1, PyReadonlyArray2, PyReadonlyArrayDyn};
use pyo3::prelude::*;

type Ranked<'py> = (f64, Bound<'py, PyArray1<u16>>);

/// The k best paths of one sentence as (score, labels [T]), best first; fewer where fewer are allowed.
#[pyfunction]
fn chain_kbest<'py>(
    py: Python<'py>,
    node: PyReadonlyArray2<'_, f64>,
    edge: PyReadonlyArrayDyn<'_, f64>,
    k: usize,
) -> PyResult<Vec<Ranked<'py>>> {
    let (l, node, edge) = scores(&node, &edge)?;
    let found = py.detach(|| kbest::kbest(&Scores { labels: l, node: &node, edge: &edge }, k));
    Ok(found.into_iter().map(|(score, path)| (score, PyArray1::from_vec(py, path))).collect())
}

/// Counts [N], scores [paths] and labels [sum of the paths' lengths].
pub type Lists<'py> = (Bound<'py, PyArray1<u32>>, Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<u16>>);

/// `Scorer.kbest`.
pub fn scorer_kbest<'py>(
    py: Python<'py>,
    scorer: &PyScorer,
    dataset: &PyDataset,
    k: usize,
    allowed: Option<PySupport<'_>>,
    n_jobs: usize,
) -> PyResult<Lists<'py>> {
    let data = &dataset.inner;
    let (support, pool) = (support(allowed, data.tokens(), scorer.inner.layout().labels)?, pool(n_jobs)?);
    let found = py.detach(|| pool.install(|| lists::lists(&scorer.inner, data, support.as_ref(), k)))?;
    Ok((
        PyArray1::from_vec(py, found.counts),
        PyArray1::from_vec(py, found.scores),
        PyArray1::from_vec(py, found.labels),
    ))
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(chain_kbest, m)?)
}
