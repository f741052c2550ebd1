//! Probability of a chunk over the lawful paths: `confidence` over (set of spans begun, label).

use crate::chain::log::{log_sum_exp, Scores};
use crate::chain::once::sum::Sum;
use crate::decoding::chunks::Chunk;
use crate::learners::online::cost::Entities;

/// P(exactly this chunk is there | x), after the sums of its sentence.
pub fn one(scores: &Scores<'_>, sum: &Sum, entities: &Entities, c: Chunk) -> f64 {
    let (l, n, states) = (scores.labels, scores.positions(), sum.states());
    let (begin, end) = (c.begin as usize, c.end as usize);
    let between = |a: usize, b: usize| entities.boundary[a * l + b];
    let never = f64::NEG_INFINITY;
    let mut now = vec![never; states];
    for (state, x) in now.iter_mut().enumerate() {
        let (mask, y) = (state / l, state % l);
        if entities.kind[y] != c.kind {
            continue;
        }
        if begin == 0 {
            if between(l, y) & 2 != 0 && mask == sum.first(y) {
                *x = scores.node[y];
            }
            continue;
        }
        let (alpha, edge) = (&sum.alpha[(begin - 1) * states..begin * states], scores.edge(begin));
        let ways = (0..l).filter(|&a| between(a, y) & 2 != 0);
        let ways = ways.filter_map(|a| sum.before(mask, a, y).map(|s| alpha[s] + edge[a * l + y]));
        *x = log_sum_exp(ways) + scores.node[begin * l + y];
    }
    for t in begin + 1..end {
        let edge = scores.edge(t);
        now = (0..states)
            .map(|state| {
                let (mask, y) = (state / l, state % l);
                if entities.kind[y] != c.kind {
                    return never;
                }
                let ways = (0..l).filter(|&a| between(a, y) == 0);
                let ways = ways.filter_map(|a| sum.before(mask, a, y).map(|s| now[s] + edge[a * l + y]));
                log_sum_exp(ways) + scores.node[t * l + y]
            })
            .collect();
    }
    if end < n {
        let (edge, node) = (scores.edge(end), &scores.node[end * l..(end + 1) * l]);
        let beta = &sum.beta[end * states..(end + 1) * states];
        for (state, x) in now.iter_mut().enumerate().filter(|(_, x)| **x > never) {
            let (mask, y) = (state / l, state % l);
            let ways = (0..l).filter(|&b| between(y, b) != 0);
            let ways = ways.filter_map(|b| sum.after(mask, y, b).map(|s| edge[y * l + b] + node[b] + beta[s]));
            *x += log_sum_exp(ways);
        }
    }
    (log_sum_exp(now.into_iter()) - sum.log_z).exp().min(1.0)
}
