//! Training tokens and weights laid out for learning one sentence at a time.
//!
//! A weight lies in a *cell*. Frequent attributes have a row of cells, one a label, padded to whole lanes, so that
//! scoring adds vectors; the others have a cell a feature, listed behind each token with its label. The edge weights
//! are rows too, and so are start and end. Cells without a feature stay 0.
//!
//! Rows are *narrow*, of one lane, where their features are of the first sixteen labels alone, else *wide*, of all lanes. Labels are
//! numbered by frequency, so nearly all rows are narrow: with 22 labels 98 %, seven tenths of what tokens have.

pub mod bank;
mod fill;
mod lists;
mod read;
pub(crate) mod spread;

use crate::chain::support::{mask_rows, Support};
use crate::dataset::layout::Layout;
use crate::dataset::Dataset;
use crate::error::{Error, Result};
use crate::machine::simd::{prefetch, Lane, WIDTH};
use crate::scores::check::{allowed_edges, check_gold, check_labels};
use crate::scores::scorer::afford;
pub use bank::Bank;
use rayon::prelude::*;
use read::Lists;
use std::sync::Arc;

/// An attribute seen this often gets a row ...
const FREQUENT: u32 = 16;
/// ... and so does one with this many features: a list of so many would be slower.
const MANY: usize = 8;

/// A token's rows come in groups of this many, filled up with row 0, whose weights stay 0: few lengths, which the
/// machine's branch prediction learns.
const GROUP: usize = 4;

/// Parts that lists are read in.
const PARTS: usize = 8;

#[derive(Clone, Copy, Debug)]
struct RareCell {
    cell: u32,
    at: u32, // place among the node scores of the sentence: t * 16 * width + label
}

/// First lanes of rows, in two bytes each where they fit: reading them is most of what an epoch reads from far memory.
enum RowNumbers {
    Short(Vec<u16>),
    Long(Vec<u32>),
}

impl RowNumbers {
    /// Room for so many numbers below `most`.
    fn with_capacity(many: usize, most: usize) -> RowNumbers {
        match most <= 1 << 16 {
            true => RowNumbers::Short(Vec::with_capacity(many)),
            false => RowNumbers::Long(Vec::with_capacity(many)),
        }
    }

    fn len(&self) -> usize {
        match self {
            RowNumbers::Short(rows) => rows.len(),
            RowNumbers::Long(rows) => rows.len(),
        }
    }

    fn extend(&mut self, more: &[u32]) {
        match self {
            RowNumbers::Short(rows) => rows.extend(more.iter().map(|&row| row as u16)),
            RowNumbers::Long(rows) => rows.extend(more),
        }
    }

    #[inline(always)]
    fn get(&self, at: usize) -> usize {
        match self {
            RowNumbers::Short(rows) => rows[at] as usize,
            RowNumbers::Long(rows) => rows[at] as usize,
        }
    }

    fn ahead(&self, which: std::ops::Range<usize>) -> Prefetch {
        match self {
            RowNumbers::Short(rows) => Prefetch::of(&rows[which]),
            RowNumbers::Long(rows) => Prefetch::of(&rows[which]),
        }
    }
}

/// Where a token's lists begin.
#[derive(Clone, Copy, Debug, Default)]
struct At {
    row: usize,
    wide: usize, // the first of its wide rows, which are behind the narrow ones
    rare: usize,
}

/// A slice whose cache lines are asked for a few at a time.
struct Prefetch {
    at: *const u8,
    end: *const u8,
}

impl Prefetch {
    fn of<T>(slice: &[T]) -> Prefetch {
        let range = slice.as_ptr_range();
        Prefetch { at: range.start.cast(), end: range.end.cast() }
    }

    /// One line; the end again where there is no other.
    #[inline(always)]
    fn ask(&mut self) {
        prefetch(self.at);
        self.at = self.at.wrapping_add(64).min(self.end);
    }
}

/// The lists of a sentence to come: sentences come in any order, so that the machine cannot know which is next.
pub(crate) struct Walk {
    lists: [Prefetch; 3],
}

impl Walk {
    /// Ask for some more: about a token's worth.
    #[inline(always)]
    pub fn step(&mut self) {
        for list in &mut self.lists {
            list.ask();
        }
    }

    /// Ask for the rest.
    #[inline(always)]
    pub fn finish(&mut self) {
        for list in &mut self.lists {
            while list.at < list.end {
                list.ask();
            }
        }
    }
}

/// The training data: what each token adds to its scores, and where each feature lies. Never changes.
pub struct TokenCells {
    pub data: Arc<Dataset>,
    pub labels: usize,
    pub width: usize, // lanes of a row
    at: Vec<At>,      // [tokens + 1]
    spans: Vec<At>,   // [sentences + 1] those of the first tokens
    rows: RowNumbers, // in whole groups
    row_values: Vec<f32>,
    rare: Vec<RareCell>,
    rare_values: Vec<f32>,
    pair_ptr: Vec<usize>,       // [tokens + 1], empty without edge attributes
    pub pairs: Vec<(u32, u32)>, // (cell, label' * L + label)
    pub pair_values: Vec<f32>,
    exists: Vec<u16>,       // [lanes of rows] bit y: the cell has a feature
    wide: usize,            // first lane of the wide rows
    cell_of: Vec<u32>,      // [features]
    pub edges: [u32; 2],    // first cell of the edge rows, and the one behind their last
    cells: usize,           // a multiple of 16
    masks: Vec<Lane>,       // [sets, width]
    mask_of: Vec<u32>,      // [tokens], empty without support
    pub allowed: Vec<bool>, // [L, L] edges that are not forbidden
}

/// Where each feature lies. Rows: one of no feature and the narrow ones of attributes; one of no feature, the wide ones of attributes,
/// start and end, the edges. Single cells: the other attributes in order of their ids, then pairs.
struct CellPlaces {
    width: usize,
    lanes: usize,         // of all rows
    wide: usize,          // first lane of the wide rows
    row_of: Vec<u32>,     // [attributes] first lane of the row, or u32::MAX
    cell_of: Vec<u32>,    // [features]
    exists: Vec<u16>,     // [lanes of rows]
    boundaries: [u32; 2], // first lanes of the rows of start and end
    edges: [u32; 2],      // first cell of the edge rows, and the one behind their last
    cells: usize,         // number of cells
}

impl CellPlaces {
    fn new(data: &Dataset, layout: &Layout) -> Result<CellPlaces> {
        let (l, width) = (layout.labels, layout.labels.div_ceil(WIDTH));
        let mut count = vec![0u32; layout.attributes];
        for &a in &data.node.csr().ids {
            count[a as usize] = count[a as usize].saturating_add(1);
        }
        let is_row = |a: usize| count[a] >= FREQUENT || layout.node(a as u32).1.len() >= MANY;
        // The most frequent first: they stay in the nearest cache, on few pages.
        let mut with_row: Vec<u32> = (0..layout.attributes as u32).filter(|&a| is_row(a as usize)).collect();
        with_row.sort_by_key(|&a| std::cmp::Reverse(count[a as usize]));
        let is_narrow = |a: u32| width == 1 || layout.node(a).1.iter().all(|&y| (y as usize) < WIDTH);
        let (narrow, wide): (Vec<u32>, Vec<u32>) = with_row.into_iter().partition(|&a| is_narrow(a));
        let n_lanes = 1 + narrow.len() + (wide.len() + 3 + l) * width;
        let n_rare = layout.n_node().saturating_add(layout.pair.len());
        if (n_lanes * WIDTH).saturating_add(n_rare) >= u32::MAX as usize - WIDTH {
            return Err(Error::Value("more than 4 billion weights; raise min_count or use fewer templates".into()));
        }
        let mut out = CellPlaces {
            width,
            lanes: 0,
            wide: 1 + narrow.len(),
            row_of: vec![u32::MAX; layout.attributes],
            cell_of: vec![0; layout.len()],
            exists: vec![0; n_lanes],
            boundaries: [0; 2],
            edges: [0; 2],
            cells: n_lanes * WIDTH,
        };
        for (some, lanes) in [(&narrow, 1), (&wide, width)] {
            out.row(0, &[], lanes);
            for &a in some {
                let (first, labels) = layout.node(a);
                out.row_of[a as usize] = out.row(first, labels, lanes);
            }
        }
        let start = out.row(layout.start_at(), &layout.starts, width);
        out.boundaries = [start, out.row(layout.end_at(), &layout.ends, width)];
        out.edge_rows(layout);
        for a in (0..layout.attributes).filter(|&a| !is_row(a)) {
            let (first, labels) = layout.node(a as u32);
            out.single(first, labels.len());
        }
        out.single(layout.pair_at(), layout.pair.len());
        Ok(out)
    }

    /// A row of the features from `first` on; its first lane.
    fn row(&mut self, first: usize, labels: &[u16], lanes: usize) -> u32 {
        let lane = self.lanes;
        self.lanes += lanes;
        for (i, &y) in labels.iter().enumerate() {
            self.exists[lane + y as usize / WIDTH] |= 1 << (y as usize % WIDTH);
            self.cell_of[first + i] = (lane * WIDTH + y as usize) as u32;
        }
        lane as u32
    }

    /// One row for each label before.
    fn edge_rows(&mut self, layout: &Layout) {
        let l = layout.labels;
        let mut i = 0;
        for from in 0..l {
            let begin = i;
            let labels: Vec<u16> = std::iter::from_fn(|| {
                let e = *layout.edges.get(i).filter(|&&e| e as usize / l == from)?;
                i += 1;
                Some((e as usize % l) as u16)
            })
            .collect();
            let lane = self.row(layout.edge_at() + begin, &labels, self.width);
            if from == 0 {
                self.edges[0] = lane * WIDTH as u32;
            }
        }
        self.edges[1] = self.edges[0] + (l * self.width * WIDTH) as u32;
    }

    /// A cell for each of n features from `first` on.
    fn single(&mut self, first: usize, n: usize) {
        for cell in &mut self.cell_of[first..first + n] {
            *cell = self.cells as u32;
            self.cells += 1;
        }
    }
}

impl TokenCells {
    /// `forbidden`: edges (label' * L + label) of score -infinity.
    pub fn new(
        data: Arc<Dataset>,
        layout: &Layout,
        forbidden: &[u32],
        support: Option<&Support>,
    ) -> Result<TokenCells> {
        let (l, width) = (layout.labels, layout.labels.div_ceil(WIDTH));
        afford(l)?;
        check_labels(&data, l)?;
        data.check_layout(layout.attributes)?;
        let allowed = allowed_edges(l, forbidden)?;
        check_gold(&data, l, &allowed, support)?;
        let mut cells = CellPlaces::new(&data, layout)?;
        let mut out = TokenCells {
            labels: l,
            width,
            at: Vec::with_capacity(data.tokens() + 1),
            spans: Vec::with_capacity(data.len() + 1),
            rows: RowNumbers::Long(Vec::new()),
            row_values: Vec::new(),
            rare: Vec::new(),
            rare_values: Vec::new(),
            pair_ptr: Vec::new(),
            pairs: Vec::new(),
            pair_values: Vec::new(),
            exists: std::mem::take(&mut cells.exists),
            wide: cells.wide,
            cell_of: std::mem::take(&mut cells.cell_of),
            edges: cells.edges,
            cells: cells.cells.next_multiple_of(WIDTH),
            masks: support.map(|s| mask_rows(&s.sets, l, width)).unwrap_or_default(),
            mask_of: support.map(|s| s.of.clone()).unwrap_or_default(),
            allowed,
            data,
        };
        out.read(layout, &cells)?;
        Ok(out)
    }

    /// The lists of all tokens: in parts, one a thread at a time, which are put one behind the other.
    fn read(&mut self, layout: &Layout, cells: &CellPlaces) -> Result<()> {
        let n = self.data.len();
        let at = |part: usize| n * part / PARTS;
        let parts = (0..PARTS).into_par_iter().with_max_len(1);
        let parts: Vec<Lists> =
            parts.map(|part| Lists::read(self, layout, cells, at(part)..at(part + 1))).collect::<Result<_>>()?;
        let sum = |of: &dyn Fn(&Lists) -> usize| parts.iter().map(of).sum::<usize>();
        let mut rows = RowNumbers::with_capacity(sum(&|part| part.rows.len()), cells.lanes);
        self.rare.reserve_exact(sum(&|part| part.rare.len()));
        if self.data.has_edge_attributes() {
            self.pair_ptr.push(0);
        }
        for mut part in parts {
            let (row, rare, pair) = (rows.len(), self.rare.len(), self.pairs.len());
            let behind = |at: At| At { row: row + at.row, wide: row + at.wide, rare: rare + at.rare };
            self.at.extend(part.at.into_iter().map(behind));
            self.spans.extend(part.spans.into_iter().map(behind));
            rows.extend(&part.rows);
            self.row_values.append(&mut part.row_values);
            self.rare.append(&mut part.rare);
            self.rare_values.append(&mut part.rare_values);
            self.pair_ptr.extend(part.pair_ptr.into_iter().map(|at| pair + at));
            self.pairs.append(&mut part.pairs);
            self.pair_values.append(&mut part.pair_values);
        }
        let end = At { row: rows.len(), wide: rows.len(), rare: self.rare.len() };
        self.at.push(end);
        self.spans.push(end);
        self.rows = rows;
        Ok(())
    }

    /// First token of a sentence and the one behind its last.
    #[inline(always)]
    pub fn range(&self, sentence: u32) -> (usize, usize) {
        (self.data.sentences[sentence as usize], self.data.sentences[sentence as usize + 1])
    }

    pub fn gold(&self, sentence: u32) -> &[u16] {
        let (begin, end) = self.range(sentence);
        &self.data.gold[begin..end]
    }

    /// `add(cell, amount)` for every feature of S(gold) - S(guess), as often as it occurs.
    #[inline(always)]
    pub fn difference(&self, sentence: u32, gold: &[u16], guess: &[u16], mut add: impl FnMut(u32, f32)) {
        let begin = self.range(sentence).0;
        for (t, (&y, &z)) in gold.iter().zip(guess).enumerate() {
            if y != z {
                self.label_features(begin, t, y, &mut add);
                self.label_features(begin, t, z, |cell, x| add(cell, -x));
            }
            if t > 0 && (y != z || gold[t - 1] != guess[t - 1]) {
                self.edge_features(begin + t, [gold[t - 1], y], 1.0, &mut add);
                self.edge_features(begin + t, [guess[t - 1], z], -1.0, &mut add);
            }
        }
    }

    /// `add(cell, amount)` for every node feature of a label at position t of the sentence that begins at a token.
    #[inline(always)]
    pub fn label_features(&self, begin: usize, t: usize, label: u16, mut add: impl FnMut(u32, f32)) {
        let (here, next) = (self.at[begin + t], self.at[begin + t + 1]);
        let (lane, bit) = (label as usize / WIDTH, label as usize % WIDTH);
        // First those that exist, without a branch that nobody can predict.
        let mut found = [(0, 0.0); 32];
        let mut from = if lane == 0 { here.row } else { here.wide }; // narrow rows have the first lane alone
        while from < next.row {
            let to = next.row.min(from + found.len());
            let mut n = 0;
            for at in from..to {
                let lane = self.rows.get(at) + lane;
                let value = if self.row_values.is_empty() { 1.0 } else { self.row_values[at] };
                found[n] = ((lane * WIDTH + bit) as u32, value);
                n += (self.exists[lane] >> bit & 1) as usize;
            }
            for &(cell, value) in &found[..n] {
                add(cell, value);
            }
            from = to;
        }
        let place = (t * self.width * WIDTH + label as usize) as u32;
        for at in here.rare..next.rare {
            if self.rare[at].at == place {
                add(self.rare[at].cell, if self.rare_values.is_empty() { 1.0 } else { self.rare_values[at] });
            }
        }
    }

    #[inline(always)]
    pub fn edge_features(&self, token: usize, pair: [u16; 2], amount: f32, add: &mut impl FnMut(u32, f32)) {
        let (from, to) = (pair[0] as usize, pair[1] as usize);
        let lane = self.edges[0] as usize / WIDTH + from * self.width + to / WIDTH;
        if self.exists[lane] >> (to % WIDTH) & 1 == 1 {
            add((lane * WIDTH + to % WIDTH) as u32, amount);
        }
        let number = (from * self.labels + to) as u32;
        for at in self.pairs_of(token) {
            if self.pairs[at].1 == number {
                add(self.pairs[at].0, amount * self.pair_values[at]);
            }
        }
    }

    pub fn pairs_of(&self, token: usize) -> std::ops::Range<usize> {
        match self.pair_ptr.is_empty() {
            true => 0..0,
            false => self.pair_ptr[token]..self.pair_ptr[token + 1],
        }
    }

    /// The lists of a sentence, to be asked for while another one is worked on.
    #[inline(always)]
    pub(crate) fn walk(&self, sentence: u32) -> Walk {
        let (begin, end) = self.range(sentence);
        let (first, last) = (self.spans[sentence as usize], self.spans[sentence as usize + 1]);
        Walk {
            lists: [
                self.rows.ahead(first.row..last.row),
                Prefetch::of(&self.rare[first.rare..last.rare]),
                Prefetch::of(&self.at[begin..=end]),
            ],
        }
    }

    /// Ask for the single cells of a sentence whose lists are here.
    #[inline(always)]
    pub(crate) fn prefetch_rare(&self, weights: &[Lane], sentence: u32) {
        let (first, last) = (self.spans[sentence as usize], self.spans[sentence as usize + 1]);
        for f in &self.rare[first.rare..last.rare] {
            prefetch(weights.as_ptr().cast::<f32>().wrapping_add(f.cell as usize));
        }
    }

    /// Number of cells.
    pub fn cells(&self) -> usize {
        self.cells
    }

    /// Values of the features from those of the cells.
    pub fn gather(&self, of_cell: impl Fn(usize) -> f64) -> Vec<f64> {
        self.cell_of.iter().map(|&c| of_cell(c as usize)).collect()
    }

    pub fn features(&self) -> usize {
        self.cell_of.len()
    }

    /// `set(cell, value)` for the value of every feature.
    pub fn scatter(&self, of_feature: &[f64], mut set: impl FnMut(usize, f64)) {
        for (&c, &x) in self.cell_of.iter().zip(of_feature) {
            set(c as usize, x);
        }
    }
}
