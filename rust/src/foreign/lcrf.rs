//! lCRF, the model format of CRFsuite (FOMC, version 100), used in place.
//!
//! ```text
//! header 48 B · FEAT · labels · attributes · padding to 4 · LFRF · AFRF
//! ```
//! `open` checks the header, the headers and tables of all parts, the labels and the transitions. Attributes and their
//! features are checked at their uses, so that opening takes little longer than reading the file. A damaged entry is an
//! error there, and no read is out of bounds. `whole` checks a complete file.
//!
//! Scores match those of the original, in double precision and in its order: state[t][y] += weight x value for each
//! feature in the list of each attribute. Of two transitions of one pair the last counts. Ties go to the lower label.

use crate::chain::lattice::Scores;
use crate::chain::sums::log64::Trellis;
use crate::chain::viterbi::double::Viterbi64;
use crate::error::{Error, Result};
use crate::foreign::claim_pairs;
use crate::foreign::cqdb::{hash, u32_at, Cqdb, LongRun};
use crate::foreign::names::Names;
use crate::machine::simd::prefetch;
use std::ops::Range;

const HEAD: usize = 48;
const RECORD: usize = 20;
/// Maximum number of labels of the engine.
const MAX_LABELS: usize = (1 << 16) - 2;
/// Number of names that are looked up together.
const NAMES_AT_ONCE: usize = 64;
/// Attribute that the model does not have.
const NONE: u32 = u32::MAX;

/// Shared bytes of a file.
pub type Bytes = Box<dyn AsRef<[u8]> + Send + Sync>;

/// Open model.
pub struct Lcrf {
    bytes: Bytes,
    labels: Cqdb,
    attributes: Cqdb,
    features: usize,        // position of the records
    count: usize,           // number of records
    attribute_lists: usize, // position of the offsets of the attributes' lists
    label_lists: usize,     // position of the offsets of the labels' lists
    edge: Vec<f64>,         // [L, L]
}

/// All features of a model, in the order of its lists: codes source * L + label, and weights.
#[derive(Default)]
pub struct Listed {
    pub codes: Vec<i64>,
    pub weights: Vec<f64>,
}

/// Buffers of a search for the best path: scores of one sequence and the state of the search.
#[derive(Default)]
pub struct LcrfWork {
    attribute_lists: Vec<(u32, u32)>, // position of the list and id of each attribute
    pub node: Vec<f64>,               // [T, L]
    pub path: Vec<u16>,
    search: Viterbi64,
}

impl LcrfWork {
    /// Find the best path of the node scores and transitions [L, L], and return its score.
    pub fn find_path(&mut self, labels: usize, edge: &[f64]) -> f64 {
        self.search.run(&Scores { labels, node: &self.node, edge }, &mut self.path)
    }
}

fn damaged(what: String) -> Error {
    Error::ModelFile(what)
}

#[cold]
fn long_run() -> Error {
    damaged(format!("the attributes: {}; the file is damaged, copy it again", LongRun::TEXT))
}

/// Check the part LFRF or AFRF and return the position of the offsets of its lists.
fn attribute_lists(file: &[u8], at: usize, name: &str, owners: usize) -> Result<usize> {
    let n = u32_at(file, at + 8) as usize;
    if &file[at..at + 4] != name.as_bytes() || n < owners || at + 12 + 4 * n > file.len() {
        return Err(damaged(format!("{name}: lists of {owners} outside the file; it is damaged, copy it again")));
    }
    Ok(at + 12)
}

/// Return the entries of the list at a byte, or `None` if it is out of bounds.
#[inline(always)]
fn entries(file: &[u8], at: usize, max_entries: usize) -> Option<&[u8]> {
    let n = u32_at(file.get(at..at + 4).filter(|_| at >= HEAD)?, 0) as usize;
    file.get(at + 4..at + 4 + 4 * n).filter(|_| n <= max_entries)
}

/// Return a record: type, source, label, weight.
#[inline(always)]
fn record(file: &[u8], features: usize, id: usize) -> (u32, u32, u32, f64) {
    let at = features + RECORD * id;
    let r: &[u8; RECORD] = file[at..at + RECORD].try_into().unwrap_or(&[0; RECORD]);
    let weight = f64::from_le_bytes([r[12], r[13], r[14], r[15], r[16], r[17], r[18], r[19]]);
    (u32_at(r, 0), u32_at(r, 4), u32_at(r, 8), weight)
}

/// Reader of lists. Each feature must have the kind and the owner of its list and a valid label.
struct FeatureLists<'a> {
    file: &'a [u8],
    features: usize,
    count: usize,
    labels: usize,
}

impl FeatureLists<'_> {
    /// Return the label and weight of an entry of a list, or `None` if it is invalid. `fault` returns the reason.
    #[inline(always)]
    fn feature(&self, entry: &[u8], kind: u32, owner: u32) -> Option<(usize, f64)> {
        let id = u32_at(entry, 0) as usize;
        if id >= self.count {
            return None;
        }
        let (type_, source, label, weight) = record(self.file, self.features, id);
        let is_valid =
            type_ == kind && source == owner && (label as usize) < self.labels && (weight as f32).is_finite();
        is_valid.then_some((label as usize, weight))
    }

    /// Return the error for a weight that is not finite, with the names of its feature, or `None` if the fault is
    /// another one.
    #[cold]
    fn named(&self, at: usize, kind: u32, owner: usize, owners: &Cqdb, labels: &Cqdb) -> Option<Error> {
        let list = entries(self.file, at, self.count)?;
        let entry = list.chunks_exact(4).find(|entry| self.feature(entry, kind, owner as u32).is_none())?;
        let id = u32_at(entry, 0) as usize;
        let (type_, source, label, weight) = (id < self.count).then(|| record(self.file, self.features, id))?;
        if type_ != kind || source as usize != owner || label as usize >= self.labels {
            return None;
        }
        let (from, to) = (owners.text(self.file, owner), labels.text(self.file, label as usize));
        Some(damaged(format!(
            "the weight of '{}' -> '{}' is {weight}; expected numbers within float32; train again, or copy the file again",
            from.escape_ascii(),
            to.escape_ascii()
        )))
    }

    /// Return the error for a list. The names of its owner and of all labels must have been checked.
    #[cold]
    fn named_fault(&self, at: usize, kind: u32, owner: usize, owners: &Cqdb, labels: &Cqdb) -> Error {
        self.named(at, kind, owner, owners, labels).unwrap_or_else(|| self.fault(at, kind, owner as u32))
    }

    /// Return the error for a list.
    #[cold]
    fn fault(&self, at: usize, kind: u32, owner: u32) -> Error {
        let (name, what) = if kind == 0 { ("AFRF", "attribute") } else { ("LFRF", "label") };
        let Some(list) = entries(self.file, at, self.count) else {
            return damaged(format!("{name}: a list outside the file; it is damaged, copy it again"));
        };
        let Some(entry) = list.chunks_exact(4).find(|entry| self.feature(entry, kind, owner).is_none()) else {
            return Error::Internal(format!("{name}: a list without a fault was refused"));
        };
        let id = u32_at(entry, 0) as usize;
        if id >= self.count {
            return damaged(format!("{name}: feature {id} of {}; the file is damaged", self.count));
        }
        let (type_, source, label, weight) = record(self.file, self.features, id);
        if type_ != kind || source != owner {
            return damaged(format!(
                "a list of a {what} names a feature of another; the file is damaged, copy it again"
            ));
        }
        if label as usize >= self.labels {
            return damaged(format!("a feature of label {label} of {}; the file is damaged", self.labels));
        }
        damaged(format!(
            "the weight of {what} {owner} -> label {label} is {weight}; expected numbers within float32; train again, or \
             copy the file again"
        ))
    }
}

impl Lcrf {
    /// Open a model from the bytes of a file.
    pub fn open(bytes: Bytes) -> Result<Lcrf> {
        let file = (*bytes).as_ref();
        if file.len() < HEAD {
            let n = file.len();
            return Err(damaged(format!("{n} bytes; a CRFsuite model has {HEAD} and more: the file is cut short")));
        }
        let head = |i: usize| u32_at(file, 4 * i) as usize;
        if &file[..4] != b"lCRF" || &file[8..12] != b"FOMC" || head(3) != 100 {
            let kind = file[8..12].escape_ascii();
            return Err(damaged(format!(
                "a CRFsuite model of type b'{kind}', version {}; expected b'FOMC', version 100",
                head(3)
            )));
        }
        if head(1) > file.len() {
            return Err(damaged(format!("{} bytes of {}: the file is cut short, copy it again", file.len(), head(1))));
        }
        let (n_labels, n_attributes) = (head(5), head(6));
        let parts: [usize; 5] = std::array::from_fn(|i| head(7 + i));
        if parts.iter().any(|&at| at < HEAD || at + 12 > file.len()) {
            return Err(damaged(format!(
                "parts at {parts:?}, outside the file of {} bytes; copy it again",
                file.len()
            )));
        }
        let [at_features, at_labels, at_attributes, at_out, at_of] = parts;
        let count = u32_at(file, at_features + 8) as usize;
        if &file[at_features..at_features + 4] != b"FEAT" || 12 + RECORD * count > file.len() - at_features {
            let n = file.len();
            return Err(damaged(format!("{count} features outside the file of {n} bytes; copy it again")));
        }
        if n_labels > MAX_LABELS {
            return Err(damaged(format!("{n_labels} labels; expected at most {MAX_LABELS}")));
        }
        let labels = Cqdb::open(file, at_labels, n_labels, "labels", true)?;
        let attributes = Cqdb::open(file, at_attributes, n_attributes, "attributes", false)?;
        let of = attribute_lists(file, at_of, "AFRF", n_attributes)?;
        let out = attribute_lists(file, at_out, "LFRF", n_labels)?;
        let features = at_features + 12;
        let check = FeatureLists { file, features, count, labels: n_labels };
        claim_pairs(n_labels, 8)?;
        let mut edge = vec![0.0; n_labels * n_labels];
        for from in 0..n_labels {
            let at = u32_at(file, out + 4 * from) as usize;
            let fault = || check.named_fault(at, 1, from, &labels, &labels);
            for entry in entries(file, at, count).ok_or_else(fault)?.chunks_exact(4) {
                let (to, weight) = check.feature(entry, 1, from as u32).ok_or_else(fault)?;
                edge[from * n_labels + to] = weight;
            }
        }
        Ok(Lcrf { labels, attributes, features, count, attribute_lists: of, label_lists: out, edge, bytes })
    }

    /// Return the bytes of the file.
    pub fn file(&self) -> &[u8] {
        (*self.bytes).as_ref()
    }

    pub fn n_labels(&self) -> usize {
        self.labels.len()
    }

    /// Return the name of a label.
    pub fn label(&self, y: usize) -> &[u8] {
        self.labels.text(self.file(), y)
    }

    /// Check the complete file and return the features of attributes and of label pairs.
    pub fn whole(&self) -> Result<(Listed, Listed)> {
        self.attributes.check(self.file(), "attributes")?;
        let node = self.listed(0, self.attribute_lists, &self.attributes)?;
        Ok((node, self.listed(1, self.label_lists, &self.labels)?))
    }

    /// Return the features in the lists of `owners`, whose offsets are at `at`.
    fn listed(&self, kind: u32, at: usize, owners: &Cqdb) -> Result<Listed> {
        let (file, l) = (self.file(), self.n_labels());
        let of = FeatureLists { file, features: self.features, count: self.count, labels: l };
        let mut out = Listed::default();
        for owner in 0..owners.len() {
            let place = u32_at(file, at + 4 * owner) as usize;
            let fault = || of.named_fault(place, kind, owner, owners, &self.labels);
            let list = entries(file, place, self.count).ok_or_else(fault)?;
            if out.codes.len() + list.len() / 4 > self.count {
                return Err(damaged("lists longer than there are features; the file is damaged, copy it again".into()));
            }
            for entry in list.chunks_exact(4) {
                let (label, weight) = of.feature(entry, kind, owner as u32).ok_or_else(fault)?;
                out.codes.push((owner * l + label) as i64);
                out.weights.push(weight);
            }
        }
        Ok(out)
    }

    pub fn n_attributes(&self) -> usize {
        self.attributes.len()
    }

    /// Return the name of an attribute. The whole file must have been checked.
    pub fn attribute(&self, id: usize) -> &[u8] {
        self.attributes.text(self.file(), id)
    }

    /// Return the transitions [L, L].
    pub fn edge(&self) -> &[f64] {
        &self.edge
    }

    /// Append the position of the list and the id of each named attribute, with the id `NONE` if the model does not
    /// have it.
    ///
    /// Slots, strings, offsets, lists and features are scattered over the file. Each is prefetched for all names before
    /// any is read, so that memory latencies overlap.
    fn look_up(&self, names: &Names, range: Range<usize>, into: &mut Vec<(u32, u32)>) -> Result<()> {
        let (file, n) = (self.file(), range.len());
        let prefetch_at = |at: usize| prefetch(file.as_ptr().wrapping_add(at));
        let (mut hashes, mut ids, mut places) = ([0u32; NAMES_AT_ONCE], [NONE; NAMES_AT_ONCE], [0u32; NAMES_AT_ONCE]);
        for (h, i) in hashes.iter_mut().zip(range.clone()) {
            *h = hash(names.name(i));
            self.attributes.prefetch_slot(file, *h);
        }
        hashes[..n].iter().for_each(|&h| self.attributes.prefetch_text(file, h));
        for (k, i) in range.enumerate() {
            let found = self.attributes.find(file, names.name(i), hashes[k]);
            ids[k] = found.map_err(|_| long_run())?.unwrap_or(NONE);
            if (ids[k] as usize) < self.attributes.len() {
                prefetch_at(self.attribute_lists + 4 * ids[k] as usize);
            } else if ids[k] != NONE {
                return Err(damaged(format!(
                    "the attributes: number {} of {}; the file is damaged, copy it again",
                    ids[k],
                    self.attributes.len()
                )));
            }
        }
        for (place, &id) in places.iter_mut().zip(&ids[..n]) {
            *place = if id == NONE { 0 } else { u32_at(file, self.attribute_lists + 4 * id as usize) };
            prefetch_at(*place as usize);
        }
        for &place in &places[..n] {
            if let Some(entry) = entries(file, place as usize, self.count).and_then(|list| list.get(..4)) {
                let first = self.features + RECORD * u32_at(entry, 0) as usize;
                prefetch_at(first);
                prefetch_at(first + 64);
            }
        }
        into.extend(places[..n].iter().copied().zip(ids[..n].iter().copied()));
        Ok(())
    }

    /// Score the items `items` of some names into work.node [T, L].
    pub fn score(&self, names: &Names, items: Range<usize>, work: &mut LcrfWork) -> Result<()> {
        let (file, l) = (self.file(), self.n_labels());
        let begin = if items.start == 0 { 0 } else { names.items[items.start - 1] };
        let end = if items.is_empty() { begin } else { names.items[items.end - 1] };
        work.attribute_lists.clear();
        for from in (begin..end).step_by(NAMES_AT_ONCE) {
            self.look_up(names, from..end.min(from + NAMES_AT_ONCE), &mut work.attribute_lists)?;
        }
        let of = FeatureLists { file, features: self.features, count: self.count, labels: l };
        work.node.clear();
        work.node.resize(items.len() * l, 0.0);
        let mut from = begin;
        for (t, item) in items.enumerate() {
            let row = &mut work.node[t * l..(t + 1) * l];
            for i in from..names.items[item] {
                let (at, id) = work.attribute_lists[i - begin];
                if id == NONE {
                    continue;
                }
                let (at, value) = (at as usize, names.value(i));
                let fault = || of.fault(at, 0, id);
                for entry in entries(file, at, self.count).ok_or_else(fault)?.chunks_exact(4) {
                    let (label, weight) = of.feature(entry, 0, id).ok_or_else(fault)?;
                    row[label] += weight * value;
                }
            }
            from = names.items[item];
        }
        Ok(())
    }

    /// Find the best path of the scores in `work`.
    pub fn best(&self, work: &mut LcrfWork) {
        work.find_path(self.n_labels(), &self.edge);
    }

    /// Return log Z and the marginals [T, L] of node scores.
    pub fn marginals(&self, node: &[f64]) -> (f64, Vec<f64>) {
        let scores = Scores { labels: self.n_labels(), node, edge: &self.edge };
        let mut trellis = Trellis::default();
        trellis.forward(&scores);
        trellis.backward(&scores);
        (trellis.log_z, (0..node.len()).map(|at| trellis.node_marginal(at)).collect())
    }
}
