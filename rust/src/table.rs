//! Weights by attribute, packed for scoring: one look-up leads to all that an attribute adds to a token's scores.
//!
//! An attribute with many labels is a row of whole lanes, added in registers; one with few is a list of (label, weight).
//! The arrays of a `Layout` say the same in a third of the memory, but cost four cache misses an attribute.

use crate::dataset::Dataset;
use crate::lattice::Tile;
use crate::simd::{prefetch, Lane, Simd, WIDTH};
use crate::weights::Layout;

/// Where an attribute's weights are: `lanes` lanes of `rows`, or `pairs` pairs of `pairs`, from `first` on.
#[derive(Clone, Copy, Default)]
struct Entry {
    first: u32,
    lanes: u16,
    pairs: u16,
}

#[derive(Clone, Copy)]
struct Pair {
    label: u32,
    weight: f32,
}

/// Attributes that are scored together.
const LISTS: usize = 64;

pub struct Table {
    width: usize,
    entries: Vec<Entry>, // [attributes]
    rows: Vec<Lane>,
    pairs: Vec<Pair>,
}

impl Table {
    /// None where the arrays would be too large to be addressed.
    pub fn new(layout: &Layout, weights: &[f32]) -> Option<Table> {
        let width = layout.labels.div_ceil(WIDTH);
        let mut out =
            Table { width, entries: Vec::with_capacity(layout.attributes), rows: Vec::new(), pairs: Vec::new() };
        for a in 0..layout.attributes {
            let (first, labels) = layout.node(a as u32);
            let of = labels.iter().zip(&weights[first..first + labels.len()]).filter(|&(_, &w)| w != 0.0);
            let count = of.clone().count();
            let lanes = of.clone().map(|(&y, _)| y as usize / WIDTH + 1).max().unwrap_or(0);
            if count > 2 * lanes {
                let at = out.rows.len();
                out.entries.push(Entry { first: u32::try_from(at).ok()?, lanes: u16::try_from(lanes).ok()?, pairs: 0 });
                out.rows.resize(at + lanes, Lane::ZERO);
                for (&y, &w) in of {
                    out.rows[at + y as usize / WIDTH].0[y as usize % WIDTH] = w;
                }
            } else {
                let at = out.pairs.len();
                out.entries.push(Entry { first: u32::try_from(at).ok()?, lanes: 0, pairs: u16::try_from(count).ok()? });
                out.pairs.extend(of.map(|(&y, &w)| Pair { label: u32::from(y), weight: w }));
            }
        }
        Some(out)
    }

    /// Ask for what `score` will read of a token that comes soon.
    #[inline(always)]
    pub fn prefetch(&self, data: &Dataset, token: usize) {
        for &id in &data.node.ids[data.node.ptr[token]..data.node.ptr[token + 1]] {
            let entry = &self.entries[id as usize];
            let (row, pair) = (self.rows.as_ptr(), self.pairs.as_ptr());
            let (row, pair) = (row.wrapping_add(entry.first as usize), pair.wrapping_add(entry.first as usize));
            prefetch(if entry.lanes > 0 { row.cast::<u8>() } else { pair.cast::<u8>() });
            prefetch(row.wrapping_add((entry.lanes as usize).saturating_sub(1)));
        }
    }

    /// Scores of one token's labels into lane `lane` of the tile.
    #[inline(always)]
    pub unsafe fn score<S: Simd>(&self, data: &Dataset, token: usize, lane: usize, tile: &mut Tile) {
        match (self.width, data.node.values.is_empty()) {
            (1, true) => self.score_in::<S, 1, true>(data, token, lane, tile),
            (2, true) => self.score_in::<S, 2, true>(data, token, lane, tile),
            (3, true) => self.score_in::<S, 3, true>(data, token, lane, tile),
            (4, true) => self.score_in::<S, 4, true>(data, token, lane, tile),
            (1, false) => self.score_in::<S, 1, false>(data, token, lane, tile),
            (2, false) => self.score_in::<S, 2, false>(data, token, lane, tile),
            (3, false) => self.score_in::<S, 3, false>(data, token, lane, tile),
            (4, false) => self.score_in::<S, 4, false>(data, token, lane, tile),
            _ => self.score_wide::<S>(data, token, lane, tile),
        }
    }

    /// `ONES`: whether all values are 1.
    #[inline(always)]
    unsafe fn score_in<S: Simd, const W: usize, const ONES: bool>(
        &self,
        data: &Dataset,
        token: usize,
        lane: usize,
        tile: &mut Tile,
    ) {
        // No branch an attribute: lanes that a row lacks are read from a row of zeros, lists are remembered and come last.
        let mut sum = [S::splat(0.0); W];
        let mut lists = [0u8; LISTS];
        let mut n = 0;
        let mut begin = data.node.ptr[token];
        let end = data.node.ptr[token + 1];
        loop {
            let stop = end.min(begin + LISTS);
            for at in begin..stop {
                let entry = self.entries[data.node.ids[at] as usize];
                let row = self.rows.as_ptr().add(entry.first as usize);
                let value = S::splat(if ONES { 1.0 } else { data.node.value(at) });
                for j in 0..W {
                    let lane = if j < entry.lanes as usize { row.add(j) } else { &Lane::ZERO as *const Lane };
                    let x = S::load(&*lane);
                    sum[j] = S::add(sum[j], if ONES { x } else { S::mul(value, x) });
                }
                lists[n] = (at - begin) as u8;
                n += usize::from(entry.pairs > 0);
            }
            if begin == data.node.ptr[token] {
                for j in 0..W {
                    S::store(sum[j], &mut tile.0[j][lane]);
                }
            } else {
                for j in 0..W {
                    S::store(S::add(S::load(&tile.0[j][lane]), sum[j]), &mut tile.0[j][lane]);
                }
            }
            for &at in &lists[..n] {
                self.add_pairs(data, begin + at as usize, lane, tile);
            }
            if stop == end {
                break;
            }
            (begin, n, sum) = (stop, 0, [S::splat(0.0); W]);
        }
    }

    /// The same for the lanes of labels in the set of bits `wanted` alone: with few labels a token most of a row need not
    /// be fetched. The other lanes of the tile are left as they are. The same floats are added in the same order.
    #[inline(always)]
    pub unsafe fn score_some<S: Simd>(&self, data: &Dataset, token: usize, lane: usize, wanted: u32, tile: &mut Tile) {
        if self.width > 4 {
            return self.score_wide::<S>(data, token, lane, tile);
        }
        let (first, end) = (data.node.ptr[token], data.node.ptr[token + 1]);
        let mut begin = first;
        loop {
            let stop = end.min(begin + LISTS);
            for j in (0..self.width).filter(|j| wanted >> j & 1 != 0) {
                let mut sum = S::splat(0.0);
                for at in begin..stop {
                    let entry = self.entries[data.node.ids[at] as usize];
                    if j < entry.lanes as usize {
                        let row = &*self.rows.as_ptr().add(entry.first as usize + j);
                        sum = S::add(sum, S::mul(S::splat(data.node.value(at)), S::load(row)));
                    }
                }
                let place = &mut tile.0[j][lane];
                S::store(if begin == first { sum } else { S::add(S::load(place), sum) }, place);
            }
            for at in begin..stop {
                let entry = self.entries[data.node.ids[at] as usize];
                if entry.pairs == 0 {
                    continue;
                }
                let value = data.node.value(at);
                for pair in &self.pairs[entry.first as usize..entry.first as usize + entry.pairs as usize] {
                    if wanted >> (pair.label as usize / WIDTH) & 1 != 0 {
                        tile.0[pair.label as usize / WIDTH][lane].0[pair.label as usize % WIDTH] += pair.weight * value;
                    }
                }
            }
            if stop == end {
                break;
            }
            begin = stop;
        }
    }

    #[inline(always)]
    unsafe fn score_wide<S: Simd>(&self, data: &Dataset, token: usize, lane: usize, tile: &mut Tile) {
        tile.0.iter_mut().for_each(|part| part[lane] = Lane::ZERO);
        for at in data.node.ptr[token]..data.node.ptr[token + 1] {
            let entry = self.entries[data.node.ids[at] as usize];
            let value = S::splat(data.node.value(at));
            let rows = &self.rows[entry.first as usize..];
            for (part, row) in tile.0.iter_mut().zip(&rows[..entry.lanes as usize]) {
                S::store(S::add(S::load(&part[lane]), S::mul(value, S::load(row))), &mut part[lane]);
            }
            self.add_pairs(data, at, lane, tile);
        }
    }

    #[inline(always)]
    fn add_pairs(&self, data: &Dataset, at: usize, lane: usize, tile: &mut Tile) {
        let entry = self.entries[data.node.ids[at] as usize];
        if entry.pairs > 0 {
            let value = data.node.value(at);
            for pair in &self.pairs[entry.first as usize..entry.first as usize + entry.pairs as usize] {
                tile.0[pair.label as usize / WIDTH][lane].0[pair.label as usize % WIDTH] += pair.weight * value;
            }
        }
    }
}
