//! One sentence as a chain of scores: log partition, marginals, best path, k best paths. Nothing here knows of features,
//! weights or losses.

pub mod batch;
pub mod beside;
pub mod best;
pub mod chart;
pub mod edges;
pub mod entities;
pub mod kbest;
pub mod lanes;
pub mod lattice;
pub mod limits;
pub mod log;
pub mod lookback;
pub mod narrow;
pub mod once;
pub mod order;
pub mod pointwise;
pub(crate) mod precise;
pub mod renormalize;
pub mod sparse;
pub mod support;
pub mod underflow;
