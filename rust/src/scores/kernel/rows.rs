//! Distinct tokens, and the kernel of one of them with all.

use crate::dataset::csr::{Csr, CsrRef};
use crate::error::{Error, Result};
use crate::scores::kernel::Kernel;
use std::collections::HashMap;

/// Distinct tokens of a dataset: attributes ascending, values of repeated ones added up.
#[derive(Clone, Debug, Default)]
pub struct Distinct {
    pub rows: Csr,        // [U]
    pub of: Vec<u32>,     // [tokens] index of the distinct token
    pub square: Vec<f64>, // [U] ||x||^2
}

impl Distinct {
    /// Collect the distinct tokens in order of first occurrence.
    pub fn new(tokens: CsrRef<'_>) -> Distinct {
        let mut out = Distinct::default();
        let mut first: HashMap<u64, u32> = HashMap::new();
        let mut next: Vec<u32> = Vec::new(); // next row with the same hash
        let mut row: Vec<(u32, f32)> = Vec::new();
        for t in 0..tokens.rows() {
            row.clear();
            row.extend(tokens.row(t));
            row.sort_by_key(|&(a, _)| a);
            row.dedup_by(|more, kept| {
                let same = more.0 == kept.0;
                if same {
                    kept.1 += more.1;
                }
                same
            });
            row.retain(|&(_, v)| v != 0.0);
            let mut hash = 0xCBF2_9CE4_8422_2325u64;
            for &(a, v) in &row {
                for part in [u64::from(a), u64::from(v.to_bits())] {
                    hash = (hash ^ part).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29);
                }
            }
            let mut at = first.get(&hash).copied().unwrap_or(u32::MAX);
            while at != u32::MAX && !out.rows.row(at as usize).eq(row.iter().copied()) {
                at = next[at as usize];
            }
            if at == u32::MAX {
                at = out.rows.rows() as u32;
                for &(a, v) in &row {
                    out.rows.push(a, v);
                }
                out.rows.end_row();
                out.square.push(row.iter().map(|&(_, v)| f64::from(v) * f64::from(v)).sum());
                next.push(first.insert(hash, at).unwrap_or(u32::MAX));
            }
            out.of.push(at);
        }
        out
    }

    pub fn len(&self) -> usize {
        self.rows.rows()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// <x, x'> of two distinct tokens.
    pub fn dot(&self, a: usize, b: usize) -> f64 {
        let (mut i, mut j) = (self.rows.ptr[a], self.rows.ptr[b]);
        let (ends, ids) = ((self.rows.ptr[a + 1], self.rows.ptr[b + 1]), &self.rows.ids);
        let mut sum = 0.0;
        while i < ends.0 && j < ends.1 {
            match ids[i].cmp(&ids[j]) {
                std::cmp::Ordering::Less => i += 1,
                std::cmp::Ordering::Greater => j += 1,
                std::cmp::Ordering::Equal => {
                    sum += f64::from(self.rows.value(i)) * f64::from(self.rows.value(j));
                    (i, j) = (i + 1, j + 1);
                }
            }
        }
        sum
    }
}

/// Tokens by attribute.
#[derive(Clone, Debug, Default)]
pub struct Inverted {
    ptr: Vec<usize>, // [A + 1]
    row: Vec<u32>,
    value: Vec<f32>, // empty if all are 1
}

impl Inverted {
    pub fn new(rows: &Csr, attributes: usize) -> Inverted {
        let mut ptr = vec![0usize; attributes + 1];
        for &a in &rows.ids {
            ptr[a as usize + 1] += 1;
        }
        for a in 0..attributes {
            ptr[a + 1] += ptr[a];
        }
        let mut next = ptr.clone();
        let mut row = vec![0u32; rows.ids.len()];
        let mut value = vec![0f32; rows.values.len()];
        for r in 0..rows.rows() {
            for at in rows.ptr[r]..rows.ptr[r + 1] {
                let place = &mut next[rows.ids[at] as usize];
                row[*place] = r as u32;
                if let Some(v) = value.get_mut(*place) {
                    *v = rows.values[at];
                }
                *place += 1;
            }
        }
        Inverted { ptr, row, value }
    }

    /// <x, x_r> of a token with every row: `out` [rows]. Attributes outside the index are ignored.
    pub fn dots(&self, token: impl Iterator<Item = (u32, f32)>, out: &mut [f32]) {
        out.fill(0.0);
        for (a, v) in token {
            let Some(&end) = self.ptr.get(a as usize + 1) else { continue };
            let begin = self.ptr[a as usize];
            if self.value.is_empty() {
                for &r in &self.row[begin..end] {
                    out[r as usize] += v;
                }
            } else {
                for at in begin..end {
                    out[self.row[at] as usize] += v * self.value[at];
                }
            }
        }
    }

    /// Number of rows that have this attribute.
    pub fn count(&self, attribute: u32) -> usize {
        let a = attribute as usize;
        self.ptr.get(a + 1).map_or(0, |end| end - self.ptr[a])
    }
}

/// Return a block of some rows.
pub fn block(rows: &Csr, which: impl Iterator<Item = usize>) -> Csr {
    let mut out = Csr::default();
    for r in which {
        for (a, v) in rows.row(r) {
            out.push(a, v);
        }
        out.end_row();
    }
    out
}

/// Kernel rows K(x_u, .) over all distinct tokens, computed on demand and cached up to a memory limit. Replacement is
/// by second chance (CLOCK): a row that was used since the hand last passed it is skipped once.
pub struct KernelRows {
    pub kernel: Kernel,
    index: Inverted,
    capacity: usize,  // maximum number of cached rows
    place: Vec<u32>,  // [U] slot of a token's row, u32::MAX if it is not cached
    owner: Vec<u32>,  // [slots]
    used: Vec<bool>,  // [slots]
    values: Vec<f32>, // [slots, U]
    clock_hand: usize,
    pub computed: u64, // rows computed so far
}

impl KernelRows {
    /// `bytes`: limit on the memory of cached rows. At least one row is always cached.
    pub fn new(kernel: Kernel, distinct: &Distinct, attributes: usize, bytes: usize) -> KernelRows {
        let n = distinct.len();
        KernelRows {
            kernel,
            index: Inverted::new(&distinct.rows, attributes),
            capacity: (bytes / (4 * n.max(1))).clamp(1, n.max(1)),
            place: vec![u32::MAX; n],
            owner: Vec::new(),
            used: Vec::new(),
            values: Vec::new(),
            clock_hand: 0,
            computed: 0,
        }
    }

    /// Return K of token u with every distinct token: [U].
    pub fn row(&mut self, distinct: &Distinct, u: u32) -> Result<&[f32]> {
        let n = distinct.len();
        let mut slot = self.place[u as usize] as usize;
        if slot == u32::MAX as usize {
            slot = self.free_slot(n);
            self.owner[slot] = u;
            self.place[u as usize] = slot as u32;
            if let Err(error) = self.compute(distinct, u, slot) {
                self.place[u as usize] = u32::MAX;
                return Err(error);
            }
        }
        self.used[slot] = true;
        Ok(&self.values[slot * n..(slot + 1) * n])
    }

    fn free_slot(&mut self, n: usize) -> usize {
        if self.owner.len() < self.capacity {
            self.owner.push(u32::MAX);
            self.used.push(false);
            self.values.resize(self.owner.len() * n, 0.0);
            return self.owner.len() - 1;
        }
        while self.used[self.clock_hand] {
            self.used[self.clock_hand] = false;
            self.clock_hand = (self.clock_hand + 1) % self.capacity;
        }
        let slot = self.clock_hand;
        self.clock_hand = (self.clock_hand + 1) % self.capacity;
        let before = self.owner[slot];
        if before != u32::MAX {
            self.place[before as usize] = u32::MAX;
        }
        slot
    }

    fn compute(&mut self, distinct: &Distinct, u: u32, slot: usize) -> Result<()> {
        let (n, u) = (distinct.len(), u as usize);
        self.computed += 1;
        let out = &mut self.values[slot * n..(slot + 1) * n];
        if let Kernel::Function(function) = &self.kernel {
            let values = function(&block(&distinct.rows, std::iter::once(u)), &distinct.rows)?;
            for (x, &k) in out.iter_mut().zip(&values) {
                *x = k as f32;
            }
        } else {
            self.index.dots(distinct.rows.row(u), out);
            apply(&self.kernel, distinct.square[u], &distinct.square, out);
        }
        match out.iter().all(|x| x.is_finite()) {
            true => Ok(()),
            false => Err(Error::Training(
                "the kernel gives values that are not finite; scale real-valued attributes or the kernel down".into(),
            )),
        }
    }
}

/// Convert dot products of a token with others to kernel values.
pub fn apply(kernel: &Kernel, square: f64, others: &[f64], out: &mut [f32]) {
    match *kernel {
        Kernel::Linear | Kernel::Function(_) => {}
        Kernel::Poly { degree: 2, coef, gamma } => {
            for x in out {
                let base = coef + gamma * f64::from(*x);
                *x = (base * base) as f32;
            }
        }
        Kernel::Poly { .. } => out.iter_mut().for_each(|x| *x = kernel.of(f64::from(*x), 0.0, 0.0) as f32),
        Kernel::Rbf { .. } => {
            for (x, &other) in out.iter_mut().zip(others) {
                *x = kernel.of(f64::from(*x), square, other) as f32;
            }
        }
    }
}
