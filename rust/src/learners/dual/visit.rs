//! One visit of a sentence: towards its distribution under the weights now, by a step in closed form.

use super::{Block, Dual, Ground, Scratch, Visited};
use crate::chain::beside;
use crate::machine::dispatch::dispatch;
use crate::machine::find::Find;
use crate::machine::simd::{ask, Lane, WIDTH};
use crate::machine::stop;
use crate::scores::cells::spread;

/// Every so many visits of a sentence its step is tried by one more recursion.
const TRY_EVERY: u32 = 4;
/// How far a trial may move a score.
const FAR: f32 = 15.0;
/// Least share of the step tried that is taken, and the least correction of the steps of a sentence.
const LEAST: (f64, f64) = (0.2, 0.02);

dispatch!(
    /// Visits in this order.
    pub(super) fn run(dual: &mut Dual, order: &[u32]) -> Visited = run_kernel
);

/// # Safety
/// The machine has the instructions of `S`.
#[inline(always)]
unsafe fn run_kernel<S: Find>(dual: &mut Dual, order: &[u32]) -> Visited {
    let Dual { ground, w, nodes, pairs, blocks, scratch, way, .. } = dual;
    let (width, edges) = (ground.tokens.width, ground.edge_at.len());
    let mut out = Visited::default();
    for (k, &i) in order.iter().enumerate() {
        stop::look();
        let next = order.get(k + 1).copied().unwrap_or(i);
        let (begin, end) = ground.tokens.range(next);
        ask(&nodes[begin * width..end * width]);
        ask(&pairs[next as usize * edges..(next as usize + 1) * edges]);
        let (begin, end) = ground.tokens.range(i);
        let own = Own {
            mu: &mut nodes[begin * width..end * width],
            pairs: &mut pairs[i as usize * edges..(i as usize + 1) * edges],
            block: &mut blocks[i as usize],
        };
        out.failed += usize::from(visit::<S>(ground, own, w, scratch, way, i, next).is_none());
        out.tokens += end - begin;
    }
    out
}

/// One sentence's part of the dual point.
struct Own<'a> {
    mu: &'a mut [Lane],   // [T, width]
    pairs: &'a mut [f32], // [edge features]
    block: &'a mut Block,
}

/// Factors of the edge scores now; false where these are beyond float32.
pub(super) fn score_edges(ground: &Ground, w: &[Lane], scratch: &mut Scratch) -> bool {
    let first = ground.tokens.edges[0] as usize / WIDTH;
    for ((to, w), none) in scratch.edges.iter_mut().zip(&w[first..]).zip(&ground.no_edge) {
        for ((to, w), none) in to.0.iter_mut().zip(&w.0).zip(&none.0) {
            *to = w + none;
        }
    }
    beside::set(&mut scratch.moves, &scratch.edges)
}

dispatch!(
    /// Node scores of a sentence, `next` being the one after it.
    pub(super) fn score(ground: &Ground, w: &[Lane], scratch: &mut Scratch, sentence: u32, next: Option<u32>) = score_kernel
);

/// # Safety
/// The machine has the instructions of `S`.
#[inline(always)]
unsafe fn score_kernel<S: Find>(ground: &Ground, w: &[Lane], scratch: &mut Scratch, sentence: u32, next: Option<u32>) {
    let tokens = &ground.tokens;
    let (begin, end) = tokens.range(sentence);
    let (n, width) = (end - begin, tokens.width);
    scratch.beside.reserve(n, tokens.labels);
    let node = &mut scratch.beside.node[..n * width];
    tokens.begin_fill(w, sentence, node);
    let mut walk = next.map(|next| tokens.walk(next));
    let none = S::load(&ground.no_label);
    for (t, row) in node.chunks_exact_mut(width).enumerate() {
        tokens.add_rows::<S>(w, begin + t, row);
        S::store(S::add(S::load(&row[width - 1]), none), &mut row[width - 1]);
        if let Some(walk) = &mut walk {
            walk.step();
        }
    }
    if let Some(walk) = &mut walk {
        walk.finish();
    }
}

/// d = p - mu, and sum 2 d^2 / (p + mu).
///
/// # Safety
/// The machine has the instructions of `S`; all are [T, width].
#[inline(always)]
unsafe fn compare<S: Find>(p: &[Lane], mu: &[Lane], d: &mut [Lane]) -> f64 {
    let zero = S::splat(0.0);
    let mut sum = zero;
    for ((p, mu), d) in p.iter().zip(mu).zip(d) {
        let (p, mu) = (S::load(p), S::load(mu));
        let (here, both) = (S::sub(p, mu), S::add(p, mu));
        let square = S::mul(S::add(here, here), here);
        sum = S::add(sum, S::select_gt(both, zero, S::div(square, both), zero));
        S::store(here, d);
    }
    f64::from(S::total(sum))
}

/// One visit; None where float32 cannot do it, and then nothing has changed.
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
unsafe fn visit<S: Find>(
    ground: &Ground,
    own: Own<'_>,
    w: &mut [Lane],
    scratch: &mut Scratch,
    way: &mut Way,
    sentence: u32,
    next: u32,
) -> Option<()> {
    let tokens = &ground.tokens;
    let n = own.mu.len() / tokens.width;
    let rate = ground.sample_weight[sentence as usize] / (2.0 * ground.l2);
    if n == 0 {
        own.block.distance = 0.0;
        return Some(());
    }
    if !score_edges(ground, w, scratch) {
        return None;
    }
    ground.spread.prefetch_lists(next);
    score(ground, w, scratch, sentence, Some(next));
    beside::marginals(&mut scratch.beside, &scratch.moves, n)?;
    ground.spread.prefetch_cells(tokens, w, next);
    way.d.resize(own.mu.len(), Lane::ZERO);
    let distance = compare::<S>(&scratch.beside.p, own.mu, &mut way.d);
    let found = scratch.beside.pairs.as_ptr().cast::<f32>();
    way.pairs.resize(own.pairs.len(), 0.0);
    for ((&at, &mu), d) in ground.edge_at.iter().zip(&*own.pairs).zip(&mut way.pairs) {
        *d = *found.add(at as usize) - mu;
    }
    let square = of_pairs(&way.pairs, &way.pairs) + spread::square(&ground.spread, tokens, sentence, &way.d);
    let q = rate * square;
    let block = own.block;
    let tries = (block.visits.wrapping_add(sentence)) % TRY_EVERY == TRY_EVERY - 1;
    block.visits = block.visits.wrapping_add(1);
    let mut g = block.kappa * distance / (block.kappa * distance + q);
    if !g.is_finite() {
        let still = distance == 0.0; // and 0 / 0 is no step
        block.distance = if still { 0.0 } else { block.distance };
        return still.then_some(());
    }
    block.distance = distance;
    if tries {
        (way.rate, way.square) = (rate, square);
        g = tried::<S>(ground, (own.mu, own.pairs), way, scratch, sentence, g);
        let share = (g * q / ((1.0 - g) * distance)).clamp(LEAST.1, 1.0);
        if share.is_finite() {
            block.kappa = (block.kappa * share).sqrt();
        }
    }
    let (by, g32) = (S::splat(g as f32), g as f32);
    for (mu, d) in own.mu.iter_mut().zip(&way.d) {
        S::store(S::fma(by, S::load(d), S::load(mu)), mu);
    }
    let step = -(rate * g) as f32;
    let edge_weights = w.as_mut_ptr().cast::<f32>().add(tokens.edges[0] as usize);
    for ((mu, &d), &at) in own.pairs.iter_mut().zip(&way.pairs).zip(&ground.edge_at) {
        *mu += g32 * d;
        *edge_weights.add(at as usize) += step * d;
    }
    spread::apply(&ground.spread, tokens, sentence, &way.d, step, w);
    Some(())
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

/// The way that a step goes.
#[derive(Default)]
pub(super) struct Way {
    d: Vec<Lane>,    // [T, width] p - mu
    pairs: Vec<f32>, // [edge features] the same of the pair sums
    rate: f64,
    square: f64, // |F(d)|^2
}

/// A step that is shortened where the sentence, after it, would stand beyond p: a secant of <F(d), F(p' - mu - g d)>,
/// where p' is its distribution at the weights behind the step. Never lengthened: that diverges.
///
/// # Safety
/// The machine has the instructions of `S`.
#[inline(always)]
unsafe fn tried<S: Find>(
    ground: &Ground,
    (mu, pairs): (&[Lane], &[f32]),
    way: &Way,
    scratch: &mut Scratch,
    sentence: u32,
    g: f64,
) -> f64 {
    let Way { d, pairs: d_pairs, rate, square } = way;
    let (rate, square) = (*rate, *square);
    scratch.moved.resize(scratch.moved.len().max(d.len()), Lane::ZERO);
    let moved = &mut scratch.moved[..d.len()];
    spread::scores(&ground.spread, &ground.tokens, sentence, d, moved);
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
    let (n, done) = (d.len() / ground.tokens.width, beside::set(&mut scratch.moves, &scratch.edges));
    if !done || beside::marginals(&mut scratch.beside, &scratch.moves, n).is_none() {
        return g.min(LEAST.0 * trial);
    }
    let step = S::splat(trial as f32);
    let mut sum = S::splat(0.0);
    for (((x, p), mu), d) in moved.iter().zip(&scratch.beside.p).zip(mu).zip(d) {
        let rest = S::sub(S::sub(S::load(p), S::load(mu)), S::mul(step, S::load(d)));
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
