//! Launches of GPU kernels through the driver that PyTorch has loaded.
//!
//! Only the address of the driver function `cuLaunchKernel` is needed, so nothing is linked. The overhead between
//! a call in Python and a kernel is paid at every step of training.

use std::ffi::c_void;

/// Signature of `cuLaunchKernel`: kernel, grid x, y, z, block x, y, z, bytes of shared memory, stream, addresses of the
/// arguments, extra options.
type Call = unsafe extern "system" fn(
    *mut c_void,
    u32,
    u32,
    u32,
    u32,
    u32,
    u32,
    u32,
    *mut c_void,
    *mut *mut c_void,
    *mut *mut c_void,
) -> i32;

/// Maximum number of arguments of a kernel.
pub const MAX_ARGUMENTS: usize = 64;

/// Kernel whose arguments are 64 bits wide each.
#[derive(Clone, Copy)]
pub struct CudaKernel {
    call: Call,
    function: usize,
}

impl CudaKernel {
    /// # Safety
    /// `call` is the address of the driver's `cuLaunchKernel` and `function` the handle of one of its kernels. Both
    /// stay valid while this value is alive.
    pub unsafe fn new(call: usize, function: usize) -> Option<CudaKernel> {
        let call: Option<Call> = std::mem::transmute(call);
        Some(CudaKernel { call: call?, function })
    }

    /// Launch `grid` blocks of `block` threads. Returns the error code of the driver, 0 for success. The driver has
    /// copied the arguments when the call returns.
    ///
    /// # Safety
    /// The arguments match the signature of the kernel, and `stream` belongs to its device or is 0.
    pub unsafe fn launch(&self, grid: [u32; 3], block: u32, stream: usize, arguments: &mut [i64]) -> i32 {
        debug_assert!(arguments.len() <= MAX_ARGUMENTS);
        let mut addresses = [std::ptr::null_mut::<c_void>(); MAX_ARGUMENTS];
        for (address, argument) in addresses.iter_mut().zip(arguments) {
            *address = std::ptr::from_mut(argument).cast();
        }
        let ([x, y, z], none) = (grid, std::ptr::null_mut());
        let (function, stream) = (self.function as *mut c_void, stream as *mut c_void);
        (self.call)(function, x, y, z, block, 1, 1, 0, stream, addresses.as_mut_ptr(), none)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    thread_local! {
        static RECEIVED: RefCell<Vec<i64>> = RefCell::default();
    }

    unsafe extern "system" fn record_launch(
        function: *mut c_void,
        x: u32,
        y: u32,
        z: u32,
        threads: u32,
        _: u32,
        _: u32,
        shared: u32,
        stream: *mut c_void,
        addresses: *mut *mut c_void,
        extra: *mut *mut c_void,
    ) -> i32 {
        assert!(extra.is_null() && shared == 0);
        let arguments = [0, 1, 2].map(|i| *(*addresses.add(i)).cast::<i64>());
        let received = [function as i64, x.into(), y.into(), z.into(), threads.into(), stream as i64];
        RECEIVED.set(received.into_iter().chain(arguments).collect());
        7
    }

    #[test]
    fn launch_passes_the_arguments_to_the_driver() {
        // SAFETY: `record_launch` is a function of that type, which takes three arguments.
        unsafe {
            assert!(CudaKernel::new(0, 5).is_none());
            let kernel = CudaKernel::new(record_launch as *const () as usize, 5).unwrap();
            assert_eq!(kernel.launch([2, 3, 4], 32, 9, &mut [-1, i64::MAX, 0]), 7);
        }
        assert_eq!(RECEIVED.take(), [5, 2, 3, 4, 32, 9, -1, i64::MAX, 0]);
    }
}
