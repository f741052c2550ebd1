//! Counts N(c, d) of class bigrams: a dense matrix, its transpose, and the positions of their nonzero cells.

/// Square matrix of counts.
#[derive(Clone)]
pub struct Matrix {
    size: usize,
    blocks: usize, // words of 64 bits per row of `filled`
    cells: Vec<u32>,
    filled: Vec<u64>, // bit c of row r: cell (r, c) is not 0
}

impl Matrix {
    fn new(size: usize) -> Matrix {
        let blocks = size.div_ceil(64);
        Matrix { size, blocks, cells: vec![0; size * size], filled: vec![0; size * blocks] }
    }

    #[inline(always)]
    pub fn at(&self, row: usize, column: usize) -> u32 {
        self.cells[row * self.size + column]
    }

    pub fn row(&self, row: usize) -> &[u32] {
        &self.cells[row * self.size..(row + 1) * self.size]
    }

    #[inline(always)]
    fn set(&mut self, row: usize, column: usize, value: u32) {
        self.cells[row * self.size + column] = value;
        let (block, bit) = (row * self.blocks + column / 64, 1 << (column % 64));
        match value {
            0 => self.filled[block] &= !bit,
            _ => self.filled[block] |= bit,
        }
    }

    /// Call `see(column, value)` for every nonzero cell of a row.
    #[inline(always)]
    pub fn each(&self, row: usize, mut see: impl FnMut(usize, u32)) {
        let cells = self.row(row);
        for (block, &filled) in self.filled[row * self.blocks..(row + 1) * self.blocks].iter().enumerate() {
            let mut left = filled;
            while left != 0 {
                let column = 64 * block + left.trailing_zeros() as usize;
                left &= left - 1;
                see(column, cells[column]);
            }
        }
    }
}

/// Matrix of class bigrams and its transpose.
#[derive(Clone)]
pub struct Bigrams {
    pub right: Matrix, // (c, d): c before d
    pub left: Matrix,  // (d, c): c before d
}

impl Bigrams {
    pub fn new(size: usize) -> Bigrams {
        Bigrams { right: Matrix::new(size), left: Matrix::new(size) }
    }

    #[inline(always)]
    pub fn at(&self, before: usize, after: usize) -> u32 {
        self.right.at(before, after)
    }

    pub fn add(&mut self, before: usize, after: usize, n: u32) {
        self.set(before, after, self.at(before, after) + n);
    }

    pub fn take(&mut self, before: usize, after: usize, n: u32) {
        self.set(before, after, self.at(before, after) - n);
    }

    fn set(&mut self, before: usize, after: usize, value: u32) {
        self.right.set(before, after, value);
        self.left.set(after, before, value);
    }

    /// Add the row and the column of class `from` to those of class `to`, and clear them.
    pub fn merge(&mut self, to: usize, from: usize) {
        let size = self.right.size;
        for e in 0..size {
            let n = self.at(from, e);
            if n > 0 {
                self.set(from, e, 0);
                self.add(to, e, n);
            }
        }
        for e in 0..size {
            let n = self.at(e, from);
            if n > 0 {
                self.set(e, from, 0);
                self.add(e, to, n);
            }
        }
    }
}

/// Bytes of the matrices of `size` classes.
pub fn bytes(size: usize) -> usize {
    size.saturating_mul(size).saturating_mul(2 * size_of::<u32>() + 1)
}
