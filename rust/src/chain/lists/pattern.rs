//! Selection of the edges that differ from the others.

use crate::error::{Error, Result};
use crate::machine::system::testing::{self, CodePath};

/// Minimum number of labels for lists. With fewer labels whole matrices are used.
const MIN_LABELS: usize = 48;
/// Use of the lists. It determines the largest share of label pairs for which lists are faster than matrices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Sums and pair expectations.
    Training,
    /// Best paths, whose maxima take more steps per listed edge, and marginals.
    Decoding,
}

impl Purpose {
    fn share(self, labels: usize) -> usize {
        match self {
            Purpose::Training if labels >= 2 * MIN_LABELS => 2,
            Purpose::Training | Purpose::Decoding => 5,
        }
    }
}

/// Score of a listed edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EdgeSource {
    /// Weight of the feature with this number.
    Feature(u32),
    /// 0, like edges without a feature.
    Plain,
    /// -infinity.
    Forbidden,
}

/// Lists of labels, one per label, ascending.
#[derive(Clone, Debug, Default)]
pub(super) struct LabelLists {
    pub ptr: Vec<u32>,   // [L + 1]
    pub label: Vec<u16>, // [edges]
}

impl LabelLists {
    #[inline(always)]
    pub fn of(&self, y: usize) -> std::ops::Range<usize> {
        self.ptr[y] as usize..self.ptr[y + 1] as usize
    }
}

/// Edges (y', y) whose factor is not base from(y') to(y), where `from` and `to` are 0 or 1: edges with features and
/// forbidden edges. `from` or `to` is 0 for labels most of whose edges are forbidden. For these the allowed edges are
/// listed instead of the forbidden ones.
#[derive(Clone, Debug)]
pub struct Pattern {
    pub labels: usize,
    pub(super) from: Vec<bool>,         // [L]
    pub(super) to: Vec<bool>,           // [L]
    pub(super) outgoing: LabelLists,    // for y': the labels y, numbered as edges
    pub(super) incoming: LabelLists,    // for y: the labels y'
    pub(super) number: Vec<u32>,        // number of each edge of `incoming`
    pub(super) source: Vec<EdgeSource>, // [edges]
    pub(super) features: usize,
}

impl Pattern {
    /// Return `None` if whole matrices are faster. `edges` are those with features (label' * L + label). `forbidden`
    /// may overlap with them.
    pub fn new(labels: usize, edges: &[u32], forbidden: &[u32], purpose: Purpose) -> Result<Option<Pattern>> {
        let pairs = labels * labels;
        if edges.iter().chain(forbidden).any(|&e| e as usize >= pairs) {
            return Err(Error::Value(format!("an edge is outside the {labels} by {labels} label pairs")));
        }
        let forced = testing::is_forced(CodePath::Sparse);
        if testing::is_forced(CodePath::Whole)
            || testing::is_forced(CodePath::Dense)
            || (labels < MIN_LABELS && !forced)
        {
            return Ok(None);
        }
        let max_edges = if forced { pairs } else { pairs / purpose.share(labels) };
        Ok(Pattern::with_at_most(labels, edges, forbidden, max_edges))
    }

    /// Return `None` if there are more edges than `max_edges`.
    fn with_at_most(labels: usize, edges: &[u32], forbidden: &[u32], max_edges: usize) -> Option<Pattern> {
        let mut forbidden = forbidden.to_vec();
        forbidden.sort_unstable();
        forbidden.dedup();
        let mut features: Vec<(u32, u32)> = edges.iter().enumerate().map(|(i, &e)| (e, i as u32)).collect();
        features.sort_unstable();
        let (from, to) = masks(labels, &forbidden);
        let uniform = from.iter().chain(&to).all(|&x| x);
        if uniform && features.len().max(forbidden.len()) > max_edges {
            return None;
        }
        let (mut features, mut forbidden) = (&features[..], &forbidden[..]);
        let mut out = Pattern {
            labels,
            from,
            to,
            outgoing: LabelLists { ptr: vec![0], label: Vec::new() },
            incoming: LabelLists::default(),
            number: Vec::new(),
            source: Vec::new(),
            features: edges.len(),
        };
        let mut row: Vec<(u16, EdgeSource)> = Vec::new();
        for y in 0..labels {
            let end = ((y + 1) * labels) as u64;
            let (own, rest) = features.split_at(features.partition_point(|f| u64::from(f.0) < end));
            let (own_forbidden, rest_forbidden) =
                forbidden.split_at(forbidden.partition_point(|&e| u64::from(e) < end));
            (features, forbidden) = (rest, rest_forbidden);
            out.list_row(y, own, own_forbidden, uniform, &mut row);
            for &(to, source) in &row {
                out.outgoing.label.push(to);
                out.source.push(source);
            }
            if out.source.len() > max_edges {
                return None;
            }
            out.outgoing.ptr.push(out.source.len() as u32);
        }
        out.build_incoming();
        Some(out)
    }

    /// List the edges from label y, given its features and forbidden edges.
    fn list_row(
        &self,
        y: usize,
        features: &[(u32, u32)],
        forbidden: &[u32],
        uniform: bool,
        row: &mut Vec<(u16, EdgeSource)>,
    ) {
        let to = |e: u32| e as usize - y * self.labels;
        row.clear();
        if uniform {
            row.extend(features.iter().map(|&(e, i)| (to(e) as u16, EdgeSource::Feature(i))));
            row.retain(|&(z, _)| forbidden.binary_search(&((y * self.labels + z as usize) as u32)).is_err());
            row.extend(forbidden.iter().map(|&e| (to(e) as u16, EdgeSource::Forbidden)));
            row.sort_unstable_by_key(|&(z, _)| z);
            return;
        }
        let mut sources = vec![EdgeSource::Plain; self.labels];
        features.iter().for_each(|&(e, i)| sources[to(e)] = EdgeSource::Feature(i));
        forbidden.iter().for_each(|&e| sources[to(e)] = EdgeSource::Forbidden);
        for (z, &source) in sources.iter().enumerate() {
            let default_source = if self.from[y] && self.to[z] { EdgeSource::Plain } else { EdgeSource::Forbidden };
            if source != default_source {
                row.push((z as u16, source));
            }
        }
    }

    /// Compute `incoming` from `outgoing`.
    fn build_incoming(&mut self) {
        let (l, n) = (self.labels, self.source.len());
        let mut ptr = vec![0u32; l + 1];
        self.outgoing.label.iter().for_each(|&y| ptr[y as usize + 1] += 1);
        for y in 0..l {
            ptr[y + 1] += ptr[y];
        }
        let mut next = ptr.clone();
        self.incoming = LabelLists { ptr, label: vec![0; n] };
        self.number = vec![0; n];
        for from in 0..l {
            for e in self.outgoing.of(from) {
                let at = &mut next[self.outgoing.label[e] as usize];
                self.incoming.label[*at as usize] = from as u16;
                self.number[*at as usize] = e as u32;
                *at += 1;
            }
        }
    }

    /// Number of listed edges.
    pub fn len(&self) -> usize {
        self.source.len()
    }

    pub fn is_empty(&self) -> bool {
        self.source.is_empty()
    }

    /// Whether any edge is forbidden, listed or not.
    pub fn forbids(&self) -> bool {
        self.source.contains(&EdgeSource::Forbidden) || !self.from.iter().chain(&self.to).all(|&x| x)
    }

    /// Number of an edge (label' * L + label), if it is listed.
    #[inline]
    pub fn find(&self, edge: u32) -> Option<usize> {
        let (from, to) = (edge as usize / self.labels, (edge as usize % self.labels) as u16);
        let range = self.outgoing.of(from);
        self.outgoing.label[range.clone()].binary_search(&to).ok().map(|at| range.start + at)
    }

    /// Listed edges as label' * L + label, by number.
    pub fn edges(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.labels)
            .flat_map(move |y| self.outgoing.of(y).map(move |e| y * self.labels + self.outgoing.label[e] as usize))
    }
}

/// Return (from, to): `to` for labels to which at least half of the edges are allowed, and `from` for labels from which
/// at least half of the edges to those are.
fn masks(labels: usize, forbidden: &[u32]) -> (Vec<bool>, Vec<bool>) {
    let mut count = vec![0usize; labels];
    forbidden.iter().for_each(|&e| count[e as usize % labels] += 1);
    let to: Vec<bool> = count.iter().map(|&n| 2 * n <= labels).collect();
    let left = to.iter().filter(|&&x| x).count();
    count.fill(0);
    for &e in forbidden.iter().filter(|&&e| to[e as usize % labels]) {
        count[e as usize / labels] += 1;
    }
    (count.iter().map(|&n| 2 * n <= left).collect(), to)
}
