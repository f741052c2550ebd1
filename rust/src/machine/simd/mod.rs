//! SIMD lanes of sixteen numbers, one per sentence.
//!
//! Every recursion of `chain` is written once over the `Simd` trait and compiled for AVX-512, AVX2 with FMA and the
//! baseline. The instruction set is chosen at run time, so that one wheel runs on all machines.

pub mod blocks;
pub mod dispatch;
pub mod double;
pub mod find;
pub mod vector;
#[cfg(target_arch = "x86_64")]
pub mod x86;

/// Smallest argument of `Simd::exp_below`. e^-87 is a normal number.
pub const FLOOR: f32 = -87.0;
/// Number of sentences that advance together.
pub const WIDTH: usize = 16;

/// One number per sentence, for sixteen sentences.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(64))]
pub struct Lane(pub [f32; WIDTH]);

/// Prefetch the cache line of an address.
#[inline(always)]
pub fn prefetch<T>(at: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a hint, which is valid for any address and exists on every x86-64.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(at.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}

/// Prefetch all cache lines of a slice.
#[inline(always)]
pub fn prefetch_all<T>(slice: &[T]) {
    let range = slice.as_ptr_range();
    let mut at = range.start.cast::<u8>();
    while at < range.end.cast() {
        prefetch(at);
        at = at.wrapping_add(64);
    }
}

/// Address range of a slice in bytes.
#[inline(always)]
pub fn bytes<T>(slice: &[T]) -> std::ops::Range<*const u8> {
    let range = slice.as_ptr_range();
    range.start.cast()..range.end.cast()
}

/// Prefetches three slices one cache line at a time while the caller works on something else: a processor has few
/// outstanding loads.
pub struct Prefetcher {
    slices: [std::ops::Range<*const u8>; 3],
    current: usize,
}

impl Prefetcher {
    #[inline(always)]
    pub fn new(slices: [std::ops::Range<*const u8>; 3]) -> Prefetcher {
        Prefetcher { slices, current: 0 }
    }

    /// Prefetch the next line. After the last line this does nothing.
    #[inline(always)]
    pub fn line(&mut self) {
        if let Some(slice) = self.slices.get_mut(self.current) {
            prefetch(slice.start);
            slice.start = slice.start.wrapping_add(64);
            self.current += usize::from(slice.start >= slice.end);
        }
    }

    /// Prefetch all lines that are left.
    #[inline(always)]
    pub fn finish(&mut self) {
        while self.current < self.slices.len() {
            self.line();
        }
    }
}

impl Lane {
    pub const ZERO: Lane = Lane([0.0; WIDTH]);
}

/// Return the first sixteen lanes of a slice, for a transposition.
#[inline(always)]
pub fn square(lanes: &[Lane]) -> &[Lane; WIDTH] {
    lanes.first_chunk().expect("sixteen lanes")
}

/// Mutable version of `square`.
#[inline(always)]
pub fn square_mut(lanes: &mut [Lane]) -> &mut [Lane; WIDTH] {
    lanes.first_chunk_mut().expect("sixteen lanes")
}

/// Return the numbers of the lanes as one slice.
#[inline(always)]
pub fn flat(lanes: &[Lane]) -> &[f32] {
    // SAFETY: a lane is sixteen floats without padding.
    unsafe { std::slice::from_raw_parts(lanes.as_ptr().cast(), lanes.len() * WIDTH) }
}

/// Mutable version of `flat`.
#[inline(always)]
pub fn flat_mut(lanes: &mut [Lane]) -> &mut [f32] {
    // SAFETY: a lane is sixteen floats without padding.
    unsafe { std::slice::from_raw_parts_mut(lanes.as_mut_ptr().cast(), lanes.len() * WIDTH) }
}

/// Vector arithmetic on lanes. An implementation is a zero-sized token that exists only on machines with its
/// instructions, so the methods are safe. `dispatch!` creates tokens and passes them to kernels, which are
/// `#[inline(always)]` so that they are compiled with the instructions of their token.
pub trait Simd: Copy {
    const LEVEL: Level;
    /// Number of accumulators that fit into registers together with the operands.
    const BLOCK: usize;
    /// Rows and columns of a tile of accumulators that fits into registers together with the operands.
    const TILE_ROWS: usize;
    const TILE_COLUMNS: usize;
    type F: Copy;
    fn load(self, lane: &Lane) -> Self::F;
    fn store(self, v: Self::F, lane: &mut Lane);
    fn splat(self, x: f32) -> Self::F;
    fn add(self, a: Self::F, b: Self::F) -> Self::F;
    fn sub(self, a: Self::F, b: Self::F) -> Self::F;
    fn mul(self, a: Self::F, b: Self::F) -> Self::F;
    fn div(self, a: Self::F, b: Self::F) -> Self::F;
    /// a * b + c
    fn fma(self, a: Self::F, b: Self::F, c: Self::F) -> Self::F;
    fn max(self, a: Self::F, b: Self::F) -> Self::F;
    fn min(self, a: Self::F, b: Self::F) -> Self::F;
    /// x if a > b, otherwise y (also if a or b is NaN)
    fn select_gt(self, a: Self::F, b: Self::F, x: Self::F, y: Self::F) -> Self::F;
    /// Return a bit mask with bit i set if a[i] > b[i].
    fn greater(self, a: Self::F, b: Self::F) -> u32;
    /// p * 2^n for integral n in [-126, 127]
    fn scale2(self, p: Self::F, n: Self::F) -> Self::F;
    /// (m, e) with x = m 2^e and m in [1, 2), for normal x > 0
    fn split2(self, x: Self::F) -> (Self::F, Self::F);
    /// Transpose a 16 x 16 tile: `rows[i].0[j]` goes to `out[j].0[i]`.
    fn transpose(self, rows: &[Lane; WIDTH], out: &mut [Lane; WIDTH]);

    /// e^(s - top) for s <= top, by Cephes' range reduction and degree-5 polynomial, 2 ulp. The result is at least
    /// e^-87 for every finite s and 0 for -infinity: a small factor must stay distinct from a forbidden one.
    #[inline(always)]
    fn exp_below(self, s: Self::F, top: Self::F) -> Self::F {
        let magic = self.splat(12_582_912.0); // 1.5 * 2^23: adding it rounds to an integer
        let x0 = self.max(self.sub(s, top), self.splat(FLOOR));
        let n = self.sub(self.fma(x0, self.splat(std::f32::consts::LOG2_E), magic), magic);
        let r = self.fma(n, self.splat(-0.693_359_4), x0);
        let r = self.fma(n, self.splat(2.121_944_4e-4), r);
        let mut p = self.splat(1.987_569_1e-4);
        for c in [1.398_199_9e-3, 8.333_452e-3, 4.166_579_6e-2, 1.666_666_5e-1, 0.5] {
            p = self.fma(p, r, self.splat(c));
        }
        let p = self.add(self.fma(self.mul(r, r), p, r), self.splat(1.0));
        self.select_gt(s, self.splat(f32::NEG_INFINITY), self.scale2(p, n), self.splat(0.0))
    }

    /// log x for normal x > 0: Cephes' range reduction and degree-8 polynomial, 2 ulp.
    #[inline(always)]
    fn ln(self, x: Self::F) -> Self::F {
        let ((m, e), root) = (self.split2(x), self.splat(std::f32::consts::SQRT_2));
        let r = self.select_gt(m, root, self.mul(m, self.splat(0.5)), m);
        let e = self.select_gt(m, root, self.add(e, self.splat(1.0)), e);
        let r = self.sub(r, self.splat(1.0));
        let mut p = self.splat(7.037_683_6e-2);
        for c in [-1.151_461e-1, 1.167_699_9e-1, -1.242_014_1e-1, 1.424_932_3e-1, -1.666_805_8e-1, 2.000_071_5e-1] {
            p = self.fma(p, r, self.splat(c));
        }
        p = self.fma(p, r, self.splat(-2.499_999_4e-1));
        p = self.fma(p, r, self.splat(3.333_333e-1));
        let z = self.mul(r, r);
        let y = self.fma(e, self.splat(-2.121_944_4e-4), self.mul(self.mul(r, z), p));
        let y = self.fma(z, self.splat(-0.5), y);
        self.fma(e, self.splat(0.693_359_4), self.add(r, y))
    }
}

/// Plain arrays, vectorized by the compiler for the baseline of the architecture.
#[derive(Clone, Copy)]
pub struct Baseline;

#[inline(always)]
fn zip(a: [f32; WIDTH], b: [f32; WIDTH], f: impl Fn(f32, f32) -> f32) -> [f32; WIDTH] {
    std::array::from_fn(|i| f(a[i], b[i]))
}

impl Simd for Baseline {
    const LEVEL: Level = Level::Baseline;
    const BLOCK: usize = 3;
    const TILE_ROWS: usize = 1;
    const TILE_COLUMNS: usize = 3;
    type F = [f32; WIDTH];
    #[inline(always)]
    fn load(self, lane: &Lane) -> Self::F {
        lane.0
    }
    #[inline(always)]
    fn store(self, v: Self::F, lane: &mut Lane) {
        lane.0 = v;
    }
    #[inline(always)]
    fn splat(self, x: f32) -> Self::F {
        [x; WIDTH]
    }
    #[inline(always)]
    fn add(self, a: Self::F, b: Self::F) -> Self::F {
        zip(a, b, |x, y| x + y)
    }
    #[inline(always)]
    fn sub(self, a: Self::F, b: Self::F) -> Self::F {
        zip(a, b, |x, y| x - y)
    }
    #[inline(always)]
    fn mul(self, a: Self::F, b: Self::F) -> Self::F {
        zip(a, b, |x, y| x * y)
    }
    #[inline(always)]
    fn div(self, a: Self::F, b: Self::F) -> Self::F {
        zip(a, b, |x, y| x / y)
    }
    #[inline(always)]
    fn fma(self, a: Self::F, b: Self::F, c: Self::F) -> Self::F {
        std::array::from_fn(|i| a[i] * b[i] + c[i])
    }
    #[inline(always)]
    fn max(self, a: Self::F, b: Self::F) -> Self::F {
        zip(a, b, |x, y| if x > y { x } else { y })
    }
    #[inline(always)]
    fn min(self, a: Self::F, b: Self::F) -> Self::F {
        zip(a, b, |x, y| if x < y { x } else { y })
    }
    #[inline(always)]
    fn select_gt(self, a: Self::F, b: Self::F, x: Self::F, y: Self::F) -> Self::F {
        std::array::from_fn(|i| if a[i] > b[i] { x[i] } else { y[i] })
    }
    #[inline(always)]
    fn greater(self, a: Self::F, b: Self::F) -> u32 {
        (0..WIDTH).fold(0, |mask, i| mask | u32::from(a[i] > b[i]) << i)
    }
    #[inline(always)]
    fn scale2(self, p: Self::F, n: Self::F) -> Self::F {
        std::array::from_fn(|i| p[i] * f32::from_bits(((n[i] as i32 + 127) << 23) as u32))
    }
    #[inline(always)]
    fn split2(self, x: Self::F) -> (Self::F, Self::F) {
        let bits = x.map(f32::to_bits);
        (bits.map(|b| f32::from_bits(b & 0x7f_ffff | 0x3f80_0000)), bits.map(|b| (b >> 23) as f32 - 127.0))
    }
    #[inline(always)]
    fn transpose(self, rows: &[Lane; WIDTH], out: &mut [Lane; WIDTH]) {
        for (j, o) in out.iter_mut().enumerate() {
            for (i, row) in rows.iter().enumerate() {
                o.0[i] = row.0[j];
            }
        }
    }
}

/// Instruction sets in order of preference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    Avx512,
    Avx2,
    Baseline,
}

/// Tests of lanes on each instruction set.
#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::simd::dispatch::dispatch;
    use crate::machine::system::testing;

    fn exp_kernel<S: Simd>(simd: S, x: &Lane, top: f32, out: &mut Lane) {
        simd.store(simd.exp_below(simd.load(x), simd.splat(top)), out);
    }
    fn ln_kernel<S: Simd>(simd: S, x: &Lane, out: &mut Lane) {
        simd.store(simd.ln(simd.load(x)), out);
    }
    dispatch!(fn ln(x: &Lane, out: &mut Lane) = ln_kernel);

    #[test]
    fn ln_is_accurate_to_a_few_ulp() {
        on_each_instruction_set(|| {
            let mut out = Lane::ZERO;
            for step in 0..2000 {
                let x = Lane(std::array::from_fn(|i| ((step - 1000) as f32 * 0.085 + i as f32 * 0.0053).exp()));
                ln(&x, &mut out);
                for (x, found) in x.0.into_iter().zip(out.0).filter(|(x, _)| x.is_normal()) {
                    let want = f64::from(x).ln();
                    assert!((f64::from(found) - want).abs() < 3e-7 * want.abs().max(0.3), "{x} {found} {want}");
                }
            }
            ln(&Lane([1.0; WIDTH]), &mut out);
            assert_eq!(out.0, [0.0; WIDTH]);
        });
    }

    fn transpose_kernel<S: Simd>(simd: S, x: &[Lane; WIDTH], out: &mut [Lane; WIDTH]) {
        simd.transpose(x, out);
    }
    dispatch!(fn exp(x: &Lane, top: f32, out: &mut Lane) = exp_kernel);
    dispatch!(fn transpose(x: &[Lane; WIDTH], out: &mut [Lane; WIDTH]) = transpose_kernel);

    /// Run a test on each instruction set of the machine.
    fn on_each_instruction_set(test: impl Fn()) {
        ["", "avx2", "baseline"].iter().for_each(|paths| testing::with(paths, &test));
    }

    #[test]
    fn exp_is_accurate_and_zero_only_for_minus_infinity() {
        on_each_instruction_set(|| {
            let mut out = Lane::ZERO;
            for step in 0..2000 {
                let x = Lane(std::array::from_fn(|i| -(step as f32) * 0.045 - i as f32 * 0.002));
                exp(&x, 0.0, &mut out);
                for i in 0..WIDTH {
                    let want = f64::from(x.0[i].max(FLOOR)).exp();
                    assert!((f64::from(out.0[i]) / want - 1.0).abs() < 3e-7, "{} {}", x.0[i], out.0[i]);
                }
            }
            exp(&Lane([FLOOR; WIDTH]), 0.0, &mut out);
            let least = out.0[0];
            assert!(least >= f32::MIN_POSITIVE);
            let (lowest, none) = (f32::MIN, f32::NEG_INFINITY);
            let ends = [
                (0.0, 0.0, 1.0),
                (-0.0, 0.0, 1.0),
                (-1e-30, 0.0, 1.0),
                (-1e30, 0.0, least),
                (lowest, f32::MAX, least),
                (none, 0.0, 0.0),
                (none, none, 0.0),
                (f32::NAN, 0.0, 0.0),
            ];
            for (x, top, want) in ends {
                exp(&Lane([x; WIDTH]), top, &mut out);
                assert_eq!(out.0, [want; WIDTH], "{x} {top}");
            }
        });
    }

    #[test]
    fn transpose_swaps_rows_and_columns() {
        on_each_instruction_set(|| {
            let rows: [Lane; WIDTH] = std::array::from_fn(|i| Lane(std::array::from_fn(|j| (100 * i + j) as f32)));
            let mut out = [Lane::ZERO; WIDTH];
            transpose(&rows, &mut out);
            for (j, o) in out.iter().enumerate() {
                for (i, &v) in o.0.iter().enumerate() {
                    assert_eq!(v, (100 * i + j) as f32);
                }
            }
        });
    }

    fn select_kernel<S: Simd>(simd: S, a: &Lane, b: &Lane, out: &mut [Lane; 3]) {
        let all = a.0[0] > b.0[0];
        let (a, b) = (simd.load(a), simd.load(b));
        assert_eq!(simd.greater(a, b), if all { 0xffff } else { 0 });
        simd.store(simd.select_gt(a, b, simd.splat(1.0), simd.splat(0.0)), &mut out[0]);
        simd.store(simd.max(a, b), &mut out[1]);
        simd.store(simd.min(a, b), &mut out[2]);
    }
    dispatch!(fn select(a: &Lane, b: &Lane, out: &mut [Lane; 3]) = select_kernel);

    /// If an operand is NaN, neither is greater, and `max` and `min` return the second.
    #[test]
    fn comparisons_do_not_depend_on_the_instruction_set() {
        let cases = [-1.0, 0.0, 1.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN];
        on_each_instruction_set(|| {
            for a in cases {
                for b in cases {
                    let mut out = [Lane::ZERO; 3];
                    select(&Lane([a; WIDTH]), &Lane([b; WIDTH]), &mut out);
                    let want = [if a > b { 1.0 } else { 0.0 }, if a > b { a } else { b }, if a < b { a } else { b }];
                    for (lane, want) in out.iter().zip(want) {
                        assert!(lane.0.iter().all(|x| *x == want || x.is_nan() && want.is_nan()), "{a} {b}");
                    }
                }
            }
        });
    }
}
