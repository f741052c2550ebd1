//! Atoms, parts and rules, the compiled form of a template.

use crate::features::text::{Frequent, Function, Test};
use crate::machine::system::hash::{hash, Key};
use std::sync::Arc;

/// Value of a token: functions of the text of one column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Atom {
    pub column: usize,
    pub functions: Vec<Function>,
}

impl Atom {
    /// Return the list of frequent texts that the atom uses, and the functions before it.
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

/// Atom of the token at `offset`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    pub atom: usize,
    pub offset: isize,
    /// A predicate: it has no text of its own, and no value outside of the sentence.
    pub test: bool,
}

/// Rule for one attribute per token. No attribute is created if an atom has no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TemplateRule {
    pub parts: Vec<Part>,
    /// Text before, between and after the values, one more than parts.
    pub pieces: Vec<String>,
    pub seed: Key,
    /// Conjoined with the label pair that ends at the token instead of with its label.
    pub edge: bool,
    /// Outside of the sentence an atom has the value _B-1, _B-2, ... or _B+1, ... if set, and no value otherwise.
    pub pad: bool,
    /// Only at the first or only at the last token.
    pub first: bool,
    pub last: bool,
}

impl TemplateRule {
    /// Return the common column and offset of all parts, if they are equal and the position does not matter.
    pub fn single(&self, atoms: &[Atom]) -> Option<(usize, isize)> {
        let place = |p: &Part| (atoms[p.atom].column, p.offset);
        let one = self.parts.first().map(place).filter(|_| !self.first && !self.last)?;
        self.parts.iter().all(|p| place(p) == one).then_some(one)
    }
}

/// Rule with its atoms inline, as the parsers return it.
pub(crate) struct Draft {
    pub parts: Vec<(Atom, isize, bool)>,
    pub pieces: Vec<String>,
    pub edge: bool,
    pub pad: bool,
    pub first: bool,
    pub last: bool,
}

/// Return the value of an atom `distance` tokens outside of the sentence. Texts have this hash only by collision.
pub fn outside(distance: isize) -> Key {
    let mut bytes = *b"\xffoutside\xff00000000";
    bytes[9..].copy_from_slice(&(distance as i64).to_le_bytes());
    hash(&bytes)
}

/// Return the text of that value, in the convention of CRF++.
pub fn outside_text(distance: isize) -> String {
    format!("_B{distance:+}")
}
