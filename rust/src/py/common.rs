//! Functions and types that all entry points share: calls, supports, groups.

use crate::chain::limits::at_most_once::Groups;
use crate::chain::limits::support::Support;
use crate::decoding;
use crate::error::{Error, Result};
use crate::machine::simd::dispatch;
use crate::machine::system::budget;
use crate::machine::system::environment;
use crate::machine::system::stop::Stopped;
use crate::machine::system::testing::{count, is_forced, CodePath, PathCount};
use crate::machine::system::threads;
use crate::py::arrays::{Array, Array2};
use crate::py::stop::stop_of_call;
use numpy::{PyReadonlyArray1, PyReadwriteArray1};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::any::Any;
use std::collections::HashMap;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::mpsc::{channel, RecvTimeoutError};
use std::time::Duration;

pub type In<'py> = PyReadonlyArray1<'py, f64>;

pub type Out<'py> = PyReadwriteArray1<'py, f64>;

/// Interval at which a long call checks for signals.
const SIGNAL_INTERVAL: Duration = Duration::from_millis(50);

/// Run `work` on `n_jobs` threads (0: one per core) without the GIL. Every entry point that computes uses this
/// function.
///
/// The calling thread waits and lets Python handle signals. An exception of a handler (Ctrl-C) stops the work at its
/// next check (`machine::system::stop`) and becomes the result. Another thread stops the work in the same way through
/// the `Stop` whose block the calling thread is in. A panic becomes an InternalError.
pub fn run<R: Send>(py: Python<'_>, n_jobs: usize, work: impl FnOnce() -> R + Send) -> PyResult<R> {
    match attempt(py, n_jobs, work)? {
        (_, Some(error)) => Err(error),
        (Some(answer), None) => Ok(answer),
        (None, None) => Err(Error::Stopped.into()),
    }
}

/// Like `run`, for work whose partial result is useful: return the result, if any, and the exception of a signal
/// handler.
pub fn attempt<R: Send>(
    py: Python<'_>,
    n_jobs: usize,
    work: impl FnOnce() -> R + Send,
) -> PyResult<(Option<R>, Option<PyErr>)> {
    let (stop, mut answer, mut raised) = (stop_of_call()?, None, None);
    py.detach(|| -> Result<()> {
        let lent = threads::lend(n_jobs)?;
        let (done_signal, finished) = channel::<()>();
        lent.pool().in_place_scope(|scope| {
            let (stop_here, answer) = (stop.clone(), &mut answer);
            scope.spawn(move |_| {
                let _done_signal = done_signal; // dropped when the work is done, which ends the wait
                *answer = Some(catch_unwind(AssertUnwindSafe(|| {
                    let _guard = stop_here.enter();
                    work()
                })));
            });
            while let Err(RecvTimeoutError::Timeout) = finished.recv_timeout(SIGNAL_INTERVAL) {
                if raised.is_none() {
                    raised = Python::attach(|py| py.check_signals()).err();
                    raised.iter().for_each(|_| stop.request());
                }
            }
        });
        Ok(())
    })?;
    match answer {
        Some(Err(payload)) if !payload.is::<Stopped>() => Err(defect(&*payload).into()),
        Some(Ok(answer)) => Ok((Some(answer), raised)),
        _ => Ok((None, raised)),
    }
}

/// Maximum number of steps, of about a nanosecond each, of work that runs on the calling thread. Passing work to
/// another thread and waiting takes a tenth of a millisecond, and much more if other processes use the cores. Signals
/// are handled only after such work.
const MAX_STEPS_IN_PLACE: usize = 2_000_000;
/// Maximum number of steps for which the GIL is kept. Reacquiring it takes milliseconds if other threads want it.
const MAX_STEPS_WITH_GIL: usize = 200_000;

/// Like `run`, for work of about `steps` steps. Short work stays on the calling thread.
pub fn run_of<R: Send>(py: Python<'_>, n_jobs: usize, steps: usize, work: impl FnOnce() -> R + Send) -> PyResult<R> {
    if steps > MAX_STEPS_IN_PLACE || is_forced(CodePath::Handed) {
        return run(py, n_jobs, work);
    }
    let Some(pool) = threads::current_thread_pool() else { return run(py, n_jobs, work) };
    stop_of_call()?;
    count(PathCount::Here, 1);
    let work = || catch_unwind(AssertUnwindSafe(|| pool.install(work)));
    let done = if steps <= MAX_STEPS_WITH_GIL { work() } else { py.detach(work) };
    done.map_err(|payload| defect(&*payload).into())
}

/// Run short work that needs no threads. A panic becomes an InternalError.
pub fn guard<R>(work: impl FnOnce() -> PyResult<R>) -> PyResult<R> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|payload| Err(defect(&*payload).into()))
}

/// Convert the payload of a panic to an error.
pub fn defect(payload: &(dyn Any + Send)) -> Error {
    let text = payload.downcast_ref::<&str>().map(|s| s.to_string()).or_else(|| payload.downcast_ref().cloned());
    let text: String = text.unwrap_or_else(|| "no message".into());
    Error::Internal(format!("a defect of tagwise's core: {text}; please report it with what led to it"))
}

/// Allowed label sets: `sets` [sets, L] of bool, `of` [tokens] the set of each token.
pub type PySupport = (Array2<bool>, Array<u32>);

pub fn support(given: Option<PySupport>, tokens: usize, labels: usize) -> PyResult<Option<Support>> {
    let Some((Array2(sets, [n, width]), of)) = given else { return Ok(None) };
    Ok(Some(Support::new(sets, (n, width), of.0, labels, tokens)?))
}

/// Labels that may occur once: `group` [L], 2^32 - 1 for no group, and `begins` [L + 1, L], whether a span begins
/// between two labels.
pub type PyGroups = (Array<u32>, Array2<bool>);

pub fn groups((group, begins): PyGroups) -> Groups {
    Groups { of: group.0, begins: begins.0 }
}

/// Counts [N], scores [paths] and labels [sum of the paths' lengths].
pub type PyLists = (Array<u32>, Array<f64>, Array<u16>);

pub fn lists(found: decoding::lists::PathLists) -> PyLists {
    (Array(found.counts), Array(found.scores), Array(found.labels))
}

/// Raise MemoryLimitError if `bytes` exceed the memory budget. `what` names the data and `remedy` the solution, for
/// the message.
#[pyfunction]
fn claim(what: &str, bytes: usize, remedy: &str) -> PyResult<()> {
    Ok(budget::claim(what, bytes, remedy)?)
}

/// For tests: force these code paths (names separated by commas) wherever the core may choose. Return the names forced
/// before.
#[pyfunction]
#[pyo3(signature = (paths = ""))]
fn force(paths: &str) -> PyResult<String> {
    Ok(crate::machine::system::testing::force(paths)?)
}

/// For tests: return how often each code path was taken since the last call.
#[pyfunction]
fn path_counts() -> HashMap<&'static str, u64> {
    crate::machine::system::testing::COUNTER_NAMES
        .into_iter()
        .zip(crate::machine::system::testing::take_counts())
        .filter(|(_, n)| *n > 0)
        .collect()
}

/// Export an enumeration of the core as a tuple of names, its only declaration for Python.
pub fn add_names(m: &Bound<'_, PyModule>, as_what: &str, names: impl Iterator<Item = &'static str>) -> PyResult<()> {
    m.add(as_what, PyTuple::new(m.py(), names.collect::<Vec<_>>())?)
}

/// Export an enumeration as a tuple of pairs: each name and its data.
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
    m.add_function(wrap_pyfunction!(path_counts, m)?)?;
    m.add_function(wrap_pyfunction!(claim, m)?)?;
    environment::check()?;
    m.add("SIMD", format!("{:?}", dispatch::level()).to_lowercase())
}
