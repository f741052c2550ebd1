//! Very many labels: the tokens of one position at a time.
//!
//! The scores of one position of sixteen sentences take 64 bytes per label. With thousands of labels a batch exceeds
//! any cache, and every phase over a whole batch is limited by memory bandwidth. Processed position by position,
//! scores, recursion and gradient find the results of the previous phase in the L2 cache. Rows are read four lanes at a
//! time for all tokens of the position, so that rows shared by several tokens are in the L1 cache.

use crate::dataset::plan::Batch;
use crate::machine::simd::blocks::by_block;
use crate::machine::simd::dispatch::dispatch;
use crate::machine::simd::{square, square_mut, Lane, Simd, WIDTH};
use crate::scores::corpus_layout::{Masks, Nodes};
use crate::scores::tile::Tile;
use std::ops::Range;

/// Width in lanes up to which a batch is processed as a whole.
const MAX_BATCH_WIDTH: usize = 16;
/// Number of lanes processed at a time.
const LANES_AT_ONCE: usize = 4;

/// First slot and first rare feature of each position, and the end of the last.
#[derive(Default)]
pub(super) struct PositionSlots {
    of: Vec<usize>, // [batches] index of each batch's first position
    slot: Vec<usize>,
    rare: Vec<usize>,
}

impl PositionSlots {
    /// Begin the next batch.
    pub fn begin(&mut self) {
        self.of.push(self.slot.len());
    }

    pub fn push(&mut self, slot: usize, rare: usize) {
        self.slot.push(slot);
        self.rare.push(rare);
    }

    fn slots(&self, batch: &Batch, t: usize) -> Range<usize> {
        let at = self.of[batch.index] + t;
        self.slot[at]..self.slot[at + 1]
    }

    fn rare(&self, batch: &Batch, t: usize) -> Range<usize> {
        let at = self.of[batch.index] + t;
        self.rare[at]..self.rare[at + 1]
    }
}

dispatch!(
    /// `fill` for one position, with very many labels. Call it in the order of positions. Adds to `gold`.
    pub fn fill_step(
        nodes: &Nodes, batch: &Batch, t: usize, rows: &[Lane], rare: &[f32], masks: &Masks, psi: &mut [Lane],
        gold: &mut [f64; WIDTH], tile: &mut Tile
    ) = |simd| {
        // SAFETY: the batch belongs to the plan that the nodes were built for, and so do the caller's arrays.
        unsafe { nodes.fill_step(simd, batch, t, rows, rare, masks, psi, gold, tile) }
    }
);

impl Nodes {
    /// Whether batches are processed position by position.
    pub fn is_wide(&self) -> bool {
        self.width > MAX_BATCH_WIDTH
    }

    /// # Safety
    /// The requirements of `fill`, and there are very many labels.
    #[inline(always)]
    unsafe fn fill_step<S: Simd>(
        &self,
        simd: S,
        batch: &Batch,
        t: usize,
        rows: &[Lane],
        rare: &[f32],
        masks: &Masks,
        psi: &mut [Lane],
        gold: &mut [f64; WIDTH],
        tile: &mut Tile,
    ) {
        let slots = self.steps.slots(batch, t);
        let tiles = tile.reserve(LANES_AT_ONCE);
        for first in (0..self.width).step_by(LANES_AT_ONCE) {
            let lanes = first..self.width.min(first + LANES_AT_ONCE);
            for (lane, slot) in slots.clone().enumerate() {
                self.sum_rows(simd, slot, rows, lanes.clone(), tiles.add(lane));
            }
            self.add_vectors(simd, slots.clone(), rows, lanes.clone(), tiles);
            if !masks.of.is_empty() || !self.costs.is_empty() {
                for (lane, slot) in slots.clone().enumerate() {
                    self.add_terms(simd, slot, t, masks, lanes.clone(), tiles.add(lane));
                }
            }
            for v in lanes {
                simd.transpose(&tile.0[v - first], square_mut(&mut psi[t * self.labels + v * WIDTH..]));
            }
        }
        self.add_rare(self.steps.rare(batch, t), &rare[self.copies(batch.chunk)], psi);
        self.add_gold(slots, psi, gold);
    }

    /// `scatter` for one position of one batch.
    ///
    /// # Safety
    /// The requirements of `scatter`, there are very many labels, and `residual` is that of the batch.
    #[inline(always)]
    pub unsafe fn scatter_step<S: Simd>(
        &self,
        simd: S,
        batch: &Batch,
        t: usize,
        residual: &mut [Lane],
        subtracted: &Lane,
        gradient: &mut [Lane],
        rare: &mut [f32],
        tile: &mut Tile,
    ) {
        let slots = self.steps.slots(batch, t);
        self.subtract_gold(slots.clone(), subtracted, residual);
        self.scatter_rare(self.steps.rare(batch, t), residual, rare);
        let tiles = tile.reserve(LANES_AT_ONCE);
        for first in (0..self.width).step_by(LANES_AT_ONCE) {
            let lanes = first..self.width.min(first + LANES_AT_ONCE);
            for v in lanes.clone() {
                let from = square(&residual[t * self.labels + v * WIDTH..]);
                simd.transpose(from, &mut tile.0[v - first]);
            }
            self.scatter_vectors(simd, slots.clone(), tiles, lanes.clone(), gradient);
            for (lane, slot) in slots.clone().enumerate() {
                let (place, gradient) = (tiles.add(lane), &mut gradient[first..]);
                by_block!([1 2 3 4] = lanes.len(), N => self.scatter_rows::<S, N>(simd, slot, place, gradient), _ => {});
            }
        }
    }

    /// Add N lanes of a token's residuals to the first lanes of its rows.
    ///
    /// # Safety
    /// `place` and the N - 1 following tiles hold residuals of the slot's token.
    #[inline(always)]
    unsafe fn scatter_rows<S: Simd, const N: usize>(
        &self,
        simd: S,
        slot: usize,
        place: *const Lane,
        gradient: &mut [Lane],
    ) {
        let range = self.row_ptr[slot] as usize..self.row_ptr[slot + 1] as usize;
        let residual: [S::F; N] = std::array::from_fn(|j| simd.load(&*place.add(j * WIDTH)));
        let steps = self.row_steps.get(range.clone());
        for (i, &first) in self.rows[range].iter().enumerate() {
            let row = &mut gradient[first as usize..first as usize + N];
            for j in 0..N {
                let x = steps.map_or(residual[j], |steps| simd.mul(simd.splat(steps[i]), residual[j]));
                simd.store(simd.add(simd.load(&row[j]), x), &mut row[j]);
            }
        }
    }
}
