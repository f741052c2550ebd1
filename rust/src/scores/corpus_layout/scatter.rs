//! Gradient from residuals: the transpose of `fill`, and the gradient of features from that of rows and copies.

use crate::dataset::plan::Batch;
use crate::machine::simd::dispatch::dispatch;
use crate::machine::simd::{square, Lane, Simd, WIDTH};
use crate::machine::system::shared::Shared;
use crate::scores::corpus_layout::{Field, Nodes, NO_GOLD};
use crate::scores::tile::Tile;
use rayon::prelude::*;
use std::ops::Range;

dispatch!(
    /// `Nodes::scatter`, compiled as a function of its own.
    pub fn scatter(
        nodes: &Nodes, group: &[Batch], fields: &mut [Field], gradient: &mut [Lane], rare: &mut [f32], tile: &mut Tile
    ) = |simd| {
        // SAFETY: the group belongs to the plan that the nodes were built for, and so do the caller's arrays.
        unsafe { nodes.scatter(simd, group, fields, gradient, rare, tile) }
    }
);

impl Nodes {
    /// Transpose of `fill` for a group of batches: add the residuals ([T, L] plus slack for a whole tile), less the
    /// amounts to subtract at the gold labels, to the gradient rows and to `rare`, the chunk's copies.
    ///
    /// # Safety
    /// The group is one of those that the nodes were built for, `fields` are those of its batches, `gradient` is
    /// [lanes], and `rare` are the copies of its chunk.
    #[inline(always)]
    unsafe fn scatter<S: Simd>(
        &self,
        simd: S,
        group: &[Batch],
        fields: &mut [Field],
        gradient: &mut [Lane],
        rare: &mut [f32],
        tile: &mut Tile,
    ) {
        let positions: usize = group.iter().map(|batch| batch.positions()).sum();
        debug_assert!(fields.len() >= group.len() && gradient.len() >= self.n_lanes());
        if self.is_wide() {
            for (batch, Field { nodes, subtract, .. }) in group.iter().zip(fields) {
                for t in 0..batch.positions() {
                    self.scatter_step(simd, batch, t, nodes, &subtract[t % subtract.len()], gradient, rare, tile);
                }
            }
            return;
        }
        tile.reserve(positions * self.width);
        let mut base = 0;
        for (batch, field) in group.iter().zip(fields) {
            self.scatter_batch(simd, batch, &mut field.nodes, &field.subtract, rare, &mut tile.0[base..]);
            let slots = batch.slot..batch.slot + batch.tokens();
            self.scatter_vectors(simd, slots, tile.0[base..].as_ptr().cast(), 0..self.width, gradient);
            base += batch.positions() * self.width;
        }
        self.bundles.add(simd, &group[0], tile.0.as_ptr().cast(), &self.row_steps, gradient);
    }

    /// Add the residuals of a batch to its rare features, and write them to its tiles. `subtract`: one for all
    /// positions, or one per position.
    ///
    /// # Safety
    /// The requirements of `scatter`, and `tile` is large enough for the batch.
    #[inline(always)]
    unsafe fn scatter_batch<S: Simd>(
        &self,
        simd: S,
        batch: &Batch,
        residual: &mut [Lane],
        subtract: &[Lane],
        rare: &mut [f32],
        tile: &mut [[Lane; WIDTH]],
    ) {
        debug_assert!(batch.slot + batch.tokens() <= self.gold.len());
        let mut slot = batch.slot;
        for t in 0..batch.positions() {
            let active = batch.active(t);
            self.subtract_gold(slot..slot + active, &subtract[t % subtract.len()], residual);
            slot += active;
        }
        self.scatter_rare(self.rare_ptr[batch.index]..self.rare_ptr[batch.index + 1], residual, rare);
        for t in 0..batch.positions() {
            for v in 0..self.width {
                let from = square(&residual[t * self.labels + v * WIDTH..]);
                simd.transpose(from, &mut tile[t * self.width + v]);
            }
        }
    }

    /// Subtract `less` at the gold labels of some slots.
    ///
    /// # Safety
    /// The slots belong to the batch of the residuals.
    #[inline(always)]
    pub(super) unsafe fn subtract_gold(&self, slots: Range<usize>, less: &Lane, residual: &mut [Lane]) {
        let values = residual.as_mut_ptr().cast::<f32>();
        for &place in self.gold.get_unchecked(slots) {
            if place != NO_GOLD {
                *values.add(place as usize) -= less.0[place as usize % WIDTH];
            }
        }
    }

    /// Add residuals to rare features.
    ///
    /// # Safety
    /// The features are within the copies and the residuals.
    #[inline(always)]
    pub(super) unsafe fn scatter_rare(&self, range: Range<usize>, residual: &[Lane], rare: &mut [f32]) {
        debug_assert!(self.are_in_bounds(range.clone(), rare.len(), residual.len()));
        let values = residual.as_ptr().cast::<f32>();
        if self.rare_values.is_empty() {
            for f in self.rare.get_unchecked(range) {
                *rare.get_unchecked_mut(f.copy as usize) += *values.add(f.place as usize);
            }
        } else {
            for (f, value) in self.rare[range.clone()].iter().zip(&self.rare_values[range]) {
                *rare.get_unchecked_mut(f.copy as usize) += *values.add(f.place as usize) * value;
            }
        }
    }

    /// Gradient of the features in rows. Sum the chunks in order into `total` ([lanes, 16]) and clear them, distribute
    /// the sums of carriers to the rows that they carry, and read the existing features.
    pub fn collect_rows<'a>(
        &self,
        chunks: &mut [Vec<Lane>],
        hot: impl Iterator<Item = &'a [f64]>,
        total: &mut Vec<f64>,
        gradient: &Shared<'_, f64>,
    ) {
        total.resize(self.n_lanes() * WIDTH, 0.0);
        let chunks: Vec<Shared<'_, Lane>> = chunks.iter_mut().map(|chunk| Shared::new(&mut chunk[..])).collect();
        total.par_chunks_mut(WIDTH).enumerate().with_min_len(512).for_each(|(at, part)| {
            let mut sum = [0.0f64; WIDTH];
            for chunk in &chunks {
                // SAFETY: each lane is accessed by one thread.
                let lane = unsafe { &mut chunk.slice(at, 1)[0] };
                for (s, &x) in sum.iter_mut().zip(&lane.0) {
                    *s += f64::from(x);
                }
                *lane = Lane::ZERO;
            }
            part.copy_from_slice(&sum);
        });
        for sums in hot {
            for (&at, sum) in self.hot.iter().zip(sums.chunks_exact(WIDTH)) {
                for (t, s) in total[at as usize * WIDTH..].iter_mut().zip(sum) {
                    *t += s;
                }
            }
        }
        let shared = Shared::new(&mut total[..]);
        self.fold.scatter(|row, carriers| {
            let to = self.lanes(row);
            // SAFETY: a carried row is written by one thread. Its carriers are complete and have a different level.
            let sum = unsafe { shared.slice(to.start * WIDTH, to.len() * WIDTH) };
            for &a in carriers {
                // SAFETY: as above.
                let add = unsafe { shared.slice(self.lanes(a as usize).start * WIDTH, sum.len()) };
                sum.iter_mut().zip(add).for_each(|(x, y)| *x += *y);
            }
        });
        (0..self.n_rows()).into_par_iter().with_min_len(256).for_each(|r| {
            let row = &total[self.lanes(r).start * WIDTH..];
            for &(feature, label) in &self.row_index[self.row_features[r] as usize..self.row_features[r + 1] as usize] {
                // SAFETY: a feature belongs to at most one row.
                unsafe { gradient.set(feature as usize, row[label as usize]) };
            }
        });
    }

    /// Add the gradient of the rare features, copy by copy in chunk order. `gradient` must be zero at these features.
    pub fn collect_rare(&self, rare: &[f32], gradient: &Shared<'_, f64>) {
        for chunk in self.copy_ptr.windows(2) {
            let (copies, rare) = (&self.copies[chunk[0]..chunk[1]], &rare[chunk[0]..chunk[1]]);
            copies.par_iter().with_min_len(8192).zip(rare).for_each(|(&feature, &x)| {
                // SAFETY: a feature has one copy per chunk.
                unsafe { gradient.add(feature as usize, f64::from(x)) };
            });
        }
    }
}
