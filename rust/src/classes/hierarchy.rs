//! Binary tree of classes: the two classes whose merger lowers the objective least are merged, until one is left (Brown
//! et al. 1992). The path from the root to a class is a string of 0 and 1, and a prefix of it is a coarser class.
//!
//! With h(n) = n log n and g(m, n) = h(m + n) - h(m) - h(n), merging the classes c and d changes the objective by
//!
//! ```text
//! sum_e g(N(c,e), N(d,e)) + g(N(e,c), N(e,d))  -  2 g(N(c), N(d))
//! ```
//!
//! with e over the other classes, and by the gain of the four cells of c and d, which become one. A merger of i and j
//! changes only the terms e = i and e = j of another pair, so that a merger costs O(K^2).

use crate::classes::exchange::Exchange;
use crate::classes::matrix::Bigrams;
use crate::classes::n_log_n::NLogN;
use crate::error::Result;
use crate::machine::system::budget;
use crate::machine::system::stop;
use rayon::prelude::*;

/// Merger of class `from` into class `to`, which is smaller, and the change of the objective.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Merger {
    pub to: u32,
    pub from: u32,
    pub change: f64,
}

/// Change of the objective by every possible merger.
struct Pairs {
    changes: Vec<Vec<f64>>, // [K] [c] of the pairs (c, d) with d < c
    active: Vec<usize>,
}

/// Cells of one class as a neighbour of all classes, and h of them.
struct Side {
    cells: [Vec<u32>; 2], // N(c, e) and N(e, c) for all c
    h: [Vec<f64>; 2],
}

impl Side {
    fn new(bigrams: &Bigrams, e: usize, h: &NLogN) -> Side {
        let cells = [bigrams.left.row(e).to_vec(), bigrams.right.row(e).to_vec()];
        let values = [0, 1].map(|side: usize| cells[side].iter().map(|&n| h.of(n)).collect());
        Side { cells, h: values }
    }

    /// Return the terms of this class in S(c, d).
    #[inline(always)]
    fn terms(&self, c: usize, d: usize, h: &NLogN) -> f64 {
        let mut sum = 0.0;
        for (cells, values) in self.cells.iter().zip(&self.h) {
            let (m, n) = (cells[c], cells[d]);
            if m > 0 && n > 0 {
                sum += h.of(m + n) - values[c] - values[d];
            }
        }
        sum
    }

    /// Return whether a class has a cell other than 0.
    fn has(&self, c: usize) -> bool {
        self.cells[0][c] > 0 || self.cells[1][c] > 0
    }
}

/// Return the change of the objective when c and d are merged.
fn change(bigrams: &Bigrams, sizes: &[u32], c: usize, d: usize, h: &NLogN) -> f64 {
    let mut change = -2.0 * h.joined(sizes[c], sizes[d]);
    for matrix in [&bigrams.right, &bigrams.left] {
        let other = matrix.row(d);
        matrix.each(c, |e, m| {
            if other[e] > 0 {
                change += h.joined(m, other[e]);
            }
        });
    }
    let (cc, cd, dc, dd) = (bigrams.at(c, c), bigrams.at(c, d), bigrams.at(d, c), bigrams.at(d, d));
    change -= h.joined(cc, dc) + h.joined(cc, cd) + h.joined(cd, dd) + h.joined(dc, dd);
    change + h.of(cc + cd + dc + dd) - h.of(cc) - h.of(cd) - h.of(dc) - h.of(dd)
}

impl Pairs {
    fn new(bigrams: &Bigrams, sizes: &[u32], k: usize, h: &NLogN) -> Pairs {
        let stop = stop::current();
        let row = |c: usize| {
            let _mine = stop.enter();
            (0..c).map(|d| change(bigrams, sizes, c, d, h)).collect()
        };
        Pairs { changes: (0..k).into_par_iter().with_max_len(8).map(row).collect(), active: (0..k).collect() }
    }

    /// Return the best merger. The first of equal ones wins.
    fn best(&self) -> Merger {
        let mut best = Merger { to: 0, from: 0, change: f64::NEG_INFINITY };
        for &c in &self.active {
            for (d, &change) in self.changes[c].iter().enumerate() {
                if change > best.change {
                    best = Merger { to: d as u32, from: c as u32, change };
                }
            }
        }
        best
    }

    /// Update the changes after class `from` was merged into `to`. `old` are both classes before.
    fn merged(&mut self, bigrams: &Bigrams, sizes: &[u32], old: [Side; 2], to: usize, from: usize, h: &NLogN) {
        self.active.retain(|&c| c != from);
        let (new, active) = (Side::new(bigrams, to, h), &self.active);
        let touched: Vec<usize> = active.iter().copied().filter(|&c| new.has(c)).collect();
        self.changes.par_iter_mut().enumerate().with_min_len(16).for_each(|(c, row)| {
            if let Some(gone) = row.get_mut(from) {
                *gone = f64::NEG_INFINITY;
            }
            if c == from {
                row.clear();
            } else if c == to {
                let others = active.iter().take_while(|&&d| d < c);
                others.for_each(|&d| row[d] = change(bigrams, sizes, c, d, h));
            } else if !row.is_empty() {
                if new.has(c) {
                    for &d in touched.iter().take_while(|&&d| d < c) {
                        row[d] += new.terms(c, d, h) - old[0].terms(c, d, h) - old[1].terms(c, d, h);
                    }
                }
                if to < c {
                    row[to] = change(bigrams, sizes, c, to, h);
                }
            }
        });
    }
}

/// Merge the classes of an assignment into one. Return the mergers in order.
pub fn mergers(of: &Exchange) -> Result<Vec<Merger>> {
    let (bigrams, sizes, h) = of.state();
    let k = of.k();
    budget::claim("the tree of classes", budget::bytes(&[k, k, 4 + size_of::<f64>()]), "use fewer classes")?;
    let (mut bigrams, mut sizes) = (bigrams.clone(), sizes.to_vec());
    let mut pairs = Pairs::new(&bigrams, &sizes, k, h);
    let mut found = Vec::with_capacity(k.saturating_sub(1));
    while pairs.active.len() > 1 {
        stop::check();
        let merger = pairs.best();
        let (to, from) = (merger.to as usize, merger.from as usize);
        let old = [Side::new(&bigrams, to, h), Side::new(&bigrams, from, h)];
        bigrams.merge(to, from);
        sizes[to] += sizes[from];
        pairs.merged(&bigrams, &sizes, old, to, from, h);
        found.push(merger);
    }
    Ok(found)
}

/// Return the path of every class: 0 leads to the class that was merged into, 1 to the other.
pub fn paths(mergers: &[Merger], k: usize) -> Vec<String> {
    let mut paths = vec![String::new(); k];
    for merger in mergers.iter().rev() {
        let mut other = paths[merger.to as usize].clone();
        other.push('1');
        paths[merger.to as usize].push('0');
        paths[merger.from as usize] = other;
    }
    paths
}
