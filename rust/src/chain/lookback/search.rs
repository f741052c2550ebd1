//! Search with hypothesised history: the k best paths that cells of m labels can distinguish.
//!
//! The entries of a cell are paths that end in its m labels, best first. An entry reaches a cell of the next token with
//!
//! ```text
//! score + A[y_{t-1}, y] + sum_{q=2..p} F_q[y_{t-q}, y] + sum_{u: same word} R[y_u, y] + tuples,   then + s_t(y)
//! ```
//! where every label further back is taken from the entry's own path. All labels y form one row of lanes, and a row is
//! merged into the k rows of its cell by k comparisons. With m >= p this is exact Viterbi. With m < p each entry
//! represents only its winning prefix, as in the paper. Cost per token: cells x k x (p + k) rows, less if `RowBounds`
//! excludes an entry from all lists beforehand. If there are only first-order features, `Chart` finds the lists. With m
//! = p = 2 `BoundedSearch` does, if few entries can be on the best paths.
//!
//! Ties: the lower dropped label wins, then its better prefix. At the end, the lower last label, then the lower label
//! before it.

use crate::chain::lookback::bounded_search::BoundedSearch;
use crate::chain::lookback::bounds::{none_above, RowBounds};
use crate::chain::lookback::Lookback;
use crate::chain::viterbi::renormalize;
use crate::chain::viterbi::sentence::{advance_all, best_paths, Chart, Steps};
use crate::machine::simd::dispatch::dispatch;
use crate::machine::simd::find::Find;
use crate::machine::simd::{Lane, WIDTH};
use crate::machine::system::budget;
use crate::machine::system::stop;
use crate::machine::system::testing::{self, CodePath};

/// Rows of cells between two checks for cancellation.
const CHECK_INTERVAL: usize = 256;
const NEG_INF: f32 = f32::NEG_INFINITY;

/// Scores of one sentence.
#[derive(Clone, Copy)]
pub struct Sentence<'a> {
    pub node: &'a [Lane], // [T, width], lanes after the last label are not read
    pub steps: &'a Steps, // one block of edge scores for all positions
    pub rows: &'a [Lane], // [rows, width] weights of the terms
    pub same: &'a [u32],  // [T] distance to the previous token with the same word, 0 if none, empty without documents
}

/// Cell at t-1 and the target of its entries.
#[derive(Clone, Copy)]
struct CellStep {
    prefix: usize,
    below: usize, // prefix without the dropped label
    label: usize,
    target: usize, // row of cells at t
    depth: usize,
    lookback_depth: usize, // how many labels back the features look
    bounded: bool,
}

/// Scratch for one sentence at a time.
pub struct Search {
    terms: Lookback,
    width: usize,
    k: usize,
    positions: usize,
    current: Vec<Lane>, // [cells / L, k, width] scores of the entries at t
    before: Vec<Lane>,  // scores of the entries at t-1
    back: Vec<Lane>,    // [T, cells / L, k, width] index of the entry at t-1
    row: Vec<Lane>,     // [width]
    pad: Vec<Lane>,     // [width] 0, -infinity after the last label
    labels: Vec<u16>,   // of the current entry, last first
    best: Vec<(f32, usize)>,
    shift: f64, // total subtracted by renormalising so far
    row_bounds: RowBounds,
    bounded_search: BoundedSearch,
    chart: Chart, // first-order chart
}

impl Search {
    pub fn new(terms: Lookback) -> Search {
        let width = terms.width();
        let mut pad = vec![Lane([NEG_INF; WIDTH]); width];
        for y in 0..terms.labels {
            pad[y / WIDTH].0[y % WIDTH] = 0.0;
        }
        Search {
            terms,
            width,
            k: 1,
            positions: 0,
            current: Vec::new(),
            before: Vec::new(),
            back: Vec::new(),
            row: vec![Lane::ZERO; width],
            pad,
            labels: Vec::new(),
            best: Vec::new(),
            shift: 0.0,
            row_bounds: RowBounds::default(),
            bounded_search: BoundedSearch::default(),
            chart: Chart::new(terms.labels),
        }
    }

    pub fn terms(&self) -> &Lookback {
        &self.terms
    }

    /// Number of rows of cells at position t. The cells of a row differ only in their last label.
    fn prefixes(&self, t: usize) -> usize {
        self.terms.labels.pow(self.terms.cell.min(t + 1) as u32 - 1)
    }

    /// Bytes that a search for k paths needs for a sentence of `positions` tokens.
    pub fn bytes(terms: &Lookback, k: usize, positions: usize) -> usize {
        let cells = budget::power(terms.labels, terms.cell - 1, usize::MAX);
        budget::bytes(&[cells, k.max(1), terms.width(), positions.saturating_add(2), size_of::<Lane>()])
    }

    fn stride(&self) -> usize {
        self.terms.labels.pow(self.terms.cell as u32 - 1) * self.k * self.width
    }

    /// Find the k best paths, or fewer if fewer exist: their scores and their concatenated labels.
    #[inline(always)]
    pub(crate) fn run<S: Find>(
        &mut self,
        simd: S,
        x: &Sentence<'_>,
        k: usize,
        scores: &mut Vec<f64>,
        paths: &mut Vec<u16>,
    ) {
        self.k = k.max(1);
        let n = x.node.len() / self.width;
        self.positions = n;
        scores.clear();
        paths.clear();
        if k == 0 {
            return;
        }
        if n == 0 {
            scores.push(0.0);
            return;
        }
        if self.terms.far == 1 && !self.terms.tuples && x.same.is_empty() && !testing::is_forced(CodePath::Broad) {
            self.chart.begin(n, false);
            self.chart.node[..n * self.width].copy_from_slice(x.node);
            advance_all(&mut self.chart, x.steps, None);
            return best_paths(&mut self.chart, x.steps, k, scores, paths);
        }
        if BoundedSearch::supports(&self.terms)
            && x.same.is_empty()
            && !testing::is_forced(CodePath::Broad)
            && self.bounded_search.run(simd, &self.terms, x, k, scores, paths)
        {
            return;
        }
        let stride = self.stride();
        if self.current.len() < stride {
            self.current.resize(stride, Lane::ZERO);
            self.before.resize(stride, Lane::ZERO);
        }
        if self.back.len() < stride * n {
            self.back.resize(stride * n, Lane::ZERO);
        }
        self.labels.resize(n.max(self.labels.len()), 0);
        if n > self.terms.cell && RowBounds::supports(&self.terms) {
            self.row_bounds.begin(&self.terms, x.steps, x.rows);
        }
        self.shift = 0.0;
        for t in 0..n {
            std::mem::swap(&mut self.current, &mut self.before);
            let filled = self.prefixes(t) * self.k * self.width;
            self.current[..filled].fill(Lane([NEG_INF; WIDTH]));
            if t == 0 {
                for v in 0..self.width {
                    simd.store(simd.add(simd.load(&x.node[v]), simd.load(&self.pad[v])), &mut self.current[v]);
                }
                continue;
            }
            self.step(simd, x, t);
            for (i, s) in self.current[..filled].iter_mut().enumerate() {
                simd.store(simd.add(simd.load(s), simd.load(&x.node[t * self.width + i % self.width])), s);
            }
            if renormalize::is_due(t) {
                self.shift += renormalize::labels(simd, &mut self.current[..filled]);
            }
        }
        self.finish(scores, paths);
    }

    /// Extend every entry at t-1 into the cells at t.
    #[inline(always)]
    fn step<S: Find>(&mut self, simd: S, x: &Sentence<'_>, t: usize) {
        let (terms, width, k) = (self.terms, self.width, self.k);
        let l = terms.labels;
        let full = t >= terms.cell;
        let n_targets = l.pow(terms.cell.saturating_sub(2) as u32);
        let depth = terms.depth(t);
        let repeated = !x.same.is_empty() && x.same[t] != 0;
        let mut lookback_depth = if depth >= 2 { depth } else { 1 };
        if repeated {
            let mut u = t;
            while x.same[u] != 0 {
                u -= x.same[u] as usize;
            }
            lookback_depth = lookback_depth.max(t - u);
        }
        let bounded = full && depth >= 2 && !repeated && RowBounds::supports(&terms);
        if bounded {
            self.row_bounds.compute_floors(simd, &terms, &self.before, k, depth);
        }
        for prefix in 0..self.prefixes(t - 1) {
            if prefix % CHECK_INTERVAL == 0 {
                stop::check();
            }
            let below = match full && terms.cell > 1 {
                true => prefix % n_targets,
                false => prefix,
            };
            for v in 0..width {
                let lane = &self.before[prefix * k * width + v];
                let mut labels = match bounded {
                    true => self.row_bounds.select_entries(simd, prefix, below, v, (k, width), lane),
                    false => (1 << WIDTH) - 1,
                };
                while labels != 0 {
                    let label = v * WIDTH + labels.trailing_zeros() as usize;
                    labels &= labels - 1;
                    if label >= l {
                        break;
                    }
                    let target = if terms.cell == 1 { 0 } else { below * l + label };
                    self.extend_cell(
                        simd,
                        x,
                        t,
                        CellStep { prefix, below, label, target, depth, lookback_depth, bounded },
                    );
                }
            }
        }
    }

    /// Extend the entries of one cell at t-1 into the cells that they reach.
    #[inline(always)]
    fn extend_cell<S: Find>(&mut self, simd: S, x: &Sentence<'_>, t: usize, cell: CellStep) {
        let CellStep { prefix, below, label, target, depth, lookback_depth, bounded } = cell;
        let (terms, width, k, stride) = (self.terms, self.width, self.k, self.stride());
        let (l, repeated) = (terms.labels, !x.same.is_empty() && x.same[t] != 0);
        let (v, bit) = (label / WIDTH, label % WIDTH);
        for rank in 0..k {
            let at = (prefix * k + rank) * width + v;
            let (entry, base) = (at * WIDTH + bit, self.before[at].0[bit]);
            if base == NEG_INF {
                break;
            }
            // The entries of a cell are sorted, so the remaining ones are in no list either.
            if rank > 0
                && bounded
                && self.row_bounds.select_entries(simd, prefix, below, v, (k, width), &self.before[at]) >> bit & 1 == 0
            {
                break;
            }
            let edge = x.steps.row(0, label);
            if lookback_depth > 1 || repeated || terms.tuples {
                self.labels[0] = label as u16;
                let mut at = entry;
                for q in 2..=lookback_depth {
                    at = self.back[(t - q + 1) * stride + at / WIDTH].0[at % WIDTH] as usize;
                    self.labels[q - 1] = (at % (width * WIDTH)) as u16;
                }
                self.row.copy_from_slice(edge);
                for q in 2..=depth {
                    let row = terms.far_row(q, self.labels[q - 1] as usize) * width;
                    add(simd, &mut self.row, &x.rows[row..row + width]);
                }
                if repeated {
                    let mut u = t;
                    while x.same[u] != 0 {
                        u -= x.same[u] as usize;
                        let row = terms.repeat_row(self.labels[t - u - 1] as usize) * width;
                        add(simd, &mut self.row, &x.rows[row..row + width]);
                    }
                }
                if terms.tuples {
                    // The digits of the cell's number are the labels before the token.
                    let cell = prefix * l + label;
                    for n in 2..=terms.cell.min(t) {
                        let row = terms.tuple_row(n, cell % l.pow(n as u32)) * width;
                        add(simd, &mut self.row, &x.rows[row..row + width]);
                    }
                }
            } else {
                self.row.copy_from_slice(edge);
            }
            self.merge(simd, t * stride, target, base, entry);
        }
    }

    /// Merge the row of an entry, plus its score, into the k sorted rows of a cell.
    #[inline(always)]
    fn merge<S: Find>(&mut self, simd: S, back: usize, target: usize, base: f32, entry: usize) {
        let (width, k) = (self.width, self.k);
        for v in 0..width {
            let x = simd.add(simd.splat(base), simd.load(&self.row[v]));
            let e = simd.splat(entry as f32);
            // From last to first, comparing each with the one above, so that ties keep their order.
            let mut at = (target * k + k - 1) * width + v;
            let mut s = simd.load(&self.current[at]);
            if none_above(simd, x, s) {
                continue;
            }
            let mut b = simd.load(&self.back[back + at]);
            for _ in 1..k {
                let (above, from) = (simd.load(&self.current[at - width]), simd.load(&self.back[back + at - width]));
                let (here, its_entry) = (simd.select_gt(x, s, x, s), simd.select_gt(x, s, e, b));
                simd.store(simd.select_gt(x, above, above, here), &mut self.current[at]);
                simd.store(simd.select_gt(x, above, from, its_entry), &mut self.back[back + at]);
                (s, b) = (above, from);
                at -= width;
            }
            simd.store(simd.select_gt(x, s, x, s), &mut self.current[at]);
            simd.store(simd.select_gt(x, s, e, b), &mut self.back[back + at]);
        }
    }

    /// Append the best entries of the last token and their paths.
    fn finish(&mut self, scores: &mut Vec<f64>, paths: &mut Vec<u16>) {
        let (n, l, k, width) = (self.positions, self.terms.labels, self.k, self.width);
        let (prefixes, digits) = (self.prefixes(n - 1), self.terms.cell.min(n) - 1);
        self.best.clear();
        for label in 0..l {
            for number in 0..prefixes {
                // The label before the last is the slowest digit.
                let (mut prefix, mut rest) = (0, number);
                for _ in 0..digits {
                    prefix = prefix * l + rest % l;
                    rest /= l;
                }
                for rank in 0..k {
                    let entry = ((prefix * k + rank) * width + label / WIDTH) * WIDTH + label % WIDTH;
                    let score = self.current[entry / WIDTH].0[entry % WIDTH];
                    let full = self.best.len() == k;
                    // NaN and infinity pass through, because the caller checks the first score.
                    if score == NEG_INF || (full && score <= self.best[k - 1].0) {
                        break;
                    }
                    if full {
                        self.best.pop();
                    }
                    let place = self.best.partition_point(|b| b.0 >= score);
                    self.best.insert(place, (score, entry));
                }
            }
        }
        let stride = self.stride();
        for &(score, entry) in &self.best {
            scores.push(f64::from(score) + self.shift);
            let begin = paths.len();
            paths.resize(begin + n, 0);
            let mut at = entry;
            for t in (0..n).rev() {
                paths[begin + t] = (at % (width * WIDTH)) as u16;
                if t > 0 {
                    at = self.back[t * stride + at / WIDTH].0[at % WIDTH] as usize;
                }
            }
        }
    }
}

#[inline(always)]
fn add<S: Find>(simd: S, row: &mut [Lane], more: &[Lane]) {
    for (a, b) in row.iter_mut().zip(more) {
        simd.store(simd.add(simd.load(a), simd.load(b)), a);
    }
}

/// Score of a path in double precision.
pub fn score(terms: &Lookback, x: &Sentence<'_>, path: &[u16]) -> f64 {
    let width = terms.width();
    let get = |lanes: &[Lane], row: usize, y: usize| f64::from(lanes[row * width + y / WIDTH].0[y % WIDTH]);
    let mut sum = 0.0;
    for (t, &y) in path.iter().enumerate() {
        let y = y as usize;
        if t > 0 {
            sum += f64::from(x.steps.get(0, path[t - 1] as usize, y));
        }
        terms.at(path, t, x.same, |row| sum += get(x.rows, row, y));
        sum += get(x.node, t, y);
    }
    sum
}

dispatch!(
    /// Find the k best paths of one sentence.
    pub fn search(search: &mut Search, x: &Sentence<'_>, k: usize, scores: &mut Vec<f64>, paths: &mut Vec<u16>) =
        |simd| search.run(simd, x, k, scores, paths)
);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::system::shuffle::Generator;

    /// Every path with its score, best first, then by the last label, the one before it, and so on.
    fn all(terms: &Lookback, x: &Sentence<'_>) -> Vec<(f64, Vec<u16>)> {
        let (l, n) = (terms.labels, x.node.len() / terms.width());
        let path = |number: usize| (0..n).map(|t| (number / l.pow(t as u32) % l) as u16).collect::<Vec<_>>();
        let mut found: Vec<_> = (0..l.pow(n as u32)).map(path).map(|path| (score(terms, x, &path), path)).collect();
        found.retain(|f| f.0 > f64::NEG_INFINITY);
        found.sort_by(|a, b| b.0.total_cmp(&a.0));
        found
    }

    /// Whole numbers add exactly and tie often. If features look no further back than a cell, lists equal those of all
    /// paths.
    #[test]
    fn lists_agree_with_enumeration() {
        let mut noise = Generator::new(11, 0, 0);
        for round in 0..120u64 {
            let cell = 1 + noise.below(3) as usize;
            let far = 1 + noise.below(cell as u64) as usize;
            let n = 1 + noise.below(5) as usize;
            let labels = if n < 4 { [2, 5, 17][noise.below(3) as usize] } else { 1 + noise.below(5) as usize };
            let terms = Lookback { labels, cell, far, endless: false, document: false, tuples: round % 5 == 0 };
            let (width, spread) = (terms.width(), [1.0, 9.0][round as usize % 2]);
            let mut draw = |spread: f32, forbid: u64| match noise.below(10) {
                x if x < forbid => NEG_INF,
                _ => (noise.below(5) as f32 - 2.0) * spread,
            };
            // Lanes after the last label must not be used as scores.
            let mut node = vec![Lane([1e9; WIDTH]); n * width];
            let mut rows = vec![Lane::ZERO; terms.rows() * width];
            let mut steps = Steps::new(labels);
            for i in 0..n * labels {
                node[i / labels * width + i % labels / WIDTH].0[i % labels % WIDTH] = draw(spread, round % 3);
            }
            for i in 0..labels * labels {
                steps.set(0, i / labels, i % labels, draw(1.0, round / 4 % 2));
            }
            for i in 0..terms.len() {
                rows[i / labels * width + i % labels / WIDTH].0[i % labels % WIDTH] = draw(1.0, 0);
            }
            let x = Sentence { node: &node, steps: &steps, rows: &rows, same: &[] };
            let want = all(&terms, &x);
            for ways in ["", "broad", "avx2", "baseline"] {
                for k in [1, 2, 5, 40] {
                    let (mut scores, mut paths) = (Vec::new(), Vec::new());
                    testing::with(ways, || search(&mut Search::new(terms), &x, k, &mut scores, &mut paths));
                    let kept = &want[..k.min(want.len())];
                    assert_eq!(paths, kept.iter().flat_map(|f| f.1.clone()).collect::<Vec<_>>(), "{round} {k} {ways}");
                    assert_eq!(scores, kept.iter().map(|f| f.0).collect::<Vec<_>>(), "{round} {k} {ways}");
                }
            }
        }
    }
}
