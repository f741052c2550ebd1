//! Losses that are summed over all sentences: loss, terms, one sentence alone, a pass, the objective.

pub mod descent;
pub mod fallback64;
pub mod loss;
pub mod objective;
pub mod order;
pub mod pass;
pub mod terms;
pub mod total;
