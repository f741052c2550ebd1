//! One visit of a sentence: towards its distribution under the weights now, by a step in closed form.

use super::{Dual, Scratch, Visited};
use crate::machine::dispatch::dispatch;
use crate::machine::find::Find;
use crate::machine::simd::{prefetch, Lane, WIDTH};
use crate::machine::stop;

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
    let mut out = Visited::default();
    for (k, &i) in order.iter().enumerate() {
        stop::look();
        let next = order.get(k + 1).copied().unwrap_or(i);
        out.failed += usize::from(visit::<S>(dual, i, next).is_none());
        let (begin, end) = dual.tokens.range(i);
        out.tokens += end - begin;
    }
    out
}

/// Factors of the edge scores now; false where these are beyond float32.
///
/// # Safety
/// The machine has the instructions of `S`.
#[inline(always)]
pub(super) unsafe fn score_edges<S: Find>(dual: &Dual, scratch: &mut Scratch) -> bool {
    let first = dual.tokens.edges[0] as usize / WIDTH;
    for ((to, w), none) in scratch.edges.iter_mut().zip(&dual.w[first..]).zip(&dual.no_edge) {
        S::store(S::add(S::load(w), S::load(none)), to);
    }
    scratch.moves.set::<S>(&scratch.edges)
}

/// Node scores of a sentence, `next` being the one after it.
///
/// # Safety
/// The machine has the instructions of `S`.
#[inline(always)]
pub(super) unsafe fn score<S: Find>(dual: &Dual, scratch: &mut Scratch, sentence: u32, next: Option<u32>) {
    let (tokens, w) = (&dual.tokens, &dual.w);
    let (begin, end) = tokens.range(sentence);
    let (n, width) = (end - begin, tokens.width);
    scratch.beside.reserve(n, tokens.labels);
    let node = &mut scratch.beside.node[..n * width];
    tokens.begin_fill(w, sentence, node);
    let mut walk = next.map(|next| tokens.walk(next));
    let none = S::load(&dual.no_label);
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
unsafe fn visit<S: Find>(dual: &mut Dual, sentence: u32, next: u32) -> Option<()> {
    let mut scratch = std::mem::take(&mut dual.scratch);
    let done = step::<S>(dual, &mut scratch, sentence, next);
    dual.scratch = scratch;
    done
}

/// # Safety
/// The machine has the instructions of `S`.
#[inline(always)]
unsafe fn step<S: Find>(dual: &mut Dual, scratch: &mut Scratch, sentence: u32, next: u32) -> Option<()> {
    let (begin, end) = dual.tokens.range(sentence);
    let (n, width, edges) = (end - begin, dual.tokens.width, dual.edge_at.len());
    let i = sentence as usize;
    let rate = dual.sample_weight[i] / (2.0 * dual.l2);
    if n == 0 {
        dual.blocks[i].distance = 0.0;
        return Some(());
    }
    if !score_edges::<S>(dual, scratch) {
        return None;
    }
    score::<S>(dual, scratch, sentence, Some(next));
    scratch.beside.forward::<S>(&scratch.moves, n)?;
    scratch.beside.backward::<S>(&scratch.moves, n);
    dual.tokens.prefetch_rare(&dual.w, next);
    dual.tokens.prefetch_sums(&dual.sums, next);
    scratch.d.resize(scratch.d.len().max(n * width), Lane::ZERO);
    let mu = &dual.nodes[begin * width..end * width];
    let d = &mut scratch.d[..n * width];
    let distance = compare::<S>(&scratch.beside.p, mu, d);
    let mu_pairs = &dual.pairs[i * edges..(i + 1) * edges];
    let found = scratch.beside.pairs.as_ptr().cast::<f32>();
    let mut square = 0.0f64;
    for ((&at, &mu), d) in dual.edge_at.iter().zip(mu_pairs).zip(&mut scratch.d_pairs) {
        *d = *found.add(at as usize) - mu;
        square += f64::from(*d) * f64::from(*d);
    }
    square += dual.tokens.collect::<S>(d, sentence, &mut dual.sums);
    let q = rate * square;
    let block = &mut dual.blocks[i];
    let tries = (block.visits.wrapping_add(sentence)) % TRY_EVERY == TRY_EVERY - 1;
    block.visits = block.visits.wrapping_add(1);
    let mut g = block.kappa * distance / (block.kappa * distance + q);
    if !g.is_finite() {
        dual.tokens.apply::<S>(sentence, 0.0, &mut dual.sums, &mut dual.w);
        let still = distance == 0.0; // and 0 / 0 is no step
        block.distance = if still { 0.0 } else { block.distance };
        return still.then_some(());
    }
    block.distance = distance;
    if tries {
        g = tried::<S>(dual, scratch, sentence, g, rate, square);
        let block = &mut dual.blocks[i];
        let share = (g * q / ((1.0 - g) * distance)).clamp(LEAST.1, 1.0);
        if share.is_finite() {
            block.kappa = (block.kappa * share).sqrt();
        }
    }
    let (by, g32) = (S::splat(g as f32), g as f32);
    for (mu, d) in dual.nodes[begin * width..end * width].iter_mut().zip(&scratch.d) {
        S::store(S::fma(by, S::load(d), S::load(mu)), mu);
    }
    let step = -(rate * g) as f32;
    let edge_weights = dual.w.as_mut_ptr().cast::<f32>().add(dual.tokens.edges[0] as usize);
    for ((mu, &d), &at) in dual.pairs[i * edges..(i + 1) * edges].iter_mut().zip(&scratch.d_pairs).zip(&dual.edge_at) {
        *mu += g32 * d;
        *edge_weights.add(at as usize) += step * d;
    }
    dual.tokens.apply::<S>(sentence, step, &mut dual.sums, &mut dual.w);
    prefetch(dual.nodes.as_ptr().wrapping_add(dual.tokens.range(next).0 * width));
    Some(())
}

/// A step that is shortened where the sentence, after it, would stand beyond p: a secant of <F(d), F(p' - mu - g d)>,
/// where p' is its distribution at the weights behind the step. Never lengthened: that diverges.
///
/// # Safety
/// The machine has the instructions of `S`; `sums` hold F(d).
#[inline(always)]
unsafe fn tried<S: Find>(dual: &mut Dual, scratch: &mut Scratch, sentence: u32, g: f64, rate: f64, square: f64) -> f64 {
    let (begin, end) = dual.tokens.range(sentence);
    let (n, width, edges) = (end - begin, dual.tokens.width, dual.edge_at.len());
    let i = sentence as usize;
    scratch.moved.resize(scratch.moved.len().max(n * width), Lane::ZERO);
    let moved = &mut scratch.moved[..n * width];
    dual.tokens.score_plain::<S>(&dual.sums, sentence, moved);
    let mut most = S::splat(0.0);
    for x in moved.iter() {
        let x = S::load(x);
        most = S::max(most, S::max(x, S::sub(S::splat(0.0), x)));
    }
    let most = scratch.d_pairs.iter().fold(S::largest(most), |m, d| m.max(d.abs()));
    let trial = g * f64::from(FAR / (FAR.max((g * rate) as f32 * most)));
    let by = S::splat(-(trial * rate) as f32);
    for (s, x) in scratch.beside.node.iter_mut().zip(moved.iter()) {
        S::store(S::fma(by, S::load(x), S::load(s)), s);
    }
    let scores = scratch.edges.as_mut_ptr().cast::<f32>();
    for (&at, &d) in dual.edge_at.iter().zip(&scratch.d_pairs) {
        *scores.add(at as usize) -= (trial * rate) as f32 * d;
    }
    let done = scratch.moves.set::<S>(&scratch.edges);
    if !done || scratch.beside.forward::<S>(&scratch.moves, n).is_none() {
        return g.min(LEAST.0 * trial);
    }
    scratch.beside.backward::<S>(&scratch.moves, n);
    let (mu, step) = (&dual.nodes[begin * width..end * width], S::splat(trial as f32));
    let mut sum = S::splat(0.0);
    for (((x, p), mu), d) in moved.iter().zip(&scratch.beside.p).zip(mu).zip(&scratch.d) {
        let rest = S::sub(S::sub(S::load(p), S::load(mu)), S::mul(step, S::load(d)));
        sum = S::fma(S::load(x), rest, sum);
    }
    let mut left = f64::from(S::total(sum));
    let found = scratch.beside.pairs.as_ptr().cast::<f32>();
    for ((&at, &mu), &d) in dual.edge_at.iter().zip(&dual.pairs[i * edges..(i + 1) * edges]).zip(&scratch.d_pairs) {
        left += f64::from(d) * (f64::from(*found.add(at as usize)) - f64::from(mu) - trial * f64::from(d));
    }
    let secant = trial * square / (square - left);
    match square > left {
        true => g.min(secant.max(LEAST.0 * trial)),
        false => g,
    }
}
