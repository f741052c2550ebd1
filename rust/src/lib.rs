//! Native core of tagwise. Modules are declared in the order of the pipeline, and each uses only modules above it. All
//! modules use `error`, and only `py` depends on Python.
pub mod error;

// The machine: vector instructions, memory-mapped files, deterministic random numbers. Independent of language
// processing.
pub mod machine;

// Sentences to attributes.
pub mod features;

// Raw text to classes of words.
pub mod classes;

// Scores of one sentence to paths and sums over paths. Independent of features and losses.
pub mod chain;

// Attributes to ids in flat arrays, and the position of each weight.
pub mod dataset;

// Dataset times weights: the scores that the chain reads, and the transpose.
pub mod scores;

// Scores and gold to weights.
pub mod learners;

// Scores to labels.
pub mod decoding;

// Model files of other programs, used in place.
pub mod foreign;

// The Python bindings.
#[cfg(feature = "python")]
mod py;
