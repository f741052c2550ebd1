//! `Simd` and `Find` for AVX-512 and for AVX2 with FMA.
//!
//! Do not use these instructions in closures, here or in a kernel: a closure does not inherit the target features of
//! the function around it. Unless the closure is inlined, every instruction becomes a function call.

use crate::machine::simd::find::Find;
use crate::machine::simd::{Lane, Level, Simd, WIDTH};
use std::arch::x86_64::*;

/// Define methods of a token that run with the target features of the token.
macro_rules! with_token {
    ($(fn $name:ident($token:ident $(, $arg:ident: $ty:ty)*) $(-> $ret:ty)? $body:block)*) => {
        $(
            #[inline(always)]
            #[allow(unused_unsafe)] // some only call other methods
            fn $name($token $(, $arg: $ty)*) $(-> $ret)? {
                // SAFETY: a token exists only if the machine has these instructions. Pointers come from slices and
                // arrays, and at most as much as they hold is read or written.
                unsafe { $body }
            }
        )*
    };
}

/// Return a mask of the first `len` of sixteen bits.
#[inline(always)]
fn first(len: usize) -> u16 {
    ((1u32 << len.min(WIDTH)) - 1) as u16
}

/// AVX-512F: a lane is one register.
#[derive(Clone, Copy)]
pub struct Avx512(());

impl Avx512 {
    /// Create a token. The call is safe in functions with these target features.
    ///
    /// # Safety
    /// The machine has these target features.
    #[inline]
    #[target_feature(enable = "avx512f,avx2,fma")]
    pub fn new() -> Avx512 {
        Avx512(())
    }

    #[inline(always)]
    fn avx2(self) -> Avx2 {
        Avx2(())
    }
}

impl Simd for Avx512 {
    const LEVEL: Level = Level::Avx512;
    const BLOCK: usize = 12;
    const TILE_ROWS: usize = 4;
    const TILE_COLUMNS: usize = 6;
    type F = __m512;
    with_token! {
        fn load(self, lane: &Lane) -> __m512 {
            _mm512_load_ps(lane.0.as_ptr())
        }
        fn store(self, v: __m512, lane: &mut Lane) {
            _mm512_store_ps(lane.0.as_mut_ptr(), v);
        }
        fn splat(self, x: f32) -> __m512 {
            _mm512_set1_ps(x)
        }
        fn add(self, a: __m512, b: __m512) -> __m512 {
            _mm512_add_ps(a, b)
        }
        fn sub(self, a: __m512, b: __m512) -> __m512 {
            _mm512_sub_ps(a, b)
        }
        fn mul(self, a: __m512, b: __m512) -> __m512 {
            _mm512_mul_ps(a, b)
        }
        fn div(self, a: __m512, b: __m512) -> __m512 {
            _mm512_div_ps(a, b)
        }
        fn fma(self, a: __m512, b: __m512, c: __m512) -> __m512 {
            _mm512_fmadd_ps(a, b, c)
        }
        fn max(self, a: __m512, b: __m512) -> __m512 {
            _mm512_max_ps(a, b)
        }
        fn min(self, a: __m512, b: __m512) -> __m512 {
            _mm512_min_ps(a, b)
        }
        fn select_gt(self, a: __m512, b: __m512, x: __m512, y: __m512) -> __m512 {
            _mm512_mask_blend_ps(_mm512_cmp_ps_mask::<_CMP_GT_OQ>(a, b), y, x)
        }
        fn greater(self, a: __m512, b: __m512) -> u32 {
            u32::from(_mm512_cmp_ps_mask::<_CMP_GT_OQ>(a, b))
        }
        fn scale2(self, p: __m512, n: __m512) -> __m512 {
            _mm512_scalef_ps(p, n)
        }
        fn split2(self, x: __m512) -> (__m512, __m512) {
            (_mm512_getmant_ps::<_MM_MANT_NORM_1_2, _MM_MANT_SIGN_SRC>(x), _mm512_getexp_ps(x))
        }
        fn transpose(self, rows: &[Lane; WIDTH], out: &mut [Lane; WIDTH]) {
            // Butterfly: 4-byte, then 8-byte unpacks, then 128-bit shuffles at two distances.
            let mut r = [self.splat(0.0); WIDTH];
            for (r, row) in r.iter_mut().zip(rows) {
                *r = self.load(row);
            }
            let mut a = r;
            for i in 0..8 {
                a[2 * i] = _mm512_unpacklo_ps(r[2 * i], r[2 * i + 1]);
                a[2 * i + 1] = _mm512_unpackhi_ps(r[2 * i], r[2 * i + 1]);
            }
            let mut b = a;
            for i in 0..4 {
                for (p, q) in [(4 * i, 4 * i + 2), (4 * i + 1, 4 * i + 3)] {
                    let (x, y, to) = (_mm512_castps_pd(a[p]), _mm512_castps_pd(a[q]), 2 * p - 4 * i);
                    b[to] = _mm512_castpd_ps(_mm512_unpacklo_pd(x, y));
                    b[to + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(x, y));
                }
            }
            for j in 0..4 {
                let lo = _mm512_shuffle_f32x4::<0x88>(b[j], b[4 + j]);
                let hi = _mm512_shuffle_f32x4::<0xdd>(b[j], b[4 + j]);
                let lo2 = _mm512_shuffle_f32x4::<0x88>(b[8 + j], b[12 + j]);
                let hi2 = _mm512_shuffle_f32x4::<0xdd>(b[8 + j], b[12 + j]);
                self.store(_mm512_shuffle_f32x4::<0x88>(lo, lo2), &mut out[j]);
                self.store(_mm512_shuffle_f32x4::<0x88>(hi, hi2), &mut out[4 + j]);
                self.store(_mm512_shuffle_f32x4::<0xdd>(lo, lo2), &mut out[8 + j]);
                self.store(_mm512_shuffle_f32x4::<0xdd>(hi, hi2), &mut out[12 + j]);
            }
        }
    }
}

/// AVX2 with FMA: a lane is two registers.
#[derive(Clone, Copy)]
pub struct Avx2(());

impl Avx2 {
    /// Create a token. The call is safe in functions with these target features.
    ///
    /// # Safety
    /// The machine has these target features.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    pub fn new() -> Avx2 {
        Avx2(())
    }
}

/// The two halves of a lane.
type Halves = [__m256; 2];

macro_rules! both {
    ($f:ident, $($x:expr),+) => {
        [$f($($x[0]),+), $f($($x[1]),+)]
    };
}

impl Simd for Avx2 {
    const LEVEL: Level = Level::Avx2;
    const BLOCK: usize = 6;
    const TILE_ROWS: usize = 2;
    const TILE_COLUMNS: usize = 3;
    type F = Halves;
    with_token! {
        fn load(self, lane: &Lane) -> Halves {
            [_mm256_load_ps(lane.0.as_ptr()), _mm256_load_ps(lane.0.as_ptr().add(8))]
        }
        fn store(self, v: Halves, lane: &mut Lane) {
            _mm256_store_ps(lane.0.as_mut_ptr(), v[0]);
            _mm256_store_ps(lane.0.as_mut_ptr().add(8), v[1]);
        }
        fn splat(self, x: f32) -> Halves {
            [_mm256_set1_ps(x); 2]
        }
        fn add(self, a: Halves, b: Halves) -> Halves {
            both!(_mm256_add_ps, a, b)
        }
        fn sub(self, a: Halves, b: Halves) -> Halves {
            both!(_mm256_sub_ps, a, b)
        }
        fn mul(self, a: Halves, b: Halves) -> Halves {
            both!(_mm256_mul_ps, a, b)
        }
        fn div(self, a: Halves, b: Halves) -> Halves {
            both!(_mm256_div_ps, a, b)
        }
        fn fma(self, a: Halves, b: Halves, c: Halves) -> Halves {
            both!(_mm256_fmadd_ps, a, b, c)
        }
        fn max(self, a: Halves, b: Halves) -> Halves {
            both!(_mm256_max_ps, a, b)
        }
        fn min(self, a: Halves, b: Halves) -> Halves {
            both!(_mm256_min_ps, a, b)
        }
        fn select_gt(self, a: Halves, b: Halves, x: Halves, y: Halves) -> Halves {
            let (low, high) = (_mm256_cmp_ps::<_CMP_GT_OQ>(a[0], b[0]), _mm256_cmp_ps::<_CMP_GT_OQ>(a[1], b[1]));
            [_mm256_blendv_ps(y[0], x[0], low), _mm256_blendv_ps(y[1], x[1], high)]
        }
        fn greater(self, a: Halves, b: Halves) -> u32 {
            let half = |i: usize| _mm256_movemask_ps(_mm256_cmp_ps::<_CMP_GT_OQ>(a[i], b[i])) as u32;
            half(0) | half(1) << 8
        }
        fn scale2(self, p: Halves, n: Halves) -> Halves {
            let mut out = p;
            for i in 0..2 {
                let e = _mm256_add_epi32(_mm256_cvtps_epi32(n[i]), _mm256_set1_epi32(127));
                out[i] = _mm256_mul_ps(p[i], _mm256_castsi256_ps(_mm256_slli_epi32::<23>(e)));
            }
            out
        }
        fn split2(self, x: Halves) -> (Halves, Halves) {
            let (low, one) = (_mm256_set1_epi32(0x7f_ffff), _mm256_set1_epi32(0x3f80_0000));
            let (mut mantissa, mut exponent) = (x, x);
            for i in 0..2 {
                let bits = _mm256_castps_si256(x[i]);
                mantissa[i] = _mm256_castsi256_ps(_mm256_or_si256(_mm256_and_si256(bits, low), one));
                let e = _mm256_sub_epi32(_mm256_srli_epi32::<23>(bits), _mm256_set1_epi32(127));
                exponent[i] = _mm256_cvtepi32_ps(e);
            }
            (mantissa, exponent)
        }
        fn transpose(self, rows: &[Lane; WIDTH], out: &mut [Lane; WIDTH]) {
            for (bi, bj) in [(0, 0), (0, 8), (8, 0), (8, 8)] {
                let mut r = [_mm256_setzero_ps(); 8];
                for (i, r) in r.iter_mut().enumerate() {
                    *r = _mm256_load_ps(rows[bi + i].0.as_ptr().add(bj));
                }
                let mut a = r;
                for i in 0..4 {
                    a[2 * i] = _mm256_unpacklo_ps(r[2 * i], r[2 * i + 1]);
                    a[2 * i + 1] = _mm256_unpackhi_ps(r[2 * i], r[2 * i + 1]);
                }
                let mut b = a;
                for (p, q) in [(0, 2), (4, 6)] {
                    b[p] = _mm256_shuffle_ps::<0x44>(a[p], a[q]);
                    b[p + 1] = _mm256_shuffle_ps::<0xee>(a[p], a[q]);
                    b[p + 2] = _mm256_shuffle_ps::<0x44>(a[p + 1], a[q + 1]);
                    b[p + 3] = _mm256_shuffle_ps::<0xee>(a[p + 1], a[q + 1]);
                }
                for j in 0..4 {
                    let lo = _mm256_permute2f128_ps::<0x20>(b[j], b[4 + j]);
                    let hi = _mm256_permute2f128_ps::<0x31>(b[j], b[4 + j]);
                    _mm256_store_ps(out[bj + j].0.as_mut_ptr().add(bi), lo);
                    _mm256_store_ps(out[bj + 4 + j].0.as_mut_ptr().add(bi), hi);
                }
            }
        }
    }
}

impl Find for Avx512 {
    with_token! {
        fn equal(self, a: __m512, b: __m512) -> u32 {
            u32::from(_mm512_cmp_ps_mask::<_CMP_EQ_OQ>(a, b))
        }
        fn largest(self, a: __m512) -> f32 {
            let high = _mm256_castpd_ps(_mm512_extractf64x4_pd::<1>(_mm512_castps_pd(a)));
            self.avx2().largest8(_mm256_max_ps(_mm512_castps512_ps256(a), high))
        }
        fn ordered_after(self, a: __m512, b: __m512, equal: u32) -> __m512 {
            let less = _mm512_cmp_ps_mask::<_CMP_LT_OQ>(a, b);
            let same = _mm512_cmp_ps_mask::<_CMP_EQ_OQ>(a, b) & equal as u16;
            _mm512_mask_blend_ps(less | same, _mm512_set1_ps(f32::NEG_INFINITY), a)
        }
        fn total(self, a: __m512) -> f32 {
            let high = _mm256_castpd_ps(_mm512_extractf64x4_pd::<1>(_mm512_castps_pd(a)));
            self.avx2().total8(_mm256_add_ps(_mm512_castps512_ps256(a), high))
        }
        fn keep_bits(self, bits: u16, a: __m512) -> __m512 {
            _mm512_maskz_mov_ps(bits, a)
        }
        fn load_first(self, from: &[f32]) -> __m512 {
            _mm512_maskz_loadu_ps(first(from.len()), from.as_ptr())
        }
        fn store_first(self, a: __m512, to: &mut [f32]) {
            _mm512_mask_storeu_ps(to.as_mut_ptr(), first(to.len()), a);
        }
    }
}

impl Find for Avx2 {
    with_token! {
        fn equal(self, a: [__m256; 2], b: [__m256; 2]) -> u32 {
            let low = _mm256_movemask_ps(_mm256_cmp_ps::<_CMP_EQ_OQ>(a[0], b[0])) as u32;
            low | (_mm256_movemask_ps(_mm256_cmp_ps::<_CMP_EQ_OQ>(a[1], b[1])) as u32) << 8
        }
        fn largest(self, a: [__m256; 2]) -> f32 {
            self.largest8(_mm256_max_ps(a[0], a[1]))
        }
        fn ordered_after(self, a: [__m256; 2], b: [__m256; 2], equal: u32) -> [__m256; 2] {
            [self.ordered_after8(a[0], b[0], equal), self.ordered_after8(a[1], b[1], equal >> 8)]
        }
        fn total(self, a: [__m256; 2]) -> f32 {
            self.total8(_mm256_add_ps(a[0], a[1]))
        }
        fn keep_bits(self, bits: u16, a: [__m256; 2]) -> [__m256; 2] {
            [self.keep_bits8(bits, a[0]), self.keep_bits8(bits >> 8, a[1])]
        }
        fn load_first(self, from: &[f32]) -> Halves {
            let (at, bits) = (from.as_ptr(), first(from.len()));
            [_mm256_maskload_ps(at, self.expand_bits8(bits)), _mm256_maskload_ps(at.wrapping_add(8), self.expand_bits8(bits >> 8))]
        }
        fn store_first(self, a: Halves, to: &mut [f32]) {
            let (at, bits) = (to.as_mut_ptr(), first(to.len()));
            _mm256_maskstore_ps(at, self.expand_bits8(bits), a[0]);
            _mm256_maskstore_ps(at.wrapping_add(8), self.expand_bits8(bits >> 8), a[1]);
        }
    }
}

/// Operations on half a lane.
impl Avx2 {
    with_token! {
        fn largest8(self, a: __m256) -> f32 {
            let m = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps::<1>(a));
            let m = _mm_max_ps(m, _mm_movehl_ps(m, m));
            _mm_cvtss_f32(_mm_max_ss(m, _mm_movehdup_ps(m)))
        }
        fn total8(self, a: __m256) -> f32 {
            let s = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps::<1>(a));
            let s = _mm_add_ps(s, _mm_movehl_ps(s, s));
            _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)))
        }
        // Return a mask whose element i has all bits set if bit i is set.
        fn expand_bits8(self, bits: u16) -> __m256i {
            let places = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
            _mm256_cmpeq_epi32(_mm256_and_si256(_mm256_set1_epi32(i32::from(bits)), places), places)
        }
        fn keep_bits8(self, bits: u16, a: __m256) -> __m256 {
            _mm256_and_ps(_mm256_castsi256_ps(self.expand_bits8(bits)), a)
        }
        fn ordered_after8(self, a: __m256, b: __m256, equal: u32) -> __m256 {
            let bits = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
            let set = _mm256_and_si256(_mm256_set1_epi32(equal as i32), bits);
            let same = _mm256_castsi256_ps(_mm256_cmpeq_epi32(set, bits));
            let same = _mm256_and_ps(same, _mm256_cmp_ps::<_CMP_EQ_OQ>(a, b));
            let keep_bits = _mm256_or_ps(same, _mm256_cmp_ps::<_CMP_LT_OQ>(a, b));
            _mm256_blendv_ps(_mm256_set1_ps(f32::NEG_INFINITY), a, keep_bits)
        }
    }
}
