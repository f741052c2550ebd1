//! Model files of CRFsuite, used as they lie: attributes are looked up and scored in the bytes of the file.

use crate::error::Result;
use crate::machine::budget;

pub mod cqdb;
pub mod instances;
pub mod lcrf;
pub mod names;
pub mod online;

/// Refuses tables of all pairs of labels that are beyond the limit: a file, or data, can name many labels in few bytes.
fn claim_pairs(labels: usize, bytes: usize) -> Result<()> {
    let what = format!("tables of {labels} by {labels} label pairs");
    budget::claim(&what, budget::bytes(&[labels, labels, bytes]), "use fewer labels")
}
