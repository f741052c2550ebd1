//! Scores to labels: best paths, lists of paths, probabilities.

pub mod chunks;
pub mod chunks_once;
pub mod kernel;
pub mod lists;
pub mod lookback;
pub mod order;
