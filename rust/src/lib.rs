//! Native core of tagwise, one room a floor, in the order of the line: a room uses only what stands above it.
//! `error` is for all; `py` alone knows Python.
pub mod error;

// The machine: vector instructions, files in memory, numbers drawn in a fixed order. Knows nothing of language.
pub mod machine;

// Sentences to attributes.
pub mod features;

// Scores of one sentence to paths and sums over paths. Knows neither features nor losses.
pub mod chain;

// Attributes to ids in flat arrays; where a weight lies.
pub mod dataset;

// Dataset times weights: the scores that the chain reads, and the transpose.
pub mod scores;

// Scores and gold to weights.
pub mod learners;

// Scores to labels.
pub mod decoding;

// Model files of other programs, used as they lie.
pub mod foreign;

// The Python surface.
#[cfg(feature = "python")]
mod py;
