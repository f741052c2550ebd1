//! Attributes that tokens have in common, for scoring: what a template makes of one text (its affixes, its shape) is the
//! same wherever the text stands, so that it is summed once and not at every token.

use crate::dataset::csr::Csr;
use crate::dataset::dense::Dense;
use crate::machine::lazy::Lazy;
use std::sync::{Arc, Mutex};

/// Texts seen this often have runs ...
pub const OFTEN: u32 = 3;
/// ... of at least so many attributes; shorter ones are as fast by themselves.
pub const LONG: u32 = 3;
/// Most runs: their sums are to stay in the nearer caches. Texts are numbered as they occur, frequent ones early.
pub const MOST: usize = 1 << 15;
/// Tokens from which on runs pay.
pub const WORTH: usize = 4000;

/// The mark of a group of attributes that is a run; any other is their number.
pub const RUN: u8 = u8::MAX;

/// Attributes of tokens, without values, in runs and single. A token's come in groups, then single ones.
#[derive(Clone, Debug, Default)]
pub struct Runs {
    pub ids: Csr,       // attributes of each run
    pub of: Csr,        // runs of each token
    pub rest: Csr,      // its other attributes
    pub groups: usize,  // of each token
    pub marks: Vec<u8>, // [tokens, groups] in which order they come
    pub home: Arc<Spare>,
}

/// Most ids that are kept of one array, and arrays that are kept.
const MOST_KEPT: usize = 1 << 23;
const KEPT: usize = 2;

/// Memory of runs that are gone, for those to come: pages fresh from the system cost as much as what is written to them.
#[derive(Debug, Default)]
pub struct Spare(Mutex<Vec<Csr>>); // never waited for: in a forked process it may be held for ever

impl Spare {
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

impl Drop for Runs {
    fn drop(&mut self) {
        self.home.give(std::mem::take(&mut self.rest));
        self.home.give(std::mem::take(&mut self.of));
    }
}

impl Runs {
    /// One row a token.
    fn rows(&self) -> Csr {
        let mut out = Csr::default();
        for token in 0..self.rest.rows() {
            let (mut of, mut rest) = (self.of.ids_of(token).iter(), self.rest.ids_of(token));
            for &mark in &self.marks[token * self.groups..(token + 1) * self.groups] {
                if mark == RUN {
                    of.by_ref().take(1).for_each(|&run| out.ids.extend_from_slice(self.ids.ids_of(run as usize)));
                } else {
                    let here;
                    (here, rest) = rest.split_at(mark as usize);
                    out.ids.extend_from_slice(here);
                }
            }
            out.ids.extend_from_slice(rest);
            out.end_row();
        }
        out
    }
}

/// Attributes of tokens as rows. Where they are kept in runs, or vectors beside them, rows of all attributes are made when
/// somebody asks for them by `csr`.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    rows: Lazy<Csr>,
    runs: Option<Runs>,
    beside: Option<(Csr, Dense)>, // the other attributes, and the vectors
}

impl From<Runs> for Rows {
    fn from(runs: Runs) -> Rows {
        Rows { rows: Lazy::default(), runs: Some(runs), beside: None }
    }
}

impl From<Csr> for Rows {
    fn from(rows: Csr) -> Rows {
        Rows { rows: rows.into(), runs: None, beside: None }
    }
}

impl Rows {
    /// One row a token, made of the runs where nobody asked before: a pass over the corpus.
    #[inline]
    pub fn csr(&self) -> &Csr {
        self.rows.get_or_make(|| match &self.beside {
            Some((rows, dense)) => dense.joined(rows),
            None => self.runs.as_ref().map(Runs::rows).unwrap_or_default(),
        })
    }

    /// One row a token, without its vector.
    #[inline]
    pub fn sparse(&self) -> &Csr {
        self.beside.as_ref().map_or_else(|| self.csr(), |(rows, _)| rows)
    }

    /// The vectors, where tokens have some.
    pub fn dense(&self) -> Option<&Dense> {
        self.beside.as_ref().map(|(_, dense)| dense)
    }

    /// The same rows with vectors beside them, which have none yet.
    pub fn with_dense(&self, dense: Dense) -> Rows {
        Rows { rows: Lazy::default(), runs: None, beside: Some((self.csr().clone(), dense)) }
    }

    /// Attributes and values of a token, its vector last; nothing is made.
    #[inline]
    pub fn row(&self, token: usize) -> impl Iterator<Item = (u32, f32)> + '_ {
        self.sparse().row(token).chain(self.dense().into_iter().flat_map(move |dense| dense.entries(token)))
    }

    /// The rows to be changed. Whoever changes them has them alone: runs and vectors are given up.
    pub fn csr_mut(&mut self) -> &mut Csr {
        let _ = self.csr();
        (self.runs, self.beside) = (None, None);
        match self.rows.get_mut() {
            Some(rows) => rows,
            None => unreachable!("made above"),
        }
    }

    pub fn runs(&self) -> Option<&Runs> {
        self.runs.as_ref()
    }

    /// Number of tokens.
    pub fn rows(&self) -> usize {
        self.runs.as_ref().map_or_else(|| self.sparse().rows(), |runs| runs.rest.rows())
    }

    /// The largest attribute.
    pub fn largest(&self) -> Option<u32> {
        // The largest of all, which vectors find faster than a search the first that is too large.
        let most = |rows: &Csr| rows.ids.iter().copied().max();
        let last = self.dense().map(|dense| dense.first + dense.size as u32 - 1);
        self.runs.as_ref().map_or_else(|| most(self.sparse()).max(last), |runs| most(&runs.ids).max(most(&runs.rest)))
    }
}
