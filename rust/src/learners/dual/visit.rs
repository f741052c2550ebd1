//! One visit of a sentence: towards its distribution under the weights now, by a step in closed form.

use super::{Dual, Scratch, Visited};
use crate::machine::dispatch::dispatch;
use crate::machine::find::Find;
use crate::machine::simd::{prefetch, Lane, WIDTH};
use crate::machine::stop;
use std::ops::Range;

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
dispatch!(
    /// Sum of the weighted losses of some sentences, NaN where float32 cannot do one.
    pub(super) fn losses(dual: &Dual, which: Range<u32>) -> f64 = losses_kernel
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
unsafe fn score_edges<S: Find>(dual: &Dual, scratch: &mut Scratch) -> bool {
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
unsafe fn score<S: Find>(dual: &Dual, scratch: &mut Scratch, sentence: u32, next: Option<u32>) {
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

/// Inner products of node scores with p and with mu, and sum 2 d^2 / (p + mu), d = p - mu being kept.
///
/// # Safety
/// The machine has the instructions of `S`; all are [T, width].
#[inline(always)]
unsafe fn compare<S: Find>(node: &[Lane], p: &[Lane], mu: &[Lane], d: &mut [Lane]) -> [f64; 3] {
    let zero = S::splat(0.0);
    let mut sums = [zero; 3];
    for (((s, p), mu), d) in node.iter().zip(p).zip(mu).zip(d) {
        let (s, p, mu) = (S::load(s), S::load(p), S::load(mu));
        let (here, both) = (S::sub(p, mu), S::add(p, mu));
        let finite = S::select_gt(both, zero, s, zero); // -infinity where a label is forbidden
        sums[0] = S::fma(finite, p, sums[0]);
        sums[1] = S::fma(finite, mu, sums[1]);
        let square = S::mul(S::add(here, here), here);
        sums[2] = S::add(sums[2], S::select_gt(both, zero, S::div(square, both), zero));
        S::store(here, d);
    }
    sums.map(|x| f64::from(S::total(x)))
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
        dual.blocks[i].gap = 0.0;
        return Some(());
    }
    if !score_edges::<S>(dual, scratch) {
        return None;
    }
    score::<S>(dual, scratch, sentence, Some(next));
    let log_z = scratch.beside.forward::<S>(&scratch.moves, n)?;
    scratch.beside.backward::<S>(&scratch.moves, n);
    dual.tokens.prefetch_rare(&dual.w, next);
    dual.tokens.prefetch_sums(&dual.sums, next);
    scratch.d.resize(scratch.d.len().max(n * width), Lane::ZERO);
    let mu = &dual.nodes[begin * width..end * width];
    let d = &mut scratch.d[..n * width];
    let [node_p, node_mu, distance] = compare::<S>(&scratch.beside.node[..n * width], &scratch.beside.p, mu, d);
    let mu_pairs = &dual.pairs[i * edges..(i + 1) * edges];
    let (found, scores) = (scratch.beside.pairs.as_ptr().cast::<f32>(), scratch.edges.as_ptr().cast::<f32>());
    let (mut edge_p, mut edge_mu, mut square) = (0.0f64, 0.0f64, 0.0f64);
    for ((&at, &mu), d) in dual.edge_at.iter().zip(mu_pairs).zip(&mut scratch.d_pairs) {
        let (p, a) = (*found.add(at as usize), *scores.add(at as usize));
        *d = p - mu;
        if p + mu > 0.0 {
            edge_p += f64::from(a) * f64::from(p);
            edge_mu += f64::from(a) * f64::from(mu);
        }
        square += f64::from(*d) * f64::from(*d);
    }
    square += dual.tokens.collect::<S>(d, sentence, &mut dual.sums);
    let q = rate * square;
    let block = &mut dual.blocks[i];
    let tries = (block.visits.wrapping_add(sentence)) % TRY_EVERY == TRY_EVERY - 1;
    block.visits = block.visits.wrapping_add(1);
    let mut g = block.kappa * distance / (block.kappa * distance + q);
    let entropy = (log_z - node_p - edge_p).max(0.0);
    let gap = log_z - node_mu - edge_mu - block.entropy;
    if !(g.is_finite() && entropy.is_finite() && gap.is_finite()) {
        if distance == 0.0 {
            (block.distance, block.gap) = (0.0, gap.max(0.0));
        }
        dual.tokens.apply::<S>(sentence, 0.0, &mut dual.sums, &mut dual.w);
        return (distance == 0.0).then_some(());
    }
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
    let block = &mut dual.blocks[i];
    block.entropy = (1.0 - g) * block.entropy + g * entropy;
    (block.distance, block.gap) = (distance, gap.max(0.0));
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

/// # Safety
/// The machine has the instructions of `S`.
#[inline(always)]
unsafe fn losses_kernel<S: Find>(dual: &Dual, which: Range<u32>) -> f64 {
    let mut scratch = Scratch::new(dual.tokens.labels, dual.edge_at.len());
    let mut sum = 0.0;
    let width = dual.tokens.width;
    if !score_edges::<S>(dual, &mut scratch) {
        return f64::NAN;
    }
    for i in which.filter(|&i| dual.sample_weight[i as usize] > 0.0) {
        stop::look();
        let gold = dual.tokens.gold(i);
        if gold.is_empty() {
            continue;
        }
        score::<S>(dual, &mut scratch, i, None);
        let Some(log_z) = scratch.beside.forward::<S>(&scratch.moves, gold.len()) else {
            return f64::NAN;
        };
        let mut h = 0.0;
        for (t, &y) in gold.iter().enumerate() {
            h += f64::from(scratch.beside.node[t * width + y as usize / WIDTH].0[y as usize % WIDTH]);
            if t > 0 {
                h += scratch.moves.rounded(gold[t - 1] as usize, y as usize);
            }
        }
        sum += dual.sample_weight[i as usize] * (log_z - h);
    }
    sum
}
