//! What the machine offers: vector instructions chosen at run time, memory and threads that are shared, calls that stop,
//! model files, fixed random orders, enumerations by name.

pub mod budget;
pub mod container;
pub mod dispatch;
pub mod double;
pub mod driver;
pub mod environment;
pub mod find;
pub mod force;
pub mod hash;
pub mod lazy;
pub mod names;
pub mod on_write;
pub mod paged;
pub mod pages;
pub mod shared;
pub mod shuffle;
pub mod simd;
pub mod stop;
pub mod threads;
pub mod vector;
#[cfg(target_arch = "x86_64")]
pub mod x86;
