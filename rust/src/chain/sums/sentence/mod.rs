//! Sums over the paths of one sentence, with labels in the lanes of vector registers. Used by learners whose weights
//! change after each sentence. `sums::batch` instead processes sixteen sentences with the same weights at a time.
//!
//! The equations are those of `sums::batch`, in float32 and scaled at every position. A row of the matrix M is `width`
//! lanes.

use crate::chain::sums::underflow::Underflow;
use crate::machine::simd::blocks::by_block;
use crate::machine::simd::dispatch::dispatch;
use crate::machine::simd::find::Find;
use crate::machine::simd::{Lane, WIDTH};

mod factors;

pub(crate) use factors::set;
pub use factors::LaneFactors;
use factors::{products, two_products};

/// Sum of alpha beta below which the sentence is rejected, because numbers that underflow are up to 1e-8 of the sum.
const MIN_Z: f32 = 1e-30;
/// Sums below this are scaled at once. Others are scaled together with the next position, which then does not have to
/// wait.
const RESCALE_BELOW: f32 = 1e-6;
/// Positions after which the logarithm of the product of scales is taken. No scale is below 1e-30, and 1e-30^8 is still
/// a normal double.
const LOG_INTERVAL: usize = 8;
/// Number of labels whose pairs are summed at a time.
const LABELS_AT_ONCE: usize = 4;

dispatch!(
    /// `SentenceSums::forward`, compiled as a function of its own, like the others here, to reduce the compile time of
    /// callers.
    pub(crate) fn forward(sentence_sums: &mut SentenceSums, factors: &LaneFactors, n: usize) -> Option<f64> = |simd| sentence_sums.forward(simd, factors, n)
);
dispatch!(
    pub(crate) fn marginals(sentence_sums: &mut SentenceSums, factors: &LaneFactors, n: usize) -> Option<()> =
        |simd| sentence_sums.marginals(simd, factors, n)
);

/// Scratch of one thread. It grows to the longest sentence.
#[derive(Default)]
pub struct SentenceSums {
    pub node: Vec<Lane>, // [T, width] scores, -infinity after the last label
    psi: Vec<Lane>,
    alpha: Vec<Lane>,
    beta: Vec<Lane>,
    gamma: Vec<Lane>,
    tops: Vec<f32>,       // [T] largest node scores
    scales: Vec<f32>,     // [T] of alpha
    pub p: Vec<Lane>,     // [T, width] marginals
    row: Vec<Lane>,       // [width]
    back: Vec<Lane>,      // [width]
    pub pairs: Vec<Lane>, // [L, width] sums of the marginals of neighbouring pairs
}

/// Return (scale, factor for the next position) of a position whose numbers have this sum, or `None` if the sum is
/// below `least` and therefore too small for float32.
#[inline(always)]
fn rescale_small<S: Find>(simd: S, sum: S::F, least: f32, numbers: &mut [Lane]) -> Option<(f32, f32)> {
    let scale = simd.total(sum);
    if scale.partial_cmp(&least).is_none_or(std::cmp::Ordering::is_lt) {
        return None;
    }
    if scale > RESCALE_BELOW {
        return Some((scale, 1.0 / scale));
    }
    let by = simd.splat(1.0 / scale);
    for x in numbers {
        simd.store(simd.mul(simd.load(x), by), x);
    }
    Some((scale, 1.0))
}

/// Smallest entry of the reachable labels, tracked if edges are forbidden.
struct SmallestEntry<S: Find> {
    forbids: bool,
    least: S::F,
    threshold: f32,
}

impl<S: Find> SmallestEntry<S> {
    #[inline(always)]
    fn new(simd: S, factors: &LaneFactors) -> SmallestEntry<S> {
        let Underflow { forbids, least_entry: threshold, .. } = factors.underflow;
        SmallestEntry { forbids, least: simd.splat(1.0), threshold }
    }

    /// Add the entry `x` = psi times `moved`, where `moved` is the sum over previous labels.
    #[inline(always)]
    fn add(&mut self, simd: S, psi: S::F, moved: S::F, x: S::F) {
        if self.forbids {
            let reached = simd.select_gt(simd.min(psi, moved), simd.splat(0.0), x, simd.splat(1.0));
            self.least = simd.min(self.least, reached);
        }
    }

    /// Return `None` if an entry is too small for float32.
    #[inline(always)]
    fn check(&self, simd: S) -> Option<()> {
        (simd.greater(simd.splat(self.threshold), self.least) == 0).then_some(())
    }
}

impl SentenceSums {
    /// Grow the buffers to a sentence of n tokens.
    pub fn reserve(&mut self, n: usize, labels: usize) {
        let width = labels.div_ceil(WIDTH);
        if self.node.len() < n * width || self.row.len() < width {
            for v in [&mut self.node, &mut self.psi, &mut self.alpha, &mut self.beta, &mut self.gamma, &mut self.p] {
                v.resize(n * width, Lane::ZERO);
            }
            self.tops.resize(n, 0.0);
            self.scales.resize(n, 0.0);
            self.row.resize(width, Lane::ZERO);
            self.back.resize(width, Lane::ZERO);
            self.pairs.resize(labels * width, Lane::ZERO);
        }
    }

    /// psi = exp of the node scores less the largest of each position. Return `None` if a largest score is not finite.
    #[inline(always)]
    fn exponentiate<S: Find>(&mut self, simd: S, width: usize, n: usize) -> Option<()> {
        for v in [&self.node, &self.psi, &self.alpha, &self.beta, &self.gamma, &self.p] {
            assert!(v.len() >= n * width);
        }
        let mut finite = true;
        let rows = self.node.chunks_exact(width).zip(self.psi.chunks_exact_mut(width)).zip(&mut self.tops);
        for ((node, psi), row_max) in rows.take(n) {
            let mut top = simd.load(&node[0]);
            for x in &node[1..] {
                top = simd.max(top, simd.load(x));
            }
            *row_max = simd.largest(top);
            finite &= row_max.is_finite();
            let top = simd.splat(*row_max);
            for (s, psi) in node.iter().zip(psi) {
                simd.store(simd.exp_below(simd.load(s), top), psi);
            }
        }
        finite.then_some(())
    }

    /// log Z from the scales of `forward` or `marginals`.
    pub fn log_z(&self, factors: &LaneFactors, n: usize) -> Option<f64> {
        let mut log_z = n.saturating_sub(1) as f64 * f64::from(factors.max);
        for (tops, scales) in self.tops[..n].chunks(LOG_INTERVAL).zip(self.scales[..n].chunks(LOG_INTERVAL)) {
            log_z += tops.iter().map(|&x| f64::from(x)).sum::<f64>();
            log_z += scales.iter().map(|&x| f64::from(x)).product::<f64>().ln();
        }
        log_z.is_finite().then_some(log_z)
    }

    /// Return log Z of the node scores, or `None` if a scale is too small for float32.
    #[inline(always)]
    fn forward<S: Find>(&mut self, simd: S, factors: &LaneFactors, n: usize) -> Option<f64> {
        let (l, width) = (factors.labels, factors.width);
        self.exponentiate(simd, width, n)?;
        let least = factors.underflow.least_scale;
        let mut entries = SmallestEntry::new(simd, factors);
        let mut inverse = 1.0;
        for t in 0..n {
            let here = t * width;
            let (before, alpha) = self.alpha.split_at_mut(here);
            let alpha = &mut alpha[..width];
            let (mut sum, by) = (simd.splat(0.0), simd.splat(inverse));
            if t > 0 {
                // SAFETY: `rows` are those of the moves, and the others have `width` lanes.
                unsafe { products(simd, &factors.rows, l, width, &before[here - width..], alpha) };
            }
            for (a, psi) in alpha.iter_mut().zip(&self.psi[here..here + width]) {
                let psi = simd.load(psi);
                let moved = if t == 0 { psi } else { simd.load(a) };
                let x = if t == 0 { psi } else { simd.mul(moved, simd.mul(psi, by)) };
                sum = simd.add(sum, x);
                entries.add(simd, psi, moved, x);
                simd.store(x, a);
            }
            (self.scales[t], inverse) = rescale_small(simd, sum, least, alpha)?;
        }
        entries.check(simd)?;
        self.log_z(factors, n)
    }

    /// Compute node marginals and sums of pair marginals. Return `None` if float32 is not sufficient.
    ///
    /// ```text
    /// alpha_0 = psi_0         alpha_t = psi_t (alpha_{t-1} M) / sum alpha_{t-1}
    /// gamma_{T-1} = psi       gamma_t = psi_t beta_t / sum gamma_{t+1},  beta_t = M gamma_{t+1}
    /// p_t = alpha_t beta_t / Z_t;  pairs = sum_t alpha_t / Z_t  M  gamma_{t+1},  Z_t = sum alpha_t beta_t
    /// ```
    ///
    /// Both recursions run at once, from the two ends. Each depends on its own last position, so one computes during
    /// the latency of the other.
    #[inline(always)]
    fn marginals<S: Find>(&mut self, simd: S, factors: &LaneFactors, n: usize) -> Option<()> {
        let width = factors.width;
        self.exponentiate(simd, width, n)?;
        // SAFETY: `exponentiate` has checked that the buffers have at least n tokens.
        unsafe {
            by_block!([1 2] = width, W => self.run_both::<S, W>(simd, factors, n), _ => self.run_both::<S, 3>(simd, factors, n))?
        };
        let mut least = f32::INFINITY;
        for t in 0..n {
            let here = t * width;
            let mut sum = simd.splat(0.0);
            for j in here..here + width {
                let p = simd.mul(simd.load(&self.alpha[j]), simd.load(&self.beta[j]));
                sum = simd.add(sum, p);
                simd.store(p, &mut self.p[j]);
            }
            let z = simd.total(sum);
            least = if z > least { least } else { z }; // a NaN counts as the smallest
            let by = simd.splat(1.0 / z);
            for j in here..here + width {
                simd.store(simd.mul(simd.load(&self.p[j]), by), &mut self.p[j]);
                simd.store(simd.mul(simd.load(&self.alpha[j]), by), &mut self.alpha[j]);
            }
        }
        if least.partial_cmp(&MIN_Z) != Some(std::cmp::Ordering::Greater) {
            return None;
        }
        // SAFETY: as above.
        unsafe { self.sum_pairs(simd, factors, n) };
        Some(())
    }

    /// Compute alpha, beta and gamma with W lanes per row, or any number of lanes if W is 3.
    ///
    /// # Safety
    /// The buffers have at least n tokens.
    #[inline(always)]
    unsafe fn run_both<S: Find, const W: usize>(&mut self, simd: S, factors: &LaneFactors, n: usize) -> Option<()> {
        let width = if W < 3 { W } else { factors.width };
        let last = (n - 1) * width;
        let least = factors.underflow.least_scale;
        let mut entries = SmallestEntry::new(simd, factors);
        let (mut a, mut g) = (simd.splat(0.0), simd.splat(0.0));
        for j in 0..width {
            let (first, end) = (self.psi[j], self.psi[last + j]);
            let (x, y) = (simd.load(&first), simd.load(&end));
            entries.add(simd, x, x, x);
            entries.add(simd, y, y, y);
            (a, g) = (simd.add(a, x), simd.add(g, y));
            (self.alpha[j], self.gamma[last + j], self.beta[last + j]) = (first, end, Lane([1.0; WIDTH]));
        }
        let (scale, mut forward_scale) = rescale_small(simd, a, least, &mut self.alpha[..width])?;
        let (_, mut backward_scale) = rescale_small(simd, g, least, &mut self.gamma[last..last + width])?;
        self.scales[0] = scale;
        for t in 1..n {
            let (here, mirrored) = (t * width, last - t * width);
            let (from, to) = (self.alpha.as_ptr().add(here - width), self.gamma.as_ptr().add(mirrored + width));
            (a, g) = (simd.splat(0.0), simd.splat(0.0));
            by_block!([1 2] width, v, N => {
                let (x, y) = two_products::<S, N>(simd, factors, width, from, to, v);
                for j in 0..N {
                    let (i, k) = (here + v + j, mirrored + v + j);
                    let (psi_x, psi_y) =
                        (simd.load(self.psi.get_unchecked(i)), simd.load(self.psi.get_unchecked(k)));
                    let found = simd.mul(x[j], simd.mul(psi_x, simd.splat(forward_scale)));
                    entries.add(simd, psi_x, x[j], found);
                    simd.store(found, self.alpha.get_unchecked_mut(i));
                    a = simd.add(a, found);
                    simd.store(y[j], self.beta.get_unchecked_mut(k));
                    let found = simd.mul(y[j], simd.mul(psi_y, simd.splat(backward_scale)));
                    entries.add(simd, psi_y, y[j], found);
                    simd.store(found, self.gamma.get_unchecked_mut(k));
                    g = simd.add(g, found);
                }
            });
            (self.scales[t], forward_scale) = rescale_small(simd, a, least, &mut self.alpha[here..here + width])?;
            (_, backward_scale) = rescale_small(simd, g, least, &mut self.gamma[mirrored..mirrored + width])?;
        }
        entries.check(simd)
    }

    /// Sums over pairs of neighbours, M[y', y] sum_t alpha_{t-1}(y') gamma_t(y).
    ///
    /// # Safety
    /// The buffers have at least n tokens.
    #[inline(always)]
    unsafe fn sum_pairs<S: Find>(&mut self, simd: S, factors: &LaneFactors, n: usize) {
        for from in (0..factors.labels).step_by(LABELS_AT_ONCE) {
            by_block!([1 2 3 4] factors.width, v, W => self.pair::<S, W>(simd, factors, n, from, v));
        }
    }

    /// M[y', .] sum_t alpha_{t-1}(y') gamma_t(.) for LABELS_AT_ONCE labels y' and W lanes starting at v.
    ///
    /// # Safety
    /// The buffers have at least n tokens, and v + W <= width.
    #[inline(always)]
    unsafe fn pair<S: Find, const W: usize>(
        &mut self,
        simd: S,
        factors: &LaneFactors,
        n: usize,
        from: usize,
        v: usize,
    ) {
        let width = if v == 0 && W < 4 { W } else { factors.width };
        let mut sums = [[simd.splat(0.0); W]; LABELS_AT_ONCE];
        let (mut a, mut g) = (self.alpha.as_ptr().cast::<f32>().add(from), self.gamma.as_ptr().wrapping_add(width + v));
        for _ in 1..n {
            let mut next = [simd.splat(0.0); W];
            for (j, x) in next.iter_mut().enumerate() {
                *x = simd.load(&*g.add(j));
            }
            for (i, sum) in sums.iter_mut().enumerate() {
                let x = simd.splat(*a.add(i));
                for (s, &next) in sum.iter_mut().zip(&next) {
                    *s = simd.fma(x, next, *s);
                }
            }
            (a, g) = (a.add(width * WIDTH), g.wrapping_add(width));
        }
        for (i, sum) in sums.iter().enumerate().take(factors.labels - from) {
            for (j, &s) in sum.iter().enumerate() {
                let at = (from + i) * width + v + j;
                simd.store(simd.mul(s, simd.load(&factors.rows[at])), &mut self.pairs[at]);
            }
        }
    }
}
