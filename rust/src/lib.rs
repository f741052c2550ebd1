//! Native core of tagwise. Data moves one way: vocab -> dataset -> weights -> lattice -> chain -> objective; `py` alone
//! knows Python.
pub mod container;
pub mod dataset;
pub mod error;
#[cfg(feature = "python")]
mod py;
pub mod vocab;
