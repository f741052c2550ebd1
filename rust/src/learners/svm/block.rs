//! The quadratic program of one sentence, starting from its current alphas.
//!
//! ```text
//! max  b.alpha - 1/2 alpha' G alpha     0 <= alpha_j <= C,  sum alpha <= m C
//! ```
//!
//! with m = 1 for one slack per sentence. With one slack per path m is the number of worst paths whose slacks count:
//! the sum of the m largest hinge losses is max sum_j a_j violation_j over 0 <= a_j <= 1, sum a <= m.
//!
//! The gradient b - G alpha is kept, so the rest of the corpus need not be known. G is a Gram matrix. A path with
//! the same features as gold has a row of zeros: its gradient is its bound, and all of C goes to it.

/// Maximum number of steps per path of a block. A visit need not be exact, since the next one continues from its
/// result.
const MAX_STEPS_PER_PATH: usize = 20;

/// Result of one visit.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Visit {
    /// Increase of the dual.
    pub rise: f64,
    /// Largest violation of the optimality conditions before the visit.
    pub violation: f64,
}

/// Move `alpha` [k] towards the optimum until no step promises more than `tolerance` per unit, and update `gradient`
/// [k].
///
/// Weight moves between the pair of paths that gains most (Platt 1998). The rest of m C is a path of its own, number
/// k, without gradient, curvature or bound.
pub fn ascend(g: &[f64], gradient: &mut [f64], alpha: &mut [f64], c: f64, m: f64, tolerance: f64) -> Visit {
    let k = alpha.len();
    let mut left = (m * c - alpha.iter().sum::<f64>()).max(0.0);
    if left <= 1e-12 * m * c {
        left = 0.0;
    }
    let mut gain = Visit::default();
    for step in 0..MAX_STEPS_PER_PATH * k.max(1) {
        let (mut up, mut top) = (k, 0.0);
        let (mut down, mut low) = if left > 0.0 { (k, 0.0) } else { (k, f64::INFINITY) };
        for j in 0..k {
            if alpha[j] < c && gradient[j] > top {
                (up, top) = (j, gradient[j]);
            }
            if alpha[j] > 0.0 && gradient[j] < low {
                (down, low) = (j, gradient[j]);
            }
        }
        let violation = top - low;
        if step == 0 {
            gain.violation = violation.max(0.0);
        }
        if up == down || violation <= tolerance {
            break;
        }
        let at = |i: usize, j: usize| if i < k && j < k { g[i * k + j] } else { 0.0 };
        let curve = at(up, up) + at(down, down) - 2.0 * at(up, down);
        let available = if down == k { left } else { alpha[down] };
        let capacity = if up == k { f64::INFINITY } else { c - alpha[up] };
        let max_amount = available.min(capacity);
        let amount = if curve > 0.0 { max_amount.min(violation / curve) } else { max_amount };
        let x = if down == k { &mut left } else { &mut alpha[down] };
        *x = if amount == available { 0.0 } else { *x - amount };
        let x = if up == k { &mut left } else { &mut alpha[up] };
        *x = if amount == capacity { c } else { *x + amount };
        for (i, x) in gradient.iter_mut().enumerate() {
            *x -= amount * (at(i, up) - at(i, down));
        }
        gain.rise += amount * violation - 0.5 * curve.max(0.0) * amount * amount;
    }
    gain
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::system::shuffle::Generator;

    #[test]
    fn visits_converge_to_the_optimality_conditions() {
        let mut generator = Generator::new(5, 0, 0);
        let mut draw = || generator.below(2001) as f64 / 500.0 - 2.0;
        for round in 0..300 {
            let (k, n) = (1 + round % 6, 1 + round % 5);
            let mut d: Vec<Vec<f64>> = (0..k).map(|_| (0..n).map(|_| draw().round()).collect()).collect();
            if k > 2 {
                d[k - 1] = d[0].clone(); // dependent
                d[1].fill(0.0); // this path has the same features as gold
            }
            let b: Vec<f64> = (0..k).map(|_| 1.5 + draw().min(0.4)).collect();
            let mut g: Vec<f64> = Vec::new();
            for x in &d {
                g.extend(d.iter().map(|y| x.iter().zip(y).map(|(a, b)| a * b).sum::<f64>()));
            }
            for (c, m) in [(0.3, 1.0), (2.0, 1.0), (0.3, 2.0), (2.0, 3.0), (0.3, 50.0), (2.0, 50.0)] {
                let mut alpha = vec![0.0; k];
                let mut gradient = b.clone();
                let value = |a: &[f64]| {
                    let ga: Vec<f64> = (0..k).map(|i| (0..k).map(|j| g[i * k + j] * a[j]).sum()).collect();
                    a.iter().zip(&b).zip(&ga).map(|((a, b), ga)| a * b - 0.5 * a * ga).sum::<f64>()
                };
                let mut before = 0.0;
                for _ in 0..2000 {
                    let last = ascend(&g, &mut gradient, &mut alpha, c, m, 1e-9);
                    let after = value(&alpha);
                    assert!((after - before - last.rise).abs() < 1e-9 && last.rise >= 0.0);
                    before = after;
                    if last.violation <= 1e-8 {
                        break;
                    }
                }
                let used: f64 = alpha.iter().sum();
                // The price of the sum, if that is used up: the largest gradient of the paths below C.
                let is_below_c = |j: &usize| alpha[*j] < c;
                let price = match used >= m * c - 1e-9 {
                    true => (0..k).filter(is_below_c).map(|j| gradient[j]).fold(0.0, f64::max),
                    false => 0.0,
                };
                for j in 0..k {
                    let expected = b[j] - (0..k).map(|i| g[j * k + i] * alpha[i]).sum::<f64>();
                    assert!((gradient[j] - expected).abs() < 1e-7);
                    assert!(alpha[j] >= 0.0 && alpha[j] <= c);
                    assert!(alpha[j] >= c || gradient[j] <= price + 1e-6, "{round} {c} {m} {gradient:?} {alpha:?}");
                    assert!(alpha[j] <= 1e-9 || gradient[j] >= price - 1e-6, "{round} {gradient:?} {alpha:?}");
                }
                assert!(used <= m * c + 1e-9);
            }
        }
    }
}
