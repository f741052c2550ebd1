//! Representations of a Hidden Markov SVM's weights: explicit weights (`Linear`), or support tokens (`kernel`).
//!
//! With d = S(gold) - S(path) of a sentence, the solver needs scores of paths, products of two d's of the same
//! sentence, and w += amount * d. The solver itself computes everything else.

use crate::chain::viterbi::sentence::{Chart, Steps};

use crate::dataset::Dataset;
use crate::error::Result;
use crate::machine::simd::{Lane, WIDTH};
use crate::scores::kernel::table::Weights;
use crate::scores::online_layout::{weights, OnlineWeights, TokenCells};

/// Scratch of one thread.
pub struct SpaceWork {
    pub chart: Chart,
    pub varied: Steps, // edge scores of the current sentence, with edge attributes
    pub path: Vec<u16>,
    pub paths: Vec<u16>,
    pub scores: Vec<f64>,
    pub row: Vec<f64>, // [L]
}

impl SpaceWork {
    pub fn new(labels: usize) -> SpaceWork {
        SpaceWork {
            chart: Chart::new(labels),
            varied: Steps::new(labels),
            path: Vec::new(),
            paths: Vec::new(),
            scores: Vec::new(),
            row: Vec::new(),
        }
    }
}

/// State of the weights that does not follow from the alphas: betas, transitions, starts and ends, and the scores or
/// terms accumulated from the betas (`kept`).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SpaceState {
    pub weights: Weights,
    pub kept: Vec<f64>,
}

/// A feature space with a weight vector in it.
pub trait Space: Send + Sync {
    fn data(&self) -> &Dataset;

    /// Compute the scores of a sentence, `next` being the one after it, and their recursion. `cost` [L, width] or
    /// empty is added to the node scores of each gold label.
    fn run(&self, work: &mut SpaceWork, sentence: u32, next: u32, cost: &[Lane]);

    /// Compute the node scores of some positions of a sentence, without the recursion.
    fn refill(&self, work: &mut SpaceWork, sentence: u32, positions: &[u32], cost: &[Lane]);

    /// Edge scores of the current sentence.
    fn steps<'a>(&'a self, work: &'a SpaceWork) -> &'a Steps;

    /// Products of the last path's d with the d of each path, itself included: paths [k, T], out [k].
    fn products(&mut self, sentence: u32, paths: &[u16], out: &mut Vec<f64>);

    /// w += the sum of amount_j d_j: paths [k, T], amounts [k].
    fn add(&mut self, sentence: u32, paths: &[u16], amounts: &[f64]);

    /// Set w to the sum of amount * d of everything `each` yields, free of accumulated rounding. Return ||w||^2 of
    /// that sum, and of the weights as used in scores.
    fn recompute_weights(&mut self, each: &mut dyn Iterator<Item = (u32, &[u16], f64)>) -> (f64, f64);

    /// State required in addition to the alphas to resume after an epoch, which ends with `recompute_weights`.
    fn state(&self) -> SpaceState;

    /// Restore the weights of a state, whose alphas are those of `each`.
    fn restore(&mut self, state: SpaceState, each: &mut dyn Iterator<Item = (u32, &[u16], f64)>) -> Result<()>;

    fn gold(&self, sentence: u32) -> &[u16] {
        let data = self.data();
        &data.gold[data.sentences[sentence as usize]..data.sentences[sentence as usize + 1]]
    }
}

/// One weight per feature, in the cells of the online learners.
pub struct Linear {
    pub tokens: TokenCells,
    pub online_weights: OnlineWeights,
    scratch: Vec<f64>, // [cells] all 0 between calls, except for `exact`
}

impl Linear {
    pub fn new(tokens: TokenCells) -> Linear {
        let online_weights = OnlineWeights::new(&tokens, false, None);
        let scratch = vec![0.0; tokens.cells()];
        Linear { tokens, online_weights, scratch }
    }

    /// Weights, one per feature.
    pub fn weights(&self) -> Vec<f64> {
        self.tokens.gather(|c| f64::from(self.online_weights.w(c)))
    }
}

impl Space for Linear {
    fn data(&self) -> &Dataset {
        &self.tokens.data
    }

    fn run(&self, work: &mut SpaceWork, sentence: u32, next: u32, cost: &[Lane]) {
        let SpaceWork { chart, varied, .. } = work;
        weights::run(&self.online_weights, &self.tokens, chart, varied, sentence, next, cost);
    }

    fn refill(&self, work: &mut SpaceWork, sentence: u32, positions: &[u32], cost: &[Lane]) {
        let SpaceWork { chart, varied, .. } = work;
        weights::refill(&self.online_weights, &self.tokens, chart, varied, sentence, positions, cost);
    }

    fn steps<'a>(&'a self, work: &'a SpaceWork) -> &'a Steps {
        self.online_weights.steps(&self.tokens, &work.varied)
    }

    fn products(&mut self, sentence: u32, paths: &[u16], out: &mut Vec<f64>) {
        let (tokens, scratch) = (&self.tokens, &mut self.scratch);
        let gold = tokens.gold(sentence);
        let n = gold.len();
        let last = &paths[paths.len() - n..];
        tokens.difference(sentence, gold, last, |cell, x| scratch[cell as usize] += f64::from(x));
        out.clear();
        for path in paths.chunks_exact(n) {
            let mut sum = 0.0;
            tokens.difference(sentence, gold, path, |cell, x| sum += scratch[cell as usize] * f64::from(x));
            out.push(sum);
        }
        tokens.difference(sentence, gold, last, |cell, _| scratch[cell as usize] = 0.0);
    }

    fn add(&mut self, sentence: u32, paths: &[u16], amounts: &[f64]) {
        let (tokens, online_weights) = (&self.tokens, &mut self.online_weights);
        let gold = tokens.gold(sentence);
        for (path, &amount) in paths.chunks_exact(gold.len()).zip(amounts) {
            if amount != 0.0 {
                let amount = amount as f32;
                tokens.difference(sentence, gold, path, |cell, x| online_weights.add(tokens, cell, amount * x));
            }
        }
    }

    fn recompute_weights(&mut self, each: &mut dyn Iterator<Item = (u32, &[u16], f64)>) -> (f64, f64) {
        let (tokens, exact) = (&self.tokens, &mut self.scratch);
        for (sentence, path, amount) in each {
            let gold = tokens.gold(sentence);
            tokens.difference(sentence, gold, path, |cell, x| exact[cell as usize] += amount * f64::from(x));
        }
        let (mut norm, mut used_norm) = (0.0, 0.0);
        for (lane, part) in self.online_weights.lanes_mut().iter_mut().zip(exact.chunks_exact_mut(WIDTH)) {
            for (w, x) in lane.0.iter_mut().zip(part) {
                norm += *x * *x;
                *w = *x as f32;
                used_norm += f64::from(*w) * f64::from(*w);
                *x = 0.0;
            }
        }
        self.online_weights.refresh(tokens);
        (norm, used_norm)
    }

    /// Empty, since after an epoch the weights follow from the alphas.
    fn state(&self) -> SpaceState {
        SpaceState::default()
    }

    fn restore(&mut self, _: SpaceState, each: &mut dyn Iterator<Item = (u32, &[u16], f64)>) -> Result<()> {
        self.recompute_weights(each);
        Ok(())
    }
}
