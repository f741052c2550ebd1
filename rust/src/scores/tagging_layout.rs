//! Weights by attribute, packed for scoring: one lookup per attribute finds everything that it adds to a token's
//! scores.
//!
//! An attribute with many labels is a row of whole lanes, added in registers. One with few labels is a list of (label,
//! weight). If all labels fit into one lane there are no lists: an attribute with a single label is a weight times a
//! row that is 1 at this label, so every attribute costs the same few instructions without a branch. The arrays of a
//! `Layout` hold the same weights in a third of the memory, but cost four cache misses per attribute.

use crate::dataset::csr::{Csr, CsrRef};
use crate::dataset::layout::Layout;
use crate::dataset::runs::{RunTable, TokenRuns};
use crate::machine::simd::blocks::by_block;
use crate::machine::simd::dispatch::dispatch;
use crate::machine::simd::{prefetch, prefetch_all, Lane, Simd, WIDTH};
use rayon::prelude::*;
use std::ops::Range;

/// Location of an attribute's weights: `lanes` lanes of `rows` or `pairs` pairs of `pairs`, starting at `first`. In a
/// table of one lane: `scale` times row `first`.
#[derive(Clone, Copy, Default)]
struct TableEntry {
    first: u32,
    tail: u32,
}

impl TableEntry {
    fn new(first: usize, lanes: usize, pairs: usize) -> Option<TableEntry> {
        let (lanes, pairs) = (u16::try_from(lanes).ok()?, u16::try_from(pairs).ok()?);
        Some(TableEntry { first: u32::try_from(first).ok()?, tail: u32::from(lanes) << 16 | u32::from(pairs) })
    }

    fn scaled(first: usize, scale: f32) -> Option<TableEntry> {
        Some(TableEntry { first: u32::try_from(first).ok()?, tail: scale.to_bits() })
    }

    #[inline(always)]
    fn lanes(self) -> usize {
        (self.tail >> 16) as usize
    }

    #[inline(always)]
    fn pairs(self) -> usize {
        (self.tail & 0xffff) as usize
    }

    #[inline(always)]
    fn scale(self) -> f32 {
        f32::from_bits(self.tail)
    }
}

#[derive(Clone, Copy)]
struct LabelWeight {
    label: u32,
    weight: f32,
}

/// Number of attributes scored together.
const CHUNK: usize = 64;
/// Number of runs per task.
const RUNS_PER_TASK: usize = 512;
/// Maximum number of bytes of cached sums. Runs are numbered by first occurrence, so frequent ones come early.
const MAX_CACHED_BYTES: usize = 1 << 24;
/// Maximum width of rows with cached sums.
const MAX_CACHED_WIDTH: usize = 4;

/// Sums of the first runs of a book.
#[derive(Default)]
pub struct RunSums {
    run_table: u64,
    rows: Vec<Lane>, // [runs, width]
}

/// Attributes of tokens: single ones, and rows of sums for runs, if any.
#[derive(Clone, Copy)]
pub struct Attributes<'a> {
    pub single: CsrRef<'a>,
    pub runs: Option<(&'a TokenRuns, &'a RunSums)>,
}

impl Attributes<'_> {
    /// Prefetch the attribute ids of these tokens.
    pub fn prefetch(&self, tokens: Range<usize>) {
        let ptr = &self.single.ptr[tokens.start..tokens.end + 1];
        prefetch_all(ptr);
        prefetch_all(&self.single.ids[ptr[0]..ptr[tokens.len()]]);
        if let Some((runs, _)) = self.runs {
            prefetch_all(&runs.of[tokens.start * runs.groups..tokens.end * runs.groups]);
        }
    }
}

dispatch!(
    /// Sum the runs starting at number `first`.
    fn sum_runs(table: &Table, runs: &Csr, first: usize, sums: &mut [Lane]) = sum_kernel
);

#[inline(always)]
fn sum_kernel<S: Simd>(simd: S, table: &Table, runs: &Csr, first: usize, sums: &mut [Lane]) {
    let from = Attributes { single: runs.view(), runs: None };
    let count = sums.len() / table.width;
    for (i, row) in sums.chunks_exact_mut(table.width).enumerate() {
        if i + 1 < count {
            table.prefetch(&from, first + i + 1);
        }
        // SAFETY: runs contain no runs.
        unsafe { table.score(simd, &from, first + i, row) };
    }
}

pub struct Table {
    width: usize,
    entries: Vec<TableEntry>, // [attributes]
    rows: Vec<Lane>,
    pairs: Vec<LabelWeight>,
}

impl Table {
    /// Return `None` if the arrays would be too large for their indices.
    pub fn new(layout: &Layout, weights: &[f32]) -> Option<Table> {
        let width = layout.labels.div_ceil(WIDTH);
        let mut out =
            Table { width, entries: Vec::with_capacity(layout.attributes), rows: Vec::new(), pairs: Vec::new() };
        if width == 1 {
            out.rows.extend((0..WIDTH).map(|y| Lane(std::array::from_fn(|i| f32::from(u8::from(i == y))))));
        }
        for a in 0..layout.attributes {
            let (first, labels) = layout.node(a as u32);
            let of = labels.iter().zip(&weights[first..first + labels.len()]).filter(|&(_, &w)| w != 0.0);
            let count = of.clone().count();
            let lanes = of.clone().map(|(&y, _)| y as usize / WIDTH + 1).max().unwrap_or(0);
            let at = out.rows.len();
            if width == 1 && count < 2 {
                let (label, weight) = of.clone().next().map_or((0, 0.0), |(&y, &w)| (y as usize, w));
                out.entries.push(TableEntry::scaled(label, weight)?);
            } else if width == 1 || count > 2 * lanes {
                out.entries.push(if width == 1 {
                    TableEntry::scaled(at, 1.0)?
                } else {
                    TableEntry::new(at, lanes, 0)?
                });
                out.rows.resize(at + lanes, Lane::ZERO);
                for (&y, &w) in of {
                    out.rows[at + y as usize / WIDTH].0[y as usize % WIDTH] = w;
                }
            } else {
                out.entries.push(TableEntry::new(out.pairs.len(), 0, count)?);
                out.pairs.extend(of.map(|(&y, &w)| LabelWeight { label: u32::from(y), weight: w }));
            }
        }
        Some(out)
    }

    /// Return the sums of the attributes of each run of a book, up to the cache limit. `cached`: sums computed by this
    /// table before. Return `None` if rows are too wide for `score` to use them.
    pub fn sums(&self, run_table: &RunTable, mut cached: RunSums) -> Option<RunSums> {
        if self.width > MAX_CACHED_WIDTH {
            return None;
        }
        if cached.run_table != run_table.number {
            (cached.run_table, cached.rows) = (run_table.number, Vec::new());
        }
        let max_runs = MAX_CACHED_BYTES / size_of::<Lane>() / self.width;
        let (from, to) = (cached.rows.len() / self.width, run_table.ids.rows().min(max_runs));
        if from < to {
            cached.rows.resize(to * self.width, Lane::ZERO);
            let parts = cached.rows[from * self.width..].par_chunks_mut(RUNS_PER_TASK * self.width).enumerate();
            parts.for_each(|(part, sums)| sum_runs(self, &run_table.ids, from + part * RUNS_PER_TASK, sums));
        }
        Some(cached)
    }

    /// Return the sum of a run from the cache, or compute it with the same bits.
    #[inline(always)]
    fn sum_of<'a>(
        &self,
        (runs, sums): (&TokenRuns, &'a RunSums),
        run: u32,
        buffer: &'a mut [Lane; MAX_CACHED_WIDTH],
    ) -> &'a [Lane] {
        let at = run as usize * self.width;
        if at + self.width <= sums.rows.len() {
            return &sums.rows[at..at + self.width];
        }
        sum_runs(self, &runs.run_table.ids, run as usize, &mut buffer[..self.width]);
        &buffer[..self.width]
    }

    /// Prefetch the table entries of a token's attributes.
    #[inline(always)]
    pub fn prefetch_entries(&self, from: &Attributes, token: usize) {
        let entries = self.entries.as_ptr();
        from.single.ids_of(token).iter().for_each(|&id| prefetch(entries.wrapping_add(id as usize)));
    }

    /// Prefetch the weights that `score` will read for a later token.
    #[inline(always)]
    pub fn prefetch(&self, from: &Attributes, token: usize) {
        match self.width {
            1 => self.prefetch_in::<1>(from, token),
            2 => self.prefetch_in::<2>(from, token),
            3 => self.prefetch_in::<3>(from, token),
            _ => self.prefetch_in::<MAX_CACHED_WIDTH>(from, token), // wider tables have no sums
        }
    }

    /// W: the width, if there are sums.
    #[inline(always)]
    fn prefetch_in<const W: usize>(&self, from: &Attributes, token: usize) {
        if let Some((runs, sums)) = from.runs {
            for &run in runs.of(token) {
                let row = sums.rows.as_ptr().wrapping_add(run as usize * W);
                (0..W).for_each(|j| prefetch(row.wrapping_add(j)));
            }
        }
        for &id in from.single.ids_of(token) {
            let entry = self.entries[id as usize];
            let row = self.rows.as_ptr().wrapping_add(entry.first as usize);
            if W == 1 {
                prefetch(row);
                continue;
            }
            let pair = self.pairs.as_ptr().wrapping_add(entry.first as usize);
            prefetch(if entry.lanes() > 0 { row.cast::<u8>() } else { pair.cast::<u8>() });
            prefetch(row.wrapping_add(entry.lanes().saturating_sub(1)));
        }
    }

    /// Write the scores of one token's labels to a row of the table's width.
    ///
    /// # Safety
    /// `from.runs` are sums computed by this table.
    #[inline(always)]
    pub unsafe fn score<S: Simd>(&self, simd: S, from: &Attributes, token: usize, row: &mut [Lane]) {
        by_block!([1 2 3 4] = self.width, W => match from.single.values.is_empty() {
            true => self.score_in::<S, W, true>(simd, from, token, row),
            false => self.score_in::<S, W, false>(simd, from, token, row),
        }, _ => self.score_wide(simd, from.single, token, row));
    }

    /// `ONES`: whether all values are 1.
    ///
    /// # Safety
    /// The requirements of `score`, and W is the width.
    #[inline(always)]
    unsafe fn score_in<S: Simd, const W: usize, const ONES: bool>(
        &self,
        simd: S,
        from: &Attributes,
        token: usize,
        out: &mut [Lane],
    ) {
        let data = from.single;
        debug_assert!(self.width == W && out.len() == W);
        // No branch per attribute: lanes that a row lacks are read from a row of zeros, and lists are collected and
        // added last.
        let mut sum = [simd.splat(0.0); W];
        if let Some(of) = from.runs {
            let mut buffer = [Lane::ZERO; MAX_CACHED_WIDTH];
            for &run in of.0.of(token) {
                let row = self.sum_of(of, run, &mut buffer);
                for j in 0..W {
                    sum[j] = simd.add(sum[j], simd.load(&row[j]));
                }
            }
        }
        let mut lists = [0u8; CHUNK];
        let mut n = 0;
        let mut begin = data.ptr[token];
        let end = data.ptr[token + 1];
        loop {
            let stop = end.min(begin + CHUNK);
            for at in begin..stop {
                let entry = self.entries[data.ids[at] as usize];
                debug_assert!(W > 1 && entry.lanes() == 0 || (entry.first as usize) < self.rows.len());
                let row = self.rows.as_ptr().wrapping_add(entry.first as usize);
                let value = simd.splat(if ONES { 1.0 } else { data.value(at) });
                if W == 1 {
                    let x = simd.mul(simd.splat(entry.scale()), simd.load(&*row));
                    sum[0] = simd.add(sum[0], if ONES { x } else { simd.mul(value, x) });
                    continue;
                }
                for j in 0..W {
                    let lane = if j < entry.lanes() { row.add(j) } else { &Lane::ZERO as *const Lane };
                    let x = simd.load(&*lane);
                    sum[j] = simd.add(sum[j], if ONES { x } else { simd.mul(value, x) });
                }
                lists[n] = (at - begin) as u8;
                n += usize::from(entry.pairs() > 0);
            }
            if begin == data.ptr[token] {
                for j in 0..W {
                    simd.store(sum[j], &mut out[j]);
                }
            } else {
                for j in 0..W {
                    simd.store(simd.add(simd.load(&out[j]), sum[j]), &mut out[j]);
                }
            }
            for &at in &lists[..n] {
                self.add_pairs(data, begin + at as usize, out);
            }
            if stop == end {
                break;
            }
            (begin, n, sum) = (stop, 0, [simd.splat(0.0); W]);
        }
    }

    #[inline(always)]
    fn score_wide<S: Simd>(&self, simd: S, data: CsrRef<'_>, token: usize, out: &mut [Lane]) {
        out.fill(Lane::ZERO);
        for at in data.ptr[token]..data.ptr[token + 1] {
            let entry = self.entries[data.ids[at] as usize];
            let value = simd.splat(data.value(at));
            if entry.lanes() > 0 {
                let rows = &self.rows[entry.first as usize..entry.first as usize + entry.lanes()];
                for (sum, row) in out.iter_mut().zip(rows) {
                    simd.store(simd.add(simd.load(sum), simd.mul(value, simd.load(row))), sum);
                }
            }
            self.add_pairs(data, at, out);
        }
    }

    #[inline(always)]
    fn add_pairs(&self, data: CsrRef<'_>, at: usize, out: &mut [Lane]) {
        let value = data.value(at);
        for pair in self.pairs_of(data.ids[at]) {
            out[pair.label as usize / WIDTH].0[pair.label as usize % WIDTH] += pair.weight * value;
        }
    }

    /// List of an attribute, empty if it has a row. Not for tables of one lane.
    #[inline(always)]
    fn pairs_of(&self, id: u32) -> &[LabelWeight] {
        let entry = self.entries[id as usize];
        match entry.pairs() {
            0 => &[],
            n => &self.pairs[entry.first as usize..entry.first as usize + n],
        }
    }
}
