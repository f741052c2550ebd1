//! Rows and cells of each token, for learners that use few features of a sentence.

use super::read::TokenLists;
use super::{Cells, Places};
use crate::chain::limits::support::Support;
use crate::dataset::layout::Layout;
use crate::dataset::Dataset;
use crate::error::Result;
use crate::machine::simd::{bytes, prefetch, Lane, Prefetcher, WIDTH};
use rayon::prelude::*;
use std::ops::Range;
use std::sync::Arc;

/// A token's rows are padded to groups of this size with row 0, whose weights stay 0. This leaves few loop lengths,
/// which branch prediction learns.
pub(super) const GROUP: usize = 4;

/// Number of parts in which lists are read.
const PARTS: usize = 8;

#[derive(Clone, Copy, Debug)]
pub(super) struct RareCell {
    pub cell: u32,
    pub at: u32, // index among the node scores of the sentence: t * 16 * width + label
}

/// First lanes of rows, in two bytes each if they fit. Most of what an epoch reads from main memory are these numbers.
pub(super) enum RowNumbers {
    Short(Vec<u16>),
    Long(Vec<u32>),
}

impl RowNumbers {
    /// Reserve capacity for `count` numbers below `bound`.
    fn with_capacity(count: usize, bound: usize) -> RowNumbers {
        match bound <= 1 << 16 {
            true => RowNumbers::Short(Vec::with_capacity(count)),
            false => RowNumbers::Long(Vec::with_capacity(count)),
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

    fn bytes(&self, which: Range<usize>) -> Range<*const u8> {
        match self {
            RowNumbers::Short(rows) => bytes(&rows[which]),
            RowNumbers::Long(rows) => bytes(&rows[which]),
        }
    }
}

/// Offsets of a token's lists.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct At {
    pub row: usize,
    pub wide: usize, // first of its wide rows, which follow the narrow ones
    pub rare: usize,
}

/// Training data and the contributions of each token to its scores. Immutable.
pub struct TokenCells {
    cells: Cells,
    pub(super) at: Vec<At>,      // [tokens + 1]
    pub(super) spans: Vec<At>,   // [sentences + 1] offsets of the first tokens
    pub(super) rows: RowNumbers, // in whole groups
    pub(super) row_values: Vec<f32>,
    pub(super) rare: Vec<RareCell>,
    pub(super) rare_values: Vec<f32>,
    pair_ptr: Vec<usize>,       // [tokens + 1], empty without edge attributes
    pub pairs: Vec<(u32, u32)>, // (cell, label' * L + label)
    pub pair_values: Vec<f32>,
}

/// Lists refer to cells and are read together with them.
impl std::ops::Deref for TokenCells {
    type Target = Cells;

    #[inline(always)]
    fn deref(&self) -> &Cells {
        &self.cells
    }
}

impl TokenCells {
    /// Build the cells as `Cells::new` does, and the lists of all tokens.
    pub fn new(
        data: Arc<Dataset>,
        layout: &Layout,
        forbidden: &[u32],
        support: Option<&Support>,
    ) -> Result<TokenCells> {
        let (cells, places) = Cells::new(data, layout, forbidden, support)?;
        let mut out = TokenCells {
            at: Vec::with_capacity(cells.data.tokens() + 1),
            spans: Vec::with_capacity(cells.data.len() + 1),
            rows: RowNumbers::Long(Vec::new()),
            row_values: Vec::new(),
            rare: Vec::new(),
            rare_values: Vec::new(),
            pair_ptr: Vec::new(),
            pairs: Vec::new(),
            pair_values: Vec::new(),
            cells,
        };
        out.read(&places)?;
        Ok(out)
    }

    /// Read the lists of all tokens in parts, one per thread at a time, and concatenate them.
    fn read(&mut self, places: &Places<'_>) -> Result<()> {
        let n = self.data.len();
        let at = |part: usize| n * part / PARTS;
        let parts = (0..PARTS).into_par_iter().with_max_len(1);
        let parts: Vec<TokenLists> =
            parts.map(|part| TokenLists::read(&self.cells, places, at(part)..at(part + 1))).collect::<Result<_>>()?;
        let sum = |of: &dyn Fn(&TokenLists) -> usize| parts.iter().map(of).sum::<usize>();
        let mut rows = RowNumbers::with_capacity(sum(&|part| part.rows.len()), self.exists.len());
        self.rare.reserve_exact(sum(&|part| part.rare.len()));
        if self.data.has_edge_attributes() {
            self.pair_ptr.push(0);
        }
        for mut part in parts {
            let (row, rare, pair) = (rows.len(), self.rare.len(), self.pairs.len());
            let shifted = |at: At| At { row: row + at.row, wide: row + at.wide, rare: rare + at.rare };
            self.at.extend(part.at.into_iter().map(shifted));
            self.spans.extend(part.spans.into_iter().map(shifted));
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

    /// Call `add(cell, amount)` for every feature of S(gold) - S(guess), once per occurrence.
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

    /// Call `add(cell, amount)` for every node feature of a label at position t of the sentence that begins at token
    /// `begin`.
    #[inline(always)]
    pub fn label_features(&self, begin: usize, t: usize, label: u16, mut add: impl FnMut(u32, f32)) {
        let (here, next) = (self.at[begin + t], self.at[begin + t + 1]);
        let (lane, bit) = (label as usize / WIDTH, label as usize % WIDTH);
        // Collect the existing ones first, without an unpredictable branch.
        let mut found = [(0, 0.0); 32];
        let mut from = if lane == 0 { here.row } else { here.wide }; // narrow rows have only the first lane
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

    pub fn pairs_of(&self, token: usize) -> Range<usize> {
        match self.pair_ptr.is_empty() {
            true => 0..0,
            false => self.pair_ptr[token]..self.pair_ptr[token + 1],
        }
    }

    /// Return a prefetcher of a sentence's lists. Sentences come in random order, so the hardware cannot predict the
    /// next one.
    #[inline(always)]
    pub(crate) fn prefetcher(&self, sentence: u32) -> Prefetcher {
        let (begin, end) = self.range(sentence);
        let (first, last) = (self.spans[sentence as usize], self.spans[sentence as usize + 1]);
        let rows = self.rows.bytes(first.row..last.row);
        Prefetcher::new([rows, bytes(&self.rare[first.rare..last.rare]), bytes(&self.at[begin..=end])])
    }

    /// Prefetch the single cells of a sentence whose lists are cached.
    #[inline(always)]
    pub(crate) fn prefetch_rare(&self, weights: &[Lane], sentence: u32) {
        let (first, last) = (self.spans[sentence as usize], self.spans[sentence as usize + 1]);
        for f in &self.rare[first.rare..last.rare] {
            prefetch(weights.as_ptr().cast::<f32>().wrapping_add(f.cell as usize));
        }
    }
}
