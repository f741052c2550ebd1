//! Loss and gradient of a corpus at a weight vector: a parallel sum over chunks of sentences.

use crate::chain::edges::Edges;
use crate::chain::lists::{Pattern, Purpose};
use crate::dataset::layout::Layout;
use crate::dataset::plan::Plan;
use crate::dataset::Dataset;
use crate::error::{Error, Result};
use crate::learners::batch::loss::LARGE;
use crate::learners::batch::pass::{run_chunk, ChunkSums, Pass, PassWork, GROUP, MAX_GROUPED_LABELS};
use crate::learners::batch::terms::{check, not_finite, EdgeScores, Setting, Terms};
use crate::machine::simd::dispatch::FlushToZero;
use crate::machine::simd::{Lane, WIDTH};
use crate::machine::system::budget;
use crate::machine::system::paged::Pages;
use crate::machine::system::shared::Shared;
use crate::machine::system::stop;
use crate::machine::system::testing::{self, CodePath};
use crate::scores::corpus_layout::{Nodes, RowOptions};
use crate::scores::scorer::claim_pair_tables;
use rayon::prelude::*;
use std::sync::{Arc, Mutex};

/// Joint rows are added to those of attributes. With fewer attributes in rows, all rows still fit into the L2 cache.
const ROW_OPTIONS: RowOptions = RowOptions { frequent: 32, fold: true, group: GROUP, vectors: true };

/// Bytes kept for each attribute of each token, measured on conll2002-es.
const BYTES_PER_ATTRIBUTE: usize = 11;

fn row_options(labels: usize) -> RowOptions {
    let frequent = match (testing::is_forced(CodePath::Rows), testing::is_forced(CodePath::Rare)) {
        (true, _) => 0,
        (_, true) => u32::MAX,
        _ => ROW_OPTIONS.frequent,
    };
    let plain = testing::is_forced(CodePath::Plain);
    let group = if labels > MAX_GROUPED_LABELS { 1 } else { ROW_OPTIONS.group };
    RowOptions { frequent, group, fold: ROW_OPTIONS.fold && !plain, vectors: ROW_OPTIONS.vectors && !plain }
}

/// A training set prepared for evaluation. Built once, evaluated at many weight vectors.
pub struct Objective {
    data: Arc<Dataset>,
    layout: Arc<Layout>,
    terms: Terms,
    plan: Plan,
    nodes: Nodes,
    pattern: Option<Arc<Pattern>>,
    memory: Mutex<Buffers>,
}

/// Buffers that an evaluation writes to, kept between evaluations.
#[derive(Default)]
struct Buffers {
    rows: Vec<Lane>,           // [rows, width] weights of frequent attributes
    gradients: Vec<Vec<Lane>>, // [lanes] per chunk, zero between evaluations
    scratch: Vec<PassWork>,    // per chunk
    rare: Vec<f32>,            // weights of rare features, copy by copy
    rare_gradient: Vec<f32>,
    total: Vec<f64>, // [rows, padded L]
}

/// A value of the objective.
#[derive(Clone, Copy, Debug)]
pub struct Value {
    pub loss: f64,
    /// The largest log of a sentence's weighted e^l, or of a token's 1/p: the distance of the exponential losses from
    /// their safe range.
    pub largest: f64,
}

impl Objective {
    pub fn new(data: Arc<Dataset>, layout: Arc<Layout>, mut terms: Terms) -> Result<Objective> {
        let (n, l) = (data.len(), layout.labels);
        if terms.weights.is_empty() {
            terms.weights = vec![1.0; n];
        }
        claim_pair_tables(l)?;
        check(&data, l, &terms)?;
        let plan = Plan::new(&data.sentences);
        let remedy = "use fewer features, or train on shards (tagwise encode)";
        let bytes = budget::bytes(&[data.node.sparse().ids.len(), BYTES_PER_ATTRIBUTE]);
        budget::claim_linear(&format!("{} tokens prepared for training", data.tokens()), bytes, remedy)?;
        let mut nodes = Nodes::new(&data, &layout, &plan, row_options(l))?;
        let bytes = budget::bytes(&[nodes.n_lanes(), plan.chunks.len() + 1, size_of::<Lane>()]);
        let rare = budget::bytes(&[nodes.n_copies(), 2 * size_of::<f32>()]);
        budget::claim_linear("sums of an evaluation", bytes.saturating_add(rare), remedy)?;
        let pattern = Pattern::new(l, &layout.edges, &terms.limits.forbidden, Purpose::Training)?.map(Arc::new);
        if let Some(support) = &terms.limits.support {
            nodes.support = nodes.masks(&data, &plan, support);
        }
        if let Some(partial) = &terms.partial {
            let given = terms.limits.support.as_ref().map(|support| support.and(partial, l));
            nodes.partial = nodes.masks(&data, &plan, given.as_ref().unwrap_or(partial));
            nodes.forget_gold(); // the numerator is a second pass under the known labels
        }
        if !terms.cost.is_empty() {
            nodes.costs = vec![Lane::ZERO; l * nodes.width];
            for (i, &c) in terms.cost.iter().enumerate() {
                nodes.costs[i / l * nodes.width + i % l / WIDTH].0[i % l % WIDTH] = c as f32;
            }
        }
        Ok(Objective { data, layout, terms, plan, nodes, pattern, memory: Mutex::default() })
    }

    /// Move large arrays to files.
    pub fn page(&mut self, pages: &mut Pages) -> Result<()> {
        self.data = Arc::new(self.data.paged(pages)?);
        self.nodes.page(pages)
    }

    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Free the buffers of evaluations. The next evaluation allocates them again.
    pub fn free_buffers(&self) {
        *self.memory.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Buffers::default();
    }

    /// Return the loss at weights `w`, and write its gradient. `log_domain`: log sum_i w_i e^{l_i} in place of the
    /// exponential loss, for weights at which the latter is out of range. `precise`: in double precision. The gradient
    /// is rounded to single precision after its differences are computed.
    pub fn evaluate(&self, w: &[f64], gradient: &mut [f64], log_domain: bool, precise: bool) -> Result<Value> {
        let n = self.layout.len();
        if w.len() != n || gradient.len() != n {
            return Err(Error::Value(format!("expected {n} weights, got {} and {}", w.len(), gradient.len())));
        }
        let mut value = self.sum(w, gradient, 0.0, precise)?;
        if !self.terms.loss.is_shifted() {
            return Ok(value);
        }
        let mut shift = 0.0;
        if value.largest > LARGE {
            shift = value.largest;
            value = self.sum(w, gradient, shift, precise)?;
        }
        let mass: f64 = self.terms.weights.iter().sum();
        let scaled = value.loss + mass * (-shift).exp(); // sum_i w_i e^{l_i - shift}
        let scale = if log_domain { 1.0 / scaled } else { shift.exp() };
        if shift != 0.0 || log_domain {
            gradient.par_iter_mut().with_min_len(1 << 14).for_each(|g| *g *= scale);
        }
        value.loss = if log_domain { shift + scaled.ln() } else { value.loss * scale };
        Ok(value)
    }

    /// The loss times e^-shift (exponential loss), and its gradient. Sentences out of range count as infinite.
    fn sum(&self, w: &[f64], gradient: &mut [f64], shift: f64, precise: bool) -> Result<Value> {
        let layout = &self.layout;
        let l = layout.labels;
        let mut memory = self.memory.lock().unwrap_or_else(|poisoned| {
            let mut memory = poisoned.into_inner();
            *memory = Buffers::default(); // incomplete sums
            memory
        });
        let memory = &mut *memory;
        let lanes = self.nodes.n_lanes();
        memory.rows.resize(lanes, Lane::ZERO);
        memory.rare_gradient.resize(self.nodes.n_copies(), 0.0);
        memory.gradients.resize_with(self.plan.chunks.len(), Vec::new);
        memory.scratch.resize_with(self.plan.chunks.len(), PassWork::default);
        memory.rare.resize(self.nodes.n_copies(), 0.0);
        self.nodes.fill_rows(w, &mut memory.rows);
        self.nodes.fill_rare(w, &mut memory.rare);
        let edge_scores = EdgeScores::new(layout, w, &self.terms.limits);
        let edges = match &self.pattern {
            Some(pattern) => Edges::listed(pattern, &w[layout.edge_at()..]),
            None => Edges::new(l, edge_scores.scores()),
        };
        let pass = Pass {
            setting: Setting { shift, precise, ..Setting::new(&self.data, layout, &self.terms, w, &edge_scores) },
            terms: &self.terms,
            rows: &memory.rows,
            rare: &memory.rare,
            edges: &edges,
            nodes: &self.nodes,
            rare_gradient: Shared::new(&mut memory.rare_gradient),
            clip: f64::INFINITY,
        };
        let stop = stop::current();
        let buffers = memory.gradients.par_iter_mut().zip(memory.scratch.par_iter_mut());
        let sums: Vec<ChunkSums> = (self.plan.chunks.par_iter().enumerate().zip(buffers))
            .with_max_len(1)
            .map(|((c, chunk), (rows, scratch))| {
                let (_flush_to_zero, _guard) = (FlushToZero::new(), stop.enter());
                rows.resize(lanes, Lane::ZERO);
                run_chunk(&pass, c, &self.plan.batches[chunk.clone()], rows, scratch)
            })
            .collect();
        if let Some(s) = sums.iter().find_map(|s| s.failed) {
            memory.gradients.clear();
            return Err(not_finite(s));
        }
        gradient.par_iter_mut().with_min_len(1 << 15).for_each(|g| *g = 0.0);
        let shared = Shared::new(gradient);
        let hot = memory.scratch.iter().map(|s| &s.hot[..]);
        self.nodes.collect_rows(&mut memory.gradients, hot, &mut memory.total, &shared);
        self.nodes.collect_rare(&memory.rare_gradient, &shared);
        for (i, &e) in layout.edges.iter().enumerate() {
            if let Some(at) = edges.pair_index(e) {
                gradient[layout.edge_at() + i] = sums.iter().map(|s| s.edges[at]).sum();
            }
        }
        for i in 0..layout.pair.len() {
            gradient[layout.pair_at() + i] = sums.iter().map(|s| s.pairs[i]).sum();
        }
        let largest = sums.iter().map(|s| s.largest).fold(f64::NEG_INFINITY, f64::max);
        Ok(Value { loss: sums.iter().map(|s| s.loss).sum(), largest })
    }
}
