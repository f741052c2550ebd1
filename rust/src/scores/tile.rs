//! Sixteen labels by sixteen sentences.

use crate::machine::simd::{Lane, WIDTH};

/// Scratch of tiles, [lane] rows of sixteen labels each: `width` of them for a position.
#[derive(Default)]
pub struct Tile(pub Vec<[Lane; WIDTH]>);

impl Tile {
    pub fn new(width: usize) -> Tile {
        Tile(vec![[Lane::ZERO; WIDTH]; width])
    }

    /// At least `n` tiles; where the first one begins.
    pub fn reserve(&mut self, n: usize) -> *mut Lane {
        if self.0.len() < n {
            self.0.resize(n, [Lane::ZERO; WIDTH]);
        }
        self.0.as_mut_ptr().cast()
    }
}
