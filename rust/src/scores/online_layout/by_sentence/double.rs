//! Node scores and sums over the features of one sentence in double precision.

use super::{feature, SentenceFeatures};
use crate::machine::simd::dispatch::dispatch;
use crate::machine::simd::double::Doubles;
use crate::machine::simd::find::Find;
use crate::machine::simd::{Lane, WIDTH};
use crate::scores::online_layout::lists::{Number, RowLists, RunIter};
use crate::scores::online_layout::Cells;

dispatch!(
    /// Add the node scores of the sentence under the weights [cells] to its rows `out` [T, width].
    pub(crate) fn add_scores64(by_sentence: &SentenceFeatures, of: &Cells, sentence: u32, w: &[Lane], out: &mut [Doubles]) =
        score_kernel
);
dispatch!(
    /// to [cells] += step F(d) of the rows d [T, width]. Cells of rows without a feature are written too.
    pub(crate) fn add_doubles(by_sentence: &SentenceFeatures, of: &Cells, sentence: u32, d: &[Doubles], step: f64, to: &mut [f64]) =
        add_kernel
);

/// Value of place k of list i, or 1 if the lists have no values.
#[inline(always)]
fn value(values: &[f32], size: usize, i: usize, k: usize) -> f64 {
    values.get(i * size + 1 + k).map_or(1.0, |&x| f64::from(x))
}

#[inline(always)]
fn score_kernel<S: Find>(
    _: S,
    by_sentence: &SentenceFeatures,
    of: &Cells,
    sentence: u32,
    w: &[Lane],
    out: &mut [Doubles],
) {
    with_rows!(by_sentence, sentence, lists => add_row_scores(lists, w, out, of.width));
    for (_, size, here, values) in by_sentence.cells_of(sentence) {
        for (i, list) in here.chunks_exact(size).enumerate() {
            let cell = list[0] as usize;
            let w = f64::from(w[cell / WIDTH].0[cell % WIDTH]);
            for (k, &at) in list[1..].iter().enumerate() {
                out[at as usize / WIDTH].0[at as usize % WIDTH] += value(values, size, i, k) * w;
            }
        }
    }
}

#[inline(always)]
fn add_row_scores<I: Number>(lists: RunIter<'_, I>, w: &[Lane], out: &mut [Doubles], width: usize) {
    for (run, size, here, values) in lists {
        let lanes = if run.wide { width } else { 1 };
        for (i, list) in here.chunks_exact(size).enumerate() {
            let row = &w[feature(list)..][..lanes];
            for (k, &t) in list[1..].iter().enumerate() {
                let (t, x): (u32, f64) = (t.into(), value(values, size, i, k));
                for (to, w) in out[t as usize * width..].iter_mut().zip(row) {
                    for y in 0..WIDTH {
                        to.0[y] += x * f64::from(w.0[y]);
                    }
                }
            }
        }
    }
}

#[inline(always)]
fn add_kernel<S: Find>(
    _: S,
    by_sentence: &SentenceFeatures,
    of: &Cells,
    sentence: u32,
    d: &[Doubles],
    step: f64,
    to: &mut [f64],
) {
    with_rows!(by_sentence, sentence, lists => add_rows(lists, d, step, to, of.width));
    for (_, size, here, values) in by_sentence.cells_of(sentence) {
        for (i, list) in here.chunks_exact(size).enumerate() {
            let mut sum = 0.0;
            for (k, &at) in list[1..].iter().enumerate() {
                sum += value(values, size, i, k) * d[at as usize / WIDTH].0[at as usize % WIDTH];
            }
            to[list[0] as usize] += step * sum;
        }
    }
}

#[inline(always)]
fn add_rows<I: Number>(lists: RunIter<'_, I>, d: &[Doubles], step: f64, to: &mut [f64], width: usize) {
    for (run, size, here, values) in lists {
        for (i, list) in here.chunks_exact(size).enumerate() {
            let row = &mut to[feature(list) * WIDTH..];
            for j in 0..if run.wide { width } else { 1 } {
                let mut sum = Doubles::ZERO;
                for (k, &t) in list[1..].iter().enumerate() {
                    let (t, x): (u32, f64) = (t.into(), value(values, size, i, k));
                    let d = &d[t as usize * width + j];
                    for y in 0..WIDTH {
                        sum.0[y] += x * d.0[y];
                    }
                }
                for (to, sum) in row[j * WIDTH..][..WIDTH].iter_mut().zip(sum.0) {
                    *to += step * sum;
                }
            }
        }
    }
}
