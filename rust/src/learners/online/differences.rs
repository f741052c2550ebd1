//! S(y) - S(y_j) of one path and of many.
//!
//! `Patterns`: feature differences d_j = S(y) - S(y_j) of several paths of one sentence, without traversing the
//! features of every path, since paths of a k-best list agree almost everywhere.
//!
//! At a token, all features of one label have the same *pattern*: in which of the d_j they occur, and with which sign.
//! So each feature is processed once, with the number of its pattern. A feature with several patterns (an attribute of
//! two tokens) gets a row of its own. The Gram matrix and the change of the weights are then sums over patterns and
//! such rows.

use crate::machine::system::stop;
use crate::scores::online_layout::TokenCells;
use hashbrown::hash_table::{Entry, HashTable};

/// Number of paths that are processed together: one float64 vector if the machine has vectors of that size.
const BLOCK: usize = 8;

#[derive(Clone, Copy)]
struct RowTerm {
    row: u32, // a pattern, or a row of its own
    own: bool,
    value: f32, // times the row
}

/// Numbers 0, 1, ... for weights, in the order of their first occurrence.
#[derive(Default)]
pub(crate) struct CellNumbers {
    table: HashTable<u32>,
    pub cells: Vec<u32>,
}

impl CellNumbers {
    pub fn clear(&mut self) {
        self.table.clear();
        self.cells.clear();
    }

    #[inline(always)]
    pub fn of(&mut self, cell: u32) -> usize {
        let cells = &mut self.cells;
        let same = |&number: &u32| cells[number as usize] == cell;
        match self.table.entry(hash(cell), same, |&number| hash(cells[number as usize])) {
            Entry::Occupied(found) => *found.get() as usize,
            Entry::Vacant(free) => {
                free.insert(cells.len() as u32);
                cells.push(cell);
                cells.len() - 1
            }
        }
    }
}

/// Multiplicative hashing with the golden ratio (Knuth, volume 3, 6.4), whose best bits are the high ones. The table
/// takes the slot from the low bits and a tag from the high ones, hence the rotation.
#[inline(always)]
fn hash(cell: u32) -> u64 {
    u64::from(cell).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(32)
}

/// d_j = S(y) - S(y_j) for k paths, feature by feature.
#[derive(Default)]
pub(crate) struct Differences {
    index: CellNumbers,
    pub(crate) amounts: Vec<f32>, // [features, k]
}

impl Differences {
    pub(crate) fn begin(&mut self) {
        self.index.clear();
        self.amounts.clear();
    }

    /// Cells in the order of `amounts`.
    pub(crate) fn cells(&self) -> &[u32] {
        &self.index.cells
    }

    #[inline(always)]
    pub(crate) fn add(&mut self, cell: u32, amount: f32, j: usize, k: usize) {
        let number = self.index.of(cell);
        if number * k == self.amounts.len() {
            self.amounts.resize((number + 1) * k, 0.0);
        }
        self.amounts[number * k + j] += amount;
    }

    /// d_i.d_j, [k, k].
    #[inline(always)]
    pub(crate) fn gram(&self, k: usize, g: &mut Vec<f64>) {
        g.clear();
        g.resize(k * k, 0.0);
        for row in self.amounts.chunks_exact(k) {
            for (i, &x) in row.iter().enumerate() {
                if x != 0.0 {
                    for (g, &y) in g[i * k..i * k + i + 1].iter_mut().zip(row) {
                        *g += f64::from(x * y);
                    }
                }
            }
        }
        for i in 0..k {
            for j in i + 1..k {
                g[i * k + j] = g[j * k + i];
            }
        }
    }
}

/// Scratch for one sentence at a time.
#[derive(Default)]
pub(super) struct Patterns {
    wide: usize, // paths, in whole blocks
    index: CellNumbers,
    items: Vec<RowTerm>,   // in the order of `index`
    rows: Vec<f32>,        // [rows, wide] patterns, and rows of one feature
    times: Vec<f64>,       // [rows] sum of the squared values of the items that have the row
    used: Vec<(u32, u32)>, // (label or label pair, its pattern) at the current token
    steps: Vec<f64>,       // [rows]
}

impl Patterns {
    /// Read the paths `kept` of `paths` [.., T], none of them gold, and call `prefetch_cell` for every cell.
    #[inline(always)]
    pub fn read(
        &mut self,
        tokens: &TokenCells,
        sentence: u32,
        paths: &[u16],
        kept: &[usize],
        prefetch_cell: impl Fn(u32),
    ) {
        self.index.clear();
        self.items.clear();
        self.rows.clear();
        self.times.clear();
        self.wide = kept.len().next_multiple_of(BLOCK);
        let (begin, gold) = (tokens.range(sentence).0, tokens.gold(sentence));
        let n = gold.len();
        let mut before = false; // whether some path is wrong at t-1
        for (t, &y) in gold.iter().enumerate() {
            let here = kept.iter().any(|&j| paths[j * n + t] != y);
            if here {
                self.used.clear();
                for (i, &j) in kept.iter().enumerate() {
                    let z = paths[j * n + t];
                    if z != y {
                        self.mark(u32::from(y), i, 1.0);
                        self.mark(u32::from(z), i, -1.0);
                    }
                }
                for at in 0..self.used.len() {
                    let (label, pattern) = self.used[at];
                    tokens.label_features(begin, t, label as u16, |cell, x| self.add(cell, x, pattern, &prefetch_cell));
                }
            }
            if t > 0 && (here || before) {
                self.used.clear();
                let pair = |path: &[u16]| u32::from(path[t - 1]) << 16 | u32::from(path[t]);
                let right = pair(gold);
                for (i, &j) in kept.iter().enumerate() {
                    let guess = pair(&paths[j * n..(j + 1) * n]);
                    if guess != right {
                        self.mark(right, i, 1.0);
                        self.mark(guess, i, -1.0);
                    }
                }
                for at in 0..self.used.len() {
                    let (pair, pattern) = self.used[at];
                    let pair = [(pair >> 16) as u16, pair as u16];
                    tokens.edge_features(begin + t, pair, 1.0, &mut |cell, x| {
                        self.add(cell, x, pattern, &prefetch_cell);
                    });
                }
            }
            before = here;
        }
    }

    /// Record that a label or label pair is in d_i with this sign.
    #[inline(always)]
    fn mark(&mut self, what: u32, i: usize, sign: f32) {
        let pattern = match self.used.iter().find(|u| u.0 == what) {
            Some(u) => u.1 as usize,
            None => {
                let new = self.times.len();
                self.used.push((what, new as u32));
                self.rows.resize((new + 1) * self.wide, 0.0);
                self.times.push(0.0);
                new
            }
        };
        self.rows[pattern * self.wide + i] = sign;
    }

    #[inline(always)]
    fn add(&mut self, cell: u32, value: f32, pattern: u32, prefetch_cell: &impl Fn(u32)) {
        let number = self.index.of(cell);
        if number == self.items.len() {
            prefetch_cell(cell);
            self.items.push(RowTerm { row: pattern, own: false, value });
            self.times[pattern as usize] += square(value);
            return;
        }
        let (wide, item) = (self.wide, &mut self.items[number]);
        if !item.own {
            let from = item.row as usize;
            self.times[from] -= square(item.value);
            self.rows.extend_from_within(from * wide..(from + 1) * wide);
            for x in &mut self.rows[self.times.len() * wide..] {
                *x *= item.value;
            }
            *item = RowTerm { row: self.times.len() as u32, own: true, value: 1.0 };
            self.times.push(1.0);
        }
        let (row, from) = (item.row as usize * wide, pattern as usize * wide);
        for c in 0..wide {
            self.rows[row + c] += value * self.rows[from + c];
        }
    }

    /// d_i.d_j of the first k paths, [k, k].
    #[inline(always)]
    pub fn gram(&mut self, k: usize, g: &mut Vec<f64>) {
        let wide = self.wide;
        g.clear();
        g.resize(wide * wide, 0.0);
        if let Ok(g) = <&mut [f64; BLOCK * BLOCK]>::try_from(&mut g[..]) {
            for (row, &times) in self.rows.chunks_exact(BLOCK).zip(&self.times) {
                let row: [f64; BLOCK] = std::array::from_fn(|c| f64::from(row[c]));
                for i in 0..BLOCK {
                    let x = row[i] * times;
                    for c in 0..BLOCK {
                        g[i * BLOCK + c] += x * row[c];
                    }
                }
            }
        } else {
            for (row, &times) in self.rows.chunks_exact(wide).zip(&self.times) {
                stop::check();
                for (i, &x) in row[..k].iter().enumerate().filter(|(_, &x)| x != 0.0) {
                    let x = f64::from(x) * times;
                    for (g, y) in g[i * wide..(i + 1) * wide].chunks_exact_mut(BLOCK).zip(row.chunks_exact(BLOCK)) {
                        for c in 0..BLOCK {
                            g[c] += x * f64::from(y[c]);
                        }
                    }
                }
            }
        }
        for i in 1..k {
            g.copy_within(i * wide..i * wide + k, i * k);
        }
        g.truncate(k * k);
    }

    /// Call `add(cell, sum_j tau_j d_j)` for every cell.
    #[inline(always)]
    pub fn each(&mut self, tau: &[f64], mut add: impl FnMut(u32, f64)) {
        let of = |row: &[f32]| row.iter().zip(tau).map(|(&x, t)| f64::from(x) * t).sum::<f64>();
        self.steps.clear();
        self.steps.extend(self.rows.chunks_exact(self.wide).map(of));
        for (item, &cell) in self.items.iter().zip(&self.index.cells) {
            let step = self.steps[item.row as usize] * f64::from(item.value);
            if step != 0.0 {
                add(cell, step);
            }
        }
    }
}

fn square(x: f32) -> f64 {
    f64::from(x) * f64::from(x)
}
