//! Checks of training sets, shared by all learners.

use crate::chain::limits::support::Support;
use crate::dataset::{Dataset, NO_LABEL};
use crate::error::{Error, Result};

/// Check that every token has a gold label of the label set.
pub fn check_labels(data: &Dataset, labels: usize) -> Result<()> {
    let is_outside = |&y: &u16| y as usize >= labels || y == NO_LABEL;
    match data.gold.len() != data.tokens() || data.gold.iter().any(is_outside) {
        true => Err(Error::Value("every training token needs a gold label of the label set".into())),
        false => Ok(()),
    }
}

/// Check that there is one finite number >= 0 for each of `n` sentences.
pub fn check_weights<T: Copy + Into<f64>>(weights: &[T], n: usize) -> Result<()> {
    let is_invalid = |&w: &T| !w.into().is_finite() || w.into() < 0.0;
    match weights.len() != n || weights.iter().any(is_invalid) {
        true => Err(Error::Value(format!("sample_weight needs {n} finite numbers >= 0, one per sentence"))),
        false => Ok(()),
    }
}

/// `check_weights`, unless there are no weights, in which case every sentence has weight 1.
pub fn check_given_weights<T: Copy + Into<f64>>(weights: &[T], n: usize) -> Result<()> {
    match weights.is_empty() {
        true => Ok(()),
        false => check_weights(weights, n),
    }
}

/// Return which edges (label' * L + label) are not forbidden: [L, L].
pub fn allowed_edges(labels: usize, forbidden: &[u32]) -> Result<Vec<bool>> {
    let mut allowed = vec![true; labels * labels];
    for &e in forbidden {
        *allowed.get_mut(e as usize).ok_or_else(|| {
            Error::Value(format!("forbidden edge {e} is outside the {labels} by {labels} label pairs"))
        })? = false;
    }
    Ok(allowed)
}

/// Error for a sentence whose gold labels violate a constraint.
pub fn outside_constraints(sentence: usize) -> Error {
    let message =
        "its gold labels are outside what the constraints allow; correct the sentence or relax the constraint";
    Error::Training(message.into()).of_sentence(sentence)
}

/// Check that the gold labels of every sentence are allowed. `allowed` [L, L]: edges.
pub fn check_gold(data: &Dataset, l: usize, allowed: &[bool], support: Option<&Support>) -> Result<()> {
    for (i, s) in data.sentences.windows(2).enumerate() {
        let gold = &data.gold[s[0]..s[1]];
        let is_outside =
            support.is_some_and(|x| (s[0]..s[1]).any(|t| !x.sets[x.of[t] as usize * l + data.gold[t] as usize]));
        if is_outside || gold.windows(2).any(|y| !allowed[y[0] as usize * l + y[1] as usize]) {
            return Err(outside_constraints(i));
        }
    }
    Ok(())
}
