//! Options of a Hidden Markov SVM.

use crate::error::{Error, Result};
use crate::machine::system::names::named;
use crate::scores::check::check_given_weights;

named!(
    /// Slack variables for violated margins.
    pub enum Slack: "slack" {
        /// One slack per sentence (SVM_1).
        Instance = "instance",
        /// One slack per path (SVM_2).
        Sequence = "sequence",
    }
);

impl Slack {
    /// Whether the paths of a sentence share one slack.
    pub fn is_shared(self) -> bool {
        match self {
            Slack::Instance => true,
            Slack::Sequence => false,
        }
    }
}

/// Training options.
#[derive(Clone, Debug)]
pub struct SvmOptions {
    pub c: f64,
    pub slack: Slack,
    /// Use the Hamming distance as the margin.
    pub rescale: bool,
    /// Target of the relative gap, which determines how exactly blocks are solved.
    pub tolerance: f64,
    /// One slack per path: number of wrong paths of a sentence, those with the largest slacks, whose slacks count.
    pub most: usize,
    pub shuffle: bool,
    pub seed: u64,
    pub sample_weight: Vec<f64>, // [N], or empty for all 1
}

impl SvmOptions {
    /// Number of wrong paths of a sentence whose slacks count.
    pub fn counted(&self) -> usize {
        match self.slack {
            Slack::Instance => 1,
            Slack::Sequence => self.most,
        }
    }

    /// Check that the options are valid for this number of sentences.
    pub fn check(&self, n: usize) -> Result<()> {
        let value = |message: String| Err(Error::Value(message));
        if !(self.c > 0.0 && self.c.is_finite()) {
            return value(format!("C must be a finite number > 0, got {}", self.c));
        }
        if self.tolerance.is_nan() || self.tolerance < 0.0 {
            return value(format!("the tolerance must be a number >= 0, got {}", self.tolerance));
        }
        if self.most == 0 {
            return value("the working set must hold at least 1 path".into());
        }
        check_given_weights(&self.sample_weight, n)
    }
}
