//! Looking into a lane: which of its numbers are equal to others, which is the largest, what they add up to.

use crate::machine::simd::{Baseline, Simd, WIDTH};

/// Comparisons within lanes. Unsafe as the methods of `Simd` are.
pub(crate) trait Find: Simd {
    /// Bit i is set where a[i] == b[i].
    ///
    /// # Safety
    /// The machine has the instructions of `Self`.
    unsafe fn equal(a: Self::F, b: Self::F) -> u32;
    /// The largest number of a lane.
    ///
    /// # Safety
    /// The machine has the instructions of `Self`.
    unsafe fn largest(a: Self::F) -> f32;
    /// a[i] where a[i] < b[i], or a[i] == b[i] and bit i of `equal` is set; -infinity elsewhere.
    ///
    /// # Safety
    /// The machine has the instructions of `Self`.
    unsafe fn behind(a: Self::F, b: Self::F, equal: u32) -> Self::F;
    /// The sum of a lane: the halves are added, then the halves of those, so that all machines have the same bits.
    ///
    /// # Safety
    /// The machine has the instructions of `Self`.
    unsafe fn total(a: Self::F) -> f32;
    /// a[i] where bit i is set, 0 elsewhere.
    ///
    /// # Safety
    /// The machine has the instructions of `Self`.
    unsafe fn keep(bits: u16, a: Self::F) -> Self::F;
    /// at[i] where bit i is set, 0 elsewhere; the others are not read.
    ///
    /// # Safety
    /// The machine has the instructions of `Self`; those whose bits are set can be read.
    unsafe fn load_some(at: *const f32, bits: u16) -> Self::F;
    /// a[i] to at[i] where bit i is set; the others are not written.
    ///
    /// # Safety
    /// The machine has the instructions of `Self`; those whose bits are set can be written.
    unsafe fn store_some(a: Self::F, at: *mut f32, bits: u16);
}

impl Find for Baseline {
    #[inline(always)]
    unsafe fn equal(a: Self::F, b: Self::F) -> u32 {
        (0..WIDTH).fold(0, |mask, i| mask | u32::from(a[i] == b[i]) << i)
    }
    #[inline(always)]
    unsafe fn largest(a: Self::F) -> f32 {
        a.iter().fold(f32::NEG_INFINITY, |m, &x| if x > m { x } else { m })
    }
    #[inline(always)]
    unsafe fn behind(a: Self::F, b: Self::F, equal: u32) -> Self::F {
        std::array::from_fn(|i| match a[i] < b[i] || (a[i] == b[i] && equal >> i & 1 == 1) {
            true => a[i],
            false => f32::NEG_INFINITY,
        })
    }
    #[inline(always)]
    unsafe fn total(mut a: Self::F) -> f32 {
        for half in [8, 4, 2, 1] {
            for i in 0..half {
                a[i] += a[i + half];
            }
        }
        a[0]
    }
    #[inline(always)]
    unsafe fn keep(bits: u16, a: Self::F) -> Self::F {
        std::array::from_fn(|i| if bits >> i & 1 == 1 { a[i] } else { 0.0 })
    }
    #[inline(always)]
    unsafe fn load_some(at: *const f32, bits: u16) -> Self::F {
        std::array::from_fn(|i| if bits >> i & 1 == 1 { *at.add(i) } else { 0.0 })
    }
    #[inline(always)]
    unsafe fn store_some(a: Self::F, at: *mut f32, bits: u16) {
        for i in (0..WIDTH).filter(|i| bits >> i & 1 == 1) {
            *at.add(i) = a[i];
        }
    }
}
