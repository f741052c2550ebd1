//! The step of a chosen feature by line search on the true loss, over the sentences where it can fire. The bounds are
//! conservative if a feature fires several times in a sentence. Their authors expected a line search to help in that
//! case.

use crate::learners::boosting::bound::StepLimits;
use crate::learners::boosting::chain::{ChainWork, EdgeFactors};
use crate::learners::boosting::index::{self, FeatureKind};
use crate::learners::boosting::loss::{Boosted, SentenceScores};
use crate::learners::boosting::state::State;
use crate::machine::system::stop;
use rayon::prelude::*;

/// Derivative at the step taken, relative to that at 0.
const SLOPE_TOLERANCE: f64 = 0.1;
/// Maximum number of evaluations of the loss.
const MAX_EVALUATIONS: usize = 12;

/// Loss over the sentences and its derivative, at weight + step.
struct Line<'a> {
    state: &'a State,
    kind: FeatureKind,
    sentences: &'a [u32],
}

/// Scratch of one thread.
#[derive(Default)]
struct SearchWork {
    work: ChainWork,
    node: Vec<f64>,
    p: Vec<f64>,
    pairs: Vec<f64>,
}

impl Line<'_> {
    fn at(&self, step: f64) -> (f64, f64) {
        let state = self.state;
        let mut edges = None;
        if let FeatureKind::Edge { from, to } = self.kind {
            let mut moved: EdgeFactors = state.edges.clone();
            moved.score[from * state.layout.labels + to] += step;
            moved.update();
            edges = Some(moved);
        }
        let edges = edges.as_ref().unwrap_or(&state.edges);
        // Sums of fixed parts, in order, so that the result does not depend on the number of threads.
        let stop = stop::current();
        let parts: Vec<(f64, f64)> = self
            .sentences
            .par_chunks(64)
            .map_init(SearchWork::default, |scratch, part| {
                let _guard = stop.enter();
                part.iter().fold((0.0, 0.0), |sum, &s| {
                    let (value, slope) = self.sentence(s as usize, step, edges, scratch);
                    (sum.0 + value, sum.1 + slope)
                })
            })
            .collect();
        parts.iter().fold((0.0, 0.0), |sum, part| (sum.0 + part.0, sum.1 + part.1))
    }

    fn sentence(&self, s: usize, step: f64, edges: &EdgeFactors, x: &mut SearchWork) -> (f64, f64) {
        let state = self.state;
        let (l, width) = (state.layout.labels, state.edges.padded);
        let (begin, end) = (state.data.sentences[s], state.data.sentences[s + 1]);
        let gold = &state.data.gold[begin..end];
        x.node.clear();
        x.node.extend_from_slice(&state.node[begin * width..end * width]);
        x.p.resize(x.node.len(), 0.0);
        let shift = |t: usize, label: usize, by: f64, x: &mut SearchWork| x.node[t * width + label] += by;
        let mut places: &[u32] = &[];
        let mut values: &[f32] = &[];
        match self.kind {
            FeatureKind::Node { attribute, label } => {
                let postings = state.index.postings(attribute);
                let at = postings.partition_point(|&e| (state.index.sentence[e as usize] as usize) < s);
                let e = postings[at] as usize;
                let range = state.index.occurrence_ptr[e]..state.index.occurrence_ptr[e + 1];
                places = &state.index.token[range.clone()];
                values = state.index.value.get(range).unwrap_or(&[]);
                for (i, &t) in places.iter().enumerate() {
                    let value = values.get(i).map_or(1.0, |&v| f64::from(v));
                    shift(t as usize - begin, label, step * value, x);
                }
            }
            FeatureKind::Edge { .. } => x.pairs.resize(l * width, 0.0),
            FeatureKind::Start { label } => shift(0, label, step, x),
            FeatureKind::End { label } => shift(end - begin - 1, label, step, x),
        }
        let (weight, shift) = (state.weight[s], state.shift);
        let sentence = SentenceScores { node: &x.node, gold, edges, weight, shift };
        let lost = state.target.residuals(&sentence, &mut x.work, &mut x.p, &mut x.pairs);
        let residual = |t: usize, label: usize| x.p[t * width + label];
        let slope = match self.kind {
            FeatureKind::Node { label, .. } => places
                .iter()
                .enumerate()
                .map(|(i, &t)| values.get(i).map_or(1.0, |&v| f64::from(v)) * residual(t as usize - begin, label))
                .sum(),
            FeatureKind::Edge { from, to } => x.pairs[from * width + to],
            FeatureKind::Start { label } => residual(0, label),
            FeatureKind::End { label } => residual(end - begin - 1, label),
        };
        (lost.d, lost.e * slope)
    }
}

/// A step with approximately minimal loss, from the bound's step `guess`. It grows until the derivative changes its
/// sign, and the zero is found by regula falsi (Illinois). Beyond the guess the smoothing term e^step + e^-step is
/// included, so that an infinite step is bounded as in the bound itself. The loss is never above that of the guess.
pub fn search(state: &State, k: usize, guess: f64, limits: StepLimits, sentences: &[u32]) -> f64 {
    let line = Line { state, kind: index::kind(&state.layout, k), sentences };
    let at_zero = state.slope(k);
    if guess == 0.0 || at_zero == 0.0 {
        return guess;
    }
    let sequential = state.target.loss == Boosted::Sequence;
    if let (FeatureKind::Node { attribute, .. }, true) = (line.kind, state.cells.is_tight() && sequential) {
        let entries = state.index.postings(attribute);
        let occurs_once =
            |&e: &u32| state.index.occurrence_ptr[e as usize + 1] - state.index.occurrence_ptr[e as usize] == 1;
        if entries.iter().all(occurs_once) {
            return guess; // u has two values in every sentence: the tight bound is the loss itself
        }
    }
    let smoothing_slope = |step: f64| 2.0 * limits.smoothing * state.n * step.sinh();
    let is_descending = |slope: f64| slope.signum() == at_zero.signum();
    let cap = limits.cap.copysign(guess);
    let (mut best_value, slope) = line.at(guess);
    if slope.abs() <= SLOPE_TOLERANCE * at_zero.abs() {
        return guess;
    }
    let mut best = guess;
    let extends = is_descending(slope);
    let mut left = (0.0, at_zero);
    let mut last = left;
    let mut right: Option<(f64, f64)> = None;
    if !extends {
        right = Some((guess, slope));
    } else if !is_descending(slope + smoothing_slope(guess)) {
        return guess;
    } else {
        left = (guess, slope + smoothing_slope(guess));
    }
    for _ in 0..MAX_EVALUATIONS {
        let step = match right {
            None => {
                // Zero of the straight line through the last two slopes, within limits.
                let ratio = last.1 / (last.1 - left.1);
                let right = last.0 + (left.0 - last.0) * if ratio > 0.0 { ratio } else { 8.0 };
                right.abs().clamp(1.5 * left.0.abs(), 8.0 * left.0.abs()).min(cap.abs()).copysign(guess)
            }
            Some(right) => left.0 - left.1 * (right.0 - left.0) / (right.1 - left.1),
        };
        if step == left.0 {
            break; // the cap
        }
        let (value, slope) = line.at(step);
        let slope = if extends { slope + smoothing_slope(step) } else { slope };
        if value <= best_value && (is_descending(slope) || !extends || slope.abs() <= SLOPE_TOLERANCE * at_zero.abs()) {
            (best, best_value) = (step, value);
        }
        if !slope.is_finite() && right.is_some() || slope.abs() <= SLOPE_TOLERANCE * at_zero.abs() {
            break;
        }
        if is_descending(slope) {
            (last, left) = (left, (step, slope));
            right = right.map(|right| (right.0, 0.5 * right.1));
        } else {
            if right.is_some() {
                left.1 *= 0.5;
            }
            right = Some((step, if slope.is_finite() { slope } else { -1e3 * at_zero }));
        }
    }
    best
}
