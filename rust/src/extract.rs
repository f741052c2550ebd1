//! Tokens x template -> attribute ids. No text is built to look an attribute up.
//!
//! Each atom is hashed once per distinct text of its column, and an attribute's key is mixed from its rule's seed and its
//! atoms' hashes (compositional hashing). A rule that looks at a single token's column is a function of that text alone:
//! its id is found once per distinct text (`Local`). Only rules that join tokens or columns (`Joint`) are looked up at
//! every token. Attributes of a token stand in this order: local rules, joint rules, each as the template has them.

use crate::dataset::{Csr, Dataset};
use crate::error::Result;
use crate::template::{outside, outside_text, Part, Rule, Template};
use crate::text::{apply, Scratch};
use crate::tokens::Tokens;
use crate::vocab::{hash, Key, Vocab, NONE};
use rayon::prelude::*;

/// Marks an atom without a value.
const ABSENT: Key = Key { key: 0, check: 0 };
/// Tokens (or distinct texts) in one piece of parallel work: fixed, so that results never depend on the thread count.
const CHUNK: usize = 4096;

/// Folded 64 x 64 -> 128 bit product: every bit of both factors reaches every bit of the result.
#[inline]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

/// Key of a rule's attribute after one more value; order matters.
#[inline]
fn mix(sofar: Key, value: Key) -> Key {
    Key {
        key: fold(sofar.key ^ 0x8bb8_4b93_962e_acc9, value.key ^ 0x4b33_a62e_d433_d4a3),
        check: fold(sofar.check ^ 0x4d5a_2da5_1de1_aa47, value.check ^ 0xa076_1d64_78bd_642f),
    }
}

/// A rule whose parts all look at one column of one token.
struct Local<'a> {
    rule: &'a Rule,
    column: usize,
    offset: isize,
    slot: usize, // its place in the column's table of ids
}

/// The rules of node or of edge attributes.
#[derive(Default)]
struct Plan<'a> {
    local: Vec<Local<'a>>,
    joint: Vec<&'a Rule>,
}

/// A template laid over tokens: the values of its atoms at every distinct text.
pub struct Extractor<'a> {
    template: &'a Template,
    tokens: &'a Tokens,
    node: Plan<'a>,
    edge: Plan<'a>,
    place: Vec<(usize, usize)>, // [atoms] column, place in the column's row
    widths: Vec<usize>,         // [columns] atoms of the column
    slots: Vec<usize>,          // [columns] local rules of the column
    values: Vec<Vec<Key>>,      // [columns] [texts x atoms of the column]
    jobs: Jobs,
}

/// How work on chunks is spread; results come back in order.
struct Jobs(Option<rayon::ThreadPool>);

impl Jobs {
    /// One thread where there is too little to share, or where the system gives no more.
    fn new(threads: usize, work: usize) -> Jobs {
        let threads = threads.min(work.div_ceil(CHUNK));
        Jobs((threads > 1).then(|| rayon::ThreadPoolBuilder::new().num_threads(threads).build().ok()).flatten())
    }

    fn map<I: Send, T: Send>(&self, items: Vec<I>, f: impl Fn(I) -> T + Sync + Send) -> Vec<T> {
        match &self.0 {
            Some(pool) => pool.install(|| items.into_par_iter().map(f).collect()),
            None => items.into_iter().map(f).collect(),
        }
    }
}

/// Ranges of at most CHUNK numbers below `n`.
fn chunks(n: usize) -> Vec<std::ops::Range<usize>> {
    (0..n).step_by(CHUNK).map(|begin| begin..n.min(begin + CHUNK)).collect()
}

impl<'a> Extractor<'a> {
    pub fn new(template: &'a Template, tokens: &'a Tokens, threads: usize) -> Extractor<'a> {
        let mut widths = vec![0; tokens.columns.len()];
        let place = template.atoms.iter().map(|atom| {
            widths[atom.column] += 1;
            (atom.column, widths[atom.column] - 1)
        });
        let place = place.collect();
        let mut slots = vec![0; tokens.columns.len()];
        let (mut node, mut edge) = (Plan::default(), Plan::default());
        for rule in &template.rules {
            let plan = if rule.edge { &mut edge } else { &mut node };
            let column = |part: &Part| template.atoms[part.atom].column;
            match rule.parts.first() {
                Some(one)
                    if !rule.first
                        && !rule.last
                        && rule.parts.iter().all(|p| p.offset == one.offset && column(p) == column(one)) =>
                {
                    slots[column(one)] += 1;
                    let slot = slots[column(one)] - 1;
                    plan.local.push(Local { rule, column: column(one), offset: one.offset, slot });
                }
                _ => plan.joint.push(rule),
            }
        }
        let jobs = Jobs::new(threads, tokens.tokens());
        let mut it = Extractor { template, tokens, node, edge, place, widths, slots, values: Vec::new(), jobs };
        it.values = (0..tokens.columns.len()).map(|c| it.values_of(c)).collect();
        it
    }

    /// Hash of every atom of a column at every distinct text.
    fn values_of(&self, column: usize) -> Vec<Key> {
        let atoms: Vec<_> = self.template.atoms.iter().filter(|a| a.column == column).collect();
        let texts = &self.tokens.columns[column];
        let parts = self.jobs.map(chunks(texts.texts()), |range| {
            let mut scratch = Scratch::default();
            let mut values = Vec::with_capacity(range.len() * atoms.len());
            for number in range {
                for atom in &atoms {
                    values.push(match &atom.functions[..] {
                        [] => present(texts.key(number)),
                        functions => match apply(functions, texts.text(number), &mut scratch) {
                            Some(value) => present(hash(value.as_bytes())),
                            None => ABSENT,
                        },
                    });
                }
            }
            values
        });
        parts.concat()
    }

    /// Value of a part for the token `t` of the sentence of `length` tokens that begins at `begin`.
    #[inline]
    fn value(&self, part: &Part, pad: bool, begin: usize, t: usize, length: usize) -> Key {
        let at = t as isize + part.offset;
        if at >= 0 && at < length as isize {
            let (column, place) = self.place[part.atom];
            let text = self.tokens.columns[column].cells[begin + at as usize] as usize;
            self.values[column][text * self.widths[column] + place]
        } else if pad && !part.test {
            outside(distance(at, length))
        } else {
            ABSENT
        }
    }

    /// Key of a rule's attribute at a token, or ABSENT.
    #[inline]
    fn key(&self, rule: &Rule, begin: usize, t: usize, length: usize) -> Key {
        if (rule.first && t > 0) || (rule.last && t + 1 < length) || (rule.edge && t == 0) {
            return ABSENT;
        }
        let mut key = rule.seed;
        for part in &rule.parts {
            let value = self.value(part, rule.pad, begin, t, length);
            if value.key == ABSENT.key {
                return ABSENT;
            }
            key = mix(key, value);
        }
        present(key)
    }

    /// Key of a local rule at a distinct text of its column.
    #[inline]
    fn local_key(&self, local: &Local<'_>, text: usize) -> Key {
        let row = &self.values[local.column][text * self.widths[local.column]..];
        let mut key = local.rule.seed;
        for part in &local.rule.parts {
            let value = row[self.place[part.atom].1];
            if value.key == ABSENT.key {
                return ABSENT;
            }
            key = mix(key, value);
        }
        present(key)
    }

    /// Text of a rule's attribute at a token where it has one.
    fn render(&self, rule: &Rule, begin: usize, t: usize, length: usize, out: &mut Vec<u8>) {
        let mut scratch = Scratch::default();
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

    /// Texts of the attributes of every token, as the template orders them.
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

    /// The dataset of a locked vocabulary: unknown attributes are left out.
    pub fn locked(&self, vocab: &Vocab) -> Dataset {
        let known: Vec<Vec<u32>> = (0..self.tokens.columns.len()).map(|c| self.known(c, vocab)).collect();
        let pieces = self.jobs.map(self.sentence_chunks(), |sentences| {
            let (mut node, mut edge) = (Csr::default(), Csr::default());
            let mut keys = Vec::new();
            for s in sentences {
                self.look_up(&self.node, s, vocab, &known, &mut keys, &mut node);
                if !self.edge.is_empty() {
                    self.look_up(&self.edge, s, vocab, &known, &mut keys, &mut edge);
                }
            }
            (node, edge)
        });
        let mut data = Dataset { sentences: self.tokens.sentences.clone(), ..Dataset::default() };
        for (node, edge) in pieces {
            append(&mut data.node, &node);
            append(&mut data.edge, &edge);
        }
        data
    }

    /// Ids of the local rules of a column at every distinct text.
    fn known(&self, column: usize, vocab: &Vocab) -> Vec<u32> {
        let local: Vec<_> = self.node.local.iter().chain(&self.edge.local).filter(|l| l.column == column).collect();
        let parts = self.jobs.map(chunks(self.tokens.columns[column].texts()), |range| {
            let mut ids = vec![NONE; range.len() * self.slots[column]];
            let mut keys = vec![0; self.slots[column]];
            for (text, row) in range.zip(ids.chunks_exact_mut(self.slots[column].max(1))) {
                for l in &local {
                    keys[l.slot] = self.local_key(l, text).key;
                }
                for (id, &key) in row.iter_mut().zip(&keys) {
                    if key != ABSENT.key {
                        *id = vocab.get(key);
                    }
                }
            }
            ids
        });
        parts.concat()
    }

    fn look_up(
        &self,
        plan: &Plan<'_>,
        s: usize,
        vocab: &Vocab,
        known: &[Vec<u32>],
        keys: &mut Vec<u64>,
        rows: &mut Csr,
    ) {
        let (begin, end) = (self.tokens.sentences[s], self.tokens.sentences[s + 1]);
        let length = end - begin;
        keys.clear();
        for t in 0..length {
            keys.extend(plan.joint.iter().map(|rule| self.key(rule, begin, t, length).key));
        }
        rows.ids.reserve(length * (plan.local.len() + plan.joint.len()));
        for t in 0..length {
            for local in &plan.local {
                let at = t as isize + local.offset;
                let id = if at >= 0 && at < length as isize {
                    if local.rule.edge && t == 0 {
                        continue;
                    }
                    let text = self.tokens.columns[local.column].cells[begin + at as usize] as usize;
                    known[local.column][text * self.slots[local.column] + local.slot]
                } else {
                    match self.key(local.rule, begin, t, length).key {
                        0 => continue,
                        key => vocab.get(key),
                    }
                };
                if id != NONE {
                    rows.ids.push(id);
                }
            }
            for &key in &keys[t * plan.joint.len()..(t + 1) * plan.joint.len()] {
                if key != ABSENT.key {
                    let id = vocab.get(key);
                    if id != NONE {
                        rows.ids.push(id);
                    }
                }
            }
            rows.end_row();
        }
    }

    /// The dataset of a growing vocabulary: ids in order of first occurrence.
    pub fn grow(&self, vocab: &mut Vocab) -> Result<Dataset> {
        let mut known: Vec<Vec<u32>> =
            self.tokens.columns.iter().zip(&self.slots).map(|(c, &slots)| vec![NONE; c.texts() * slots]).collect();
        let mut data = Dataset { sentences: self.tokens.sentences.clone(), ..Dataset::default() };
        for bounds in self.tokens.sentences.windows(2) {
            let (begin, length) = (bounds[0], bounds[1] - bounds[0]);
            for t in 0..length {
                self.intern(&self.node, begin, t, length, vocab, &mut known, &mut data.node)?;
                if !self.edge.is_empty() {
                    self.intern(&self.edge, begin, t, length, vocab, &mut known, &mut data.edge)?;
                }
            }
        }
        Ok(data)
    }

    #[allow(clippy::too_many_arguments)]
    fn intern(
        &self,
        plan: &Plan<'_>,
        begin: usize,
        t: usize,
        length: usize,
        vocab: &mut Vocab,
        known: &mut [Vec<u32>],
        rows: &mut Csr,
    ) -> Result<()> {
        for local in &plan.local {
            let at = t as isize + local.offset;
            if at >= 0 && at < length as isize && !(local.rule.edge && t == 0) {
                let text = self.tokens.columns[local.column].cells[begin + at as usize] as usize;
                let id = &mut known[local.column][text * self.slots[local.column] + local.slot];
                if *id != NONE {
                    vocab.count(*id);
                    rows.ids.push(*id);
                    continue;
                }
                let key = self.local_key(local, text);
                if key.key != ABSENT.key {
                    *id = vocab.intern(key, |out| self.render(local.rule, begin, t, length, out))?;
                    rows.ids.push(*id);
                }
            } else {
                self.intern_one(local.rule, begin, t, length, vocab, rows)?;
            }
        }
        for rule in &plan.joint {
            self.intern_one(rule, begin, t, length, vocab, rows)?;
        }
        rows.end_row();
        Ok(())
    }

    #[inline]
    fn intern_one(
        &self,
        rule: &Rule,
        begin: usize,
        t: usize,
        length: usize,
        vocab: &mut Vocab,
        rows: &mut Csr,
    ) -> Result<()> {
        let key = self.key(rule, begin, t, length);
        if key.key != ABSENT.key {
            rows.ids.push(vocab.intern(key, |out| self.render(rule, begin, t, length, out))?);
        }
        Ok(())
    }

    /// Ranges of sentences of about CHUNK tokens.
    fn sentence_chunks(&self) -> Vec<std::ops::Range<usize>> {
        let mut ranges = Vec::new();
        let mut begin = 0;
        for s in 0..self.tokens.len() {
            if self.tokens.sentences[s + 1] - self.tokens.sentences[begin] >= CHUNK || s + 1 == self.tokens.len() {
                ranges.push(begin..s + 1);
                begin = s + 1;
            }
        }
        ranges
    }
}

impl Plan<'_> {
    fn is_empty(&self) -> bool {
        self.local.is_empty() && self.joint.is_empty()
    }
}

/// No value hashes to the mark of absence.
#[inline]
fn present(key: Key) -> Key {
    Key { key: key.key.max(1), check: key.check }
}

/// How far outside the sentence: -1 just before it, 1 just behind.
fn distance(at: isize, length: usize) -> isize {
    if at < 0 {
        at
    } else {
        at - length as isize + 1
    }
}

fn append(whole: &mut Csr, piece: &Csr) {
    let base = whole.ids.len();
    whole.ids.extend_from_slice(&piece.ids);
    whole.ptr.extend(piece.ptr[1..].iter().map(|p| base + p));
}
