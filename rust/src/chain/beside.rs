//! Sums over the paths of one sentence with the labels side by side in vector registers: what a learner needs whose weights
//! change after each sentence. (`lanes` puts sixteen sentences side by side, under the same weights.)
//!
//! The equations are those of `lanes`, in float32 and scaled at every position; a row of the matrix M is `width` lanes.

use crate::chain::edges::MAX_RANGE;
use crate::machine::find::Find;
use crate::machine::simd::{Lane, WIDTH};

/// A scale under this leaves the sentence undone.
const TINY: f32 = 1e-30;
/// Positions after which the logarithm of the product of scales is taken: TINY^8 is still a double.
const TAKE_EVERY: usize = 8;
/// Rows that are multiplied at a time, in sums that do not wait for each other.
const CHAINS: usize = 4;

/// Factors exp(A - max) of the edge scores, by rows and by columns; rows behind the last label are 0.
#[derive(Clone, Default)]
pub struct Moves {
    labels: usize,
    width: usize,
    rows: Vec<Lane>,    // [L padded to 16, width] along the label that follows
    columns: Vec<Lane>, // [L padded to 16, width] along the label before
    pub max: f32,
}

impl Moves {
    pub fn new(labels: usize) -> Moves {
        let width = labels.div_ceil(WIDTH);
        let zeros = vec![Lane::ZERO; width * WIDTH * width];
        Moves { labels, width, rows: zeros.clone(), columns: zeros, max: 0.0 }
    }

    /// The factors of scores [L, width], -infinity where there is no edge or no label. False where their span is beyond
    /// float32.
    ///
    /// # Safety
    /// The machine has the instructions of `S`.
    #[inline(always)]
    pub(crate) unsafe fn set<S: Find>(&mut self, scores: &[Lane]) -> bool {
        debug_assert!(scores.len() == self.labels * self.width);
        let (none, big) = (S::splat(f32::NEG_INFINITY), S::splat(f32::MAX));
        let (mut top, mut low) = (none, big);
        for row in scores {
            let x = S::load(row);
            top = S::max(x, top);
            low = S::min(S::select_gt(x, none, x, big), low);
        }
        let mut lowest = Lane::ZERO;
        S::store(low, &mut lowest);
        let lowest = lowest.0.iter().copied().fold(f32::MAX, f32::min);
        self.max = S::largest(top);
        let span = self.max - lowest;
        if !self.max.is_finite() || span.partial_cmp(&MAX_RANGE) == Some(std::cmp::Ordering::Greater) || span.is_nan() {
            return false;
        }
        let max = S::splat(self.max);
        for (to, row) in self.rows.iter_mut().zip(scores) {
            S::store(S::exp_neg(S::sub(S::load(row), max)), to);
        }
        let (mut tile, mut turned) = ([Lane::ZERO; WIDTH], [Lane::ZERO; WIDTH]);
        for i in 0..self.width {
            for j in 0..self.width {
                for k in 0..WIDTH {
                    tile[k] = self.rows[(i * WIDTH + k) * self.width + j];
                }
                S::transpose(&tile, &mut turned);
                for k in 0..WIDTH {
                    self.columns[(j * WIDTH + k) * self.width + i] = turned[k];
                }
            }
        }
        true
    }

    /// log M of all edges [L, padded L]: the scores, less their maximum, that the recursions really use, rounded as M is.
    pub fn logs(&self) -> Vec<f64> {
        self.rows[..self.labels * self.width].iter().flat_map(|row| row.0).map(|m| f64::from(m).ln()).collect()
    }
}

/// sum_y from(y) rows[y, v..v + W].
///
/// # Safety
/// The machine has the instructions of `S`; `rows` is [L padded to 16, width], `from` the labels of `width` lanes, v + W <= width.
#[inline(always)]
unsafe fn product<S: Find, const W: usize>(
    rows: &[Lane],
    labels: usize,
    width: usize,
    from: &[Lane],
    v: usize,
) -> [S::F; W] {
    debug_assert!(rows.len() == width * WIDTH * width && from.len() == width && v + W <= width);
    let mut sums = [[S::splat(0.0); W]; CHAINS];
    let (mut row, mut x) = (rows.as_ptr().add(v), from.as_ptr().cast::<f32>());
    for _ in 0..labels.div_ceil(CHAINS) {
        for sum in &mut sums {
            let a = S::splat(*x);
            for (j, s) in sum.iter_mut().enumerate() {
                *s = S::fma(a, S::load(&*row.add(j)), *s);
            }
            (row, x) = (row.wrapping_add(width), x.add(1));
        }
    }
    std::array::from_fn(|j| S::add(S::add(sums[0][j], sums[1][j]), S::add(sums[2][j], sums[3][j])))
}

/// All lanes of the product, in blocks that fit into registers.
///
/// # Safety
/// As for `product`; `out` is `width` lanes.
#[inline(always)]
unsafe fn products<S: Find>(rows: &[Lane], labels: usize, width: usize, from: &[Lane], out: &mut [Lane]) {
    let mut v = 0;
    macro_rules! block {
        ($W:literal) => {
            for (to, x) in out[v..].iter_mut().zip(product::<S, $W>(rows, labels, width, from, v)) {
                S::store(x, to);
            }
        };
    }
    while v < width {
        match width - v {
            1 => block!(1),
            2 => block!(2),
            3 => block!(3),
            _ => block!(4),
        }
        v += 4;
    }
}

/// x / y into `out`, 0 where y is 0.
///
/// # Safety
/// The machine has the instructions of `S`; all are of one length.
#[inline(always)]
unsafe fn divide<S: Find>(x: &[Lane], y: &[Lane], out: &mut [Lane]) {
    let zero = S::splat(0.0);
    for ((x, y), out) in x.iter().zip(y).zip(out) {
        let y = S::load(y);
        S::store(S::select_gt(y, zero, S::div(S::load(x), y), zero), out);
    }
}

/// sum p log x over the places where both are positive.
fn plogp(p: &[Lane], x: &[Lane]) -> f64 {
    let of = |(&p, &x): (&f32, &f32)| if p > 0.0 && x > 0.0 { f64::from(p) * f64::from(x).ln() } else { 0.0 };
    p.iter().zip(x).map(|(p, x)| p.0.iter().zip(&x.0).map(of).sum::<f64>()).sum()
}

/// Scratch of one thread; grows to the longest sentence seen.
#[derive(Default)]
pub struct Beside {
    pub node: Vec<Lane>, // [T, width] scores, -infinity behind the last label
    psi: Vec<Lane>,
    alpha: Vec<Lane>,
    gamma: Vec<Lane>,
    beta: Vec<Lane>, // [width]
    inverse: Vec<f32>,
    pub p: Vec<Lane>,     // [T, width] marginals
    row: Vec<Lane>,       // [width]
    pub pairs: Vec<Lane>, // [L, width] their sums over pairs of neighbours
}

impl Beside {
    /// Room for a sentence of n tokens.
    pub fn reserve(&mut self, n: usize, labels: usize) {
        let width = labels.div_ceil(WIDTH);
        if self.node.len() < n * width || self.beta.len() < width {
            for v in [&mut self.node, &mut self.psi, &mut self.alpha, &mut self.gamma, &mut self.p] {
                v.resize(n * width, Lane::ZERO);
            }
            self.inverse.resize(n, 0.0);
            self.beta.resize(width, Lane::ZERO);
            self.row.resize(width, Lane::ZERO);
            self.pairs.resize(labels * width, Lane::ZERO);
        }
    }

    /// log Z of the node scores, or None where a scale is too small for float32.
    ///
    /// # Safety
    /// The machine has the instructions of `S`; room is made for n tokens.
    #[inline(always)]
    pub(crate) unsafe fn forward<S: Find>(&mut self, moves: &Moves, n: usize) -> Option<f64> {
        let (l, width) = (moves.labels, moves.width);
        debug_assert!(self.node.len() >= n * width);
        let (mut log_z, mut scales) = (n.saturating_sub(1) as f64 * f64::from(moves.max), 1.0f64);
        for t in 0..n {
            let (here, next) = (t * width, (t + 1) * width);
            let mut top = S::load(&self.node[here]);
            for x in &self.node[here + 1..next] {
                top = S::max(top, S::load(x));
            }
            let most = S::largest(top);
            let top = S::splat(most);
            for (s, psi) in self.node[here..next].iter().zip(&mut self.psi[here..next]) {
                S::store(S::exp_neg(S::sub(S::load(s), top)), psi);
            }
            let (before, alpha) = self.alpha.split_at_mut(here);
            let alpha = &mut alpha[..width];
            if t == 0 {
                alpha.copy_from_slice(&self.psi[..width]);
            } else {
                products::<S>(&moves.rows, l, width, &before[here - width..], alpha);
            }
            let mut c = S::splat(0.0);
            for (a, psi) in alpha.iter_mut().zip(&self.psi[here..next]) {
                let x = if t == 0 { S::load(psi) } else { S::mul(S::load(a), S::load(psi)) };
                c = S::add(c, x);
                S::store(x, a);
            }
            let c = S::total(c);
            if c.partial_cmp(&TINY) != Some(std::cmp::Ordering::Greater) || !most.is_finite() {
                return None;
            }
            let inverse = 1.0 / c;
            self.inverse[t] = inverse;
            for a in alpha {
                S::store(S::mul(S::load(a), S::splat(inverse)), a);
            }
            log_z += f64::from(most);
            scales *= f64::from(inverse);
            if t % TAKE_EVERY == TAKE_EVERY - 1 {
                log_z -= scales.ln();
                scales = 1.0;
            }
        }
        log_z -= scales.ln();
        log_z.is_finite().then_some(log_z)
    }

    /// Marginals of nodes and sums of those of pairs, behind `forward`.
    ///
    /// # Safety
    /// As for `forward`, which was called for these moves.
    #[inline(always)]
    pub(crate) unsafe fn backward<S: Find>(&mut self, moves: &Moves, n: usize) {
        let (l, width) = (moves.labels, moves.width);
        let zero = S::splat(0.0);
        for t in (0..n).rev() {
            let (here, next) = (t * width, (t + 1) * width);
            if t + 1 == n {
                self.beta.fill(Lane([1.0; WIDTH]));
            } else {
                products::<S>(&moves.columns, l, width, &self.gamma[next..next + width], &mut self.beta);
            }
            let mut sum = zero;
            for j in 0..width {
                let p = S::mul(S::load(&self.alpha[here + j]), S::load(&self.beta[j]));
                sum = S::add(sum, p);
                S::store(p, &mut self.p[here + j]);
            }
            // What rounding took from beta, which adds up over a long sentence, is given back.
            let back = S::splat(1.0 / S::total(sum));
            let inverse = S::mul(back, S::splat(self.inverse[t]));
            for j in 0..width {
                S::store(S::mul(S::load(&self.p[here + j]), back), &mut self.p[here + j]);
                let gamma = S::mul(S::mul(S::load(&self.psi[here + j]), S::load(&self.beta[j])), inverse);
                let reached = S::select_gt(S::load(&self.alpha[here + j]), zero, gamma, zero);
                S::store(reached, &mut self.gamma[here + j]);
            }
        }
        self.add_up::<S>(moves, n);
    }

    /// Sums over pairs of neighbours, M[y', y] sum_t alpha_{t-1}(y') gamma_t(y).
    ///
    /// # Safety
    /// As for `backward`.
    #[inline(always)]
    unsafe fn add_up<S: Find>(&mut self, moves: &Moves, n: usize) {
        for from in 0..moves.labels {
            let mut v = 0;
            while v < moves.width {
                match moves.width - v {
                    1 => self.pair::<S, 1>(moves, n, from, v),
                    2 => self.pair::<S, 2>(moves, n, from, v),
                    3 => self.pair::<S, 3>(moves, n, from, v),
                    _ => self.pair::<S, 4>(moves, n, from, v),
                }
                v += 4;
            }
        }
    }

    /// Behind `backward`: the chain with (nearly) the marginals `mu` [T, width] that is closest to that of the scores. Its own
    /// marginals come to `p`, its pair sums to `pairs`; answers its entropy, without - sum pairs log M, which the caller adds.
    ///
    /// The pairs of t - 1 and t are u(y') M[y', y] v(y), with u and v scaled in turn to have the marginals asked for
    /// (Sinkhorn 1967; the projection of least divergence). The last to be scaled is u, to the marginals that the chain
    /// really has at t - 1: so it is a chain, whatever the number of rounds. With c = u M v,
    /// entropy = sum_t (- c log c + m_{t-1} log m_{t-1}) - m_0 log m_0.
    ///
    /// # Safety
    /// As for `backward`; `mu` are distributions.
    #[inline(always)]
    pub(crate) unsafe fn couple<S: Find>(&mut self, moves: &Moves, mu: &[Lane], rounds: usize) -> f64 {
        let (l, width) = (moves.labels, moves.width);
        let n = mu.len() / width;
        self.p[..width].copy_from_slice(&mu[..width]);
        let mut entropy = -plogp(&self.p[..width], &self.p[..width]);
        for t in 1..n {
            let (here, before) = (t * width, (t - 1) * width);
            let v = &mut self.gamma[here..here + width];
            for _ in 0..rounds {
                products::<S>(&moves.columns, l, width, v, &mut self.row);
                divide::<S>(&self.p[before..here], &self.row, &mut self.alpha[before..here]);
                products::<S>(&moves.rows, l, width, &self.alpha[before..here], &mut self.row);
                divide::<S>(&mu[here..here + width], &self.row, v);
            }
            products::<S>(&moves.columns, l, width, v, &mut self.row);
            divide::<S>(&self.p[before..here], &self.row, &mut self.alpha[before..here]);
            products::<S>(&moves.rows, l, width, &self.alpha[before..here], &mut self.row);
            let mut sum = S::splat(0.0);
            for j in 0..width {
                let m = S::mul(S::load(&v[j]), S::load(&self.row[j]));
                sum = S::add(sum, m);
                S::store(m, &mut self.p[here + j]);
            }
            let back = S::splat(1.0 / S::total(sum));
            for m in &mut self.p[here..here + width] {
                S::store(S::mul(S::load(m), back), m);
            }
            let (m, u) = (&self.p[before..here], &self.alpha[before..here]);
            entropy += plogp(m, m) - plogp(m, u) - plogp(&self.p[here..here + width], v);
        }
        self.add_up::<S>(moves, n);
        entropy
    }

    /// M[from, .] sum_t alpha_{t-1}(from) gamma_t(.), W lanes from v on.
    ///
    /// # Safety
    /// As for `backward`; v + W <= width.
    #[inline(always)]
    unsafe fn pair<S: Find, const W: usize>(&mut self, moves: &Moves, n: usize, from: usize, v: usize) {
        let width = moves.width;
        let mut sums = [[S::splat(0.0); W]; 2];
        let (mut a, mut g) = (self.alpha.as_ptr().cast::<f32>().add(from), self.gamma.as_ptr().wrapping_add(width + v));
        for t in 1..n {
            let x = S::splat(*a);
            for (j, s) in sums[t % 2].iter_mut().enumerate() {
                *s = S::fma(x, S::load(&*g.add(j)), *s);
            }
            (a, g) = (a.add(width * WIDTH), g.wrapping_add(width));
        }
        for j in 0..W {
            let at = from * width + v + j;
            S::store(S::mul(S::add(sums[0][j], sums[1][j]), S::load(&moves.rows[at])), &mut self.pairs[at]);
        }
    }
}
