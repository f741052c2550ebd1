//! Atoms, parts, rules: what a template compiles to.

use crate::features::text::{Frequent, Function, Test};
use crate::machine::system::hash::{hash, Key};
use std::sync::Arc;

/// A value of a token: functions of one column's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Atom {
    pub column: usize,
    pub functions: Vec<Function>,
}

impl Atom {
    /// The list of frequent texts that the atom asks, and the functions before it.
    pub fn frequent(&self) -> Option<(&[Function], &Frequent)> {
        match self.functions.split_last()? {
            (Function::Test(Test::IsRare(list) | Test::IsFrequent(list)), before) => Some((before, list)),
            _ => None,
        }
    }

    pub fn set_frequent(&mut self, texts: Vec<String>) {
        if let Some(Function::Test(Test::IsRare(list) | Test::IsFrequent(list))) = self.functions.last_mut() {
            list.texts = Some(Arc::from(texts));
        }
    }
}

/// An atom of the token `offset` away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    pub atom: usize,
    pub offset: isize,
    /// Only whether it holds matters: no text of its own, and no value outside the sentence.
    pub test: bool,
}

/// What makes one attribute at a token, or none where an atom has no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TemplateRule {
    pub parts: Vec<Part>,
    /// Text before, between and after the values: one more than parts.
    pub pieces: Vec<String>,
    pub seed: Key,
    /// Conjoined with the label pair that ends at the token instead of with its label.
    pub edge: bool,
    /// Outside the sentence an atom has the value _B-1, _B-2, ... or _B+1, ...; otherwise it has none.
    pub pad: bool,
    /// Only at the first, only at the last token.
    pub first: bool,
    pub last: bool,
}

impl TemplateRule {
    /// Column and offset that every part looks at, where they are the same for all and the position does not matter.
    pub fn single(&self, atoms: &[Atom]) -> Option<(usize, isize)> {
        let place = |p: &Part| (atoms[p.atom].column, p.offset);
        let one = self.parts.first().map(place).filter(|_| !self.first && !self.last)?;
        self.parts.iter().all(|p| place(p) == one).then_some(one)
    }
}

/// A rule with its atoms spelled out, as the parsers make it.
pub(crate) struct Draft {
    pub parts: Vec<(Atom, isize, bool)>,
    pub pieces: Vec<String>,
    pub edge: bool,
    pub pad: bool,
    pub first: bool,
    pub last: bool,
}

/// Value of an atom `distance` tokens outside the sentence; no text hashes to it but by accident.
pub fn outside(distance: isize) -> Key {
    let mut bytes = *b"\xffoutside\xff00000000";
    bytes[9..].copy_from_slice(&(distance as i64).to_le_bytes());
    hash(&bytes)
}

/// Text of that value, CRF++'s convention.
pub fn outside_text(distance: isize) -> String {
    format!("_B{distance:+}")
}
