//! The features of each sentence with the places that have them, as lists.

use crate::error::Result;
use crate::machine::simd::WIDTH;
use crate::machine::system::paged::{Flat, PagedVec, Pages, Writer};
use crate::scores::online_layout::read::check_length;
use crate::scores::online_layout::{Cells, Places};
use rayon::prelude::*;
use std::ops::Range;

/// Parts that lists are made in.
const PARTS: usize = 8;
/// Tokens whose lists are in memory at a time on their way to a file.
const ROUND: usize = 1 << 17;

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
pub(super) struct PlaceLists<I: Flat> {
    pub runs: Vec<Run>,
    pub entries: PagedVec<I>,
    pub values: PagedVec<f32>, // [entries] of the places; empty where all are 1
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
    Short(PlaceLists<u16>),
    Long(PlaceLists<u32>),
}

/// A number of a list.
pub(super) trait Number: Flat + Into<u32> {
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
    fn finish<I: Number>(&mut self, to: &mut PlaceLists<I>, valued: bool, wide: u32) {
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
        to.entries.vec().resize(whole, I::of(0));
        if valued {
            to.values.vec().resize(whole, 0.0);
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

impl<I: Flat> PlaceLists<I> {
    /// Those of one sentence.
    #[inline(always)]
    pub fn some(&self, runs: Range<usize>, entries: Range<usize>) -> RunIter<'_, I> {
        let values = if self.values.is_empty() { &[][..] } else { &self.values[entries.clone()] };
        RunIter { runs: self.runs[runs].iter(), entries: &self.entries[entries], values }
    }
}

/// Runs that follow each other: (run, entries of each of its lists, all their entries, their values if there are any).
#[derive(Clone)]
pub(super) struct RunIter<'a, I> {
    runs: std::slice::Iter<'a, Run>,
    entries: &'a [I],
    values: &'a [f32],
}

impl<'a, I> Iterator for RunIter<'a, I> {
    type Item = (&'a Run, usize, &'a [I], &'a [f32]);

    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        let run = self.runs.next()?;
        let size = 1 + run.places as usize;
        let (here, values);
        (here, self.entries) = self.entries.split_at(size * run.many as usize);
        (values, self.values) = self.values.split_at(here.len().min(self.values.len()));
        Some((run, size, here, values))
    }
}

/// The lists of some sentences, each one's end among them; rows without features are left out.
fn read<I: Number + Default>(of: &Cells, places: &Places<'_>, sentences: Range<usize>) -> Result<ListsPart<I>> {
    let (mut begins, mut rows, mut cells) = (Vec::new(), PlaceLists::default(), PlaceLists::default());
    let first_cell = (of.exists.len() * WIDTH) as u32;
    let (mut of_rows, mut of_cells) = (Sorter::new(of.exists.len()), Sorter::new(of.cells - first_cell as usize));
    let valued = !of.data.node.csr().values.is_empty();
    for i in sentences {
        let (begin, end) = of.range(i as u32);
        check_length(of, end - begin)?;
        for t in 0..end - begin {
            let place = (t * of.width * WIDTH) as u32;
            let row = |row, value| of_rows.add(i as u32, row, t as u32, value);
            places.each(of, i, t, row, |cell, label, value| {
                of_cells.add(i as u32, cell - first_cell, place + u32::from(label), value);
            });
        }
        of_rows.finish(&mut rows, valued, of.wide as u32);
        of_cells.features.iter_mut().for_each(|cell| *cell += first_cell);
        of_cells.finish(&mut cells, valued, u32::MAX);
        begins.push(Begin {
            row_run: rows.runs.len(),
            row: rows.entries.len(),
            cell_run: cells.runs.len(),
            cell: cells.entries.len(),
        });
    }
    Ok((begins, rows, cells))
}

/// Where each sentence's lists begin or end, those of its rows and those of its single cells.
pub(super) type ListsPart<I> = (Vec<Begin>, PlaceLists<I>, PlaceLists<u32>);

/// Lists that are appended, to memory or to files.
struct ListsWriter<I: Flat> {
    runs: Vec<Run>,
    entries: Writer<I>,
    values: Writer<f32>,
}

impl<I: Flat> ListsWriter<I> {
    fn new(pages: Option<&Pages>) -> Result<ListsWriter<I>> {
        Ok(ListsWriter { runs: Vec::new(), entries: Writer::new(pages)?, values: Writer::new(pages)? })
    }

    /// Make space for these, and no more.
    fn reserve<'a>(&mut self, parts: impl Iterator<Item = &'a PlaceLists<I>>) {
        let sum =
            parts.fold([0; 3], |n, part| [n[0] + part.runs.len(), n[1] + part.entries.len(), n[2] + part.values.len()]);
        self.runs.reserve_exact(sum[0]);
        self.entries.reserve_exact(sum[1]);
        self.values.reserve_exact(sum[2]);
    }

    fn append(&mut self, mut more: PlaceLists<I>) -> Result<()> {
        self.runs.append(&mut more.runs);
        self.entries.push(&more.entries)?;
        self.values.push(&more.values)
    }

    fn finish(self, mut pages: Option<&mut Pages>) -> Result<PlaceLists<I>> {
        let entries = self.entries.finish(pages.as_deref_mut())?;
        Ok(PlaceLists { runs: self.runs, entries, values: self.values.finish(pages)? })
    }
}

/// The lists of all sentences: in parts, one per thread at a time, which are appended in order. Lists that go to files are
/// read in rounds, so that only those of one round are in memory.
pub(super) fn build<I: Number + Default>(
    of: &Cells,
    places: &Places<'_>,
    mut pages: Option<&mut Pages>,
) -> Result<ListsPart<I>> {
    let n = of.data.len();
    let rounds = if pages.is_some() { of.data.tokens() / ROUND + 2 } else { 1 };
    let at = |part: usize| n * part / (PARTS * rounds);
    let (mut begins, mut rows, mut cells) =
        (vec![Begin::default()], ListsWriter::new(pages.as_deref())?, ListsWriter::new(pages.as_deref())?);
    begins.reserve_exact(n);
    for round in 0..rounds {
        let parts = (PARTS * round..PARTS * (round + 1)).into_par_iter().with_max_len(1);
        let parts: Vec<ListsPart<I>> =
            parts.map(|part| read::<I>(of, places, at(part)..at(part + 1))).collect::<Result<_>>()?;
        rows.reserve(parts.iter().map(|part| &part.1));
        cells.reserve(parts.iter().map(|part| &part.2));
        for (part, more_rows, more_cells) in parts {
            let last = begins[begins.len() - 1];
            begins.extend(part.iter().map(|begin| begin.behind(last)));
            rows.append(more_rows)?;
            cells.append(more_cells)?;
        }
    }
    Ok((begins, rows.finish(pages.as_deref_mut())?, cells.finish(pages)?))
}
