//! Regular expressions over tokens, as a Python object.

use crate::features::token_regex::TokenRegex;
use crate::py::common::guard;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString};

/// A compiled regular expression that matches tokens as a whole.
#[pyclass(name = "TokenRegex", module = "tagwise._core", frozen)]
pub struct PyTokenRegex {
    inner: TokenRegex,
}

#[pymethods]
impl PyTokenRegex {
    #[new]
    #[pyo3(signature = (pattern, ignore_case = false))]
    fn new(pattern: &str, ignore_case: bool) -> PyResult<Self> {
        guard(|| Ok(PyTokenRegex { inner: TokenRegex::new(pattern, ignore_case)? }))
    }

    /// Return "1" for each token that matches, "" for the others and for objects that are not valid text.
    fn column<'py>(&self, tokens: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        let (py, out) = (tokens.py(), PyList::empty(tokens.py()));
        let (yes, no) = (intern!(py, "1"), intern!(py, ""));
        guard(|| {
            for token in tokens.try_iter()? {
                let token = token?;
                let text = token.cast::<PyString>().ok().and_then(|token| token.to_str().ok());
                out.append(if text.is_some_and(|text| self.inner.matches(text)) { yes } else { no })?;
            }
            Ok(out)
        })
    }
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PyTokenRegex>()
}
