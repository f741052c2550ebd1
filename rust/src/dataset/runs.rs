//! Runs: attributes that tokens share, for scoring. The attributes that a template derives from one text (its affixes,
//! its shape) are equal at every occurrence, so they are looked up and summed once per text instead of once per
//! token.
//!
//! The scores of a token are the sum of the sums of its runs and of its single attributes. A run is always summed
//! separately first, whether its sum is cached or not, so that scores have the same bits whatever was tagged before.

use crate::dataset::csr::{Csr, CsrRef, PagedCsr};
use crate::dataset::dense::Dense;
use crate::machine::system::paged::Pages;
use once_cell::race::OnceBox;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// Minimum number of tokens for which runs are faster.
pub const MIN_RUN_TOKENS: usize = 4000;

/// Run without attributes.
pub const NO_RUN: u32 = 0;

/// Runs and their attributes, in order of first occurrence. Runs are added, never changed.
#[derive(Clone, Debug)]
pub struct RunTable {
    pub ids: Csr,             // attributes of each run
    pub largest: Option<u32>, // of all attributes
    /// Equal for two tables only if one is a prefix of the other.
    pub number: u64,
}

impl Default for RunTable {
    fn default() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let mut ids = Csr::default();
        ids.end_row(); // NO_RUN
        RunTable { ids, largest: None, number: NEXT.fetch_add(1, Ordering::Relaxed) }
    }
}

impl RunTable {
    /// Append runs and return the number of the first.
    pub fn append(&mut self, runs: &Csr) -> u32 {
        let first = self.ids.rows() as u32;
        self.ids.append_ones(runs);
        self.largest = self.largest.max(runs.ids.iter().copied().max());
        first
    }
}

/// Attributes of tokens, without values: a fixed number of runs per token, then single attributes.
#[derive(Clone, Debug, Default)]
pub struct TokenRuns {
    pub run_table: Arc<RunTable>,
    pub of: Vec<u32>,  // [tokens, groups] runs of each token
    pub rest: Csr,     // its other attributes
    pub groups: usize, // runs per token
    pub pool: Arc<BufferPool>,
}

/// Maximum number of ids of a kept array, and maximum number of kept arrays.
const MAX_KEPT_IDS: usize = 1 << 23;
const MAX_KEPT_ARRAYS: usize = 2;

/// Buffers of dropped runs, for reuse: a fresh page from the system costs as much as the data written to it.
#[derive(Debug, Default)]
pub struct BufferPool(Mutex<Vec<Csr>>); // only `try_lock`: in a forked process it may stay locked

impl BufferPool {
    /// Return an empty array: the kept one with the most capacity if `prefer_largest`, otherwise the one with the
    /// least.
    pub fn take(&self, prefer_largest: bool) -> Csr {
        let Ok(mut kept) = self.0.try_lock() else { return Csr::default() };
        kept.sort_by_key(|rows| rows.ids.capacity());
        match kept.len() {
            0 => Csr::default(),
            n => kept.remove(if prefer_largest { n - 1 } else { 0 }),
        }
    }

    fn put_back(&self, mut rows: Csr) {
        if let Ok(mut kept) = self.0.try_lock() {
            if kept.len() < MAX_KEPT_ARRAYS && rows.ids.capacity() <= MAX_KEPT_IDS {
                rows.ids.clear();
                rows.ptr.truncate(1);
                kept.push(rows);
            }
        }
    }
}

impl Drop for TokenRuns {
    fn drop(&mut self) {
        self.pool.put_back(std::mem::take(&mut self.rest));
        self.pool.put_back(Csr { ids: std::mem::take(&mut self.of), ..Csr::default() });
    }
}

impl TokenRuns {
    /// Return the runs of a token.
    #[inline(always)]
    pub fn of(&self, token: usize) -> &[u32] {
        &self.of[token * self.groups..(token + 1) * self.groups]
    }

    /// Return one row per token.
    fn rows(&self) -> Csr {
        let mut out = Csr::default();
        for token in 0..self.rest.rows() {
            self.of(token).iter().for_each(|&run| out.ids.extend_from_slice(self.run_table.ids.ids_of(run as usize)));
            out.ids.extend_from_slice(self.rest.ids_of(token));
            out.end_row();
        }
        out
    }
}

/// Attributes of tokens as rows. If tokens have runs or vectors, `csr` builds rows of all attributes on its first call.
#[derive(Debug, Default)]
pub struct Rows {
    rows: PagedCsr, // all attributes except those of vectors; empty if there are runs
    runs: Option<TokenRuns>,
    dense: Option<Dense>,
    /// Rows of all attributes. A race instead of a lock: in a process forked during `csr` a lock would stay locked.
    all: OnceBox<Csr>,
}

impl From<TokenRuns> for Rows {
    fn from(runs: TokenRuns) -> Rows {
        Rows { runs: Some(runs), ..Rows::default() }
    }
}

impl From<PagedCsr> for Rows {
    fn from(rows: PagedCsr) -> Rows {
        Rows { rows, ..Rows::default() }
    }
}

impl Rows {
    /// Return one row per token. The first call takes a pass over the corpus if there are runs or vectors.
    #[inline]
    pub fn csr(&self) -> CsrRef<'_> {
        match (&self.runs, &self.dense) {
            (None, None) => self.rows.view(),
            (Some(runs), _) => self.all.get_or_init(|| Box::new(runs.rows())).view(),
            (None, Some(dense)) => self.all.get_or_init(|| Box::new(dense.joined(self.rows.view()))).view(),
        }
    }

    /// Add the files of the rows to `pages`.
    pub fn add_to(&self, pages: &mut Pages) {
        self.rows.add_to(pages);
    }

    /// Return one row per token, without its vector.
    #[inline]
    pub fn sparse(&self) -> CsrRef<'_> {
        match self.dense {
            Some(_) => self.rows.view(),
            None => self.csr(),
        }
    }

    /// Return the vectors, if tokens have some.
    pub fn dense(&self) -> Option<&Dense> {
        self.dense.as_ref()
    }

    /// Return the rows with vectors. The rows must not have vectors yet.
    pub fn with_dense(&self, dense: Dense) -> Rows {
        Rows { rows: self.csr().to_owned().into(), dense: Some(dense), ..Rows::default() }
    }

    /// Iterate over the attributes and values of a token, its vector last, without building rows.
    #[inline]
    pub fn row(&self, token: usize) -> impl Iterator<Item = (u32, f32)> + '_ {
        self.sparse().row(token).chain(self.dense().into_iter().flat_map(move |dense| dense.entries(token)))
    }

    pub fn runs(&self) -> Option<&TokenRuns> {
        self.runs.as_ref()
    }

    /// Return the number of tokens.
    pub fn rows(&self) -> usize {
        self.runs.as_ref().map_or_else(|| self.sparse().rows(), |runs| runs.rest.rows())
    }

    /// Return the largest attribute id.
    pub fn largest(&self) -> Option<u32> {
        // The maximum vectorizes and is faster than a search for the first id that is too large.
        let prefer_largest = |rows: CsrRef<'_>| rows.ids.iter().copied().max();
        let last = self.dense().map(|dense| dense.first + dense.size as u32 - 1);
        self.runs.as_ref().map_or_else(
            || prefer_largest(self.sparse()).max(last),
            |runs| runs.run_table.largest.max(prefer_largest(runs.rest.view())),
        )
    }
}
