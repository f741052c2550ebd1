//! Features x weights -> node scores, and its transpose, residuals -> gradient, side by side.
//!
//! Two kinds of attributes, told apart by how often they occur:
//! - *frequent* ones have a row of label weights (padded to whole lanes): adding a row is a few vector additions;
//! - *rare* ones are a flat list of (feature, label) behind each token. Each of their occurrences has a *cell* of its own
//!   for the gradient, written in the order of the tokens; the cells of one feature are summed when all tokens are done,
//!   so that parallel threads never write to the same place and no order of addition depends on them.
//!
//! Tokens are worked through in *windows* of a few thousand. A window names the rows that it touches by small numbers of
//! its own and works on copies of them, which fit into the second cache, where the rows of a corpus do not.
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

/// An attribute seen this often gets a row.
const FREQUENT: u32 = 16;
/// Tokens of a window.
const WINDOW: usize = 4096;

/// Some batches of a chunk and the rows that their tokens touch.
#[derive(Clone, Debug)]
pub struct Window {
    pub batches: Range<usize>,
    pub rows: Range<usize>, // into `Nodes::window_rows`
}

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
    pub width: usize,         // lanes of a row: L / 16 rounded up
    pub row_ptr: Vec<usize>,  // [slots + 1]
    pub rows: Vec<u32>,       // numbered within the window
    pub row_values: Vec<f32>, // empty while all are 1
    pub rare_ptr: Vec<usize>, // [slots + 1]
    pub rare: Vec<Rare>,
    pub rare_values: Vec<f32>,
    pub gold: Vec<u16>,             // [slots]
    pub row_features: Vec<u64>,     // [rows + 1] features of each row, into `row_index`
    pub row_index: Vec<(u32, u16)>, // (feature, label)
    cells: Vec<u32>,                // cells of each rare feature
    pub cell_ptr: Vec<usize>,       // [rare features + 1]
    pub rare_features: Vec<u32>,    // feature of each run of cells
    fold: Fold,
    windows: Vec<Vec<Window>>, // of each chunk
    window_rows: Vec<u32>,     // rows of each window, ascending
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
            } else {
                cell_of[a] = rare_features.len();
                for (feature, _) in features {
                    rare_features.push(feature);
                    cell_ptr.push(cell_ptr[cell_ptr.len() - 1] + count[a] as usize);
                }
            }
        }
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
            cells: vec![0; cell_ptr[cell_ptr.len() - 1]],
            cell_ptr,
            rare_features,
            fold: Fold::default(),
            windows: Vec::new(),
            window_rows: Vec::new(),
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
        out.cut_windows(plan);
        Ok(out)
    }

    /// Cut every chunk into windows and number the rows within them.
    fn cut_windows(&mut self, plan: &Plan) {
        let slots_end = |b: usize| plan.batches.get(b).map_or(plan.slots, |batch| batch.slot);
        let mut local = vec![u32::MAX; self.n_rows()];
        for chunk in &plan.chunks {
            let (mut windows, mut begin) = (Vec::new(), chunk.start);
            while begin < chunk.end {
                let first = slots_end(begin);
                let mut end = begin + 1;
                while end < chunk.end && slots_end(end + 1) - first <= WINDOW {
                    end += 1;
                }
                let range = self.row_ptr[first]..self.row_ptr[slots_end(end)];
                let at = self.window_rows.len();
                for &r in &self.rows[range.clone()] {
                    if local[r as usize] == u32::MAX {
                        local[r as usize] = 0;
                        self.window_rows.push(r);
                    }
                }
                self.window_rows[at..].sort_unstable();
                for (i, &r) in self.window_rows[at..].iter().enumerate() {
                    local[r as usize] = i as u32;
                }
                for r in &mut self.rows[range] {
                    *r = local[*r as usize];
                }
                for &r in &self.window_rows[at..] {
                    local[r as usize] = u32::MAX;
                }
                windows.push(Window { batches: begin..end, rows: at..self.window_rows.len() });
                begin = end;
            }
            self.windows.push(windows);
        }
    }

    /// Windows of a chunk.
    pub fn windows(&self, chunk: usize) -> &[Window] {
        &self.windows[chunk]
    }

    /// Copies of the rows of a window.
    pub fn open_window(&self, window: &Window, rows: &[Lane], local: &mut Vec<Lane>) {
        local.clear();
        for &r in &self.window_rows[window.rows.clone()] {
            local.extend_from_slice(&rows[r as usize * self.width..(r as usize + 1) * self.width]);
        }
    }

    /// Add the copies of a window's gradient rows to the rows.
    pub fn close_window(&self, window: &Window, local: &[Lane], rows: &mut [Lane]) {
        for (&r, part) in self.window_rows[window.rows.clone()].iter().zip(local.chunks_exact(self.width)) {
            for (to, from) in rows[r as usize * self.width..].iter_mut().zip(part) {
                for (a, b) in to.0.iter_mut().zip(from.0) {
                    *a += b;
                }
            }
        }
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

    /// Rows of weights from a weight vector: [rows, width].
    pub fn fill_rows(&self, w: &[f64], rows: &mut [Lane]) {
        rows.par_chunks_mut(self.width).enumerate().with_min_len(512).for_each(|(r, row)| {
            row.fill(Lane::ZERO);
            for &(feature, label) in &self.row_index[self.row_features[r] as usize..self.row_features[r + 1] as usize] {
                row[label as usize / WIDTH].0[label as usize % WIDTH] = w[feature as usize] as f32;
            }
        });
        self.fold.gather(|carrier, carried| {
            for v in 0..self.width {
                let x = rows[carried * self.width + v];
                for (a, b) in rows[carrier * self.width + v].0.iter_mut().zip(x.0) {
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

    /// Sum of a slot's rows into lane `lane` of the tile, four lanes of labels at a time.
    #[inline(always)]
    unsafe fn sum_rows<S: Simd>(&self, slot: usize, rows: &[Lane], lane: usize, tile: &mut Tile) {
        let range = self.row_ptr[slot]..self.row_ptr[slot + 1];
        let ids = &self.rows[range.clone()];
        let values = if self.row_values.is_empty() { &[][..] } else { &self.row_values[range] };
        let mut v = 0;
        while v < self.width {
            match self.width - v {
                1 => self.sum_some::<S, 1>(ids, values, rows, lane, v, tile),
                2 => self.sum_some::<S, 2>(ids, values, rows, lane, v, tile),
                3 => self.sum_some::<S, 3>(ids, values, rows, lane, v, tile),
                _ => self.sum_some::<S, 4>(ids, values, rows, lane, v, tile),
            }
            v += 4;
        }
    }

    #[inline(always)]
    unsafe fn sum_some<S: Simd, const N: usize>(
        &self,
        ids: &[u32],
        values: &[f32],
        rows: &[Lane],
        lane: usize,
        v: usize,
        tile: &mut Tile,
    ) {
        let mut sum = [S::splat(0.0); N];
        for (at, &id) in ids.iter().enumerate() {
            let row = rows.as_ptr().add(id as usize * self.width + v);
            if values.is_empty() {
                for (j, s) in sum.iter_mut().enumerate() {
                    *s = S::add(*s, S::load(&*row.add(j)));
                }
            } else {
                // A product, then a sum: the same bits with and without fused instructions.
                let x = S::splat(values[at]);
                for (j, s) in sum.iter_mut().enumerate() {
                    *s = S::add(*s, S::mul(x, S::load(&*row.add(j))));
                }
            }
        }
        for (j, s) in sum.iter().enumerate() {
            S::store(*s, &mut tile.0[v + j][lane]);
        }
    }

    /// Whether a token is spread more than once an evaluation, so that its cells add up from zero.
    pub fn adds_cells(&self) -> bool {
        !self.partial.of.is_empty()
    }

    /// The transpose of `fill`: marginals `p` of one position ([L padded], already weighted) minus the gold labels, into
    /// the gradient rows and cells.
    #[inline(always)]
    pub unsafe fn spread<S: Simd>(
        &self,
        slot: usize,
        active: usize,
        p: &[Lane],
        weight: &Lane,
        gradient: &mut [Lane],
        cells: &Shared<'_, f32>,
        tile: &mut Tile,
    ) {
        for v in 0..self.width {
            let from: &[Lane; WIDTH] = &*p[v * WIDTH..(v + 1) * WIDTH].as_ptr().cast();
            S::transpose(from, &mut tile.0[v]);
        }
        for lane in 0..active {
            if weight.0[lane] != 0.0 {
                self.spread_slot::<S>(slot + lane, weight.0[lane], lane, gradient, cells, tile);
            }
        }
    }

    /// One token of `spread`: the residual row lies in lane `lane` of the tile, the gold label not yet subtracted.
    #[inline(always)]
    pub unsafe fn spread_slot<S: Simd>(
        &self,
        s: usize,
        weight: f32,
        lane: usize,
        gradient: &mut [Lane],
        cells: &Shared<'_, f32>,
        tile: &mut Tile,
    ) {
        let y = self.gold[s] as usize;
        if y < self.labels {
            tile.0[y / WIDTH][lane].0[y % WIDTH] -= weight;
        }
        for at in self.rare_ptr[s]..self.rare_ptr[s + 1] {
            let f = self.rare.get_unchecked(at);
            let value = if self.rare_values.is_empty() { 1.0 } else { self.rare_values[at] };
            let r = tile.0.get_unchecked(f.label as usize / WIDTH)[lane].0[f.label as usize % WIDTH];
            // A cell belongs to one occurrence at one token, and a token to one chunk.
            let before = if self.adds_cells() { cells.get(at) } else { 0.0 };
            cells.set(at, before + r * value);
        }
        let range = self.row_ptr[s]..self.row_ptr[s + 1];
        let ids = &self.rows[range.clone()];
        let values = if self.row_values.is_empty() { &[][..] } else { &self.row_values[range] };
        let mut v = 0;
        while v < self.width {
            match self.width - v {
                1 => self.spread_some::<S, 1>(ids, values, lane, v, gradient, tile),
                2 => self.spread_some::<S, 2>(ids, values, lane, v, gradient, tile),
                3 => self.spread_some::<S, 3>(ids, values, lane, v, gradient, tile),
                _ => self.spread_some::<S, 4>(ids, values, lane, v, gradient, tile),
            }
            v += 4;
        }
    }

    #[inline(always)]
    unsafe fn spread_some<S: Simd, const N: usize>(
        &self,
        ids: &[u32],
        values: &[f32],
        lane: usize,
        v: usize,
        gradient: &mut [Lane],
        tile: &Tile,
    ) {
        let residual: [S::F; N] = std::array::from_fn(|j| S::load(&tile.0[v + j][lane]));
        for (at, &id) in ids.iter().enumerate() {
            let row = gradient.as_mut_ptr().add(id as usize * self.width + v);
            for (j, r) in residual.iter().enumerate() {
                let x = if values.is_empty() { *r } else { S::mul(S::splat(values[at]), *r) };
                S::store(S::add(S::load(&*row.add(j)), x), &mut *row.add(j));
            }
        }
    }

    /// Gradient of the rows' features: the chunks are summed in order into `total` ([rows, padded L]), what rows carried
    /// goes back to its own row, and the features that exist are read off.
    pub fn collect_rows(&self, chunks: &[Vec<Lane>], total: &mut Vec<f64>, gradient: &Shared<'_, f64>) {
        let padded = self.width * WIDTH;
        total.resize(self.n_rows() * padded, 0.0);
        total.par_chunks_mut(padded).enumerate().with_min_len(256).for_each(|(r, row)| {
            for (v, part) in row.chunks_exact_mut(WIDTH).enumerate() {
                let mut sum = [0.0f64; WIDTH];
                for chunk in chunks {
                    for (s, &x) in sum.iter_mut().zip(&chunk[r * self.width + v].0) {
                        *s += f64::from(x);
                    }
                }
                part.copy_from_slice(&sum);
            }
        });
        self.fold.scatter(|carried, carrier| {
            for y in 0..self.labels {
                total[carried * padded + y] += total[carrier * padded + y];
            }
        });
        total.par_chunks(padded).enumerate().with_min_len(256).for_each(|(r, row)| {
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

/// Scratch for one position: [width][lane] rows of sixteen labels.
pub struct Tile(pub Vec<[Lane; WIDTH]>);

impl Tile {
    pub fn new(width: usize) -> Tile {
        Tile(vec![[Lane::ZERO; WIDTH]; width])
    }
}
