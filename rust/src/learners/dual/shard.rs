//! A training set that is one of several: its weights come from all of them, and its terms of the certificate are added to theirs.
//!
//! ```text
//! P(w)   = sum_k loss_k(w) + l2 |w|^2
//! P - D <= sum_k divergence_k + l2 |w - 1/(2 l2) sum_k observed_k|^2
//! ```
//!
//! A shard that ascends beside others must not take all of a way that they go too. With K of them it moves its own copy of
//! the weights K times as far as its dual point says: |sum_k x_k|^2 <= K sum_k |x_k|^2, so that what all of them gain, each
//! alone, is a lower bound of what they gain together. That is a `Dual` with l2 / K, whose weights are set to those of all
//! between rounds. Ma et al. 2015, "Adding vs. averaging in distributed primal-dual optimization" (CoCoA+), sigma' = K.

use super::{Dual, Ground};
use crate::error::{Error, Result};
use crate::machine::simd::WIDTH;

impl Ground {
    /// Visits in sweeps: what is in files is then read from its begin to its end, and not here and there.
    pub(super) fn in_sweeps(&self, order: &mut [u32]) {
        if self.sweeps > 0 && !order.is_empty() {
            order.chunks_mut(order.len().div_ceil(self.sweeps)).for_each(|sweep| sweep.sort_unstable());
        }
    }
}

impl Dual {
    /// Let the visits of an epoch come in so many sweeps over the sentences; in any order where it is 0.
    pub fn set_sweeps(&mut self, sweeps: usize) {
        self.ground.sweeps = sweeps;
    }

    /// Take other weights, one a feature; the dual point stays.
    pub fn set_weights(&mut self, weights: &[f64]) -> Result<()> {
        let (cells, w) = (&self.ground.cells, &mut self.w);
        if weights.len() != cells.features() {
            return Err(Error::Value(format!("{} weights for {} features", weights.len(), cells.features())));
        }
        cells.scatter(weights, |cell, x| w[cell / WIDTH].0[cell % WIDTH] = x as f32);
        Ok(())
    }
}
