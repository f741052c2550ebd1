//! Factors of the edge scores of one sentence, and the matrix products of its recursions.

use crate::chain::sums::underflow::{Underflow, MAX_RANGE};
use crate::machine::simd::blocks::by_block;
use crate::machine::simd::dispatch::dispatch;
use crate::machine::simd::find::Find;
use crate::machine::simd::{Lane, WIDTH};

/// Number of rows multiplied at a time, in independent accumulators.
const ACCUMULATORS: usize = 4;

/// Factors exp(A - max) of the edge scores, by rows and by columns. Rows after the last label are 0.
#[derive(Clone, Default)]
pub struct LaneFactors {
    pub(super) labels: usize,
    pub(super) width: usize,
    pub(super) rows: Vec<Lane>, // [L padded to 16, width] indexed by previous label, then next label
    pub(super) columns: Vec<Lane>, // [L padded to 16, width] indexed by next label, then previous label
    pub max: f32,
    pub(super) underflow: Underflow,
}

impl LaneFactors {
    pub fn new(labels: usize) -> LaneFactors {
        let width = labels.div_ceil(WIDTH);
        let zeros = vec![Lane::ZERO; width * WIDTH * width];
        LaneFactors { labels, width, rows: zeros.clone(), columns: zeros, max: 0.0, underflow: Underflow::default() }
    }

    /// Set the factors of scores [L, width], which are -infinity for forbidden edges and padding. Return false if their
    /// span is out of range for float32.
    #[inline(always)]
    fn set<S: Find>(&mut self, simd: S, scores: &[Lane]) -> bool {
        debug_assert!(scores.len() == self.labels * self.width);
        let (none, big) = (simd.splat(f32::NEG_INFINITY), simd.splat(f32::MAX));
        let (mut top, mut low, mut count) = (none, big, 0);
        for row in scores {
            let x = simd.load(row);
            top = simd.max(x, top);
            low = simd.min(simd.select_gt(x, none, x, big), low);
            count += simd.greater(x, none).count_ones() as usize;
        }
        let mut lowest = Lane::ZERO;
        simd.store(low, &mut lowest);
        let lowest = lowest.0.iter().copied().fold(f32::MAX, f32::min);
        self.max = simd.largest(top);
        let span = self.max - lowest;
        if !self.max.is_finite() || span.partial_cmp(&MAX_RANGE) == Some(std::cmp::Ordering::Greater) || span.is_nan() {
            return false;
        }
        self.underflow = Underflow::new(self.labels, f64::from(span), count < self.labels * self.labels);
        let max = simd.splat(self.max);
        for (to, row) in self.rows.iter_mut().zip(scores) {
            simd.store(simd.exp_below(simd.load(row), max), to);
        }
        let (mut tile, mut transposed) = ([Lane::ZERO; WIDTH], [Lane::ZERO; WIDTH]);
        for i in 0..self.width {
            for j in 0..self.width {
                for k in 0..WIDTH {
                    tile[k] = self.rows[(i * WIDTH + k) * self.width + j];
                }
                simd.transpose(&tile, &mut transposed);
                for k in 0..WIDTH {
                    self.columns[(j * WIDTH + k) * self.width + i] = transposed[k];
                }
            }
        }
        true
    }

    /// log M of all edges [L, padded L]: the scores less their maximum, as used by the recursions, including the
    /// rounding of M.
    pub fn logs(&self) -> Vec<f64> {
        self.rows[..self.labels * self.width].iter().flat_map(|row| row.0).map(|m| f64::from(m).ln()).collect()
    }
}

/// sum_y from(y) rows[y, v..v + W].
///
/// # Safety
/// `rows` is [L padded to 16, width], `from` the labels of `width` lanes, v + W <= width.
#[inline(always)]
unsafe fn product<S: Find, const W: usize>(
    simd: S,
    rows: &[Lane],
    labels: usize,
    width: usize,
    from: &[Lane],
    v: usize,
) -> [S::F; W] {
    debug_assert!(rows.len() == width * WIDTH * width && from.len() == width && v + W <= width);
    let mut sums = [[simd.splat(0.0); W]; ACCUMULATORS];
    let (mut row, mut x) = (rows.as_ptr().add(v), from.as_ptr().cast::<f32>());
    for _ in 0..labels.div_ceil(ACCUMULATORS) {
        for sum in &mut sums {
            let a = simd.splat(*x);
            for (j, s) in sum.iter_mut().enumerate() {
                *s = simd.fma(a, simd.load(&*row.add(j)), *s);
            }
            (row, x) = (row.wrapping_add(width), x.add(1));
        }
    }
    total::<S, W>(simd, sums)
}

#[inline(always)]
fn total<S: Find, const W: usize>(simd: S, sums: [[S::F; W]; ACCUMULATORS]) -> [S::F; W] {
    let mut out = sums[0];
    for (j, x) in out.iter_mut().enumerate() {
        *x = simd.add(simd.add(*x, sums[1][j]), simd.add(sums[2][j], sums[3][j]));
    }
    out
}

/// All lanes of the product, in blocks that fit into registers.
///
/// # Safety
/// The requirements of `product`, and `out` is `width` lanes.
#[inline(always)]
pub(super) unsafe fn products<S: Find>(
    simd: S,
    rows: &[Lane],
    labels: usize,
    width: usize,
    from: &[Lane],
    out: &mut [Lane],
) {
    by_block!([1 2 3 4] width, v, W => {
        for (to, x) in out[v..].iter_mut().zip(product::<S, W>(simd, rows, labels, width, from, v)) {
            simd.store(x, to);
        }
    });
}

/// (sum_y from(y) rows[y, .], sum_y to(y) columns[y, .]), W lanes starting at v: two independent products.
///
/// # Safety
/// The requirements of `product`, for both.
#[inline(always)]
pub(super) unsafe fn two_products<S: Find, const W: usize>(
    simd: S,
    factors: &LaneFactors,
    width: usize,
    from: *const Lane,
    to: *const Lane,
    v: usize,
) -> ([S::F; W], [S::F; W]) {
    let mut sums = [[[simd.splat(0.0); W]; ACCUMULATORS]; 2];
    let (mut row, mut column) = (factors.rows.as_ptr().add(v), factors.columns.as_ptr().add(v));
    let (mut x, mut y) = (from.cast::<f32>(), to.cast::<f32>());
    for _ in 0..factors.labels.div_ceil(ACCUMULATORS) {
        for i in 0..ACCUMULATORS {
            let (a, b) = (simd.splat(*x), simd.splat(*y));
            for j in 0..W {
                sums[0][i][j] = simd.fma(a, simd.load(&*row.add(j)), sums[0][i][j]);
                sums[1][i][j] = simd.fma(b, simd.load(&*column.add(j)), sums[1][i][j]);
            }
            (row, column) = (row.wrapping_add(width), column.wrapping_add(width));
            (x, y) = (x.add(1), y.add(1));
        }
    }
    (total::<S, W>(simd, sums[0]), total::<S, W>(simd, sums[1]))
}

dispatch!(
    /// `LaneFactors::set`, compiled as a function of its own.
    pub(crate) fn set(factors: &mut LaneFactors, scores: &[Lane]) -> bool = |simd| factors.set(simd, scores)
);
