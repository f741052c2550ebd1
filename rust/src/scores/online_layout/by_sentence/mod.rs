//! Transpose of scoring: updates of the labels of a sentence's tokens, summed over their features and applied to
//! weights.
//!
//! The tokens of a sentence are listed for each of its rows and for each of its single cells. F(d) of a feature is then
//! a sum in registers over a few places of d, which are in the cache, and each weight is accessed once per sentence.

use crate::error::Result;
use crate::machine::simd::blocks::by_block;
use crate::machine::simd::dispatch::dispatch;
use crate::machine::simd::find::Find;
use crate::machine::simd::{prefetch, Lane, WIDTH};
use crate::machine::system::paged::Pages;
use crate::scores::online_layout::lists::{build, Begin, Number, PlaceLists, RowLists, RunIter};
use crate::scores::online_layout::{Cells, Places};

/// Features of each sentence and the places at which they occur. Immutable.
pub(crate) struct SentenceFeatures {
    begins: Vec<Begin>,     // [sentences + 1]
    rows: RowLists,         // numbers are first lanes, places are token positions in the sentence
    cells: PlaceLists<u32>, // places are indices into the node scores of a sentence: t * 16 * width + label
}

/// Operation on the sums of a row. A trait rather than a closure, so that it is compiled with the caller's instruction
/// set.
trait RowVisitor<S: Find, I, const N: usize> {
    /// # Safety
    /// The row exists, and the places are tokens of the sentence.
    unsafe fn visit(&mut self, row: usize, sum: [S::F; N], places: &[I], values: &[f32]);
}

/// Apply `keep_bits` to the lanes of a row, starting at lane v.
///
/// # Safety
/// The lanes exist.
#[inline(always)]
unsafe fn mask_missing<S: Find, const N: usize>(simd: S, exists: *const u16, at: usize, mut x: [S::F; N]) -> [S::F; N] {
    for (j, x) in x.iter_mut().enumerate() {
        *x = simd.keep_bits(*exists.add(at + j), *x);
    }
    x
}

/// Sum of the squares.
struct Square<F> {
    exists: *const u16, // starting at lane v, also below
    sums: [F; 4],
}

impl<S: Find, I, const N: usize> RowVisitor<S, I, N> for (Square<S::F>, S) {
    #[inline(always)]
    unsafe fn visit(&mut self, row: usize, sum: [S::F; N], _: &[I], _: &[f32]) {
        for (x, sum) in mask_missing::<S, N>(self.1, self.0.exists, row, sum).into_iter().zip(&mut self.0.sums) {
            *sum = self.1.fma(x, x, *sum);
        }
    }
}

/// Cells += step times the sums.
struct Apply<F> {
    exists: *const u16,
    step: F,
    to: *mut Lane,
}

impl<S: Find, I, const N: usize> RowVisitor<S, I, N> for (Apply<S::F>, S) {
    #[inline(always)]
    unsafe fn visit(&mut self, row: usize, sum: [S::F; N], _: &[I], _: &[f32]) {
        for (j, x) in mask_missing::<S, N>(self.1, self.0.exists, row, sum).into_iter().enumerate() {
            let w = &mut *self.0.to.add(row + j);
            self.1.store(self.1.fma(self.0.step, x, self.1.load(w)), w);
        }
    }
}

/// Scores += the sums, at each of their places.
struct AddScores {
    exists: *const u16,
    width: usize,
    to: *mut Lane,
}

impl<S: Find, I: Number, const N: usize> RowVisitor<S, I, N> for (AddScores, S) {
    #[inline(always)]
    unsafe fn visit(&mut self, row: usize, sum: [S::F; N], places: &[I], values: &[f32]) {
        let sum = mask_missing::<S, N>(self.1, self.0.exists, row, sum);
        for (i, &t) in places.iter().enumerate() {
            let t: u32 = t.into();
            for (j, &x) in sum.iter().enumerate() {
                let to = &mut *self.0.to.add(t as usize * self.0.width + j);
                let x = if values.is_empty() { x } else { self.1.mul(x, self.1.splat(values[i])) };
                self.1.store(self.1.add(self.1.load(to), x), to);
            }
        }
    }
}

/// Sum d over the places of each row of a sentence: N lanes of wide rows, and the lane of narrow rows if
/// `narrow`.
///
/// # Safety
/// The lists belong to a sentence, and `d` has its rows of `width` lanes.
#[inline(always)]
unsafe fn each_row<S: Find, I: Number, const N: usize>(
    simd: S,
    lists: RunIter<'_, I>,
    d: *const Lane,
    width: usize,
    narrow: bool,
    visitor: &mut (impl RowVisitor<S, I, 1> + RowVisitor<S, I, N>),
) {
    for (run, size, here, x) in lists {
        if run.wide {
            each_of_run::<S, I, N>(simd, (here, x), size, d, width, visitor);
        } else if narrow {
            each_of_run::<S, I, 1>(simd, (here, x), size, d, width, visitor);
        }
    }
}

/// # Safety
/// The requirements of `each_row`, and `lists` are a run of rows with `size` - 1 places.
#[inline(always)]
unsafe fn each_of_run<S: Find, I: Number, const N: usize>(
    simd: S,
    (lists, values): (&[I], &[f32]),
    size: usize,
    d: *const Lane,
    width: usize,
    visitor: &mut impl RowVisitor<S, I, N>,
) {
    let at = |t: I| d.add(t.into() as usize * width);
    if !values.is_empty() {
        for (list, x) in lists.chunks_exact(size).zip(values.chunks_exact(size)) {
            let mut sum = [simd.splat(0.0); N];
            for (&t, &x) in list[1..].iter().zip(&x[1..]) {
                for (j, s) in sum.iter_mut().enumerate() {
                    *s = simd.fma(simd.splat(x), simd.load(&*at(t).add(j)), *s);
                }
            }
            visitor.visit(feature(list), sum, &list[1..], &x[1..]);
        }
    } else if size == 2 {
        for list in lists.chunks_exact(2) {
            let mut sum = [simd.splat(0.0); N];
            for (j, s) in sum.iter_mut().enumerate() {
                *s = simd.load(&*at(list[1]).add(j));
            }
            visitor.visit(feature(list), sum, &list[1..], &[]);
        }
    } else {
        for list in lists.chunks_exact(size) {
            let mut sum = [simd.splat(0.0); N];
            for &t in &list[1..] {
                for (j, s) in sum.iter_mut().enumerate() {
                    *s = simd.add(*s, simd.load(&*at(t).add(j)));
                }
            }
            visitor.visit(feature(list), sum, &list[1..], &[]);
        }
    }
}

/// Feature at the start of a list.
#[inline(always)]
fn feature<I: Number>(list: &[I]) -> usize {
    let number: u32 = list[0].into();
    number as usize
}

/// `with_rows!(self, sentence, lists => body)` runs `body` for the row lists of a sentence, with either number type.
macro_rules! with_rows {
    ($by_sentence:expr, $sentence:expr, $lists:ident => $body:expr) => {{
        let (here, next) = $by_sentence.span($sentence);
        match &$by_sentence.rows {
            RowLists::Short(all) => {
                let $lists = all.some(here.row_run..next.row_run, here.row..next.row);
                $body
            }
            RowLists::Long(all) => {
                let $lists = all.some(here.row_run..next.row_run, here.row..next.row);
                $body
            }
        }
    }};
}

// Declared after the macros that they use.
mod double;
mod score;

pub(crate) use double::{add_doubles, add_scores64};
pub(crate) use score::add_scores;

dispatch!(
    /// `SentenceFeatures::square`, compiled as a function of its own, like the others here, to reduce the compile time
    /// of callers.
    pub(crate) fn square(by_sentence: &SentenceFeatures, of: &Cells, sentence: u32, d: &[Lane]) -> f64 = |simd| {
        assert!(d.len() == of.lanes_of(sentence));
        // SAFETY: `d` are the rows of the sentence.
        unsafe { by_sentence.square(simd, of, sentence, d) }
    }
);
dispatch!(
    pub(crate) fn apply(by_sentence: &SentenceFeatures, of: &Cells, sentence: u32, d: &[Lane], step: f32, to: &mut [Lane]) = |simd| {
        assert!(d.len() == of.lanes_of(sentence) && to.len() * WIDTH == of.cells);
        // SAFETY: `to` are [cells], `d` the rows of the sentence.
        unsafe { by_sentence.apply(simd, of, sentence, d, step, to) }
    }
);
dispatch!(
    pub(crate) fn scores(by_sentence: &SentenceFeatures, of: &Cells, sentence: u32, d: &[Lane], out: &mut [Lane]) = |simd| {
        assert!(d.len() == of.lanes_of(sentence) && out.len() == d.len());
        // SAFETY: both are the rows of the sentence.
        unsafe { by_sentence.scores(simd, of, sentence, d, out) }
    }
);

impl SentenceFeatures {
    pub(crate) fn new(cells: &Cells, places: &Places<'_>, pages: Option<&mut Pages>) -> Result<SentenceFeatures> {
        let longest = cells.data.sentences.windows(2).map(|s| s[1] - s[0]).max().unwrap_or(0);
        if cells.exists.len().max(longest) <= 1 << 16 {
            let (begins, rows, cells) = build(cells, places, pages)?;
            return Ok(SentenceFeatures { begins, rows: RowLists::Short(rows), cells });
        }
        let (begins, rows, cells) = build(cells, places, pages)?;
        Ok(SentenceFeatures { begins, rows: RowLists::Long(rows), cells })
    }

    /// Prefetch the cells of a sentence whose lists are cached.
    #[inline(always)]
    pub(crate) fn prefetch_cells(&self, of: &Cells, cells: &[Lane], sentence: u32) {
        let lanes = cells.as_ptr();
        with_rows!(self, sentence, lists => {
            for (run, size, here, _) in lists {
                for list in here.chunks_exact(size) {
                    let row = lanes.wrapping_add(feature(list));
                    for j in 0..if run.wide { of.width } else { 1 } {
                        prefetch(row.wrapping_add(j));
                    }
                }
            }
        });
        for (_, size, here, _) in self.cells_of(sentence) {
            for list in here.chunks_exact(size) {
                prefetch(lanes.cast::<f32>().wrapping_add(list[0] as usize));
            }
        }
    }

    /// Lists of the sentence's single cells.
    #[inline(always)]
    fn cells_of(&self, sentence: u32) -> RunIter<'_, u32> {
        let (here, next) = self.span(sentence);
        self.cells.some(here.cell_run..next.cell_run, here.cell..next.cell)
    }

    #[inline(always)]
    fn span(&self, sentence: u32) -> (Begin, Begin) {
        (self.begins[sentence as usize], self.begins[sentence as usize + 1])
    }

    /// |F(d)|^2, where F(d) = sum_t d_t(y) F_t(y).
    ///
    /// # Safety
    /// `d` are the rows of the sentence.
    #[inline(always)]
    unsafe fn square<S: Find>(&self, simd: S, of: &Cells, sentence: u32, d: &[Lane]) -> f64 {
        let (exists, width) = (of.exists.as_ptr(), of.width);
        let mut sums = [simd.splat(0.0); 4];
        with_rows!(self, sentence, lists => by_block!([1 2 3 4] width, v, N => {
            let width = if v == 0 && N < 4 { N } else { width };
            let mut visitor = (Square { exists: exists.add(v), sums }, simd);
            each_row::<S, _, N>(simd, lists.clone(), d.as_ptr().add(v), width, v == 0, &mut visitor);
            sums = visitor.0.sums;
        }));
        let mut rest = 0.0f32;
        self.each_cell(sentence, d, |_, x, _, _| rest += x * x);
        let sum = simd.add(simd.add(sums[0], sums[1]), simd.add(sums[2], sums[3]));
        f64::from(simd.total(sum)) + f64::from(rest)
    }

    /// to += step F(d).
    ///
    /// # Safety
    /// `to` are [cells], `d` the rows of the sentence.
    #[inline(always)]
    unsafe fn apply<S: Find>(&self, simd: S, of: &Cells, sentence: u32, d: &[Lane], step: f32, to: &mut [Lane]) {
        debug_assert!(to.len() * WIDTH == of.cells);
        let (exists, width, step_by) = (of.exists.as_ptr(), of.width, simd.splat(step));
        with_rows!(self, sentence, lists => by_block!([1 2 3 4] width, v, N => {
            let width = if v == 0 && N < 4 { N } else { width };
            let to = to.as_mut_ptr().add(v);
            let mut visitor = (Apply { exists: exists.add(v), step: step_by, to }, simd);
            each_row::<S, _, N>(simd, lists.clone(), d.as_ptr().add(v), width, v == 0, &mut visitor);
        }));
        let to = to.as_mut_ptr().cast::<f32>();
        self.each_cell(sentence, d, |cell, x, _, _| *to.add(cell) += step * x);
    }

    /// Write the node scores of the sentence under the weights F(d) to `out`.
    ///
    /// # Safety
    /// `d` and `out` are the rows of the sentence.
    #[inline(always)]
    unsafe fn scores<S: Find>(&self, simd: S, of: &Cells, sentence: u32, d: &[Lane], out: &mut [Lane]) {
        let (exists, width) = (of.exists.as_ptr(), of.width);
        out.fill(Lane::ZERO);
        with_rows!(self, sentence, lists => by_block!([1 2 3 4] width, v, N => {
            let mut visitor = (AddScores { exists: exists.add(v), width, to: out.as_mut_ptr().add(v) }, simd);
            each_row::<S, _, N>(simd, lists.clone(), d.as_ptr().add(v), width, v == 0, &mut visitor);
        }));
        let out = out.as_mut_ptr().cast::<f32>();
        self.each_cell(sentence, d, |_, x, places, values| {
            for (i, &at) in places.iter().enumerate() {
                *out.add(at as usize) += if values.is_empty() { x } else { x * values[i] };
            }
        });
    }

    /// Sum d over the places of each single cell of a sentence: `visit(cell, sum, places, values)`.
    ///
    /// # Safety
    /// `d` are the rows of the sentence.
    #[inline(always)]
    unsafe fn each_cell(&self, sentence: u32, d: &[Lane], mut visit: impl FnMut(usize, f32, &[u32], &[f32])) {
        let d = d.as_ptr().cast::<f32>();
        for (_, size, here, x) in self.cells_of(sentence) {
            if size == 2 && x.is_empty() {
                for list in here.chunks_exact(2) {
                    visit(list[0] as usize, *d.add(list[1] as usize), &list[1..], &[]);
                }
                continue;
            }
            for (i, list) in here.chunks_exact(size).enumerate() {
                let values = if x.is_empty() { &[][..] } else { &x[i * size + 1..(i + 1) * size] };
                let value = |i: usize| if values.is_empty() { 1.0 } else { values[i] };
                let sum = list[1..].iter().enumerate().fold(0.0, |s, (i, &at)| s + value(i) * *d.add(at as usize));
                visit(list[0] as usize, sum, &list[1..], values);
            }
        }
    }
}
