//! The Hidden Markov SVM (Altun, Tsochantaridis & Hofmann 2003, and Altun & Hofmann 2003, algorithm 1).
//!
//! ```text
//! min 1/2 ||w||^2 + sum_i C_i xi_i     1/2 [H(y_i) - H(y)] >= b_iy - xi_i   for all y != y_i
//! max sum alpha_iy b_iy - 1/2 ||w||^2  w = 1/2 sum alpha_iy d_iy,   d_iy = S(y_i) - S(y)
//! ```
//!
//! with b = 1, or the Hamming distance of y from gold (margin rescaling: Taskar, Guestrin & Koller 2003). Each
//! sentence has a working set of wrong paths. An epoch decodes every sentence in turn for its most violating path,
//! adds that to the set and optimises the set's alphas. Then it processes the sets a few times without decoding, which
//! costs a fraction (Shah, Kolmogorov & Lampert 2015). Finally it measures the duality gap with all weights fixed, in
//! parallel.
//!
//! The gap compares the weights as used in scores with alphas whose weights were recomputed, so that it is a bound in
//! spite of rounding.

pub mod block;
pub mod kernel;
pub mod options;
pub mod saved;
pub mod space;

use crate::chain::viterbi::sentence::{best_path, best_paths, Steps};
use crate::machine::system::stop;

use crate::error::{Error, Result};
use crate::learners::tally::not_finite;
use crate::machine::simd::{Lane, WIDTH};
use crate::machine::system::shuffle::Generator;
use block::Visit;
use options::SvmOptions;
use rayon::prelude::*;
use space::{Space, SpaceWork};

/// Maximum number of passes over the working sets in an epoch.
const PASSES: usize = 10;
/// Another pass follows while one gains at least this share of the gain of the decoding pass.
const MIN_PASS_GAIN: f64 = 0.1;
/// Number of epochs that a path without alpha is kept.
const MAX_IDLE_EPOCHS: u8 = 2;
/// A sentence that was satisfied this many times is not visited until the gap finds it violated.
const MAX_SATISFIED: u8 = 2;
/// Number of sentences that one thread decodes at a time.
const SENTENCES_PER_TASK: usize = 64;

/// Wrong paths of one sentence with their alphas.
#[derive(Clone, Default)]
struct WorkingSet {
    paths: Vec<u16>, // [k, T]
    alpha: Vec<f64>, // [k]
    bound: Vec<f64>, // [k] b
    gram: Vec<f64>,  // [k, k] d_i.d_j / 4
    idle: Vec<u8>,   // [k] epochs without alpha
    at: Vec<u32>,    // positions where some path differs from gold, ascending
}

/// State of training after an epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SolverState {
    pub primal: f64,
    pub dual: f64,
    pub norm: f64,       // ||w||^2
    pub slack: f64,      // sum of xi_i, unweighted: bounds the number of wrong sentences
    pub violated: usize, // sentences with xi > 0
    pub paths: usize,    // in all working sets, with alpha > 0
    pub active: usize,   // sentences with a path of alpha > 0
    pub decoded: usize,  // sentences the decoding pass visited
    /// One slack per path: some sentence may have more violating paths than `most`, whose slacks do not count.
    pub truncated: bool,
}

/// Wrong paths of a sentence under some weights.
#[derive(Default)]
struct WrongPaths {
    truncated: bool,
    paths: Vec<u16>,     // [k, T]
    violation: Vec<f64>, // [k] b - 1/2 w.d
}

/// A training set and its alphas.
pub struct Solver<S: Space> {
    pub space: S,
    options: SvmOptions,
    sets: Vec<WorkingSet>,
    quiet: Vec<u8>, // [N] times satisfied in a row
    cost: Vec<Lane>,
    epsilon: f64, // violations below it are ignored
    epochs: u64,
    work: SpaceWork,
    found: WrongPaths,
    gradient: Vec<f64>,
    before: Vec<f64>,
    change: Vec<f64>,
    products: Vec<f64>,
}

impl<S: Space> Solver<S> {
    pub fn new(space: S, labels: usize, options: SvmOptions) -> Result<Solver<S>> {
        let n = space.data().len();
        options.check(n)?;
        let width = labels.div_ceil(WIDTH);
        let mut cost = Vec::new();
        if options.rescale {
            // 1/2 [H(y_i) - H(y)] >= Hamming - xi: twice the distance is added to H.
            cost = vec![Lane::ZERO; labels * width];
            for y in 0..labels {
                for z in (0..labels).filter(|&z| z != y) {
                    cost[y * width + z / WIDTH].0[z % WIDTH] = 2.0;
                }
            }
        }
        Ok(Solver {
            space,
            sets: vec![WorkingSet::default(); n],
            quiet: vec![0; n],
            cost,
            epsilon: 1e-3 * options.tolerance.min(1.0),
            epochs: 0,
            work: SpaceWork::new(labels),
            found: WrongPaths::default(),
            gradient: Vec::new(),
            before: Vec::new(),
            change: Vec::new(),
            products: Vec::new(),
            options,
        })
    }

    pub fn epochs(&self) -> u64 {
        self.epochs
    }

    /// C of a sentence, with its weight.
    fn c(&self, sentence: usize) -> f64 {
        self.options.c * self.options.sample_weight.get(sentence).copied().unwrap_or(1.0)
    }

    /// Paths with alpha > 0: sentence, path, alpha.
    pub fn alphas(&self) -> impl Iterator<Item = (u32, &[u16], f64)> {
        alphas(&self.sets)
    }

    /// Run one epoch. Return the state of training after it.
    pub fn epoch(&mut self) -> Result<SolverState> {
        let n = self.sets.len();
        let mut order: Vec<u32> = (0..n as u32)
            .filter(|&i| {
                self.quiet[i as usize] < MAX_SATISFIED && self.c(i as usize) > 0.0 && !self.space.gold(i).is_empty()
            })
            .collect();
        self.shuffle_order(&mut order, 0);
        let decoded = order.len();
        let mut first = 0.0;
        for (at, &i) in order.iter().enumerate() {
            let next = order.get(at + 1).copied().unwrap_or(i);
            first += self.visit(i, Some(next))?.rise;
        }
        for pass in 1..=PASSES {
            order.clear();
            order.extend((0..n as u32).filter(|&i| !self.sets[i as usize].alpha.is_empty()));
            self.shuffle_order(&mut order, pass as u64);
            let mut rise = 0.0;
            for &i in &order {
                rise += self.visit(i, None)?.rise;
            }
            if rise <= MIN_PASS_GAIN * first {
                break;
            }
        }
        self.drop_idle();
        let mut state = self.measure()?;
        state.decoded = decoded;
        self.epochs += 1;
        Ok(state)
    }

    fn shuffle_order(&self, order: &mut [u32], pass: u64) {
        if self.options.shuffle {
            Generator::new(self.options.seed, self.epochs, pass).shuffle(order);
        }
    }

    /// Optimise the alphas of a sentence. With `decode`, the sentence visited next, search for violating paths first.
    fn visit(&mut self, i: u32, decode: Option<u32>) -> Result<Visit> {
        stop::check();
        let (at, c) = (i as usize, self.c(i as usize));
        match decode {
            Some(next) => {
                self.space.run(&mut self.work, i, next, &self.cost);
                let k = self.options.counted().min(self.sets[at].alpha.len() + 1) + 1;
                let mut found = std::mem::take(&mut self.found);
                find_wrong_paths(&self.space, &self.options, &mut self.work, i, k, &mut found)?;
                let worst = self.fill_gradient(i);
                self.extend(i, &found, if self.options.slack.is_shared() { worst } else { 0.0 });
                self.found = found;
            }
            None => {
                self.space.refill(&mut self.work, i, &self.sets[at].at, &self.cost);
                self.fill_gradient(i);
            }
        }
        let set = &mut self.sets[at];
        if set.alpha.is_empty() {
            return Ok(Visit::default());
        }
        self.before.clone_from(&set.alpha);
        let gain = block::ascend(
            &set.gram,
            &mut self.gradient,
            &mut set.alpha,
            c,
            self.options.counted() as f64,
            self.epsilon,
        );
        if gain.rise > 0.0 {
            self.change.clear();
            self.change.extend(set.alpha.iter().zip(&self.before).map(|(new, old)| 0.5 * (new - old)));
            self.space.add(i, &set.paths, &self.change);
        }
        Ok(gain)
    }

    /// Gradient of the dual in the alphas of a sentence whose scores are in the chart: b - 1/2 w.d of each path.
    /// Return the largest, at least 0.
    fn fill_gradient(&mut self, i: u32) -> f64 {
        let (set, gold) = (&self.sets[i as usize], self.space.gold(i));
        let steps = self.space.steps(&self.work);
        self.gradient.clear();
        let mut worst = 0.0f64;
        for path in set.paths.chunks_exact(gold.len()) {
            let violation = self.options.violation(&self.work, steps, gold, path);
            worst = worst.max(violation);
            self.gradient.push(violation);
        }
        worst
    }

    /// Add the found paths that violate by more than `slack` to the working set.
    fn extend(&mut self, i: u32, found: &WrongPaths, slack: f64) {
        let gold = self.space.gold(i);
        let n = gold.len();
        for (j, &violation) in found.violation.iter().enumerate() {
            let path = &found.paths[j * n..(j + 1) * n];
            let set = &mut self.sets[i as usize];
            if violation <= slack + self.epsilon || set.paths.chunks_exact(n).any(|p| p == path) {
                continue;
            }
            set.paths.extend_from_slice(path);
            self.space.products(i, &set.paths, &mut self.products);
            set.push(self.options.bound(self.space.gold(i), path), &self.products);
            set.update_positions(self.space.gold(i));
            self.gradient.push(violation);
        }
    }

    /// Drop paths that have had no alpha for a while.
    fn drop_idle(&mut self) {
        for (i, set) in self.sets.iter_mut().enumerate() {
            let k = set.alpha.len();
            for j in 0..k {
                set.idle[j] = if set.alpha[j] > 0.0 { 0 } else { set.idle[j].saturating_add(1) };
            }
            if set.idle.iter().any(|&x| x >= MAX_IDLE_EPOCHS) {
                set.drop_idle(self.space.gold(i as u32));
            }
        }
    }

    /// Primal and dual at the weights of the alphas.
    fn measure(&mut self) -> Result<SolverState> {
        let mut state = SolverState::default();
        let mut linear = 0.0;
        for set in &self.sets {
            let active_paths = set.alpha.iter().filter(|&&a| a > 0.0).count();
            state.paths += active_paths;
            state.active += usize::from(active_paths > 0);
            linear += set.alpha.iter().zip(&set.bound).map(|(a, b)| a * b).sum::<f64>();
        }
        let half = |(i, path, alpha)| (i, path, 0.5 * alpha);
        let sets = &self.sets;
        let (exact, used_norm) = self.space.recompute_weights(&mut alphas(sets).map(half));
        (state.norm, state.dual) = (exact, linear - 0.5 * exact);
        let (space, options, cost) = (&self.space, &self.options, &self.cost);
        let (n, k) = (self.sets.len(), options.counted().saturating_add(1));
        let labels = self.work.chart.labels;
        let tasks: Vec<usize> = (0..n.div_ceil(SENTENCES_PER_TASK)).collect();
        let stop = stop::current();
        let found_paths: Vec<Result<Vec<WrongPaths>>> = tasks
            .par_iter()
            .map_init(
                || SpaceWork::new(labels),
                |work, &task| {
                    let _guard = stop.enter();
                    let end = ((task + 1) * SENTENCES_PER_TASK).min(n);
                    (task * SENTENCES_PER_TASK..end)
                        .map(|i| {
                            stop::check();
                            let mut found = WrongPaths::default();
                            if !space.gold(i as u32).is_empty() {
                                space.run(work, i as u32, (i + 1).min(end - 1) as u32, cost);
                                find_wrong_paths(space, options, work, i as u32, k, &mut found)?;
                            }
                            Ok(found)
                        })
                        .collect()
                },
            )
            .collect();
        let mut slack = 0.0;
        let mut i = 0;
        for part in found_paths {
            for found in part? {
                let xi: f64 = found.violation.iter().filter(|&&x| x > 0.0).sum();
                slack += self.c(i) * xi;
                state.slack += xi;
                state.violated += usize::from(xi > 0.0);
                state.truncated |= found.truncated;
                self.quiet[i] =
                    if xi > 0.0 || !self.sets[i].alpha.is_empty() { 0 } else { self.quiet[i].saturating_add(1) };
                i += 1;
            }
        }
        state.primal = 0.5 * used_norm + slack;
        if !(state.primal.is_finite() && state.dual.is_finite()) {
            return Err(Error::Training("the objective is not finite; scale real-valued attributes down".into()));
        }
        // A block below this share of the target gap is as good as solved.
        let total: f64 = (0..n).map(|i| self.c(i)).sum();
        let target_gap = self.options.tolerance * state.primal.max(f64::MIN_POSITIVE);
        self.epsilon = (0.1 * target_gap / total.max(f64::MIN_POSITIVE)).clamp(1e-9, 1e-2);
        Ok(state)
    }
}

fn alphas(sets: &[WorkingSet]) -> impl Iterator<Item = (u32, &[u16], f64)> {
    sets.iter().enumerate().flat_map(|(i, set)| {
        let n = set.paths.len() / set.alpha.len().max(1);
        (0..set.alpha.len())
            .filter(|&j| set.alpha[j] > 0.0)
            .map(move |j| (i as u32, &set.paths[j * n..(j + 1) * n], set.alpha[j]))
    })
}

impl SvmOptions {
    /// b of a path.
    fn bound(&self, gold: &[u16], path: &[u16]) -> f64 {
        match self.rescale {
            true => gold.iter().zip(path).filter(|(a, b)| a != b).count() as f64,
            false => 1.0,
        }
    }

    /// b - 1/2 w.d of a path. With rescaled margins the chart's node scores include twice b.
    fn violation(&self, work: &SpaceWork, steps: &Steps, gold: &[u16], path: &[u16]) -> f64 {
        (if self.rescale { 0.0 } else { 1.0 }) - 0.5 * work.chart.margin(steps, gold, path)
    }
}

/// The k - 1 worst wrong paths of a sentence whose scores are in the chart.
fn find_wrong_paths<S: Space>(
    space: &S,
    options: &SvmOptions,
    work: &mut SpaceWork,
    i: u32,
    k: usize,
    found: &mut WrongPaths,
) -> Result<()> {
    let gold = space.gold(i);
    let n = gold.len();
    found.paths.clear();
    found.violation.clear();
    let mut path = std::mem::take(&mut work.path);
    path.resize(n, 0);
    let score = best_path(&work.chart, space.steps(work), &mut path);
    if !score.is_finite() {
        return Err(not_finite(i));
    }
    let wrong = path != gold;
    found.truncated = false;
    if options.slack.is_shared() && (wrong || options.rescale) {
        if wrong {
            found.paths.extend_from_slice(&path);
        }
    } else {
        let (mut chart, mut scores) = (std::mem::take(&mut work.chart), std::mem::take(&mut work.scores));
        let mut paths = std::mem::take(&mut work.paths);
        best_paths(&mut chart, space.steps(work), k, &mut scores, &mut paths);
        for path in paths.chunks_exact(n).filter(|&p| p != gold).take(k - 1) {
            found.paths.extend_from_slice(path);
        }
        (work.chart, work.scores, work.paths) = (chart, scores, paths);
        found.truncated = !options.slack.is_shared() && work.scores.len() == k;
    }
    work.path = path;
    let steps = space.steps(work);
    for path in found.paths.chunks_exact(n) {
        found.violation.push(options.violation(work, steps, gold, path));
    }
    // There may be more only if the last path examined still violates.
    found.truncated &= found.violation.last().is_some_and(|&x| x > 0.0);
    Ok(())
}

impl WorkingSet {
    /// Add a path, whose labels are in place: its bound, and its products with all paths, itself last.
    fn push(&mut self, bound: f64, products: &[f64]) {
        let k = self.alpha.len();
        let mut gram = Vec::with_capacity((k + 1) * (k + 1));
        for i in 0..k {
            gram.extend_from_slice(&self.gram[i * k..(i + 1) * k]);
            gram.push(0.25 * products[i]);
        }
        gram.extend(products.iter().map(|x| 0.25 * x));
        self.gram = gram;
        self.alpha.push(0.0);
        self.bound.push(bound);
        self.idle.push(0);
    }

    /// Drop the paths that were idle for too long.
    fn drop_idle(&mut self, gold: &[u16]) {
        let (k, n) = (self.alpha.len(), gold.len());
        let kept: Vec<usize> = (0..k).filter(|&j| self.idle[j] < MAX_IDLE_EPOCHS).collect();
        self.gram =
            kept.iter().flat_map(|&i| kept.iter().map(move |&j| (i, j))).map(|(i, j)| self.gram[i * k + j]).collect();
        self.paths = kept.iter().flat_map(|&j| self.paths[j * n..(j + 1) * n].iter().copied()).collect();
        self.alpha = kept.iter().map(|&j| self.alpha[j]).collect();
        self.bound = kept.iter().map(|&j| self.bound[j]).collect();
        self.idle = kept.iter().map(|&j| self.idle[j]).collect();
        self.at.clear();
        self.update_positions(gold);
    }

    /// Record the positions where a path differs from gold.
    fn update_positions(&mut self, gold: &[u16]) {
        let n = gold.len();
        let differs = |t: usize| self.paths.chunks_exact(n).any(|p| p[t] != gold[t]);
        self.at = (0..n).filter(|&t| differs(t)).map(|t| t as u32).collect();
    }
}
