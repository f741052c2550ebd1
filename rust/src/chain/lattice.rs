//! Scores of one sentence, as read by every recursion in log space, and shared sums.

/// Scores of one sentence: node [T, L] and edge [L, L], or [T, L, L] whose block t belongs to the step from t-1 to t
/// (block 0 is not used). -infinity forbids. Start and end scores are part of the first and last node row.
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

/// log sum exp, or -infinity for an empty sum.
#[inline]
pub fn log_sum_exp(values: impl Iterator<Item = f64> + Clone) -> f64 {
    let top = values.clone().fold(f64::NEG_INFINITY, f64::max);
    if !top.is_finite() {
        return top;
    }
    top + values.map(|v| (v - top).exp()).sum::<f64>().ln()
}

/// Write e^{v - m} to `out`, where m is the largest value, or zeros if m is not finite. Return m.
pub fn exponentiate(values: impl Iterator<Item = f64> + Clone, out: &mut Vec<f64>) -> f64 {
    let max = values.clone().fold(f64::NEG_INFINITY, f64::max);
    out.clear();
    out.extend(values.map(|v| if max.is_finite() { (v - max).exp() } else { 0.0 }));
    max
}
