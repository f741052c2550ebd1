//! Kernels of a GPU.

use crate::error::Error;
use crate::machine::system::driver::{CudaKernel, MOST};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// A kernel of a GPU: `call` is where the driver's cuLaunchKernel lies, `function` the kernel's handle. Both must stay what
/// they are while it lives, and nobody can check addresses: for `tagwise.torch` alone. Every argument is 64 bits wide.
#[pyclass(name = "_Launch", module = "tagwise._core", frozen)]
pub struct PyLaunch {
    kernel: CudaKernel,
}

#[pymethods]
impl PyLaunch {
    #[new]
    fn new(call: usize, function: usize) -> PyResult<PyLaunch> {
        // SAFETY: what the caller promises.
        let kernel = unsafe { CudaKernel::new(call, function) };
        let kernel = kernel.ok_or_else(|| Error::Value("a driver without cuLaunchKernel".into()))?;
        Ok(PyLaunch { kernel })
    }

    /// Launches blocks of so many threads on a stream; answers the driver's error, 0 for none.
    #[pyo3(signature = (grid, block, stream, /, *arguments))]
    fn __call__(
        &self,
        py: Python<'_>,
        grid: (u32, u32, u32),
        block: u32,
        stream: usize,
        arguments: &Bound<'_, PyTuple>,
    ) -> PyResult<i32> {
        let (mut room, many) = ([0i64; MOST], arguments.len());
        if many > MOST {
            return Err(Error::Value(format!("a kernel of {many} arguments: at most {MOST}")).into());
        }
        for (place, argument) in room.iter_mut().zip(arguments.iter_borrowed()) {
            *place = argument.extract()?;
        }
        let (x, y, z) = grid;
        // SAFETY: what the caller promises. A full stream lets the driver wait: others may work meanwhile.
        Ok(py.detach(|| unsafe { self.kernel.launch([x, y, z], block, stream, &mut room[..many]) }))
    }
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PyLaunch>()
}
