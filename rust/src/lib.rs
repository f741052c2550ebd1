//! Native core of tagwise. Data moves one way: vocab -> dataset -> weights -> lattice -> chain -> objective; `py` alone
//! knows Python.
pub mod container;
pub mod crfpp;
pub mod dataset;
pub mod error;
pub mod extract;
pub mod parse;
mod py;
pub mod template;
pub mod text;
pub mod tokens;
pub mod vocab;
