//! The other way: what the labels of a sentence's tokens are to add, collected on their features, and applied to weights.

use crate::machine::find::Find;
use crate::machine::simd::{prefetch, Lane};
use crate::scores::cells::TokenCells;

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

    /// Collect F(d) = sum_t d_t(y) F_t(y) of a sentence in the cells of `sums`, which are 0 before, and answer |F(d)|^2:
    /// adding a to x adds a (2 x + a) to the square.
    ///
    /// # Safety
    /// The machine has the instructions of `S`; `sums` are [cells], `d` the rows of the sentence.
    #[inline(always)]
    pub(crate) unsafe fn collect<S: Find>(&self, d: &[Lane], sentence: u32, sums: &mut [Lane]) -> f64 {
        let (begin, end) = self.range(sentence);
        let (width, two) = (self.width, S::splat(2.0));
        debug_assert!(d.len() >= (end - begin) * width);
        let mut total = 0.0;
        for token in begin..end {
            let row_of_d = d.as_ptr().add((token - begin) * width);
            let mut square = S::splat(0.0);
            for at in self.at[token].row..self.at[token + 1].row {
                let first = self.rows.get(at) * width;
                let value = if self.row_values.is_empty() { 1.0 } else { self.row_values[at] };
                debug_assert!(first + width <= sums.len());
                for j in 0..width {
                    let lane = sums.get_unchecked_mut(first + j);
                    let x = S::load(lane);
                    let mut a = S::keep(*self.exists.get_unchecked(first + j), S::load(&*row_of_d.add(j)));
                    if !self.row_values.is_empty() {
                        a = S::mul(a, S::splat(value));
                    }
                    square = S::fma(a, S::fma(two, x, a), square);
                    S::store(S::add(x, a), lane);
                }
            }
            total += f64::from(S::total(square));
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

    /// weights += step F(d), as `collect` left it in `sums`, which are 0 again behind it.
    ///
    /// # Safety
    /// The machine has the instructions of `S`; `weights` and `sums` are [cells].
    #[inline(always)]
    pub(crate) unsafe fn apply<S: Find>(&self, sentence: u32, step: f32, sums: &mut [Lane], weights: &mut [Lane]) {
        let (first, last) = (self.spans[sentence as usize], self.spans[sentence as usize + 1]);
        let by = S::splat(step);
        for at in first.row..last.row {
            let row = self.rows.get(at) * self.width;
            debug_assert!(row + self.width <= sums.len());
            for j in row..row + self.width {
                let (lane, w) = (sums.get_unchecked_mut(j), weights.get_unchecked_mut(j));
                S::store(S::fma(by, S::load(lane), S::load(w)), w);
                *lane = Lane::ZERO;
            }
        }
        let (from, to) = (sums.as_mut_ptr().cast::<f32>(), weights.as_mut_ptr().cast::<f32>());
        for f in self.rare.get_unchecked(first.rare..last.rare) {
            let x = from.add(f.cell as usize);
            *to.add(f.cell as usize) += step * *x;
            *x = 0.0;
        }
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
