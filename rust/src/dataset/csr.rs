//! Rows of (id, value) in flat arrays.

use crate::dataset::vocab::NONE;

/// Rows of (id, value): row r is `ptr[r]..ptr[r + 1]`. All values are 1 while `values` is empty.
#[derive(Clone, Debug)]
pub struct Csr {
    pub ptr: Vec<usize>,
    pub ids: Vec<u32>,
    pub values: Vec<f32>,
}

impl Default for Csr {
    fn default() -> Self {
        Csr { ptr: vec![0], ids: Vec::new(), values: Vec::new() }
    }
}

impl Csr {
    pub fn rows(&self) -> usize {
        self.ptr.len() - 1
    }

    /// Append to the row being built; NONE (an unknown attribute) and zero values are dropped.
    #[inline]
    pub fn push(&mut self, id: u32, value: f32) {
        if id == NONE || value == 0.0 {
            return;
        }
        if value != 1.0 && self.values.is_empty() {
            self.values = vec![1.0; self.ids.len()];
            self.values.reserve(self.ids.capacity() - self.ids.len());
        }
        self.ids.push(id);
        if value != 1.0 || !self.values.is_empty() {
            self.values.push(value);
        }
    }

    /// Append attributes of value 1, dropping NONE: all are written and kept by moving on, because no machine can predict
    /// which a vocabulary knows.
    #[inline]
    pub fn push_ones(&mut self, ids: &[u32]) {
        let mut at = self.ids.len();
        self.ids.resize(at + ids.len(), NONE);
        for &id in ids {
            self.ids[at] = id;
            at += usize::from(id != NONE);
        }
        self.ids.truncate(at);
        if !self.values.is_empty() {
            self.values.resize(at, 1.0);
        }
    }

    /// A row without its values.
    #[inline(always)]
    pub fn ids_of(&self, r: usize) -> &[u32] {
        &self.ids[self.ptr[r]..self.ptr[r + 1]]
    }

    /// Append the rows of another.
    pub fn append(&mut self, other: &Csr) {
        let before = self.ids.len();
        self.ids.extend_from_slice(&other.ids);
        self.ptr.extend(other.ptr[1..].iter().map(|&end| before + end));
        if self.values.is_empty() && !other.values.is_empty() {
            self.values = vec![1.0; before];
        }
        match other.values.is_empty() {
            true if self.values.is_empty() => {}
            true => self.values.resize(self.ids.len(), 1.0),
            false => self.values.extend_from_slice(&other.values),
        }
    }

    /// Append the rows of another, all of value 1.
    pub fn append_ones(&mut self, other: &Csr) {
        debug_assert!(other.values.is_empty());
        let before = self.ids.len();
        self.ids.extend_from_slice(&other.ids);
        self.ptr.extend(other.ptr[1..].iter().map(|&end| before + end));
        if !self.values.is_empty() {
            self.values.resize(self.ids.len(), 1.0);
        }
    }

    pub fn end_row(&mut self) {
        self.ptr.push(self.ids.len());
    }

    /// Value of entry `at`.
    #[inline]
    pub fn value(&self, at: usize) -> f32 {
        if self.values.is_empty() {
            1.0
        } else {
            self.values[at]
        }
    }

    /// Entries of row r as (id, value).
    #[inline]
    pub fn row(&self, r: usize) -> impl Iterator<Item = (u32, f32)> + '_ {
        (self.ptr[r]..self.ptr[r + 1]).map(|at| (self.ids[at], self.value(at)))
    }

    /// Renumber through `map`, dropping what maps to NONE.
    pub fn renumber(&mut self, map: &[u32]) {
        let (mut write, mut begin) = (0, 0);
        for r in 1..self.ptr.len() {
            let end = self.ptr[r];
            for at in begin..end {
                let id = map[self.ids[at] as usize];
                if id != NONE {
                    self.ids[write] = id;
                    if !self.values.is_empty() {
                        self.values[write] = self.values[at];
                    }
                    write += 1;
                }
            }
            begin = end;
            self.ptr[r] = write;
        }
        self.ids.truncate(write);
        self.values.truncate(write.min(self.values.len()));
    }
}
