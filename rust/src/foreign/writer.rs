//! Writer of CRFsuite models, byte for byte as CRFsuite writes them.
//!
//! Features are sorted by (type, source, label). Weights of 0 and attributes without features are left out, and all
//! labels are kept. The number of features in the header is 0, and LFRF has two more empty lists than labels.

use crate::error::{Error, Result};
use crate::foreign::cqdb::{self, push};
use crate::foreign::names::Names;

const HEAD: usize = 48;
const RECORD: usize = 20;
/// Number of additional empty lists of LFRF.
const EMPTY_LISTS: usize = 2;

/// Features of one kind: ascending codes source * L + label, and weights.
#[derive(Clone, Copy)]
pub struct Weighted<'a> {
    pub codes: &'a [i64],
    pub weights: &'a [f64],
}

impl Weighted<'_> {
    /// Return (source, label, weight) of the features with a weight other than 0.
    fn present(&self, sources: usize, labels: usize) -> Result<Vec<(usize, usize, f64)>> {
        let end = sources.saturating_mul(labels) as i64;
        let inside = self.codes.iter().all(|&code| (0..end).contains(&code));
        if self.codes.len() != self.weights.len() || !inside || self.codes.windows(2).any(|c| c[0] >= c[1]) {
            return Err(Error::Value(format!("expected ascending codes below {end}, and a weight for each")));
        }
        let of = |(&code, &weight): (&i64, &f64)| (code as usize / labels, code as usize % labels, weight);
        Ok(self.codes.iter().zip(self.weights).filter(|(_, &weight)| weight != 0.0).map(of).collect())
    }
}

/// Append LFRF or AFRF: lists of the features from `first` on, whose owners (below `n`) are ascending.
fn lists(out: &mut Vec<u8>, name: &[u8], owners: impl Iterator<Item = usize>, n: usize, more: usize, first: usize) {
    let mut sizes = vec![0; n];
    owners.for_each(|owner| sizes[owner] += 1);
    let at = out.len();
    let begin = at + 12 + 4 * (n + more);
    let total: usize = sizes.iter().map(|size| 4 + 4 * size).sum();
    out.extend_from_slice(name);
    push(out, &[begin - at + total, n + more]);
    let mut place = begin;
    for size in &sizes {
        push(out, &[place]);
        place += 4 + 4 * size;
    }
    push(out, &vec![0; more]);
    let mut next = first;
    for &size in &sizes {
        push(out, &[size]);
        (next..next + size).for_each(|id| push(out, &[id]));
        next += size;
    }
}

/// Return names, which must not contain NUL, the terminator in the file.
fn texts<'a>(names: &'a Names, used: &[usize], what: &str) -> Result<Vec<&'a [u8]>> {
    let one = |&i: &usize| match names.name(i) {
        name if name.contains(&0) => Err(Error::ModelFile(format!(
            "crfsuite cannot express the {what} b'{}', which contains NUL",
            name.escape_ascii()
        ))),
        name => Ok(name),
    };
    used.iter().map(one).collect()
}

/// Return the file of a model: names of labels and of all attributes, features of attributes and of label pairs.
pub fn write_model(labels: &Names, attributes: &Names, node: Weighted<'_>, edge: Weighted<'_>) -> Result<Vec<u8>> {
    let n = labels.ends.len();
    let (mut node, edge) = (node.present(attributes.ends.len(), n)?, edge.present(n, n)?);
    let mut used: Vec<usize> = Vec::new();
    for (source, ..) in &mut node {
        if used.last() != Some(source) {
            used.push(*source);
        }
        *source = used.len() - 1;
    }
    let names = texts(labels, &(0..n).collect::<Vec<_>>(), "label")?;
    let used = texts(attributes, &used, "attribute")?;
    let count = node.len() + edge.len();
    let at_labels = HEAD + 12 + RECORD * count;
    let at_attributes = at_labels + cqdb::size(&names);
    let at_out = (at_attributes + cqdb::size(&used)).next_multiple_of(4);
    let at_of = at_out + 12 + 4 * (2 * n + EMPTY_LISTS + edge.len());
    let size = at_of + 12 + 4 * (2 * used.len() + node.len());
    if size >= 1 << 32 {
        return Err(Error::ModelFile(format!(
            "crfsuite cannot express a model of {size} bytes; expected less than 4 GiB"
        )));
    }
    let mut out = Vec::with_capacity(size);
    out.extend_from_slice(b"lCRF");
    push(&mut out, &[size]);
    out.extend_from_slice(b"FOMC");
    push(&mut out, &[100, 0, n, used.len(), HEAD, at_labels, at_attributes, at_out, at_of]);
    out.extend_from_slice(b"FEAT");
    push(&mut out, &[12 + RECORD * count, count]);
    for (kind, features) in [(0, &node), (1, &edge)] {
        for &(source, label, weight) in features {
            push(&mut out, &[kind, source, label]);
            out.extend_from_slice(&weight.to_le_bytes());
        }
    }
    cqdb::write(&mut out, &names);
    cqdb::write(&mut out, &used);
    out.resize(at_out, 0);
    lists(&mut out, b"LFRF", edge.iter().map(|f| f.0), n, EMPTY_LISTS, node.len());
    lists(&mut out, b"AFRF", node.iter().map(|f| f.0), used.len(), 0, 0);
    match out.len() == size {
        true => Ok(out),
        false => Err(Error::Internal(format!("a CRFsuite model of {} bytes in place of {size}", out.len()))),
    }
}
