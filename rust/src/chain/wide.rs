//! The scaled recursions of `lanes` for one sentence in double precision: edges that span more than float32 can multiply.
//!
//! The analysis of `underflow` with u = e^-708, the end of the range of f64: without a forbidden edge a position loses at
//! most L u e^R / c_t of the probability. With R <= WIDEST and c_t >= e^-R that is L e^-248, so only a sentence without a
//! finite path is flagged. Edges that forbid are left to log space: beta has no bound there. One exp per node score and
//! one logarithm per token, where log space needs several of each per label.

/// Widest span of edge scores: e^-230 = 1e-100.
const WIDEST: f64 = 230.0;
/// A scale under this leaves the sentence to log space.
const TINY: f64 = 1e-280;

/// Edge factors in double precision, where no edge is forbidden and their span is not too wide.
pub struct Factors {
    m: Vec<f64>, // [L, L]
    top: f64,
}

impl Factors {
    pub fn new(scores: &[f64]) -> Option<Factors> {
        let least = scores.iter().copied().fold(f64::INFINITY, f64::min);
        let top = scores.iter().copied().filter(|x| x.is_finite()).fold(f64::NEG_INFINITY, f64::max);
        let fits = top.is_finite() && top - least <= WIDEST;
        fits.then(|| Factors { m: scores.iter().map(|a| (a - top).exp()).collect(), top })
    }
}

#[derive(Default)]
pub struct Wide {
    psi: Vec<f64>,   // [T, L]
    alpha: Vec<f64>, // [T, L]
    scale: Vec<f64>, // [T] c_t
    beta: Vec<f64>,  // [L]
    gamma: Vec<f64>, // [L]
    pairs: Vec<f64>, // [L, L] sum_t alpha_{t-1}(y') gamma_t(y)
}

impl Wide {
    /// log Z of node scores [T, L], or None where a scale is too small: no label of a token has a finite score.
    pub fn forward(&mut self, factors: &Factors, node: &[f64], l: usize) -> Option<f64> {
        let n = node.len() / l;
        self.psi.clear();
        self.alpha.clear();
        self.alpha.resize(node.len(), 0.0);
        self.scale.clear();
        let mut log_z = (n.max(1) - 1) as f64 * factors.top;
        for t in 0..n {
            let scores = &node[t * l..(t + 1) * l];
            let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            self.psi.extend(scores.iter().map(|s| (s - most).exp()));
            let (before, here) = self.alpha.split_at_mut(t * l);
            let here = &mut here[..l];
            if t == 0 {
                here.fill(1.0);
            } else {
                for (&a, row) in before[(t - 1) * l..].iter().zip(factors.m.chunks_exact(l)) {
                    here.iter_mut().zip(row).for_each(|(sum, m)| *sum += a * m);
                }
            }
            let mut c = 0.0;
            for (a, p) in here.iter_mut().zip(&self.psi[t * l..]) {
                *a *= p;
                c += *a;
            }
            if c.partial_cmp(&TINY) != Some(std::cmp::Ordering::Greater) {
                return None;
            }
            here.iter_mut().for_each(|a| *a /= c);
            self.scale.push(c);
            log_z += most + c.ln();
        }
        Some(log_z)
    }

    /// factor times the marginals into `residual` [T, L], and times the pair expectations onto `edges` [L, L].
    pub fn backward(&mut self, factors: &Factors, l: usize, factor: f64, residual: &mut [f64], edges: &mut [f64]) {
        self.beta.clear();
        self.beta.resize(l, factor);
        self.gamma.resize(l, 0.0);
        self.pairs.clear();
        self.pairs.resize(l * l, 0.0);
        for t in (0..self.scale.len()).rev() {
            let alpha = &self.alpha[t * l..(t + 1) * l];
            let out = residual[t * l..(t + 1) * l].iter_mut();
            out.zip(alpha).zip(&self.beta).for_each(|((r, a), b)| *r = a * b);
            if t == 0 {
                break;
            }
            for ((g, p), b) in self.gamma.iter_mut().zip(&self.psi[t * l..]).zip(&self.beta) {
                *g = p * b / self.scale[t];
            }
            let before = &self.alpha[(t - 1) * l..t * l];
            for (((&a, sums), row), b) in
                before.iter().zip(self.pairs.chunks_exact_mut(l)).zip(factors.m.chunks_exact(l)).zip(&mut self.beta)
            {
                sums.iter_mut().zip(&self.gamma).for_each(|(s, g)| *s += a * g);
                *b = row.iter().zip(&self.gamma).map(|(m, g)| m * g).sum();
            }
        }
        for ((e, m), s) in edges.iter_mut().zip(&factors.m).zip(&self.pairs) {
            *e += m * s;
        }
    }
}
