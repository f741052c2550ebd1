//! The k best paths of every sentence of a corpus under fixed weights.
//!
//! Ranked by float32 scores, added from left to right as `predict` adds them, so that the first path of each list is
//! the one that `Scorer::viterbi` gives. Sentences with edge attributes, or whose scores overflow, take the exact route.

use crate::chain::chart::{Chart, Steps};

use crate::chain::kbest;
use crate::chain::lattice::Scores;
use crate::chain::log::normalize_locally;
use crate::chain::support::Support;
use crate::dataset::Dataset;
use crate::error::{Error, Result};
use crate::machine::dispatch::dispatch;
use crate::machine::find::Find;
use crate::machine::force::{self, Taken, Way};
use crate::machine::simd::{Lane, WIDTH};
use crate::scores::scorer::Scorer;
use crate::scores::sentence::score_sentence;
use rayon::prelude::*;

/// Sentences that one task takes at a time.
const TASK: usize = 64;

/// Lists of paths, sentence after sentence.
#[derive(Debug, Default, PartialEq)]
pub struct Lists {
    pub counts: Vec<u32>, // [N] paths of each sentence
    pub scores: Vec<f64>, // [paths] best first within a sentence
    pub labels: Vec<u16>, // [sum of the paths' lengths]
}

struct Job<'a> {
    scorer: &'a Scorer,
    data: &'a Dataset,
    support: Option<&'a Support>,
    steps: Steps,
    exact: bool,       // every sentence by the exact route
    weights: Vec<f64>, // for that; empty where the data alone do not ask for it
    k: usize,
}

/// The k best paths of every sentence; fewer where fewer are allowed.
pub fn lists(scorer: &Scorer, data: &Dataset, support: Option<&Support>, k: usize) -> Result<Lists> {
    let layout = &scorer.layout;
    data.check_model(layout.attributes)?;
    let steps = Steps::from_scores(layout.labels, &scorer.edges.score);
    let exact = data.has_edge_attributes() || scorer.local || force::is_forced(Way::Log);
    let weights = if exact { scorer.weights.iter().map(|&x| f64::from(x)).collect() } else { Vec::new() };
    let job = Job { scorer, data, support, steps, exact, weights, k };
    let tasks: Vec<u32> = (0..data.len().div_ceil(TASK) as u32).collect();
    let parts: Vec<Result<Lists>> = tasks.par_iter().map(|&task| run(&job, task as usize)).collect();
    let mut all = Lists::default();
    for part in parts {
        let part = part?;
        all.counts.extend(part.counts);
        all.scores.extend(part.scores);
        all.labels.extend(part.labels);
    }
    Ok(all)
}

dispatch!(fn run(job: &Job<'_>, task: usize) -> Result<Lists> = run_kernel);

#[inline(always)]
unsafe fn run_kernel<S: Find>(job: &Job<'_>, task: usize) -> Result<Lists> {
    let (scorer, data) = (job.scorer, job.data);
    let mut chart = Chart::new(scorer.layout.labels);
    let (mut scores, mut paths) = (Vec::new(), Vec::new());
    let mut out = Lists::default();
    for s in task * TASK..((task + 1) * TASK).min(data.len()) {
        let (begin, end) = (data.sentences[s], data.sentences[s + 1]);
        let before = out.scores.len();
        let mut finite = !job.exact;
        if finite {
            chart.begin(end - begin, false);
            for t in 0..end - begin {
                fill(job, &mut chart, begin, end, t);
                chart.advance::<S>(&job.steps, t);
            }
            chart.best_paths::<S>(&job.steps, job.k, &mut scores, &mut paths);
            finite = job.k == 0 || scores.first().is_some_and(|x| x.is_finite());
        }
        force::count(if finite { Taken::Chart } else { Taken::Log }, 1);
        if finite {
            for i in 0..scores.len() {
                let path = &paths[i * (end - begin)..(i + 1) * (end - begin)];
                // Exact sums; rounding may have ranked two equals, which must not show as a rise.
                let score = chart.score(&job.steps, path);
                let above = if i == 0 { score } else { out.scores[out.scores.len() - 1] };
                out.scores.push(score.min(above));
            }
            out.labels.extend_from_slice(&paths);
        } else {
            exact(job, s, &mut out);
        }
        if job.k > 0 && (out.scores.len() == before || !out.scores[before].is_finite()) {
            return Err(Error::Value(format!(
                "sentence {s}: no label sequence is allowed, or its score is not finite; relax the constraints or scale its values down"
            )));
        }
        out.counts.push((out.scores.len() - before) as u32);
    }
    Ok(out)
}

/// Node scores of position t, added in the order of `Scorer::viterbi`.
#[inline(always)]
fn fill(job: &Job<'_>, chart: &mut Chart, begin: usize, end: usize, t: usize) {
    let (scorer, data, width) = (job.scorer, job.data, chart.width);
    let token = begin + t;
    let row = &mut chart.node[t * width..(t + 1) * width];
    row.fill(Lane::ZERO);
    for at in data.node.ptr[token]..data.node.ptr[token + 1] {
        let (first, labels) = scorer.layout.node(data.node.ids[at]);
        let value = data.node.value(at);
        for (&y, &w) in labels.iter().zip(&scorer.weights[first..first + labels.len()]) {
            row[y as usize / WIDTH].0[y as usize % WIDTH] += w * value;
        }
    }
    for (scores, here) in [(&scorer.start, t == 0), (&scorer.end, token + 1 == end)] {
        if here {
            for (y, &x) in scores.iter().enumerate() {
                row[y / WIDTH].0[y % WIDTH] += x;
            }
        }
    }
    if let Some(support) = job.support {
        let l = scorer.layout.labels;
        let set = support.of[token] as usize;
        for (y, &allowed) in support.sets[set * l..(set + 1) * l].iter().enumerate() {
            if !allowed {
                row[y / WIDTH].0[y % WIDTH] = f32::NEG_INFINITY;
            }
        }
    }
}

/// One sentence in double precision.
fn exact(job: &Job<'_>, sentence: usize, out: &mut Lists) {
    let (scorer, data) = (job.scorer, job.data);
    let l = scorer.layout.labels;
    let (mut node, mut edge) = (Vec::new(), Vec::new());
    let fresh: Vec<f64>;
    let weights = if job.weights.is_empty() {
        fresh = scorer.weights.iter().map(|&x| f64::from(x)).collect();
        &fresh
    } else {
        &job.weights
    };
    score_sentence(data, &scorer.layout, weights, &scorer.edge_scores, sentence as u32, &mut node, &mut edge);
    if scorer.local {
        normalize_locally(l, &mut node, &edge);
    }
    if let Some(support) = job.support {
        support.forbid(data.sentences[sentence], l, &mut node);
    }
    for (score, path) in kbest::kbest(&Scores { labels: l, node: &node, edge: &edge }, job.k) {
        out.scores.push(score);
        out.labels.extend(path);
    }
}
