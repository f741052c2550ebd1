//! Machine-dependent code: `simd` selects vector instructions at run time, `system` has memory, threads, files and
//! reproducible random orders.

pub mod simd;
pub mod system;
