//! Kernels on attribute vectors: scores computed from training tokens instead of weights of attributes.
//!
//! ```text
//! s_t(y) = sum_s beta_s(y) K(x_t, x_s)         linear  <x, x'>
//!                                              poly    (coef + gamma <x, x'>)^degree
//!                                              rbf     exp(-gamma ||x - x'||^2)
//! ```
//!
//! Only tokens with beta != 0 contribute, the *support tokens*. Equal tokens share one. Transitions, starts and ends
//! have a weight each. `rows` computes K of one token with all others through an inverted index, `table` maintains the
//! scores of all training tokens while betas change, and `expand` expands the polynomial of degree 2 into products of
//! attributes. The perceptron is `learners::online::kernel`, the feature space of the Hidden Markov SVM is
//! `learners::svm::kernel`, and `decoding::kernel` labels sentences.

pub mod expand;
pub mod rows;
pub mod table;

use crate::dataset::csr::Csr;
use crate::error::{Error, Result};
use crate::machine::system::names::named;
use std::sync::Arc;

/// K of every row of the first block with every row of the second: [rows, rows].
pub type KernelFunction = Arc<dyn Fn(&Csr, &Csr) -> Result<Vec<f64>> + Send + Sync>;

named!(
    /// Kernels with a name and parameters. Any other kernel is a function.
    pub enum KernelKind: "kernel" {
        Linear = "linear",
        Poly = "poly",
        Rbf = "rbf",
    }
);

impl KernelKind {
    /// Names of the parameters that the kernel uses.
    pub fn numbers(self) -> &'static [&'static str] {
        match self {
            KernelKind::Linear => &[],
            KernelKind::Poly => &["degree", "coef", "gamma"],
            KernelKind::Rbf => &["gamma"],
        }
    }

    pub fn with(self, degree: u32, coef: f64, gamma: f64) -> Kernel {
        match self {
            KernelKind::Linear => Kernel::Linear,
            KernelKind::Poly => Kernel::Poly { degree, coef, gamma },
            KernelKind::Rbf => Kernel::Rbf { gamma },
        }
    }
}

/// A kernel.
#[derive(Clone)]
pub enum Kernel {
    Linear,
    Poly { degree: u32, coef: f64, gamma: f64 },
    Rbf { gamma: f64 },
    Function(KernelFunction),
}

impl Kernel {
    /// K from <x, x'>, ||x||^2 and ||x'||^2, or 0 for a function, which has no such form.
    #[inline(always)]
    pub fn of(&self, dot: f64, square: f64, other: f64) -> f64 {
        match *self {
            Kernel::Linear => dot,
            Kernel::Poly { degree, coef, gamma } => (coef + gamma * dot).powi(degree as i32),
            Kernel::Rbf { gamma } => (-gamma * (square + other - 2.0 * dot).max(0.0)).exp(),
            Kernel::Function(_) => 0.0,
        }
    }

    pub fn check(&self) -> Result<()> {
        let bad = |m: String| Err(Error::Value(m));
        match *self {
            Kernel::Poly { degree, coef, .. } if degree == 0 || degree > 64 || !coef.is_finite() || coef < 0.0 => bad(format!(
                "a polynomial kernel needs a degree from 1 to 64 and a finite coef >= 0, got degree {degree} and coef {coef}"
            )),
            Kernel::Poly { gamma, .. } if !(gamma > 0.0 && gamma.is_finite()) => {
                bad(format!("a polynomial kernel needs a finite gamma > 0, got {gamma}"))
            }
            Kernel::Rbf { gamma } if !(gamma > 0.0 && gamma.is_finite()) => {
                bad(format!("an rbf kernel needs a finite gamma > 0, got {gamma}"))
            }
            Kernel::Linear | Kernel::Poly { .. } | Kernel::Rbf { .. } | Kernel::Function(_) => Ok(()),
        }
    }
}

named!(
    /// Representation of the scores.
    pub enum Form: "form" {
        /// The cheaper of the two.
        Auto = "auto",
        /// Rows of kernel values.
        Rows = "rows",
        /// Products of attributes.
        Expanded = "expanded",
    }
);
