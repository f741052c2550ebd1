//! Attributes that tokens have in common, for scoring: what a template makes of one text (its affixes, its shape) is the
//! same wherever the text stands, so that it is looked up once, and summed once, and not at every token.
//!
//! A token's scores are the sum of its runs' sums and of its single attributes. A run is summed by itself first, whether
//! the sum is kept or not, so that scores have the same bits whatever was tagged before.

use crate::dataset::csr::{Csr, CsrRef, PagedCsr};
use crate::dataset::dense::Dense;
use crate::machine::system::paged::Pages;
use once_cell::race::OnceBox;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// Tokens from which on runs pay.
pub const WORTH: usize = 4000;

/// The run without attributes.
pub const NOTHING: u32 = 0;

/// Runs with their attributes, in the order in which they were met. Runs are added, never changed.
#[derive(Clone, Debug)]
pub struct RunTable {
    pub ids: Csr,             // attributes of each run
    pub largest: Option<u32>, // of all attributes
    /// The same of two books only where one is the other's beginning.
    pub number: u64,
}

impl Default for RunTable {
    fn default() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let mut ids = Csr::default();
        ids.end_row(); // NOTHING
        RunTable { ids, largest: None, number: NEXT.fetch_add(1, Ordering::Relaxed) }
    }
}

impl RunTable {
    /// Append runs; the number of the first.
    pub fn append(&mut self, runs: &Csr) -> u32 {
        let first = self.ids.rows() as u32;
        self.ids.append_ones(runs);
        self.largest = self.largest.max(runs.ids.iter().copied().max());
        first
    }
}

/// Attributes of tokens, without values: as many runs for each, then single ones.
#[derive(Clone, Debug, Default)]
pub struct TokenRuns {
    pub book: Arc<RunTable>,
    pub of: Vec<u32>,  // [tokens, groups] runs of each token
    pub rest: Csr,     // its other attributes
    pub groups: usize, // runs of a token
    pub home: Arc<BufferPool>,
}

/// Most ids that are kept of one array, and arrays that are kept.
const MOST_KEPT: usize = 1 << 23;
const KEPT: usize = 2;

/// Memory of runs that are gone, for those to come: pages fresh from the system cost as much as what is written to them.
#[derive(Debug, Default)]
pub struct BufferPool(Mutex<Vec<Csr>>); // never waited for: in a forked process it may be held for ever

impl BufferPool {
    /// An empty array, with the most room of those kept, or with the least.
    pub fn take(&self, most: bool) -> Csr {
        let Ok(mut kept) = self.0.try_lock() else { return Csr::default() };
        kept.sort_by_key(|rows| rows.ids.capacity());
        match kept.len() {
            0 => Csr::default(),
            n => kept.remove(if most { n - 1 } else { 0 }),
        }
    }

    fn give(&self, mut rows: Csr) {
        if let Ok(mut kept) = self.0.try_lock() {
            if kept.len() < KEPT && rows.ids.capacity() <= MOST_KEPT {
                rows.ids.clear();
                rows.ptr.truncate(1);
                kept.push(rows);
            }
        }
    }
}

impl Drop for TokenRuns {
    fn drop(&mut self) {
        self.home.give(std::mem::take(&mut self.rest));
        self.home.give(Csr { ids: std::mem::take(&mut self.of), ..Csr::default() });
    }
}

impl TokenRuns {
    /// Runs of a token.
    #[inline(always)]
    pub fn of(&self, token: usize) -> &[u32] {
        &self.of[token * self.groups..(token + 1) * self.groups]
    }

    /// One row a token.
    fn rows(&self) -> Csr {
        let mut out = Csr::default();
        for token in 0..self.rest.rows() {
            self.of(token).iter().for_each(|&run| out.ids.extend_from_slice(self.book.ids.ids_of(run as usize)));
            out.ids.extend_from_slice(self.rest.ids_of(token));
            out.end_row();
        }
        out
    }
}

/// Attributes of tokens as rows. If tokens have runs or vectors, `csr` builds rows of all attributes on its first call.
#[derive(Debug, Default)]
pub struct Rows {
    rows: PagedCsr, // all attributes, or those that are not in vectors; empty if there are runs
    runs: Option<TokenRuns>,
    dense: Option<Dense>,
    /// Rows of all attributes. A race instead of a lock: in a process forked during `csr` a lock would stay closed.
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
    /// One row per token. The first call takes a pass over the corpus if there are runs or vectors.
    #[inline]
    pub fn csr(&self) -> CsrRef<'_> {
        match (&self.runs, &self.dense) {
            (None, None) => self.rows.view(),
            (Some(runs), _) => self.all.get_or_init(|| Box::new(runs.rows())).view(),
            (None, Some(dense)) => self.all.get_or_init(|| Box::new(dense.joined(self.rows.view()))).view(),
        }
    }

    /// Count the files that the rows are in as `pages`.
    pub fn add_to(&self, pages: &mut Pages) {
        self.rows.add_to(pages);
    }

    /// One row per token, without its vector.
    #[inline]
    pub fn sparse(&self) -> CsrRef<'_> {
        match self.dense {
            Some(_) => self.rows.view(),
            None => self.csr(),
        }
    }

    /// The vectors, if tokens have some.
    pub fn dense(&self) -> Option<&Dense> {
        self.dense.as_ref()
    }

    /// The same rows with vectors beside them, which have none yet.
    pub fn with_dense(&self, dense: Dense) -> Rows {
        Rows { rows: self.csr().to_owned().into(), dense: Some(dense), ..Rows::default() }
    }

    /// Attributes and values of a token, its vector last; nothing is made.
    #[inline]
    pub fn row(&self, token: usize) -> impl Iterator<Item = (u32, f32)> + '_ {
        self.sparse().row(token).chain(self.dense().into_iter().flat_map(move |dense| dense.entries(token)))
    }

    pub fn runs(&self) -> Option<&TokenRuns> {
        self.runs.as_ref()
    }

    /// Number of tokens.
    pub fn rows(&self) -> usize {
        self.runs.as_ref().map_or_else(|| self.sparse().rows(), |runs| runs.rest.rows())
    }

    /// The largest attribute.
    pub fn largest(&self) -> Option<u32> {
        // The largest of all, which vectors find faster than a search the first that is too large.
        let most = |rows: CsrRef<'_>| rows.ids.iter().copied().max();
        let last = self.dense().map(|dense| dense.first + dense.size as u32 - 1);
        self.runs
            .as_ref()
            .map_or_else(|| most(self.sparse()).max(last), |runs| runs.book.largest.max(most(runs.rest.view())))
    }
}
