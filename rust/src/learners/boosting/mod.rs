//! Sequence boosting: AdaBoost.MR for label sequences (Altun, Hofmann & Johnson 2002).
//!
//! ```text
//! minimise  N = sum_i w_i (e^{l_i} - 1),  l_i = -log P(y_i | x_i),  one weight per round
//! ```
//!
//! or, over all label sequences, sum_i w_i e^{l_i}, which has the same minimiser but other bounds, and so another path
//! to it. The pointwise loss can replace the sequential one (`loss`).
//!
//! A round takes the feature whose bound on N after the best step is smallest. `state` keeps the sums that all bounds
//! need and updates them by differences. `select` finds the feature, `bound` has the formulas, `search` refines a
//! step, and `exact` computes Z itself.

pub mod bound;
pub mod cells;
pub mod chain;
pub mod exact;
pub mod gather;
pub mod index;
pub mod joint;
pub mod line;
pub mod loss;
pub mod pass;
pub mod pointwise;
pub mod saved;
pub mod search;
pub mod select;
pub mod state;

use crate::dataset::layout::Layout;
use crate::dataset::Dataset;
use crate::error::{Error, Result};
use crate::machine::system::stop;
use bound::{Bound, Gain, StepLimits};
use joint::{FeatureStep, JointSteps};
use loss::{Boosted, Target};
use select::{Chosen, Draw, Selector, Wanted};
use state::State;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// With several features per round: minimum gain of the last feature relative to that of the first, and number of
/// features examined for each that a round may take. The second pair is for jointly found steps, which separate good
/// features from the others.
const SEPARATE_SELECTION: (f64, usize) = (0.1, 16);
const JOINT_SELECTION: (f64, usize) = (0.01, 4);
/// Maximum factor between successive scales of overlapping steps, and maximum number of changes.
const MAX_GROWTH: f64 = 4.0;
const MAX_TRIALS: usize = 3;
/// A scale closer to the previous one than this is not evaluated.
const MIN_CHANGE: f64 = 0.1;

/// How features and their steps are chosen.
#[derive(Clone, Copy, Debug)]
pub struct RoundOptions {
    pub bound: Bound,
    /// Refine the bound's step by line search.
    pub line_search: bool,
    /// Find the steps of features that share sentences jointly. Otherwise they are damped by one factor.
    pub joint: bool,
    pub limits: StepLimits,
    pub draw: Draw,
    /// Maximum number of features per round.
    pub features_per_round: usize,
    /// Whether the features of a round may share sentences. Otherwise each sentence has at most one of them.
    pub overlap: bool,
}

/// The boosted loss and the initial weights.
pub struct BoostingOptions {
    pub rounds: RoundOptions,
    pub target: Target,
    pub sample_weight: Vec<f64>, // [N], or empty for all 1
    /// Initial weights: [features], or empty for 0.
    pub start: Vec<f64>,
}

/// One feature of a round.
#[derive(Clone, Copy, Debug)]
pub struct RoundStep {
    pub round: u64,
    pub feature: u32,
    pub step: f64,
    /// Upper bound on N after this step, divided by N before its round.
    pub bound: f64,
    /// log N after this step.
    pub log_loss: f64,
    /// |dN/dw| / N of the feature before the step.
    pub slope: f64,
    /// Sentences computed again.
    pub sentences: u32,
}

pub struct Boosting {
    pub state: State,
    selector: Selector,
    joint: Option<JointSteps>, // if steps are found jointly
    options: BoostingOptions,
    rounds: u64,
    chosen: Vec<Chosen>,
    sentences: Vec<u32>,
    ends: Vec<usize>,
    losses: Vec<f64>,
    backup: Option<RoundBackup>,
}

/// State restored if a round is stopped after it began to move the state: the loss, and the weights of its features.
struct RoundBackup {
    n: f64,
    shift: f64,
    weights: Vec<(usize, f64)>,
}

impl Boosting {
    pub fn new(data: Arc<Dataset>, layout: Arc<Layout>, mut options: BoostingOptions) -> Result<Boosting> {
        let RoundOptions { draw, features_per_round, overlap, bound, limits, joint, .. } = options.rounds;
        let StepLimits { smoothing, cap } = limits;
        if !(smoothing.is_finite() && smoothing >= 0.0 && cap > 0.0 && cap.is_finite()) {
            return Err(Error::Value(format!(
                "smoothing {smoothing} and max_step {cap}: expected a number >= 0 and a number > 0"
            )));
        }
        if !(draw.fraction > 0.0 && draw.fraction <= 1.0) || features_per_round == 0 {
            return Err(Error::Value("candidates is a fraction in (0, 1], and features_per_round at least 1".into()));
        }
        reject_exact(bound, options.target)?;
        let mut weight = std::mem::take(&mut options.sample_weight);
        if weight.is_empty() {
            weight = vec![1.0; data.len()];
        }
        let mut start = std::mem::take(&mut options.start);
        if start.is_empty() {
            start = vec![0.0; layout.len()];
        }
        let tight = bound != Bound::Loose;
        let many_features = overlap && features_per_round > 1;
        let state = State::new(data, layout, weight, tight, options.target, start, many_features)?;
        let selector = Selector::new(&state, bound, limits, draw);
        let joint = if many_features && joint { Some(JointSteps::new(&state)?) } else { None };
        Ok(Boosting {
            state,
            selector,
            joint,
            options,
            rounds: 0,
            chosen: Vec::new(),
            sentences: Vec::new(),
            ends: Vec::new(),
            losses: Vec::new(),
            backup: None,
        })
    }

    /// Whether a round was stopped while it moved the state. Weights and loss are those before it, but the sums are
    /// not, so no round can follow.
    pub fn is_interrupted(&self) -> bool {
        self.backup.is_some()
    }

    /// Restore weights and loss after a call that was stopped.
    pub fn restore_backup(&mut self) {
        if let Some(backup) = &self.backup {
            (self.state.n, self.state.shift) = (backup.n, backup.shift);
            backup.weights.iter().for_each(|&(k, w)| self.state.w[k] = w);
        }
    }

    fn save_backup(&mut self) {
        let weights = self.chosen.iter().map(|c| (c.feature, self.state.w[c.feature])).collect();
        self.backup = Some(RoundBackup { n: self.state.n, shift: self.state.shift, weights });
    }

    /// Number of rounds so far.
    pub fn rounds(&self) -> u64 {
        self.rounds
    }

    /// Cost of selection so far: (gains computed, estimates made).
    pub fn selection(&self) -> (u64, u64) {
        (self.selector.evaluated, self.selector.estimated)
    }

    /// Run up to `max_rounds` rounds, or until `time_limit` is over, fewer if no feature gains any more. Append the
    /// steps taken.
    pub fn run(&mut self, max_rounds: u64, time_limit: Duration, steps: &mut Vec<RoundStep>) -> Result<bool> {
        if self.is_interrupted() {
            return Err(Error::Value(
                "boosting was stopped in the middle of a round; restore a state, or train again".into(),
            ));
        }
        let begin = Instant::now();
        for done in 0..max_rounds {
            if done > 0 && begin.elapsed() >= time_limit {
                return Ok(true);
            }
            if !self.round(steps)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Run one round. Return false if no feature gains.
    fn round(&mut self, steps: &mut Vec<RoundStep>) -> Result<bool> {
        stop::check();
        if self.options.rounds.bound == Bound::Exact {
            self.chosen.clear();
            self.save_backup(); // gains of changed features are lost if their computation is stopped
        }
        let Boosting { state, selector, options: BoostingOptions { rounds: options, .. }, .. } = self;
        // Below this the moments of transitions, which are differences of counts, have no digits left: everything is
        // learned.
        let smallest = 1e-12 * state.weight.iter().sum::<f64>() * (-state.shift).exp();
        if state.n.is_nan() || state.wrong() <= smallest {
            self.backup = None;
            return Ok(false);
        }
        let overlap = options.overlap && options.features_per_round > 1;
        let (share, examined) = if self.joint.is_some() { JOINT_SELECTION } else { SEPARATE_SELECTION };
        let wanted = Wanted { max_features: options.features_per_round, overlap, share, examined };
        selector.choose(state, self.rounds, wanted, &mut self.chosen);
        if self.chosen.is_empty() {
            self.backup = None;
            return Ok(false);
        }
        self.sentences.clear();
        self.ends.clear();
        self.losses.clear();
        let (before, first) = (state.n, steps.len());
        let several = overlap && self.chosen.len() > 1;
        let parts = if several { self.chosen.len() as f64 } else { 1.0 };
        for chosen in &self.chosen {
            if several {
                self.sentences.clear();
            }
            let begin = self.sentences.len();
            if !several || options.line_search {
                state.sentences_of(chosen.feature, &mut self.sentences);
            }
            let touched = &self.sentences[begin..];
            self.ends.push(self.sentences.len());
            let Gain { mut step, gain } = chosen.gain;
            if options.line_search {
                step = search::search(state, chosen.feature, step, options.limits, touched);
            }
            steps.push(RoundStep {
                round: self.rounds,
                feature: chosen.feature as u32,
                step,
                bound: 1.0 - gain / before / parts,
                log_loss: 0.0,
                slope: state.slope(chosen.feature).abs() / before,
                sentences: state.entries_of(chosen.feature) as u32,
            });
        }
        let taken = &mut steps[first..];
        if several {
            state.sentences_of_any(self.chosen.iter().map(|c| c.feature), &mut self.sentences);
            if !self.take_joint_steps(taken)? {
                self.take_damped_steps(taken)?;
            }
        } else {
            self.save_backup();
            let state = &mut self.state;
            state.shift_weights(taken.iter().map(|step| (step.feature as usize, step.step)));
            state.refresh(&self.sentences, &self.ends, &mut self.losses)?;
            for (step, &log_loss) in taken.iter_mut().zip(&self.losses) {
                step.log_loss = log_loss;
            }
        }
        self.state.keep_accurate()?;
        // If N fell far below the old shift, the loss is known only after `sharpen`.
        let log_loss = self.state.log_loss();
        let unknown_loss = |step: &&mut RoundStep| several || !step.log_loss.is_finite();
        steps[first..].iter_mut().filter(unknown_loss).for_each(|step| step.log_loss = log_loss);
        self.rounds += 1;
        self.backup = None;
        Ok(true)
    }

    /// Take jointly found steps of features that share sentences. Return false, with nothing moved, if they would gain
    /// less than the guarantee of `take_damped_steps`.
    fn take_joint_steps(&mut self, taken: &mut [RoundStep]) -> Result<bool> {
        let (state, cap) = (&mut self.state, self.options.rounds.limits.cap);
        let bounds: Vec<FeatureStep> = taken.iter().map(|s| (s.feature as usize, s.step)).collect();
        let Some(steps) = self.joint.as_mut().and_then(|joint| joint.steps(state, &bounds, cap)) else {
            return Ok(false);
        };
        let (current_loss, guaranteed) = guaranteed_gain(state, &self.sentences, taken);
        let direction = state.direction(bounds.iter().zip(&steps).map(|(&(k, _), &step)| (k, step)));
        let found = state.loss_along(&self.sentences, &direction, 1.0);
        if found.is_nan() || found > current_loss - guaranteed {
            return Ok(false);
        }
        self.save_backup();
        let state = &mut self.state;
        state.advance(direction, 1.0);
        state.refresh(&self.sentences, &[], &mut self.losses)?;
        taken.iter_mut().zip(steps).for_each(|(taken, step)| taken.step = step);
        Ok(true)
    }

    /// Take the steps of q features that share sentences, times one scale. N is convex: N(w + sum_k s_k / q) <= the
    /// mean of N(w + s_k) over k, so that a scale of 1/q gains at least the mean of the gains. First 1/sqrt(q) is
    /// evaluated, then the minimum of the parabola through the logarithms at that scale and at 0 and the slope at 0,
    /// repeatedly while that is far away. The best scale is halved until it gains as much, which 1/q always does.
    /// Earlier rounds have no influence: a round is a function of the weights. Steps of the pointwise loss, whose
    /// ranges are wide, are too short rather than too long, so scales above 1 are possible.
    fn take_damped_steps(&mut self, taken: &mut [RoundStep]) -> Result<()> {
        let state = &mut self.state;
        let smallest = 1.0 / taken.len() as f64;
        let (current_loss, guaranteed) = guaranteed_gain(state, &self.sentences, taken);
        let slope = taken.iter().map(|s| s.step * state.slope(s.feature as usize)).sum::<f64>() / state.n;
        let direction = state.direction(taken.iter().map(|s| (s.feature as usize, s.step)));
        let (n, sentences) = (state.n, &self.sentences);
        let loss = |scale: f64| state.loss_along(sentences, &direction, scale);
        let longest = taken.iter().map(|s| s.step.abs()).fold(0.0, f64::max);
        let max_scale = match state.target.loss {
            Boosted::Sequence => 1.0,
            Boosted::Pointwise => (self.options.rounds.limits.cap / longest).max(1.0),
        };
        let mut scale = smallest.sqrt();
        let mut found = loss(scale);
        for _ in 0..MAX_TRIALS {
            let log = ((n - current_loss + found) / n).ln();
            let curvature = (log - slope * scale) / (scale * scale);
            let minimum = if curvature > 0.0 { -0.5 * slope / curvature } else { max_scale };
            let other = minimum.clamp(scale / MAX_GROWTH, MAX_GROWTH * scale).clamp(smallest, max_scale);
            if (other / scale - 1.0).abs() <= MIN_CHANGE {
                break;
            }
            let other_loss = loss(other);
            if other_loss.is_nan() || other_loss > found {
                break;
            }
            (scale, found) = (other, other_loss);
            if minimum == other {
                break;
            }
        }
        while scale > smallest && (found.is_nan() || found > current_loss - guaranteed) {
            scale = (0.5 * scale).max(smallest);
            found = if scale > smallest { loss(scale) } else { 0.0 };
        }
        self.save_backup();
        let state = &mut self.state;
        state.advance(direction, scale);
        state.refresh(&self.sentences, &[], &mut self.losses)?;
        taken.iter_mut().for_each(|step| step.step *= scale);
        Ok(())
    }

    /// Compute all sentences and all sums again, which is the cost of a round without the inverted index.
    pub fn recompute(&mut self) -> Result<()> {
        self.sentences.clear();
        self.sentences.extend(0..self.state.len() as u32);
        self.state.refresh(&self.sentences, &[], &mut self.losses)
    }

    /// (step, Z) of every feature under a bound, at the current weights. Z is relative to N.
    pub fn bounds(&self, bound: Bound) -> Result<Vec<(f64, f64)>> {
        if bound == Bound::Tight && self.options.rounds.bound == Bound::Loose {
            return Err(Error::Value("the tight bound needs a booster with bound=\"tight\" or \"exact\"".into()));
        }
        reject_exact(bound, self.options.target)?;
        let of = |k| {
            let found = Selector::evaluate(&self.state, bound, self.options.rounds.limits, k);
            (found.step, 1.0 - found.gain / self.state.n)
        };
        Ok((0..self.state.layout.len()).map(of).collect())
    }
}

/// The part of N from the sentences of a round, and the guaranteed gain of its steps: the mean of their gains.
fn guaranteed_gain(state: &State, sentences: &[u32], taken: &[RoundStep]) -> (f64, f64) {
    let current_loss = sentences.iter().map(|&s| state.d[s as usize]).sum();
    (current_loss, taken.iter().map(|s| 1.0 - s.bound).sum::<f64>() * state.n)
}

/// Reject the exact bound for the pointwise loss, whose Z is not a sum of exponentials of the step, and not convex in
/// it.
fn reject_exact(bound: Bound, target: Target) -> Result<()> {
    if bound == Bound::Exact && target.loss == Boosted::Pointwise {
        return Err(Error::Value(
            "the pointwise loss has no exact bound; use bound=\"tight\", and a line search for the step".into(),
        ));
    }
    Ok(())
}
