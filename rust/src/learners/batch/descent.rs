//! Stochastic gradient descent on the batch losses: sixteen sentences per step, updated in place.
//!
//! ```text
//! w <- (1 - eta 2 l2 n / N) w - eta sum over the n sentences of a batch of d loss_i / dw,   eta = eta_0 / (1 + eta_0 2 l2 t / N)
//! ```
//!
//! t counts sentences (Bottou 2010, section 5.2). CRFsuite's l2sgd has the same schedule. The weights are kept as
//! scale x vector, so that the decay is one multiplication. Steps of the exponential losses are clipped: initially e^l
//! of a sentence is beyond any step size. Sentences out of range for float32 are skipped. There is one thread, and the
//! caller determines the order of batches, so the same order produces the same bits.

use crate::chain::edges::Edges;
use crate::chain::lists::{Pattern, Purpose};
use crate::chain::sums::batch;
use crate::dataset::layout::Layout;
use crate::dataset::plan::Plan;
use crate::dataset::Dataset;
use crate::error::{Error, Result};
use crate::learners::batch::loss::LARGE;
use crate::learners::batch::pass::{run_batch, ChunkSums, Pass, PassWork, MIN_GOLD_MARGINAL};
use crate::learners::batch::terms::{check, EdgeScores, Setting, Terms};
use crate::machine::simd::dispatch::{dispatch, FlushToZero};
use crate::machine::simd::{Lane, Simd};
use crate::machine::system::shared::Shared;
use crate::machine::system::stop;
use crate::scores::corpus_layout::{self, Nodes, RowOptions};
use crate::scores::scorer::claim_pair_tables;
use std::sync::Arc;

/// Largest factor by which a sentence's (or a token's) residuals are multiplied.
const MAX_FACTOR: f64 = 16.0;
/// The scale is multiplied into the weights when it falls below this.
const MIN_SCALE: f64 = 1e-4;

/// Steps change single rows, one batch at a time.
const ROW_OPTIONS: RowOptions = RowOptions { frequent: 16, fold: false, group: 1, vectors: false };
/// Steps between two corrections of the decay.
const CORRECT_EVERY: usize = 64;

/// Factor on the steps of a feature of n tokens. Without it the updates of all sixteen sentences together would
/// overshoot. The decay of the feature is slower by the same factor. The power was measured: 1/2 makes frequent
/// features lag, 0 makes all steps short. Since `scale` decays all features equally, such features are corrected from
/// time to time.
fn step_size(n: f64) -> f64 {
    (1.0 + 0.01 * n).powf(-0.35)
}

pub struct Stochastic {
    data: Arc<Dataset>,
    layout: Arc<Layout>,
    terms: Terms,
    plan: Plan,
    nodes: Nodes,
    rows: Vec<Lane>,
    row_step_sizes: Vec<f32>, // [lanes]
    rare: Vec<f32>,
    edges: Vec<f64>, // [edges of the layout]
    pattern: Option<Arc<Pattern>>,
    sum_index: Vec<Option<usize>>, // [edges of the layout] position of their sums
    scale: f64,
    scratch: PassWork,
    sums: ChunkSums,
}

impl Stochastic {
    /// Edges at the current weights. `scores` is scratch, [L, L] or empty with lists.
    fn current_edges(&self, scores: &mut [f64]) -> Edges {
        if let Some(pattern) = &self.pattern {
            let weights: Vec<f64> = self.edges.iter().map(|x| x * self.scale).collect();
            return Edges::listed(pattern, &weights);
        }
        scores.fill(0.0);
        for (&e, &x) in self.layout.edges.iter().zip(&self.edges) {
            scores[e as usize] = x * self.scale;
        }
        for &e in &self.terms.limits.forbidden {
            scores[e as usize] = f64::NEG_INFINITY;
        }
        Edges::new(self.layout.labels, scores)
    }

    pub fn new(data: Arc<Dataset>, layout: Arc<Layout>, mut terms: Terms) -> Result<Stochastic> {
        if data.has_edge_attributes() {
            return Err(Error::Value("stochastic descent cannot do edge attributes; take lbfgs".into()));
        }
        if terms.partial.is_some() || !terms.cost.is_empty() || terms.limits.once.is_some() {
            return Err(Error::Value(
                "stochastic descent can do neither partial labels nor costs nor labels that occur once; take lbfgs"
                    .into(),
            ));
        }
        if terms.weights.is_empty() {
            terms.weights = vec![1.0; data.len()];
        }
        claim_pair_tables(layout.labels)?;
        check(&data, layout.labels, &terms)?;
        let plan = Plan::in_chunks(&data.sentences, 1);
        let mut nodes = Nodes::new(&data, &layout, &plan, ROW_OPTIONS)?;
        if let Some(support) = &terms.limits.support {
            nodes.support = nodes.masks(&data, &plan, support);
        }
        let pattern =
            Pattern::new(layout.labels, &layout.edges, &terms.limits.forbidden, Purpose::Training)?.map(Arc::new);
        let sum_index: Vec<Option<usize>> = match &pattern {
            Some(pattern) => layout.edges.iter().map(|&e| pattern.find(e)).collect(),
            None => layout.edges.iter().map(|&e| Some(e as usize)).collect(),
        };
        let places = pattern.as_ref().map_or(layout.labels * layout.labels, |pattern| pattern.len());
        let row_step_sizes = nodes.set_step_sizes(|n| step_size(f64::from(n)) as f32);
        let mut scratch = PassWork::default();
        scratch.fields.resize_with(1, Default::default);
        Ok(Stochastic {
            rows: vec![Lane::ZERO; nodes.n_lanes()],
            row_step_sizes,
            rare: vec![0.0; nodes.n_copies()],
            edges: vec![0.0; layout.edges.len()],
            scale: 1.0,
            sums: ChunkSums::new(places, 0),
            pattern,
            sum_index,
            scratch,
            data,
            layout,
            terms,
            plan,
            nodes,
        })
    }

    /// Number of steps per epoch.
    pub fn batches(&self) -> usize {
        self.plan.batches.len()
    }

    pub fn set(&mut self, w: &[f64]) {
        self.nodes.fill_rows(w, &mut self.rows);
        self.nodes.fill_rare(w, &mut self.rare);
        self.edges.copy_from_slice(&w[self.layout.edge_at()..][..self.layout.edges.len()]);
        self.scale = 1.0;
    }

    pub fn read(&self, w: &mut [f64]) {
        self.nodes.read(&self.rows, &self.rare, self.scale, w);
        for (to, &x) in w[self.layout.edge_at()..].iter_mut().zip(&self.edges) {
            *to = x * self.scale;
        }
    }

    /// Take steps over these batches, starting after `seen` sentences. Return the sum of the losses, each before its
    /// own step, or NaN if the steps are too long.
    pub fn run(&mut self, order: &[u32], eta: f64, l2: f64, seen: f64) -> f64 {
        let _flush_to_zero = FlushToZero::new();
        run_steps(self, order, eta, l2, seen)
    }

    /// Restore the excess decay of frequent features. `decayed` is the log of the common decay since the last call.
    fn correct(&mut self, decayed: f64) {
        for (row, &step_size) in self.rows.iter_mut().zip(&self.row_step_sizes) {
            let up = ((f64::from(step_size) - 1.0) * decayed).exp() as f32;
            row.0.iter_mut().for_each(|x| *x *= up);
        }
        let up = ((step_size(self.data.tokens() as f64) - 1.0) * decayed).exp();
        self.edges.iter_mut().for_each(|x| *x *= up);
    }

    fn rescale(&mut self) {
        let scale = self.scale as f32;
        self.rows.iter_mut().for_each(|row| row.0.iter_mut().for_each(|x| *x *= scale));
        self.rare.iter_mut().for_each(|x| *x *= scale);
        self.edges.iter_mut().for_each(|x| *x *= f64::from(scale));
        self.scale = 1.0;
    }
}

dispatch!(
    fn run_steps(this: &mut Stochastic, order: &[u32], eta: f64, l2: f64, seen: f64) -> f64 = step_kernel
);

#[inline(always)]
fn step_kernel<S: Simd>(simd: S, this: &mut Stochastic, order: &[u32], eta: f64, l2: f64, mut seen: f64) -> f64 {
    let l = this.layout.labels;
    let decay = 2.0 * l2 / this.data.len().max(1) as f64;
    let step_size = step_size(this.data.tokens() as f64);
    let mut edge_scores = vec![0.0; if this.pattern.is_some() { 0 } else { l * l }];
    this.scratch.work.reserve_pairs(this.sums.edges.len());
    this.sums.loss = 0.0;
    let mut decayed = 0.0;
    for (i, &b) in order.iter().enumerate() {
        stop::check();
        let edges = this.current_edges(&mut edge_scores);
        if !edges.scaled {
            return f64::NAN;
        }
        score(simd, this, b as usize);
        let batch = &this.plan.batches[b as usize];
        let no_edge_scores = EdgeScores::new(&this.layout, &[], &this.terms.limits);
        let pass = Pass {
            setting: Setting {
                data: &this.data,
                layout: &this.layout,
                w: &[],
                edge_scores: &no_edge_scores,
                support: this.terms.limits.support.as_ref(),
                partial: None,
                cost: &[],
                once: None,
                loss: this.terms.loss,
                shift: 0.0,
                precise: false,
            },
            terms: &this.terms,
            rows: &[],
            rare: &[],
            nodes: &this.nodes,
            edges: &edges,
            rare_gradient: Shared::new(&mut []),
            clip: MAX_FACTOR,
        };
        run_batch(&pass, batch, 0, &mut this.scratch, &mut this.sums, None);
        batch::drain_pairs(&edges, &mut this.scratch.work.pairs[..this.sums.edges.len()], &mut this.sums.edges);
        for (_, lane) in this.scratch.flagged.drain(..) {
            this.sums.loss += skipped_loss(&this.terms, batch.sentences[lane] as usize, batch.lengths[lane]);
        }
        let rate = eta / (1.0 + eta * decay * seen);
        let count = batch.sentences.len() as f64;
        let keep = 1.0 - (rate * decay * count).min(0.5);
        this.scale *= keep;
        decayed += keep.ln();
        apply_gradient(simd, this, b as usize, -rate / this.scale, step_size);
        seen += count;
        if l2 > 0.0 && (i % CORRECT_EVERY == CORRECT_EVERY - 1 || i + 1 == order.len()) {
            this.correct(decayed);
            decayed = 0.0;
        }
        if this.scale < MIN_SCALE {
            this.rescale();
        }
    }
    this.sums.loss
}

/// Node scores of a batch, and those of its gold labels, at the current weights.
#[inline(always)]
fn score<S: Simd>(simd: S, this: &mut Stochastic, batch: usize) {
    let (batch, l) = (&this.plan.batches[batch], this.layout.labels);
    let PassWork { fields, tile, .. } = &mut this.scratch;
    let field = &mut fields[0];
    field.reserve(batch, l);
    let support = &this.nodes.support;
    corpus_layout::fill(&this.nodes, batch, &this.rows, &this.rare, support, &mut field.nodes, &mut field.gold, tile);
    multiply(simd, &mut field.nodes[..batch.positions() * l], this.scale as f32);
    field.gold.iter_mut().for_each(|x| *x *= this.scale);
}

/// Subtract the gradient of a batch from the weights: its residuals times `step`, those of edges also times
/// `step_size`.
#[inline(always)]
fn apply_gradient<S: Simd>(simd: S, this: &mut Stochastic, batch: usize, step: f64, step_size: f64) {
    let batch = &this.plan.batches[batch];
    let PassWork { fields, tile, .. } = &mut this.scratch;
    let field = &mut fields[0];
    multiply(simd, &mut field.nodes[..batch.positions() * this.layout.labels], step as f32);
    multiply(simd, &mut field.subtract, step as f32);
    corpus_layout::scatter(&this.nodes, std::slice::from_ref(batch), fields, &mut this.rows, &mut this.rare, tile);
    for (&at, x) in this.sum_index.iter().zip(&mut this.edges) {
        *x += step * step_size * at.map_or(0.0, |at| this.sums.edges[at]);
    }
    this.sums.edges.fill(0.0);
}

/// Minimum loss counted for a sentence out of range for float32, so that comparisons of step sizes include it.
fn skipped_loss(terms: &Terms, sentence: usize, length: u32) -> f64 {
    let weight = terms.weights[sentence];
    if terms.loss.is_pointwise() {
        f64::from(length) * terms.loss.pointwise(weight, f64::from(MIN_GOLD_MARGINAL)).0
    } else {
        terms.loss.sequential(weight, LARGE, 0.0).0
    }
}

#[inline(always)]
fn multiply<S: Simd>(simd: S, lanes: &mut [Lane], by: f32) {
    if by == 1.0 {
        return;
    }
    let by = simd.splat(by);
    for lane in lanes {
        simd.store(simd.mul(simd.load(lane), by), lane);
    }
}
