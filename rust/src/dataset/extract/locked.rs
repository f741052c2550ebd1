//! Looking up in a vocabulary that does not grow: in pieces, by any number of threads, with runs in place of rows where
//! there are many tokens.

use crate::dataset::csr::Csr;
use crate::dataset::extract::joint::Joint;
use crate::dataset::extract::known::Found;
use crate::dataset::extract::{Extractor, Group, RulePlan, ABSENT, CHUNK};
use crate::dataset::runs::{Runs, NOTHING, WORTH};
use crate::dataset::vocab::{Vocab, NONE};
use crate::dataset::Dataset;
use crate::machine::force::{self, Taken, Way};
use crate::machine::stop;
use std::ops::Range;

/// What is found in some sentences.
#[derive(Default)]
struct Piece {
    node: Csr,
    edge: Csr,
    of: Vec<u32>, // runs
}

impl Extractor<'_> {
    /// The dataset of a locked vocabulary: unknown attributes are left out, and all node attributes of the tokens that are
    /// marked in `settled`, for whatever these score, their label is known. `found`: in this vocabulary, for these texts.
    pub fn locked(&self, vocab: &Vocab, found: &mut Found, settled: Option<&[bool]>) -> Dataset {
        self.meet(vocab, found);
        let found = &*found;
        let runs = match (force::is_forced(Way::Runs), force::is_forced(Way::Single)) {
            (false, false) => self.tokens.tokens() >= WORTH,
            (runs, _) => runs,
        };
        force::count(Taken::Runs, usize::from(runs));
        let node = Rules::new(self, &self.node, found, vocab, settled);
        let edge = Rules::new(self, &self.edge, found, vocab, None);
        let groups = self.node.groups.len();
        let start = || match runs {
            true => Piece { of: self.spare.take(false).ids, node: self.spare.take(true), ..Piece::default() },
            false => Piece::default(),
        };
        let piece = |mut out: Piece, sentences: Range<usize>| {
            let tokens = self.tokens.sentences[sentences.end] - self.tokens.sentences[sentences.start];
            // Room for every rule at every token, of which only what is used is ever touched.
            out.node.ids.reserve(tokens * if runs { self.node.joint.len() } else { self.node.width });
            out.node.ptr.reserve(tokens);
            out.of.reserve(if runs { tokens * groups } else { 0 });
            let mut room = Room::new(node.asked.len(), tokens);
            let mut edge_room = Room::new(edge.asked.len(), tokens);
            for s in sentences {
                stop::look();
                node.look_up(s, &mut room, &mut out.node, runs.then_some(&mut out.of));
                if !self.edge.is_empty() {
                    edge.look_up(s, &mut edge_room, &mut out.edge, None);
                }
            }
            out
        };
        let mut all = match self.jobs.0 {
            false => piece(start(), 0..self.tokens.len()),
            true => {
                let pieces = self.jobs.map(self.sentence_chunks(), |range| piece(Piece::default(), range));
                let mut all = start();
                all.node.ids.reserve(pieces.iter().map(|piece| piece.node.ids.len()).sum());
                all.node.ptr.reserve(self.tokens.tokens());
                all.of.reserve(pieces.iter().map(|piece| piece.of.len()).sum());
                for piece in pieces {
                    all.node.append_ones(&piece.node);
                    all.edge.append_ones(&piece.edge);
                    all.of.extend(piece.of);
                }
                all
            }
        };
        let node = match runs {
            true => {
                let (book, home) = (found.book.clone(), self.spare.clone());
                Runs { book, of: all.of, rest: all.node, groups, home }.into()
            }
            false => {
                all.node.ids.shrink_to_fit();
                all.node.into()
            }
        };
        Dataset { sentences: self.tokens.sentences.clone(), node, edge: all.edge, ..Dataset::default() }
    }

    /// Ranges of sentences of about CHUNK tokens.
    fn sentence_chunks(&self) -> Vec<Range<usize>> {
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

/// The rules of node or of edge attributes, and where they look.
struct Rules<'a> {
    of: &'a Extractor<'a>,
    plan: &'a RulePlan<'a>,
    found: &'a Found,
    vocab: &'a Vocab,
    outside: &'a [u32],
    settled: Option<&'a [bool]>,
    asked: Vec<Joint<'a, u64>>, // rules that are looked up at every token
    order: Vec<Source<'a>>,     // all joint rules, as the template has them
    is_edge: bool,
}

/// Where a joint rule's attribute at a token comes from.
enum Source<'a> {
    /// It looks at nothing: the same everywhere.
    Constant(Joint<'a, u64>, u32),
    /// One of those that are asked for.
    Asked(usize),
}

impl<'a> Rules<'a> {
    fn new(
        of: &'a Extractor<'_>,
        plan: &'a RulePlan<'a>,
        found: &'a Found,
        vocab: &'a Vocab,
        settled: Option<&'a [bool]>,
    ) -> Rules<'a> {
        let (mut asked, mut order) = (Vec::new(), Vec::new());
        for joint in of.joints(plan, &found.joined) {
            match joint.constant() {
                Some(key) => order.push(Source::Constant(joint, vocab.get(key))),
                None => {
                    order.push(Source::Asked(asked.len()));
                    asked.push(joint);
                }
            }
        }
        let is_edge = std::ptr::eq(plan, &of.edge);
        let outside = &found.outside[usize::from(is_edge)];
        Rules { of, plan, found, vocab, outside, settled, asked, order, is_edge }
    }

    /// Append the rows of one sentence's tokens; where `to` is given their runs go there, and are left out of the rows.
    fn look_up(&self, s: usize, room: &mut Room, rows: &mut Csr, to: Option<&mut Vec<u32>>) {
        let sentences = &self.of.tokens.sentences;
        let (begin, length, groups) = (sentences[s], sentences[s + 1] - sentences[s], self.plan.groups.len());
        room.ask(&self.asked, begin, length, self.vocab);
        let is_settled = |t: usize| self.settled.is_some_and(|settled| settled[begin + t]);
        let (runs, mut own) = (to.is_some(), std::mem::take(&mut room.runs));
        own.clear();
        let here = to.unwrap_or(&mut own);
        let first = here.len();
        here.resize(first + length * groups, NOTHING);
        let here = &mut here[first..];
        self.plan.groups.iter().zip(self.outside).enumerate().for_each(|(g, (group, &outside))| {
            self.runs_of(group, outside, begin, length, |t, run| here[t * groups + g] = run);
        });
        if self.settled.is_some() {
            (0..length).filter(|&t| is_settled(t)).for_each(|t| here[t * groups..(t + 1) * groups].fill(NOTHING));
        }
        let mut ids = Writer::new(rows, length * self.order.len());
        for t in 0..length {
            if !runs {
                here[t * groups..(t + 1) * groups]
                    .iter()
                    .for_each(|&run| ids.copy(self.found.book.ids.ids_of(run as usize)));
            }
            if !is_settled(t) {
                for source in &self.order {
                    ids.put(match source {
                        Source::Asked(rule) => room.id(*rule, t),
                        Source::Constant(joint, id) if joint.range(length).contains(&t) => *id,
                        Source::Constant(..) => NONE,
                    });
                }
            }
            ids.end_row();
        }
        ids.finish();
        room.runs = own;
    }

    /// `put(t, run)` for the run of a group at every token of a sentence where it has one.
    #[inline(always)]
    fn runs_of(&self, group: &Group<'_>, outside: u32, begin: usize, length: usize, mut put: impl FnMut(usize, u32)) {
        let (first, number) = (&self.found.first[group.column][..], group.number as u32);
        let cells = &self.of.tokens.columns[group.column].cells[begin..begin + length];
        let away = group.offset.unsigned_abs().min(length);
        let (from, inside) = match group.offset < 0 {
            true => (0, away..length),
            false => (away, 0..length - away),
        };
        let least = usize::from(self.is_edge); // no edge ends at the first token
        for (t, &text) in inside.clone().zip(&cells[from..]).filter(|(t, _)| *t >= least) {
            put(t, first[text as usize] + number);
        }
        if group.pad {
            // How far outside: 1 is next to the sentence, `outside` its run.
            (least..inside.start).for_each(|t| put(t, outside + (group.offset.unsigned_abs() - t - 1) as u32));
            (inside.end.max(least)..length).for_each(|t| put(t, outside + (t + group.offset as usize - length) as u32));
        }
    }
}

/// Rows of ids being written; what is not kept is written over.
struct Writer<'a> {
    rows: &'a mut Csr,
    at: usize,
}

impl Writer<'_> {
    /// `most`: room for what is put.
    fn new(rows: &mut Csr, most: usize) -> Writer<'_> {
        let at = rows.ids.len();
        rows.ids.resize(at + most, NONE);
        Writer { rows, at }
    }

    /// Append ids, beside the room for those that are put.
    fn copy(&mut self, ids: &[u32]) {
        let more = self.rows.ids.len() + ids.len();
        self.rows.ids.resize(more, NONE);
        self.rows.ids[self.at..self.at + ids.len()].copy_from_slice(ids);
        self.at += ids.len();
    }

    /// Append an id that is not NONE, without a branch.
    #[inline(always)]
    fn put(&mut self, id: u32) {
        self.rows.ids[self.at] = id;
        self.at += usize::from(id != NONE);
    }

    #[inline(always)]
    fn end_row(&mut self) {
        self.rows.ptr.push(self.at);
    }

    fn finish(self) {
        self.rows.ids.truncate(self.at);
    }
}

/// Places of a rule's memory; a power of two.
const SLOTS: usize = 1024;
/// Keys after which a rule that remembers fewer than half of them stops to try.
const TRIED: usize = 4 * SLOTS;

/// The keys that a rule asked for last, one for each slot, and their ids: rules that join shapes ask for few again and again.
struct Memory {
    slots: Vec<(u64, u32)>,
    asked: usize,
    found: usize,
}

impl Memory {
    fn pays(&self) -> bool {
        !self.slots.is_empty() && (self.asked < TRIED || 2 * self.found >= self.asked)
    }
}

/// What is asked for one sentence's joint rules, kept between sentences.
#[derive(Default)]
struct Room {
    memories: Vec<Memory>,              // [rules]
    places: Vec<(Range<usize>, usize)>, // [rules] tokens, and where the first one's id stands
    ids: Vec<u32>,                      // rule by rule
    keys: Vec<u64>,                     // those to look up,
    to: Vec<(u32, u32)>,                // the rule and the place of each
    answers: Vec<u32>,
    runs: Vec<u32>,
}

impl Room {
    fn new(rules: usize, tokens: usize) -> Room {
        let slots = if tokens >= SLOTS { SLOTS } else { 0 };
        let memory = || Memory { slots: vec![(ABSENT.key, NONE); slots], asked: 0, found: 0 };
        Room { memories: (0..rules).map(|_| memory()).collect(), ..Room::default() }
    }

    /// Find the ids of these rules at every token of a sentence.
    fn ask(&mut self, rules: &[Joint<'_, u64>], begin: usize, length: usize, vocab: &Vocab) {
        self.places.clear();
        self.ids.clear();
        self.keys.clear();
        self.to.clear();
        for (r, (joint, memory)) in rules.iter().zip(&mut self.memories).enumerate() {
            let range = joint.range(length);
            self.places.push((range.clone(), self.ids.len()));
            let pays = memory.pays();
            for t in range {
                let key = joint.key(begin, t, length);
                let mut id = NONE;
                // A slot that nothing was put in answers the key that stands for none: NONE.
                if pays && memory.slots[key as usize % SLOTS].0 == key {
                    id = memory.slots[key as usize % SLOTS].1;
                    memory.found += 1;
                } else if key != ABSENT.key {
                    self.keys.push(key);
                    self.to.push((r as u32, self.ids.len() as u32));
                }
                self.ids.push(id);
            }
            memory.asked += if pays { length } else { 0 };
        }
        vocab.get_many(&self.keys, &mut self.answers);
        for ((&key, &id), &(rule, place)) in self.keys.iter().zip(&self.answers).zip(&self.to) {
            self.ids[place as usize] = id;
            if let Some(slot) = self.memories[rule as usize].slots.get_mut(key as usize % SLOTS) {
                *slot = (key, id);
            }
        }
    }

    /// The id of a rule at a token, or NONE.
    #[inline(always)]
    fn id(&self, rule: usize, t: usize) -> u32 {
        let (range, first) = &self.places[rule];
        match range.contains(&t) {
            true => self.ids[first + t - range.start],
            false => NONE,
        }
    }
}
