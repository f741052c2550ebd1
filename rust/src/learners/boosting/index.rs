//! The training set as boosting traverses it: the distinct attributes of every sentence with their tokens, and the
//! sentences of every attribute. Also the ranges of u_ik.

use crate::dataset::layout::Layout;
use crate::dataset::Dataset;
use crate::error::{Error, Result};
use crate::learners::boosting::bound::Range;
use crate::machine::system::stop;
use crate::scores::check::{check_labels, check_weights};

/// Inputs of a feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeatureKind {
    Node { attribute: u32, label: usize },
    Edge { from: usize, to: usize },
    Start { label: usize },
    End { label: usize },
}

/// An entry is one distinct attribute of one sentence. Entries are ordered by sentence. N sentences, A attributes.
pub struct Index {
    pub entry_ptr: Vec<usize>,      // [N + 1] entries of a sentence
    pub attribute: Vec<u32>,        // [entries]
    pub sentence: Vec<u32>,         // [entries]
    pub occurrence_ptr: Vec<usize>, // [entries + 1] places of an entry
    pub token: Vec<u32>,            // [occurrences]
    pub value: Vec<f32>,            // [occurrences], or empty if all are 1
    pub posting_ptr: Vec<usize>,    // [A + 1] entries of an attribute
    pub posting: Vec<u32>,          // by sentence, ascending
}

impl Index {
    pub fn new(data: &Dataset, attributes: usize) -> Result<Index> {
        if data.tokens() >= u32::MAX as usize || data.node.csr().ids.len() >= u32::MAX as usize {
            return Err(Error::Value("the training set is too large for boosting: over 4 billion attributes".into()));
        }
        let n = data.len();
        let valued = !data.node.csr().values.is_empty();
        let mut out = Index {
            entry_ptr: vec![0],
            attribute: Vec::new(),
            sentence: Vec::new(),
            occurrence_ptr: vec![0],
            token: vec![0; data.node.csr().ids.len()],
            value: if valued { vec![0.0; data.node.csr().ids.len()] } else { Vec::new() },
            posting_ptr: vec![0; attributes + 1],
            posting: Vec::new(),
        };
        let mut entry_of = vec![u32::MAX; attributes]; // entry in the current sentence
        let mut counts: Vec<usize> = Vec::new();
        for s in 0..n {
            stop::check();
            let (first, tokens) = (out.attribute.len(), data.sentences[s]..data.sentences[s + 1]);
            counts.clear();
            for at in data.node.csr().ptr[tokens.start]..data.node.csr().ptr[tokens.end] {
                let a = data.node.csr().ids[at] as usize;
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
                for at in data.node.csr().ptr[t]..data.node.csr().ptr[t + 1] {
                    let place = &mut counts[entry_of[data.node.csr().ids[at] as usize] as usize];
                    out.token[*place] = t as u32;
                    if valued {
                        out.value[*place] = data.node.csr().values[at];
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
}

/// Inputs of feature `k`.
pub fn kind(layout: &Layout, k: usize) -> FeatureKind {
    if k < layout.n_node() {
        // The last attribute whose features begin at or before k.
        let attribute = layout.node_ptr.partition_point(|&at| at as usize <= k) - 1;
        FeatureKind::Node { attribute: attribute as u32, label: layout.node_label[k] as usize }
    } else if k < layout.start_at() {
        let pair = layout.edges[k - layout.edge_at()] as usize;
        FeatureKind::Edge { from: pair / layout.labels, to: pair % layout.labels }
    } else if k < layout.end_at() {
        FeatureKind::Start { label: layout.starts[k - layout.start_at()] as usize }
    } else {
        FeatureKind::End { label: layout.ends[k - layout.end_at()] as usize }
    }
}

/// Whether a chain feature (edge, start or end) can fire in sentence `s`.
pub fn fires_in(data: &Dataset, kind: FeatureKind, s: usize) -> bool {
    let tokens = data.sentences[s + 1] - data.sentences[s];
    match kind {
        FeatureKind::Edge { .. } => tokens >= 2,
        FeatureKind::Start { .. } => tokens >= 1 && data.ends(s).0,
        FeatureKind::End { .. } => tokens >= 1 && data.ends(s).1,
        FeatureKind::Node { .. } => false,
    }
}

/// Range of u for a chain feature (edge, start or end) of sentence `s`. S is in [0, T-1] if the edge repeats a label,
/// else in [0, ceil((T-1)/2)]. For a start or an end it is in [0, 1] if the sentence has one.
pub fn chain_range(data: &Dataset, kind: FeatureKind, s: usize) -> Range {
    let gold = &data.gold[data.sentences[s]..data.sentences[s + 1]];
    let (t, (begins, ends)) = (gold.len(), data.ends(s));
    let (most, right) = match kind {
        _ if t == 0 => (0, 0),
        FeatureKind::Edge { from, to } => {
            let seen = gold.windows(2).filter(|y| y[0] as usize == from && y[1] as usize == to).count();
            (if from == to { t - 1 } else { t / 2 }, seen)
        }
        FeatureKind::Start { label } => (usize::from(begins), usize::from(gold[0] as usize == label)),
        FeatureKind::End { label } => (usize::from(ends), usize::from(gold[t - 1] as usize == label)),
        FeatureKind::Node { .. } => (0, 0),
    };
    let right = right.min(most);
    Range { a: right as f64, b: (most - right) as f64 }
}

/// Check that data, features and weights fit each other and are valid for boosting.
pub fn check(data: &Dataset, layout: &Layout, weight: &[f64], w: &[f64]) -> Result<()> {
    let n = data.len();
    check_labels(data, layout.labels)?;
    if data.node.csr().ids.iter().any(|&a| a as usize >= layout.attributes) {
        return Err(Error::Value("the features were laid out for another vocabulary; build the layout again".into()));
    }
    if data.has_edge_attributes() || !layout.pair.is_empty() {
        return Err(Error::Value(
            "boosting does not take edge attributes; leave them out of the features, or use another learner".into(),
        ));
    }
    check_weights(weight, n)?;
    if w.len() != layout.len() || w.iter().any(|x| !x.is_finite()) {
        return Err(Error::Value(format!("expected {} finite weights to start from, got {}", layout.len(), w.len())));
    }
    Ok(())
}
