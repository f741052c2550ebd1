//! Sums over the paths of one sentence with the labels side by side in vector registers: what a learner needs whose weights
//! change after each sentence. (`lanes` puts sixteen sentences side by side, under the same weights.)
//!
//! The equations are those of `lanes`, in float32 and scaled at every position; a row of the matrix M is `width` lanes.

use crate::chain::edges::MAX_RANGE;
use crate::machine::dispatch::dispatch;
use crate::machine::find::Find;
use crate::machine::simd::{Lane, WIDTH};

/// A scale under this leaves the sentence undone.
const TINY: f32 = 1e-30;
/// Sums under this are scaled at once, others with the position that follows, which need not wait for them then.
const SMALL: f32 = 1e-6;
/// Positions after which the logarithm of the product of scales is taken: TINY^8 is still a double.
const TAKE_EVERY: usize = 8;
/// Rows that are multiplied at a time, in sums that do not wait for each other.
const CHAINS: usize = 4;
/// Labels whose pairs are added up at a time.
const TALL: usize = 4;

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
    unsafe fn set<S: Find>(&mut self, scores: &[Lane]) -> bool {
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
    total::<S, W>(sums)
}

/// # Safety
/// The machine has the instructions of `S`.
#[inline(always)]
unsafe fn total<S: Find, const W: usize>(sums: [[S::F; W]; CHAINS]) -> [S::F; W] {
    let mut out = sums[0];
    for (j, x) in out.iter_mut().enumerate() {
        *x = S::add(S::add(*x, sums[1][j]), S::add(sums[2][j], sums[3][j]));
    }
    out
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

/// (sum_y from(y) rows[y, .], sum_y to(y) columns[y, .]), W lanes from v on: two products that do not wait for each other.
///
/// # Safety
/// As for `product`, for both.
#[inline(always)]
unsafe fn two_products<S: Find, const W: usize>(
    moves: &Moves,
    width: usize,
    from: *const Lane,
    to: *const Lane,
    v: usize,
) -> ([S::F; W], [S::F; W]) {
    let mut sums = [[[S::splat(0.0); W]; CHAINS]; 2];
    let (mut row, mut column) = (moves.rows.as_ptr().add(v), moves.columns.as_ptr().add(v));
    let (mut x, mut y) = (from.cast::<f32>(), to.cast::<f32>());
    for _ in 0..moves.labels.div_ceil(CHAINS) {
        for i in 0..CHAINS {
            let (a, b) = (S::splat(*x), S::splat(*y));
            for j in 0..W {
                sums[0][i][j] = S::fma(a, S::load(&*row.add(j)), sums[0][i][j]);
                sums[1][i][j] = S::fma(b, S::load(&*column.add(j)), sums[1][i][j]);
            }
            (row, column) = (row.wrapping_add(width), column.wrapping_add(width));
            (x, y) = (x.add(1), y.add(1));
        }
    }
    (total::<S, W>(sums[0]), total::<S, W>(sums[1]))
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
///
/// # Safety
/// The machine has the instructions of `S`; both are of one length.
#[inline(always)]
unsafe fn plogx<S: Find>(p: &[Lane], x: &[Lane]) -> f64 {
    let (zero, least) = (S::splat(0.0), S::splat(f32::MIN_POSITIVE));
    let mut sum = zero;
    for (p, x) in p.iter().zip(x) {
        let (p, x) = (S::load(p), S::load(x));
        let term = S::mul(p, S::ln(S::max(x, least)));
        sum = S::add(sum, S::select_gt(S::min(p, x), zero, term, zero));
    }
    f64::from(S::total(sum))
}

dispatch!(
    /// `Moves::set`, compiled by itself: what calls it is compiled sooner. So are the others.
    pub(crate) fn set(moves: &mut Moves, scores: &[Lane]) -> bool = set_kernel
);
dispatch!(pub(crate) fn forward(beside: &mut Beside, moves: &Moves, n: usize) -> Option<f64> = forward_kernel);
dispatch!(pub(crate) fn marginals(beside: &mut Beside, moves: &Moves, n: usize) -> Option<()> = marginals_kernel);
dispatch!(pub(crate) fn couple(beside: &mut Beside, moves: &Moves, mu: &[Lane], rounds: usize) -> f64 = couple_kernel);

/// # Safety
/// The machine has the instructions of `S`.
#[inline(always)]
unsafe fn set_kernel<S: Find>(moves: &mut Moves, scores: &[Lane]) -> bool {
    moves.set::<S>(scores)
}

/// # Safety
/// As for `Beside::forward`.
#[inline(always)]
unsafe fn forward_kernel<S: Find>(beside: &mut Beside, moves: &Moves, n: usize) -> Option<f64> {
    beside.forward::<S>(moves, n)
}

/// # Safety
/// As for `Beside::marginals`.
#[inline(always)]
unsafe fn marginals_kernel<S: Find>(beside: &mut Beside, moves: &Moves, n: usize) -> Option<()> {
    beside.marginals::<S>(moves, n)
}

/// # Safety
/// As for `Beside::couple`.
#[inline(always)]
unsafe fn couple_kernel<S: Find>(beside: &mut Beside, moves: &Moves, mu: &[Lane], rounds: usize) -> f64 {
    beside.couple::<S>(moves, mu, rounds)
}

/// Scratch of one thread; grows to the longest sentence seen.
#[derive(Default)]
pub struct Beside {
    pub node: Vec<Lane>, // [T, width] scores, -infinity behind the last label
    psi: Vec<Lane>,
    alpha: Vec<Lane>,
    beta: Vec<Lane>,
    gamma: Vec<Lane>,
    tops: Vec<f32>,       // [T] largest node scores
    scales: Vec<f32>,     // [T] of alpha
    pub p: Vec<Lane>,     // [T, width] marginals
    row: Vec<Lane>,       // [width]
    pub pairs: Vec<Lane>, // [L, width] their sums over pairs of neighbours
}

/// (scale, what the next position is to be multiplied with) of a position whose numbers have this sum; None where it is
/// too small for float32.
///
/// # Safety
/// The machine has the instructions of `S`.
#[inline(always)]
unsafe fn settle<S: Find>(sum: S::F, numbers: &mut [Lane]) -> Option<(f32, f32)> {
    let scale = S::total(sum);
    if scale > SMALL {
        return Some((scale, 1.0 / scale));
    }
    if scale.partial_cmp(&TINY) != Some(std::cmp::Ordering::Greater) {
        return None;
    }
    let by = S::splat(1.0 / scale);
    for x in numbers {
        S::store(S::mul(S::load(x), by), x);
    }
    Some((scale, 1.0))
}

impl Beside {
    /// Room for a sentence of n tokens.
    pub fn reserve(&mut self, n: usize, labels: usize) {
        let width = labels.div_ceil(WIDTH);
        if self.node.len() < n * width || self.row.len() < width {
            for v in [&mut self.node, &mut self.psi, &mut self.alpha, &mut self.beta, &mut self.gamma, &mut self.p] {
                v.resize(n * width, Lane::ZERO);
            }
            self.tops.resize(n, 0.0);
            self.scales.resize(n, 0.0);
            self.row.resize(width, Lane::ZERO);
            self.pairs.resize(labels * width, Lane::ZERO);
        }
    }

    /// psi = exp of the node scores less the largest of each position; None where one is not finite.
    ///
    /// # Safety
    /// The machine has the instructions of `S`; room is made for n tokens.
    #[inline(always)]
    unsafe fn exps<S: Find>(&mut self, width: usize, n: usize) -> Option<()> {
        let mut finite = true;
        let rows = self.node.chunks_exact(width).zip(self.psi.chunks_exact_mut(width)).zip(&mut self.tops);
        for ((node, psi), most) in rows.take(n) {
            let mut top = S::load(&node[0]);
            for x in &node[1..] {
                top = S::max(top, S::load(x));
            }
            *most = S::largest(top);
            finite &= most.is_finite();
            let top = S::splat(*most);
            for (s, psi) in node.iter().zip(psi) {
                S::store(S::exp_neg(S::sub(S::load(s), top)), psi);
            }
        }
        finite.then_some(())
    }

    /// log Z of the scales that `forward` or `marginals` found.
    pub fn log_z(&self, moves: &Moves, n: usize) -> Option<f64> {
        let mut log_z = n.saturating_sub(1) as f64 * f64::from(moves.max);
        for (tops, scales) in self.tops[..n].chunks(TAKE_EVERY).zip(self.scales[..n].chunks(TAKE_EVERY)) {
            log_z += tops.iter().map(|&x| f64::from(x)).sum::<f64>();
            log_z += scales.iter().map(|&x| f64::from(x)).product::<f64>().ln();
        }
        log_z.is_finite().then_some(log_z)
    }

    /// log Z of the node scores, or None where a scale is too small for float32.
    ///
    /// # Safety
    /// The machine has the instructions of `S`; room is made for n tokens.
    #[inline(always)]
    unsafe fn forward<S: Find>(&mut self, moves: &Moves, n: usize) -> Option<f64> {
        let (l, width) = (moves.labels, moves.width);
        debug_assert!(self.node.len() >= n * width);
        self.exps::<S>(width, n)?;
        let mut inverse = 1.0;
        for t in 0..n {
            let here = t * width;
            let (before, alpha) = self.alpha.split_at_mut(here);
            let alpha = &mut alpha[..width];
            let (mut sum, by) = (S::splat(0.0), S::splat(inverse));
            if t > 0 {
                products::<S>(&moves.rows, l, width, &before[here - width..], alpha);
            }
            for (a, psi) in alpha.iter_mut().zip(&self.psi[here..here + width]) {
                let psi = S::load(psi);
                let x = if t == 0 { psi } else { S::mul(S::load(a), S::mul(psi, by)) };
                sum = S::add(sum, x);
                S::store(x, a);
            }
            (self.scales[t], inverse) = settle::<S>(sum, alpha)?;
        }
        self.log_z(moves, n)
    }

    /// Marginals of nodes and sums of those of pairs, or None where float32 cannot do it.
    ///
    /// ```text
    /// alpha_0 = psi_0         alpha_t = psi_t (alpha_{t-1} M) / sum alpha_{t-1}
    /// gamma_{T-1} = psi       gamma_t = psi_t beta_t / sum gamma_{t+1},  beta_t = M gamma_{t+1}
    /// p_t = alpha_t beta_t / Z_t;  pairs = sum_t alpha_t / Z_t  M  gamma_{t+1},  Z_t = sum alpha_t beta_t
    /// ```
    ///
    /// From both ends at once: each recursion waits for itself at every position, and works while the other one waits.
    ///
    /// # Safety
    /// As for `forward`.
    #[inline(always)]
    unsafe fn marginals<S: Find>(&mut self, moves: &Moves, n: usize) -> Option<()> {
        let width = moves.width;
        debug_assert!(self.node.len() >= n * width);
        self.exps::<S>(width, n)?;
        match width {
            1 => self.meet::<S, 1>(moves, n)?,
            2 => self.meet::<S, 2>(moves, n)?,
            _ => self.meet::<S, 3>(moves, n)?,
        }
        let mut least = f32::INFINITY;
        for t in 0..n {
            let here = t * width;
            let mut sum = S::splat(0.0);
            for j in here..here + width {
                let p = S::mul(S::load(&self.alpha[j]), S::load(&self.beta[j]));
                sum = S::add(sum, p);
                S::store(p, &mut self.p[j]);
            }
            let z = S::total(sum);
            least = if z > least { least } else { z }; // a NaN is the least
            let by = S::splat(1.0 / z);
            for j in here..here + width {
                S::store(S::mul(S::load(&self.p[j]), by), &mut self.p[j]);
                S::store(S::mul(S::load(&self.alpha[j]), by), &mut self.alpha[j]);
            }
        }
        if least.partial_cmp(&TINY) != Some(std::cmp::Ordering::Greater) {
            return None;
        }
        self.add_up::<S>(moves, n);
        Some(())
    }

    /// alpha, beta and gamma of W lanes, or more where it is 3.
    ///
    /// # Safety
    /// As for `marginals`.
    #[inline(always)]
    unsafe fn meet<S: Find, const W: usize>(&mut self, moves: &Moves, n: usize) -> Option<()> {
        let width = if W < 3 { W } else { moves.width };
        let last = (n - 1) * width;
        let (mut a, mut g) = (S::splat(0.0), S::splat(0.0));
        for j in 0..width {
            let (first, end) = (self.psi[j], self.psi[last + j]);
            (a, g) = (S::add(a, S::load(&first)), S::add(g, S::load(&end)));
            (self.alpha[j], self.gamma[last + j], self.beta[last + j]) = (first, end, Lane([1.0; WIDTH]));
        }
        let (scale, mut ahead) = settle::<S>(a, &mut self.alpha[..width])?;
        let (_, mut back) = settle::<S>(g, &mut self.gamma[last..last + width])?;
        self.scales[0] = scale;
        for t in 1..n {
            let (here, there) = (t * width, last - t * width);
            let (from, to) = (self.alpha.as_ptr().add(here - width), self.gamma.as_ptr().add(there + width));
            (a, g) = (S::splat(0.0), S::splat(0.0));
            let mut v = 0;
            macro_rules! block {
                ($N:literal) => {
                    let (x, y) = two_products::<S, $N>(moves, width, from, to, v);
                    for j in 0..$N {
                        let (i, k) = (here + v + j, there + v + j);
                        let x = S::mul(x[j], S::mul(S::load(self.psi.get_unchecked(i)), S::splat(ahead)));
                        S::store(x, self.alpha.get_unchecked_mut(i));
                        S::store(y[j], self.beta.get_unchecked_mut(k));
                        let y = S::mul(y[j], S::mul(S::load(self.psi.get_unchecked(k)), S::splat(back)));
                        S::store(y, self.gamma.get_unchecked_mut(k));
                        (a, g) = (S::add(a, x), S::add(g, y));
                    }
                };
            }
            while v + 1 < width {
                block!(2);
                v += 2;
            }
            if v < width {
                block!(1);
            }
            (self.scales[t], ahead) = settle::<S>(a, &mut self.alpha[here..here + width])?;
            (_, back) = settle::<S>(g, &mut self.gamma[there..there + width])?;
        }
        Some(())
    }

    /// Sums over pairs of neighbours, M[y', y] sum_t alpha_{t-1}(y') gamma_t(y).
    ///
    /// # Safety
    /// As for `marginals`.
    #[inline(always)]
    unsafe fn add_up<S: Find>(&mut self, moves: &Moves, n: usize) {
        for from in (0..moves.labels).step_by(TALL) {
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

    /// Behind `marginals`: the chain with (nearly) the marginals `mu` [T, width] that is closest to that of the scores. Its own
    /// marginals come to `p`, its pair sums to `pairs`; answers its entropy, without - sum pairs log M, which the caller adds.
    ///
    /// The pairs of t - 1 and t are u(y') M[y', y] v(y), with u and v scaled in turn to have the marginals asked for
    /// (Sinkhorn 1967; the projection of least divergence). The last to be scaled is u, to the marginals that the chain
    /// really has at t - 1: so it is a chain, whatever the number of rounds. With c = u M v and u = m_{t-1} / (M v),
    /// entropy = - m_0 log m_0 + sum_t (- c log c + m_{t-1} log m_{t-1})
    ///         = - m_0 log m_0 + sum_t (m_{t-1} log (M v) - m_t log v - c log M).
    ///
    /// # Safety
    /// As for `marginals`; `mu` are distributions.
    #[inline(always)]
    unsafe fn couple<S: Find>(&mut self, moves: &Moves, mu: &[Lane], rounds: usize) -> f64 {
        let (l, width) = (moves.labels, moves.width);
        let n = mu.len() / width;
        self.p[..width].copy_from_slice(&mu[..width]);
        let mut entropy = -plogx::<S>(&self.p[..width], &self.p[..width]);
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
            entropy += plogx::<S>(&self.p[before..here], &self.row);
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
            entropy -= plogx::<S>(&self.p[here..here + width], v);
        }
        self.add_up::<S>(moves, n);
        entropy
    }

    /// M[y', .] sum_t alpha_{t-1}(y') gamma_t(.) of TALL labels y', W lanes from v on.
    ///
    /// # Safety
    /// As for `marginals`; v + W <= width.
    #[inline(always)]
    unsafe fn pair<S: Find, const W: usize>(&mut self, moves: &Moves, n: usize, from: usize, v: usize) {
        let width = if v == 0 && W < 4 { W } else { moves.width };
        let mut sums = [[S::splat(0.0); W]; TALL];
        let (mut a, mut g) = (self.alpha.as_ptr().cast::<f32>().add(from), self.gamma.as_ptr().wrapping_add(width + v));
        for _ in 1..n {
            let mut next = [S::splat(0.0); W];
            for (j, x) in next.iter_mut().enumerate() {
                *x = S::load(&*g.add(j));
            }
            for (i, sum) in sums.iter_mut().enumerate() {
                let x = S::splat(*a.add(i));
                for (s, &next) in sum.iter_mut().zip(&next) {
                    *s = S::fma(x, next, *s);
                }
            }
            (a, g) = (a.add(width * WIDTH), g.wrapping_add(width));
        }
        for (i, sum) in sums.iter().enumerate().take(moves.labels - from) {
            for (j, &s) in sum.iter().enumerate() {
                let at = (from + i) * width + v + j;
                S::store(S::mul(s, S::load(&moves.rows[at])), &mut self.pairs[at]);
            }
        }
    }
}
