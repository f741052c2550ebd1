//! Rules that combine tokens or columns: their keys at every token of a sentence.

use crate::dataset::extract::{distance, Extractor, Hash, JointPart, RulePlan};
use crate::features::rule::{outside, TemplateRule};
use std::ops::Range;

/// Data that a part of a rule reads.
struct PartSource<'a, H> {
    cells: &'a [u32], // [tokens] text of each token
    values: &'a [H],  // [texts, width]
    width: usize,
    place: usize,
    offset: isize,
    test: bool,
}

/// Rule with the sources of its parts.
pub struct JointRule<'a, H> {
    pub rule: &'a TemplateRule,
    parts: Vec<PartSource<'a, H>>,
}

impl Extractor<'_> {
    /// Return the values of the atoms that joint rules use, stored contiguously: [columns] [texts from `since` on x
    /// shared].
    pub(super) fn joined<H: Hash>(&self) -> Vec<Vec<H>> {
        (0..self.tokens.columns.len())
            .map(|c| {
                let rows = self.values[c].chunks_exact(self.widths[c].max(1));
                rows.flat_map(|row| self.shared[c].iter().map(|&atom| H::of(row[self.place[atom].1]))).collect()
            })
            .collect()
    }

    /// Return the joint rules of a plan over these values.
    pub(super) fn joints<'b, H: Hash>(&'b self, plan: &'b RulePlan<'_>, joined: &'b [Vec<H>]) -> Vec<JointRule<'b, H>> {
        let source = |part: &JointPart| PartSource {
            cells: &self.tokens.columns[part.column].cells,
            values: &joined[part.column],
            width: self.shared[part.column].len(),
            place: part.place,
            offset: part.offset,
            test: part.test,
        };
        let joints = plan.joint.iter();
        joints.map(|(rule, parts)| JointRule { rule, parts: parts.iter().map(source).collect() }).collect()
    }
}

impl<H: Hash> JointRule<'_, H> {
    /// Return the tokens of a sentence at which the rule may have an attribute.
    pub fn range(&self, length: usize) -> Range<usize> {
        let begin = if self.rule.last { length.saturating_sub(1) } else { 0 };
        let end = if self.rule.first { length.min(1) } else { length };
        begin.max(usize::from(self.rule.edge))..end
    }

    /// Return the key of a rule without parts.
    pub fn constant(&self) -> Option<H> {
        self.parts.is_empty().then(|| H::of(self.rule.seed).present())
    }

    /// Return the key of the rule's attribute at token t of the sentence of `length` tokens at `begin`, or `ABSENT`.
    #[inline(always)]
    pub fn key(&self, begin: usize, t: usize, length: usize) -> H {
        let mut key = H::of(self.rule.seed);
        for part in &self.parts {
            let at = t as isize + part.offset;
            let value = if at >= 0 && at < length as isize {
                part.values[part.cells[begin + at as usize] as usize * part.width + part.place]
            } else if self.rule.pad && !part.test {
                H::of(outside(distance(at, length)))
            } else {
                return H::ABSENT;
            };
            if value.is_absent() {
                return H::ABSENT;
            }
            key = key.mix(value);
        }
        key.present()
    }
}

/// Compute the keys of all rules at every token: [length, rules]. The outer loop is over rules, for cache locality.
pub fn keys<H: Hash>(joints: &[JointRule<'_, H>], begin: usize, length: usize, keys: &mut Vec<H>) {
    keys.clear();
    keys.resize(length * joints.len(), H::ABSENT);
    for (j, joint) in joints.iter().enumerate() {
        for t in joint.range(length) {
            keys[t * joints.len() + j] = joint.key(begin, t, length);
        }
    }
}
