//! Constraints on paths in addition to their scores.

pub mod at_most_once;
pub mod entities;
pub mod support;

use crate::chain::limits::at_most_once::Groups;
use crate::chain::limits::support::Support;
use crate::error::{Error, Result};

/// Constraints on the paths of the training sentences.
#[derive(Clone, Debug, Default)]
pub struct Limits {
    /// Edges (label' * L + label) of score -infinity.
    pub forbidden: Vec<u32>,
    /// Labels each token may take.
    pub support: Option<Support>,
    /// Labels that form at most one contiguous span.
    pub once: Option<Groups>,
}

impl Limits {
    /// Reject labels that occur once, for learners that cannot be trained with them.
    pub fn refuse_once(&self) -> Result<()> {
        match self.once {
            None => Ok(()),
            Some(_) => Err(Error::Value(
                "this learner cannot be trained with labels that occur once; leave the rule to decoding".into(),
            )),
        }
    }
}
