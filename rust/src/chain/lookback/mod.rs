//! Features on labels further back than one, and the search with hypothesised history (m, p) of Gimpel & Cohen,
//! "Discriminative online algorithms for sequence labeling", section 3.2.
//!
//! A cell of the chart holds the last m labels exactly. Labels further back, up to p, are read from the cell's own best
//! path. `Lookback` defines the features and their layout, `search` finds paths, and `beam` is the alternative that the
//! paper compares with. `scores::document` finds repeated words, `learners::online::lookback` trains, and
//! `decoding::lookback` labels a corpus.
//!
//! ```text
//! H(x, y) = first order + sum_t sum_{q=2..p} F_q[y_{t-q}, y_t] + sum_t sum_{u<t, w_u=w_t} R[y_u, y_t]
//!           + sum_t sum_{n=2..m} G_n[y_{t-n} .. y_{t-1}, y_t]
//! ```
//! u runs over the earlier tokens of the document. Labels in the sentence come from the current path, labels before it
//! from earlier decoding.

pub mod beam;
mod bounded_search;
mod bounds;
pub mod search;

use crate::error::{Error, Result};
use crate::machine::simd::{Lane, WIDTH};

/// Maximum number of labels per cell.
pub const MAX_CELL: usize = 3;
/// Maximum number of cells per token. Their numbers are stored as float32.
const MAX_CELLS: usize = 1 << 22;
/// Maximum number of weights in tables, or in tuples: 1 GiB of float32.
const MAX_WEIGHTS: usize = 1 << 28;

/// Features in use. Their weights form rows: one weight per label of the token, one row per context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lookback {
    pub labels: usize,
    pub cell: usize,    // m
    pub far: usize,     // p: tables F_2 .. F_p, 1 for none
    pub endless: bool,  // labels further back than p share the last table
    pub document: bool, // R
    pub tuples: bool,   // G_2 .. G_m
}

impl Lookback {
    pub fn check(&self) -> Result<()> {
        if self.cell == 0 || self.cell > MAX_CELL {
            return Err(Error::Value(format!("m={}: expected 1, 2 or 3 labels a cell", self.cell)));
        }
        if self.far == 0 || (self.endless && self.far < 2) {
            return Err(Error::Value(format!("p={}: expected 1 or more, or infinity", self.far)));
        }
        let tables = self.far.checked_mul(self.labels).and_then(|n| n.checked_mul(self.width() * WIDTH));
        if tables.is_none_or(|n| n > MAX_WEIGHTS) {
            return Err(Error::Value(format!(
                "p={} with {} labels makes too many weights; use a smaller p, or inf",
                self.far, self.labels
            )));
        }
        let cells = (0..self.cell).try_fold(1usize, |n, _| n.checked_mul(self.labels));
        let weights = cells.and_then(|n| n.checked_mul(self.labels));
        if self.labels == 0 || weights.is_none_or(|n| n > MAX_WEIGHTS) || cells.is_none_or(|n| n > MAX_CELLS) {
            return Err(Error::Value(format!(
                "m={} with {} labels makes too many cells; use a smaller m",
                self.cell, self.labels
            )));
        }
        Ok(())
    }

    /// Check that the entries of all cells, k per cell, can be numbered exactly in float32.
    pub fn check_lists(&self, k: usize) -> Result<()> {
        let cells = self.labels.pow(self.cell as u32 - 1) * self.width() * WIDTH;
        match cells.checked_mul(k.max(1)).is_some_and(|n| n <= 1 << 24) {
            true => Ok(()),
            false => {
                Err(Error::Value(format!("k={k} paths in each of {cells} cells are too many; use a smaller k or m")))
            }
        }
    }

    /// Lanes of a row.
    pub fn width(&self) -> usize {
        self.labels.div_ceil(WIDTH)
    }

    /// Row of F_q for a label q tokens back.
    #[inline(always)]
    pub fn far_row(&self, q: usize, label: usize) -> usize {
        (q.min(self.far) - 2) * self.labels + label
    }

    /// Row of R for the label of an earlier token with the same word.
    #[inline(always)]
    pub fn repeat_row(&self, label: usize) -> usize {
        (self.far - 1) * self.labels + label
    }

    fn tuple_begin(&self) -> usize {
        (self.far - 1 + usize::from(self.document)) * self.labels
    }

    /// Row of G_n for the n labels before a token, numbered with the last as the lowest digit, where n is 2 or 3.
    #[inline(always)]
    pub fn tuple_row(&self, n: usize, labels: usize) -> usize {
        self.tuple_begin() + labels + if n == 3 { self.labels * self.labels } else { 0 }
    }

    pub fn rows(&self) -> usize {
        let l = self.labels;
        let tuples = match (self.tuples, self.cell) {
            (true, 2) => l * l,
            (true, 3) => l * l + l * l * l,
            _ => 0,
        };
        self.tuple_begin() + tuples
    }

    /// Number of features.
    pub fn len(&self) -> usize {
        self.rows() * self.labels
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of labels back that features of position t look, except for repeated words.
    #[inline(always)]
    pub fn depth(&self, t: usize) -> usize {
        if self.endless {
            t
        } else {
            t.min(self.far)
        }
    }

    /// Call `f(row)` for every feature of position t of a path, except those on earlier sentences. `same` [T]: distance
    /// to the previous token with the same word, 0 if there is none in the sentence.
    #[inline(always)]
    pub fn at(&self, path: &[u16], t: usize, same: &[u32], mut f: impl FnMut(usize)) {
        for q in 2..=self.depth(t) {
            f(self.far_row(q, path[t - q] as usize));
        }
        if self.document {
            let mut u = t;
            while same[u] != 0 {
                u -= same[u] as usize;
                f(self.repeat_row(path[u] as usize));
            }
        }
        if self.tuples {
            for n in 2..=self.cell.min(t) {
                let before = path[t - n..t].iter().fold(0, |number, &y| number * self.labels + y as usize);
                f(self.tuple_row(n, before));
            }
        }
    }

    /// Weights, one per feature, as rows of lanes.
    pub fn lanes(&self, weights: &[f32]) -> Vec<Lane> {
        let (l, width) = (self.labels, self.width());
        let mut rows = vec![Lane::ZERO; self.rows() * width];
        for (i, &x) in weights.iter().enumerate() {
            rows[i / l * width + i % l / WIDTH].0[i % l % WIDTH] = x;
        }
        rows
    }
}
