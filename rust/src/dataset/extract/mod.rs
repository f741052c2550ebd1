//! Feature extraction: tokens x template -> attribute ids. Lookups build no text.
//!
//! Each atom is hashed once per distinct text of its column, and the key of an attribute is mixed from the seed of its
//! rule and the hashes of its atoms (compositional hashing). A rule on one column of one token is a function of that
//! text only. Such rules are grouped by column and offset, and the ids of a group are found once per distinct text, or
//! once for all calls if the vocabulary is locked (`known`). Only rules that combine tokens or columns are looked up at
//! every token. The attributes of a token are ordered group by group, followed by the joint rules, each in the order of
//! the template.

mod joint;
pub mod known;
mod locked;

use crate::dataset::runs::BufferPool;
use crate::dataset::vocab::{Vocab, NONE};
use crate::machine::system::budget;
use crate::machine::system::stop;

use crate::dataset::csr::Csr;
use crate::dataset::Dataset;
use crate::error::Result;
use crate::features::rule::{outside, outside_text, Part, TemplateRule};
use crate::features::template::Template;
use crate::features::text::{apply, lower, Function, TextScratch};
use crate::features::tokens::Tokens;
use crate::machine::system::hash::{hash, Key};
use joint::JointRule;
use rayon::prelude::*;
use std::sync::Arc;

/// Key of an atom without a value.
const ABSENT: Key = Key { key: 0, check: 0 };
/// Tokens (or distinct texts) per parallel task. Fixed, so that results do not depend on the number of threads.
const CHUNK: usize = 4096;
/// Entries before the ids of a group in the row of a text: the number of ids.
const HEAD: usize = 1;

/// Folded 64 x 64 -> 128 bit product. Every bit of both factors affects every bit of the result.
#[inline]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

/// Hash from which the key of a rule is mixed: a whole key while a vocabulary grows, its stored half for lookups.
trait Hash: Copy {
    const ABSENT: Self;
    fn of(key: Key) -> Self;
    fn is_absent(self) -> bool;
    /// Return the key extended by one more value. The order matters.
    fn mix(self, value: Self) -> Self;
    /// Return the key, changed if it is equal to `ABSENT`.
    fn present(self) -> Self;
}

impl Hash for u64 {
    const ABSENT: u64 = ABSENT.key;
    #[inline(always)]
    fn of(key: Key) -> u64 {
        key.key
    }
    #[inline(always)]
    fn is_absent(self) -> bool {
        self == ABSENT.key
    }
    #[inline(always)]
    fn mix(self, value: u64) -> u64 {
        fold(self ^ 0x8bb8_4b93_962e_acc9, value ^ 0x4b33_a62e_d433_d4a3)
    }
    #[inline(always)]
    fn present(self) -> u64 {
        self.max(1)
    }
}

impl Hash for Key {
    const ABSENT: Key = ABSENT;
    #[inline(always)]
    fn of(key: Key) -> Key {
        key
    }
    #[inline(always)]
    fn is_absent(self) -> bool {
        self.key == ABSENT.key
    }
    #[inline(always)]
    fn mix(self, value: Key) -> Key {
        let check = fold(self.check ^ 0x4d5a_2da5_1de1_aa47, value.check ^ 0xa076_1d64_78bd_642f);
        Key { key: self.key.mix(value.key), check }
    }
    #[inline(always)]
    fn present(self) -> Key {
        Key { key: self.key.present(), check: self.check }
    }
}

/// Rules whose parts all read one column of the token at `offset`. While a vocabulary grows, the group has HEAD entries
/// in the row of each text in the id table of the column: the number of its attributes, followed by their ids.
struct Group<'a> {
    column: usize,
    offset: isize,
    place: usize,
    number: usize, // index among the groups of the column
    rules: Vec<&'a TemplateRule>,
    pad: bool,
}

/// Part of a joint rule. `place` is its position in the column's row of `joined`.
struct JointPart {
    column: usize,
    place: usize,
    offset: isize,
    test: bool,
}

/// Rules of node or of edge attributes.
#[derive(Default)]
struct RulePlan<'a> {
    groups: Vec<Group<'a>>,
    joint: Vec<(&'a TemplateRule, Vec<JointPart>)>, // rules that combine tokens or columns
    width: usize,                                   // maximum number of attributes per token
}

/// Template applied to tokens: the values of its atoms at the distinct texts from `since` on.
pub struct Extractor<'a> {
    template: &'a Template,
    tokens: &'a Tokens,
    node: RulePlan<'a>,
    edge: RulePlan<'a>,
    place: Vec<(usize, usize)>, // [atoms] column, place in the column's row
    widths: Vec<usize>,         // [columns] atoms of the column
    slots: Vec<usize>,          // [columns] entries of all groups of the column
    groups: Vec<usize>,         // [columns] number of groups
    since: Vec<usize>,          // [columns] first text to look up
    values: Vec<Vec<Key>>,      // [columns] [texts from there on x atoms of the column]
    shared: Vec<Vec<usize>>,    // [columns] atoms of the column that joint rules use
    jobs: Jobs,
    buffers: Arc<BufferPool>, // buffers of dropped datasets
}

/// Parallel or serial execution over chunks. Results are in order.
struct Jobs(bool);

impl Jobs {
    /// Use the threads of the current pool, or run serially if there is too little work.
    fn new(threads: usize, work: usize) -> Jobs {
        Jobs(threads.min(work.div_ceil(CHUNK)) > 1)
    }

    /// Apply `f` to the chunks of a range and concatenate the results in order.
    fn concat<T: Clone + Send>(
        &self,
        all: std::ops::Range<usize>,
        f: impl Fn(std::ops::Range<usize>) -> Vec<T> + Sync + Send,
    ) -> Vec<T> {
        match self.0 {
            true => self.map(chunks(all), f).concat(),
            false => f(all),
        }
    }

    fn map<I: Send, T: Send>(&self, items: Vec<I>, f: impl Fn(I) -> T + Sync + Send) -> Vec<T> {
        match self.0 {
            true => {
                let stop = stop::current();
                let one = |item| {
                    let _guard = stop.enter();
                    f(item)
                };
                items.into_par_iter().map(one).collect()
            }
            false => items.into_iter().map(f).collect(),
        }
    }
}

/// Split a range into ranges of at most `CHUNK`.
fn chunks(all: std::ops::Range<usize>) -> Vec<std::ops::Range<usize>> {
    let end = all.end;
    all.step_by(CHUNK).map(|begin| begin..end.min(begin + CHUNK)).collect()
}

impl<'a> Extractor<'a> {
    /// Create an extractor. `buffers`: buffers for runs, which are returned to it. `since`: [columns] first text whose
    /// values are needed, empty for all.
    pub fn new(
        template: &'a Template,
        tokens: &'a Tokens,
        threads: usize,
        buffers: Arc<BufferPool>,
        mut since: Vec<usize>,
    ) -> Extractor<'a> {
        since.resize(tokens.columns.len(), 0);
        let mut widths = vec![0; tokens.columns.len()];
        let place = template.atoms.iter().map(|atom| {
            widths[atom.column] += 1;
            (atom.column, widths[atom.column] - 1)
        });
        let place = place.collect();
        let mut slots = vec![0; tokens.columns.len()];
        let mut shared: Vec<Vec<usize>> = vec![Vec::new(); tokens.columns.len()];
        let (mut node, mut edge) = (RulePlan::default(), RulePlan::default());
        for rule in &template.rules {
            let plan = if rule.edge { &mut edge } else { &mut node };
            plan.width += 1;
            match rule.single(&template.atoms) {
                None => {
                    let parts = rule.parts.iter().map(|part| {
                        let column = template.atoms[part.atom].column;
                        let known = shared[column].iter().position(|&atom| atom == part.atom);
                        let place = known.unwrap_or_else(|| {
                            shared[column].push(part.atom);
                            shared[column].len() - 1
                        });
                        JointPart { column, place, offset: part.offset, test: part.test }
                    });
                    plan.joint.push((rule, parts.collect()));
                }
                Some((column, offset)) => {
                    match plan.groups.iter_mut().find(|g| (g.column, g.offset) == (column, offset)) {
                        Some(group) => group.rules.push(rule),
                        None => plan.groups.push(Group {
                            column,
                            offset,
                            place: 0,
                            number: 0,
                            rules: vec![rule],
                            pad: false,
                        }),
                    }
                }
            }
        }
        let mut groups = vec![0; tokens.columns.len()];
        for group in node.groups.iter_mut().chain(&mut edge.groups) {
            group.number = groups[group.column];
            groups[group.column] += 1;
            group.pad = group.rules.iter().any(|r| r.pad);
            group.place = slots[group.column];
            slots[group.column] += HEAD + group.rules.len();
        }
        let jobs = Jobs::new(threads, tokens.tokens());
        let mut extractor = Extractor {
            template,
            tokens,
            node,
            edge,
            place,
            widths,
            slots,
            groups,
            since,
            values: Vec::new(),
            shared,
            jobs,
            buffers,
        };
        extractor.values = (0..tokens.columns.len()).map(|c| extractor.values_of(c)).collect();
        extractor
    }

    /// Return the hashes of all atoms of a column at its distinct texts.
    fn values_of(&self, column: usize) -> Vec<Key> {
        let atoms: Vec<_> = self.template.atoms.iter().filter(|a| a.column == column).collect();
        let texts = &self.tokens.columns[column];
        self.jobs.concat(self.since[column]..texts.texts(), |range| {
            let (mut scratch, mut lower_text) = (TextScratch::default(), String::new());
            let mut values = Vec::with_capacity(range.len() * atoms.len());
            for number in range {
                lower_text.clear();
                for atom in &atoms {
                    let text = texts.text(number);
                    let value = match &atom.functions[..] {
                        [] => {
                            values.push(texts.key(number).present());
                            continue;
                        }
                        // Most affixes are those of lower-case text, which is computed once.
                        [Function::Lower, rest @ ..] => {
                            if lower_text.is_empty() {
                                lower(text, &mut lower_text);
                            }
                            apply(rest, &lower_text, &mut scratch)
                        }
                        functions => apply(functions, text, &mut scratch),
                    };
                    values.push(value.map_or(ABSENT, |value| hash(value.as_bytes()).present()));
                }
            }
            values
        })
    }

    /// Return the value of a part at token `t` of the sentence of `length` tokens at `begin`.
    #[inline]
    fn value(&self, part: &Part, pad: bool, begin: usize, t: usize, length: usize) -> Key {
        let at = t as isize + part.offset;
        if at >= 0 && at < length as isize {
            let (column, place) = self.place[part.atom];
            let text = self.tokens.columns[column].cells[begin + at as usize] as usize;
            self.values[column][(text - self.since[column]) * self.widths[column] + place]
        } else if pad && !part.test {
            outside(distance(at, length))
        } else {
            ABSENT
        }
    }

    /// Return the key of the rule's attribute at a token, or `ABSENT`.
    #[inline]
    fn key(&self, rule: &TemplateRule, begin: usize, t: usize, length: usize) -> Key {
        if (rule.first && t > 0) || (rule.last && t + 1 < length) || (rule.edge && t == 0) {
            return ABSENT;
        }
        let mut key = rule.seed;
        for part in &rule.parts {
            let value = self.value(part, rule.pad, begin, t, length);
            if value.key == ABSENT.key {
                return ABSENT;
            }
            key = key.mix(value);
        }
        key.present()
    }

    /// Return the distinct text that a group reads at token t. `None` outside of the sentence, and for edge rules at
    /// the first token.
    #[inline(always)]
    fn text_at(&self, group: &Group<'_>, begin: usize, t: usize, length: usize) -> Option<usize> {
        let at = t as isize + group.offset;
        let inside = at >= 0 && at < length as isize && !(group.rules[0].edge && t == 0);
        inside.then(|| self.tokens.columns[group.column].cells[begin + at as usize] as usize)
    }

    /// Return the key of a rule of a group at a distinct text of its column.
    #[inline]
    fn group_key(&self, rule: &TemplateRule, column: usize, text: usize) -> Key {
        let row = &self.values[column][(text - self.since[column]) * self.widths[column]..];
        let mut key = rule.seed;
        for part in &rule.parts {
            let value = row[self.place[part.atom].1];
            if value.key == ABSENT.key {
                return ABSENT;
            }
            key = key.mix(value);
        }
        key.present()
    }

    /// Write the text of the rule's attribute at a token that has one.
    fn render(&self, rule: &TemplateRule, begin: usize, t: usize, length: usize, out: &mut Vec<u8>) {
        let mut scratch = TextScratch::default();
        for (piece, part) in rule.pieces.iter().zip(&rule.parts) {
            out.extend_from_slice(piece.as_bytes());
            let at = t as isize + part.offset;
            if part.test {
                continue;
            }
            if at < 0 || at >= length as isize {
                out.extend_from_slice(outside_text(distance(at, length)).as_bytes());
                continue;
            }
            let atom = &self.template.atoms[part.atom];
            let text = self.tokens.text(atom.column, begin + at as usize);
            out.extend_from_slice(apply(&atom.functions, text, &mut scratch).unwrap_or("").as_bytes());
        }
        out.extend_from_slice(rule.pieces.last().map_or(&[], |p| p.as_bytes()));
    }

    /// Return the texts of the attributes of every token, in the order of the template.
    pub fn texts(&self) -> Vec<Vec<String>> {
        let mut rows = Vec::with_capacity(self.tokens.tokens());
        for bounds in self.tokens.sentences.windows(2) {
            let (begin, length) = (bounds[0], bounds[1] - bounds[0]);
            for t in 0..length {
                let present = self.template.rules.iter().filter(|r| self.key(r, begin, t, length).key != ABSENT.key);
                let texts = present.map(|rule| {
                    let mut text = Vec::new();
                    self.render(rule, begin, t, length, &mut text);
                    String::from_utf8_lossy(&text).into_owned()
                });
                rows.push(texts.collect());
            }
        }
        rows
    }

    /// Check that the attributes fit into memory, assuming that every rule matches at every token.
    fn claim_rows(&self) -> Result<()> {
        let (tokens, width) = (self.tokens.tokens(), self.node.width.max(self.edge.width));
        let texts = self.tokens.columns.iter().zip(&self.slots).map(|(column, &slots)| column.texts() * slots);
        let known = budget::bytes(&[texts.sum(), size_of::<u32>()]);
        budget::claim(
            &format!("up to {width} attributes of each of {tokens} tokens"),
            budget::bytes(&[tokens, width * size_of::<u32>() + size_of::<usize>()]).saturating_add(known),
            "use fewer rules, encode fewer sentences at a time, or train on shards (tagwise encode)",
        )
    }

    /// Return the dataset in a growing vocabulary. New ids are in order of first occurrence.
    pub fn grow(&self, vocab: &mut Vocab) -> Result<Dataset> {
        self.claim_rows()?;
        let mut known: Vec<Vec<u32>> =
            self.tokens.columns.iter().zip(&self.slots).map(|(c, &slots)| vec![NONE; c.texts() * slots]).collect();
        let (mut rows, mut edge_rows) = (Csr::default(), Csr::default());
        // Capacity for every rule at every token. Untouched pages take no memory, and the excess is released below.
        rows.ids.reserve(self.tokens.tokens() * self.node.width);
        rows.ptr.reserve(self.tokens.tokens());
        let (mut keys, joined) = (Vec::new(), self.joined());
        let (node, edge) = (self.joints(&self.node, &joined), self.joints(&self.edge, &joined));
        for bounds in self.tokens.sentences.windows(2) {
            stop::check();
            let at = (bounds[0], bounds[1] - bounds[0]);
            self.intern(&self.node, at, vocab, (&mut known, &node), &mut keys, &mut rows)?;
            if !self.edge.is_empty() {
                self.intern(&self.edge, at, vocab, (&mut known, &edge), &mut keys, &mut edge_rows)?;
            }
        }
        rows.ids.shrink_to_fit();
        edge_rows.ids.shrink_to_fit();
        let sentences = self.tokens.sentences.clone();
        Ok(Dataset { sentences, node: rows.into(), edge: edge_rows, ..Dataset::default() })
    }

    /// Append the rows of the sentence of `length` tokens at `begin`, adding new attributes to the vocabulary.
    fn intern(
        &self,
        plan: &RulePlan<'_>,
        (begin, length): (usize, usize),
        vocab: &mut Vocab,
        (known, joints): (&mut [Vec<u32>], &[JointRule<'_, Key>]),
        keys: &mut Vec<Key>,
        rows: &mut Csr,
    ) -> Result<()> {
        joint::keys(joints, begin, length, keys);
        vocab.prefetch_slots(keys.iter().map(|key| key.key));
        let mut keys = keys.iter();
        for t in 0..length {
            for group in &plan.groups {
                if let Some(text) = self.text_at(group, begin, t, length) {
                    let row = &mut known[group.column][text * self.slots[group.column] + group.place..];
                    let ids = |count: u32| HEAD..HEAD + count as usize;
                    if row[0] == NONE {
                        row[0] = 0;
                        for rule in &group.rules {
                            let key = self.group_key(rule, group.column, text);
                            if key.key != ABSENT.key {
                                row[HEAD + row[0] as usize] =
                                    vocab.intern(key, |out| self.render(rule, begin, t, length, out))?;
                                row[0] += 1;
                            }
                        }
                    } else {
                        row[ids(row[0])].iter().for_each(|&id| vocab.count(id));
                    }
                    rows.ids.extend_from_slice(&row[ids(row[0])]);
                } else if group.pad {
                    for rule in &group.rules {
                        let key = self.key(rule, begin, t, length);
                        if key.key != ABSENT.key {
                            rows.ids.push(vocab.intern(key, |out| self.render(rule, begin, t, length, out))?);
                        }
                    }
                }
            }
            for (joint, &key) in joints.iter().zip(keys.by_ref()) {
                if key.key != ABSENT.key {
                    rows.ids.push(vocab.intern(key, |out| self.render(joint.rule, begin, t, length, out))?);
                }
            }
            rows.end_row();
        }
        Ok(())
    }
}

impl RulePlan<'_> {
    fn is_empty(&self) -> bool {
        self.width == 0
    }
}

/// Return the distance from the sentence: -1 just before it, 1 just after it.
fn distance(at: isize, length: usize) -> isize {
    if at < 0 {
        at
    } else {
        at - length as isize + 1
    }
}
