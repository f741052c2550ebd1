//! One sentence in double precision: log Z, marginals, and the chain with given marginals that is closest to the
//! distribution of the scores. Used for sentences and edges outside the range of single precision, and for sums that
//! must be exact.
//!
//! ```text
//! gamma_{T-1} ~ psi_{T-1},   gamma_t ~ psi_t beta_t,   beta_t = M gamma_{t+1}        rows of gamma sum to 1
//! p_0 = gamma_0,   p(y | y') = M[y', y] gamma_t(y) / beta_{t-1}(y')                  the distribution of the scores
//! m_0 given,       q(y | y') = M[y', y] v_t(y) / (M v_t)(y')                         a chain for any v > 0
//! KL(q | p) = sum m_0 log(m_0 / p_0) + sum_t (sum m_t log(v_t / gamma_t) - sum m_{t-1} log(M v_t / beta_{t-1}))
//! ```
//!
//! v is scaled until q has the requested marginals (Sinkhorn 1967, the projection of least divergence). Near the
//! optimum q is near p, so the divergence is a sum of logarithms of numbers near 1. No large numbers cancel, unlike in
//! log Z less scores less entropy.
//!
//! Range: M >= e^-MAX_SPAN for allowed edges. If no edge is forbidden, beta >= e^-MAX_SPAN everywhere, so states that
//! underflow have a share of less than 1e-100 of the probability, for any prefix. If some edges are forbidden, a state
//! may be the only one that the rest of the sentence allows. A sentence in which a reachable state has a share of
//! MIN_SHARE or less is therefore rejected. Each product is then at least 1e-200 * 1e-100, nothing underflows, and a 0
//! always means forbidden.

use crate::machine::simd::blocks::by_block;
use crate::machine::simd::dispatch::dispatch;
use crate::machine::simd::double::{exp_neg, ln, Doubles};
use crate::machine::simd::find::Find;
use crate::machine::simd::{Level, WIDTH};

/// Total error at which the marginals of a position are close enough. It bounds the length of the loop, not an error.
const MARGINAL_TOLERANCE: f64 = 3e-6;
/// Maximum number of scaling rounds per pair of neighbours. Nearly all pairs need one. Labels that hardly follow each
/// other need many.
const MAX_ROUNDS: usize = 30;
/// Widest span of allowed edge scores: e^-230 = 1e-100.
const MAX_SPAN: f64 = 230.0;
/// Smallest accepted share of a reachable state.
const MIN_SHARE: f64 = 1e-200;

/// Product of probabilities below which its logarithm is taken.
const LOG_THRESHOLD: f64 = 1e-50;

/// Factors exp(A - max A) of the edge scores, by rows and by columns.
#[derive(Clone, Debug)]
pub struct Factors {
    labels: usize,
    pub(super) width: usize,
    pub(super) rows: Vec<Doubles>, // [L, width] indexed by previous label, then next label
    pub(super) columns: Vec<Doubles>, // [L, width] indexed by next label, then previous label
    max: f64,
    least: f64, // smallest accepted share of a reachable state
}

impl Factors {
    /// Compute the factors of edge scores, -infinity if forbidden. Return `None` if the span is too wide or not finite.
    pub fn new(labels: usize, score: impl Fn(usize, usize) -> f64) -> Option<Factors> {
        let width = labels.div_ceil(WIDTH);
        let (mut max, mut min, mut fits) = (f64::NEG_INFINITY, f64::INFINITY, true);
        for x in (0..labels * labels).map(|e| score(e / labels, e % labels)).filter(|&x| x != f64::NEG_INFINITY) {
            (max, min, fits) = (max.max(x), min.min(x), fits && x.is_finite());
        }
        if !fits || !max.is_finite() || max - min > MAX_SPAN {
            return None;
        }
        let mut rows = vec![Doubles::ZERO; labels * width];
        let mut columns = rows.clone();
        for a in 0..labels {
            for b in 0..labels {
                let m = exp_neg(score(a, b) - max);
                rows[a * width + b / WIDTH].0[b % WIDTH] = m;
                columns[b * width + a / WIDTH].0[a % WIDTH] = m;
            }
        }
        let forbids = (0..labels * labels).any(|e| score(e / labels, e % labels) == f64::NEG_INFINITY);
        Some(Factors { labels, width, rows, columns, max, least: if forbids { MIN_SHARE } else { -1.0 } })
    }

    pub fn labels(&self) -> usize {
        self.labels
    }

    /// M [L, width].
    pub fn rows(&self) -> &[Doubles] {
        &self.rows
    }
}

/// log Z of a sentence, and the sum of the absolute values of its terms.
pub(crate) struct LogZ {
    pub value: f64,
    pub magnitude: f64,
}

/// KL(q | p) of the closest chain, and the sum of the absolute values of its terms.
pub(crate) struct Divergence {
    pub value: f64,
    pub magnitude: f64,
}

/// Scratch of one thread. It grows to the longest sentence.
#[derive(Default)]
pub(crate) struct Scaled64 {
    /// [T, width] node scores, -infinity for forbidden labels and padding.
    pub node: Vec<Doubles>,
    pub(super) gamma: Vec<Doubles>, // [T, width]
    pub(super) beta: Vec<Doubles>,  // [T, width]
    /// [T, width] marginals of the closest chain.
    pub m: Vec<Doubles>,
    v: Vec<Doubles>,      // [width], as are the others
    row: Vec<Doubles>,    // M v
    u: Vec<Doubles>,      // m_{t-1} / (M v)
    back: Vec<Doubles>,   // u M
    target: Vec<Doubles>, // requested marginals
}

dispatch!(
    /// Return log Z of the node scores of n > 0 tokens, or `None` if a state is out of range.
    pub(crate) fn backward(precise: &mut Scaled64, factors: &Factors, n: usize) -> Option<LogZ> = |simd| precise.backward(simd, factors, n)
);
dispatch!(
    /// Return -log P(gold) after `backward`. It is infinite if a factor of that probability underflows.
    ///
    /// log Z - H(gold) has the rounding error of two large numbers. P(gold) is instead the product of 1 - q_t with
    /// q_t = P(y_t is wrong | y_{t-1} is right) = sum over wrong y of M[g, y] gamma_t(y) / beta_{t-1}(g), so a loss of
    /// 1e-20 has all its digits.
    pub(crate) fn gold_loss(precise: &mut Scaled64, factors: &Factors, gold: &[u16]) -> f64 = gold_loss_kernel
);
dispatch!(
    /// Write the marginals of the scores to `m`, after `backward`. Adds to `pairs` as `fit_marginals` does.
    pub(crate) fn marginals(precise: &mut Scaled64, factors: &Factors, n: usize, weight: f64, pairs: &mut [Doubles]) =
        |simd| precise.marginals(simd, factors, n, weight, pairs)
);
dispatch!(
    /// Compute the chain closest to the scores that has, at least approximately, the marginals `mu` [T, L], after
    /// `backward`. Adds `weight` times u_t(y') v_t(y) to `pairs` [L, width]. Multiplied by M, these are the
    /// expectations of pairs of labels.
    pub(crate) fn fit_marginals(precise: &mut Scaled64, factors: &Factors, mu: &[f32], weight: f64, pairs: &mut [Doubles]) -> Divergence =
        |simd| precise.fit_marginals(simd, factors, mu, weight, pairs)
);

/// Doubles per block, half of a row of sixteen.
const BLOCK: usize = 8;

/// a b + c, with a single rounding if the instruction set has fused multiply-add.
#[inline(always)]
fn fma<S: Find>(_: S, a: f64, b: f64, c: f64) -> f64 {
    match S::LEVEL {
        Level::Baseline => a * b + c,
        Level::Avx512 | Level::Avx2 => a.mul_add(b, c),
    }
}

/// out = sum_y from(y) rows[y], for the blocks that contain labels.
#[inline(always)]
pub(super) fn product<S: Find>(
    simd: S,
    rows: &[Doubles],
    labels: usize,
    width: usize,
    from: &[Doubles],
    out: &mut [Doubles],
) {
    assert!(rows.len() == labels * width && from.len() == width && out.len() == width && labels <= width * WIDTH);
    let (rows, from) = (rows.as_ptr().cast::<[f64; BLOCK]>(), from.as_ptr().cast::<f64>());
    let out = out.as_mut_ptr().cast::<[f64; BLOCK]>();
    by_block!([1 2 3] labels.div_ceil(BLOCK), b, N => {
        // SAFETY: by the assertion, rows and `out` have all of these blocks, and `from` all labels.
        unsafe { product_blocks::<S, N>(simd, rows.add(b), 2 * width, labels, from, out.add(b)) }
    });
}

/// Compute N blocks of a product, with two independent accumulators.
///
/// # Safety
/// There are `labels` rows of `stride` blocks. N blocks of each row are readable, and N blocks of `out` are writable.
#[inline(always)]
unsafe fn product_blocks<S: Find, const N: usize>(
    simd: S,
    rows: *const [f64; BLOCK],
    stride: usize,
    labels: usize,
    from: *const f64,
    out: *mut [f64; BLOCK],
) {
    let mut sums = [[[0.0; BLOCK]; N]; 2];
    let mut y = 0;
    while y + 1 < labels {
        for (i, sum) in sums.iter_mut().enumerate() {
            let (a, row) = (*from.add(y + i), rows.add((y + i) * stride));
            for (j, sum) in sum.iter_mut().enumerate() {
                let row = &*row.add(j);
                for k in 0..BLOCK {
                    sum[k] = fma(simd, a, row[k], sum[k]);
                }
            }
        }
        y += 2;
    }
    if y < labels {
        let (a, row) = (*from.add(y), rows.add(y * stride));
        for (j, sum) in sums[0].iter_mut().enumerate() {
            let row = &*row.add(j);
            for k in 0..BLOCK {
                sum[k] = fma(simd, a, row[k], sum[k]);
            }
        }
    }
    for j in 0..N {
        let out = &mut *out.add(j);
        for k in 0..BLOCK {
            out[k] = sums[0][j][k] + sums[1][j][k];
        }
    }
}

/// pairs += weight u v^T, for the blocks that contain labels.
#[inline(always)]
pub(super) fn add_outer<S: Find>(
    simd: S,
    factors: &Factors,
    weight: f64,
    u: &[Doubles],
    v: &[Doubles],
    pairs: &mut [Doubles],
) {
    let (blocks, width) = (factors.labels.div_ceil(BLOCK), factors.width);
    debug_assert!(pairs.is_empty() || pairs.len() == factors.labels * width);
    for (y, row) in pairs.chunks_exact_mut(width).enumerate() {
        let u = weight * u[y / WIDTH].0[y % WIDTH];
        for j in 0..blocks {
            let half = j % 2 * BLOCK..(j % 2 + 1) * BLOCK;
            for (sum, v) in row[j / 2].0[half.clone()].iter_mut().zip(&v[j / 2].0[half]) {
                *sum = fma(simd, u, *v, *sum);
            }
        }
    }
}

/// Sum of all numbers, in an order that does not depend on the instruction set.
#[inline(always)]
pub(super) fn total(of: &[Doubles]) -> f64 {
    let mut sums = Doubles::ZERO;
    for x in of {
        for k in 0..WIDTH {
            sums.0[k] += x.0[k];
        }
    }
    for half in [8, 4, 2, 1] {
        for k in 0..half {
            sums.0[k] += sums.0[k + half];
        }
    }
    sums.0[0]
}

#[inline(always)]
fn scale(rows: &mut [Doubles], by: f64) {
    for x in rows {
        for k in 0..WIDTH {
            x.0[k] *= by;
        }
    }
}

/// out = x / y, or 0 if y is 0.
#[inline(always)]
pub(super) fn divide(x: &[Doubles], y: &[Doubles], out: &mut [Doubles]) {
    for ((x, y), out) in x.iter().zip(y).zip(out) {
        // Separate loops for loads, divisions and stores: otherwise the compiler emits a branch per number.
        let (x, mut y) = (x.0, y.0);
        for y in &mut y {
            *y = if *y > 0.0 { *y } else { f64::INFINITY };
        }
        let mut ratios = [0.0; WIDTH];
        for k in 0..WIDTH {
            ratios[k] = x[k] / y[k];
        }
        out.0 = ratios;
    }
}

/// Range of ratios that `log_ratio` accepts.
const RATIO_RANGE: (f64, f64) = (1e-300, 1e300);

/// (sum p log(x / y), sum p |log(x / y)|) over the places with p > 0, where x and y must be positive. Infinite if a
/// ratio is out of range.
#[inline(always)]
fn log_ratio(p: &[Doubles], x: &[Doubles], y: &[Doubles]) -> (f64, f64) {
    let (mut sum, mut magnitude) = ([Doubles::ZERO], [Doubles::ZERO]);
    for ((p, x), y) in p.iter().zip(x).zip(y) {
        let (p, mut ratios, mut y) = (p.0, x.0, y.0);
        for k in 0..WIDTH {
            ratios[k] = if p[k] > 0.0 { ratios[k] } else { 1.0 };
            y[k] = if p[k] > 0.0 { y[k] } else { 1.0 };
        }
        for k in 0..WIDTH {
            ratios[k] /= y[k];
        }
        for k in 0..WIDTH {
            let log = p[k] * ln(ratios[k]);
            let term = if (ratios[k] > RATIO_RANGE.0) & (ratios[k] < RATIO_RANGE.1) { log } else { f64::INFINITY };
            sum[0].0[k] += term;
            magnitude[0].0[k] += term.abs();
        }
    }
    (total(&sum), total(&magnitude))
}

/// -log of a product of numbers 1 - q, by a series for small q and one logarithm for many of the others.
struct LogProduct {
    sum: f64,
    product: f64,
}

impl LogProduct {
    /// Multiply by `right` = 1 - q, with `wrong` = q.
    #[inline(always)]
    fn multiply(&mut self, right: f64, wrong: f64) {
        if wrong < 0.01 {
            let q = wrong;
            self.sum += q * (1.0 + q * (0.5 + q * (1.0 / 3.0 + q * (0.25 + q * (0.2 + q * (1.0 / 6.0 + q / 7.0))))));
            return;
        }
        self.product *= match wrong < 0.5 {
            true => 1.0 - wrong,
            false if right > MIN_SHARE => right,
            false => 0.0,
        };
        if self.product < LOG_THRESHOLD {
            self.sum -= self.product.ln();
            self.product = 1.0;
        }
    }
}

/// `S` only selects the instructions that the compiler may use.
#[inline(always)]
fn gold_loss_kernel<S: Find>(_: S, precise: &mut Scaled64, factors: &Factors, gold: &[u16]) -> f64 {
    let width = factors.width;
    let mut right = LogProduct { sum: 0.0, product: 1.0 };
    for (t, &y) in gold.iter().enumerate() {
        let (gamma, step) = (&precise.gamma[t * width..(t + 1) * width], &mut precise.v[..width]);
        step.copy_from_slice(gamma);
        if t > 0 {
            let row = &factors.rows[gold[t - 1] as usize * width..];
            for (x, m) in step.iter_mut().zip(row) {
                for k in 0..WIDTH {
                    x.0[k] *= m.0[k];
                }
            }
        }
        let here = std::mem::take(&mut step[y as usize / WIDTH].0[y as usize % WIDTH]);
        let wrong = total(step);
        let share = 1.0 / (wrong + here);
        right.multiply(here * share, wrong * share);
    }
    right.sum - right.product.ln()
}

impl Scaled64 {
    /// Grow the buffers to n tokens.
    pub fn reserve(&mut self, n: usize, labels: usize) {
        let width = labels.div_ceil(WIDTH);
        let grow = |v: &mut Vec<Doubles>, n: usize| v.resize(v.len().max(n), Doubles::ZERO);
        for v in [&mut self.node, &mut self.gamma, &mut self.beta, &mut self.m] {
            grow(v, n * width);
        }
        for v in [&mut self.v, &mut self.row, &mut self.u, &mut self.back, &mut self.target] {
            grow(v, width);
        }
    }

    /// Set the node scores from the first `labels` numbers of rows [n, stride].
    pub fn set_nodes(&mut self, node: &[f64], stride: usize, labels: usize) {
        let width = labels.div_ceil(WIDTH);
        self.reserve(node.len() / stride, labels);
        for (row, to) in node.chunks_exact(stride).zip(self.node.chunks_exact_mut(width)) {
            for (part, to) in row[..labels].chunks(WIDTH).zip(to) {
                to.0 = [f64::NEG_INFINITY; WIDTH];
                to.0[..part.len()].copy_from_slice(part);
            }
        }
    }

    /// Subtract the gold labels from m. The gold entry becomes minus the sum of the others, since m - 1 would cancel.
    pub fn subtract(&mut self, gold: &[u16], width: usize) {
        for (row, &y) in self.m.chunks_exact_mut(width).zip(gold) {
            row[y as usize / WIDTH].0[y as usize % WIDTH] = 0.0;
            row[y as usize / WIDTH].0[y as usize % WIDTH] = -total(row);
        }
    }

    #[inline(always)]
    fn backward<S: Find>(&mut self, simd: S, factors: &Factors, n: usize) -> Option<LogZ> {
        let width = factors.width;
        let edges = (n - 1) as f64 * factors.max;
        let (mut value, mut magnitude) = (edges, edges.abs());
        for t in (0..n).rev() {
            let (here, after) = (t * width..(t + 1) * width, (t + 1) * width);
            let beta = &mut self.beta[here.clone()];
            match t + 1 < n {
                true => product(simd, &factors.columns, factors.labels, width, &self.gamma[after..after + width], beta),
                false => beta.fill(Doubles([1.0; WIDTH])),
            }
            let mut top = [f64::NEG_INFINITY; WIDTH];
            for row in &self.node[here.clone()] {
                for k in 0..WIDTH {
                    top[k] = if row.0[k] > top[k] { row.0[k] } else { top[k] };
                }
            }
            let top = top.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let mut low = [1.0; WIDTH]; // of the reachable states
            for ((row, beta), gamma) in self.node[here.clone()].iter().zip(&*beta).zip(&mut self.gamma[here.clone()]) {
                for k in 0..WIDTH {
                    let (s, b) = (row.0[k], beta.0[k]);
                    let g = exp_neg(s - top) * b;
                    let reached = s > f64::NEG_INFINITY && b > 0.0 && (g < low[k] || g.is_nan());
                    low[k] = if reached { g } else { low[k] };
                    gamma.0[k] = g;
                }
            }
            let low = low.iter().copied().fold(1.0, f64::min);
            let sum = total(&self.gamma[here.clone()]);
            if !(top.is_finite() && sum.is_finite() && low > factors.least) {
                return None;
            }
            scale(&mut self.gamma[here], 1.0 / sum);
            let log = sum.ln();
            value += top + log;
            magnitude += top.abs() + log.abs();
        }
        value.is_finite().then_some(LogZ { value, magnitude })
    }

    /// Write the requested marginals at t, restricted to reachable states and normalized, to `target`. If none are
    /// left, use the marginals of the scores.
    #[inline(always)]
    fn set_target(&mut self, mu: &[f32], labels: usize, t: usize) {
        let width = labels.div_ceil(WIDTH);
        let gamma = &self.gamma[t * width..(t + 1) * width];
        for (i, (part, target)) in mu[t * labels..(t + 1) * labels].chunks(WIDTH).zip(&mut self.target).enumerate() {
            let mut row = [0.0f32; WIDTH];
            row[..part.len()].copy_from_slice(part);
            for k in 0..WIDTH {
                let is_reachable = row[k] > 0.0 && gamma[i].0[k] > 0.0;
                target.0[k] = if is_reachable { f64::from(row[k]) } else { 0.0 };
            }
        }
        let sum = total(&self.target);
        match sum > 0.0 {
            true => scale(&mut self.target, 1.0 / sum),
            false => self.target.copy_from_slice(gamma),
        }
    }

    /// Compute u, u M and the marginals at t of the chain given by `v` and `row` = M v. Return the total difference
    /// from the requested marginals.
    #[inline(always)]
    fn step<S: Find>(&mut self, simd: S, factors: &Factors, t: usize) -> f64 {
        let width = factors.width;
        let (before, here) = self.m.split_at_mut(t * width);
        divide(&before[(t - 1) * width..], &self.row, &mut self.u);
        product(simd, &factors.rows, factors.labels, width, &self.u, &mut self.back);
        let mut error = [Doubles::ZERO];
        for (((m, v), back), target) in here.iter_mut().zip(&self.v).zip(&self.back).zip(&self.target) {
            for k in 0..WIDTH {
                m.0[k] = v.0[k] * back.0[k];
                error[0].0[k] += (m.0[k] - target.0[k]).abs();
            }
        }
        total(&error)
    }

    /// Whether `row` > 0 for every state with probability before t.
    #[inline(always)]
    fn can_continue(&self, t: usize, width: usize) -> bool {
        let mut blocked = 0u64;
        for (m, row) in self.m[(t - 1) * width..t * width].iter().zip(&self.row) {
            for k in 0..WIDTH {
                blocked += u64::from(m.0[k] > 0.0 && (row.0[k] <= 0.0 || row.0[k].is_nan()));
            }
        }
        blocked == 0
    }

    #[inline(always)]
    fn fit_marginals<S: Find>(
        &mut self,
        simd: S,
        factors: &Factors,
        mu: &[f32],
        weight: f64,
        pairs: &mut [Doubles],
    ) -> Divergence {
        let (l, width) = (factors.labels, factors.width);
        let n = mu.len() / l;
        self.set_target(mu, l, 0);
        self.m[..width].copy_from_slice(&self.target);
        let (mut value, mut magnitude) = log_ratio(&self.m[..width], &self.target, &self.gamma[..width]);
        for t in 1..n {
            let (here, before) = (t * width..(t + 1) * width, (t - 1) * width..t * width);
            self.set_target(mu, l, t);
            let mut error = self.step_by_scores(simd, factors, t);
            let mut rounds = 0;
            while error > MARGINAL_TOLERANCE && rounds < MAX_ROUNDS {
                divide(&self.target, &self.back, &mut self.v);
                product(simd, &factors.columns, l, width, &self.v, &mut self.row);
                rounds += 1;
                error = match self.can_continue(t, width) {
                    true => self.step(simd, factors, t),
                    false => f64::NAN,
                };
            }
            if !error.is_finite() {
                self.step_by_scores(simd, factors, t);
                rounds = 0;
            }
            self.normalize(width, t);
            if rounds > 0 {
                let forward_ratio = log_ratio(&self.m[here.clone()], &self.v, &self.gamma[here]);
                let backward_ratio = log_ratio(&self.m[before.clone()], &self.row, &self.beta[before]);
                value += forward_ratio.0 - backward_ratio.0;
                magnitude += forward_ratio.1 + backward_ratio.1;
            }
            add_outer(simd, factors, weight, &self.u, &self.v, pairs);
        }
        Divergence { value, magnitude }
    }

    #[inline(always)]
    fn marginals<S: Find>(&mut self, simd: S, factors: &Factors, n: usize, weight: f64, pairs: &mut [Doubles]) {
        let width = factors.width;
        if n == 0 {
            return;
        }
        self.m[..width].copy_from_slice(&self.gamma[..width]);
        for t in 1..n {
            self.step_by_scores(simd, factors, t);
            add_outer(simd, factors, weight, &self.u, &self.v, pairs);
        }
    }

    /// Step to t by the conditional distribution of the scores. The marginals are normalized to sum to 1.
    #[inline(always)]
    fn step_by_scores<S: Find>(&mut self, simd: S, factors: &Factors, t: usize) -> f64 {
        let width = factors.width;
        self.v.copy_from_slice(&self.gamma[t * width..(t + 1) * width]);
        self.row.copy_from_slice(&self.beta[(t - 1) * width..t * width]);
        let error = self.step(simd, factors, t);
        self.normalize(width, t);
        error
    }

    #[inline(always)]
    fn normalize(&mut self, width: usize, t: usize) {
        let m = &mut self.m[t * width..(t + 1) * width];
        scale(m, 1.0 / total(m));
    }
}
