//! Masses and moments of all attributes from the residuals of all tokens, attribute by attribute: where a round changes most
//! sentences, sums made anew cost less than differences, whose cells lie all over memory. Every cell is added to in the order of
//! sentences, whoever does it.

use crate::dataset::layout::Layout;
use crate::learners::boosting::cells::{RangeCells, NONE};
use crate::learners::boosting::index::Index;
use crate::machine::dispatch::dispatch;
use crate::machine::shared::Shared;
use crate::machine::simd::{prefetch, Simd};
use std::ops::Range;

/// Places ahead whose residuals are fetched.
const AHEAD: usize = 12;
/// Numbers in a line of a cache.
const LINE: usize = 8;

/// An entry of the index as its attribute meets it.
#[derive(Clone, Copy, Debug)]
struct Met {
    sentence: u32,
    row: u32, // first cell of its row
    end: u32, // its places end here, where those of the next begin
}

/// The index once more, attribute by attribute, so that it is read from front to back.
pub struct ByAttribute {
    ptr: Vec<usize>, // [A + 1] entries of an attribute
    met: Vec<Met>,
    token: Vec<u32>,       // [places]
    value: Vec<f32>,       // [places], or empty where all are 1
    gold: Vec<(u32, u32)>, // [places] gold labels of an entry and their cells, NONE after the last
}

/// What sums are made of, and where they go.
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

impl ByAttribute {
    /// For tight bounds.
    pub fn new(layout: &Layout, index: &Index, cells: &RangeCells) -> ByAttribute {
        let mut out = ByAttribute {
            ptr: vec![0],
            met: Vec::with_capacity(index.attribute.len()),
            token: Vec::with_capacity(index.token.len()),
            value: Vec::with_capacity(index.value.len()),
            gold: Vec::with_capacity(index.token.len()),
        };
        for a in 0..layout.attributes as u32 {
            let entries = if layout.node(a).1.is_empty() { &[] } else { index.postings(a) };
            for e in entries.iter().map(|&e| e as usize) {
                let places = index.occurrence_ptr[e]..index.occurrence_ptr[e + 1];
                out.token.extend_from_slice(&index.token[places.clone()]);
                out.value.extend_from_slice(index.value.get(places.clone()).unwrap_or_default());
                out.gold.extend_from_slice(&cells.gold[places]);
                out.met.push(Met { sentence: index.sentence[e], row: cells.row[e], end: out.token.len() as u32 });
            }
            out.ptr.push(out.met.len());
        }
        out
    }
}

dispatch!(
    /// Add all entries of some attributes to their cells. No other thread may work on the same attributes.
    pub fn gather(job: &Gathered<'_>, attributes: Range<usize>, sum: &mut Vec<f64>) = gather_kernel
);

/// `S` only says which instructions the compiler may use.
///
/// # Safety
/// The machine has the instructions of `S`; no other thread works on the same attributes.
#[inline(always)]
unsafe fn gather_kernel<S: Simd>(job: &Gathered<'_>, attributes: Range<usize>, sum: &mut Vec<f64>) {
    let (width, by) = (job.width, job.by);
    sum.clear();
    sum.resize(2 * width, 0.0);
    let (sum, masses) = sum.split_at_mut(width);
    let first = by.ptr[attributes.start];
    let mut begin = if first == 0 { 0 } else { by.met[first - 1].end as usize };
    for a in attributes {
        let (labels, dense) = (job.layout.node(a as u32).1, job.cells.dense[a]);
        let columns = if dense { width } else { labels.len() };
        for met in &by.met[by.ptr[a]..by.ptr[a + 1]] {
            let places = begin..met.end as usize;
            begin = places.end;
            job.fetch(places.end - 1 + AHEAD);
            let d = job.d[met.sentence as usize];
            let row = |t: u32| &job.residual[t as usize * width..(t as usize + 1) * width];
            if places.len() == 1 && by.value.is_empty() {
                sum.copy_from_slice(row(by.token[places.start]));
            } else {
                sum.fill(0.0);
                for at in places.clone() {
                    let value = by.value.get(at).map_or(1.0, |&value| f64::from(value));
                    for (sum, r) in sum.iter_mut().zip(row(by.token[at])) {
                        *sum += value * r;
                    }
                }
            }
            masses.fill(d);
            // What belongs to gold labels goes to cells of their own.
            for &(y, cell) in by.gold[places].iter().take_while(|x| x.1 != NONE) {
                job.m.add(cell as usize, std::mem::take(&mut sum[y as usize]));
                job.mass.add(cell as usize, std::mem::take(&mut masses[y as usize]));
            }
            let (m, mass) = (job.m.slice(met.row as usize, columns), job.mass.slice(met.row as usize, columns));
            if dense {
                m.iter_mut().zip(&*sum).for_each(|(m, sum)| *m += sum);
                mass.iter_mut().zip(&*masses).for_each(|(mass, d)| *mass += d);
            } else {
                for ((m, mass), &y) in m.iter_mut().zip(mass).zip(labels) {
                    *m += sum[y as usize];
                    *mass += masses[y as usize];
                }
            }
        }
    }
}

impl Gathered<'_> {
    /// Have the residuals of a place near when its turn comes.
    #[inline(always)]
    fn fetch(&self, at: usize) {
        if let Some(&token) = self.by.token.get(at) {
            let row = self.residual.as_ptr().wrapping_add(token as usize * self.width);
            (0..self.width).step_by(LINE).for_each(|y| prefetch(row.wrapping_add(y)));
        }
    }
}
