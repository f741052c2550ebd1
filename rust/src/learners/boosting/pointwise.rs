//! The loss sum_t 1 / p_t(gold) of one sentence and its derivatives, in double precision.

use crate::chain::sums::pointwise64;
use crate::chain::sums::scaled64;
use crate::learners::boosting::chain::{write_rows, ChainWork};
use crate::learners::boosting::loss::SentenceScores;
use crate::machine::simd::WIDTH;

/// sum_t 1 / p_t and sum_t (1 / p_t - 1), both divided by e^top.
#[derive(Clone, Copy, Debug, Default)]
pub struct Points {
    pub top: f64,
    pub all: f64,
    pub wrong: f64,
}

/// The loss of a sentence. If `out` = (nodes [T, P], pairs [L, P] or empty) is given, also its derivatives with
/// respect to node scores and edge scores, divided by e^top. Those of edge scores are summed over positions.
pub fn residuals(x: &SentenceScores<'_>, work: &mut ChainWork, out: Option<(&mut [f64], &mut [f64])>) -> Points {
    if x.gold.is_empty() {
        out.into_iter().for_each(|(_, pairs)| pairs.fill(0.0));
        return Points::default();
    }
    let (l, padded, width) = (x.edges.labels, x.edges.padded, x.edges.labels.div_ceil(WIDTH));
    let n = x.gold.len();
    if let Some(factors) = x.edges.factors() {
        work.precise.set_nodes(x.node, padded, l);
        let shares = scaled64::backward(&mut work.precise, factors, n).and_then(|_| {
            scaled64::marginals(&mut work.precise, factors, n, 0.0, &mut []);
            pointwise64::gold_shares(&work.precise, width, x.gold)
        });
        if let Some(shares) = shares {
            let points = Points {
                top: 0.0,
                all: shares.iter().map(|(right, _)| 1.0 / right).sum(),
                wrong: shares.iter().map(|(right, wrong)| wrong / right).sum(),
            };
            if let Some((nodes, pairs)) = out {
                let omega: Vec<f64> = shares.iter().map(|(right, _)| 1.0 / right).collect();
                work.clear_expected(l, !pairs.is_empty());
                let ChainWork { precise, expected, points, .. } = &mut *work;
                pointwise64::scaled(points, precise, factors, x.gold, &omega, expected);
                write_rows(&work.points.nodes, l, padded, nodes);
                work.write_pairs(factors, padded, pairs);
            }
            return points;
        }
    }
    let (scores, trellis, points) = work.log_scores(x);
    trellis.forward(&scores);
    trellis.backward(&scores);
    let right: Vec<f64> = x.gold.iter().enumerate().map(|(t, &y)| trellis.log_marginal(t * l + y as usize)).collect();
    let top = right.iter().fold(0.0f64, |top, right| top.max(-right));
    let omega: Vec<f64> = right.iter().map(|right| (-right - top).exp()).collect();
    let wrong = x.gold.iter().enumerate().map(|(t, &gold)| {
        let others = (0..l).filter(|&y| y != gold as usize);
        omega[t] * others.map(|y| trellis.node_marginal(t * l + y)).sum::<f64>()
    });
    let found = Points { top, all: omega.iter().sum(), wrong: wrong.sum() };
    if let Some((nodes, pairs)) = out {
        pairs.fill(0.0);
        pointwise64::in_log_space(points, trellis, &scores, x.gold, &omega, |_, a, b, residual| {
            if let Some(to) = pairs.get_mut(a * padded + b) {
                *to += residual;
            }
        });
        write_rows(&points.nodes, l, padded, nodes);
    }
    found
}
