//! Sixteen doubles, and elementary functions for loops over them.
//!
//! Plain Rust: inside a kernel of `dispatch!` the compiler vectorizes these loops for the instruction set of the
//! machine.

use crate::machine::simd::WIDTH;
use std::f64::consts::{LN_2, LOG2_E, SQRT_2};

/// Sixteen doubles, one per label.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(64))]
pub struct Doubles(pub [f64; WIDTH]);

impl Doubles {
    pub const ZERO: Doubles = Doubles([0.0; WIDTH]);
}

/// Below this argument exp returns 0. The result of `exp_neg` at this bound is still a normal number.
const MIN_ARGUMENT: f64 = -700.0;
/// 1.5 * 2^52 plus the exponent bias. Adding a small x leaves round(x) plus the bias in the low bits of the sum.
const ROUNDING_SHIFT: f64 = 6_755_399_441_055_744.0 + 1023.0;
/// ln 2 in two parts. The first part ends in zeros, so that its product with an exponent is exact.
const LN_2_PARTS: (f64, f64) = (6.931_471_803_691_238e-1, 1.908_214_929_270_587_7e-10);
/// 1/n! from n = 13 down to 2: (ln 2 / 2)^14 / 14! < 5e-18.
const INVERSE_FACTORIALS: [f64; 12] = [
    1.0 / 6_227_020_800.0,
    1.0 / 479_001_600.0,
    1.0 / 39_916_800.0,
    1.0 / 3_628_800.0,
    1.0 / 362_880.0,
    1.0 / 40_320.0,
    1.0 / 5_040.0,
    1.0 / 720.0,
    1.0 / 120.0,
    1.0 / 24.0,
    1.0 / 6.0,
    0.5,
];

/// Return e^x for x <= 0, within 3 ulp; 0 for x <= -700.
#[inline(always)]
pub fn exp_neg(x: f64) -> f64 {
    let inside = if x > MIN_ARGUMENT { x } else { MIN_ARGUMENT };
    let shifted = inside * LOG2_E + ROUNDING_SHIFT;
    let k = shifted - ROUNDING_SHIFT;
    let r = (inside - k * LN_2_PARTS.0) - k * LN_2_PARTS.1;
    let mut sum = INVERSE_FACTORIALS[0];
    for &c in &INVERSE_FACTORIALS[1..] {
        sum = sum * r + c;
    }
    let power = 1.0 + (r + r * r * sum);
    let scale = f64::from_bits(shifted.to_bits() << 52);
    if x > MIN_ARGUMENT {
        power * scale
    } else {
        0.0
    }
}

/// Return ln x for a normal x > 0, within 4 ulp.
///
/// x = 2^k f with f in [1/sqrt 2, sqrt 2), ln f = 2 artanh s with s = (f - 1) / (f + 1), |s| < 0.172: s^24 / 25 <
/// 2e-20.
#[inline(always)]
pub fn ln(x: f64) -> f64 {
    const HALF: u64 = (SQRT_2 / 2.0).to_bits();
    const TWO_52: u64 = 0x4330_0000_0000_0000; // 2^52
    let (bits, one) = (x.to_bits(), 1.0f64.to_bits());
    let exponent = bits.wrapping_add(one - HALF) >> 52; // k + 1023
    let k = f64::from_bits(exponent | TWO_52) - (f64::from_bits(TWO_52) + 1023.0);
    let f = f64::from_bits(bits.wrapping_sub((exponent << 52).wrapping_sub(one)));
    let s = (f - 1.0) / (f + 1.0);
    let square = s * s;
    let mut sum = 1.0 / 23.0;
    for n in [21.0, 19.0, 17.0, 15.0, 13.0, 11.0, 9.0, 7.0, 5.0, 3.0] {
        sum = sum * square + 1.0 / n;
    }
    k * LN_2 + 2.0 * (s + s * square * sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exp_and_ln_agree_with_the_standard_library() {
        let mut x = 0.0f64;
        while x > -699.0 {
            assert!((exp_neg(x) / x.exp() - 1.0).abs() < 8e-16, "exp {x}");
            for y in [(0.9 * x).exp(), (-0.9 * x).exp(), 1.0 + 1e-3 * x.sin()] {
                assert!((ln(y) - y.ln()).abs() <= 9e-16 * y.ln().abs(), "ln {y}");
            }
            x -= 0.0137;
        }
        assert_eq!((exp_neg(f64::NEG_INFINITY), exp_neg(-701.0), exp_neg(0.0), ln(1.0)), (0.0, 0.0, 1.0, 0.0));
    }
}
