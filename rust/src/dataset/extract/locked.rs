//! Looking up in a vocabulary that does not grow: in pieces, by any number of threads, with runs in place of rows where
//! texts repeat.

use crate::dataset::csr::Csr;
use crate::dataset::extract::joint::{self, Joint};
use crate::dataset::extract::{distance, Extractor, Group, Hash, RulePlan, ABSENT, CHUNK, HEAD, QUAD};
use crate::dataset::runs::{Runs, LONG, MOST, OFTEN, RUN, WORTH};
use crate::dataset::vocab::{Vocab, NONE};
use crate::dataset::Dataset;
use crate::features::rule::{outside, TemplateRule};
use crate::machine::force::{self, Taken, Way};
use crate::machine::simd::prefetch;
use crate::machine::stop;

/// Ids that lie in one line of the caches.
const LINE: usize = 16;
/// Places outside of a sentence whose attributes are found once.
const NEAR: usize = 4;

/// What is found in some sentences.
#[derive(Default)]
struct Piece {
    node: Csr,
    edge: Csr,
    of: Csr, // runs
    marks: Vec<u8>,
}

/// Key of a rule whose parts all look `distance` tokens outside of the sentence, or ABSENT.
fn outside_key(rule: &TemplateRule, distance: isize) -> u64 {
    if !rule.pad || rule.parts.iter().any(|part| part.test) {
        return ABSENT.key;
    }
    let value = outside(distance).key;
    rule.parts.iter().fold(rule.seed.key, |key, _| key.mix(value)).present()
}

impl Extractor<'_> {
    /// Whether a token needs no node attributes.
    #[inline(always)]
    fn is_settled(&self, token: usize) -> bool {
        let text = |column: usize| self.tokens.columns[column].cells[token] as usize;
        self.settled.as_ref().is_some_and(|settled| settled.texts[text(settled.column)])
    }

    /// The dataset of a locked vocabulary: unknown attributes are left out.
    pub fn locked(&self, vocab: &Vocab) -> Dataset {
        let known: Vec<Vec<u32>> = (0..self.tokens.columns.len()).map(|c| self.known(c, vocab)).collect();
        let short = self.node.groups.iter().all(|group| group.rules.len() < RUN as usize);
        let worth = match (force::is_forced(Way::Runs), force::is_forced(Way::Single)) {
            (false, false) => self.tokens.tokens() >= WORTH,
            (runs, _) => runs,
        };
        let runs = (worth && short).then(|| self.runs(&known));
        force::count(Taken::Runs, usize::from(runs.is_some()));
        let joined = self.joined();
        let node = Rules::new(self, &self.node, &joined, vocab);
        let edge = Rules::new(self, &self.edge, &joined, vocab);
        let start = || {
            let spare = &self.spare;
            match runs.is_some() {
                true => Piece { node: spare.take(true), of: spare.take(false), ..Piece::default() },
                false => Piece::default(),
            }
        };
        let piece = |mut out: Piece, sentences: std::ops::Range<usize>| {
            let tokens = self.tokens.sentences[sentences.end] - self.tokens.sentences[sentences.start];
            // Room for every rule at every token, of which only what is used is ever touched; most have runs.
            out.node.ids.reserve(tokens * if runs.is_some() { self.node.width / 2 } else { self.node.width });
            out.node.ptr.reserve(tokens);
            if runs.is_some() {
                out.of.ids.reserve(tokens * self.node.groups.len());
                out.of.ptr.reserve(tokens);
                out.marks.reserve(tokens * self.node.groups.len());
            }
            let mut room = Room::default();
            for s in sentences {
                stop::look();
                self.ask(s + 1, [&known, runs.as_ref().map_or(&[], |(_, runs)| runs)], &joined);
                let second = runs.as_ref().map(|(_, runs)| Second { runs, of: &mut out.of, marks: &mut out.marks });
                self.look_up(&node, s, vocab, &known, &mut room, &mut out.node, second);
                if !self.edge.is_empty() {
                    self.look_up(&edge, s, vocab, &known, &mut room, &mut out.edge, None);
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
                for piece in pieces {
                    all.node.append_ones(&piece.node);
                    all.edge.append_ones(&piece.edge);
                    all.of.append_ones(&piece.of);
                    all.marks.extend(piece.marks);
                }
                all
            }
        };
        let node = match runs {
            Some((ids, _)) => {
                let groups = self.node.groups.len();
                let home = self.spare.clone();
                Runs { ids, of: all.of, rest: all.node, groups, marks: all.marks, home }.into()
            }
            None => {
                all.node.ids.shrink_to_fit();
                all.node.into()
            }
        };
        Dataset { sentences: self.tokens.sentences.clone(), node, edge: all.edge, ..Dataset::default() }
    }

    /// Runs of node attributes: their attributes, and the run of each group in each row of `known`, or NONE.
    fn runs(&self, known: &[Vec<u32>]) -> (Csr, Vec<Vec<u32>>) {
        let (mut runs, mut of) = (Csr::default(), Vec::new());
        for (c, column) in self.tokens.columns.iter().enumerate() {
            let mut times = vec![0u32; column.texts()];
            column.cells.iter().for_each(|&text| times[text as usize] += 1);
            let rows = known[c].chunks_exact(self.slots[c].max(1));
            let mut numbers = vec![NONE; rows.len() * self.groups[c]];
            for (text, row) in rows.enumerate() {
                for group in self.node.groups.iter().filter(|g| g.column == c) {
                    let row = &row[group.place..];
                    if times.get(text).is_some_and(|&n| n >= OFTEN) && row[0] >= LONG && runs.rows() < MOST {
                        numbers[text * self.groups[c] + group.number] = runs.rows() as u32;
                        runs.ids.extend_from_slice(&row[HEAD..HEAD + row[0] as usize]);
                        runs.end_row();
                    }
                }
            }
            of.push(numbers);
        }
        (runs, of)
    }

    /// Rows of the groups of a column at every distinct text, then at the places up to NEAR before and behind a sentence:
    /// how many attributes, and their ids.
    fn known(&self, column: usize, vocab: &Vocab) -> Vec<u32> {
        let slots = self.slots[column];
        let texts = self.tokens.columns[column].texts();
        let groups = || self.node.groups.iter().chain(&self.edge.groups).filter(|g| g.column == column);
        let settled = self.settled.as_ref().filter(|settled| settled.column == column);
        self.jobs.concat(texts + 2 * NEAR + 1, |range| {
            let mut rows = Vec::with_capacity(range.len() * slots);
            let (mut keys, mut ids) = (Vec::new(), Vec::new());
            for row in range {
                keys.clear();
                let is_settled = settled.is_some_and(|settled| settled.texts.get(row) == Some(&true));
                for group in groups() {
                    keys.extend(group.rules.iter().map(|rule| match row.checked_sub(texts) {
                        None if is_settled && group.offset == 0 && !rule.edge => ABSENT.key,
                        None => self.group_key(rule, column, row).key,
                        Some(place) => outside_key(rule, place as isize - NEAR as isize),
                    }));
                }
                vocab.get_many(&keys, &mut ids);
                let mut rest = &ids[..];
                for group in groups() {
                    let found;
                    (found, rest) = rest.split_at(group.rules.len());
                    let place = rows.len();
                    rows.push(0);
                    rows.extend(found.iter().filter(|&&id| id != NONE));
                    rows[place] = (rows.len() - place - HEAD) as u32;
                    rows.resize(place + HEAD + group.rules.len().next_multiple_of(QUAD), NONE);
                }
            }
            rows
        })
    }

    /// Ask for what `look_up` will read of a sentence's texts: their rows in arrays that lie by texts, columns first.
    fn ask(&self, s: usize, rows: [&[Vec<u32>]; 2], joined: &[Vec<u64>]) {
        let Some(&end) = self.tokens.sentences.get(s + 1) else { return };
        for (c, column) in self.tokens.columns.iter().enumerate() {
            for &text in &column.cells[self.tokens.sentences[s]..end] {
                let text = text as usize;
                for (rows, width) in rows.iter().zip([self.slots[c], self.groups[c]]) {
                    if let Some(rows) = rows.get(c) {
                        let row = rows.as_ptr().wrapping_add(text * width);
                        (0..width).step_by(LINE).for_each(|at| prefetch(row.wrapping_add(at)));
                    }
                }
                prefetch(joined[c].as_ptr().wrapping_add(text * self.shared[c].len()));
            }
        }
    }

    /// Append the rows of one sentence's tokens; with a `second` place their runs go there, and are left out of the rows.
    fn look_up(
        &self,
        Rules { plan, joints, is_edge }: &Rules<'_>,
        s: usize,
        vocab: &Vocab,
        known: &[Vec<u32>],
        room: &mut Room,
        rows: &mut Csr,
        second: Option<Second<'_>>,
    ) {
        let (begin, end) = (self.tokens.sentences[s], self.tokens.sentences[s + 1]);
        let length = end - begin;
        let out = |t: usize| !*is_edge && self.is_settled(begin + t);
        joint::keys(joints, begin, length, out, &mut room.keys);
        vocab.get_many(&room.keys, &mut room.ids);
        for (j, joint) in joints.iter().enumerate() {
            if let Some(id) = joint.id {
                joint.range(length).for_each(|t| room.ids[t * joints.len() + j] = id);
            }
        }
        let mut ids = Writer::new(rows, length * plan.width);
        let mut second = second.map(|to| (to.runs, Writer::new(to.of, length * plan.groups.len()), to.marks));
        for t in 0..length {
            if out(t) {
                ids.end_row();
                if let Some((_, of, marks)) = &mut second {
                    of.end_row();
                    marks.resize(marks.len() + plan.groups.len(), 0);
                }
                continue;
            }
            for group in &plan.groups {
                let before = ids.at;
                let mut run = NONE;
                if let Some(row) = self.row_at(group, begin, t, length) {
                    if let Some((runs, ..)) = &second {
                        run = runs[group.column][row * self.groups[group.column] + group.number];
                    }
                    if run == NONE {
                        let row = &known[group.column][row * self.slots[group.column] + group.place..];
                        ids.copy(&row[HEAD..], row[0] as usize);
                    }
                } else if group.pad {
                    for rule in &group.rules {
                        let key = self.key(rule, begin, t, length).key;
                        ids.put(if key == ABSENT.key { NONE } else { vocab.get(key) });
                    }
                }
                if let Some((_, of, marks)) = &mut second {
                    of.put(run);
                    marks.push(if run == NONE { (ids.at - before) as u8 } else { RUN });
                }
            }
            room.ids[t * joints.len()..(t + 1) * joints.len()].iter().for_each(|&id| ids.put(id));
            ids.end_row();
            if let Some((_, of, _)) = &mut second {
                of.end_row();
            }
        }
        ids.finish();
        if let Some((_, of, _)) = second {
            of.finish();
        }
    }

    /// The row of a group's column that token t looks at: that of a text, or of a place near the sentence.
    #[inline(always)]
    fn row_at(&self, group: &Group<'_>, begin: usize, t: usize, length: usize) -> Option<usize> {
        if let Some(text) = self.text_at(group, begin, t, length) {
            return Some(text);
        }
        let distance = distance(t as isize + group.offset, length);
        let near = distance.unsigned_abs() <= NEAR && !group.rules[0].edge;
        near.then(|| self.tokens.columns[group.column].texts() + (distance + NEAR as isize) as usize)
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

/// The rules of node or of edge attributes.
struct Rules<'a> {
    plan: &'a RulePlan<'a>,
    joints: Vec<Joint<'a, u64>>,
    is_edge: bool,
}

impl<'a> Rules<'a> {
    fn new(of: &'a Extractor<'_>, plan: &'a RulePlan<'a>, joined: &'a [Vec<u64>], vocab: &Vocab) -> Rules<'a> {
        let mut joints = of.joints(plan, joined);
        joints.iter_mut().for_each(|joint| joint.id = joint.constant().map(|key| vocab.get(key)));
        Rules { plan, joints, is_edge: std::ptr::eq(plan, &of.edge) }
    }
}

/// Where runs go: which there are, [columns] [rows of `known` x groups], the tokens' own, and their marks.
struct Second<'a> {
    runs: &'a [Vec<u32>],
    of: &'a mut Csr,
    marks: &'a mut Vec<u8>,
}

/// Rows of ids being written; what is not kept is written over.
struct Writer<'a> {
    rows: &'a mut Csr,
    at: usize,
}

impl Writer<'_> {
    /// `most`: room for what is to come.
    fn new(rows: &mut Csr, most: usize) -> Writer<'_> {
        let at = rows.ids.len();
        rows.ids.resize(at + most + QUAD, NONE);
        Writer { rows, at }
    }

    /// Append `count` ids, of which `ids` has whole QUADs.
    #[inline(always)]
    fn copy(&mut self, ids: &[u32], count: usize) {
        let to = &mut self.rows.ids[self.at..];
        for (to, ids) in to.chunks_exact_mut(QUAD).zip(ids.chunks_exact(QUAD)).take(count.div_ceil(QUAD)) {
            to.copy_from_slice(ids);
        }
        self.at += count;
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

/// Keys and ids of one sentence's joint rules, kept between sentences.
#[derive(Default)]
struct Room {
    keys: Vec<u64>,
    ids: Vec<u32>,
}
