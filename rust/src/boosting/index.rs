//! The training set as boosting walks it: for every sentence its distinct attributes with their places, and for every
//! attribute the sentences where it occurs. Ranges of u_ik and the cells that share one.

use super::bound::Range;
use crate::dataset::Dataset;
use crate::error::{Error, Result};
use crate::weights::Layout;
use std::collections::HashMap;

/// What a feature looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Node { attribute: u32, label: usize },
    Edge { from: usize, to: usize },
    Start { label: usize },
    End { label: usize },
}

/// An entry is one distinct attribute of one sentence; entries lie sentence by sentence. N sentences, A attributes.
pub struct Index {
    pub entry_ptr: Vec<usize>,      // [N + 1] entries of a sentence
    pub attribute: Vec<u32>,        // [entries]
    pub sentence: Vec<u32>,         // [entries]
    pub occurrence_ptr: Vec<usize>, // [entries + 1] places of an entry
    pub token: Vec<u32>,            // [occurrences]
    pub value: Vec<f32>,            // [occurrences], or empty where all are 1
    pub posting_ptr: Vec<usize>,    // [A + 1] entries of an attribute
    pub posting: Vec<u32>,          // by sentence, ascending
}

impl Index {
    pub fn new(data: &Dataset, attributes: usize) -> Result<Index> {
        if data.tokens() >= u32::MAX as usize || data.node.ids.len() >= u32::MAX as usize {
            return Err(Error::Value("the training set is too large for boosting: over 4 billion attributes".into()));
        }
        let n = data.len();
        let valued = !data.node.values.is_empty();
        let mut out = Index {
            entry_ptr: vec![0],
            attribute: Vec::new(),
            sentence: Vec::new(),
            occurrence_ptr: vec![0],
            token: vec![0; data.node.ids.len()],
            value: if valued { vec![0.0; data.node.ids.len()] } else { Vec::new() },
            posting_ptr: vec![0; attributes + 1],
            posting: Vec::new(),
        };
        let mut entry_of = vec![u32::MAX; attributes]; // entry in the sentence at hand
        let mut counts: Vec<usize> = Vec::new();
        for s in 0..n {
            let (first, tokens) = (out.attribute.len(), data.sentences[s]..data.sentences[s + 1]);
            counts.clear();
            for at in data.node.ptr[tokens.start]..data.node.ptr[tokens.end] {
                let a = data.node.ids[at] as usize;
                if entry_of[a] == u32::MAX {
                    entry_of[a] = counts.len() as u32;
                    counts.push(0);
                    out.attribute.push(a as u32);
                    out.sentence.push(s as u32);
                }
                counts[entry_of[a] as usize] += 1;
            }
            let mut at = out.occurrence_ptr[first];
            for count in &mut counts {
                let begin = at;
                at += *count;
                out.occurrence_ptr.push(at);
                *count = begin;
            }
            for t in tokens {
                for at in data.node.ptr[t]..data.node.ptr[t + 1] {
                    let place = &mut counts[entry_of[data.node.ids[at] as usize] as usize];
                    out.token[*place] = t as u32;
                    if valued {
                        out.value[*place] = data.node.values[at];
                    }
                    *place += 1;
                }
            }
            for &a in &out.attribute[first..] {
                entry_of[a as usize] = u32::MAX;
            }
            out.entry_ptr.push(out.attribute.len());
        }
        for &a in &out.attribute {
            out.posting_ptr[a as usize + 1] += 1;
        }
        for a in 0..attributes {
            out.posting_ptr[a + 1] += out.posting_ptr[a];
        }
        let mut next = out.posting_ptr.clone();
        out.posting = vec![0; out.attribute.len()];
        for (e, &a) in out.attribute.iter().enumerate() {
            out.posting[next[a as usize]] = e as u32;
            next[a as usize] += 1;
        }
        Ok(out)
    }

    /// Entries of an attribute.
    pub fn postings(&self, attribute: u32) -> &[u32] {
        &self.posting[self.posting_ptr[attribute as usize]..self.posting_ptr[attribute as usize + 1]]
    }

    /// Places of an entry as (token, value).
    #[inline(always)]
    pub fn places(&self, entry: usize) -> impl Iterator<Item = (usize, f64)> + '_ {
        (self.occurrence_ptr[entry]..self.occurrence_ptr[entry + 1]).map(|at| {
            let value = if self.value.is_empty() { 1.0 } else { f64::from(self.value[at]) };
            (self.token[at] as usize, value)
        })
    }

    /// Range of u for an entry's attribute with a label: the sum of its negative and of its positive values, less its value
    /// on the gold label.
    pub fn range(&self, gold: &[u16], entry: usize, label: usize) -> Range {
        let (mut negative, mut positive, mut right) = (0.0, 0.0, 0.0);
        for (t, v) in self.places(entry) {
            negative += v.min(0.0);
            positive += v.max(0.0);
            right += if gold[t] as usize == label { v } else { 0.0 };
        }
        Range { a: (right - negative).max(0.0), b: (positive - right).max(0.0) }
    }
}

/// What feature `k` looks at.
pub fn kind(layout: &Layout, k: usize) -> Kind {
    if k < layout.n_node() {
        // The last attribute whose features begin at or before k.
        let attribute = layout.node_ptr.partition_point(|&at| at as usize <= k) - 1;
        Kind::Node { attribute: attribute as u32, label: layout.node_label[k] as usize }
    } else if k < layout.start_at() {
        let pair = layout.edges[k - layout.edge_at()] as usize;
        Kind::Edge { from: pair / layout.labels, to: pair % layout.labels }
    } else if k < layout.end_at() {
        Kind::Start { label: layout.starts[k - layout.start_at()] as usize }
    } else {
        Kind::End { label: layout.ends[k - layout.end_at()] as usize }
    }
}

/// Which sentences have a real first and last token: pieces of a longer sentence do not.
pub struct Boundaries {
    pub first: Vec<bool>,
    pub last: Vec<bool>,
}

/// Range of u for a chain feature (edge, start or end) of sentence `s`. S in [0, T-1] if the edge repeats a label, else
/// [0, ceil((T-1)/2)]; a start or an end in [0, 1], where the sentence has one.
pub fn chain_range(data: &Dataset, boundaries: &Boundaries, kind: Kind, s: usize) -> Range {
    let gold = &data.gold[data.sentences[s]..data.sentences[s + 1]];
    let t = gold.len();
    let (most, right) = match kind {
        _ if t == 0 => (0, 0),
        Kind::Edge { from, to } => {
            let seen = gold.windows(2).filter(|y| y[0] as usize == from && y[1] as usize == to).count();
            (if from == to { t - 1 } else { t / 2 }, seen)
        }
        Kind::Start { label } => (usize::from(boundaries.first[s]), usize::from(gold[0] as usize == label)),
        Kind::End { label } => (usize::from(boundaries.last[s]), usize::from(gold[t - 1] as usize == label)),
        Kind::Node { .. } => (0, 0),
    };
    let right = right.min(most);
    Range { a: right as f64, b: (most - right) as f64 }
}

/// Cells: the sentences of a feature that share a range. Features lie one after the other.
pub struct Cells {
    pub ptr: Vec<u32>, // [features + 1]
    pub range: Vec<Range>,
    /// Cell of each entry with each label of its attribute, from `entry_at`; empty where a feature has one cell.
    pub of_entry: Vec<u32>,
    pub entry_at: Vec<u32>, // [entries]
    /// [N, chain features] cell of each sentence with each edge, start and end.
    pub of_chain: Vec<u32>,
    pub chain: usize, // number of chain features
}

impl Cells {
    /// One cell a feature: the union of its ranges over all sentences.
    pub fn loose(data: &Dataset, layout: &Layout, index: &Index, boundaries: &Boundaries) -> Cells {
        let mut range = vec![Range { a: 0.0, b: 0.0 }; layout.len()];
        let widen = |to: &mut Range, with: Range| *to = Range { a: to.a.max(with.a), b: to.b.max(with.b) };
        let mut sums = Ranges::new(layout.labels);
        for (e, &a) in index.attribute.iter().enumerate() {
            let (first, labels) = layout.node(a);
            sums.collect(index, &data.gold, e);
            for (j, &y) in labels.iter().enumerate() {
                widen(&mut range[first + j], sums.of(y as usize));
            }
        }
        for k in layout.n_node()..layout.len() {
            let kind = kind(layout, k);
            for s in 0..data.len() {
                widen(&mut range[k], chain_range(data, boundaries, kind, s));
            }
        }
        let ptr = (0..=layout.len() as u32).collect();
        let chain = layout.len() - layout.n_node();
        Cells { ptr, range, of_entry: Vec::new(), entry_at: Vec::new(), of_chain: Vec::new(), chain }
    }

    /// One cell for every range that a feature has in some sentence.
    pub fn tight(data: &Dataset, layout: &Layout, index: &Index, boundaries: &Boundaries) -> Result<Cells> {
        let chain = layout.len() - layout.n_node();
        let mut entry_at = Vec::with_capacity(index.attribute.len());
        let mut total = 0usize;
        for &a in &index.attribute {
            entry_at.push(total as u32);
            total += layout.node(a).1.len();
        }
        if total >= u32::MAX as usize {
            return Err(Error::Value(
                "the training set is too large for bound=\"tight\"; use bound=\"loose\" or raise min_count".into(),
            ));
        }
        let mut out = Cells {
            ptr: vec![0],
            range: Vec::new(),
            of_entry: vec![0; total],
            entry_at,
            of_chain: vec![0; data.len() * chain],
            chain,
        };
        let mut sums = Ranges::new(layout.labels);
        let mut found: Vec<Found> = Vec::new();
        for a in 0..layout.attributes as u32 {
            let labels = layout.node(a).1;
            found.resize_with(labels.len().max(found.len()), Found::default);
            found[..labels.len()].iter_mut().for_each(Found::clear);
            for &e in index.postings(a) {
                sums.collect(index, &data.gold, e as usize);
                for (j, &y) in labels.iter().enumerate() {
                    // Numbered within the feature for now.
                    out.of_entry[out.entry_at[e as usize] as usize + j] = found[j].place(sums.of(y as usize));
                }
            }
            for (j, found) in found[..labels.len()].iter().enumerate() {
                let base = out.range.len() as u32;
                out.range.extend_from_slice(&found.ranges);
                out.ptr.push(out.range.len() as u32);
                for &e in index.postings(a) {
                    out.of_entry[out.entry_at[e as usize] as usize + j] += base;
                }
            }
        }
        let mut ranges = Found::default();
        for i in 0..chain {
            let kind = kind(layout, layout.n_node() + i);
            ranges.clear();
            let base = out.range.len() as u32;
            for s in 0..data.len() {
                out.of_chain[s * chain + i] = base + ranges.place(chain_range(data, boundaries, kind, s));
            }
            out.range.extend_from_slice(&ranges.ranges);
            out.ptr.push(out.range.len() as u32);
        }
        Ok(out)
    }

    /// Cells of a feature.
    #[inline(always)]
    pub fn of(&self, k: usize) -> std::ops::Range<usize> {
        self.ptr[k] as usize..self.ptr[k + 1] as usize
    }

    pub fn is_tight(&self) -> bool {
        !self.entry_at.is_empty() || !self.of_chain.is_empty()
    }
}

/// Ranges of one entry with all labels: what `Index::range` gives, in one pass over its places.
struct Ranges {
    negative: f64,
    positive: f64,
    right: Vec<f64>, // [L]
}

impl Ranges {
    fn new(labels: usize) -> Ranges {
        Ranges { negative: 0.0, positive: 0.0, right: vec![0.0; labels] }
    }

    fn collect(&mut self, index: &Index, gold: &[u16], entry: usize) {
        (self.negative, self.positive) = (0.0, 0.0);
        self.right.fill(0.0);
        for (t, v) in index.places(entry) {
            self.negative += v.min(0.0);
            self.positive += v.max(0.0);
            self.right[gold[t] as usize] += v;
        }
    }

    fn of(&self, label: usize) -> Range {
        let right = self.right[label];
        Range { a: (right - self.negative).max(0.0), b: (self.positive - right).max(0.0) }
    }
}

/// Distinct ranges in order of first occurrence.
#[derive(Default)]
struct Found {
    ranges: Vec<Range>,
    many: HashMap<(u64, u64), u32>,
}

impl Found {
    fn clear(&mut self) {
        self.ranges.clear();
        self.many.clear();
    }

    fn place(&mut self, range: Range) -> u32 {
        const FEW: usize = 8;
        let same = |r: &Range| r.a == range.a && r.b == range.b;
        let key = |r: &Range| (r.a.to_bits(), r.b.to_bits());
        if let Some(i) = self.ranges.iter().take(FEW).position(same) {
            return i as u32;
        }
        if self.ranges.len() >= FEW {
            if let Some(&i) = self.many.get(&key(&range)) {
                return i;
            }
            self.many.insert(key(&range), self.ranges.len() as u32);
        }
        self.ranges.push(range);
        self.ranges.len() as u32 - 1
    }
}
