//! What a Hidden Markov SVM is told.

use crate::error::{Error, Result};
use crate::machine::system::names::named;
use crate::scores::check::check_given_weights;

named!(
    /// What pays for a violated margin.
    pub enum Slack: "slack" {
        /// One slack a sentence (SVM_1).
        Instance = "instance",
        /// One slack a path (SVM_2).
        Sequence = "sequence",
    }
);

impl Slack {
    /// Whether the paths of a sentence share one.
    pub fn is_shared(self) -> bool {
        match self {
            Slack::Instance => true,
            Slack::Sequence => false,
        }
    }
}

/// How to train.
#[derive(Clone, Debug)]
pub struct SvmOptions {
    pub c: f64,
    pub slack: Slack,
    /// The margin asked for is the Hamming distance.
    pub rescale: bool,
    /// Relative gap that training is heading for; sets how exactly blocks are solved.
    pub tolerance: f64,
    /// One slack per path: the slacks of this many wrong paths of a sentence count, the largest ones.
    pub most: usize,
    pub shuffle: bool,
    pub seed: u64,
    pub sample_weight: Vec<f64>, // [N], or empty for all 1
}

impl SvmOptions {
    /// Wrong paths of a sentence whose slacks count.
    pub fn counted(&self) -> usize {
        match self.slack {
            Slack::Instance => 1,
            Slack::Sequence => self.most,
        }
    }

    /// Whether they make sense for so many sentences.
    pub fn check(&self, n: usize) -> Result<()> {
        let value = |message: String| Err(Error::Value(message));
        if !(self.c > 0.0 && self.c.is_finite()) {
            return value(format!("C must be a finite number > 0, got {}", self.c));
        }
        if self.tolerance.is_nan() || self.tolerance < 0.0 {
            return value(format!("the tolerance must be a number >= 0, got {}", self.tolerance));
        }
        if self.most == 0 {
            return value("a working set needs room for at least 1 path".into());
        }
        check_given_weights(&self.sample_weight, n)
    }
}
