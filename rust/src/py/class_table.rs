//! Classes of words for templates, as a Python object.

use crate::features::class_table::{normalized, ClassTable};
use crate::py::common::guard;
use pyo3::prelude::*;
use std::sync::Arc;

/// Words, shapes of unknown words, and the path of the class of each.
#[pyclass(name = "ClassTable", module = "tagwise._core", frozen)]
pub struct PyClassTable {
    pub inner: Arc<ClassTable>,
}

/// Paths, words and shapes of each class, and whether case is ignored.
type Arguments = (Vec<String>, Vec<Vec<String>>, Vec<Vec<String>>, bool);

#[pymethods]
impl PyClassTable {
    #[new]
    fn new(
        paths: Vec<String>,
        members: Vec<Vec<String>>,
        shapes: Vec<Vec<String>>,
        ignore_case: bool,
    ) -> PyResult<Self> {
        guard(|| Ok(PyClassTable { inner: Arc::new(ClassTable::new(paths, &members, &shapes, ignore_case)?) }))
    }

    /// Number of the class of a word, or None.
    fn get(&self, word: &str) -> Option<usize> {
        self.inner.class(word)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> (Bound<'py, PyAny>, Arguments) {
        (py.get_type::<PyClassTable>().into_any(), self.inner.arguments())
    }
}

/// Words as they are counted and looked up: digits become 0, and letters lower case if case is ignored.
#[pyfunction]
fn normalized_words(words: Vec<String>, ignore_case: bool) -> PyResult<Vec<String>> {
    guard(|| {
        let each = |word: &String| {
            let mut out = String::new();
            normalized(word, ignore_case, &mut out);
            out
        };
        Ok(words.iter().map(each).collect())
    })
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(normalized_words, m)?)?;
    m.add_class::<PyClassTable>()
}
