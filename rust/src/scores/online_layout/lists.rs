//! Features of each sentence with the places at which they occur, as lists.

use crate::error::Result;
use crate::machine::simd::WIDTH;
use crate::machine::system::paged::{Flat, PagedVec, Pages, Writer};
use crate::scores::online_layout::read::check_length;
use crate::scores::online_layout::{Cells, Places};
use rayon::prelude::*;
use std::ops::Range;

/// Number of parts in which lists are built.
const PARTS: usize = 8;
/// Number of tokens per round when lists are written to a file. Only one round is in memory.
const ROUND: usize = 1 << 17;

/// `count` consecutive features of a list, each with `places` places.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub count: u32,
    pub places: u32,
    pub wide: bool, // rows of all lanes
}

/// Features of each sentence with their places: each list is a feature's number followed by its places. Narrow rows
/// come before wide ones, and lists with few places first, so that loop lengths are predictable.
#[derive(Default)]
pub(super) struct PlaceLists<I: Flat> {
    pub runs: Vec<Run>,
    pub entries: PagedVec<I>,
    pub values: PagedVec<f32>, // [entries] values of the places, empty if all are 1
}

/// Offsets of a sentence's lists.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Begin {
    pub row_run: usize,
    pub row: usize,
    pub cell_run: usize,
    pub cell: usize,
}

/// Rows and tokens, in two bytes each if they fit.
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

/// Scratch for sorting the occurrences of one sentence. `slot` has one entry per feature, valid for the sentence stored
/// in it.
#[derive(Default)]
struct Sorter {
    slot: Vec<(u32, u32)>, // [features] sentence, number within it
    features: Vec<u32>,
    counts: Vec<u32>,
    found: Vec<(u32, u32, f32)>, // number within the sentence, place, value
    count: Vec<u32>,
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

    /// Append the lists of the sentence. Features from `wide` on are wide rows.
    fn finish<I: Number>(&mut self, to: &mut PlaceLists<I>, valued: bool, wide: u32) {
        let most = 1 + self.counts.iter().copied().max().unwrap_or(0) as usize;
        let kind = |feature: u32, count: u32| usize::from(feature >= wide) * most + count as usize;
        self.count.clear();
        self.count.resize(2 * most, 0);
        for (&feature, &count) in self.features.iter().zip(&self.counts) {
            self.count[kind(feature, count)] += 1;
        }
        self.at.clear(); // index of the next feature of each kind
        let mut next = to.entries.len();
        for (k, &count) in self.count.iter().enumerate() {
            self.at.push(next);
            next += count as usize * (1 + k % most);
            if count > 0 {
                to.runs.push(Run { count, places: (k % most) as u32, wide: k >= most });
            }
        }
        let total = to.entries.len() + self.features.len() + self.found.len();
        to.entries.vec().resize(total, I::of(0));
        if valued {
            to.values.vec().resize(total, 0.0);
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
    /// Offsets after lists that end at `last`.
    fn shifted_by(self, last: Begin) -> Begin {
        Begin {
            row_run: last.row_run + self.row_run,
            row: last.row + self.row,
            cell_run: last.cell_run + self.cell_run,
            cell: last.cell + self.cell,
        }
    }
}

impl<I: Flat> PlaceLists<I> {
    /// Lists of one sentence.
    #[inline(always)]
    pub fn some(&self, runs: Range<usize>, entries: Range<usize>) -> RunIter<'_, I> {
        let values = if self.values.is_empty() { &[][..] } else { &self.values[entries.clone()] };
        RunIter { runs: self.runs[runs].iter(), entries: &self.entries[entries], values }
    }
}

/// Consecutive runs: (run, entries per list, all their entries, their values if any).
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
        (here, self.entries) = self.entries.split_at(size * run.count as usize);
        (values, self.values) = self.values.split_at(here.len().min(self.values.len()));
        Some((run, size, here, values))
    }
}

/// Build the lists of some sentences, with the end of each. Rows without features are omitted.
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

/// Offsets of each sentence's lists, lists of rows, and lists of single cells.
pub(super) type ListsPart<I> = (Vec<Begin>, PlaceLists<I>, PlaceLists<u32>);

/// Lists that are appended to memory or to files.
struct ListsWriter<I: Flat> {
    runs: Vec<Run>,
    entries: Writer<I>,
    values: Writer<f32>,
}

impl<I: Flat> ListsWriter<I> {
    fn new(pages: Option<&Pages>) -> Result<ListsWriter<I>> {
        Ok(ListsWriter { runs: Vec::new(), entries: Writer::new(pages)?, values: Writer::new(pages)? })
    }

    /// Reserve exactly the space for these parts.
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

/// Build the lists of all sentences in parts, one per thread at a time, appended in order. Lists that go to files are
/// built in rounds, so that only one round is in memory.
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
            begins.extend(part.iter().map(|begin| begin.shifted_by(last)));
            rows.append(more_rows)?;
            cells.append(more_cells)?;
        }
    }
    Ok((begins, rows.finish(pages.as_deref_mut())?, cells.finish(pages)?))
}
