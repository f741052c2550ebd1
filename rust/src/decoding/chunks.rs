//! Probability that a sentence contains exactly a given chunk: a sum over all paths with this chunk, by forward and
//! backward sums outside of the chunk and a constrained recursion inside (Culotta & McCallum 2004).
//!
//! ```text
//! v_i(y) = s_i(y) + log sum_{a: a chunk begins between a and y} exp(alpha_{i-1}(a) + A[a, y])        y of the type
//! v_t(y) = s_t(y) + log sum_{a: nothing begins or ends} exp(v_{t-1}(a) + A[a, y])
//! log P  = log sum_y exp(v_j(y) + log sum_{b: a chunk ends between y and b} exp(A[y, b] + s_{j+1}(b) + beta_{j+1}(b))) - log Z
//! ```

use crate::chain::sums::log64::Trellis;
use crate::machine::system::stop;

use crate::chain::lattice::{log_sum_exp, Scores};
use crate::chain::limits::at_most_once::{sum::Sum, Groups};
use crate::chain::limits::entities::Entities;
use crate::chain::limits::support::Support;
use crate::dataset::Dataset;
use crate::error::{Error, Result};
use crate::scores::scorer::Scorer;
use crate::scores::sentence::{doubles, Scored};
use rayon::prelude::*;

/// Chunk of a type from token `begin` up to, but not including, `end` of a sentence.
#[derive(Clone, Copy, Debug)]
pub struct Chunk {
    pub sentence: u32,
    pub begin: u32,
    pub end: u32,
    pub kind: u16,
}

/// Return the probability of each chunk. With `once`, over the paths in which each group forms at most one span.
pub fn chunks(
    scorer: &Scorer,
    data: &Dataset,
    support: Option<&Support>,
    entities: &Entities,
    chunks: &[Chunk],
    once: Option<&Groups>,
) -> Result<Vec<f64>> {
    let l = scorer.layout.labels;
    if let Some(groups) = once {
        groups.check(l)?;
        groups.check_sum()?;
    }
    if entities.kind.len() != l {
        return Err(Error::Value(format!("a table of {} labels for a model of {l}", entities.kind.len())));
    }
    data.check_model(scorer.layout.attributes)?;
    for c in chunks {
        let length = match data.sentences.get(c.sentence as usize..c.sentence as usize + 2) {
            Some(s) => s[1] - s[0],
            None => return Err(Error::Value(format!("chunk in sentence {}, which does not exist", c.sentence))),
        };
        if c.begin >= c.end || c.end as usize > length {
            let message = format!("a chunk from {} to {} is not inside its {length} tokens", c.begin, c.end);
            return Err(Error::Value(message).of_sentence(c.sentence as usize));
        }
    }
    let mut order: Vec<u32> = (0..chunks.len() as u32).collect();
    order.sort_by_key(|&i| chunks[i as usize].sentence);
    let groups: Vec<&[u32]> =
        order.chunk_by(|&a, &b| chunks[a as usize].sentence == chunks[b as usize].sentence).collect();
    let weights = doubles(scorer);
    let stop = stop::current();
    let found: Vec<Vec<f64>> = groups
        .par_iter()
        .map_init(
            || (Scored::default(), Trellis::default(), once.map(Sum::new)),
            |(scored, trellis, sum), group| {
                let _guard = stop.enter();
                let s = chunks[group[0] as usize].sentence;
                scored.fill(scorer, &weights, data, support, s as usize);
                let scores = scored.scores(l);
                if let (Some(groups), Some(sum)) = (once, sum) {
                    sum.forward(&scores, groups);
                    sum.backward(&scores);
                    let of = |&i: &u32| chunk_probability_at_most_once(&scores, sum, entities, chunks[i as usize]);
                    return group.iter().map(of).collect();
                }
                trellis.forward(&scores);
                trellis.backward(&scores);
                group.iter().map(|&i| chunk_probability(&scores, trellis, entities, chunks[i as usize])).collect()
            },
        )
        .collect();
    let mut out = vec![0.0; chunks.len()];
    for (group, values) in groups.iter().zip(found) {
        for (&i, p) in group.iter().zip(values) {
            out[i as usize] = p;
        }
    }
    Ok(out)
}

/// Return P(exactly this chunk | x), given the sums of its sentence.
fn chunk_probability(scores: &Scores<'_>, trellis: &Trellis, entities: &Entities, c: Chunk) -> f64 {
    let (l, n) = (scores.labels, scores.positions());
    let (begin, end) = (c.begin as usize, c.end as usize);
    let between = |a: usize, b: usize| entities.boundary[a * l + b];
    let is_type = |y: usize| entities.kind[y] == c.kind;
    let neg_inf = f64::NEG_INFINITY;
    let mut current: Vec<f64> = (0..l)
        .map(|y| match (is_type(y), begin) {
            (false, _) => neg_inf,
            (true, 0) if between(l, y) & 2 == 0 => neg_inf,
            (true, 0) => scores.node[y],
            (true, t) => {
                let (alpha, edge) = (|a: usize| trellis.alpha((t - 1) * l + a), scores.edge(t));
                let terms = (0..l).filter(|&a| between(a, y) & 2 != 0).map(|a| alpha(a) + edge[a * l + y]);
                log_sum_exp(terms) + scores.node[t * l + y]
            }
        })
        .collect();
    for t in begin + 1..end {
        let edge = scores.edge(t);
        current = (0..l)
            .map(|y| match is_type(y) {
                false => neg_inf,
                true => {
                    let terms = (0..l).filter(|&a| between(a, y) == 0).map(|a| current[a] + edge[a * l + y]);
                    log_sum_exp(terms) + scores.node[t * l + y]
                }
            })
            .collect();
    }
    if end < n {
        let (edge, node) = (scores.edge(end), &scores.node[end * l..(end + 1) * l]);
        let beta = |b: usize| trellis.beta(end * l + b);
        for (y, x) in current.iter_mut().enumerate().filter(|(_, x)| **x > neg_inf) {
            let terms = (0..l).filter(|&b| between(y, b) != 0).map(|b| edge[y * l + b] + node[b] + beta(b));
            *x += log_sum_exp(terms);
        }
    }
    (log_sum_exp(current.into_iter()) - trellis.log_z).exp().min(1.0)
}

/// Version of `chunk_probability` over the allowed paths: the recursion runs over (set of spans begun, label), given
/// the sums of the sentence.
fn chunk_probability_at_most_once(scores: &Scores<'_>, sum: &Sum, entities: &Entities, c: Chunk) -> f64 {
    let (l, n, states) = (scores.labels, scores.positions(), sum.states());
    let (begin, end) = (c.begin as usize, c.end as usize);
    let between = |a: usize, b: usize| entities.boundary[a * l + b];
    let neg_inf = f64::NEG_INFINITY;
    let mut current = vec![neg_inf; states];
    for (state, x) in current.iter_mut().enumerate() {
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
        let terms = (0..l).filter(|&a| between(a, y) & 2 != 0);
        let terms = terms.filter_map(|a| sum.before(mask, a, y).map(|s| alpha[s] + edge[a * l + y]));
        *x = log_sum_exp(terms) + scores.node[begin * l + y];
    }
    for t in begin + 1..end {
        let edge = scores.edge(t);
        current = (0..states)
            .map(|state| {
                let (mask, y) = (state / l, state % l);
                if entities.kind[y] != c.kind {
                    return neg_inf;
                }
                let terms = (0..l).filter(|&a| between(a, y) == 0);
                let terms = terms.filter_map(|a| sum.before(mask, a, y).map(|s| current[s] + edge[a * l + y]));
                log_sum_exp(terms) + scores.node[t * l + y]
            })
            .collect();
    }
    if end < n {
        let (edge, node) = (scores.edge(end), &scores.node[end * l..(end + 1) * l]);
        let beta = &sum.beta[end * states..(end + 1) * states];
        for (state, x) in current.iter_mut().enumerate().filter(|(_, x)| **x > neg_inf) {
            let (mask, y) = (state / l, state % l);
            let terms = (0..l).filter(|&b| between(y, b) != 0);
            let terms = terms.filter_map(|b| sum.after(mask, y, b).map(|s| edge[y * l + b] + node[b] + beta[s]));
            *x += log_sum_exp(terms);
        }
    }
    (log_sum_exp(current.into_iter()) - sum.log_z).exp().min(1.0)
}
