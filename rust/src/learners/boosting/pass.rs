//! Parts of a pass over sentences that run in parallel: the recursions of one sentence, and the destinations of its
//! differences.

use crate::dataset::layout::Layout;
use crate::dataset::Dataset;
use crate::learners::boosting::cells::{RangeCells, FEATURES, NONE};
use crate::learners::boosting::chain::{ChainWork, EdgeFactors, BLOCK};
use crate::learners::boosting::index::Index;
use crate::learners::boosting::loss::{SentenceLoss, SentenceScores, Target};
use crate::machine::simd::dispatch::dispatch;
use crate::machine::simd::Simd;
use crate::machine::system::shared::Shared;
use std::sync::atomic::{AtomicBool, Ordering};

/// Recursions of one sentence, and differences from its previous values.
pub struct Revision<'a> {
    pub data: &'a Dataset,
    pub layout: &'a Layout,
    pub edges: &'a EdgeFactors,
    pub edge_at: &'a [u32], // position of each edge feature in a matrix [L, P]
    pub node: &'a [f64],
    pub weight: &'a [f64],
    pub shift: f64,
    pub target: Target,
    pub at: &'a [usize],
    pub residual: Shared<'a, f64>,
    pub pairs: Shared<'a, f64>,
    pub new_nodes: Shared<'a, f64>,
    pub new_pairs: Shared<'a, f64>,
    pub new_edges: Shared<'a, f64>,
    pub losses: Shared<'a, SentenceLoss>,
}

impl Revision<'_> {
    /// # Safety
    /// No other thread may run the same `i` or the same sentence.
    pub unsafe fn run(&self, i: usize, s: usize, work: &mut ChainWork) {
        let (width, l) = (self.edges.padded, self.layout.labels);
        let (begin, end) = (self.data.sentences[s], self.data.sentences[s + 1]);
        let (rows, gold) = (begin * width..end * width, &self.data.gold[begin..end]);
        let p = self.new_nodes.slice(self.at[i] * width, rows.len());
        let pairs = self.new_pairs.slice(i * l * width, l * width);
        let node = &self.node[rows.clone()];
        let sentence = SentenceScores { node, gold, edges: self.edges, weight: self.weight[s], shift: self.shift };
        let lost = self.target.residuals(&sentence, work, p, pairs);
        let e = lost.e;
        self.losses.set(i, lost);
        for (p, old) in p.iter_mut().zip(self.residual.slice(rows.start, rows.len())) {
            let new = e * *p;
            *p = new - *old;
            *old = new;
        }
        let n_edges = self.layout.edges.len();
        let (old, new) = (self.pairs.slice(s * n_edges, n_edges), self.new_edges.slice(i * n_edges, n_edges));
        for ((&at, old), out) in self.edge_at.iter().zip(old).zip(new) {
            let x = e * pairs[at as usize];
            *out = x - *old;
            *old = x;
        }
    }
}

/// Destinations of differences.
pub struct BoostingSums<'a> {
    pub data: &'a Dataset,
    pub layout: &'a Layout,
    pub node_ptr: &'a [u64],
    pub node_label: &'a [u16],
    pub index: &'a Index,
    pub cells: &'a RangeCells,
    pub width: usize,
    pub m: &'a Shared<'a, f64>,
    pub mass: &'a Shared<'a, f64>,
    pub changed: &'a [AtomicBool],
}

/// Differences of a sentence.
pub struct SentenceDifferences<'a> {
    pub s: usize,
    pub nodes: &'a [f64], // [T, P] residuals
    pub pairs: &'a [f64], // [edge features]
    pub d: f64,
}

/// Scratch of one thread.
#[derive(Default)]
pub struct RowScratch {
    wrong: Vec<f64>,  // [T, P] differences of wrong labels, 0 for the gold one
    mass: Vec<f64>,   // [T, P] difference of d, 0 for the gold label
    sum: Vec<f64>,    // [P] sum of `wrong` over the tokens of an entry
    masses: Vec<f64>, // [P]
    kept: Vec<(f64, f64)>,
}

dispatch!(
    /// Add a sentence's differences to the cells of part `part` of the attributes. Part 0 includes those of the chain.
    /// Every cell belongs to one part and is summed in the order of sentences, so the sums do not depend on the number
    /// of parts. No other thread may process the same part.
    pub fn add(
        sums: &BoostingSums<'_>,
        differences: &SentenceDifferences<'_>,
        part: usize,
        parts: usize,
        rows: &mut RowScratch,
    ) = |simd| {
        // SAFETY: the caller guarantees that no other thread processes this part.
        unsafe { add_kernel(simd, sums, differences, part, parts, rows) }
    }
);

#[inline(always)]
fn add_padded(to: &mut [f64], by: &[f64]) {
    for (to, by) in to.chunks_exact_mut(BLOCK).zip(by.chunks_exact(BLOCK)) {
        for j in 0..BLOCK {
            to[j] += by[j];
        }
    }
}

impl RowScratch {
    /// Changes of the wrong labels of each token, 0 at the gold ones.
    #[inline(always)]
    fn set_wrong(&mut self, nodes: &[f64], gold: &[u16], width: usize, d: f64) {
        self.wrong.clear();
        self.wrong.extend_from_slice(nodes);
        self.mass.clear();
        self.mass.resize(nodes.len(), d);
        for (t, &y) in gold.iter().enumerate() {
            self.wrong[t * width + y as usize] = 0.0;
            self.mass[t * width + y as usize] = 0.0;
        }
    }
}

/// `S` only selects the instructions that the compiler may use.
///
/// # Safety
/// No other thread may process the same part.
#[inline(always)]
unsafe fn add_kernel<S: Simd>(
    _: S,
    sums: &BoostingSums<'_>,
    differences: &SentenceDifferences<'_>,
    part: usize,
    parts: usize,
    rows: &mut RowScratch,
) {
    let SentenceDifferences { s, nodes, d, .. } = *differences;
    let (width, tight, index) = (sums.width, sums.cells.is_tight(), sums.index);
    let base = sums.data.sentences[s];
    let binary = index.value.is_empty();
    rows.sum.resize(width, 0.0);
    rows.masses.resize(width, 0.0);
    if tight {
        // Gold labels without cells of their own are treated like the others.
        let gold = &sums.data.gold[base..base + nodes.len() / width];
        rows.set_wrong(nodes, if sums.cells.gold_has_no_cells() { &[] } else { gold }, width, d);
    }
    for entry in index.entry_ptr[s]..index.entry_ptr[s + 1] {
        let attribute = index.attribute[entry] as usize;
        if parts > 1 && attribute % parts != part {
            continue;
        }
        let first = sums.node_ptr[attribute] as usize;
        let labels = &sums.node_label[first..sums.node_ptr[attribute + 1] as usize];
        if labels.is_empty() {
            continue;
        }
        let last = first + labels.len() - 1;
        for block in first / FEATURES..=last / FEATURES {
            sums.changed[block].store(true, Ordering::Relaxed);
        }
        let places = index.occurrence_ptr[entry]..index.occurrence_ptr[entry + 1];
        let (m, mass): (&[f64], &[f64]) = if places.len() == 1 && binary {
            let row = (index.token[places.start] as usize - base) * width;
            if tight {
                let (y, cell) = sums.cells.gold[places.start];
                if cell != NONE {
                    sums.m.add(cell as usize, nodes[row + y as usize]);
                    sums.mass.add(cell as usize, d);
                }
                (&rows.wrong[row..row + width], &rows.mass[row..row + width])
            } else {
                (&nodes[row..row + width], &[])
            }
        } else {
            rows.sum.fill(0.0);
            for (t, v) in index.places(entry) {
                for (x, r) in rows.sum.iter_mut().zip(&nodes[(t - base) * width..(t - base + 1) * width]) {
                    *x += v * r;
                }
            }
            if tight {
                rows.masses.fill(d);
                for &(y, cell) in sums.cells.gold[places].iter().take_while(|x| x.1 != NONE) {
                    sums.m.add(cell as usize, std::mem::take(&mut rows.sum[y as usize]));
                    sums.mass.add(cell as usize, std::mem::take(&mut rows.masses[y as usize]));
                }
            }
            (&rows.sum, &rows.masses)
        };
        let row = sums.cells.row[entry] as usize;
        if sums.cells.dense[attribute] {
            add_padded(sums.m.slice(row, width), m);
            add_padded(sums.mass.slice(row, width), mass);
            continue;
        }
        for (to, &y) in sums.m.slice(row, labels.len()).iter_mut().zip(labels) {
            *to += m[y as usize];
        }
        if tight {
            for (to, &y) in sums.mass.slice(row, labels.len()).iter_mut().zip(labels) {
                *to += mass[y as usize];
            }
        }
    }
    if part == 0 {
        sums.add_chain(differences, rows);
    }
}

impl BoostingSums<'_> {
    /// Add the differences of edges, starts and ends.
    ///
    /// # Safety
    /// No other thread may process part 0.
    #[inline(always)]
    pub unsafe fn add_chain(&self, differences: &SentenceDifferences<'_>, rows: &mut RowScratch) {
        let SentenceDifferences { s, nodes, pairs, d } = *differences;
        let (layout, tight) = (self.layout, self.cells.is_tight());
        if nodes.is_empty() {
            return;
        }
        if tight {
            self.add_edges(s, pairs, d, &mut rows.kept);
        } else {
            add_values(self.m.slice(layout.edge_at(), pairs.len()), pairs);
        }
        let (tokens, (begins, ends)) = (self.data.sentences[s]..self.data.sentences[s + 1], self.data.ends(s));
        let last = nodes.len() - self.width;
        for (labels, at, t, row, here) in [
            (&layout.starts, 0, tokens.start, &nodes[..self.width], begins),
            (&layout.ends, layout.starts.len(), tokens.end - 1, &nodes[last..], ends),
        ] {
            for (i, &y) in labels.iter().enumerate().take(if here { labels.len() } else { 0 }) {
                if tight {
                    let cell = self.cells.ends_at + 2 * (at + i) + usize::from(self.data.gold[t] == y);
                    self.m.add(cell, row[y as usize]);
                    self.mass.add(cell, d);
                } else {
                    self.m.add(layout.start_at() + at + i, row[y as usize]);
                }
            }
        }
        for block in layout.n_node() / FEATURES..layout.len().div_ceil(FEATURES) {
            self.changed[block].store(true, Ordering::Relaxed);
        }
    }
}

impl BoostingSums<'_> {
    /// Add the differences of edges to the row of the sentence's length. Those of the gold path's edges go to separate
    /// cells.
    ///
    /// # Safety
    /// No other thread may process part 0.
    #[inline(always)]
    unsafe fn add_edges(&self, s: usize, pairs: &[f64], d: f64, kept: &mut Vec<(f64, f64)>) {
        let cells = self.cells;
        if cells.edge_row[s] == NONE {
            return;
        }
        let row = cells.edge_row[s] as usize;
        let gold = &cells.edge_gold[cells.edge_ptr[s] as usize..cells.edge_ptr[s + 1] as usize];
        let (m, mass) = (self.m.slice(row, pairs.len()), self.mass.slice(row, pairs.len()));
        kept.clear();
        kept.extend(gold.iter().map(|&(i, _)| (m[i as usize], mass[i as usize])));
        add_values(m, pairs);
        mass.iter_mut().for_each(|x| *x += d);
        for (&(i, cell), &kept_values) in gold.iter().zip(kept.iter()) {
            (m[i as usize], mass[i as usize]) = kept_values;
            self.m.add(cell as usize, pairs[i as usize]);
            self.mass.add(cell as usize, d);
        }
    }
}

#[inline(always)]
fn add_values(to: &mut [f64], by: &[f64]) {
    for (to, by) in to.iter_mut().zip(by) {
        *to += by;
    }
}
