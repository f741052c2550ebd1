//! Edges between many labels, most of which have the same score.
//!
//! Edges without a feature score 0. A corpus with many labels contains a few per cent of the L^2 edges. With base =
//! exp(0 - max A) and a list of the edges that differ,
//!
//! ```text
//! M[y', y]                 = base from(y') to(y) + D[y', y],                              D = 0 but for the listed edges
//! sum_y' a(y') M[y', y]    = base to(y) sum_y' from(y') a(y')  +  sum_{y' in list of y} a(y') D[y', y]
//! max_y' a(y') + A[y', y]  = max(max_{y' not in list of y} a(y'),  max_{y' in list of y} a(y') + A[y', y])
//! ```
//!
//! exactly, in a number of steps proportional to the labels and listed edges (a rank-one matrix plus a sparse one,
//! which Lavergne, Cappé and Yvon 2010 also use for sums). `from` and `to` are 0 for labels most of whose edges are
//! forbidden, 1 otherwise.
//!
//! The trap of the sum is cancellation: D < 0 subtracts part of the first term, and if nearly all of a(.) is on labels
//! with a small M, only rounding error remains. Labels with such an edge (M < base / MAX_CANCELLATION) on either end
//! are *risky*: if their sum is below 1 / MAX_CANCELLATION of the first term, it is computed again over all labels,
//! without differences. All other sums lose at most the digits of MAX_CANCELLATION.

mod one;
mod pattern;
mod sums;
mod viterbi;

pub use pattern::{Pattern, Purpose};
pub use sums::Finish;

use pattern::EdgeSource;
use std::sync::Arc;
pub(crate) use viterbi::best_paths;

/// Largest factor by which differences may reduce a sum: about a decimal digit.
const MAX_CANCELLATION: f32 = 16.0;

/// Label of a list, and the value of the edge.
#[derive(Clone, Copy, Debug)]
struct Entry {
    label: u32,
    value: f32,
}

/// Factors and scores of the listed edges for given weights.
#[derive(Clone, Debug)]
pub struct Sparse {
    pub pattern: Arc<Pattern>,
    base: f32,
    m: Vec<f32>,               // [edges] M
    outgoing: Vec<Entry>,      // [edges] D by edge number
    incoming: Vec<Entry>,      // [edges] D by next label
    scores: Vec<Entry>,        // [edges] A by next label, those of `less` first
    rows: Vec<Entry>,          // [edges] A by edge number
    max_score: Vec<f32>,       // [L] largest score of the listed edges from a label
    risky_next: Vec<bool>,     // [L] risky as next label
    risky_previous: Vec<bool>, // [L] risky as previous label
    less: Vec<u32>,            // [L] number of listed edges to this label that score less than unlisted ones
    from: Vec<u32>,            // labels with from = 1
    to: Vec<u32>,              // labels with to = 1
    max: f64,
}

impl Sparse {
    /// Compute the factors for these weights of the edge features, scaled by the largest edge score. Return also that
    /// score and the span of the finite scores, which is NaN if a weight is not finite.
    pub(crate) fn new(pattern: &Arc<Pattern>, weights: &[f64]) -> (Sparse, f64, f64) {
        debug_assert!(weights.len() >= pattern.features);
        let score_of = |source: &EdgeSource| match *source {
            EdgeSource::Feature(i) => weights[i as usize],
            EdgeSource::Plain => 0.0,
            EdgeSource::Forbidden => f64::NEG_INFINITY,
        };
        let scores: Vec<f64> = pattern.source.iter().map(score_of).collect();
        let finite = || scores.iter().copied().filter(|x| x.is_finite());
        let (max, min) = (finite().fold(0.0, f64::max), finite().fold(0.0, f64::min));
        let valid = scores.iter().all(|&x| x.is_finite() || x == f64::NEG_INFINITY);
        let base = (-max).exp() as f32;
        let l = pattern.labels;
        let mut out = Sparse {
            pattern: pattern.clone(),
            base,
            m: Vec::with_capacity(scores.len()),
            outgoing: Vec::with_capacity(scores.len()),
            incoming: Vec::with_capacity(scores.len()),
            scores: Vec::with_capacity(scores.len()),
            rows: Vec::with_capacity(scores.len()),
            max_score: vec![f32::NEG_INFINITY; l],
            risky_next: vec![false; l],
            risky_previous: vec![false; l],
            less: vec![0; l],
            from: (0..l as u32).filter(|&y| pattern.from[y as usize]).collect(),
            to: (0..l as u32).filter(|&y| pattern.to[y as usize]).collect(),
            max,
        };
        for from in 0..l {
            for e in pattern.outgoing.of(from) {
                let (label, value) = (pattern.outgoing.label[e], scores[e] as f32);
                out.push(from, label as usize, scores[e]);
                out.rows.push(Entry { label: u32::from(label), value });
                out.max_score[from] = out.max_score[from].max(value);
            }
        }
        for to in 0..l {
            let first = out.scores.len();
            for at in pattern.incoming.of(to) {
                let (label, e) = (u32::from(pattern.incoming.label[at]), pattern.number[at] as usize);
                out.incoming.push(Entry { label, value: out.outgoing[e].value });
                out.scores.push(Entry { label, value: scores[e] as f32 });
            }
            // NaN scores may be in either part: a search that reads one finds no path.
            let is_less = |e: &Entry| pattern.to[to] && pattern.from[e.label as usize] && e.value < 0.0;
            out.scores[first..].sort_by_key(|e| !is_less(e));
            out.less[to] = out.scores[first..].iter().filter(|e| is_less(e)).count() as u32;
        }
        (out, max, if valid { max - min } else { f64::NAN })
    }

    /// Append the next edge. Unless M is small, it is stored as the sums compute it: base + rounded D.
    fn push(&mut self, from: usize, to: usize, score: f64) {
        let exact = (score - self.max).exp();
        if !(self.pattern.from[from] && self.pattern.to[to]) {
            self.outgoing.push(Entry { label: to as u32, value: exact as f32 });
            self.m.push(exact as f32);
            return;
        }
        let base = f64::from(self.base);
        let difference = (exact - base) as f32;
        let small = exact * f64::from(MAX_CANCELLATION) < base;
        self.risky_next[to] |= small;
        self.risky_previous[from] |= small;
        self.outgoing.push(Entry { label: to as u32, value: difference });
        self.m.push(if small { exact } else { base + f64::from(difference) } as f32);
    }

    /// log M + max of an edge (label' * L + label), as the sums use it.
    #[inline]
    pub fn rounded(&self, edge: u32) -> f64 {
        let (from, to) = (edge as usize / self.pattern.labels, edge as usize % self.pattern.labels);
        let (base, is_default) = (f64::from(self.base), self.pattern.from[from] && self.pattern.to[to]);
        let factor = match self.pattern.find(edge) {
            Some(e) if is_default && self.m[e] * MAX_CANCELLATION >= self.base => {
                base + f64::from(self.outgoing[e].value)
            }
            Some(e) => f64::from(self.m[e]),
            None if is_default => base,
            None => 0.0,
        };
        self.max + factor.ln()
    }
}
