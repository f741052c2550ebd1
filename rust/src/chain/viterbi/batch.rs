//! Viterbi for sixteen sentences at a time (Viterbi 1967).

use crate::chain::edges::Edges;
use crate::chain::lists;
use crate::chain::sums::batch::{Shape, Work};
use crate::chain::viterbi::renormalize;
use crate::machine::simd::blocks::by_block;
use crate::machine::simd::dispatch::dispatch;
use crate::machine::simd::find::Find;
use crate::machine::simd::{Lane, Simd, WIDTH};
use crate::machine::system::testing::{self, CodePath, PathCount};

/// Number of labels from which searching for the previous labels of one path is faster than storing back pointers for
/// all labels.
const MIN_SEARCH_LABELS: usize = 32;

dispatch!(
    /// Find the best path of each sentence from the node scores in `work.psi`. Write its labels to `work.path` and return
    /// its score. Ties: the lower label. `edges` must have the shape's labels, and `work` must be reserved for the shape.
    pub fn viterbi(shape: &Shape, edges: &Edges, work: &mut Work) -> [f64; WIDTH] = viterbi_kernel
);

#[inline(always)]
fn viterbi_kernel<S: Find>(simd: S, shape: &Shape, edges: &Edges, work: &mut Work) -> [f64; WIDTH] {
    work.path.resize(shape.positions().max(work.path.len()), [0; WIDTH]);
    if let Some(lists) = &edges.sparse {
        testing::count(PathCount::Sparse, 1);
        return lists::best_paths(simd, shape, lists, work);
    }
    let back_pointers = match (testing::is_forced(CodePath::Noted), testing::is_forced(CodePath::Sought)) {
        (false, false) => shape.labels < MIN_SEARCH_LABELS,
        (back_pointers, _) => back_pointers,
    };
    testing::count(if back_pointers { PathCount::Noted } else { PathCount::Sought }, 1);
    match back_pointers {
        true => best_paths::<S, true>(simd, shape, edges, work),
        false => best_paths::<S, false>(simd, shape, edges, work),
    }
}

/// `work.alpha` holds the back pointers as numbers (`BACK_POINTERS`), or the best score of each label before its node
/// score. In the latter case the backward pass searches for the label that gave it. Both directions add the same two
/// floats, so equality is exact.
#[inline(always)]
fn best_paths<S: Find, const BACK_POINTERS: bool>(
    simd: S,
    shape: &Shape,
    edges: &Edges,
    work: &mut Work,
) -> [f64; WIDTH] {
    // Back pointers take the same number of registers again.
    let max_block = if BACK_POINTERS { 6 } else { S::BLOCK.max(6) };
    let (l, positions) = (shape.labels, shape.positions());
    debug_assert!(edges.labels == l && work.is_reserved(shape));
    let mut score = [0.0; WIDTH];
    for t in 1..positions {
        let (before, here) = work.psi.split_at_mut(t * l);
        let from = &before[(t - 1) * l..];
        let back = &mut work.alpha[t * l..(t + 1) * l];
        by_block!([1 2 3 4 5 6 7 8 9 10 11 12] even max_block, l, y, N => {
            let mut best = [simd.splat(0.0); N];
            let mut index = [simd.splat(0.0); N];
            let first = simd.load(&from[0]);
            for (j, b) in best.iter_mut().enumerate() {
                *b = simd.add(first, simd.splat(edges.score[y + j]));
            }
            for (k, a) in from.iter().enumerate().skip(1) {
                let a = simd.load(a);
                let number = simd.splat(k as f32);
                let row = &edges.score[k * l + y..k * l + y + N];
                for j in 0..N {
                    let v = simd.add(a, simd.splat(row[j]));
                    if BACK_POINTERS {
                        index[j] = simd.select_gt(v, best[j], number, index[j]);
                    }
                    best[j] = simd.max(v, best[j]);
                }
            }
            for j in 0..N {
                simd.store(if BACK_POINTERS { index[j] } else { best[j] }, &mut back[y + j]);
                simd.store(simd.add(best[j], simd.load(&here[y + j])), &mut here[y + j]);
            }
        });
        if renormalize::is_due(t) {
            renormalize::sentences(simd, shape, t, &mut here[..l], &mut score);
        }
    }
    // All sentences step back together, because each backward pass is a chain of dependent loads.
    let mut label = [0usize; WIDTH];
    let mut rows = BestRows::default();
    let columns = if BACK_POINTERS { &[] } else { edges.columns() };
    for t in (0..positions).rev() {
        let here = &work.psi[t * l..(t + 1) * l];
        if !BACK_POINTERS && t + 1 < positions {
            rows.transpose(simd, &work.psi[t * l..], l);
        }
        for lane in (0..WIDTH).take_while(|&lane| t < shape.lengths[lane] as usize) {
            let mut y = 0;
            if t + 1 == shape.lengths[lane] as usize {
                for (k, s) in here.iter().enumerate() {
                    if s.0[lane] > here[y].0[lane] {
                        y = k;
                    }
                }
                score[lane] += f64::from(here[y].0[lane]);
            } else {
                let after = label[lane];
                let known = work.alpha[(t + 1) * l + after].0[lane];
                y = if BACK_POINTERS { known as usize } else { rows.find(simd, columns, after, lane, known) };
            }
            label[lane] = y;
            work.path[t][lane] = y as u16;
        }
    }
    score
}

/// Best scores of the labels of a position, by sentence, for finding the previous label of a path.
#[derive(Default)]
struct BestRows(Vec<[Lane; WIDTH]>); // [L / 16] squares, one sentence per lane

impl BestRows {
    /// Transpose the lanes of the labels at the start of `here`.
    #[inline(always)]
    fn transpose<S: Simd>(&mut self, simd: S, here: &[Lane], labels: usize) {
        self.0.resize(labels.div_ceil(WIDTH), [Lane::ZERO; WIDTH]);
        for (v, square) in self.0.iter_mut().enumerate() {
            let rest = &here[v * WIDTH..];
            if let Some(from) = rest.first_chunk() {
                simd.transpose(from, square);
            } else {
                let mut padded = [Lane::ZERO; WIDTH];
                padded[..rest.len()].copy_from_slice(rest);
                simd.transpose(&padded, square);
            }
        }
    }

    /// First label from which the step into `after` scores `known`. After the last label columns are NaN, which equals
    /// nothing.
    #[inline(always)]
    fn find<S: Find>(&self, simd: S, columns: &[Lane], after: usize, lane: usize, known: f32) -> usize {
        let (width, known) = (self.0.len(), simd.splat(known));
        let column = &columns[after * width..(after + 1) * width];
        for (v, (square, scores)) in self.0.iter().zip(column).enumerate() {
            let matching = simd.equal(simd.add(simd.load(&square[lane]), simd.load(scores)), known);
            if matching != 0 {
                return v * WIDTH + matching.trailing_zeros() as usize;
            }
        }
        0
    }
}
