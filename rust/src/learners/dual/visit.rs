//! One visit of a sentence: towards its distribution under the weights now, by a step in closed form.

use super::epoch::NOBODY;
use super::{Block, Ground, Scratch};
use crate::chain::sums::sentence;
use crate::machine::simd::dispatch::dispatch;
use crate::machine::simd::find::Find;
use crate::machine::simd::{ask, Ahead, Lane, WIDTH};
use crate::scores::online_layout::spread;

/// Every so many visits of a sentence its step is tried by one more recursion, while it is new or had to be shortened ...
const TRY_EVERY: u32 = 4;
/// ... by more than this, after so many visits; else half as often.
const SETTLED: (f64, u32) = (0.5, 4);
/// How far a trial may move a score.
const FAR: f32 = 15.0;
/// Least share of the step tried that is taken, and the least correction of the steps of a sentence.
const LEAST: (f64, f64) = (0.2, 0.02);

/// One sentence's part of the dual point.
pub(super) struct Own<'a> {
    pub mu: &'a mut [f32],    // [T, L]
    pub pairs: &'a mut [f32], // [edge features]
    pub block: &'a mut Block,
}

/// Rows of L numbers as lanes, the last ones filled up with 0.
pub(super) fn pad(rows: &[f32], labels: usize, out: &mut Vec<Lane>) {
    let width = labels.div_ceil(WIDTH);
    out.clear();
    out.resize(rows.len() / labels * width, Lane::ZERO);
    for (row, to) in rows.chunks_exact(labels).zip(out.chunks_exact_mut(width)) {
        for (some, lane) in row.chunks(WIDTH).zip(to) {
            lane.0[..some.len()].copy_from_slice(some);
        }
    }
}

/// Where the lanes of rows of L numbers begin, one behind the other, and which places of each are there.
pub(super) struct Lanes {
    labels: usize,
    row: usize,  // where it begins
    done: usize, // of its labels
}

impl Lanes {
    pub(super) fn of(labels: usize) -> Lanes {
        Lanes { labels, row: 0, done: 0 }
    }
}

impl Iterator for Lanes {
    type Item = (usize, u16);

    #[inline(always)]
    fn next(&mut self) -> Option<(usize, u16)> {
        let (at, left) = (self.row + self.done, self.labels - self.done);
        if left > WIDTH {
            self.done += WIDTH;
            return Some((at, u16::MAX));
        }
        self.row += self.labels;
        self.done = 0;
        Some((at, u16::MAX >> (WIDTH - left)))
    }
}

/// What the weights are to move by: step F(d) of a sentence.
#[derive(Default)]
pub(super) struct Move {
    pub sentence: u32, // or NOBODY
    step: f32,
    d: Vec<Lane>,    // [T, width] p - mu
    pairs: Vec<f32>, // [edge features] the same of the pair sums
}

impl Move {
    /// Ask for it: another may have found it.
    #[inline(always)]
    pub fn ask(&self) {
        ask(&self.d);
        ask(&self.pairs);
    }
}

dispatch!(
    /// Factors of the edge scores now; false where these are beyond float32.
    pub(super) fn score_edges(ground: &Ground, w: &[Lane], scratch: &mut Scratch) -> bool = score_edges_kernel
);

/// # Safety
/// The machine has the instructions of `S`.
#[inline(always)]
unsafe fn score_edges_kernel<S: Find>(ground: &Ground, w: &[Lane], scratch: &mut Scratch) -> bool {
    let first = ground.cells.edges[0] as usize / WIDTH;
    for ((to, w), none) in scratch.edges.iter_mut().zip(&w[first..]).zip(&ground.no_edge) {
        S::store(S::add(S::load(w), S::load(none)), to);
    }
    sentence::set(&mut scratch.moves, &scratch.edges)
}

/// Node scores of a sentence, while something else is asked for.
pub(super) fn score(ground: &Ground, w: &[Lane], scratch: &mut Scratch, sentence: u32, ahead: &mut Ahead) {
    let cells = &ground.cells;
    let (begin, end) = cells.range(sentence);
    let (n, width) = (end - begin, cells.width);
    scratch.beside.reserve(n, cells.labels);
    let node = &mut scratch.beside.node[..n * width];
    cells.begin(sentence, node);
    for row in node.chunks_exact_mut(width) {
        for (x, none) in row[width - 1].0.iter_mut().zip(&ground.no_label.0) {
            *x += none;
        }
    }
    spread::weigh(&ground.spread, cells, sentence, w, node, ahead);
}

/// d = p - mu, and sum 2 d^2 / (p + mu).
///
/// # Safety
/// The machine has the instructions of `S`; `p` and `d` are [T, width], `mu` [T, L].
#[inline(always)]
unsafe fn compare<S: Find>(p: &[Lane], mu: &[f32], labels: usize, d: &mut [Lane]) -> f64 {
    let zero = S::splat(0.0);
    let mut sum = zero;
    for ((p, d), (at, bits)) in p.iter().zip(d).zip(Lanes::of(labels)) {
        let (p, mu) = (S::load(p), S::load_some(mu.as_ptr().add(at), bits));
        let (here, both) = (S::sub(p, mu), S::add(p, mu));
        let square = S::mul(S::add(here, here), here);
        sum = S::add(sum, S::select_gt(both, zero, S::div(square, both), zero));
        S::store(here, d);
    }
    f64::from(S::total(sum))
}

/// One visit: moves q_i, and says what the weights are to move by. None where float32 cannot do it, and then nothing has changed.
///
/// ```text
/// p = marginals of w;  d = p - mu
/// G = sum 2 d^2 / (p + mu)                     chi-square in place of the symmetric divergence
/// Q = s / (2 l2) |F(d)|^2
/// g = kappa G / (kappa G + Q)                  where the parabola of the dual along d has its top
/// mu += g d;  w -= s g / (2 l2) F(d)
/// ```
///
/// # Safety
/// The machine has the instructions of `S`.
#[inline(always)]
pub(super) unsafe fn find<S: Find>(
    ground: &Ground,
    own: Own<'_>,
    w: &[Lane],
    scratch: &mut Scratch,
    to: &mut Move,
    (sentence, next): (u32, u32),
    ahead: &mut [Ahead; 2],
) -> Option<()> {
    let cells = &ground.cells;
    let n = own.mu.len() / cells.labels;
    let rate = ground.sample_weight[sentence as usize] / (2.0 * ground.l2);
    if n == 0 {
        own.block.distance = 0.0;
        return Some(());
    }
    if !score_edges(ground, w, scratch) {
        return None;
    }
    let [lists, own_part] = ahead;
    score(ground, w, scratch, sentence, lists);
    lists.finish();
    sentence::marginals(&mut scratch.beside, &scratch.moves, n, own_part)?;
    own_part.finish();
    ground.spread.prefetch_cells(cells, w, next);
    to.d.resize(n * cells.width, Lane::ZERO);
    let distance = compare::<S>(&scratch.beside.p, own.mu, cells.labels, &mut to.d);
    let found = scratch.beside.pairs.as_ptr().cast::<f32>();
    to.pairs.resize(own.pairs.len(), 0.0);
    for ((&at, &mu), d) in ground.edge_at.iter().zip(&*own.pairs).zip(&mut to.pairs) {
        *d = *found.add(at as usize) - mu;
    }
    let square = of_pairs(&to.pairs, &to.pairs) + spread::square(&ground.spread, cells, sentence, &to.d);
    let q = rate * square;
    let block = own.block;
    let is_settled = block.kappa > SETTLED.0 && block.visits >= SETTLED.1;
    let every = TRY_EVERY << u32::from(is_settled);
    let tries = block.visits.wrapping_add(sentence) % every == every - 1;
    block.visits = block.visits.wrapping_add(1);
    let mut g = block.kappa * distance / (block.kappa * distance + q);
    if !g.is_finite() {
        let still = distance == 0.0; // and 0 / 0 is no step
        block.distance = if still { 0.0 } else { block.distance };
        return still.then_some(());
    }
    block.distance = distance;
    if tries {
        g = tried::<S>(ground, (own.mu, own.pairs), to, scratch, sentence, (g, rate, square));
        let share = (g * q / ((1.0 - g) * distance)).clamp(LEAST.1, 1.0);
        if share.is_finite() {
            block.kappa = (block.kappa * share).sqrt();
        }
    }
    let (by, g32) = (S::splat(g as f32), g as f32);
    for (d, (at, bits)) in to.d.iter().zip(Lanes::of(cells.labels)) {
        let mu = own.mu.as_mut_ptr().add(at);
        S::store_some(S::fma(by, S::load(d), S::load_some(mu, bits)), mu, bits);
    }
    for (mu, &d) in own.pairs.iter_mut().zip(&to.pairs) {
        *mu += g32 * d;
    }
    (to.sentence, to.step) = (sentence, -(rate * g) as f32);
    Some(())
}

/// Moves the weights by what a visit found.
///
/// # Safety
/// `w` are [cells].
pub(super) unsafe fn apply(ground: &Ground, by: &Move, w: &mut [Lane]) {
    if by.sentence == NOBODY {
        return;
    }
    let edge_weights = w.as_mut_ptr().cast::<f32>().add(ground.cells.edges[0] as usize);
    for (&d, &at) in by.pairs.iter().zip(&ground.edge_at) {
        *edge_weights.add(at as usize) += by.step * d;
    }
    spread::apply(&ground.spread, &ground.cells, by.sentence, &by.d, by.step, w);
}

/// sum x y, in sums that do not wait for each other.
fn of_pairs(x: &[f32], y: &[f32]) -> f64 {
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

/// A step that is shortened where the sentence, after it, would stand beyond p: a secant of <F(d), F(p' - mu - g d)>,
/// where p' is its distribution at the weights behind the step. Never lengthened: that diverges.
///
/// # Safety
/// The machine has the instructions of `S`.
#[inline(always)]
unsafe fn tried<S: Find>(
    ground: &Ground,
    (mu, pairs): (&[f32], &[f32]),
    way: &Move,
    scratch: &mut Scratch,
    sentence: u32,
    (g, rate, square): (f64, f64, f64),
) -> f64 {
    let Move { d, pairs: d_pairs, .. } = way;
    scratch.moved.resize(scratch.moved.len().max(d.len()), Lane::ZERO);
    let moved = &mut scratch.moved[..d.len()];
    spread::scores(&ground.spread, &ground.cells, sentence, d, moved);
    let mut most = S::splat(0.0);
    for x in moved.iter() {
        let x = S::load(x);
        most = S::max(most, S::max(x, S::sub(S::splat(0.0), x)));
    }
    let most = d_pairs.iter().fold(S::largest(most), |m, d| m.max(d.abs()));
    let trial = g * f64::from(FAR / (FAR.max((g * rate) as f32 * most)));
    let by = S::splat(-(trial * rate) as f32);
    for (s, x) in scratch.beside.node.iter_mut().zip(moved.iter()) {
        S::store(S::fma(by, S::load(x), S::load(s)), s);
    }
    let scores = scratch.edges.as_mut_ptr().cast::<f32>();
    for (&at, &d) in ground.edge_at.iter().zip(d_pairs) {
        *scores.add(at as usize) -= (trial * rate) as f32 * d;
    }
    let (n, done) = (d.len() / ground.cells.width, sentence::set(&mut scratch.moves, &scratch.edges));
    if !done || sentence::marginals(&mut scratch.beside, &scratch.moves, n, &mut Ahead::nothing()).is_none() {
        return g.min(LEAST.0 * trial);
    }
    let step = S::splat(trial as f32);
    let mut sum = S::splat(0.0);
    for (((x, p), d), (at, bits)) in moved.iter().zip(&scratch.beside.p).zip(d).zip(Lanes::of(ground.cells.labels)) {
        let mu = S::load_some(mu.as_ptr().add(at), bits);
        let rest = S::sub(S::sub(S::load(p), mu), S::mul(step, S::load(d)));
        sum = S::fma(S::load(x), rest, sum);
    }
    let mut left = f64::from(S::total(sum));
    let found = scratch.beside.pairs.as_ptr().cast::<f32>();
    for ((&at, &mu), &d) in ground.edge_at.iter().zip(pairs).zip(d_pairs) {
        left += f64::from(d) * (f64::from(*found.add(at as usize)) - f64::from(mu) - trial * f64::from(d));
    }
    let secant = trial * square / (square - left);
    match square > left {
        true => g.min(secant.max(LEAST.0 * trial)),
        false => g,
    }
}
