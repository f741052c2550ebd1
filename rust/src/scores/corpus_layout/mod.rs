//! Node scores from features and weights, and the transpose, gradient from residuals, for sixteen sentences at a time.
//!
//! Attributes are stored in one of two ways, by frequency:
//! - *Frequent* attributes have a row of label weights in whole lanes, so adding a row takes a few vector additions. A
//!   row ends with the last label that it has a feature for. Labels are numbered by frequency, so most rows are one
//!   lane long, and the rows of a corpus fit into the L2 cache, on which their speed depends.
//! - *Rare* attributes are a flat list of (weight, position among a batch's scores), processed without a branch per
//!   token. Their weights are copied for each chunk of sentences, in the order in which its tokens use them, and so are
//!   their gradients. Access is sequential, threads never write to the same location, and the order of addition is
//!   deterministic.
//!
//! Rows are folded (see `fold`): a row that always occurs with another is added to it once per evaluation. Start and
//! end features are two more rows, present at the first and the last token.
//!
//! With very many labels one position of a batch fills the cache, and all steps are done position by position (see
//! `steps`).

mod build;
mod bundle;
mod dense;
mod field;
pub mod fold;
mod scatter;
pub mod steps;

pub use build::RowOptions;
pub use field::Field;
pub use scatter::scatter;

use crate::chain::limits::support::{mask_rows, Support};
use crate::dataset::plan::{Batch, Plan};
use crate::dataset::Dataset;
use crate::error::Result;
use crate::machine::simd::blocks::by_block;
use crate::machine::simd::dispatch::dispatch;
use crate::machine::simd::{square_mut, Lane, Simd, WIDTH};
use crate::machine::system::paged::{Flat, PagedVec, Pages};
use crate::machine::system::shared::Shared;
use crate::scores::corpus_layout::bundle::Bundles;
use crate::scores::corpus_layout::dense::DenseRows;
use crate::scores::corpus_layout::fold::Fold;
use crate::scores::corpus_layout::steps::PositionSlots;
use crate::scores::tile::Tile;
use rayon::prelude::*;
use std::ops::Range;

/// Number of tokens from which a row is periodically summed in double precision.
const HOT: u32 = 512;

/// Feature of a rare attribute at one token: its copy in the chunk, and (t L + label) 16 + lane in the batch.
#[derive(Clone, Copy, Debug)]
struct RareFeature {
    copy: u32,
    place: u32,
}

// SAFETY: two numbers of the same size.
unsafe impl Flat for RareFeature {}

/// Tokens of a plan in slot order, as rows and rare features.
pub struct Nodes {
    pub labels: usize,
    pub width: usize,          // lanes of the longest row: L / 16 rounded up
    pub group: usize,          // batches that are processed together in each phase
    order: PagedVec<u32>,      // [slots] first lane of the next token among the batch's tiles, batch by batch
    row_ptr: PagedVec<u32>,    // [slots * classes + 1] rows of each token in that order, by length in lanes
    rows: PagedVec<u32>,       // first lane of each row
    row_values: PagedVec<f32>, // empty if all are 1
    bundles: Bundles,          // tokens of each row, unless labels are very many
    row_steps: PagedVec<f32>,  // factor of residuals per row, empty if all are 1
    steps: PositionSlots,      // tokens of each position, with very many labels
    rare_ptr: Vec<usize>,      // [batches + 1]
    rare: PagedVec<RareFeature>,
    rare_values: PagedVec<f32>,
    gold: PagedVec<u32>,              // [slots] position of the gold label, or NO_GOLD
    gold_edges: PagedVec<(u32, u32)>, // edges of each sentence's gold labels, with their counts
    gold_edge_ptr: Vec<u32>,          // [sentences + 1]
    row_features: Vec<u64>,           // [rows + 1] features of each row, into `row_index`
    row_index: Vec<(u32, u16)>,       // (feature, label)
    row_at: Vec<u32>,                 // [rows + 1] first lane of each row
    hot: Vec<u32>,                    // lanes of rows too frequent for float32 sums
    copies: PagedVec<u32>,            // feature of each copy, in chunk order
    copy_ptr: Vec<usize>,             // [chunks + 1]
    fold: Fold,
    dense: Option<DenseRows>,
    pub support: Masks,
    pub partial: Masks,
    pub costs: Vec<Lane>, // [L, width] cost of every label given the row's gold label, empty without costs
}

/// Sets of labels as rows of 0 and -infinity, and the set of each slot.
#[derive(Default)]
pub struct Masks {
    rows: Vec<Lane>,   // [sets, width]
    of: PagedVec<u32>, // [slots], empty without sets
}

/// Position of an unknown gold label.
const NO_GOLD: u32 = u32::MAX;

dispatch!(
    /// `Nodes::fill`, compiled as a function of its own to reduce the compile time of callers.
    pub fn fill(
        nodes: &Nodes, batch: &Batch, rows: &[Lane], rare: &[f32], masks: &Masks, psi: &mut [Lane], gold: &mut [f64; WIDTH],
        tile: &mut Tile
    ) = |simd| {
        // SAFETY: the batch belongs to the plan that the nodes were built for, and so do the caller's arrays.
        unsafe { nodes.fill(simd, batch, rows, rare, masks, psi, gold, tile) }
    }
);

impl Nodes {
    /// Move large arrays to files.
    pub fn page(&mut self, pages: &mut Pages) -> Result<()> {
        let masks = [&mut self.support.of, &mut self.partial.of];
        for array in [&mut self.order, &mut self.row_ptr, &mut self.rows, &mut self.gold, &mut self.copies]
            .into_iter()
            .chain(masks)
        {
            pages.move_to_file(array)?;
        }
        for array in [&mut self.row_values, &mut self.row_steps, &mut self.rare_values] {
            pages.move_to_file(array)?;
        }
        pages.move_to_file(&mut self.rare)?;
        pages.move_to_file(&mut self.gold_edges)?;
        self.bundles.page(pages)
    }

    /// Move the gradient of the hot rows into double precision. A float32 sum of many thousand residuals loses the
    /// small ones, and the gradient is then inconsistent with the loss, so this is called every few thousand tokens.
    pub fn drain_hot(&self, gradient: &mut [Lane], sums: &mut Vec<f64>) {
        sums.resize(self.hot.len() * WIDTH, 0.0);
        for (&at, sum) in self.hot.iter().zip(sums.chunks_exact_mut(WIDTH)) {
            for (s, x) in sum.iter_mut().zip(&mut gradient[at as usize].0) {
                *s += f64::from(*x);
                *x = 0.0;
            }
        }
    }

    /// Set a step size per row as a function of its token count: residuals are multiplied by it. Return the step size
    /// of each lane: [lanes].
    pub fn set_step_sizes(&mut self, step_size: impl Fn(u32) -> f32) -> Vec<f32> {
        let mut count = vec![0u32; self.n_lanes() + 1];
        for &first in self.rows.iter() {
            count[first as usize] += 1;
        }
        let of = |first: u32| step_size(count[first as usize]);
        let steps: Vec<f32> = if self.is_wide() {
            let steps = self.rows.iter().enumerate();
            steps.map(|(i, &first)| of(first) * self.row_steps.get(i).copied().unwrap_or(1.0)).collect()
        } else {
            self.bundles.steps(&self.row_steps, of)
        };
        self.row_steps = steps.into();
        self.row_at.windows(2).flat_map(|at| (at[0]..at[1]).map(|_| of(at[0])).collect::<Vec<_>>()).collect()
    }

    /// Number of lanes in all rows.
    pub fn n_lanes(&self) -> usize {
        self.row_at[self.n_rows()] as usize
    }

    /// Range of lanes of a row.
    fn lanes(&self, row: usize) -> Range<usize> {
        self.row_at[row] as usize..self.row_at[row + 1] as usize
    }

    /// Masks of allowed labels, in slot order.
    pub fn masks(&self, data: &Dataset, plan: &Plan, support: &Support) -> Masks {
        let mut of = Vec::with_capacity(plan.slots);
        plan.for_each_slot(|_, b, lane, t| {
            of.push(support.of[data.sentences[plan.batches[b].sentences[lane] as usize] + t]);
        });
        Masks { rows: mask_rows(&support.sets, self.labels, self.width), of: of.into() }
    }

    pub fn n_rows(&self) -> usize {
        self.row_features.len() - 1
    }

    /// Number of copies of rare features in all chunks.
    pub fn n_copies(&self) -> usize {
        self.copies.len()
    }

    /// Range of the copies of one chunk.
    pub fn copies(&self, chunk: usize) -> Range<usize> {
        self.copy_ptr[chunk]..self.copy_ptr[chunk + 1]
    }

    /// Edges (label' * L + label) of a sentence's gold labels, with their counts.
    #[inline(always)]
    pub fn gold_edges(&self, sentence: u32) -> &[(u32, u32)] {
        let ptr = &self.gold_edge_ptr[sentence as usize..];
        &self.gold_edges[ptr[0] as usize..ptr[1] as usize]
    }

    /// Remove the gold labels, because partial labels replace them.
    pub fn forget_gold(&mut self) {
        self.gold.fill(NO_GOLD);
    }

    /// Write a weight vector to rows of weights: [lanes].
    pub fn fill_rows(&self, w: &[f64], rows: &mut [Lane]) {
        let shared = Shared::new(rows);
        (0..self.n_rows()).into_par_iter().with_min_len(512).for_each(|r| {
            let lanes = self.lanes(r);
            // SAFETY: rows do not overlap.
            let row = unsafe { shared.slice(lanes.start, lanes.len()) };
            row.fill(Lane::ZERO);
            for &(feature, label) in &self.row_index[self.row_features[r] as usize..self.row_features[r + 1] as usize] {
                row[label as usize / WIDTH].0[label as usize % WIDTH] = w[feature as usize] as f32;
            }
        });
        self.fold.gather(|carrier, carried| {
            let to = self.lanes(carrier);
            // SAFETY: a carrier is written by one thread. The rows it carries are complete and have a different level.
            let row = unsafe { shared.slice(to.start, to.len()) };
            for &b in carried {
                let from = self.lanes(b as usize);
                // SAFETY: as above.
                let add = unsafe { shared.slice(from.start, from.len()) };
                for (a, b) in row.iter_mut().zip(add) {
                    a.0.iter_mut().zip(b.0).for_each(|(x, y)| *x += y);
                }
            }
        });
    }

    /// Read the weights back from unfolded rows and the copies of one chunk, times `scale`. Inverse of `fill_rows` and
    /// `fill_rare`.
    pub fn read(&self, rows: &[Lane], rare: &[f32], scale: f64, w: &mut [f64]) {
        for r in 0..self.n_rows() {
            let row = &rows[self.lanes(r)];
            for &(feature, label) in &self.row_index[self.row_features[r] as usize..self.row_features[r + 1] as usize] {
                let x = row[label as usize / WIDTH].0[label as usize % WIDTH];
                w[feature as usize] = f64::from(x) * scale;
            }
        }
        for (&feature, &x) in self.copies.iter().zip(rare) {
            w[feature as usize] = f64::from(x) * scale;
        }
    }

    /// Write the weights of the rare features, copy by copy.
    pub fn fill_rare(&self, w: &[f64], rare: &mut [f32]) {
        let features = self.copies.par_iter().with_min_len(8192);
        features.zip(rare.par_iter_mut()).for_each(|(&feature, x)| *x = w[feature as usize] as f32);
    }

    /// Write the node scores of a batch to `psi`, [T, L] plus slack for a whole tile, and the score of its gold labels
    /// to `gold`. `rare` holds the copies of all chunks.
    ///
    /// # Safety
    /// The batch belongs to the plan that the nodes were built for. `rows` was filled by `fill_rows` and `rare` by
    /// `fill_rare`. `psi` is large enough for the batch's scores and a lane of slack.
    #[inline(always)]
    unsafe fn fill<S: Simd>(
        &self,
        simd: S,
        batch: &Batch,
        rows: &[Lane],
        rare: &[f32],
        masks: &Masks,
        psi: &mut [Lane],
        gold: &mut [f64; WIDTH],
        tile: &mut Tile,
    ) {
        let slots = batch.slot..batch.slot + batch.tokens();
        debug_assert!(slots.end <= self.order.len() && slots.end <= self.gold.len());
        debug_assert!(rows.len() >= self.n_lanes() && rare.len() >= self.n_copies());
        debug_assert!(psi.len() >= batch.positions() * self.labels);
        *gold = [0.0; WIDTH];
        if self.is_wide() {
            for t in 0..batch.positions() {
                steps::fill_step(self, batch, t, rows, rare, masks, psi, gold, tile);
            }
            return;
        }
        let tiles = tile.reserve(batch.positions() * self.width);
        for (slot, &place) in slots.clone().zip(self.order.get_unchecked(slots.clone())) {
            self.sum_rows(simd, slot, rows, 0..self.width, tiles.add(place as usize));
        }
        self.add_vectors(simd, slots.clone(), rows, 0..self.width, tiles);
        if !masks.of.is_empty() || !self.costs.is_empty() {
            let mut slot = batch.slot;
            for t in 0..batch.positions() {
                for lane in 0..batch.active(t) {
                    let place = tiles.add(t * self.width * WIDTH + lane);
                    self.add_terms(simd, slot, t, masks, 0..self.width, place);
                    slot += 1;
                }
            }
        }
        for t in 0..batch.positions() {
            for v in 0..self.width {
                simd.transpose(&tile.0[t * self.width + v], square_mut(&mut psi[t * self.labels + v * WIDTH..]));
            }
        }
        let range = self.rare_ptr[batch.index]..self.rare_ptr[batch.index + 1];
        self.add_rare(range, &rare[self.copies(batch.chunk)], psi);
        self.add_gold(slots, psi, gold);
    }

    /// Add the weights of rare features to scores.
    ///
    /// # Safety
    /// The features are within the copies and the scores.
    #[inline(always)]
    unsafe fn add_rare(&self, range: Range<usize>, rare: &[f32], psi: &mut [Lane]) {
        let scores = psi.as_mut_ptr().cast::<f32>();
        debug_assert!(self.are_in_bounds(range.clone(), rare.len(), psi.len()));
        if self.rare_values.is_empty() {
            for f in self.rare.get_unchecked(range) {
                *scores.add(f.place as usize) += *rare.get_unchecked(f.copy as usize);
            }
        } else {
            for (f, value) in self.rare[range.clone()].iter().zip(&self.rare_values[range]) {
                *scores.add(f.place as usize) += *rare.get_unchecked(f.copy as usize) * value;
            }
        }
    }

    /// Add the scores of the gold labels of some slots.
    ///
    /// # Safety
    /// The slots belong to the batch of the scores.
    #[inline(always)]
    unsafe fn add_gold(&self, slots: Range<usize>, psi: &[Lane], gold: &mut [f64; WIDTH]) {
        let scores = psi.as_ptr().cast::<f32>();
        for &place in self.gold.get_unchecked(slots) {
            if place != NO_GOLD {
                gold[place as usize % WIDTH] += f64::from(*scores.add(place as usize));
            }
        }
    }

    /// Whether rare features are within this number of copies and of lanes of scores.
    fn are_in_bounds(&self, range: Range<usize>, copies: usize, lanes: usize) -> bool {
        self.rare[range].iter().all(|f| (f.copy as usize) < copies && (f.place as usize) < lanes * WIDTH)
    }

    /// Add the given lanes of a token's mask and costs, at position t, to its place.
    ///
    /// # Safety
    /// The requirements of `add_row`, and the slot is in the plan.
    #[inline(always)]
    unsafe fn add_terms<S: Simd>(
        &self,
        simd: S,
        slot: usize,
        t: usize,
        masks: &Masks,
        lanes: Range<usize>,
        place: *mut Lane,
    ) {
        if let Some(&set) = masks.of.get(slot) {
            self.add_row(simd, &masks.rows, set as usize, lanes.clone(), place);
        }
        if !self.costs.is_empty() && self.gold[slot] != NO_GOLD {
            let y = self.gold[slot] as usize / WIDTH - t * self.labels;
            self.add_row(simd, &self.costs, y, lanes, place);
        }
    }

    /// Add these lanes of row `row` of `rows` ([.., width]) to the token at `place`.
    ///
    /// # Safety
    /// `place` and the following tiles, one per lane, are within the tiles.
    #[inline(always)]
    unsafe fn add_row<S: Simd>(&self, simd: S, rows: &[Lane], row: usize, lanes: Range<usize>, place: *mut Lane) {
        for (i, x) in rows[row * self.width..][lanes].iter().enumerate() {
            let to = &mut *place.add(i * WIDTH);
            simd.store(simd.add(simd.load(to), simd.load(x)), to);
        }
    }

    /// Write the sum of the given lanes of a token's rows to its place.
    ///
    /// # Safety
    /// The requirements of `add_row`, and the slot is in the plan.
    #[inline(always)]
    unsafe fn sum_rows<S: Simd>(&self, simd: S, slot: usize, rows: &[Lane], lanes: Range<usize>, place: *mut Lane) {
        by_block!([1 2 3 4] = self.width, W => self.sum_classes::<S, W>(simd, slot, rows, place), _ => {
            by_block!([1 2 3 4] lanes.len(), v, N => {
                self.sum_some::<S, N>(simd, slot, &rows[lanes.start + v..], place.add(v * WIDTH));
            });
        });
    }

    /// Sum the first N lanes of rows that all have full length.
    ///
    /// # Safety
    /// The requirements of `sum_rows`.
    #[inline(always)]
    unsafe fn sum_some<S: Simd, const N: usize>(&self, simd: S, slot: usize, rows: &[Lane], place: *mut Lane) {
        let mut sum = [simd.splat(0.0); N];
        self.add_class::<S, N, N>(simd, self.row_ptr[slot]..self.row_ptr[slot + 1], rows, &mut sum);
        for (v, s) in sum.into_iter().enumerate() {
            simd.store(s, &mut *place.add(v * WIDTH));
        }
    }

    /// # Safety
    /// The requirements of `sum_rows`, and W is the width.
    #[inline(always)]
    unsafe fn sum_classes<S: Simd, const W: usize>(&self, simd: S, slot: usize, rows: &[Lane], place: *mut Lane) {
        let mut sum = [simd.splat(0.0); W];
        let ptr = &self.row_ptr[slot * W..slot * W + W + 1];
        self.add_class::<S, W, 1>(simd, ptr[0]..ptr[1], rows, &mut sum);
        if W > 1 {
            self.add_class::<S, W, 2>(simd, ptr[1]..ptr[2 % (W + 1)], rows, &mut sum);
        }
        if W > 2 {
            self.add_class::<S, W, 3>(simd, ptr[2 % (W + 1)]..ptr[3 % (W + 1)], rows, &mut sum);
        }
        if W > 3 {
            self.add_class::<S, W, 4>(simd, ptr[3 % (W + 1)]..ptr[W], rows, &mut sum);
        }
        for (v, s) in sum.into_iter().enumerate() {
            simd.store(s, &mut *place.add(v * WIDTH));
        }
    }

    /// Add rows of N lanes to a sum of W lanes.
    ///
    /// # Safety
    /// `range` is within `self.rows`, and `rows` holds N lanes starting at each of them.
    #[inline(always)]
    unsafe fn add_class<S: Simd, const W: usize, const N: usize>(
        &self,
        simd: S,
        range: Range<u32>,
        rows: &[Lane],
        sum: &mut [S::F; W],
    ) {
        let range = range.start as usize..range.end as usize;
        debug_assert!(self.rows[range.clone()].iter().all(|&first| first as usize + N.min(W) <= rows.len()));
        let values = self.row_values.get(range.clone());
        for (i, &first) in self.rows.get_unchecked(range).iter().enumerate() {
            let row = rows.as_ptr().add(first as usize);
            for j in 0..N.min(W) {
                let mut x = simd.load(&*row.add(j));
                if let Some(values) = values {
                    // A product, then a sum: the same bits with and without fused multiply-add.
                    x = simd.mul(simd.splat(values[i]), x);
                }
                sum[j] = simd.add(sum[j], x);
            }
        }
    }
}
