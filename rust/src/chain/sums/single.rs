//! Marginals of one sentence with its labels in SIMD lanes.
//!
//! The operations are those of `batch`, on the same numbers and in the same order: sums over labels run from the first to the
//! last, products of a row with M likewise. Both modules give the same bits, so that the marginals of a sentence do not depend on
//! the sentences of the same call. (`sentence` adds in another order, which is faster.)

use crate::chain::edges::Edges;
use crate::chain::sums::batch::LogScales;
use crate::machine::simd::find::Find;
use crate::machine::simd::{Lane, WIDTH};

/// Scratch of one thread; grows to the longest sentence.
#[derive(Default)]
pub struct Single {
    /// [T, width] node scores, -infinity after the last label; then psi.
    pub psi: Vec<Lane>,
    alpha: Vec<Lane>,  // [T, width]
    inverse: Vec<f32>, // [T] 1 / c_t
    gamma: Vec<Lane>,  // [width] of the position after
    row: Vec<Lane>,    // [width]
}

/// from(y') m[y', ..] summed over y', in order.
///
/// # Safety
/// The machine has the instructions of `S`; `m` is [labels, width], `from` and `out` are [width].
#[inline(always)]
unsafe fn product<S: Find>(m: &[Lane], labels: usize, from: &[Lane], out: &mut [Lane]) {
    let (width, mut v) = (out.len(), 0);
    debug_assert!(m.len() == labels * width && from.len() == width);
    while v < width {
        match width - v {
            1 => some_lanes::<S, 1>(m, labels, from, out, v),
            2 => some_lanes::<S, 2>(m, labels, from, out, v),
            3 => some_lanes::<S, 3>(m, labels, from, out, v),
            _ => some_lanes::<S, 4>(m, labels, from, out, v),
        }
        v += 4;
    }
}

/// # Safety
/// As for `product`; v + N <= width.
#[inline(always)]
unsafe fn some_lanes<S: Find, const N: usize>(m: &[Lane], labels: usize, from: &[Lane], out: &mut [Lane], v: usize) {
    let mut sum = [S::splat(0.0); N];
    let (mut row, from) = (m.as_ptr().add(v), from.as_ptr().cast::<f32>());
    for k in 0..labels {
        let a = S::splat(*from.add(k));
        for (j, s) in sum.iter_mut().enumerate() {
            *s = S::fma(a, S::load(&*row.add(j)), *s);
        }
        row = row.wrapping_add(out.len());
    }
    for (to, s) in out[v..].iter_mut().zip(sum) {
        S::store(s, to);
    }
}

/// The sum over labels, from the first to the last.
#[inline(always)]
fn total(row: &[Lane], labels: usize) -> f32 {
    let whole = labels / WIDTH;
    let mut sum = 0.0;
    for lane in &row[..whole] {
        for x in lane.0 {
            sum += x;
        }
    }
    row.get(whole).map_or(sum, |lane| lane.0[..labels % WIDTH].iter().fold(sum, |sum, x| sum + x))
}

/// Multiply a row.
///
/// # Safety
/// The machine has the instructions of `S`.
#[inline(always)]
unsafe fn scale<S: Find>(row: &mut [Lane], by: f32) {
    for x in row {
        S::store(S::mul(S::load(x), S::splat(by)), x);
    }
}

impl Single {
    pub fn reserve(&mut self, n: usize, labels: usize) {
        let width = labels.div_ceil(WIDTH);
        for (v, n) in [(&mut self.psi, n), (&mut self.alpha, n), (&mut self.gamma, 1), (&mut self.row, 1)] {
            v.resize(v.len().max(n * width), Lane::ZERO);
        }
        self.inverse.resize(self.inverse.len().max(n), 0.0);
    }

    /// psi, alpha and 1 / c from the node scores of n > 0 tokens. Returns log Z, or None if the sentence is flagged.
    ///
    /// # Safety
    /// The machine has the instructions of `S`; room is reserved for n tokens and the labels of `edges`.
    #[inline(always)]
    pub(crate) unsafe fn forward<S: Find>(&mut self, edges: &Edges, n: usize) -> Option<f64> {
        let (l, width) = (edges.labels, edges.labels.div_ceil(WIDTH));
        let (m, _) = edges.padded();
        let (zero, one) = (S::splat(0.0), S::splat(1.0));
        let forbids = edges.underflow.forbids;
        let (mut log, mut worst, mut least) = (LogScales::<1>::new(), 1.0f32, one);
        for t in 0..n {
            let here = t * width..(t + 1) * width;
            let psi = &mut self.psi[here.clone()];
            let top = S::largest(psi[1..].iter().fold(S::load(&psi[0]), |top, s| S::max(top, S::load(s))));
            let (before, alpha) = self.alpha.split_at_mut(here.start);
            let alpha = &mut alpha[..width];
            if t > 0 {
                product::<S>(m, l, &before[here.start - width..], alpha);
            }
            for (s, a) in psi.iter_mut().zip(alpha.iter_mut()) {
                let e = S::exp_below(S::load(s), S::splat(top));
                S::store(e, s);
                let sum = if t == 0 { e } else { S::load(a) };
                let x = if t == 0 { e } else { S::mul(sum, e) };
                S::store(x, a);
                if t == 0 || forbids {
                    least = S::min(least, S::select_gt(S::min(sum, e), zero, x, one));
                }
            }
            let c = total(alpha, l);
            worst = if c < worst || c.is_nan() { c } else { worst };
            let inverse = 1.0 / c;
            self.inverse[t] = inverse;
            scale::<S>(alpha, inverse);
            log.times(t, &[top], &[inverse]);
        }
        let mut entry = Lane::ZERO;
        S::store(least, &mut entry);
        let entry = entry.0.iter().copied().fold(1.0, f32::min);
        let z = log.log_z(0, n as u32, edges.max);
        edges.underflow.bounds(worst, entry).filter(|_| z.is_finite()).map(|_| z)
    }

    /// After `forward`: `visit(t, p)` with the marginals of each position, in lanes, from the last position to the first.
    ///
    /// # Safety
    /// As for `forward`.
    #[inline(always)]
    pub(crate) unsafe fn backward<S: Find>(&mut self, edges: &Edges, n: usize, mut visit: impl FnMut(usize, &[Lane])) {
        let (l, width) = (edges.labels, edges.labels.div_ceil(WIDTH));
        let (_, transposed) = edges.padded();
        let (row, gamma) = (&mut self.row[..width], &mut self.gamma[..width]);
        let zero = S::splat(0.0);
        for t in (0..n).rev() {
            match t + 1 < n {
                true => product::<S>(transposed, l, gamma, row),
                false => row.fill(Lane([1.0; WIDTH])),
            }
            let (alpha, psi) = (&self.alpha[t * width..], &self.psi[t * width..]);
            let inverse = S::splat(self.inverse[t]);
            for v in 0..width {
                let (alpha, psi, beta) = (S::load(&alpha[v]), S::load(&psi[v]), S::load(&row[v]));
                S::store(S::mul(alpha, beta), &mut row[v]);
                let x = S::mul(S::mul(psi, beta), inverse);
                S::store(S::select_gt(alpha, zero, x, zero), &mut gamma[v]);
            }
            let sum = total(row, l);
            let back = if sum > 0.0 { 1.0 / sum } else { 1.0 };
            scale::<S>(row, back);
            scale::<S>(gamma, back);
            visit(t, row);
        }
    }
}
