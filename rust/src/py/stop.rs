//! Stop the calls of one thread from another.

use crate::error::{Error, Result};
use crate::machine::system::stop::Stop;
use pyo3::prelude::*;
use std::cell::RefCell;

thread_local! {
    static CURRENT: RefCell<Option<Stop>> = const { RefCell::new(None) };
}

/// Stop flag of a call that begins on this thread: that of the enclosing `Stop` block, or a new one.
pub fn stop_of_call() -> Result<Stop> {
    match CURRENT.with_borrow(Option::clone) {
        Some(stop) if stop.is_set() => Err(Error::Stopped),
        found => Ok(found.unwrap_or_default()),
    }
}

/// Work that another thread can stop. Inside the `with` block native calls of this thread, and `Stop.check`, raise
/// StoppedError after a call of `request`. Blocks do not nest.
#[pyclass(name = "Stop", module = "tagwise._core", frozen)]
#[derive(Default)]
pub struct PyStop {
    inner: Stop,
}

#[pymethods]
impl PyStop {
    #[new]
    fn new() -> Self {
        PyStop::default()
    }

    fn __enter__(slf: Py<Self>) -> PyResult<Py<Self>> {
        CURRENT.with_borrow_mut(|given| match given {
            Some(_) => Err(Error::Value("this thread is in the block of a Stop already".into()).into()),
            None => {
                *given = Some(slf.get().inner.clone());
                Ok(slf)
            }
        })
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, _exception: &Bound<'_, pyo3::types::PyTuple>) {
        CURRENT.set(None);
    }

    /// Stop the work, from any thread. Work that begins later stops immediately.
    fn request(&self) {
        self.inner.request();
    }

    /// Raise StoppedError if the work of this thread has been stopped. For loops in Python.
    #[staticmethod]
    fn check() -> PyResult<()> {
        Ok(stop_of_call().map(drop)?)
    }
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PyStop>()
}
