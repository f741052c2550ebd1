//! Transposition of node scores of sixteen sentences between arrays, in which the scores of a sentence are contiguous,
//! and lanes, in which the scores of a label are. Each step transposes a square of 16 x 16 numbers.

use crate::chain::emissions::Chains;
use crate::chain::sums::batch::{NodeScores, Shape};
use crate::machine::simd::dispatch::dispatch;
use crate::machine::simd::{prefetch, Lane, Simd, WIDTH};
use crate::machine::system::shared::Shared;

/// Prefetch distance in numbers. Sixteen rows are more streams than the hardware prefetcher follows.
const PREFETCH_DISTANCE: usize = 4 * WIDTH;

/// Sixteen numbers as an array, so that the compiler emits a load instead of a call to copy.
#[inline(always)]
fn first_sixteen(from: &[f32]) -> [f32; WIDTH] {
    *from.first_chunk().unwrap_or(&[0.0; WIDTH])
}

/// First index and number of scores of each lane's sentence.
#[derive(Clone, Copy)]
pub struct LaneRows {
    pub begin: [usize; WIDTH],
    pub counts: [usize; WIDTH], // 0 for an unused lane
}

impl LaneRows {
    pub fn new(chains: &Chains<'_>, group: &[u32]) -> LaneRows {
        let row = chains.time * chains.labels;
        let length = |b: &u32| chains.lengths[*b as usize] as usize * chains.labels;
        LaneRows {
            begin: std::array::from_fn(|i| group.get(i).map_or(0, |&b| b as usize * row)),
            counts: std::array::from_fn(|i| group.get(i).map_or(0, length)),
        }
    }

    /// Number of scores that a lane's sentence has among at..at + 16.
    #[inline(always)]
    fn remaining(&self, lane: usize, at: usize) -> usize {
        self.counts[lane].saturating_sub(at).min(WIDTH)
    }

    /// Read numbers at..at + 16 of all sentences, 0 past their ends. Bit i of the result: sentence i has a NaN among
    /// them.
    #[inline(always)]
    fn read<S: Simd>(&self, simd: S, from: &[f32], at: usize, out: &mut [Lane]) -> u32 {
        let (mut tile, mut nan) = ([Lane::ZERO; WIDTH], 0);
        for (lane, row) in tile.iter_mut().enumerate() {
            let begin = self.begin[lane] + at;
            prefetch(from.as_ptr().wrapping_add(begin + PREFETCH_DISTANCE));
            match self.remaining(lane, at) {
                WIDTH => row.0 = first_sixteen(&from[begin..begin + WIDTH]),
                0 => {}
                n => row.0[..n].copy_from_slice(&from[begin..begin + n]),
            }
            nan |= u32::from(row.0.iter().fold(false, |nan, x| nan | x.is_nan())) << lane;
        }
        if let Some(out) = out.first_chunk_mut() {
            simd.transpose(&tile, out);
        }
        nan
    }

    /// Write the lanes of numbers at..at + 16 to the rows of their sentences. Numbers past the end of a sentence are
    /// skipped.
    ///
    /// # Safety
    /// No other thread touches these sentences.
    #[inline(always)]
    pub unsafe fn write<S: Simd>(&self, simd: S, from: &[Lane], at: usize, out: &Shared<'_, f32>) {
        let mut tile = [Lane::ZERO; WIDTH];
        if let Some(from) = from.first_chunk() {
            simd.transpose(from, &mut tile);
        }
        for (lane, row) in tile.iter().enumerate() {
            match self.remaining(lane, at) {
                WIDTH => *out.slice(self.begin[lane] + at, WIDTH).as_mut_ptr().cast() = row.0,
                0 => {}
                n => out.slice(self.begin[lane] + at, n).copy_from_slice(&row.0[..n]),
            }
        }
    }
}

/// Node scores for the recursions, position by position, including start and end scores.
pub struct Reading<'a> {
    chains: &'a Chains<'a>,
    shape: &'a Shape,
    rows: LaneRows,
    done: usize,  // numbers of each sentence read so far
    pub nan: u32, // sentences with a NaN so far, which maxima and exponentials would not propagate
}

impl<'a> Reading<'a> {
    pub fn new(chains: &'a Chains<'a>, shape: &'a Shape, rows: LaneRows) -> Reading<'a> {
        Reading { chains, shape, rows, done: 0, nan: 0 }
    }
}

impl NodeScores for Reading<'_> {
    fn fill(&mut self, t: usize, psi: &mut [Lane]) {
        read_position(self, t, psi);
    }
}

dispatch!(fn read_position(reading: &mut Reading<'_>, t: usize, psi: &mut [Lane]) = read_kernel);

#[inline(always)]
fn read_kernel<S: Simd>(simd: S, reading: &mut Reading<'_>, t: usize, psi: &mut [Lane]) {
    let Reading { chains, shape, rows, done, nan } = reading;
    let l = shape.labels;
    while *done < (t + 1) * l {
        *nan |= rows.read(simd, chains.node, *done, &mut psi[*done..]);
        *done += WIDTH;
    }
    let here = &mut psi[t * l..(t + 1) * l];
    if t == 0 {
        for (s, &x) in here.iter_mut().zip(chains.start) {
            simd.store(simd.add(simd.load(s), simd.splat(x)), s);
        }
    }
    if !shape.full(t + 1) {
        let ends = simd.load(&shape.ends(t));
        for (s, &x) in here.iter_mut().zip(chains.end) {
            let score = simd.load(s);
            simd.store(simd.select_gt(ends, simd.splat(0.0), simd.add(score, simd.splat(x)), score), s);
        }
    }
}
