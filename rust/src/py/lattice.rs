//! Primitives on plain score arrays of one sentence.

use crate::chain::sums::log64::Trellis;
use crate::chain::viterbi::double::Viterbi64;
use crate::chain::viterbi::kbest;

use crate::chain::lattice::Scores;
use crate::error::{Error, Result};
use crate::machine::system::budget;
use crate::py::arrays::{Array, Array2};
use crate::py::common::run;
use numpy::{PyArray1, PyArray3, PyArrayMethods, PyReadonlyArrayDyn};
use pyo3::prelude::*;

/// Node scores [T, L] and edge scores [L, L] or [T, L, L], checked against each other.
pub fn scores(
    Array2(node, [t, l]): Array2<f64>,
    edge: &PyReadonlyArrayDyn<'_, f64>,
) -> Result<(usize, Vec<f64>, Vec<f64>)> {
    let shape = edge.as_array().shape().to_vec();
    if l == 0 || (shape != [l, l] && shape != [t, l, l]) {
        return Err(Error::Value(format!(
            "node scores of shape [{t}, {l}] need edge scores of shape [{l}, {l}] or [{t}, {l}, {l}], got {shape:?}"
        )));
    }
    let edge: Vec<f64> = edge.as_array().iter().copied().collect();
    if node.iter().chain(&edge).any(|x| x.is_nan() || *x == f64::INFINITY) {
        return Err(Error::Value("a score is NaN or +infinity; scores are finite, or -infinity to forbid".into()));
    }
    Ok((l, node, edge))
}

fn no_path() -> Error {
    Error::Value("no label sequence is allowed by these scores".into())
}

/// log Z, node marginals [T, L] and pair marginals [T, L, L] (block t is the step from t-1 to t, block 0 is zero).
#[pyfunction]
#[allow(clippy::type_complexity)]
fn chain_marginals<'py>(
    py: Python<'py>,
    node: Array2<f64>,
    edge: PyReadonlyArrayDyn<'_, f64>,
) -> PyResult<(f64, Array2<f64>, Bound<'py, PyArray3<f64>>)> {
    let (l, node, edge) = scores(node, &edge)?;
    let n = node.len() / l;
    let (log_z, p, pairs) = run(py, 1, || {
        let scores = Scores { labels: l, node: &node, edge: &edge };
        let mut trellis = Trellis::default();
        trellis.forward(&scores);
        trellis.backward(&scores);
        let p: Vec<f64> = (0..node.len()).map(|at| trellis.node_marginal(at)).collect();
        let mut pairs = vec![0.0; n * l * l];
        for t in 1..n {
            trellis.add_pairs(&scores, t, 1.0, &mut pairs[t * l * l..(t + 1) * l * l]);
        }
        (trellis.log_z, p, pairs)
    })?;
    if log_z == f64::NEG_INFINITY {
        return Err(no_path().into());
    }
    Ok((log_z, Array2(p, [n, l]), PyArray1::from_vec(py, pairs).reshape([n, l, l])?))
}

/// log Z alone.
#[pyfunction]
fn chain_log_partition(py: Python<'_>, node: Array2<f64>, edge: PyReadonlyArrayDyn<'_, f64>) -> PyResult<f64> {
    let (l, node, edge) = scores(node, &edge)?;
    run(py, 1, || Trellis::default().forward(&Scores { labels: l, node: &node, edge: &edge }))
}

/// Best path [T] and its score. Ties go to the lower label.
#[pyfunction]
fn chain_viterbi(py: Python<'_>, node: Array2<f64>, edge: PyReadonlyArrayDyn<'_, f64>) -> PyResult<(f64, Array<u16>)> {
    let (l, node, edge) = scores(node, &edge)?;
    let mut path = Vec::new();
    let score = run(py, 1, || Viterbi64::default().run(&Scores { labels: l, node: &node, edge: &edge }, &mut path))?;
    if score == f64::NEG_INFINITY {
        return Err(no_path().into());
    }
    Ok((score, Array(path)))
}

type Ranked = (f64, Array<u16>);

/// The k best paths of one sentence as (score, labels [T]), best first, or all paths if fewer are allowed.
#[pyfunction]
fn chain_kbest(
    py: Python<'_>,
    node: Array2<f64>,
    edge: PyReadonlyArrayDyn<'_, f64>,
    k: usize,
) -> PyResult<Vec<Ranked>> {
    let (l, node, edge) = scores(node, &edge)?;
    let what = format!("a list of {k} paths");
    budget::claim(&what, kbest::bytes(l, node.len() / l, k), "use a smaller k")?;
    let found = run(py, 1, || kbest::kbest(&Scores { labels: l, node: &node, edge: &edge }, k))?;
    Ok(found.into_iter().map(|(score, path)| (score, Array(path))).collect())
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(chain_marginals, m)?)?;
    m.add_function(wrap_pyfunction!(chain_log_partition, m)?)?;
    m.add_function(wrap_pyfunction!(chain_viterbi, m)?)?;
    m.add_function(wrap_pyfunction!(chain_kbest, m)?)
}
