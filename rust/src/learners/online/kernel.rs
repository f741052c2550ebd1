//! The perceptron in terms of kernel values (Collins 2002, and Freund & Schapire 1999 for one label).
//!
//! A wrong sentence adds 1 to beta of the gold label and subtracts 1 from that of the guess at every token where they
//! differ. Transitions are counted as in the primal. Averages use the same running sums: w_avg = w - u / steps.
//!
//! Budget: if more tokens than the budget support the model, the token whose removal changes ||w|| least is removed,
//! the one with the smallest sum_y beta(y)^2 K(x, x) (after Crammer, Kandola & Singer 2003). The average is cut to the
//! budget in the same way.

use crate::chain::limits::Limits;
use crate::chain::viterbi::sentence::{advance_all, best_path, Chart};
use crate::dataset::layout::Layout;
use crate::dataset::Dataset;
use crate::error::{Error, Result};
use crate::learners::online::EpochOptions;
use crate::learners::tally::{not_finite, Tally};
use crate::machine::system::shuffle::Generator;
use crate::machine::system::stop;
use crate::scores::check::check_given_weights;
use crate::scores::kernel::rows::block;
use crate::scores::kernel::table::{Betas, Weights};
use crate::scores::kernel::{Form, Kernel};
use std::sync::Arc;

/// Training options.
#[derive(Clone, Debug)]
pub struct DualOptions {
    pub epochs: EpochOptions,
    pub budget: Option<usize>,
    pub sample_weight: Vec<f32>, // [N], or empty for all 1
    pub limits: Limits,
    pub form: Form,
    pub bytes: usize,
}

/// A kernel perceptron and its training state.
pub struct KernelPerceptron {
    pub table: Betas,
    options: DualOptions,
    sums: Weights, // every change times the steps before it
    clock: f64,
    epochs: u64,
    support: Vec<u32>,     // distinct tokens with beta != 0
    place: Vec<u32>,       // [U] 1 + position in `support`, or 0
    self_kernel: Vec<f64>, // [U] K(x, x)
    chart: Chart,
    path: Vec<u16>,
    scratch: Vec<f64>,
}

/// Set the best path of a sentence and return its score.
fn decode(dual: &mut KernelPerceptron, sentence: u32) -> f64 {
    let (begin, end) = dual.table.range(sentence);
    dual.chart.begin(end - begin, false);
    for t in 0..end - begin {
        dual.table.fill(&mut dual.chart, sentence, t, &[], &mut dual.scratch);
    }
    advance_all(&mut dual.chart, &dual.table.steps, None);
    dual.path.resize(end - begin, 0);
    best_path(&dual.chart, &dual.table.steps, &mut dual.path)
}

impl KernelPerceptron {
    pub fn new(
        data: Arc<Dataset>,
        layout: Arc<Layout>,
        kernel: Kernel,
        mut options: DualOptions,
    ) -> Result<KernelPerceptron> {
        check_given_weights(&options.sample_weight, data.len())?;
        if options.budget == Some(0) {
            return Err(Error::Value("a budget of 0 support tokens leaves no model; use 1 or more".into()));
        }
        if options.epochs.batch || options.epochs.shards > 1 {
            return Err(Error::Value("kernels are learnt sentence by sentence: no batch, no shards".into()));
        }
        options.limits.refuse_once()?;
        let l = layout.labels;
        let limits = std::mem::take(&mut options.limits);
        let mut table = Betas::new(data, layout, kernel, limits, options.form, options.bytes)?;
        let n = table.distinct.len();
        let self_kernel = match options.budget {
            None => Vec::new(),
            Some(_) => (0..n as u32).map(|u| self_kernel(&mut table, u)).collect::<Result<_>>()?,
        };
        Ok(KernelPerceptron {
            sums: Weights::new(if options.epochs.average { n } else { 0 }, l),
            clock: 0.0,
            epochs: 0,
            support: Vec::new(),
            place: vec![0; n],
            self_kernel,
            chart: Chart::new(l),
            path: Vec::new(),
            scratch: Vec::new(),
            table,
            options,
        })
    }

    pub fn epochs(&self) -> u64 {
        self.epochs
    }

    /// Number of distinct tokens with beta != 0.
    pub fn n_support(&self) -> usize {
        self.support.len()
    }

    /// Sums for the average, steps and epochs so far. With the table they are the whole training state.
    pub fn state(&self) -> (&Weights, f64, u64) {
        (&self.sums, self.clock, self.epochs)
    }

    /// Resume from a state of a learner with the same data and options: weights, the scores or terms accumulated from
    /// them (`Betas::kept`), and `state`.
    pub fn restore(&mut self, weights: Weights, kept: &[f64], sums: Weights, clock: f64, epochs: u64) -> Result<()> {
        let (l, own) = (self.table.layout.labels, &self.sums);
        let fits = sums.beta.len() == own.beta.len()
            && sums.edge.len() == own.edge.len()
            && [sums.start.len(), sums.end.len()] == [l, l];
        if !fits {
            return Err(Error::Value("the state belongs to other data; train again from the start".into()));
        }
        self.table.restore(weights, kept)?;
        (self.sums, self.clock, self.epochs) = (sums, clock, epochs);
        self.support.clear();
        self.place.fill(0);
        for (u, beta) in self.table.weights.beta.chunks_exact(l).enumerate() {
            if beta.iter().any(|&x| x != 0.0) {
                self.support.push(u as u32);
                self.place[u] = self.support.len() as u32;
            }
        }
        Ok(())
    }

    /// Run one pass over the sentences, or over those of `order`.
    pub fn epoch(&mut self, order: Option<Vec<u32>>) -> Result<Tally> {
        let n = self.table.data.len();
        if let Some(&s) = order.iter().flatten().find(|&&s| s as usize >= n) {
            return Err(Error::Value(format!("sentence {s} of the order is not one of the {n} sentences")));
        }
        let order = order.unwrap_or_else(|| {
            let mut order: Vec<u32> = (0..n as u32).collect();
            if self.options.epochs.shuffle {
                Generator::new(self.options.epochs.seed, self.epochs, 0).shuffle(&mut order);
            }
            order
        });
        let mut tally = Tally::default();
        for &sentence in &order {
            stop::check();
            self.step(sentence, &mut tally)?;
            self.clock += 1.0;
        }
        self.epochs += 1;
        Ok(tally)
    }

    fn step(&mut self, sentence: u32, tally: &mut Tally) -> Result<()> {
        let (begin, end) = self.table.range(sentence);
        if !decode(self, sentence).is_finite() {
            return Err(not_finite(sentence));
        }
        let data = self.table.data.clone();
        let (gold, path) = (&data.gold[begin..end], std::mem::take(&mut self.path));
        let wrong = gold.iter().zip(&path).filter(|(a, b)| a != b).count();
        tally.sentences += 1;
        tally.tokens += gold.len();
        tally.wrong_sentences += usize::from(wrong > 0);
        tally.wrong_tokens += wrong;
        if wrong > 0 {
            let weight = f64::from(self.options.sample_weight.get(sentence as usize).copied().unwrap_or(1.0));
            tally.updates += usize::from(weight != 0.0);
            tally.loss -= weight * self.chart.margin(&self.table.steps, gold, &path);
            if weight != 0.0 {
                self.update(begin, gold, &path, weight)?;
            }
        }
        self.path = path;
        Ok(())
    }

    fn update(&mut self, begin: usize, gold: &[u16], path: &[u16], weight: f64) -> Result<()> {
        let (l, clock, average) = (self.table.layout.labels, self.clock, self.options.epochs.average);
        for (t, (&y, &z)) in gold.iter().zip(path).enumerate() {
            let u = self.table.distinct.of[begin + t];
            if y != z {
                self.change(u, &[(y, weight), (z, -weight)])?;
                for (label, x) in [(y, weight), (z, -weight)] {
                    if t == 0 && self.table.change_start(label, x) && average {
                        self.sums.start[label as usize] += clock * x;
                    }
                    if t + 1 == gold.len() && self.table.change_end(label, x) && average {
                        self.sums.end[label as usize] += clock * x;
                    }
                }
            }
            if t > 0 && (y != z || gold[t - 1] != path[t - 1]) {
                for (from, to, x) in [(gold[t - 1], y, weight), (path[t - 1], z, -weight)] {
                    if self.table.change_edge(from, to, x) && average {
                        self.sums.edge[from as usize * l + to as usize] += clock * x;
                    }
                }
            }
        }
        if let Some(budget) = self.options.budget {
            while self.support.len() > budget {
                self.remove_least_important()?;
            }
        }
        Ok(())
    }

    /// beta_u += x, with its sum for the average, and update the list of support tokens.
    fn change(&mut self, u: u32, by: &[(u16, f64)]) -> Result<()> {
        self.table.change(u, by)?;
        let l = self.table.layout.labels;
        if self.options.epochs.average {
            for &(y, x) in by {
                self.sums.beta[u as usize * l + y as usize] += self.clock * x;
            }
        }
        let beta = &self.table.weights.beta[u as usize * l..][..l];
        let place = self.place[u as usize];
        if beta.iter().any(|&x| x != 0.0) {
            if place == 0 {
                self.support.push(u);
                self.place[u as usize] = self.support.len() as u32;
            }
        } else if place > 0 {
            self.place[u as usize] = 0;
            self.support.swap_remove(place as usize - 1);
            if let Some(&moved) = self.support.get(place as usize - 1) {
                self.place[moved as usize] = place;
            }
        }
        Ok(())
    }

    /// Remove the least important support token, the earlier one in case of ties.
    fn remove_least_important(&mut self) -> Result<()> {
        let l = self.table.layout.labels;
        let beta = &self.table.weights.beta;
        let importance = |u: u32| {
            let square: f64 = beta[u as usize * l..][..l].iter().map(|x| x * x).sum();
            square * self.self_kernel[u as usize]
        };
        let least =
            self.support.iter().map(|&u| (importance(u), u)).min_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        if let Some((_, u)) = least {
            let by: Vec<(u16, f64)> = (0..l)
                .filter(|&y| beta[u as usize * l + y] != 0.0)
                .map(|y| (y as u16, -beta[u as usize * l + y]))
                .collect();
            self.change(u, &by)?;
        }
        Ok(())
    }

    /// Current weights, or their average over all steps.
    pub fn weights(&self, averaged: bool) -> Result<Weights> {
        let mut w = self.table.weights.clone();
        if !averaged {
            return Ok(w);
        }
        if !self.options.epochs.average {
            return Err(Error::Value("the average was not collected; make the learner with average=True".into()));
        }
        let clock = self.clock.max(1.0);
        let parts = [
            (&mut w.beta, &self.sums.beta),
            (&mut w.edge, &self.sums.edge),
            (&mut w.start, &self.sums.start),
            (&mut w.end, &self.sums.end),
        ];
        for (current, sums) in parts {
            current.iter_mut().zip(sums).for_each(|(x, u)| *x -= u / clock);
        }
        if let Some(budget) = self.options.budget {
            self.cut(&mut w.beta, budget);
        }
        Ok(w)
    }

    /// Keep only the `budget` most important tokens.
    fn cut(&self, beta: &mut [f64], budget: usize) {
        let l = self.table.layout.labels;
        let importance = |row: &[f64], u: usize| row.iter().map(|x| x * x).sum::<f64>() * self.self_kernel[u];
        let mut all: Vec<(f64, usize)> =
            beta.chunks_exact(l).enumerate().map(|(u, row)| (importance(row, u), u)).filter(|x| x.0 > 0.0).collect();
        all.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        for &(_, u) in all.iter().skip(budget) {
            beta[u * l..(u + 1) * l].fill(0.0);
        }
    }
}

/// K(x, x). A kernel function is called for one pair.
fn self_kernel(table: &mut Betas, u: u32) -> Result<f64> {
    match &table.kernel {
        Kernel::Function(function) => {
            let one = block(&table.distinct.rows, std::iter::once(u as usize));
            Ok(function(&one, &one)?.first().copied().unwrap_or(0.0))
        }
        kernel @ (Kernel::Linear | Kernel::Poly { .. } | Kernel::Rbf { .. }) => {
            let square = table.distinct.square[u as usize];
            Ok(kernel.of(square, square, square))
        }
    }
}
