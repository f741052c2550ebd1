//! One sentence in double precision: scores, local normalisation, support.

use crate::chain::lattice::Scores;
use crate::chain::limits::support::Support;
use crate::chain::sums::log64::normalize_locally;
use crate::dataset::layout::Layout;
use crate::dataset::Dataset;
use crate::scores::scorer::Scorer;

/// Node scores [T, L], boundaries included, and edge scores ([L, L], or [T, L, L] with edge attributes) of a sentence.
pub fn score_sentence(
    data: &Dataset,
    layout: &Layout,
    w: &[f64],
    edge_scores: &[f64],
    sentence: u32,
    node: &mut Vec<f64>,
    edge: &mut Vec<f64>,
) {
    let l = layout.labels;
    let (begin, end) = (data.sentences[sentence as usize], data.sentences[sentence as usize + 1]);
    node.clear();
    node.resize((end - begin) * l, 0.0);
    edge.clear();
    edge.extend_from_slice(edge_scores);
    for t in begin..end {
        let row = &mut node[(t - begin) * l..(t - begin + 1) * l];
        for (a, value) in data.node.row(t) {
            let (first, labels) = layout.node(a);
            for (i, &y) in labels.iter().enumerate() {
                row[y as usize] += w[first + i] * f64::from(value);
            }
        }
    }
    if begin < end {
        let ((start, stop), (begins, ends)) = (layout.boundary_scores(w), data.ends(sentence as usize));
        let last = node.len() - l;
        for y in 0..l {
            node[y] += if begins { start[y] } else { 0.0 };
            node[last + y] += if ends { stop[y] } else { 0.0 };
        }
    }
    if data.has_edge_attributes() {
        for t in begin + 1..end {
            let at = edge.len();
            edge.extend_from_slice(edge_scores);
            for (a, value) in data.edge.row(t) {
                let (first, pairs) = layout.pairs(a);
                for (i, &pair) in pairs.iter().enumerate() {
                    edge[at + pair as usize] += w[first + i] * f64::from(value);
                }
            }
        }
    }
}

/// Largest score for sums over paths. Beyond it no digits are left for the differences between paths.
const MAX_SCORE: f64 = 1e9;

/// Whether these scores are too large for meaningful sums over paths.
pub fn too_large(scores: &[f64]) -> bool {
    scores.iter().any(|x| x.is_finite() && x.abs() > MAX_SCORE)
}

/// Scores of one sentence in double precision.
#[derive(Default)]
pub struct Scored {
    pub node: Vec<f64>,
    pub edge: Vec<f64>,
}

impl Scored {
    pub fn fill(&mut self, scorer: &Scorer, weights: &[f64], data: &Dataset, support: Option<&Support>, s: usize) {
        let l = scorer.layout.labels;
        score_sentence(data, &scorer.layout, weights, scorer.edge_scores(), s as u32, &mut self.node, &mut self.edge);
        if scorer.local {
            normalize_locally(l, &mut self.node, &self.edge);
        }
        if let Some(support) = support {
            support.forbid(data.sentences[s], l, &mut self.node);
        }
    }

    pub fn scores(&self, labels: usize) -> Scores<'_> {
        Scores { labels, node: &self.node, edge: &self.edge }
    }
}

/// A model's weights in double precision.
pub fn doubles(scorer: &Scorer) -> Vec<f64> {
    scorer.weights.iter().map(|&x| f64::from(x)).collect()
}
