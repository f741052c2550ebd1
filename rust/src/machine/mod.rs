//! What the machine offers: vector instructions chosen at run time, memory shared by threads, model files, fixed random orders,
//! enumerations by name.

pub mod container;
pub mod dispatch;
pub mod find;
pub mod force;
pub mod hash;
pub mod names;
pub mod shared;
pub mod shuffle;
pub mod simd;
pub mod vector;
#[cfg(target_arch = "x86_64")]
pub mod x86;
