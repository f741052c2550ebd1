//! Lookup in a locked vocabulary, in parallel chunks. Corpora with many tokens get runs instead of rows.

use crate::dataset::csr::Csr;
use crate::dataset::extract::joint::JointRule;
use crate::dataset::extract::known::TextRuns;
use crate::dataset::extract::{Extractor, Group, RulePlan, ABSENT, CHUNK};
use crate::dataset::runs::{TokenRuns, MIN_RUN_TOKENS, NO_RUN};
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
        self.look_up_new_texts(vocab, found);
        let found = &*found;
        let runs = match (testing::is_forced(CodePath::Runs), testing::is_forced(CodePath::Single)) {
            (false, false) => self.tokens.tokens() >= MIN_RUN_TOKENS,
            (runs, _) => runs,
        };
        testing::count(PathCount::Runs, usize::from(runs));
        let node = Rules::new(self, &self.node, found, vocab);
        let edge = Rules::new(self, &self.edge, found, vocab);
        let groups = self.node.groups.len();
        let start = || match runs {
            true => Piece { of: self.buffers.take(false).ids, node: self.buffers.take(true), ..Piece::default() },
            false => Piece::default(),
        };
        let piece = |mut out: Piece, sentences: Range<usize>| {
            let tokens = self.tokens.sentences[sentences.end] - self.tokens.sentences[sentences.start];
            // Capacity for every rule at every token. Pages that are not used are never touched.
            out.node.ids.reserve(tokens * if runs { self.node.joint.len() } else { self.node.width });
            out.node.ptr.reserve(tokens);
            out.of.reserve(if runs { tokens * groups } else { 0 });
            let mut scratch = LookupScratch::new(node.looked_up.len(), tokens);
            let mut edge_scratch = LookupScratch::new(edge.looked_up.len(), tokens);
            for s in sentences.clone() {
                stop::check();
                node.look_up(s..sentences.end, &mut scratch, &mut out.node, runs.then_some(&mut out.of));
                if !self.edge.is_empty() {
                    edge.look_up(s..sentences.end, &mut edge_scratch, &mut out.edge, None);
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
                let (run_table, pool) = (found.run_table.clone(), self.buffers.clone());
                TokenRuns { run_table, of: all.of, rest: all.node, groups, pool }.into()
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
    looked_up: Vec<JointRule<'a, u64>>, // rules with a lookup at every token
    order: Vec<RuleSource<'a>>,         // all joint rules, in the order of the template
    inside: Vec<RuleSource<'a>>,        // those not limited to the first or the last token
    is_edge: bool,
}

/// Origin of the attribute of a joint rule at a token.
#[derive(Clone)]
struct RuleSource<'a> {
    rule: &'a TemplateRule,
    from: IdSource,
}

#[derive(Clone, Copy)]
enum IdSource {
    /// Id of a rule without parts, equal at every token.
    Constant(u32),
    /// Index of a rule with a lookup.
    Lookup(usize),
}

impl<'a> Rules<'a> {
    fn new(of: &'a Extractor<'_>, plan: &'a RulePlan<'a>, found: &'a TextRuns, vocab: &'a Vocab) -> Rules<'a> {
        let (mut looked_up, mut order) = (Vec::new(), Vec::new());
        for joint in of.joints(plan, &found.joined) {
            let rule = joint.rule;
            match joint.constant() {
                Some(key) => order.push(RuleSource { rule, from: IdSource::Constant(vocab.get(key)) }),
                None => {
                    order.push(RuleSource { rule, from: IdSource::Lookup(looked_up.len()) });
                    looked_up.push(joint);
                }
            }
        }
        let inside = order.iter().filter(|source| !source.rule.first && !source.rule.last).cloned().collect();
        let is_edge = std::ptr::eq(plan, &of.edge);
        let outside = &found.outside[usize::from(is_edge)];
        Rules { of, plan, found, vocab, outside, looked_up, order, inside, is_edge }
    }

    /// Return the first token and the length of a sentence.
    fn place(&self, s: usize) -> (usize, usize) {
        let sentences = &self.of.tokens.sentences;
        (sentences[s], sentences[s + 1] - sentences[s])
    }

    /// Append the rows of the first sentence of a range. If `to` is given, runs are appended there instead of to the
    /// rows. Data of the second sentence is prefetched meanwhile.
    fn look_up(&self, sentences: Range<usize>, scratch: &mut LookupScratch, rows: &mut Csr, to: Option<&mut Vec<u32>>) {
        let s = sentences.start;
        let (begin, length) = self.place(s);
        if scratch.next.sentence != Some(s) {
            scratch.start(self, s);
        }
        std::mem::swap(&mut scratch.current, &mut scratch.next);
        if s + 1 < sentences.end {
            scratch.start(self, s + 1);
        }
        self.vocab.read_slots(&scratch.current.keys, &mut scratch.current.found_ids);
        let (runs, mut own, groups) = (to.is_some(), std::mem::take(&mut scratch.runs), self.plan.groups.len());
        own.clear();
        let here = to.unwrap_or(&mut own);
        let first = here.len();
        here.resize(first + length * groups, NO_RUN);
        let here = &mut here[first..];
        self.plan.groups.iter().zip(self.outside).enumerate().for_each(|(g, (group, &outside))| {
            self.runs_of(group, outside, begin, length, |t, run| here[t * groups + g] = run);
        });
        scratch.finish_lookups(self.vocab);
        let mut ids = IdWriter::new(rows, length * self.order.len());
        for t in 0..length {
            if !runs {
                let of = &here[t * groups..(t + 1) * groups];
                of.iter().for_each(|&run| ids.copy(self.found.run_table.ids.ids_of(run as usize)));
            }
            let (is_first, is_last) = (t == 0, t + 1 == length);
            if is_first || is_last {
                let here = |rule: &TemplateRule| (is_first || !rule.first) && (is_last || !rule.last);
                self.put(self.order.iter().filter(|source| here(source.rule)), t, scratch, &mut ids);
            } else {
                self.put(self.inside.iter(), t, scratch, &mut ids);
            }
            ids.end_row();
        }
        ids.finish();
        scratch.runs = own;
    }

    /// Append the ids of the joint rules that apply to a token.
    #[inline(always)]
    fn put<'b>(
        &self,
        sources: impl Iterator<Item = &'b RuleSource<'b>>,
        t: usize,
        scratch: &LookupScratch,
        ids: &mut IdWriter<'_>,
    ) {
        if self.is_edge && t == 0 {
            return;
        }
        for source in sources {
            ids.put(match source.from {
                IdSource::Constant(id) => id,
                IdSource::Lookup(rule) => scratch.id(rule, t),
            });
        }
    }

    /// Call `put(t, run)` for the run of a group at every token of a sentence that has one.
    #[inline(always)]
    fn runs_of(&self, group: &Group<'_>, outside: u32, begin: usize, length: usize, mut put: impl FnMut(usize, u32)) {
        let (first, number) = (&self.found.first[group.column][..], group.number as u32);
        let cells = &self.of.tokens.columns[group.column].cells[begin..begin + length];
        let shift = group.offset.unsigned_abs().min(length);
        let (from, inside) = match group.offset < 0 {
            true => (0, shift..length),
            false => (shift, 0..length - shift),
        };
        let first_token = usize::from(self.is_edge); // no edge ends at the first token
        for (t, &text) in inside.clone().zip(&cells[from..]).filter(|(t, _)| *t >= first_token) {
            put(t, first[text as usize] + number);
        }
        if group.pad {
            // Distance from the sentence: `outside` is the run at distance 1.
            (first_token..inside.start).for_each(|t| put(t, outside + (group.offset.unsigned_abs() - t - 1) as u32));
            (inside.end.max(first_token)..length)
                .for_each(|t| put(t, outside + (t + group.offset as usize - length) as u32));
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
const CACHE_SLOTS: usize = 1024;
/// Number of keys after which a rule with a hit rate below one half stops using its cache.
const TRIAL_KEYS: usize = 4 * CACHE_SLOTS;

/// Direct-mapped cache of the last keys of a rule and their ids. Rules that join shapes have few distinct keys.
struct KeyCache {
    slots: Vec<(u64, u32)>,
    lookups: usize,
    hits: usize,
}

impl KeyCache {
    fn is_useful(&self) -> bool {
        !self.slots.is_empty() && (self.lookups < TRIAL_KEYS || 2 * self.hits >= self.lookups)
    }
}

/// Lookups of the joint rules of one sentence.
#[derive(Default)]
struct SentenceLookups {
    sentence: Option<usize>,
    places: Vec<(usize, usize)>, // [rules] first token that may have one, position of its id
    ids: Vec<u32>,               // rule by rule
    keys: Vec<u64>,              // keys to look up,
    to: Vec<(u32, u32)>,         // rule and position of each,
    found_ids: Vec<u32>,         // and their ids
}

/// Scratch buffers, reused between sentences.
#[derive(Default)]
struct LookupScratch {
    caches: Vec<KeyCache>, // [rules]
    current: SentenceLookups,
    next: SentenceLookups,
    runs: Vec<u32>,
}

impl LookupScratch {
    fn new(rules: usize, tokens: usize) -> LookupScratch {
        let slots = if tokens >= CACHE_SLOTS { CACHE_SLOTS } else { 0 };
        let cache = || KeyCache { slots: vec![(ABSENT.key, NONE); slots], lookups: 0, hits: 0 };
        LookupScratch { caches: (0..rules).map(|_| cache()).collect(), ..LookupScratch::default() }
    }

    /// Start the lookups of all rules at every token of the next sentence.
    fn start(&mut self, rules: &Rules<'_>, s: usize) {
        let (begin, length) = rules.place(s);
        let next = &mut self.next;
        next.sentence = Some(s);
        next.places.clear();
        next.ids.clear();
        next.keys.clear();
        next.to.clear();
        for (r, (joint, cache)) in rules.looked_up.iter().zip(&mut self.caches).enumerate() {
            let range = joint.range(length);
            next.places.push((range.start, next.ids.len()));
            let is_useful = cache.is_useful();
            cache.lookups += if is_useful { range.len() } else { 0 };
            for t in range {
                let key = joint.key(begin, t, length);
                let mut id = NONE;
                // An empty slot contains the key `ABSENT` with the id `NONE`.
                if is_useful && cache.slots[key as usize % CACHE_SLOTS].0 == key {
                    id = cache.slots[key as usize % CACHE_SLOTS].1;
                    cache.hits += 1;
                } else if key != ABSENT.key {
                    next.keys.push(key);
                    next.to.push((r as u32, next.ids.len() as u32));
                }
                next.ids.push(id);
            }
        }
        rules.vocab.prefetch_slots(next.keys.iter().copied());
    }

    /// Finish the lookups of the current sentence after `read_slots`.
    fn finish_lookups(&mut self, vocab: &Vocab) {
        let current = &mut self.current;
        vocab.resolve_ids(&current.keys, &mut current.found_ids);
        for ((&key, &id), &(rule, place)) in current.keys.iter().zip(&current.found_ids).zip(&current.to) {
            current.ids[place as usize] = id;
            if let Some(slot) = self.caches[rule as usize].slots.get_mut(key as usize % CACHE_SLOTS) {
                *slot = (key, id);
            }
        }
    }

    /// Return the id of a rule at a token that may have one, or `NONE`.
    #[inline(always)]
    fn id(&self, rule: usize, t: usize) -> u32 {
        let (start, first) = self.current.places[rule];
        self.current.ids[first + t - start]
    }
}
