//! Positions of features in the weight vector. This is the only file that computes an offset.
//!
//! ```text
//! node  (attribute, label)        attribute-major, labels ascending
//! edge  (label', label)           row-major
//! start (label)   end (label)
//! pair  (attribute, label', label)   edge attributes
//! ```

use crate::dataset::{Dataset, NO_LABEL};
use crate::error::{Error, Result};
use crate::machine::system::budget;
use crate::machine::system::container::Buf;

/// Selection of the features to create.
#[derive(Clone, Copy, Debug)]
pub struct Choice {
    /// Every attribute with every label and every label pair, instead of the combinations in the gold labels.
    pub all_pairs: bool,
    /// Features for the first and the last label of a sentence.
    pub start_end: bool,
}

/// Arrays of a layout, as a file or Python provides them. L labels, A attributes.
#[derive(Clone, Debug, Default)]
pub struct LayoutArrays {
    pub labels: usize,
    pub attributes: usize,
    pub node_ptr: Buf<u64>,   // [A + 1] features of attribute a are node_ptr[a]..node_ptr[a + 1]
    pub node_label: Buf<u16>, // [node features]
    pub edges: Vec<u32>,      // [edge features] label' * L + label, ascending
    pub starts: Vec<u16>,     // labels with a start feature, ascending
    pub ends: Vec<u16>,
    pub pair_ptr: Buf<u64>, // [A + 1], or empty without edge attributes
    pub pair: Buf<u32>,     // [pair features] label' * L + label
}

/// Positions of all features. The arrays are checked against each other and read-only.
#[derive(Clone, Debug)]
pub struct Layout {
    arrays: LayoutArrays,
}

impl std::ops::Deref for Layout {
    type Target = LayoutArrays;

    #[inline(always)]
    fn deref(&self) -> &LayoutArrays {
        &self.arrays
    }
}

impl Layout {
    /// Check arrays from outside once, so that other methods need no checks.
    pub fn new(arrays: LayoutArrays) -> Result<Layout> {
        arrays.check()?;
        Ok(Layout { arrays })
    }

    /// Create the features of a labelled dataset over `attributes` attributes and `labels` labels.
    pub fn build(data: &Dataset, attributes: usize, labels: usize, choice: Choice) -> Result<Layout> {
        if data.gold.len() != data.tokens() {
            return Err(Error::Value(
                "the dataset has no gold labels; features are created from labelled sentences".into(),
            ));
        }
        let unknown = |&y: &u16| y as usize >= labels && y != NO_LABEL;
        if labels >= NO_LABEL as usize || data.gold.iter().any(unknown) {
            return Err(Error::Value(format!(
                "gold labels need {labels} labels, numbered from 0, and fewer than {NO_LABEL}"
            )));
        }
        data.check_layout(attributes)?;
        let pairs = if choice.all_pairs { budget::bytes(&[attributes, labels, 2]) } else { 0 };
        let table = budget::bytes(&[attributes, 24]).saturating_add(budget::bytes(&[labels, labels, 5]));
        budget::claim(
            &format!("features of {attributes} attributes and {labels} labels"),
            table.saturating_add(pairs),
            "use fewer attributes (min_count) or labels",
        )?;
        if !choice.all_pairs || data.has_edge_attributes() {
            let seen = if choice.all_pairs { 0 } else { data.node.sparse().ids.len() };
            budget::claim_linear(
                &format!("the labels that {} tokens' attributes occur with", data.tokens()),
                budget::bytes(&[seen.max(data.edge.ids.len()), size_of::<u32>()]).saturating_add(2 * table),
                "use fewer features, or train on shards (tagwise encode)",
            )?;
        }
        let mut out = LayoutArrays { labels, attributes, ..LayoutArrays::default() };
        let all: Vec<u16> = (0..labels as u16).collect();
        if choice.all_pairs {
            out.node_ptr = (0..=attributes as u64).map(|a| a * labels as u64).collect::<Vec<_>>().into();
            out.node_label = (0..attributes).flat_map(|_| all.iter().copied()).collect::<Vec<_>>().into();
            out.edges = (0..(labels * labels) as u32).collect();
            (out.starts, out.ends) = if choice.start_end { (all.clone(), all) } else { Default::default() };
        } else {
            let rows = data.node.sparse();
            let (mut ptr, mut label) = observed(attributes, labels, rows.ptr, rows.ids, |t| Some(data.gold[t]));
            if let Some(dense) = data.node.dense() {
                (ptr, label) = with_every_label(dense.attributes(), labels, &ptr, &label);
            }
            (out.node_ptr, out.node_label) = (ptr.into(), label.iter().map(|&y| y as u16).collect::<Vec<_>>().into());
            let mut edge = vec![false; labels * labels];
            let (mut start, mut end) = (vec![false; labels], vec![false; labels]);
            for (i, s) in data.sentences.windows(2).enumerate().filter(|(_, s)| s[0] < s[1]) {
                let (gold, (begins, ends)) = (&data.gold[s[0]..s[1]], data.ends(i));
                for y in gold.windows(2).filter(|y| y[0] != NO_LABEL && y[1] != NO_LABEL) {
                    edge[y[0] as usize * labels + y[1] as usize] = true;
                }
                for (seen, y, here) in [(&mut start, gold[0], begins), (&mut end, gold[gold.len() - 1], ends)] {
                    if y != NO_LABEL && choice.start_end && here {
                        seen[y as usize] = true;
                    }
                }
            }
            out.edges = (0..edge.len() as u32).filter(|&e| edge[e as usize]).collect();
            out.starts = all.iter().copied().filter(|&y| start[y as usize]).collect();
            out.ends = all.iter().copied().filter(|&y| end[y as usize]).collect();
        }
        if data.has_edge_attributes() {
            let first: Vec<bool> = first_tokens(data);
            let pair_of = |t: usize| {
                let known = t > 0 && !first[t] && data.gold[t - 1] != NO_LABEL && data.gold[t] != NO_LABEL;
                known.then(|| u32::from(data.gold[t - 1]) * labels as u32 + u32::from(data.gold[t]))
            };
            let (ptr, pair) = observed(attributes, labels * labels, &data.edge.ptr, &data.edge.ids, pair_of);
            (out.pair_ptr, out.pair) = (ptr.into(), pair.into());
        }
        Ok(Layout { arrays: out })
    }
}

impl LayoutArrays {
    pub fn n_node(&self) -> usize {
        self.node_label.len()
    }
    /// Return the index of the first edge feature.
    pub fn edge_at(&self) -> usize {
        self.n_node()
    }
    /// Return the index of the first start feature.
    pub fn start_at(&self) -> usize {
        self.edge_at() + self.edges.len()
    }
    /// Return the index of the first end feature.
    pub fn end_at(&self) -> usize {
        self.start_at() + self.starts.len()
    }
    /// Return the index of the first pair feature.
    pub fn pair_at(&self) -> usize {
        self.end_at() + self.ends.len()
    }
    /// Return the number of features.
    pub fn len(&self) -> usize {
        self.pair_at() + self.pair.len()
    }
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Return the node features of an attribute: (index of the first, labels).
    #[inline]
    pub fn node(&self, attribute: u32) -> (usize, &[u16]) {
        let (begin, end) = (self.node_ptr[attribute as usize] as usize, self.node_ptr[attribute as usize + 1] as usize);
        (begin, &self.node_label[begin..end])
    }

    /// Return the pair features of an edge attribute: (index of the first, label pairs).
    #[inline]
    pub fn pairs(&self, attribute: u32) -> (usize, &[u32]) {
        if self.pair_ptr.is_empty() {
            return (self.pair_at(), &[]);
        }
        let (begin, end) = (self.pair_ptr[attribute as usize] as usize, self.pair_ptr[attribute as usize + 1] as usize);
        (self.pair_at() + begin, &self.pair[begin..end])
    }

    /// Return the edge scores [L, L] of a weight vector. Features that do not exist score 0.
    pub fn edge_scores(&self, w: &[f64]) -> Vec<f64> {
        let mut scores = vec![0.0; self.labels * self.labels];
        for (&e, &x) in self.edges.iter().zip(&w[self.edge_at()..]) {
            scores[e as usize] = x;
        }
        scores
    }

    /// Return the start and end scores [L] of a weight vector.
    pub fn boundary_scores(&self, w: &[f64]) -> (Vec<f64>, Vec<f64>) {
        let fill = |labels: &[u16], at: usize| {
            let mut scores = vec![0.0; self.labels];
            for (&y, &x) in labels.iter().zip(&w[at..]) {
                scores[y as usize] = x;
            }
            scores
        };
        (fill(&self.starts, self.start_at()), fill(&self.ends, self.end_at()))
    }
}

/// Return a mask of the first tokens of sentences.
fn first_tokens(data: &Dataset) -> Vec<bool> {
    let mut first = vec![false; data.tokens()];
    for s in data.sentences.windows(2).filter(|s| s[0] < s[1]) {
        first[s[0]] = true;
    }
    first
}

/// Return the rows with every label for the attributes in `full`, which are the numbers of vectors.
fn with_every_label(full: std::ops::Range<usize>, labels: usize, ptr: &[u64], label: &[u32]) -> (Vec<u64>, Vec<u32>) {
    let (mut out_ptr, mut out) = (vec![0u64], Vec::with_capacity(label.len() + full.len() * labels));
    for (a, row) in ptr.windows(2).enumerate() {
        match full.contains(&a) {
            true => out.extend(0..labels as u32),
            false => out.extend_from_slice(&label[row[0] as usize..row[1] as usize]),
        }
        out_ptr.push(out.len() as u64);
    }
    (out_ptr, out)
}

/// Return for each attribute the distinct targets (labels or label pairs) it occurs with, ascending, as sparse rows. Up
/// to 64 targets fit into one bit set per attribute and need one pass.
fn observed<G: Into<u32>>(
    attributes: usize,
    targets: usize,
    ptr: &[usize],
    ids: &[u32],
    target: impl Fn(usize) -> Option<G>,
) -> (Vec<u64>, Vec<u32>) {
    if targets > u64::BITS as usize {
        return observed_of_many(attributes, targets, ptr, ids, target);
    }
    let mut sets = vec![0u64; attributes];
    for (t, row) in ptr.windows(2).enumerate() {
        if let Some(y) = target(t).map(Into::into).filter(|&y| (y as usize) < targets) {
            ids[row[0]..row[1]].iter().for_each(|&a| sets[a as usize] |= 1 << y);
        }
    }
    let mut out = Vec::with_capacity(sets.iter().map(|set| set.count_ones() as usize).sum());
    let mut out_ptr = Vec::with_capacity(attributes + 1);
    out_ptr.push(0u64);
    for mut set in sets {
        while set != 0 {
            out.push(set.trailing_zeros());
            set &= set - 1;
        }
        out_ptr.push(out.len() as u64);
    }
    (out_ptr, out)
}

/// Version of `observed` for any number of targets. Two counting passes, with a scratch entry per occurrence.
fn observed_of_many<G: Into<u32>>(
    attributes: usize,
    targets: usize,
    ptr: &[usize],
    ids: &[u32],
    target: impl Fn(usize) -> Option<G>,
) -> (Vec<u64>, Vec<u32>) {
    let mut begin = vec![0usize; attributes + 1];
    let targets_of = |t: usize| target(t).map(Into::into).filter(|&y: &u32| (y as usize) < targets);
    for t in 0..ptr.len() - 1 {
        if targets_of(t).is_some() {
            for &a in &ids[ptr[t]..ptr[t + 1]] {
                begin[a as usize + 1] += 1;
            }
        }
    }
    for a in 0..attributes {
        begin[a + 1] += begin[a];
    }
    let mut seen = vec![0u32; begin[attributes]];
    let mut next = begin.clone();
    for t in 0..ptr.len() - 1 {
        if let Some(y) = targets_of(t) {
            for &a in &ids[ptr[t]..ptr[t + 1]] {
                seen[next[a as usize]] = y;
                next[a as usize] += 1;
            }
        }
    }
    let (mut out_ptr, mut out) = (Vec::with_capacity(attributes + 1), Vec::new());
    out_ptr.push(0u64);
    let mut mark = vec![u32::MAX; if targets <= 1 << 16 { targets } else { 0 }];
    for a in 0..attributes {
        let row = &mut seen[begin[a]..begin[a + 1]];
        let first = out.len();
        if mark.is_empty() {
            row.sort_unstable();
            out.extend_from_slice(row);
            dedup_tail(&mut out, first);
        } else {
            for &y in row.iter() {
                if mark[y as usize] != a as u32 {
                    mark[y as usize] = a as u32;
                    out.push(y);
                }
            }
            out[first..].sort_unstable();
        }
        out_ptr.push(out.len() as u64);
    }
    (out_ptr, out)
}

/// Remove repeated neighbours from `v[first..]`.
fn dedup_tail(v: &mut Vec<u32>, first: usize) {
    let mut write = first;
    for read in first..v.len() {
        if write == first || v[read] != v[write - 1] {
            v[write] = v[read];
            write += 1;
        }
    }
    v.truncate(write);
}

impl LayoutArrays {
    /// Check that the arrays are consistent.
    fn check(&self) -> Result<()> {
        let inconsistent =
            |what: &str| Err(Error::ModelFile(format!("the features are inconsistent: {what}; train and save again")));
        let rows = |ptr: &[u64], n: usize| {
            ptr.len().checked_sub(1) == Some(self.attributes)
                && ptr[0] == 0
                && ptr[self.attributes] == n as u64
                && ptr.windows(2).all(|w| w[0] <= w[1])
        };
        if self.labels == 0 || self.labels >= NO_LABEL as usize {
            return inconsistent("no labels, or too many");
        }
        let pairs = self.labels * self.labels;
        if !rows(&self.node_ptr, self.n_node()) || self.node_label.iter().any(|&y| y as usize >= self.labels) {
            return inconsistent("node features");
        }
        if self.edges.iter().any(|&e| e as usize >= pairs) {
            return inconsistent("edge features");
        }
        if self.starts.iter().chain(&self.ends).any(|&y| y as usize >= self.labels) {
            return inconsistent("start or end features");
        }
        let none = self.pair_ptr.is_empty() && self.pair.is_empty();
        if !none && (!rows(&self.pair_ptr, self.pair.len()) || self.pair.iter().any(|&e| e as usize >= pairs)) {
            return inconsistent("edge attributes");
        }
        Ok(())
    }
}
