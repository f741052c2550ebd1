//! Forward-backward of one sentence in double precision: scaled probabilities as in `chain::lanes`, rows of labels padded
//! to `BLOCK`, products and sums in a fixed order so that every machine gets the same bits.

use crate::chain::lattice::Scores;
use crate::chain::sums::log64::Trellis;
use crate::learners::boosting::pointwise::PointWork;
use crate::machine::simd::dispatch::dispatch;
use crate::machine::system::testing::{self, Taken, Way};
use crate::machine::simd::Simd;

/// Labels are padded to a multiple of this.
pub const BLOCK: usize = 4;
/// A scale under this leaves the sentence to log space.
const TINY: f64 = 1e-250;
/// A product of probabilities under this takes its logarithm.
const SAFE: f64 = 1e-50;

/// Edge scores as the recursions need them, rows padded to P.
#[derive(Clone, Debug, Default)]
pub struct EdgeFactors {
    pub labels: usize,
    pub padded: usize,
    pub score: Vec<f64>,      // [L, L]
    pub m: Vec<f64>,          // [L, P] exp(A - max), 0 in the padding
    pub transposed: Vec<f64>, // [L, P]
    pub max: f64,
}

impl EdgeFactors {
    pub fn new(labels: usize, score: Vec<f64>) -> EdgeFactors {
        let padded = labels.next_multiple_of(BLOCK);
        let mut out = EdgeFactors { labels, padded, score, ..EdgeFactors::default() };
        out.update();
        out
    }

    /// After a change of `score`.
    pub fn update(&mut self) {
        let (l, p) = (self.labels, self.padded);
        self.max = self.score.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        self.m.resize(l * p, 0.0);
        self.transposed.resize(l * p, 0.0);
        for from in 0..l {
            for to in 0..l {
                let x = (self.score[from * l + to] - self.max).exp();
                self.m[from * p + to] = x;
                self.transposed[to * p + from] = x;
            }
        }
    }
}

/// Scratch of one thread.
#[derive(Default)]
pub struct ChainWork {
    pub(super) alpha: Vec<f64>,   // [T, P]
    pub(super) inverse: Vec<f64>, // [T] 1 / c_t
    pub(super) beta: Vec<f64>,    // [P]
    gamma: Vec<f64>,              // [P]
    step: Vec<f64>,               // [P] M[g, y] gamma_t(y)
    pub(super) node: Vec<f64>,    // [T, L] for log space
    pub(super) trellis: Trellis,
    pub(super) points: PointWork,
}

/// sum_k from(k) m[k, ..]. Each label's sum runs over k in order, whatever the others do: several blocks go side by side, so
/// that additions need not wait for one another.
#[inline(always)]
pub(super) fn product(m: &[f64], p: usize, from: &[f64], out: &mut [f64]) {
    let mut y = 0;
    while y + 8 * BLOCK <= p {
        columns::<{ 8 * BLOCK }>(m, p, from, &mut out[y..], y);
        y += 8 * BLOCK;
    }
    while y + 4 * BLOCK <= p {
        columns::<{ 4 * BLOCK }>(m, p, from, &mut out[y..], y);
        y += 4 * BLOCK;
    }
    while y + 2 * BLOCK <= p {
        columns::<{ 2 * BLOCK }>(m, p, from, &mut out[y..], y);
        y += 2 * BLOCK;
    }
    if y < p {
        columns::<BLOCK>(m, p, from, &mut out[y..], y);
    }
}

/// The columns of the product from `y` on, N of them.
#[inline(always)]
fn columns<const N: usize>(m: &[f64], p: usize, from: &[f64], out: &mut [f64], y: usize) {
    let mut sum = [0.0; N];
    for (row, &a) in m.chunks_exact(p).zip(from) {
        let row = &row[y..y + N];
        for j in 0..N {
            sum[j] += a * row[j];
        }
    }
    out[..N].copy_from_slice(&sum);
}

/// The sum of a padded row whose padding is 0: every fourth number apart, then those four.
#[inline(always)]
pub fn sum(row: &[f64]) -> f64 {
    let mut sum = [0.0; BLOCK];
    for block in row.chunks_exact(BLOCK) {
        for j in 0..BLOCK {
            sum[j] += block[j];
        }
    }
    (sum[0] + sum[1]) + (sum[2] + sum[3])
}

dispatch!(
    /// psi [T, P] -> marginals `p` [T, P] and, where `pairs` is not empty, sum_t p_t(y', y) in it ([L, P]). Answers
    /// -log P(gold), or NaN where a scale underflowed.
    ///
    /// log Z - H(gold) would be no better than the rounding of two large numbers. Instead P(gold) is the product of
    /// 1 - q_t, q_t = P(y_t is wrong | y_{t-1} is right) = sum over wrong y of M[g, y] gamma_t(y) / beta_{t-1}(g): a loss
    /// of 1e-20 has all its digits.
    fn scaled(psi: &[f64], gold: &[u16], edges: &EdgeFactors, work: &mut ChainWork, p: &mut [f64], pairs: &mut [f64]) -> f64 = kernel
);

/// -log of a product of numbers 1 - q: a series for small q, one logarithm for many of the others.
struct Product {
    sum: f64,
    product: f64,
}

impl Product {
    /// `right` = 1 - q, the share of the right label; `wrong` = q.
    #[inline(always)]
    fn times(&mut self, right: f64, wrong: f64) {
        if wrong < 0.01 {
            let q = wrong;
            self.sum += q * (1.0 + q * (0.5 + q * (1.0 / 3.0 + q * (0.25 + q * (0.2 + q * (1.0 / 6.0 + q / 7.0))))));
            return;
        }
        self.product *= if wrong < 0.5 { 1.0 - wrong } else { right };
        if self.product < SAFE {
            self.sum -= self.product.ln();
            self.product = 1.0;
        }
    }
}

dispatch!(
    /// -log P(gold) by the forward pass alone, or NaN where a scale underflowed: a third of the work, and no more digits than
    /// log Z - H(gold) has.
    fn forward(psi: &[f64], gold: &[u16], edges: &EdgeFactors, work: &mut ChainWork) -> f64 = forward_kernel
);

/// `S` only says which instructions the compiler may use.
///
/// # Safety
/// The machine has the instructions of `S`.
#[inline(always)]
unsafe fn forward_kernel<S: Simd>(psi: &[f64], gold: &[u16], edges: &EdgeFactors, work: &mut ChainWork) -> f64 {
    let (l, width) = (edges.labels, edges.padded);
    work.beta.resize(width, 0.0);
    work.gamma.resize(width, 0.0);
    let mut right = Product { sum: 0.0, product: 1.0 };
    for (t, psi) in psi.chunks_exact(width).enumerate() {
        let y = gold[t] as usize;
        let mut share = psi[y];
        if t == 0 {
            work.gamma.copy_from_slice(psi);
        } else {
            share *= edges.m[gold[t - 1] as usize * width + y];
            product(&edges.m, width, &work.beta[..l], &mut work.gamma);
            for (a, x) in work.gamma.iter_mut().zip(psi) {
                *a *= x;
            }
        }
        let c = sum(&work.gamma);
        if !(c >= TINY && c.is_finite()) {
            return f64::NAN;
        }
        let inverse = 1.0 / c;
        for (b, a) in work.beta.iter_mut().zip(&work.gamma) {
            *b = a * inverse;
        }
        right.product *= share * inverse;
        if right.product < SAFE {
            right.sum -= right.product.ln();
            right.product = 1.0;
        }
    }
    right.sum - right.product.ln()
}

/// -log P(gold) from node scores and their exponentials, to about 1e-15 times the scores: enough to compare losses that are
/// not small.
pub fn loss(
    node: &[f64],
    psi: &[f64],
    gold: &[u16],
    edges: &EdgeFactors,
    work: &mut ChainWork,
    p: &mut Vec<f64>,
) -> f64 {
    if !testing::is_forced(Way::Log) {
        let loss = forward(psi, gold, edges, work);
        if loss.is_finite() {
            return loss.max(0.0);
        }
    }
    p.resize(p.len().max(psi.len()), 0.0);
    marginals(node, psi, gold, edges, work, p, &mut [])
}

/// The forward pass: shares alpha of `n` tokens and their scales; false where one underflowed.
#[inline(always)]
pub(super) fn alphas(psi: &[f64], edges: &EdgeFactors, work: &mut ChainWork, n: usize) -> bool {
    let (l, width) = (edges.labels, edges.padded);
    work.alpha.resize(work.alpha.len().max(n * width), 0.0);
    work.inverse.resize(work.inverse.len().max(n), 0.0);
    work.beta.resize(width, 0.0);
    for t in 0..n {
        let (before, here) = work.alpha.split_at_mut(t * width);
        let here = &mut here[..width];
        let psi = &psi[t * width..(t + 1) * width];
        if t == 0 {
            here.copy_from_slice(psi);
        } else {
            product(&edges.m, width, &before[(t - 1) * width..(t - 1) * width + l], here);
            for (a, x) in here.iter_mut().zip(psi) {
                *a *= x;
            }
        }
        let c = sum(here);
        if !(c >= TINY && c.is_finite()) {
            return false;
        }
        let inverse = 1.0 / c;
        work.inverse[t] = inverse;
        for a in here.iter_mut() {
            *a *= inverse;
        }
    }
    true
}

/// `S` only says which instructions the compiler may use.
///
/// # Safety
/// The machine has the instructions of `S`.
#[inline(always)]
unsafe fn kernel<S: Simd>(
    psi: &[f64],
    gold: &[u16],
    edges: &EdgeFactors,
    work: &mut ChainWork,
    p: &mut [f64],
    pairs: &mut [f64],
) -> f64 {
    let (l, width) = (edges.labels, edges.padded);
    let n = psi.len() / width;
    if !alphas(psi, edges, work, n) {
        return f64::NAN;
    }
    work.gamma.resize(width, 0.0);
    work.step.resize(width, 0.0);
    pairs.fill(0.0);
    work.beta.fill(0.0);
    work.beta[..l].fill(1.0);
    let mut right = Product { sum: 0.0, product: 1.0 };
    for t in (0..n).rev() {
        let alpha = &work.alpha[t * width..(t + 1) * width];
        for ((p, a), b) in p[t * width..(t + 1) * width].iter_mut().zip(alpha).zip(&work.beta) {
            *p = a * b;
        }
        let y = gold[t] as usize;
        if t == 0 {
            let p = &mut p[..width];
            let gold = std::mem::take(&mut p[y]);
            let wrong = sum(p);
            p[y] = gold;
            right.times(gold, wrong);
            break;
        }
        let inverse = work.inverse[t];
        for ((g, x), b) in work.gamma.iter_mut().zip(&psi[t * width..(t + 1) * width]).zip(&work.beta) {
            *g = x * b * inverse;
        }
        let before = gold[t - 1] as usize;
        for ((x, g), m) in work.step.iter_mut().zip(&work.gamma).zip(&edges.m[before * width..]) {
            *x = g * m;
        }
        let here = std::mem::take(&mut work.step[y]);
        let wrong = sum(&work.step);
        let share = 1.0 / (wrong + here);
        right.times(here * share, wrong * share);
        if !pairs.is_empty() {
            let alpha = &work.alpha[(t - 1) * width..t * width];
            for (row, &a) in pairs.chunks_exact_mut(width).zip(alpha) {
                for (x, g) in row.iter_mut().zip(&work.gamma) {
                    *x += a * g;
                }
            }
        }
        product(&edges.transposed, width, &work.gamma[..l], &mut work.beta);
    }
    for (x, m) in pairs.iter_mut().zip(&edges.m) {
        *x *= m;
    }
    right.sum - right.product.ln()
}

/// The same from node scores [T, P], their exponentials psi = exp(score - top) and the gold labels. Log space takes over
/// where a scale underflows.
pub fn marginals(
    node: &[f64],
    psi: &[f64],
    gold: &[u16],
    edges: &EdgeFactors,
    work: &mut ChainWork,
    p: &mut [f64],
    pairs: &mut [f64],
) -> f64 {
    let n = gold.len();
    if n == 0 {
        pairs.fill(0.0);
        return 0.0;
    }
    if !testing::is_forced(Way::Log) {
        let loss = scaled(psi, gold, edges, work, p, pairs);
        if loss.is_finite() {
            return loss;
        }
    }
    testing::count(Taken::Log, 1);
    let (l, width) = (edges.labels, edges.padded);
    work.node.clear();
    for row in node.chunks_exact(width) {
        work.node.extend_from_slice(&row[..l]);
    }
    let scores = Scores { labels: l, node: &work.node, edge: &edges.score };
    let log_z = work.trellis.forward(&scores);
    work.trellis.backward(&scores);
    pairs.fill(0.0);
    for t in 0..n {
        for y in 0..l {
            p[t * width + y] = work.trellis.node_marginal(t * l + y);
            for from in 0..if t > 0 && !pairs.is_empty() { l } else { 0 } {
                pairs[from * width + y] += work.trellis.pair_marginal(&scores, t, from, y);
            }
        }
        p[t * width + l..(t + 1) * width].fill(0.0);
    }
    (log_z - gold_score(node, gold, edges)).max(0.0)
}

/// H of the gold path from node scores [T, P].
fn gold_score(node: &[f64], gold: &[u16], edges: &EdgeFactors) -> f64 {
    let nodes: f64 = gold.iter().zip(node.chunks_exact(edges.padded)).map(|(&y, row)| row[y as usize]).sum();
    let steps = gold.windows(2).map(|y| edges.score[y[0] as usize * edges.labels + y[1] as usize]);
    nodes + steps.sum::<f64>()
}

/// psi of a row of scores [P]: exp(score - top), 0 in the padding; answers the top.
pub fn exponentiate(labels: usize, node: &[f64], psi: &mut [f64]) -> f64 {
    let top = node[..labels].iter().copied().fold(f64::NEG_INFINITY, f64::max);
    for (x, s) in psi[..labels].iter_mut().zip(node) {
        *x = (s - top).exp();
    }
    psi[labels..].fill(0.0);
    top
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scaled and log space agree, also where a path is all but impossible.
    #[test]
    fn log_space_takes_over() {
        let (l, width) = (3, 4);
        let mut node = vec![0.0; 3 * width];
        for (i, x) in node.iter_mut().enumerate() {
            *x = (i * 7 % 5) as f64 - 2.0;
        }
        let mut score = vec![0.0; l * l];
        score[1] = 2.0;
        score[5] = -1.0;
        for far in [0.0, 900.0] {
            node[0] = far; // label 0 first, label 2 next, and no way between them
            node[width + 2] = far;
            score[2] = -far;
            let edges = EdgeFactors::new(l, score.clone());
            let mut psi = vec![0.0; node.len()];
            for t in 0..3 {
                exponentiate(l, &node[t * width..][..width], &mut psi[t * width..][..width]);
            }
            let gold = [0, 2, 1];
            let (mut p, mut pairs, mut work) = (vec![0.0; node.len()], vec![0.0; l * width], ChainWork::default());
            let loss = marginals(&node, &psi, &gold, &edges, &mut work, &mut p, &mut pairs);
            let flat: Vec<f64> = node.chunks(width).flat_map(|r| r[..l].to_vec()).collect();
            let scores = Scores { labels: l, node: &flat, edge: &edges.score };
            let mut trellis = Trellis::default();
            assert!((trellis.forward(&scores) - gold_score(&node, &gold, &edges) - loss).abs() < 1e-9);
            trellis.backward(&scores);
            for at in 0..9 {
                assert!((trellis.node_marginal(at) - p[at / l * width + at % l]).abs() < 1e-9);
            }
            assert!((pairs.iter().sum::<f64>() - 2.0).abs() < 1e-9);
        }
    }
}
