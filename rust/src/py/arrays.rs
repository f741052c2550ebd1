//! Arrays of NumPy as arguments and results of calls. An argument is copied, and a result takes over the numbers.

use numpy::{Element, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use std::convert::Infallible;

/// Array [n].
#[derive(Clone)]
pub struct Array<T>(pub Vec<T>);

impl<T> Default for Array<T> {
    fn default() -> Array<T> {
        Array(Vec::new())
    }
}

impl<'py, T: Element + Clone> FromPyObject<'_, 'py> for Array<T> {
    type Error = PyErr;
    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Array<T>> {
        Ok(Array(object.extract::<PyReadonlyArray1<'py, T>>()?.as_array().to_vec()))
    }
}

impl<'py, T: Element> IntoPyObject<'py> for Array<T> {
    type Target = PyArray1<T>;
    type Output = Bound<'py, PyArray1<T>>;
    type Error = Infallible;
    fn into_pyobject(self, py: Python<'py>) -> Result<Self::Output, Infallible> {
        Ok(PyArray1::from_vec(py, self.0))
    }
}

/// Array of two dimensions, row by row, and its shape.
#[derive(Clone)]
pub struct Array2<T>(pub Vec<T>, pub [usize; 2]);

impl<'py, T: Element + Clone> FromPyObject<'_, 'py> for Array2<T> {
    type Error = PyErr;
    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Array2<T>> {
        let array = object.extract::<PyReadonlyArray2<'py, T>>()?;
        let (rows, columns) = array.as_array().dim();
        Ok(Array2(array.as_array().iter().cloned().collect(), [rows, columns]))
    }
}

impl<'py, T: Element> IntoPyObject<'py> for Array2<T> {
    type Target = PyArray2<T>;
    type Output = Bound<'py, PyArray2<T>>;
    type Error = PyErr;
    fn into_pyobject(self, py: Python<'py>) -> PyResult<Self::Output> {
        PyArray1::from_vec(py, self.0).reshape(self.1)
    }
}
