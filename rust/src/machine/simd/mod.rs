//! Sixteen sentences side by side: a `Lane` holds one number of each, and every recursion of `chain` is written once
//! over the `Simd` trait and compiled for AVX-512, AVX2+FMA and the baseline. The machine chooses at run time, so one
//! wheel serves all of them.

use crate::machine::force::{self, Way};

/// How many sentences advance together.
pub const WIDTH: usize = 16;

/// One number of each of sixteen sentences.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(64))]
pub struct Lane(pub [f32; WIDTH]);

/// Ask for the cache line of an address.
#[inline(always)]
pub fn prefetch<T>(at: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a hint; any address will do, and every x86-64 has it.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(at.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}

impl Lane {
    pub const ZERO: Lane = Lane([0.0; WIDTH]);
}

/// Vector arithmetic on lanes. Methods are unsafe because an implementation may use instructions that the machine must
/// have; `dispatch!` is the only caller that chooses one, after asking the machine.
pub trait Simd: Copy {
    const LEVEL: Level;
    /// Accumulators that fit into registers beside the operands.
    const BLOCK: usize;
    /// Rows and columns of a tile of accumulators that fits likewise.
    const TALL: usize;
    const WIDE: usize;
    type F: Copy;
    unsafe fn load(lane: &Lane) -> Self::F;
    unsafe fn store(v: Self::F, lane: &mut Lane);
    unsafe fn splat(x: f32) -> Self::F;
    unsafe fn add(a: Self::F, b: Self::F) -> Self::F;
    unsafe fn sub(a: Self::F, b: Self::F) -> Self::F;
    unsafe fn mul(a: Self::F, b: Self::F) -> Self::F;
    unsafe fn div(a: Self::F, b: Self::F) -> Self::F;
    /// a * b + c
    unsafe fn fma(a: Self::F, b: Self::F, c: Self::F) -> Self::F;
    unsafe fn max(a: Self::F, b: Self::F) -> Self::F;
    unsafe fn min(a: Self::F, b: Self::F) -> Self::F;
    /// x where a > b, else y (also where a or b is not a number)
    unsafe fn select_gt(a: Self::F, b: Self::F, x: Self::F, y: Self::F) -> Self::F;
    /// p * 2^n for integral n in [-126, 127]
    unsafe fn scale2(p: Self::F, n: Self::F) -> Self::F;
    /// Transpose a 16 x 16 tile: `rows[i].0[j]` goes to `out[j].0[i]`.
    unsafe fn transpose(rows: &[Lane; WIDTH], out: &mut [Lane; WIDTH]);

    /// e^x for x <= 0: Cephes' range reduction and degree-5 polynomial, 2 ulp; 0 below -87 (and for -infinity).
    #[inline(always)]
    unsafe fn exp_neg(x: Self::F) -> Self::F {
        let magic = Self::splat(12_582_912.0); // 1.5 * 2^23: adding it rounds to an integer
        let x0 = Self::max(x, Self::splat(-87.0));
        let n = Self::sub(Self::fma(x0, Self::splat(std::f32::consts::LOG2_E), magic), magic);
        let r = Self::fma(n, Self::splat(-0.693_359_4), x0);
        let r = Self::fma(n, Self::splat(2.121_944_4e-4), r);
        let mut p = Self::splat(1.987_569_1e-4);
        for c in [1.398_199_9e-3, 8.333_452e-3, 4.166_579_6e-2, 1.666_666_5e-1, 0.5] {
            p = Self::fma(p, r, Self::splat(c));
        }
        let p = Self::add(Self::fma(Self::mul(r, r), p, r), Self::splat(1.0));
        Self::select_gt(x, Self::splat(-87.0), Self::scale2(p, n), Self::splat(0.0))
    }
}

/// Plain arrays: whatever the compiler makes of them on the baseline machine.
#[derive(Clone, Copy)]
pub struct Baseline;

#[inline(always)]
fn zip(a: [f32; WIDTH], b: [f32; WIDTH], f: impl Fn(f32, f32) -> f32) -> [f32; WIDTH] {
    std::array::from_fn(|i| f(a[i], b[i]))
}

impl Simd for Baseline {
    const LEVEL: Level = Level::Baseline;
    const BLOCK: usize = 3;
    const TALL: usize = 1;
    const WIDE: usize = 3;
    type F = [f32; WIDTH];
    #[inline(always)]
    unsafe fn load(lane: &Lane) -> Self::F {
        lane.0
    }
    #[inline(always)]
    unsafe fn store(v: Self::F, lane: &mut Lane) {
        lane.0 = v;
    }
    #[inline(always)]
    unsafe fn splat(x: f32) -> Self::F {
        [x; WIDTH]
    }
    #[inline(always)]
    unsafe fn add(a: Self::F, b: Self::F) -> Self::F {
        zip(a, b, |x, y| x + y)
    }
    #[inline(always)]
    unsafe fn sub(a: Self::F, b: Self::F) -> Self::F {
        zip(a, b, |x, y| x - y)
    }
    #[inline(always)]
    unsafe fn mul(a: Self::F, b: Self::F) -> Self::F {
        zip(a, b, |x, y| x * y)
    }
    #[inline(always)]
    unsafe fn div(a: Self::F, b: Self::F) -> Self::F {
        zip(a, b, |x, y| x / y)
    }
    #[inline(always)]
    unsafe fn fma(a: Self::F, b: Self::F, c: Self::F) -> Self::F {
        std::array::from_fn(|i| a[i] * b[i] + c[i])
    }
    #[inline(always)]
    unsafe fn max(a: Self::F, b: Self::F) -> Self::F {
        zip(a, b, |x, y| if x > y { x } else { y })
    }
    #[inline(always)]
    unsafe fn min(a: Self::F, b: Self::F) -> Self::F {
        zip(a, b, |x, y| if x < y { x } else { y })
    }
    #[inline(always)]
    unsafe fn select_gt(a: Self::F, b: Self::F, x: Self::F, y: Self::F) -> Self::F {
        std::array::from_fn(|i| if a[i] > b[i] { x[i] } else { y[i] })
    }
    #[inline(always)]
    unsafe fn scale2(p: Self::F, n: Self::F) -> Self::F {
        std::array::from_fn(|i| p[i] * f32::from_bits(((n[i] as i32 + 127) << 23) as u32))
    }
    #[inline(always)]
    unsafe fn transpose(rows: &[Lane; WIDTH], out: &mut [Lane; WIDTH]) {
        for (j, o) in out.iter_mut().enumerate() {
            for (i, row) in rows.iter().enumerate() {
                o.0[i] = row.0[j];
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{Lane, Level, Simd, WIDTH};
    use std::arch::x86_64::*;

    /// AVX-512F: a lane is one register.
    #[derive(Clone, Copy)]
    pub struct Avx512;

    impl Simd for Avx512 {
        const LEVEL: Level = Level::Avx512;
        const BLOCK: usize = 12;
        const TALL: usize = 4;
        const WIDE: usize = 6;
        type F = __m512;
        #[inline(always)]
        unsafe fn load(lane: &Lane) -> __m512 {
            _mm512_load_ps(lane.0.as_ptr())
        }
        #[inline(always)]
        unsafe fn store(v: __m512, lane: &mut Lane) {
            _mm512_store_ps(lane.0.as_mut_ptr(), v);
        }
        #[inline(always)]
        unsafe fn splat(x: f32) -> __m512 {
            _mm512_set1_ps(x)
        }
        #[inline(always)]
        unsafe fn add(a: __m512, b: __m512) -> __m512 {
            _mm512_add_ps(a, b)
        }
        #[inline(always)]
        unsafe fn sub(a: __m512, b: __m512) -> __m512 {
            _mm512_sub_ps(a, b)
        }
        #[inline(always)]
        unsafe fn mul(a: __m512, b: __m512) -> __m512 {
            _mm512_mul_ps(a, b)
        }
        #[inline(always)]
        unsafe fn div(a: __m512, b: __m512) -> __m512 {
            _mm512_div_ps(a, b)
        }
        #[inline(always)]
        unsafe fn fma(a: __m512, b: __m512, c: __m512) -> __m512 {
            _mm512_fmadd_ps(a, b, c)
        }
        #[inline(always)]
        unsafe fn max(a: __m512, b: __m512) -> __m512 {
            _mm512_max_ps(a, b)
        }
        #[inline(always)]
        unsafe fn min(a: __m512, b: __m512) -> __m512 {
            _mm512_min_ps(a, b)
        }
        #[inline(always)]
        unsafe fn select_gt(a: __m512, b: __m512, x: __m512, y: __m512) -> __m512 {
            _mm512_mask_blend_ps(_mm512_cmp_ps_mask::<_CMP_GT_OQ>(a, b), y, x)
        }
        #[inline(always)]
        unsafe fn scale2(p: __m512, n: __m512) -> __m512 {
            _mm512_scalef_ps(p, n)
        }
        #[inline(always)]
        unsafe fn transpose(rows: &[Lane; WIDTH], out: &mut [Lane; WIDTH]) {
            // Butterfly: 4-byte, then 8-byte unpacks, then 128-bit shuffles at two distances.
            let r: [__m512; 16] = std::array::from_fn(|i| Self::load(&rows[i]));
            let mut a = r;
            for i in 0..8 {
                a[2 * i] = _mm512_unpacklo_ps(r[2 * i], r[2 * i + 1]);
                a[2 * i + 1] = _mm512_unpackhi_ps(r[2 * i], r[2 * i + 1]);
            }
            let mut b = a;
            for i in 0..4 {
                let (p, q) = (4 * i, 4 * i + 2);
                let d = |x| _mm512_castps_pd(x);
                b[p] = _mm512_castpd_ps(_mm512_unpacklo_pd(d(a[p]), d(a[q])));
                b[p + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(d(a[p]), d(a[q])));
                b[p + 2] = _mm512_castpd_ps(_mm512_unpacklo_pd(d(a[p + 1]), d(a[q + 1])));
                b[p + 3] = _mm512_castpd_ps(_mm512_unpackhi_pd(d(a[p + 1]), d(a[q + 1])));
            }
            for j in 0..4 {
                let lo = _mm512_shuffle_f32x4::<0x88>(b[j], b[4 + j]);
                let hi = _mm512_shuffle_f32x4::<0xdd>(b[j], b[4 + j]);
                let lo2 = _mm512_shuffle_f32x4::<0x88>(b[8 + j], b[12 + j]);
                let hi2 = _mm512_shuffle_f32x4::<0xdd>(b[8 + j], b[12 + j]);
                Self::store(_mm512_shuffle_f32x4::<0x88>(lo, lo2), &mut out[j]);
                Self::store(_mm512_shuffle_f32x4::<0x88>(hi, hi2), &mut out[4 + j]);
                Self::store(_mm512_shuffle_f32x4::<0xdd>(lo, lo2), &mut out[8 + j]);
                Self::store(_mm512_shuffle_f32x4::<0xdd>(hi, hi2), &mut out[12 + j]);
            }
        }
    }

    /// AVX2 with FMA: a lane is two registers.
    #[derive(Clone, Copy)]
    pub struct Avx2;

    /// Two halves of a lane.
    type Pair = [__m256; 2];

    macro_rules! both {
        ($f:ident, $($x:expr),+) => {
            [$f($($x[0]),+), $f($($x[1]),+)]
        };
    }

    impl Simd for Avx2 {
        const LEVEL: Level = Level::Avx2;
        const BLOCK: usize = 6;
        const TALL: usize = 2;
        const WIDE: usize = 3;
        type F = Pair;
        #[inline(always)]
        unsafe fn load(lane: &Lane) -> Pair {
            [_mm256_load_ps(lane.0.as_ptr()), _mm256_load_ps(lane.0.as_ptr().add(8))]
        }
        #[inline(always)]
        unsafe fn store(v: Pair, lane: &mut Lane) {
            _mm256_store_ps(lane.0.as_mut_ptr(), v[0]);
            _mm256_store_ps(lane.0.as_mut_ptr().add(8), v[1]);
        }
        #[inline(always)]
        unsafe fn splat(x: f32) -> Pair {
            [_mm256_set1_ps(x); 2]
        }
        #[inline(always)]
        unsafe fn add(a: Pair, b: Pair) -> Pair {
            both!(_mm256_add_ps, a, b)
        }
        #[inline(always)]
        unsafe fn sub(a: Pair, b: Pair) -> Pair {
            both!(_mm256_sub_ps, a, b)
        }
        #[inline(always)]
        unsafe fn mul(a: Pair, b: Pair) -> Pair {
            both!(_mm256_mul_ps, a, b)
        }
        #[inline(always)]
        unsafe fn div(a: Pair, b: Pair) -> Pair {
            both!(_mm256_div_ps, a, b)
        }
        #[inline(always)]
        unsafe fn fma(a: Pair, b: Pair, c: Pair) -> Pair {
            both!(_mm256_fmadd_ps, a, b, c)
        }
        #[inline(always)]
        unsafe fn max(a: Pair, b: Pair) -> Pair {
            both!(_mm256_max_ps, a, b)
        }
        #[inline(always)]
        unsafe fn min(a: Pair, b: Pair) -> Pair {
            both!(_mm256_min_ps, a, b)
        }
        #[inline(always)]
        unsafe fn select_gt(a: Pair, b: Pair, x: Pair, y: Pair) -> Pair {
            let half = |i: usize| _mm256_blendv_ps(y[i], x[i], _mm256_cmp_ps::<_CMP_GT_OQ>(a[i], b[i]));
            [half(0), half(1)]
        }
        #[inline(always)]
        unsafe fn scale2(p: Pair, n: Pair) -> Pair {
            let half = |i: usize| {
                let e = _mm256_add_epi32(_mm256_cvtps_epi32(n[i]), _mm256_set1_epi32(127));
                _mm256_mul_ps(p[i], _mm256_castsi256_ps(_mm256_slli_epi32::<23>(e)))
            };
            [half(0), half(1)]
        }
        #[inline(always)]
        unsafe fn transpose(rows: &[Lane; WIDTH], out: &mut [Lane; WIDTH]) {
            for (bi, bj) in [(0, 0), (0, 8), (8, 0), (8, 8)] {
                let r: [__m256; 8] = std::array::from_fn(|i| _mm256_load_ps(rows[bi + i].0.as_ptr().add(bj)));
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

#[cfg(target_arch = "x86_64")]
pub use x86::{Avx2, Avx512};

/// Instruction sets in order of preference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    Avx512,
    Avx2,
    Baseline,
}

/// The instruction set to use: the best of this machine, or the lesser one that a test forces.
#[inline]
pub fn level() -> Level {
    let most = if force::is_forced(Way::Baseline) {
        Level::Baseline
    } else if force::is_forced(Way::Avx2) {
        Level::Avx2
    } else {
        Level::Avx512
    };
    best().max(most)
}

/// The best instruction set of this machine; `TAGWISE_SIMD=avx2|baseline` asks for a lesser one (bug reports).
fn best() -> Level {
    static LEVEL: std::sync::OnceLock<Level> = std::sync::OnceLock::new();
    *LEVEL.get_or_init(|| {
        let wish = std::env::var("TAGWISE_SIMD").unwrap_or_default();
        #[cfg(target_arch = "x86_64")]
        {
            let avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
            if avx2 && is_x86_feature_detected!("avx512f") && wish.is_empty() {
                return Level::Avx512;
            }
            if avx2 && wish != "baseline" {
                return Level::Avx2;
            }
        }
        let _ = wish;
        Level::Baseline
    })
}

/// Numbers too small to be normal count as zero while this lives, on this thread: products of many small probabilities
/// are full of them, and each costs a hundred cycles otherwise.
pub struct FlushToZero(#[cfg(target_arch = "x86_64")] u32);

impl FlushToZero {
    #[allow(clippy::new_without_default)]
    pub fn new() -> FlushToZero {
        #[cfg(target_arch = "x86_64")]
        {
            let (mut before, flags) = (0u32, 0x8040u32); // flush-to-zero and denormals-are-zero of MXCSR
                                                         // SAFETY: reads and writes the floating-point control register of this thread; `drop` restores it.
            unsafe {
                std::arch::asm!("stmxcsr [{}]", in(reg) &mut before, options(nostack));
                let now = before | flags;
                std::arch::asm!("ldmxcsr [{}]", in(reg) &now, options(nostack));
            }
            FlushToZero(before)
        }
        #[cfg(not(target_arch = "x86_64"))]
        FlushToZero()
    }
}

impl Drop for FlushToZero {
    fn drop(&mut self) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: restores what `new` found.
        unsafe {
            std::arch::asm!("ldmxcsr [{}]", in(reg) &self.0, options(nostack));
        }
    }
}

/// `dispatch!(fn name<S>(arg: Type, ...) -> R = kernel)` defines `name`, which runs the generic `kernel::<S>` compiled
/// for the machine's instruction set.
#[macro_export]
macro_rules! dispatch {
    ($(#[$meta:meta])* $vis:vis fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $(-> $ret:ty)? = $kernel:path) => {
        $(#[$meta])*
        #[allow(clippy::too_many_arguments)]
        $vis fn $name($($arg: $ty),*) $(-> $ret)? {
            use $kernel as kernel;
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f,avx2,fma")]
                #[allow(clippy::too_many_arguments)]
                unsafe fn avx512($($arg: $ty),*) $(-> $ret)? {
                    kernel::<$crate::machine::simd::Avx512>($($arg),*)
                }
                #[target_feature(enable = "avx2,fma")]
                #[allow(clippy::too_many_arguments)]
                unsafe fn avx2($($arg: $ty),*) $(-> $ret)? {
                    kernel::<$crate::machine::simd::Avx2>($($arg),*)
                }
                match $crate::machine::simd::level() {
                    // SAFETY: `level` asked the machine for exactly these features.
                    $crate::machine::simd::Level::Avx512 => return unsafe { avx512($($arg),*) },
                    $crate::machine::simd::Level::Avx2 => return unsafe { avx2($($arg),*) },
                    $crate::machine::simd::Level::Baseline => {}
                }
            }
            // SAFETY: the baseline implementation uses no instruction beyond the compilation target's.
            unsafe { kernel::<$crate::machine::simd::Baseline>($($arg),*) }
        }
    };
}

#[cfg(test)]
mod tests;
