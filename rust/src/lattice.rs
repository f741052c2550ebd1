//! Features x weights -> node scores, and its transpose, residuals -> gradient, side by side.
//!
//! Two kinds of attributes, told apart by how often they occur:
//! - *frequent* ones have a row of label weights in whole lanes: adding a row is a few vector additions. A row ends with
//!   the last label that it has a feature for; labels are numbered by frequency, so most rows are one lane long, and the
//!   rows of a corpus fit into the second cache, which is what their speed hangs on;
//! - *rare* ones are a flat list of (feature, label) behind each token. Each of their occurrences has a *cell* of its own
//!   for the gradient, written in the order of the tokens; the cells of one feature are summed when all tokens are done,
//!   so that parallel threads never write to the same place and no order of addition depends on them.
//!
//! Rows are folded (see `fold`): a row that always comes with another is added to it once an evaluation.
//! Start and end features are two more rows, present at the first and the last token.

use crate::dataset::{Dataset, NO_LABEL};
use crate::error::{Error, Result};
use crate::fold::Fold;
use crate::plan::Plan;
use crate::shared::Shared;
use crate::simd::{Lane, Simd, WIDTH};
use crate::weights::Layout;
use rayon::prelude::*;
use std::ops::Range;

/// A row of so many tokens is summed in double precision from time to time.
const HOT: u32 = 512;
/// An attribute seen this often gets a row.
const FREQUENT: u32 = 16;

/// One feature of a rare attribute at one token; `run` counts the rare features.
#[derive(Clone, Copy, Debug)]
pub struct Rare {
    pub run: u32,
    pub label: u16,
}

/// Labels that each token may take: a row of 0 and -infinity for every distinct set, and the row of each token.
#[derive(Clone, Debug, Default)]
pub struct Support {
    pub sets: Vec<bool>, // [sets, L]
    pub of: Vec<u32>,    // [tokens] index of the token's set
}

impl Support {
    /// Set the node scores [T, L] of what a sentence may not take to -infinity; `begin` is its first token.
    pub fn forbid(&self, begin: usize, labels: usize, node: &mut [f64]) {
        for (i, s) in node.iter_mut().enumerate() {
            if !self.sets[self.of[begin + i / labels] as usize * labels + i % labels] {
                *s = f64::NEG_INFINITY;
            }
        }
    }
}

/// The tokens of a plan, slot by slot, as rows and rare features.
pub struct Nodes {
    pub labels: usize,
    pub width: usize,         // lanes of the longest row: L / 16 rounded up
    pub row_ptr: Vec<usize>,  // [slots * classes + 1] a slot's rows of one lane, then those of two, ...
    pub rows: Vec<u32>,       // first lane of each row
    pub row_values: Vec<f32>, // empty while all are 1
    pub rare_ptr: Vec<usize>, // [slots + 1]
    pub rare: Vec<Rare>,
    pub rare_values: Vec<f32>,
    pub gold: Vec<u16>,             // [slots]
    pub row_features: Vec<u64>,     // [rows + 1] features of each row, into `row_index`
    pub row_index: Vec<(u32, u16)>, // (feature, label)
    row_at: Vec<u32>,               // [rows + 1] first lane of each row
    hot: Vec<u32>,                  // lanes of rows so frequent that float32 does not hold their sums
    cells: Vec<u32>,                // cells of each rare feature
    pub cell_ptr: Vec<usize>,       // [rare features + 1]
    pub rare_features: Vec<u32>,    // feature of each run of cells
    fold: Fold,
    pub support: Masks,
    pub partial: Masks,
    pub costs: Vec<Lane>, // [L, width] cost of every label where the row's is right; empty without
}

/// Sets of labels as rows of 0 and -infinity, and the set of each slot.
#[derive(Default)]
pub struct Masks {
    rows: Vec<Lane>, // [sets, width]
    of: Vec<u32>,    // [slots], empty without sets
}

impl Nodes {
    /// `fold`: whether rows that always come together are folded; what changes single rows needs them apart.
    pub fn new(data: &Dataset, layout: &Layout, plan: &Plan, fold: bool) -> Result<Nodes> {
        if layout.len() >= u32::MAX as usize {
            return Err(Error::Value("more than 4 billion features; raise min_count or use fewer templates".into()));
        }
        let labels = layout.labels;
        let width = labels.div_ceil(WIDTH);
        let mut count = vec![0u32; layout.attributes];
        for &a in &data.node.ids {
            count[a as usize] += 1;
        }
        // Rows: frequent attributes in order of their ids, then start and end.
        let (mut row_of, mut row_features, mut row_index) = (vec![u32::MAX; layout.attributes], vec![0u64], Vec::new());
        let (mut cell_ptr, mut rare_features) = (vec![0usize], Vec::new());
        let mut cell_of = vec![0usize; layout.attributes]; // run of the attribute's first feature
        for a in 0..layout.attributes {
            let (first, of) = layout.node(a as u32);
            if of.is_empty() {
                continue;
            }
            let features = of.iter().enumerate().map(|(i, &y)| ((first + i) as u32, y));
            if count[a] >= FREQUENT {
                row_of[a] = (row_features.len() - 1) as u32;
                row_index.extend(features);
                row_features.push(row_index.len() as u64);
            }
        }
        // Rare features are numbered in the order in which the slots come to them: most occur once, and stream.
        let mut seen = vec![false; layout.attributes];
        plan.for_each_slot(|_, b, lane, t| {
            let token = data.sentences[plan.batches[b].sentences[lane] as usize] + t;
            for &a in &data.node.ids[data.node.ptr[token]..data.node.ptr[token + 1]] {
                let a = a as usize;
                if row_of[a] == u32::MAX && !seen[a] {
                    seen[a] = true;
                    cell_of[a] = rare_features.len();
                    let (first, of) = layout.node(a as u32);
                    for i in 0..of.len() {
                        rare_features.push((first + i) as u32);
                        cell_ptr.push(cell_ptr[cell_ptr.len() - 1] + count[a] as usize);
                    }
                }
            }
        });
        let mut boundary = |of: &[u16], first: usize| {
            row_index.extend(of.iter().enumerate().map(|(i, &y)| ((first + i) as u32, y)));
            row_features.push(row_index.len() as u64);
            (row_features.len() - 2) as u32
        };
        let start = boundary(&layout.starts, layout.start_at());
        let end = boundary(&layout.ends, layout.end_at());
        if cell_ptr[cell_ptr.len() - 1] >= u32::MAX as usize {
            return Err(Error::Value("more than 4 billion rare feature occurrences; raise min_count".into()));
        }

        let mut out = Nodes {
            labels,
            width,
            row_ptr: Vec::with_capacity(plan.slots + 1),
            rows: Vec::new(),
            row_values: Vec::new(),
            rare_ptr: Vec::with_capacity(plan.slots + 1),
            rare: Vec::with_capacity(cell_ptr[cell_ptr.len() - 1]),
            rare_values: Vec::new(),
            gold: Vec::with_capacity(plan.slots),
            row_features,
            row_index,
            row_at: Vec::new(),
            hot: Vec::new(),
            cells: vec![0; cell_ptr[cell_ptr.len() - 1]],
            cell_ptr,
            rare_features,
            fold: Fold::default(),
            support: Masks::default(),
            partial: Masks::default(),
            costs: Vec::new(),
        };
        let valued = !data.node.values.is_empty();
        let mut used = vec![0u32; layout.attributes]; // occurrences of a rare attribute placed so far
        out.row_ptr.push(0);
        out.rare_ptr.push(0);
        plan.for_each_slot(|_, b, lane, t| {
            let batch = &plan.batches[b];
            let token = data.sentences[batch.sentences[lane] as usize] + t;
            for at in data.node.ptr[token]..data.node.ptr[token + 1] {
                let (a, value) = (data.node.ids[at] as usize, data.node.value(at));
                if row_of[a] != u32::MAX {
                    out.rows.push(row_of[a]);
                    if valued {
                        out.row_values.push(value);
                    }
                    continue;
                }
                let (_, of) = layout.node(a as u32);
                for (i, &label) in of.iter().enumerate() {
                    let run = cell_of[a] + i;
                    out.cells[out.cell_ptr[run] + used[a] as usize] = out.rare.len() as u32;
                    out.rare.push(Rare { run: run as u32, label });
                    if valued {
                        out.rare_values.push(value);
                    }
                }
                used[a] += 1;
            }
            let n = batch.lengths[lane] as usize;
            for (row, here) in [(start, t == 0), (end, t + 1 == n)] {
                if here && out.row_features[row as usize] < out.row_features[row as usize + 1] {
                    out.rows.push(row);
                    if valued {
                        out.row_values.push(1.0);
                    }
                }
            }
            out.row_ptr.push(out.rows.len());
            out.rare_ptr.push(out.rare.len());
            out.gold.push(data.gold.get(token).copied().unwrap_or(NO_LABEL));
        });
        if fold && !valued {
            let n_rows = out.n_rows();
            out.fold = Fold::new(n_rows, &mut out.row_ptr, &mut out.rows, |r| r == start || r == end);
        }
        out.sort_by_length(plan.slots);
        Ok(out)
    }

    /// Lengths of rows that are told apart: with very many labels all rows are of full length.
    fn classes(&self) -> usize {
        if self.width <= 4 {
            self.width
        } else {
            1
        }
    }

    /// Give every row as many lanes as it needs, a carrier as many as what it carries, and sort each slot's rows by that.
    fn sort_by_length(&mut self, slots: usize) {
        let classes = self.classes();
        let mut lanes: Vec<usize> = (0..self.n_rows())
            .map(|r| {
                let of = &self.row_index[self.row_features[r] as usize..self.row_features[r + 1] as usize];
                let last = of.iter().map(|&(_, y)| y as usize / WIDTH + 1).max().unwrap_or(1);
                if classes == 1 {
                    self.width
                } else {
                    last
                }
            })
            .collect();
        self.fold.gather(|carrier, carried| lanes[carrier] = lanes[carrier].max(lanes[carried]));
        self.row_at = vec![0];
        for &n in &lanes {
            self.row_at.push(self.row_at[self.row_at.len() - 1] + n as u32);
        }
        let class = |r: u32| if classes == 1 { 0 } else { lanes[r as usize] - 1 };
        let mut ptr = Vec::with_capacity(slots * classes + 1);
        ptr.push(0);
        let (mut ids, mut values) = (Vec::new(), Vec::new());
        for s in 0..slots {
            let range = self.row_ptr[s]..self.row_ptr[s + 1];
            let mut write = range.start;
            ids.clear();
            ids.extend_from_slice(&self.rows[range.clone()]);
            values.clear();
            if !self.row_values.is_empty() {
                values.extend_from_slice(&self.row_values[range]);
            }
            for c in 0..classes {
                for (i, &r) in ids.iter().enumerate().filter(|&(_, &r)| class(r) == c) {
                    self.rows[write] = self.row_at[r as usize];
                    if let Some(&value) = values.get(i) {
                        self.row_values[write] = value;
                    }
                    write += 1;
                }
                ptr.push(write);
            }
        }
        self.row_ptr = ptr;
        let mut count = vec![0u32; self.n_lanes() + 1];
        for &first in &self.rows {
            count[first as usize] += 1;
        }
        let hot = (0..self.n_rows()).filter(|&r| count[self.row_at[r] as usize] >= HOT);
        self.hot = hot.flat_map(|r| self.row_at[r]..self.row_at[r + 1]).collect();
    }

    /// Move the gradient of the hot rows into double precision. A float32 sum of many thousand residuals swallows the
    /// small ones, and the gradient then no longer fits the loss; so this is called every few thousand tokens.
    pub fn drain_hot(&self, gradient: &mut [Lane], sums: &mut Vec<f64>) {
        sums.resize(self.hot.len() * WIDTH, 0.0);
        for (&at, sum) in self.hot.iter().zip(sums.chunks_exact_mut(WIDTH)) {
            for (s, x) in sum.iter_mut().zip(&mut gradient[at as usize].0) {
                *s += f64::from(*x);
                *x = 0.0;
            }
        }
    }

    /// Lanes of all rows.
    pub fn n_lanes(&self) -> usize {
        self.row_at[self.n_rows()] as usize
    }

    /// Lanes of a row.
    fn lanes(&self, row: usize) -> Range<usize> {
        self.row_at[row] as usize..self.row_at[row + 1] as usize
    }

    /// Masks of allowed labels, slot by slot.
    pub fn masks(&self, data: &Dataset, plan: &Plan, support: &Support) -> Masks {
        let mut of = Vec::with_capacity(plan.slots);
        plan.for_each_slot(|_, b, lane, t| {
            of.push(support.of[data.sentences[plan.batches[b].sentences[lane] as usize] + t]);
        });
        Masks { rows: mask_rows(&support.sets, self.labels, self.width), of }
    }

    pub fn n_rows(&self) -> usize {
        self.row_features.len() - 1
    }

    pub fn n_cells(&self) -> usize {
        self.cell_ptr[self.cell_ptr.len() - 1]
    }

    /// Rows of weights from a weight vector: [lanes].
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
            let to = self.lanes(carrier).start;
            for (v, from) in self.lanes(carried).enumerate() {
                let x = rows[from];
                for (a, b) in rows[to + v].0.iter_mut().zip(x.0) {
                    *a += b;
                }
            }
        });
    }

    /// Weights of the rare features, run by run.
    pub fn fill_rare(&self, w: &[f64], rare: &mut [f32]) {
        let features = self.rare_features.par_iter().with_min_len(8192);
        features.zip(rare.par_iter_mut()).for_each(|(&feature, x)| *x = w[feature as usize] as f32);
    }

    /// Node scores of position t of a batch, transposed into `psi` ([L], and slack for a whole tile); adds the score of
    /// the gold labels to `gold`.
    #[inline(always)]
    pub unsafe fn fill<S: Simd>(
        &self,
        slot: usize,
        active: usize,
        rows: &[Lane],
        rare: &[f32],
        masks: &Masks,
        psi: &mut [Lane],
        gold: &mut [f64; WIDTH],
        tile: &mut Tile,
    ) {
        for lane in 0..active {
            let s = slot + lane;
            self.sum_rows::<S>(s, rows, lane, tile);
            for at in self.rare_ptr[s]..self.rare_ptr[s + 1] {
                let f = self.rare.get_unchecked(at);
                let value = if self.rare_values.is_empty() { 1.0 } else { self.rare_values[at] };
                let x = *rare.get_unchecked(f.run as usize) * value;
                tile.0.get_unchecked_mut(f.label as usize / WIDTH)[lane].0[f.label as usize % WIDTH] += x;
            }
            if let Some(&set) = masks.of.get(s) {
                self.add_row::<S>(&masks.rows, set as usize, lane, tile);
            }
            let y = self.gold[s] as usize;
            if y < self.labels {
                if !self.costs.is_empty() {
                    self.add_row::<S>(&self.costs, y, lane, tile);
                }
                gold[lane] += f64::from(tile.0[y / WIDTH][lane].0[y % WIDTH]);
            }
        }
        for v in 0..self.width {
            let out: &mut [Lane; WIDTH] = &mut *psi[v * WIDTH..v * WIDTH + WIDTH].as_mut_ptr().cast();
            S::transpose(&tile.0[v], out);
        }
    }

    /// Add row `row` of `rows` ([.., width]) to lane `lane` of the tile.
    #[inline(always)]
    unsafe fn add_row<S: Simd>(&self, rows: &[Lane], row: usize, lane: usize, tile: &mut Tile) {
        for (v, part) in tile.0.iter_mut().enumerate() {
            let x = S::load(&rows[row * self.width + v]);
            S::store(S::add(S::load(&part[lane]), x), &mut part[lane]);
        }
    }

    /// Sum of a slot's rows into lane `lane` of the tile.
    #[inline(always)]
    unsafe fn sum_rows<S: Simd>(&self, slot: usize, rows: &[Lane], lane: usize, tile: &mut Tile) {
        match self.width {
            1 => self.sum_classes::<S, 1>(slot, rows, lane, tile),
            2 => self.sum_classes::<S, 2>(slot, rows, lane, tile),
            3 => self.sum_classes::<S, 3>(slot, rows, lane, tile),
            4 => self.sum_classes::<S, 4>(slot, rows, lane, tile),
            width => {
                for v in 0..width {
                    let mut sum = [S::splat(0.0)];
                    self.add_class::<S, 1, 1>(self.row_ptr[slot]..self.row_ptr[slot + 1], &rows[v..], &mut sum);
                    S::store(sum[0], &mut tile.0[v][lane]);
                }
            }
        }
    }

    #[inline(always)]
    unsafe fn sum_classes<S: Simd, const W: usize>(&self, slot: usize, rows: &[Lane], lane: usize, tile: &mut Tile) {
        let mut sum = [S::splat(0.0); W];
        let ptr = &self.row_ptr[slot * W..slot * W + W + 1];
        self.add_class::<S, W, 1>(ptr[0]..ptr[1], rows, &mut sum);
        if W > 1 {
            self.add_class::<S, W, 2>(ptr[1]..ptr[2 % (W + 1)], rows, &mut sum);
        }
        if W > 2 {
            self.add_class::<S, W, 3>(ptr[2 % (W + 1)]..ptr[3 % (W + 1)], rows, &mut sum);
        }
        if W > 3 {
            self.add_class::<S, W, 4>(ptr[3 % (W + 1)]..ptr[W], rows, &mut sum);
        }
        for (part, s) in tile.0.iter_mut().zip(sum) {
            S::store(s, &mut part[lane]);
        }
    }

    /// Add rows of N lanes to a sum of W lanes.
    #[inline(always)]
    unsafe fn add_class<S: Simd, const W: usize, const N: usize>(
        &self,
        range: Range<usize>,
        rows: &[Lane],
        sum: &mut [S::F; W],
    ) {
        let values = self.row_values.get(range.clone());
        for (i, &first) in self.rows.get_unchecked(range).iter().enumerate() {
            let row = rows.as_ptr().add(first as usize);
            for j in 0..N.min(W) {
                let mut x = S::load(&*row.add(j));
                if let Some(values) = values {
                    // A product, then a sum: the same bits with and without fused instructions.
                    x = S::mul(S::splat(values[i]), x);
                }
                sum[j] = S::add(sum[j], x);
            }
        }
    }

    /// The transpose of `fill`: marginals `p` of one position ([L] and slack for a whole tile, already weighted) minus
    /// `subtract` at the gold labels, into the gradient rows and cells.
    #[inline(always)]
    pub unsafe fn spread<S: Simd>(
        &self,
        slot: usize,
        active: usize,
        p: &[Lane],
        subtract: &Lane,
        gradient: &mut [Lane],
        cells: &Shared<'_, f32>,
        tile: &mut Tile,
    ) {
        for v in 0..self.width {
            let from: &[Lane; WIDTH] = &*p[v * WIDTH..(v + 1) * WIDTH].as_ptr().cast();
            S::transpose(from, &mut tile.0[v]);
        }
        for lane in 0..active {
            self.spread_slot::<S>(slot + lane, subtract.0[lane], lane, gradient, cells, tile);
        }
    }

    /// One token of `spread`: its row lies in lane `lane` of the tile. The gold label is subtracted in registers, since
    /// a vector that is read right after one number of it was written stalls.
    #[inline(always)]
    pub unsafe fn spread_slot<S: Simd>(
        &self,
        s: usize,
        subtract: f32,
        lane: usize,
        gradient: &mut [Lane],
        cells: &Shared<'_, f32>,
        tile: &Tile,
    ) {
        let gold = self.gold[s];
        for at in self.rare_ptr[s]..self.rare_ptr[s + 1] {
            let f = self.rare.get_unchecked(at);
            let value = if self.rare_values.is_empty() { 1.0 } else { self.rare_values[at] };
            let mut r = tile.0.get_unchecked(f.label as usize / WIDTH)[lane].0[f.label as usize % WIDTH];
            if f.label == gold {
                r -= subtract;
            }
            // A cell belongs to one occurrence at one token, and a token to one chunk.
            cells.set(at, r * value);
        }
        let (gold, subtract) = (gold as usize, S::splat(subtract));
        let unit = &UNIT[gold % WIDTH];
        let mut residual = [S::splat(0.0); 4];
        for v in 0..self.width.min(4) {
            let at = if v == gold / WIDTH { unit } else { &Lane::ZERO };
            residual[v] = less::<S>(&tile.0[v][lane], at, subtract);
        }
        match self.width {
            1 => self.spread_classes::<S, 1>(s, &residual, gradient),
            2 => self.spread_classes::<S, 2>(s, &residual, gradient),
            3 => self.spread_classes::<S, 3>(s, &residual, gradient),
            4 => self.spread_classes::<S, 4>(s, &residual, gradient),
            width => {
                for v in 0..width {
                    let at = if v == gold / WIDTH { unit } else { &Lane::ZERO };
                    let residual = [less::<S>(&tile.0[v][lane], at, subtract); 4];
                    let range = self.row_ptr[s]..self.row_ptr[s + 1];
                    self.spread_class::<S, 1, 1>(range, &residual, &mut gradient[v..]);
                }
            }
        }
    }

    #[inline(always)]
    unsafe fn spread_classes<S: Simd, const W: usize>(&self, slot: usize, residual: &[S::F; 4], gradient: &mut [Lane]) {
        let ptr = &self.row_ptr[slot * W..slot * W + W + 1];
        self.spread_class::<S, W, 1>(ptr[0]..ptr[1], residual, gradient);
        if W > 1 {
            self.spread_class::<S, W, 2>(ptr[1]..ptr[2 % (W + 1)], residual, gradient);
        }
        if W > 2 {
            self.spread_class::<S, W, 3>(ptr[2 % (W + 1)]..ptr[3 % (W + 1)], residual, gradient);
        }
        if W > 3 {
            self.spread_class::<S, W, 4>(ptr[3 % (W + 1)]..ptr[W], residual, gradient);
        }
    }

    /// Add a residual of W lanes to rows of N lanes.
    #[inline(always)]
    unsafe fn spread_class<S: Simd, const W: usize, const N: usize>(
        &self,
        range: Range<usize>,
        residual: &[S::F; 4],
        gradient: &mut [Lane],
    ) {
        let values = self.row_values.get(range.clone());
        for (i, &first) in self.rows.get_unchecked(range).iter().enumerate() {
            let row = gradient.as_mut_ptr().add(first as usize);
            for j in 0..N.min(W) {
                let mut x = residual[j];
                if let Some(values) = values {
                    x = S::mul(S::splat(values[i]), x);
                }
                S::store(S::add(S::load(&*row.add(j)), x), &mut *row.add(j));
            }
        }
    }

    /// Gradient of the rows' features: the chunks are summed in order into `total` ([lanes, 16]), what rows carried goes
    /// back to its own row, and the features that exist are read off.
    pub fn collect_rows<'a>(
        &self,
        chunks: &[Vec<Lane>],
        hot: impl Iterator<Item = &'a [f64]>,
        total: &mut Vec<f64>,
        gradient: &Shared<'_, f64>,
    ) {
        total.resize(self.n_lanes() * WIDTH, 0.0);
        total.par_chunks_mut(WIDTH).enumerate().with_min_len(512).for_each(|(at, part)| {
            let mut sum = [0.0f64; WIDTH];
            for chunk in chunks {
                for (s, &x) in sum.iter_mut().zip(&chunk[at].0) {
                    *s += f64::from(x);
                }
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
        self.fold.scatter(|carried, carrier| {
            let from = self.lanes(carrier).start * WIDTH;
            let to = self.lanes(carried);
            for i in 0..to.len() * WIDTH {
                total[to.start * WIDTH + i] += total[from + i];
            }
        });
        (0..self.n_rows()).into_par_iter().with_min_len(256).for_each(|r| {
            let row = &total[self.lanes(r).start * WIDTH..];
            for &(feature, label) in &self.row_index[self.row_features[r] as usize..self.row_features[r + 1] as usize] {
                // SAFETY: every feature belongs to one row or one run of cells.
                unsafe { gradient.set(feature as usize, row[label as usize]) };
            }
        });
    }

    /// Gradient of the rare features: the sum of each run of cells.
    pub fn collect_cells(&self, cells: &[f32], gradient: &Shared<'_, f64>) {
        (0..self.rare_features.len()).into_par_iter().with_min_len(4096).for_each(|i| {
            let places = &self.cells[self.cell_ptr[i]..self.cell_ptr[i + 1]];
            let sum = places.iter().map(|&at| f64::from(cells[at as usize])).sum();
            // SAFETY: as above.
            unsafe { gradient.set(self.rare_features[i] as usize, sum) };
        });
    }
}

/// Rows of 0 and -infinity for sets of labels [sets, L]; padding labels are 0.
pub fn mask_rows(sets: &[bool], labels: usize, width: usize) -> Vec<Lane> {
    let mut masks = vec![Lane::ZERO; sets.len() / labels.max(1) * width];
    for (i, &allowed) in sets.iter().enumerate() {
        let (set, y) = (i / labels, i % labels);
        if !allowed {
            masks[set * width + y / WIDTH].0[y % WIDTH] = f32::NEG_INFINITY;
        }
    }
    masks
}

/// row - unit * subtract
#[inline(always)]
unsafe fn less<S: Simd>(row: &Lane, unit: &Lane, subtract: S::F) -> S::F {
    S::sub(S::load(row), S::mul(S::load(unit), subtract))
}

/// UNIT[i] is 1 in place i.
static UNIT: [Lane; WIDTH] = {
    let mut unit = [Lane::ZERO; WIDTH];
    let mut i = 0;
    while i < WIDTH {
        unit[i].0[i] = 1.0;
        i += 1;
    }
    unit
};

/// Scratch for one position: [width][lane] rows of sixteen labels.
#[derive(Default)]
pub struct Tile(pub Vec<[Lane; WIDTH]>);

impl Tile {
    pub fn new(width: usize) -> Tile {
        Tile(vec![[Lane::ZERO; WIDTH]; width])
    }

    pub fn reserve(&mut self, width: usize) {
        self.0.resize(width, [Lane::ZERO; WIDTH]);
    }
}
