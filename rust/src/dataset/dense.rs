//! Dense vectors of tokens, stored as one matrix.

use crate::dataset::csr::{Csr, CsrRef};
use crate::error::{Error, Result};
use std::ops::Range;
use std::sync::Arc;

/// One vector per token. Its numbers are the values of consecutive attributes from `first` on.
#[derive(Clone, Debug)]
pub struct Dense {
    pub first: u32,
    pub size: usize,
    values: Arc<[f32]>, // [tokens, size]
}

impl Dense {
    /// Create vectors from `values` [tokens, size], multiplied by `scale`.
    pub fn new(first: u32, size: usize, values: &[f32], scale: f32) -> Result<Dense> {
        if size == 0 || !values.len().is_multiple_of(size) || first as usize + size >= u32::MAX as usize {
            return Err(Error::Value(format!(
                "{} values are no vectors of {size} numbers from attribute {first} on",
                values.len()
            )));
        }
        let values: Arc<[f32]> = values.iter().map(|x| x * scale).collect();
        match values.iter().position(|x| !x.is_finite()) {
            Some(at) => Err(Error::Value(format!(
                "token {}: number {} of its vector is not finite, or beyond float32 once it is scaled",
                at / size,
                at % size
            ))),
            None => Ok(Dense { first, size, values }),
        }
    }

    pub fn tokens(&self) -> usize {
        self.values.len() / self.size
    }

    /// Return the attributes of the numbers of a vector.
    pub fn attributes(&self) -> Range<usize> {
        self.first as usize..self.first as usize + self.size
    }

    /// Return the vector of a token.
    #[inline(always)]
    pub fn row(&self, token: usize) -> &[f32] {
        &self.values[token * self.size..(token + 1) * self.size]
    }

    /// Iterate over the vector of a token as (attribute, value).
    pub fn entries(&self, token: usize) -> impl Iterator<Item = (u32, f32)> + '_ {
        self.row(token).iter().enumerate().map(|(j, &x)| (self.first + j as u32, x))
    }

    /// Return rows with the entries of the vectors after their other attributes.
    pub fn joined(&self, rows: CsrRef<'_>) -> Csr {
        let mut out = Csr::default();
        out.ids.reserve_exact(rows.ids.len() + self.values.len());
        out.values.reserve_exact(rows.ids.len() + self.values.len());
        for token in 0..rows.rows() {
            rows.row(token).chain(self.entries(token)).for_each(|(id, value)| out.push(id, value));
            out.end_row();
        }
        out
    }
}
