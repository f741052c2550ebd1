//! Steps of the features of a round together, where they share sentences.
//!
//! ```text
//! minimise over x   log N(w + sum_k x_k e_k),   k in the round
//! ```
//!
//! by a few iterations of L-BFGS (Nocedal 1980) that begin at 0. The bounds' steps s_k, each right were it alone, are the
//! scale of the variables: with H_0 = diag(-s_k / g_k) the first direction is s itself. Values and gradients are those of the
//! batch engine in single precision, a tenth of what a round's own pass with its sums costs; whether a round gains what it
//! promised is for the caller to see in double precision.

use crate::chain::limits::Limits;
use crate::error::Result;
use crate::learners::batch::loss::Loss;
use crate::learners::batch::objective::Objective;
use crate::learners::batch::terms::Terms;
use crate::learners::boosting::loss::Boosted;
use crate::learners::boosting::state::State;
use crate::machine::simd::vector::CurvaturePairs;

/// Iterations of a round.
const ITERATIONS: usize = 6;
/// Points tried along a direction.
const TRIED: usize = 4;
/// Part of what the slope promises that a step gains.
const ARMIJO: f64 = 1e-4;
/// By which factor the length of a first step changes from one try to the next, at most.
const FURTHER: f64 = 4.0;
/// A length nearer to the one before than this is not tried.
const NEAR: f64 = 0.2;
/// Part of all paths' mass that wrong ones have, under which single precision does not tell losses apart.
const LEAST: f64 = 1e-3;

/// A feature and the step that its bound has.
pub type FeatureStep = (usize, f64);

pub struct JointSteps {
    objective: Objective,
    shifted: bool,      // whether the objective can answer the logarithm itself
    w: Vec<f64>,        // [K]
    gradient: Vec<f64>, // [K]
}

/// A point of the round's steps: log N and its derivatives there.
#[derive(Clone)]
struct Point {
    x: Vec<f64>,
    value: f64,
    gradient: Vec<f64>,
}

/// Curvature in the variables of a round, whose scale is the square root of H_0. A weight whose scale is 0 stays.
struct Curvature {
    pairs: CurvaturePairs,
    stays: Vec<bool>,
}

impl Curvature {
    /// With this diagonal of H_0.
    fn new(diagonal: &[f64]) -> Curvature {
        let scale = diagonal.iter().map(|&h| if h > 0.0 { h.sqrt() as f32 } else { 1.0 }).collect();
        Curvature {
            pairs: CurvaturePairs::new(ITERATIONS, Some(scale)),
            stays: diagonal.iter().map(|&h| h <= 0.0).collect(),
        }
    }

    /// The gradient without the weights that stay.
    fn free(&self, gradient: &[f64]) -> Vec<f64> {
        gradient.iter().zip(&self.stays).map(|(&g, &stays)| if stays { 0.0 } else { g }).collect()
    }

    /// -H g, and the slope along it. Without pairs the steps are each right were it alone: they are divided by sqrt K.
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

    /// The steps of a round's features, none beyond `cap`; None where none of the points tried is lower.
    pub fn steps(&mut self, state: &State, taken: &[FeatureStep], cap: f64) -> Option<Vec<f64>> {
        let (all, wrong) = (state.all(), state.wrong());
        if all.is_nan() || wrong <= LEAST * all {
            return None;
        }
        let gradient: Vec<f64> = taken.iter().map(|&(k, _)| state.slope(k) / all).collect();
        let diagonal = taken.iter().zip(&gradient).map(|(&(_, step), g)| if step * g < 0.0 { -step / g } else { 0.0 });
        let mut curvature = Curvature::new(&diagonal.collect::<Vec<f64>>());
        let mut here = Point { x: vec![0.0; taken.len()], value: all.ln() + state.shift, gradient };
        self.w.clear();
        self.w.extend_from_slice(&state.w);
        for _ in 0..ITERATIONS {
            let Some(next) = self.along(&here, taken, &curvature, cap) else { break };
            curvature.push(&here, &next);
            here = next;
        }
        here.x.iter().any(|x| *x != 0.0).then_some(here.x)
    }

    /// The lowest point that is tried along a direction, None where it does not gain.
    fn along(&mut self, here: &Point, taken: &[FeatureStep], curvature: &Curvature, cap: f64) -> Option<Point> {
        let (direction, slope) = curvature.direction(&here.gradient);
        if !(slope < 0.0 && slope.is_finite()) {
            return None;
        }
        let (mut length, mut best) = (1.0, None::<(f64, Point)>);
        for _ in 0..TRIED {
            let moved = here.x.iter().zip(&direction).map(|(x, d)| (x + length * d).clamp(-cap, cap)).collect();
            let found = self.at(taken, moved);
            let value = found.as_ref().map_or(f64::INFINITY, |point| point.value);
            let gains = value <= here.value + ARMIJO * length * slope;
            // The lowest point of the parabola through both values and the slope.
            let bend = (value - here.value - length * slope) / (length * length);
            let lowest = if bend > 0.0 { -0.5 * slope / bend } else { FURTHER * length };
            let lower = best.as_ref().is_none_or(|(_, point)| value < point.value);
            if gains && lower {
                best = found.map(|point| (length, point));
            } else if best.is_some() {
                break;
            }
            // With curvature known a length of 1 is right; only the first direction has none.
            if gains && !curvature.pairs.is_empty() {
                break;
            }
            let other = lowest.clamp(length / FURTHER, if gains { FURTHER * length } else { 0.5 * length });
            if gains && (other / length - 1.0).abs() <= NEAR {
                break;
            }
            length = other;
        }
        best.map(|(_, point)| point)
    }

    /// Value and derivatives at w + x; None where that is no number.
    fn at(&mut self, taken: &[FeatureStep], x: Vec<f64>) -> Option<Point> {
        let was: Vec<f64> = taken.iter().map(|&(k, _)| self.w[k]).collect();
        taken.iter().zip(&x).for_each(|(&(k, _), x)| self.w[k] += x);
        let found = self.objective.evaluate(&self.w, &mut self.gradient, self.shifted, false);
        taken.iter().zip(&was).for_each(|(&(k, _), was)| self.w[k] = *was);
        let loss = found.ok()?.loss;
        let (value, by) = if self.shifted { (loss, 1.0) } else { (loss.ln(), 1.0 / loss) };
        let gradient: Vec<f64> = taken.iter().map(|&(k, _)| by * self.gradient[k]).collect();
        (value.is_finite() && gradient.iter().all(|g| g.is_finite())).then_some(Point { x, value, gradient })
    }
}
