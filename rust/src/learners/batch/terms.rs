//! What is minimised, beside the data, and whether it fits them.

use crate::chain::once::Groups;
use crate::chain::support::Support;
use crate::chain::wide::Factors;
use crate::dataset::layout::Layout;
use crate::dataset::Dataset;
use crate::error::{Error, Result};
use crate::learners::batch::loss::Loss;

/// What is minimised, beside the data.
#[derive(Clone, Debug)]
pub struct Terms {
    pub loss: Loss,
    /// Weight of each sentence; empty for all 1.
    pub weights: Vec<f64>,
    /// Edges (label' * L + label) of score -infinity.
    pub forbidden: Vec<u32>,
    /// Labels each token may take.
    pub support: Option<Support>,
    /// Labels each token is known to have one of; replaces the gold labels (log loss).
    pub partial: Option<Support>,
    /// [L, L] cost of label y where y' is right, added to the scores inside log Z (softmax-margin); empty without.
    pub cost: Vec<f64>,
    /// Labels that form one contiguous span at most (sequential losses): Z is over the paths that keep to it.
    pub once: Option<Groups>,
}

/// What a sentence is scored with.
pub struct Setting<'a> {
    pub data: &'a Dataset,
    pub layout: &'a Layout,
    pub w: &'a [f64],
    pub edge_scores: &'a [f64],
    pub factors: Option<&'a Factors>,
    pub support: Option<&'a Support>,
    pub partial: Option<&'a Support>,
    pub cost: &'a [f64], // [L, L] or empty
    pub once: Option<&'a Groups>,
    pub loss: Loss,
    pub shift: f64,
}

/// Whether labels, weights, costs and constraints fit the data and each other.
pub fn check(data: &Dataset, l: usize, terms: &Terms) -> Result<()> {
    let n = data.len();
    if terms.partial.is_none() && (data.gold.len() != data.tokens() || data.gold.iter().any(|&y| y as usize >= l)) {
        return Err(Error::Value("every training token needs a gold label of the label set".into()));
    }
    if terms.weights.len() != n || terms.weights.iter().any(|w| !w.is_finite() || *w < 0.0) {
        return Err(Error::Value(format!("sample_weight needs {n} finite numbers >= 0, one a sentence")));
    }
    if !terms.cost.is_empty() && (terms.cost.len() != l * l || terms.cost.iter().any(|c| !c.is_finite())) {
        return Err(Error::Value(format!("the cost matrix needs {l} x {l} finite numbers")));
    }
    if terms.partial.is_some() && (terms.loss != Loss::Log || !terms.cost.is_empty()) {
        return Err(Error::Value("partial labels need the log loss without costs".into()));
    }
    if let Some(groups) = &terms.once {
        if terms.loss.is_pointwise() || terms.partial.is_some() {
            return Err(Error::Value(
                "labels that may occur once go with the losses log and exp, and not with partial labels; take one of \
                 these, or leave the rule to decoding (constraints= of predict)"
                    .into(),
            ));
        }
        groups.check_sum()?;
        groups.check_gold(&data.sentences, &data.gold, l)?;
    }
    if terms.partial.is_some() {
        return Ok(());
    }
    let mut allowed = vec![true; l * l];
    for &e in &terms.forbidden {
        allowed[e as usize] = false;
    }
    for (i, s) in data.sentences.windows(2).enumerate() {
        let gold = &data.gold[s[0]..s[1]];
        let outside = terms
            .support
            .as_ref()
            .is_some_and(|x| (s[0]..s[1]).any(|t| !x.sets[x.of[t] as usize * l + data.gold[t] as usize]));
        if outside || gold.windows(2).any(|y| !allowed[y[0] as usize * l + y[1] as usize]) {
            return Err(Error::Training(format!(
                "sentence {i}: its gold labels are outside what the constraints allow; correct the sentence or relax the constraint"
            )));
        }
    }
    Ok(())
}
