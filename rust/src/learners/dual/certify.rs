//! How far the weights can be from the optimum: P(w) - D at a dual point whose entropy is known.
//!
//! Each sentence's chain is that of the kept marginals which is closest to the chain of the weights (`Beside::couple`). Its
//! nodes are those kept, or nearly so, and its pairs are its own; the weights of this dual point are w less 1/(2 l2) times
//! the features of what differs. All of it is exact but for rounding, however near the coupling came.

use super::visit::{pad, score, score_edges};
use super::{Dual, Scratch};
use crate::chain::beside;
use crate::machine::dispatch::{dispatch, FlushToZero};
use crate::machine::find::Find;
use crate::machine::simd::{Ahead, Lane, WIDTH};
use crate::machine::stop;
use crate::scores::cells::spread;
use rayon::prelude::*;
use std::ops::Range;

/// Parts that the sums of P are made of; fixed, so that results do not depend on threads.
const PARTS: u32 = 4;
/// ... and of P and D, each with an array of all cells.
const HALVES: u32 = 2;
/// ... or one where there are so many cells.
const MANY: usize = 1 << 24;

/// What some sentences add.
pub(super) struct Part {
    pub loss: f64,
    pub entropy: f64,
    pub nodes: Vec<Lane>, // [cells] s F(m - mu)
    pub pairs: Vec<f64>,  // [edge features] s (c - mu)
}

/// P(w) alone.
pub(super) fn primal(dual: &Dual) -> f64 {
    let loss: f64 = in_parts(dual, parts_of(dual, false), false).iter().map(|part| part.loss).sum();
    let square: f64 = dual.w.iter().flat_map(|lane| lane.0).map(|w| f64::from(w) * f64::from(w)).sum();
    loss + dual.ground.l2 * square
}

/// How many parts the sums are made of, of P and D or of P alone.
pub(super) fn parts_of(dual: &Dual, couples: bool) -> u32 {
    match couples {
        false => PARTS,
        true if dual.w.len() * WIDTH >= MANY => 1,
        true => HALVES,
    }
}

pub(super) fn in_parts(dual: &Dual, parts: u32, couples: bool) -> Vec<Part> {
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
    let found = in_parts(dual, parts_of(dual, true), true);
    let rate = 1.0 / (2.0 * dual.ground.l2);
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
    let edges = dual.ground.cells.edges[0] as usize;
    for (e, &at) in dual.ground.edge_at.iter().enumerate() {
        let at = edges + at as usize;
        let w = f64::from(dual.w[at / WIDTH].0[at % WIDTH]);
        let there = w - rate * found.iter().map(|part| part.pairs[e]).sum::<f64>();
        behind += there * there - w * w;
    }
    let (loss, entropy) = found.iter().fold((0.0, 0.0), |sum, part| (sum.0 + part.loss, sum.1 + part.entropy));
    (loss + dual.ground.l2 * before, entropy - dual.ground.l2 * behind)
}

dispatch!(
    fn add_up(dual: &Dual, which: Range<u32>, couples: bool) -> Part = add_kernel
);

/// # Safety
/// The machine has the instructions of `S`.
#[inline(always)]
unsafe fn add_kernel<S: Find>(dual: &Dual, which: Range<u32>, couples: bool) -> Part {
    let (ground, edges) = (&dual.ground, dual.ground.edge_at.len());
    let cells = &ground.cells;
    let (l, width) = (cells.labels, cells.width);
    let mut out = Part {
        loss: 0.0,
        entropy: 0.0,
        nodes: vec![Lane::ZERO; if couples { dual.w.len() } else { 0 }],
        pairs: vec![0.0; edges],
    };
    let mut scratch = Scratch::new(l);
    if !score_edges(ground, &dual.w, &mut scratch) {
        out.loss = f64::NAN;
        return out;
    }
    let (logs, max) = (scratch.moves.logs(), f64::from(scratch.moves.max));
    let mut all = vec![0.0f64; l * width * WIDTH]; // s times the pair sums of the chains
    for i in which.clone().filter(|&i| dual.ground.sample_weight[i as usize] > 0.0) {
        stop::look();
        let next = (i + 1).min(which.end - 1);
        let (begin, end) = cells.range(i);
        let (n, s) = (end - begin, dual.ground.sample_weight[i as usize]);
        if n == 0 {
            continue;
        }
        score(ground, &dual.w, &mut scratch, i, &mut Ahead::nothing());
        ground.spread.prefetch_cells(cells, &dual.w, next);
        let (beside, moves) = (&mut scratch.beside, &scratch.moves);
        let log_z = match couples {
            true => beside::marginals(beside, moves, n, &mut Ahead::nothing()).and_then(|()| beside.log_z(moves, n)),
            false => beside::forward(beside, moves, n),
        };
        let Some(log_z) = log_z else {
            out.loss = f64::NAN;
            return out;
        };
        let gold = cells.gold(i);
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
        pad(&dual.nodes[begin * l..end * l], l, &mut scratch.mu);
        let mu = &scratch.mu;
        ground.spread.prefetch_cells(cells, &out.nodes, i);
        out.entropy += s * beside::couple(beside, moves, mu);
        for (sums, pairs) in all.chunks_exact_mut(WIDTH).zip(&beside.pairs) {
            for (sum, &c) in sums.iter_mut().zip(&pairs.0) {
                *sum += s * f64::from(c);
            }
        }
        for (p, mu) in beside.p.iter_mut().zip(mu) {
            S::store(S::sub(S::load(p), S::load(mu)), p);
        }
        spread::apply(&ground.spread, cells, i, &beside.p[..n * width], s as f32, &mut out.nodes);
        for (sum, &mu) in out.pairs.iter_mut().zip(&dual.pairs[i as usize * edges..(i as usize + 1) * edges]) {
            *sum -= s * f64::from(mu);
        }
    }
    for (&c, &log) in all.iter().zip(&logs).filter(|(&c, _)| c > 0.0) {
        out.entropy -= c * log;
    }
    for (sum, &at) in out.pairs.iter_mut().zip(&dual.ground.edge_at) {
        *sum += all[at as usize];
    }
    out
}
