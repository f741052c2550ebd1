//! Chains whose node scores are given as one array [B, T, L], such as the output of a neural network. Computes log Z or
//! the log-likelihood of tags, its gradient, and best paths, for sixteen sentences at a time. Sentences flagged by
//! `sums::batch` are repeated in double precision and log space.

mod gold;
mod rows;

use crate::chain::edges::Edges;
use crate::chain::emissions::rows::{LaneRows, Reading};
use crate::chain::lattice::Scores;
use crate::chain::sums;
use crate::chain::sums::batch::{NodeScores, Shape, Work};
use crate::chain::sums::log64::Trellis;
use crate::chain::viterbi;
use crate::chain::viterbi::double::Viterbi64;
use crate::machine::simd::dispatch::{dispatch, FlushToZero};
use crate::machine::simd::{Lane, Simd, WIDTH};
use crate::machine::system::shared::Shared;
use crate::machine::system::stop;
use rayon::prelude::*;
use std::cell::RefCell;

/// Maximum number of tasks per batch, independent of the number of threads. Sums over pairs are added in task order.
const TASKS: usize = 32;
/// Work (node scores times labels) that one thread finishes before another one wakes up: less than a millisecond.
const MAX_SERIAL_WORK: usize = 1 << 21;
/// Lanes of scratch that a thread keeps for the next call.
const MAX_KEPT_LANES: usize = 1 << 16;

/// Batch of sentences. Sentence b has node score node[b, t, y] for label y at token t < lengths[b], plus start and end
/// scores.
pub struct Chains<'a> {
    pub labels: usize,
    pub time: usize,
    pub node: &'a [f32],    // [B, T, L]
    pub lengths: &'a [u32], // [B]
    pub edge: &'a [f64],    // [L, L]
    pub start: &'a [f32],
    pub end: &'a [f32],
    pub tags: Option<&'a [i64]>, // [B, T]
}

/// Weighted expected counts of label pairs, first labels and last labels.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Expected {
    pub edge: Vec<f64>,
    pub start: Vec<f64>,
    pub end: Vec<f64>,
}

impl Expected {
    fn new(labels: usize) -> Expected {
        Expected { edge: vec![0.0; labels * labels], start: vec![0.0; labels], end: vec![0.0; labels] }
    }
}

/// Requested results and their destinations. Values are [B].
enum ChainOutput<'a> {
    Values(Shared<'a, f64>),
    /// Values, the weight of each sentence [B], and weighted marginals, or tags less marginals, [B, T, L].
    Gradient(Shared<'a, f64>, &'a [f64], Shared<'a, f32>),
    /// Labels [B, T] and scores [B].
    Paths(Shared<'a, i64>, Shared<'a, f64>),
}

struct Job<'a> {
    chains: &'a Chains<'a>,
    edges: Edges,
    output: ChainOutput<'a>,
}

thread_local! {
    static WORK: RefCell<Work> = RefCell::default();
}

impl Chains<'_> {
    /// Whether there is so little work that the calling thread does all of it.
    pub fn is_small(&self) -> bool {
        self.node.len().saturating_mul(self.labels + 8) < MAX_SERIAL_WORK
    }

    /// Return log Z of every sentence, or the log-likelihood of its tags: 0 for an empty sentence, -infinity if no path
    /// is allowed.
    pub fn values(&self) -> Vec<f64> {
        let mut out = vec![0.0; self.lengths.len()];
        self.run(ChainOutput::Values(Shared::new(&mut out)));
        out
    }

    /// Return the values and the gradient of their weighted sum. The gradient by node scores is written to `out` [B, T,
    /// L], 0 past the end of a sentence. The gradient by the other scores is returned. For log Z it consists of
    /// marginals and expected counts, for a log-likelihood of tags less these.
    pub fn gradient(&self, weights: &[f64], out: &mut [f32]) -> (Vec<f64>, Expected) {
        let mut values = vec![0.0; self.lengths.len()];
        let row = self.time * self.labels;
        for (cells, &n) in out.chunks_exact_mut(row.max(1)).zip(self.lengths) {
            cells[n as usize * self.labels..].fill(0.0);
        }
        let sums = self.run(ChainOutput::Gradient(Shared::new(&mut values), weights, Shared::new(out)));
        (values, sums)
    }

    /// Write best paths to `paths` [B, T], -1 past the end of a sentence, and return their scores. Ties: the lower
    /// label.
    pub fn best(&self, paths: &mut [i64]) -> Vec<f64> {
        for (cells, &n) in paths.chunks_exact_mut(self.time.max(1)).zip(self.lengths) {
            cells[n as usize..].fill(-1);
        }
        let mut scores = vec![0.0; self.lengths.len()];
        self.run(ChainOutput::Paths(Shared::new(paths), Shared::new(&mut scores)));
        scores
    }

    fn run(&self, output: ChainOutput<'_>) -> Expected {
        let mut order: Vec<u32> = (0..self.lengths.len() as u32).filter(|&b| self.lengths[b as usize] > 0).collect();
        order.sort_by_key(|&b| std::cmp::Reverse(self.lengths[b as usize]));
        let job = Job { chains: self, edges: Edges::new(self.labels, self.edge), output };
        let stop = stop::current();
        let groups_per_task = order.len().div_ceil(WIDTH).div_ceil(TASKS).max(1);
        let task = |sentences: &[u32]| {
            let (_flush_to_zero, _guard) = (FlushToZero::new(), stop.enter());
            WORK.with_borrow_mut(|work| {
                // SAFETY: every sentence is in one task.
                let found = unsafe { groups(&job, sentences, work) };
                if work.psi.len() > MAX_KEPT_LANES {
                    *work = Work::default();
                }
                found
            })
        };
        let parts: Vec<Expected> = match self.is_small() {
            true => order.chunks(groups_per_task * WIDTH).map(task).collect(),
            false => order.par_chunks(groups_per_task * WIDTH).map(task).collect(),
        };
        let mut all = Expected::new(self.labels);
        for part in &parts {
            let sums = [(&mut all.edge, &part.edge), (&mut all.start, &part.start), (&mut all.end, &part.end)];
            for (sum, x) in sums.into_iter().flat_map(|(to, from)| to.iter_mut().zip(from)) {
                *sum += x;
            }
        }
        all
    }

    /// Score of label y at token t of a sentence, start and end included.
    #[inline(always)]
    fn score(&self, b: usize, t: usize, y: usize) -> f64 {
        let mut s = f64::from(self.node[(b * self.time + t) * self.labels + y]);
        if t == 0 {
            s += f64::from(self.start[y]);
        }
        if t + 1 == self.lengths[b] as usize {
            s += f64::from(self.end[y]);
        }
        s
    }
}

/// # Safety
/// No other thread works on these sentences.
unsafe fn groups(job: &Job<'_>, sentences: &[u32], work: &mut Work) -> Expected {
    let chains = job.chains;
    let l = chains.labels;
    let mut sums = Expected::default();
    if matches!(job.output, ChainOutput::Gradient(..)) {
        sums = Expected::new(l);
    }
    for group in sentences.chunks(WIDTH) {
        stop::check();
        let length = |i: usize| group.get(i).map_or(0, |&b| chains.lengths[b as usize]);
        let shape = Shape { labels: l, lengths: std::array::from_fn(length) };
        work.reserve(&shape);
        match &job.output {
            ChainOutput::Paths(paths, scores) => {
                let found = find(job, group, &shape, work, paths);
                for (lane, &b) in group.iter().enumerate() {
                    scores.set(b as usize, found[lane]);
                    if !found[lane].is_finite() {
                        path_in_log_space(chains, b as usize, paths, scores);
                    }
                }
            }
            ChainOutput::Values(out) => {
                let log_z = forward(job, group, &shape, work);
                for (lane, &b) in group.iter().enumerate() {
                    let value = match log_z[lane].is_nan() {
                        true => chains.value(b as usize, forward_in_log_space(chains, b as usize).1.log_z, chains.edge),
                        false => chains.value(b as usize, log_z[lane], &job.edges.rounded),
                    };
                    out.set(b as usize, value);
                }
            }
            ChainOutput::Gradient(values, weights, out) => {
                gradient_of_group(job, group, &shape, work, (values, weights, out), &mut sums);
            }
        }
    }
    sums
}

/// Find the best paths of a group and their scores. No other thread may write to its part of `paths`.
fn find(job: &Job<'_>, group: &[u32], shape: &Shape, work: &mut Work, paths: &Shared<'_, i64>) -> [f64; WIDTH] {
    let chains = job.chains;
    let mut reading = Reading::new(chains, shape, LaneRows::new(chains, group));
    for t in 0..shape.positions() {
        reading.fill(t, &mut work.psi);
    }
    let mut scores = viterbi::batch::viterbi(shape, &job.edges, work);
    for (lane, &b) in group.iter().enumerate() {
        // SAFETY: no other thread writes to this sentence's part.
        let path = unsafe { paths.slice(b as usize * chains.time, shape.lengths[lane] as usize) };
        path.iter_mut().zip(&work.path).for_each(|(y, labels)| *y = i64::from(labels[lane]));
    }
    for (_, score) in scores.iter_mut().enumerate().filter(|(lane, _)| reading.nan >> lane & 1 != 0) {
        *score = f64::NAN;
    }
    scores
}

/// log Z of a group by the scaled recursions, NaN if a sentence is out of their range.
fn forward(job: &Job<'_>, group: &[u32], shape: &Shape, work: &mut Work) -> [f64; WIDTH] {
    let mut log_z = [f64::NAN; WIDTH];
    if job.edges.scaled {
        let mut reading = Reading::new(job.chains, shape, LaneRows::new(job.chains, group));
        sums::batch::forward(shape, &job.edges, work, &mut reading, &mut log_z);
        for (_, z) in log_z.iter_mut().enumerate().filter(|(lane, _)| reading.nan >> lane & 1 != 0) {
            *z = f64::NAN;
        }
    }
    log_z
}

/// # Safety
/// No other thread works on these sentences.
unsafe fn gradient_of_group(
    job: &Job<'_>,
    group: &[u32],
    shape: &Shape,
    work: &mut Work,
    (values, weights, out): (&Shared<'_, f64>, &[f64], &Shared<'_, f32>),
    sums: &mut Expected,
) {
    let chains = job.chains;
    let mut rows = LaneRows::new(chains, group);
    let log_z = forward(job, group, shape, work);
    // With tags, the gradient is gold less expected counts.
    let sign = if chains.tags.is_some() { -1.0 } else { 1.0 };
    let mut weight = [0.0; WIDTH];
    for (lane, &b) in group.iter().enumerate() {
        let b = b as usize;
        if log_z[lane].is_nan() {
            if job.edges.scaled {
                sums::batch::clear_lane(shape, work, lane);
            }
            rows.counts[lane] = 0;
            let log_z = expect_in_log_space(chains, b, sign * weights[b], out, sums);
            values.set(b, chains.value(b, log_z, chains.edge));
        } else {
            weight[lane] = sign * weights[b];
            values.set(b, chains.value(b, log_z[lane], &job.edges.rounded));
        }
    }
    if job.edges.scaled {
        expect_group(job, shape, work, (&rows, &weight, out), sums);
    }
    for &b in group {
        chains.count(b as usize, weights[b as usize], out, sums);
    }
}

/// Positions per pair sum, few enough that both factors are still in the L1 cache.
const PAIR_BLOCK: usize = 8;
/// Rows of marginals, weights of the lanes, and destination of the marginals.
type MarginalRows<'a> = (&'a LaneRows, &'a [f64; WIDTH], &'a Shared<'a, f32>);

dispatch!(
    /// Backward recursion after `forward`. Marginals overwrite psi and are transposed from there to their rows in 16 x
    /// 16 squares. No other thread may write to these rows.
    fn expect_group(job: &Job<'_>, shape: &Shape, work: &mut Work, into: MarginalRows<'_>, sums: &mut Expected) = expect_kernel
);

#[inline(always)]
fn expect_kernel<S: Simd>(
    simd: S,
    job: &Job<'_>,
    shape: &Shape,
    work: &mut Work,
    (rows, weight, out): MarginalRows<'_>,
    sums: &mut Expected,
) {
    let (l, positions) = (shape.labels, shape.positions());
    work.reserve_pairs(l * l);
    for v in &mut work.pairs[..l * l] {
        *v = Lane::ZERO;
    }
    let one = Lane([1.0; WIDTH]);
    let factor = Lane(weight.map(|w| w as f32));
    let mut written = (positions * l).next_multiple_of(WIDTH);
    for t in (0..positions).rev() {
        sums::batch::backward_position(shape, &job.edges, work, &one, t);
        for (p, psi) in work.p[..l].iter().zip(&mut work.psi[t * l..]) {
            simd.store(simd.mul(simd.load(p), simd.load(&factor)), psi);
        }
        if t == 0 {
            add_weighted(&work.p[..l], weight, &mut sums.start);
        }
        if !shape.full(t + 1) {
            let ends = shape.ends(t);
            let last: [f64; WIDTH] = std::array::from_fn(|i| weight[i] * f64::from(ends.0[i]));
            add_weighted(&work.p[..l], &last, &mut sums.end);
        }
        if t % PAIR_BLOCK == 1 {
            let end = (t + PAIR_BLOCK).min(positions);
            sums::batch::add_pairs(&job.edges, &[], &work.alpha, &work.gamma, &mut work.pairs, t..end);
        }
        while written >= t * l + WIDTH {
            written -= WIDTH;
            // SAFETY: no other thread writes to the rows of these sentences.
            unsafe { rows.write(simd, &work.psi[written..], written, out) };
        }
    }
    for ((lane, &m), sum) in work.pairs[..l * l].iter().zip(&job.edges.m).zip(&mut sums.edge) {
        *sum += weighted(lane, weight) * f64::from(m);
    }
}

/// Weighted sum of a lane, by pairwise summation of halves.
#[inline(always)]
fn weighted(lane: &Lane, weight: &[f64; WIDTH]) -> f64 {
    let half: [f64; WIDTH / 2] = std::array::from_fn(|i| {
        let j = i + WIDTH / 2;
        f64::from(lane.0[i]) * weight[i] + f64::from(lane.0[j]) * weight[j]
    });
    let four: [f64; 4] = std::array::from_fn(|i| half[i] + half[i + 4]);
    (four[0] + four[2]) + (four[1] + four[3])
}

#[inline(always)]
fn add_weighted(p: &[Lane], weight: &[f64; WIDTH], sums: &mut [f64]) {
    for (lane, sum) in p.iter().zip(sums) {
        *sum += weighted(lane, weight);
    }
}

/// Node scores and forward sums of one sentence in log space. log Z is NaN if a score is.
fn forward_in_log_space(chains: &Chains<'_>, b: usize) -> (Vec<f64>, Trellis) {
    let n = chains.lengths[b] as usize;
    let node: Vec<f64> =
        (0..n * chains.labels).map(|k| chains.score(b, k / chains.labels, k % chains.labels)).collect();
    let mut trellis = Trellis::default();
    trellis.forward(&Scores { labels: chains.labels, node: &node, edge: chains.edge });
    if node.iter().any(|x| x.is_nan()) {
        trellis.log_z = f64::NAN;
    }
    (node, trellis)
}

/// Write all marginals of a sentence and return its log Z. All are NaN if a score is.
///
/// # Safety
/// No other thread works on the sentence.
unsafe fn expect_in_log_space(
    chains: &Chains<'_>,
    b: usize,
    weight: f64,
    out: &Shared<'_, f32>,
    sums: &mut Expected,
) -> f64 {
    let (l, n) = (chains.labels, chains.lengths[b] as usize);
    let (node, mut trellis) = forward_in_log_space(chains, b);
    let cells = out.slice(b * chains.time * l, n * l);
    if trellis.log_z == f64::NEG_INFINITY {
        cells.fill(0.0);
        return trellis.log_z;
    }
    if trellis.log_z.is_nan() {
        cells.fill(f32::NAN);
        for sum in [&mut sums.edge, &mut sums.start, &mut sums.end] {
            sum.fill(f64::NAN);
        }
        return trellis.log_z;
    }
    let scores = Scores { labels: l, node: &node, edge: chains.edge };
    trellis.backward(&scores);
    for (at, cell) in cells.iter_mut().enumerate() {
        let p = weight * trellis.node_marginal(at);
        *cell = p as f32;
        sums.start[at % l] += if at < l { p } else { 0.0 };
        sums.end[at % l] += if at >= (n - 1) * l { p } else { 0.0 };
    }
    for t in 1..n {
        trellis.add_pairs(&scores, t, weight, &mut sums.edge);
    }
    trellis.log_z
}

/// # Safety
/// No other thread works on the sentence.
unsafe fn path_in_log_space(chains: &Chains<'_>, b: usize, paths: &Shared<'_, i64>, scores: &Shared<'_, f64>) {
    let (node, trellis) = forward_in_log_space(chains, b);
    let mut path = Vec::new();
    let score = Viterbi64::default().run(&Scores { labels: chains.labels, node: &node, edge: chains.edge }, &mut path);
    scores.set(b, if trellis.log_z.is_nan() { f64::NAN } else { score });
    for (t, &y) in path.iter().enumerate() {
        paths.set(b * chains.time + t, i64::from(y));
    }
}
