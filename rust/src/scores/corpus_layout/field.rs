//! Scores and residuals of a batch.

use crate::dataset::plan::Batch;
use crate::machine::simd::{Lane, WIDTH};

/// Data passed between the phases of a batch.
#[derive(Default)]
pub struct Field {
    pub nodes: Vec<Lane>, // [T, L] node scores, then residuals with gold labels not yet subtracted, plus slack for a tile
    pub gold: [f64; WIDTH], // scores of the gold labels
    pub subtract: Vec<Lane>, // amount to subtract at the gold labels, one for all positions or one per position
}

impl Field {
    pub fn reserve(&mut self, batch: &Batch, labels: usize) {
        let n = batch.positions() * labels + WIDTH;
        if self.nodes.len() < n {
            self.nodes.resize(n, Lane::ZERO);
        }
    }
}
