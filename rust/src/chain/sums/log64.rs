//! Forward-backward for one sentence in double precision and log space, for any finite scores and for edges that change
//! between positions. The exact implementation behind the lattice functions and edge attributes, and for the sentences
//! flagged by the scaled recursions of `batch`.

use crate::chain::lattice::{exponentiate, log_sum_exp, Scores};
use crate::machine::system::testing::{self, CodePath};

/// Forward and backward log sums [T, L] of one sentence, each row less its largest number.
///
/// log sum_k e^{a_k + A[k, y]} = m + top + log sum_k e^{a_k - m} e^{A[k, y] - top} takes one exp per label, and one per
/// edge whenever the edges change. A sum so small that it may have lost terms below the range of f64 is computed again
/// term by term in log space, so any finite scores are safe.
///
/// Rows are kept near 0: the largest number is subtracted from node scores, edges and sums before they are added to
/// each other, and probabilities are normalized by the sum of their own row. Otherwise a score of 1e12 at one token
/// would leave no digits for the others, and probabilities would not sum to 1.
#[derive(Default)]
pub struct Trellis {
    labels: usize,
    alpha: Vec<f64>, // log sum over prefixes that end in y at t, including the node score of t, less `alpha_shift`
    beta: Vec<f64>,  // log sum over suffixes after y at t, less `beta_shift`
    pub log_z: f64,
    alpha_shift: Vec<f64>, // [T]
    beta_shift: Vec<f64>,  // [T]
    node_max: Vec<f64>,    // [T] largest node score
    row_max: Vec<f64>,     // [T] largest forward sum of t, subtracted after `node_max` and the largest edge
    norm: Vec<(f64, f64)>, // [T] log sum of alpha + beta: the largest, and the log of the sum of e^{x - largest}
    edge: Vec<f64>,        // edges that `factors` were computed from
    factors: Vec<f64>,     // [L, L] e^{A - top}
    top: f64,
    weights: Vec<f64>, // [L]
    sums: Vec<f64>,    // [L]
}

/// Largest value, or 0 if it is not finite.
fn largest(values: impl Iterator<Item = f64>) -> f64 {
    let max = values.fold(f64::NEG_INFINITY, f64::max);
    if max.is_finite() {
        max
    } else {
        0.0
    }
}

/// Sums below this may have lost terms.
pub(crate) const MIN_SUM: f64 = 1e-250;

/// Smallest sum that is accepted without recomputation.
pub(crate) fn min_sum() -> f64 {
    if testing::is_forced(CodePath::Slow) {
        f64::INFINITY
    } else {
        MIN_SUM
    }
}

/// Compute the factors e^{A - top} of edges and copy the edges to `kept_edge`.
fn prepare(edge: &[f64], kept_edge: &mut Vec<f64>, factors: &mut Vec<f64>, top: &mut f64) {
    kept_edge.clear();
    kept_edge.extend_from_slice(edge);
    *top = largest(edge.iter().copied());
    factors.clear();
    factors.extend(edge.iter().map(|a| (a - *top).exp()));
}

impl Trellis {
    /// Compute the factors of the edges of a step.
    fn prepare(&mut self, edge: &[f64]) {
        if self.edge != edge {
            prepare(edge, &mut self.edge, &mut self.factors, &mut self.top);
        }
    }

    pub fn forward(&mut self, scores: &Scores<'_>) -> f64 {
        let (l, n) = (scores.labels, scores.positions());
        self.labels = l;
        self.alpha.clear();
        self.alpha.extend_from_slice(scores.node);
        [&mut self.alpha_shift, &mut self.node_max, &mut self.row_max].into_iter().for_each(|v| v.clear());
        let (min_sum, mut alpha_shift) = (min_sum(), 0.0);
        for t in 0..n {
            let (before, here) = self.alpha.split_at_mut(t * l);
            let here = &mut here[..l];
            let node_max = largest(here.iter().copied());
            here.iter_mut().for_each(|x| *x -= node_max);
            alpha_shift += node_max;
            if t > 0 {
                let (edge, before) = (scores.edge(t), &before[(t - 1) * l..]);
                if self.edge != edge {
                    prepare(edge, &mut self.edge, &mut self.factors, &mut self.top);
                }
                let max = exponentiate(before.iter().copied(), &mut self.weights);
                self.sums.clear();
                self.sums.resize(l, 0.0);
                for (k, &x) in self.weights.iter().enumerate() {
                    for (sum, f) in self.sums.iter_mut().zip(&self.factors[k * l..(k + 1) * l]) {
                        *sum += x * f;
                    }
                }
                for y in 0..l {
                    here[y] += if self.sums[y] > min_sum {
                        max + self.sums[y].ln()
                    } else {
                        log_sum_exp((0..l).map(|k| before[k] + (edge[k * l + y] - self.top)))
                    };
                }
                alpha_shift += self.top;
            }
            let row_max = largest(here.iter().copied());
            here.iter_mut().for_each(|x| *x -= row_max);
            alpha_shift += row_max;
            self.alpha_shift.push(alpha_shift);
            self.node_max.push(node_max);
            self.row_max.push(row_max);
        }
        self.log_z = if n == 0 { 0.0 } else { alpha_shift + log_sum_exp(self.alpha[(n - 1) * l..].iter().copied()) };
        self.log_z
    }

    /// Compute the backward sums, after `forward` over the same scores.
    pub fn backward(&mut self, scores: &Scores<'_>) {
        let (l, n) = (scores.labels, scores.positions());
        self.beta.clear();
        self.beta.resize(n * l, 0.0);
        self.beta_shift.clear();
        self.beta_shift.resize(n, 0.0);
        let min_sum = min_sum();
        for t in (1..n).rev() {
            let (edge, node, node_max) = (scores.edge(t), &scores.node[t * l..(t + 1) * l], self.node_max[t]);
            self.prepare(edge);
            let (here, after) = self.beta.split_at_mut(t * l);
            let here = &mut here[(t - 1) * l..];
            let max = exponentiate(node.iter().zip(&after[..l]).map(|(s, b)| s - node_max + b), &mut self.weights);
            for k in 0..l {
                let factors = &self.factors[k * l..(k + 1) * l];
                let sum: f64 = self.weights.iter().zip(factors).map(|(x, f)| x * f).sum();
                here[k] = if sum > min_sum {
                    max + sum.ln()
                } else {
                    log_sum_exp((0..l).map(|y| edge[k * l + y] - self.top + (node[y] - node_max + after[y])))
                };
            }
            let row_max = largest(here.iter().copied());
            here.iter_mut().for_each(|x| *x -= row_max);
            self.beta_shift[t - 1] = self.beta_shift[t] + node_max + self.top + row_max;
        }
        self.norm.clear();
        for (alpha, beta) in self.alpha.chunks_exact(l).zip(self.beta.chunks_exact(l)) {
            let max = exponentiate(alpha.iter().zip(beta).map(|(a, b)| a + b), &mut self.sums);
            self.norm.push((max, self.sums.iter().sum::<f64>().ln()));
        }
    }

    /// Log sum over the prefixes that end in y at t, including the node score of t, with `at` = t L + y.
    pub fn alpha(&self, at: usize) -> f64 {
        self.alpha[at] + self.alpha_shift[at / self.labels]
    }

    /// Log sum over the suffixes after y at t, with `at` = t L + y.
    pub fn beta(&self, at: usize) -> f64 {
        self.beta[at] + self.beta_shift[at / self.labels]
    }

    /// log p_t(y), with `at` = t L + y.
    pub fn log_marginal(&self, at: usize) -> f64 {
        let (max, log_sum) = self.norm[at / self.labels];
        self.alpha[at] + self.beta[at] - max - log_sum
    }

    /// p_t(y), with `at` = t L + y.
    pub fn node_marginal(&self, at: usize) -> f64 {
        self.log_marginal(at).exp()
    }

    /// log p_t(y', y) of all pairs [L, L] of the step into t >= 1.
    pub fn log_pairs(&self, scores: &Scores<'_>, t: usize) -> Vec<f64> {
        let (l, edge, node_max) = (scores.labels, scores.edge(t), self.node_max[t]);
        let (max, log_sum) = self.norm[t];
        let offset = self.row_max[t] + max + log_sum;
        let (top, before) = (largest(edge.iter().copied()), &self.alpha[(t - 1) * l..t * l]);
        let here = |y: usize| scores.node[t * l + y] - node_max + self.beta[t * l + y];
        (0..l * l).map(|pair| before[pair / l] + (edge[pair] - top) + here(pair % l) - offset).collect()
    }

    /// out += factor p_t, all pairs [L, L] of the step into t >= 1.
    pub fn add_pairs(&mut self, scores: &Scores<'_>, t: usize, factor: f64, out: &mut [f64]) {
        let l = scores.labels;
        self.prepare(scores.edge(t));
        let (before, here, node_max) = (&self.alpha[(t - 1) * l..t * l], t * l..(t + 1) * l, self.node_max[t]);
        let first = exponentiate(before.iter().copied(), &mut self.weights);
        let nodes = scores.node[here.clone()].iter().zip(&self.beta[here]);
        let second = exponentiate(nodes.map(|(s, b)| s - node_max + b), &mut self.sums);
        let (max, log_sum) = self.norm[t];
        let scale = (first + second - self.row_max[t] - max - log_sum).exp();
        if scale > min_sum() && scale < 1.0 / MIN_SUM {
            for (a, x) in self.weights.iter().enumerate() {
                let x = x * factor * scale;
                let factors = &self.factors[a * l..(a + 1) * l];
                for ((p, f), y) in out[a * l..(a + 1) * l].iter_mut().zip(factors).zip(&self.sums) {
                    *p += x * f * y;
                }
            }
        } else {
            for (p, log) in out.iter_mut().zip(self.log_pairs(scores, t)) {
                *p += factor * log.exp();
            }
        }
    }
}

/// Convert scores to those of a chain in which every step is a classifier of y_t given y_{t-1} and x_t (a
/// maximum-entropy Markov model, McCallum, Freitag and Pereira 2000):
///
///   log P(y_t | y_{t-1}, x_t) = node_t(y_t) + edge_t(y_{t-1}, y_t) - Z_t(y_{t-1}),
///   Z_t(y') = log sum_y exp(node_t(y) + edge_t(y', y)).
///
/// Z_t depends only on the previous label, so it is subtracted from the node score of that label at t-1, and the edges
/// are unchanged. Every decoder of ordinary chains can then be used. The node scores must include all labels here,
/// because constraints are applied afterwards. In ascending order of t each row is read before it is changed. log Z of
/// the result is 0.
pub fn normalize_locally(labels: usize, node: &mut [f64], edge: &[f64]) {
    let l = labels;
    if node.is_empty() {
        return;
    }
    // A constant in a row does not affect its classifier. Near 0 no digits of the rows before are lost.
    for row in node.chunks_exact_mut(l) {
        let node_max = largest(row.iter().copied());
        row.iter_mut().for_each(|x| *x -= node_max);
    }
    let first = log_sum_exp(node[..l].iter().copied());
    node[..l].iter_mut().for_each(|x| *x -= first);
    for t in 1..node.len() / l {
        let (before, here) = node.split_at_mut(t * l);
        let block = if edge.len() == l * l { edge } else { &edge[t * l * l..(t + 1) * l * l] };
        for (k, x) in before[(t - 1) * l..].iter_mut().enumerate() {
            let z = log_sum_exp((0..l).map(|y| here[y] + block[k * l + y]));
            // A label that cannot be left keeps -infinity through its edges. Subtracting it would give NaN.
            if z.is_finite() {
                *x -= z;
            }
        }
    }
}
