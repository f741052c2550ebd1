//! How far the weights can be from the optimum: P(w) - D at a dual point whose entropy is known.
//!
//! Each sentence's chain is that of the kept marginals which is closest to the chain of the weights (`Beside::couple`). Its
//! nodes are those kept, or nearly so, and its pairs are its own; the weights of this dual point are w less 1/(2 l2) times
//! the features of what differs. All of it is exact but for rounding, however near the coupling came.

use super::visit::{score, score_edges};
use super::{Dual, Scratch};
use crate::machine::dispatch::{dispatch, FlushToZero};
use crate::machine::find::Find;
use crate::machine::simd::{Lane, WIDTH};
use crate::machine::stop;
use rayon::prelude::*;
use std::ops::Range;

/// Parts that sums are made of, each with an array of all cells; fixed, so that results do not depend on threads.
const PARTS: usize = 4;
/// ... or one where there are so many cells.
const MANY: usize = 1 << 24;
/// Rounds of scaling a pair of neighbours.
const ROUNDS: usize = 3;

/// What some sentences add.
struct Part {
    loss: f64,
    entropy: f64,
    nodes: Vec<Lane>, // [cells] s F(m - mu)
    pairs: Vec<f64>,  // [edge features] s (c - mu)
}

/// P(w) alone.
pub(super) fn primal(dual: &Dual) -> f64 {
    let loss: f64 = in_parts(dual, PARTS as u32, false).iter().map(|part| part.loss).sum();
    let square: f64 = dual.w.iter().flat_map(|lane| lane.0).map(|w| f64::from(w) * f64::from(w)).sum();
    loss + dual.l2 * square
}

fn in_parts(dual: &Dual, parts: u32, couples: bool) -> Vec<Part> {
    let n = dual.blocks.len() as u32;
    let stop = stop::current();
    (0..parts)
        .into_par_iter()
        .with_max_len(1)
        .map(|part| {
            let (_small_is_zero, _mine) = (FlushToZero::new(), stop.enter());
            let at = |part: u32| (u64::from(n) * u64::from(part) / u64::from(parts)) as u32;
            add_up(dual, at(part)..at(part + 1), couples)
        })
        .collect()
}

/// P(w) and D.
pub(super) fn certificate(dual: &Dual) -> (f64, f64) {
    let found = in_parts(dual, if dual.w.len() * WIDTH < MANY { PARTS as u32 } else { 1 }, true);
    let rate = 1.0 / (2.0 * dual.l2);
    let (mut before, mut behind) = (0.0, 0.0);
    for (i, w) in dual.w.iter().enumerate() {
        for y in 0..WIDTH {
            let w = f64::from(w.0[y]);
            let there = w - rate * found.iter().map(|part| f64::from(part.nodes[i].0[y])).sum::<f64>();
            before += w * w;
            behind += there * there;
        }
    }
    // Edges have no node features: what was added for them above is w itself.
    let edges = dual.tokens.edges[0] as usize;
    for (e, &at) in dual.edge_at.iter().enumerate() {
        let at = edges + at as usize;
        let w = f64::from(dual.w[at / WIDTH].0[at % WIDTH]);
        let there = w - rate * found.iter().map(|part| part.pairs[e]).sum::<f64>();
        behind += there * there - w * w;
    }
    let (loss, entropy) = found.iter().fold((0.0, 0.0), |sum, part| (sum.0 + part.loss, sum.1 + part.entropy));
    (loss + dual.l2 * before, entropy - dual.l2 * behind)
}

dispatch!(
    fn add_up(dual: &Dual, which: Range<u32>, couples: bool) -> Part = add_kernel
);

/// # Safety
/// The machine has the instructions of `S`.
#[inline(always)]
unsafe fn add_kernel<S: Find>(dual: &Dual, which: Range<u32>, couples: bool) -> Part {
    let (tokens, edges) = (&dual.tokens, dual.edge_at.len());
    let (l, width) = (tokens.labels, tokens.width);
    let mut out = Part {
        loss: 0.0,
        entropy: 0.0,
        nodes: vec![Lane::ZERO; if couples { dual.w.len() } else { 0 }],
        pairs: vec![0.0; edges],
    };
    let mut scratch = Scratch::new(l, edges);
    if !score_edges::<S>(dual, &mut scratch) {
        out.loss = f64::NAN;
        return out;
    }
    let (logs, max) = (scratch.moves.logs(), f64::from(scratch.moves.max));
    for i in which.filter(|&i| dual.sample_weight[i as usize] > 0.0) {
        stop::look();
        let (begin, end) = tokens.range(i);
        let (n, s) = (end - begin, dual.sample_weight[i as usize]);
        if n == 0 {
            continue;
        }
        score::<S>(dual, &mut scratch, i, None);
        let beside = &mut scratch.beside;
        let Some(log_z) = beside.forward::<S>(&scratch.moves, n) else {
            out.loss = f64::NAN;
            return out;
        };
        let gold = tokens.gold(i);
        let mut h = 0.0;
        for (t, &y) in gold.iter().enumerate() {
            h += f64::from(beside.node[t * width + y as usize / WIDTH].0[y as usize % WIDTH]);
            if t > 0 {
                h += max + logs[gold[t - 1] as usize * width * WIDTH + y as usize];
            }
        }
        out.loss += s * (log_z - h);
        if !couples {
            continue;
        }
        beside.backward::<S>(&scratch.moves, n);
        let mu = &dual.nodes[begin * width..end * width];
        let mut entropy = beside.couple::<S>(&scratch.moves, mu, ROUNDS);
        for (c, log) in beside.pairs.iter().flat_map(|lane| lane.0).zip(&logs) {
            entropy -= if c > 0.0 { f64::from(c) * log } else { 0.0 };
        }
        out.entropy += s * entropy;
        let by = S::splat(s as f32);
        for (p, mu) in beside.p.iter_mut().zip(mu) {
            S::store(S::mul(by, S::sub(S::load(p), S::load(mu))), p);
        }
        tokens.collect::<S>(&beside.p[..n * width], i, &mut out.nodes);
        let c = beside.pairs.as_ptr().cast::<f32>();
        let mu = &dual.pairs[i as usize * edges..(i as usize + 1) * edges];
        for ((sum, &at), &mu) in out.pairs.iter_mut().zip(&dual.edge_at).zip(mu) {
            *sum += s * (f64::from(*c.add(at as usize)) - f64::from(mu));
        }
    }
    out
}
