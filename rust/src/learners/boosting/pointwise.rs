//! Gold marginals of one sentence and the derivatives of sum_t 1 / p_t(gold), in double precision: the recursions of
//! `chain::pointwise`, which see.
//!
//! With omega_t = 1 / p_t(gold) the factor 1 - 1 / p_t(gold) at the gold label is minus the probability of the others over p_t(gold):
//! everything here is as small as what is left to learn, and has all its digits.

use crate::chain::lattice::Scores;
use crate::learners::boosting::chain::{self, product, sum, ChainWork, EdgeFactors};
use crate::learners::boosting::loss::Sentence;
use crate::machine::simd::dispatch::dispatch;
use crate::machine::system::testing::{self, Taken, Way};
use crate::machine::simd::Simd;

/// A gold marginal under this leaves the sentence to log space.
const LEAST: f64 = 1e-200;

/// sum_t 1 / p_t and sum_t (1 / p_t - 1), both over e^top.
#[derive(Clone, Copy, Debug)]
pub struct Points {
    pub top: f64,
    pub all: f64,
    pub wrong: f64,
}

const FAILED: Points = Points { top: f64::NAN, all: 0.0, wrong: 0.0 };

/// Further scratch of one thread: each [T, P].
#[derive(Default)]
pub struct PointWork {
    gamma: Vec<f64>,
    u: Vec<f64>,
    seed: Vec<f64>,  // of log space
    moved: Vec<f64>, // [P]
    v: Vec<f64>,     // [P] now, and the one after
    after: Vec<f64>,
}

/// Of marginals `p` [T, P]; no number where one is too small.
fn points(p: &[f64], gold: &[u16], width: usize) -> Points {
    let mut out = Points { top: 0.0, all: 0.0, wrong: 0.0 };
    for (p, &y) in p.chunks_exact(width).zip(gold) {
        let right = p[y as usize];
        if right.is_nan() || right < LEAST {
            return FAILED;
        }
        let wrong: f64 = p[..y as usize].iter().sum::<f64>() + p[y as usize + 1..].iter().sum::<f64>();
        out.all += 1.0 / right;
        out.wrong += wrong / right;
    }
    out
}

/// The loss of a sentence.
pub fn value(x: &Sentence<'_>, work: &mut ChainWork, p: &mut [f64]) -> Points {
    let p = &mut p[..x.psi.len()];
    chain::marginals(x.node, x.psi, x.gold, x.edges, work, p, &mut []);
    let found = points(p, x.gold, x.edges.padded);
    if found.top.is_nan() {
        return in_log_space(x, work, p, &mut []);
    }
    found
}

/// The loss of a sentence, and its derivatives over e^top: by node scores in `p`, by edge scores, summed over positions, in `pairs`
/// where that is not empty.
pub fn residuals(x: &Sentence<'_>, work: &mut ChainWork, p: &mut [f64], pairs: &mut [f64]) -> Points {
    if !testing::is_forced(Way::Log) {
        let found = scaled(x.psi, x.gold, x.edges, work, p, pairs);
        if found.top.is_finite() {
            return found;
        }
    }
    in_log_space(x, work, p, pairs)
}

dispatch!(
    /// From psi [T, P]; no number where a scale or a gold marginal underflowed.
    fn scaled(psi: &[f64], gold: &[u16], edges: &EdgeFactors, work: &mut ChainWork, p: &mut [f64], pairs: &mut [f64]) -> Points = kernel
);

/// The term of a token's own loss in u or v: omega x at the wrong labels, -omega x wrong / right at the gold one.
#[inline(always)]
fn seed(x: &[f64], gold: usize, right: f64, wrong: f64, out: &mut [f64]) {
    let omega = 1.0 / right;
    for (out, x) in out.iter_mut().zip(x) {
        *out = omega * x;
    }
    out[gold] *= -wrong * omega;
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
) -> Points {
    let (l, width, n) = (edges.labels, edges.padded, gold.len());
    let row = |t: usize| t * width..(t + 1) * width;
    pairs.fill(0.0);
    if !chain::alphas(psi, edges, work, n) {
        return FAILED;
    }
    let ChainWork { alpha, inverse, beta, points: more, .. } = work;
    for v in [&mut more.gamma, &mut more.u] {
        v.resize(v.len().max(n * width), 0.0);
    }
    for v in [&mut more.moved, &mut more.v, &mut more.after] {
        v.resize(width, 0.0);
    }
    beta.fill(0.0);
    beta[..l].fill(1.0);
    for t in (0..n).rev() {
        for ((p, a), b) in p[row(t)].iter_mut().zip(&alpha[row(t)]).zip(beta.iter()) {
            *p = a * b;
        }
        for ((g, x), b) in more.gamma[row(t)].iter_mut().zip(&psi[row(t)]).zip(beta.iter()) {
            *g = x * b * inverse[t];
        }
        if t > 0 {
            product(&edges.transposed, width, &more.gamma[row(t)][..l], beta);
        }
    }
    let out = points(p, gold, width);
    if out.top.is_nan() {
        return out;
    }
    let mut shares = std::mem::take(&mut more.seed);
    shares.clear();
    for (t, &y) in gold.iter().enumerate() {
        let y = y as usize;
        let right = std::mem::take(&mut p[row(t)][y]);
        let wrong = sum(&p[row(t)]);
        shares.extend([right, wrong]);
        seed(&alpha[row(t)], y, right, wrong, &mut more.u[row(t)]);
        // The token's own part: omega (p - [y = gold]).
        p[row(t)].iter_mut().for_each(|p| *p /= right);
        p[row(t)][y] = -wrong / right;
        if t > 0 {
            let (before, here) = more.u.split_at_mut(t * width);
            product(&edges.m, width, &before[(t - 1) * width..][..l], &mut more.moved);
            for (j, &moved) in more.moved.iter().enumerate() {
                p[t * width + j] += more.gamma[t * width + j] * moved;
                here[j] += psi[t * width + j] * inverse[t] * moved;
            }
        }
    }
    for t in (0..n).rev() {
        let y = gold[t] as usize;
        seed(&more.gamma[row(t)], y, shares[2 * t], shares[2 * t + 1], &mut more.v);
        if t + 1 < n {
            product(&edges.transposed, width, &more.after[..l], &mut more.moved);
            for (j, &moved) in more.moved.iter().enumerate() {
                p[t * width + j] += alpha[t * width + j] * moved;
                more.v[j] += psi[t * width + j] * inverse[t] * moved;
            }
        }
        if t > 0 && !pairs.is_empty() {
            let before = (t - 1) * width;
            for (k, pairs) in pairs.chunks_exact_mut(width).enumerate() {
                let (u, a) = (more.u[before + k], alpha[before + k]);
                for ((x, g), v) in pairs.iter_mut().zip(&more.gamma[row(t)]).zip(&more.v) {
                    *x += u * g + a * v;
                }
            }
        }
        std::mem::swap(&mut more.v, &mut more.after);
    }
    for (x, m) in pairs.iter_mut().zip(&edges.m) {
        *x *= m;
    }
    more.seed = shares;
    out
}

/// The same from log sums: with U and V the sums over the tokens before and behind,
///
/// ```text
/// seed_t(y) = (p_t(y) - [y = gold]) / p_t(gold),   U_t(b) = seed_t(b) + sum_a U_{t-1}(a) P(b | a),   V_t(a) likewise from behind
/// ```
///
/// node residual U + V - seed, pair residual U_{t-1}(a) P(b | a) + V_t(b) P(a | b).
fn in_log_space(x: &Sentence<'_>, work: &mut ChainWork, p: &mut [f64], pairs: &mut [f64]) -> Points {
    testing::count(Taken::Log, 1);
    let (l, width, n) = (x.edges.labels, x.edges.padded, x.gold.len());
    pairs.fill(0.0);
    if n == 0 {
        return Points { top: 0.0, all: 0.0, wrong: 0.0 };
    }
    work.node.clear();
    for row in x.node.chunks_exact(width) {
        work.node.extend_from_slice(&row[..l]);
    }
    let scores = Scores { labels: l, node: &work.node, edge: &x.edges.score };
    let trellis = &mut work.trellis;
    trellis.forward(&scores);
    trellis.backward(&scores);
    let right: Vec<f64> = x.gold.iter().enumerate().map(|(t, &y)| trellis.log_marginal(t * l + y as usize)).collect();
    let top = right.iter().fold(0.0f64, |top, right| top.max(-right));
    let mut out = Points { top, all: 0.0, wrong: 0.0 };
    let mut seed = vec![0.0; n * l];
    for (t, &gold) in x.gold.iter().enumerate() {
        let row = &mut seed[t * l..(t + 1) * l];
        for (y, seed) in row.iter_mut().enumerate().filter(|(y, _)| *y != gold as usize) {
            *seed = (trellis.log_marginal(t * l + y) - right[t] - top).exp();
        }
        let wrong: f64 = row.iter().sum();
        row[gold as usize] = -wrong;
        out.all += (-right[t] - top).exp();
        out.wrong += wrong;
    }
    // P(b | a) and P(a | b) from the pair marginal's logarithm.
    let step = |t: usize, a: usize, b: usize| {
        let pair = trellis.log_pair_marginal(&scores, t, a, b);
        let (from, to) = (trellis.log_marginal((t - 1) * l + a), trellis.log_marginal(t * l + b));
        let share = |whole: f64| if whole > f64::NEG_INFINITY { (pair - whole).exp() } else { 0.0 };
        (share(from), share(to))
    };
    let (mut u, mut v) = (seed.clone(), seed.clone());
    for t in 1..n {
        for (a, b) in (0..l * l).map(|at| (at / l, at % l)) {
            u[t * l + b] += u[(t - 1) * l + a] * step(t, a, b).0;
        }
    }
    for t in (1..n).rev() {
        for (a, b) in (0..l * l).map(|at| (at / l, at % l)) {
            let (forward, backward) = step(t, a, b);
            v[(t - 1) * l + a] += v[t * l + b] * backward;
            if !pairs.is_empty() {
                pairs[a * width + b] += u[(t - 1) * l + a] * forward + v[t * l + b] * backward;
            }
        }
    }
    for (t, p) in p.chunks_exact_mut(width).enumerate().take(n) {
        p.fill(0.0);
        for (y, p) in p.iter_mut().enumerate().take(l) {
            *p = u[t * l + y] + v[t * l + y] - seed[t * l + y];
        }
    }
    out
}
