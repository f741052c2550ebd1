//! What the machine offers: vector instructions chosen at run time, memory shared by threads, model files, fixed random orders.

pub mod container;
pub mod force;
pub mod shared;
pub mod shuffle;
pub mod simd;
pub mod vector;
