//! The quadratic program of one sentence, from where its alphas are.
//!
//! ```text
//! max  b.alpha - 1/2 alpha' G alpha     alpha >= 0,  sum alpha <= C   (one slack a sentence)
//!                                       0 <= alpha_j <= C             (one slack a path)
//! ```
//!
//! What is kept is the gradient b - G alpha, so that the rest of the corpus needs not be known. G is a Gram matrix. A
//! path that no feature tells from gold has a row of zeros: its gradient is its bound, and all of C goes to it.

/// Steps for each path of a block, at most: a visit need not be exact, the next one goes on from there.
const MOST: usize = 20;

/// What one visit did.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Visit {
    /// The dual rose by this much.
    pub rise: f64,
    /// Largest violation of the optimality conditions before the visit.
    pub violation: f64,
}

/// Moves `alpha` [k] towards the optimum until no step promises more than `tolerance` per unit; `gradient` [k] follows.
pub fn ascend(g: &[f64], gradient: &mut [f64], alpha: &mut [f64], c: f64, shared: bool, tolerance: f64) -> Visit {
    match shared {
        true => pairs(g, gradient, alpha, c, tolerance),
        false => boxes(g, gradient, alpha, c, tolerance),
    }
}

/// One slack a sentence: weight moves between the pair of paths that gains most (Platt 1998); what is left of C is a
/// path of its own, number k, without gradient or curvature.
fn pairs(g: &[f64], gradient: &mut [f64], alpha: &mut [f64], c: f64, tolerance: f64) -> Visit {
    let k = alpha.len();
    let mut left = (c - alpha.iter().sum::<f64>()).max(0.0);
    if left <= 1e-12 * c {
        left = 0.0;
    }
    let mut gain = Visit::default();
    for step in 0..MOST * k.max(1) {
        let (mut up, mut top) = (k, 0.0);
        let (mut down, mut low) = if left > 0.0 { (k, 0.0) } else { (k, f64::INFINITY) };
        for j in 0..k {
            if gradient[j] > top {
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
        let held = if down == k { left } else { alpha[down] };
        let amount = if curve > 0.0 { held.min(violation / curve) } else { held };
        for (j, sign) in [(up, 1.0), (down, -1.0)] {
            let x = if j == k { &mut left } else { &mut alpha[j] };
            *x = if sign < 0.0 && amount == held { 0.0 } else { *x + sign * amount };
        }
        for (i, x) in gradient.iter_mut().enumerate() {
            *x -= amount * (at(i, up) - at(i, down));
        }
        gain.rise += amount * violation - 0.5 * curve.max(0.0) * amount * amount;
    }
    gain
}

/// One slack a path: each alpha to its optimum in turn (Hildreth 1957).
fn boxes(g: &[f64], gradient: &mut [f64], alpha: &mut [f64], c: f64, tolerance: f64) -> Visit {
    let k = alpha.len();
    let mut gain = Visit::default();
    for sweep in 0..MOST {
        let mut worst = 0.0f64;
        for j in 0..k {
            let (slope, curve) = (gradient[j], g[j * k + j]);
            let room = if slope > 0.0 { c - alpha[j] } else { alpha[j] };
            if room <= 0.0 || slope == 0.0 {
                continue;
            }
            worst = worst.max(slope.abs());
            let size = if curve > 0.0 { room.min(slope.abs() / curve) } else { room };
            let amount = size.copysign(slope);
            alpha[j] = match (size == room, slope > 0.0) {
                (true, true) => c,
                (true, false) => 0.0,
                _ => alpha[j] + amount,
            };
            for (x, &row) in gradient.iter_mut().zip(&g[j * k..(j + 1) * k]) {
                *x -= amount * row;
            }
            gain.rise += amount * slope - 0.5 * curve * amount * amount;
        }
        if sweep == 0 {
            gain.violation = worst;
        }
        if worst <= tolerance {
            break;
        }
    }
    gain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn visits_lead_to_the_optimality_conditions() {
        let mut state = 5u64;
        let mut draw = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((state >> 33) % 2001) as f64 / 500.0 - 2.0
        };
        for round in 0..300 {
            let (k, n) = (1 + round % 6, 1 + round % 5);
            let mut d: Vec<Vec<f64>> = (0..k).map(|_| (0..n).map(|_| draw().round()).collect()).collect();
            if k > 2 {
                d[k - 1] = d[0].clone(); // dependent
                d[1].fill(0.0); // no feature tells this path from gold
            }
            let b: Vec<f64> = (0..k).map(|_| 1.5 + draw().min(0.4)).collect();
            let mut g: Vec<f64> = Vec::new();
            for x in &d {
                g.extend(d.iter().map(|y| x.iter().zip(y).map(|(a, b)| a * b).sum::<f64>()));
            }
            for (c, shared) in [(0.3, true), (2.0, true), (0.3, false), (2.0, false)] {
                let mut alpha = vec![0.0; k];
                let mut gradient = b.clone();
                let value = |a: &[f64]| {
                    let ga: Vec<f64> = (0..k).map(|i| (0..k).map(|j| g[i * k + j] * a[j]).sum()).collect();
                    a.iter().zip(&b).zip(&ga).map(|((a, b), ga)| a * b - 0.5 * a * ga).sum::<f64>()
                };
                let (mut before, mut last) = (0.0, Visit::default());
                for _ in 0..2000 {
                    last = ascend(&g, &mut gradient, &mut alpha, c, shared, 1e-9);
                    let after = value(&alpha);
                    assert!((after - before - last.rise).abs() < 1e-9 && last.rise >= 0.0);
                    before = after;
                    if last.violation <= 1e-8 {
                        break;
                    }
                }
                assert!(shared || last.violation >= 0.0);
                let used: f64 = alpha.iter().sum();
                for j in 0..k {
                    let want = b[j] - (0..k).map(|i| g[j * k + i] * alpha[i]).sum::<f64>();
                    assert!((gradient[j] - want).abs() < 1e-7);
                    assert!(alpha[j] >= 0.0 && alpha[j] <= c);
                    let price = match shared {
                        true if used >= c - 1e-9 => gradient.iter().copied().fold(0.0, f64::max),
                        true => 0.0,
                        false if alpha[j] >= c => gradient[j].max(0.0),
                        false => 0.0,
                    };
                    assert!(gradient[j] <= price + 1e-6, "{round} {c} {shared} {gradient:?} {alpha:?}");
                    assert!(alpha[j] <= 1e-9 || gradient[j] >= price - 1e-6, "{round} {gradient:?} {alpha:?}");
                }
                assert!(!shared || used <= c + 1e-9);
            }
        }
    }
}
