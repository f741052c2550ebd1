//! Cells: the sentences of a feature that share a range of u_ik. Most labels of a sentence are not gold, and an
//! attribute has the same range for all of them. Their cells are contiguous as a row, one row for every total of the
//! attribute in a sentence, and a sentence is added to them as a vector. The gold labels at an attribute's tokens have
//! cells of their own. Edges have one row for every sentence length, and separate cells for the edges of the gold
//! path. With the pointwise loss gold labels have the range of all others, and no cells of their own.

use crate::dataset::layout::Layout;
use crate::dataset::Dataset;
use crate::error::{Error, Result};
use crate::learners::boosting::bound::Range;
use crate::learners::boosting::chain::BLOCK;
use crate::learners::boosting::index::{chain_range, kind, Index};
use crate::learners::boosting::loss::{Boosted, Target};
use crate::machine::system::stop;
use std::collections::HashMap;

/// Number of features in a block, the unit for which changes are recorded.
pub const FEATURES: usize = 16;
/// No cell: the attribute has no feature with the label.
pub const NONE: u32 = u32::MAX;

/// Cells of a feature: `rows` of them, a stride apart, then `separate` contiguous ones.
#[derive(Clone, Copy, Debug)]
struct FeatureCells {
    at: u32,
    stride: u32,
    rows: u32,
    separate_at: u32,
    separate: u32,
}

pub struct RangeCells {
    place: Vec<FeatureCells>, // [features]
    pub range: Vec<Range>,
    /// First cell of the row of each entry: one column per label, or one for each label of its attribute.
    pub row: Vec<u32>, // [entries]
    /// Whether an attribute's rows have a column for every label, padded.
    pub dense: Vec<bool>, // [A]
    /// Gold labels of each entry and their cells, in space for one per token, NONE after the last.
    pub gold: Vec<(u32, u32)>, // [occurrences] label, cell
    /// First cell of the row of each sentence's edges, one column per edge feature. NONE if the sentence has no edge.
    pub edge_row: Vec<u32>, // [N]
    /// Edge features of each sentence's gold path, each once, and their cells. Those of s begin at edge_ptr[s].
    pub edge_gold: Vec<(u32, u32)>,
    pub edge_ptr: Vec<u32>, // [N + 1]
    /// First of the cells of starts and ends, two per feature: the label is not gold, the label is gold.
    pub ends_at: usize,
    tight: bool,
    target: Target,
}

impl RangeCells {
    /// One cell per feature, in their order: the union of its ranges over all sentences.
    pub fn loose(data: &Dataset, layout: &Layout, index: &Index, target: Target) -> RangeCells {
        let mut range = vec![Range { a: 0.0, b: 0.0 }; layout.len()];
        let extend_range = |to: &mut Range, with: Range| *to = Range { a: to.a.max(with.a), b: to.b.max(with.b) };
        let mut sums = Ranges::new(layout.labels);
        for (e, &a) in index.attribute.iter().enumerate() {
            let (first, labels) = layout.node(a);
            sums.collect(index, &data.gold, e);
            for (j, &y) in labels.iter().enumerate() {
                extend_range(&mut range[first + j], target.range(sums.of(y as usize)));
            }
            sums.clear(index, &data.gold, e);
        }
        for k in layout.n_node()..layout.len() {
            let kind = kind(layout, k);
            for s in 0..data.len() {
                extend_range(&mut range[k], target.range(chain_range(data, kind, s)));
            }
        }
        let one = |k| FeatureCells { at: 0, stride: 0, rows: 0, separate_at: k, separate: 1 };
        RangeCells {
            place: (0..layout.len() as u32).map(one).collect(),
            range,
            row: index.attribute.iter().map(|&a| layout.node(a).0 as u32).collect(),
            dense: vec![false; layout.attributes],
            gold: Vec::new(),
            edge_row: Vec::new(),
            edge_gold: Vec::new(),
            edge_ptr: Vec::new(),
            ends_at: 0,
            tight: false,
            target,
        }
    }

    /// One cell for every distinct range of a feature over the sentences.
    pub fn tight(data: &Dataset, layout: &Layout, index: &Index, target: Target) -> Result<RangeCells> {
        let padded = layout.labels.next_multiple_of(BLOCK);
        let mut out = RangeCells {
            place: Vec::with_capacity(layout.len()),
            range: Vec::new(),
            row: vec![0; index.attribute.len()],
            dense: Vec::with_capacity(layout.attributes),
            gold: vec![(0, NONE); index.token.len()],
            edge_row: Vec::with_capacity(data.len()),
            edge_gold: Vec::new(),
            edge_ptr: vec![0],
            ends_at: 0,
            tight: true,
            target,
        };
        let mut sums = Ranges::new(layout.labels);
        let mut rows = DistinctRanges::default();
        let mut found: Vec<DistinctRanges> = Vec::new();
        let mut column = vec![NONE; layout.labels];
        let (mut count, mut separate_count): (Vec<u32>, Vec<u32>) = (Vec::new(), Vec::new());
        for a in 0..layout.attributes as u32 {
            stop::check();
            let labels = layout.node(a).1;
            let dense = 2 * labels.len() >= layout.labels;
            out.dense.push(dense);
            found.resize_with(labels.len().max(found.len()), DistinctRanges::default);
            found[..labels.len()].iter_mut().for_each(DistinctRanges::clear);
            rows.clear();
            count.clear();
            separate_count.clear();
            labels.iter().enumerate().for_each(|(j, &y)| column[y as usize] = j as u32);
            // Numbered relative to the attribute and to the feature for now.
            for &e in index.postings(a) {
                let places = index.occurrence_ptr[e as usize]..index.occurrence_ptr[e as usize + 1];
                sums.collect(index, &data.gold, e as usize);
                let row = rows.index_of(target.range(Range { a: 0.0 - sums.negative, b: sums.positive }));
                out.row[e as usize] = row;
                count.resize(rows.ranges.len(), 0);
                separate_count.resize(rows.ranges.len() * labels.len(), 0);
                count[row as usize] += 1;
                let mut at = places.start;
                for &t in &index.token[places.clone()] {
                    let y = data.gold[t as usize] as usize;
                    if !out.gold_has_no_cells() && column[y] != NONE && sums.take_first(y) {
                        let separate = found[column[y] as usize].index_of(sums.of(y));
                        separate_count[row as usize * labels.len() + column[y] as usize] += 1;
                        out.gold[at] = (y as u32, separate);
                        at += 1;
                    }
                }
                sums.clear(index, &data.gold, e as usize);
            }
            let (base, stride) = (out.range.len(), if dense { padded } else { labels.len() });
            for range in &rows.ranges {
                out.range.extend(std::iter::repeat_n(*range, stride));
            }
            let first = out.place.len();
            for (j, &y) in labels.iter().enumerate() {
                let separate_at = out.range.len() as u32;
                out.range.extend_from_slice(&found[j].ranges);
                let at = base + if dense { y as usize } else { j };
                // If the label is always among the gold ones, no sentence has the row's range.
                for (r, all) in
                    count.iter().enumerate().filter(|(r, all)| separate_count[r * labels.len() + j] == **all)
                {
                    debug_assert!(*all > 0);
                    out.range[at + r * stride] = Range { a: 0.0, b: 0.0 };
                }
                let (rows, separate) = (rows.ranges.len() as u32, found[j].ranges.len() as u32);
                out.place.push(FeatureCells { at: at as u32, stride: stride as u32, rows, separate_at, separate });
            }
            if out.range.len() >= u32::MAX as usize {
                return Err(Error::Value(
                    "the training set is too large for bound=\"tight\"; use bound=\"loose\" or raise min_count".into(),
                ));
            }
            out.renumber(index, a, (base, stride), |y| first + column[y as usize] as usize);
            labels.iter().for_each(|&y| column[y as usize] = NONE);
        }
        out.add_edges(data, layout);
        out.add_ends(data, layout);
        if out.range.len() >= u32::MAX as usize {
            return Err(Error::Value(
                "the training set is too large for bound=\"tight\"; use bound=\"loose\" or max_length".into(),
            ));
        }
        Ok(out)
    }

    /// Convert numbers relative to an attribute and a feature to cell numbers: the attribute's rows begin at `base`,
    /// `stride` apart, and `feature` maps a label to its feature.
    fn renumber(&mut self, index: &Index, a: u32, (base, stride): (usize, usize), feature: impl Fn(u32) -> usize) {
        for &e in index.postings(a) {
            let places = index.occurrence_ptr[e as usize]..index.occurrence_ptr[e as usize + 1];
            self.row[e as usize] = (base + self.row[e as usize] as usize * stride) as u32;
            for (y, cell) in self.gold[places].iter_mut().filter(|x| x.1 != NONE) {
                *cell += self.place[feature(*y)].separate_at;
            }
        }
    }

    /// Add the cells of edges: a row for every length, and for each feature one cell for every range it has on a gold
    /// path.
    fn add_edges(&mut self, data: &Dataset, layout: &Layout) {
        let (l, n) = (layout.labels, layout.edges.len());
        let (base, mut lengths) = (self.range.len(), HashMap::new());
        let mut found: Vec<DistinctRanges> = Vec::new();
        found.resize_with(n, DistinctRanges::default);
        let (mut seen, mut all, mut gold_of): (Vec<u32>, Vec<u32>, Vec<u32>) = Default::default();
        for (s, tokens) in data.sentences.windows(2).enumerate() {
            let gold = &data.gold[tokens[0]..tokens[1]];
            let known = lengths.len();
            let row = *lengths.entry(gold.len()).or_insert(known);
            if row == known {
                all.push(0);
                gold_of.resize(all.len() * n, 0);
                let whole = |i: usize| chain_range(data, kind(layout, layout.edge_at() + i), s).without_gold();
                self.range.extend((0..n).map(|i| self.target.range(whole(i))));
            }
            all[row] += 1;
            self.edge_row.push(if gold.len() < 2 { NONE } else { (base + row * n) as u32 });
            seen.clear();
            seen.extend(gold.windows(2).map(|y| u32::from(y[0]) * l as u32 + u32::from(y[1])));
            seen.sort_unstable();
            seen.dedup();
            let separate = if self.gold_has_no_cells() { &[] } else { &seen[..] };
            for i in separate.iter().filter_map(|edge| layout.edges.binary_search(edge).ok()) {
                let range = chain_range(data, kind(layout, layout.edge_at() + i), s);
                self.edge_gold.push((i as u32, found[i].index_of(range)));
                gold_of[row * n + i] += 1;
            }
            self.edge_ptr.push(self.edge_gold.len() as u32);
        }
        // If every sentence of a length has the edge on its gold path, none has the row's range.
        for at in (0..gold_of.len()).filter(|at| gold_of[*at] == all[at / n]) {
            self.range[base + at] = Range { a: 0.0, b: 0.0 };
        }
        let first = self.place.len();
        for (i, separate) in found.iter().enumerate() {
            let (separate_at, n_separate) = (self.range.len() as u32, separate.ranges.len() as u32);
            self.range.extend_from_slice(&separate.ranges);
            let (at, stride, rows) = ((base + i) as u32, n as u32, lengths.len() as u32);
            self.place.push(FeatureCells { at, stride, rows, separate_at, separate: n_separate });
        }
        for (i, cell) in &mut self.edge_gold {
            *cell += self.place[first + *i as usize].separate_at;
        }
    }

    /// Add the cells of starts and ends.
    fn add_ends(&mut self, data: &Dataset, layout: &Layout) {
        self.ends_at = self.range.len();
        let (mut starts, mut ends) = (vec![0; layout.labels], vec![0; layout.labels]);
        for (s, tokens) in data.sentences.windows(2).enumerate().filter(|(_, tokens)| tokens[0] < tokens[1]) {
            starts[data.gold[tokens[0]] as usize] += usize::from(data.ends(s).0);
            ends[data.gold[tokens[1] - 1] as usize] += usize::from(data.ends(s).1);
        }
        for (labels, gold) in [(&layout.starts, &starts), (&layout.ends, &ends)] {
            let all: usize = gold.iter().sum();
            for right in labels.iter().map(|&y| gold[y as usize]) {
                let separate_at = self.range.len() as u32;
                let used = |n: usize| f64::from(u8::from(n > 0)); // a range without sentences is empty
                let ranges = [Range { a: 0.0, b: used(all - right) }, Range { a: used(right), b: 0.0 }];
                self.range.extend(ranges.map(|range| self.target.range(range)));
                self.place.push(FeatureCells { at: 0, stride: 0, rows: 0, separate_at, separate: 2 });
            }
        }
    }

    /// Cells of a feature.
    #[inline(always)]
    pub fn of(&self, k: usize) -> impl Iterator<Item = usize> + Clone {
        let FeatureCells { at, stride, rows, separate_at, separate } = self.place[k];
        let row = move |r: u32| at as usize + r as usize * stride as usize;
        (0..rows).map(row).chain(separate_at as usize..separate_at as usize + separate as usize)
    }

    pub fn is_tight(&self) -> bool {
        self.tight
    }

    /// Whether gold labels have the same ranges as all others.
    #[inline(always)]
    pub fn gold_has_no_cells(&self) -> bool {
        self.target.loss == Boosted::Pointwise
    }
}

/// Range of u for an entry's attribute with a label: the sums of its negative and of its positive values, minus its
/// value on the gold label.
struct Ranges {
    negative: f64,
    positive: f64,
    right: Vec<f64>,   // [L]
    unseen: Vec<bool>, // [L] among the gold labels, and not returned yet
}

impl Ranges {
    fn new(labels: usize) -> Ranges {
        Ranges { negative: 0.0, positive: 0.0, right: vec![0.0; labels], unseen: vec![false; labels] }
    }

    /// Compute the ranges of an entry. A call of `clear` must follow.
    fn collect(&mut self, index: &Index, gold: &[u16], entry: usize) {
        (self.negative, self.positive) = (0.0, 0.0);
        for (t, v) in index.places(entry) {
            self.negative += v.min(0.0);
            self.positive += v.max(0.0);
            self.right[gold[t] as usize] += v;
            self.unseen[gold[t] as usize] = true;
        }
    }

    fn clear(&mut self, index: &Index, gold: &[u16], entry: usize) {
        for (t, _) in index.places(entry) {
            self.right[gold[t] as usize] = 0.0;
            self.unseen[gold[t] as usize] = false;
        }
    }

    fn take_first(&mut self, label: usize) -> bool {
        std::mem::take(&mut self.unseen[label])
    }

    fn of(&self, label: usize) -> Range {
        let right = self.right[label];
        Range { a: (right - self.negative).max(0.0), b: (self.positive - right).max(0.0) }
    }
}

/// Distinct ranges in order of first occurrence.
#[derive(Default)]
struct DistinctRanges {
    ranges: Vec<Range>,
    by_bits: HashMap<(u64, u64), u32>,
}

impl DistinctRanges {
    fn clear(&mut self) {
        self.ranges.clear();
        self.by_bits.clear();
    }

    fn index_of(&mut self, range: Range) -> u32 {
        const LINEAR_SEARCH: usize = 8;
        let same = |r: &Range| r.a == range.a && r.b == range.b;
        let key = |r: &Range| (r.a.to_bits(), r.b.to_bits());
        if let Some(i) = self.ranges.iter().take(LINEAR_SEARCH).position(same) {
            return i as u32;
        }
        if self.ranges.len() >= LINEAR_SEARCH {
            if let Some(&i) = self.by_bits.get(&key(&range)) {
                return i;
            }
            self.by_bits.insert(key(&range), self.ranges.len() as u32);
        }
        self.ranges.push(range);
        self.ranges.len() as u32 - 1
    }
}
