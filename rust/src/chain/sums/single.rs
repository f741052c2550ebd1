//! Marginals of one sentence with its labels in SIMD lanes.
//!
//! The operations are those of `batch`, on the same numbers and in the same order: sums over labels, and products of a
//! row with M, run from the first label to the last. Both modules give the same bits, so the marginals of a sentence do
//! not depend on the other sentences of a call. `sentence` adds in another order, which is faster.

use crate::chain::edges::Edges;
use crate::chain::sums::batch::LogScales;
use crate::machine::simd::blocks::by_block;
use crate::machine::simd::dispatch::dispatch;
use crate::machine::simd::find::Find;
use crate::machine::simd::{Lane, WIDTH};

/// Scratch of one thread. It grows to the longest sentence.
#[derive(Default)]
pub struct Single {
    /// [T, width] node scores, -infinity after the last label, then psi.
    pub psi: Vec<Lane>,
    alpha: Vec<Lane>,  // [T, width]
    inverse: Vec<f32>, // [T] 1 / c_t
    gamma: Vec<Lane>,  // [width] of the next position
    row: Vec<Lane>,    // [width]
}

/// from(y') m[y', ..] summed over y', in order.
#[inline(always)]
fn product<S: Find>(simd: S, m: &[Lane], labels: usize, from: &[Lane], out: &mut [Lane]) {
    let width = out.len();
    assert!(m.len() == labels * width && from.len() == width && labels <= width * WIDTH);
    by_block!([1 2 3 4] width, v, N => {
        // SAFETY: by the assertion.
        unsafe { product_lanes::<S, N>(simd, m, labels, from, out, v) }
    });
}

/// # Safety
/// `m` is [labels, width], `from` and `out` are [width], and v + N <= width.
#[inline(always)]
unsafe fn product_lanes<S: Find, const N: usize>(
    simd: S,
    m: &[Lane],
    labels: usize,
    from: &[Lane],
    out: &mut [Lane],
    v: usize,
) {
    let mut sum = [simd.splat(0.0); N];
    let (mut row, from) = (m.as_ptr().add(v), from.as_ptr().cast::<f32>());
    for k in 0..labels {
        let a = simd.splat(*from.add(k));
        for (j, s) in sum.iter_mut().enumerate() {
            *s = simd.fma(a, simd.load(&*row.add(j)), *s);
        }
        row = row.wrapping_add(out.len());
    }
    for (to, s) in out[v..].iter_mut().zip(sum) {
        simd.store(s, to);
    }
}

/// Sum over labels, from the first to the last.
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
#[inline(always)]
fn scale<S: Find>(simd: S, row: &mut [Lane], by: f32) {
    for x in row {
        simd.store(simd.mul(simd.load(x), simd.splat(by)), x);
    }
}

dispatch!(
    /// Compute psi, alpha and 1 / c from the node scores of n > 0 tokens. Return log Z, or `None` if the sentence is
    /// flagged. The buffers must be reserved for n tokens and the labels of `edges`.
    pub fn forward(single: &mut Single, edges: &Edges, n: usize) -> Option<f64> = |simd| single.forward(simd, edges, n)
);

dispatch!(
    /// Write the marginals [T, L], after `forward`.
    pub fn marginals(single: &mut Single, edges: &Edges, out: &mut [f32]) = |simd| single.backward(simd, edges, out)
);

impl Single {
    pub fn reserve(&mut self, n: usize, labels: usize) {
        let width = labels.div_ceil(WIDTH);
        for (v, n) in [(&mut self.psi, n), (&mut self.alpha, n), (&mut self.gamma, 1), (&mut self.row, 1)] {
            v.resize(v.len().max(n * width), Lane::ZERO);
        }
        self.inverse.resize(self.inverse.len().max(n), 0.0);
    }

    #[inline(always)]
    fn forward<S: Find>(&mut self, simd: S, edges: &Edges, n: usize) -> Option<f64> {
        let (l, width) = (edges.labels, edges.labels.div_ceil(WIDTH));
        let (m, _) = edges.padded();
        let (zero, one) = (simd.splat(0.0), simd.splat(1.0));
        let forbids = edges.underflow.forbids;
        let (mut log, mut smallest_scale, mut least) = (LogScales::<1>::new(), 1.0f32, one);
        for t in 0..n {
            let here = t * width..(t + 1) * width;
            let psi = &mut self.psi[here.clone()];
            let top = simd.largest(psi[1..].iter().fold(simd.load(&psi[0]), |top, s| simd.max(top, simd.load(s))));
            let (before, alpha) = self.alpha.split_at_mut(here.start);
            let alpha = &mut alpha[..width];
            if t > 0 {
                product(simd, m, l, &before[here.start - width..], alpha);
            }
            for (s, a) in psi.iter_mut().zip(alpha.iter_mut()) {
                let e = simd.exp_below(simd.load(s), simd.splat(top));
                simd.store(e, s);
                let sum = if t == 0 { e } else { simd.load(a) };
                let x = if t == 0 { e } else { simd.mul(sum, e) };
                simd.store(x, a);
                if t == 0 || forbids {
                    least = simd.min(least, simd.select_gt(simd.min(sum, e), zero, x, one));
                }
            }
            let c = total(alpha, l);
            smallest_scale = if c < smallest_scale || c.is_nan() { c } else { smallest_scale };
            let inverse = 1.0 / c;
            self.inverse[t] = inverse;
            scale(simd, alpha, inverse);
            log.multiply_scales(t, &[top], &[inverse]);
        }
        let mut entry = Lane::ZERO;
        simd.store(least, &mut entry);
        let entry = entry.0.iter().copied().fold(1.0, f32::min);
        let z = log.log_z(0, n as u32, edges.max);
        edges.underflow.bounds(smallest_scale, entry).filter(|_| z.is_finite()).map(|_| z)
    }

    #[inline(always)]
    fn backward<S: Find>(&mut self, simd: S, edges: &Edges, out: &mut [f32]) {
        let (l, width, n) = (edges.labels, edges.labels.div_ceil(WIDTH), out.len() / edges.labels);
        let (_, transposed) = edges.padded();
        let (row, gamma) = (&mut self.row[..width], &mut self.gamma[..width]);
        let zero = simd.splat(0.0);
        for t in (0..n).rev() {
            match t + 1 < n {
                true => product(simd, transposed, l, gamma, row),
                false => row.fill(Lane([1.0; WIDTH])),
            }
            let (alpha, psi) = (&self.alpha[t * width..], &self.psi[t * width..]);
            let inverse = simd.splat(self.inverse[t]);
            for v in 0..width {
                let (alpha, psi, beta) = (simd.load(&alpha[v]), simd.load(&psi[v]), simd.load(&row[v]));
                simd.store(simd.mul(alpha, beta), &mut row[v]);
                let x = simd.mul(simd.mul(psi, beta), inverse);
                simd.store(simd.select_gt(alpha, zero, x, zero), &mut gamma[v]);
            }
            let sum = total(row, l);
            let back = if sum > 0.0 { 1.0 / sum } else { 1.0 };
            scale(simd, row, back);
            scale(simd, gamma, back);
            for (part, lane) in out[t * l..(t + 1) * l].chunks_mut(WIDTH).zip(&*row) {
                part.copy_from_slice(&lane.0[..part.len()]);
            }
        }
    }
}
