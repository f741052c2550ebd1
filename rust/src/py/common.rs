//! Pools, supports, groups: what all entries share.

use crate::chain::once::Groups;
use crate::chain::support::Support;
use crate::decoding;
use crate::error::Error;
use numpy::{PyArray1, PyReadonlyArray1, PyReadonlyArray2, PyReadwriteArray1};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock};

pub type In<'py> = PyReadonlyArray1<'py, f64>;

pub type Out<'py> = PyReadwriteArray1<'py, f64>;

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
    let (sets, of) = (sets.as_array().iter().copied().collect(), of.as_array().to_vec());
    Ok(Some(Support::new(sets, shape, of, labels, tokens)?))
}

/// Labels that may occur once: `group` [L], 2^32 - 1 for none; `begins` [L + 1, L], whether a span begins between two.
pub type PyGroups<'py> = (PyReadonlyArray1<'py, u32>, PyReadonlyArray2<'py, bool>);

pub fn groups((group, begins): PyGroups<'_>) -> Groups {
    Groups { of: group.as_array().to_vec(), begins: begins.as_array().iter().copied().collect() }
}

/// Counts [N], scores [paths] and labels [sum of the paths' lengths].
pub type PyLists<'py> = (Bound<'py, PyArray1<u32>>, Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<u16>>);

pub fn lists(py: Python<'_>, found: decoding::lists::Lists) -> PyLists<'_> {
    (PyArray1::from_vec(py, found.counts), PyArray1::from_vec(py, found.scores), PyArray1::from_vec(py, found.labels))
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

/// An enumeration of the core as a tuple of names: what Python chooses from, declared nowhere else.
pub fn add_names(m: &Bound<'_, PyModule>, as_what: &str, names: impl Iterator<Item = &'static str>) -> PyResult<()> {
    m.add(as_what, PyTuple::new(m.py(), names.collect::<Vec<_>>())?)
}

/// The same with what belongs to each name.
pub fn add_pairs<'py, T: IntoPyObject<'py> + Copy + 'static>(
    m: &Bound<'py, PyModule>,
    as_what: &str,
    pairs: impl Iterator<Item = (&'static str, &'static [T])>,
) -> PyResult<()> {
    let tuple = |(name, more): (&'static str, &'static [T])| Ok((name, PyTuple::new(m.py(), more.iter().copied())?));
    m.add(as_what, PyTuple::new(m.py(), pairs.map(tuple).collect::<PyResult<Vec<_>>>()?)?)
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(force, m)?)?;
    m.add_function(wrap_pyfunction!(taken, m)?)?;
    m.add("SIMD", format!("{:?}", crate::machine::dispatch::level()).to_lowercase())
}
