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

    /// Adds a score for each label to one lane.
    pub fn add_row(&mut self, row: &[f32], lane: usize) {
        for (y, &x) in row.iter().enumerate() {
            self.0[y / WIDTH][lane].0[y % WIDTH] += x;
        }
    }
}
