//! k-best search over cells of two labels, restricted to the few entries that can be on one of the k best paths.
//!
//! A chart keeps k entries in each of its L x L cells, although the k best paths use only a handful of labels per
//! token. The search has four steps:
//!
//! 1. For each token, choose a few likely labels by the score of the best first-order path through each label.
//! 2. Compute `continuation`, an upper bound on the score of any continuation of two labels. The first of the two is
//!    distinguished only if it is likely. All other labels share the largest weight F_2[y_{t-2}, y_t] of any of them.
//!    The bound is tight for paths through likely labels alone, and the other paths are charged for unlikely labels in
//!    full. If no label were distinguished, half of all entries would remain.
//! 3. Find k complete paths with a beam ranked by score + continuation. The last of them scores B, so the k-th best path
//!    scores at least B.
//! 4. Run the exact search on a list that keeps only entries with score + continuation >= B. Every entry of the k best paths
//!    satisfies this.
//!
//! The pruned entries do not occur in the lists of the cells on those paths either. Entries are in the order of the
//! chart and add up the same numbers in the same order, so scores, paths and ties equal those of the chart. Bound and
//! score may differ by rounding, which `rounding_slack` bounds from above. The chart is faster if too many entries
//! remain (with all weights 0, for example, all paths tie). The chart also handles sentences whose scores need
//! renormalising, because the best entry of a token need not be among the entries kept here.

use crate::chain::lookback::search::Sentence;
use crate::chain::lookback::Lookback;
use crate::chain::viterbi::renormalize;
use crate::machine::simd::find::Find;
use crate::machine::simd::{Lane, WIDTH};
use std::cmp::Ordering;

const NEG_INF: f32 = f32::NEG_INFINITY;
/// Number of entries per token above which the chart is faster.
const MAX_ENTRIES: usize = 1024;
/// Number of likely labels per token.
const LIKELY: usize = 4;
/// Width of the beam in addition to 2 k.
const EXTRA_BEAM: usize = 6;
/// Relative rounding error of four sums of n terms on either side, each off by at most half of 2^-23 of the largest
/// partial sum, doubled as a safety margin.
const ROUNDING: f32 = 1e-6;

/// A path that ends in two labels.
#[derive(Clone, Copy, Debug)]
struct PathEntry {
    score: f32,
    raw: f32, // without the node score of its token, the sort key within a cell
    back: u32,
    before: u16,
    label: u16,
}

/// A path of the beam.
#[derive(Clone, Copy, Debug)]
struct BeamPath {
    bound: f32, // score + continuation
    score: f32,
    before: u16,
    label: u16,
}

/// Scratch for one sentence at a time.
#[derive(Default)]
pub struct BoundedSearch {
    continuation: Vec<Lane>, // [T, LIKELY + 1, width] by class of the previous label and label, the last class for unlikely ones
    class: Vec<u8>,          // [T, L] index of a label among the likely ones, LIKELY for the others
    likely: Vec<usize>,      // [T, LIKELY], or [T, L] with fewer labels
    rows: Vec<Lane>,         // [LIKELY + 1, width] F_2 of the likely labels, then the largest of the others
    best_through: Vec<Lane>, // [T, width] first order: score of the best path up to a label, then through it
    after: Vec<Lane>,        // [width]
    row: Vec<Lane>,          // [width]
    kept: Vec<BeamPath>,
    next: Vec<BeamPath>,
    entries: Vec<PathEntry>, // in token order
    begin: Vec<usize>,       // [T + 1]
    best: Vec<(f32, usize)>,
}

impl BoundedSearch {
    /// Whether this search supports the terms: cells of two labels, and features on the label two tokens back only.
    pub fn supports(terms: &Lookback) -> bool {
        terms.cell == 2 && terms.far == 2 && !terms.endless && !terms.tuples
    }

    /// Find the k best paths, as `Search::run` does. Return false if the chart has to find them instead.
    #[inline(always)]
    pub fn run<S: Find>(
        &mut self,
        simd: S,
        terms: &Lookback,
        x: &Sentence<'_>,
        k: usize,
        scores: &mut Vec<f64>,
        paths: &mut Vec<u16>,
    ) -> bool {
        let (l, width) = (terms.labels, terms.width());
        let n = x.node.len() / width;
        let rounding_slack = rounding_slack(l, width, x);
        if !(3..=renormalize::FIRST).contains(&n) || !rounding_slack.is_finite() {
            return false;
        }
        self.choose(simd, l, width, x);
        self.bound_continuations(simd, l, width, x);
        let Some(lowest) = self.kth_beam_score(simd, l, width, x, k) else { return false };
        if !self.collect_entries(simd, l, width, x, k, lowest - rounding_slack) {
            return false;
        }
        self.finish(k, n, scores, paths);
        true
    }

    /// Choose the likely labels of each token by the scores of the best first-order paths through them.
    #[inline(always)]
    fn choose<S: Find>(&mut self, simd: S, l: usize, width: usize, x: &Sentence<'_>) {
        let n = x.node.len() / width;
        self.best_through.clear();
        self.best_through.extend_from_slice(&x.node[..n * width]);
        self.row.resize(width, Lane::ZERO);
        self.after.clear();
        self.after.resize(width, Lane::ZERO);
        for t in 1..n {
            let (before, here) = self.best_through[(t - 1) * width..(t + 1) * width].split_at_mut(width);
            self.row.fill(Lane([NEG_INF; WIDTH]));
            best_of(simd, before, l, |b| x.steps.row(0, b), &mut self.row);
            for (here, best) in here.iter_mut().zip(&self.row) {
                simd.store(simd.add(simd.load(here), simd.load(best)), here);
            }
        }
        for t in (0..n).rev() {
            for v in 0..width {
                let (best_through, after) = (&mut self.best_through[t * width + v], &mut self.after[v]);
                simd.store(simd.add(simd.load(best_through), simd.load(after)), best_through);
                simd.store(simd.add(simd.load(after), simd.load(&x.node[t * width + v])), after);
            }
            self.row.fill(Lane([NEG_INF; WIDTH]));
            best_of(simd, &self.after, l, |c| x.steps.column(0, c), &mut self.row);
            std::mem::swap(&mut self.row, &mut self.after);
        }
        let n_likely = LIKELY.min(l);
        self.likely.clear();
        self.class.clear();
        self.class.resize(n * l, LIKELY as u8);
        for (t, row) in self.best_through.chunks_exact(width).enumerate() {
            let mut best = [(NEG_INF, 0); LIKELY];
            for y in 0..l {
                // The first `n_likely` labels are inserted regardless of their scores, so the likely labels are
                // distinct.
                let (score, known) = (row[y / WIDTH].0[y % WIDTH], y.min(n_likely));
                let place = best[..known].iter().position(|b| score > b.0).unwrap_or(known);
                if place < n_likely {
                    best[place..n_likely].rotate_right(1);
                    best[place] = (score, y);
                }
            }
            for (i, b) in best[..n_likely].iter().enumerate() {
                self.class[t * l + b.1] = i as u8;
                self.likely.push(b.1);
            }
        }
    }

    /// Compute an upper bound on the score after a label b whose predecessor has class a:
    ///
    /// ```text
    /// continuation_t(a, b) = max_c A[b, c] + F_2[a, c] + s_{t+1}(c) + continuation_{t+1}(class of b, c)
    /// ```
    ///
    /// Unlikely labels b are bounded together in lanes, likely labels one at a time.
    #[inline(always)]
    fn bound_continuations<S: Find>(&mut self, simd: S, l: usize, width: usize, x: &Sentence<'_>) {
        let (n, n_likely, block) = (x.node.len() / width, LIKELY.min(l), (LIKELY + 1) * width);
        self.continuation.clear();
        self.continuation.resize(n * block, Lane([NEG_INF; WIDTH]));
        for (i, lane) in self.continuation[(n - 1) * block..].iter_mut().enumerate() {
            lane.0[..(l - i % width * WIDTH).min(WIDTH)].fill(0.0);
        }
        for t in (0..n - 1).rev() {
            let classes = if t == 0 { 1 } else { LIKELY + 1 };
            self.max_by_class(simd, l, width, x, t);
            let (here, after) = self.continuation[t * block..(t + 2) * block].split_at_mut(block);
            let node = &x.node[(t + 1) * width..(t + 2) * width];
            let others = &after[LIKELY * width..];
            for (v, row) in self.row.iter_mut().enumerate() {
                simd.store(simd.add(simd.load(&node[v]), simd.load(&others[v])), row);
            }
            for class in 0..classes {
                let (here, far) = (&mut here[class * width..(class + 1) * width], &self.rows[class * width..]);
                for (v, sum) in self.after.iter_mut().enumerate() {
                    simd.store(simd.add(simd.load(&self.row[v]), simd.load(&far[v])), sum);
                }
                best_of(simd, &self.after, l, |c| x.steps.column(0, c), here);
            }
            for (i, &b) in self.likely[t * n_likely..(t + 1) * n_likely].iter().enumerate() {
                let own = &after[i * width..(i + 1) * width];
                for (v, row) in self.row.iter_mut().enumerate() {
                    let sum = simd.add(simd.load(&node[v]), simd.load(&own[v]));
                    simd.store(simd.add(sum, simd.load(&x.steps.row(0, b)[v])), row);
                }
                for class in 0..classes {
                    let mut bound = simd.splat(NEG_INF);
                    for (v, row) in self.row.iter().enumerate() {
                        bound = simd.max(bound, simd.add(simd.load(row), simd.load(&self.rows[class * width + v])));
                    }
                    here[class * width + b / WIDTH].0[b % WIDTH] = simd.largest(bound);
                }
            }
        }
    }

    /// Maximize F_2 over the labels before t of each class. At t = 0 the row is 0.
    #[inline(always)]
    fn max_by_class<S: Find>(&mut self, simd: S, l: usize, width: usize, x: &Sentence<'_>, t: usize) {
        self.rows.clear();
        if t == 0 {
            self.rows.resize(width, Lane::ZERO);
            return;
        }
        self.rows.resize((LIKELY + 1) * width, Lane([NEG_INF; WIDTH]));
        for a in 0..l {
            let class = self.class[(t - 1) * l + a] as usize * width;
            for (bound, row) in self.rows[class..class + width].iter_mut().zip(&x.rows[a * width..]) {
                simd.store(simd.max(simd.load(bound), simd.load(row)), bound);
            }
        }
    }

    /// Return the score of the k-th path found by a beam search, or `None` if it finds fewer.
    #[inline(always)]
    fn kth_beam_score<S: Find>(&mut self, simd: S, l: usize, width: usize, x: &Sentence<'_>, k: usize) -> Option<f32> {
        let (n, beam_width) = (x.node.len() / width, 2 * k + EXTRA_BEAM);
        self.kept.clear();
        self.kept.push(BeamPath { bound: 0.0, score: 0.0, before: 0, label: 0 });
        for t in 0..n {
            self.next.clear();
            for kept in &self.kept {
                let continuation = continuation_row(&self.continuation, &self.class, (l, width), t, kept.label);
                for v in 0..width {
                    let sum = match t {
                        0 => simd.load(&x.node[v]),
                        _ => extended_scores(simd, x, width, v, t, kept.score, (kept.before, kept.label)).1,
                    };
                    let bound = simd.add(sum, simd.load(&continuation[v]));
                    let lowest_kept =
                        if self.next.len() < beam_width { NEG_INF } else { self.next[beam_width - 1].bound };
                    let mut bits = greater_bits(simd, bound, simd.splat(lowest_kept));
                    if bits == 0 {
                        continue;
                    }
                    let (mut sums, mut bounds) = (Lane::ZERO, Lane::ZERO);
                    simd.store(sum, &mut sums);
                    simd.store(bound, &mut bounds);
                    while bits != 0 {
                        let i = bits.trailing_zeros() as usize;
                        bits &= bits - 1;
                        let (bound, label) = (bounds.0[i], (v * WIDTH + i) as u16);
                        if self.next.len() == beam_width {
                            if bound <= self.next[beam_width - 1].bound {
                                continue;
                            }
                            self.next.pop();
                        }
                        let place = self.next.partition_point(|kept| kept.bound >= bound);
                        self.next.insert(place, BeamPath { bound, score: sums.0[i], before: kept.label, label });
                    }
                }
            }
            std::mem::swap(&mut self.kept, &mut self.next);
        }
        self.kept.get(k - 1).map(|kept| kept.score)
    }

    /// Collect all entries that may be on a path with a score of at least `lowest`. Return false if there are too many.
    #[inline(always)]
    fn collect_entries<S: Find>(
        &mut self,
        simd: S,
        l: usize,
        width: usize,
        x: &Sentence<'_>,
        k: usize,
        lowest: f32,
    ) -> bool {
        let n = x.node.len() / width;
        let BoundedSearch { continuation, class, entries, begin, .. } = self;
        entries.clear();
        begin.clear();
        begin.push(0);
        for y in 0..l {
            let score = x.node[y / WIDTH].0[y % WIDTH];
            if score + continuation[y / WIDTH].0[y % WIDTH] >= lowest {
                entries.push(PathEntry { score, raw: score, back: 0, before: 0, label: y as u16 });
            }
        }
        let lowest = simd.splat(lowest);
        for t in 1..n {
            let (first, end) = (begin[t - 1], entries.len());
            for e in first..end {
                let PathEntry { score, before, label, .. } = entries[e];
                let continuation = continuation_row(continuation, class, (l, width), t, label);
                for v in 0..width {
                    let (raw, sum) = extended_scores(simd, x, width, v, t, score, (before, label));
                    let bound = simd.add(sum, simd.load(&continuation[v]));
                    let mut bits = !greater_bits(simd, lowest, bound) & labels_of(l, v);
                    if bits == 0 {
                        continue;
                    }
                    let (mut raws, mut sums) = (Lane::ZERO, Lane::ZERO);
                    simd.store(raw, &mut raws);
                    simd.store(sum, &mut sums);
                    while bits != 0 {
                        let i = bits.trailing_zeros() as usize;
                        bits &= bits - 1;
                        let (raw, score, to) = (raws.0[i], sums.0[i], (v * WIDTH + i) as u16);
                        entries.push(PathEntry { score, raw, back: e as u32, before: label, label: to });
                    }
                }
                if entries.len() - end > MAX_ENTRIES {
                    return false;
                }
            }
            begin.push(end);
            // Order of the chart: by cell, best first. The sort is stable, so ties keep their order.
            entries[end..].sort_by(|x, y| (x.before, x.label).cmp(&(y.before, y.label)).then(descending(x.raw, y.raw)));
            let (mut to, mut rank) = (end, 0);
            for e in end..entries.len() {
                let entry = entries[e];
                let same = to > end && (entries[to - 1].before, entries[to - 1].label) == (entry.before, entry.label);
                rank = if same { rank + 1 } else { 0 };
                if rank < k {
                    entries[to] = entry;
                    to += 1;
                }
            }
            entries.truncate(to);
        }
        begin.push(entries.len());
        true
    }

    /// Append the best entries of the last token and their paths. Ties: lower last label, then lower label before it.
    fn finish(&mut self, k: usize, n: usize, scores: &mut Vec<f64>, paths: &mut Vec<u16>) {
        let last = self.begin[n - 1]..self.begin[n];
        self.best.clear();
        self.best.extend(last.map(|e| (self.entries[e].score, e)));
        let entries = &self.entries;
        let place = |e: usize| (entries[e].label, entries[e].before, e);
        self.best.sort_unstable_by(|x, y| descending(x.0, y.0).then_with(|| place(x.1).cmp(&place(y.1))));
        for &(score, entry) in self.best.iter().take(k) {
            scores.push(f64::from(score));
            let begin = paths.len();
            paths.resize(begin + n, 0);
            let mut at = entry;
            for t in (0..n).rev() {
                paths[begin + t] = entries[at].label;
                at = entries[at].back as usize;
            }
        }
    }
}

/// Row of `continuation` at t for entries whose last label, at t - 1, is `label`.
#[inline(always)]
fn continuation_row<'a>(
    continuation: &'a [Lane],
    class: &[u8],
    (l, width): (usize, usize),
    t: usize,
    label: u16,
) -> &'a [Lane] {
    let class = if t == 0 { 0 } else { class[(t - 1) * l + label as usize] as usize };
    let at = (t * (LIKELY + 1) + class) * width;
    &continuation[at..at + width]
}

/// out(y) = max(out(y), max_k from(k) + rows(k)(y)).
#[inline(always)]
fn best_of<'a, S: Find>(simd: S, from: &[Lane], l: usize, rows: impl Fn(usize) -> &'a [Lane], out: &mut [Lane]) {
    for k in 0..l {
        let from = from[k / WIDTH].0[k % WIDTH];
        if from == NEG_INF {
            continue;
        }
        let from = simd.splat(from);
        for (out, row) in out.iter_mut().zip(rows(k)) {
            simd.store(simd.max(simd.load(out), simd.add(from, simd.load(row))), out);
        }
    }
}

/// Lane v of the scores that an entry reaches at t, without and with the node scores. Terms are added in the order of
/// the chart.
#[inline(always)]
fn extended_scores<S: Find>(
    simd: S,
    x: &Sentence<'_>,
    width: usize,
    v: usize,
    t: usize,
    score: f32,
    (before, label): (u16, u16),
) -> (S::F, S::F) {
    let mut row = simd.load(&x.steps.row(0, label as usize)[v]);
    if t > 1 {
        row = simd.add(row, simd.load(&x.rows[before as usize * width + v]));
    }
    let raw = simd.add(simd.splat(score), row);
    (raw, simd.add(raw, simd.load(&x.node[t * width + v])))
}

/// Bit mask of the numbers in `x` that are larger than those in `other`. Bits of NaN are 0.
#[inline(always)]
fn greater_bits<S: Find>(simd: S, x: S::F, other: S::F) -> u32 {
    let one = simd.splat(1.0);
    simd.equal(simd.select_gt(x, other, one, simd.splat(0.0)), one)
}

/// Mask of the bits in lane v that correspond to labels.
fn labels_of(l: usize, v: usize) -> u32 {
    (1 << (l - v * WIDTH).min(WIDTH)) - 1
}

/// Descending order.
fn descending(x: f32, y: f32) -> Ordering {
    y.partial_cmp(&x).unwrap_or(Ordering::Equal)
}

/// Upper bound on the rounding difference between two sums along a path. NaN if a score is NaN or +infinity.
fn rounding_slack(l: usize, width: usize, x: &Sentence<'_>) -> f32 {
    let size = |row: &[Lane]| {
        (0..l).map(|y| row[y / WIDTH].0[y % WIDTH]).fold(0.0f32, |size, x| match x == NEG_INF {
            true => size,
            false if x.is_finite() => size.max(x.abs()),
            false => f32::NAN,
        })
    };
    let n = x.node.len() / width;
    let steps: f32 = (0..l).map(|y| size(x.steps.row(0, y))).fold(0.0, largest);
    let rows: f32 = x.rows.chunks_exact(width).take(l).map(size).fold(0.0, largest);
    let nodes: f32 = x.node.chunks_exact(width).map(size).sum();
    ROUNDING * (n + 4) as f32 * (nodes + n as f32 * (steps + rows))
}

/// The larger number, or NaN if either is NaN.
fn largest(x: f32, y: f32) -> f32 {
    match x.is_nan() || y.is_nan() {
        true => f32::NAN,
        false => x.max(y),
    }
}
