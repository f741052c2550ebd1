//! Gradient rows from residuals, row by row: the tokens of each row, for a group of batches at a time.
//!
//! Token by token, every row would be read and written once for each token that has it, in random order over all rows,
//! which exceed the L2 cache. A group's residuals fit into it, so they are read in random order instead, and each row
//! is accessed once per group. Rows are ordered by their number of tokens, so that the end of the loop over tokens is
//! predicted correctly.

use crate::dataset::plan::{Batch, Plan};
use crate::error::Result;
use crate::machine::simd::blocks::by_block;
use crate::machine::simd::{prefetch, Lane, Simd, WIDTH};
use crate::machine::system::paged::{Flat, PagedVec, Pages};
use std::ops::Range;

/// Prefetch distance in rows.
const PREFETCH_DISTANCE: usize = 12;

/// A row and the number of a group's tokens that have it.
#[derive(Clone, Copy, Debug)]
struct Head {
    row: u32, // its first lane
    tokens: u32,
}

// SAFETY: two numbers of the same size.
unsafe impl Flat for Head {}

/// Rows of all groups.
#[derive(Default)]
pub struct Bundles {
    width: usize,
    group_of: Vec<u32>,    // [batches] group whose first batch this is
    heads: PagedVec<Head>, // group by group, rows of one lane first, then of two, ...
    head_ptr: Vec<usize>,  // [groups * classes + 1]
    places: PagedVec<u32>, // first lane of each head's tokens among the group's tiles
    place_ptr: Vec<usize>, // [groups + 1]
}

impl Bundles {
    /// Move large arrays to files.
    pub fn page(&mut self, pages: &mut Pages) -> Result<()> {
        pages.move_to_file(&mut self.heads)?;
        pages.move_to_file(&mut self.places)
    }

    /// Build the bundles. `entries(batch)`: the entries of a batch as (class, first lane of the row, position within
    /// the batch). `values`: one per entry in this order, empty if all are 1. They are returned in the order in which
    /// `add` reads them.
    pub fn new(
        plan: &Plan,
        group: usize,
        width: usize,
        classes: usize,
        lanes: usize,
        entries: impl Fn(&Batch, &mut dyn FnMut(usize, u32, u32)),
        values: &[f32],
    ) -> (Bundles, Vec<f32>) {
        let mut steps = vec![0.0; values.len()];
        let mut out = Bundles { width, head_ptr: vec![0], place_ptr: vec![0], ..Bundles::default() };
        out.group_of = vec![u32::MAX; plan.batches.len()];
        // For each row of the group: its number of tokens, and the index for the next of them. Then the rows by class.
        let (mut count, mut next) = (vec![0u32; lanes + 1], vec![0u32; lanes + 1]);
        let mut touched: Vec<Vec<u32>> = vec![Vec::new(); classes];
        let mut found: Vec<(u32, u32)> = Vec::new();
        for chunk in &plan.chunks {
            for batches in plan.batches[chunk.clone()].chunks(group) {
                out.group_of[batches[0].index] = (out.place_ptr.len() - 1) as u32;
                found.clear();
                let mut base = 0;
                for batch in batches {
                    entries(batch, &mut |class, row, place| {
                        if count[row as usize] == 0 {
                            touched[class].push(row);
                        }
                        count[row as usize] += 1;
                        found.push((row, base + place));
                    });
                    base += (batch.positions() * width * WIDTH) as u32;
                }
                let begin = out.places.len();
                let mut to = begin as u32;
                for rows in &mut touched {
                    rows.sort_unstable_by_key(|&row| (count[row as usize], row));
                    for &row in &*rows {
                        let tokens = std::mem::take(&mut count[row as usize]);
                        out.heads.vec().push(Head { row, tokens });
                        next[row as usize] = to;
                        to += tokens;
                    }
                    out.head_ptr.push(out.heads.len());
                    rows.clear();
                }
                out.places.vec().resize(to as usize, 0);
                for (i, &(row, place)) in found.iter().enumerate() {
                    let to = next[row as usize] as usize;
                    out.places[to] = place;
                    if let Some(&value) = values.get(begin + i) {
                        steps[to] = value;
                    }
                    next[row as usize] += 1;
                }
                out.place_ptr.push(out.places.len());
            }
        }
        (out, steps)
    }

    /// Multiply the existing steps, 1 if empty, by one factor per row.
    pub fn steps(&self, steps: &[f32], of: impl Fn(u32) -> f32) -> Vec<f32> {
        let rows = self.heads.iter().flat_map(|head| std::iter::repeat_n(head.row, head.tokens as usize));
        rows.enumerate().map(|(i, row)| of(row) * steps.get(i).copied().unwrap_or(1.0)).collect()
    }

    /// Add the residuals of a group, given by its first batch, to the rows. `tiles`: the tiles of its batches,
    /// concatenated. `steps`: a factor per entry, empty if all are 1.
    ///
    /// # Safety
    /// The batch is the first of a group, `tiles` are those of the group, `gradient` is [lanes].
    #[inline(always)]
    pub unsafe fn add<S: Simd>(
        &self,
        simd: S,
        first: &Batch,
        tiles: *const Lane,
        steps: &[f32],
        gradient: &mut [Lane],
    ) {
        debug_assert!(self.group_of[first.index] != u32::MAX);
        let group = self.group_of[first.index] as usize;
        debug_assert!(self.are_in_bounds(group, gradient.len()));
        let mut at = self.place_ptr[group];
        let gradient = gradient.as_mut_ptr();
        if self.width > 4 {
            let heads = self.head_ptr[group]..self.head_ptr[group + 1];
            by_block!([1 2 3 4] self.width, v, N => {
                let (tiles, gradient) = (tiles.add(v * WIDTH), gradient.add(v));
                at = self.place_ptr[group];
                self.add_class::<S, N>(simd, heads.clone(), &mut at, tiles, steps, gradient);
            });
            return;
        }
        let heads =
            |class: usize| self.head_ptr[group * self.width + class]..self.head_ptr[group * self.width + class + 1];
        self.add_class::<S, 1>(simd, heads(0), &mut at, tiles, steps, gradient);
        if self.width > 1 {
            self.add_class::<S, 2>(simd, heads(1), &mut at, tiles, steps, gradient);
        }
        if self.width > 2 {
            self.add_class::<S, 3>(simd, heads(2), &mut at, tiles, steps, gradient);
        }
        if self.width > 3 {
            self.add_class::<S, 4>(simd, heads(3), &mut at, tiles, steps, gradient);
        }
    }

    /// Whether the rows of a group begin within this number of lanes.
    fn are_in_bounds(&self, group: usize, lanes: usize) -> bool {
        let classes = if self.width > 4 { 1 } else { self.width };
        let heads = self.head_ptr[group * classes]..self.head_ptr[(group + 1) * classes];
        self.heads[heads].iter().all(|head| (head.row as usize) < lanes)
    }

    /// Add rows of N lanes.
    ///
    /// # Safety
    /// The requirements of `add`, the heads are rows of at least N lanes, and `at` is the index of their first place.
    #[inline(always)]
    unsafe fn add_class<S: Simd, const N: usize>(
        &self,
        simd: S,
        heads: Range<usize>,
        at: &mut usize,
        tiles: *const Lane,
        steps: &[f32],
        gradient: *mut Lane,
    ) {
        debug_assert!(heads.end <= self.heads.len());
        for (i, head) in self.heads.get_unchecked(heads.clone()).iter().enumerate() {
            if let Some(later) = self.heads.get(heads.start + i + PREFETCH_DISTANCE) {
                let row = gradient.wrapping_add(later.row as usize);
                (0..N).for_each(|j| prefetch(row.wrapping_add(j)));
            }
            let range = *at..*at + head.tokens as usize;
            *at = range.end;
            debug_assert!(range.end <= self.places.len());
            let places = self.places.get_unchecked(range.clone());
            let row = gradient.add(head.row as usize);
            let mut sum = [simd.splat(0.0); N];
            for (j, sum) in sum.iter_mut().enumerate() {
                *sum = simd.load(&*row.add(j));
            }
            if let Some(steps) = steps.get(range) {
                for (&place, &step) in places.iter().zip(steps) {
                    for j in 0..N {
                        // A product, then a sum: the same bits with and without fused multiply-add.
                        let x = simd.mul(simd.splat(step), simd.load(&*tiles.add(place as usize + j * WIDTH)));
                        sum[j] = simd.add(sum[j], x);
                    }
                }
            } else {
                let mut pairs = places.chunks_exact(2);
                let mut other = [simd.splat(0.0); N]; // every second token, to halve the latency
                for pair in &mut pairs {
                    for j in 0..N {
                        sum[j] = simd.add(sum[j], simd.load(&*tiles.add(pair[0] as usize + j * WIDTH)));
                        other[j] = simd.add(other[j], simd.load(&*tiles.add(pair[1] as usize + j * WIDTH)));
                    }
                }
                for &place in pairs.remainder() {
                    for j in 0..N {
                        sum[j] = simd.add(sum[j], simd.load(&*tiles.add(place as usize + j * WIDTH)));
                    }
                }
                for j in 0..N {
                    sum[j] = simd.add(sum[j], other[j]);
                }
            }
            for j in 0..N {
                simd.store(sum[j], &mut *row.add(j));
            }
        }
    }
}
