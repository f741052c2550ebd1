//! Losses that are sums over all sentences: loss, terms, double-precision fallback, passes, objective.

pub mod descent;
pub mod fallback64;
pub mod loss;
pub mod objective;
pub mod order;
pub mod pass;
pub mod terms;
pub mod total;
