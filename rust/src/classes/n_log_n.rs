//! h(n) = n log n of integers, and the gain h(m + n) - h(m) - h(n) of joining two counts, from tables for small numbers.

/// Largest table of h, 2 MiB.
const MOST: usize = 1 << 18;
/// Counts n < STEPS and m < CELLS have their gain in a table, 512 KiB. Most bigrams of a word occur a few times.
const STEPS: usize = 32;
const CELLS: usize = 1 << 11;

pub struct NLogN {
    table: Vec<f64>,
    gains: Vec<f64>, // [STEPS x CELLS]
}

/// Gain of joining a given count n with others.
pub struct Join<'a> {
    h: &'a NLogN,
    n: u32,
    row: &'a [f64],
}

impl NLogN {
    /// Return the function for numbers up to `most`.
    pub fn new(most: u64) -> NLogN {
        let size = usize::try_from(most).map_or(MOST, |most| most.saturating_add(1).min(MOST));
        let mut h = NLogN { table: (0..size.max(2)).map(|n| exact(n as u64)).collect(), gains: Vec::new() };
        h.gains = (0..STEPS * CELLS).map(|i| h.joined((i % CELLS) as u32, (i / CELLS) as u32)).collect();
        h
    }

    #[inline(always)]
    pub fn of(&self, n: u32) -> f64 {
        match self.table.get(n as usize) {
            Some(&value) => value,
            None => exact(u64::from(n)),
        }
    }

    /// Return h(m + n) - h(m) - h(n).
    #[inline(always)]
    pub fn joined(&self, m: u32, n: u32) -> f64 {
        self.of(m + n) - self.of(m) - self.of(n)
    }

    /// Prepare `joined` for many m.
    #[inline(always)]
    pub fn join(&self, n: u32) -> Join<'_> {
        let at = n as usize * CELLS;
        Join { h: self, n, row: self.gains.get(at..at + CELLS).unwrap_or(&[]) }
    }
}

impl Join<'_> {
    #[inline(always)]
    pub fn with(&self, m: u32) -> f64 {
        match self.row.get(m as usize) {
            Some(&gain) => gain,
            None => self.h.joined(m, self.n),
        }
    }
}

/// Return n log n, and its limit 0 at 0.
fn exact(n: u64) -> f64 {
    if n == 0 {
        return 0.0;
    }
    n as f64 * (n as f64).ln()
}
