//! Learners: from scores and gold labels to weights.

pub mod batch;
pub mod boosting;
pub mod dual;
pub mod online;
pub mod svm;
pub mod tally;
