//! Masses and moments of all attributes from the residuals of all tokens, attribute by attribute. If a round changes
//! most sentences, recomputing the sums costs less than adding differences to scattered cells. Every cell is summed in
//! the order of sentences, independently of the thread.

use crate::dataset::layout::Layout;
use crate::learners::boosting::cells::{RangeCells, NONE};
use crate::learners::boosting::chain::BLOCK;
use crate::learners::boosting::index::Index;
use crate::machine::simd::dispatch::dispatch;
use crate::machine::simd::{prefetch, Simd};
use crate::machine::system::shared::Shared;
use crate::machine::system::stop;
use std::ops::Range;

/// Number of occurrences by which residuals are prefetched.
const PREFETCH_DISTANCE: usize = 12;
/// Numbers in a cache line.
const LINE_NUMBERS: usize = 8;

/// An entry of the index, in the order of attributes.
#[derive(Clone, Copy, Debug)]
struct AttributeEntry {
    sentence: u32,
    row: u32, // first cell of its row
    end: u32, // end of its occurrences, start of those of the next
}

/// A copy of the index ordered by attribute, so that it is read sequentially.
pub struct ByAttribute {
    ptr: Vec<usize>, // [A + 1] entries of an attribute
    entries: Vec<AttributeEntry>,
    token: Vec<u32>,       // [places]
    value: Vec<f32>,       // [places], or empty if all are 1
    gold: Vec<(u32, u32)>, // [places] gold labels of an entry and their cells, NONE after the last
}

/// Inputs of the sums, and their destination.
pub struct Gathered<'a> {
    pub layout: &'a Layout,
    pub cells: &'a RangeCells,
    pub by: &'a ByAttribute,
    pub width: usize,
    pub residual: &'a [f64], // [tokens, P]
    pub d: &'a [f64],        // [N]
    pub m: &'a Shared<'a, f64>,
    pub mass: &'a Shared<'a, f64>,
}

/// Scratch of one thread.
#[derive(Default)]
pub struct GatherWork {
    sum: Vec<f64>,         // [P]
    kept: Vec<(f64, f64)>, // of the gold labels of an entry
}

impl ByAttribute {
    /// For tight bounds.
    pub fn new(layout: &Layout, index: &Index, cells: &RangeCells) -> ByAttribute {
        let mut out = ByAttribute {
            ptr: vec![0],
            entries: Vec::with_capacity(index.attribute.len()),
            token: Vec::with_capacity(index.token.len()),
            value: Vec::with_capacity(index.value.len()),
            gold: Vec::with_capacity(index.token.len()),
        };
        for a in 0..layout.attributes as u32 {
            stop::check();
            let entries = if layout.node(a).1.is_empty() { &[] } else { index.postings(a) };
            for e in entries.iter().map(|&e| e as usize) {
                let places = index.occurrence_ptr[e]..index.occurrence_ptr[e + 1];
                out.token.extend_from_slice(&index.token[places.clone()]);
                out.value.extend_from_slice(index.value.get(places.clone()).unwrap_or_default());
                out.gold.extend_from_slice(&cells.gold[places]);
                out.entries.push(AttributeEntry {
                    sentence: index.sentence[e],
                    row: cells.row[e],
                    end: out.token.len() as u32,
                });
            }
            out.ptr.push(out.entries.len());
        }
        out
    }
}

dispatch!(
    /// Add all entries of some attributes to their cells. No other thread may process the same attributes.
    pub fn gather(job: &Gathered<'_>, attributes: Range<usize>, work: &mut GatherWork) = |simd| {
        // SAFETY: the caller guarantees that no other thread processes these attributes.
        unsafe { gather_kernel(simd, job, attributes, work) }
    }
);

/// `S` only selects the instructions that the compiler may use.
///
/// # Safety
/// No other thread may process the same attributes.
#[inline(always)]
unsafe fn gather_kernel<S: Simd>(_: S, job: &Gathered<'_>, attributes: Range<usize>, work: &mut GatherWork) {
    let (width, by) = (job.width, job.by);
    let GatherWork { sum, kept } = work;
    sum.resize(width, 0.0);
    let first = by.ptr[attributes.start];
    let mut begin = if first == 0 { 0 } else { by.entries[first - 1].end as usize };
    for a in attributes {
        let (labels, dense) = (job.layout.node(a as u32).1, job.cells.dense[a]);
        let columns = if dense { width } else { labels.len() };
        for entry in &by.entries[by.ptr[a]..by.ptr[a + 1]] {
            let places = begin..entry.end as usize;
            begin = places.end;
            job.prefetch_residuals(places.end - 1 + PREFETCH_DISTANCE);
            let d = job.d[entry.sentence as usize];
            let row = |t: u32| &job.residual[t as usize * width..(t as usize + 1) * width];
            let mut from = row(by.token[places.start]);
            if places.len() > 1 || !by.value.is_empty() {
                for at in places.clone() {
                    let value = by.value.get(at).map_or(1.0, |&value| f64::from(value));
                    add_row(sum, row(by.token[at]), value, at == places.start);
                }
                from = sum;
            }
            // Sums of gold labels go to cells of their own.
            let gold = by.gold[places.clone()].iter().take_while(|x| x.1 != NONE);
            let (m, mass) = (job.m.slice(entry.row as usize, columns), job.mass.slice(entry.row as usize, columns));
            if dense {
                kept.clear();
                kept.extend(gold.clone().map(|&(y, _)| (m[y as usize], mass[y as usize])));
                add_row(m, from, 1.0, false);
                add_constant(mass, d);
                for (&(y, _), kept_values) in gold.clone().zip(&*kept) {
                    (m[y as usize], mass[y as usize]) = *kept_values;
                }
            } else {
                for ((m, mass), &y) in m.iter_mut().zip(mass).zip(labels) {
                    if gold.clone().all(|x| x.0 != u32::from(y)) {
                        *m += from[y as usize];
                        *mass += d;
                    }
                }
            }
            for &(y, cell) in gold {
                job.m.add(cell as usize, from[y as usize]);
                job.mass.add(cell as usize, d);
            }
        }
    }
}

/// Add a multiple of a padded row to another, or overwrite the other.
#[inline(always)]
fn add_row(to: &mut [f64], from: &[f64], by: f64, overwrite: bool) {
    for (to, from) in to.chunks_exact_mut(BLOCK).zip(from.chunks_exact(BLOCK)) {
        for j in 0..BLOCK {
            to[j] = by * from[j] + if overwrite { 0.0 } else { to[j] };
        }
    }
}

/// Add a number to a padded row.
#[inline(always)]
fn add_constant(to: &mut [f64], by: f64) {
    for to in to.chunks_exact_mut(BLOCK) {
        for j in 0..BLOCK {
            to[j] += by;
        }
    }
}

impl Gathered<'_> {
    /// Prefetch the residuals of an occurrence.
    #[inline(always)]
    fn prefetch_residuals(&self, at: usize) {
        if let Some(&token) = self.by.token.get(at) {
            let row = self.residual.as_ptr().wrapping_add(token as usize * self.width);
            (0..self.width).step_by(LINE_NUMBERS).for_each(|y| prefetch(row.wrapping_add(y)));
        }
    }
}
