//! The small quadratic program of k-best MIRA: max b.tau - 1/2 tau' G tau, tau >= 0, and sum tau <= C where C is given.
//!
//! G is the Gram matrix of the feature differences, k by k. Accuracy: no coordinate can gain more than `TOLERANCE`
//! times max(1, max |b|) per unit of step (the optimality conditions hold to that).

use crate::machine::stop;

/// Largest violation of the optimality conditions that is accepted, relative to max(1, max |b|).
pub const TOLERANCE: f64 = 1e-6;
/// Sweeps or pair steps after which the solution so far is taken.
const MOST: usize = 10_000;
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

/// Hildreth 1957: one coordinate after the other to its optimum, cut at 0. False where that does not settle, as with
/// constraints that contradict each other: then sum tau_j d_j stays bounded, but no tau does.
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
        if worst <= tolerance || (sweep % 8 == 7 && polish(g, b, tau, tolerance)) {
            return true;
        }
    }
    false
}

/// Solve exactly for the positive coordinates. True, and `tau` replaced, where that is the optimum.
fn polish(g: &[f64], b: &[f64], tau: &mut [f64], tolerance: f64) -> bool {
    let k = b.len();
    let active: Vec<usize> = (0..k).filter(|&j| tau[j] > 0.0).collect();
    let n = active.len();
    // Cholesky factor of the active block, by rows.
    let mut c = vec![0.0; n * n];
    let mut x = vec![0.0; n];
    for i in 0..n {
        if i >= LOOK {
            stop::look();
        }
        for j in 0..=i {
            let sum = g[active[i] * k + active[j]] - dot(&c[i * n..i * n + j], &c[j * n..j * n + j]);
            if i == j {
                if sum <= 1e-9 * g[active[i] * k + active[i]] {
                    return false; // dependent differences: leave it to the sweeps
                }
                c[i * n + i] = sum.sqrt();
            } else {
                c[i * n + j] = sum / c[j * n + j];
            }
        }
        x[i] = (b[active[i]] - dot(&c[i * n..i * n + i], &x[..i])) / c[i * n + i];
    }
    for i in (0..n).rev() {
        let sum: f64 = (i + 1..n).map(|j| c[j * n + i] * x[j]).sum();
        x[i] = (x[i] - sum) / c[i * n + i];
    }
    if x.iter().any(|&v| v < 0.0) {
        return false;
    }
    let mut whole = vec![0.0; k];
    for (&j, &v) in active.iter().zip(&x) {
        whole[j] = v;
    }
    let optimal = (0..k).all(|j| {
        let gain = b[j] - dot(&g[j * k..(j + 1) * k], &whole);
        g[j * k + j] <= 0.0 || gain <= tolerance && (whole[j] == 0.0 || gain >= -tolerance)
    });
    if optimal {
        tau.copy_from_slice(&whole);
    }
    optimal
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
