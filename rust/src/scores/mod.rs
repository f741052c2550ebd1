//! Dataset times weights: four layouts of one product. `nodes` for passes over a corpus, `table` for a model that tags,
//! `cells` for steps of one sentence, `kernel` where support tokens stand in place of weights.

pub mod cells;
pub mod check;
pub mod document;
pub mod kernel;
pub mod nodes;
pub mod scorer;
pub mod sentence;
pub mod table;
pub mod tile;
