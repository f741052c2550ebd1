//! The chain with given marginals that is closest to one sentence's distribution.

use crate::chain::beside::{products, Beside, Moves};
use crate::machine::dispatch::dispatch;
use crate::machine::find::Find;
use crate::machine::simd::Lane;

/// A position's marginals are near enough where they are off by this in all: sums over many tokens are squared.
const NEAR: f32 = 3e-6;
/// Most rounds of scaling a pair of neighbours. Nearly all are done after one; a few, of labels that hardly follow each other, need
/// many, and spoil the bound if they are left (conll2002-es: a gap of 2e-3 where it is 2e-4).
const ROUNDS: usize = 30;

/// x / y into `out`, 0 where y is 0.
///
/// # Safety
/// The machine has the instructions of `S`; all are of one length.
#[inline(always)]
unsafe fn divide<S: Find>(x: &[Lane], y: &[Lane], out: &mut [Lane]) {
    let zero = S::splat(0.0);
    for ((x, y), out) in x.iter().zip(y).zip(out) {
        let y = S::load(y);
        S::store(S::select_gt(y, zero, S::div(S::load(x), y), zero), out);
    }
}

/// sum p log x over the places where both are positive.
///
/// # Safety
/// The machine has the instructions of `S`; both are of one length.
#[inline(always)]
unsafe fn plogx<S: Find>(p: &[Lane], x: &[Lane]) -> f64 {
    let (zero, least) = (S::splat(0.0), S::splat(f32::MIN_POSITIVE));
    let mut sum = zero;
    for (p, x) in p.iter().zip(x) {
        let (p, x) = (S::load(p), S::load(x));
        let term = S::mul(p, S::ln(S::max(x, least)));
        sum = S::add(sum, S::select_gt(S::min(p, x), zero, term, zero));
    }
    f64::from(S::total(sum))
}

dispatch!(pub(crate) fn couple(beside: &mut Beside, moves: &Moves, mu: &[Lane]) -> f64 = couple_kernel);

/// # Safety
/// As for `Beside::couple`.
#[inline(always)]
unsafe fn couple_kernel<S: Find>(beside: &mut Beside, moves: &Moves, mu: &[Lane]) -> f64 {
    beside.couple::<S>(moves, mu)
}

impl Beside {
    /// Behind `marginals`: the chain with (nearly) the marginals `mu` [T, width] that is closest to that of the scores. Its own
    /// marginals come to `p`, its pair sums to `pairs`; answers its entropy, without - sum pairs log M, which the caller adds.
    ///
    /// The pairs of t - 1 and t are u(y') M[y', y] v(y), with u and v scaled in turn to have the marginals asked for
    /// (Sinkhorn 1967; the projection of least divergence). The last to be scaled is u, to the marginals that the chain
    /// really has at t - 1: so it is a chain, whatever the number of rounds. With c = u M v and u = m_{t-1} / (M v),
    /// entropy = - m_0 log m_0 + sum_t (- c log c + m_{t-1} log m_{t-1})
    ///         = - m_0 log m_0 + sum_t (m_{t-1} log (M v) - m_t log v - c log M).
    ///
    /// # Safety
    /// As for `marginals`; `mu` are distributions.
    #[inline(always)]
    unsafe fn couple<S: Find>(&mut self, moves: &Moves, mu: &[Lane]) -> f64 {
        let (l, width) = (moves.labels, moves.width);
        let n = mu.len() / width;
        self.p[..width].copy_from_slice(&mu[..width]);
        let mut entropy = -plogx::<S>(&self.p[..width], &self.p[..width]);
        for t in 1..n {
            let (here, before) = (t * width, (t - 1) * width);
            let (v, wanted) = (&mut self.gamma[here..here + width], &mu[here..here + width]);
            for round in 0.. {
                products::<S>(&moves.columns, l, width, v, &mut self.row);
                divide::<S>(&self.p[before..here], &self.row, &mut self.alpha[before..here]);
                products::<S>(&moves.rows, l, width, &self.alpha[before..here], &mut self.back);
                let (mut sum, mut off) = (S::splat(0.0), S::splat(0.0));
                for j in 0..width {
                    let m = S::mul(S::load(&v[j]), S::load(&self.back[j]));
                    let less = S::sub(m, S::load(&wanted[j]));
                    (sum, off) = (S::add(sum, m), S::add(off, S::max(less, S::sub(S::splat(0.0), less))));
                    S::store(m, &mut self.p[here + j]);
                }
                if round == ROUNDS || S::total(off) <= NEAR {
                    let back = S::splat(1.0 / S::total(sum));
                    for m in &mut self.p[here..here + width] {
                        S::store(S::mul(S::load(m), back), m);
                    }
                    break;
                }
                divide::<S>(wanted, &self.back, v);
            }
            entropy += plogx::<S>(&self.p[before..here], &self.row) - plogx::<S>(&self.p[here..here + width], v);
        }
        self.add_up::<S>(moves, n);
        entropy
    }
}
