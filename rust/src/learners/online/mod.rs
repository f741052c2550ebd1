//! Online learners: whole epochs over a training set, one sentence at a time.
//!
//! `rule` has one step of each learner, `differences` the feature differences of one path and of several, `cost` the
//! cost of a wrong path, `program` the small quadratic program of k-best MIRA. Tokens and weights are those of
//! `scores::online_layout`.

pub mod cost;
mod differences;
pub mod kernel;
pub mod lookback;
pub mod program;
pub mod rule;

use crate::chain::limits::Limits;
use crate::dataset::layout::Layout;
use crate::dataset::Dataset;
use crate::error::{Error, Result};
use crate::learners::tally::Tally;
use crate::machine::system::budget;
use crate::machine::system::shuffle::Generator;
use crate::machine::system::stop;
use crate::scores::check::check_given_weights;
use crate::scores::online_layout::{OnlineWeights, TokenCells};
use cost::{Cost, CostOptions};
use rayon::prelude::*;
use rule::{Rule, Task, Worker};
use std::sync::Arc;

/// Number of sentences that one thread decodes at a time in a batch epoch.
const SENTENCES_PER_TASK: usize = 256;

/// Schedule of epochs over a training set.
#[derive(Clone, Copy, Debug)]
pub struct EpochOptions {
    /// Collect the sums for the average.
    pub average: bool,
    /// Perceptron: decode a whole epoch under the same weights, then apply all updates. A step is then an epoch.
    pub batch: bool,
    pub shuffle: bool,
    pub seed: u64,
    /// More than one: iterative parameter mixing.
    pub shards: usize,
}

/// Training options.
pub struct OnlineOptions {
    pub rule: Rule,
    pub cost_options: CostOptions,
    pub epochs: EpochOptions,
    pub limits: Limits,
    pub sample_weight: Vec<f32>, // [N], or empty for all 1
}

/// One part of the training set with its own weights, between two mixings.
struct Shard {
    online_weights: OnlineWeights,
    worker: Worker,
    order: Vec<u32>,
}

/// A learner and its training state. The weights are a function of the data, the options and the number of epochs
/// alone.
pub struct Online {
    task: Task,
    options: EpochOptions,
    epochs: u64,
    features: usize,
    online_weights: OnlineWeights,
    worker: Worker,
    shards: Vec<Shard>,
}

/// State from which training resumes, with one number per feature in each array.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OnlineState {
    pub weights: Vec<f64>,
    pub sums: Vec<f64>,     // every change times the steps before it, empty without averaging
    pub variance: Vec<f64>, // empty except for AROW
    pub steps: f64,
    pub epochs: u64,
}

impl OnlineState {
    /// Reject a state that does not belong to a learner of this number of features.
    pub(crate) fn check(&self, features: usize) -> Result<()> {
        for (name, v, optional) in
            [("weights", &self.weights, false), ("sums", &self.sums, true), ("variance", &self.variance, true)]
        {
            if !(v.len() == features || (optional && v.is_empty())) || v.iter().any(|x| !x.is_finite()) {
                return Err(Error::Value(format!("{name} of a state need {features} finite numbers, got {}", v.len())));
            }
        }
        if !(self.steps >= 0.0 && self.steps.is_finite()) || self.variance.iter().any(|&v| v <= 0.0) {
            return Err(Error::Value("a state needs steps >= 0 and variances > 0".into()));
        }
        Ok(())
    }
}

/// Bytes per weight: itself, its sum, its variance.
const BYTES_PER_CELL: usize = 20;

impl Online {
    pub fn new(data: Arc<Dataset>, layout: &Layout, options: OnlineOptions) -> Result<Online> {
        check(&data, layout, &options)?;
        claim_gram(&data, layout.labels, options.rule.k())?;
        let (limits, epochs) = (options.limits, options.epochs);
        let tokens = TokenCells::new(data, layout, &limits.forbidden, limits.support.as_ref())?;
        let augment = options.cost_options.rows(tokens.labels, tokens.width);
        let (l, n) = (layout.labels, tokens.data.len());
        let online_weights = OnlineWeights::new(&tokens, epochs.average, options.rule.variance());
        // Fixed assignment: sentence i belongs to shard i mod S.
        let parts = if epochs.batch { 1 } else { epochs.shards.clamp(1, n.max(1)) };
        let bytes = budget::bytes(&[parts, tokens.cells(), BYTES_PER_CELL]);
        budget::claim(&format!("{parts} shards"), bytes, "use fewer shards")?;
        let shard = |s: usize| Shard {
            online_weights: online_weights.clone(),
            worker: Worker::new(l),
            order: (0..n as u32).filter(|&i| i as usize % parts == s).collect(),
        };
        let shards = if parts > 1 { (0..parts).map(shard).collect() } else { Vec::new() };
        let task = Task {
            tokens,
            rule: options.rule,
            cost: options.cost_options.cost,
            entities: options.cost_options.entities.unwrap_or_default(),
            augment,
            sample_weight: options.sample_weight,
            once: limits.once,
        };
        Ok(Online {
            task,
            options: epochs,
            epochs: 0,
            features: layout.len(),
            online_weights,
            worker: Worker::new(l),
            shards,
        })
    }

    pub fn epochs(&self) -> u64 {
        self.epochs
    }

    /// Number of steps so far: sentences, or epochs in batch mode.
    pub fn steps(&self) -> f64 {
        self.online_weights.clock
    }

    pub fn features(&self) -> usize {
        self.features
    }

    /// Approximate number of steps of a nanosecond in an epoch: lists of k paths, updates of a path's features and,
    /// with shards, the mixing.
    pub fn epoch_steps(&self) -> usize {
        let (data, l) = (&self.task.tokens.data, self.task.tokens.labels);
        let mixed = self.shards.len().saturating_mul(20 * self.features);
        let visited = data.tokens().saturating_mul(l * l + 100).saturating_add(50 * data.node.csr().ids.len());
        visited.saturating_mul(4 * self.task.rule.k().max(1)).saturating_add(mixed)
    }

    /// Run one pass over the sentences, or over those of `order`.
    pub fn epoch(&mut self, order: Option<Vec<u32>>) -> Result<Tally> {
        let n = self.task.tokens.data.len();
        if let Some(&s) = order.iter().flatten().find(|&&s| s as usize >= n) {
            return Err(Error::Value(format!("sentence {s} of the order is not one of the {n} sentences")));
        }
        if order.is_some() && !self.shards.is_empty() {
            return Err(Error::Value("an order of one's own needs one shard: several have orders of their own".into()));
        }
        let tally = if self.options.batch {
            self.batch_epoch(order.unwrap_or_else(|| (0..n as u32).collect()))?
        } else if self.shards.is_empty() {
            let order = order.unwrap_or_else(|| self.order((0..n as u32).collect(), 0));
            rule::learn(&self.task, &mut self.online_weights, &mut self.worker, &order)?
        } else {
            self.mixed_epoch()?
        };
        self.epochs += 1;
        Ok(tally)
    }

    /// Run the steps `begin..end` of the next epoch, in the order in which it would visit the sentences. The epoch
    /// ends with its last step. Consecutive parts are equal to `epoch`, bit for bit.
    pub fn part(&mut self, begin: usize, end: usize) -> Result<Tally> {
        let n = self.task.tokens.data.len();
        if self.options.batch || !self.shards.is_empty() {
            return Err(Error::Value("parts of an epoch need steps of one sentence, and one shard".into()));
        }
        if begin > end || end > n {
            return Err(Error::Value(format!("steps {begin} to {end} are none of an epoch of {n} sentences")));
        }
        let order = self.order((0..n as u32).collect(), 0);
        let tally = rule::learn(&self.task, &mut self.online_weights, &mut self.worker, &order[begin..end])?;
        self.epochs += u64::from(end == n);
        Ok(tally)
    }

    fn order(&self, mut order: Vec<u32>, shard: u64) -> Vec<u32> {
        if self.options.shuffle {
            Generator::new(self.options.seed, self.epochs, shard).shuffle(&mut order);
        }
        order
    }

    /// Decode everything under the same weights, in parallel, then apply the updates in the order of the sentences.
    fn batch_epoch(&mut self, order: Vec<u32>) -> Result<Tally> {
        let (task, online_weights, stop) = (&self.task, &self.online_weights, stop::current());
        let decoded: Vec<Result<(Tally, Vec<u16>)>> = order
            .par_chunks(SENTENCES_PER_TASK)
            .map(|part| {
                let _guard = stop.enter();
                let mut guesses = Vec::new();
                let mut worker = Worker::new(task.tokens.labels);
                Ok((rule::decode(task, online_weights, &mut worker, part, &mut guesses)?, guesses))
            })
            .collect();
        let decoded = decoded.into_iter().collect::<Result<Vec<_>>>()?;
        let mut tally = Tally::default();
        for (part, (sums, guesses)) in order.chunks(SENTENCES_PER_TASK).zip(decoded) {
            tally.add(&sums);
            let mut at = 0;
            for &s in part {
                let gold = task.tokens.gold(s);
                let guess = &guesses[at..at + gold.len()];
                at += gold.len();
                if gold != guess {
                    let weight = task.sample_weight.get(s as usize).copied().unwrap_or(1.0);
                    let online_weights = &mut self.online_weights;
                    task.tokens
                        .difference(s, gold, guess, |cell, x| online_weights.add(&task.tokens, cell, weight * x));
                }
            }
        }
        self.online_weights.clock += 1.0;
        Ok(tally)
    }

    /// Iterative parameter mixing (McDonald, Hall & Mann 2010). Every shard learns independently from the same
    /// weights, and the mean of their final weights is the start of the next epoch. The average is over all weights of
    /// all shards.
    fn mixed_epoch(&mut self) -> Result<Tally> {
        let (task, start, stop) = (&self.task, &self.online_weights, stop::current());
        let order = |mut order: Vec<u32>, shard: u64| {
            if self.options.shuffle {
                Generator::new(self.options.seed, self.epochs, shard).shuffle(&mut order);
            }
            order
        };
        let tallies: Vec<Result<Tally>> = self
            .shards
            .par_iter_mut()
            .enumerate()
            .with_max_len(1)
            .map(|(s, shard)| {
                let _guard = stop.enter();
                shard.online_weights.clone_from(start);
                shard.online_weights.u.fill(0.0);
                shard.online_weights.clock = 0.0;
                let mut sorted = std::mem::take(&mut shard.order);
                sorted.sort_unstable();
                shard.order = order(sorted, s as u64);
                rule::learn(task, &mut shard.online_weights, &mut shard.worker, &shard.order)
            })
            .collect();
        let mut tally = Tally::default();
        for t in tallies {
            tally.add(&t?);
        }
        self.mix_shards();
        Ok(tally)
    }

    fn mix_shards(&mut self) {
        let (shards, online_weights) = (&self.shards, &mut self.online_weights);
        let parts = shards.len() as f64;
        let before = online_weights.clock;
        online_weights.clock += shards.iter().map(|s| s.online_weights.clock).sum::<f64>();
        for cell in 0..self.task.tokens.cells() {
            let mean = (shards.iter().map(|s| f64::from(s.online_weights.w(cell))).sum::<f64>() / parts) as f32;
            if self.options.average {
                // The sum of the weights after every step is steps * w - u, for a shard and for the whole.
                let of = |b: &OnlineWeights| b.clock * f64::from(b.w(cell)) - b.u[cell];
                let old = before * f64::from(online_weights.w(cell)) - online_weights.u[cell];
                let sum = old + shards.iter().map(|s| of(&s.online_weights)).sum::<f64>();
                online_weights.u[cell] = online_weights.clock * f64::from(mean) - sum;
            }
            online_weights.set_w(cell, mean);
        }
        for (cell, v) in online_weights.variance.iter_mut().enumerate() {
            *v = shards.iter().map(|s| s.online_weights.variance[cell]).sum::<f64>() / parts;
        }
        online_weights.refresh(&self.task.tokens);
    }

    /// Current weights, or their average over all steps, one per feature.
    pub fn weights(&self, averaged: bool) -> Result<Vec<f64>> {
        let online_weights = &self.online_weights;
        if averaged && !self.options.average {
            return Err(Error::Value("the average was not collected; make the learner with average=True".into()));
        }
        let clock = online_weights.clock.max(1.0);
        Ok(self.task.tokens.gather(|c| {
            let w = f64::from(online_weights.w(c));
            if averaged {
                w - online_weights.u[c] / clock
            } else {
                w
            }
        }))
    }

    pub fn state(&self) -> OnlineState {
        let (online_weights, tokens) = (&self.online_weights, &self.task.tokens);
        let gather = |v: &[f64]| if v.is_empty() { Vec::new() } else { tokens.gather(|c| v[c]) };
        OnlineState {
            weights: tokens.gather(|c| f64::from(online_weights.w(c))),
            sums: gather(&online_weights.u),
            variance: gather(&online_weights.variance),
            steps: online_weights.clock,
            epochs: self.epochs,
        }
    }

    /// Resume from a state returned by `state`, or from other weights with the remaining arrays empty.
    pub fn restore(&mut self, state: &OnlineState) -> Result<()> {
        state.check(self.features)?;
        let (online_weights, tokens) = (&mut self.online_weights, &self.task.tokens);
        tokens.scatter(&state.weights, |c, x| online_weights.set_w(c, x as f32));
        if !online_weights.u.is_empty() {
            online_weights.u.fill(0.0);
            let u = &mut online_weights.u;
            tokens.scatter(&state.sums, |c, x| u[c] = x);
        }
        if !online_weights.variance.is_empty() {
            let v = &mut online_weights.variance;
            tokens.scatter(&state.variance, |c, x| v[c] = x);
        }
        online_weights.clock = state.steps;
        online_weights.refresh(tokens);
        self.epochs = state.epochs;
        Ok(())
    }
}

/// Reject lists of k paths per step whose program does not fit in memory: a Gram matrix of k by k.
pub(crate) fn claim_gram(data: &Dataset, labels: usize, k: usize) -> Result<()> {
    let longest = data.sentences.windows(2).map(|s| s[1] - s[0]).max().unwrap_or(0);
    let found = if k < 2 { 0 } else { budget::power(labels, longest, k) };
    let bytes = budget::bytes(&[found, found, 2 * size_of::<f64>()]);
    budget::claim(&format!("steps against the {found} best paths (k={k})"), bytes, "use a smaller k")
}

pub(crate) fn check(data: &Dataset, layout: &Layout, options: &OnlineOptions) -> Result<()> {
    let value = |message: String| Err(Error::Value(message));
    options.rule.check()?;
    let cost_options = &options.cost_options;
    if options.epochs.batch && options.rule != Rule::Perceptron {
        return value("batch mode is the perceptron's; the other learners need the weights of the step before".into());
    }
    if cost_options.augment && !cost_options.cost.is_sum() {
        return value("cost-augmented decoding needs a cost that is a sum over tokens: accuracy or weighted".into());
    }
    if cost_options.cost.needs_entities()
        && cost_options.entities.as_ref().is_none_or(|e| e.kind.len() != layout.labels)
    {
        return value(format!("this cost reads entities: give their table for {} labels", layout.labels));
    }
    let amounts: &[f64] = match cost_options.cost {
        Cost::F1 { cap } => &[cap],
        Cost::PrecisionRecall { alpha } => &[alpha, 1.0 - alpha],
        Cost::Weighted { alpha, beta, gamma } => &[alpha, beta, gamma],
        Cost::Accuracy | Cost::Root | Cost::ZeroOne | Cost::Function(_) => &[],
    };
    if amounts.iter().any(|x| !x.is_finite() || *x < 0.0) {
        return value(
            "the numbers of a cost must be finite and not negative (alpha of precision_recall at most 1)".into(),
        );
    }
    if let Some(groups) = &options.limits.once {
        groups.check_gold(&data.sentences, &data.gold, layout.labels)?;
    }
    check_given_weights(&options.sample_weight, data.len())
}
