//! Online learning with history: perceptron and k-best MIRA, whole epochs, with the search used for tagging.
//!
//! The gold side of an update has the gold history within the sentence. On both sides the earlier sentences of the
//! document have the labels decoded just before, as in tagging. So with document features an epoch shuffles documents,
//! and processes the sentences of each in order.

use crate::chain::limits::at_most_once::{self, Groups};
use crate::chain::limits::entities::Entities;
use crate::chain::lookback::search::{self, Search, Sentence};
use crate::chain::lookback::Lookback;
use crate::dataset::layout::Layout;
use crate::dataset::Dataset;
use crate::error::{Error, Result};
use crate::learners::online::cost::{Cost, SpanScratch};
use crate::learners::online::differences::Differences;
use crate::learners::online::rule::Rule;
use crate::learners::online::{check, claim_gram, program, OnlineOptions, OnlineState};
use crate::learners::tally::{not_finite, Tally};
use crate::machine::simd::dispatch::dispatch;
use crate::machine::simd::find::Find;
use crate::machine::simd::{Lane, WIDTH};
use crate::machine::system::budget;
use crate::machine::system::shuffle::Generator;
use crate::machine::system::stop;
use crate::scores::document::{DocumentState, Words};
use crate::scores::online_layout::{OnlineWeights, TokenCells};
use std::sync::Arc;

/// Weights of the terms and the sums for their average, as in `OnlineWeights`.
struct LookbackWeights {
    rows: Vec<Lane>, // [rows, width]
    u: Vec<f64>,     // one per number of `rows`, empty without averaging
}

impl LookbackWeights {
    #[inline(always)]
    fn add(&mut self, at: usize, amount: f32, clock: f64) {
        let w = &mut self.rows[at / WIDTH].0[at % WIDTH];
        let new = *w + amount;
        if let Some(u) = self.u.get_mut(at) {
            *u += clock * (f64::from(new) - f64::from(*w));
        }
        *w = new;
    }
}

#[derive(Default)]
struct LearnerWork {
    node: Vec<Lane>,
    paths: Vec<u16>, // [k, T]
    scores: Vec<f64>,
    kept: Vec<usize>,    // which of the paths are not gold
    violation: Vec<f64>, // cost - w.d of each
    differences: Differences,
    span_scratch: SpanScratch,
    gram: Vec<f64>,
    tau: Vec<f64>,
    memory: DocumentState,
}

/// A learner and its training state. The weights are a function of the data, the options and the number of epochs
/// alone.
pub struct Learner {
    tokens: TokenCells,
    words: Option<Words>,
    rule: Rule,
    cost: Cost,
    entities: Entities,
    augment: Vec<Lane>, // [L, width] cost of each label for each gold label, or empty
    sample_weight: Vec<f32>,
    once: Option<Groups>,
    shuffle: bool,
    seed: u64,
    epochs: u64,
    features: usize, // of the first order
    online_weights: OnlineWeights,
    lookback_weights: LookbackWeights,
    search: Search,
    scratch: LearnerWork,
}

impl Learner {
    /// `words` is required if the terms have document features.
    pub fn new(
        data: Arc<Dataset>,
        layout: &Layout,
        terms: Lookback,
        words: Option<Words>,
        options: OnlineOptions,
    ) -> Result<Learner> {
        check(&data, layout, &options)?;
        terms.check()?;
        if !matches!(options.rule, Rule::Perceptron | Rule::Mira { .. })
            || options.epochs.batch
            || options.epochs.shards > 1
        {
            return Err(Error::Value(
                "history goes with the perceptron and with MIRA, one sentence after the other: no batch, no shards"
                    .into(),
            ));
        }
        if data.has_edge_attributes() {
            return Err(Error::Value("history does not go with edge attributes; use a template without them".into()));
        }
        if terms.document != words.is_some() {
            return Err(Error::Value("words and documents are needed for document features, and only for them".into()));
        }
        terms.check_lists(options.rule.k())?;
        if options.limits.once.is_some() && terms.document {
            return Err(Error::Value(
                "labels that occur once do not go with document features; leave one of them out".into(),
            ));
        }
        claim_gram(&data, layout.labels, options.rule.k())?;
        let longest = data.sentences.windows(2).map(|s| s[1] - s[0]).max().unwrap_or(0);
        let weights = budget::bytes(&[terms.rows(), terms.width() * WIDTH, 12]);
        budget::claim(
            &format!("cells of {} of {} labels for a sentence of {longest} tokens", terms.cell, layout.labels),
            Search::bytes(&terms, options.rule.k(), longest).saturating_add(weights),
            "use a smaller k or history, or cut long sentences (max_length)",
        )?;
        let (limits, cost_options, epochs) = (options.limits, options.cost_options, options.epochs);
        let tokens = TokenCells::new(data, layout, &limits.forbidden, limits.support.as_ref())?;
        let width = tokens.width;
        let augment = cost_options.rows(tokens.labels, width);
        let numbers = terms.rows() * width * WIDTH;
        if tokens.cells().saturating_add(numbers) >= u32::MAX as usize {
            return Err(Error::Value("more than 4 billion weights; use a smaller m or p".into()));
        }
        Ok(Learner {
            online_weights: OnlineWeights::new(&tokens, epochs.average, None),
            lookback_weights: LookbackWeights {
                rows: vec![Lane::ZERO; terms.rows() * width],
                u: vec![0.0; if epochs.average { numbers } else { 0 }],
            },
            tokens,
            words,
            rule: options.rule,
            cost: cost_options.cost,
            entities: cost_options.entities.unwrap_or_default(),
            augment,
            sample_weight: options.sample_weight,
            once: limits.once,
            shuffle: epochs.shuffle,
            seed: epochs.seed,
            epochs: 0,
            features: layout.len(),
            search: Search::new(terms),
            scratch: LearnerWork::default(),
        })
    }

    pub fn epochs(&self) -> u64 {
        self.epochs
    }

    /// Run one pass over the sentences in random order, or over the documents in random order.
    pub fn epoch(&mut self) -> Result<Tally> {
        let units = match &self.words {
            Some(words) => words.distinct.len(),
            None => self.tokens.data.len(),
        };
        let mut order: Vec<u32> = (0..units as u32).collect();
        if self.shuffle {
            Generator::new(self.seed, self.epochs, 0).shuffle(&mut order);
        }
        let mut tally = Tally::default();
        for unit in order {
            let sentences = match &self.words {
                Some(words) => {
                    self.scratch.memory.begin(words, unit as usize, self.tokens.labels);
                    words.documents[unit as usize]..words.documents[unit as usize + 1]
                }
                None => unit..unit + 1,
            };
            for sentence in sentences {
                stop::check();
                step(self, sentence, &mut tally)?;
            }
        }
        self.epochs += 1;
        Ok(tally)
    }

    /// Current weights, or their average over all steps: those of the first order, then those of the terms.
    pub fn weights(&self, averaged: bool) -> Result<Vec<f64>> {
        let (online_weights, lookback_weights, terms) =
            (&self.online_weights, &self.lookback_weights, self.search.terms());
        if averaged && online_weights.u.is_empty() {
            return Err(Error::Value("the average was not collected; make the learner with average=True".into()));
        }
        let clock = online_weights.clock.max(1.0);
        let mean = |w: f32, u: &[f64], at: usize| f64::from(w) - if averaged { u[at] / clock } else { 0.0 };
        let mut out = self.tokens.gather(|c| mean(online_weights.w(c), &online_weights.u, c));
        out.extend(
            places(terms).map(|at| mean(lookback_weights.rows[at / WIDTH].0[at % WIDTH], &lookback_weights.u, at)),
        );
        Ok(out)
    }

    /// State from which training resumes bit for bit: features of the first order, then those of the terms.
    pub fn state(&self) -> Result<OnlineState> {
        let (online_weights, lookback_weights) = (&self.online_weights, &self.lookback_weights);
        let mut sums = Vec::new();
        if !online_weights.u.is_empty() {
            sums = self.tokens.gather(|c| online_weights.u[c]);
            sums.extend(places(self.search.terms()).map(|at| lookback_weights.u[at]));
        }
        let weights = self.weights(false)?;
        Ok(OnlineState { weights, sums, variance: Vec::new(), steps: online_weights.clock, epochs: self.epochs })
    }

    /// Resume from a state returned by `state`, or from other weights with the remaining arrays empty.
    pub fn restore(&mut self, state: &OnlineState) -> Result<()> {
        let terms = *self.search.terms();
        let n = self.features + terms.len();
        state.check(n)?;
        if !state.variance.is_empty() {
            return Err(Error::Value("learners with history have no variances; this state is of another one".into()));
        }
        let (first_order, lookback) = state.weights.split_at(self.features);
        let online_weights = &mut self.online_weights;
        self.tokens.scatter(first_order, |c, x| online_weights.set_w(c, x as f32));
        online_weights.refresh(&self.tokens);
        self.lookback_weights.rows = terms.lanes(&lookback.iter().map(|&x| x as f32).collect::<Vec<f32>>());
        if !online_weights.u.is_empty() {
            online_weights.u.fill(0.0);
            self.lookback_weights.u.fill(0.0);
            let (u, lookback_u) = (&mut online_weights.u, &mut self.lookback_weights.u);
            let (first_order, lookback_sums) = state.sums.split_at(self.features.min(state.sums.len()));
            self.tokens.scatter(first_order, |c, x| u[c] = x);
            places(&terms).zip(lookback_sums).for_each(|(at, &x)| lookback_u[at] = x);
        }
        (online_weights.clock, self.epochs) = (state.steps, state.epochs);
        Ok(())
    }
}

/// Position of the weight of each feature of the terms in their rows of lanes.
fn places(terms: &Lookback) -> impl Iterator<Item = usize> {
    let (l, width) = (terms.labels, terms.width());
    (0..terms.len()).map(move |i| i / l * width * WIDTH + i % l)
}

dispatch!(fn step(learner: &mut Learner, sentence: u32, tally: &mut Tally) -> Result<()> = step_kernel);

/// Decode a sentence, compare with its gold labels, change the weights.
#[inline(always)]
fn step_kernel<S: Find>(simd: S, learner: &mut Learner, sentence: u32, tally: &mut Tally) -> Result<()> {
    let Learner { tokens, words, online_weights, lookback_weights, search, scratch, .. } = learner;
    let terms = *search.terms();
    let (width, (begin, end)) = (tokens.width, tokens.range(sentence));
    let gold = tokens.gold(sentence);
    let weight = learner.sample_weight.get(sentence as usize).copied().unwrap_or(1.0);
    let n = end - begin;
    scratch.node.resize((n * width).max(scratch.node.len()), Lane::ZERO);
    for t in 0..n {
        let row = &mut scratch.node[t * width..(t + 1) * width];
        // SAFETY: the weights are those of the cells, and the row has the lanes of all labels.
        unsafe { tokens.fill(simd, online_weights.lanes(), begin, t, row) };
        if let Some(words) = words {
            scratch.memory.score(simd, &terms, &lookback_weights.rows, words, begin + t, row);
        }
        if !learner.augment.is_empty() {
            let y = gold[t] as usize * width;
            for (x, c) in row.iter_mut().zip(&learner.augment[y..y + width]) {
                simd.store(simd.add(simd.load(x), simd.load(c)), x);
            }
        }
    }
    let same = words.as_ref().map_or(&[][..], |w| &w.same[begin..end]);
    let x = Sentence {
        node: &scratch.node[..n * width],
        steps: online_weights.edge_scores(),
        rows: &lookback_weights.rows,
        same,
    };
    search::search(search, &x, learner.rule.k(), &mut scratch.scores, &mut scratch.paths);
    if !scratch.scores.first().is_some_and(|x| x.is_finite()) {
        return Err(not_finite(sentence));
    }
    if let Some(groups) = &learner.once {
        let lists = at_most_once::LISTS.into_iter().filter(|&more| terms.check_lists(more).is_ok());
        let (scores, paths) = (&mut scratch.scores, &mut scratch.paths);
        prefer_allowed(groups, learner.rule.k(), n, lists, scores, paths, |more, scores, paths| {
            search::search(search, &x, more, scores, paths);
        });
    }
    let wrong = gold.iter().zip(&scratch.paths).filter(|(a, b)| a != b).count();
    tally.sentences += 1;
    tally.tokens += n;
    tally.wrong_sentences += usize::from(wrong > 0);
    tally.wrong_tokens += wrong;

    // cost - w.d of every path that is not gold. The perceptron has no margin.
    let perceptron = learner.rule == Rule::Perceptron;
    let gold_score = search::score(&terms, &x, gold);
    learner.cost.begin(&learner.entities, &mut scratch.span_scratch, gold);
    scratch.kept.clear();
    scratch.violation.clear();
    for j in 0..scratch.scores.len() {
        let path = &scratch.paths[j * n..(j + 1) * n];
        if path != gold {
            // In augmented decoding the node scores include the cost.
            let cost = match perceptron || !learner.augment.is_empty() {
                true => 0.0,
                false => learner.cost.of(&learner.entities, &mut scratch.span_scratch, gold, path)?,
            };
            scratch.kept.push(j);
            scratch.violation.push(cost + search::score(&terms, &x, path) - gold_score);
        }
    }
    let worst = scratch.violation.iter().copied().fold(0.0, f64::max);
    if (perceptron && wrong > 0) || (!perceptron && worst > 0.0) {
        tally.loss += f64::from(weight) * if perceptron { scratch.violation[0] } else { worst };
        tally.updates += usize::from(change(learner, sentence, weight));
    }
    let Learner { words, online_weights, scratch, .. } = learner;
    if let Some(words) = words {
        scratch.memory.add(words, begin, &scratch.paths[..n], terms.labels);
    }
    online_weights.clock += 1.0;
    Ok(())
}

/// Update the weights after a sentence, by the kept paths and their losses. Return whether anything changed.
#[inline(always)]
fn change(learner: &mut Learner, sentence: u32, weight: f32) -> bool {
    let Learner { tokens, words, online_weights, lookback_weights, search, scratch, .. } = learner;
    let (terms, (begin, end), gold) = (*search.terms(), tokens.range(sentence), tokens.gold(sentence));
    let n = end - begin;
    let same = words.as_ref().map_or(&[][..], |w| &w.same[begin..end]);
    let (d, k) = (&mut scratch.differences, scratch.kept.len());
    let base = tokens.cells();
    d.begin();
    for (i, &j) in scratch.kept.iter().enumerate() {
        let path = &scratch.paths[j * n..(j + 1) * n];
        tokens.difference(sentence, gold, path, |cell, x| d.add(cell, x, i, k));
        lookback_difference(&terms, words.as_ref().map(|w| (w, &scratch.memory)), begin, same, gold, path, |at, x| {
            d.add((base + at) as u32, x, i, k);
        });
    }
    if learner.rule == Rule::Perceptron {
        scratch.tau.clear();
        scratch.tau.push(1.0);
    } else {
        d.gram(k, &mut scratch.gram);
        let limit = if let Rule::Mira { limit, .. } = learner.rule { limit } else { None };
        program::solve(&scratch.gram, &scratch.violation, limit, &mut scratch.tau);
    }
    let mut changed = false;
    for (&cell, row) in d.cells().iter().zip(d.amounts.chunks_exact(k)) {
        let step: f64 = row.iter().zip(&scratch.tau).map(|(&x, t)| f64::from(x) * t).sum::<f64>();
        let step = (step * f64::from(weight)) as f32;
        if step != 0.0 {
            changed = true;
            match (cell as usize).checked_sub(base) {
                None => online_weights.add(tokens, cell, step),
                Some(at) => lookback_weights.add(at, step, online_weights.clock),
            }
        }
    }
    changed
}

/// Replace the k best paths by the k best allowed ones, from lists of increasing length. A cell's list consists of its
/// own best paths, so this is as exact as lists are. If the longest list has no allowed path, the plain k best are
/// kept: a step against them is better than none.
fn prefer_allowed(
    groups: &Groups,
    k: usize,
    n: usize,
    lists: impl Iterator<Item = usize>,
    scores: &mut Vec<f64>,
    paths: &mut Vec<u16>,
    mut search: impl FnMut(usize, &mut Vec<f64>, &mut Vec<u16>),
) {
    if n == 0 || paths.chunks_exact(n).all(|path| groups.allows(path)) {
        return;
    }
    let plain = (scores.clone(), paths.clone());
    for more in lists.filter(|&more| more > k) {
        search(more, scores, paths);
        let whole = scores.len() < more; // all paths are in the list
        let mut kept = 0;
        for j in 0..scores.len() {
            if kept < k && groups.allows(&paths[j * n..(j + 1) * n]) {
                paths.copy_within(j * n..(j + 1) * n, kept * n);
                scores[kept] = scores[j];
                kept += 1;
            }
        }
        if kept == k || (kept > 0 && (whole || more == at_most_once::LISTS[at_most_once::LISTS.len() - 1])) {
            scores.truncate(kept);
            paths.truncate(kept * n);
            return;
        }
    }
    (*scores, *paths) = plain;
}

/// Call `add(number, amount)` for every feature of the terms in S(gold) - S(guess). Numbers are positions in the rows
/// of lanes.
#[inline(always)]
fn lookback_difference(
    terms: &Lookback,
    earlier: Option<(&Words, &DocumentState)>,
    begin: usize,
    same: &[u32],
    gold: &[u16],
    guess: &[u16],
    mut add: impl FnMut(usize, f32),
) {
    let stride = terms.width() * WIDTH;
    for (path, sign) in [(gold, 1.0), (guess, -1.0)] {
        for (t, &y) in path.iter().enumerate() {
            terms.at(path, t, same, |row| add(row * stride + y as usize, sign));
        }
    }
    let Some((words, memory)) = earlier else { return };
    for (t, (&y, &z)) in gold.iter().zip(guess).enumerate().filter(|(_, (y, z))| y != z) {
        for (label, &n) in memory.counts(words, begin + t, terms.labels).iter().enumerate().filter(|(_, &n)| n != 0.0) {
            let row = terms.repeat_row(label) * stride;
            add(row + y as usize, n);
            add(row + z as usize, -n);
        }
    }
}
