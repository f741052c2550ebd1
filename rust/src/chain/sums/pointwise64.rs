//! Residuals of the pointwise losses of one sentence in double precision, from scaled sums or from log sums.
//!
//! With token weights omega_t and gold labels c_t, sum_t omega_t (E[S] - E[S | y_t = c_t]) is the sum of a part from
//! the tokens before a position, U, and a part from the tokens after it, V:
//!
//! ```text
//! seed_t(y) = omega_t (p_t(y) - [y = c_t])
//! U_t(b) = seed_t(b) + sum_a U_{t-1}(a) P(y_t = b | y_{t-1} = a)
//! V_t(a) = seed_t(a) + sum_b V_{t+1}(b) P(y_t = a | y_{t+1} = b)
//! node residual  U_t + V_t - seed_t,   pair residual  U_{t-1}(a) P(b | a) + V_t(b) P(a | b)
//! ```
//!
//! The seed of the gold label is minus the sum of the others. All terms are therefore as small as the remaining error
//! of the model, and keep all their digits.

use crate::chain::lattice::Scores;
use crate::chain::sums::log64::Trellis;
use crate::chain::sums::scaled64::{add_outer, divide, product, total, Factors, Scaled64};
use crate::machine::simd::dispatch::dispatch;
use crate::machine::simd::double::Doubles;
use crate::machine::simd::find::Find;
use crate::machine::simd::WIDTH;

/// Gold marginal below which the sentence needs log space.
const MIN_GOLD_MARGINAL: f64 = 1e-200;

/// Scratch of one thread: rows [T, width] of labels.
#[derive(Default)]
pub(crate) struct Pointwise {
    seed: Vec<Doubles>,
    u: Vec<Doubles>,
    v: Vec<Doubles>,
    /// Node residuals.
    pub nodes: Vec<Doubles>,
    rows: [Vec<Doubles>; 3], // [width] each
}

/// Distributions of neighbouring labels given each other.
trait Conditionals {
    /// to(b) += sum_a u(a) P(y_t = b | y_{t-1} = a).
    fn forward(&mut self, t: usize, u: &[Doubles], to: &mut [Doubles]);

    /// to(a) += sum_b v(b) P(y_{t-1} = a | y_t = b). Adds u(a) P(b | a) + v(b) P(a | b) to the pair residuals.
    fn backward(&mut self, t: usize, u: &[Doubles], v: &[Doubles], to: &mut [Doubles]);
}

/// Number of label y in a row.
#[inline(always)]
fn at(row: &[Doubles], y: usize) -> f64 {
    row[y / WIDTH].0[y % WIDTH]
}

#[inline(always)]
fn at_mut(row: &mut [Doubles], y: usize) -> &mut f64 {
    &mut row[y / WIDTH].0[y % WIDTH]
}

impl Pointwise {
    /// Append the seed of the next token, given its marginals.
    #[inline(always)]
    fn push_seed(&mut self, marginals: &[Doubles], gold: u16, omega: f64) {
        let begin = self.seed.len();
        self.seed.extend_from_slice(marginals);
        let row = &mut self.seed[begin..];
        *at_mut(row, gold as usize) = 0.0;
        for x in row.iter_mut() {
            for k in 0..WIDTH {
                x.0[k] *= omega;
            }
        }
        *at_mut(row, gold as usize) = -total(row);
    }

    /// Compute U, V and the residuals from the seeds.
    #[inline(always)]
    fn run(&mut self, width: usize, conditionals: &mut impl Conditionals) {
        let n = self.seed.len() / width;
        for sums in [&mut self.u, &mut self.v] {
            sums.clear();
            sums.extend_from_slice(&self.seed);
        }
        for t in 1..n {
            let (before, here) = self.u.split_at_mut(t * width);
            conditionals.forward(t, &before[(t - 1) * width..], &mut here[..width]);
        }
        for t in (1..n).rev() {
            let (before, here) = self.v.split_at_mut(t * width);
            let u = &self.u[(t - 1) * width..t * width];
            conditionals.backward(t, u, &here[..width], &mut before[(t - 1) * width..]);
        }
        self.nodes.clear();
        for ((u, v), seed) in self.u.iter().zip(&self.v).zip(&self.seed) {
            let mut sum = Doubles::ZERO;
            for k in 0..WIDTH {
                sum.0[k] = u.0[k] + v.0[k] - seed.0[k];
            }
            self.nodes.push(sum);
        }
    }
}

/// Conditionals from scaled sums: P(b | a) = M[a, b] gamma_t(b) / beta_{t-1}(a) and P(a | b) = p_{t-1}(a) P(b | a) /
/// p_t(b).
struct Scaled<'a, S> {
    precise: &'a Scaled64,
    factors: &'a Factors,
    pairs: &'a mut [Doubles],
    rows: &'a mut [Vec<Doubles>; 3],
    simd: S,
}

/// to += x y.
#[inline(always)]
fn add_products(x: &[Doubles], y: &[Doubles], to: &mut [Doubles]) {
    for ((to, x), y) in to.iter_mut().zip(x).zip(y) {
        for k in 0..WIDTH {
            to.0[k] += x.0[k] * y.0[k];
        }
    }
}

impl<S: Find> Conditionals for Scaled<'_, S> {
    #[inline(always)]
    fn forward(&mut self, t: usize, u: &[Doubles], to: &mut [Doubles]) {
        let width = self.factors.width;
        let [from, products, _] = &mut *self.rows;
        divide(u, &self.precise.beta[(t - 1) * width..t * width], from);
        product(self.simd, &self.factors.rows, self.factors.labels(), width, from, products);
        add_products(products, &self.precise.gamma[t * width..(t + 1) * width], to);
    }

    #[inline(always)]
    fn backward(&mut self, t: usize, u: &[Doubles], v: &[Doubles], to: &mut [Doubles]) {
        let (width, labels) = (self.factors.width, self.factors.labels());
        let (before, here) = ((t - 1) * width..t * width, t * width..(t + 1) * width);
        let (beta, gamma) = (&self.precise.beta[before.clone()], &self.precise.gamma[here.clone()]);
        let [from, products, share] = &mut *self.rows;
        divide(v, &self.precise.m[here], from);
        for (x, gamma) in from.iter_mut().zip(gamma) {
            for k in 0..WIDTH {
                x.0[k] *= gamma.0[k];
            }
        }
        divide(&self.precise.m[before], beta, share);
        product(self.simd, &self.factors.columns, labels, width, from, products);
        add_products(share, products, to);
        add_outer(self.simd, self.factors, 1.0, share, from, self.pairs);
        divide(u, beta, products);
        add_outer(self.simd, self.factors, 1.0, products, gamma, self.pairs);
    }
}

/// Return p_t(gold) and the probability of the other labels, after `backward` and `marginals`. Return `None` if a gold
/// marginal is so small that log space is needed.
pub(crate) fn gold_shares(precise: &Scaled64, width: usize, gold: &[u16]) -> Option<Vec<(f64, f64)>> {
    let share = |(p, &y): (&[Doubles], &u16)| {
        let right = at(p, y as usize);
        let wrong: f64 =
            p.iter().flat_map(|p| p.0).enumerate().map(|(k, p)| if k == y as usize { 0.0 } else { p }).sum();
        (right >= MIN_GOLD_MARGINAL).then_some((right, wrong))
    };
    precise.m.chunks_exact(width).zip(gold).map(share).collect()
}

dispatch!(
    /// Write node residuals to `out`, after `backward` and `marginals` of `precise`. Unless `pairs` [L, width] is
    /// empty, add to it. Multiplied by M, these are the residuals of pairs of labels.
    pub(crate) fn scaled(
        out: &mut Pointwise,
        precise: &Scaled64,
        factors: &Factors,
        gold: &[u16],
        omega: &[f64],
        pairs: &mut [Doubles],
    ) = scaled_kernel
);

#[inline(always)]
fn scaled_kernel<S: Find>(
    simd: S,
    out: &mut Pointwise,
    precise: &Scaled64,
    factors: &Factors,
    gold: &[u16],
    omega: &[f64],
    pairs: &mut [Doubles],
) {
    let width = factors.width;
    out.seed.clear();
    for ((p, &y), &omega) in precise.m.chunks_exact(width).zip(gold).zip(omega) {
        out.push_seed(p, y, omega);
    }
    let mut rows = std::mem::take(&mut out.rows);
    rows.iter_mut().for_each(|row| row.resize(width, Doubles::ZERO));
    out.run(width, &mut Scaled { precise, factors, pairs, rows: &mut rows, simd });
    out.rows = rows;
}

/// Conditionals from log sums.
struct Logs<'a, F> {
    trellis: &'a Trellis,
    scores: &'a Scores<'a>,
    pair: F,
}

impl<F> Logs<'_, F> {
    /// (a, b, P(b | a), P(a | b)) for all pairs [L, L].
    fn step(&self, t: usize) -> impl Iterator<Item = (usize, usize, f64, f64)> + '_ {
        let l = self.scores.labels;
        let share = |pair: f64, whole: f64| if whole > f64::NEG_INFINITY { (pair - whole).exp() } else { 0.0 };
        self.trellis.log_pairs(self.scores, t).into_iter().enumerate().map(move |(i, pair)| {
            let (a, b) = (i / l, i % l);
            let (from, to) = (self.trellis.log_marginal((t - 1) * l + a), self.trellis.log_marginal(t * l + b));
            (a, b, share(pair, from), share(pair, to))
        })
    }
}

impl<F: FnMut(usize, usize, usize, f64)> Conditionals for Logs<'_, F> {
    fn forward(&mut self, t: usize, u: &[Doubles], to: &mut [Doubles]) {
        for (a, b, forward, _) in self.step(t) {
            *at_mut(to, b) += at(u, a) * forward;
        }
    }

    fn backward(&mut self, t: usize, u: &[Doubles], v: &[Doubles], to: &mut [Doubles]) {
        let steps: Vec<_> = self.step(t).collect();
        for (a, b, forward, backward) in steps {
            *at_mut(to, a) += at(v, b) * backward;
            (self.pair)(t, a, b, at(u, a) * forward + at(v, b) * backward);
        }
    }
}

/// Write node residuals to `out`, after `forward` and `backward` of the trellis. Pair residuals are passed to `pair(t,
/// a, b, residual)`.
pub(crate) fn in_log_space(
    out: &mut Pointwise,
    trellis: &Trellis,
    scores: &Scores<'_>,
    gold: &[u16],
    omega: &[f64],
    pair: impl FnMut(usize, usize, usize, f64),
) {
    let (l, width) = (scores.labels, scores.labels.div_ceil(WIDTH));
    let mut row = vec![Doubles::ZERO; width];
    out.seed.clear();
    for (t, (&y, &omega)) in gold.iter().zip(omega).enumerate() {
        (0..l).for_each(|k| *at_mut(&mut row, k) = trellis.node_marginal(t * l + k));
        out.push_seed(&row, y, omega);
    }
    out.run(width, &mut Logs { trellis, scores, pair });
}
