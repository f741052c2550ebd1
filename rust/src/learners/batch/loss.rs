//! The losses of a sentence as functions of l = log Z - H (sequential) or of the gold marginals (pointwise).

use crate::machine::system::names::named;

named!(
    /// Altun, Johnson and Hofmann (2003), section 3.3: F1 to F4.
    pub enum Loss: "loss" {
        /// l
        Log = "log",
        /// e^l - 1
        Exp = "exp",
        /// -sum_t log p_t(c_t)
        PointwiseLog = "pointwise_log",
        /// sum_t 1 / p_t(c_t)
        PointwiseExp = "pointwise_exp",
    }
);

/// Beyond this l the exponential loss is summed relative to its largest term.
pub const LARGE: f64 = 30.0;

impl Loss {
    pub fn is_pointwise(self) -> bool {
        match self {
            Loss::Log | Loss::Exp => false,
            Loss::PointwiseLog | Loss::PointwiseExp => true,
        }
    }

    /// Whether the loss of a sentence grows as e^l and is summed relative to its largest term.
    pub fn is_shifted(self) -> bool {
        match self {
            Loss::Exp => true,
            Loss::Log | Loss::PointwiseLog | Loss::PointwiseExp => false,
        }
    }

    /// Value e^-shift w loss and the factor e^-shift w loss'(l) of E[S] - S(y), for the sequential losses.
    pub fn sequential(self, w: f64, l: f64, shift: f64) -> (f64, f64) {
        if w == 0.0 {
            return (w * l, w);
        }
        match self {
            Loss::Log => (w * l, w),
            Loss::Exp => {
                let factor = (w.ln() + l - shift).exp();
                (factor - w * (-shift).exp(), factor)
            }
            Loss::PointwiseLog | Loss::PointwiseExp => unreachable!("{self:?} is a function of marginals"),
        }
    }

    /// Whether a sentence's loss is out of range. The caller then shifts and retries.
    pub fn is_out_of_range(self, w: f64, l: f64, shift: f64) -> bool {
        self.is_shifted() && l.is_finite() && w.ln() + l - shift > LARGE + 1.0
    }

    /// Value and the weight omega_t of the token's conditional expectation, for the pointwise losses.
    pub fn pointwise(self, w: f64, p: f64) -> (f64, f64) {
        if w == 0.0 {
            return (0.0, 0.0); // also if p = 0
        }
        match self {
            Loss::PointwiseLog => (-w * p.ln(), w),
            Loss::PointwiseExp => (w / p, w / p),
            Loss::Log | Loss::Exp => unreachable!("{self:?} is a function of log Z - H"),
        }
    }

    /// Like `pointwise`, from log p, which may be out of the range of p.
    pub fn pointwise_of_log(self, w: f64, log_p: f64) -> (f64, f64) {
        match self {
            Loss::PointwiseLog => (-w * log_p, w),
            Loss::PointwiseExp | Loss::Log | Loss::Exp => self.pointwise(w, log_p.exp()),
        }
    }
}
