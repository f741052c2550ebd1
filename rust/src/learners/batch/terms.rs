//! Terms of an objective other than the data, and checks that they fit the data.

use crate::chain::limits::at_most_once::Groups;
use crate::chain::limits::support::Support;
use crate::chain::limits::Limits;
use crate::chain::sums::scaled64::Factors;
use crate::dataset::layout::Layout;
use crate::dataset::Dataset;
use crate::error::{Error, Result};
use crate::learners::batch::loss::Loss;
use crate::machine::system::testing::{self, CodePath};
use crate::scores::check::{allowed_edges, check_gold, check_labels, check_weights};
use std::sync::OnceLock;

/// Terms of an objective other than the data.
#[derive(Clone, Debug)]
pub struct Terms {
    pub loss: Loss,
    /// Weight of each sentence, empty for all 1.
    pub weights: Vec<f64>,
    /// Constraints on paths. Labels that form at most one span require a sequential loss: Z is over the paths that
    /// satisfy the constraint.
    pub limits: Limits,
    /// Set of labels that each token may have. Replaces the gold labels (log loss).
    pub partial: Option<Support>,
    /// [L, L] cost of label y if y' is right, added to the scores inside log Z (softmax-margin). Empty without a cost.
    pub cost: Vec<f64>,
}

/// Edge scores [L, L], computed on first use. With lists of edges only sentences out of range for float32 use them.
pub struct EdgeScores<'a> {
    layout: &'a Layout,
    w: &'a [f64],
    forbidden: &'a [u32],
    computed: OnceLock<(Vec<f64>, Option<Factors>)>,
}

impl<'a> EdgeScores<'a> {
    pub fn new(layout: &'a Layout, w: &'a [f64], limits: &'a Limits) -> EdgeScores<'a> {
        EdgeScores { layout, w, forbidden: &limits.forbidden, computed: OnceLock::new() }
    }

    fn get(&self) -> &(Vec<f64>, Option<Factors>) {
        self.computed.get_or_init(|| {
            let mut scores = self.layout.edge_scores(self.w);
            self.forbidden.iter().for_each(|&e| scores[e as usize] = f64::NEG_INFINITY);
            let l = self.layout.labels;
            let factors = Factors::new(l, |a, b| scores[a * l + b]).filter(|_| !testing::is_forced(CodePath::Log));
            (scores, factors)
        })
    }

    pub fn scores(&self) -> &[f64] {
        &self.get().0
    }

    /// Factors in double precision. None if they are out of range.
    pub fn factors(&self) -> Option<&Factors> {
        self.get().1.as_ref()
    }
}

/// Inputs for scoring a sentence.
pub struct Setting<'a> {
    pub data: &'a Dataset,
    pub layout: &'a Layout,
    pub w: &'a [f64],
    pub edge_scores: &'a EdgeScores<'a>,
    pub support: Option<&'a Support>,
    pub partial: Option<&'a Support>,
    pub cost: &'a [f64], // [L, L] or empty
    pub once: Option<&'a Groups>,
    pub loss: Loss,
    pub shift: f64,
    pub precise: bool, // every sentence in double precision
}

impl<'a> Setting<'a> {
    pub fn new(
        data: &'a Dataset,
        layout: &'a Layout,
        terms: &'a Terms,
        w: &'a [f64],
        edge_scores: &'a EdgeScores<'a>,
    ) -> Setting<'a> {
        Setting {
            data,
            layout,
            w,
            edge_scores,
            support: terms.limits.support.as_ref(),
            partial: terms.partial.as_ref(),
            cost: &terms.cost,
            once: terms.limits.once.as_ref(),
            loss: terms.loss,
            shift: 0.0,
            precise: false,
        }
    }
}

pub fn not_finite(sentence: u32) -> Error {
    let message =
        "its loss is not finite at the current weights; scale real-valued attributes down, regularise more, or \
                   weight long sentences down (pi, max_length)";
    Error::Training(message.into()).of_sentence(sentence as usize)
}

/// Whether labels, weights, costs and constraints fit the data and each other.
pub fn check(data: &Dataset, l: usize, terms: &Terms) -> Result<()> {
    if terms.partial.is_none() {
        check_labels(data, l)?;
    }
    check_weights(&terms.weights, data.len())?;
    if !terms.cost.is_empty() && (terms.cost.len() != l * l || terms.cost.iter().any(|c| !c.is_finite())) {
        return Err(Error::Value(format!("the cost matrix needs {l} x {l} finite numbers")));
    }
    if terms.partial.is_some() && (terms.loss != Loss::Log || !terms.cost.is_empty()) {
        return Err(Error::Value("partial labels need the log loss without costs".into()));
    }
    if let Some(groups) = &terms.limits.once {
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
    check_gold(data, l, &allowed_edges(l, &terms.limits.forbidden)?, terms.limits.support.as_ref())
}
