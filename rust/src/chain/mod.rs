//! One sentence as a chain of scores. This module does not depend on features, weights or losses.
//!
//! - `sums`: log partition, marginals and the derivatives of losses
//! - `viterbi`: the best path and the k best paths
//! - `lists`: edges between many labels, most of which have the same score
//! - `limits`: paths and labels that are allowed
//! - `lookback`: the search with features on labels further back
//! - `emissions`: sums and best paths of chains whose node scores are given as one array

pub mod edges;
pub mod emissions;
pub mod lattice;
pub mod limits;
pub mod lists;
pub mod lookback;
pub mod sums;
pub mod viterbi;
