//! CRFsuite as it is: model files used as they lie, attributes being looked up and scored in the bytes of the file; files as it
//! writes them; its instances and trainers.

use crate::error::Result;
use crate::machine::system::budget;

pub mod cqdb;
pub mod instances;
pub mod lcrf;
pub mod names;
pub mod online;
pub mod written;

/// Refuses tables of all pairs of labels that are beyond the limit: a file, or data, can name many labels in few bytes.
fn claim_pairs(labels: usize, bytes: usize) -> Result<()> {
    let what = format!("tables of {labels} by {labels} label pairs");
    budget::claim(&what, budget::bytes(&[labels, labels, bytes]), "use fewer labels")
}
