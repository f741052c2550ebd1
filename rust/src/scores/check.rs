//! What a training set must be, said once for all learners.

use crate::chain::support::Support;
use crate::dataset::Dataset;
use crate::error::{Error, Result};

/// The gold labels of every sentence must be possible.
pub fn check_gold(data: &Dataset, l: usize, allowed: &[bool], support: Option<&Support>) -> Result<()> {
    for (i, s) in data.sentences.windows(2).enumerate() {
        let gold = &data.gold[s[0]..s[1]];
        let outside =
            support.is_some_and(|x| (s[0]..s[1]).any(|t| !x.sets[x.of[t] as usize * l + data.gold[t] as usize]));
        if outside || gold.windows(2).any(|y| !allowed[y[0] as usize * l + y[1] as usize]) {
            return Err(Error::Training(format!(
                "sentence {i}: its gold labels are outside what the constraints allow; correct the sentence or relax the constraint"
            )));
        }
    }
    Ok(())
}
