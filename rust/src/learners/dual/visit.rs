//! One visit of a sentence: a step in closed form towards its distribution under the current weights.

use super::epoch::NO_SENTENCE;
use super::{Block, DualProblem, VisitScratch};
use crate::chain::sums::sentence;
use crate::machine::simd::dispatch::dispatch;
use crate::machine::simd::find::Find;
use crate::machine::simd::{flat, flat_mut, prefetch_all, Lane, WIDTH};
use crate::scores::online_layout::by_sentence;
use std::ops::Range;

/// Number of visits of a sentence between two trials of its step by one more recursion.
const TRY_EVERY: u32 = 4;
/// Trials are half as frequent once the correction of a sentence's steps (`kappa`) is above the first number and the
/// sentence has had the second number of visits.
const SETTLED: (f64, u32) = (0.5, 4);
/// Maximum change of a score in a trial.
const MAX_SCORE_CHANGE: f32 = 15.0;
/// Minimum share of a tried step that is taken, and minimum correction of the steps of a sentence.
const MIN_SHARES: (f64, f64) = (0.2, 0.02);

/// One sentence's part of the dual point.
pub(super) struct SentenceDual<'a> {
    pub mu: &'a mut [f32],    // [T, L]
    pub pairs: &'a mut [f32], // [edge features]
    pub block: &'a mut Block,
}

/// Rows of L numbers as lanes, padded with 0.
pub(super) fn pad(rows: &[f32], labels: usize, out: &mut Vec<Lane>) {
    let width = labels.div_ceil(WIDTH);
    out.clear();
    out.resize(rows.len() / labels * width, Lane::ZERO);
    for (row, to) in rows.chunks_exact(labels).zip(out.chunks_exact_mut(width)) {
        for (part, lane) in row.chunks(WIDTH).zip(to) {
            lane.0[..part.len()].copy_from_slice(part);
        }
    }
}

/// Range of each lane of rows of L numbers. The last of a row may be shorter.
pub(super) struct Lanes {
    labels: usize,
    row: usize,  // start of the row
    done: usize, // labels of the row done
}

impl Lanes {
    pub(super) fn of(labels: usize) -> Lanes {
        Lanes { labels, row: 0, done: 0 }
    }
}

impl Iterator for Lanes {
    type Item = Range<usize>;

    #[inline(always)]
    fn next(&mut self) -> Option<Range<usize>> {
        let (at, left) = (self.row + self.done, self.labels - self.done);
        if left > WIDTH {
            self.done += WIDTH;
            return Some(at..at + WIDTH);
        }
        self.row += self.labels;
        self.done = 0;
        Some(at..at + left)
    }
}

/// Change of the weights by a visit: step F(d) of a sentence.
#[derive(Default)]
pub(super) struct Move {
    pub sentence: u32, // or NO_SENTENCE
    step: f32,
    d: Vec<Lane>,    // [T, width] p - mu
    pairs: Vec<f32>, // [edge features] difference of the pair sums
}

impl Move {
    /// Prefetch the move, which another thread may have written.
    #[inline(always)]
    pub fn prefetch(&self) {
        prefetch_all(&self.d);
        prefetch_all(&self.pairs);
    }
}

dispatch!(
    /// Compute the factors of the current edge scores. Return false if these are out of range for float32.
    pub(super) fn score_edges(problem: &DualProblem, w: &[Lane], scratch: &mut VisitScratch) -> bool = score_edges_kernel
);

#[inline(always)]
fn score_edges_kernel<S: Find>(simd: S, problem: &DualProblem, w: &[Lane], scratch: &mut VisitScratch) -> bool {
    let first = problem.cells.edges[0] as usize / WIDTH;
    for ((to, w), none) in scratch.edges.iter_mut().zip(&w[first..]).zip(&problem.no_edge) {
        simd.store(simd.add(simd.load(w), simd.load(none)), to);
    }
    sentence::set(&mut scratch.factors, &scratch.edges)
}

/// Compute the node scores of a sentence.
pub(super) fn score(problem: &DualProblem, w: &[Lane], scratch: &mut VisitScratch, sentence: u32) {
    let cells = &problem.cells;
    let (begin, end) = cells.range(sentence);
    let (n, width) = (end - begin, cells.width);
    scratch.sums.reserve(n, cells.labels);
    let node = &mut scratch.sums.node[..n * width];
    cells.begin(sentence, node);
    for row in node.chunks_exact_mut(width) {
        for (x, none) in row[width - 1].0.iter_mut().zip(&problem.no_label.0) {
            *x += none;
        }
    }
    by_sentence::add_scores(&problem.by_sentence, cells, sentence, w, node);
}

/// Write d = p - mu, and return sum 2 d^2 / (p + mu). `p` and `d` are [T, width], `mu` [T, L].
#[inline(always)]
fn compare<S: Find>(simd: S, p: &[Lane], mu: &[f32], labels: usize, d: &mut [Lane]) -> f64 {
    let zero = simd.splat(0.0);
    let mut sum = zero;
    for ((p, d), at) in p.iter().zip(d).zip(Lanes::of(labels)) {
        let (p, mu) = (simd.load(p), simd.load_first(&mu[at]));
        let (here, both) = (simd.sub(p, mu), simd.add(p, mu));
        let square = simd.mul(simd.add(here, here), here);
        sum = simd.add(sum, simd.select_gt(both, zero, simd.div(square, both), zero));
        simd.store(here, d);
    }
    f64::from(simd.total(sum))
}

/// Visit a sentence: move q_i, and write the change of the weights. Return None, with nothing changed, if the sentence
/// is out of range for float32.
///
/// ```text
/// p = marginals of w,  d = p - mu
/// G = sum 2 d^2 / (p + mu)                     chi-square in place of the symmetric divergence
/// Q = s / (2 l2) |F(d)|^2
/// g = kappa G / (kappa G + Q)                  maximum of the parabola of the dual along d
/// mu += g d,  w -= s g / (2 l2) F(d)
/// ```
#[inline(always)]
pub(super) fn visit_sentence<S: Find>(
    simd: S,
    problem: &DualProblem,
    own: SentenceDual<'_>,
    w: &[Lane],
    scratch: &mut VisitScratch,
    to: &mut Move,
    (sentence, next): (u32, u32),
) -> Option<()> {
    let cells = &problem.cells;
    let n = own.mu.len() / cells.labels;
    let rate = problem.sample_weight[sentence as usize] / (2.0 * problem.l2);
    if n == 0 {
        own.block.distance = 0.0;
        return Some(());
    }
    if !score_edges(problem, w, scratch) {
        return None;
    }
    score(problem, w, scratch, sentence);
    sentence::marginals(&mut scratch.sums, &scratch.factors, n)?;
    problem.by_sentence.prefetch_cells(cells, w, next);
    to.d.resize(n * cells.width, Lane::ZERO);
    let distance = compare(simd, &scratch.sums.p, own.mu, cells.labels, &mut to.d);
    let found = flat(&scratch.sums.pairs);
    to.pairs.resize(own.pairs.len(), 0.0);
    for ((&at, &mu), d) in problem.edge_at.iter().zip(&*own.pairs).zip(&mut to.pairs) {
        *d = found[at as usize] - mu;
    }
    let square = dot_pairs(&to.pairs, &to.pairs) + by_sentence::square(&problem.by_sentence, cells, sentence, &to.d);
    let q = rate * square;
    let block = own.block;
    let is_settled = block.kappa > SETTLED.0 && block.visits >= SETTLED.1;
    let interval = TRY_EVERY << u32::from(is_settled);
    let is_trial = block.visits.wrapping_add(sentence) % interval == interval - 1;
    block.visits = block.visits.wrapping_add(1);
    let mut g = block.kappa * distance / (block.kappa * distance + q);
    if !g.is_finite() {
        let is_optimal = distance == 0.0; // 0 / 0 would not be a step
        block.distance = if is_optimal { 0.0 } else { block.distance };
        return is_optimal.then_some(());
    }
    block.distance = distance;
    if is_trial {
        g = shorten_step(simd, problem, (own.mu, own.pairs), to, scratch, sentence, (g, rate, square));
        let share = (g * q / ((1.0 - g) * distance)).clamp(MIN_SHARES.1, 1.0);
        if share.is_finite() {
            block.kappa = (block.kappa * share).sqrt();
        }
    }
    let (by, g32) = (simd.splat(g as f32), g as f32);
    for (d, at) in to.d.iter().zip(Lanes::of(cells.labels)) {
        let mu = &mut own.mu[at];
        simd.store_first(simd.fma(by, simd.load(d), simd.load_first(mu)), mu);
    }
    for (mu, &d) in own.pairs.iter_mut().zip(&to.pairs) {
        *mu += g32 * d;
    }
    (to.sentence, to.step) = (sentence, -(rate * g) as f32);
    Some(())
}

/// Apply a visit to the weights.
pub(super) fn apply(problem: &DualProblem, by: &Move, w: &mut [Lane]) {
    if by.sentence == NO_SENTENCE {
        return;
    }
    let edge_weights = &mut flat_mut(w)[problem.cells.edges[0] as usize..];
    for (&d, &at) in by.pairs.iter().zip(&problem.edge_at) {
        edge_weights[at as usize] += by.step * d;
    }
    by_sentence::apply(&problem.by_sentence, &problem.cells, by.sentence, &by.d, by.step, w);
}

/// sum x y, in independent partial sums.
fn dot_pairs(x: &[f32], y: &[f32]) -> f64 {
    let mut sums = [0.0f64; 8];
    let (xs, ys) = (x.chunks_exact(8), y.chunks_exact(8));
    let rest = xs.remainder().iter().zip(ys.remainder()).map(|(&x, &y)| f64::from(x) * f64::from(y)).sum::<f64>();
    for (x, y) in xs.zip(ys) {
        for (i, sum) in sums.iter_mut().enumerate() {
            *sum += f64::from(x[i]) * f64::from(y[i]);
        }
    }
    sums.iter().sum::<f64>() + rest
}

/// Return the step, shortened if the sentence would be beyond p after it: a secant of <F(d), F(p' - mu - g d)>, where
/// p' is its distribution at the weights after the step. Never lengthened, since that diverges.
#[inline(always)]
fn shorten_step<S: Find>(
    simd: S,
    problem: &DualProblem,
    (mu, pairs): (&[f32], &[f32]),
    movement: &Move,
    scratch: &mut VisitScratch,
    sentence: u32,
    (g, rate, square): (f64, f64, f64),
) -> f64 {
    let Move { d, pairs: d_pairs, .. } = movement;
    scratch.moved.resize(scratch.moved.len().max(d.len()), Lane::ZERO);
    let moved = &mut scratch.moved[..d.len()];
    by_sentence::scores(&problem.by_sentence, &problem.cells, sentence, d, moved);
    let mut largest = simd.splat(0.0);
    for x in moved.iter() {
        let x = simd.load(x);
        largest = simd.max(largest, simd.max(x, simd.sub(simd.splat(0.0), x)));
    }
    let largest = d_pairs.iter().fold(simd.largest(largest), |m, d| m.max(d.abs()));
    let trial = g * f64::from(MAX_SCORE_CHANGE / (MAX_SCORE_CHANGE.max((g * rate) as f32 * largest)));
    let by = simd.splat(-(trial * rate) as f32);
    for (s, x) in scratch.sums.node.iter_mut().zip(moved.iter()) {
        simd.store(simd.fma(by, simd.load(x), simd.load(s)), s);
    }
    let scores = flat_mut(&mut scratch.edges);
    for (&at, &d) in problem.edge_at.iter().zip(d_pairs) {
        scores[at as usize] -= (trial * rate) as f32 * d;
    }
    let (n, done) = (d.len() / problem.cells.width, sentence::set(&mut scratch.factors, &scratch.edges));
    if !done || sentence::marginals(&mut scratch.sums, &scratch.factors, n).is_none() {
        return g.min(MIN_SHARES.0 * trial);
    }
    let step = simd.splat(trial as f32);
    let mut sum = simd.splat(0.0);
    for (((x, p), d), at) in moved.iter().zip(&scratch.sums.p).zip(d).zip(Lanes::of(problem.cells.labels)) {
        let mu = simd.load_first(&mu[at]);
        let rest = simd.sub(simd.sub(simd.load(p), mu), simd.mul(step, simd.load(d)));
        sum = simd.fma(simd.load(x), rest, sum);
    }
    let mut left = f64::from(simd.total(sum));
    let found = flat(&scratch.sums.pairs);
    for ((&at, &mu), &d) in problem.edge_at.iter().zip(pairs).zip(d_pairs) {
        left += f64::from(d) * (f64::from(found[at as usize]) - f64::from(mu) - trial * f64::from(d));
    }
    let secant = trial * square / (square - left);
    match square > left {
        true => g.min(secant.max(MIN_SHARES.0 * trial)),
        false => g,
    }
}
