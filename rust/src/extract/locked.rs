//! Looking up in a vocabulary that does not grow: in pieces, by any number of threads, with a second reading for scoring
//! where texts repeat.

use super::{chunks, Extractor, Plan, ABSENT, CHUNK, HEAD, QUAD};
use crate::dataset::{Csr, Dataset};
use crate::runs::{Runs, LONG, MOST, OFTEN, WORTH};
use crate::vocab::{Vocab, NONE};

impl Extractor<'_> {
    /// The dataset of a locked vocabulary: unknown attributes are left out.
    pub fn locked(&self, vocab: &Vocab) -> Dataset {
        let mut known: Vec<Vec<u32>> = (0..self.tokens.columns.len()).map(|c| self.known(c, vocab)).collect();
        let runs = (self.tokens.tokens() >= WORTH).then(|| self.runs(&mut known));
        let joined = self.joined();
        let piece = |sentences: std::ops::Range<usize>| {
            let mut out = Dataset { runs: runs.as_ref().map(|_| Runs::default()), ..Dataset::default() };
            // Room for every rule at every token, of which only what is used is ever touched.
            let tokens = self.tokens.sentences[sentences.end] - self.tokens.sentences[sentences.start];
            out.node.ids.reserve(tokens * self.node.width);
            out.node.ptr.reserve(tokens);
            if let Some(runs) = &mut out.runs {
                runs.rest.ids.reserve(tokens * self.node.width);
                runs.rest.ptr.reserve(tokens);
                runs.of.ids.reserve(tokens * self.node.groups.len());
                runs.of.ptr.reserve(tokens);
            }
            let mut room = Room::default();
            for s in sentences {
                self.look_up(&self.node, s, vocab, (&known, &joined), &mut room, &mut out.node, out.runs.as_mut());
                if !self.edge.is_empty() {
                    self.look_up(&self.edge, s, vocab, (&known, &joined), &mut room, &mut out.edge, None);
                }
            }
            out
        };
        let mut data = match self.jobs.0 {
            None => piece(0..self.tokens.len()),
            Some(_) => {
                let pieces = self.jobs.map(self.sentence_chunks(), piece);
                let mut data = Dataset { runs: runs.as_ref().map(|_| Runs::default()), ..Dataset::default() };
                data.node.ids.reserve(pieces.iter().map(|piece| piece.node.ids.len()).sum());
                data.node.ptr.reserve(self.tokens.tokens());
                for piece in pieces {
                    data.node.append_ones(&piece.node);
                    data.edge.append_ones(&piece.edge);
                    if let (Some(whole), Some(part)) = (&mut data.runs, piece.runs) {
                        whole.of.append_ones(&part.of);
                        whole.rest.append_ones(&part.rest);
                    }
                }
                data
            }
        };
        data.sentences = self.tokens.sentences.clone();
        if let (Some(whole), Some(ids)) = (&mut data.runs, runs) {
            whole.ids = ids;
        }
        data.node.ids.shrink_to_fit();
        data
    }

    /// Number the runs of node attributes in the rows of `known`; their attributes.
    fn runs(&self, known: &mut [Vec<u32>]) -> Csr {
        let mut runs = Csr::default();
        for (c, column) in self.tokens.columns.iter().enumerate() {
            let mut times = vec![0u32; column.texts()];
            column.cells.iter().for_each(|&text| times[text as usize] += 1);
            for (text, row) in known[c].chunks_exact_mut(self.slots[c].max(1)).enumerate() {
                for group in self.node.groups.iter().filter(|g| g.column == c) {
                    let row = &mut row[group.place..];
                    if times[text] >= OFTEN && row[0] >= LONG && runs.rows() < MOST {
                        row[1] = runs.rows() as u32;
                        runs.ids.extend_from_slice(&row[HEAD..HEAD + row[0] as usize]);
                        runs.end_row();
                    }
                }
            }
        }
        runs
    }

    /// Rows of the groups of a column at every distinct text: how many attributes, no run yet, and their ids.
    fn known(&self, column: usize, vocab: &Vocab) -> Vec<u32> {
        let slots = self.slots[column];
        let groups = || self.node.groups.iter().chain(&self.edge.groups).filter(|g| g.column == column);
        let parts = self.jobs.map(chunks(self.tokens.columns[column].texts()), |range| {
            let mut rows = Vec::with_capacity(range.len() * slots);
            let (mut keys, mut ids) = (Vec::new(), Vec::new());
            for text in range {
                keys.clear();
                for group in groups() {
                    keys.extend(group.rules.iter().map(|rule| self.group_key(rule, column, text).key));
                }
                vocab.get_many(&keys, &mut ids);
                let mut rest = &ids[..];
                for group in groups() {
                    let found;
                    (found, rest) = rest.split_at(group.rules.len());
                    let place = rows.len();
                    rows.extend([0, NONE]);
                    rows.extend(found.iter().filter(|&&id| id != NONE));
                    rows[place] = (rows.len() - place - HEAD) as u32;
                    rows.resize(place + HEAD + group.rules.len().next_multiple_of(QUAD), NONE);
                }
            }
            rows
        });
        parts.concat()
    }

    /// Append the rows of one sentence's tokens, and where there are `runs` their second reading.
    #[allow(clippy::too_many_arguments)]
    fn look_up(
        &self,
        plan: &Plan<'_>,
        s: usize,
        vocab: &Vocab,
        (known, joined): (&[Vec<u32>], &[Vec<u64>]),
        room: &mut Room,
        rows: &mut Csr,
        mut runs: Option<&mut Runs>,
    ) {
        let (begin, end) = (self.tokens.sentences[s], self.tokens.sentences[s + 1]);
        let length = end - begin;
        let joint = plan.joint.len();
        room.keys.clear();
        for t in 0..length {
            room.keys.extend(plan.joint.iter().map(|joint| self.joint_key(joined, joint, begin, t, length)));
        }
        vocab.get_many(&room.keys, &mut room.ids);
        let mut ids = Writer::new(rows, length * plan.width);
        let mut second = runs.as_mut().map(|runs| {
            (Writer::new(&mut runs.of, length * plan.groups.len()), Writer::new(&mut runs.rest, length * plan.width))
        });
        for t in 0..length {
            for group in &plan.groups {
                if let Some(text) = self.text_at(group, begin, t, length) {
                    let row = &known[group.column][text * self.slots[group.column] + group.place..];
                    let (count, run) = (row[0] as usize, row[1]);
                    ids.copy(&row[HEAD..], count);
                    if let Some((of, rest)) = &mut second {
                        of.put(run);
                        if run == NONE {
                            rest.copy(&row[HEAD..], count);
                        }
                    }
                } else if group.pad {
                    for rule in &group.rules {
                        let key = self.key(rule, begin, t, length).key;
                        let id = if key == ABSENT.key { NONE } else { vocab.get(key) };
                        ids.put(id);
                        if let Some((_, rest)) = &mut second {
                            rest.put(id);
                        }
                    }
                }
            }
            for &id in &room.ids[t * joint..(t + 1) * joint] {
                ids.put(id);
                if let Some((_, rest)) = &mut second {
                    rest.put(id);
                }
            }
            ids.end_row();
            if let Some((of, rest)) = &mut second {
                of.end_row();
                rest.end_row();
            }
        }
        ids.finish();
        if let Some((of, rest)) = second {
            of.finish();
            rest.finish();
        }
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
