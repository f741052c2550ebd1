//! Sums of an epoch.

use crate::error::Error;

/// Sums over the steps of an epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tally {
    pub sentences: usize,
    pub tokens: usize,
    pub updates: usize,         // sentences that changed the weights
    pub wrong_sentences: usize, // best path other than gold
    pub wrong_tokens: usize,
    pub loss: f64, // of the best path: H(y^) - H(y) for the perceptron, else cost - w.d if positive
}

impl Tally {
    pub fn add(&mut self, other: &Tally) {
        self.sentences += other.sentences;
        self.tokens += other.tokens;
        self.updates += other.updates;
        self.wrong_sentences += other.wrong_sentences;
        self.wrong_tokens += other.wrong_tokens;
        self.loss += other.loss;
    }
}

/// A sentence whose score is not finite.
pub fn not_finite(sentence: u32) -> Error {
    Error::Training("its score is not finite at the current weights; scale real-valued attributes down".into())
        .of_sentence(sentence as usize)
}
