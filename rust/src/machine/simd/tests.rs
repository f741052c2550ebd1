//! Lanes on each instruction set.

use super::*;

unsafe fn exp_kernel<S: Simd>(x: &Lane, out: &mut Lane) {
    S::store(S::exp_neg(S::load(x)), out);
}
unsafe fn transpose_kernel<S: Simd>(x: &[Lane; WIDTH], out: &mut [Lane; WIDTH]) {
    S::transpose(x, out);
}
dispatch!(fn exp(x: &Lane, out: &mut Lane) = exp_kernel);
dispatch!(fn transpose(x: &[Lane; WIDTH], out: &mut [Lane; WIDTH]) = transpose_kernel);

/// Runs a test on each instruction set that the machine has.
fn on_each(test: impl Fn()) {
    ["", "avx2", "baseline"].iter().for_each(|ways| force::with(ways, &test));
}

#[test]
fn exp_is_exact_to_a_few_ulp_and_zero_from_minus_87_on() {
    on_each(|| {
        let mut out = Lane::ZERO;
        for step in 0..2000 {
            let x = Lane(std::array::from_fn(|i| -(step as f32) * 0.045 - i as f32 * 0.002));
            exp(&x, &mut out);
            for i in 0..WIDTH {
                let want = f64::from(x.0[i]).exp();
                match x.0[i] > -87.0 {
                    true => assert!((f64::from(out.0[i]) / want - 1.0).abs() < 3e-7, "{} {}", x.0[i], out.0[i]),
                    false => assert_eq!(out.0[i], 0.0, "{}", x.0[i]),
                }
            }
        }
        let ends = [(0.0, 1.0), (-0.0, 1.0), (-1e-30, 1.0), (-87.0, 0.0), (-1e30, 0.0), (f32::NEG_INFINITY, 0.0)];
        for (x, want) in ends {
            exp(&Lane([x; WIDTH]), &mut out);
            assert_eq!(out.0, [want; WIDTH], "{x}");
        }
    });
}

#[test]
fn transpose_moves_every_cell() {
    on_each(|| {
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

unsafe fn select_kernel<S: Simd>(a: &Lane, b: &Lane, out: &mut [Lane; 3]) {
    let (a, b) = (S::load(a), S::load(b));
    S::store(S::select_gt(a, b, S::splat(1.0), S::splat(0.0)), &mut out[0]);
    S::store(S::max(a, b), &mut out[1]);
    S::store(S::min(a, b), &mut out[2]);
}
dispatch!(fn select(a: &Lane, b: &Lane, out: &mut [Lane; 3]) = select_kernel);

/// Where one of two is not a number, neither is greater, and the second is what `max` and `min` give.
#[test]
fn comparisons_are_the_same_on_every_machine() {
    let cases = [-1.0, 0.0, 1.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN];
    on_each(|| {
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
