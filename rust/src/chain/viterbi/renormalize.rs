//! Subtraction of the best score of a position in float32 searches, so that rounding does not grow with the length.
//!
//! ```text
//! delta_t(y) <- delta_t(y) - m_t,      m_t = max_y delta_t(y)          at the positions of `is_due`
//! ```
//!
//! The score of a prefix grows by some s per token. Without the subtraction a comparison at token t is off by half an
//! ulp of t s: at 60,000 tokens of score 10 that is 2^-5, and best paths are wrong by tenths. With it |delta| stays
//! below EVERY s plus the spread of the labels at one position, so that comparisons at token 100,000 are as exact as at
//! token 200. Paths that never share a cell (no transition leads from one to the other) still accumulate the rounding
//! of every token.
//!
//! Labels are compared only with labels of the same position, so a constant does not change the winner. Rounding is
//! monotone: a larger score does not become the smaller one, and equal scores stay equal. Within a factor of two of m_t
//! the difference is exact. The backward pass reads the same stored delta as the forward pass.
//!
//! Sentences of at most FIRST tokens are not renormalised: their scores are plain sums, which
//! `lookback::bounded_search` relies on. Searches in double precision subtract nothing: at 10^5 tokens of score 100
//! half an ulp is 2^-30.

use crate::chain::sums::batch::Shape;
use crate::machine::simd::find::Find;
use crate::machine::simd::{Lane, Simd, WIDTH};

/// Maximum number of tokens whose scores are plain sums.
pub const FIRST: usize = 128;
/// Positions between two subtractions.
pub const EVERY: usize = 16;

/// Whether the best score of position t is subtracted.
#[inline(always)]
pub fn is_due(t: usize) -> bool {
    t >= FIRST && t.is_multiple_of(EVERY)
}

/// The number to subtract: the best score, or 0 if there is no path or the score has overflowed.
#[inline(always)]
pub fn shift(best: f32) -> f32 {
    if best.is_finite() {
        best
    } else {
        0.0
    }
}

/// Renormalise one sentence with labels in lanes and -infinity after the last label. Return the difference.
#[inline(always)]
pub(crate) fn labels<S: Find>(simd: S, row: &mut [Lane]) -> f64 {
    let max = row.iter().fold(simd.splat(f32::NEG_INFINITY), |max, lane| simd.max(simd.load(lane), max));
    let shift = shift(simd.largest(max));
    subtract(simd, row, simd.splat(shift));
    f64::from(shift)
}

/// Renormalise position t of sixteen sentences, one label per lane of `row`. The differences of the sentences that
/// reach t are added to `total`.
#[inline(always)]
pub(crate) fn sentences<S: Simd>(simd: S, shape: &Shape, t: usize, row: &mut [Lane], total: &mut [f64; WIDTH]) {
    let max = row.iter().fold(simd.splat(f32::NEG_INFINITY), |max, lane| simd.max(simd.load(lane), max));
    let mut shifts = Lane::ZERO;
    simd.store(max, &mut shifts);
    for (lane, x) in shifts.0.iter_mut().enumerate() {
        *x = shift(*x);
        if t < shape.lengths[lane] as usize {
            total[lane] += f64::from(*x);
        }
    }
    subtract(simd, row, simd.load(&shifts));
}

#[inline(always)]
fn subtract<S: Simd>(simd: S, row: &mut [Lane], shift: S::F) {
    for lane in row {
        simd.store(simd.sub(simd.load(lane), shift), lane);
    }
}
