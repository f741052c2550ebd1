//! Parts of a pass over sentences that threads share: the recursions of one sentence, and where its differences go.

use super::chain::{self, Edges, Work};
use super::index::{Boundaries, Cells, Index};
use super::state::FEATURES;
use crate::dataset::Dataset;
use crate::shared::Shared;
use crate::weights::Layout;
use std::sync::atomic::{AtomicBool, Ordering};

/// One sentence's recursions, and its differences to what was known.
pub struct Job<'a> {
    pub data: &'a Dataset,
    pub layout: &'a Layout,
    pub edges: &'a Edges,
    pub node: &'a [f64],
    pub psi: &'a [f64],
    pub weight: &'a [f64],
    pub shift: f64,
    pub at: &'a [usize],
    pub residual: Shared<'a, f64>,
    pub pairs: Shared<'a, f64>,
    pub new_nodes: Shared<'a, f64>,
    pub new_pairs: Shared<'a, f64>,
    pub new_edges: Shared<'a, f64>,
    pub fresh: Shared<'a, [f64; 3]>,
}

impl Job<'_> {
    /// # Safety
    /// No other thread runs the same `i` or the same sentence.
    pub unsafe fn run(&self, i: usize, s: usize, work: &mut Work) {
        let (width, l) = (self.edges.padded, self.layout.labels);
        let (begin, end) = (self.data.sentences[s], self.data.sentences[s + 1]);
        let (rows, gold) = (begin * width..end * width, &self.data.gold[begin..end]);
        let p = self.new_nodes.slice(self.at[i] * width, rows.len());
        let pairs = self.new_pairs.slice(i * l * width, l * width);
        let (node, psi) = (&self.node[rows.clone()], &self.psi[rows.clone()]);
        let minus_log_p = chain::marginals(node, psi, gold, self.edges, work, p, pairs);
        let (e, d) = masses(self.weight[s], minus_log_p, self.shift);
        self.fresh.set(i, [minus_log_p, e, d]);
        let old = self.residual.slice(rows.start, rows.len());
        for ((p, old), &y) in p.chunks_exact_mut(width).zip(old.chunks_exact_mut(width)).zip(gold) {
            // p - 1 of the gold label as minus the others: exact where the sentence is all but learnt.
            p[y as usize] = 0.0;
            p[y as usize] = -p[..l].iter().sum::<f64>();
            for (p, old) in p.iter_mut().zip(old) {
                let new = e * *p;
                *p = new - *old;
                *old = new;
            }
        }
        for y in gold.windows(2) {
            pairs[y[0] as usize * width + y[1] as usize] -= 1.0;
        }
        let n_edges = self.layout.edges.len();
        let (old, new) = (self.pairs.slice(s * n_edges, n_edges), self.new_edges.slice(i * n_edges, n_edges));
        for ((&edge, old), out) in self.layout.edges.iter().zip(old).zip(new) {
            let (from, to) = (edge as usize / l, edge as usize % l);
            let x = e * pairs[from * width + to];
            *out = x - *old;
            *old = x;
        }
    }
}

/// Where differences go.
pub struct Sums<'a> {
    pub data: &'a Dataset,
    pub layout: &'a Layout,
    pub node_ptr: &'a [u64],
    pub node_label: &'a [u16],
    pub index: &'a Index,
    pub cells: &'a Cells,
    pub boundaries: &'a Boundaries,
    pub width: usize,
    pub m: &'a Shared<'a, f64>,
    pub mass: &'a Shared<'a, f64>,
    pub changed: &'a [AtomicBool],
}

impl Sums<'_> {
    /// Add a sentence's differences to the cells of part `part` of the attributes; part 0 has the chain's. Every cell
    /// belongs to one part and is added to in the order of sentences: the sums do not depend on the number of parts.
    ///
    /// # Safety
    /// No other thread works on the same part.
    pub unsafe fn add(&self, s: usize, nodes: &[f64], pairs: &[f64], d: f64, part: usize, parts: usize) {
        let (width, tight) = (self.width, self.cells.is_tight());
        let base = self.data.sentences[s];
        let mut total = [0.0; 256];
        for entry in self.index.entry_ptr[s]..self.index.entry_ptr[s + 1] {
            let attribute = self.index.attribute[entry];
            if parts > 1 && attribute as usize % parts != part {
                continue;
            }
            let first = self.node_ptr[attribute as usize] as usize;
            let labels = &self.node_label[first..self.node_ptr[attribute as usize + 1] as usize];
            if labels.is_empty() {
                continue;
            }
            let places = self.index.occurrence_ptr[entry]..self.index.occurrence_ptr[entry + 1];
            let row = |t: usize| &nodes[(t - base) * width..(t - base + 1) * width];
            let one = row(self.index.token[places.start] as usize);
            let binary = self.index.value.is_empty();
            let sum: &[f64] = if places.len() == 1 && binary {
                one
            } else if width <= total.len() {
                let sum = &mut total[..width];
                sum.fill(0.0);
                for (t, v) in self.index.places(entry) {
                    for (x, r) in sum.iter_mut().zip(row(t)) {
                        *x += v * r;
                    }
                }
                sum
            } else {
                &[]
            };
            let last = first + labels.len() - 1;
            for block in first / FEATURES..=last / FEATURES {
                self.changed[block].store(true, Ordering::Relaxed);
            }
            let of = |y: u16| {
                if sum.is_empty() {
                    self.index.places(entry).map(|(t, v)| v * row(t)[y as usize]).sum()
                } else {
                    sum[y as usize]
                }
            };
            if tight {
                let at = self.cells.entry_at[entry] as usize;
                for (&cell, &y) in self.cells.of_entry[at..at + labels.len()].iter().zip(labels) {
                    self.m.slice(cell as usize, 1)[0] += of(y);
                    self.mass.slice(cell as usize, 1)[0] += d;
                }
            } else {
                for (m, &y) in self.m.slice(first, labels.len()).iter_mut().zip(labels) {
                    *m += of(y);
                }
            }
        }
        if part == 0 && !nodes.is_empty() {
            self.add_chain(s, nodes, pairs, d, tight);
        }
    }

    /// # Safety
    /// As above, for part 0.
    unsafe fn add_chain(&self, s: usize, nodes: &[f64], pairs: &[f64], d: f64, tight: bool) {
        let layout = self.layout;
        let add = |i: usize, x: f64| {
            if tight {
                let cell = self.cells.of_chain[s * self.cells.chain + i] as usize;
                self.m.slice(cell, 1)[0] += x;
                self.mass.slice(cell, 1)[0] += d;
            } else {
                self.m.slice(layout.n_node() + i, 1)[0] += x;
            }
        };
        for (i, &x) in pairs.iter().enumerate() {
            add(i, x);
        }
        let (n_edges, n_starts) = (layout.edges.len(), layout.starts.len());
        if self.boundaries.first[s] {
            for (i, &y) in layout.starts.iter().enumerate() {
                add(n_edges + i, nodes[y as usize]);
            }
        }
        if self.boundaries.last[s] {
            let last = &nodes[nodes.len() - self.width..];
            for (i, &y) in layout.ends.iter().enumerate() {
                add(n_edges + n_starts + i, last[y as usize]);
            }
        }
        for block in layout.n_node() / FEATURES..layout.len().div_ceil(FEATURES) {
            self.changed[block].store(true, Ordering::Relaxed);
        }
    }
}

/// w e^{l - shift} and w (e^l - 1) e^-shift.
pub fn masses(weight: f64, l: f64, shift: f64) -> (f64, f64) {
    let e = weight * (l - shift).exp();
    (e, if l < 30.0 { weight * (-shift).exp() * l.exp_m1() } else { e - weight * (-shift).exp() })
}
