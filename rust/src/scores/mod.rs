//! Dataset times weights: four layouts of one product. `nodes` for passes over a corpus, `table` for a model that tags,
//! `cells` for steps of one sentence, `kernel` where support tokens stand in place of weights.

pub mod check;
pub mod corpus_layout;
pub mod document;
pub mod kernel;
pub mod online_layout;
pub mod scorer;
pub mod sentence;
pub mod tagging_layout;
pub mod tile;
