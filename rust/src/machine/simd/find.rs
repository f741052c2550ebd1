//! Comparisons, maxima and sums within a lane.

use crate::machine::simd::{Baseline, Simd, WIDTH};

/// Operations within a lane, and loads and stores of fewer than sixteen numbers.
pub(crate) trait Find: Simd {
    /// Return a bit mask with bit i set if a[i] == b[i].
    fn equal(self, a: Self::F, b: Self::F) -> u32;
    /// Return the largest number of a lane.
    fn largest(self, a: Self::F) -> f32;
    /// Return a[i] if a[i] < b[i], or if a[i] == b[i] and bit i of `equal` is set, and -infinity otherwise.
    fn ordered_after(self, a: Self::F, b: Self::F, equal: u32) -> Self::F;
    /// Return the sum of a lane. Halves are added recursively, so that the bits are the same on every machine.
    fn total(self, a: Self::F) -> f32;
    /// Return a[i] if bit i is set, 0 otherwise.
    fn keep_bits(self, bits: u16, a: Self::F) -> Self::F;
    /// Load the first sixteen numbers of a slice, padded with zeros if it has fewer.
    fn load_first(self, from: &[f32]) -> Self::F;
    /// Store the first numbers of a lane, at most sixteen, to a slice.
    fn store_first(self, a: Self::F, to: &mut [f32]);
}

impl Find for Baseline {
    #[inline(always)]
    fn equal(self, a: Self::F, b: Self::F) -> u32 {
        (0..WIDTH).fold(0, |mask, i| mask | u32::from(a[i] == b[i]) << i)
    }
    #[inline(always)]
    fn largest(self, a: Self::F) -> f32 {
        a.iter().fold(f32::NEG_INFINITY, |m, &x| if x > m { x } else { m })
    }
    #[inline(always)]
    fn ordered_after(self, a: Self::F, b: Self::F, equal: u32) -> Self::F {
        std::array::from_fn(|i| match a[i] < b[i] || (a[i] == b[i] && equal >> i & 1 == 1) {
            true => a[i],
            false => f32::NEG_INFINITY,
        })
    }
    #[inline(always)]
    fn total(self, mut a: Self::F) -> f32 {
        for half in [8, 4, 2, 1] {
            for i in 0..half {
                a[i] += a[i + half];
            }
        }
        a[0]
    }
    #[inline(always)]
    fn keep_bits(self, bits: u16, a: Self::F) -> Self::F {
        std::array::from_fn(|i| if bits >> i & 1 == 1 { a[i] } else { 0.0 })
    }
    #[inline(always)]
    fn load_first(self, from: &[f32]) -> Self::F {
        std::array::from_fn(|i| from.get(i).copied().unwrap_or(0.0))
    }
    #[inline(always)]
    fn store_first(self, a: Self::F, to: &mut [f32]) {
        to.iter_mut().zip(a).for_each(|(to, x)| *to = x);
    }
}
