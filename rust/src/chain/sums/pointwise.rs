//! Conditional expectations for the pointwise losses, sixteen sentences at a time.
//!
//! With token weights omega_t and gold labels c_t, sum_t omega_t (E[S] - E[S | y_t = c_t]) needs two more recursions
//! (Kakade, Teh and Roweis 2002). In the notation of `batch`, with omega_s / p_s(c_s) subtracted only at the gold
//! label,
//!
//! ```text
//! u_s = psi_s / c_s * (M^T u_{s-1}) + omega_s alpha_s (1 - [y = c_s] / p_s(c_s))
//! v_s = psi_s / c_s * (M v_{s+1})   + omega_s gamma_s (1 - [y = c_s] / p_s(c_s))
//! node residual at s      = omega_s (p_s - [y = c_s]) + gamma_s (M^T u_{s-1}) + alpha_s (M v_{s+1})
//! pair residual (s-1, s)  = M [u_{s-1} gamma_s + alpha_{s-1} v_s]
//! ```
//!
//! The recursions compute the differences of sums over all tokens and never the sums themselves, which are larger by
//! the length of the sentence. Both terms with M sum to 0 over the labels. The rounding error of these sums is
//! subtracted at every step, so that it does not accumulate along a sentence.

use crate::chain::edges::Edges;
use crate::chain::lists::Finish;
use crate::chain::sums::batch::{product, Shape, Work};
use crate::machine::simd::{Lane, Simd, WIDTH};

/// Additional scratch, each [T, L].
#[derive(Default)]
pub struct PointwiseWork {
    pub p: Vec<Lane>, // marginals, then residuals
    pub u: Vec<Lane>,
    pub v: Vec<Lane>,
    pub omega: Vec<Lane>, // [T] token weights
    product: Vec<Lane>,   // [L]
}

impl PointwiseWork {
    pub fn reserve(&mut self, shape: &Shape) {
        let n = shape.positions() * shape.labels;
        for v in [&mut self.p, &mut self.u, &mut self.v] {
            if v.len() < n {
                v.resize(n, Lane::ZERO);
            }
        }
        self.omega.resize(shape.positions().max(self.omega.len()), Lane::ZERO);
        self.product.resize(shape.labels.max(self.product.len()), Lane::ZERO);
    }
}

/// Stores sums unchanged.
struct StoreSums<'a>(&'a mut [Lane]);

impl<S: Simd> Finish<S> for StoreSums<'_> {
    #[inline(always)]
    fn finish(&mut self, simd: S, y: usize, sum: S::F) {
        simd.store(sum, &mut self.0[y]);
    }
}

/// M-weighted sums of `from` over all labels: out(y) = sum_k from(k) M[k, y] (`FORWARD`), or sum_k M[y, k] from(k).
/// `from` and `out` are [L].
#[inline(always)]
fn apply<S: Simd, const FORWARD: bool>(simd: S, edges: &Edges, from: &[Lane], out: &mut [Lane]) {
    let l = edges.labels;
    debug_assert!(from.len() == l && out.len() == l);
    if let Some(sparse) = &edges.sparse {
        let mut stored = StoreSums(out);
        return if FORWARD {
            sparse.forward::<S, true>(simd, from, &mut stored)
        } else {
            sparse.backward::<S, true>(simd, from, &mut stored)
        };
    }
    let m = if FORWARD { &edges.m } else { &edges.transposed };
    let mut y = 0;
    while y < l {
        if y + 4 <= l {
            let sum = product::<S, 4>(simd, m, l, from, y);
            for j in 0..4 {
                simd.store(sum[j], &mut out[y + j]);
            }
            y += 4;
        } else {
            simd.store(product::<S, 1>(simd, m, l, from, y)[0], &mut out[y]);
            y += 1;
        }
    }
}

/// sum_y a(y) b(y).
#[inline(always)]
fn inner<S: Simd>(simd: S, a: &[Lane], b: &[Lane]) -> S::F {
    let mut sum = simd.splat(0.0);
    for (a, b) in a.iter().zip(b) {
        sum = simd.fma(simd.load(a), simd.load(b), sum);
    }
    sum
}

/// Write residuals, without subtracting omega at the gold label, to `extra.p`, and the factors of the pair residuals to
/// `extra.u` and `extra.v`. Inputs: alpha in `work.alpha`, gamma in `work.gamma`, psi in `work.psi`, p in `extra.p`,
/// and `extra.omega`. `gold(t, lane)` is the gold label. `edges` must have the shape's labels, and `work` and `extra`
/// must be reserved for the shape.
#[inline(always)]
pub fn residuals<S: Simd>(
    simd: S,
    shape: &Shape,
    edges: &Edges,
    work: &Work,
    extra: &mut PointwiseWork,
    gold: impl Fn(usize, usize) -> usize,
) {
    let (l, n) = (shape.labels, shape.positions());
    debug_assert!(edges.labels == l && [&extra.p, &extra.u, &extra.v].iter().all(|v| v.len() >= n * l));
    // Gold marginals, before `p` is overwritten by residuals.
    let active = |t: usize, lane: usize| (t as u32) < shape.lengths[lane] && is_active(work, t, lane);
    let mut share = vec![Lane::ZERO; n];
    for (t, s) in share.iter_mut().enumerate() {
        for lane in 0..WIDTH {
            if active(t, lane) {
                let p = extra.p[t * l + gold(t, lane)].0[lane];
                s.0[lane] = if p > 0.0 { extra.omega[t].0[lane] / p } else { 0.0 };
            }
        }
    }
    for t in 0..n {
        let (inverse, mut omega) = (simd.load(&work.inverse[t]), simd.load(&extra.omega[t]));
        if t > 0 {
            let (before, _) = extra.u.split_at(t * l);
            apply::<S, true>(simd, edges, &before[(t - 1) * l..], &mut extra.product[..l]);
            omega = simd.sub(omega, inner(simd, &extra.product[..l], &work.gamma[t * l..(t + 1) * l]));
        }
        for y in 0..l {
            let at = t * l + y;
            let mut residual = simd.mul(omega, simd.load(&extra.p[at]));
            let mut u = simd.mul(omega, simd.load(&work.alpha[at]));
            if t > 0 {
                let product_y = simd.load(&extra.product[y]);
                residual = simd.fma(simd.load(&work.gamma[at]), product_y, residual);
                u = simd.fma(simd.mul(simd.load(&work.psi[at]), inverse), product_y, u);
            }
            simd.store(residual, &mut extra.p[at]);
            simd.store(u, &mut extra.u[at]);
        }
        for lane in 0..WIDTH {
            if active(t, lane) {
                let at = t * l + gold(t, lane);
                extra.u[at].0[lane] -= share[t].0[lane] * work.alpha[at].0[lane];
            }
        }
    }
    for t in (0..n).rev() {
        let (inverse, mut omega) = (simd.load(&work.inverse[t]), simd.load(&extra.omega[t]));
        if t + 1 < n {
            let (_, after) = extra.v.split_at((t + 1) * l);
            apply::<S, false>(simd, edges, &after[..l], &mut extra.product[..l]);
            omega = simd.sub(omega, inner(simd, &extra.product[..l], &work.alpha[t * l..(t + 1) * l]));
        }
        for y in 0..l {
            let at = t * l + y;
            let mut v = simd.mul(omega, simd.load(&work.gamma[at]));
            if t + 1 < n {
                let product_y = simd.load(&extra.product[y]);
                simd.store(simd.fma(simd.load(&work.alpha[at]), product_y, simd.load(&extra.p[at])), &mut extra.p[at]);
                v = simd.fma(simd.mul(simd.load(&work.psi[at]), inverse), product_y, v);
            }
            simd.store(v, &mut extra.v[at]);
        }
        for lane in 0..WIDTH {
            if active(t, lane) {
                let at = t * l + gold(t, lane);
                extra.v[at].0[lane] -= share[t].0[lane] * work.gamma[at].0[lane];
            }
        }
    }
}

/// Whether a lane is used at position t. The scales of a flagged lane were cleared.
#[inline(always)]
fn is_active(work: &Work, t: usize, lane: usize) -> bool {
    work.inverse[t].0[lane] != 0.0
}
