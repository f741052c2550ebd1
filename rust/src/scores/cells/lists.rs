//! The features of each sentence with the places that have them, as lists.

use crate::machine::simd::WIDTH;
use crate::scores::cells::TokenCells;
use rayon::prelude::*;
use std::ops::Range;

/// Parts that lists are made in.
const PARTS: usize = 8;

/// So many features that follow each other in a list, each with so many places.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub many: u32,
    pub places: u32,
    pub wide: bool, // rows of all lanes
}

/// Features of each sentence with their places in it: lists of a feature's number and then its places; narrow rows before wide ones, and
/// those with few places first, so that the machine can tell how long each is.
#[derive(Default)]
pub(super) struct Lists<I> {
    pub runs: Vec<Run>,
    pub entries: Vec<I>,
    pub values: Vec<f32>, // [entries] of the places; empty where all are 1
}

/// Where a sentence's lists begin.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Begin {
    pub row_run: usize,
    pub row: usize,
    pub cell_run: usize,
    pub cell: usize,
}

/// Rows and tokens, in two bytes each where they fit.
pub(super) enum RowLists {
    Short(Lists<u16>),
    Long(Lists<u32>),
}

/// A number of a list.
pub(super) trait Number: Copy + Into<u32> + Send {
    fn of(x: u32) -> Self;
}

impl Number for u16 {
    fn of(x: u32) -> u16 {
        x as u16
    }
}

impl Number for u32 {
    fn of(x: u32) -> u32 {
        x
    }
}

/// What one sentence's occurrences are sorted with; `slot` has a place a feature, for the sentence that was there last.
#[derive(Default)]
struct Sorter {
    slot: Vec<(u32, u32)>, // [features] sentence, number within it
    features: Vec<u32>,
    counts: Vec<u32>,
    found: Vec<(u32, u32, f32)>, // number within the sentence, place, value
    many: Vec<u32>,
    at: Vec<usize>,
    next: Vec<usize>,
}

impl Sorter {
    fn new(features: usize) -> Sorter {
        Sorter { slot: vec![(u32::MAX, 0); features], ..Sorter::default() }
    }

    #[inline(always)]
    fn add(&mut self, sentence: u32, feature: u32, place: u32, value: f32) {
        let slot = &mut self.slot[feature as usize];
        if slot.0 != sentence {
            *slot = (sentence, self.features.len() as u32);
            self.features.push(feature);
            self.counts.push(0);
        }
        self.counts[slot.1 as usize] += 1;
        self.found.push((slot.1, place, value));
    }

    /// The lists of the sentence, behind those before it; features from `wide` on are wide rows.
    fn finish<I: Number>(&mut self, to: &mut Lists<I>, valued: bool, wide: u32) {
        let most = 1 + self.counts.iter().copied().max().unwrap_or(0) as usize;
        let kind = |feature: u32, count: u32| usize::from(feature >= wide) * most + count as usize;
        self.many.clear();
        self.many.resize(2 * most, 0);
        for (&feature, &count) in self.features.iter().zip(&self.counts) {
            self.many[kind(feature, count)] += 1;
        }
        self.at.clear(); // of the next feature of each kind
        let mut next = to.entries.len();
        for (k, &many) in self.many.iter().enumerate() {
            self.at.push(next);
            next += many as usize * (1 + k % most);
            if many > 0 {
                to.runs.push(Run { many, places: (k % most) as u32, wide: k >= most });
            }
        }
        let whole = to.entries.len() + self.features.len() + self.found.len();
        to.entries.resize(whole, I::of(0));
        if valued {
            to.values.resize(whole, 0.0);
        }
        self.next.clear();
        for (&feature, &c) in self.features.iter().zip(&self.counts) {
            let at = &mut self.at[kind(feature, c)];
            to.entries[*at] = I::of(feature);
            self.next.push(*at + 1);
            *at += 1 + c as usize;
        }
        for &(number, place, value) in &self.found {
            let at = &mut self.next[number as usize];
            to.entries[*at] = I::of(place);
            if valued {
                to.values[*at] = value;
            }
            *at += 1;
        }
        self.features.clear();
        self.counts.clear();
        self.found.clear();
    }
}

impl Begin {
    /// The same where lists that end so come before.
    fn behind(self, last: Begin) -> Begin {
        Begin {
            row_run: last.row_run + self.row_run,
            row: last.row + self.row,
            cell_run: last.cell_run + self.cell_run,
            cell: last.cell + self.cell,
        }
    }
}

impl<I> Lists<I> {
    fn append(&mut self, mut more: Lists<I>) {
        self.runs.append(&mut more.runs);
        self.entries.append(&mut more.entries);
        self.values.append(&mut more.values);
    }

    #[inline(always)]
    pub fn some(&self, runs: Range<usize>, entries: Range<usize>) -> (&[Run], &[I], &[f32]) {
        let values = if self.values.is_empty() { &[][..] } else { &self.values[entries.clone()] };
        (&self.runs[runs], &self.entries[entries], values)
    }
}

/// The lists of some sentences, each one's end among them; rows without features are left out.
fn read<I: Number + Default>(tokens: &TokenCells, sentences: Range<usize>) -> (Vec<Begin>, Lists<I>, Lists<u32>) {
    let (mut begins, mut rows, mut cells) = (Vec::new(), Lists::default(), Lists::default());
    let first_cell = tokens.exists.len() * WIDTH;
    let (mut of_rows, mut of_cells) = (Sorter::new(tokens.exists.len()), Sorter::new(tokens.cells - first_cell));
    let values = |all: &[f32], at: usize| if all.is_empty() { 1.0 } else { all[at] };
    let wide = tokens.wide as u32;
    for i in sentences {
        let (begin, end) = tokens.range(i as u32);
        for token in begin..end {
            for at in tokens.at[token].row..tokens.at[token + 1].row {
                let row = tokens.rows.get(at) as u32;
                if row != 0 && row != wide {
                    of_rows.add(i as u32, row, (token - begin) as u32, values(&tokens.row_values, at));
                }
            }
        }
        of_rows.finish(&mut rows, !tokens.row_values.is_empty(), wide);
        for at in tokens.spans[i].rare..tokens.spans[i + 1].rare {
            let f = tokens.rare[at];
            of_cells.add(i as u32, f.cell - first_cell as u32, f.at, values(&tokens.rare_values, at));
        }
        of_cells.features.iter_mut().for_each(|cell| *cell += first_cell as u32);
        of_cells.finish(&mut cells, !tokens.rare_values.is_empty(), u32::MAX);
        begins.push(Begin {
            row_run: rows.runs.len(),
            row: rows.entries.len(),
            cell_run: cells.runs.len(),
            cell: cells.entries.len(),
        });
    }
    (begins, rows, cells)
}

/// The lists of all sentences and where each one's begin: in parts, one a thread at a time, which are put one behind the other.
pub(super) fn build<I: Number + Default>(tokens: &TokenCells) -> (Vec<Begin>, Lists<I>, Lists<u32>) {
    let n = tokens.data.len();
    let at = |part: usize| n * part / PARTS;
    let parts: Vec<_> = (0..PARTS).into_par_iter().map(|part| read::<I>(tokens, at(part)..at(part + 1))).collect();
    let (mut begins, mut rows, mut cells) = (vec![Begin::default()], Lists::default(), Lists::default());
    begins.reserve(n);
    for (part, more_rows, more_cells) in parts {
        let last = begins[begins.len() - 1];
        begins.extend(part.iter().map(|begin| begin.behind(last)));
        rows.append(more_rows);
        cells.append(more_cells);
    }
    (begins, rows, cells)
}
