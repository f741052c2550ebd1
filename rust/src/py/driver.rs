//! Launching GPU kernels.

use crate::error::Error;
use crate::machine::system::driver::{CudaKernel, MAX_ARGUMENTS};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// A GPU kernel. `call` is the address of the driver's cuLaunchKernel and `function` the handle of the kernel. Both
/// must stay valid while the object exists. Addresses cannot be checked, so only `tagwise.torch` may use this class.
/// Every argument is 64 bits wide.
#[pyclass(name = "_Launch", module = "tagwise._core", frozen)]
pub struct PyLaunch {
    kernel: CudaKernel,
}

#[pymethods]
impl PyLaunch {
    #[new]
    fn new(call: usize, function: usize) -> PyResult<PyLaunch> {
        // SAFETY: guaranteed by the caller.
        let kernel = unsafe { CudaKernel::new(call, function) };
        let kernel = kernel.ok_or_else(|| Error::Value("a driver without cuLaunchKernel".into()))?;
        Ok(PyLaunch { kernel })
    }

    /// Launch blocks of `block` threads on a stream. Return the driver's error code, 0 for success.
    #[pyo3(signature = (grid, block, stream, /, *arguments))]
    fn __call__(
        &self,
        py: Python<'_>,
        grid: (u32, u32, u32),
        block: u32,
        stream: usize,
        arguments: &Bound<'_, PyTuple>,
    ) -> PyResult<i32> {
        let (mut values, count) = ([0i64; MAX_ARGUMENTS], arguments.len());
        if count > MAX_ARGUMENTS {
            return Err(Error::Value(format!("a kernel of {count} arguments: at most {MAX_ARGUMENTS}")).into());
        }
        for (value, argument) in values.iter_mut().zip(arguments.iter_borrowed()) {
            *value = argument.extract()?;
        }
        let (x, y, z) = grid;
        // SAFETY: guaranteed by the caller. The driver blocks while the stream is full, so the GIL is released.
        Ok(py.detach(|| unsafe { self.kernel.launch([x, y, z], block, stream, &mut values[..count]) }))
    }
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PyLaunch>()
}
