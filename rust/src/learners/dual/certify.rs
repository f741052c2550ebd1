//! Bound on the distance of the weights from the optimum, which holds in spite of rounding.
//!
//! For any distributions q_i over the paths of each sentence and any weights w
//!
//! ```text
//! P(w) - D(q) = sum_i s_i KL(q_i | p_i(w)) + l2 |w - w(q)|^2,     w(q) = 1/(2 l2) sum_i s_i (F(y_i) - E_{q_i} F)
//! ```
//!
//! Both terms are sums of positive numbers, so nothing cancels. q_i is the chain of the kept marginals that is closest
//! to p_i(w) (`sums::scaled64`). It is a valid dual point even if its marginals differ from the kept ones. w(q) is
//! summed from the chains themselves, since the weights and the kept marginals are sums of many single-precision steps
//! and have drifted apart. Everything is computed in double precision, and a bound on the rounding errors is added to
//! the gap (`Rounding`).

use super::visit::{score, score_edges};
use super::{Dual, DualProblem, VisitScratch};
use crate::chain::sums::scaled64;
use crate::chain::sums::sentence;
use crate::machine::simd::dispatch::{dispatch, FlushToZero};
use crate::machine::simd::double::Doubles;
use crate::machine::simd::find::Find;
use crate::machine::simd::{Lane, WIDTH};
use crate::machine::system::stop;
use crate::scores::online_layout::by_sentence::{add_doubles, add_scores64};
use crate::scores::online_layout::Cells;
use rayon::prelude::*;
use std::ops::Range;

/// Number of parts for sums of P alone. It is fixed, so that results do not depend on threads.
const PARTS: u32 = 4;
/// Number of parts for sums of P and D, each of which needs an array of all cells.
const CERTIFICATE_PARTS: u32 = 2;
/// Number of cells from which there is only one such array.
const MANY_CELLS: usize = 1 << 24;

/// Contribution of some sentences to P and D, without the penalty.
#[derive(Clone, Debug, Default)]
pub struct BoundTerms {
    /// sum s (log Z - gold score), NaN if a sentence is out of range.
    pub loss: f64,
    /// An upper bound of sum s KL(q | p), plus a bound of the error of `loss`.
    pub divergence: f64,
    /// A bound of the error of `observed`, as a Euclidean norm.
    pub slack: f64,
    /// [features] sum s (F(y) - E_q F), empty if only the loss was computed.
    pub observed: Vec<f64>,
}

/// P and D of weights from the terms of all sentences.
///
/// The sums in this function have one term per feature: their relative error is at most the number of terms times the
/// unit roundoff.
pub fn bounds(w: &[f64], l2: f64, terms: &BoundTerms) -> (f64, f64) {
    let rate = 1.0 / (2.0 * l2);
    let (mut square, mut distance_square) = (0.0, 0.0);
    for (&w, &observed) in w.iter().zip(&terms.observed) {
        let error = w - rate * observed;
        square += w * w;
        distance_square += error * error;
    }
    let rounded = (w.len() as f64 + 16.0) * f64::EPSILON;
    // Error of w - rate * observed itself: each difference is rounded to half a unit of its larger term.
    let slack = rate * terms.slack + 2.0 * f64::EPSILON * (square.sqrt() + distance_square.sqrt());
    let distance = distance_square.sqrt() * (1.0 + rounded) + slack;
    let primal = terms.loss + l2 * square;
    let gap = terms.divergence + l2 * distance * distance * (1.0 + 8.0 * f64::EPSILON) + rounded * l2 * square;
    (primal, primal - gap - 4.0 * f64::EPSILON * primal.abs())
}

/// Sizes of the attributes of tokens, which bound the rounding of sums over them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Extent {
    terms: f64, // maximum number of attributes of a token
    sum: f64,   // maximum sum of their absolute values
    norm: f64,  // maximum of their Euclidean norm
}

impl Extent {
    pub fn of(cells: &Cells) -> Extent {
        let csr = cells.data.node.csr();
        let mut out = Extent::default();
        for token in csr.ptr.windows(2) {
            let n = (token[1] - token[0]) as f64;
            out.terms = out.terms.max(n);
            if csr.values.is_empty() {
                continue;
            }
            let (mut sum, mut square) = (0.0, 0.0);
            for &x in &csr.values[token[0]..token[1]] {
                sum += f64::from(x.abs());
                square += f64::from(x) * f64::from(x);
            }
            (out.sum, out.norm) = (out.sum.max(sum), out.norm.max(square));
        }
        if csr.values.is_empty() {
            (out.sum, out.norm) = (out.terms, out.terms);
        }
        out.norm = out.norm.sqrt();
        out
    }
}

/// Bounds on the rounding errors of a sentence, where u is the unit roundoff, T the number of tokens, L that of
/// labels.
///
/// - A node score is a sum of k products: its error is at most (k + 1) u max|w| sum|f|. That is a change of the
///   scores, so the error of the loss is at most twice that for each token, and so is that of the divergence.
/// - A row of gamma or of the chain is a sum of L products, a product, a division and an exponential, all of
///   positive numbers: the relative error of each number is at most (2 L + 16) u. For gamma that is a change of the
///   scores again, which does not accumulate along the sentence. For the marginals m it does: their error is
///   T (2 L + 16) u, and so is that of the terms that they multiply.
/// - log Z and the gold score are sums of 2 T numbers with the absolute values `magnitude`.
struct Rounding {
    score: f64,
    row: f64,
    norm: f64,
    sum: f64, // for sums over all tokens of a part
}

impl Rounding {
    fn new(problem: &DualProblem, w: &[Lane], tokens: usize) -> Rounding {
        let largest = w.iter().flat_map(|lane| lane.0).fold(0.0f32, |largest, w| largest.max(w.abs()));
        let Extent { terms, sum, norm } = problem.extent;
        let u = f64::EPSILON / 2.0;
        Rounding {
            score: (terms + 4.0) * u * f64::from(largest) * (sum + 3.0), // start, end, edge
            row: (2.0 * problem.cells.labels as f64 + 16.0) * u,
            norm: norm + 3.0,
            sum: (2.0 * tokens as f64 + 16.0) * u,
        }
    }

    /// Bound for the loss and the divergence of a sentence together.
    fn terms(&self, n: usize, loss_reach: f64, divergence_reach: f64) -> f64 {
        let n = n as f64;
        let u = f64::EPSILON / 2.0;
        n * (4.0 * self.score + 4.0 * self.row) + n * self.row * divergence_reach + (2.0 * n + 8.0) * u * loss_reach
    }

    /// Bound for the expectations of its features.
    fn observed(&self, n: usize) -> f64 {
        let n = n as f64;
        n * self.norm * (n * self.row + self.sum)
    }
}

/// P(w) alone, in single precision: an estimate.
pub(super) fn primal(dual: &Dual) -> f64 {
    let loss: f64 = map_parts(dual, PARTS, add_losses).iter().sum();
    let square: f64 = dual.w.iter().flat_map(|lane| lane.0).map(|w| f64::from(w) * f64::from(w)).sum();
    loss + dual.problem.l2 * square
}

fn map_parts<R: Send>(dual: &Dual, parts: u32, add: fn(&Dual, Range<u32>) -> R) -> Vec<R> {
    let n = dual.blocks.len() as u32;
    let stop = stop::current();
    (0..parts)
        .into_par_iter()
        .with_max_len(1)
        .map(|part| {
            let (_flush_to_zero, _guard) = (FlushToZero::new(), stop.enter());
            let at = |part: u32| (u64::from(n) * u64::from(part) / u64::from(parts)) as u32;
            add(dual, at(part)..at(part + 1))
        })
        .collect()
}

impl Dual {
    /// Terms of the current weights, in double precision.
    pub fn terms(&self) -> BoundTerms {
        let parts = if self.w.len() * WIDTH >= MANY_CELLS { 1 } else { CERTIFICATE_PARTS };
        let mut found = map_parts(self, parts, add_terms).into_iter();
        let mut sum = found.next().unwrap_or_default();
        for part in found {
            sum.loss += part.loss;
            sum.divergence += part.divergence;
            sum.slack += part.slack;
            sum.observed.iter_mut().zip(&part.observed).for_each(|(sum, x)| *sum += x);
        }
        sum.observed = self.problem.cells.gather(|cell| sum.observed.get(cell).copied().unwrap_or(f64::NAN));
        sum
    }

    /// Loss of the current weights, in single precision. NaN if a sentence is out of range.
    pub fn loss(&self) -> f64 {
        map_parts(self, PARTS, add_losses).iter().sum()
    }
}

dispatch!(
    fn add_losses(dual: &Dual, sentences: Range<u32>) -> f64 = losses_kernel
);

#[inline(always)]
fn losses_kernel<S: Find>(_: S, dual: &Dual, sentences: Range<u32>) -> f64 {
    let problem = &dual.problem;
    let (cells, width) = (&problem.cells, problem.cells.width);
    let mut scratch = VisitScratch::new(cells.labels);
    if !score_edges(problem, &dual.w, &mut scratch) {
        return f64::NAN;
    }
    let (logs, max) = (scratch.factors.logs(), f64::from(scratch.factors.max));
    let mut loss = 0.0;
    for i in sentences.clone().filter(|&i| problem.sample_weight[i as usize] > 0.0) {
        stop::check();
        let next = (i + 1).min(sentences.end - 1);
        let gold = cells.gold(i);
        if gold.is_empty() {
            continue;
        }
        score(problem, &dual.w, &mut scratch, i);
        problem.by_sentence.prefetch_cells(cells, &dual.w, next);
        let sums = &mut scratch.sums;
        let Some(log_z) = sentence::forward(sums, &scratch.factors, gold.len()) else {
            return f64::NAN;
        };
        let mut h = 0.0;
        for (t, &y) in gold.iter().enumerate() {
            h += f64::from(sums.node[t * width + y as usize / WIDTH].0[y as usize % WIDTH]);
            if t > 0 {
                h += max + logs[gold[t - 1] as usize * width * WIDTH + y as usize];
            }
        }
        loss += problem.sample_weight[i as usize] * (log_z - h);
    }
    loss
}

dispatch!(
    /// Terms of some sentences. `observed` is [cells].
    fn add_terms(dual: &Dual, sentences: Range<u32>) -> BoundTerms = terms_kernel
);

#[inline(always)]
fn terms_kernel<S: Find>(_: S, dual: &Dual, sentences: Range<u32>) -> BoundTerms {
    let problem = &dual.problem;
    let (cells, l, width) = (&problem.cells, problem.cells.labels, problem.cells.width);
    let out_of_range = || BoundTerms { loss: f64::NAN, ..BoundTerms::default() };
    let mut out = BoundTerms { observed: vec![0.0; dual.w.len() * WIDTH], ..BoundTerms::default() };
    let mut scratch = VisitScratch::new(l);
    score_edges(problem, &dual.w, &mut scratch);
    let edge = |a: u16, b: u16| f64::from(scratch.edges[a as usize * width + b as usize / WIDTH].0[b as usize % WIDTH]);
    let Some(factors) = scaled64::Factors::new(l, |a, b| edge(a as u16, b as u16)) else {
        return out_of_range();
    };
    let rounding = Rounding::new(problem, &dual.w, cells.data.tokens());
    let mut lanes = Vec::new();
    let mut chain = scaled64::Scaled64::default();
    let mut pairs = vec![Doubles::ZERO; l * width]; // expected pairs, divided by M
    let mut gold_pairs = vec![0.0; l * width * WIDTH];
    for i in sentences.clone().filter(|&i| problem.sample_weight[i as usize] > 0.0) {
        stop::check();
        let next = (i + 1).min(sentences.end - 1);
        let ((begin, end), gold) = (cells.range(i), cells.gold(i));
        let (n, s) = (end - begin, problem.sample_weight[i as usize]);
        if n == 0 {
            continue;
        }
        chain.reserve(n, l);
        initial_scores(problem, i, &mut lanes, &mut chain.node[..n * width]);
        add_scores64(&problem.by_sentence, cells, i, &dual.w, &mut chain.node[..n * width]);
        problem.by_sentence.prefetch_cells(cells, &dual.w, next);
        let Some(log_z) = scaled64::backward(&mut chain, &factors, n) else {
            return out_of_range();
        };
        let (mut score, mut magnitude) = (0.0, log_z.magnitude);
        for (t, &y) in gold.iter().enumerate() {
            let node = chain.node[t * width + y as usize / WIDTH].0[y as usize % WIDTH];
            score += node;
            magnitude += node.abs();
            if t > 0 {
                let edge = edge(gold[t - 1], y);
                score += edge;
                magnitude += edge.abs();
                gold_pairs[gold[t - 1] as usize * width * WIDTH + y as usize] += s;
            }
        }
        let found = scaled64::fit_marginals(&mut chain, &factors, &dual.nodes[begin * l..end * l], s, &mut pairs);
        out.loss += s * (log_z.value - score);
        // Summing over sentences rounds every partial sum once.
        let summed = rounding.sum * ((log_z.value - score).abs() + found.value.abs());
        out.divergence += s * (found.value + rounding.terms(n, magnitude, found.magnitude) + summed);
        out.slack += s * rounding.observed(n);
        chain.subtract(gold, width);
        add_doubles(&problem.by_sentence, cells, i, &chain.m[..n * width], -s, &mut out.observed);
    }
    let edges = cells.edges[0] as usize;
    let expected = pairs.iter().zip(factors.rows()).flat_map(|(c, m)| c.0.into_iter().zip(m.0));
    for ((at, (c, m)), gold) in expected.enumerate().zip(gold_pairs) {
        out.observed[edges + at] = gold - if m > 0.0 { c * m } else { 0.0 };
    }
    out
}

/// Initial node scores of a sentence: 0, or -infinity for labels that are not allowed and for padding.
fn initial_scores(problem: &DualProblem, sentence: u32, lanes: &mut Vec<Lane>, out: &mut [Doubles]) {
    let width = problem.cells.width;
    lanes.clear();
    lanes.resize(out.len(), Lane::ZERO);
    problem.cells.begin(sentence, lanes);
    for (i, (lane, out)) in lanes.iter().zip(out).enumerate() {
        let is_last = i % width == width - 1;
        for k in 0..WIDTH {
            let padding = if is_last { problem.no_label.0[k] } else { 0.0 };
            out.0[k] = f64::from(lane.0[k] + padding);
        }
    }
}
