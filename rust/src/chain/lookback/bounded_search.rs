//! The k best paths of cells of two labels by the few entries that can be on them.
//!
//! A chart of L x L cells keeps k entries in each, though a handful of labels a token are on the k best paths in the end. Here
//!
//! 1. a few labels of each token are taken for likely, by the best path of the first order through each;
//! 2. `ahead` bounds from above what may follow two labels, of which the first is told apart only where it is likely: of
//!    F_2[y_{t-2}, y_t] the others have the largest weight that one of them has. Whatever goes through likely labels alone is bounded by
//!    itself, and the rest pays for unlikely labels in full (with no label told apart, half of all entries were left);
//! 3. a beam, ranked by score + ahead, finds k whole paths. The last of them scores B: the k-th best path scores B or more;
//! 4. the exact search keeps the entries with score + ahead >= B alone, as a list. No path among the k best has any other.
//!
//! What is left out has no part in the lists of the cells of those paths either, and entries come in the order of the chart and add up the
//! same numbers in the same order: scores, paths and ties are those of the chart. Rounding may part bound and score: `slack` is
//! more than it can be. Where too many entries are left (weights of 0 tell no path from another) the chart is the faster way. It also takes the
//! sentences whose scores it renormalises: the best entry of a token need not be among those that are kept here.

use crate::chain::lookback::search::Sentence;
use crate::chain::lookback::Lookback;
use crate::chain::viterbi::renormalize;
use crate::machine::simd::find::Find;
use crate::machine::simd::{Lane, WIDTH};
use std::cmp::Ordering;

const NEVER: f32 = f32::NEG_INFINITY;
/// Entries of a token beyond which the chart is faster.
const MOST: usize = 1024;
/// Labels of a token that are told apart as the first of two: with 4 of 41, two cells a token were left, with all 1.3 would be.
const LIKELY: usize = 4;
/// Paths of the beam, besides two for each of the k.
const BEAM: usize = 6;
/// Four sums of n terms on either side, each off by at most half of 2^-23 of the largest partial sum; and as much to spare.
const ROUNDING: f32 = 1e-6;

/// A path that ends in two labels.
#[derive(Clone, Copy, Debug)]
struct PathEntry {
    score: f32,
    raw: f32, // without the node score of its token: what entries of a cell are ordered by
    back: u32,
    before: u16,
    label: u16,
}

/// A path of the beam.
#[derive(Clone, Copy, Debug)]
struct BeamPath {
    most: f32, // score + ahead
    score: f32,
    before: u16,
    label: u16,
}

/// Scratch for one sentence at a time.
#[derive(Default)]
pub struct BoundedSearch {
    ahead: Vec<Lane>, // [T, LIKELY + 1, width] of the label before, likely ones and the others, and the label
    class: Vec<u8>,   // [T, L] which of the likely ones a label is, LIKELY for the others
    likely: Vec<usize>, // [T, LIKELY], fewer where there are fewer labels
    rows: Vec<Lane>,  // [LIKELY + 1, width] F_2 of the likely labels, and the largest of the others
    through: Vec<Lane>, // [T, width] of the first order: best paths up to a label, then through it
    after: Vec<Lane>, // [width]
    row: Vec<Lane>,   // [width]
    kept: Vec<BeamPath>,
    next: Vec<BeamPath>,
    entries: Vec<PathEntry>, // token after token
    begin: Vec<usize>,       // [T + 1]
    best: Vec<(f32, usize)>,
}

impl BoundedSearch {
    /// Whether the terms are those of this search: cells of two labels, features on the label two tokens back and no others.
    pub fn serves(terms: &Lookback) -> bool {
        terms.cell == 2 && terms.far == 2 && !terms.endless && !terms.tuples
    }

    /// The k best paths, as `Search::run` has them; false where the chart is to find them.
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
        let slack = slack(l, width, x);
        if !(3..=renormalize::FIRST).contains(&n) || !slack.is_finite() {
            return false;
        }
        self.choose(simd, l, width, x);
        self.look_ahead(simd, l, width, x);
        let Some(least) = self.kth_of_beam(simd, l, width, x, k) else { return false };
        if !self.follow(simd, l, width, x, k, least - slack) {
            return false;
        }
        self.finish(k, n, scores, paths);
        true
    }

    /// The likely labels of each token: those whose best paths of the first order are best.
    #[inline(always)]
    fn choose<S: Find>(&mut self, simd: S, l: usize, width: usize, x: &Sentence<'_>) {
        let n = x.node.len() / width;
        self.through.clear();
        self.through.extend_from_slice(&x.node[..n * width]);
        self.row.resize(width, Lane::ZERO);
        self.after.clear();
        self.after.resize(width, Lane::ZERO);
        for t in 1..n {
            let (before, here) = self.through[(t - 1) * width..(t + 1) * width].split_at_mut(width);
            self.row.fill(Lane([NEVER; WIDTH]));
            best_of(simd, before, l, |b| x.steps.row(0, b), &mut self.row);
            for (here, best) in here.iter_mut().zip(&self.row) {
                simd.store(simd.add(simd.load(here), simd.load(best)), here);
            }
        }
        for t in (0..n).rev() {
            for v in 0..width {
                let (through, after) = (&mut self.through[t * width + v], &mut self.after[v]);
                simd.store(simd.add(simd.load(through), simd.load(after)), through);
                simd.store(simd.add(simd.load(after), simd.load(&x.node[t * width + v])), after);
            }
            self.row.fill(Lane([NEVER; WIDTH]));
            best_of(simd, &self.after, l, |c| x.steps.column(0, c), &mut self.row);
            std::mem::swap(&mut self.row, &mut self.after);
        }
        let few = LIKELY.min(l);
        self.likely.clear();
        self.class.clear();
        self.class.resize(n * l, LIKELY as u8);
        for (t, row) in self.through.chunks_exact(width).enumerate() {
            let mut best = [(NEVER, 0); LIKELY];
            for y in 0..l {
                // The first few take places whatever they score: the likely labels are distinct.
                let (score, known) = (row[y / WIDTH].0[y % WIDTH], y.min(few));
                let place = best[..known].iter().position(|b| score > b.0).unwrap_or(known);
                if place < few {
                    best[place..few].rotate_right(1);
                    best[place] = (score, y);
                }
            }
            for (i, b) in best[..few].iter().enumerate() {
                self.class[t * l + b.1] = i as u8;
                self.likely.push(b.1);
            }
        }
    }

    /// At most what follows a label and the class of the one before it:
    ///
    /// ```text
    /// ahead_t(a, b) = max_c A[b, c] + F_2[a, c] + s_{t+1}(c) + ahead_{t+1}(class of b, c)
    /// ```
    ///
    /// Labels b of no class of their own are bounded side by side, the others one by one.
    #[inline(always)]
    fn look_ahead<S: Find>(&mut self, simd: S, l: usize, width: usize, x: &Sentence<'_>) {
        let (n, few, block) = (x.node.len() / width, LIKELY.min(l), (LIKELY + 1) * width);
        self.ahead.clear();
        self.ahead.resize(n * block, Lane([NEVER; WIDTH]));
        for (i, lane) in self.ahead[(n - 1) * block..].iter_mut().enumerate() {
            lane.0[..(l - i % width * WIDTH).min(WIDTH)].fill(0.0);
        }
        for t in (0..n - 1).rev() {
            let classes = if t == 0 { 1 } else { LIKELY + 1 };
            self.weigh(simd, l, width, x, t);
            let (here, after) = self.ahead[t * block..(t + 2) * block].split_at_mut(block);
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
            for (i, &b) in self.likely[t * few..(t + 1) * few].iter().enumerate() {
                let own = &after[i * width..(i + 1) * width];
                for (v, row) in self.row.iter_mut().enumerate() {
                    let sum = simd.add(simd.load(&node[v]), simd.load(&own[v]));
                    simd.store(simd.add(sum, simd.load(&x.steps.row(0, b)[v])), row);
                }
                for class in 0..classes {
                    let mut most = simd.splat(NEVER);
                    for (v, row) in self.row.iter().enumerate() {
                        most = simd.max(most, simd.add(simd.load(row), simd.load(&self.rows[class * width + v])));
                    }
                    here[class * width + b / WIDTH].0[b % WIDTH] = simd.largest(most);
                }
            }
        }
    }

    /// F_2 of the label before t by its class; 0 where there is none.
    #[inline(always)]
    fn weigh<S: Find>(&mut self, simd: S, l: usize, width: usize, x: &Sentence<'_>, t: usize) {
        self.rows.clear();
        if t == 0 {
            self.rows.resize(width, Lane::ZERO);
            return;
        }
        self.rows.resize((LIKELY + 1) * width, Lane([NEVER; WIDTH]));
        for a in 0..l {
            let class = self.class[(t - 1) * l + a] as usize * width;
            for (most, row) in self.rows[class..class + width].iter_mut().zip(&x.rows[a * width..]) {
                simd.store(simd.max(simd.load(most), simd.load(row)), most);
            }
        }
    }

    /// The score of the k-th of the paths that a beam finds; none where it has fewer.
    #[inline(always)]
    fn kth_of_beam<S: Find>(&mut self, simd: S, l: usize, width: usize, x: &Sentence<'_>, k: usize) -> Option<f32> {
        let (n, room) = (x.node.len() / width, 2 * k + BEAM);
        self.kept.clear();
        self.kept.push(BeamPath { most: 0.0, score: 0.0, before: 0, label: 0 });
        for t in 0..n {
            self.next.clear();
            for kept in &self.kept {
                let ahead = ahead_of(&self.ahead, &self.class, (l, width), t, kept.label);
                for v in 0..width {
                    let sum = match t {
                        0 => simd.load(&x.node[v]),
                        _ => reached(simd, x, width, v, t, kept.score, (kept.before, kept.label)).1,
                    };
                    let most = simd.add(sum, simd.load(&ahead[v]));
                    let floor = if self.next.len() < room { NEVER } else { self.next[room - 1].most };
                    let mut bits = above(simd, most, simd.splat(floor));
                    if bits == 0 {
                        continue;
                    }
                    let (mut sums, mut mosts) = (Lane::ZERO, Lane::ZERO);
                    simd.store(sum, &mut sums);
                    simd.store(most, &mut mosts);
                    while bits != 0 {
                        let i = bits.trailing_zeros() as usize;
                        bits &= bits - 1;
                        let (most, label) = (mosts.0[i], (v * WIDTH + i) as u16);
                        if self.next.len() == room {
                            if most <= self.next[room - 1].most {
                                continue;
                            }
                            self.next.pop();
                        }
                        let place = self.next.partition_point(|kept| kept.most >= most);
                        self.next.insert(place, BeamPath { most, score: sums.0[i], before: kept.label, label });
                    }
                }
            }
            std::mem::swap(&mut self.kept, &mut self.next);
        }
        self.kept.get(k - 1).map(|kept| kept.score)
    }

    /// All entries that may be on a path of at least this score; false where they are too many.
    #[inline(always)]
    fn follow<S: Find>(&mut self, simd: S, l: usize, width: usize, x: &Sentence<'_>, k: usize, least: f32) -> bool {
        let n = x.node.len() / width;
        let BoundedSearch { ahead, class, entries, begin, .. } = self;
        entries.clear();
        begin.clear();
        begin.push(0);
        for y in 0..l {
            let score = x.node[y / WIDTH].0[y % WIDTH];
            if score + ahead[y / WIDTH].0[y % WIDTH] >= least {
                entries.push(PathEntry { score, raw: score, back: 0, before: 0, label: y as u16 });
            }
        }
        let least = simd.splat(least);
        for t in 1..n {
            let (first, end) = (begin[t - 1], entries.len());
            for e in first..end {
                let PathEntry { score, before, label, .. } = entries[e];
                let ahead = ahead_of(ahead, class, (l, width), t, label);
                for v in 0..width {
                    let (raw, sum) = reached(simd, x, width, v, t, score, (before, label));
                    let most = simd.add(sum, simd.load(&ahead[v]));
                    let mut bits = !above(simd, least, most) & labels_of(l, v);
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
                if entries.len() - end > MOST {
                    return false;
                }
            }
            begin.push(end);
            // As the chart has them: cell by cell, best first, equals in their order.
            entries[end..].sort_by(|x, y| (x.before, x.label).cmp(&(y.before, y.label)).then(by_size(x.raw, y.raw)));
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

    /// The best entries of the last token and their paths: the lower last label first, then the one before it.
    fn finish(&mut self, k: usize, n: usize, scores: &mut Vec<f64>, paths: &mut Vec<u16>) {
        let last = self.begin[n - 1]..self.begin[n];
        self.best.clear();
        self.best.extend(last.map(|e| (self.entries[e].score, e)));
        let entries = &self.entries;
        let place = |e: usize| (entries[e].label, entries[e].before, e);
        self.best.sort_unstable_by(|x, y| by_size(x.0, y.0).then_with(|| place(x.1).cmp(&place(y.1))));
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

/// The row of `ahead` at t behind a label.
#[inline(always)]
fn ahead_of<'a>(ahead: &'a [Lane], class: &[u8], (l, width): (usize, usize), t: usize, label: u16) -> &'a [Lane] {
    let class = if t == 0 { 0 } else { class[(t - 1) * l + label as usize] as usize };
    let at = (t * (LIKELY + 1) + class) * width;
    &ahead[at..at + width]
}

/// The largest of from(k) + rows(k) over the labels k, of each label.
#[inline(always)]
fn best_of<'a, S: Find>(simd: S, from: &[Lane], l: usize, rows: impl Fn(usize) -> &'a [Lane], out: &mut [Lane]) {
    for k in 0..l {
        let from = from[k / WIDTH].0[k % WIDTH];
        if from == NEVER {
            continue;
        }
        let from = simd.splat(from);
        for (out, row) in out.iter_mut().zip(rows(k)) {
            simd.store(simd.max(simd.load(out), simd.add(from, simd.load(row))), out);
        }
    }
}

/// A lane of what an entry reaches at t, before and after the node scores: the sums of the chart, in its order.
#[inline(always)]
fn reached<S: Find>(
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

/// Which numbers of a lane are larger than those of another; none of those that are no number.
#[inline(always)]
fn above<S: Find>(simd: S, x: S::F, other: S::F) -> u32 {
    let one = simd.splat(1.0);
    simd.equal(simd.select_gt(x, other, one, simd.splat(0.0)), one)
}

/// The bits of a lane that stand for labels.
fn labels_of(l: usize, v: usize) -> u32 {
    (1 << (l - v * WIDTH).min(WIDTH)) - 1
}

/// The larger number first.
fn by_size(x: f32, y: f32) -> Ordering {
    y.partial_cmp(&x).unwrap_or(Ordering::Equal)
}

/// More than rounding can part two sums along a path; no number where a score is none.
fn slack(l: usize, width: usize, x: &Sentence<'_>) -> f32 {
    let size = |row: &[Lane]| {
        (0..l).map(|y| row[y / WIDTH].0[y % WIDTH]).fold(0.0f32, |size, x| match x == NEVER {
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

/// The larger; no number where one is none.
fn largest(x: f32, y: f32) -> f32 {
    match x.is_nan() || y.is_nan() {
        true => f32::NAN,
        false => x.max(y),
    }
}
