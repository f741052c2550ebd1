//! Bounds on the loss of the scaled float32 recursions to underflow, and the thresholds for flagging sentences.
//!
//! Notation of `batch`: L labels, R the span of the finite edge scores, so M is 0 or in [e^-R, 1].
//! S_t(y) = sum_y' alpha_{t-1}(y') M[y', y], x_t = psi_t S_t, c_t = sum_y x_t(y), alpha_t = x_t / c_t. A product below
//! the normal range becomes 0, and psi of a finite score is at least u = e^-87: an error of at most u, since 2^-126 <
//! u. Rounding is relative and accumulates over positions. An entry that underflows is different: it can be the only
//! one that the rest of the sentence allows.
//!
//! **No forbidden edge.** Labels may be forbidden: the bounds hold for any node scores, including -infinity.
//!
//! 1. alpha_{t-1} adds up to 1, so S_t(y) >= e^-R, and the products that S_t(y) loses are at most L u e^R of it.
//! 2. The error of x_t(y) is at most u, that of alpha_t(y) at most u / c_t.
//! 3. beta_t(y') = sum_y M[y', y] gamma_{t+1}(y) differs by a factor of at most e^R between labels, and
//!    sum_y alpha_t(y) beta_t(y) = 1. So beta_t <= e^R, and the paths lost at position t have a probability of at most
//!    L u e^R / c_t.
//! 4. Backward, gamma_t = psi_t beta_t / c_t loses at most u / c_t. A path through y at t has the probability
//!    S_t(y) gamma_t(y), so the loss is at most L u / c_t. The state whose alpha is 0 has been counted in 3.
//! 5. gamma_t(y) = p_t(y) / S_t(y) <= e^R: nothing overflows.
//!
//! A sentence with L u e^R / c_t <= 2^-24 at every position therefore loses no more than one rounding error per
//! position. Since c_t >= e^-R, that is every sentence if R <= 35 - log(L) / 2.
//!
//! **Forbidden edges.** Step 3 fails: the ratio of two betas is not bounded, because the node scores of the only
//! continuation decide it. So no entry of a reachable label may underflow. With x_t(y) >= v = L u max(2^24, 2 e^R) for
//! all reachable y,
//!
//! 1. alpha_t(y) >= v / L >= 2 u e^R, so no product alpha M of a reachable label and an allowed edge underflows.
//!    Hence S_t(y) > 0 exactly if y can be reached, and psi_t(y) > 0 exactly if y is allowed: a label with
//!    min(psi, S) > 0 and x < v flags the sentence, whether x became 0 or not.
//! 2. S_t(y) >= x_t(y) >= v, so the products that it loses, if any, are at most 2^-24 of it: every alpha is right to
//!    rounding.
//! 3. Backward, step 4 above holds, and an underflow of beta itself or of M gamma is a path of probability u at most.
//! 4. beta_t(y) = p_t(y) / alpha_t(y) <= L / min x, and gamma_t(y) <= 1 / min x. Unreachable labels have gamma = 0.
//!
//! The same bounds apply to `sentence`, which runs the backward recursion as a forward recursion from the other end.
//! There the conditions hold for both directions.
//!
//! If a quantity is conditional on a label of probability p (the pointwise losses), losses are multiplied by 1 / p. p
//! is then compared with `lost`.

use crate::machine::simd::FLOOR;

/// Largest span of finite edge scores for the scaled float32 recursions: e^R times the factor e^31 of the exponential
/// loss is still a float32.
pub const MAX_RANGE: f32 = 56.0;
/// One rounding error of float32, as a share of the probability of all paths: 2^-24.
const ROUNDING: f64 = 1.0 / (1u64 << 24) as f64;

/// Thresholds for the edges of a sentence.
#[derive(Clone, Copy, Debug, Default)]
pub struct Underflow {
    /// Whether an edge is forbidden.
    pub forbids: bool,
    /// Scale c_t below which the sentence is flagged.
    pub least_scale: f32,
    /// Entry x_t(y) of a reachable label below which the sentence is flagged, 0 if no edge is forbidden.
    pub least_entry: f32,
    /// Probability lost at a position of scale c_t, times c_t.
    loss: f32,
    /// Largest beta and gamma of a sentence of weight 1, times its least entry if edges are forbidden.
    largest: f32,
}

impl Underflow {
    /// Compute the thresholds for edges whose finite scores have this span.
    pub fn new(labels: usize, span: f64, forbids: bool) -> Underflow {
        let (l, max_ratio) = (labels as f64, span.exp());
        let unit = l * f64::from(FLOOR).exp();
        let loss = if forbids { unit } else { unit * max_ratio };
        Underflow {
            forbids,
            least_scale: (loss / ROUNDING) as f32,
            least_entry: if forbids { unit * (1.0 / ROUNDING).max(2.0 * max_ratio) } else { 0.0 } as f32,
            loss: loss as f32,
            largest: if forbids { l } else { max_ratio } as f32,
        }
    }

    /// Return the largest probability that a position of a sentence loses, and the largest beta and gamma at weight 1,
    /// given the smallest scale and the smallest entry of a reachable label. Return `None` if the sentence is flagged.
    pub fn bounds(&self, scale: f32, entry: f32) -> Option<(f32, f32)> {
        let kept = scale >= self.least_scale && entry >= self.least_entry;
        kept.then(|| (self.loss / scale, if self.forbids { self.largest / entry } else { self.largest }))
    }
}

/// Whether a path of this many positions scores more than all paths together, beyond rounding. No valid scores lead to
/// that.
pub fn exceeds_log_z(score: f64, log_z: f64, positions: usize) -> bool {
    score - log_z > 1e-3 * positions as f64 + 1e-5 * log_z.abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_sentences_that_may_underflow_are_flagged() {
        for labels in [2usize, 9, 100] {
            let safe = 35.0 - (labels as f64).ln() / 2.0 - 0.01;
            let least = |span: f64| Underflow::new(labels, span, false).least_scale;
            assert!(f64::from(least(safe)) <= (-safe).exp());
            assert!(f64::from(least(safe + 1.0)) > (-safe - 1.0).exp());
        }
        let free = Underflow::new(3, 50.0, false);
        assert!(free.bounds(free.least_scale, 0.0).is_some() && free.bounds(free.least_scale * 0.9, 1.0).is_none());
        assert!(free.bounds(f32::NAN, 1.0).is_none());
        let forbids = Underflow::new(3, 10.0, true);
        assert!(forbids.bounds(1.0, forbids.least_entry).is_some());
        assert!(forbids.bounds(1.0, forbids.least_entry * 0.9).is_none());
        assert!(exceeds_log_z(0.1, 0.0, 3) && !exceeds_log_z(1e-3, 0.0, 3) && !exceeds_log_z(-1.0, 0.0, 3));
    }
}
