//! Lookup in a locked vocabulary, in parallel chunks. Corpora with many tokens get runs instead of rows.

use crate::dataset::csr::Csr;
use crate::dataset::extract::joint::JointRule;
use crate::dataset::extract::known::TextRuns;
use crate::dataset::extract::{Extractor, Group, RulePlan, ABSENT, CHUNK};
use crate::dataset::runs::{TokenRuns, NOTHING, WORTH};
use crate::dataset::vocab::{Vocab, NONE};
use crate::dataset::Dataset;
use crate::features::rule::TemplateRule;
use crate::machine::system::stop;
use crate::machine::system::testing::{self, CodePath, PathCount};
use std::ops::Range;

/// Lookup results of some sentences.
#[derive(Default)]
struct Piece {
    node: Csr,
    edge: Csr,
    of: Vec<u32>, // runs
}

impl Extractor<'_> {
    /// Return the dataset in a locked vocabulary, without unknown attributes. `found` caches lookups of texts in this
    /// vocabulary.
    pub fn locked(&self, vocab: &Vocab, found: &mut TextRuns) -> Dataset {
        self.meet(vocab, found);
        let found = &*found;
        let runs = match (testing::is_forced(CodePath::Runs), testing::is_forced(CodePath::Single)) {
            (false, false) => self.tokens.tokens() >= WORTH,
            (runs, _) => runs,
        };
        testing::count(PathCount::Runs, usize::from(runs));
        let node = Rules::new(self, &self.node, found, vocab);
        let edge = Rules::new(self, &self.edge, found, vocab);
        let groups = self.node.groups.len();
        let start = || match runs {
            true => Piece { of: self.spare.take(false).ids, node: self.spare.take(true), ..Piece::default() },
            false => Piece::default(),
        };
        let piece = |mut out: Piece, sentences: Range<usize>| {
            let tokens = self.tokens.sentences[sentences.end] - self.tokens.sentences[sentences.start];
            // Capacity for every rule at every token. Pages that are not used are never touched.
            out.node.ids.reserve(tokens * if runs { self.node.joint.len() } else { self.node.width });
            out.node.ptr.reserve(tokens);
            out.of.reserve(if runs { tokens * groups } else { 0 });
            let mut room = Room::new(node.asked.len(), tokens);
            let mut edge_room = Room::new(edge.asked.len(), tokens);
            for s in sentences.clone() {
                stop::look();
                node.look_up(s..sentences.end, &mut room, &mut out.node, runs.then_some(&mut out.of));
                if !self.edge.is_empty() {
                    edge.look_up(s..sentences.end, &mut edge_room, &mut out.edge, None);
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
                TokenRuns { book, of: all.of, rest: all.node, groups, home }.into()
            }
            false => {
                all.node.ids.shrink_to_fit();
                all.node.into()
            }
        };
        Dataset { sentences: self.tokens.sentences.clone(), node, edge: all.edge, ..Dataset::default() }
    }

    /// Return ranges of sentences of about `CHUNK` tokens.
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

/// Rules of node or of edge attributes, and their data.
struct Rules<'a> {
    of: &'a Extractor<'a>,
    plan: &'a RulePlan<'a>,
    found: &'a TextRuns,
    vocab: &'a Vocab,
    outside: &'a [u32],
    asked: Vec<JointRule<'a, u64>>, // rules with a lookup at every token
    order: Vec<RuleSource<'a>>,     // all joint rules, in the order of the template
    inside: Vec<RuleSource<'a>>,    // those not limited to the first or the last token
    is_edge: bool,
}

/// Origin of the attribute of a joint rule at a token.
#[derive(Clone)]
struct RuleSource<'a> {
    rule: &'a TemplateRule,
    from: Answer,
}

#[derive(Clone, Copy)]
enum Answer {
    /// Id of a rule without parts, equal at every token.
    Constant(u32),
    /// Index of a rule with a lookup.
    Asked(usize),
}

impl<'a> Rules<'a> {
    fn new(of: &'a Extractor<'_>, plan: &'a RulePlan<'a>, found: &'a TextRuns, vocab: &'a Vocab) -> Rules<'a> {
        let (mut asked, mut order) = (Vec::new(), Vec::new());
        for joint in of.joints(plan, &found.joined) {
            let rule = joint.rule;
            match joint.constant() {
                Some(key) => order.push(RuleSource { rule, from: Answer::Constant(vocab.get(key)) }),
                None => {
                    order.push(RuleSource { rule, from: Answer::Asked(asked.len()) });
                    asked.push(joint);
                }
            }
        }
        let inside = order.iter().filter(|source| !source.rule.first && !source.rule.last).cloned().collect();
        let is_edge = std::ptr::eq(plan, &of.edge);
        let outside = &found.outside[usize::from(is_edge)];
        Rules { of, plan, found, vocab, outside, asked, order, inside, is_edge }
    }

    /// Return the first token and the length of a sentence.
    fn place(&self, s: usize) -> (usize, usize) {
        let sentences = &self.of.tokens.sentences;
        (sentences[s], sentences[s + 1] - sentences[s])
    }

    /// Append the rows of the first sentence of a range. If `to` is given, runs are appended there instead of to the
    /// rows. Data of the second sentence is prefetched meanwhile.
    fn look_up(&self, sentences: Range<usize>, room: &mut Room, rows: &mut Csr, to: Option<&mut Vec<u32>>) {
        let s = sentences.start;
        let (begin, length) = self.place(s);
        if room.next.sentence != Some(s) {
            room.ask(self, s);
        }
        std::mem::swap(&mut room.now, &mut room.next);
        if s + 1 < sentences.end {
            room.ask(self, s + 1);
        }
        self.vocab.first_looks(&room.now.keys, &mut room.now.answers);
        let (runs, mut own, groups) = (to.is_some(), std::mem::take(&mut room.runs), self.plan.groups.len());
        own.clear();
        let here = to.unwrap_or(&mut own);
        let first = here.len();
        here.resize(first + length * groups, NOTHING);
        let here = &mut here[first..];
        self.plan.groups.iter().zip(self.outside).enumerate().for_each(|(g, (group, &outside))| {
            self.runs_of(group, outside, begin, length, |t, run| here[t * groups + g] = run);
        });
        room.answer(self.vocab);
        let mut ids = IdWriter::new(rows, length * self.order.len());
        for t in 0..length {
            if !runs {
                let of = &here[t * groups..(t + 1) * groups];
                of.iter().for_each(|&run| ids.copy(self.found.book.ids.ids_of(run as usize)));
            }
            let (is_first, is_last) = (t == 0, t + 1 == length);
            if is_first || is_last {
                let here = |rule: &TemplateRule| (is_first || !rule.first) && (is_last || !rule.last);
                self.put(self.order.iter().filter(|source| here(source.rule)), t, room, &mut ids);
            } else {
                self.put(self.inside.iter(), t, room, &mut ids);
            }
            ids.end_row();
        }
        ids.finish();
        room.runs = own;
    }

    /// Append the ids of the joint rules that apply to a token.
    #[inline(always)]
    fn put<'b>(
        &self,
        sources: impl Iterator<Item = &'b RuleSource<'b>>,
        t: usize,
        room: &Room,
        ids: &mut IdWriter<'_>,
    ) {
        if self.is_edge && t == 0 {
            return;
        }
        for source in sources {
            ids.put(match source.from {
                Answer::Constant(id) => id,
                Answer::Asked(rule) => room.id(rule, t),
            });
        }
    }

    /// Call `put(t, run)` for the run of a group at every token of a sentence that has one.
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
            // Distance from the sentence: `outside` is the run at distance 1.
            (least..inside.start).for_each(|t| put(t, outside + (group.offset.unsigned_abs() - t - 1) as u32));
            (inside.end.max(least)..length).for_each(|t| put(t, outside + (t + group.offset as usize - length) as u32));
        }
    }
}

/// Writer of rows of ids. Ids that are not kept are overwritten.
struct IdWriter<'a> {
    rows: &'a mut Csr,
    at: usize,
}

impl IdWriter<'_> {
    /// Create a writer with capacity for `most` calls of `put`.
    fn new(rows: &mut Csr, most: usize) -> IdWriter<'_> {
        let at = rows.ids.len();
        rows.ids.resize(at + most, NONE);
        IdWriter { rows, at }
    }

    /// Append ids, in addition to the capacity for `put`.
    fn copy(&mut self, ids: &[u32]) {
        let more = self.rows.ids.len() + ids.len();
        self.rows.ids.resize(more, NONE);
        self.rows.ids[self.at..self.at + ids.len()].copy_from_slice(ids);
        self.at += ids.len();
    }

    /// Append an id unless it is `NONE`, without a branch.
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

/// Slots of the cache of a rule, a power of two.
const SLOTS: usize = 1024;
/// Number of keys after which a rule with a hit rate below one half stops using its cache.
const TRIED: usize = 4 * SLOTS;

/// Direct-mapped cache of the last keys of a rule and their ids. Rules that join shapes have few distinct keys.
struct KeyCache {
    slots: Vec<(u64, u32)>,
    asked: usize,
    found: usize,
}

impl KeyCache {
    fn pays(&self) -> bool {
        !self.slots.is_empty() && (self.asked < TRIED || 2 * self.found >= self.asked)
    }
}

/// Lookups of the joint rules of one sentence.
#[derive(Default)]
struct Asked {
    sentence: Option<usize>,
    places: Vec<(usize, usize)>, // [rules] first token that may have one, position of its id
    ids: Vec<u32>,               // rule by rule
    keys: Vec<u64>,              // keys to look up,
    to: Vec<(u32, u32)>,         // rule and position of each,
    answers: Vec<u32>,           // and their ids
}

/// Scratch buffers, reused between sentences.
#[derive(Default)]
struct Room {
    memories: Vec<KeyCache>, // [rules]
    now: Asked,
    next: Asked,
    runs: Vec<u32>,
}

impl Room {
    fn new(rules: usize, tokens: usize) -> Room {
        let slots = if tokens >= SLOTS { SLOTS } else { 0 };
        let memory = || KeyCache { slots: vec![(ABSENT.key, NONE); slots], asked: 0, found: 0 };
        Room { memories: (0..rules).map(|_| memory()).collect(), ..Room::default() }
    }

    /// Start the lookups of all rules at every token of the next sentence.
    fn ask(&mut self, rules: &Rules<'_>, s: usize) {
        let (begin, length) = rules.place(s);
        let next = &mut self.next;
        next.sentence = Some(s);
        next.places.clear();
        next.ids.clear();
        next.keys.clear();
        next.to.clear();
        for (r, (joint, memory)) in rules.asked.iter().zip(&mut self.memories).enumerate() {
            let range = joint.range(length);
            next.places.push((range.start, next.ids.len()));
            let pays = memory.pays();
            memory.asked += if pays { range.len() } else { 0 };
            for t in range {
                let key = joint.key(begin, t, length);
                let mut id = NONE;
                // An empty slot contains the key `ABSENT` with the id `NONE`.
                if pays && memory.slots[key as usize % SLOTS].0 == key {
                    id = memory.slots[key as usize % SLOTS].1;
                    memory.found += 1;
                } else if key != ABSENT.key {
                    next.keys.push(key);
                    next.to.push((r as u32, next.ids.len() as u32));
                }
                next.ids.push(id);
            }
        }
        rules.vocab.warm(next.keys.iter().copied());
    }

    /// Finish the lookups of the current sentence after `first_looks`.
    fn answer(&mut self, vocab: &Vocab) {
        let now = &mut self.now;
        vocab.second_looks(&now.keys, &mut now.answers);
        for ((&key, &id), &(rule, place)) in now.keys.iter().zip(&now.answers).zip(&now.to) {
            now.ids[place as usize] = id;
            if let Some(slot) = self.memories[rule as usize].slots.get_mut(key as usize % SLOTS) {
                *slot = (key, id);
            }
        }
    }

    /// Return the id of a rule at a token that may have one, or `NONE`.
    #[inline(always)]
    fn id(&self, rule: usize, t: usize) -> u32 {
        let (start, first) = self.now.places[rule];
        self.now.ids[first + t - start]
    }
}
