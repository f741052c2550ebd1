//! Online trainers of CRFsuite in double precision: averaged perceptron, passive-aggressive, AROW, stochastic gradient
//! descent. With instances in the order of the original they reproduce its weights.
//!
//! ```text
//! ap:    w += F(y) - F(y*)
//! pa:    cost = s(y*) - s(y) + sqrt(#wrong) (or + 1),  tau = cost / |d|^2,  w += tau d
//! arow:  cost = s(y*) - s(y) + #wrong,  alpha = cost / (gamma + sum d^2 v),  w += alpha v d,  1/v += d^2 / gamma
//! l2sgd: eta = 1 / (lambda (t0 + t)),  w += eta (F(y) - E F - lambda w)
//! ```
//! with d = F(y) - F(y*) on an error. The averaged weights are w - ws / c, with c counting instances from 1.

use crate::chain::lattice::Scores;
use crate::chain::sums::log64::Trellis;
use crate::error::{Error, Result};
use crate::foreign::claim_pairs;
use crate::foreign::instances::Instances;
use crate::foreign::lcrf::LcrfWork;

const NONE: u32 = u32::MAX;

/// Update rule.
#[derive(Clone, Copy, Debug)]
pub enum CrfsuiteRule {
    Perceptron,
    /// kind 0, 1 or 2, aggressiveness, whether the cost grows with the number of wrong labels
    Passive {
        kind: i64,
        c: f64,
        sensitive: bool,
    },
    Arow {
        gamma: f64,
    },
    /// lambda, t0
    Descent {
        penalty: f64,
        t0: f64,
    },
}

/// Model in training: weights of state features by attribute, followed by those of transitions.
pub struct Training {
    rule: CrfsuiteRule,
    labels: usize,
    node_ptr: Vec<u32>,   // [A + 1] features of each attribute
    node_label: Vec<u16>, // [node features]
    edge_at: Vec<u32>,    // [L, L] feature of each pair, or NONE
    edge_code: Vec<usize>,
    pub w: Vec<f64>,
    pub sums: Vec<f64>, // ws of ap and pa, v of arow
    pub count: f64,
    pub eta: f64,
    decay: f64,
    steps: f64,
    edge: Vec<f64>, // [L, L]
    work: LcrfWork,
    trellis: Trellis,
    delta: Vec<f64>, // [features] d, 0 except at `active`
    active: Vec<u32>,
    pairs: Vec<f64>, // [L, L] expected transitions
    slope: Vec<f64>, // [T, L] observed minus expected
}

impl Training {
    /// Create a model from the ascending codes of its features. Weights are 0, and `variance` is the variance of AROW.
    pub fn new(
        labels: usize,
        attributes: usize,
        node: &[i64],
        edge: &[i64],
        rule: CrfsuiteRule,
        variance: f64,
    ) -> Result<Training> {
        let invalid = || Error::Value("codes of features that are not ascending, or of none that there are".into());
        let is_ascending = |codes: &[i64], end: usize| {
            codes.windows(2).all(|c| c[0] < c[1])
                && codes.first().is_none_or(|&c| c >= 0)
                && codes.last().is_none_or(|&c| (c as usize) < end)
        };
        let n = node.len() + edge.len();
        if !is_ascending(node, attributes * labels) || !is_ascending(edge, labels * labels) || n >= NONE as usize {
            return Err(invalid());
        }
        claim_pairs(labels, 20)?;
        let mut node_ptr = vec![0u32; attributes + 1];
        node.iter().for_each(|&code| node_ptr[code as usize / labels + 1] += 1);
        (1..node_ptr.len()).for_each(|a| node_ptr[a] += node_ptr[a - 1]);
        let mut edge_at = vec![NONE; labels * labels];
        edge.iter().enumerate().for_each(|(i, &code)| edge_at[code as usize] = (node.len() + i) as u32);
        Ok(Training {
            rule,
            labels,
            node_ptr,
            node_label: node.iter().map(|&code| (code as usize % labels) as u16).collect(),
            edge_at,
            edge_code: edge.iter().map(|&code| code as usize).collect(),
            w: vec![0.0; n],
            sums: vec![variance; n],
            count: 1.0,
            eta: 0.0,
            decay: 1.0,
            steps: 0.0,
            edge: vec![0.0; labels * labels],
            work: LcrfWork::default(),
            trellis: Trellis::default(),
            delta: vec![0.0; n],
            active: Vec::new(),
            pairs: vec![0.0; labels * labels],
            slope: Vec::new(),
        })
    }

    pub fn steps(&self) -> f64 {
        self.steps
    }

    /// Score an instance into work.node [T, L] and edge [L, L].
    fn score(&mut self, data: &Instances, s: usize, scale: f64) {
        let (l, items) = (self.labels, data.items(s));
        self.work.node.clear();
        self.work.node.resize(items.len() * l, 0.0);
        for (row, t) in self.work.node.chunks_exact_mut(l).zip(items) {
            for i in data.ptr[t]..data.ptr[t + 1] {
                let (id, value) = (data.ids[i] as usize, data.value(i));
                for f in self.node_ptr[id] as usize..self.node_ptr[id + 1] as usize {
                    row[self.node_label[f] as usize] += self.w[f] * value;
                }
            }
            if scale != 1.0 {
                row.iter_mut().for_each(|x| *x *= scale);
            }
        }
        let first = self.node_label.len();
        for (i, &code) in self.edge_code.iter().enumerate() {
            self.edge[code] = self.w[first + i] * scale;
        }
    }

    /// Return the score of a path.
    fn path_score(&self, path: &[u16]) -> f64 {
        let l = self.labels;
        let mut score = 0.0;
        for (t, &y) in path.iter().enumerate() {
            if t > 0 {
                score += self.edge[path[t - 1] as usize * l + y as usize];
            }
            score += self.work.node[t * l + y as usize];
        }
        score
    }

    /// Call `visit` for the features on a path and their values, in the order of the path.
    fn visit_path(
        &mut self,
        data: &Instances,
        s: usize,
        path: &[u16],
        mut visit: impl FnMut(&mut Training, usize, f64),
    ) {
        for (k, t) in data.items(s).enumerate() {
            for i in data.ptr[t]..data.ptr[t + 1] {
                let id = data.ids[i] as usize;
                let (a, b) = (self.node_ptr[id] as usize, self.node_ptr[id + 1] as usize);
                if let Ok(at) = self.node_label[a..b].binary_search(&path[k]) {
                    visit(self, a + at, data.value(i));
                }
            }
            if k > 0 {
                let f = self.edge_at[path[k - 1] as usize * self.labels + path[k] as usize];
                if f != NONE {
                    visit(self, f as usize, 1.0);
                }
            }
        }
    }

    /// Set d = F(gold) - F(path) in `delta` at `active`.
    fn difference(&mut self, data: &Instances, s: usize, gold: &[u16], path: &[u16]) {
        self.active.clear();
        for (labels, sign) in [(gold, 1.0), (path, -1.0)] {
            self.visit_path(data, s, labels, |model, f, value| {
                if model.delta[f] == 0.0 {
                    model.active.push(f as u32);
                }
                model.delta[f] += sign * value;
            });
        }
        self.active.sort_unstable();
        self.active.dedup();
    }

    /// Make one step and return the loss of the instance.
    pub fn step(&mut self, data: &Instances, s: usize) -> f64 {
        let gold = &data.gold[data.items(s)];
        if let CrfsuiteRule::Descent { penalty, t0 } = self.rule {
            return self.descend(data, s, gold, penalty, t0);
        }
        self.score(data, s, 1.0);
        let score = self.work.find_path(self.labels, &self.edge);
        let path = std::mem::take(&mut self.work.path);
        let invalid = path.iter().zip(gold).filter(|(a, b)| a != b).count();
        let loss = if invalid > 0 { self.update(data, s, gold, &path, score, invalid) } else { 0.0 };
        self.work.path = path;
        self.count += 1.0;
        loss
    }

    /// Update the weights for a wrong path and return its loss.
    fn update(&mut self, data: &Instances, s: usize, gold: &[u16], path: &[u16], score: f64, invalid: usize) -> f64 {
        if let CrfsuiteRule::Perceptron = self.rule {
            // One path after the other, with the rounding of both, since rounding decides later ties.
            for (labels, sign) in [(gold, 1.0), (path, -1.0)] {
                self.visit_path(data, s, labels, |model, f, value| {
                    model.w[f] += sign * value;
                    model.sums[f] += sign * model.count * value;
                });
            }
            return invalid as f64 / gold.len() as f64;
        }
        let margin = score - self.path_score(gold);
        self.difference(data, s, gold, path);
        let active = std::mem::take(&mut self.active);
        let cost = match self.rule {
            CrfsuiteRule::Passive { kind, c, sensitive } => {
                let cost = margin + if sensitive { (invalid as f64).sqrt() } else { 1.0 };
                let norm: f64 = active.iter().map(|&f| self.delta[f as usize] * self.delta[f as usize]).sum();
                if norm != 0.0 || kind == 2 {
                    let tau = cost / (norm + if kind == 2 { 1.0 / (2.0 * c) } else { 0.0 });
                    let tau = if kind == 1 { tau.min(c) } else { tau };
                    for &f in &active {
                        let f = f as usize;
                        self.w[f] += tau * self.delta[f];
                        self.sums[f] += tau * self.count * self.delta[f];
                    }
                }
                cost
            }
            CrfsuiteRule::Arow { gamma } => {
                let cost = margin + invalid as f64;
                let variance_sum = |f: &u32| self.delta[*f as usize] * self.delta[*f as usize] * self.sums[*f as usize];
                let alpha = cost / (gamma + active.iter().map(variance_sum).sum::<f64>());
                for &f in &active {
                    let f = f as usize;
                    let (d, v) = (self.delta[f], self.sums[f]);
                    self.w[f] += alpha * v * d;
                    self.sums[f] = 1.0 / (1.0 / v + d * d / gamma);
                }
                cost
            }
            CrfsuiteRule::Perceptron | CrfsuiteRule::Descent { .. } => 0.0,
        };
        active.iter().for_each(|&f| self.delta[f as usize] = 0.0);
        self.active = active;
        cost
    }

    /// Make a step of gradient descent. The weights are decay times `w`, so that the penalty of a step costs nothing.
    fn descend(&mut self, data: &Instances, s: usize, gold: &[u16], penalty: f64, t0: f64) -> f64 {
        self.eta = 1.0 / (penalty * (t0 + self.steps));
        self.decay *= 1.0 - self.eta * penalty;
        let (gain, l) = (self.eta / self.decay, self.labels);
        self.score(data, s, self.decay);
        let mut trellis = std::mem::take(&mut self.trellis);
        let scores = Scores { labels: l, node: &self.work.node, edge: &self.edge };
        trellis.forward(&scores);
        trellis.backward(&scores);
        self.pairs.fill(0.0);
        (1..gold.len()).for_each(|t| trellis.add_pairs(&scores, t, 1.0, &mut self.pairs));
        let loss = trellis.log_z - self.path_score(gold);
        self.slope.clear();
        self.slope.extend((0..self.work.node.len()).map(|at| -trellis.node_marginal(at)));
        for (k, t) in data.items(s).enumerate() {
            let slope = &mut self.slope[k * l..(k + 1) * l];
            slope[gold[k] as usize] += 1.0;
            for i in data.ptr[t]..data.ptr[t + 1] {
                let (id, value) = (data.ids[i] as usize, data.value(i));
                for f in self.node_ptr[id] as usize..self.node_ptr[id + 1] as usize {
                    self.w[f] += gain * (slope[self.node_label[f] as usize] * value);
                }
            }
        }
        gold.windows(2).for_each(|y| self.pairs[y[0] as usize * l + y[1] as usize] -= 1.0);
        let first = self.node_label.len();
        for (i, &code) in self.edge_code.iter().enumerate() {
            self.w[first + i] -= gain * self.pairs[code];
        }
        self.trellis = trellis;
        self.steps += 1.0;
        loss
    }

    /// Multiply the decay into the weights and return their squared norm.
    pub fn apply_decay(&mut self) -> f64 {
        let decay = std::mem::replace(&mut self.decay, 1.0);
        self.w
            .iter_mut()
            .map(|w| {
                *w *= decay;
                *w * *w
            })
            .sum()
    }
}
