//! One of several training sets: its weights come from all of them, and its terms of the certificate are added to
//! theirs.
//!
//! ```text
//! P(w)   = sum_k loss_k(w) + l2 |w|^2
//! P - D <= sum_k divergence_k + l2 |w - 1/(2 l2) sum_k observed_k|^2
//! ```
//!
//! Shards that ascend in parallel may move in the same direction, so none may take the full step. With K shards each
//! moves its own copy of the weights K times as far as its dual point: |sum_k x_k|^2 <= K sum_k |x_k|^2, so that the
//! sum of the individual gains is a lower bound of the joint gain. That is a `Dual` with l2 / K, whose weights are set
//! to those of all shards between rounds. Ma et al. 2015, "Adding vs. averaging in distributed primal-dual
//! optimization" (CoCoA+), sigma' = K.

use super::{Dual, DualProblem};
use crate::error::{Error, Result};
use crate::machine::simd::WIDTH;

impl DualProblem {
    /// Sort visits into sweeps, so that files are read sequentially.
    pub(super) fn sort_into_sweeps(&self, order: &mut [u32]) {
        if self.sweeps > 0 && !order.is_empty() {
            order.chunks_mut(order.len().div_ceil(self.sweeps)).for_each(|sweep| sweep.sort_unstable());
        }
    }
}

impl Dual {
    /// Set the number of sweeps over the sentences in which an epoch makes its visits, or 0 for any order.
    pub fn set_sweeps(&mut self, sweeps: usize) {
        self.problem.sweeps = sweeps;
    }

    /// Replace the weights, one per feature. The dual point is unchanged.
    pub fn set_weights(&mut self, weights: &[f64]) -> Result<()> {
        let (cells, w) = (&self.problem.cells, &mut self.w);
        if weights.len() != cells.features() {
            return Err(Error::Value(format!("{} weights for {} features", weights.len(), cells.features())));
        }
        cells.scatter(weights, |cell, x| w[cell / WIDTH].0[cell % WIDTH] = x as f32);
        Ok(())
    }
}
