//! A training set that is one of several: its weights come from all of them, and its share of the certificate goes to all.
//!
//! ```text
//! P(w) = sum_k loss_k(w) + l2 |w|^2
//! D    = sum_k entropy_k - l2 |w - 1/(2 l2) sum_k off_k|^2
//! ```
//!
//! A shard that ascends beside others must not take all of a way that they go too. With K of them it moves its own copy of
//! the weights K times as far as its dual point says: |sum_k x_k|^2 <= K sum_k |x_k|^2, so that what all of them gain, each
//! alone, is a lower bound of what they gain together. That is a `Dual` with l2 / K, whose weights are set to those of all
//! between rounds. Ma et al. 2015, "Adding vs. averaging in distributed primal-dual optimization" (CoCoA+), sigma' = K.

use super::{certify, Dual, Ground};
use crate::error::{Error, Result};
use crate::machine::simd::WIDTH;

/// What the sentences here add to the certificate of all.
#[derive(Clone, Debug, Default)]
pub struct Terms {
    /// NaN where a sentence is beyond float32.
    pub loss: f64,
    pub entropy: f64,
    /// [features] s F(m - mu), m being the chains that the entropy is of; empty where the loss alone was asked for.
    pub off: Vec<f64>,
}

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

    /// The terms of the weights now: of P and D, or of P alone.
    pub fn terms(&self, couples: bool) -> Terms {
        let found = certify::in_parts(self, certify::parts_of(self, couples), couples);
        let (loss, entropy) = found.iter().fold((0.0, 0.0), |sum, part| (sum.0 + part.loss, sum.1 + part.entropy));
        if !couples {
            return Terms { loss, entropy, off: Vec::new() };
        }
        let [begin, end] = self.ground.cells.edges.map(|cell| cell as usize);
        let mut pairs = vec![0.0; end - begin];
        for part in &found {
            for (&at, &x) in self.ground.edge_at.iter().zip(&part.pairs) {
                pairs[at as usize] += x;
            }
        }
        let off = self.ground.cells.gather(|cell| match (begin..end).contains(&cell) {
            true => pairs[cell - begin],
            false => found.iter().map(|part| f64::from(part.nodes[cell / WIDTH].0[cell % WIDTH])).sum(),
        });
        Terms { loss, entropy, off }
    }
}
