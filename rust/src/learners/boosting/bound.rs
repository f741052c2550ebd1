//! Gain of one feature, from the range and the mean of u_ik: closed forms, a convex program in one variable, and
//! optimistic estimates that need neither logarithm nor exponential.
//!
//! All quantities are unnormalised. With e_i = w_i e^{l_i} (times one common factor), a cell is a set of sentences
//! with one range u in [-a, b], mass d = sum_i (e_i - w_i) and moment m = sum_i e_i (E[S_k] - S_k(y_i)). By convexity
//!
//! ```text
//! sum over wrong paths of e^{step u}  <=  low e^{-a step} + high e^{b step},   low = (b d - m) / (a + b), high = d - low
//! ```
//!
//! (Altun, Hofmann & Johnson 2002, eq. 15-18). The gain d - min_step(...) is a lower bound on the decrease of N in a
//! round, so Z = 1 - gain / N. The tight bound sums cells over the sentences where the feature can fire. The
//! loose one is a single cell of all sentences with d = N and the union of the ranges.

use crate::machine::system::names::named;

named!(
    /// Upper bound on Z by which features are chosen.
    pub enum Bound: "bound" {
        /// One range for all sentences.
        Loose = "loose",
        /// A range for each sentence.
        Tight = "tight",
        /// Z itself.
        Exact = "exact",
    }
);

named!(
    /// Label sequences of a sentence over which the loss is summed.
    pub enum Over: "sum over label sequences" {
        /// All except gold: N = sum_i w_i (e^{l_i} - 1), which is 0 if everything is learned.
        Wrong = "wrong",
        /// All, including gold: N = sum_i w_i e^{l_i}. The gold share is constant (u = 0), so bounds are wider and
        /// steps shorter.
        All = "all",
    }
);

/// Sentences of one feature that share a range.
#[derive(Clone, Copy, Debug)]
pub struct Range {
    pub a: f64,
    pub b: f64,
}

impl Range {
    /// Range of a sentence of the same length whose gold path does not have the feature.
    pub fn without_gold(self) -> Range {
        Range { a: 0.0, b: self.a + self.b }
    }

    /// Range extended to its width on both sides: the range of deviations from an unknown mean.
    pub fn symmetric(self) -> Range {
        Range { a: self.a + self.b, b: self.a + self.b }
    }
}

/// Smoothing and cap of a step.
#[derive(Clone, Copy, Debug)]
pub struct StepLimits {
    /// Added to both sides of the ratio whose logarithm is the step, in units of N (Schapire & Singer 1999, 4.2).
    pub smoothing: f64,
    /// Largest magnitude of a step.
    pub cap: f64,
}

/// A step and its guaranteed gain.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Gain {
    pub step: f64,
    pub gain: f64,
}

/// Masses below and above the gold path, and their moments, summed over all cells of a feature.
#[derive(Clone, Copy, Debug, Default)]
pub struct Moments {
    pub low: f64,  // sum of low
    pub high: f64, // sum of high
    pub down: f64, // sum of a low
    pub up: f64,   // sum of b high, and up - down = sum of m
}

/// Masses of a cell at the ends of its range. Rounding may place the mean slightly outside the range.
#[inline(always)]
pub fn split(range: Range, d: f64, m: f64) -> (f64, f64) {
    let width = range.a + range.b;
    if width <= 0.0 || d <= 0.0 {
        return (0.0, 0.0);
    }
    let low = ((range.b * d - m) / width).clamp(0.0, d);
    (low, d - low)
}

impl Moments {
    #[inline(always)]
    pub fn add(&mut self, range: Range, d: f64, m: f64) {
        let (low, high) = split(range, d, m);
        self.low += low;
        self.high += high;
        self.down += range.a * low;
        self.up += range.b * high;
    }

    /// Upper bound on the gain of any step. Jensen's inequality over the cells leaves two points, -A = -down / low and
    /// B = up / high, whose best gain is Q (1 - e^{-KL(q || p)}) with Q = low + high. From 1 - e^{-KL} <= chi^2 / (1 +
    /// chi^2) follows the rational bound M^2 / (A B Q + (B - A) M) with M = up - down.
    #[inline(always)]
    pub fn optimistic(&self) -> f64 {
        let q = self.low + self.high;
        let a = if self.low > 0.0 { self.down / self.low } else { 0.0 };
        let b = if self.high > 0.0 { self.up / self.high } else { 0.0 };
        optimistic(Range { a, b }, q, self.up - self.down)
    }

    /// Step for the two points of `optimistic`, and its gain: a tighter upper bound on the gain of any step.
    pub fn two_points(&self, n: f64, limits: StepLimits) -> Gain {
        let a = if self.low > 0.0 { self.down / self.low } else { 0.0 };
        let b = if self.high > 0.0 { self.up / self.high } else { 0.0 };
        loose(Range { a, b }, self.low + self.high, self.up - self.down, n, limits)
    }
}

/// Upper bound on the gain of a cell of mass q and moment m. It decreases with q, so a lower bound of q is valid for
/// all larger q.
#[inline(always)]
pub fn optimistic(range: Range, q: f64, m: f64) -> f64 {
    let Range { a, b } = range;
    let denominator = a * b * q + (b - a) * m;
    let gain = if denominator > 0.0 { m * m / denominator } else { f64::INFINITY };
    if m == 0.0 {
        0.0
    } else {
        gain
    }
}

/// The step that minimises low e^{-a step} + high e^{b step}, in closed form, and its gain.
pub fn loose(range: Range, q: f64, m: f64, n: f64, limits: StepLimits) -> Gain {
    let Range { a, b } = range;
    if a + b <= 0.0 || q <= 0.0 {
        return Gain::default();
    }
    let (low, high) = split(range, q, m);
    let eps = limits.smoothing * n;
    let (up, down) = (b * high + eps, a * low + eps);
    let step = match (down > 0.0, up > 0.0) {
        (true, true) => ((down.ln() - up.ln()) / (a + b)).clamp(-limits.cap, limits.cap),
        (true, false) => limits.cap,
        (false, true) => -limits.cap,
        (false, false) => 0.0,
    };
    Gain { step, gain: gain_at(range, low, high, step) }
}

/// low (1 - e^{-a step}) + high (1 - e^{b step}). An infinite step moves nothing if a or b is 0.
#[inline(always)]
fn gain_at(range: Range, low: f64, high: f64, step: f64) -> f64 {
    let mut gain = 0.0;
    if low > 0.0 && range.a > 0.0 {
        gain -= low * (-range.a * step).exp_m1();
    }
    if high > 0.0 && range.b > 0.0 {
        gain -= high * (range.b * step).exp_m1();
    }
    gain
}

/// The step that minimises the sum over cells, plus smoothing n (e^step + e^-step), and its gain without that term.
/// `cells` yields (range, d, m). Smoothing bounds the step if b = 0 in every cell: an attribute that always carries
/// its label in the gold data would otherwise drive the weight to infinity.
pub fn tight(cells: impl Iterator<Item = (Range, f64, f64)> + Clone, n: f64, limits: StepLimits, start: f64) -> Gain {
    let eps = limits.smoothing * n;
    let slopes = |step: f64| {
        let (mut slope, mut curve, mut size) = (0.0, 0.0, 0.0);
        for (range, d, m) in cells.clone() {
            let (low, high) = split(range, d, m);
            let (down, up) = (range.a * low, range.b * high);
            let down = if down > 0.0 { down * (-range.a * step).exp() } else { 0.0 };
            let up = if up > 0.0 { up * (range.b * step).exp() } else { 0.0 };
            slope += up - down;
            size += up + down;
            curve += range.a * down + range.b * up;
        }
        if eps > 0.0 {
            let (plus, minus) = (eps * step.exp(), eps * (-step).exp());
            slope += plus - minus;
            size += plus + minus;
            curve += plus + minus;
        }
        (slope, curve, size)
    };
    let step = newton(slopes, start, limits.cap);
    let gain = cells
        .map(|(range, d, m)| {
            let (low, high) = split(range, d, m);
            gain_at(range, low, high, step)
        })
        .sum();
    Gain { step, gain }
}

/// Zero of an increasing function in [-cap, cap], or the nearer end: Newton's method inside a bracket that shrinks
/// with every step and is halved if Newton would leave it. `slopes` returns (value, derivative, size of the terms).
pub fn newton(slopes: impl Fn(f64) -> (f64, f64, f64), start: f64, cap: f64) -> f64 {
    let (mut left, mut right) = (-cap, cap);
    let (mut left_evaluated, mut right_evaluated) = (false, false);
    let mut step = if start.is_finite() { start.clamp(-cap, cap) } else { 0.0 };
    for _ in 0..200 {
        let (slope, curve, size) = slopes(step);
        if slope.abs() <= 1e-13 * size || size == 0.0 {
            break;
        }
        if slope > 0.0 {
            (right, right_evaluated) = (step, true);
        } else {
            (left, left_evaluated) = (step, true);
        }
        let mut next = step - slope / curve;
        if !next.is_finite() || next <= left || next >= right {
            // Try the end of the interval once, then halve.
            next = if slope < 0.0 && !right_evaluated {
                right
            } else if slope > 0.0 && !left_evaluated {
                left
            } else {
                left + (right - left) / 2.0
            };
        }
        if next == step || (right - left) <= 1e-14 * (1.0 + step.abs()) {
            break;
        }
        step = next;
    }
    step
}

#[cfg(test)]
mod tests {
    use super::*;

    const FREE: StepLimits = StepLimits { smoothing: 0.0, cap: 30.0 };

    #[test]
    fn tight_bound_of_one_cell_is_the_closed_form() {
        for (a, b, m) in [(1.0, 1.0, 0.3), (2.0, 1.0, -0.9), (0.5, 3.0, 1.1), (1.0, 0.0, -0.4), (0.0, 2.0, 0.7)] {
            let range = Range { a, b };
            let closed = loose(range, 1.0, m, 1.0, FREE);
            let solved = tight([(range, 1.0, m)].into_iter(), 1.0, FREE, 0.0);
            assert!((closed.gain - solved.gain).abs() < 1e-9, "{closed:?} {solved:?}");
            assert!(optimistic(range, 1.0, m) >= closed.gain - 1e-12);
        }
    }

    #[test]
    fn two_point_gain_bounds_the_gain_of_several_cells() {
        let cells = [
            (Range { a: 1.0, b: 0.0 }, 0.4, -0.2),
            (Range { a: 2.0, b: 3.0 }, 0.5, -0.3),
            (Range { a: 0.0, b: 4.0 }, 0.1, 0.05),
        ];
        let mut moments = Moments::default();
        for (range, d, m) in cells {
            moments.add(range, d, m);
        }
        let found = tight(cells.into_iter(), 1.0, FREE, 0.0);
        let two = moments.two_points(1.0, FREE);
        assert!(found.gain > 0.0 && two.gain >= found.gain && moments.optimistic() >= two.gain);
        for i in -100..=100 {
            let step = f64::from(i) * 0.05;
            let other: f64 = cells
                .iter()
                .map(|&(range, d, m)| {
                    let (low, high) = split(range, d, m);
                    gain_at(range, low, high, step)
                })
                .sum();
            assert!(other <= found.gain + 1e-12);
        }
    }

    #[test]
    fn cap_and_smoothing_bound_the_steps() {
        let one_sided = [(Range { a: 1.0, b: 0.0 }, 1.0, -0.5)];
        assert_eq!(tight(one_sided.into_iter(), 1.0, StepLimits { smoothing: 0.0, cap: 3.0 }, 0.0).step, 3.0);
        let smoothed = StepLimits { smoothing: 0.1, cap: 30.0 };
        let step = tight(one_sided.into_iter(), 1.0, smoothed, 0.0).step;
        assert!((step - 0.5 * (0.6f64 / 0.1).ln()).abs() < 1e-9);
        assert_eq!(loose(one_sided[0].0, 1.0, -0.5, 1.0, StepLimits { smoothing: 0.0, cap: 3.0 }).step, 3.0);
    }
}
