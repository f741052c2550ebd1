//! Joint steps of the features of a round that share sentences.
//!
//! ```text
//! minimise over x   log N(w + sum_k x_k e_k),   k in the round
//! ```
//!
//! by a few iterations of L-BFGS (Nocedal 1980) from 0. The bounds' steps s_k, each right for the feature alone, are
//! the scale of the variables: with H_0 = diag(-s_k / g_k) the first direction is s itself. Values and gradients are
//! those of the batch engine in single precision, at a tenth of the cost of a round's own pass with its sums. The
//! caller checks in double precision that a round gains what it promised.

use crate::chain::limits::Limits;
use crate::error::Result;
use crate::learners::batch::loss::Loss;
use crate::learners::batch::objective::Objective;
use crate::learners::batch::terms::Terms;
use crate::learners::boosting::loss::Boosted;
use crate::learners::boosting::state::State;
use crate::machine::simd::vector::CurvaturePairs;

/// Maximum number of iterations per round.
const ITERATIONS: usize = 6;
/// Maximum number of points evaluated along a direction.
const MAX_TRIALS: usize = 4;
/// Fraction of the decrease predicted by the slope that a step must achieve.
const ARMIJO: f64 = 1e-4;
/// Maximum factor between successive lengths of a first step.
const MAX_GROWTH: f64 = 4.0;
/// A length closer to the previous one than this is not evaluated.
const MIN_CHANGE: f64 = 0.2;
/// Share of wrong paths in the mass of all paths below which single precision cannot distinguish losses.
const MIN_WRONG_SHARE: f64 = 1e-3;

/// A feature and the step of its bound.
pub type FeatureStep = (usize, f64);

pub struct JointSteps {
    objective: Objective,
    shifted: bool,      // whether the objective can return the logarithm itself
    w: Vec<f64>,        // [K]
    gradient: Vec<f64>, // [K]
}

/// A point in the space of the round's steps: log N and its derivatives.
#[derive(Clone)]
struct Point {
    x: Vec<f64>,
    value: f64,
    gradient: Vec<f64>,
}

/// Curvature in the variables of a round, scaled by the square root of H_0. A weight whose scale is 0 is fixed.
struct Curvature {
    pairs: CurvaturePairs,
    fixed: Vec<bool>,
}

impl Curvature {
    /// Create it with this diagonal of H_0.
    fn new(diagonal: &[f64]) -> Curvature {
        let scale = diagonal.iter().map(|&h| if h > 0.0 { h.sqrt() as f32 } else { 1.0 }).collect();
        Curvature {
            pairs: CurvaturePairs::new(ITERATIONS, Some(scale)),
            fixed: diagonal.iter().map(|&h| h <= 0.0).collect(),
        }
    }

    /// The gradient without the fixed weights.
    fn free(&self, gradient: &[f64]) -> Vec<f64> {
        gradient.iter().zip(&self.fixed).map(|(&g, &fixed)| if fixed { 0.0 } else { g }).collect()
    }

    /// -H g, and the slope along it. Without pairs each step is right for the feature alone, so the steps are divided
    /// by sqrt K.
    fn direction(&self, gradient: &[f64]) -> (Vec<f64>, f64) {
        let mut out = vec![0.0; gradient.len()];
        let slope = self.pairs.direction(&self.free(gradient), &mut out);
        let scale = if self.pairs.is_empty() { 1.0 / (gradient.len() as f64).sqrt() } else { 1.0 };
        out.iter_mut().for_each(|x| *x *= scale);
        (out, scale * slope)
    }

    fn push(&mut self, from: &Point, to: &Point) {
        self.pairs.push(&from.x, &to.x, &self.free(&from.gradient), &self.free(&to.gradient));
    }
}

impl JointSteps {
    pub fn new(state: &State) -> Result<JointSteps> {
        let loss = match state.target.loss {
            Boosted::Sequence => Loss::Exp,
            Boosted::Pointwise => Loss::PointwiseExp,
        };
        let (weights, limits) = (state.weight.clone(), Limits::default());
        let terms = Terms { loss, weights, limits, partial: None, cost: Vec::new() };
        let objective = Objective::new(state.data.clone(), state.layout.clone(), terms)?;
        Ok(JointSteps { objective, shifted: loss.is_shifted(), w: Vec::new(), gradient: vec![0.0; state.layout.len()] })
    }

    /// Return the steps of a round's features, none beyond `cap`. None if no evaluated point decreases the loss.
    pub fn steps(&mut self, state: &State, taken: &[FeatureStep], cap: f64) -> Option<Vec<f64>> {
        let (all, wrong) = (state.all(), state.wrong());
        if all.is_nan() || wrong <= MIN_WRONG_SHARE * all {
            return None;
        }
        let gradient: Vec<f64> = taken.iter().map(|&(k, _)| state.slope(k) / all).collect();
        let diagonal = taken.iter().zip(&gradient).map(|(&(_, step), g)| if step * g < 0.0 { -step / g } else { 0.0 });
        let mut curvature = Curvature::new(&diagonal.collect::<Vec<f64>>());
        let mut here = Point { x: vec![0.0; taken.len()], value: all.ln() + state.shift, gradient };
        self.w.clear();
        self.w.extend_from_slice(&state.w);
        for _ in 0..ITERATIONS {
            let Some(next) = self.search_direction(&here, taken, &curvature, cap) else { break };
            curvature.push(&here, &next);
            here = next;
        }
        here.x.iter().any(|x| *x != 0.0).then_some(here.x)
    }

    /// The best evaluated point along a direction. None if it does not decrease the loss.
    fn search_direction(
        &mut self,
        here: &Point,
        taken: &[FeatureStep],
        curvature: &Curvature,
        cap: f64,
    ) -> Option<Point> {
        let (direction, slope) = curvature.direction(&here.gradient);
        if !(slope < 0.0 && slope.is_finite()) {
            return None;
        }
        let (mut length, mut best) = (1.0, None::<(f64, Point)>);
        for _ in 0..MAX_TRIALS {
            let moved = here.x.iter().zip(&direction).map(|(x, d)| (x + length * d).clamp(-cap, cap)).collect();
            let found = self.at(taken, moved);
            let value = found.as_ref().map_or(f64::INFINITY, |point| point.value);
            let gains = value <= here.value + ARMIJO * length * slope;
            // Minimum of the parabola through both values and the slope.
            let curvature_along = (value - here.value - length * slope) / (length * length);
            let minimum = if curvature_along > 0.0 { -0.5 * slope / curvature_along } else { MAX_GROWTH * length };
            let lower = best.as_ref().is_none_or(|(_, point)| value < point.value);
            if gains && lower {
                best = found.map(|point| (length, point));
            } else if best.is_some() {
                break;
            }
            // With known curvature a length of 1 is right. Only the first direction has no curvature.
            if gains && !curvature.pairs.is_empty() {
                break;
            }
            let next_length =
                minimum.clamp(length / MAX_GROWTH, if gains { MAX_GROWTH * length } else { 0.5 * length });
            if gains && (next_length / length - 1.0).abs() <= MIN_CHANGE {
                break;
            }
            length = next_length;
        }
        best.map(|(_, point)| point)
    }

    /// Value and derivatives at w + x. None if they are not finite.
    fn at(&mut self, taken: &[FeatureStep], x: Vec<f64>) -> Option<Point> {
        let before: Vec<f64> = taken.iter().map(|&(k, _)| self.w[k]).collect();
        taken.iter().zip(&x).for_each(|(&(k, _), x)| self.w[k] += x);
        let found = self.objective.evaluate(&self.w, &mut self.gradient, self.shifted, false);
        taken.iter().zip(&before).for_each(|(&(k, _), before)| self.w[k] = *before);
        let loss = found.ok()?.loss;
        let (value, by) = if self.shifted { (loss, 1.0) } else { (loss.ln(), 1.0 / loss) };
        let gradient: Vec<f64> = taken.iter().map(|&(k, _)| by * self.gradient[k]).collect();
        (value.is_finite() && gradient.iter().all(|g| g.is_finite())).then_some(Point { x, value, gradient })
    }
}
