//! The other way: what the labels of a sentence's tokens are to add, collected on their features, and applied to weights.

use crate::machine::find::Find;
use crate::machine::simd::{prefetch, Lane};
use crate::scores::cells::{RowNumbers, TokenCells};
use std::ops::Range;

/// `by_lanes!(width, v, N => body)` runs `body` for blocks of N lanes from v on, N a constant of at most four.
macro_rules! by_lanes {
    ($width:expr, $v:ident, $N:ident => $body:expr) => {{
        let mut $v = 0;
        while $v < $width {
            match $width - $v {
                1 => {
                    const $N: usize = 1;
                    $body
                }
                2 => {
                    const $N: usize = 2;
                    $body
                }
                3 => {
                    const $N: usize = 3;
                    $body
                }
                _ => {
                    const $N: usize = 4;
                    $body
                }
            }
            $v += 4;
        }
    }};
}

/// The rows of a token: their numbers and their values, which are all 1 where there are none.
struct Rows<'a, I> {
    ids: &'a [I],
    values: &'a [f32],
}

impl TokenCells {
    /// Node scores of a sentence under `weights`, without its masks: 0 is what they begin with.
    ///
    /// # Safety
    /// The machine has the instructions of `S`; `weights` are [cells], `out` the rows of the sentence.
    #[inline(always)]
    pub(crate) unsafe fn score_plain<S: Find>(&self, weights: &[Lane], sentence: u32, out: &mut [Lane]) {
        let (begin, end) = self.range(sentence);
        out.fill(Lane::ZERO);
        let (first, last) = (self.spans[sentence as usize], self.spans[sentence as usize + 1]);
        self.add_rare(weights, first.rare..last.rare, 0, out);
        for (token, row) in (begin..end).zip(out.chunks_exact_mut(self.width)) {
            self.add_rows::<S>(weights, token, row);
        }
    }

    /// Collect F(d) = sum_t d_t(y) F_t(y) of a sentence in the cells of `sums`, and answer by how much that adds to their
    /// square: adding a to x adds a (2 x + a). Where they were 0 it is |F(d)|^2.
    ///
    /// # Safety
    /// The machine has the instructions of `S`; `sums` are [cells], `d` the rows of the sentence.
    #[inline(always)]
    pub(crate) unsafe fn collect<S: Find>(&self, d: &[Lane], sentence: u32, sums: &mut [Lane]) -> f64 {
        let (begin, end) = self.range(sentence);
        debug_assert!(d.len() >= (end - begin) * self.width && sums.len() * 16 == self.cells);
        let mut total = 0.0;
        for (token, d) in (begin..end).zip(d.chunks_exact(self.width)) {
            let which = self.at[token].row..self.at[token + 1].row;
            let values = if self.row_values.is_empty() { &[][..] } else { &self.row_values[which.clone()] };
            let square = match &self.rows {
                RowNumbers::Short(ids) => self.collect_rows::<S, u16>(Rows { ids: &ids[which], values }, d, sums),
                RowNumbers::Long(ids) => self.collect_rows::<S, u32>(Rows { ids: &ids[which], values }, d, sums),
            };
            total += f64::from(square);
        }
        let (first, last) = (self.spans[sentence as usize], self.spans[sentence as usize + 1]);
        let (cells, from) = (sums.as_mut_ptr().cast::<f32>(), d.as_ptr().cast::<f32>());
        let mut square = 0.0f32;
        for at in first.rare..last.rare {
            let f = self.rare.get_unchecked(at);
            let value = if self.rare_values.is_empty() { 1.0 } else { self.rare_values[at] };
            let (a, x) = (*from.add(f.at as usize) * value, cells.add(f.cell as usize));
            square += a * (2.0 * *x + a);
            *x += a;
        }
        total + f64::from(square)
    }

    /// # Safety
    /// As for `collect`; `d` is of the token whose rows these are.
    #[inline(always)]
    unsafe fn collect_rows<S: Find, I: Copy + Into<u32>>(
        &self,
        rows: Rows<'_, I>,
        d: &[Lane],
        sums: &mut [Lane],
    ) -> f32 {
        let mut square = S::splat(0.0);
        by_lanes!(self.width, v, N => square = self.collect_some::<S, I, N>(&rows, d, v, sums, square));
        S::total(square)
    }

    /// N lanes of labels from lane v on.
    ///
    /// # Safety
    /// As for `collect_rows`; v + N <= width.
    #[inline(always)]
    unsafe fn collect_some<S: Find, I: Copy + Into<u32>, const N: usize>(
        &self,
        rows: &Rows<'_, I>,
        d: &[Lane],
        v: usize,
        sums: &mut [Lane],
        mut square: S::F,
    ) -> S::F {
        debug_assert!(v + N <= self.width && d.len() >= v + N);
        debug_assert!(rows.ids.iter().all(|&id| (id.into() as usize + 1) * self.width <= sums.len()));
        let width = if v == 0 && N < 4 { N } else { self.width };
        let d: [S::F; N] = std::array::from_fn(|j| S::load(&d[v + j]));
        let two = S::splat(2.0);
        for (i, &id) in rows.ids.iter().enumerate() {
            let first = id.into() as usize * width + v;
            for j in 0..N {
                let lane = sums.get_unchecked_mut(first + j);
                let x = S::load(lane);
                let mut a = S::keep(*self.exists.get_unchecked(first + j), d[j]);
                if !rows.values.is_empty() {
                    a = S::mul(a, S::splat(rows.values[i]));
                }
                square = S::fma(a, S::fma(two, x, a), square);
                S::store(S::add(x, a), lane);
            }
        }
        square
    }

    /// weights += step F(d), as `collect` left it in `sums`, which are 0 again behind it.
    ///
    /// # Safety
    /// The machine has the instructions of `S`; `weights` and `sums` are [cells].
    #[inline(always)]
    pub(crate) unsafe fn apply<S: Find>(&self, sentence: u32, step: f32, sums: &mut [Lane], weights: &mut [Lane]) {
        let (first, last) = (self.spans[sentence as usize], self.spans[sentence as usize + 1]);
        let which = first.row..last.row;
        match &self.rows {
            RowNumbers::Short(ids) => self.apply_rows::<S, u16>(ids, which, step, sums, weights),
            RowNumbers::Long(ids) => self.apply_rows::<S, u32>(ids, which, step, sums, weights),
        }
        let (from, to) = (sums.as_mut_ptr().cast::<f32>(), weights.as_mut_ptr().cast::<f32>());
        for f in self.rare.get_unchecked(first.rare..last.rare) {
            let x = from.add(f.cell as usize);
            *to.add(f.cell as usize) += step * *x;
            *x = 0.0;
        }
    }

    /// # Safety
    /// As for `apply`.
    #[inline(always)]
    unsafe fn apply_rows<S: Find, I: Copy + Into<u32>>(
        &self,
        ids: &[I],
        which: Range<usize>,
        step: f32,
        sums: &mut [Lane],
        weights: &mut [Lane],
    ) {
        let (by, zero) = (S::splat(step), S::splat(0.0));
        debug_assert!(ids[which.clone()].iter().all(|&id| (id.into() as usize + 1) * self.width <= sums.len()));
        by_lanes!(self.width, v, N => {
            let width = if v == 0 && N < 4 { N } else { self.width };
            for &id in &ids[which.clone()] {
                let first = id.into() as usize * width + v;
                for j in first..first + N {
                    let (lane, w) = (sums.get_unchecked_mut(j), weights.get_unchecked_mut(j));
                    S::store(S::fma(by, S::load(lane), S::load(w)), w);
                    S::store(zero, lane);
                }
            }
        });
    }

    /// Ask for the single cells of a sentence in another array of cells.
    #[inline(always)]
    pub(crate) fn prefetch_sums(&self, sums: &[Lane], sentence: u32) {
        let (first, last) = (self.spans[sentence as usize], self.spans[sentence as usize + 1]);
        for f in &self.rare[first.rare..last.rare] {
            prefetch(sums.as_ptr().cast::<f32>().wrapping_add(f.cell as usize));
        }
    }
}
