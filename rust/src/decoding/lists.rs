//! k-best paths of every sentence of a corpus under fixed weights.
//!
//! Paths are ranked by float32 scores, added from left to right as in `best`, so the first path of each list is
//! the one that `Scorer::viterbi` returns. Sentences with edge attributes, or whose scores overflow, are decoded in
//! double precision.

use crate::chain::limits::support::Support;
use crate::chain::viterbi::kbest;
use crate::chain::viterbi::sentence::{advance_all, best_paths, Chart, Steps};
use crate::dataset::Dataset;
use crate::error::{Error, Result};
use crate::machine::simd::Lane;
use crate::machine::system::budget;
use crate::machine::system::stop;
use crate::machine::system::testing::{self, CodePath, PathCount};
use crate::scores::scorer::Scorer;
use crate::scores::sentence::{doubles, Scored};
use rayon::prelude::*;

/// Sentences per parallel task.
const TASK: usize = 64;
/// Number of labels from which on edge lists are faster for a single sentence.
const MIN_LIST_LABELS: usize = 192;

/// Concatenated lists of paths of all sentences.
#[derive(Debug, Default, PartialEq)]
pub struct PathLists {
    pub counts: Vec<u32>, // [N] paths of each sentence
    pub scores: Vec<f64>, // [paths] best first within a sentence
    pub labels: Vec<u16>, // [sum of the lengths of the paths]
}

impl PathLists {
    /// Append the best paths of a sentence of n tokens with their exact scores. Rounding may have swapped paths of equal
    /// score, so each score is capped by the one before it.
    pub fn append(&mut self, paths: &[u16], count: usize, n: usize, score: impl Fn(&[u16]) -> f64) {
        let mut previous = f64::INFINITY;
        for i in 0..count {
            previous = score(&paths[i * n..(i + 1) * n]).min(previous);
            self.scores.push(previous);
        }
        self.labels.extend_from_slice(&paths[..count * n]);
    }

    /// Concatenate the lists of parts of a corpus, or return the first error.
    pub fn join(parts: Vec<Result<PathLists>>) -> Result<PathLists> {
        let mut all = PathLists::default();
        for part in parts {
            let part = part?;
            all.counts.extend(part.counts);
            all.scores.extend(part.scores);
            all.labels.extend(part.labels);
        }
        Ok(all)
    }
}

/// Return the error for a sentence without a path.
pub fn no_path(sentence: usize) -> Error {
    let message =
        "no label sequence is allowed, or its score is not finite; relax the constraints or scale its values down";
    Error::Value(message.into()).of_sentence(sentence)
}

/// Check that the lists fit into memory: the paths and scores of every sentence, and the search for the longest one.
pub fn claim_lists(data: &Dataset, labels: usize, k: usize) -> Result<()> {
    let (mut all, mut largest_search) = (0usize, 0);
    for s in data.sentences.windows(2) {
        let n = s[1] - s[0];
        let found = budget::power(labels, n, k);
        all = all.saturating_add(budget::bytes(&[found, 2 * n + size_of::<f64>()]));
        largest_search = largest_search.max(kbest::bytes(labels, n, k));
    }
    budget::claim(
        &format!("lists of {k} paths of {} sentences", data.len()),
        all.saturating_add(largest_search),
        "use a smaller k",
    )
}

struct ListSearch<'a> {
    scorer: &'a Scorer,
    data: &'a Dataset,
    support: Option<&'a Support>,
    steps: &'a Steps,
    exact: bool,       // decode every sentence in double precision
    weights: Vec<f64>, // for double precision, empty if `exact` is false
    k: usize,
}

/// Return the k best paths of every sentence, or fewer if fewer are allowed.
pub fn lists(scorer: &Scorer, data: &Dataset, support: Option<&Support>, k: usize) -> Result<PathLists> {
    let layout = &scorer.layout;
    data.check_model(layout.attributes)?;
    claim_lists(data, layout.labels, k)?;
    let steps = scorer.chart_steps();
    let exact = scorer.varies(data) || scorer.local || testing::is_forced(CodePath::Log);
    let weights = if exact { doubles(scorer) } else { Vec::new() };
    let job = ListSearch { scorer, data, support, steps, exact, weights, k };
    let tasks: Vec<u32> = (0..data.len().div_ceil(TASK) as u32).collect();
    let stop = stop::current();
    let one = |&task: &u32| {
        let _guard = stop.enter();
        run(&job, task as usize)
    };
    let parts: Vec<Result<PathLists>> = tasks.par_iter().map(one).collect();
    PathLists::join(parts)
}

fn run(job: &ListSearch<'_>, task: usize) -> Result<PathLists> {
    let (scorer, data) = (job.scorer, job.data);
    let mut chart = Chart::new(scorer.layout.labels);
    let use_lists = scorer.layout.labels >= MIN_LIST_LABELS || testing::is_forced(CodePath::Sparse);
    let lists = scorer.edges.sparse.as_ref().filter(|_| use_lists);
    let (mut scores, mut paths) = (Vec::new(), Vec::new());
    let mut out = PathLists::default();
    for s in task * TASK..((task + 1) * TASK).min(data.len()) {
        stop::check();
        let (begin, end) = (data.sentences[s], data.sentences[s + 1]);
        let before = out.scores.len();
        let mut finite = !job.exact;
        if finite {
            chart.begin(end - begin, false);
            let width = chart.width;
            for t in 0..end - begin {
                let row = &mut chart.node[t * width..(t + 1) * width];
                row.fill(Lane::ZERO);
                scorer.fill(data, begin + t, (t == 0, begin + t + 1 == end), row);
                if let Some(support) = job.support {
                    support.forbid_row(begin + t, scorer.layout.labels, row);
                }
            }
            advance_all(&mut chart, job.steps, lists);
            best_paths(&mut chart, job.steps, job.k, &mut scores, &mut paths);
            finite = job.k == 0 || scores.first().is_some_and(|x| x.is_finite());
        }
        testing::count(if finite { PathCount::Chart } else { PathCount::Log }, 1);
        if finite {
            out.append(&paths, scores.len(), end - begin, |path| chart.score(job.steps, path));
        } else {
            decode_in_double(job, s, &mut out);
        }
        if job.k > 0 && (out.scores.len() == before || !out.scores[before].is_finite()) {
            return Err(no_path(s));
        }
        out.counts.push((out.scores.len() - before) as u32);
    }
    Ok(out)
}

/// Decode one sentence in double precision.
fn decode_in_double(job: &ListSearch<'_>, sentence: usize, out: &mut PathLists) {
    let (scorer, data) = (job.scorer, job.data);
    let fresh: Vec<f64>;
    let weights = if job.weights.is_empty() {
        fresh = doubles(scorer);
        &fresh
    } else {
        &job.weights
    };
    let mut scored = Scored::default();
    scored.fill(scorer, weights, data, job.support, sentence);
    for (score, path) in kbest::kbest(&scored.scores(scorer.layout.labels), job.k) {
        out.scores.push(score);
        out.labels.extend(path);
    }
}
