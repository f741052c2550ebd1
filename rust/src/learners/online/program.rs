//! The small quadratic program of k-best MIRA: max b.tau - 1/2 tau' G tau, tau >= 0, and sum tau <= C if there is a C.
//!
//! G is the Gram matrix of the feature differences, k by k. Accuracy: no coordinate can gain more than `TOLERANCE`
//! times max(1, max |b|) per unit of step (the optimality conditions hold to that).

use crate::machine::system::stop;

/// Largest violation of the optimality conditions that is accepted, relative to max(1, max |b|).
pub const TOLERANCE: f64 = 1e-6;
/// Maximum number of sweeps or pair steps, after which the current solution is used.
const MAX_SWEEPS: usize = 10_000;
/// Pivots of a Cholesky factor, relative to the diagonal of G, below which a difference depends on those before it.
const DEPENDENT: f64 = 1e-14;
/// Number of rows of G between two checks for a stop.
const CHECK_INTERVAL: usize = 64;

/// `tau` [k] receives the solution. Coordinates without curvature (a difference of no feature) stay 0.
pub fn solve(g: &[f64], b: &[f64], limit: Option<f64>, tau: &mut Vec<f64>) {
    tau.clear();
    tau.resize(b.len(), 0.0);
    let scale = b.iter().fold(1.0f64, |m, x| m.max(x.abs()));
    let done = hildreth(g, b, tau, TOLERANCE * scale, limit.is_some());
    if let Some(c) = limit {
        if !done || tau.iter().sum::<f64>() > c {
            tau.fill(0.0);
            pairs(g, b, c, tau, TOLERANCE * scale);
        }
    }
}

/// Hildreth 1957: move one coordinate after the other to its optimum, cut at 0. Eight sweeps find the positive
/// coordinates of most programs. `active_set` completes them, because sweeps converge slowly along nearly parallel
/// differences. Return false if neither converges, as with contradictory constraints: then sum tau_j d_j stays
/// bounded, but no tau does. `stop_early`: return as soon as `active_set` fails.
fn hildreth(g: &[f64], b: &[f64], tau: &mut [f64], tolerance: f64, stop_early: bool) -> bool {
    let k = b.len();
    for sweep in 0..MAX_SWEEPS {
        let mut worst = 0.0f64;
        for j in 0..k {
            if j % CHECK_INTERVAL == 0 {
                stop::check();
            }
            let curve = g[j * k + j];
            if curve <= 0.0 {
                continue;
            }
            let new = (tau[j] + gain(g, b, tau, j) / curve).max(0.0);
            worst = worst.max((new - tau[j]).abs() * curve);
            tau[j] = new;
        }
        // The later steps of the sweep moved the gains of the coordinates before them.
        if worst <= tolerance && is_optimal(g, b, tau, 0.0, tolerance) {
            return true;
        }
        if (sweep + 1).is_power_of_two() && sweep >= 7 {
            if active_set(g, b, None, tau, tolerance) {
                return true;
            }
            if stop_early {
                return false;
            }
        }
    }
    false
}

/// With sum tau <= C: move weight between the pair of coordinates that gains most. The rest of C is a coordinate of
/// its own (number k), without gradient or curvature. `active_set` completes this as it does `hildreth`.
fn pairs(g: &[f64], b: &[f64], c: f64, tau: &mut [f64], tolerance: f64) {
    let k = b.len();
    let mut left = c;
    let mut gains: Vec<f64> = b.to_vec();
    gains.push(0.0);
    let at = |i: usize, j: usize| if i < k && j < k { g[i * k + j] } else { 0.0 };
    for iteration in 1..=MAX_SWEEPS.saturating_mul(k) {
        stop::check();
        let usable = |j: usize| j == k || at(j, j) > 0.0;
        let (mut up, mut down) = (k, None::<usize>);
        for j in (0..=k).filter(|&j| usable(j)) {
            if gains[j] > gains[up] {
                up = j;
            }
            let available = if j == k { left } else { tau[j] };
            if available > 0.0 && down.is_none_or(|d| gains[j] < gains[d]) {
                down = Some(j);
            }
        }
        let Some(down) = down else { return };
        let gain_difference = gains[up] - gains[down];
        if gain_difference <= tolerance {
            return;
        }
        let curve = at(up, up) + at(down, down) - 2.0 * at(up, down);
        let available = if down == k { left } else { tau[down] };
        let step = if curve > 0.0 { available.min(gain_difference / curve) } else { available };
        for (j, amount) in [(up, step), (down, -step)] {
            let x = if j == k { &mut left } else { &mut tau[j] };
            *x = if amount == -available { 0.0 } else { *x + amount };
            for (i, gain) in gains.iter_mut().enumerate() {
                *gain -= amount * at(i, j);
            }
        }
        if iteration.is_power_of_two() && iteration >= 8 * k {
            let scale = c / (c - left);
            let mut scaled: Vec<f64> = tau.iter().map(|t| t * scale).collect();
            if left < c && active_set(g, b, Some(c), &mut scaled, tolerance) {
                tau.copy_from_slice(&scaled);
                return;
            }
        }
    }
}

fn gain(g: &[f64], b: &[f64], tau: &[f64], j: usize) -> f64 {
    let k = b.len();
    b[j] - dot(&g[j * k..(j + 1) * k], tau)
}

/// Whether tau meets the optimality conditions: no coordinate gains more than the price of a unit of tau, the positive
/// ones gain no less.
fn is_optimal(g: &[f64], b: &[f64], tau: &[f64], price: f64, tolerance: f64) -> bool {
    (0..b.len()).filter(|j| g[j * b.len() + j] > 0.0).all(|j| {
        let over = gain(g, b, tau, j) - price;
        over <= tolerance && (tau[j] == 0.0 || over >= -tolerance)
    })
}

/// Active-set method (Lawson & Hanson 1974, chapter 23) from a feasible tau: the optimum over the positive coordinates,
/// then the coordinate that gains most joins them. Every step keeps tau feasible and never decreases the objective.
/// With a limit C, sum tau stays C, from which it must start.
///
/// Dependent differences leave their block of G without an inverse. A null vector z of it (sum z_j d_j = 0, and sum z_j
/// = 0 with a limit) moves tau at a constant rate b.z, so one of the coordinates can be moved to 0. If none of them
/// decreases, z >= 0 with b.z > 0 proves that no point meets all constraints (Farkas).
///
/// Return true if `tau` is the optimum. Otherwise `tau` is feasible, and at least as good as it was.
fn active_set(g: &[f64], b: &[f64], limit: Option<f64>, tau: &mut [f64], tolerance: f64) -> bool {
    let k = b.len();
    let mut active: Vec<usize> = (0..k).filter(|&j| tau[j] > 0.0).collect();
    for _ in 0..8 * k + 8 {
        stop::check();
        let (direction, longest) = match stationary(g, b, limit, &active) {
            Ok(x) => (active.iter().zip(&x).map(|(&j, x)| x - tau[j]).collect(), 1.0),
            Err(mut z) => {
                let rate: f64 = active.iter().zip(&z).map(|(&j, z)| b[j] * z).sum();
                let unbounded = z.iter().all(|z| z * rate >= 0.0);
                if unbounded && rate.abs() > tolerance {
                    return false;
                }
                if rate < 0.0 || unbounded {
                    z.iter_mut().for_each(|z| *z = -*z);
                }
                (z, f64::INFINITY)
            }
        };
        let decreasing = active.iter().zip(&direction).filter(|(_, &d)| d < 0.0);
        let step = decreasing.map(|(&j, d)| -tau[j] / d).fold(longest, f64::min);
        for (&j, &d) in active.iter().zip(&direction) {
            let is_emptied = d < 0.0 && -tau[j] / d <= step;
            tau[j] = if is_emptied { 0.0 } else { tau[j] + step * d };
        }
        let before = active.len();
        active.retain(|&j| tau[j] > 0.0);
        if active.len() < before {
            continue;
        }
        // All active coordinates gain the same at a stationary point.
        let price = match (limit, active.first()) {
            (Some(_), Some(&j)) => gain(g, b, tau, j),
            _ => 0.0,
        };
        let outside = (0..k).filter(|&j| tau[j] == 0.0 && g[j * k + j] > 0.0);
        match outside.map(|j| (gain(g, b, tau, j), j)).max_by(|x, y| x.0.total_cmp(&y.0)) {
            Some((most, j)) if most > price + tolerance => active.push(j),
            _ => return price >= -tolerance && is_optimal(g, b, tau, price, tolerance),
        }
    }
    false
}

/// The stationary point of the objective over the active coordinates, with sum tau = C if that is given, or a null
/// vector.
///
/// With a limit, m is added to every entry of G, which adds the constant m C^2 / 2 to the objective where sum tau = C.
/// The block can then be inverted even if it is singular itself, unless a null vector has the sum 0.
fn stationary(g: &[f64], b: &[f64], limit: Option<f64>, active: &[usize]) -> Result<Vec<f64>, Vec<f64>> {
    let (k, n) = (b.len(), active.len());
    let m = if limit.is_some() { active.iter().map(|j| g[j * k + j]).fold(0.0, f64::max) } else { 0.0 };
    // Cholesky factor of the block, by rows, and solutions for the right sides b and 1.
    let mut c = vec![0.0; n * n];
    let (mut x, mut ones) = (vec![0.0; n], vec![0.0; n]);
    for i in 0..n {
        if i >= CHECK_INTERVAL {
            stop::check();
        }
        for j in 0..i {
            let sum = g[active[i] * k + active[j]] + m - dot(&c[i * n..i * n + j], &c[j * n..j * n + j]);
            c[i * n + j] = sum / c[j * n + j];
        }
        let row = &c[i * n..i * n + i];
        let diagonal_entry = g[active[i] * k + active[i]] + m;
        let pivot = diagonal_entry - dot(row, row);
        if pivot <= DEPENDENT * diagonal_entry {
            // d_i = sum_j a_j d_j, where C' a is row i of the factor.
            let mut z: Vec<f64> = row.iter().map(|x| -x).collect();
            solve_transposed(&c, n, &mut z);
            z.push(1.0);
            z.resize(n, 0.0);
            return Err(z);
        }
        let diagonal = pivot.sqrt();
        x[i] = (b[active[i]] - dot(row, &x[..i])) / diagonal;
        ones[i] = (1.0 - dot(row, &ones[..i])) / diagonal;
        c[i * n + i] = diagonal;
    }
    solve_transposed(&c, n, &mut x);
    if let Some(limit) = limit {
        solve_transposed(&c, n, &mut ones);
        let excess = (x.iter().sum::<f64>() - limit) / ones.iter().sum::<f64>();
        x.iter_mut().zip(&ones).for_each(|(x, one)| *x -= excess * one);
    }
    Ok(x)
}

/// Solve C' x = y in place, C the leading block of a lower triangular matrix with rows of n entries.
fn solve_transposed(c: &[f64], n: usize, x: &mut [f64]) {
    for i in (0..x.len()).rev() {
        let sum: f64 = (i + 1..x.len()).map(|j| c[j * n + i] * x[j]).sum();
        x[i] = (x[i] - sum) / c[i * n + i];
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::system::shuffle::Generator;

    #[test]
    fn solutions_satisfy_the_optimality_conditions() {
        let mut generator = Generator::new(11, 0, 0);
        let mut draw = || generator.below(2001) as f64 / 500.0 - 2.0;
        for round in 0..500 {
            let (k, n) = (1 + round % 7, 1 + round % 5);
            // Few dimensions and repeated rows: dependent and identical differences.
            let mut d: Vec<Vec<f64>> = (0..k).map(|_| (0..n).map(|_| draw().round()).collect()).collect();
            if k > 2 {
                d[k - 1] = d[0].clone();
            }
            if round % 3 == 0 && k > 3 {
                d[1] = d[0].iter().enumerate().map(|(i, x)| if i == 0 { x / 64.0 - x } else { -x }).collect();
            }
            let b: Vec<f64> = (0..k).map(|_| draw()).collect();
            let mut g: Vec<f64> = Vec::new();
            for x in &d {
                g.extend(d.iter().map(|y| x.iter().zip(y).map(|(a, b)| a * b).sum::<f64>()));
            }
            // Without a limit contradictory constraints make the program unbounded, so only feasible ones are drawn.
            let w: Vec<f64> = (0..n).map(|_| draw()).collect();
            let reachable: Vec<f64> =
                d.iter().zip(&b).map(|(x, &b)| b.min(x.iter().zip(&w).map(|(a, b)| a * b).sum())).collect();
            for (b, limit) in [(&reachable, None), (&b, Some(0.7)), (&b, Some(3.0))] {
                let mut tau = Vec::new();
                solve(&g, b, limit, &mut tau);
                let gain: Vec<f64> = (0..k).map(|j| b[j] - dot(&g[j * k..(j + 1) * k], &tau)).collect();
                let free = (0..k).filter(|&j| g[j * k + j] > 0.0);
                let used: f64 = tau.iter().sum();
                let price = match limit {
                    Some(c) if used >= c - 1e-9 => free.clone().map(|j| gain[j]).fold(0.0, f64::max),
                    _ => 0.0,
                };
                assert!(limit.is_none_or(|c| used <= c + 1e-9));
                for j in free {
                    assert!(tau[j] >= 0.0 && gain[j] <= price + 1e-5, "{round} {limit:?} {gain:?} {tau:?}");
                    assert!(tau[j] <= 1e-9 || gain[j] >= price - 1e-5, "{round} {limit:?} {gain:?} {tau:?}");
                }
            }
        }
    }
}
