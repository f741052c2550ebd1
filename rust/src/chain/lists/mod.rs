//! Edges of many labels, most of which score the same.
//!
//! Edges that are no features score 0. Of L^2 edges a corpus of many labels has seen a few per cent, so that with
//! base = exp(0 - max A) and a list of the edges that differ
//!
//! ```text
//! M[y', y]                 = base from(y') to(y) + D[y', y],                              D = 0 but for the listed edges
//! sum_y' a(y') M[y', y]    = base to(y) sum_y' from(y') a(y')  +  sum_{y' in list of y} a(y') D[y', y]
//! max_y' a(y') + A[y', y]  = max(max_{y' not in list of y} a(y'),  max_{y' in list of y} a(y') + A[y', y])
//! ```
//!
//! exactly, in as many steps as there are labels and listed edges (a rank-one matrix and a sparse one; Lavergne, Cappé and
//! Yvon 2010 make use of the same for sums). `from` and `to` are 0 for labels most of whose edges are forbidden, 1 otherwise.
//!
//! The trap of the sum: D < 0 takes off what the first term put there, and where nearly all of a(.) lies in front of an edge
//! with a small M, what is left is rounding. Labels behind or ahead of such edges (M < base / SAFE) are *risky*: where their
//! sum comes out below 1 / SAFE of the first term it is taken again over all labels, without a difference. All other sums
//! lose at most the digits of SAFE.

mod one;
mod pattern;
mod sums;
mod viterbi;

pub use pattern::{Pattern, Purpose};
pub use sums::Finish;

use pattern::EdgeSource;
use std::sync::Arc;
pub(crate) use viterbi::best_paths;

/// How much of a sum differences may take: a decimal digit.
const SAFE: f32 = 16.0;

/// A label of a list, and what belongs to the edge.
#[derive(Clone, Copy, Debug)]
struct Entry {
    label: u32,
    value: f32,
}

/// Factors and scores of the listed edges at some weights.
#[derive(Clone, Debug)]
pub struct Sparse {
    pub pattern: Arc<Pattern>,
    base: f32,
    m: Vec<f32>,        // [edges] M
    ahead: Vec<Entry>,  // [edges] D by number
    behind: Vec<Entry>, // [edges] the same by the label that the edge leads to
    scores: Vec<Entry>, // [edges] A by the label that the edge leads to, those of `less` first
    rows: Vec<Entry>,   // [edges] the same by number
    most: Vec<f32>,     // [L] the largest of the edges from a label
    before: Vec<bool>,  // [L] risky as the label that edges lead to
    after: Vec<bool>,   // [L] risky as the label that edges come from
    less: Vec<u32>,     // [L] edges that lead here and score less than those not listed
    from: Vec<u32>,     // labels with from = 1
    to: Vec<u32>,       // labels with to = 1
    max: f64,
}

impl Sparse {
    /// At these weights of the edge features, scaled by the largest edge score; that score, and the span of the finite
    /// ones, which is NaN if a weight is not finite.
    pub(crate) fn new(pattern: &Arc<Pattern>, weights: &[f64]) -> (Sparse, f64, f64) {
        debug_assert!(weights.len() >= pattern.features);
        let of = |source: &EdgeSource| match *source {
            EdgeSource::Feature(i) => weights[i as usize],
            EdgeSource::Plain => 0.0,
            EdgeSource::Forbidden => f64::NEG_INFINITY,
        };
        let scores: Vec<f64> = pattern.source.iter().map(of).collect();
        let finite = || scores.iter().copied().filter(|x| x.is_finite());
        let (max, min) = (finite().fold(0.0, f64::max), finite().fold(0.0, f64::min));
        let proper = scores.iter().all(|&x| x.is_finite() || x == f64::NEG_INFINITY);
        let base = (-max).exp() as f32;
        let l = pattern.labels;
        let mut out = Sparse {
            pattern: pattern.clone(),
            base,
            m: Vec::with_capacity(scores.len()),
            ahead: Vec::with_capacity(scores.len()),
            behind: Vec::with_capacity(scores.len()),
            scores: Vec::with_capacity(scores.len()),
            rows: Vec::with_capacity(scores.len()),
            most: vec![f32::NEG_INFINITY; l],
            before: vec![false; l],
            after: vec![false; l],
            less: vec![0; l],
            from: (0..l as u32).filter(|&y| pattern.from[y as usize]).collect(),
            to: (0..l as u32).filter(|&y| pattern.to[y as usize]).collect(),
            max,
        };
        for from in 0..l {
            for e in pattern.ahead.of(from) {
                let (label, value) = (pattern.ahead.label[e], scores[e] as f32);
                out.push(from, label as usize, scores[e]);
                out.rows.push(Entry { label: u32::from(label), value });
                out.most[from] = out.most[from].max(value);
            }
        }
        for to in 0..l {
            let first = out.scores.len();
            for at in pattern.behind.of(to) {
                let (label, e) = (u32::from(pattern.behind.label[at]), pattern.number[at] as usize);
                out.behind.push(Entry { label, value: out.ahead[e].value });
                out.scores.push(Entry { label, value: scores[e] as f32 });
            }
            // What is no number is as good as any: whoever meets it has no path.
            let is_less = |e: &Entry| pattern.to[to] && pattern.from[e.label as usize] && e.value < 0.0;
            out.scores[first..].sort_by_key(|e| !is_less(e));
            out.less[to] = out.scores[first..].iter().filter(|e| is_less(e)).count() as u32;
        }
        (out, max, if proper { max - min } else { f64::NAN })
    }

    /// The next edge. Where M is not small, it is what the sums make of it: base + D as rounded.
    fn push(&mut self, from: usize, to: usize, score: f64) {
        let exact = (score - self.max).exp();
        if !(self.pattern.from[from] && self.pattern.to[to]) {
            self.ahead.push(Entry { label: to as u32, value: exact as f32 });
            self.m.push(exact as f32);
            return;
        }
        let base = f64::from(self.base);
        let difference = (exact - base) as f32;
        let small = exact * f64::from(SAFE) < base;
        self.before[to] |= small;
        self.after[from] |= small;
        self.ahead.push(Entry { label: to as u32, value: difference });
        self.m.push(if small { exact } else { base + f64::from(difference) } as f32);
    }

    /// log M + max of an edge (label' * L + label), as the sums use it.
    #[inline]
    pub fn rounded(&self, edge: u32) -> f64 {
        let (from, to) = (edge as usize / self.pattern.labels, edge as usize % self.pattern.labels);
        let (base, usual) = (f64::from(self.base), self.pattern.from[from] && self.pattern.to[to]);
        let factor = match self.pattern.find(edge) {
            Some(e) if usual && self.m[e] * SAFE >= self.base => base + f64::from(self.ahead[e].value),
            Some(e) => f64::from(self.m[e]),
            None if usual => base,
            None => 0.0,
        };
        self.max + factor.ln()
    }
}
