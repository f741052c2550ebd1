//! The data of a round, updated by differences: scores, residuals, losses, and the mass and moment of every cell.
//! After a step only the sentences where the feature can fire are computed again.

use crate::dataset::layout::Layout;
use crate::dataset::Dataset;
use crate::error::{Error, Result};
use crate::learners::boosting::bound::{Moments, Range};
use crate::learners::boosting::cells::{RangeCells, FEATURES};
use crate::learners::boosting::chain::{ChainWork, EdgeFactors};
use crate::learners::boosting::gather::{gather, ByAttribute, GatherWork, Gathered};
use crate::learners::boosting::index::{self, fires_in, FeatureKind, Index};
use crate::learners::boosting::loss::{SentenceLoss, Target};
use crate::learners::boosting::pass::{self, BoostingSums, Revision, RowScratch, SentenceDifferences};
use crate::machine::system::shared::Shared;
use crate::machine::system::stop;
use crate::scores::scorer::claim_pair_tables;
use rayon::prelude::*;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

/// Number of sentences computed at once, before their differences are added in order.
const SENTENCES_PER_BATCH: usize = 256;
/// Number of attributes whose sums one thread computes at a time.
const ATTRIBUTES_PER_TASK: usize = 2048;
/// Minimum number of tokens of a batch that is computed in parallel.
const MIN_PARALLEL_TOKENS: usize = 1024;
/// log w_i e^{l_i} above which a common factor e^-shift is taken out, so that squares of the sums stay finite.
const LARGE: f64 = 200.0;
/// The sums are recomputed when N has fallen by this factor, before rounding errors of larger terms become
/// significant.
const REBUILD_FACTOR: f64 = 1e-3;

/// N sentences, P labels padded to a block, K features. All sums carry the factor e^-shift.
pub struct State {
    pub data: Arc<Dataset>,
    pub layout: Arc<Layout>,
    pub index: Index,
    pub cells: RangeCells,
    pub target: Target,
    pub weight: Vec<f64>, // [N] w_i
    pub w: Vec<f64>,      // [K]
    pub edges: EdgeFactors,
    edge_at: Vec<u32>,      // [edge features] position in a matrix [L, P]
    pub node: Vec<f64>,     // [tokens, P] node scores, start and end included
    pub residual: Vec<f64>, // [tokens, P] derivative of the loss by node scores: e_i (p_t(y) - [y = gold])
    pub pairs: Vec<f64>,    // [N, edge features] e_i (E[S] - S(gold))
    pub l: Vec<f64>,        // [N] logarithms of losses: -log P(gold)
    pub e: Vec<f64>,        // [N] w_i e^{l_i - shift}
    pub d: Vec<f64>,        // [N] w_i (e^{l_i} - 1) e^-shift, or e itself if the loss is over all sequences
    pub shift: f64,
    pub n: f64,                        // sum of d
    pub m: Vec<f64>,                   // [cells] moments
    pub mass: Vec<f64>,                // [cells] sums of d, empty for the loose bound, whose mass is N
    pub changed: Vec<AtomicBool>,      // [blocks]
    pub(super) n_at_build: f64,        // N when the sums were built
    by_attribute: Option<ByAttribute>, // if rounds are wide
    /// Sentences where edges, starts and ends can fire.
    pub fires: [usize; 3],
    arena: Arena,
    work: ChainWork,
    rows: RowScratch,
}

/// Results of the recursions of a batch of sentences, for the sums.
#[derive(Default)]
struct Arena {
    at: Vec<usize>,  // first row of each sentence
    nodes: Vec<f64>, // [rows, P] marginals, then differences of residuals
    pairs: Vec<f64>, // [batch, L, P]
    edges: Vec<f64>, // [batch, edge features] differences
    sentence_losses: Vec<SentenceLoss>,
}

impl State {
    pub fn new(
        data: Arc<Dataset>,
        layout: Arc<Layout>,
        weight: Vec<f64>,
        tight: bool,
        target: Target,
        w: Vec<f64>,
        many_features: bool,
    ) -> Result<State> {
        claim_pair_tables(layout.labels)?;
        index::check(&data, &layout, &weight, &w)?;
        let index = Index::new(&data, layout.attributes)?;
        let cells = match tight {
            true => RangeCells::tight(&data, &layout, &index, target)?,
            false => RangeCells::loose(&data, &layout, &index, target),
        };
        let by_attribute = (many_features && tight).then(|| ByAttribute::new(&layout, &index, &cells));
        let edges = EdgeFactors::new(layout.labels, layout.edge_scores(&w));
        let position = |&e: &u32| (e as usize / layout.labels * edges.padded + e as usize % layout.labels) as u32;
        let edge_at = layout.edges.iter().map(position).collect();
        let (rows, n) = (data.tokens() * edges.padded, data.len());
        let chain =
            [FeatureKind::Edge { from: 0, to: 0 }, FeatureKind::Start { label: 0 }, FeatureKind::End { label: 0 }];
        let fires = chain.map(|kind| (0..n).filter(|&s| fires_in(&data, kind, s)).count());
        let mut state = State {
            node: vec![0.0; rows],
            residual: vec![0.0; rows],
            pairs: vec![0.0; n * layout.edges.len()],
            l: vec![0.0; n],
            e: vec![0.0; n],
            d: vec![0.0; n],
            shift: 0.0,
            n: 0.0,
            m: vec![0.0; cells.range.len()],
            mass: vec![0.0; if tight { cells.range.len() } else { 0 }],
            changed: (0..layout.len().div_ceil(FEATURES)).map(|_| AtomicBool::new(true)).collect(),
            n_at_build: 0.0,
            by_attribute,
            fires,
            arena: Arena::default(),
            work: ChainWork::default(),
            rows: RowScratch::default(),
            edge_at,
            data,
            layout,
            index,
            cells,
            target,
            weight,
            w,
            edges,
        };
        state.score();
        state.pass()?;
        Ok(state)
    }

    pub fn len(&self) -> usize {
        self.l.len()
    }

    pub fn is_empty(&self) -> bool {
        self.l.is_empty()
    }

    /// The part of N from wrong sequences.
    pub fn wrong(&self) -> f64 {
        self.n - self.constant(|tokens| self.target.rest(tokens))
    }

    /// The loss over all sequences, independently of the definition of N.
    pub fn all(&self) -> f64 {
        self.wrong() + self.constant(|tokens| self.target.right(tokens))
    }

    /// Weighted sum over sentences of a function of their number of tokens.
    fn constant(&self, of: impl Fn(usize) -> f64) -> f64 {
        let tokens = self.data.sentences.windows(2).map(|s| s[1] - s[0]);
        self.weight.iter().zip(tokens).map(|(w, tokens)| w * of(tokens)).sum::<f64>() * (-self.shift).exp()
    }

    /// log N: the logarithm of the exponential loss.
    pub fn log_loss(&self) -> f64 {
        self.n.ln() + self.shift
    }

    /// Compute the node scores of all tokens from the weights.
    fn score(&mut self) {
        let (width, l) = (self.edges.padded, self.layout.labels);
        self.node.fill(0.0);
        for t in 0..self.data.tokens() {
            stop::check();
            let row = &mut self.node[t * width..(t + 1) * width];
            for (a, v) in self.data.node.csr().row(t) {
                let (first, labels) = self.layout.node(a);
                for (j, &y) in labels.iter().enumerate() {
                    row[y as usize] += f64::from(v) * self.w[first + j];
                }
            }
        }
        let (start, end) = self.layout.boundary_scores(&self.w);
        for s in 0..self.len() {
            let (begin, stop) = (self.data.sentences[s], self.data.sentences[s + 1]);
            let (begins, ends) = self.data.ends(s);
            for y in 0..if begin < stop { l } else { 0 } {
                self.node[begin * width + y] += if begins { start[y] } else { 0.0 };
                self.node[(stop - 1) * width + y] += if ends { end[y] } else { 0.0 };
            }
        }
    }

    /// Compute all sentences from their scores, with a shift that keeps the largest in range.
    fn pass(&mut self) -> Result<()> {
        let all: Vec<u32> = (0..self.len() as u32).collect();
        if self.w.iter().all(|w| *w == 0.0) {
            let tokens = self.data.sentences.windows(2).map(|s| s[1] - s[0]);
            self.l = tokens.map(|tokens| self.target.at_zero(tokens, self.layout.labels)).collect();
        } else {
            self.shift = f64::MAX; // every e is 0: only the losses are computed
            self.reset_sums();
            self.refresh(&all, &[], &mut Vec::new())?;
        }
        let log = |i: usize| self.l[i] + self.weight[i].ln();
        let largest = (0..self.len()).map(log).fold(f64::NEG_INFINITY, f64::max);
        self.shift = if largest > LARGE { largest } else { 0.0 };
        self.reset_sums();
        self.refresh(&all, &[], &mut Vec::new())?;
        self.n_at_build = self.n;
        Ok(())
    }

    /// Mark all sentences as not computed.
    fn reset_sums(&mut self) {
        for sums in [&mut self.residual, &mut self.pairs, &mut self.d, &mut self.m, &mut self.mass] {
            sums.fill(0.0);
        }
        self.n = 0.0;
    }

    /// Compute masses and moments from the residuals.
    fn build(&mut self) {
        self.m.fill(0.0);
        self.mass.fill(0.0);
        self.n = self.d.iter().sum();
        self.n_at_build = self.n;
        let (m, mass) = (Shared::new(&mut self.m), Shared::new(&mut self.mass));
        let (width, n_edges) = (self.edges.padded, self.layout.edges.len());
        let sums = BoostingSums {
            data: &self.data,
            layout: &self.layout,
            node_ptr: &self.layout.node_ptr,
            node_label: &self.layout.node_label,
            index: &self.index,
            cells: &self.cells,
            width,
            m: &m,
            mass: &mass,
            changed: &self.changed,
        };
        let differences = |s: usize| {
            let nodes = &self.residual[self.data.sentences[s] * width..self.data.sentences[s + 1] * width];
            SentenceDifferences { s, nodes, pairs: &self.pairs[s * n_edges..(s + 1) * n_edges], d: self.d[s] }
        };
        let stop = stop::current();
        let Some(by) = &self.by_attribute else {
            let parts = rayon::current_num_threads();
            (0..parts).into_par_iter().for_each(|part| {
                let (_guard, mut rows) = (stop.enter(), RowScratch::default());
                // Parts share no feature.
                (0..self.d.len()).for_each(|s| {
                    stop::check();
                    pass::add(&sums, &differences(s), part, parts, &mut rows);
                });
            });
            return;
        };
        let (layout, cells, attributes) = (&*self.layout, &self.cells, self.layout.attributes);
        let job = Gathered { layout, cells, by, width, residual: &self.residual, d: &self.d, m: &m, mass: &mass };
        (0..attributes.div_ceil(ATTRIBUTES_PER_TASK)).into_par_iter().for_each_init(
            GatherWork::default,
            |work, part| {
                let _guard = stop.enter();
                gather(&job, part * ATTRIBUTES_PER_TASK..((part + 1) * ATTRIBUTES_PER_TASK).min(attributes), work);
            },
        );
        for s in 0..self.d.len() {
            stop::check();
            // SAFETY: no other thread is running.
            unsafe { sums.add_chain(&differences(s), &mut RowScratch::default()) };
        }
        self.changed.iter().for_each(|changed| changed.store(true, Ordering::Relaxed));
    }

    /// Sentences where a feature can fire, ascending.
    pub fn sentences_of(&self, k: usize, out: &mut Vec<u32>) {
        match index::kind(&self.layout, k) {
            FeatureKind::Node { attribute, .. } => {
                out.extend(self.index.postings(attribute).iter().map(|&e| self.index.sentence[e as usize]));
            }
            kind @ (FeatureKind::Edge { .. } | FeatureKind::Start { .. } | FeatureKind::End { .. }) => {
                out.extend((0..self.len() as u32).filter(|&s| fires_in(&self.data, kind, s as usize)));
            }
        }
    }

    /// Add steps to the weights of features and to the scores that they change. A call of `refresh` must follow.
    pub fn shift_weights(&mut self, steps: impl Iterator<Item = (usize, f64)>) {
        let mut edges = false;
        for (k, step) in steps {
            edges |= matches!(index::kind(&self.layout, k), FeatureKind::Edge { .. });
            self.shift_weight(k, step);
        }
        if edges {
            self.edges.update();
        }
    }

    fn shift_weight(&mut self, k: usize, step: f64) {
        let width = self.edges.padded;
        self.w[k] += step;
        match index::kind(&self.layout, k) {
            FeatureKind::Node { attribute, label } => {
                for i in self.index.posting_ptr[attribute as usize]..self.index.posting_ptr[attribute as usize + 1] {
                    let e = self.index.posting[i] as usize;
                    for at in self.index.occurrence_ptr[e]..self.index.occurrence_ptr[e + 1] {
                        let value = if self.index.value.is_empty() { 1.0 } else { f64::from(self.index.value[at]) };
                        self.node[self.index.token[at] as usize * width + label] += step * value;
                    }
                }
            }
            FeatureKind::Edge { from, to } => {
                self.edges.score[from * self.layout.labels + to] += step;
            }
            FeatureKind::Start { label } | FeatureKind::End { label } => {
                let start = matches!(index::kind(&self.layout, k), FeatureKind::Start { .. });
                for s in 0..self.len() {
                    let (begin, end) = (self.data.sentences[s], self.data.sentences[s + 1]);
                    let here = if start { self.data.ends(s).0 } else { self.data.ends(s).1 };
                    if here && begin < end {
                        self.node[(if start { begin } else { end - 1 }) * width + label] += step;
                    }
                }
            }
        }
    }

    /// Compute the listed sentences again and update the sums by the differences. `ends` are positions in the list
    /// after which log N is recorded.
    pub fn refresh(&mut self, sentences: &[u32], ends: &[usize], losses: &mut Vec<f64>) -> Result<()> {
        let losses_only = self.shift == f64::MAX;
        let rebuild =
            self.by_attribute.is_some() && ends.is_empty() && !losses_only && self.cover_most_tokens(sentences);
        let (mut done, mut ends) = (0, ends.iter().copied().peekable());
        for (k, batch) in sentences.chunks(SENTENCES_PER_BATCH).enumerate() {
            if k > 0 {
                stop::check(); // never in the first batch, so a round of few sentences is not interrupted halfway
            }
            let rows = self.reserve(batch);
            let in_parallel = rows >= MIN_PARALLEL_TOKENS && rayon::current_num_threads() > 1;
            self.compute(batch, in_parallel);
            if !rebuild && !losses_only {
                self.add_differences(batch, in_parallel);
            }
            for (i, &s) in batch.iter().enumerate() {
                self.replace_loss(i, s)?;
                done += 1;
                if ends.next_if_eq(&done).is_some() {
                    if self.n < REBUILD_FACTOR * self.n_at_build {
                        self.n = self.d.iter().sum(); // the difference of two large numbers would leave noise
                    }
                    losses.push(self.n.max(0.0).ln() + self.shift);
                }
            }
        }
        if rebuild {
            self.build();
        } else if self.n.is_nan() || self.n < REBUILD_FACTOR * self.n_at_build {
            self.n = self.d.iter().sum(); // the difference of two large numbers would leave noise
        }
        Ok(())
    }

    /// Whether the sentences have most of the tokens.
    fn cover_most_tokens(&self, sentences: &[u32]) -> bool {
        let length = |&s: &u32| self.data.sentences[s as usize + 1] - self.data.sentences[s as usize];
        2 * sentences.iter().map(length).sum::<usize>() >= self.data.tokens()
    }

    /// Allocate the results of a batch of sentences. Return its number of tokens.
    fn reserve(&mut self, batch: &[u32]) -> usize {
        let (width, l, n_edges) = (self.edges.padded, self.layout.labels, self.layout.edges.len());
        let arena = &mut self.arena;
        arena.at.clear();
        let mut rows = 0;
        for &s in batch {
            arena.at.push(rows);
            rows += self.data.sentences[s as usize + 1] - self.data.sentences[s as usize];
        }
        arena.nodes.resize(arena.nodes.len().max(rows * width), 0.0);
        arena.pairs.resize(arena.pairs.len().max(batch.len() * l * width), 0.0);
        arena.edges.resize(arena.edges.len().max(batch.len() * n_edges), 0.0);
        arena
            .sentence_losses
            .resize(arena.sentence_losses.len().max(batch.len()), SentenceLoss { l: 0.0, e: 0.0, d: 0.0 });
        rows
    }

    /// Compute residuals and losses of a batch, and their differences, in the arena.
    fn compute(&mut self, batch: &[u32], in_parallel: bool) {
        let arena = &mut self.arena;
        let job = Revision {
            data: &self.data,
            layout: &self.layout,
            edges: &self.edges,
            edge_at: &self.edge_at,
            node: &self.node,
            weight: &self.weight,
            shift: self.shift,
            target: self.target,
            at: &arena.at,
            residual: Shared::new(&mut self.residual),
            pairs: Shared::new(&mut self.pairs),
            new_nodes: Shared::new(&mut arena.nodes),
            new_pairs: Shared::new(&mut arena.pairs),
            new_edges: Shared::new(&mut arena.edges),
            losses: Shared::new(&mut arena.sentence_losses),
        };
        let run = |work: &mut ChainWork, i: usize| {
            // SAFETY: a sentence occurs once in a list, and so do its places in every shared array.
            unsafe { job.run(i, batch[i] as usize, work) }
        };
        if in_parallel {
            (0..batch.len()).into_par_iter().with_min_len(8).for_each_init(ChainWork::default, run);
        } else {
            (0..batch.len()).for_each(|i| run(&mut self.work, i));
        }
    }

    /// Add the differences of a batch to masses and moments.
    fn add_differences(&mut self, batch: &[u32], in_parallel: bool) {
        let (width, n_edges, arena) = (self.edges.padded, self.layout.edges.len(), &self.arena);
        let (m, mass) = (Shared::new(&mut self.m), Shared::new(&mut self.mass));
        let sums = BoostingSums {
            data: &self.data,
            layout: &self.layout,
            node_ptr: &self.layout.node_ptr,
            node_label: &self.layout.node_label,
            index: &self.index,
            cells: &self.cells,
            width,
            m: &m,
            mass: &mass,
            changed: &self.changed,
        };
        let d = &self.d;
        let add = |part: usize, parts: usize, rows: &mut RowScratch| {
            for (i, &s) in batch.iter().enumerate() {
                let s = s as usize;
                let length = self.data.sentences[s + 1] - self.data.sentences[s];
                let nodes = &arena.nodes[arena.at[i] * width..(arena.at[i] + length) * width];
                let pairs = &arena.edges[i * n_edges..(i + 1) * n_edges];
                // Parts share no feature.
                pass::add(
                    &sums,
                    &SentenceDifferences { s, nodes, pairs, d: arena.sentence_losses[i].d - d[s] },
                    part,
                    parts,
                    rows,
                );
            }
        };
        if in_parallel {
            let parts = rayon::current_num_threads();
            (0..parts).into_par_iter().for_each(|part| add(part, parts, &mut RowScratch::default()));
        } else {
            add(0, 1, &mut self.rows);
        }
    }

    /// Replace the loss of sentence s, number i of the batch.
    fn replace_loss(&mut self, i: usize, s: u32) -> Result<()> {
        let SentenceLoss { l, e, d } = self.arena.sentence_losses[i];
        if !l.is_finite() || !e.is_finite() {
            let message = "its loss is not finite; scale real-valued attributes down, lower max_step, or weight long \
                           sentences down (pi, max_length)";
            return Err(Error::Training(message.into()).of_sentence(s as usize));
        }
        self.n += d - self.d[s as usize];
        (self.l[s as usize], self.e[s as usize], self.d[s as usize]) = (l, e, d);
        Ok(())
    }

    /// Keep the sums accurate: recompute them when N has fallen far, with another shift when it has fallen very far.
    pub fn keep_accurate(&mut self) -> Result<()> {
        if self.shift > 0.0 && (self.n.is_nan() || self.n < 1e-44) {
            self.pass()?;
        } else if self.n < REBUILD_FACTOR * self.n_at_build {
            self.build();
        }
        Ok(())
    }

    /// Range, mass and moment of each cell of a feature.
    #[inline(always)]
    pub fn cells_of(&self, k: usize) -> impl Iterator<Item = (Range, f64, f64)> + Clone + '_ {
        let tight = !self.mass.is_empty();
        self.cells.of(k).map(move |c| (self.cells.range[c], if tight { self.mass[c] } else { self.n }, self.m[c]))
    }

    /// All cells of a feature summed.
    #[inline(always)]
    pub fn moments(&self, k: usize) -> Moments {
        let mut moments = Moments::default();
        self.cells_of(k).for_each(|(range, d, m)| moments.add(range, d, m));
        moments
    }

    /// sum_i e_i (E[S_k] - S_k(y_i)): the derivative of N.
    pub fn slope(&self, k: usize) -> f64 {
        self.cells.of(k).map(|c| self.m[c]).sum()
    }
}
