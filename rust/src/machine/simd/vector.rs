//! Arithmetic on weight vectors, and the limited-memory inverse Hessian.
//!
//! Sums run over blocks of fixed size and the blocks are added in order, so that results have the same bits for any
//! number of threads.

use crate::machine::simd::dispatch::dispatch;
use crate::machine::simd::Simd;
use rayon::prelude::*;
use std::borrow::Cow;

const BLOCK: usize = 1 << 14;
/// Elements of a direction computed at a time. A strip stays in the L1 cache.
const STRIP: usize = 1 << 10;

/// Return the sum over blocks of `f(begin, end)`, added in order.
fn sum_blocks<const N: usize>(len: usize, f: impl Fn(usize, usize) -> [f64; N] + Sync) -> [f64; N] {
    let parts: Vec<[f64; N]> =
        (0..len.div_ceil(BLOCK)).into_par_iter().map(|b| f(b * BLOCK, ((b + 1) * BLOCK).min(len))).collect();
    parts.iter().fold([0.0; N], |sum, part| std::array::from_fn(|i| sum[i] + part[i]))
}

/// Dot product with sixteen partial sums, so that the order of additions does not depend on the register width.
#[inline(always)]
fn dot_body<A: Copy + Into<f64>, B: Copy + Into<f64>>(a: &[A], b: &[B]) -> f64 {
    let mut sums = [0.0f64; 16];
    let (xs, ys) = (a.chunks_exact(16), b.chunks_exact(16));
    let rest: f64 = xs.remainder().iter().zip(ys.remainder()).map(|(&x, &y)| x.into() * y.into()).sum();
    for (x, y) in xs.zip(ys) {
        for i in 0..16 {
            sums[i] += x[i].into() * y[i].into();
        }
    }
    sums.iter().sum::<f64>() + rest
}

#[inline(always)]
fn add_pair_kernel<S: Simd>(_: S, out: &mut [f64], s: &[f32], y: &[f32], c: &[f64]) {
    for ((o, &s), &y) in out.iter_mut().zip(s).zip(y) {
        *o -= c[0] * f64::from(s) + c[1] * f64::from(y);
    }
}

// The token is unused: the compiler vectorizes these loops for the target features of the level.
dispatch!(fn dot_singles(a: &[f32], b: &[f32]) -> f64 = |_simd| dot_body(a, b));
dispatch!(fn dot_mixed(a: &[f32], b: &[f64]) -> f64 = |_simd| dot_body(a, b));
dispatch!(fn dot_block(a: &[f64], b: &[f64]) -> f64 = |_simd| dot_body(a, b));
dispatch!(fn add_pair(out: &mut [f64], s: &[f32], y: &[f32], c: &[f64]) = add_pair_kernel);

/// a . b
pub fn dot(a: &[f64], b: &[f64]) -> f64 {
    sum_blocks(a.len(), |i, j| [dot_block(&a[i..j], &b[i..j])])[0]
}

/// out = a + step * b
pub fn add_scaled(a: &[f64], step: f64, b: &[f64], out: &mut [f64]) {
    out.par_chunks_mut(BLOCK).zip(a.par_chunks(BLOCK)).zip(b.par_chunks(BLOCK)).for_each(|((out, a), b)| {
        for ((o, &x), &y) in out.iter_mut().zip(a).zip(b) {
            *o = x + step * y;
        }
    });
}

/// Add the gradient of the ridge c ||w||^2 to `gradient` and return the value of the ridge.
pub fn add_ridge(w: &[f64], c: f64, gradient: &mut [f64]) -> f64 {
    let parts: Vec<f64> = gradient
        .par_chunks_mut(BLOCK)
        .zip(w.par_chunks(BLOCK))
        .map(|(g, w)| {
            for (g, &x) in g.iter_mut().zip(w) {
                *g += 2.0 * c * x;
            }
            dot_block(w, w)
        })
        .collect();
    c * parts.iter().sum::<f64>()
}

/// The m last pairs s = change of w, y = change of the gradient, and their inner products.
///
/// The two-loop recursion (Nocedal 1980) runs on coefficients over the basis {s_i, y_i, g}, whose inner products are
/// stored. A direction then costs two passes over the pairs instead of 4 m (Chen, Wang and Zhou 2014). Pairs are stored
/// in float32, which halves the memory traffic and perturbs the curvature of a pair by a relative 1e-7.
///
/// With `scale` d, the recursion runs in the variables u = w / d, whose steps are s / d and whose gradients are d g. If
/// d_k is small where the curvature is large, the Hessian is closer to a multiple of the identity, the initial
/// approximation.
pub struct CurvaturePairs {
    capacity: usize,
    scale: Option<Vec<f32>>,   // [features]
    pairs: Vec<[Vec<f32>; 2]>, // oldest first: [s, y]
    products: Vec<Vec<f64>>,   // [2 m, 2 m] inner products of s_0, y_0, s_1, y_1, ...
    with_g: (f64, Vec<f64>),   // g at the end of the last pair: g . g and its products with the pairs
}

impl CurvaturePairs {
    pub fn new(capacity: usize, scale: Option<Vec<f32>>) -> CurvaturePairs {
        CurvaturePairs {
            capacity: capacity.max(1),
            scale,
            pairs: Vec::new(),
            products: Vec::new(),
            with_g: (0.0, Vec::new()),
        }
    }

    pub fn len(&self) -> usize {
        self.pairs.len()
    }

    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    pub fn clear(&mut self) {
        self.pairs.clear();
        self.products.clear();
    }

    /// Append the step from (w0, g0) to (w1, g1) and return true, or return false if its curvature s.y is not clearly
    /// positive.
    pub fn push(&mut self, w0: &[f64], w1: &[f64], g0: &[f64], g1: &[f64]) -> bool {
        let n = w0.len();
        self.with_g.0 = f64::NAN;
        let mut pair = if self.pairs.len() == self.capacity {
            self.products.drain(..2);
            self.products.iter_mut().for_each(|row| {
                row.drain(..2);
            });
            self.pairs.remove(0)
        } else {
            [vec![0.0; n], vec![0.0; n]]
        };
        let ([s, y], scale) = (&mut pair, &self.scale);
        s.par_chunks_mut(BLOCK).zip(y.par_chunks_mut(BLOCK)).enumerate().for_each(|(b, (s, y))| {
            let at = b * BLOCK;
            for i in 0..s.len() {
                s[i] = (w1[at + i] - w0[at + i]) as f32;
                y[i] = (g1[at + i] - g0[at + i]) as f32;
            }
            if let Some(d) = scale {
                for ((s, y), d) in s.iter_mut().zip(y).zip(&d[at..]) {
                    *s /= d;
                    *y *= d;
                }
            }
        });
        let (s, y) = (&s[..], &y[..]);
        let g = self.scaled(g1);
        // One pass over the pairs for all new products: with the step, the change of the gradient, and the gradient.
        let mut rows: Vec<&[f32]> = self.pairs.iter().flat_map(|p| [&p[0][..], &p[1][..]]).collect();
        rows.extend([s, y]);
        let parts: Vec<Vec<[f64; 3]>> = (0..n.div_ceil(BLOCK))
            .into_par_iter()
            .map(|b| {
                let (i, j) = (b * BLOCK, ((b + 1) * BLOCK).min(n));
                let new = |row: &&[f32]| {
                    let row = &row[i..j];
                    [dot_singles(row, &s[i..j]), dot_singles(row, &y[i..j]), dot_mixed(row, &g[i..j])]
                };
                rows.iter().map(new).collect()
            })
            .collect();
        let sum = |r: usize, k: usize| parts.iter().map(|p| p[r][k]).sum::<f64>();
        let last = rows.len() - 2;
        let (sy, yy) = (sum(last, 1), sum(last + 1, 1));
        if sy.partial_cmp(&(1e-10 * yy)) != Some(std::cmp::Ordering::Greater) || !yy.is_finite() {
            return false;
        }
        let gg = dot(&g, &g);
        let with_g = (0..rows.len()).map(|r| sum(r, 2)).collect();
        for (r, row) in self.products.iter_mut().enumerate() {
            row.extend([sum(r, 0), sum(r, 1)]);
        }
        for k in 0..2 {
            self.products.push((0..rows.len()).map(|r| sum(r, k)).collect());
        }
        self.with_g = (gg, with_g);
        self.pairs.push(pair);
        true
    }

    /// Return the gradient in the scaled variables.
    fn scaled<'a>(&self, g: &'a [f64]) -> Cow<'a, [f64]> {
        match &self.scale {
            Some(d) => {
                let product = g.par_iter().with_min_len(BLOCK).zip(d).map(|(g, &d)| g * f64::from(d));
                Cow::Owned(product.collect())
            }
            None => Cow::Borrowed(g),
        }
    }

    /// Return the inner products of v with s_0, y_0, s_1, y_1, ...
    fn products_with(&self, v: &[f64]) -> Vec<f64> {
        let rows: Vec<&[f32]> = self.pairs.iter().flat_map(|p| [&p[0][..], &p[1][..]]).collect();
        let parts: Vec<Vec<f64>> = (0..v.len().div_ceil(BLOCK))
            .into_par_iter()
            .map(|b| {
                let (i, j) = (b * BLOCK, ((b + 1) * BLOCK).min(v.len()));
                rows.iter().map(|row| dot_mixed(&row[i..j], &v[i..j])).collect()
            })
            .collect();
        (0..rows.len()).map(|r| parts.iter().map(|p| p[r]).sum()).collect()
    }

    /// Set direction = -H g with the implicit inverse Hessian H, and return g . direction.
    pub fn direction(&self, g: &[f64], direction: &mut [f64]) -> f64 {
        let m = self.pairs.len();
        let g = &self.scaled(g)[..];
        let gg = dot(g, g);
        // The gradient is usually that of the last push. If g . g is equal to the last bit, its products are reused.
        let with_g = if m > 0 && gg == self.with_g.0 { self.with_g.1.clone() } else { self.products_with(g) };
        // q = sum_j c_j b_j + c_g g over the basis b = s_0, y_0, s_1, ...
        let mut c = vec![0.0; 2 * m];
        let mut c_g = 1.0;
        let mut alpha = vec![0.0; m];
        let inner = |i: usize, c: &[f64], c_g: f64| -> f64 {
            self.products[i].iter().zip(c).map(|(p, x)| p * x).sum::<f64>() + c_g * with_g[i]
        };
        for i in (0..m).rev() {
            alpha[i] = inner(2 * i, &c, c_g) / self.products[2 * i][2 * i + 1];
            c[2 * i + 1] -= alpha[i];
        }
        if m > 0 {
            let last = 2 * (m - 1);
            let scale = self.products[last][last + 1] / self.products[last + 1][last + 1];
            c.iter_mut().for_each(|x| *x *= scale);
            c_g *= scale;
        }
        for i in 0..m {
            let beta = inner(2 * i + 1, &c, c_g) / self.products[2 * i][2 * i + 1];
            c[2 * i] += alpha[i] - beta;
        }
        direction.par_chunks_mut(STRIP).with_min_len(BLOCK / STRIP).enumerate().for_each(|(b, out)| {
            let at = b * STRIP..b * STRIP + out.len();
            for (o, &x) in out.iter_mut().zip(&g[at.clone()]) {
                *o = -c_g * x;
            }
            for (pair, c) in self.pairs.iter().zip(c.chunks_exact(2)) {
                add_pair(out, &pair[0][at.clone()], &pair[1][at.clone()], c);
            }
            if let Some(d) = &self.scale {
                out.iter_mut().zip(&d[at]).for_each(|(o, &d)| *o *= f64::from(d));
            }
        });
        -(c_g * gg + c.iter().zip(&with_g).map(|(x, p)| x * p).sum::<f64>())
    }

    /// Return the inner products y_i . y_j [m, m] and y_i . g [m], in the variables w.
    pub fn gradient_products(&self, g: &[f64]) -> (Vec<f64>, Vec<f64>) {
        let m = self.pairs.len();
        let parts: Vec<(Vec<f64>, Vec<f64>)> = (0..g.len().div_ceil(BLOCK))
            .into_par_iter()
            .map(|b| {
                let (i, j) = (b * BLOCK, ((b + 1) * BLOCK).min(g.len()));
                let changes: Vec<Cow<[f32]>> = self
                    .pairs
                    .iter()
                    .map(|[_, y]| match &self.scale {
                        Some(d) => y[i..j].iter().zip(&d[i..j]).map(|(y, d)| y / d).collect(),
                        None => Cow::Borrowed(&y[i..j]),
                    })
                    .collect();
                let products = changes.iter().flat_map(|y| changes.iter().map(|z| dot_singles(y, z))).collect();
                (products, changes.iter().map(|y| dot_mixed(y, &g[i..j])).collect())
            })
            .collect();
        let mut sums = (vec![0.0; m * m], vec![0.0; m]);
        for (products, with_g) in &parts {
            sums.0.iter_mut().zip(products).for_each(|(sum, x)| *sum += x);
            sums.1.iter_mut().zip(with_g).for_each(|(sum, x)| *sum += x);
        }
        sums
    }

    /// out = w - sum_i c_i s_i
    pub fn subtract_steps(&self, w: &[f64], c: &[f64], out: &mut [f64]) {
        out.par_chunks_mut(STRIP).with_min_len(BLOCK / STRIP).enumerate().for_each(|(b, out)| {
            let at = b * STRIP..b * STRIP + out.len();
            out.copy_from_slice(&w[at.clone()]);
            for ([s, _], &c) in self.pairs.iter().zip(c) {
                match &self.scale {
                    Some(d) => {
                        for ((o, &s), &d) in out.iter_mut().zip(&s[at.clone()]).zip(&d[at.clone()]) {
                            *o -= c * f64::from(s) * f64::from(d);
                        }
                    }
                    None => out.iter_mut().zip(&s[at.clone()]).for_each(|(o, &s)| *o -= c * f64::from(s)),
                }
            }
        });
    }
}
