//! The same recursions for one sentence in double precision and log space: any finite scores, edges that change from
//! position to position. The exact path behind the lattice functions, edge attributes, and the sentences that the
//! scaled recursions of `chain` flag.

/// Scores of one sentence: node [T, L]; edge [L, L], or [T, L, L] whose block t belongs to the step from t-1 to t (block
/// 0 is not used). -infinity forbids. Start and end scores are part of the first and last node row.
pub struct Scores<'a> {
    pub labels: usize,
    pub node: &'a [f64],
    pub edge: &'a [f64],
}

impl Scores<'_> {
    pub fn positions(&self) -> usize {
        self.node.len() / self.labels.max(1)
    }

    /// Edge scores [L, L] of the step into position t.
    #[inline]
    pub fn edge(&self, t: usize) -> &[f64] {
        let n = self.labels * self.labels;
        if self.edge.len() == n {
            self.edge
        } else {
            &self.edge[t * n..(t + 1) * n]
        }
    }
}

/// log sum exp; -infinity of nothing.
#[inline]
pub fn log_sum_exp(values: impl Iterator<Item = f64> + Clone) -> f64 {
    let top = values.clone().fold(f64::NEG_INFINITY, f64::max);
    if !top.is_finite() {
        return top;
    }
    top + values.map(|v| (v - top).exp()).sum::<f64>().ln()
}

/// Forward and backward log sums [T, L] of one sentence.
#[derive(Default)]
pub struct Trellis {
    pub alpha: Vec<f64>, // log sum over prefixes that end in y at t, node score of t included
    pub beta: Vec<f64>,  // log sum over suffixes behind y at t
    pub log_z: f64,
}

impl Trellis {
    pub fn forward(&mut self, scores: &Scores<'_>) -> f64 {
        let (l, n) = (scores.labels, scores.positions());
        self.alpha.clear();
        self.alpha.extend_from_slice(scores.node);
        for t in 1..n {
            let edge = scores.edge(t);
            let (before, here) = self.alpha.split_at_mut(t * l);
            let before = &before[(t - 1) * l..];
            for y in 0..l {
                here[y] += log_sum_exp((0..l).map(|k| before[k] + edge[k * l + y]));
            }
        }
        self.log_z = if n == 0 { 0.0 } else { log_sum_exp(self.alpha[(n - 1) * l..].iter().copied()) };
        self.log_z
    }

    pub fn backward(&mut self, scores: &Scores<'_>) {
        let (l, n) = (scores.labels, scores.positions());
        self.beta.clear();
        self.beta.resize(n * l, 0.0);
        for t in (1..n).rev() {
            let (edge, node) = (scores.edge(t), &scores.node[t * l..(t + 1) * l]);
            let (here, after) = self.beta.split_at_mut(t * l);
            for k in 0..l {
                here[(t - 1) * l + k] = log_sum_exp((0..l).map(|y| edge[k * l + y] + node[y] + after[y]));
            }
        }
    }

    /// p_t(y).
    pub fn node_marginal(&self, at: usize) -> f64 {
        (self.alpha[at] + self.beta[at] - self.log_z).exp()
    }

    /// p_t(y', y) for t >= 1.
    pub fn pair_marginal(&self, scores: &Scores<'_>, t: usize, from: usize, to: usize) -> f64 {
        let l = scores.labels;
        let at = t * l + to;
        let edge = scores.edge(t)[from * l + to];
        (self.alpha[(t - 1) * l + from] + edge + scores.node[at] + self.beta[at] - self.log_z).exp()
    }
}

/// Scores of a chain whose every step is a classifier of y_t given y_{t-1} and x_t (a maximum-entropy Markov model;
/// McCallum, Freitag and Pereira 2000):
///
///   log P(y_t | y_{t-1}, x_t) = node_t(y_t) + edge_t(y_{t-1}, y_t) - Z_t(y_{t-1}),
///   Z_t(y') = log sum_y exp(node_t(y) + edge_t(y', y)).
///
/// Z_t depends on the label that is left alone, so it is taken off the node score of that label at t-1, and the edges
/// stay as they are: every decoder of ordinary chains serves. Here the node scores must still hold all labels;
/// constraints come afterwards. Ascending t reads each row before it is changed. log Z of the result is 0.
pub fn normalize_locally(labels: usize, node: &mut [f64], edge: &[f64]) {
    let l = labels;
    if node.is_empty() {
        return;
    }
    let first = log_sum_exp(node[..l].iter().copied());
    node[..l].iter_mut().for_each(|x| *x -= first);
    for t in 1..node.len() / l {
        let (before, here) = node.split_at_mut(t * l);
        let block = if edge.len() == l * l { edge } else { &edge[t * l * l..(t + 1) * l * l] };
        for (k, x) in before[(t - 1) * l..].iter_mut().enumerate() {
            let z = log_sum_exp((0..l).map(|y| here[y] + block[k * l + y]));
            // A label that cannot be left keeps -infinity through its edges; subtracting it would give NaN.
            if z.is_finite() {
                *x -= z;
            }
        }
    }
}

/// Best path and its score; ties go to the lower label.
pub fn viterbi(scores: &Scores<'_>, path: &mut Vec<u16>) -> f64 {
    let (l, n) = (scores.labels, scores.positions());
    path.clear();
    if n == 0 {
        return 0.0;
    }
    let mut delta = scores.node[..l].to_vec();
    let mut next = vec![0.0; l];
    let mut back = vec![0u16; n * l];
    for t in 1..n {
        let edge = scores.edge(t);
        for y in 0..l {
            let (mut best, mut from) = (delta[0] + edge[y], 0);
            for k in 1..l {
                let v = delta[k] + edge[k * l + y];
                if v > best {
                    (best, from) = (v, k);
                }
            }
            next[y] = best + scores.node[t * l + y];
            back[t * l + y] = from as u16;
        }
        std::mem::swap(&mut delta, &mut next);
    }
    let mut y = 0;
    for k in 1..l {
        if delta[k] > delta[y] {
            y = k;
        }
    }
    let score = delta[y];
    path.resize(n, 0);
    for t in (0..n).rev() {
        path[t] = y as u16;
        y = back[t * l + y] as usize;
    }
    score
}
