//! Training data and weights in a layout for learning one sentence at a time.
//!
//! Each weight has a *cell*. Frequent attributes have a row of cells, one per label, padded to whole lanes, so that
//! scoring adds vectors. Other attributes have one cell per feature. Edge weights, start and end are rows too. Cells
//! without a feature stay 0.
//!
//! Rows are *narrow*, of one lane, if their features are all on the first sixteen labels, and *wide*, of all lanes,
//! otherwise. Labels are numbered by frequency, so nearly all rows are narrow.
//!
//! Cells are listed per token (`tokens`), for learners that use a few features of a sentence, or per sentence
//! (`by_sentence`), for learners that use all of them.

pub(crate) mod by_sentence;
mod fill;
mod lists;
mod read;
mod tokens;
pub mod weights;

use crate::chain::limits::support::{mask_rows, Support};
use crate::dataset::layout::Layout;
use crate::dataset::Dataset;
use crate::error::{Error, Result};
use crate::machine::simd::{prefetch, Lane, WIDTH};
use crate::scores::check::{allowed_edges, check_gold, check_labels};
use crate::scores::scorer::claim_pair_tables;
use std::sync::Arc;
pub use tokens::TokenCells;
pub use weights::OnlineWeights;

/// Number of occurrences from which an attribute gets a row.
const MIN_ROW_COUNT: u32 = 16;
/// Number of features from which an attribute gets a row, because a list of that length would be slower.
const MIN_ROW_FEATURES: usize = 8;

/// Prefetch distance in entries.
const PREFETCH_DISTANCE: usize = 16;

/// Training data and the cell of each feature. Immutable.
pub struct Cells {
    pub data: Arc<Dataset>,
    pub labels: usize,
    pub width: usize,       // lanes of a row
    exists: Vec<u16>,       // [lanes of rows] bit y: the cell has a feature
    wide: usize,            // first lane of the wide rows
    cell_of: Vec<u32>,      // [features]
    pub edges: [u32; 2],    // first cell of the edge rows, and the end of the last
    cells: usize,           // a multiple of 16
    masks: Vec<Lane>,       // [sets, width]
    mask_of: Vec<u32>,      // [tokens], empty without support
    pub allowed: Vec<bool>, // [L, L] edges that are not forbidden
}

/// Locations of the cells of attributes, for building the lists of tokens and sentences.
pub(crate) struct Places<'a> {
    layout: &'a Layout,
    row_of: Vec<u32>,     // [attributes] first lane of the row, or u32::MAX
    boundaries: [u32; 2], // first lanes of the rows of start and end
}

impl Cells {
    /// `forbidden`: edges (label' * L + label) of score -infinity. Order of the rows: an empty one, the narrow rows of
    /// attributes, another empty one, the wide rows of attributes, start and end, and the edges. Order of the single
    /// cells: the other attributes by id, then pairs.
    pub(crate) fn new<'a>(
        data: Arc<Dataset>,
        layout: &'a Layout,
        forbidden: &[u32],
        support: Option<&Support>,
    ) -> Result<(Cells, Places<'a>)> {
        let (l, width) = (layout.labels, layout.labels.div_ceil(WIDTH));
        claim_pair_tables(l)?;
        check_labels(&data, l)?;
        data.check_layout(layout.attributes)?;
        let allowed = allowed_edges(l, forbidden)?;
        check_gold(&data, l, &allowed, support)?;
        let mut count = vec![0u32; layout.attributes];
        for &a in data.node.csr().ids {
            count[a as usize] = count[a as usize].saturating_add(1);
        }
        let is_row = |a: usize| count[a] >= MIN_ROW_COUNT || layout.node(a as u32).1.len() >= MIN_ROW_FEATURES;
        // Most frequent first, so that they stay in the L1 cache and on few pages.
        let mut with_row: Vec<u32> = (0..layout.attributes as u32).filter(|&a| is_row(a as usize)).collect();
        with_row.sort_by_key(|&a| std::cmp::Reverse(count[a as usize]));
        let is_narrow = |a: u32| width == 1 || layout.node(a).1.iter().all(|&y| (y as usize) < WIDTH);
        let (narrow, wide): (Vec<u32>, Vec<u32>) = with_row.into_iter().partition(|&a| is_narrow(a));
        let n_lanes = 1 + narrow.len() + (wide.len() + 3 + l) * width;
        let n_rare = layout.n_node().saturating_add(layout.pair.len());
        if (n_lanes * WIDTH).saturating_add(n_rare) >= u32::MAX as usize - WIDTH {
            return Err(Error::Value("more than 4 billion weights; raise min_count or use fewer templates".into()));
        }
        let mut out = Cells {
            data,
            labels: l,
            width,
            exists: Vec::with_capacity(n_lanes),
            wide: 1 + narrow.len(),
            cell_of: vec![0; layout.len()],
            edges: [0; 2],
            cells: n_lanes * WIDTH,
            masks: support.map(|s| mask_rows(&s.sets, l, width)).unwrap_or_default(),
            mask_of: support.map(|s| s.of.clone()).unwrap_or_default(),
            allowed,
        };
        let mut row_of = vec![u32::MAX; layout.attributes];
        for (some, lanes) in [(&narrow, 1), (&wide, width)] {
            out.add_row(0, &[], lanes);
            for &a in some {
                let (first, labels) = layout.node(a);
                row_of[a as usize] = out.add_row(first, labels, lanes);
            }
        }
        let start = out.add_row(layout.start_at(), &layout.starts, width);
        let boundaries = [start, out.add_row(layout.end_at(), &layout.ends, width)];
        out.edge_rows(layout);
        for a in (0..layout.attributes).filter(|&a| !is_row(a)) {
            let (first, labels) = layout.node(a as u32);
            out.add_single_cells(first, labels.len());
        }
        out.add_single_cells(layout.pair_at(), layout.pair.len());
        out.cells = out.cells.next_multiple_of(WIDTH);
        Ok((out, Places { layout, row_of, boundaries }))
    }

    /// Append a row of the features starting at `first`. Return its first lane.
    fn add_row(&mut self, first: usize, labels: &[u16], lanes: usize) -> u32 {
        let lane = self.exists.len();
        self.exists.resize(lane + lanes, 0);
        for (i, &y) in labels.iter().enumerate() {
            self.exists[lane + y as usize / WIDTH] |= 1 << (y as usize % WIDTH);
            self.cell_of[first + i] = (lane * WIDTH + y as usize) as u32;
        }
        lane as u32
    }

    /// Append one row per previous label.
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
            let lane = self.add_row(layout.edge_at() + begin, &labels, self.width);
            if from == 0 {
                self.edges[0] = lane * WIDTH as u32;
            }
        }
        self.edges[1] = self.edges[0] + (l * self.width * WIDTH) as u32;
    }

    /// Append one cell for each of n features starting at `first`.
    fn add_single_cells(&mut self, first: usize, n: usize) {
        for cell in &mut self.cell_of[first..first + n] {
            *cell = self.cells as u32;
            self.cells += 1;
        }
    }

    /// Number of lanes in the rows of a sentence.
    #[inline(always)]
    pub fn lanes_of(&self, sentence: u32) -> usize {
        let (begin, end) = self.range(sentence);
        (end - begin) * self.width
    }

    /// First token of a sentence and the end of the last.
    #[inline(always)]
    pub fn range(&self, sentence: u32) -> (usize, usize) {
        (self.data.sentences[sentence as usize], self.data.sentences[sentence as usize + 1])
    }

    pub fn gold(&self, sentence: u32) -> &[u16] {
        let (begin, end) = self.range(sentence);
        &self.data.gold[begin..end]
    }

    /// Initialize the scores of a sentence to 0, or -infinity for labels that a token may not take.
    #[inline(always)]
    pub(crate) fn begin(&self, sentence: u32, out: &mut [Lane]) {
        if self.mask_of.is_empty() {
            return out.fill(Lane::ZERO);
        }
        let (begin, end) = self.range(sentence);
        for (token, add_row) in (begin..end).zip(out.chunks_exact_mut(self.width)) {
            self.clear(token, add_row);
        }
    }

    /// Initialize the scores of one token.
    #[inline(always)]
    fn clear(&self, token: usize, out: &mut [Lane]) {
        match self.mask_of.get(token) {
            None => out.fill(Lane::ZERO),
            Some(&set) => out.copy_from_slice(&self.masks[set as usize * self.width..(set as usize + 1) * self.width]),
        }
    }

    /// Number of cells.
    pub fn cells(&self) -> usize {
        self.cells
    }

    /// Return the values of the features, given those of the cells.
    pub fn gather(&self, of_cell: impl Fn(usize) -> f64) -> Vec<f64> {
        self.cell_of.iter().map(|&c| of_cell(c as usize)).collect()
    }

    pub fn features(&self) -> usize {
        self.cell_of.len()
    }

    /// Call `set(cell, value)` for the value of every feature.
    pub fn scatter(&self, of_feature: &[f64], mut set: impl FnMut(usize, f64)) {
        for (&c, &x) in self.cell_of.iter().zip(of_feature) {
            set(c as usize, x);
        }
    }
}

impl Places<'_> {
    /// Prefetch the data of later entries. Lists of attributes are read sequentially, but the data they refer to is
    /// scattered.
    #[inline(always)]
    fn prefetch_later(&self, ids: &[u32], at: usize) {
        if let Some(&a) = ids.get(at + 2 * PREFETCH_DISTANCE) {
            prefetch(self.row_of.as_ptr().wrapping_add(a as usize));
            prefetch(self.layout.node_ptr.as_ptr().wrapping_add(a as usize));
        }
    }

    /// Call `row(first lane, value)` or `cell(cell, label, value)` for everything that token t of a sentence has.
    #[inline(always)]
    fn each(
        &self,
        cells: &Cells,
        sentence: usize,
        t: usize,
        mut row: impl FnMut(u32, f32),
        mut cell: impl FnMut(u32, u16, f32),
    ) {
        let (begin, end) = cells.range(sentence as u32);
        let csr = cells.data.node.csr();
        for at in csr.ptr[begin + t]..csr.ptr[begin + t + 1] {
            let (a, value) = (csr.ids[at], csr.value(at));
            self.prefetch_later(csr.ids, at);
            let lane = self.row_of[a as usize];
            if lane != u32::MAX {
                row(lane, value);
                continue;
            }
            let (first, labels) = self.layout.node(a);
            for (&at, &label) in cells.cell_of[first..].iter().zip(labels) {
                cell(at, label, value);
            }
        }
        let (begins, ends) = cells.data.ends(sentence);
        for (lane, is_present) in self.boundaries.into_iter().zip([begins && t == 0, ends && begin + t + 1 == end]) {
            if is_present {
                row(lane, 1.0);
            }
        }
    }
}
