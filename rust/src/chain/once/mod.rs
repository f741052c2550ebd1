//! Labels that form at most one contiguous span in a sentence: searches and sums over (set of spans begun, label).
//!
//! The scores of such a state are those of its label; a step that begins a span of a group whose bit is set does not
//! exist. A path of labels has one path of states, so the best paths, log Z and marginals of the states are those of the
//! lawful label paths. With n groups tracked a token costs 2^n times as much.
//!
//! `search` tracks only the groups that a sentence's best paths repeat, `sum` all of them.

pub mod search;
pub mod sum;

use crate::chain::log::{normalize_locally, Scores};
use crate::dataset::Dataset;
use crate::decoding::lists::Lists;
use crate::error::{Error, Result};
use crate::learners::batch::alone::score_sentence;
use crate::machine::shared::Shared;
use crate::scores::nodes::Support;
use crate::scores::scorer::Scorer;
use rayon::prelude::*;
use search::Search;
use sum::Sum;

/// No group.
pub const NONE: u32 = u32::MAX;
/// Labels that can be tracked at once.
pub const MOST: usize = 12;
const TASK: usize = 16;

/// Which labels may occur in one span only.
#[derive(Clone, Debug)]
pub struct Groups {
    pub of: Vec<u32>,      // [L] group of each label, or NONE
    pub begins: Vec<bool>, // [L + 1, L] a span begins between two labels; row L: at the start of the sentence
}

impl Groups {
    /// Whether they are of so many labels.
    pub fn check(&self, labels: usize) -> Result<()> {
        match self.of.len() == labels && self.begins.len() == (labels + 1) * labels {
            true => Ok(()),
            false => Err(Error::Value(format!("groups of {} labels for a model of {labels}", self.of.len()))),
        }
    }

    /// The groups that begin more than one span on a path are added to `found`.
    pub fn repeated(&self, path: &[u16], found: &mut Vec<u32>) {
        let l = self.of.len();
        let mut before = l;
        for (t, &y) in path.iter().enumerate() {
            let group = self.of[y as usize];
            if group != NONE && self.begins[before * l + y as usize] && !found.contains(&group) {
                // Spans are few and short beside sentences: look back for another beginning.
                let mut earlier = l;
                for &z in &path[..t] {
                    if self.of[z as usize] == group && self.begins[earlier * l + z as usize] {
                        found.push(group);
                        break;
                    }
                    earlier = z as usize;
                }
            }
            before = y as usize;
        }
    }

    /// Whether every group begins at most one span on a path.
    pub fn lawful(&self, path: &[u16]) -> bool {
        let mut found = Vec::new();
        self.repeated(path, &mut found);
        found.is_empty()
    }

    /// All groups.
    pub fn all(&self) -> Vec<u32> {
        let mut all: Vec<u32> = self.of.iter().copied().filter(|&g| g != NONE).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// The bit that a label sets when it begins a span, 0 for labels of groups that are not tracked: [L].
    fn bits(&self, tracked: &[u32]) -> Vec<usize> {
        self.of.iter().map(|g| tracked.iter().position(|a| a == g).map_or(0, |i| 1 << i)).collect()
    }

    /// Whether gold paths keep the rule.
    pub fn check_gold(&self, data: &Dataset, labels: usize) -> Result<()> {
        self.check(labels)?;
        for (i, s) in data.sentences.windows(2).enumerate() {
            if !self.lawful(&data.gold[s[0]..s[1]]) {
                return Err(Error::Training(format!(
                    "sentence {i}: a label that may occur once has two spans in its gold labels; correct the sentence, \
                     let the label not be such, or leave the rule to decoding (constraints= of predict)"
                )));
            }
        }
        Ok(())
    }

    /// Whether sums over states are possible.
    pub fn check_sum(&self) -> Result<()> {
        match self.all().len() <= MOST {
            true => Ok(()),
            false => Err(Error::Value(format!(
                "{} labels may occur once, sums over paths can keep track of {MOST}; let fewer be such, or leave the rule \
                 to decoding (constraints= of predict)",
                self.all().len()
            ))),
        }
    }
}

/// Whether the groups and attributes are the model's.
fn check(scorer: &Scorer, data: &Dataset, groups: &Groups) -> Result<()> {
    groups.check(scorer.layout.labels)?;
    data.check_model(scorer.layout.attributes)
}

pub(crate) fn no_path(sentence: usize) -> Error {
    Error::Value(format!(
        "sentence {sentence}: no label sequence is allowed, or its score is not finite; relax the constraints"
    ))
}

/// Scores of one sentence in double precision.
#[derive(Default)]
struct Scored {
    node: Vec<f64>,
    edge: Vec<f64>,
}

impl Scored {
    fn fill(&mut self, scorer: &Scorer, weights: &[f64], data: &Dataset, support: Option<&Support>, s: usize) {
        let l = scorer.layout.labels;
        score_sentence(data, &scorer.layout, weights, &scorer.edge_scores, s as u32, &mut self.node, &mut self.edge);
        if scorer.local {
            normalize_locally(l, &mut self.node, &self.edge);
        }
        if let Some(support) = support {
            support.forbid(data.sentences[s], l, &mut self.node);
        }
    }

    fn scores(&self, labels: usize) -> Scores<'_> {
        Scores { labels, node: &self.node, edge: &self.edge }
    }
}

fn doubles(scorer: &Scorer) -> Vec<f64> {
    scorer.weights.iter().map(|&x| f64::from(x)).collect()
}

/// The k best paths of every sentence in which each group begins at most one span.
pub fn kbest(scorer: &Scorer, data: &Dataset, support: Option<&Support>, groups: &Groups, k: usize) -> Result<Lists> {
    check(scorer, data, groups)?;
    let (l, weights) = (scorer.layout.labels, doubles(scorer));
    let parts: Vec<Result<Lists>> = (0..data.len().div_ceil(TASK))
        .into_par_iter()
        .map(|task| {
            let (mut scored, mut search, mut lists) = (Scored::default(), Search::default(), Lists::default());
            for s in task * TASK..((task + 1) * TASK).min(data.len()) {
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
    let mut out = Lists::default();
    for part in parts {
        let part = part?;
        out.counts.extend(part.counts);
        out.scores.extend(part.scores);
        out.labels.extend(part.labels);
    }
    Ok(out)
}

pub(crate) fn too_many(sentence: usize, groups: usize) -> Error {
    Error::Value(format!(
        "sentence {sentence}: {groups} labels that may occur once compete, {MOST} can be told apart; let fewer be such"
    ))
}

/// Marginals p_t(y) over the lawful paths, [tokens, L], and log Z of every sentence, [N].
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
    let failed = (0..data.len()).into_par_iter().with_min_len(TASK).map_init(
        || (Scored::default(), Sum::new(groups), Vec::new()),
        |(scored, sum, here), s| {
            scored.fill(scorer, &weights, data, support, s);
            let scores = scored.scores(l);
            let z = sum.forward(&scores, groups);
            if !z.is_finite() {
                return Some(s);
            }
            sum.backward(&scores);
            here.clear();
            here.resize(scored.node.len(), 0.0);
            sum.add_nodes(1.0, here);
            // SAFETY: a sentence's tokens are its own.
            let place = unsafe { out.slice(data.sentences[s] * l, here.len()) };
            for (x, &p) in place.iter_mut().zip(here.iter()) {
                *x = p as f32;
            }
            unsafe { logs.set(s, z) };
            None
        },
    );
    match failed.flatten().min() {
        None => Ok((p, log_z)),
        Some(s) => Err(no_path(s)),
    }
}

/// Whether each sentence has a path inside its sets and pairs.
pub fn feasible(offsets: &[u64], sets: &[bool], of: &[u32], pairs: &[bool], l: usize) -> Vec<bool> {
    offsets
        .par_windows(2)
        .map(|o| {
            let mut now: Vec<bool> = Vec::new();
            for t in o[0] as usize..o[1] as usize {
                let set = &sets[of[t] as usize * l..(of[t] as usize + 1) * l];
                now = match now.is_empty() {
                    true => set.to_vec(),
                    false => (0..l).map(|y| set[y] && (0..l).any(|k| now[k] && pairs[k * l + y])).collect(),
                };
                if !now.contains(&true) {
                    return false;
                }
            }
            true
        })
        .collect()
}
