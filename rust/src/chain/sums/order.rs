//! Exact sums over all paths of chains of order m = 2, 3, with few states.
//!
//! A state is a label, or a tuple of up to m labels that is the beginning of a feature with one label more. The state
//! of a token is the longest state that is a suffix of the labels up to it. Labels further back occur in no feature, so
//! the sums are exact, and 45 labels remain practical: a treebank's features begin with a few hundred of the 2,025
//! pairs (variable-order chains: Ye, Lee, Chieu & Wu 2009).
//!
//! ```text
//! alpha_t(s') = psi_t(y(s')) / c_t  sum_{s -> s'} alpha_{t-1}(s) M[s, y(s')],     sum alpha_t = 1,    log Z = sum log c_t + ...
//! ```
//! The recursion runs in double precision and is scaled at each token. The successor of a state under a label depends
//! only on its last m - 1 labels, its *stem*. States with the same stem are summed into one row before the transition.

use crate::error::{Error, Result};
use crate::machine::simd::dispatch::dispatch;
use crate::machine::simd::Simd;

/// States and their successors. Arc s * L + y is the step from state s under label y.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    pub labels: usize,
    pub order: usize,
    level: Vec<usize>,  // [m + 1] first state of each length 1 .. m, and the number of states
    pub code: Vec<u32>, // [states] labels of the state, the last as the lowest digit
    pub last: Vec<u16>, // [states]
    stem: Vec<u32>,     // [states] the state of its last m - 1 labels
    target: Vec<u32>,   // [stems, L] successor of a stem under a label
}

impl Graph {
    /// Build a graph from all labels, as states of length 1, and these sorted codes for each length 2 .. m. The prefix
    /// and the suffix of every longer state must be states too.
    pub fn new(labels: usize, order: usize, longer: &[Vec<u32>]) -> Graph {
        let mut graph = Graph { labels, order, ..Graph::default() };
        graph.level.push(0);
        graph.code.extend(0..labels as u32);
        for codes in longer {
            graph.level.push(graph.code.len());
            graph.code.extend_from_slice(codes);
        }
        graph.level.push(graph.code.len());
        graph.last = graph.code.iter().map(|&c| (c as usize % labels) as u16).collect();
        let (states, stems) = (graph.code.len(), graph.level[order - 1]);
        let (l, modulus) = (labels as u32, (labels as u32).pow(order as u32 - 1));
        graph.stem = (0..states)
            .map(|s| match s < stems {
                true => s as u32,
                false => graph.longest(order - 1, graph.code[s] % modulus) as u32,
            })
            .collect();
        graph.target = (0..stems)
            .flat_map(|s| (0..l).map(move |y| (s, y)))
            .map(|(s, y)| graph.longest(graph.length(s) + 1, graph.code[s] * l + y) as u32)
            .collect();
        graph
    }

    pub fn states(&self) -> usize {
        self.code.len()
    }

    pub fn arcs(&self) -> usize {
        self.code.len() * self.labels
    }

    /// Length of a state.
    pub fn length(&self, state: usize) -> usize {
        self.level[1..].partition_point(|&begin| begin <= state) + 1
    }

    /// Return the longest state that is a suffix of n labels.
    fn longest(&self, n: usize, mut code: u32) -> usize {
        for n in (2..=n).rev() {
            code %= (self.labels as u32).pow(n as u32);
            if let Some(range) = (n < self.level.len()).then(|| self.level[n - 1]..self.level[n]) {
                if let Ok(i) = self.code[range.clone()].binary_search(&code) {
                    return range.start + i;
                }
            }
        }
        code as usize % self.labels
    }
}

/// Check that codes of n labels fit into 32 bits.
pub fn check_codes(labels: usize, n: usize) -> Result<()> {
    match (labels as u64).checked_pow(n as u32).is_some_and(|x| x < u64::from(u32::MAX)) {
        true => Ok(()),
        false => Err(Error::Value(format!("{labels} labels are too many for this order; use a smaller one"))),
    }
}

/// Arc scores in the form used by the recursions.
pub struct ArcFactors {
    pub m: Vec<f64>, // [arcs] exp(score - max), 0 if forbidden
    pub max: f64,
}

impl ArcFactors {
    pub fn new(score: &[f64]) -> ArcFactors {
        let max = score.iter().copied().filter(|x| x.is_finite()).fold(f64::NEG_INFINITY, f64::max);
        let max = if max.is_finite() { max } else { 0.0 };
        ArcFactors { m: score.iter().map(|x| (x - max).exp()).collect(), max }
    }
}

/// Scratch of one sentence.
#[derive(Default)]
pub struct OrderWork {
    alpha: Vec<f64>, // [T, states]
    beta: Vec<f64>,  // [states] of one token
    gamma: Vec<f64>, // [states] beta of the next token, times its psi / c
    rows: Vec<f64>,  // [stems, L] sums of states, or gamma of the stem's successor
    psi: Vec<f64>,   // [T, L]
    scale: Vec<f64>, // [T] 1 / c_t
}

impl OrderWork {
    /// Compute alpha from node scores [T, L]. Return log Z, which is not finite if no path is allowed.
    pub fn forward(&mut self, graph: &Graph, factors: &ArcFactors, node: &[f64]) -> f64 {
        let (l, states) = (graph.labels, graph.states());
        let n = node.len() / l;
        self.alpha.clear();
        self.alpha.resize(n * states, 0.0);
        self.rows.resize(graph.target.len(), 0.0);
        self.psi.clear();
        self.scale.clear();
        let mut log_z = factors.max * n.saturating_sub(1) as f64;
        for t in 0..n {
            let row = &node[t * l..(t + 1) * l];
            let top = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            if !top.is_finite() {
                return f64::NEG_INFINITY;
            }
            self.psi.extend(row.iter().map(|x| (x - top).exp()));
            let psi = &self.psi[t * l..];
            let (before, current) = self.alpha.split_at_mut(t * states);
            let current = &mut current[..states];
            if t == 0 {
                current[..l].copy_from_slice(psi);
            } else {
                self.rows.fill(0.0);
                push(graph, &factors.m, &before[(t - 1) * states..], &mut self.rows);
                for (i, (&to, &x)) in graph.target.iter().zip(&self.rows).enumerate() {
                    current[to as usize] += x * psi[i % l];
                }
            }
            let sum: f64 = current.iter().sum();
            if !(sum > 1e-250 && sum.is_finite()) {
                return if sum == 0.0 { f64::NEG_INFINITY } else { f64::NAN };
            }
            let inverse = 1.0 / sum;
            current.iter_mut().for_each(|a| *a *= inverse);
            self.scale.push(inverse);
            log_z += sum.ln() + top;
        }
        log_z
    }

    /// Write marginals to `p` [T, L]. Unless `expected` [arcs] is empty, add the expectations of arcs to it, divided by
    /// M and multiplied by `weight`.
    pub fn backward(&mut self, graph: &Graph, factors: &ArcFactors, weight: f64, p: &mut [f64], expected: &mut [f64]) {
        let (l, states) = (graph.labels, graph.states());
        let n = p.len() / l;
        p.fill(0.0);
        self.beta.resize(states, 0.0);
        self.gamma.resize(states, 0.0);
        for t in (0..n).rev() {
            let alpha = &self.alpha[t * states..(t + 1) * states];
            if t + 1 == n {
                self.beta.fill(1.0);
            } else {
                for (x, &to) in self.rows.iter_mut().zip(&graph.target) {
                    *x = self.gamma[to as usize];
                }
                pull(graph, &factors.m, &self.rows, alpha, weight, &mut self.beta, expected);
            }
            let (psi, scale) = (&self.psi[t * l..], self.scale[t]);
            for (s, &y) in graph.last.iter().enumerate() {
                p[t * l + y as usize] += alpha[s] * self.beta[s];
                self.gamma[s] = self.beta[s] * psi[y as usize] * scale;
            }
        }
    }
}

dispatch!(fn push(graph: &Graph, m: &[f64], from: &[f64], rows: &mut [f64]) = push_kernel);
dispatch!(
    fn pull(
        graph: &Graph, m: &[f64], rows: &[f64], alpha: &[f64], weight: f64, beta: &mut [f64], expected: &mut [f64]
    ) = pull_kernel
);

/// rows[stem(s), y] += from(s) M[s, y], skipping states without probability.
#[inline(always)]
#[allow(clippy::extra_unused_type_parameters)] // `S` selects the vector instructions that the compiler uses for the loop
fn push_kernel<S: Simd>(_: S, graph: &Graph, m: &[f64], from: &[f64], rows: &mut [f64]) {
    let l = graph.labels;
    for (s, (&stem, &a)) in graph.stem.iter().zip(from).enumerate() {
        if a > 0.0 {
            let at = stem as usize * l;
            for (x, &w) in rows[at..at + l].iter_mut().zip(&m[s * l..(s + 1) * l]) {
                *x += a * w;
            }
        }
    }
}

/// beta(s) = sum_y M[s, y] rows[stem(s), y] and expected[s, y] += weight alpha(s) rows[stem(s), y]. The factor M[s, y]
/// of the latter is applied at the end. Unreachable states are skipped.
#[inline(always)]
fn pull_kernel<S: Simd>(
    _: S,
    graph: &Graph,
    m: &[f64],
    rows: &[f64],
    alpha: &[f64],
    weight: f64,
    beta: &mut [f64],
    expected: &mut [f64],
) {
    let l = graph.labels;
    for (s, &stem) in graph.stem.iter().enumerate() {
        let a = alpha[s];
        if a == 0.0 {
            beta[s] = 0.0;
            continue;
        }
        let (row, m) = (&rows[stem as usize * l..(stem as usize + 1) * l], &m[s * l..(s + 1) * l]);
        // Eight independent accumulators, always added in the same order.
        let mut sums = [0.0; 8];
        let whole = l - l % 8;
        for (x, w) in row.chunks_exact(8).zip(m.chunks_exact(8)) {
            for i in 0..8 {
                sums[i] += x[i] * w[i];
            }
        }
        let tail: f64 = row[whole..].iter().zip(&m[whole..]).map(|(x, w)| x * w).sum();
        beta[s] = sums.iter().sum::<f64>() + tail;
        if !expected.is_empty() {
            let a = a * weight;
            for (e, &x) in expected[s * l..(s + 1) * l].iter_mut().zip(row) {
                *e += a * x;
            }
        }
    }
}
