//! Chains of order m = 2, 3: sums over all paths, with states that are the last m labels.
//!
//! Only states that were seen exist (label tuples of the training set), so that 45 labels stay practical: of 91,125 triples
//! a treebank has some thousands. States are numbered in the order of their labels; those that may follow a state share
//! its last labels and are neighbours, so that a step is a scaled row added to a row:
//!
//! ```text
//! alpha_t(s') = psi_t(y(s')) / c_t  sum_s alpha_{t-1}(s) M[s, s'],     sum_s' alpha_t(s') = 1,  log Z = sum log c_t + ...
//! ```
//! in double precision, scaled at each token. The first m-1 tokens of a sentence have states of fewer labels.

pub mod objective;
pub mod tag;

use crate::dispatch;
use crate::error::{Error, Result};
use crate::simd::Simd;

/// Where a state leads.
#[derive(Clone, Copy, Debug)]
struct Next {
    first: u32, // first state that may follow
    count: u32,
    arc: usize, // number of the first arc
}

/// States and arcs.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    pub labels: usize,
    pub order: usize,
    pub level: Vec<usize>, // [m + 1] first state of each length 1 .. m, and the number of states
    pub code: Vec<u32>,    // [states] labels of the state, the last as the lowest digit
    pub last: Vec<u16>,    // [states]
    next: Vec<Next>,       // [states]
    pub arcs: usize,
}

impl Graph {
    /// All labels as states of length 1, and these sorted codes for each length 2 .. m.
    pub fn new(labels: usize, order: usize, longer: &[Vec<u32>]) -> Graph {
        let mut graph = Graph { labels, order, ..Graph::default() };
        let singles: Vec<u32> = (0..labels as u32).collect();
        let levels: Vec<&Vec<u32>> = std::iter::once(&singles).chain(longer).collect();
        for codes in &levels {
            graph.level.push(graph.code.len());
            graph.code.extend_from_slice(codes);
        }
        graph.level.push(graph.code.len());
        graph.last = graph.code.iter().map(|&c| (c as usize % labels) as u16).collect();
        let keep = (labels as u32).pow(order as u32 - 1);
        for n in 1..=order {
            // A longest state drops its first label, a shorter one grows.
            let to = (n + 1).min(order);
            let range = graph.level[to - 1]..graph.level[to];
            for s in graph.level[n - 1]..graph.level[n] {
                let stem = if n < order { graph.code[s] } else { graph.code[s] % keep };
                let low = graph.code[range.clone()].partition_point(|&c| c / (labels as u32) < stem);
                let high = graph.code[range.clone()].partition_point(|&c| c / (labels as u32) <= stem);
                let next = Next { first: (range.start + low) as u32, count: (high - low) as u32, arc: graph.arcs };
                graph.arcs += high - low;
                graph.next.push(next);
            }
        }
        graph
    }

    pub fn states(&self) -> usize {
        self.code.len()
    }

    /// States at position t.
    pub fn at(&self, t: usize) -> std::ops::Range<usize> {
        let n = (t + 1).min(self.order);
        self.level[n - 1]..self.level[n]
    }

    /// Length of a state.
    pub fn length(&self, state: usize) -> usize {
        self.level[1..].partition_point(|&begin| begin <= state) + 1
    }

    /// The state of a code of n labels.
    pub fn find(&self, n: usize, code: u32) -> Option<usize> {
        let range = self.level[n - 1]..self.level[n];
        self.code[range.clone()].binary_search(&code).ok().map(|i| range.start + i)
    }

    /// `f(arc, state, its successor)` for every arc.
    pub fn each_arc(&self, mut f: impl FnMut(usize, usize, usize)) {
        for (s, next) in self.next.iter().enumerate() {
            for i in 0..next.count as usize {
                f(next.arc + i, s, next.first as usize + i);
            }
        }
    }

    /// The states of a label sequence, one a token; None where one does not exist.
    pub fn walk(&self, path: &[u16]) -> Option<Vec<usize>> {
        let (l, keep) = (self.labels as u32, (self.labels as u32).pow(self.order as u32));
        let mut code = 0;
        path.iter()
            .enumerate()
            .map(|(t, &y)| {
                code = (code * l + u32::from(y)) % keep;
                self.find((t + 1).min(self.order), code)
            })
            .collect()
    }
}

/// Whether codes of n labels fit 32 bits.
pub fn check_codes(labels: usize, n: usize) -> Result<()> {
    match (labels as u64).checked_pow(n as u32).is_some_and(|x| x < u64::from(u32::MAX)) {
        true => Ok(()),
        false => Err(Error::Value(format!("{labels} labels are too many for this order; use order=1 or 2"))),
    }
}

/// Arc scores as the recursions need them.
pub struct Moves {
    pub m: Vec<f64>, // [arcs] exp(score - max); 0 forbids
    pub max: f64,
}

impl Moves {
    pub fn new(score: &[f64]) -> Moves {
        let max = score.iter().copied().filter(|x| x.is_finite()).fold(f64::NEG_INFINITY, f64::max);
        let max = if max.is_finite() { max } else { 0.0 };
        Moves { m: score.iter().map(|x| (x - max).exp()).collect(), max }
    }
}

/// Scratch of one sentence.
#[derive(Default)]
pub struct Work {
    alpha: Vec<f64>, // [T, states of the longest kind]
    beta: Vec<f64>,  // [states] of one token
    gamma: Vec<f64>, // [states] beta of the token after, times its psi / c
    psi: Vec<f64>,   // [T, L]
    scale: Vec<f64>, // [T] 1 / c_t
    stride: usize,
}

impl Work {
    /// Node scores [T, L] -> alpha; log Z, not finite where there is no path.
    fn forward(&mut self, graph: &Graph, moves: &Moves, node: &[f64]) -> f64 {
        let l = graph.labels;
        let n = node.len() / l;
        self.stride = (0..graph.order).map(|t| graph.at(t).len()).max().unwrap_or(0);
        self.alpha.clear();
        self.alpha.resize(n * self.stride, 0.0);
        self.psi.clear();
        self.scale.clear();
        let mut log_z = moves.max * n.saturating_sub(1) as f64;
        for t in 0..n {
            let row = &node[t * l..(t + 1) * l];
            let top = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            if !top.is_finite() {
                return f64::NEG_INFINITY;
            }
            self.psi.extend(row.iter().map(|x| (x - top).exp()));
            let psi = &self.psi[t * l..];
            let here = graph.at(t);
            let (before, now) = self.alpha.split_at_mut(t * self.stride);
            if t == 0 {
                now[..here.len()].fill(1.0);
            } else {
                let was = graph.at(t - 1);
                let before = &before[(t - 1) * self.stride..];
                push(&graph.next[was.clone()], here.start, &moves.m, before, now);
            }
            let mut sum = 0.0;
            for (a, &y) in now.iter_mut().zip(&graph.last[here]) {
                *a *= psi[y as usize];
                sum += *a;
            }
            if !(sum > 1e-250 && sum.is_finite()) {
                return if sum == 0.0 { f64::NEG_INFINITY } else { f64::NAN };
            }
            let inverse = 1.0 / sum;
            now.iter_mut().take(self.stride).for_each(|a| *a *= inverse);
            self.scale.push(inverse);
            log_z += sum.ln() + top;
        }
        log_z
    }

    /// Marginals, from the last token to the first: `node(t, state, p)`-sums into `p` [T, L], arc expectations times
    /// `weight` added to `expected` [arcs] where it is not empty.
    fn backward(&mut self, graph: &Graph, moves: &Moves, weight: f64, p: &mut [f64], expected: &mut [f64]) {
        let l = graph.labels;
        let n = p.len() / l;
        p.fill(0.0);
        for t in (0..n).rev() {
            let here = graph.at(t);
            self.beta.clear();
            if t + 1 == n {
                self.beta.resize(here.len(), 1.0);
            } else {
                self.beta.resize(here.len(), 0.0);
                let after = graph.at(t + 1);
                let alpha = &self.alpha[t * self.stride..];
                pull(&graph.next[here.clone()], after.start, &moves.m, &self.gamma, &mut self.beta);
                if !expected.is_empty() {
                    expect(&graph.next[here.clone()], after.start, &moves.m, &self.gamma, alpha, weight, expected);
                }
            }
            let (alpha, row) = (&self.alpha[t * self.stride..], &mut p[t * l..(t + 1) * l]);
            let (psi, scale) = (&self.psi[t * l..], self.scale[t]);
            self.gamma.clear();
            for ((&b, &a), &y) in self.beta.iter().zip(alpha).zip(&graph.last[here]) {
                row[y as usize] += a * b;
                self.gamma.push(b * psi[y as usize] * scale);
            }
        }
    }
}

dispatch!(fn push(next: &[Next], base: usize, m: &[f64], from: &[f64], to: &mut [f64]) = push_kernel);
dispatch!(fn pull(next: &[Next], base: usize, m: &[f64], after: &[f64], beta: &mut [f64]) = pull_kernel);
dispatch!(
    fn expect(
        next: &[Next], base: usize, m: &[f64], after: &[f64], alpha: &[f64], weight: f64, expected: &mut [f64]
    ) = expect_kernel
);

/// to(s') += from(s) M[s, s']; states without probability are passed over.
#[inline(always)]
unsafe fn push_kernel<S: Simd>(next: &[Next], base: usize, m: &[f64], from: &[f64], to: &mut [f64]) {
    for (next, &a) in next.iter().zip(from) {
        if a > 0.0 {
            let (at, n) = (next.first as usize - base, next.count as usize);
            for (x, &w) in to[at..at + n].iter_mut().zip(&m[next.arc..next.arc + n]) {
                *x += a * w;
            }
        }
    }
}

/// beta(s) = sum_s' M[s, s'] after(s').
#[inline(always)]
unsafe fn pull_kernel<S: Simd>(next: &[Next], base: usize, m: &[f64], after: &[f64], beta: &mut [f64]) {
    for (next, b) in next.iter().zip(beta) {
        let (at, n) = (next.first as usize - base, next.count as usize);
        let (after, m) = (&after[at..at + n], &m[next.arc..next.arc + n]);
        // Eight sums that do not wait for each other; always the same order.
        let mut sums = [0.0; 8];
        let (pairs, rest) = (after.chunks_exact(8).zip(m.chunks_exact(8)), n - n % 8);
        for (x, w) in pairs {
            for i in 0..8 {
                sums[i] += x[i] * w[i];
            }
        }
        let tail: f64 = after[rest..].iter().zip(&m[rest..]).map(|(x, w)| x * w).sum();
        *b = sums.iter().sum::<f64>() + tail;
    }
}

/// expected[s, s'] += weight alpha(s) M[s, s'] after(s').
#[inline(always)]
unsafe fn expect_kernel<S: Simd>(
    next: &[Next],
    base: usize,
    m: &[f64],
    after: &[f64],
    alpha: &[f64],
    weight: f64,
    expected: &mut [f64],
) {
    for (next, &a) in next.iter().zip(alpha) {
        if a > 0.0 {
            let (at, n, a) = (next.first as usize - base, next.count as usize, a * weight);
            let out = &mut expected[next.arc..next.arc + n];
            for ((e, &w), &x) in out.iter_mut().zip(&m[next.arc..next.arc + n]).zip(&after[at..at + n]) {
                *e += a * w * x;
            }
        }
    }
}
