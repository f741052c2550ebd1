//! Dual block ascent for the log loss with a quadratic penalty: a certified optimum in a dozen passes.
//!
//! ```text
//! primal  P(w) = sum_i s_i (log Z_i(w) - H_i(w, y_i)) + l2 |w|^2
//! dual    D(q) = sum_i s_i entropy(q_i) - l2 |w(q)|^2,    w(q) = 1/(2 l2) sum_i s_i (F(y_i) - E_{q_i} F)
//! ```
//!
//! with one distribution q_i over the paths of each sentence. P(w) >= P* >= D(q) always holds, so the difference
//! bounds the distance of the weights from the optimum. A visit (`visit`) moves q_i towards p_i, the distribution of
//! the current weights, by a step in closed form, and the weights with it: w = w(q) at any time, without a learning
//! rate or decay. Of q_i only the expectations of features are kept, those of nodes [T, L] and the sums over pairs of
//! neighbours.
//!
//! For a certificate D is computed at the chains that have these nodes and are closest to p_i (`certify`), in double
//! precision and with bounds on its rounding.
//!
//! Sentences are visited in proportion to how far q_i is from p_i (gap sampling). Le Priol, Piche and Lacoste-Julien
//! 2018, "Adaptive stochastic dual coordinate ascent for conditional random fields".

mod certify;
mod epoch;
mod shard;
mod visit;

use crate::chain::limits::Limits;
use crate::chain::sums::sentence::{LaneFactors, SentenceSums};
use crate::dataset::layout::Layout;
use crate::dataset::Dataset;
use crate::error::{Error, Result};
use crate::machine::simd::{Lane, WIDTH};
use crate::machine::system::budget;
use crate::machine::system::paged::{PagedVec, Pages, Writer};
use crate::machine::system::shuffle::Generator;
use crate::scores::check::check_weights;
use crate::scores::online_layout::by_sentence::SentenceFeatures;
use crate::scores::online_layout::Cells;
pub use certify::{bounds, BoundTerms};
use std::sync::Arc;

/// Maximum number of visits of a sentence in an epoch.
const MAX_VISITS: f64 = 4.0;
/// Number of visits in an epoch, per sentence.
const VISITS_PER_SENTENCE: f64 = 0.6;
/// Share of the visits that is distributed by the gaps, and the power of the gaps.
const GAP_SAMPLING: (f64, f64) = (0.8, 0.7);

/// Number of sentences from which two threads share the visits.
const MIN_PARALLEL_SENTENCES: usize = 512;
/// A visit reads weights without the LAG - 1 visits before it, so that LAG threads can compute visits concurrently. A
/// larger lag needs more epochs, and identical sentences may overshoot: x' = x - h x_before is stable for every h < 1
/// if one step is missing, but not if two are.
const LAG: usize = 2;

/// State of one sentence's block of the dual.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Block {
    /// Chi-square distance of q_i and p_i at the last visit.
    pub distance: f64,
    /// Correction of the steps. The tokens' distances alone allow too long a step, since neighbours move together.
    pub kappa: f64,
    pub visits: u32,
}

/// State from which training resumes bit for bit.
#[derive(Clone, Debug, PartialEq)]
pub struct DualState {
    pub weights: Vec<f32>, // [cells]
    pub nodes: Vec<f32>,   // [tokens, L padded to lanes]
    pub pairs: Vec<f32>,   // [sentences, edge features]
    pub blocks: Vec<Block>,
    pub epochs: u64,
}

/// Summary of an epoch.
#[derive(Clone, Copy, Debug, Default)]
pub struct Visited {
    pub tokens: usize,
    /// Number of visits out of range for float32.
    pub failed: usize,
    /// Sum of the sentences' distances at their last visits.
    pub distance: f64,
}

/// Data that all visits read.
struct DualProblem {
    cells: Cells,
    by_sentence: SentenceFeatures,
    sample_weight: Vec<f64>,
    l2: f64,
    sweeps: usize,      // number of sweeps of an epoch, each in sentence order, or 0 for any order
    edge_at: Vec<u32>,  // [edge features] position in [L, width] lanes
    no_edge: Vec<Lane>, // [L, width] 0, or -infinity for missing edges and padding
    extent: certify::Extent,
    no_label: Box<Lane>, // like `no_edge`, for the last lane of node scores, boxed since Python objects are not aligned like lanes
}

pub struct Dual {
    problem: DualProblem,
    w: Vec<Lane>,         // [cells]
    nodes: PagedVec<f32>, // [tokens, L] marginals of q
    pairs: PagedVec<f32>, // [sentences, edge features] their pair sums
    blocks: Vec<Block>,   // [sentences]
    epochs: u64,
    pages: Option<Pages>, // files of large arrays
}

/// Buffers of a visit.
#[derive(Default)]
struct VisitScratch {
    sums: SentenceSums,
    factors: LaneFactors,
    moved: Vec<Lane>, // [T, width] scores of F(d)
    edges: Vec<Lane>, // [L, width] edge scores
}

impl VisitScratch {
    fn new(labels: usize) -> VisitScratch {
        let width = labels.div_ceil(WIDTH);
        VisitScratch {
            factors: LaneFactors::new(labels),
            edges: vec![Lane::ZERO; labels * width],
            ..VisitScratch::default()
        }
    }
}

impl Dual {
    /// `pages`: files for large arrays.
    pub fn new(
        data: Arc<Dataset>,
        layout: Arc<Layout>,
        l2: f64,
        weights: Vec<f64>,
        limits: &Limits,
        mut pages: Option<Pages>,
    ) -> Result<Dual> {
        let (n, l) = (data.len(), layout.labels);
        if data.has_edge_attributes() || data.node.dense().is_some() || limits.once.is_some() {
            return Err(Error::Value(
                "dual ascent can do neither edge attributes nor vectors nor labels that occur once; take lbfgs".into(),
            ));
        }
        if l2.partial_cmp(&0.0) != Some(std::cmp::Ordering::Greater) || !l2.is_finite() {
            return Err(Error::Value(format!("dual ascent needs l2 > 0, not {l2}; take lbfgs")));
        }
        let sample_weight = if weights.is_empty() { vec![1.0; n] } else { weights };
        check_weights(&sample_weight, n)?;
        let (width, edges) = (l.div_ceil(WIDTH), layout.edges.len());
        if pages.is_none() {
            budget::claim(
                &format!(
                    "the dual point of {} tokens, {l} labels and {n} sentences, {edges} label pairs",
                    data.tokens()
                ),
                budget::bytes(&[data.tokens(), l, 4]).saturating_add(budget::bytes(&[n, edges, 4])),
                "take optimizer='lbfgs'",
            )?;
        }
        budget::release_free_memory();
        let (cells, places) = Cells::new(data, &layout, &limits.forbidden, limits.support.as_ref())?;
        // Built before the arrays that are kept, since building takes as much memory again.
        let by_sentence = SentenceFeatures::new(&cells, &places, pages.as_mut())?;
        drop(places);
        pages.iter_mut().for_each(|pages| cells.data.node.add_to(pages));
        let mut zeros = |n: usize| {
            let mut zeros = Writer::new(pages.as_ref())?;
            zeros.fill(0.0, n)?;
            zeros.finish(pages.as_mut())
        };
        let (nodes, pairs) = (zeros(cells.data.tokens() * l)?, zeros(n * edges)?);
        budget::release_free_memory();
        let mut no_edge = vec![Lane([f32::NEG_INFINITY; WIDTH]); l * width];
        for pair in (0..l * l).filter(|&pair| cells.allowed[pair]) {
            no_edge[pair / l * width + pair % l / WIDTH].0[pair % l % WIDTH] = 0.0;
        }
        let place = |e: u32| (e as usize / l * width * WIDTH + e as usize % l) as u32;
        let last = l - (width - 1) * WIDTH;
        let mut out = Dual {
            w: vec![Lane::ZERO; cells.cells() / WIDTH],
            nodes,
            pairs,
            pages,
            blocks: vec![Block { distance: f64::INFINITY, kappa: 1.0, visits: 0 }; n],
            epochs: 0,
            problem: DualProblem {
                extent: certify::Extent::of(&cells),
                by_sentence,
                cells,
                sample_weight,
                l2,
                sweeps: 0,
                edge_at: layout.edges.iter().map(|&e| place(e)).collect(),
                no_edge,
                no_label: Box::new(Lane(std::array::from_fn(|i| if i < last { 0.0 } else { f32::NEG_INFINITY }))),
            },
        };
        out.set_gold_point(&layout);
        Ok(out)
    }

    /// Set the dual point to the gold labels, whose weights are 0.
    fn set_gold_point(&mut self, layout: &Layout) {
        let (cells, edges) = (&self.problem.cells, layout.edges.len());
        for (row, &y) in self.nodes.chunks_exact_mut(cells.labels).zip(&cells.data.gold) {
            row[y as usize] = 1.0;
        }
        for i in 0..self.blocks.len() {
            for y in cells.gold(i as u32).windows(2) {
                let pair = u32::from(y[0]) * layout.labels as u32 + u32::from(y[1]);
                if let Ok(e) = layout.edges.binary_search(&pair) {
                    self.pairs[i * edges + e] += 1.0;
                }
            }
        }
    }

    /// Sentences that an epoch visits, in order: all of them in the first, then those with large gaps more often.
    fn order(&self, seed: u64) -> Vec<u32> {
        let mut generator = Generator::new(seed, self.epochs, 0);
        let n = self.blocks.len();
        let mut order = Vec::with_capacity(n);
        if self.epochs == 0 {
            order.extend(0..n as u32);
        } else {
            let finite_distance = |b: &Block| if b.distance.is_finite() { b.distance } else { 0.0 };
            let power = |b: &Block| finite_distance(b).powf(GAP_SAMPLING.1);
            let sum: f64 = self.blocks.iter().map(power).sum();
            for (i, block) in self.blocks.iter().enumerate() {
                let by_gap = if sum > 0.0 { GAP_SAMPLING.0 * power(block) / sum } else { 0.0 };
                let visits =
                    (VISITS_PER_SENTENCE * n as f64 * (by_gap + (1.0 - GAP_SAMPLING.0) / n as f64)).min(MAX_VISITS);
                let whole = visits.floor();
                let times = whole as usize + usize::from(generator.unit() < visits - whole);
                order.extend(std::iter::repeat_n(i as u32, times));
            }
        }
        order.retain(|&i| self.problem.sample_weight[i as usize] > 0.0);
        generator.shuffle(&mut order);
        self.problem.sort_into_sweeps(&mut order);
        order
    }

    /// Run one epoch of visits. `together`: two threads of the pool, if available, share the visits, and each visit
    /// reads weights without the visit before it. By default this depends on the number of sentences. The bits do not
    /// depend on the number of threads.
    pub fn epoch(&mut self, seed: u64, together: Option<bool>) -> Visited {
        let lag = if together.unwrap_or(self.blocks.len() >= MIN_PARALLEL_SENTENCES) { LAG } else { 1 };
        let order = epoch::space_out(self.order(seed), lag);
        let mut out = epoch::run(self, &order, lag);
        self.epochs += 1;
        let weighted = self.problem.sample_weight.iter().zip(&self.blocks).filter(|(&s, _)| s > 0.0);
        out.distance = weighted.map(|(s, b)| s * b.distance).sum();
        out
    }

    /// P(w) of the current weights, in single precision. NaN if a sentence is out of range.
    pub fn primal(&self) -> f64 {
        certify::primal(self)
    }

    /// (P(w), a lower bound of all objectives) in double precision. P is NaN if a sentence is out of range.
    pub fn certificate(&self) -> (f64, f64) {
        bounds(&self.weights(), self.problem.l2, &self.terms())
    }

    /// Files of large arrays.
    pub fn pages(&self) -> Option<&Pages> {
        self.pages.as_ref()
    }

    /// Number of epochs so far.
    pub fn epochs(&self) -> u64 {
        self.epochs
    }

    /// Current weights, one per feature.
    pub fn weights(&self) -> Vec<f64> {
        self.problem.cells.gather(|cell| f64::from(self.w[cell / WIDTH].0[cell % WIDTH]))
    }

    /// All marginals, in lanes.
    fn padded(&self) -> Vec<Lane> {
        let mut out = Vec::new();
        visit::pad(&self.nodes, self.problem.cells.labels, &mut out);
        out
    }

    pub fn state(&self) -> DualState {
        let flat = |lanes: &[Lane]| lanes.iter().flat_map(|lane| lane.0).collect();
        DualState {
            weights: flat(&self.w),
            nodes: flat(&self.padded()),
            pairs: self.pairs.to_vec(),
            blocks: self.blocks.clone(),
            epochs: self.epochs,
        }
    }

    /// Resume from a state of a learner with the same data.
    pub fn restore(&mut self, state: DualState) -> Result<()> {
        let (labels, width) = (self.problem.cells.labels, self.problem.cells.width);
        let fits = state.weights.len() == self.w.len() * WIDTH
            && state.nodes.len() == self.nodes.len() / labels * width * WIDTH
            && state.pairs.len() == self.pairs.len()
            && state.blocks.len() == self.blocks.len();
        if !fits {
            return Err(Error::Value("the state belongs to other data; train again from the start".into()));
        }
        let fill = |lanes: &mut [Lane], from: &[f32]| {
            lanes.iter_mut().zip(from.chunks_exact(WIDTH)).for_each(|(lane, x)| lane.0.copy_from_slice(x));
        };
        fill(&mut self.w, &state.weights);
        for (to, from) in self.nodes.chunks_exact_mut(labels).zip(state.nodes.chunks_exact(width * WIDTH)) {
            to.copy_from_slice(&from[..labels]);
        }
        // In place, since the arrays may be in files.
        self.pairs.copy_from_slice(&state.pairs);
        self.blocks.copy_from_slice(&state.blocks);
        self.epochs = state.epochs;
        Ok(())
    }
}
