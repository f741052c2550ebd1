//! Loss and gradient of a corpus at a weight vector: a parallel sum over chunks of sentences.

use crate::chain::{self, Edges, Shape, Work};
use crate::dataset::Dataset;
use crate::dispatch;
use crate::error::{Error, Result};
use crate::exact::{Exact, Setting, Sink};
use crate::lattice::{Nodes, Support, Tile};
use crate::loss::{Loss, LARGE};
use crate::plan::{Batch, Plan};
use crate::pointwise::{self, More};
use crate::shared::Shared;
use crate::simd::{FlushToZero, Lane, Simd, WIDTH};
use crate::weights::Layout;
use rayon::prelude::*;
use std::sync::{Arc, Mutex};

/// Batches between two sums of the pair expectations over lanes: float32 sums stay short, and the sum stays cheap.
const DRAIN_EVERY: usize = 8;
/// A gold marginal under this is left to double precision.
const SMALL: f32 = 1e-12;

/// What is minimised, beside the data.
#[derive(Clone, Debug)]
pub struct Terms {
    pub loss: Loss,
    /// Weight of each sentence; empty for all 1.
    pub weights: Vec<f64>,
    /// Edges (label' * L + label) of score -infinity.
    pub forbidden: Vec<u32>,
    /// Labels each token may take.
    pub support: Option<Support>,
    /// Labels each token is known to have one of; replaces the gold labels (log loss).
    pub partial: Option<Support>,
    /// [L, L] cost of label y where y' is right, added to the scores inside log Z (softmax-margin); empty without.
    pub cost: Vec<f64>,
}

/// A training set made ready for evaluation. Built once, evaluated at many weight vectors.
pub struct Objective {
    data: Arc<Dataset>,
    layout: Arc<Layout>,
    terms: Terms,
    plan: Plan,
    nodes: Nodes,
    memory: Mutex<Memory>,
}

/// What an evaluation writes to; kept between evaluations.
#[derive(Default)]
struct Memory {
    rows: Vec<Lane>,           // [rows, width] weights of frequent attributes
    gradients: Vec<Vec<Lane>>, // [lanes] for each chunk
    scratch: Vec<Scratch>,     // for each chunk
    rare: Vec<f32>,            // weights of rare features, copy by copy
    rare_gradient: Vec<f32>,
    total: Vec<f64>, // [rows, padded L]
}

/// A value of the objective.
#[derive(Clone, Copy, Debug)]
pub struct Value {
    pub loss: f64,
    /// The largest log of a sentence's weighted e^l, or of a token's 1/p: how far the exponential losses are from safe.
    pub largest: f64,
}

/// Sums of one chunk.
struct Sums {
    loss: f64,
    largest: f64,
    edges: Vec<f64>, // [L, L] expected minus observed
    pairs: Vec<f64>, // [pair features]
    failed: Option<u32>,
}

/// Everything the chunks read.
struct Pass<'a> {
    setting: Setting<'a>,
    terms: &'a Terms,
    rows: &'a [Lane],
    rare: &'a [f32],
    edges: &'a Edges,
    nodes: &'a Nodes,
    rare_gradient: Shared<'a, f32>,
}

impl Objective {
    pub fn new(data: Arc<Dataset>, layout: Arc<Layout>, mut terms: Terms) -> Result<Objective> {
        let (n, l) = (data.len(), layout.labels);
        if terms.weights.is_empty() {
            terms.weights = vec![1.0; n];
        }
        check(&data, l, &terms)?;
        let plan = Plan::new(&data.sentences);
        let mut nodes = Nodes::new(&data, &layout, &plan, true)?;
        if let Some(support) = &terms.support {
            nodes.support = nodes.masks(&data, &plan, support);
        }
        if let Some(partial) = &terms.partial {
            nodes.partial = nodes.masks(&data, &plan, partial);
            nodes.forget_gold(); // the numerator is a second pass under the known labels
        }
        if !terms.cost.is_empty() {
            nodes.costs = vec![Lane::ZERO; l * nodes.width];
            for (i, &c) in terms.cost.iter().enumerate() {
                nodes.costs[i / l * nodes.width + i % l / WIDTH].0[i % l % WIDTH] = c as f32;
            }
        }
        Ok(Objective { data, layout, terms, plan, nodes, memory: Mutex::default() })
    }

    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The loss at weights `w`, and its gradient. `log_domain`: log sum_i w_i e^{l_i} in place of the exponential loss,
    /// for weights at which that is too large to work with.
    pub fn evaluate(&self, w: &[f64], gradient: &mut [f64], log_domain: bool) -> Result<Value> {
        let n = self.layout.len();
        if w.len() != n || gradient.len() != n {
            return Err(Error::Value(format!("expected {n} weights, got {} and {}", w.len(), gradient.len())));
        }
        let mut value = self.sum(w, gradient, 0.0)?;
        if self.terms.loss != Loss::Exp {
            return Ok(value);
        }
        let mut shift = 0.0;
        if value.largest > LARGE {
            shift = value.largest;
            value = self.sum(w, gradient, shift)?;
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

    /// The loss times e^-shift (exponential loss), and its gradient. Sentences beyond range count as infinite.
    fn sum(&self, w: &[f64], gradient: &mut [f64], shift: f64) -> Result<Value> {
        let layout = &self.layout;
        let l = layout.labels;
        let mut memory = match self.memory.lock() {
            Ok(guard) => guard,
            Err(poisoned) => poisoned.into_inner(),
        };
        let memory = &mut *memory;
        let lanes = self.nodes.n_lanes();
        memory.rows.resize(lanes, Lane::ZERO);
        memory.rare_gradient.resize(self.nodes.n_copies(), 0.0);
        memory.gradients.resize_with(self.plan.chunks.len(), Vec::new);
        memory.scratch.resize_with(self.plan.chunks.len(), Scratch::default);
        memory.rare.resize(self.nodes.n_copies(), 0.0);
        self.nodes.fill_rows(w, &mut memory.rows);
        self.nodes.fill_rare(w, &mut memory.rare);
        let mut edge_scores = layout.edge_scores(w);
        for &e in &self.terms.forbidden {
            edge_scores[e as usize] = f64::NEG_INFINITY;
        }
        let edges = Edges::new(l, &edge_scores);
        let pass = Pass {
            setting: Setting {
                data: &self.data,
                layout,
                w,
                edge_scores: &edge_scores,
                support: self.terms.support.as_ref(),
                partial: self.terms.partial.as_ref(),
                cost: &self.terms.cost,
                loss: self.terms.loss,
                shift,
            },
            terms: &self.terms,
            rows: &memory.rows,
            rare: &memory.rare,
            edges: &edges,
            nodes: &self.nodes,
            rare_gradient: Shared::new(&mut memory.rare_gradient),
        };
        let buffers = memory.gradients.par_iter_mut().zip(memory.scratch.par_iter_mut());
        let sums: Vec<Sums> = (self.plan.chunks.par_iter().enumerate().zip(buffers))
            .with_max_len(1)
            .map(|((c, chunk), (rows, scratch))| {
                let _small_is_zero = FlushToZero::new();
                rows.clear();
                rows.resize(lanes, Lane::ZERO);
                run_chunk(&pass, c, &self.plan.batches[chunk.clone()], rows, scratch)
            })
            .collect();
        if let Some(s) = sums.iter().find_map(|s| s.failed) {
            return Err(Error::Training(format!(
                "sentence {s}: its loss is not finite at the current weights; scale real-valued attributes down, \
                 regularise more, or weight long sentences down (pi, max_length)"
            )));
        }
        gradient.par_iter_mut().with_min_len(1 << 15).for_each(|g| *g = 0.0);
        let shared = Shared::new(gradient);
        let hot = memory.scratch.iter().map(|s| &s.hot[..]);
        self.nodes.collect_rows(&memory.gradients, hot, &mut memory.total, &shared);
        self.nodes.collect_rare(&memory.rare_gradient, &shared);
        for (i, &e) in layout.edges.iter().enumerate() {
            gradient[layout.edge_at() + i] = sums.iter().map(|s| s.edges[e as usize]).sum();
        }
        for i in 0..layout.pair.len() {
            gradient[layout.pair_at() + i] = sums.iter().map(|s| s.pairs[i]).sum();
        }
        let largest = sums.iter().map(|s| s.largest).fold(f64::NEG_INFINITY, f64::max);
        Ok(Value { loss: sums.iter().map(|s| s.loss).sum(), largest })
    }
}

/// Whether labels, weights, costs and constraints fit the data and each other.
fn check(data: &Dataset, l: usize, terms: &Terms) -> Result<()> {
    let n = data.len();
    if terms.partial.is_none() && (data.gold.len() != data.tokens() || data.gold.iter().any(|&y| y as usize >= l)) {
        return Err(Error::Value("every training token needs a gold label of the label set".into()));
    }
    if terms.weights.len() != n || terms.weights.iter().any(|w| !w.is_finite() || *w < 0.0) {
        return Err(Error::Value(format!("sample_weight needs {n} finite numbers >= 0, one a sentence")));
    }
    if !terms.cost.is_empty() && (terms.cost.len() != l * l || terms.cost.iter().any(|c| !c.is_finite())) {
        return Err(Error::Value(format!("the cost matrix needs {l} x {l} finite numbers")));
    }
    if terms.partial.is_some() && (terms.loss != Loss::Log || !terms.cost.is_empty()) {
        return Err(Error::Value("partial labels need the log loss without costs".into()));
    }
    if terms.partial.is_some() {
        return Ok(());
    }
    let mut allowed = vec![true; l * l];
    for &e in &terms.forbidden {
        allowed[e as usize] = false;
    }
    for (i, s) in data.sentences.windows(2).enumerate() {
        let gold = &data.gold[s[0]..s[1]];
        let outside = terms
            .support
            .as_ref()
            .is_some_and(|x| (s[0]..s[1]).any(|t| !x.sets[x.of[t] as usize * l + data.gold[t] as usize]));
        if outside || gold.windows(2).any(|y| !allowed[y[0] as usize * l + y[1] as usize]) {
            return Err(Error::Training(format!(
                "sentence {i}: its gold labels are outside what the constraints allow; correct the sentence or relax the constraint"
            )));
        }
    }
    Ok(())
}

dispatch!(
    fn run_chunk(pass: &Pass<'_>, c: usize, batches: &[Batch], gradient: &mut [Lane], scratch: &mut Scratch) -> Sums = chunk_kernel
);

/// Scratch of one chunk.
#[derive(Default)]
struct Scratch {
    work: Work,
    more: More,
    tile: Tile,
    exact: Exact,
    fields: Vec<Field>,           // of each batch
    flagged: Vec<(usize, usize)>, // batch and lane of the sentences left to `exact`
    hot: Vec<f64>,                // sums of the hot rows
}

/// What the phases of a batch hand on.
#[derive(Default)]
struct Field {
    nodes: Vec<Lane>, // [T, L] node scores, then residuals before the gold labels are subtracted; slack for a whole tile
    gold: [f64; WIDTH], // scores of the gold labels
    subtract: Vec<Lane>, // what to subtract at the gold labels: one for all positions, or one each
}

/// Three phases over all batches, scores - recursions - gradient: the weights and then the gradient have the cache to
/// themselves.
#[inline(always)]
unsafe fn chunk_kernel<S: Simd>(
    pass: &Pass<'_>,
    c: usize,
    batches: &[Batch],
    gradient: &mut [Lane],
    scratch: &mut Scratch,
) -> Sums {
    let (s, l) = (&pass.setting, pass.setting.layout.labels);
    let mut sums = Sums {
        loss: 0.0,
        largest: f64::NEG_INFINITY,
        edges: vec![0.0; l * l],
        pairs: vec![0.0; s.layout.pair.len()],
        failed: None,
    };
    scratch.tile.reserve(pass.nodes.width);
    scratch.flagged.clear();
    scratch.hot.clear();
    scratch.fields.resize_with(batches.len().max(scratch.fields.len()), Field::default);
    if !pass.edges.scaled || s.data.has_edge_attributes() {
        for (i, batch) in batches.iter().enumerate() {
            scratch.flagged.extend((0..batch.sentences.len()).map(|lane| (i, lane)));
            scratch.fields[i].reserve(batch, l);
            scratch.fields[i].subtract.clear();
            scratch.fields[i].subtract.push(Lane::ZERO);
        }
    } else {
        for (i, batch) in batches.iter().enumerate() {
            score_batch::<S>(pass, batch, i, scratch);
        }
        for (i, batch) in batches.iter().enumerate() {
            batch_kernel::<S>(pass, batch, i, scratch, &mut sums);
            if i % DRAIN_EVERY == DRAIN_EVERY - 1 || i + 1 == batches.len() {
                chain::drain_pairs(pass.edges, &mut scratch.work.pairs[..l * l], &mut sums.edges);
            }
        }
    }
    for (i, lane) in std::mem::take(&mut scratch.flagged) {
        let batch = &batches[i];
        let weight = pass.terms.weights[batch.sentences[lane] as usize];
        let nodes = &mut scratch.fields[i].nodes[..];
        let mut sink = Sink { nodes, edges: &mut sums.edges, pairs: &mut sums.pairs };
        match scratch.exact.run(s, batch, lane, weight, &mut sink) {
            Some((value, largest)) => {
                sums.loss += value;
                sums.largest = sums.largest.max(largest + weight.ln());
            }
            None => sums.failed = Some(batch.sentences[lane]),
        }
    }
    let Scratch { fields, tile, hot, .. } = scratch;
    let copies = pass.nodes.copies(c);
    let rare = pass.rare_gradient.slice(copies.start, copies.len());
    rare.fill(0.0);
    for (i, batch) in batches.iter().enumerate() {
        let Field { nodes, subtract, .. } = &mut fields[i];
        pass.nodes.spread::<S>(batch, nodes, subtract, gradient, rare, tile);
        if i % DRAIN_EVERY == DRAIN_EVERY - 1 {
            pass.nodes.drain_hot(gradient, hot);
        }
    }
    sums
}

impl Field {
    fn reserve(&mut self, batch: &Batch, labels: usize) {
        let n = batch.positions() * labels + WIDTH;
        if self.nodes.len() < n {
            self.nodes.resize(n, Lane::ZERO);
        }
    }
}

/// Node scores of a batch.
#[inline(always)]
unsafe fn score_batch<S: Simd>(pass: &Pass<'_>, batch: &Batch, i: usize, scratch: &mut Scratch) {
    let nodes = pass.nodes;
    let Scratch { fields, tile, .. } = scratch;
    let field = &mut fields[i];
    field.reserve(batch, nodes.labels);
    nodes.fill::<S>(batch, pass.rows, pass.rare, &nodes.support, &mut field.nodes, &mut field.gold, tile);
}

/// Sixteen sentences by the scaled recursions, from node scores to residuals; those beyond range are flagged instead.
#[inline(always)]
unsafe fn batch_kernel<S: Simd>(pass: &Pass<'_>, batch: &Batch, i: usize, scratch: &mut Scratch, sums: &mut Sums) {
    let (s, loss) = (&pass.setting, pass.terms.loss);
    let l = s.layout.labels;
    let shape = Shape { labels: l, lengths: batch.lengths };
    let weights: [f64; WIDTH] =
        std::array::from_fn(|i| batch.sentences.get(i).map_or(0.0, |&s| pass.terms.weights[s as usize]));
    let Scratch { work, more, tile, fields, flagged, .. } = scratch;
    let field = &mut fields[i];
    work.reserve(&shape);
    std::mem::swap(&mut work.psi, &mut field.nodes);
    if pass.terms.partial.is_some() {
        partial_batch::<S>(pass, batch, i, &shape, &weights, work, more, tile, flagged, sums);
        field.subtract.clear();
        field.subtract.push(Lane::ZERO);
        std::mem::swap(&mut work.psi, &mut field.nodes);
        return;
    }
    let mut log_z = [0.0; WIDTH];
    chain::forward::<S>(&shape, pass.edges, work, &mut log_z);
    let mut factor = Lane::ZERO;
    for (lane, &sentence) in batch.sentences.iter().enumerate() {
        let mut gold = field.gold[lane];
        for y in labels_of(s.data, sentence).windows(2) {
            gold += pass.edges.rounded[y[0] as usize * l + y[1] as usize];
        }
        if log_z[lane].is_nan() || !gold.is_finite() {
            flagged.push((i, lane));
            chain::clear_lane(&shape, work, lane);
        } else if !loss.is_pointwise() {
            let minus_log_p = log_z[lane] - gold;
            let large = minus_log_p + weights[lane].ln();
            sums.largest = sums.largest.max(large);
            if loss == Loss::Exp && large - s.shift > LARGE + 1.0 {
                chain::clear_lane(&shape, work, lane); // out of range: the caller shifts and asks again
                continue;
            }
            let (value, slope) = loss.sequential(weights[lane], minus_log_p, s.shift);
            sums.loss += value;
            factor.0[lane] = slope as f32;
        } else {
            factor.0[lane] = 1.0; // plain marginals first
        }
    }
    if loss.is_pointwise() {
        pointwise_batch::<S>(pass, batch, i, &shape, &weights, &factor, work, more, flagged, sums);
        field.subtract.clear();
        field.subtract.extend_from_slice(&more.omega[..shape.positions()]);
    } else {
        for (lane, &sentence) in batch.sentences.iter().enumerate() {
            for y in labels_of(s.data, sentence).windows(2) {
                sums.edges[y[0] as usize * l + y[1] as usize] -= f64::from(factor.0[lane]);
            }
        }
        backward::<S>(pass, &shape, &factor, work);
        field.subtract.clear();
        field.subtract.push(factor);
    }
    std::mem::swap(&mut work.psi, &mut field.nodes);
}

fn labels_of(data: &Dataset, sentence: u32) -> &[u16] {
    &data.gold[data.sentences[sentence as usize]..data.sentences[sentence as usize + 1]]
}

/// The backward recursion, weighted marginals in place of psi, and the pair expectations.
#[inline(always)]
unsafe fn backward<S: Simd>(pass: &Pass<'_>, shape: &Shape, factor: &Lane, work: &mut Work) {
    let l = shape.labels;
    for t in (0..shape.positions()).rev() {
        chain::backward_step::<S>(shape, pass.edges, work, factor, t);
        work.psi[t * l..(t + 1) * l].copy_from_slice(&work.p[..l]);
    }
    chain::add_pairs::<S>(shape, &work.alpha, &work.gamma, &mut work.pairs);
}

/// log Z - log Z under the known labels: the same pass twice, with opposite signs.
#[inline(always)]
unsafe fn partial_batch<S: Simd>(
    pass: &Pass<'_>,
    batch: &Batch,
    i: usize,
    shape: &Shape,
    weights: &[f64; WIDTH],
    work: &mut Work,
    more: &mut More,
    tile: &mut Tile,
    flagged: &mut Vec<(usize, usize)>,
    sums: &mut Sums,
) {
    let n = shape.positions() * shape.labels;
    let (mut all, mut given, mut unused) = ([0.0; WIDTH], [0.0; WIDTH], [0.0; WIDTH]);
    more.reserve(shape);
    more.v[..n].copy_from_slice(&work.psi[..n]);
    chain::forward::<S>(shape, pass.edges, work, &mut all);
    pass.nodes.fill::<S>(batch, pass.rows, pass.rare, &pass.nodes.partial, &mut work.psi, &mut unused, tile);
    chain::forward::<S>(shape, pass.edges, work, &mut given);
    let mut factor = Lane::ZERO;
    let mut left = Vec::new();
    for lane in 0..batch.sentences.len() {
        if all[lane].is_nan() || given[lane].is_nan() {
            flagged.push((i, lane));
            left.push(lane);
            chain::clear_lane(shape, work, lane);
        } else {
            sums.loss += weights[lane] * (all[lane] - given[lane]);
            factor.0[lane] = weights[lane] as f32;
        }
    }
    backward::<S>(pass, shape, &Lane(factor.0.map(|x| -x)), work);
    more.p[..n].copy_from_slice(&work.psi[..n]);
    work.psi[..n].copy_from_slice(&more.v[..n]);
    chain::forward::<S>(shape, pass.edges, work, &mut all);
    for lane in left {
        chain::clear_lane(shape, work, lane);
    }
    backward::<S>(pass, shape, &factor, work);
    for (r, p) in work.psi[..n].iter_mut().zip(&more.p[..n]) {
        S::store(S::add(S::load(r), S::load(p)), r);
    }
}

/// The pointwise losses: marginals, then the two recursions of conditional expectations.
#[inline(always)]
unsafe fn pointwise_batch<S: Simd>(
    pass: &Pass<'_>,
    batch: &Batch,
    i: usize,
    shape: &Shape,
    weights: &[f64; WIDTH],
    factor: &Lane,
    work: &mut Work,
    more: &mut More,
    flagged: &mut Vec<(usize, usize)>,
    sums: &mut Sums,
) {
    let (s, loss, l) = (&pass.setting, pass.terms.loss, shape.labels);
    let n = shape.positions() * l;
    more.reserve(shape);
    for t in (0..shape.positions()).rev() {
        chain::backward_step::<S>(shape, pass.edges, work, factor, t);
        more.p[t * l..(t + 1) * l].copy_from_slice(&work.p[..l]);
    }
    let gold: [&[u16]; WIDTH] =
        std::array::from_fn(|i| batch.sentences.get(i).map_or(&[][..], |&sentence| labels_of(s.data, sentence)));
    let mut total = Lane::ZERO;
    more.omega[..shape.positions()].fill(Lane::ZERO);
    for (lane, labels) in gold.iter().enumerate() {
        if factor.0[lane] == 0.0 || labels.is_empty() {
            continue;
        }
        let p = |t: usize| more.p[t * l + labels[t] as usize].0[lane];
        if (0..labels.len()).any(|t| p(t).partial_cmp(&SMALL) != Some(std::cmp::Ordering::Greater)) {
            flagged.push((i, lane));
            chain::clear_lane(shape, work, lane);
            for v in more.p[..n].iter_mut().chain(&mut work.gamma[..n]) {
                v.0[lane] = 0.0;
            }
            continue;
        }
        let mut sum = 0.0;
        for t in 0..labels.len() {
            let p = f64::from(p(t)).min(1.0);
            let (value, omega) = loss.pointwise(weights[lane], p);
            sums.loss += value;
            sums.largest = sums.largest.max(-p.ln());
            sum += omega;
            more.omega[t].0[lane] = omega as f32;
        }
        total.0[lane] = sum as f32;
    }
    pointwise::residuals::<S>(shape, pass.edges, work, more, &total, |t, lane| gold[lane][t] as usize);
    work.psi[..n].copy_from_slice(&more.p[..n]);
    chain::add_pairs::<S>(shape, &more.u, &work.gamma, &mut work.pairs);
    chain::add_pairs::<S>(shape, &work.alpha, &more.v, &mut work.pairs);
}
