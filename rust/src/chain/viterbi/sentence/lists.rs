//! Exact k-best paths of a sentence whose chart is filled, best first, by single deviations: the sidetracks of Eppstein
//! 1998 on a chain.
//!
//! Every path except the best follows an earlier path of the list, its parent, from some cell (s, y_s) to the end. It
//! enters that cell from another label y', which it reaches by the best path:
//!
//! ```text
//! score(path) = score(parent) - gap          gap = best_s(y_s) - (delta_{s-1}(y') + A_s[y', y_s])  >=  0
//! ```
//!
//! No list is kept per cell: the predecessor that is next in order is one vector maximum over those with a lower rank.
//! Most paths soon merge into the best path, going backwards, and then share its deviations, which are computed once.
//! No path needs more than the k-1 deviations with the smallest gaps, because the best path itself takes those first.
//!
//! Ties are broken as in `kbest`: lower last label, then lower label before it, and so on.

use crate::chain::viterbi::sentence::{Chart, Steps};
use crate::machine::simd::dispatch::dispatch;
use crate::machine::simd::find::Find;
use crate::machine::simd::{Lane, WIDTH};
use crate::machine::system::stop;
use std::cmp::Ordering;

/// Number of paths between two checks for cancellation.
const CHECK_INTERVAL: usize = 256;
/// Marks a candidate that is not one of the best path's deviations.
const NOT_SHARED: u32 = u32::MAX;

/// A deviation of the best path.
#[derive(Clone, Copy)]
struct Deviation {
    gap: f32,
    arrival: Arrival,
}

/// Predecessor of the cell (at, ..), where at = T is the end, with its value delta + A.
#[derive(Clone, Copy)]
struct Arrival {
    at: u32,
    from: u16,
    value: f32,
}

/// Candidate for the next path, with its score as renormalised at the last position.
#[derive(Clone, Copy)]
struct NextPath {
    score: f64,
    parent: u32,
    deviation: u32, // index among the best path's deviations, or OWN
    arrival: Arrival,
}

/// A path of the list.
struct FoundPath {
    score: f64,
    shared: u32, // cells 0 ..= shared are those of the best path
}

/// Scratch.
#[derive(Default)]
pub(super) struct ChartLists {
    deviations: Vec<Deviation>, // smallest gap first
    found: Vec<FoundPath>,
    heap: Vec<NextPath>,
}

/// Labels [k, T] found so far, and the chart and edge scores.
struct PathContext<'a> {
    chart: &'a Chart,
    steps: &'a Steps,
    paths: &'a [u16],
}

dispatch!(
    /// Return the scores and concatenated labels of the k best paths, after every position was advanced.
    pub fn best_paths(chart: &mut Chart, steps: &Steps, k: usize, scores: &mut Vec<f64>, paths: &mut Vec<u16>) =
        |simd| chart.best_paths(simd, steps, k, scores, paths)
);

impl Chart {
    #[inline(always)]
    fn best_paths<S: Find>(&mut self, simd: S, steps: &Steps, k: usize, scores: &mut Vec<f64>, paths: &mut Vec<u16>) {
        let n = self.positions;
        scores.clear();
        paths.clear();
        if k == 0 {
            return;
        }
        paths.resize(n, 0);
        let score = self.top_path(simd, steps, paths);
        if score == f32::NEG_INFINITY {
            paths.clear();
            return;
        }
        scores.push(f64::from(score) + self.shift);
        if k == 1 || n == 0 || !score.is_finite() {
            return;
        }
        let mut lists = std::mem::take(&mut self.lists);
        lists.fill(simd, self, steps, k, score, scores, paths);
        self.lists = lists;
    }

    /// best_t(y), or at the end the score of the best path.
    #[inline(always)]
    fn value(&self, t: usize, y: usize, score: f32) -> f32 {
        match t < self.positions {
            true => self.best[t * self.width + y / WIDTH].0[y % WIDTH],
            false => score,
        }
    }

    /// Return the largest value of a predecessor of a cell that is ordered after the given one: a lower value, or an
    /// equal value from a later label. Return `None` if there is none or if `accept` rejects the value, before its
    /// label is searched.
    #[inline(always)]
    fn next_arrival<S: Find>(
        &self,
        simd: S,
        steps: &Steps,
        t: usize,
        y: usize,
        after: (f32, usize),
        accept: impl FnOnce(f32) -> bool,
    ) -> Option<Arrival> {
        let width = self.width;
        let delta = &self.delta[(t - 1) * width..t * width];
        let column = match t < self.positions {
            true => steps.column(self.block(t), y),
            false => &self.pad[..width],
        };
        let after = (simd.splat(after.0), after.1 / WIDTH, after.1 % WIDTH);
        let mut most = lane(simd, delta, column, 0, after);
        for v in 1..width {
            most = simd.max(most, lane(simd, delta, column, v, after));
        }
        let value = simd.largest(most);
        if value == f32::NEG_INFINITY || !accept(value) {
            return None;
        }
        let all = simd.splat(value);
        for v in 0..width {
            let mask = simd.equal(lane(simd, delta, column, v, after), all);
            if mask != 0 {
                let from = v * WIDTH + mask.trailing_zeros() as usize;
                return (from < self.labels).then_some(Arrival { at: t as u32, from: from as u16, value });
            }
        }
        None
    }
}

/// Lane v of the predecessors of a cell that are ordered after the given value and label, -infinity for the others. A
/// function rather than a closure, because a closure would not be compiled for the vector instruction set.
#[inline(always)]
fn lane<S: Find>(simd: S, delta: &[Lane], column: &[Lane], v: usize, (value, lane, bit): (S::F, usize, usize)) -> S::F {
    let later = match v.cmp(&lane) {
        Ordering::Less => 0,
        Ordering::Equal => !1 << bit,
        Ordering::Greater => !0,
    };
    simd.ordered_after(simd.add(simd.load(&delta[v]), simd.load(&column[v])), value, later)
}

impl ChartLists {
    /// Find all paths after the best one, which is already in the list. `top` is its score as renormalised.
    #[inline(always)]
    fn fill<S: Find>(
        &mut self,
        simd: S,
        chart: &Chart,
        steps: &Steps,
        k: usize,
        top: f32,
        scores: &mut Vec<f64>,
        paths: &mut Vec<u16>,
    ) {
        let n = chart.positions;
        self.find_deviations(simd, chart, steps, k - 1, top, paths);
        self.heap.clear();
        self.found.clear();
        self.found.push(FoundPath { score: f64::from(top), shared: n as u32 });
        self.push_shared(simd, &PathContext { chart, steps, paths }, 0, 0);
        while scores.len() < k {
            if scores.len().is_multiple_of(CHECK_INTERVAL) {
                stop::check();
            }
            let Some(new) = self.pop(simd, &PathContext { chart, steps, paths }) else { return };
            let (number, at) = (scores.len(), new.arrival.at as usize);
            paths.resize((number + 1) * n, 0);
            let (known, path) = paths.split_at_mut(number * n);
            let (best, parent) = (&known[..n], &known[new.parent as usize * n..]);
            path[at..].copy_from_slice(&parent[at..n]);
            let mut t = at - 1;
            path[t] = new.arrival.from;
            while t > 0 && path[t] != best[t] {
                path[t - 1] = chart.before(simd, steps, t, path[t] as usize) as u16;
                t -= 1;
            }
            path[..t].copy_from_slice(&best[..t]);
            self.found.push(FoundPath { score: new.score, shared: t as u32 });
            scores.push(new.score + chart.shift);
            if scores.len() == k {
                return;
            }
            let known = PathContext { chart, steps, paths };
            if new.deviation != NOT_SHARED {
                self.push_shared(simd, &known, new.parent, new.deviation + 1);
            }
            self.push_unshared(simd, &known, new.parent, at, (new.arrival.value, new.arrival.from as usize));
            for cell in t + 1..at {
                let (y, from) = (paths[number * n + cell] as usize, paths[number * n + cell - 1] as usize);
                self.push_unshared(simd, &known, number as u32, cell, (chart.value(cell, y, top), from));
            }
            self.push_shared(simd, &known, number as u32, 0);
        }
    }

    /// Find the `count` smallest gaps of the best path.
    #[inline(always)]
    fn find_deviations<S: Find>(
        &mut self,
        simd: S,
        chart: &Chart,
        steps: &Steps,
        count: usize,
        score: f32,
        best: &[u16],
    ) {
        let n = chart.positions;
        self.deviations.clear();
        let mut limit = f32::MAX;
        for t in 1..=n {
            let (y, from) = (if t < n { best[t] as usize } else { 0 }, best[t - 1]);
            let value = chart.value(t, y, score);
            let is_candidate = |other: f32| value - other <= limit;
            let Some(arrival) = chart.next_arrival(simd, steps, t, y, (value, from as usize), is_candidate) else {
                continue;
            };
            // Among equal gaps this deviation, the last so far, changes the latest label. The lower label comes first.
            let gap = value - arrival.value;
            let place = self.deviations.partition_point(|s| s.gap < gap || (s.gap == gap && arrival.from > from));
            self.deviations.insert(place, Deviation { gap, arrival });
            self.deviations.truncate(count);
            if self.deviations.len() == count {
                limit = self.deviations[count - 1].gap;
            }
        }
    }

    /// Push the next deviation that a path shares with the best one, starting at an index.
    #[inline(always)]
    fn push_shared<S: Find>(&mut self, simd: S, known: &PathContext, parent: u32, from: u32) {
        let FoundPath { score, shared } = self.found[parent as usize];
        for (deviation, s) in self.deviations.iter().enumerate().skip(from as usize) {
            if s.arrival.at <= shared {
                let score = score - f64::from(s.gap);
                self.push(simd, known, NextPath { score, parent, deviation: deviation as u32, arrival: s.arrival });
                return;
            }
        }
    }

    /// Push the predecessor of a cell of a path that is ordered after this value and label.
    #[inline(always)]
    fn push_unshared<S: Find>(&mut self, simd: S, known: &PathContext, parent: u32, t: usize, after: (f32, usize)) {
        let (chart, n) = (known.chart, known.chart.positions);
        let y = if t < n { known.paths[parent as usize * n + t] as usize } else { 0 };
        if let Some(arrival) = chart.next_arrival(simd, known.steps, t, y, after, |_| true) {
            let gap = f64::from(chart.value(t, y, self.found[0].score as f32)) - f64::from(arrival.value);
            let score = self.found[parent as usize].score - gap;
            self.push(simd, known, NextPath { score, parent, deviation: NOT_SHARED, arrival });
        }
    }

    #[inline(always)]
    fn push<S: Find>(&mut self, simd: S, known: &PathContext, new: NextPath) {
        let mut at = self.heap.len();
        self.heap.push(new);
        while at > 0 && known.precedes(simd, &new, &self.heap[(at - 1) / 2]) {
            self.heap.swap(at, (at - 1) / 2);
            at = (at - 1) / 2;
        }
    }

    #[inline(always)]
    fn pop<S: Find>(&mut self, simd: S, known: &PathContext) -> Option<NextPath> {
        if self.heap.is_empty() {
            return None;
        }
        let first = self.heap.swap_remove(0);
        let (heap, mut at) = (&mut self.heap, 0);
        while 2 * at + 1 < heap.len() {
            let mut child = 2 * at + 1;
            if child + 1 < heap.len() && known.precedes(simd, &heap[child + 1], &heap[child]) {
                child += 1;
            }
            if !known.precedes(simd, &heap[child], &heap[at]) {
                break;
            }
            heap.swap(at, child);
            at = child;
        }
        Some(first)
    }
}

impl PathContext<'_> {
    /// Whether candidate a comes before candidate b.
    #[inline(always)]
    fn precedes<S: Find>(&self, simd: S, a: &NextPath, b: &NextPath) -> bool {
        if a.score != b.score {
            return a.score > b.score;
        }
        let (mut y, mut z) = (0, 0);
        for t in (0..self.chart.positions).rev() {
            (y, z) = (self.label(simd, a, t, y), self.label(simd, b, t, z));
            if y != z {
                return y < z;
            }
        }
        false
    }

    /// Label t of a candidate whose label t + 1 is `next`.
    #[inline(always)]
    fn label<S: Find>(&self, simd: S, of: &NextPath, t: usize, next: usize) -> usize {
        let at = of.arrival.at as usize;
        if t >= at {
            self.paths[of.parent as usize * self.chart.positions + t] as usize
        } else if t + 1 == at {
            of.arrival.from as usize
        } else {
            self.chart.before(simd, self.steps, t + 1, next)
        }
    }
}
