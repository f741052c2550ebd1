//! Expanded kernels: the linear kernel as attributes, the polynomial of degree 2 as products of two attributes.
//!
//! ```text
//! (c + g <x, x'>)^2 = c^2 + sum_a 2cg x_a x'_a + sum_a g^2 (x_a^2)(x'_a^2) + sum_{a<b} 2g^2 (x_a x_b)(x'_a x'_b)
//! ```
//!
//! A *term* is one of these products. It contributes m * f(x) * f(x') to K, with the factor m above. With weights W =
//! sum_s beta_s f(x_s) a token's score is sum m f(x) W over its own n^2/2 terms, independent of the number of support
//! tokens. Products of whole numbers stay whole, since there are no square roots.

use crate::dataset::csr::Csr;
use crate::scores::kernel::Kernel;

/// Marks a term without a second attribute.
const SINGLE: u32 = u32::MAX;

/// Numbers of terms by their attributes: open addressing, linear probing.
#[derive(Clone, Debug, Default)]
pub struct Products {
    keys: Vec<u64>, // key + 1, 0 if empty
    ids: Vec<u32>,
    len: usize,
}

impl Products {
    #[inline(always)]
    fn slot(&self, key: u64) -> usize {
        let mask = self.keys.len() - 1;
        let mut at = (key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20) as usize & mask;
        while self.keys[at] != 0 && self.keys[at] != key + 1 {
            at = (at + 1) & mask;
        }
        at
    }

    #[inline(always)]
    fn key(a: u32, b: u32) -> u64 {
        u64::from(a) << 32 | u64::from(b)
    }

    /// Return the number of a term, if it has one.
    #[inline(always)]
    pub fn get(&self, a: u32, b: u32) -> Option<u32> {
        if self.keys.is_empty() {
            return None;
        }
        let at = self.slot(Self::key(a, b));
        (self.keys[at] != 0).then(|| self.ids[at])
    }

    /// Return the number of a term, assigning a new one if needed.
    pub fn intern(&mut self, a: u32, b: u32) -> u32 {
        if (self.len + 1) * 2 > self.keys.len() {
            let old = std::mem::take(&mut self.keys);
            let ids = std::mem::take(&mut self.ids);
            let size = (old.len() * 2).max(64);
            (self.keys, self.ids) = (vec![0; size], vec![0; size]);
            for (&key, &id) in old.iter().zip(&ids).filter(|(&key, _)| key != 0) {
                let at = self.slot(key - 1);
                (self.keys[at], self.ids[at]) = (key, id);
            }
        }
        let at = self.slot(Self::key(a, b));
        if self.keys[at] == 0 {
            self.keys[at] = Self::key(a, b) + 1;
            self.ids[at] = self.len as u32;
            self.len += 1;
        }
        self.ids[at]
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

/// Whether a kernel can be expanded.
pub fn possible(kernel: &Kernel) -> bool {
    matches!(kernel, Kernel::Linear | Kernel::Poly { degree: 1 | 2, .. })
}

/// Maximum number of terms of a token with n attributes.
pub fn count(kernel: &Kernel, n: usize) -> usize {
    match kernel {
        Kernel::Poly { degree: 2, .. } => 1 + n + n * (n + 1) / 2,
        Kernel::Linear | Kernel::Poly { .. } | Kernel::Rbf { .. } | Kernel::Function(_) => 1 + n,
    }
}

/// Call `each(a, b, f, m)` for every term of a token: attributes, f(x), factor. The constant has no attribute.
#[inline(always)]
pub fn terms(kernel: &Kernel, row: &[(u32, f32)], mut each: impl FnMut(u32, u32, f64, f64)) {
    match *kernel {
        Kernel::Poly { degree: 2, coef, gamma } => {
            if coef != 0.0 {
                each(SINGLE, SINGLE - 1, 1.0, coef * coef);
                for &(a, v) in row {
                    each(a, SINGLE, f64::from(v), 2.0 * coef * gamma);
                }
            }
            for (i, &(a, v)) in row.iter().enumerate() {
                each(a, a, f64::from(v) * f64::from(v), gamma * gamma);
                for &(b, u) in &row[i + 1..] {
                    each(a, b, f64::from(v) * f64::from(u), 2.0 * gamma * gamma);
                }
            }
        }
        Kernel::Poly { coef, gamma, .. } => {
            if coef != 0.0 {
                each(SINGLE, SINGLE - 1, 1.0, coef);
            }
            for &(a, v) in row {
                each(a, SINGLE, f64::from(v), gamma);
            }
        }
        Kernel::Linear | Kernel::Rbf { .. } | Kernel::Function(_) => {
            for &(a, v) in row {
                each(a, SINGLE, f64::from(v), 1.0);
            }
        }
    }
}

/// Terms of every row of a block.
#[derive(Clone, Debug, Default)]
pub struct Expanded {
    pub ptr: Vec<usize>,
    pub term: Vec<u32>,
    pub value: Vec<f32>,  // f(x), empty if all are 1
    pub factor: Vec<f64>, // [terms] m
}

impl Expanded {
    pub fn new(kernel: &Kernel, rows: &Csr) -> Expanded {
        let mut out = Expanded { ptr: vec![0], ..Expanded::default() };
        let plain = rows.values.is_empty();
        let mut known = Products::default();
        let mut row = Vec::new();
        for r in 0..rows.rows() {
            row.clear();
            row.extend(rows.row(r));
            terms(kernel, &row, |a, b, f, m| {
                let id = known.intern(a, b);
                if id as usize == out.factor.len() {
                    out.factor.push(m);
                }
                out.term.push(id);
                if !plain {
                    out.value.push(f as f32);
                }
            });
            out.ptr.push(out.term.len());
        }
        out
    }
}
