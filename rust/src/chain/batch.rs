//! Chains whose node scores are given as one array [B, T, L], as a network computes them: log Z, expectations and best paths,
//! sixteen sentences side by side. What `lanes` flags is done again in double precision and log space.

use crate::chain::best;
use crate::chain::edges::Edges;
use crate::chain::lanes::{self, Shape, Work};
use crate::chain::lattice::Scores;
use crate::chain::log::{self, Trellis};
use crate::machine::dispatch::{dispatch, FlushToZero};
use crate::machine::find::Find;
use crate::machine::shared::Shared;
use crate::machine::simd::{Lane, Simd, WIDTH};
use crate::machine::stop;
use rayon::prelude::*;

/// Groups of sixteen sentences that one task takes; sums over pairs are added task by task.
const TASK: usize = 2;

/// Sentence b scores label y of token t < lengths[b] by node[b, t, y]; start and end scores come on top.
pub struct Chains<'a> {
    pub labels: usize,
    pub time: usize,
    pub node: &'a [f32],    // [B, T, L]
    pub lengths: &'a [u32], // [B]
    pub edge: &'a [f64],    // [L, L]
    pub start: &'a [f64],
    pub end: &'a [f64],
}

/// Expected counts of label pairs, of first and of last labels, each sentence weighted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Expected {
    pub edge: Vec<f64>,
    pub start: Vec<f64>,
    pub end: Vec<f64>,
}

/// What is asked, and where it goes.
enum Output<'a> {
    LogZ(Shared<'a, f64>),
    /// Weights [B]; weighted marginals [B, T, L].
    Marginals(&'a [f64], Shared<'a, f32>),
    /// Labels [B, T]; scores [B].
    Paths(Shared<'a, i64>, Shared<'a, f64>),
}

struct Job<'a> {
    chains: &'a Chains<'a>,
    edges: Edges,
    output: Output<'a>,
}

impl Chains<'_> {
    /// log Z of every sentence; 0 of an empty one, -infinity where no path is allowed.
    pub fn log_z(&self) -> Vec<f64> {
        let mut out = vec![0.0; self.lengths.len()];
        self.run(Output::LogZ(Shared::new(&mut out)));
        out
    }

    /// Marginals of tokens times the sentences' weights, [B, T, L], 0 beyond an end; and sums over all sentences.
    pub fn expect(&self, weights: &[f64]) -> (Vec<f32>, Expected) {
        let mut out = vec![0.0; self.node.len()];
        let sums = self.run(Output::Marginals(weights, Shared::new(&mut out)));
        (out, sums)
    }

    /// Best paths [B, T], -1 beyond an end, and their scores; of equals the lower label.
    pub fn best(&self) -> (Vec<i64>, Vec<f64>) {
        let mut paths = vec![-1; self.lengths.len() * self.time];
        let mut scores = vec![0.0; self.lengths.len()];
        self.run(Output::Paths(Shared::new(&mut paths), Shared::new(&mut scores)));
        (paths, scores)
    }

    fn run(&self, output: Output<'_>) -> Expected {
        let mut order: Vec<u32> = (0..self.lengths.len() as u32).filter(|&b| self.lengths[b as usize] > 0).collect();
        order.sort_by_key(|&b| std::cmp::Reverse(self.lengths[b as usize]));
        let job = Job { chains: self, edges: Edges::new(self.labels, self.edge), output };
        let stop = stop::current();
        let parts: Vec<Expected> = order
            .par_chunks(TASK * WIDTH)
            .map(|sentences| {
                let (_small_is_zero, _mine) = (FlushToZero::new(), stop.enter());
                groups(&job, sentences)
            })
            .collect();
        let l = self.labels;
        let mut all = Expected { edge: vec![0.0; l * l], start: vec![0.0; l], end: vec![0.0; l] };
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
            s += self.start[y];
        }
        if t + 1 == self.lengths[b] as usize {
            s += self.end[y];
        }
        s
    }
}

dispatch!(fn groups(job: &Job<'_>, sentences: &[u32]) -> Expected = groups_kernel);

/// # Safety
/// The machine has the instructions of `S`; no other thread works on these sentences.
#[inline(always)]
unsafe fn groups_kernel<S: Find>(job: &Job<'_>, sentences: &[u32]) -> Expected {
    let chains = job.chains;
    let l = chains.labels;
    let mut work = Work::default();
    let mut sums = Expected::default();
    if matches!(job.output, Output::Marginals(..)) {
        sums = Expected { edge: vec![0.0; l * l], start: vec![0.0; l], end: vec![0.0; l] };
    }
    for group in sentences.chunks(WIDTH) {
        stop::look();
        let length = |i: usize| group.get(i).map_or(0, |&b| chains.lengths[b as usize]);
        let shape = Shape { labels: l, lengths: std::array::from_fn(length) };
        work.reserve(&shape);
        for v in &mut work.psi[..shape.positions() * l] {
            *v = Lane::ZERO;
        }
        for (lane, &b) in group.iter().enumerate() {
            let b = b as usize;
            for t in 0..chains.lengths[b] as usize {
                for y in 0..l {
                    work.psi[t * l + y].0[lane] = chains.score(b, t, y) as f32;
                }
            }
        }
        match &job.output {
            Output::Paths(paths, scores) => {
                let found = best::viterbi::<S>(&shape, &job.edges, &mut work, |lane, t, y| {
                    if let Some(&b) = group.get(lane) {
                        paths.set(b as usize * chains.time + t, i64::from(y));
                    }
                });
                for (lane, &b) in group.iter().enumerate() {
                    scores.set(b as usize, f64::from(found[lane]));
                    if !found[lane].is_finite() {
                        path_alone(chains, b as usize, paths, scores);
                    }
                }
            }
            Output::LogZ(out) => {
                let mut log_z = [f64::NAN; WIDTH];
                if job.edges.scaled {
                    lanes::forward(&shape, &job.edges, &mut work, &mut log_z);
                }
                for (lane, &b) in group.iter().enumerate() {
                    let z = log_z[lane];
                    out.set(b as usize, if z.is_nan() { alone(chains, b as usize).1.log_z } else { z });
                }
            }
            Output::Marginals(weights, out) => {
                expect_group::<S>(job, group, &shape, &mut work, (weights, out), &mut sums);
            }
        }
    }
    sums
}

/// # Safety
/// As for `groups_kernel`.
#[inline(always)]
unsafe fn expect_group<S: Simd>(
    job: &Job<'_>,
    group: &[u32],
    shape: &Shape,
    work: &mut Work,
    (weights, out): (&[f64], &Shared<'_, f32>),
    sums: &mut Expected,
) {
    let (chains, l) = (job.chains, shape.labels);
    let mut log_z = [f64::NAN; WIDTH];
    if job.edges.scaled {
        lanes::forward(shape, &job.edges, work, &mut log_z);
    }
    for (lane, &b) in group.iter().enumerate() {
        if log_z[lane].is_nan() {
            if job.edges.scaled {
                lanes::clear_lane(shape, work, lane);
            }
            expect_alone(chains, b as usize, weights[b as usize], out, sums);
        }
    }
    if !job.edges.scaled {
        return;
    }
    let one = Lane([1.0; WIDTH]);
    for t in (0..shape.positions()).rev() {
        lanes::backward_step::<S, false>(shape, &job.edges, work, &one, t);
        for (lane, &b) in group.iter().enumerate() {
            let (b, n) = (b as usize, shape.lengths[lane] as usize);
            if t >= n || log_z[lane].is_nan() {
                continue;
            }
            let row = out.slice((b * chains.time + t) * l, l);
            for (y, cell) in row.iter_mut().enumerate() {
                let p = weights[b] * f64::from(work.p[y].0[lane]);
                *cell = p as f32;
                sums.start[y] += if t == 0 { p } else { 0.0 };
                sums.end[y] += if t + 1 == n { p } else { 0.0 };
            }
        }
    }
    work.reserve_pairs(l * l);
    for v in &mut work.pairs[..l * l] {
        *v = Lane::ZERO;
    }
    lanes::add_pairs(shape, &job.edges, &[], &work.alpha, &work.gamma, &mut work.pairs);
    let weight: [f64; WIDTH] =
        std::array::from_fn(
            |i| if log_z[i].is_nan() { 0.0 } else { group.get(i).map_or(0.0, |&b| weights[b as usize]) },
        );
    for ((lane, &m), sum) in work.pairs[..l * l].iter().zip(&job.edges.m).zip(&mut sums.edge) {
        if m > 0.0 {
            let all: f64 = lane.0.iter().zip(&weight).map(|(&x, w)| f64::from(x) * w).sum();
            *sum += all * f64::from(m);
        }
    }
}

/// Node scores and forward sums of one sentence in log space.
fn alone(chains: &Chains<'_>, b: usize) -> (Vec<f64>, Trellis) {
    let n = chains.lengths[b] as usize;
    let node: Vec<f64> =
        (0..n * chains.labels).map(|k| chains.score(b, k / chains.labels, k % chains.labels)).collect();
    let mut trellis = Trellis::default();
    trellis.forward(&Scores { labels: chains.labels, node: &node, edge: chains.edge });
    (node, trellis)
}

/// # Safety
/// No other thread works on the sentence.
unsafe fn expect_alone(chains: &Chains<'_>, b: usize, weight: f64, out: &Shared<'_, f32>, sums: &mut Expected) {
    let (l, n) = (chains.labels, chains.lengths[b] as usize);
    let (node, mut trellis) = alone(chains, b);
    if trellis.log_z == f64::NEG_INFINITY {
        return;
    }
    let scores = Scores { labels: l, node: &node, edge: chains.edge };
    trellis.backward(&scores);
    let cells = out.slice(b * chains.time * l, n * l);
    for (at, cell) in cells.iter_mut().enumerate() {
        let p = weight * trellis.node_marginal(at);
        *cell = p as f32;
        sums.start[at % l] += if at < l { p } else { 0.0 };
        sums.end[at % l] += if at >= (n - 1) * l { p } else { 0.0 };
    }
    for t in 1..n {
        trellis.add_pairs(&scores, t, weight, &mut sums.edge);
    }
}

/// # Safety
/// No other thread works on the sentence.
unsafe fn path_alone(chains: &Chains<'_>, b: usize, paths: &Shared<'_, i64>, scores: &Shared<'_, f64>) {
    let (node, _) = alone(chains, b);
    let mut path = Vec::new();
    let score = log::viterbi(&Scores { labels: chains.labels, node: &node, edge: chains.edge }, &mut path);
    scores.set(b, score);
    for (t, &y) in path.iter().enumerate() {
        paths.set(b * chains.time + t, i64::from(y));
    }
}
