//! -log P(gold), marginals and expected pairs of one sentence for boosting: scaled, or in log space if a sentence is
//! out of range.

use crate::chain::lattice::Scores;
use crate::chain::sums::log64::Trellis;
use crate::chain::sums::pointwise64::Pointwise;
use crate::chain::sums::scaled64::{self, Factors, Scaled64};
use crate::learners::boosting::loss::SentenceScores;
use crate::machine::simd::double::Doubles;
use crate::machine::simd::WIDTH;
use crate::machine::system::testing::{self, CodePath, PathCount};

/// Labels are padded to a multiple of this.
pub const BLOCK: usize = 4;

/// Edge scores and their factors.
#[derive(Clone, Debug)]
pub struct EdgeFactors {
    pub labels: usize,
    pub padded: usize,
    pub score: Vec<f64>,      // [L, L]
    factors: Option<Factors>, // None if they are out of range
}

impl EdgeFactors {
    pub fn new(labels: usize, score: Vec<f64>) -> EdgeFactors {
        let mut out = EdgeFactors { labels, padded: labels.next_multiple_of(BLOCK), score, factors: None };
        out.update();
        out
    }

    /// Recompute the factors after a change of `score`.
    pub fn update(&mut self) {
        self.factors = Factors::new(self.labels, |a, b| self.score[a * self.labels + b]);
    }

    /// None if log space is needed or forced.
    pub(super) fn factors(&self) -> Option<&Factors> {
        self.factors.as_ref().filter(|_| !testing::is_forced(CodePath::Log))
    }
}

/// Scratch of one thread.
#[derive(Default)]
pub struct ChainWork {
    pub(super) precise: Scaled64,
    pub(super) expected: Vec<Doubles>, // [L, width] pairs divided by the factors of the edges
    pub(super) points: Pointwise,
    pub(super) trellis: Trellis,
    pub(super) node: Vec<f64>, // [T, L] for log space
}

impl ChainWork {
    /// Clear the expected pairs, and allocate them if they are wanted.
    pub(super) fn clear_expected(&mut self, labels: usize, requested: bool) {
        self.expected.clear();
        self.expected.resize(if requested { labels * labels.div_ceil(WIDTH) } else { 0 }, Doubles::ZERO);
    }

    /// The expected pairs times their factors, into `pairs` [L, P].
    pub(super) fn write_pairs(&self, factors: &Factors, padded: usize, pairs: &mut [f64]) {
        let width = factors.labels().div_ceil(WIDTH);
        let rows = self.expected.chunks_exact(width).zip(factors.rows().chunks_exact(width));
        for (to, (expected, m)) in pairs.chunks_exact_mut(padded).zip(rows) {
            let products = expected.iter().zip(m).flat_map(|(x, m)| x.0.into_iter().zip(m.0));
            to.iter_mut().zip(products).for_each(|(to, (x, m))| *to = x * m);
        }
    }

    /// The scores of a sentence in log space.
    pub(super) fn log_scores<'a>(
        &'a mut self,
        x: &SentenceScores<'a>,
    ) -> (Scores<'a>, &'a mut Trellis, &'a mut Pointwise) {
        testing::count(PathCount::Log, 1);
        let (l, padded) = (x.edges.labels, x.edges.padded);
        self.node.clear();
        x.node.chunks_exact(padded).for_each(|row| self.node.extend_from_slice(&row[..l]));
        (Scores { labels: l, node: &self.node, edge: &x.edges.score }, &mut self.trellis, &mut self.points)
    }
}

/// Rows [T, width] to rows [T, P].
pub(super) fn write_rows(from: &[Doubles], labels: usize, padded: usize, to: &mut [f64]) {
    for (to, from) in to.chunks_exact_mut(padded).zip(from.chunks_exact(labels.div_ceil(WIDTH))) {
        to.iter_mut().zip(from.iter().flat_map(|x| x.0)).for_each(|(to, x)| *to = x);
    }
}

/// The sum of a padded row whose padding is 0: four interleaved partial sums, then their sum.
#[inline(always)]
pub fn sum(row: &[f64]) -> f64 {
    let mut sum = [0.0; BLOCK];
    for block in row.chunks_exact(BLOCK) {
        for j in 0..BLOCK {
            sum[j] += block[j];
        }
    }
    (sum[0] + sum[1]) + (sum[2] + sum[3])
}

/// -log P(gold) by the backward pass. None if a state or the gold path is out of range.
fn scaled<'a>(x: &SentenceScores<'a>, work: &mut ChainWork) -> Option<(f64, &'a Factors)> {
    let factors = x.edges.factors()?;
    work.precise.set_nodes(x.node, x.edges.padded, x.edges.labels);
    scaled64::backward(&mut work.precise, factors, x.gold.len())?;
    let loss = scaled64::gold_loss(&mut work.precise, factors, x.gold);
    loss.is_finite().then_some((loss, factors))
}

/// -log P(gold).
pub fn loss(x: &SentenceScores<'_>, work: &mut ChainWork) -> f64 {
    if x.gold.is_empty() {
        return 0.0;
    }
    if let Some((loss, _)) = scaled(x, work) {
        return loss;
    }
    let (scores, trellis, _) = work.log_scores(x);
    (trellis.forward(&scores) - gold_score(x)).max(0.0)
}

/// Write marginals to `p` [T, P] and sum_t p_t(y', y) to `pairs` [L, P], if that is not empty. Return -log P(gold).
pub fn marginals(x: &SentenceScores<'_>, work: &mut ChainWork, p: &mut [f64], pairs: &mut [f64]) -> f64 {
    let (l, padded, n) = (x.edges.labels, x.edges.padded, x.gold.len());
    pairs.fill(0.0);
    if n == 0 {
        return 0.0;
    }
    if let Some((loss, factors)) = scaled(x, work) {
        work.clear_expected(l, !pairs.is_empty());
        scaled64::marginals(&mut work.precise, factors, n, 1.0, &mut work.expected);
        write_rows(&work.precise.m, l, padded, p);
        work.write_pairs(factors, padded, pairs);
        return loss;
    }
    let (scores, trellis, _) = work.log_scores(x);
    let log_z = trellis.forward(&scores);
    trellis.backward(&scores);
    for (t, p) in p.chunks_exact_mut(padded).enumerate().take(n) {
        p.fill(0.0);
        (0..l).for_each(|y| p[y] = trellis.node_marginal(t * l + y));
    }
    if !pairs.is_empty() {
        let mut sum = vec![0.0; l * l];
        (1..n).for_each(|t| trellis.add_pairs(&scores, t, 1.0, &mut sum));
        pairs.chunks_exact_mut(padded).zip(sum.chunks_exact(l)).for_each(|(to, from)| to[..l].copy_from_slice(from));
    }
    (log_z - gold_score(x)).max(0.0)
}

/// H of the gold path.
fn gold_score(x: &SentenceScores<'_>) -> f64 {
    let nodes: f64 = x.gold.iter().zip(x.node.chunks_exact(x.edges.padded)).map(|(&y, row)| row[y as usize]).sum();
    let steps = x.gold.windows(2).map(|y| x.edges.score[y[0] as usize * x.edges.labels + y[1] as usize]);
    nodes + steps.sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scaled recursions and log space agree, even if a path is nearly impossible.
    #[test]
    fn log_space_agrees_with_the_scaled_recursions() {
        let (l, width) = (3, 4);
        let mut node = vec![0.0; 3 * width];
        for (i, x) in node.iter_mut().enumerate() {
            *x = (i * 7 % 5) as f64 - 2.0;
        }
        let mut score = vec![0.0; l * l];
        score[1] = 2.0;
        score[5] = -1.0;
        for far in [0.0, 900.0] {
            node[0] = far; // label 0 first, label 2 next, with no path between them
            node[width + 2] = far;
            score[2] = -far;
            let edges = EdgeFactors::new(l, score.clone());
            let gold = [0, 2, 1];
            let x = SentenceScores { node: &node, gold: &gold, edges: &edges, weight: 1.0, shift: 0.0 };
            let (mut p, mut pairs, mut work) = (vec![0.0; node.len()], vec![0.0; l * width], ChainWork::default());
            let loss_only = loss(&x, &mut work);
            let loss = marginals(&x, &mut work, &mut p, &mut pairs);
            let flat: Vec<f64> = node.chunks(width).flat_map(|r| r[..l].to_vec()).collect();
            let scores = Scores { labels: l, node: &flat, edge: &edges.score };
            let mut trellis = Trellis::default();
            assert!((trellis.forward(&scores) - gold_score(&x) - loss).abs() < 1e-9);
            assert_eq!(loss_only, loss);
            trellis.backward(&scores);
            for at in 0..9 {
                assert!((trellis.node_marginal(at) - p[at / l * width + at % l]).abs() < 1e-9);
            }
            assert!((pairs.iter().sum::<f64>() - 2.0).abs() < 1e-9);
        }
    }
}
