//! One step of each learner: decode a sentence, compare with its gold labels, change the weights.

use crate::chain::viterbi::sentence::{best_path, best_paths, Chart, Steps};
use crate::machine::system::stop;

use crate::chain::limits::at_most_once::{search::AtMostOnceSearch, too_many, Groups};
use crate::chain::limits::entities::Entities;
use crate::error::{Error, Result};
use crate::learners::online::cost::{Cost, SpanScratch};
use crate::learners::online::differences::{Differences, Patterns};
use crate::learners::online::program;
use crate::learners::tally::{not_finite, Tally};
use crate::machine::simd::dispatch::dispatch;
use crate::machine::simd::Lane;
use crate::machine::system::names::named;
use crate::scores::online_layout::{weights, OnlineWeights, TokenCells};

/// Update for a wrong guess y^, with d = S(y) - S(y^) and loss = cost - w.d.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rule {
    /// w += d (Collins 2002).
    Perceptron,
    /// The smallest change of w that gives every path of the k best a margin of its cost (Crammer & Singer 2003,
    /// McDonald, Crammer & Pereira 2005): w += sum_j tau_j d_j, tau >= 0, and sum tau <= C if there is a C.
    Mira { k: usize, limit: Option<f64> },
    /// Passive-aggressive I and II on the best path (Crammer et al. 2006, section 3): w += tau d with tau = min(C,
    /// loss / |d|^2) in I and tau = loss / (|d|^2 + 1 / 2C) in II.
    PassiveAggressive { second: bool, c: f64 },
    /// AROW on the best path with a variance v for each weight (Crammer, Kulesza & Dredze 2009, per coordinate as in
    /// Mejer & Crammer 2010): alpha = loss / (gamma + sum d^2 v), w += alpha v d, 1/v += d^2 / gamma. A sentence's
    /// weight multiplies both changes. `variance` is v before the first step.
    Arow { gamma: f64, variance: f64 },
}

named!(
    /// Rules by the names of their learners.
    pub enum RuleKind: "online learner" {
        Perceptron = "perceptron",
        Mira = "mira",
        PassiveAggressive = "pa",
        Arow = "arow",
    }
);

impl Rule {
    /// Reject numbers out of range.
    pub(crate) fn check(self) -> Result<()> {
        let positive = |name: &str, x: f64| match x > 0.0 && x.is_finite() {
            true => Ok(()),
            false => Err(Error::Value(format!("{name} must be a finite number > 0, got {x}"))),
        };
        match self {
            Rule::Mira { k: 0, .. } => Err(Error::Value("k must be at least 1".into())),
            Rule::Mira { limit: Some(c), .. } | Rule::PassiveAggressive { c, .. } => positive("C", c),
            Rule::Arow { gamma, variance } => positive("gamma", gamma).and_then(|()| positive("variance", variance)),
            Rule::Perceptron | Rule::Mira { limit: None, .. } => Ok(()),
        }
    }

    /// Number of paths to decode.
    pub(crate) fn k(self) -> usize {
        match self {
            Rule::Mira { k, .. } => k,
            Rule::Perceptron | Rule::PassiveAggressive { .. } | Rule::Arow { .. } => 1,
        }
    }

    /// Variance of every weight before the first step, if the rule has variances.
    pub(crate) fn variance(self) -> Option<f64> {
        match self {
            Rule::Arow { variance, .. } => Some(variance),
            Rule::Perceptron | Rule::Mira { .. } | Rule::PassiveAggressive { .. } => None,
        }
    }
}

/// A rule, with everything that does not change during training.
pub struct Task {
    pub tokens: TokenCells,
    pub rule: Rule,
    pub cost: Cost,
    pub entities: Entities,
    pub augment: Vec<Lane>, // [L, width] cost of each label for each gold label, added in decoding, or empty
    pub sample_weight: Vec<f32>, // [N], or empty for all 1
    pub once: Option<Groups>, // constraint on every guess
}

/// Scratch of one thread.
pub struct Worker {
    chart: Chart,
    varied: Steps,          // edge scores of the current sentence, with edge attributes
    steps: Vec<(u32, f32)>, // changes of cells by the perceptron
    differences: Differences,
    patterns: Patterns,
    span_scratch: SpanScratch,
    path: Vec<u16>,
    paths: Vec<u16>, // [k, T]
    scores: Vec<f64>,
    kept: Vec<usize>, // which of the paths are not gold
    gram: Vec<f64>,
    violation: Vec<f64>, // cost - w.d of each
    tau: Vec<f64>,
    search: AtMostOnceSearch, // if labels may occur once
}

impl Worker {
    pub fn new(labels: usize) -> Worker {
        Worker {
            chart: Chart::new(labels),
            varied: Steps::new(labels),
            steps: Vec::new(),
            differences: Differences::default(),
            patterns: Patterns::default(),
            span_scratch: SpanScratch::default(),
            path: Vec::new(),
            paths: Vec::new(),
            scores: Vec::new(),
            kept: Vec::new(),
            gram: Vec::new(),
            violation: Vec::new(),
            tau: Vec::new(),
            search: AtMostOnceSearch::default(),
        }
    }
}

/// Whether all paths of a list have at most one span per group.
fn all_allowed(groups: &Groups, paths: &[u16], length: usize) -> bool {
    length == 0 || paths.chunks_exact(length).all(|path| groups.allows(path))
}

/// Keep the best path if it satisfies the constraint, or replace it by the best path that does.
fn enforce_groups(
    groups: &Groups,
    chart: &Chart,
    steps: &Steps,
    search: &mut AtMostOnceSearch,
    sentence: u32,
    path: &mut [u16],
) -> Result<()> {
    if !groups.allows(path) {
        search.of_chart(chart, steps, groups, 1).map_err(|n| too_many(sentence as usize, n))?;
        match search.paths.len() == path.len() {
            true => path.copy_from_slice(&search.paths),
            false => return Err(not_finite(sentence)),
        }
    }
    Ok(())
}

/// Take one step for each sentence of `order`.
pub fn learn(task: &Task, online_weights: &mut OnlineWeights, worker: &mut Worker, order: &[u32]) -> Result<Tally> {
    let mut tally = Tally::default();
    let k = task.rule.k();
    for (i, &sentence) in order.iter().enumerate() {
        stop::check();
        let next = order.get(i + 1).copied().unwrap_or(sentence);
        let gold = task.tokens.gold(sentence);
        let weight = task.sample_weight.get(sentence as usize).copied().unwrap_or(1.0);
        weights::run(
            online_weights,
            &task.tokens,
            &mut worker.chart,
            &mut worker.varied,
            sentence,
            next,
            &task.augment,
        );
        let steps = online_weights.steps(&task.tokens, &worker.varied);
        if k == 1 {
            worker.path.resize(gold.len(), 0);
            let score = best_path(&worker.chart, steps, &mut worker.path);
            if !score.is_finite() {
                return Err(not_finite(sentence));
            }
            if let Some(groups) = &task.once {
                enforce_groups(groups, &worker.chart, steps, &mut worker.search, sentence, &mut worker.path)?;
            }
        } else {
            best_paths(&mut worker.chart, steps, k, &mut worker.scores, &mut worker.paths);
            if !worker.scores.first().is_some_and(|x| x.is_finite()) {
                return Err(not_finite(sentence));
            }
            if let Some(groups) = task.once.as_ref().filter(|g| !all_allowed(g, &worker.paths, gold.len())) {
                worker.search.of_chart(&worker.chart, steps, groups, k).map_err(|n| too_many(sentence as usize, n))?;
                worker.scores.clear();
                worker.scores.extend_from_slice(&worker.search.scores);
                std::mem::swap(&mut worker.paths, &mut worker.search.paths);
            }
            worker.path.clear();
            worker.path.extend_from_slice(&worker.paths[..gold.len()]);
        }
        let wrong = gold.iter().zip(&worker.path).filter(|(a, b)| a != b).count();
        tally.sentences += 1;
        tally.tokens += gold.len();
        tally.wrong_sentences += usize::from(wrong > 0);
        tally.wrong_tokens += wrong;
        if k > 1 || wrong > 0 {
            tally.updates += usize::from(change(task, online_weights, worker, sentence, weight, &mut tally.loss)?);
        }
        online_weights.clock += 1.0;
    }
    Ok(tally)
}

dispatch!(
    /// Update the weights after a sentence. Return whether anything changed. The compiler vectorizes the loops.
    fn change(task: &Task, weights: &mut OnlineWeights, worker: &mut Worker, sentence: u32, weight: f32, loss: &mut f64)
        -> Result<bool> =
        |_simd| change_kernel(task, weights, worker, sentence, weight, loss)
);

#[inline(always)]
fn change_kernel(
    task: &Task,
    online_weights: &mut OnlineWeights,
    worker: &mut Worker,
    sentence: u32,
    weight: f32,
    loss: &mut f64,
) -> Result<bool> {
    let (tokens, gold) = (&task.tokens, task.tokens.gold(sentence));
    match task.rule {
        Rule::Perceptron => {
            let steps = online_weights.steps(tokens, &worker.varied);
            *loss -= f64::from(weight) * worker.chart.margin(steps, gold, &worker.path);
            // Prefetch all cells first. Otherwise each addition would wait for its cell from memory.
            worker.steps.clear();
            tokens.difference(sentence, gold, &worker.path, |cell, x| {
                online_weights.prefetch_cell(cell);
                worker.steps.push((cell, weight * x));
            });
            for &(cell, x) in &worker.steps {
                online_weights.add(tokens, cell, x);
            }
            return Ok(weight != 0.0);
        }
        Rule::Mira { k, limit } if k > 1 => {
            return project(task, online_weights, worker, sentence, weight, limit, loss)
        }
        Rule::Mira { .. } | Rule::PassiveAggressive { .. } | Rule::Arow { .. } => {}
    }
    // One constraint: closed forms.
    task.cost.begin(&task.entities, &mut worker.span_scratch, gold);
    let steps = online_weights.steps(tokens, &worker.varied);
    let violation = violation(task, steps, &worker.chart, &mut worker.span_scratch, gold, &worker.path)?;
    if violation <= 0.0 {
        return Ok(false);
    }
    *loss += f64::from(weight) * violation;
    let d = &mut worker.differences;
    d.begin();
    tokens.difference(sentence, gold, &worker.path, |cell, x| {
        online_weights.prefetch_cell(cell);
        d.add(cell, x, 0, 1);
    });
    let square = |x: f32| f64::from(x) * f64::from(x);
    if let Rule::Arow { gamma, .. } = task.rule {
        let variance_sum =
            d.cells().iter().zip(&d.amounts).map(|(&c, &x)| square(x) * online_weights.variance[c as usize]);
        let alpha = violation / (gamma + variance_sum.sum::<f64>()) * f64::from(weight);
        for (&c, &x) in d.cells().iter().zip(&d.amounts).filter(|(_, &x)| x != 0.0) {
            let v = online_weights.variance[c as usize];
            online_weights.add(tokens, c, (alpha * v * f64::from(x)) as f32);
            online_weights.variance[c as usize] = 1.0 / (1.0 / v + f64::from(weight) * square(x) / gamma);
        }
        return Ok(alpha > 0.0);
    }
    let norm: f64 = d.amounts.iter().map(|&x| square(x)).sum();
    if norm == 0.0 {
        return Ok(false); // both paths have the same features
    }
    let tau = match task.rule {
        Rule::PassiveAggressive { second: true, c } => violation / (norm + 0.5 / c),
        Rule::PassiveAggressive { second: false, c } | Rule::Mira { limit: Some(c), .. } => c.min(violation / norm),
        Rule::Mira { limit: None, .. } => violation / norm,
        Rule::Perceptron | Rule::Arow { .. } => unreachable!("{:?} took its step above", task.rule),
    } * f64::from(weight);
    for (&c, &x) in d.cells().iter().zip(&d.amounts) {
        online_weights.add(tokens, c, (tau * f64::from(x)) as f32);
    }
    Ok(tau > 0.0)
}

/// cost - w.d of a path. In augmented decoding the chart's node scores include the cost.
fn violation(
    task: &Task,
    steps: &Steps,
    chart: &Chart,
    span_scratch: &mut SpanScratch,
    gold: &[u16],
    path: &[u16],
) -> Result<f64> {
    let cost = if task.augment.is_empty() { task.cost.of(&task.entities, span_scratch, gold, path)? } else { 0.0 };
    Ok(cost - chart.margin(steps, gold, path))
}

/// Step of k-best MIRA: project onto the margins of all paths at once.
#[inline(always)]
fn project(
    task: &Task,
    online_weights: &mut OnlineWeights,
    worker: &mut Worker,
    sentence: u32,
    weight: f32,
    limit: Option<f64>,
    loss: &mut f64,
) -> Result<bool> {
    let (tokens, gold) = (&task.tokens, task.tokens.gold(sentence));
    let n = gold.len();
    let path = |j: usize| j * n..(j + 1) * n;
    worker.kept.clear();
    worker.violation.clear();
    let steps = online_weights.steps(tokens, &worker.varied);
    task.cost.begin(&task.entities, &mut worker.span_scratch, gold);
    for j in 0..worker.scores.len() {
        if worker.paths[path(j)] != *gold {
            worker.kept.push(j);
            let guess = &worker.paths[path(j)];
            worker.violation.push(violation(task, steps, &worker.chart, &mut worker.span_scratch, gold, guess)?);
        }
    }
    let worst = worker.violation.iter().copied().fold(0.0, f64::max);
    if worst <= 0.0 {
        return Ok(false); // every margin holds
    }
    *loss += f64::from(weight) * worst;
    let d = &mut worker.patterns;
    d.read(tokens, sentence, &worker.paths, &worker.kept, |cell| online_weights.prefetch_cell(cell));
    d.gram(worker.kept.len(), &mut worker.gram);
    program::solve(&worker.gram, &worker.violation, limit, &mut worker.tau);
    for t in &mut worker.tau {
        *t *= f64::from(weight);
    }
    d.each(&worker.tau, |cell, step| online_weights.add(tokens, cell, step as f32));
    Ok(worker.tau.iter().any(|&t| t > 0.0))
}

/// Append the best paths of some sentences under fixed weights to `guesses`.
pub fn decode(
    task: &Task,
    online_weights: &OnlineWeights,
    worker: &mut Worker,
    sentences: &[u32],
    guesses: &mut Vec<u16>,
) -> Result<Tally> {
    let mut tally = Tally::default();
    for (i, &sentence) in sentences.iter().enumerate() {
        stop::check();
        let next = sentences.get(i + 1).copied().unwrap_or(sentence);
        let gold = task.tokens.gold(sentence);
        weights::run(
            online_weights,
            &task.tokens,
            &mut worker.chart,
            &mut worker.varied,
            sentence,
            next,
            &task.augment,
        );
        let steps = online_weights.steps(&task.tokens, &worker.varied);
        let begin = guesses.len();
        guesses.resize(begin + gold.len(), 0);
        let guess = &mut guesses[begin..];
        if !best_path(&worker.chart, steps, guess).is_finite() {
            return Err(not_finite(sentence));
        }
        if let Some(groups) = &task.once {
            enforce_groups(groups, &worker.chart, steps, &mut worker.search, sentence, guess)?;
        }
        let wrong = gold.iter().zip(&*guess).filter(|(a, b)| a != b).count();
        tally.sentences += 1;
        tally.tokens += gold.len();
        tally.wrong_tokens += wrong;
        if wrong > 0 {
            let weight = task.sample_weight.get(sentence as usize).copied().unwrap_or(1.0);
            tally.wrong_sentences += 1;
            tally.updates += usize::from(weight != 0.0);
            tally.loss -= f64::from(weight) * worker.chart.margin(steps, gold, guess);
        }
    }
    Ok(tally)
}
