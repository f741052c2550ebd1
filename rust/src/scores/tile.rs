//! Tiles of sixteen labels by sixteen sentences.

use crate::machine::simd::{Lane, WIDTH};

/// Scratch tiles, `width` per position. A tile has one row of sixteen labels for each sentence.
#[derive(Default)]
pub struct Tile(pub Vec<[Lane; WIDTH]>);

impl Tile {
    pub fn new(width: usize) -> Tile {
        Tile(vec![[Lane::ZERO; WIDTH]; width])
    }

    /// Grow to at least `n` tiles. Return a pointer to the first.
    pub fn reserve(&mut self, n: usize) -> *mut Lane {
        if self.0.len() < n {
            self.0.resize(n, [Lane::ZERO; WIDTH]);
        }
        self.0.as_mut_ptr().cast()
    }
}
