//! Forward-backward recursions over a chain of labels, for sixteen sentences at a time.
//!
//! Scaled probability space (Rabiner 1989, section V.A): with psi_t(y) = exp(s_t(y) - max_y s_t) and
//! M[y', y] = exp(A[y', y] - max A),
//!
//! ```text
//! alpha_t(y)  = psi_t(y) sum_y' alpha_{t-1}(y') M[y', y] / c_t,      c_t such that sum_y alpha_t(y) = 1
//! gamma_t(y)  = psi_t(y) beta_t(y) / c_t
//! beta_t(y')  = sum_y M[y', y] gamma_{t+1}(y),                       beta_{T-1}(y) = the sentence's weight
//! p_t(y)      = alpha_t(y) beta_t(y)
//! sum_t p_t(y', y) = M[y', y] sum_t alpha_{t-1}(y') gamma_t(y)
//! log Z       = sum_t (max s_t + log c_t) + (T - 1) max A
//! ```
//!
//! This takes one exp per node score and one per edge score, and the weight multiplies every marginal at no cost.
//! `underflow` has the error analysis: a sentence that could lose more than rounding error is flagged and handled in
//! double precision by `scaled64` or `log64`. If edges are forbidden, a state may be unreachable, and its gamma is set
//! to 0.

use crate::chain::edges::Edges;
use crate::chain::lists::Finish;
use crate::machine::simd::blocks::by_block;
use crate::machine::simd::dispatch::dispatch;
use crate::machine::simd::{Lane, Simd, WIDTH};
use std::ops::Range;

/// Positions after which the exponent of the product of scales is extracted. No scale that counts is below 1e-30, and
/// 1e-30^9 is still a normal double.
const EXPONENT_INTERVAL: usize = 9;

/// Shape of a batch of sixteen sentences.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub labels: usize,
    pub lengths: [u32; WIDTH], // descending, 0 for an unused lane
}

impl Shape {
    pub fn positions(&self) -> usize {
        self.lengths[0] as usize
    }

    /// 1 for the lanes with a token at position t, else 0.
    #[inline(always)]
    fn mask(&self, t: usize) -> Lane {
        Lane(std::array::from_fn(|i| if (t as u32) < self.lengths[i] { 1.0 } else { 0.0 }))
    }

    /// Whether every lane has a token at position t.
    #[inline(always)]
    pub fn full(&self, t: usize) -> bool {
        (t as u32) < self.lengths[WIDTH - 1]
    }

    /// 1 for the lanes whose last token is at position t, else 0.
    #[inline(always)]
    pub fn ends(&self, t: usize) -> Lane {
        Lane(std::array::from_fn(|i| if self.lengths[i] as usize == t + 1 { 1.0 } else { 0.0 }))
    }
}

/// Logarithms of the products of scales 1 / c_t of N sentences, and the sums of their largest node scores.
pub(super) struct LogScales<const N: usize> {
    tops: [f64; N],
    products: [f64; N], // the product of scales is this times 2^exponent, so each sentence takes one logarithm
    exponents: [i64; N],
}

impl<const N: usize> LogScales<N> {
    pub fn new() -> LogScales<N> {
        LogScales { tops: [0.0; N], products: [1.0; N], exponents: [0; N] }
    }

    /// Add position t, whose alphas were multiplied by `scales`.
    #[inline(always)]
    pub fn multiply_scales(&mut self, t: usize, tops: &[f32; N], scales: &[f32; N]) {
        for i in 0..N {
            self.tops[i] += f64::from(tops[i]);
            self.products[i] *= f64::from(scales[i]);
        }
        if t % EXPONENT_INTERVAL == EXPONENT_INTERVAL - 1 {
            for i in 0..N {
                let p = self.products[i];
                self.tops[i] += p * 0.0; // NaN from here on if p is not finite
                self.exponents[i] += (p.to_bits() >> 52) as i64 - 1023;
                self.products[i] = f64::from_bits(p.to_bits() & ((1 << 52) - 1) | 1023 << 52);
            }
        }
    }

    /// Return log Z of sentence i with n positions and largest edge score `max`.
    pub fn log_z(&self, i: usize, n: u32, max: f64) -> f64 {
        let logs = self.products[i].ln() + self.exponents[i] as f64 * std::f64::consts::LN_2;
        self.tops[i] - logs + f64::from(n.saturating_sub(1)) * max
    }
}

/// Scratch of one thread. It grows to the largest batch.
#[derive(Default)]
pub struct Work {
    pub psi: Vec<Lane>,     // [T, L] node scores, then psi, followed by 16 lanes of slack for whole tiles
    pub gamma: Vec<Lane>,   // [T, L]
    pub alpha: Vec<Lane>,   // [T, L]
    pub inverse: Vec<Lane>, // [T] 1 / c_t, 0 at padding
    pub p: Vec<Lane>,       // [L padded to 16] marginals at one position
    pub pairs: Vec<Lane>,   // [edges kept] sum_t alpha_{t-1}(y') gamma_t(y), lane by lane
    pub tiles: Vec<bool>,   // tiles of `pairs` to compute, all if empty
    pub lost: [f32; WIDTH], // largest share of probability that any position of a sentence lost to underflow
    pub largest: [f32; WIDTH], // largest beta and gamma of a sentence of weight 1
    pub path: Vec<[u16; WIDTH]>, // [T] labels found by `viterbi::batch`
}

impl Work {
    pub fn reserve(&mut self, shape: &Shape) {
        let (t, l) = (shape.positions(), shape.labels);
        let grow = |v: &mut Vec<Lane>, n: usize| {
            if v.len() < n {
                v.resize(n, Lane::ZERO);
            }
        };
        grow(&mut self.psi, t * l + WIDTH);
        grow(&mut self.alpha, t * l);
        grow(&mut self.gamma, t.max(2) * l);
        grow(&mut self.inverse, t);
        grow(&mut self.p, l.next_multiple_of(WIDTH));
    }

    /// Grow `pairs` to at least `edges` pair sums.
    pub fn reserve_pairs(&mut self, edges: usize) {
        if self.pairs.len() < edges {
            self.pairs.resize(edges, Lane::ZERO);
        }
    }

    /// Whether every array is large enough for the shape.
    pub(crate) fn is_reserved(&self, shape: &Shape) -> bool {
        let (t, l) = (shape.positions(), shape.labels);
        self.psi.len() >= t * l
            && self.alpha.len() >= t * l
            && self.gamma.len() >= t * l
            && self.inverse.len() >= t
            && self.p.len() >= l
    }
}

/// sum_y' from(y') m[y', y..y+N], the inner product of every recursion.
#[inline(always)]
pub fn product<S: Simd, const N: usize>(simd: S, m: &[f32], labels: usize, from: &[Lane], y: usize) -> [S::F; N] {
    assert!(m.len() == labels * labels && from.len() == labels && y + N <= labels);
    let mut sum = [simd.splat(0.0); N];
    let mut row = m.as_ptr().wrapping_add(y);
    for a in from {
        let a = simd.load(a);
        for (j, s) in sum.iter_mut().enumerate() {
            // SAFETY: by the assertion, every one of the `labels` rows has numbers y..y + N.
            *s = simd.fma(a, simd.splat(unsafe { *row.add(j) }), *s);
        }
        row = row.wrapping_add(labels);
    }
    sum
}

/// Source of node scores.
pub trait NodeScores {
    /// Write the scores of position t to row t of `psi`, which is [T, L] plus slack for a whole tile. Called in order
    /// of t.
    fn fill(&mut self, t: usize, psi: &mut [Lane]);
}

/// Node scores are already in `psi`; nothing to do.
pub struct Prefilled;

impl NodeScores for Prefilled {
    fn fill(&mut self, _: usize, _: &mut [Lane]) {}
}

dispatch!(
    /// Compute psi, alpha and 1/c from node scores. Write log Z of each sentence, or NaN if the sentence is flagged.
    /// `edges` must have the shape's labels, and `work` must be reserved for the shape. Compiled as a function of its
    /// own: inlined into its callers, which are large, it would increase compile time, which is quadratic in the size
    /// of a function.
    pub fn forward(
        shape: &Shape, edges: &Edges, work: &mut Work, scores: &mut dyn NodeScores, log_z: &mut [f64; WIDTH]
    ) = forward_kernel
);

#[inline(always)]
fn forward_kernel<S: Simd>(
    simd: S,
    shape: &Shape,
    edges: &Edges,
    work: &mut Work,
    scores: &mut dyn NodeScores,
    log_z: &mut [f64; WIDTH],
) {
    let (l, positions) = (shape.labels, shape.positions());
    assert!(edges.labels == l && work.is_reserved(shape));
    let mut logs = LogScales::<WIDTH>::new();
    let (zero, one) = (simd.splat(0.0), simd.splat(1.0));
    let mut worst = one;
    // Smallest alpha of a reachable label before scaling, needed if edges are forbidden.
    let forbids = edges.underflow.forbids;
    let mut least = one;
    for t in 0..positions {
        scores.fill(t, &mut work.psi);
        let psi = &mut work.psi[t * l..(t + 1) * l];
        let mut top = simd.load(&psi[0]);
        for s in &psi[1..] {
            top = simd.max(top, simd.load(s));
        }
        let full = shape.full(t);
        let mask = if full { one } else { simd.load(&shape.mask(t)) };
        // psi = exp(s - top). The sum c includes the incoming alphas.
        let mut c = zero;
        if t == 0 {
            for (s, a) in psi.iter_mut().zip(&mut work.alpha[..l]) {
                let e = simd.mul(simd.exp_below(simd.load(s), top), mask);
                simd.store(e, s);
                simd.store(e, a);
                c = simd.add(c, e);
                least = simd.min(least, simd.select_gt(e, zero, e, one));
            }
        } else {
            for s in psi.iter_mut() {
                let e = simd.exp_below(simd.load(s), top);
                simd.store(if full { e } else { simd.select_gt(mask, zero, e, zero) }, s);
            }
            let (before, here) = work.alpha.split_at_mut(t * l);
            let from = &before[(t - 1) * l..];
            if let Some(sparse) = &edges.sparse {
                let mut step = ForwardStep::<S> { psi, alpha: &mut here[..l], c, forbids, least };
                sparse.forward::<S, false>(simd, from, &mut step);
                (c, least) = (step.c, step.least);
            } else {
                by_block!([1 2 3 4 5 6 7 8 9 10 11 12] even S::BLOCK, l, y, N => {
                    let sum = product::<S, N>(simd, &edges.m, l, from, y);
                    for j in 0..N {
                        let p = simd.load(&psi[y + j]);
                        let a = simd.mul(sum[j], p);
                        simd.store(a, &mut here[y + j]);
                        c = simd.add(c, a);
                        if forbids {
                            least = simd.min(least, simd.select_gt(simd.min(sum[j], p), zero, a, one));
                        }
                    }
                });
            }
        }
        // Padding has c = 0. Its inverse is set to 0, and it does not contribute to the logarithm.
        let guarded = if full { c } else { simd.select_gt(mask, zero, c, one) };
        worst = simd.min(worst, guarded);
        let exact = simd.div(one, guarded);
        let inverse = simd.mul(exact, mask);
        simd.store(inverse, &mut work.inverse[t]);
        for a in &mut work.alpha[t * l..(t + 1) * l] {
            simd.store(simd.mul(simd.load(a), inverse), a);
        }
        let (mut tops, mut scales) = (Lane::ZERO, Lane::ZERO);
        simd.store(if full { top } else { simd.select_gt(mask, zero, top, zero) }, &mut tops);
        // The logarithm must undo the rounded factor that the alphas were multiplied by.
        simd.store(exact, &mut scales);
        logs.multiply_scales(t, &tops.0, &scales.0);
    }
    let (mut scale, mut entry) = (Lane::ZERO, Lane::ZERO);
    simd.store(worst, &mut scale);
    simd.store(least, &mut entry);
    for i in 0..WIDTH {
        let n = shape.lengths[i];
        let z = logs.log_z(i, n, edges.max);
        let bounds = edges.underflow.bounds(scale.0[i], entry.0[i]).filter(|_| z.is_finite());
        log_z[i] = if n == 0 { 0.0 } else { bounds.map_or(f64::NAN, |_| z) };
        (work.lost[i], work.largest[i]) = bounds.unwrap_or_default();
    }
}

/// Zero a flagged lane in the results of `forward`, so that it contributes to no sum.
pub fn clear_lane(shape: &Shape, work: &mut Work, lane: usize) {
    let n = shape.positions() * shape.labels;
    for v in work.psi[..n].iter_mut().chain(&mut work.alpha[..n]).chain(&mut work.inverse[..shape.positions()]) {
        v.0[lane] = 0.0;
    }
}

dispatch!(
    /// `backward_step` without `IN_PLACE`.
    pub fn backward_position(shape: &Shape, edges: &Edges, work: &mut Work, weight: &Lane, t: usize) =
        |simd| backward_step::<_, false>(simd, shape, edges, work, weight, t)
);

/// Backward step at position t: compute gamma_t from beta_t and write the weighted marginals of position t to `work.p`,
/// or over psi_t if `IN_PLACE`. With lists of edges and `IN_PLACE`, only the last two gammas are kept, in alternating
/// rows. Call for t = T-1 down to 0. The marginals in `work.p` are normalized to sum to the weight, because the
/// rounding errors of beta_t would accumulate over a long sentence.
#[inline(always)]
pub fn backward_step<S: Simd, const IN_PLACE: bool>(
    simd: S,
    shape: &Shape,
    edges: &Edges,
    work: &mut Work,
    weight: &Lane,
    t: usize,
) {
    let l = shape.labels;
    debug_assert!(edges.labels == l && work.is_reserved(shape) && t < shape.positions());
    let ends = shape.ends(t);
    let (here, after) = if IN_PLACE && edges.sparse.is_some() {
        let (even, odd) = work.gamma[..2 * l].split_at_mut(l);
        match t % 2 {
            0 => (even, odd),
            _ => (odd, even),
        }
    } else {
        let (here, after) = work.gamma.split_at_mut((t + 1) * l);
        (&mut here[t * l..], after)
    };
    let mut step = BackwardStep::<S> {
        last: !shape.full(t + 1),
        ends: simd.load(&ends),
        weight: simd.load(weight),
        inverse: simd.load(&work.inverse[t]),
        alpha: &work.alpha[t * l..(t + 1) * l],
        psi: &mut work.psi[t * l..(t + 1) * l],
        p: &mut work.p[..l],
        gamma: here,
    };
    if t + 1 == shape.positions() {
        for y in 0..l {
            step.finish::<IN_PLACE>(simd, y, simd.splat(0.0));
        }
    } else if let Some(sparse) = &edges.sparse {
        sparse.backward::<S, false>(simd, &after[..l], &mut BackwardAdapter::<S, IN_PLACE>(&mut step));
    } else {
        let from = &after[..l];
        by_block!([1 2 3 4 5 6 7 8 9 10 11 12] even S::BLOCK, l, y, N => {
            let sum = product::<S, N>(simd, &edges.transposed, l, from, y);
            for j in 0..N {
                step.finish::<IN_PLACE>(simd, y + j, sum[j]);
            }
        });
    }
    if !IN_PLACE {
        let mut sum = simd.splat(0.0);
        for p in &*step.p {
            sum = simd.add(sum, simd.load(p));
        }
        let rescale = simd.select_gt(sum, simd.splat(0.0), simd.div(step.weight, sum), simd.splat(1.0));
        for x in step.p.iter_mut().chain(step.gamma.iter_mut().take(l)) {
            simd.store(simd.mul(simd.load(x), rescale), x);
        }
    }
}

/// Forward step applied to each sum over previous labels.
struct ForwardStep<'a, S: Simd> {
    psi: &'a [Lane],       // [L]
    alpha: &'a mut [Lane], // [L]
    c: S::F,
    forbids: bool,
    least: S::F, // of the reachable labels
}

impl<S: Simd> Finish<S> for ForwardStep<'_, S> {
    #[inline(always)]
    fn finish(&mut self, simd: S, y: usize, sum: S::F) {
        let psi = simd.load(&self.psi[y]);
        let a = simd.mul(sum, psi);
        simd.store(a, &mut self.alpha[y]);
        self.c = simd.add(self.c, a);
        if self.forbids {
            let one = simd.splat(1.0);
            self.least = simd.min(self.least, simd.select_gt(simd.min(sum, psi), simd.splat(0.0), a, one));
        }
    }
}

/// Backward step applied to each beta_t(y).
struct BackwardStep<'a, S: Simd> {
    last: bool, // some sentence ends here
    ends: S::F,
    weight: S::F,
    inverse: S::F,
    alpha: &'a [Lane], // [L]
    psi: &'a mut [Lane],
    p: &'a mut [Lane],
    gamma: &'a mut [Lane],
}

impl<S: Simd> BackwardStep<'_, S> {
    #[inline(always)]
    fn finish<const IN_PLACE: bool>(&mut self, simd: S, y: usize, mut beta: S::F) {
        let zero = simd.splat(0.0);
        if self.last {
            beta = simd.select_gt(self.ends, zero, self.weight, beta);
        }
        let (alpha, psi) = (simd.load(&self.alpha[y]), simd.load(&self.psi[y]));
        simd.store(simd.mul(alpha, beta), if IN_PLACE { &mut self.psi[y] } else { &mut self.p[y] });
        let gamma = simd.mul(simd.mul(psi, beta), self.inverse);
        simd.store(simd.select_gt(alpha, zero, gamma, zero), &mut self.gamma[y]);
    }
}

/// Adapter that applies `BackwardStep` to sums over lists of edges.
struct BackwardAdapter<'a, 'b, S: Simd, const IN_PLACE: bool>(&'a mut BackwardStep<'b, S>);

impl<S: Simd, const IN_PLACE: bool> Finish<S> for BackwardAdapter<'_, '_, S, IN_PLACE> {
    #[inline(always)]
    fn finish(&mut self, simd: S, y: usize, sum: S::F) {
        self.0.finish::<IN_PLACE>(simd, y, sum);
    }
}

/// Mark the tiles of `add_pairs` that contain any of the given edges (label' * L + label).
pub fn tiles<S: Simd>(_: S, labels: usize, edges: &[u32]) -> Vec<bool> {
    let mut requested = vec![false; labels * labels];
    edges.iter().for_each(|&e| requested[e as usize] = true);
    let mut out = Vec::new();
    by_block!([1 2 3 4] even S::TILE_ROWS, labels, from, P => {
        by_block!([1 2 3 4 5 6] even S::TILE_COLUMNS, labels, to, Q => {
            out.push((from..from + P).any(|y| requested[y * labels + to..y * labels + to + Q].contains(&true)));
        });
    });
    out
}

dispatch!(
    /// Add sum_t left_{t-1}(y') right_t(y) over the given positions, the first of which is at least 1, to `pairs`. This
    /// is a matrix product in register tiles, over a few positions at a time so that both factors stay in the L1 cache.
    /// `selected` selects the tiles to compute, all if empty. `left` and `right` are [T, L], and `pairs` has at least
    /// one lane per kept edge. Compiled as a function of its own for the reason given at `forward`.
    pub fn add_pairs(
        edges: &Edges, selected: &[bool], left: &[Lane], right: &[Lane], pairs: &mut [Lane], positions: Range<usize>
    ) = add_kernel
);

#[inline(always)]
fn add_kernel<S: Simd>(
    simd: S,
    edges: &Edges,
    selected: &[bool],
    left: &[Lane],
    right: &[Lane],
    pairs: &mut [Lane],
    positions: Range<usize>,
) {
    if let Some(sparse) = &edges.sparse {
        return sparse.add_pairs(simd, left, right, pairs, positions);
    }
    const STEP: usize = 8;
    let (l, n, mut begin) = (edges.labels, positions.end, positions.start);
    assert!(begin > 0 && left.len() >= n * l && right.len() >= n * l && pairs.len() >= l * l);
    while begin < n {
        let end = (begin + STEP).min(n);
        let mut selected = selected.iter();
        by_block!([1 2 3 4] even S::TILE_ROWS, l, from, P => {
            by_block!([1 2 3 4 5 6] even S::TILE_COLUMNS, l, to, Q => {
                if selected.next() != Some(&false) {
                    let mut sum = [[simd.splat(0.0); Q]; P];
                    for (i, row) in sum.iter_mut().enumerate() {
                        for (j, s) in row.iter_mut().enumerate() {
                            *s = simd.load(&pairs[(from + i) * l + to + j]);
                        }
                    }
                    for t in begin..end {
                        // SAFETY: `left` and `right` have n rows of l lanes, and from + P and to + Q are at most l.
                        unsafe {
                            let a = left.as_ptr().add((t - 1) * l + from);
                            let g = right.as_ptr().add(t * l + to);
                            for (i, row) in sum.iter_mut().enumerate() {
                                let x = simd.load(&*a.add(i));
                                for (j, s) in row.iter_mut().enumerate() {
                                    *s = simd.fma(x, simd.load(&*g.add(j)), *s);
                                }
                            }
                        }
                    }
                    for (i, row) in sum.iter().enumerate() {
                        for (j, s) in row.iter().enumerate() {
                            simd.store(*s, &mut pairs[(from + i) * l + to + j]);
                        }
                    }
                }
            });
        });
        begin = end;
    }
}

/// Add the lanes of `pairs` to the pair expectations of the kept edges, then zero them.
pub fn drain_pairs(edges: &Edges, pairs: &mut [Lane], expected: &mut [f64]) {
    if let Some(sparse) = &edges.sparse {
        return sparse.drain_pairs(pairs, expected);
    }
    for ((lane, &m), out) in pairs.iter_mut().zip(&edges.m).zip(expected) {
        if m > 0.0 {
            *out += lane.0.iter().map(|&x| f64::from(x)).sum::<f64>() * f64::from(m);
        }
        *lane = Lane::ZERO;
    }
}
