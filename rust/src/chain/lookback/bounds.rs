//! Bounds on which entries of a cell can be among the k best of the next cell, without reading any row.
//!
//! Entries that reach the same cells differ by their scores and by the rows of F that they add. By the smallest and
//! largest weight of each row, an entry adds at least `low` and at most `high` to its score, for any next label. The
//! edge score is the same for all of them. The k-th largest score + low of a cell's entries is therefore a lower bound
//! on the k-th best score of every label, and an entry with score + high below it is in no list. Scores of paths differ
//! by far more than weights of single features, so of the L k entries that reach a cell only a few more than k remain.

use crate::chain::lookback::Lookback;
use crate::chain::viterbi::sentence::Steps;
use crate::machine::simd::find::Find;
use crate::machine::simd::{Lane, WIDTH};

const NEG_INF: f32 = f32::NEG_INFINITY;
/// Relative error of a score per added row, with a large safety margin.
const ROUNDING: f32 = 1e-6;

/// Bounds of the rows of one sentence, and lower bounds of one token.
#[derive(Default)]
pub struct RowBounds {
    rows: Vec<(f32, f32)>,   // [rows of F] smallest and largest weight
    tables: Vec<(f32, f32)>, // [p + 1] smallest and largest weight of each table, accumulated from F_2
    size: f32,               // largest magnitude among them and the edges
    added: Vec<(f32, f32)>,  // [prefixes] the least and the most that an entry adds
    floor: Vec<Lane>,        // [prefixes of targets, k, width]
    slack: f32,
}

impl RowBounds {
    /// Whether cells can be bounded by rows. Cells of single labels have one entry each, and tuples have too many rows.
    pub fn supports(terms: &Lookback) -> bool {
        terms.cell >= 2 && terms.far >= 2 && !terms.tuples
    }

    /// Set the rows and edges of a sentence.
    pub fn begin(&mut self, terms: &Lookback, steps: &Steps, rows: &[Lane]) {
        let (width, l) = (terms.width(), terms.labels);
        let smallest_and_largest = |lanes: &[Lane]| -> (f32, f32) {
            let each = (0..l).map(|y| lanes[y / WIDTH].0[y % WIDTH]);
            each.fold((f32::INFINITY, NEG_INF), |(a, b), x| (a.min(x), b.max(x)))
        };
        self.rows.clear();
        self.rows.extend(rows.chunks_exact(width).take((terms.far - 1) * l).map(smallest_and_largest));
        self.tables.clear();
        self.tables.resize(2, (0.0, 0.0));
        for table in self.rows.chunks_exact(l) {
            let (low, high) = table.iter().fold((f32::INFINITY, NEG_INF), |s, x| (s.0.min(x.0), s.1.max(x.1)));
            let before = self.tables[self.tables.len() - 1];
            self.tables.push((before.0 + low, before.1 + high));
        }
        self.size = self.rows.iter().fold(steps.size(), |size, x| size.max(x.0.abs()).max(x.1.abs()));
    }

    /// Sums over the tables of distances beyond `near`, up to `depth`.
    fn far_tables(&self, terms: &Lookback, near: usize, depth: usize) -> (f32, f32) {
        let at = |q: usize| {
            let (inside, last) = (self.tables[q.min(terms.far)], terms.far);
            let shared = if q > last { (q - last) as f32 } else { 0.0 };
            let before = self.tables[last - 1];
            let table = (self.tables[last].0 - before.0, self.tables[last].1 - before.1);
            (inside.0 + shared * table.0, inside.1 + shared * table.1)
        };
        let (all, part) = (at(depth), at(near));
        (all.0 - part.0, all.1 - part.1)
    }

    /// Compute the lower bounds of a token whose cells are full. `before` [prefixes, k, width] are the entries of the
    /// previous token.
    #[inline(always)]
    pub fn compute_floors<S: Find>(&mut self, simd: S, terms: &Lookback, before: &[Lane], k: usize, depth: usize) {
        let (width, l) = (terms.width(), terms.labels);
        let n_targets = l.pow(terms.cell as u32 - 2);
        let near = terms.cell.min(depth);
        let far_tables = self.far_tables(terms, near, depth);
        self.slack = ROUNDING * (depth + 8) as f32;
        self.added.clear();
        self.floor.clear();
        self.floor.resize(n_targets * k * width, Lane([NEG_INF; WIDTH]));
        for prefix in 0..n_targets * l {
            let (mut added, mut digits) = (far_tables, prefix);
            for q in 2..=near {
                let row = self.rows[terms.far_row(q, digits % l)];
                added = (added.0 + row.0, added.1 + row.1);
                digits /= l;
            }
            self.added.push(added);
            let low = simd.splat(added.0);
            let target = prefix % n_targets * k * width;
            let entries = &before[prefix * k * width..(prefix + 1) * k * width];
            for v in 0..width {
                for rank in 0..k {
                    let mut x = simd.add(simd.load(&entries[rank * width + v]), low);
                    // The entries of a cell are sorted, so the remaining ones do not exceed a bound either.
                    if none_above(simd, x, simd.load(&self.floor[target + (k - 1) * width + v])) {
                        break;
                    }
                    for floor in self.floor[target + v..].iter_mut().step_by(width).take(k) {
                        let above = simd.load(floor);
                        simd.store(simd.max(x, above), floor);
                        x = simd.min(x, above);
                    }
                }
            }
        }
    }

    /// Select the entries of a lane, one per label, that can be in a list of the cells they reach: bit i for number i.
    /// `target` is the row of cells reached, without the label.
    #[inline(always)]
    pub fn select_entries<S: Find>(
        &self,
        simd: S,
        prefix: usize,
        target: usize,
        v: usize,
        (k, width): (usize, usize),
        entries: &Lane,
    ) -> u32 {
        let (base, zero) = (simd.load(entries), simd.splat(0.0));
        let floor = simd.load(&self.floor[(target * k + k - 1) * width + v]);
        let upper = simd.add(base, simd.splat(self.added[prefix].1));
        let depth = self.slack / ROUNDING;
        let sizes = simd.add(simd.add(magnitude(simd, base), magnitude(simd, floor)), simd.splat(depth * self.size));
        let lower = simd.sub(floor, simd.mul(simd.splat(self.slack), sizes));
        simd.equal(simd.select_gt(lower, upper, simd.splat(1.0), zero), zero)
    }
}

#[inline(always)]
fn magnitude<S: Find>(simd: S, x: S::F) -> S::F {
    simd.max(x, simd.sub(simd.splat(0.0), x))
}

/// Whether no number of `x` is larger than that of `other`.
#[inline(always)]
pub fn none_above<S: Find>(simd: S, x: S::F, other: S::F) -> bool {
    simd.equal(simd.select_gt(x, other, simd.splat(1.0), simd.splat(0.0)), simd.splat(0.0)) == (1 << WIDTH) - 1
}
