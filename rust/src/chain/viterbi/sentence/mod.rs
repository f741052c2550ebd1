//! Viterbi for one sentence, with labels in the lanes of vector registers. Used by the online learners and for the
//! k-best lists of a corpus. `viterbi::batch` instead processes sixteen sentences at a time, which an online learner
//! cannot do because its weights change after each sentence.
//!
//! ```text
//! best_t(y)  = max_y' delta_{t-1}(y') + A_t[y', y]          delta_t(y) = best_t(y) + s_t(y)
//! ```
//!
//! No back pointers are kept. The backward pass finds the y' that gave best_t(y) by comparing one row per position of
//! the path, instead of a selection in every cell of the forward pass. Both directions add the same two floats, so the
//! comparison is exact.
//!
//! Ties are broken as in `kbest`.

mod lists;

use crate::chain::lists::Sparse;
use crate::chain::viterbi::renormalize;
use crate::machine::simd::blocks::by_block;
use crate::machine::simd::dispatch::dispatch;
use crate::machine::simd::find::Find;
use crate::machine::simd::{flat, flat_mut, Lane, WIDTH};
pub use lists::best_paths;
use lists::ChartLists;

/// Edge scores as rows of lanes, either shared by all positions or with one block per position. -infinity forbids an
/// edge and fills the padding after the last label.
#[derive(Clone, Debug, Default)]
pub struct Steps {
    labels: usize,
    width: usize,
    rows: Vec<Lane>,    // [blocks, L, width] A[y', y] along y
    columns: Vec<Lane>, // [blocks, L, width] A[y', y] along y'
}

impl Steps {
    /// All edge scores 0.
    pub fn new(labels: usize) -> Steps {
        let width = labels.div_ceil(WIDTH);
        let mut steps = Steps { labels, width, rows: Vec::new(), columns: Vec::new() };
        steps.resize(1);
        steps
    }

    /// Edge scores [L, L].
    pub fn from_scores(labels: usize, scores: &[f32]) -> Steps {
        let mut steps = Steps::new(labels);
        for (at, &x) in scores.iter().enumerate() {
            steps.set(0, at / labels, at % labels, x);
        }
        steps
    }

    /// Resize to `blocks` blocks. New blocks score 0.
    pub fn resize(&mut self, blocks: usize) {
        let (l, width) = (self.labels, self.width);
        let have = self.rows.len() / (l * width).max(1);
        let mut row = vec![Lane([f32::NEG_INFINITY; WIDTH]); width];
        for y in 0..l {
            row[y / WIDTH].0[y % WIDTH] = 0.0;
        }
        for _ in have..blocks {
            for _ in 0..l {
                self.rows.extend_from_slice(&row);
                self.columns.extend_from_slice(&row);
            }
        }
    }

    #[inline]
    pub fn set(&mut self, block: usize, from: usize, to: usize, score: f32) {
        let (l, width) = (self.labels, self.width);
        self.rows[(block * l + from) * width + to / WIDTH].0[to % WIDTH] = score;
        self.columns[(block * l + to) * width + from / WIDTH].0[from % WIDTH] = score;
    }

    #[inline]
    pub fn get(&self, block: usize, from: usize, to: usize) -> f32 {
        self.rows[(block * self.labels + from) * self.width + to / WIDTH].0[to % WIDTH]
    }

    /// Scores from a label to all labels, -infinity after the last.
    #[inline(always)]
    pub fn row(&self, block: usize, from: usize) -> &[Lane] {
        let at = (block * self.labels + from) * self.width;
        &self.rows[at..at + self.width]
    }

    /// Scores from all labels to one, -infinity after the last.
    #[inline(always)]
    pub fn column(&self, block: usize, to: usize) -> &[Lane] {
        let at = (block * self.labels + to) * self.width;
        &self.columns[at..at + self.width]
    }

    /// Largest magnitude of a finite score.
    pub fn size(&self) -> f32 {
        let size = |most: f32, &x: &f32| if x.is_finite() { most.max(x.abs()) } else { most };
        self.rows.iter().fold(0.0, |most, lane| lane.0.iter().fold(most, size))
    }

    /// Block `to` becomes a copy of block 0 of `source`.
    pub fn copy_block(&mut self, to: usize, source: &Steps) {
        let n = self.labels * self.width;
        self.rows[to * n..(to + 1) * n].copy_from_slice(&source.rows[..n]);
        self.columns[to * n..(to + 1) * n].copy_from_slice(&source.columns[..n]);
    }
}

/// Return the largest number of a row and the first label that has it. The label is always below `labels`, for any
/// numbers. If the numbers of all labels are NaN, the maximum may be that of the padding.
#[inline(always)]
fn top<S: Find>(simd: S, row: &[Lane], labels: usize) -> (f32, usize) {
    let mut max = simd.load(&row[0]);
    for lane in &row[1..] {
        max = simd.max(max, simd.load(lane));
    }
    let x = simd.largest(max);
    let value = simd.splat(x);
    for (v, lane) in row.iter().enumerate() {
        let mask = simd.equal(simd.load(lane), value);
        if mask != 0 {
            let y = v * WIDTH + mask.trailing_zeros() as usize;
            return (x, if y < labels { y } else { 0 });
        }
    }
    (x, 0)
}

dispatch!(
    /// Advance the recursion over all positions, whose node scores must be set. `lists`: those of `steps`, to use
    /// instead.
    pub fn advance_all(chart: &mut Chart, steps: &Steps, lists: Option<&Sparse>) = advance_kernel
);

#[inline(always)]
fn advance_kernel<S: Find>(simd: S, chart: &mut Chart, steps: &Steps, lists: Option<&Sparse>) {
    for t in 0..chart.positions {
        match lists {
            Some(lists) => chart.advance_listed(simd, lists, t),
            None => chart.advance(simd, steps, t),
        }
    }
}

dispatch!(
    /// Return the best path, after every position was advanced, and its score. The score is not finite if no path is
    /// allowed.
    pub fn best_path(chart: &Chart, steps: &Steps, path: &mut [u16]) -> f64 =
        |simd| f64::from(chart.top_path(simd, steps, path)) + chart.shift
);

/// Scratch for one sentence at a time. It grows to the longest sentence.
#[derive(Default)]
pub struct Chart {
    pub labels: usize,
    pub width: usize,
    pub positions: usize,
    pub node: Vec<Lane>, // [T, width] s_t(y), lanes after the last label are never read as scores
    best: Vec<Lane>,     // [T, width]
    delta: Vec<Lane>,    // [T, width]
    pad: Vec<Lane>,      // [width] 0, -infinity after the last label
    varying: bool,       // one block of edge scores per position
    shift: f64,          // total subtracted by renormalising so far
    lists: ChartLists,
}

impl Chart {
    pub fn new(labels: usize) -> Chart {
        let width = labels.div_ceil(WIDTH);
        let mut pad = vec![Lane([f32::NEG_INFINITY; WIDTH]); width];
        for y in 0..labels {
            pad[y / WIDTH].0[y % WIDTH] = 0.0;
        }
        Chart { labels, width, pad, ..Chart::default() }
    }

    /// Begin a sentence of `positions` tokens. `varying`: edge scores have one block per position.
    pub fn begin(&mut self, positions: usize, varying: bool) {
        (self.positions, self.varying, self.shift) = (positions, varying, 0.0);
        let n = positions * self.width;
        if self.node.len() < n {
            self.node.resize(n, Lane::ZERO);
            self.best.resize(n, Lane::ZERO);
            self.delta.resize(n, Lane::ZERO);
        }
    }

    #[inline]
    pub fn node(&self, t: usize, y: usize) -> f32 {
        self.node[t * self.width + y / WIDTH].0[y % WIDTH]
    }

    /// Whether edge scores have one block per position.
    pub fn varies(&self) -> bool {
        self.varying
    }

    #[inline(always)]
    fn block(&self, t: usize) -> usize {
        if self.varying {
            t
        } else {
            0
        }
    }

    /// Score of `gold` less that of `path`, in double precision. Only differing positions are read.
    pub fn margin(&self, steps: &Steps, gold: &[u16], path: &[u16]) -> f64 {
        let mut margin = 0.0;
        for (t, (&y, &z)) in gold.iter().zip(path).enumerate() {
            if y != z {
                margin += f64::from(self.node(t, y as usize)) - f64::from(self.node(t, z as usize));
            }
            if t > 0 && (y != z || gold[t - 1] != path[t - 1]) {
                let at = |from: u16, to: u16| f64::from(steps.get(self.block(t), from as usize, to as usize));
                margin += at(gold[t - 1], y) - at(path[t - 1], z);
            }
        }
        margin
    }

    /// Score of a path in double precision.
    pub fn score(&self, steps: &Steps, path: &[u16]) -> f64 {
        let mut score = 0.0;
        for (t, &y) in path.iter().enumerate() {
            if t > 0 {
                score += f64::from(steps.get(self.block(t), path[t - 1] as usize, y as usize));
            }
            score += f64::from(self.node(t, y as usize));
        }
        score
    }

    /// Advance the recursion to position t, whose node scores must be set.
    #[inline(always)]
    pub(crate) fn advance<S: Find>(&mut self, simd: S, steps: &Steps, t: usize) {
        by_block!([1 2 3 4] self.width, v, N => {
            const U: usize = if N < 3 { 4 } else { 2 };
            self.advance_some::<S, N, U>(simd, steps, t, v);
        });
        self.renormalize(simd, t);
    }

    /// Renormalise position t if due.
    #[inline(always)]
    fn renormalize<S: Find>(&mut self, simd: S, t: usize) {
        if renormalize::is_due(t) {
            self.shift += renormalize::labels(simd, &mut self.delta[t * self.width..(t + 1) * self.width]);
        }
    }

    /// `advance` with lists of edges, which must be those of `steps`.
    #[inline(always)]
    fn advance_listed<S: Find>(&mut self, simd: S, lists: &Sparse, t: usize) {
        let (width, at) = (self.width, t * self.width);
        if t > 0 {
            let from = &self.delta[at - width..at];
            let best = &mut self.best[at..at + width];
            best.copy_from_slice(&self.pad);
            lists.advance(flat(from), flat_mut(best));
        }
        for v in 0..width {
            let before = if t == 0 { &self.pad[v] } else { &self.best[at + v] };
            simd.store(simd.add(simd.load(&self.node[at + v]), simd.load(before)), &mut self.delta[at + v]);
        }
        self.renormalize(simd, t);
    }

    /// Advance N lanes of labels starting at lane v, with U independent maxima.
    #[inline(always)]
    fn advance_some<S: Find, const N: usize, const U: usize>(&mut self, simd: S, steps: &Steps, t: usize, v: usize) {
        let at = t * self.width + v;
        assert!(v + N <= self.width && self.labels <= self.width * WIDTH && at + N <= self.node.len());
        assert!(at + N <= self.delta.len() && at + N <= self.best.len());
        assert!((self.block(t) + 1) * self.labels * self.width <= steps.rows.len());
        if t == 0 {
            for j in 0..N {
                let sum = simd.add(simd.load(&self.node[at + j]), simd.load(&self.pad[v + j]));
                simd.store(sum, &mut self.delta[at + j]);
            }
            return;
        }
        let mut best = [[simd.splat(f32::NEG_INFINITY); N]; U];
        // SAFETY: by the assertions, `from` has the labels of the `width` lanes before `at - v`, and there are `labels`
        // rows of `width` lanes, of which v..v + N are read.
        unsafe {
            let from = self.delta.as_ptr().add(at - v - self.width).cast::<f32>();
            let mut row = steps.rows.as_ptr().add(self.block(t) * self.labels * self.width + v);
            let mut k = 0;
            while k + U <= self.labels {
                for (u, best) in best.iter_mut().enumerate() {
                    let x = simd.splat(*from.add(k + u));
                    for (j, b) in best.iter_mut().enumerate() {
                        *b = simd.max(*b, simd.add(x, simd.load(&*row.add(j))));
                    }
                    row = row.wrapping_add(self.width);
                }
                k += U;
            }
            while k < self.labels {
                let x = simd.splat(*from.add(k));
                for (j, b) in best[0].iter_mut().enumerate() {
                    *b = simd.max(*b, simd.add(x, simd.load(&*row.add(j))));
                }
                row = row.wrapping_add(self.width);
                k += 1;
            }
        }
        let mut all = best[0];
        for more in &best[1..] {
            for (b, &x) in all.iter_mut().zip(more) {
                *b = simd.max(*b, x);
            }
        }
        for (j, &b) in all.iter().enumerate() {
            simd.store(b, &mut self.best[at + j]);
            simd.store(simd.add(b, simd.load(&self.node[at + j])), &mut self.delta[at + j]);
        }
    }

    /// Return the label before y at t >= 1 on the best path to y. If scores are NaN and no predecessor matches the best
    /// value, return an arbitrary label.
    #[inline(always)]
    fn before<S: Find>(&self, simd: S, steps: &Steps, t: usize, y: usize) -> usize {
        let width = self.width;
        let value = simd.splat(self.best[t * width + y / WIDTH].0[y % WIDTH]);
        let delta = &self.delta[(t - 1) * width..t * width];
        for (v, (delta, step)) in delta.iter().zip(steps.column(self.block(t), y)).enumerate() {
            let mask = simd.equal(simd.add(simd.load(delta), simd.load(step)), value);
            if mask != 0 {
                let before = v * WIDTH + mask.trailing_zeros() as usize;
                return if before < self.labels { before } else { 0 };
            }
        }
        0
    }

    /// The best path, and its score at the last position as renormalised.
    #[inline(always)]
    fn top_path<S: Find>(&self, simd: S, steps: &Steps, path: &mut [u16]) -> f32 {
        let n = self.positions;
        if n == 0 {
            return 0.0;
        }
        let (score, mut y) = top(simd, &self.delta[(n - 1) * self.width..n * self.width], self.labels);
        path[n - 1] = y as u16;
        for t in (1..n).rev() {
            y = self.before(simd, steps, t, y);
            path[t - 1] = y as u16;
        }
        score
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chain::lattice::Scores;
    use crate::chain::viterbi::kbest::kbest;
    use crate::machine::system::shuffle::Generator;

    #[test]
    fn lists_agree_with_the_exact_ones() {
        ["", "avx2", "baseline"].iter().for_each(|ways| crate::machine::system::testing::with(ways, agree));
    }

    /// Labels of paths are in range for any numbers, because they are used as indices.
    #[test]
    fn no_number_leads_beyond_the_labels() {
        for ways in ["", "avx2", "baseline"] {
            crate::machine::system::testing::with(ways, || {
                let odd = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX, f32::MIN, 0.0, -0.0, 1.0];
                let mut noise = Generator::new(5, 0, 0);
                let mut draw = |only: u64| odd[noise.below(only) as usize];
                for round in 0..600u64 {
                    let (l, n, only) =
                        ([1, 2, 3, 15, 17, 33, 70][round as usize % 7], 1 + round as usize % 4, 1 + round % 8);
                    let (mut chart, mut steps) = (Chart::new(l), Steps::new(l));
                    chart.begin(n, false);
                    for i in 0..n * l {
                        chart.node[i / l * chart.width + i % l / WIDTH].0[i % l % WIDTH] = draw(only);
                    }
                    for i in 0..l * l {
                        steps.set(0, i / l, i % l, draw(only));
                    }
                    let (mut scores, mut paths, mut path) = (Vec::new(), Vec::new(), vec![0; n]);
                    advance_all(&mut chart, &steps, None);
                    best_path(&chart, &steps, &mut path);
                    best_paths(&mut chart, &steps, 5, &mut scores, &mut paths);
                    assert!(paths.iter().chain(&path).all(|&y| (y as usize) < l), "{l} {n} {only} {path:?} {paths:?}");
                }
            });
        }
    }

    fn agree() {
        let mut noise = Generator::new(3, 0, 0);
        let mut below = |n: u64| noise.below(n);
        for round in 0..150u64 {
            let l = [1, 2, 3, 5, 16, 17, 33, 49, 65, 70][below(10) as usize];
            let n = 1 + below(6) as usize;
            let mut draw = |forbid: u64| match below(10) {
                x if x < forbid => f32::NEG_INFINITY,
                _ => below(7) as f32 - 3.0,
            };
            let node: Vec<f32> = (0..n * l).map(|_| draw(round % 3)).collect();
            let blocks = if round % 2 == 0 { 1 } else { n };
            let edge: Vec<f32> = (0..blocks * l * l).map(|_| draw(round % 2)).collect();
            let (mut chart, mut steps) = (Chart::new(l), Steps::new(l));
            chart.begin(n, blocks > 1);
            steps.resize(blocks);
            for (i, &x) in node.iter().enumerate() {
                chart.node[i / l * chart.width + i % l / WIDTH].0[i % l % WIDTH] = x;
            }
            for (i, &x) in edge.iter().enumerate() {
                steps.set(i / (l * l), i / l % l, i % l, x);
            }
            let (node, edge): (Vec<f64>, Vec<f64>) =
                (node.iter().map(|&x| f64::from(x)).collect(), edge.iter().map(|&x| f64::from(x)).collect());
            let scores = Scores { labels: l, node: &node, edge: &edge };
            for k in [0, 1, 2, 7, 200] {
                let (mut found, mut path) = ((Vec::new(), Vec::new()), vec![0; n]);
                advance_all(&mut chart, &steps, None);
                let score = best_path(&chart, &steps, &mut path);
                best_paths(&mut chart, &steps, k, &mut found.0, &mut found.1);
                assert!(!score.is_finite() || k == 0 || found.1[..n] == path[..]);
                let want = kbest(&scores, k);
                assert_eq!(found.0, want.iter().map(|w| w.0).collect::<Vec<_>>());
                assert_eq!(found.1, want.iter().flat_map(|w| w.1.iter().copied()).collect::<Vec<_>>());
                for (i, w) in want.iter().enumerate() {
                    assert_eq!(chart.score(&steps, &found.1[i * n..(i + 1) * n]), w.0);
                }
            }
        }
    }
}
