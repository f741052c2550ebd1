//! One pass over a chunk of sentences at fixed weights: scores, recursions, gradient.

use crate::chain::edges::Edges;
use crate::chain::sums::batch::{self, NodeScores, Prefilled, Shape, Work};
use crate::chain::sums::pointwise::{self, PointwiseWork};
use crate::chain::sums::underflow::exceeds_log_z;
use crate::dataset::plan::Batch;
use crate::dataset::Dataset;
use crate::learners::batch::fallback64::{Fallback64, Sink};
use crate::learners::batch::terms::{Setting, Terms};
use crate::machine::simd::dispatch::dispatch;
use crate::machine::simd::{Lane, Level, Simd, WIDTH};
use crate::machine::system::shared::Shared;
use crate::machine::system::stop;
use crate::machine::system::testing::{self, CodePath, PathCount};
use crate::scores::corpus_layout::steps::fill_step;
use crate::scores::corpus_layout::{self, Field, Nodes};
use crate::scores::tile::Tile;

/// Number of batches between two sums of the pair expectations over lanes. Float32 sums stay short, and the sum stays
/// cheap.
const DRAIN_EVERY: usize = 8;
/// Number of batches that go through the phases together.
pub const GROUP: usize = 8;
/// Maximum number of labels for such groups. With more, the data passed between phases would no longer fit in a cache.
pub const MAX_GROUPED_LABELS: usize = 256;
/// Smallest gold marginal in single precision. Sentences with a smaller one are computed in double precision.
pub const MIN_GOLD_MARGINAL: f32 = 1e-12;
/// Largest share of a gold marginal that may be lost to underflow in single precision.
const MAX_LOST_SHARE: f32 = 1.0 / (1 << 22) as f32;

/// Sums of one chunk.
pub struct ChunkSums {
    pub loss: f64,
    pub largest: f64,
    pub edges: Vec<f64>, // [edges kept] expected minus observed
    pub pairs: Vec<f64>, // [pair features]
    pub failed: Option<u32>,
}

/// Everything the chunks read.
pub struct Pass<'a> {
    pub setting: Setting<'a>,
    pub terms: &'a Terms,
    pub rows: &'a [Lane],
    pub rare: &'a [f32],
    pub edges: &'a Edges,
    pub nodes: &'a Nodes,
    pub rare_gradient: Shared<'a, f32>,
    /// Largest factor of the residuals of a sentence (or a token) of weight 1 or less. Infinite except for stochastic
    /// steps.
    pub clip: f64,
}

impl ChunkSums {
    pub fn new(edges: usize, pairs: usize) -> ChunkSums {
        let (edges, pairs) = (vec![0.0; edges], vec![0.0; pairs]);
        ChunkSums { loss: 0.0, largest: f64::NEG_INFINITY, edges, pairs, failed: None }
    }
}

dispatch!(
    pub fn run_chunk(pass: &Pass<'_>, c: usize, batches: &[Batch], gradient: &mut [Lane], scratch: &mut PassWork) -> ChunkSums = chunk_kernel
);

/// Scratch of one chunk.
#[derive(Default)]
pub struct PassWork {
    pub work: Work,
    extra: PointwiseWork,
    pub tile: Tile,
    fallback: Fallback64,
    pub fields: Vec<Field>,           // of each batch
    pub flagged: Vec<(usize, usize)>, // batch and lane of the sentences left to the fallback
    pub hot: Vec<f64>,                // sums of the hot rows
    all_edges: Vec<f64>,              // [L, L] edges of a fallback sentence, if edges are listed
}

/// Destination of the gradient of a chunk's batches.
pub struct Gradient<'a> {
    pub rows: &'a mut [Lane],
    pub rare: &'a mut [f32], // the chunk's copies
}

/// Scores of a batch, position by position.
struct Filling<'a> {
    pass: &'a Pass<'a>,
    batch: &'a Batch,
    gold: &'a mut [f64; WIDTH],
    tile: &'a mut Tile,
}

impl NodeScores for Filling<'_> {
    fn fill(&mut self, t: usize, psi: &mut [Lane]) {
        let (nodes, rows, rare) = (self.pass.nodes, self.pass.rows, self.pass.rare);
        fill_step(nodes, self.batch, t, rows, rare, &nodes.support, psi, self.gold, self.tile);
    }
}

/// The current batch.
struct CurrentBatch<'a> {
    batch: &'a Batch,
    i: usize, // its number in the group
    shape: Shape,
    weights: [f64; WIDTH], // of its sentences, 0 for lanes without one
}

/// Three phases over a group of batches: scores, recursions, gradient.
#[inline(always)]
fn chunk_kernel<S: Simd>(
    simd: S,
    pass: &Pass<'_>,
    c: usize,
    batches: &[Batch],
    gradient: &mut [Lane],
    scratch: &mut PassWork,
) -> ChunkSums {
    let (s, l) = (&pass.setting, pass.setting.layout.labels);
    let kept = pass.edges.len();
    let mut sums = ChunkSums::new(kept, s.layout.pair.len());
    scratch.flagged.clear();
    scratch.hot.clear();
    scratch.work.tiles.clear();
    if pass.edges.sparse.is_none() {
        scratch.work.tiles = batch::tiles(simd, l, &s.layout.edges);
    }
    scratch.work.reserve_pairs(kept);
    if testing::is_forced(CodePath::Dense) {
        scratch.work.tiles.fill(true);
    }
    count(simd, batches.len(), &scratch.work.tiles);
    testing::count(PathCount::Sparse, if pass.edges.sparse.is_some() { batches.len() } else { 0 });
    scratch.fields.resize_with(pass.nodes.group.min(batches.len()).max(scratch.fields.len()), Field::default);
    let copies = pass.nodes.copies(c);
    // SAFETY: no other thread works on chunk c.
    let rare = unsafe { pass.rare_gradient.slice(copies.start, copies.len()) };
    rare.fill(0.0);
    let forced = pass.setting.precise || testing::is_forced(CodePath::Log) || testing::is_forced(CodePath::Wide);
    let scaled = pass.edges.scaled && !s.data.has_edge_attributes() && s.once.is_none() && !forced;
    // With very many labels, scores and gradient are computed within the recursions, position by position.
    let stepwise = scaled && pass.nodes.is_wide() && !pass.terms.loss.is_pointwise() && pass.terms.partial.is_none();
    let mut done = 0;
    for group in batches.chunks(pass.nodes.group) {
        stop::check();
        for (i, batch) in group.iter().enumerate() {
            if stepwise {
                scratch.fields[i].reserve(batch, l);
            } else if scaled {
                score_batch(pass, batch, i, scratch);
            } else {
                scratch.flagged.extend((0..batch.sentences.len()).map(|lane| (i, lane)));
                scratch.fields[i].reserve(batch, l);
                scratch.fields[i].subtract.clear();
                scratch.fields[i].subtract.push(Lane::ZERO);
            }
        }
        if scaled {
            for (i, batch) in group.iter().enumerate() {
                let mut into = Gradient { rows: gradient, rare };
                run_batch(pass, batch, i, scratch, &mut sums, stepwise.then_some(&mut into));
            }
        }
        let needs_scatter = !stepwise || !scratch.flagged.is_empty();
        let sentences: usize = group.iter().map(|batch| batch.sentences.len()).sum();
        testing::count(PathCount::Lanes, sentences - scratch.flagged.len());
        run_fallback(pass, group, scratch, &mut sums);
        if needs_scatter {
            let PassWork { fields, tile, .. } = scratch;
            corpus_layout::scatter(pass.nodes, group, fields, gradient, rare, tile);
        }
        done += group.len();
        if done >= DRAIN_EVERY {
            done = 0;
            if scaled {
                batch::drain_pairs(pass.edges, &mut scratch.work.pairs[..kept], &mut sums.edges);
            }
            pass.nodes.drain_hot(gradient, &mut scratch.hot);
        }
    }
    if scaled && done > 0 {
        batch::drain_pairs(pass.edges, &mut scratch.work.pairs[..kept], &mut sums.edges);
    }
    sums
}

fn count<S: Simd>(_: S, batches: usize, tiles: &[bool]) {
    testing::count(PathCount::Chunks, 1);
    testing::count(PathCount::Batches, batches);
    testing::count(PathCount::Tiles, tiles.iter().filter(|&&asked| asked).count());
    let level = match S::LEVEL {
        Level::Avx512 => PathCount::Avx512,
        Level::Avx2 => PathCount::Avx2,
        Level::Baseline => PathCount::Baseline,
    };
    testing::count(level, 1);
}

/// Process the flagged sentences of a group in double precision.
fn run_fallback(pass: &Pass<'_>, group: &[Batch], scratch: &mut PassWork, sums: &mut ChunkSums) {
    let PassWork { fields, fallback, flagged, all_edges, .. } = scratch;
    for (i, lane) in flagged.drain(..) {
        let batch = &group[i];
        let weight = pass.terms.weights[batch.sentences[lane] as usize];
        if weight == 0.0 {
            let n = batch.lengths[lane] as usize * pass.setting.layout.labels;
            fields[i].nodes[..n].iter_mut().for_each(|x| x.0[lane] = 0.0);
            continue;
        }
        if pass.edges.sparse.is_some() {
            all_edges.clear();
            all_edges.resize(pass.setting.layout.labels.pow(2), 0.0);
        }
        let edges = if pass.edges.sparse.is_some() { &mut *all_edges } else { &mut sums.edges };
        let mut sink = Sink { nodes: &mut fields[i].nodes, edges, pairs: &mut sums.pairs };
        let found = fallback.run(&pass.setting, batch.sentences[lane], lane, weight, &mut sink);
        if let Some(sparse) = &pass.edges.sparse {
            for (sum, edge) in sums.edges.iter_mut().zip(sparse.pattern.edges()) {
                *sum += all_edges[edge];
            }
        }
        match found {
            Some((value, largest)) => {
                sums.loss += value;
                let of_sentence = if pass.terms.loss.is_pointwise() { 0.0 } else { weight.ln() };
                sums.largest = sums.largest.max(largest + of_sentence);
            }
            None => sums.failed = Some(batch.sentences[lane]),
        }
    }
}

/// Node scores of a batch, number i of its group.
fn score_batch(pass: &Pass<'_>, batch: &Batch, i: usize, scratch: &mut PassWork) {
    let PassWork { fields, tile, .. } = scratch;
    let field = &mut fields[i];
    field.reserve(batch, pass.nodes.labels);
    let support = &pass.nodes.support;
    corpus_layout::fill(pass.nodes, batch, pass.rows, pass.rare, support, &mut field.nodes, &mut field.gold, tile);
}

/// Process sixteen sentences by the scaled recursions, from node scores to residuals. Those out of range are flagged
/// instead. `pass` belongs to the batch's plan, and field i holds the batch's node scores. `stepwise`: field i need not
/// hold node scores, residuals are added to the gradient immediately, and field i is left zero.
pub fn run_batch(
    pass: &Pass<'_>,
    batch: &Batch,
    i: usize,
    scratch: &mut PassWork,
    sums: &mut ChunkSums,
    stepwise: Option<&mut Gradient<'_>>,
) {
    let (s, loss) = (&pass.setting, pass.terms.loss);
    let l = s.layout.labels;
    let weight = |i: usize| batch.sentences.get(i).map_or(0.0, |&s| pass.terms.weights[s as usize]);
    let shape = Shape { labels: l, lengths: batch.lengths };
    let current = CurrentBatch { batch, i, shape, weights: std::array::from_fn(weight) };
    let CurrentBatch { shape, weights, .. } = &current;
    scratch.work.reserve(shape);
    std::mem::swap(&mut scratch.work.psi, &mut scratch.fields[i].nodes);
    if pass.terms.partial.is_some() {
        run_partial(pass, &current, scratch, sums);
        let PassWork { work, fields, .. } = scratch;
        fields[i].subtract.clear();
        fields[i].subtract.push(Lane::ZERO);
        std::mem::swap(&mut work.psi, &mut fields[i].nodes);
        return;
    }
    let PassWork { work, fields, flagged, tile, .. } = &mut *scratch;
    let mut log_z = [0.0; WIDTH];
    if stepwise.is_some() {
        let gold = &mut fields[i].gold;
        *gold = [0.0; WIDTH];
        batch::forward(shape, pass.edges, work, &mut Filling { pass, batch, gold, tile }, &mut log_z);
    } else {
        batch::forward(shape, pass.edges, work, &mut Prefilled, &mut log_z);
    }
    let mut factor = Lane::ZERO;
    for (lane, &sentence) in batch.sentences.iter().enumerate() {
        let mut gold = fields[i].gold[lane];
        for &(edge, n) in pass.nodes.gold_edges(sentence) {
            gold += pass.edges.rounded_score(edge) * f64::from(n);
        }
        let beyond = exceeds_log_z(gold, log_z[lane], batch.lengths[lane] as usize);
        debug_assert!(!beyond, "sentence {sentence}: the gold path scores {gold}, log Z is {}", log_z[lane]);
        if log_z[lane].is_nan() || !gold.is_finite() || beyond {
            flagged.push((i, lane));
            batch::clear_lane(shape, work, lane);
        } else if !loss.is_pointwise() {
            let minus_log_p = log_z[lane] - gold;
            let large = minus_log_p + weights[lane].ln();
            sums.largest = sums.largest.max(large);
            if loss.is_out_of_range(weights[lane], minus_log_p, s.shift) {
                batch::clear_lane(shape, work, lane); // out of range: the caller shifts and retries
                continue;
            }
            let (value, slope) = loss.sequential(weights[lane], minus_log_p, s.shift);
            let slope = slope.min(pass.clip * weights[lane].max(1.0));
            if !fits(slope, work.largest[lane]) {
                flagged.push((i, lane));
                batch::clear_lane(shape, work, lane);
                continue;
            }
            sums.loss += value;
            factor.0[lane] = slope as f32;
        } else {
            factor.0[lane] = 1.0; // plain marginals first
        }
    }
    if loss.is_pointwise() {
        run_pointwise(pass, &current, &factor, scratch, sums);
        let PassWork { extra, fields, .. } = &mut *scratch;
        fields[i].subtract.clear();
        fields[i].subtract.extend_from_slice(&extra.omega[..shape.positions()]);
    } else {
        for (lane, &sentence) in batch.sentences.iter().enumerate() {
            for &(edge, n) in pass.nodes.gold_edges(sentence) {
                if let Some(at) = pass.edges.pair_index(edge) {
                    sums.edges[at] -= f64::from(factor.0[lane]) * f64::from(n);
                }
            }
        }
        fields[i].subtract.clear();
        if let Some(into) = stepwise {
            run_backward(pass, shape, &factor, work, Some(Scattering { batch, into, tile }));
            fields[i].subtract.push(Lane::ZERO);
            if !flagged.is_empty() {
                work.psi[..shape.positions() * l].fill(Lane::ZERO);
            }
        } else {
            run_backward(pass, shape, &factor, work, None);
            fields[i].subtract.push(factor);
        }
    }
    let PassWork { work, fields, .. } = scratch;
    std::mem::swap(&mut work.psi, &mut fields[i].nodes);
}

/// Whether the backward recursion of a sentence of this weight stays within float32. `largest` is the largest number at
/// weight 1.
fn fits(weight: f64, largest: f32) -> bool {
    weight.abs() * f64::from(largest) < f64::from(f32::MAX)
}

fn labels_of(data: &Dataset, sentence: u32) -> &[u16] {
    &data.gold[data.sentences[sentence as usize]..data.sentences[sentence as usize + 1]]
}

/// Adds the residuals of a batch to the gradient, position by position.
struct Scattering<'a, 'b> {
    batch: &'a Batch,
    into: &'a mut Gradient<'b>,
    tile: &'a mut Tile,
}

dispatch!(
    /// The backward recursion, weighted marginals in place of psi, and the pair expectations.
    fn run_backward(
        pass: &Pass<'_>, shape: &Shape, factor: &Lane, work: &mut Work, scattering: Option<Scattering<'_, '_>>
    ) = backward_kernel
);

#[inline(always)]
fn backward_kernel<S: Simd>(
    simd: S,
    pass: &Pass<'_>,
    shape: &Shape,
    factor: &Lane,
    work: &mut Work,
    mut scattering: Option<Scattering<'_, '_>>,
) {
    let l = shape.labels;
    for t in (0..shape.positions()).rev() {
        batch::backward_step::<S, true>(simd, shape, pass.edges, work, factor, t);
        if let (Some(sparse), 1..) = (&pass.edges.sparse, t) {
            sparse.add_step(simd, &work.alpha[(t - 1) * l..t * l], &work.gamma[t % 2 * l..][..l], &mut work.pairs);
        }
        if let Some(Scattering { batch, into, tile }) = &mut scattering {
            // SAFETY: the residuals are of this batch of the pass.
            unsafe { pass.nodes.scatter_step(simd, batch, t, &mut work.psi, factor, into.rows, into.rare, tile) };
        }
    }
    if pass.edges.sparse.is_some() {
        return;
    }
    batch::add_pairs(pass.edges, &work.tiles, &work.alpha, &work.gamma, &mut work.pairs, 1..shape.positions());
}

/// log Z - log Z under the known labels: two passes with opposite signs.
fn run_partial(pass: &Pass<'_>, current: &CurrentBatch<'_>, scratch: &mut PassWork, sums: &mut ChunkSums) {
    let CurrentBatch { batch, i, shape, weights } = current;
    let PassWork { work, extra, tile, flagged, .. } = scratch;
    let n = shape.positions() * shape.labels;
    let (mut all, mut given, mut unused) = ([0.0; WIDTH], [0.0; WIDTH], [0.0; WIDTH]);
    extra.reserve(shape);
    extra.v[..n].copy_from_slice(&work.psi[..n]);
    batch::forward(shape, pass.edges, work, &mut Prefilled, &mut all);
    let largest = work.largest;
    corpus_layout::fill(pass.nodes, batch, pass.rows, pass.rare, &pass.nodes.partial, &mut work.psi, &mut unused, tile);
    batch::forward(shape, pass.edges, work, &mut Prefilled, &mut given);
    let mut factor = Lane::ZERO;
    let mut flagged_lanes = Vec::new();
    for lane in 0..batch.sentences.len() {
        let fits = fits(weights[lane], work.largest[lane].max(largest[lane]));
        if all[lane].is_nan() || given[lane].is_nan() || !fits {
            flagged.push((*i, lane));
            flagged_lanes.push(lane);
            batch::clear_lane(shape, work, lane);
        } else {
            sums.loss += weights[lane] * (all[lane] - given[lane]);
            sums.largest = sums.largest.max(all[lane] - given[lane] + weights[lane].ln());
            factor.0[lane] = weights[lane] as f32;
        }
    }
    run_backward(pass, shape, &Lane(factor.0.map(|x| -x)), work, None);
    extra.p[..n].copy_from_slice(&work.psi[..n]);
    work.psi[..n].copy_from_slice(&extra.v[..n]);
    batch::forward(shape, pass.edges, work, &mut Prefilled, &mut all);
    for lane in flagged_lanes {
        batch::clear_lane(shape, work, lane);
    }
    run_backward(pass, shape, &factor, work, None);
    for (r, p) in work.psi[..n].iter_mut().zip(&extra.p[..n]) {
        r.0.iter_mut().zip(p.0).for_each(|(r, p)| *r += p);
    }
}

dispatch!(
    /// The pointwise losses: marginals, then the two recursions of conditional expectations.
    fn run_pointwise(pass: &Pass<'_>, current: &CurrentBatch<'_>, factor: &Lane, scratch: &mut PassWork, sums: &mut ChunkSums) =
        pointwise_kernel
);

#[inline(always)]
fn pointwise_kernel<S: Simd>(
    simd: S,
    pass: &Pass<'_>,
    current: &CurrentBatch<'_>,
    factor: &Lane,
    scratch: &mut PassWork,
    sums: &mut ChunkSums,
) {
    let CurrentBatch { batch, i, shape, weights } = current;
    let PassWork { work, extra, flagged, .. } = scratch;
    let (s, loss, l) = (&pass.setting, pass.terms.loss, shape.labels);
    let n = shape.positions() * l;
    extra.reserve(shape);
    for t in (0..shape.positions()).rev() {
        batch::backward_position(shape, pass.edges, work, factor, t);
        extra.p[t * l..(t + 1) * l].copy_from_slice(&work.p[..l]);
    }
    let gold: [&[u16]; WIDTH] =
        std::array::from_fn(|i| batch.sentences.get(i).map_or(&[][..], |&sentence| labels_of(s.data, sentence)));
    extra.omega[..shape.positions()].fill(Lane::ZERO);
    for (lane, labels) in gold.iter().enumerate() {
        if factor.0[lane] == 0.0 || labels.is_empty() {
            continue;
        }
        let p = |t: usize| extra.p[t * l + labels[t] as usize].0[lane];
        let small = MIN_GOLD_MARGINAL.max(work.lost[lane] / MAX_LOST_SHARE);
        if (0..labels.len()).any(|t| p(t).partial_cmp(&small) != Some(std::cmp::Ordering::Greater)) {
            flagged.push((*i, lane));
            batch::clear_lane(shape, work, lane);
            for v in extra.p[..n].iter_mut().chain(&mut work.gamma[..n]) {
                v.0[lane] = 0.0;
            }
            continue;
        }
        for t in 0..labels.len() {
            let p = f64::from(p(t)).min(1.0);
            let (value, omega) = loss.pointwise(weights[lane], p);
            let omega = omega.min(pass.clip * weights[lane].max(1.0));
            sums.loss += value;
            sums.largest = sums.largest.max(-p.ln());
            extra.omega[t].0[lane] = omega as f32;
        }
    }
    pointwise::residuals(simd, shape, pass.edges, work, extra, |t, lane| gold[lane][t] as usize);
    work.psi[..n].copy_from_slice(&extra.p[..n]);
    batch::add_pairs(pass.edges, &work.tiles, &extra.u, &work.gamma, &mut work.pairs, 1..shape.positions());
    batch::add_pairs(pass.edges, &work.tiles, &work.alpha, &extra.v, &mut work.pairs, 1..shape.positions());
}
