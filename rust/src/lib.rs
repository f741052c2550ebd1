//! Native core of tagwise. Data moves one way: vocab -> dataset -> weights -> lattice -> chain -> objective / predict;
//! `py` alone knows Python.
pub mod chain;
pub mod chart;
pub mod container;
pub mod crfpp;
pub mod dataset;
pub mod error;
pub mod extract;
pub mod general;
pub mod kbest;
pub mod lattice;
pub mod lists;
pub mod objective;
pub mod online;
pub mod parse;
pub mod plan;
pub mod predict;
#[cfg(feature = "python")]
mod py;
pub mod shared;
pub mod simd;
pub mod template;
pub mod text;
pub mod tokens;
pub mod vocab;
pub mod weights;
