//! The small quadratic program of k-best MIRA: max b.tau - 1/2 tau' G tau, tau >= 0, and sum tau <= C where C is given.
//!
//! G is the Gram matrix of the feature differences, k by k. Accuracy: no coordinate can gain more than `TOLERANCE`
//! times max(1, max |b|) per unit of step (the optimality conditions hold to that).

use crate::machine::stop;

/// Largest violation of the optimality conditions that is accepted, relative to max(1, max |b|).
pub const TOLERANCE: f64 = 1e-6;
/// Sweeps or pair steps after which the solution so far is taken.
const MOST: usize = 10_000;
/// Pivots of a Cholesky factor, relative to the diagonal of G, up to which a difference depends on those before it.
const DEPENDENT: f64 = 1e-12;
/// Rows of G between two looks whether the call is to stop.
const LOOK: usize = 64;

/// `tau` [k] receives the solution. Coordinates without curvature (a difference of no feature) stay 0.
pub fn solve(g: &[f64], b: &[f64], limit: Option<f64>, tau: &mut Vec<f64>) {
    tau.clear();
    tau.resize(b.len(), 0.0);
    let scale = b.iter().fold(1.0f64, |m, x| m.max(x.abs()));
    let done = hildreth(g, b, tau, TOLERANCE * scale);
    if let Some(c) = limit {
        if !done || tau.iter().sum::<f64>() > c {
            tau.fill(0.0);
            pairs(g, b, c, tau, TOLERANCE * scale);
        }
    }
}

/// Hildreth 1957: one coordinate after the other to its optimum, cut at 0. Eight sweeps find the positive coordinates of
/// most programs; `active_set` completes them, because sweeps converge slowly along nearly parallel differences. False if
/// neither settles, as with constraints that contradict each other: then sum tau_j d_j stays bounded, but no tau does.
fn hildreth(g: &[f64], b: &[f64], tau: &mut [f64], tolerance: f64) -> bool {
    let k = b.len();
    for sweep in 0..MOST {
        let mut worst = 0.0f64;
        for j in 0..k {
            if j % LOOK == 0 {
                stop::look();
            }
            let curve = g[j * k + j];
            if curve <= 0.0 {
                continue;
            }
            let gain = b[j] - dot(&g[j * k..(j + 1) * k], tau);
            let new = (tau[j] + gain / curve).max(0.0);
            worst = worst.max((new - tau[j]).abs() * curve);
            tau[j] = new;
        }
        // The last steps of the sweep moved the gains of the first coordinates.
        if worst <= tolerance && (0..k).all(|j| is_optimal(g, b, tau, j, tolerance)) {
            return true;
        }
        if (sweep + 1).is_power_of_two() && sweep >= 7 && active_set(g, b, tau, tolerance) {
            return true;
        }
    }
    false
}

fn gain(g: &[f64], b: &[f64], tau: &[f64], j: usize) -> f64 {
    let k = b.len();
    b[j] - dot(&g[j * k..(j + 1) * k], tau)
}

/// Whether coordinate j meets the optimality conditions of tau >= 0.
fn is_optimal(g: &[f64], b: &[f64], tau: &[f64], j: usize, tolerance: f64) -> bool {
    let gain = gain(g, b, tau, j);
    g[j * b.len() + j] <= 0.0 || gain <= tolerance && (tau[j] == 0.0 || gain >= -tolerance)
}

/// Active-set method (Lawson & Hanson 1974, chapter 23) from a feasible tau: the optimum over the positive coordinates,
/// then the coordinate that gains most joins them. Every step keeps tau feasible and never decreases the objective.
///
/// Dependent differences leave their block of G without an inverse. A null vector z of it (sum z_j d_j = 0) moves tau at a
/// constant rate b.z, so one of the coordinates can be moved to 0. If none of them decreases, z >= 0 with b.z > 0 proves
/// that no point meets all constraints (Farkas).
///
/// True if `tau` is the optimum; else `tau` is feasible, and at least as good as it was.
fn active_set(g: &[f64], b: &[f64], tau: &mut [f64], tolerance: f64) -> bool {
    let k = b.len();
    let mut active: Vec<usize> = (0..k).filter(|&j| tau[j] > 0.0).collect();
    for _ in 0..8 * k + 8 {
        let (direction, most) = match stationary(g, b, &active) {
            Ok(x) => (active.iter().zip(&x).map(|(&j, x)| x - tau[j]).collect(), 1.0),
            Err(mut z) => {
                let rate: f64 = active.iter().zip(&z).map(|(&j, z)| b[j] * z).sum();
                if rate < 0.0 {
                    z.iter_mut().for_each(|z| *z = -*z);
                }
                if z.iter().all(|&z| z >= 0.0) {
                    if rate > tolerance {
                        return false;
                    }
                    z.iter_mut().for_each(|z| *z = -*z);
                }
                (z, f64::INFINITY)
            }
        };
        let step = reach(&active, tau, &direction).min(most);
        for (&j, d) in active.iter().zip(&direction) {
            let emptied = *d < 0.0 && -tau[j] / d <= step;
            tau[j] = if emptied { 0.0 } else { tau[j] + step * d };
        }
        let before = active.len();
        active.retain(|&j| tau[j] > 0.0);
        stop::look();
        if active.len() < before {
            continue;
        }
        let outside = (0..k).filter(|&j| tau[j] == 0.0 && g[j * k + j] > 0.0);
        match outside.map(|j| (gain(g, b, tau, j), j)).max_by(|x, y| x.0.total_cmp(&y.0)) {
            Some((most, j)) if most > tolerance => active.push(j),
            _ => return (0..k).all(|j| is_optimal(g, b, tau, j, tolerance)),
        }
    }
    false
}

/// The longest step along `direction` that keeps the active coordinates of tau >= 0.
fn reach(active: &[usize], tau: &[f64], direction: &[f64]) -> f64 {
    let falling = active.iter().zip(direction).filter(|(_, &d)| d < 0.0);
    falling.map(|(&j, d)| -tau[j] / d).fold(f64::INFINITY, f64::min)
}

/// The stationary point of the objective over the active coordinates, or a null vector of their block of G.
fn stationary(g: &[f64], b: &[f64], active: &[usize]) -> Result<Vec<f64>, Vec<f64>> {
    let (k, n) = (b.len(), active.len());
    // Cholesky factor of the block, by rows.
    let mut c = vec![0.0; n * n];
    let mut x = vec![0.0; n];
    for i in 0..n {
        if i >= LOOK {
            stop::look();
        }
        for j in 0..i {
            let sum = g[active[i] * k + active[j]] - dot(&c[i * n..i * n + j], &c[j * n..j * n + j]);
            c[i * n + j] = sum / c[j * n + j];
        }
        let row = &c[i * n..i * n + i];
        let whole = g[active[i] * k + active[i]];
        let pivot = whole - dot(row, row);
        if pivot <= DEPENDENT * whole {
            // d_i = sum_j a_j d_j with C' a = row i of the factor.
            let mut z: Vec<f64> = row.iter().map(|x| -x).collect();
            back(&c, n, &mut z);
            z.push(1.0);
            z.resize(n, 0.0);
            return Err(z);
        }
        c[i * n + i] = pivot.sqrt();
        x[i] = (b[active[i]] - dot(&c[i * n..i * n + i], &x[..i])) / c[i * n + i];
    }
    back(&c, n, &mut x);
    Ok(x)
}

/// Solve C' x = y in place, C the leading block of a lower triangular matrix with rows of n entries.
fn back(c: &[f64], n: usize, x: &mut [f64]) {
    for i in (0..x.len()).rev() {
        let sum: f64 = (i + 1..x.len()).map(|j| c[j * n + i] * x[j]).sum();
        x[i] = (x[i] - sum) / c[i * n + i];
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

/// With sum tau <= C: move weight between the pair of coordinates that gains most; what is left of C is a coordinate of
/// its own (number k), without gradient or curvature.
fn pairs(g: &[f64], b: &[f64], c: f64, tau: &mut [f64], tolerance: f64) {
    let k = b.len();
    let mut left = c;
    let mut gain: Vec<f64> = b.to_vec();
    gain.push(0.0);
    let at = |i: usize, j: usize| if i < k && j < k { g[i * k + j] } else { 0.0 };
    for _ in 0..MOST.saturating_mul(k) {
        stop::look();
        let usable = |j: usize| j == k || at(j, j) > 0.0;
        let (mut up, mut down) = (k, None::<usize>);
        for j in (0..=k).filter(|&j| usable(j)) {
            if gain[j] > gain[up] {
                up = j;
            }
            let held = if j == k { left } else { tau[j] };
            if held > 0.0 && down.is_none_or(|d| gain[j] < gain[d]) {
                down = Some(j);
            }
        }
        let Some(down) = down else { return };
        let rise = gain[up] - gain[down];
        if rise <= tolerance {
            return;
        }
        let curve = at(up, up) + at(down, down) - 2.0 * at(up, down);
        let held = if down == k { left } else { tau[down] };
        let step = if curve > 0.0 { held.min(rise / curve) } else { held };
        for (j, amount) in [(up, step), (down, -step)] {
            let x = if j == k { &mut left } else { &mut tau[j] };
            *x = if amount == -held { 0.0 } else { *x + amount };
            for (i, gain) in gain.iter_mut().enumerate() {
                *gain -= amount * at(i, j);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn solutions_meet_the_optimality_conditions() {
        let mut state = 11u64;
        let mut draw = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((state >> 33) % 2001) as f64 / 500.0 - 2.0
        };
        for round in 0..500 {
            let (k, n) = (1 + round % 7, 1 + round % 5);
            // Few dimensions and repeated rows: dependent and identical differences.
            let mut d: Vec<Vec<f64>> = (0..k).map(|_| (0..n).map(|_| draw().round()).collect()).collect();
            if k > 2 {
                d[k - 1] = d[0].clone();
            }
            let b: Vec<f64> = (0..k).map(|_| draw()).collect();
            let mut g: Vec<f64> = Vec::new();
            for x in &d {
                g.extend(d.iter().map(|y| x.iter().zip(y).map(|(a, b)| a * b).sum::<f64>()));
            }
            // Without a limit contradicting constraints make the program unbounded: feasible ones only.
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
