//! Paths and marginals of a corpus in which each group of labels forms at most one contiguous span.

use crate::chain::limits::at_most_once::{search::AtMostOnceSearch, sum::Sum, too_many, Groups};
use crate::chain::limits::support::Support;
use crate::dataset::Dataset;
use crate::decoding::lists::{claim_lists, no_path, PathLists};
use crate::error::Result;
use crate::machine::system::shared::Shared;
use crate::machine::system::stop;
use crate::scores::scorer::Scorer;
use crate::scores::sentence::{doubles, too_large, Scored};
use rayon::prelude::*;

const TASK: usize = 16;

/// Check the groups and attributes against the model.
fn check(scorer: &Scorer, data: &Dataset, groups: &Groups) -> Result<()> {
    groups.check(scorer.layout.labels)?;
    data.check_model(scorer.layout.attributes)
}

/// Return the k best paths of every sentence in which each group begins at most one span.
pub fn kbest(
    scorer: &Scorer,
    data: &Dataset,
    support: Option<&Support>,
    groups: &Groups,
    k: usize,
) -> Result<PathLists> {
    check(scorer, data, groups)?;
    claim_lists(data, scorer.layout.labels, k)?;
    let (l, weights) = (scorer.layout.labels, doubles(scorer));
    let stop = stop::current();
    let parts: Vec<Result<PathLists>> = (0..data.len().div_ceil(TASK))
        .into_par_iter()
        .map(|task| {
            let _guard = stop.enter();
            let (mut scored, mut search, mut lists) =
                (Scored::default(), AtMostOnceSearch::default(), PathLists::default());
            for s in task * TASK..((task + 1) * TASK).min(data.len()) {
                stop::check();
                scored.fill(scorer, &weights, data, support, s);
                search.run(&scored.scores(l), groups, k).map_err(|n| too_many(s, n))?;
                if !search.scores.first().is_some_and(|x| x.is_finite()) {
                    return Err(no_path(s));
                }
                lists.counts.push(search.scores.len() as u32);
                lists.scores.extend_from_slice(&search.scores);
                lists.labels.extend_from_slice(&search.paths);
            }
            Ok(lists)
        })
        .collect();
    PathLists::join(parts)
}

/// Return the marginals p_t(y) over the allowed paths, [tokens, L], and log Z of every sentence, [N].
pub fn marginals(
    scorer: &Scorer,
    data: &Dataset,
    support: Option<&Support>,
    groups: &Groups,
) -> Result<(Vec<f32>, Vec<f64>)> {
    check(scorer, data, groups)?;
    groups.check_sum()?;
    let (l, weights) = (scorer.layout.labels, doubles(scorer));
    let mut p = vec![0.0f32; data.tokens() * l];
    let mut log_z = vec![0.0f64; data.len()];
    let (out, logs) = (Shared::new(&mut p), Shared::new(&mut log_z));
    let stop = stop::current();
    let failed = (0..data.len()).into_par_iter().with_min_len(TASK).map_init(
        || (Scored::default(), Sum::new(groups), Vec::new()),
        |(scored, sum, here), s| {
            let _guard = stop.enter();
            scored.fill(scorer, &weights, data, support, s);
            let scores = scored.scores(l);
            let z = sum.forward(&scores, groups);
            if !z.is_finite() || too_large(scores.node) || too_large(scores.edge) {
                return Some(s);
            }
            sum.backward(&scores);
            here.clear();
            here.resize(scored.node.len(), 0.0);
            sum.add_nodes(1.0, here);
            // SAFETY: no other thread writes to the tokens of this sentence.
            let place = unsafe { out.slice(data.sentences[s] * l, here.len()) };
            for (x, &p) in place.iter_mut().zip(here.iter()) {
                *x = p as f32;
            }
            // SAFETY: as above.
            unsafe { logs.set(s, z) };
            None
        },
    );
    match failed.flatten().min() {
        None => Ok((p, log_z)),
        Some(s) => Err(no_path(s)),
    }
}
