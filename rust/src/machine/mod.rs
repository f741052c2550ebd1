//! The machine: `simd` has vector instructions chosen at run time, `system` has memory, threads, files and fixed random
//! orders.

pub mod simd;
pub mod system;
