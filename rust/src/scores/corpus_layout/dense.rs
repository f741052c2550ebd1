//! Products of token vectors and weights, and the transpose, as matrix products blocked so that sums stay in registers.
//!
//! The rows of the vectors' numbers are contiguous, each of `width` lanes, and form a matrix [size, L]. The scores of M
//! tokens are M x W sums of lanes over all numbers. The gradient of M numbers is M x W sums over the tokens of a batch,
//! whose vectors stay in the L2 cache. Both process numbers and tokens in a fixed order.

use crate::dataset::dense::Dense;
use crate::machine::simd::blocks::by_block;
use crate::machine::simd::{Lane, Simd, WIDTH};
use crate::scores::corpus_layout::Nodes;
use std::ops::Range;

/// Vectors of a training set, and the location of their rows.
pub struct DenseRows {
    pub dense: Dense,
    pub at: usize,        // first lane of the first row
    pub tokens: Vec<u32>, // [slots] token of each slot, in the order of `Nodes::order`
}

impl Nodes {
    /// Add the products of these slots' vectors and weights to some lanes of their tiles.
    ///
    /// # Safety
    /// The requirements of `fill`, and `tiles` are those of the slots.
    #[inline(always)]
    pub(super) unsafe fn add_vectors<S: Simd>(
        &self,
        simd: S,
        slots: Range<usize>,
        rows: &[Lane],
        lanes: Range<usize>,
        tiles: *mut Lane,
    ) {
        let Some(dense) = &self.dense else { return };
        let (tokens, places) = (&dense.tokens[slots.clone()], &self.order[slots]);
        let rows = &rows[dense.at..dense.at + dense.dense.size * self.width];
        by_block!([1 2] lanes.len(), v, W => {
            let (rows, tiles) = (&rows[lanes.start + v..], tiles.add(v * WIDTH));
            score::<S, W>(simd, &dense.dense, rows, self.width, tokens, places, tiles);
        });
    }

    /// Add the products of these slots' vectors and residuals to the gradient of their rows.
    ///
    /// # Safety
    /// The requirements of `scatter`, and `tiles` hold the slots' residuals at these lanes.
    #[inline(always)]
    pub(super) unsafe fn scatter_vectors<S: Simd>(
        &self,
        simd: S,
        slots: Range<usize>,
        tiles: *const Lane,
        lanes: Range<usize>,
        gradient: &mut [Lane],
    ) {
        let Some(dense) = &self.dense else { return };
        let (tokens, places) = (&dense.tokens[slots.clone()], &self.order[slots]);
        let gradient = &mut gradient[dense.at..dense.at + dense.dense.size * self.width];
        by_block!([1 2] lanes.len(), v, W => {
            let (rows, tiles) = (&mut gradient[lanes.start + v..], tiles.add(v * WIDTH));
            gather::<S, W>(simd, &dense.dense, rows, self.width, tokens, places, tiles);
        });
    }
}

/// Number of tokens, or numbers, whose sums are in registers together.
const TILE_ROWS: usize = 6;

/// Add W lanes of the scores of tokens.
///
/// # Safety
/// `rows` are [size] rows, `stride` lanes apart. Every place and the W - 1 following tiles are within the tiles.
#[inline(always)]
unsafe fn score<S: Simd, const W: usize>(
    simd: S,
    dense: &Dense,
    rows: &[Lane],
    stride: usize,
    tokens: &[u32],
    places: &[u32],
    tiles: *mut Lane,
) {
    let mut at = 0;
    while at + TILE_ROWS <= tokens.len() {
        score_tile::<S, W, TILE_ROWS>(
            simd,
            dense,
            rows,
            stride,
            &tokens[at..at + TILE_ROWS],
            &places[at..at + TILE_ROWS],
            tiles,
        );
        at += TILE_ROWS;
    }
    for at in at..tokens.len() {
        score_tile::<S, W, 1>(simd, dense, rows, stride, &tokens[at..=at], &places[at..=at], tiles);
    }
}

/// # Safety
/// The requirements of `score`, and there are M tokens.
#[inline(always)]
unsafe fn score_tile<S: Simd, const W: usize, const M: usize>(
    simd: S,
    dense: &Dense,
    rows: &[Lane],
    stride: usize,
    tokens: &[u32],
    places: &[u32],
    tiles: *mut Lane,
) {
    debug_assert!(tokens.len() == M && places.len() == M && rows.len() >= (dense.size - 1) * stride + W);
    let x: [&[f32]; M] = std::array::from_fn(|m| dense.row(tokens[m] as usize));
    let mut sum = [[simd.splat(0.0); W]; M];
    for j in 0..dense.size {
        for w in 0..W {
            let row = simd.load(rows.get_unchecked(j * stride + w));
            for m in 0..M {
                sum[m][w] = simd.fma(simd.splat(*x[m].get_unchecked(j)), row, sum[m][w]);
            }
        }
    }
    for m in 0..M {
        for w in 0..W {
            let to = &mut *tiles.add(places[m] as usize + w * WIDTH);
            simd.store(simd.add(simd.load(to), sum[m][w]), to);
        }
    }
}

/// Add W lanes of the gradient of all numbers.
///
/// # Safety
/// The requirements of `score`, and the tiles hold residuals.
#[inline(always)]
unsafe fn gather<S: Simd, const W: usize>(
    simd: S,
    dense: &Dense,
    rows: &mut [Lane],
    stride: usize,
    tokens: &[u32],
    places: &[u32],
    tiles: *const Lane,
) {
    let mut j = 0;
    while j + TILE_ROWS <= dense.size {
        gather_tile::<S, W, TILE_ROWS>(simd, dense, rows, stride, j, tokens, places, tiles);
        j += TILE_ROWS;
    }
    for j in j..dense.size {
        gather_tile::<S, W, 1>(simd, dense, rows, stride, j, tokens, places, tiles);
    }
}

/// # Safety
/// The requirements of `gather`, and the numbers j to j + M exist.
#[inline(always)]
unsafe fn gather_tile<S: Simd, const W: usize, const M: usize>(
    simd: S,
    dense: &Dense,
    rows: &mut [Lane],
    stride: usize,
    j: usize,
    tokens: &[u32],
    places: &[u32],
    tiles: *const Lane,
) {
    debug_assert!(j + M <= dense.size && rows.len() >= (j + M - 1) * stride + W);
    let mut sum = [[simd.splat(0.0); W]; M];
    for (&token, &place) in tokens.iter().zip(places) {
        let x = dense.row(token as usize).as_ptr().add(j);
        for w in 0..W {
            let residual = simd.load(&*tiles.add(place as usize + w * WIDTH));
            for m in 0..M {
                sum[m][w] = simd.fma(simd.splat(*x.add(m)), residual, sum[m][w]);
            }
        }
    }
    for m in 0..M {
        for w in 0..W {
            let to = rows.get_unchecked_mut((j + m) * stride + w);
            simd.store(simd.add(simd.load(to), sum[m][w]), to);
        }
    }
}
