//! The losses of a sentence as functions of l = log Z - H (sequential) or of the gold marginals (pointwise).

/// Altun, Johnson and Hofmann (2003), section 3.3: F1 to F4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    Log,          // l
    Exp,          // e^l - 1
    PointwiseLog, // -sum_t log p_t(c_t)
    PointwiseExp, // sum_t 1 / p_t(c_t)
}

/// Beyond this l the exponential loss is summed relative to its largest term.
pub const LARGE: f64 = 30.0;

impl Loss {
    pub fn named(name: &str) -> Option<Loss> {
        Some(match name {
            "log" => Loss::Log,
            "exp" => Loss::Exp,
            "pointwise_log" => Loss::PointwiseLog,
            "pointwise_exp" => Loss::PointwiseExp,
            _ => return None,
        })
    }

    pub fn is_pointwise(self) -> bool {
        matches!(self, Loss::PointwiseLog | Loss::PointwiseExp)
    }

    /// Value e^-shift w loss and the factor e^-shift w loss'(l) of E[S] - S(y), for the sequential losses.
    pub fn sequential(self, w: f64, l: f64, shift: f64) -> (f64, f64) {
        if self == Loss::Log || w == 0.0 {
            return (w * l, w);
        }
        let factor = (w.ln() + l - shift).exp();
        (factor - w * (-shift).exp(), factor)
    }

    /// Whether a sentence's loss is beyond range: the caller shifts and asks again.
    pub fn is_beyond(self, w: f64, l: f64, shift: f64) -> bool {
        self == Loss::Exp && l.is_finite() && w.ln() + l - shift > LARGE + 1.0
    }

    /// Value and the weight omega_t of the token's conditional expectation, for the pointwise losses.
    pub fn pointwise(self, w: f64, p: f64) -> (f64, f64) {
        if w == 0.0 {
            return (0.0, 0.0); // also where p = 0
        }
        match self {
            Loss::PointwiseExp => (w / p, w / p),
            _ => (-w * p.ln(), w),
        }
    }
}
