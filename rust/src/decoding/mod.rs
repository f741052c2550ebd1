//! Decoding: best paths, k-best lists, probabilities.

pub mod best;
pub mod chunks;
pub mod kernel;
pub mod lists;
pub mod lookback;
pub mod once;
pub mod order;
