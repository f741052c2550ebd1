//! Node scores of a sentence from the weights: single cells first, then the rows of each token.

use crate::machine::simd::blocks::by_block;
use crate::machine::simd::{Lane, Simd, WIDTH};
use crate::scores::online_layout::tokens::{At, RowNumbers, GROUP};
use crate::scores::online_layout::TokenCells;
use std::ops::Range;

impl TokenCells {
    /// Write the node scores of position t of the sentence that begins at token `begin` to a row of the chart.
    ///
    /// # Safety
    /// `weights` are [cells], `out` a row of `width` lanes.
    #[inline(always)]
    pub(crate) unsafe fn fill<S: Simd>(&self, simd: S, weights: &[Lane], begin: usize, t: usize, out: &mut [Lane]) {
        let (here, next) = (self.at[begin + t], self.at[begin + t + 1]);
        self.clear(begin + t, out);
        self.add_rare(weights, here.rare..next.rare, t * self.width * WIDTH, out);
        self.add_rows(simd, weights, begin + t, out);
    }

    /// Initialize the node scores of a whole sentence and add the single cells, in one loop over all its tokens,
    /// because tokens rarely have equal numbers of them.
    ///
    /// # Safety
    /// `weights` are [cells], `out` the rows of the sentence.
    #[inline(always)]
    pub(crate) unsafe fn begin_fill(&self, weights: &[Lane], sentence: u32, out: &mut [Lane]) {
        self.begin(sentence, out);
        let (first, last) = (self.spans[sentence as usize], self.spans[sentence as usize + 1]);
        self.add_rare(weights, first.rare..last.rare, 0, out);
    }

    /// Add some of the single cells. `out` begins at place `base` of the sentence.
    ///
    /// # Safety
    /// `weights` are [cells], and `which` belong to tokens whose rows are in `out`.
    #[inline(always)]
    pub(super) unsafe fn add_rare(&self, weights: &[Lane], which: Range<usize>, base: usize, out: &mut [Lane]) {
        debug_assert!(self.rare[which.clone()].iter().all(|f| {
            (f.cell as usize) < weights.len() * WIDTH
                && f.at as usize >= base
                && f.at as usize - base < out.len() * WIDTH
        }));
        let (cells, scores) = (weights.as_ptr().cast::<f32>(), out.as_mut_ptr().cast::<f32>());
        if self.rare_values.is_empty() {
            for f in self.rare.get_unchecked(which) {
                *scores.add(f.at as usize - base) += *cells.add(f.cell as usize);
            }
        } else {
            for at in which {
                let f = self.rare.get_unchecked(at);
                *scores.add(f.at as usize - base) += *cells.add(f.cell as usize) * self.rare_values[at];
            }
        }
    }

    /// Add a token's rows.
    ///
    /// # Safety
    /// The requirements of `fill`, and the token exists.
    #[inline(always)]
    pub(crate) unsafe fn add_rows<S: Simd>(&self, simd: S, weights: &[Lane], token: usize, out: &mut [Lane]) {
        debug_assert!(token + 1 < self.at.len() && out.len() >= self.width);
        let (here, next) = (self.at.get_unchecked(token), self.at.get_unchecked(token + 1));
        match &self.rows {
            RowNumbers::Short(rows) => self.add_all::<S, u16>(simd, weights, rows, (here, next), out),
            RowNumbers::Long(rows) => self.add_all::<S, u32>(simd, weights, rows, (here, next), out),
        }
    }

    /// # Safety
    /// The requirements of `fill`, and `rows` are those of all tokens.
    #[inline(always)]
    unsafe fn add_all<S: Simd, I: Copy + Into<u32>>(
        &self,
        simd: S,
        weights: &[Lane],
        rows: &[I],
        (here, next): (&At, &At),
        out: &mut [Lane],
    ) {
        let values = |which: Range<usize>| if self.row_values.is_empty() { &[][..] } else { &self.row_values[which] };
        let narrow = here.row..here.wide;
        self.add_some::<S, I, 1, 4>(simd, weights, rows.get_unchecked(narrow.clone()), values(narrow), 0, out);
        let which = here.wide..next.row;
        let (ids, values) = (rows.get_unchecked(which.clone()), values(which));
        by_block!([1 2 3 4] self.width, v, N => {
            const U: usize = if N == 1 { 4 } else { 2 };
            self.add_some::<S, I, N, U>(simd, weights, ids, values, v, out);
        });
    }

    /// Add N lanes of labels starting at lane v, in U independent accumulators.
    ///
    /// # Safety
    /// The requirements of `add_all`, and v + N <= width.
    #[inline(always)]
    unsafe fn add_some<S: Simd, I: Copy + Into<u32>, const N: usize, const U: usize>(
        &self,
        simd: S,
        weights: &[Lane],
        ids: &[I],
        values: &[f32],
        v: usize,
        out: &mut [Lane],
    ) {
        debug_assert!(v + N <= self.width && out.len() >= v + N);
        debug_assert!(ids.iter().all(|&id| id.into() as usize + v + N <= weights.len()));
        let mut sums = [[simd.splat(0.0); N]; U];
        let weights = weights.as_ptr().add(v);
        let row = |id: I| weights.add(id.into() as usize);
        if values.is_empty() {
            for group in ids.chunks_exact(GROUP) {
                for (i, &id) in group.iter().enumerate() {
                    let row = row(id);
                    for (j, s) in sums[i % U].iter_mut().enumerate() {
                        *s = simd.add(*s, simd.load(&*row.add(j)));
                    }
                }
            }
        } else {
            for (&id, &value) in ids.iter().zip(values) {
                // A product, then a sum: the same bits with and without fused multiply-add.
                let (row, x) = (row(id), simd.splat(value));
                for (j, s) in sums[0].iter_mut().enumerate() {
                    *s = simd.add(*s, simd.mul(x, simd.load(&*row.add(j))));
                }
            }
        }
        for j in 0..N {
            let mut sum = sums[0][j];
            for more in &sums[1..] {
                sum = simd.add(sum, more[j]);
            }
            let place = out.get_unchecked_mut(v + j);
            simd.store(simd.add(simd.load(place), sum), place);
        }
    }
}
