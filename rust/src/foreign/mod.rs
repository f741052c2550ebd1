//! CRFsuite compatibility: model files that are scored in place, written files, instances and trainers.

use crate::error::Result;
use crate::machine::system::budget;

pub mod cqdb;
pub mod instances;
pub mod lcrf;
pub mod names;
pub mod online;
pub mod writer;

/// Check the memory for tables of all label pairs: a file or data set can name many labels in few bytes.
fn claim_pairs(labels: usize, bytes: usize) -> Result<()> {
    let what = format!("tables of {labels} by {labels} label pairs");
    budget::claim(&what, budget::bytes(&[labels, labels, bytes]), "use fewer labels")
}
