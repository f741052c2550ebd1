//! Forward and backward sums of one sentence over (set of spans begun, label), in double precision.
//!
//! ```text
//! alpha_t(m, y) = s_t(y) + log [ sum_{a: no span begins} e^{alpha_{t-1}(m, a) + A[a, y]}
//!                              + sum_{a: one begins}     e^{alpha_{t-1}(m - y, a) + A[a, y]} ]
//! ```
//!
//! The second sum applies to sets m that contain y's group, where m - y is m without it. A label outside all groups has
//! the first sum only. The marginal of a label is the sum over its states. As in `log64`, each step is a product of
//! exponentials, and a sum so small that it may have lost terms is repeated in log space.

use crate::chain::sums::log64::{min_sum, MIN_SUM};

use crate::chain::lattice::{exponentiate, log_sum_exp, Scores};
use crate::chain::limits::at_most_once::Groups;

pub struct Sum {
    pub alpha: Vec<f64>, // [T, masks, L]
    pub beta: Vec<f64>,  // [T, masks, L]
    pub log_z: f64,
    pub bit: Vec<usize>, // [L]
    pub begins: Vec<bool>,
    masks: usize,
    labels: usize,
    edge: Vec<f64>,       // edges that the factors were computed from
    continuing: Vec<f64>, // [L, L] e^{A - top} of steps that begin nothing tracked
    beginning: Vec<f64>,  // [L, L] of all other steps
    top: f64,
    left: Vec<f64>,  // [masks, L]
    right: Vec<f64>, // [masks, L]
    sums: Vec<f64>,  // [L]
}

impl Sum {
    pub fn new(groups: &Groups) -> Sum {
        let all = groups.all();
        Sum {
            alpha: Vec::new(),
            beta: Vec::new(),
            log_z: 0.0,
            bit: groups.bits(&all),
            begins: groups.begins.clone(),
            masks: 1 << all.len(),
            labels: groups.of.len(),
            edge: Vec::new(),
            continuing: Vec::new(),
            beginning: Vec::new(),
            top: 0.0,
            left: Vec::new(),
            right: Vec::new(),
            sums: Vec::new(),
        }
    }

    /// Number of states.
    pub fn states(&self) -> usize {
        self.masks * self.labels
    }

    /// Whether a step from a to y begins a tracked span.
    #[inline(always)]
    pub fn begins_span(&self, a: usize, y: usize) -> bool {
        self.bit[y] != 0 && self.begins[a * self.labels + y]
    }

    /// State with label a before (mask, y), or `None`.
    #[inline(always)]
    pub fn before(&self, mask: usize, a: usize, y: usize) -> Option<usize> {
        crate::chain::limits::at_most_once::search::previous_mask(mask, self.bit[y], self.begins[a * self.labels + y])
            .map(|m| m * self.labels + a)
    }

    /// State after (mask, a) by label y, or `None` if y's span was begun before.
    #[inline(always)]
    pub fn after(&self, mask: usize, a: usize, y: usize) -> Option<usize> {
        match self.begins_span(a, y) {
            false => Some(mask * self.labels + y),
            true if mask & self.bit[y] != 0 => None,
            true => Some((mask | self.bit[y]) * self.labels + y),
        }
    }

    /// Mask of a first label.
    pub fn first(&self, y: usize) -> usize {
        if self.begins_span(self.labels, y) {
            self.bit[y]
        } else {
            0
        }
    }

    fn prepare(&mut self, edge: &[f64]) {
        if self.edge == edge {
            return;
        }
        self.edge.clear();
        self.edge.extend_from_slice(edge);
        let top = edge.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        self.top = if top.is_finite() { top } else { 0.0 };
        let l = self.labels;
        let (top, bit, begins) = (self.top, &self.bit, &self.begins);
        let factor = |begins_span: bool| {
            let one = move |(at, a): (usize, &f64)| match (bit[at % l] != 0 && begins[at]) == begins_span {
                true => (a - top).exp(),
                false => 0.0,
            };
            edge.iter().enumerate().map(one)
        };
        self.continuing.clear();
        self.continuing.extend(factor(false));
        self.beginning.clear();
        self.beginning.extend(factor(true));
    }

    /// Compute forward sums. Return log Z, -infinity if no path is allowed.
    pub fn forward(&mut self, scores: &Scores<'_>, groups: &Groups) -> f64 {
        debug_assert!(groups.of.len() == self.labels && scores.labels == self.labels);
        let (l, n, states) = (self.labels, scores.positions(), self.states());
        self.alpha.clear();
        self.alpha.resize(n * states, f64::NEG_INFINITY);
        if n == 0 {
            self.log_z = 0.0;
            return 0.0;
        }
        for y in 0..l {
            let at = self.first(y) * l + y;
            self.alpha[at] = scores.node[y];
        }
        let min_sum = min_sum();
        for t in 1..n {
            let edge = scores.edge(t);
            self.prepare(edge);
            let max = exponentiate(self.alpha[(t - 1) * states..t * states].iter().copied(), &mut self.left);
            for mask in 0..self.masks {
                let from = &self.left[mask * l..(mask + 1) * l];
                self.sums.clear();
                self.sums.resize(l, 0.0);
                for (a, &x) in from.iter().enumerate().filter(|(_, &x)| x > 0.0) {
                    for (sum, f) in self.sums.iter_mut().zip(&self.continuing[a * l..(a + 1) * l]) {
                        *sum += x * f;
                    }
                }
                for y in 0..l {
                    let node = scores.node[t * l + y];
                    if node == f64::NEG_INFINITY {
                        continue;
                    }
                    let mut sum = self.sums[y];
                    if mask & self.bit[y] != 0 {
                        let from = &self.left[(mask ^ self.bit[y]) * l..][..l];
                        sum += from.iter().enumerate().map(|(a, x)| x * self.beginning[a * l + y]).sum::<f64>();
                    }
                    let log = match sum > min_sum {
                        true => max + self.top + sum.ln(),
                        false => log_sum_exp((0..l).map(|a| match self.before(mask, a, y) {
                            Some(state) => self.alpha[(t - 1) * states + state] + edge[a * l + y],
                            None => f64::NEG_INFINITY,
                        })),
                    };
                    self.alpha[t * states + mask * l + y] = node + log;
                }
            }
        }
        self.log_z = log_sum_exp(self.alpha[(n - 1) * states..].iter().copied());
        self.log_z
    }

    /// Compute backward sums, after `forward` over the same scores.
    pub fn backward(&mut self, scores: &Scores<'_>) {
        let (l, n, states) = (self.labels, scores.positions(), self.states());
        self.beta.clear();
        self.beta.resize(n * states, 0.0);
        let min_sum = min_sum();
        for t in (1..n).rev() {
            let edge = scores.edge(t);
            self.prepare(edge);
            let node = &scores.node[t * l..(t + 1) * l];
            let next = self.beta[t * states..(t + 1) * states].iter().enumerate().map(|(at, b)| node[at % l] + b);
            let max = exponentiate(next, &mut self.right);
            for mask in 0..self.masks {
                let to = &self.right[mask * l..(mask + 1) * l];
                for a in 0..l {
                    let at = (t - 1) * states + mask * l + a;
                    if self.alpha[at] == f64::NEG_INFINITY {
                        self.beta[at] = f64::NEG_INFINITY; // unreachable state
                        continue;
                    }
                    let continuing = &self.continuing[a * l..(a + 1) * l];
                    let mut sum: f64 = to.iter().zip(continuing).map(|(z, f)| z * f).sum();
                    for (y, &bit) in self.bit.iter().enumerate().filter(|(_, &bit)| bit != 0 && mask & bit == 0) {
                        sum += self.right[(mask | bit) * l + y] * self.beginning[a * l + y];
                    }
                    self.beta[at] = match sum > min_sum {
                        true => max + self.top + sum.ln(),
                        false => log_sum_exp((0..l).map(|y| match self.after(mask, a, y) {
                            Some(state) => edge[a * l + y] + node[y] + self.beta[t * states + state],
                            None => f64::NEG_INFINITY,
                        })),
                    };
                }
            }
        }
    }

    /// out += factor p_t(y), [T, L].
    pub fn add_nodes(&self, factor: f64, out: &mut [f64]) {
        let (l, states) = (self.labels, self.states());
        for (at, (a, b)) in self.alpha.iter().zip(&self.beta).enumerate() {
            if *a > f64::NEG_INFINITY {
                out[at / states * l + at % l] += factor * (a + b - self.log_z).exp();
            }
        }
    }

    /// out += factor p_t(a, y), all pairs [L, L] of the step into t >= 1.
    pub fn add_pairs(&mut self, scores: &Scores<'_>, t: usize, factor: f64, out: &mut [f64]) {
        let (l, states) = (self.labels, self.states());
        let edge = scores.edge(t);
        self.prepare(edge);
        let node = &scores.node[t * l..(t + 1) * l];
        let first = exponentiate(self.alpha[(t - 1) * states..t * states].iter().copied(), &mut self.left);
        let next = self.beta[t * states..(t + 1) * states].iter().enumerate().map(|(at, b)| node[at % l] + b);
        let second = exponentiate(next, &mut self.right);
        let scale = (first + second + self.top - self.log_z).exp();
        if !(scale > min_sum() && scale < 1.0 / MIN_SUM) {
            for mask in 0..self.masks {
                for pair in 0..l * l {
                    let (a, y) = (pair / l, pair % l);
                    if let Some(state) = self.after(mask, a, y) {
                        let from = self.alpha[(t - 1) * states + mask * l + a];
                        let to = self.beta[t * states + state];
                        out[pair] += factor * (from + edge[pair] + node[y] + to - self.log_z).exp();
                    }
                }
            }
            return;
        }
        for mask in 0..self.masks {
            for a in 0..l {
                let x = self.left[mask * l + a] * factor * scale;
                if x == 0.0 {
                    continue;
                }
                let to = &self.right[mask * l..(mask + 1) * l];
                for y in 0..l {
                    let at = a * l + y;
                    out[at] += x * self.continuing[at] * to[y];
                    if self.bit[y] != 0 && mask & self.bit[y] == 0 {
                        out[at] += x * self.beginning[at] * self.right[(mask | self.bit[y]) * l + y];
                    }
                }
            }
        }
    }
}
