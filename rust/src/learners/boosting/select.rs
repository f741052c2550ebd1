//! Find the feature with the smallest bound without evaluating all of them.
//!
//! Features are grouped in blocks. For every block the largest optimistic gain is kept, and computed again only after
//! a change in a sentence that contains one of its features. A round examines the blocks whose estimate is above the
//! best gain found, and in these only the features whose own estimate is.
//!
//! The gain of the tight bound does not depend on N. That of the loose one decreases with N, and N decreases with
//! every round. Estimates are computed for `floor` < N and are valid until N is below it. Then all blocks are computed
//! again.

use crate::learners::boosting::bound::{self, Bound, Gain, StepLimits};
use crate::learners::boosting::cells::FEATURES;
use crate::learners::boosting::exact::Exact;
use crate::learners::boosting::state::State;
use crate::machine::system::stop;
use std::sync::atomic::Ordering;

/// Fraction to which N may fall before the estimates of the loose bound are computed again.
const FLOOR_FACTOR: f64 = 0.97;
/// Factor on estimates, which are computed differently from gains, so that rounding cannot make them smaller.
const ESTIMATE_MARGIN: f64 = 1.0 + 1e-9;
/// Number of blocks of estimates, or of gains, between two checks for a signal.
const BLOCK_CHECK_INTERVAL: usize = 1024;
const GAIN_CHECK_INTERVAL: usize = 256;
const FREE: StepLimits = StepLimits { smoothing: 0.0, cap: f64::INFINITY };

/// A feature, its step and its guaranteed gain.
#[derive(Clone, Copy, Debug)]
pub struct Chosen {
    pub feature: usize,
    pub gain: Gain,
}

/// Requirements on the features of a round.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    pub max_features: usize,
    /// Whether they may share sentences.
    pub overlap: bool,
    /// Minimum gain of the last one relative to that of the first.
    pub share: f64,
    /// Number of features examined for each that is wanted.
    pub examined: usize,
}

/// Features that may be chosen in a round: a fraction, drawn again for every round.
#[derive(Clone, Copy, Debug)]
pub struct Draw {
    pub fraction: f64,
    pub seed: u64,
}

impl Draw {
    /// Whether feature k takes part in a round: a hash of all three numbers (splitmix64), which avoids drawing a list.
    #[inline(always)]
    fn includes(&self, round: u64, k: usize) -> bool {
        if self.fraction >= 1.0 {
            return true;
        }
        let mut x =
            self.seed ^ round.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (k as u64).wrapping_mul(0xd1b5_4a32_d192_ed03);
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^= x >> 31;
        ((x >> 11) as f64) < self.fraction * (1u64 << 53) as f64
    }
}

/// Order by decreasing number, then by increasing feature.
fn by_gain(x: &(f64, usize), y: &(f64, usize)) -> std::cmp::Ordering {
    y.0.total_cmp(&x.0).then(x.1.cmp(&y.1))
}

/// A gain computed earlier, or a bound on it, of a feature whose cells have not changed since.
#[derive(Clone, Copy, Default)]
pub(super) struct KnownGain {
    pub(super) gain: f64,
    pub(super) slack: f64, // eps |e^step - e^-step|, 0 for a bound that does not depend on N
    pub(super) n: f64,     // N at that time, 0 if unknown
}

impl KnownGain {
    /// Upper bound on the gain under the tight bound at N = n. Only the smoothing eps c(step), c = e^step + e^-step,
    /// eps proportional to N, has changed. From the optimality of the old step s at the old eps, and of the new step t
    /// at the new eps:
    ///
    /// ```text
    /// gain(t) - gain(s) <= eps (c(t) - c(s)),   c'(t) <= (N/n) c'(s)   =>   gain(t) <= gain(s) + eps |c'(s)| (N/n - 1)
    /// ```
    ///
    /// (N decreases, so \|t\| >= |s|, and c - c' decreases with |step|.)
    #[inline(always)]
    fn upper_bound(&self, n: f64) -> f64 {
        if self.n < n {
            return f64::INFINITY;
        }
        ESTIMATE_MARGIN * (self.gain + self.slack * (self.n / n - 1.0))
    }
}

pub struct Selector {
    bound: Bound,
    limits: StepLimits,
    draw: Draw,
    pub(super) estimate: Vec<f64>,    // [features] optimistic gains
    pub(super) best: Vec<f64>,        // [blocks] the largest of them
    pub(super) known: Vec<KnownGain>, // [features] for the tight bound
    pub(super) floor: f64,
    pub(super) exact: Option<Exact>,
    used: Vec<u64>, // [N] round in which a sentence was last touched
    list: Vec<(f64, usize)>,
    sentences: Vec<u32>,
    /// Number of features whose gain was computed, and number of estimates, since the beginning: the cost of
    /// selection.
    pub evaluated: u64,
    pub estimated: u64,
}

impl Selector {
    pub fn new(state: &State, bound: Bound, limits: StepLimits, draw: Draw) -> Selector {
        Selector {
            bound,
            limits,
            draw,
            estimate: vec![0.0; state.layout.len()],
            best: vec![0.0; state.changed.len()],
            known: vec![KnownGain::default(); if bound == Bound::Tight { state.layout.len() } else { 0 }],
            floor: f64::INFINITY,
            exact: (bound == Bound::Exact).then(|| Exact::new(state.layout.len())),
            used: vec![0; state.len()],
            list: Vec::new(),
            sentences: Vec::new(),
            evaluated: 0,
            estimated: 0,
        }
    }

    /// Step and gain of a feature under a bound.
    pub fn evaluate(state: &State, bound: Bound, limits: StepLimits, k: usize) -> Gain {
        match bound {
            Bound::Loose => {
                let (range, d, m) = Self::one_cell(state, k);
                bound::loose(range, d, m, state.n, limits)
            }
            Bound::Tight => {
                let start = state.moments(k).two_points(state.n, limits).step;
                bound::tight(state.cells_of(k), state.n, limits, start)
            }
            Bound::Exact => Exact::evaluate(state, k, limits),
        }
    }

    /// Union of all cells of a feature, as one cell of all sentences.
    fn one_cell(state: &State, k: usize) -> (bound::Range, f64, f64) {
        let mut range = bound::Range { a: 0.0, b: 0.0 };
        let mut sum = 0.0;
        for (r, _, m) in state.cells_of(k) {
            range = bound::Range { a: range.a.max(r.a), b: range.b.max(r.b) };
            sum += m;
        }
        (range, state.n, sum)
    }

    /// Update the estimates of the blocks that changed.
    fn update(&mut self, state: &State) {
        let loose = self.bound == Bound::Loose;
        let all = loose && state.n < self.floor;
        let floor = if all { FLOOR_FACTOR * state.n } else { self.floor };
        // After a stop every block is either up to date or marked as changed. A new `floor` is set once all blocks are
        // updated.
        for block in 0..self.best.len() {
            if block % BLOCK_CHECK_INTERVAL == BLOCK_CHECK_INTERVAL - 1 {
                stop::check();
            }
            if !state.changed[block].swap(false, Ordering::Relaxed) && !all {
                continue;
            }
            let features = block * FEATURES..((block + 1) * FEATURES).min(self.estimate.len());
            self.estimated += features.len() as u64;
            let mut best = 0.0f64;
            if loose {
                let (m, range) = (&state.m[features.clone()], &state.cells.range[features.clone()]);
                for ((x, m), range) in self.estimate[features].iter_mut().zip(m).zip(range) {
                    *x = ESTIMATE_MARGIN * bound::optimistic(*range, floor, *m);
                    best = if *x > best { *x } else { best };
                }
            } else {
                for k in features {
                    let x = ESTIMATE_MARGIN * state.moments(k).optimistic();
                    self.estimate[k] = x;
                    self.known[k].n = 0.0;
                    best = best.max(x);
                }
            }
            self.best[block] = best;
        }
        self.floor = floor;
    }

    /// The feature of the largest gain, the first in case of ties. None if no feature gains. The most promising
    /// features are computed first, so that few of the others need be.
    fn first(&mut self, state: &State, round: u64) -> Option<Chosen> {
        let mut found: Option<Chosen> = None;
        let mut at = 0;
        for block in 1..self.best.len() {
            if self.best[block] > self.best[at] {
                at = block;
            }
        }
        let mut list = std::mem::take(&mut self.list);
        for blocks in [at..at + 1, 0..self.best.len()] {
            let best_gain = found.map_or(0.0, |c| c.gain.gain);
            list.clear();
            for block in blocks {
                if self.best.get(block).is_none_or(|&best| best < best_gain || best <= 0.0) {
                    continue;
                }
                for k in block * FEATURES..((block + 1) * FEATURES).min(self.estimate.len()) {
                    let is_candidate =
                        self.estimate[k] >= best_gain && self.estimate[k] > 0.0 && self.draw.includes(round, k);
                    let bound = if is_candidate { self.upper_bound(state, k) } else { 0.0 };
                    if bound > 0.0 && bound >= best_gain {
                        list.push((bound, k));
                    }
                }
            }
            list.sort_unstable_by(by_gain);
            for (at, &(bound, k)) in list.iter().enumerate() {
                if at % GAIN_CHECK_INTERVAL == GAIN_CHECK_INTERVAL - 1 {
                    stop::check();
                }
                let best_gain = found.map_or(0.0, |c| c.gain.gain);
                if bound < best_gain {
                    break;
                }
                let gain = self.gain(state, k);
                let better = match found {
                    None => gain.gain > 0.0,
                    Some(c) => gain.gain > c.gain.gain || (gain.gain == c.gain.gain && k < c.feature),
                };
                if better {
                    found = Some(Chosen { feature: k, gain });
                }
            }
        }
        self.list = list;
        found.filter(|c| c.gain.gain > 1e-13 * state.n)
    }

    /// Upper bound on the gain of a feature, tighter than its estimate.
    fn upper_bound(&mut self, state: &State, k: usize) -> f64 {
        if self.bound != Bound::Tight {
            return self.estimate[k];
        }
        let bound = self.known[k].upper_bound(state.n);
        if bound < f64::INFINITY {
            return bound;
        }
        self.known[k] = KnownGain { gain: state.moments(k).two_points(state.n, FREE).gain, slack: 0.0, n: state.n };
        self.known[k].upper_bound(state.n)
    }

    /// Gain of a feature.
    fn gain(&mut self, state: &State, k: usize) -> Gain {
        self.evaluated += 1;
        let found = Self::evaluate(state, self.bound, self.limits, k);
        if self.bound == Bound::Tight {
            let slack = 2.0 * self.limits.smoothing * state.n * found.step.sinh().abs();
            self.known[k] = KnownGain { gain: found.gain, slack, n: state.n };
        }
        found
    }

    /// Choose features by gain. Unless they may overlap they share no sentence: each decreases N only through its own
    /// sentences, so that the gains add up. If none of the drawn features gains, all features are examined.
    pub fn choose(&mut self, state: &State, round: u64, wanted: Wanted, chosen: &mut Vec<Chosen>) {
        self.choose_drawn(state, round, wanted, chosen);
        if chosen.is_empty() && self.draw.fraction < 1.0 {
            let draw = self.draw;
            self.draw.fraction = 1.0;
            self.choose_drawn(state, round, wanted, chosen);
            self.draw = draw;
        }
    }

    fn choose_drawn(&mut self, state: &State, round: u64, wanted: Wanted, chosen: &mut Vec<Chosen>) {
        chosen.clear();
        if let Some(mut exact) = self.exact.take() {
            exact.update(state, self.limits);
            for k in 0..self.estimate.len() {
                self.estimate[k] = exact.gain[k].gain;
            }
            let includes = |k: &usize| exact.gain[*k].gain > 1e-13 * state.n && self.draw.includes(round, *k);
            self.list.clear();
            self.list.extend((0..self.estimate.len()).filter(includes).map(|k| (exact.gain[k].gain, k)));
            self.list.sort_unstable_by(by_gain);
            for at in 0..self.list.len() {
                let feature = self.list[at].1;
                let candidate = Chosen { feature, gain: exact.gain[feature] };
                if !self.add_if_disjoint(state, round, candidate, wanted, chosen) {
                    break;
                }
            }
            self.exact = Some(exact);
            return;
        }
        self.update(state);
        let Some(first) = self.first(state, round) else { return };
        if wanted.max_features <= 1 {
            chosen.push(first);
            return;
        }
        let min_gain = wanted.share * first.gain.gain;
        self.list.clear();
        for block in 0..self.best.len() {
            if self.best[block] >= min_gain {
                let features = block * FEATURES..((block + 1) * FEATURES).min(self.estimate.len());
                self.list.extend(features.map(|k| (self.estimate[k], k)).filter(|x| x.0 >= min_gain));
            }
        }
        let examined = wanted.examined.saturating_mul(wanted.max_features);
        if self.list.len() > examined {
            self.list.select_nth_unstable_by(examined, by_gain);
            self.list.truncate(examined);
        }
        let mut gains: Vec<Chosen> = Vec::with_capacity(self.list.len());
        for at in 0..self.list.len() {
            if at % GAIN_CHECK_INTERVAL == GAIN_CHECK_INTERVAL - 1 {
                stop::check();
            }
            let k = self.list[at].1;
            if k != first.feature && self.draw.includes(round, k) && self.upper_bound(state, k) >= min_gain {
                let gain = self.gain(state, k);
                if gain.gain >= min_gain {
                    gains.push(Chosen { feature: k, gain });
                }
            }
        }
        gains.sort_unstable_by(|x, y| y.gain.gain.total_cmp(&x.gain.gain).then(x.feature.cmp(&y.feature)));
        self.add_if_disjoint(state, round, first, wanted, chosen);
        for candidate in gains {
            if !self.add_if_disjoint(state, round, candidate, wanted, chosen) {
                break;
            }
        }
    }

    /// Choose a feature if none of its sentences is taken. Return whether more features may be chosen.
    fn add_if_disjoint(
        &mut self,
        state: &State,
        round: u64,
        candidate: Chosen,
        wanted: Wanted,
        chosen: &mut Vec<Chosen>,
    ) -> bool {
        let min_gain = chosen.first().map_or(0.0, |c| wanted.share * c.gain.gain);
        if wanted.overlap {
            chosen.push(candidate);
            return chosen.len() < wanted.max_features && candidate.gain.gain >= min_gain;
        }
        self.sentences.clear();
        state.sentences_of(candidate.feature, &mut self.sentences);
        let round_stamp = round + 1;
        if self.sentences.iter().all(|&s| self.used[s as usize] != round_stamp) {
            self.sentences.iter().for_each(|&s| self.used[s as usize] = round_stamp);
            chosen.push(candidate);
        }
        let min_gain = chosen.first().map_or(0.0, |c| wanted.share * c.gain.gain);
        chosen.len() < wanted.max_features && candidate.gain.gain >= min_gain
    }
}
