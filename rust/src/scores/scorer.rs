//! Model prepared for scoring.

use crate::chain::edges::Edges;
use crate::chain::lists::{Pattern, Purpose};
use crate::chain::viterbi::sentence::Steps;
use crate::dataset::layout::Layout;
use crate::dataset::{runs, Dataset};
use crate::error::{Error, Result};
use crate::machine::simd::{Lane, WIDTH};
use crate::machine::system::budget;
use crate::machine::system::container::Buf;
use crate::machine::system::reused::Reused;
use crate::machine::system::testing::{self, CodePath};
use crate::scores::tagging_layout::{RunSums, Table};
use once_cell::race::OnceBox;
use std::sync::Arc;

/// Number of tokens from which the weights are packed first. Packing takes as long as some thousand tokens and is kept.
const MIN_TABLE_TOKENS: usize = runs::MIN_RUN_TOKENS;
/// Nanoseconds for the attributes of a token: about twenty attributes at twenty nanoseconds each.
const NANOSECONDS_PER_TOKEN: usize = 400;

/// Features and their weights, prepared for scoring.
pub struct Scorer {
    pub(crate) layout: Arc<Layout>,
    pub(crate) weights: Buf<f32>, // [features]
    forbidden: Vec<u32>,
    edge_scores: OnceBox<Vec<f64>>, // [L, L], computed on first use
    score: OnceBox<Vec<f32>>,       // edge scores in single precision
    chart: OnceBox<Steps>,          // edge scores for the search of one sentence
    pub(crate) edges: Edges,
    pub(crate) start: Vec<f32>,
    pub(crate) end: Vec<f32>,
    pub(crate) local: bool, // every step is a separate classifier: `log64::normalize_locally`
    table: OnceBox<Option<Table>>, // built when it pays off
    pub(crate) sums: Reused<RunSums>, // sums of runs, computed by this table
}

/// Bytes that a model needs per pair of labels: scores in double and single precision, their exponentials by rows and
/// by columns, and the copies made by a search.
const BYTES_PER_PAIR: usize = 48;

/// Reject tables of label pairs that do not fit into memory.
pub fn claim_pair_tables(labels: usize) -> Result<()> {
    let what = format!("tables of {labels} by {labels} label pairs");
    budget::claim(&what, budget::bytes(&[labels, labels, BYTES_PER_PAIR]), "use fewer labels")
}

/// Weights of the edge features.
fn edge_weights(layout: &Layout, weights: &[f32]) -> Vec<f64> {
    weights[layout.edge_at()..layout.start_at()].iter().map(|&x| f64::from(x)).collect()
}

/// Edge scores [L, L].
fn all_edges(layout: &Layout, weights: &[f32], forbidden: &[u32]) -> Vec<f64> {
    let mut scores = vec![0.0; layout.labels * layout.labels];
    for (&e, x) in layout.edges.iter().zip(edge_weights(layout, weights)) {
        scores[e as usize] = x;
    }
    for &e in forbidden {
        scores[e as usize] = f64::NEG_INFINITY;
    }
    scores
}

impl Scorer {
    /// `forbidden`: edges (label' * L + label) of score -infinity.
    pub fn new(layout: Arc<Layout>, weights: Buf<f32>, forbidden: &[u32]) -> Result<Scorer> {
        if weights.len() != layout.len() {
            return Err(Error::ModelFile(format!("{} weights for {} features", weights.len(), layout.len())));
        }
        let l = layout.labels;
        claim_pair_tables(l)?;
        if forbidden.iter().any(|&e| e as usize >= l * l) {
            return Err(Error::Value(format!("a forbidden edge is outside the {l} by {l} label pairs")));
        }
        let boundary = |labels: &[u16], at: usize| {
            let mut scores = vec![0.0; l];
            for (&y, &x) in labels.iter().zip(&weights[at..]) {
                scores[y as usize] = x;
            }
            scores
        };
        let start = boundary(&layout.starts, layout.start_at());
        let end = boundary(&layout.ends, layout.end_at());
        let edge_scores = OnceBox::new();
        let edges = match Pattern::new(l, &layout.edges, forbidden, Purpose::Decoding)? {
            Some(pattern) => Edges::listed(&Arc::new(pattern), &edge_weights(&layout, &weights)),
            None => Edges::new(l, edge_scores.get_or_init(|| Box::new(all_edges(&layout, &weights, forbidden)))),
        };
        let (forbidden, score, chart) = (forbidden.to_vec(), OnceBox::new(), OnceBox::new());
        Ok(Scorer {
            layout,
            weights,
            forbidden,
            edge_scores,
            score,
            chart,
            edges,
            start,
            end,
            local: false,
            table: OnceBox::new(),
            sums: Reused::default(),
        })
    }

    /// Set whether every step is normalised separately.
    pub fn with_local(mut self, local: bool) -> Scorer {
        self.local = local;
        self
    }

    pub fn is_local(&self) -> bool {
        self.local
    }

    pub fn layout(&self) -> &Arc<Layout> {
        &self.layout
    }

    /// Whether edge scores differ between tokens. A model with edge attributes always uses the same search, whether or
    /// not the sentences of a call have any, so that the results of a sentence do not depend on the others.
    pub fn varies(&self, data: &Dataset) -> bool {
        !self.layout.pair.is_empty() || data.has_edge_attributes()
    }

    /// Estimate the time for the best paths of these sentences in nanoseconds, from the label pairs and attributes of
    /// each token. A typical number of attributes is assumed: counting them would create rows for attributes that are
    /// stored in runs.
    pub fn steps(&self, data: &Dataset) -> usize {
        let (labels, tokens) = (self.layout.labels, data.tokens());
        tokens.saturating_mul(labels * labels + NANOSECONDS_PER_TOKEN).saturating_add(100 * labels)
    }

    pub fn weights(&self) -> &Buf<f32> {
        &self.weights
    }

    /// Edge scores [L, L].
    pub fn edge_scores(&self) -> &[f64] {
        self.edge_scores.get_or_init(|| Box::new(all_edges(&self.layout, &self.weights, &self.forbidden)))
    }

    /// Edge scores in single precision.
    pub(crate) fn edge_floats(&self) -> &[f32] {
        match self.edges.sparse {
            None => &self.edges.score,
            Some(_) => self.score.get_or_init(|| Box::new(self.edge_scores().iter().map(|&x| x as f32).collect())),
        }
    }

    /// Edge scores as rows and columns for the search of one sentence.
    pub(crate) fn chart_steps(&self) -> &Steps {
        self.chart.get_or_init(|| Box::new(Steps::from_scores(self.layout.labels, self.edge_floats())))
    }

    /// Return the packed weights, if they pay off for this number of tokens.
    pub(crate) fn table(&self, tokens: usize) -> Option<&Table> {
        if tokens >= MIN_TABLE_TOKENS || testing::is_forced(CodePath::Table) {
            self.table.get_or_init(|| Box::new(Table::new(&self.layout, &self.weights)));
        }
        self.table.get().and_then(Option::as_ref).filter(|_| !testing::is_forced(CodePath::Layout))
    }

    /// Call `add(label, x)` for the score of every feature of a token, in order.
    #[inline(always)]
    fn each(&self, data: &Dataset, token: usize, mut add: impl FnMut(usize, f32)) {
        for at in data.node.csr().ptr[token]..data.node.csr().ptr[token + 1] {
            let (first, labels) = self.layout.node(data.node.csr().ids[at]);
            let value = data.node.csr().value(at);
            for (&y, &w) in labels.iter().zip(&self.weights[first..first + labels.len()]) {
                add(y as usize, w * value);
            }
        }
    }

    /// Add the node scores of a token to a row of sixteen-label lanes: its features, then start and end if it is the
    /// first or the last of its sentence.
    #[inline(always)]
    pub fn fill(&self, data: &Dataset, token: usize, ends: (bool, bool), row: &mut [Lane]) {
        self.each(data, token, |y, x| row[y / WIDTH].0[y % WIDTH] += x);
        self.add_ends(ends, row);
    }

    /// Add the start and end scores of the first and the last token of a sentence.
    #[inline(always)]
    pub fn add_ends(&self, (first, last): (bool, bool), row: &mut [Lane]) {
        for (scores, here) in [(&self.start, first), (&self.end, last)] {
            if here {
                for (y, &x) in scores.iter().enumerate() {
                    row[y / WIDTH].0[y % WIDTH] += x;
                }
            }
        }
    }
}
