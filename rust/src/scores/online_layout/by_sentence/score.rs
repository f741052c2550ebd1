//! Node scores of a sentence from the weights, by the lists of its features.

use super::{feature, SentenceFeatures};
use crate::machine::simd::blocks::by_block;
use crate::machine::simd::dispatch::dispatch;
use crate::machine::simd::find::Find;
use crate::machine::simd::{Lane, WIDTH};
use crate::scores::online_layout::lists::{Number, RowLists, RunIter};
use crate::scores::online_layout::Cells;

dispatch!(
    /// `SentenceFeatures::add_scores`, compiled as a function of its own.
    pub(crate) fn add_scores(by_sentence: &SentenceFeatures, of: &Cells, sentence: u32, w: &[Lane], out: &mut [Lane]) = |simd| {
        assert!(w.len() * WIDTH == of.cells && out.len() >= of.lanes_of(sentence));
        // SAFETY: `w` are [cells], `out` the rows of the sentence.
        unsafe { by_sentence.add_scores(simd, of, sentence, w, out) }
    }
);

impl SentenceFeatures {
    /// Add the node scores of the sentence under the weights to `out`.
    ///
    /// # Safety
    /// `w` are [cells], `out` the rows of the sentence.
    #[inline(always)]
    unsafe fn add_scores<S: Find>(&self, simd: S, of: &Cells, sentence: u32, w: &[Lane], out: &mut [Lane]) {
        let width = of.width;
        with_rows!(self, sentence, lists => by_block!([1 2 3 4] width, v, N => {
            let width = if v == 0 && N < 4 { N } else { width };
            let to = out.as_mut_ptr().add(v);
            add_row_scores::<S, _, N>(simd, lists.clone(), w.as_ptr().add(v), (to, width), v == 0);
        }));
        let (w, out) = (w.as_ptr().cast::<f32>(), out.as_mut_ptr().cast::<f32>());
        for (_, size, here, x) in self.cells_of(sentence) {
            if !x.is_empty() {
                for (list, x) in here.chunks_exact(size).zip(x.chunks_exact(size)) {
                    let w = *w.add(list[0] as usize);
                    list[1..].iter().zip(&x[1..]).for_each(|(&at, x)| *out.add(at as usize) += x * w);
                }
            } else if size == 2 {
                for list in here.chunks_exact(2) {
                    *out.add(list[1] as usize) += *w.add(list[0] as usize);
                }
            } else {
                for list in here.chunks_exact(size) {
                    let w = *w.add(list[0] as usize);
                    list[1..].iter().for_each(|&at| *out.add(at as usize) += w);
                }
            }
        }
    }
}

/// Add the weights of each row of a sentence at its places: N lanes of wide rows, and the lane of narrow rows if
/// `narrow`.
///
/// # Safety
/// The requirements of `each_row`, and `w` has all rows.
#[inline(always)]
unsafe fn add_row_scores<S: Find, I: Number, const N: usize>(
    simd: S,
    lists: RunIter<'_, I>,
    w: *const Lane,
    (out, width): (*mut Lane, usize),
    narrow: bool,
) {
    for (run, size, here, x) in lists {
        if run.wide {
            add_run_scores::<S, I, N>(simd, (here, x), size, w, (out, width));
        } else if narrow {
            add_run_scores::<S, I, 1>(simd, (here, x), size, w, (out, width));
        }
    }
}

/// # Safety
/// The requirements of `add_row_scores`, and `lists` are a run of rows with `size` - 1 places.
#[inline(always)]
unsafe fn add_run_scores<S: Find, I: Number, const N: usize>(
    simd: S,
    (lists, values): (&[I], &[f32]),
    size: usize,
    w: *const Lane,
    (out, width): (*mut Lane, usize),
) {
    let load = |list: &[I]| {
        let mut row = [simd.splat(0.0); N];
        for (j, x) in row.iter_mut().enumerate() {
            *x = simd.load(&*w.add(feature(list) + j));
        }
        row
    };
    let add = |t: I, row: [S::F; N]| {
        for (j, x) in row.into_iter().enumerate() {
            let to = &mut *out.add(t.into() as usize * width + j);
            simd.store(simd.add(simd.load(to), x), to);
        }
    };
    if !values.is_empty() {
        for (list, x) in lists.chunks_exact(size).zip(values.chunks_exact(size)) {
            let row = load(list);
            for (&t, &x) in list[1..].iter().zip(&x[1..]) {
                // A product, then a sum: the same bits with and without fused multiply-add.
                add(t, row.map(|w| simd.mul(simd.splat(x), w)));
            }
        }
    } else if size == 2 {
        for list in lists.chunks_exact(2) {
            add(list[1], load(list));
        }
    } else {
        for list in lists.chunks_exact(size) {
            let row = load(list);
            for &t in &list[1..] {
                add(t, row);
            }
        }
    }
}
