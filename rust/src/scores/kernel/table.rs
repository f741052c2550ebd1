//! Scores of all training tokens under changing betas.
//!
//! A change of beta_s(y) by x adds x K(x_u, x_s) to the score of every distinct token u: one pass over a kernel row,
//! after which decoding needs no kernel values. If the kernel can be expanded and that is cheaper, the weights of its
//! terms are stored instead, and a token's scores are summed on demand.

use crate::chain::limits::support::Support;
use crate::chain::limits::Limits;
use crate::chain::viterbi::sentence::{Chart, Steps};
use crate::dataset::layout::Layout;
use crate::dataset::Dataset;
use crate::error::{Error, Result};
use crate::machine::simd::dispatch::dispatch;
use crate::machine::simd::{Lane, Simd, WIDTH};
use crate::scores::check::{allowed_edges, check_gold, check_labels};
use crate::scores::kernel::expand::{self, Expanded};
use crate::scores::kernel::rows::{Distinct, KernelRows};
use crate::scores::kernel::{Form, Kernel};
use std::sync::Arc;

/// Betas of distinct tokens, and a weight for each transition, start and end.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Weights {
    pub beta: Vec<f64>, // [U, L]
    pub edge: Vec<f64>, // [L, L]
    pub start: Vec<f64>,
    pub end: Vec<f64>,
}

impl Weights {
    pub fn new(tokens: usize, l: usize) -> Weights {
        Weights { beta: vec![0.0; tokens * l], edge: vec![0.0; l * l], start: vec![0.0; l], end: vec![0.0; l] }
    }

    /// Return one number per feature of the layout (transitions, starts, ends), then the betas.
    pub fn flat(&self, layout: &Layout) -> Vec<f64> {
        let mut out: Vec<f64> = layout.edges.iter().map(|&e| self.edge[e as usize]).collect();
        out.extend(layout.starts.iter().map(|&y| self.start[y as usize]));
        out.extend(layout.ends.iter().map(|&y| self.end[y as usize]));
        out.extend_from_slice(&self.beta);
        out
    }
}

enum KernelScores {
    Rows { rows: Box<KernelRows>, score: Vec<f64> }, // [L, U]
    Expanded { terms: Expanded, weight: Vec<f64> },  // [terms, L]
}

/// Training set, its betas and its scores.
pub struct Betas {
    pub data: Arc<Dataset>,
    pub layout: Arc<Layout>,
    pub distinct: Distinct,
    pub kernel: Kernel,
    pub weights: Weights,
    pub steps: Steps,
    scores: KernelScores,
    support: Option<Support>,
    edge_allowed: Vec<bool>, // [L, L]
    edge_exists: Vec<bool>,  // [L, L]
    start_exists: Vec<bool>,
    end_exists: Vec<bool>,
}

dispatch!(fn add_scaled(to: &mut [f64], row: &[f32], x: f64) = add_kernel);

/// to += x * row, the inner loop of training with kernel rows. S is for `dispatch!`: the compiler vectorizes the loop.
#[inline(always)]
fn add_kernel<S: Simd>(_: S, to: &mut [f64], row: &[f32], x: f64) {
    for (s, &k) in to.iter_mut().zip(row) {
        *s += x * f64::from(k);
    }
}

/// Whether expanding the kernel is cheaper, by the work of an epoch in which one token in ten changes.
fn expansion_is_cheaper(kernel: &Kernel, data: &Dataset, distinct: &Distinct, l: usize, bytes: usize) -> bool {
    let (tokens, u) = (data.tokens() as f64, distinct.len() as f64);
    let terms: f64 = distinct.rows.ptr.windows(2).map(|w| expand::count(kernel, w[1] - w[0]) as f64).sum();
    let each = terms / u.max(1.0);
    // Every term may be new, but most occur several times.
    let memory = terms * 8.0 + 0.3 * terms * 8.0 * l as f64;
    memory <= bytes as f64 && tokens * each * (0.25 * l as f64 + 2.0) < 0.1 * tokens * u * 3.0
}

impl Betas {
    /// `bytes`: memory limit of kernel rows, or of expanded terms under `Auto`.
    pub fn new(
        data: Arc<Dataset>,
        layout: Arc<Layout>,
        kernel: Kernel,
        limits: Limits,
        form: Form,
        bytes: usize,
    ) -> Result<Betas> {
        kernel.check()?;
        let l = layout.labels;
        check_labels(&data, l)?;
        if data.has_edge_attributes() {
            return Err(Error::Value(
                "kernels are for attributes of tokens; leave edge attributes out, or use explicit weights".into(),
            ));
        }
        if layout.n_node() > 0 {
            return Err(Error::Value("a kernel model has no node features; give a layout without them".into()));
        }
        data.check_layout(layout.attributes)?;
        let (edge_allowed, mut steps) = (allowed_edges(l, &limits.forbidden)?, Steps::new(l));
        for &e in &limits.forbidden {
            steps.set(0, e as usize / l, e as usize % l, f32::NEG_INFINITY);
        }
        check_gold(&data, l, &edge_allowed, limits.support.as_ref())?;
        let distinct = Distinct::new(data.node.csr());
        let expanded = match form {
            Form::Rows => false,
            Form::Expanded if !expand::possible(&kernel) => {
                return Err(Error::Value("only linear and polynomial kernels up to degree 2 can be written out".into()))
            }
            Form::Expanded => true,
            Form::Auto => expand::possible(&kernel) && expansion_is_cheaper(&kernel, &data, &distinct, l, bytes),
        };
        let scores = if expanded {
            let terms = Expanded::new(&kernel, &distinct.rows);
            let weight = vec![0.0; terms.factor.len() * l];
            KernelScores::Expanded { terms, weight }
        } else {
            let rows = KernelRows::new(kernel.clone(), &distinct, layout.attributes, bytes);
            KernelScores::Rows { rows: Box::new(rows), score: vec![0.0; l * distinct.len()] }
        };
        let mut edge_exists = vec![false; l * l];
        layout.edges.iter().for_each(|&e| edge_exists[e as usize] = true);
        let boundary = |labels: &[u16]| {
            let mut exists = vec![false; l];
            labels.iter().for_each(|&y| exists[y as usize] = true);
            exists
        };
        Ok(Betas {
            start_exists: boundary(&layout.starts),
            end_exists: boundary(&layout.ends),
            weights: Weights::new(distinct.len(), l),
            steps,
            data,
            layout,
            distinct,
            kernel,
            scores,
            support: limits.support,
            edge_allowed,
            edge_exists,
        })
    }

    pub fn is_expanded(&self) -> bool {
        matches!(self.scores, KernelScores::Expanded { .. })
    }

    /// Accumulated sums: scores of tokens [L, U], or weights of terms [terms, L]. They depend on the order of the
    /// changes, so they cannot be recomputed exactly from the betas.
    pub fn kept(&self) -> &[f64] {
        match &self.scores {
            KernelScores::Rows { score, .. } => score,
            KernelScores::Expanded { weight, .. } => weight,
        }
    }

    /// Restore weights and accumulated sums from a table of the same data.
    pub fn restore(&mut self, weights: Weights, kept: &[f64]) -> Result<()> {
        let (l, own) = (self.layout.labels, &mut self.weights);
        let scores = match &mut self.scores {
            KernelScores::Rows { score, .. } => score,
            KernelScores::Expanded { weight, .. } => weight,
        };
        let parts = [
            (own.beta.len(), weights.beta.len()),
            (l * l, weights.edge.len()),
            (l, weights.start.len()),
            (l, weights.end.len()),
            (scores.len(), kept.len()),
        ];
        if parts.iter().any(|(wanted, given)| wanted != given) {
            return Err(Error::Value("the state belongs to other data; train again from the start".into()));
        }
        scores.copy_from_slice(kept);
        for at in (0..l * l).filter(|&at| self.edge_exists[at] && self.edge_allowed[at]) {
            self.steps.set(0, at / l, at % l, weights.edge[at] as f32);
        }
        *own = weights;
        Ok(())
    }

    /// First token of a sentence and the end of the last.
    pub fn range(&self, sentence: u32) -> (usize, usize) {
        (self.data.sentences[sentence as usize], self.data.sentences[sentence as usize + 1])
    }

    /// beta_u(y) += x for each (y, x).
    pub fn change(&mut self, u: u32, by: &[(u16, f64)]) -> Result<()> {
        let (l, n) = (self.layout.labels, self.distinct.len());
        match &mut self.scores {
            KernelScores::Rows { rows, score } => {
                let row = rows.row(&self.distinct, u)?;
                for &(y, x) in by.iter().filter(|c| c.1 != 0.0) {
                    add_scaled(&mut score[y as usize * n..(y as usize + 1) * n], row, x);
                }
            }
            KernelScores::Expanded { terms, weight } => {
                for at in terms.ptr[u as usize]..terms.ptr[u as usize + 1] {
                    let f = terms.value.get(at).map_or(1.0, |&v| f64::from(v));
                    let row = &mut weight[terms.term[at] as usize * l..][..l];
                    for &(y, x) in by {
                        row[y as usize] += x * f;
                    }
                }
            }
        }
        for &(y, x) in by {
            self.weights.beta[u as usize * l + y as usize] += x;
        }
        Ok(())
    }

    /// Add x to the weight of a transition, if it is a feature. Return whether it is.
    pub fn change_edge(&mut self, from: u16, to: u16, x: f64) -> bool {
        let at = from as usize * self.layout.labels + to as usize;
        if self.edge_exists[at] {
            self.weights.edge[at] += x;
        }
        if self.edge_exists[at] && self.edge_allowed[at] {
            self.steps.set(0, from as usize, to as usize, self.weights.edge[at] as f32);
        }
        self.edge_exists[at]
    }

    pub fn change_start(&mut self, y: u16, x: f64) -> bool {
        let exists = self.start_exists[y as usize];
        self.weights.start[y as usize] += if exists { x } else { 0.0 };
        exists
    }

    pub fn change_end(&mut self, y: u16, x: f64) -> bool {
        let exists = self.end_exists[y as usize];
        self.weights.end[y as usize] += if exists { x } else { 0.0 };
        exists
    }

    /// Write the scores of a distinct token to `out` [L].
    pub fn score(&self, u: u32, out: &mut [f64]) {
        let (l, n) = (self.layout.labels, self.distinct.len());
        match &self.scores {
            KernelScores::Rows { score, .. } => {
                for (y, x) in out.iter_mut().enumerate() {
                    *x = score[y * n + u as usize];
                }
            }
            KernelScores::Expanded { terms, weight } => {
                out.fill(0.0);
                for at in terms.ptr[u as usize]..terms.ptr[u as usize + 1] {
                    let term = terms.term[at] as usize;
                    let f = terms.factor[term] * terms.value.get(at).map_or(1.0, |&v| f64::from(v));
                    for (x, &w) in out.iter_mut().zip(&weight[term * l..(term + 1) * l]) {
                        *x += f * w;
                    }
                }
            }
        }
    }

    /// Write the node scores of position t of a sentence to the chart, -infinity for labels that are not allowed.
    /// `cost`, [L, width] or empty, is added by gold label.
    pub fn fill(&self, chart: &mut Chart, sentence: u32, t: usize, cost: &[Lane], scratch: &mut Vec<f64>) {
        let (begin, end) = self.range(sentence);
        let (l, token, width) = (self.layout.labels, begin + t, chart.width);
        scratch.resize(l, 0.0);
        self.score(self.distinct.of[token], scratch);
        let row = &mut chart.node[t * width..(t + 1) * width];
        let set = self.support.as_ref().map(|s| &s.sets[s.of[token] as usize * l..][..l]);
        for (y, &score) in scratch.iter().enumerate() {
            let mut x = score;
            x += if t == 0 { self.weights.start[y] } else { 0.0 };
            x += if token + 1 == end { self.weights.end[y] } else { 0.0 };
            let allowed = set.is_none_or(|set| set[y]);
            row[y / WIDTH].0[y % WIDTH] = if allowed { x as f32 } else { f32::NEG_INFINITY };
        }
        if !cost.is_empty() {
            let gold = self.data.gold[token] as usize;
            for (lane, c) in row.iter_mut().zip(&cost[gold * width..(gold + 1) * width]) {
                for (x, c) in lane.0.iter_mut().zip(&c.0) {
                    *x += c;
                }
            }
        }
    }

    /// K of two distinct tokens, as used by `change`.
    pub fn kernel_of(&mut self, a: u32, b: u32) -> Result<f64> {
        match &mut self.scores {
            KernelScores::Rows { rows, .. } => Ok(f64::from(rows.row(&self.distinct, a)?[b as usize])),
            KernelScores::Expanded { .. } => {
                let (a, b) = (a as usize, b as usize);
                let square = &self.distinct.square;
                Ok(self.kernel.of(self.distinct.dot(a, b), square[a], square[b]))
            }
        }
    }

    /// ||w||^2: sum_u beta_u . s_u and the squares of the transitions' weights.
    pub fn norm(&self) -> f64 {
        let l = self.layout.labels;
        let mut row = vec![0.0; l];
        let mut sum = 0.0;
        for (u, beta) in self.weights.beta.chunks_exact(l).enumerate() {
            if beta.iter().any(|&x| x != 0.0) {
                self.score(u as u32, &mut row);
                sum += beta.iter().zip(&row).map(|(b, s)| b * s).sum::<f64>();
            }
        }
        let w = &self.weights;
        sum + w.edge.iter().chain(&w.start).chain(&w.end).map(|x| x * x).sum::<f64>()
    }

    /// Whether a start, end or transition feature exists: here for the transition from -> to, below for y at the ends.
    pub fn has_edge(&self, from: u16, to: u16) -> bool {
        self.edge_exists[from as usize * self.layout.labels + to as usize]
    }
    pub fn has_start(&self, y: u16) -> bool {
        self.start_exists[y as usize]
    }
    pub fn has_end(&self, y: u16) -> bool {
        self.end_exists[y as usize]
    }
}
