//! Dataset times weights, in four layouts of one product: `corpus_layout` for passes over a corpus, `tagging_layout`
//! for tagging with a model, `online_layout` for steps of one sentence, and `kernel` for support tokens instead of
//! weights.

pub mod check;
pub mod corpus_layout;
pub mod document;
pub mod kernel;
pub mod online_layout;
pub mod scorer;
pub mod sentence;
pub mod tagging_layout;
pub mod tile;
