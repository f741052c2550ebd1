//! Arrays in files, as a Python object.

use crate::error::Error;
use crate::machine::system::paged::Paged;
use pyo3::prelude::*;

/// Large arrays that are made inside the `with` block lie in files of a folder, and not in the memory of the process.
#[pyclass(name = "Paged", module = "tagwise._core", frozen)]
pub struct PyPaged {
    inner: Paged,
}

#[pymethods]
impl PyPaged {
    #[new]
    fn new(folder: std::path::PathBuf) -> Self {
        PyPaged { inner: Paged::new(folder) }
    }

    fn __enter__(slf: Py<Self>) -> PyResult<Py<Self>> {
        match slf.get().inner.open() {
            true => Ok(slf),
            false => Err(Error::Value("another Paged is open; close it before this one is opened".into()).into()),
        }
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, _exception: &Bound<'_, pyo3::types::PyTuple>) {
        self.inner.close();
    }

    /// Bytes in files.
    #[getter]
    fn n_bytes(&self) -> usize {
        self.inner.bytes()
    }

    /// Let the system have the memory back; what it holds stays in the files.
    fn release(&self) {
        self.inner.release();
    }

    /// Ask the system to read what will be needed soon.
    fn ahead(&self) {
        self.inner.ahead();
    }
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PyPaged>()
}
