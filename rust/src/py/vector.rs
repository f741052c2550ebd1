//! Vector arithmetic and the limited-memory inverse Hessian.

use crate::error::Error;
use crate::machine::simd::vector::{self, CurvaturePairs};
use crate::py::common::{run, In, Out};
use numpy::PyReadonlyArray1;
use pyo3::prelude::*;

fn same(lengths: &[usize]) -> PyResult<()> {
    if lengths.windows(2).any(|n| n[0] != n[1]) {
        return Err(Error::Value(format!("vectors of different lengths: {lengths:?}")).into());
    }
    Ok(())
}

/// Inner product of two vectors.
#[pyfunction]
#[pyo3(signature = (a, b, n_jobs = 0))]
fn dot(py: Python<'_>, a: In<'_>, b: In<'_>, n_jobs: usize) -> PyResult<f64> {
    let (a, b) = (a.as_slice()?, b.as_slice()?);
    same(&[a.len(), b.len()])?;
    run(py, n_jobs, || vector::dot(a, b))
}

/// out = a + step * b.
#[pyfunction]
#[pyo3(signature = (a, step, b, out, n_jobs = 0))]
fn add_scaled(py: Python<'_>, a: In<'_>, step: f64, b: In<'_>, mut out: Out<'_>, n_jobs: usize) -> PyResult<()> {
    let (a, b, out) = (a.as_slice()?, b.as_slice()?, out.as_slice_mut()?);
    same(&[a.len(), b.len(), out.len()])?;
    run(py, n_jobs, || vector::add_scaled(a, step, b, out))
}

/// Add 2 c w to the gradient and return c ||w||^2.
#[pyfunction]
#[pyo3(signature = (w, c, gradient, n_jobs = 0))]
fn add_ridge(py: Python<'_>, w: In<'_>, c: f64, mut gradient: Out<'_>, n_jobs: usize) -> PyResult<f64> {
    let (w, gradient) = (w.as_slice()?, gradient.as_slice_mut()?);
    same(&[w.len(), gradient.len()])?;
    run(py, n_jobs, || vector::add_ridge(w, c, gradient))
}

/// Limited-memory inverse Hessian.
#[pyclass(name = "CurvaturePairs", module = "tagwise._core")]
pub struct PyCurvaturePairs {
    inner: CurvaturePairs,
    size: Option<usize>, // from the scale, or from the first pair
    n_jobs: usize,
}

#[pymethods]
impl PyCurvaturePairs {
    #[new]
    #[pyo3(signature = (memory, n_jobs = 0, scale = None))]
    fn new(memory: usize, n_jobs: usize, scale: Option<PyReadonlyArray1<'_, f32>>) -> Self {
        let scale = scale.map(|d| d.as_array().to_vec());
        PyCurvaturePairs { size: scale.as_ref().map(Vec::len), inner: CurvaturePairs::new(memory, scale), n_jobs }
    }

    /// Number of pairs remembered.
    fn __len__(&self) -> usize {
        self.inner.len()
    }

    /// Remove all pairs.
    fn clear(&mut self) {
        self.inner.clear();
    }

    /// Store the step from (w0, g0) to (w1, g1). Return False, with the step skipped, if its curvature is not
    /// positive.
    fn push(&mut self, py: Python<'_>, w0: In<'_>, w1: In<'_>, g0: In<'_>, g1: In<'_>) -> PyResult<bool> {
        let (w0, w1, g0, g1) = (w0.as_slice()?, w1.as_slice()?, g0.as_slice()?, g1.as_slice()?);
        same(&[w0.len(), w1.len(), g0.len(), g1.len(), self.size.unwrap_or(w0.len())])?;
        self.size = Some(w0.len());
        let (n_jobs, inner) = (self.n_jobs, &mut self.inner);
        run(py, n_jobs, || inner.push(w0, w1, g0, g1))
    }

    /// Write direction = -H g and return the directional derivative g . direction.
    fn direction(&self, py: Python<'_>, g: In<'_>, mut direction: Out<'_>) -> PyResult<f64> {
        let (g, direction) = (g.as_slice()?, direction.as_slice_mut()?);
        same(&[g.len(), direction.len(), self.size.unwrap_or(g.len())])?;
        run(py, self.n_jobs, || self.inner.direction(g, direction))
    }

    /// Return the inner products of the changes of the gradient with each other [m * m] and with g [m].
    fn gradient_products(&self, py: Python<'_>, g: In<'_>) -> PyResult<(Vec<f64>, Vec<f64>)> {
        let g = g.as_slice()?;
        same(&[g.len(), self.size.unwrap_or(g.len())])?;
        run(py, self.n_jobs, || self.inner.gradient_products(g))
    }

    /// Write out = w - sum_i c_i s_i with the steps s_i.
    fn subtract_steps(&self, py: Python<'_>, w: In<'_>, c: Vec<f64>, mut out: Out<'_>) -> PyResult<()> {
        let (w, out) = (w.as_slice()?, out.as_slice_mut()?);
        same(&[w.len(), out.len(), self.size.unwrap_or(w.len())])?;
        same(&[c.len(), self.inner.len()])?;
        run(py, self.n_jobs, || self.inner.subtract_steps(w, &c, out))
    }
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PyCurvaturePairs>()?;
    m.add_function(wrap_pyfunction!(dot, m)?)?;
    m.add_function(wrap_pyfunction!(add_scaled, m)?)?;
    m.add_function(wrap_pyfunction!(add_ridge, m)?)
}
