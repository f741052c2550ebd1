//! Decoding: best paths, k-best lists, probabilities.

pub mod at_most_once;
pub mod best;
pub mod chunks;
pub mod kernel;
pub mod lists;
pub mod lookback;
pub mod order;
