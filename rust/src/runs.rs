//! Attributes that tokens have in common, for scoring: what a template makes of one text (its affixes, its shape) is the
//! same wherever the text stands, so that it is summed once and not at every token.

use crate::dataset::Csr;

/// Texts seen this often have runs ...
pub const OFTEN: u32 = 3;
/// ... of at least so many attributes; shorter ones are as fast by themselves.
pub const LONG: u32 = 3;
/// Most runs: their sums are to stay in the nearer caches. Texts are numbered as they occur, frequent ones early.
pub const MOST: usize = 1 << 15;
/// Tokens from which on runs pay.
pub const WORTH: usize = 4000;

/// A second reading of a dataset's node attributes, without values: the same attributes of every token, in runs and single.
#[derive(Clone, Debug, Default)]
pub struct Runs {
    pub ids: Csr,  // attributes of each run
    pub of: Csr,   // runs of each token
    pub rest: Csr, // its other attributes
}
