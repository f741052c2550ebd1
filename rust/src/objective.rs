//! Loss and gradient of a corpus at a weight vector: a parallel sum over chunks of sentences.

use crate::chain::{self, Edges, Shape, Work};
use crate::dataset::Dataset;
use crate::dispatch;
use crate::error::{Error, Result};
use crate::general::{Scores, Trellis};
use crate::lattice::{Nodes, Support, Tile};
use crate::plan::{Batch, Plan};
use crate::shared::Shared;
use crate::simd::{Lane, Simd, WIDTH};
use crate::weights::Layout;
use rayon::prelude::*;
use std::sync::{Arc, Mutex};

/// Batches between two sums of the pair expectations over lanes: float32 sums stay short, and the sum stays cheap.
const DRAIN_EVERY: usize = 8;

/// A training set made ready for evaluation. Built once, evaluated at many weight vectors.
pub struct Objective {
    data: Arc<Dataset>,
    layout: Arc<Layout>,
    plan: Plan,
    nodes: Nodes,
    weights: Vec<f32>,   // [N] weight of each sentence
    forbidden: Vec<u32>, // edges that score -infinity
    support: Option<Support>,
    memory: Mutex<Memory>,
}

/// What an evaluation writes to; kept between evaluations.
#[derive(Default)]
struct Memory {
    rows: Vec<Lane>,           // [rows, width] weights of frequent attributes
    gradients: Vec<Vec<Lane>>, // a [rows, width] for each chunk
    rare: Vec<f32>,            // weights of rare features
    cells: Vec<f32>,
}

/// Sums of one chunk.
struct Sums {
    loss: f64,
    edges: Vec<f64>, // [L, L] expected minus observed
    pairs: Vec<f64>, // [pair features]
    failed: Option<u32>,
}

/// Everything the chunks read.
struct Pass<'a> {
    objective: &'a Objective,
    w: &'a [f64],
    rows: &'a [Lane],
    rare: &'a [f32],
    edges: &'a Edges,
    edge_scores: &'a [f64],
    cells: Shared<'a, f32>,
}

impl Objective {
    /// `weights`: one a sentence, or none for all 1. `forbidden`: edges (label' * L + label) of score -infinity.
    pub fn new(
        data: Arc<Dataset>,
        layout: Arc<Layout>,
        weights: Vec<f32>,
        forbidden: Vec<u32>,
        support: Option<Support>,
    ) -> Result<Objective> {
        let (n, l) = (data.len(), layout.labels);
        if data.gold.len() != data.tokens() || data.gold.iter().any(|&y| y as usize >= l) {
            return Err(Error::Value("every training token needs a gold label of the label set".into()));
        }
        let weights = if weights.is_empty() { vec![1.0; n] } else { weights };
        if weights.len() != n || weights.iter().any(|w| !w.is_finite() || *w < 0.0) {
            return Err(Error::Value(format!("sample_weight needs {n} finite numbers >= 0, one a sentence")));
        }
        let mut allowed = vec![true; l * l];
        for &e in &forbidden {
            allowed[e as usize] = false;
        }
        for (i, s) in data.sentences.windows(2).enumerate() {
            let gold = &data.gold[s[0]..s[1]];
            let outside = support
                .as_ref()
                .is_some_and(|x| (s[0]..s[1]).any(|t| !x.sets[x.of[t] as usize * l + data.gold[t] as usize]));
            if outside || gold.windows(2).any(|y| !allowed[y[0] as usize * l + y[1] as usize]) {
                return Err(Error::Training(format!(
                    "sentence {i}: its gold labels are outside what the constraints allow; correct the sentence or relax the constraint"
                )));
            }
        }
        let plan = Plan::new(&data.sentences);
        let nodes = Nodes::new(&data, &layout, &plan, support.as_ref())?;
        Ok(Objective { data, layout, plan, nodes, weights, forbidden, support, memory: Mutex::default() })
    }

    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// sum_i w_i (log Z(x_i) - H(x_i, y_i)) at weights `w`, and its gradient.
    pub fn evaluate(&self, w: &[f64], gradient: &mut [f64]) -> Result<f64> {
        let layout = &self.layout;
        if w.len() != layout.len() || gradient.len() != layout.len() {
            return Err(Error::Value(format!(
                "expected {} weights, got {} and {}",
                layout.len(),
                w.len(),
                gradient.len()
            )));
        }
        let l = layout.labels;
        let mut memory = match self.memory.lock() {
            Ok(guard) => guard,
            Err(poisoned) => poisoned.into_inner(),
        };
        let memory = &mut *memory;
        let lanes = self.nodes.n_rows() * self.nodes.width;
        memory.rows.resize(lanes, Lane::ZERO);
        memory.cells.resize(self.nodes.n_cells(), 0.0);
        memory.gradients.resize_with(self.plan.chunks.len(), Vec::new);
        memory.rare.resize(self.nodes.rare_features.len(), 0.0);
        self.nodes.fill_rows(w, &mut memory.rows);
        self.nodes.fill_rare(w, &mut memory.rare);
        let mut edge_scores = layout.edge_scores(w);
        for &e in &self.forbidden {
            edge_scores[e as usize] = f64::NEG_INFINITY;
        }
        let edges = Edges::new(l, &edge_scores);
        let pass = Pass {
            objective: self,
            w,
            rows: &memory.rows,
            rare: &memory.rare,
            edges: &edges,
            edge_scores: &edge_scores,
            cells: Shared::new(&mut memory.cells),
        };
        let sums: Vec<Sums> = self
            .plan
            .chunks
            .par_iter()
            .zip(memory.gradients.par_iter_mut())
            .with_max_len(1)
            .map(|(chunk, rows)| {
                rows.clear();
                rows.resize(lanes, Lane::ZERO);
                run_chunk(&pass, &self.plan.batches[chunk.clone()], rows)
            })
            .collect();
        if let Some(s) = sums.iter().find_map(|s| s.failed) {
            return Err(Error::Training(format!(
                "sentence {s}: its score is not finite at the current weights; scale real-valued attributes down or regularise more"
            )));
        }
        let shared = Shared::new(gradient);
        self.nodes.collect_rows(&memory.gradients, &shared);
        self.nodes.collect_cells(&memory.cells, &shared);
        for (i, &e) in layout.edges.iter().enumerate() {
            gradient[layout.edge_at() + i] = sums.iter().map(|s| s.edges[e as usize]).sum();
        }
        for i in 0..layout.pair.len() {
            gradient[layout.pair_at() + i] = sums.iter().map(|s| s.pairs[i]).sum();
        }
        Ok(sums.iter().map(|s| s.loss).sum())
    }

    /// Node scores [T, L] and edge scores of one sentence in double precision.
    fn scores(&self, w: &[f64], edge_scores: &[f64], sentence: u32, node: &mut Vec<f64>, edge: &mut Vec<f64>) {
        score_sentence(&self.data, &self.layout, w, edge_scores, sentence, node, edge);
        if let Some(support) = &self.support {
            support.forbid(self.data.sentences[sentence as usize], self.layout.labels, node);
        }
    }
}

/// Node scores [T, L], boundaries included, and edge scores ([L, L], or [T, L, L] with edge attributes) of a sentence.
pub fn score_sentence(
    data: &Dataset,
    layout: &Layout,
    w: &[f64],
    edge_scores: &[f64],
    sentence: u32,
    node: &mut Vec<f64>,
    edge: &mut Vec<f64>,
) {
    let l = layout.labels;
    let (begin, end) = (data.sentences[sentence as usize], data.sentences[sentence as usize + 1]);
    node.clear();
    node.resize((end - begin) * l, 0.0);
    edge.clear();
    edge.extend_from_slice(edge_scores);
    for t in begin..end {
        let row = &mut node[(t - begin) * l..(t - begin + 1) * l];
        for (a, value) in data.node.row(t) {
            let (first, labels) = layout.node(a);
            for (i, &y) in labels.iter().enumerate() {
                row[y as usize] += w[first + i] * f64::from(value);
            }
        }
    }
    if begin < end {
        let (start, stop) = layout.boundary_scores(w);
        let last = node.len() - l;
        for y in 0..l {
            node[y] += start[y];
            node[last + y] += stop[y];
        }
    }
    if data.has_edge_attributes() {
        for t in begin + 1..end {
            let at = edge.len();
            edge.extend_from_slice(edge_scores);
            for (a, value) in data.edge.row(t) {
                let (first, pairs) = layout.pairs(a);
                for (i, &pair) in pairs.iter().enumerate() {
                    edge[at + pair as usize] += w[first + i] * f64::from(value);
                }
            }
        }
    }
}

dispatch!(fn run_chunk(pass: &Pass<'_>, batches: &[Batch], gradient: &mut [Lane]) -> Sums = chunk_kernel);

#[inline(always)]
unsafe fn chunk_kernel<S: Simd>(pass: &Pass<'_>, batches: &[Batch], gradient: &mut [Lane]) -> Sums {
    let o = pass.objective;
    let l = o.layout.labels;
    let mut sums = Sums { loss: 0.0, edges: vec![0.0; l * l], pairs: vec![0.0; o.layout.pair.len()], failed: None };
    let mut work = Work::default();
    let mut tile = Tile::new(o.nodes.width);
    let mut exact = Exact::default();
    let general = !pass.edges.scaled || o.data.has_edge_attributes();
    for (i, batch) in batches.iter().enumerate() {
        let shape = Shape { labels: l, lengths: batch.lengths };
        let mut weight = Lane::ZERO;
        for (x, &s) in weight.0.iter_mut().zip(&batch.sentences) {
            *x = o.weights[s as usize];
        }
        if general {
            for lane in 0..batch.sentences.len() {
                exact.run::<S>(pass, batch, lane, weight.0[lane], gradient, &mut tile, &mut sums);
            }
            continue;
        }
        work.reserve(&shape);
        // Slots of position t start at `slots[t]`; remembered for the way back.
        let positions = shape.positions();
        let mut slot = batch.slot;
        let (mut gold, mut log_z) = ([0.0; WIDTH], [0.0; WIDTH]);
        for t in 0..positions {
            let active = batch.active(t);
            o.nodes.fill::<S>(batch, slot, active, pass.rows, pass.rare, &mut work.psi[t * l..], &mut gold, &mut tile);
            slot += active;
        }
        chain::forward::<S>(&shape, pass.edges, &mut work, &mut log_z);
        add_gold_edges(pass, batch, &weight, &mut gold, &mut sums);
        let mut flagged = Vec::new();
        for lane in 0..batch.sentences.len() {
            if log_z[lane].is_nan() || !gold[lane].is_finite() {
                flagged.push((lane, weight.0[lane]));
                chain::clear_lane(&shape, &mut work, lane);
                weight.0[lane] = 0.0;
            } else {
                sums.loss += f64::from(weight.0[lane]) * (log_z[lane] - gold[lane]);
            }
        }
        for t in (0..positions).rev() {
            let active = batch.active(t);
            slot -= active;
            chain::backward_step::<S>(&shape, pass.edges, &mut work, &weight, t);
            o.nodes.spread::<S>(slot, active, &work.p, &weight, gradient, &pass.cells, &mut tile);
        }
        chain::add_pairs::<S>(&shape, &mut work);
        if i % DRAIN_EVERY == DRAIN_EVERY - 1 {
            chain::drain_pairs(pass.edges, &mut work.pairs[..l * l], &mut sums.edges);
        }
        for (lane, weight) in flagged {
            exact.run::<S>(pass, batch, lane, weight, gradient, &mut tile, &mut sums);
        }
    }
    if !general && !work.pairs.is_empty() {
        chain::drain_pairs(pass.edges, &mut work.pairs[..l * l], &mut sums.edges);
    }
    sums
}

/// Scores of the gold edges of each lane, and their subtraction from the expected counts.
fn add_gold_edges(pass: &Pass<'_>, batch: &Batch, weight: &Lane, gold: &mut [f64; WIDTH], sums: &mut Sums) {
    let (o, l) = (pass.objective, pass.objective.layout.labels);
    for (lane, &s) in batch.sentences.iter().enumerate() {
        let labels = &o.data.gold[o.data.sentences[s as usize]..o.data.sentences[s as usize + 1]];
        for y in labels.windows(2) {
            let e = y[0] as usize * l + y[1] as usize;
            gold[lane] += f64::from(pass.edges.score[e]);
            sums.edges[e] -= f64::from(weight.0[lane]);
        }
    }
}

/// One sentence in log space: what the scaled recursions cannot do.
#[derive(Default)]
struct Exact {
    node: Vec<f64>,
    edge: Vec<f64>,
    trellis: Trellis,
}

impl Exact {
    #[allow(clippy::too_many_arguments)]
    #[inline(always)]
    unsafe fn run<S: Simd>(
        &mut self,
        pass: &Pass<'_>,
        batch: &Batch,
        lane: usize,
        weight: f32,
        gradient: &mut [Lane],
        tile: &mut Tile,
        sums: &mut Sums,
    ) {
        let (o, sentence) = (pass.objective, batch.sentences[lane]);
        let (l, w) = (o.layout.labels, f64::from(weight));
        o.scores(pass.w, pass.edge_scores, sentence, &mut self.node, &mut self.edge);
        let begin = o.data.sentences[sentence as usize];
        let gold = &o.data.gold[begin..o.data.sentences[sentence as usize + 1]];
        let scores = Scores { labels: l, node: &self.node, edge: &self.edge };
        let log_z = self.trellis.forward(&scores);
        self.trellis.backward(&scores);
        let mut h = 0.0;
        for (t, &y) in gold.iter().enumerate() {
            h += self.node[t * l + y as usize];
            if t > 0 {
                h += scores.edge(t)[gold[t - 1] as usize * l + y as usize];
            }
        }
        if !log_z.is_finite() || !h.is_finite() {
            sums.failed = Some(sentence);
            return;
        }
        sums.loss += w * (log_z - h);
        // Edges: the scaled path has subtracted the gold ones already where it ran first.
        let counted = pass.edges.scaled && !o.data.has_edge_attributes();
        for t in 1..gold.len() {
            let observed = gold[t - 1] as usize * l + gold[t] as usize;
            if !counted {
                sums.edges[observed] -= w;
            }
            for from in 0..l {
                for to in 0..l {
                    let p = w * self.trellis.pair_marginal(&scores, t, from, to);
                    sums.edges[from * l + to] += p;
                }
            }
            if o.data.has_edge_attributes() {
                for (a, value) in o.data.edge.row(begin + t) {
                    let (first, pairs) = o.layout.pairs(a);
                    for (i, &pair) in pairs.iter().enumerate() {
                        let pair = pair as usize;
                        let p = self.trellis.pair_marginal(&scores, t, pair / l, pair % l);
                        let residual = w * (p - if pair == observed { 1.0 } else { 0.0 });
                        sums.pairs[first + i - o.layout.pair_at()] += residual * f64::from(value);
                    }
                }
            }
        }
        let mut slot = batch.slot + lane;
        for t in 0..gold.len() {
            for y in 0..l {
                let p = w * self.trellis.node_marginal(t * l + y);
                tile.0[y / WIDTH][lane].0[y % WIDTH] = p as f32;
            }
            o.nodes.spread_slot::<S>(slot, weight, lane, gradient, &pass.cells, tile);
            slot += batch.active(t);
        }
    }
}
