//! Sparse rows of (id, value) in flat arrays (CSR).

use crate::dataset::vocab::NONE;
use crate::error::Result;
use crate::machine::system::paged::{PagedVec, Pages, Writer};

/// Rows of (id, value). Row r is `ptr[r]..ptr[r + 1]`. If `values` is empty, all values are 1.
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

/// Borrowed rows, in memory or in files.
#[derive(Clone, Copy, Debug)]
pub struct CsrRef<'a> {
    pub ptr: &'a [usize],
    pub ids: &'a [u32],
    pub values: &'a [f32],
}

impl<'a> CsrRef<'a> {
    pub fn rows(&self) -> usize {
        self.ptr.len() - 1
    }

    /// Return the value of entry `at`.
    #[inline]
    pub fn value(&self, at: usize) -> f32 {
        if self.values.is_empty() {
            1.0
        } else {
            self.values[at]
        }
    }

    /// Return the ids of row r.
    #[inline(always)]
    pub fn ids_of(self, r: usize) -> &'a [u32] {
        &self.ids[self.ptr[r]..self.ptr[r + 1]]
    }

    /// Iterate over the entries of row r as (id, value).
    #[inline]
    pub fn row(self, r: usize) -> impl Iterator<Item = (u32, f32)> + 'a {
        (self.ptr[r]..self.ptr[r + 1]).map(move |at| (self.ids[at], self.value(at)))
    }

    pub fn to_owned(self) -> Csr {
        Csr { ptr: self.ptr.to_vec(), ids: self.ids.to_vec(), values: self.values.to_vec() }
    }
}

/// Immutable rows in memory or in files.
pub struct PagedCsr {
    ptr: PagedVec<usize>,
    ids: PagedVec<u32>,
    values: PagedVec<f32>,
}

impl PagedCsr {
    pub fn view(&self) -> CsrRef<'_> {
        CsrRef { ptr: &self.ptr, ids: &self.ids, values: &self.values }
    }

    pub fn add_to(&self, pages: &mut Pages) {
        pages.add(&self.ptr);
        pages.add(&self.ids);
        pages.add(&self.values);
    }
}

impl From<Csr> for PagedCsr {
    fn from(rows: Csr) -> Self {
        PagedCsr { ptr: rows.ptr.into(), ids: rows.ids.into(), values: rows.values.into() }
    }
}

impl Default for PagedCsr {
    fn default() -> Self {
        Csr::default().into()
    }
}

impl std::fmt::Debug for PagedCsr {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PagedCsr[{}]", self.view().rows())
    }
}

/// Writer that appends rows, in memory or to files.
pub struct CsrWriter {
    ptr: Writer<usize>,
    ids: Writer<u32>,
    values: Writer<f32>,
    entries: usize,
    has_values: bool,
}

impl CsrWriter {
    pub fn new(pages: Option<&Pages>) -> Result<CsrWriter> {
        let mut ptr = Writer::new(pages)?;
        ptr.push(&[0])?;
        let (ids, values) = (Writer::new(pages)?, Writer::new(pages)?);
        Ok(CsrWriter { ptr, ids, values, entries: 0, has_values: false })
    }

    pub fn append(&mut self, rows: CsrRef<'_>) -> Result<()> {
        let ends: Vec<usize> = rows.ptr[1..].iter().map(|&end| self.entries + end).collect();
        self.ptr.push(&ends)?;
        self.ids.push(rows.ids)?;
        if !self.has_values && !rows.values.is_empty() {
            self.has_values = true;
            self.values.fill(1.0, self.entries)?;
        }
        match rows.values.is_empty() {
            false => self.values.push(rows.values)?,
            true if self.has_values => self.values.fill(1.0, rows.ids.len())?,
            true => {}
        }
        self.entries += rows.ids.len();
        Ok(())
    }

    pub fn finish(self, mut pages: Option<&mut Pages>) -> Result<PagedCsr> {
        Ok(PagedCsr {
            ptr: self.ptr.finish(pages.as_deref_mut())?,
            ids: self.ids.finish(pages.as_deref_mut())?,
            values: self.values.finish(pages)?,
        })
    }
}

impl Csr {
    pub fn rows(&self) -> usize {
        self.ptr.len() - 1
    }

    #[inline]
    pub fn view(&self) -> CsrRef<'_> {
        CsrRef { ptr: &self.ptr, ids: &self.ids, values: &self.values }
    }

    /// Append to the current row. `NONE` (an unknown attribute) and zero values are dropped.
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

    /// Append attributes of value 1, dropping `NONE`. The loop is branch-free, since unknown attributes are
    /// unpredictable: every id is written, and the write position advances only past known ones.
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

    /// Return the ids of row r.
    #[inline(always)]
    pub fn ids_of(&self, r: usize) -> &[u32] {
        &self.ids[self.ptr[r]..self.ptr[r + 1]]
    }

    /// Append the rows of another matrix, all of value 1.
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

    /// Return the value of entry `at`.
    #[inline]
    pub fn value(&self, at: usize) -> f32 {
        self.view().value(at)
    }

    /// Iterate over the entries of row r as (id, value).
    #[inline]
    pub fn row(&self, r: usize) -> impl Iterator<Item = (u32, f32)> + '_ {
        self.view().row(r)
    }

    /// Map ids through `map`, dropping entries that map to `NONE`.
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
