//! Regular expressions of Wapiti's patterns, as a Python object.

use crate::features::wapiti::Regex;
use crate::py::common::run_of;
use pyo3::prelude::*;

/// A compiled expression.
#[pyclass(name = "WapitiRegex", module = "tagwise._core", frozen)]
pub struct PyWapitiRegex {
    inner: Regex,
}

#[pymethods]
impl PyWapitiRegex {
    #[new]
    fn new(source: &[u8]) -> PyResult<Self> {
        Ok(PyWapitiRegex { inner: Regex::new(source)? })
    }

    /// Start of the leftmost match and the length that Wapiti counts for it, or None if nothing matches.
    fn find(&self, py: Python<'_>, text: &[u8]) -> PyResult<Option<(usize, u64)>> {
        run_of(py, 1, 4 * self.inner.steps(text), || self.inner.find(text))
    }
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PyWapitiRegex>()
}
