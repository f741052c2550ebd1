//! State from which the training of a Hidden Markov SVM resumes: the working sets, and the data that an epoch passes
//! to the next.

use crate::error::{Error, Result};
use crate::learners::svm::space::{Space, SpaceState};
use crate::learners::svm::{alphas, Solver, WorkingSet};

/// The state after an epoch. The paths of all sentences are concatenated.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SvmState {
    pub sizes: Vec<u32>, // [N] paths of each sentence
    pub paths: Vec<u16>,
    pub alpha: Vec<f64>,
    pub bound: Vec<f64>,
    pub gram: Vec<f64>,
    pub idle: Vec<u8>,
    pub quiet: Vec<u8>, // [N]
    pub epsilon: f64,
    pub epochs: u64,
    pub space: SpaceState,
}

/// Take the next `n` elements of an array, fewer at its end.
fn take_next<'a, T>(rest: &mut &'a [T], n: usize) -> &'a [T] {
    let (here, tail) = rest.split_at(n.min(rest.len()));
    *rest = tail;
    here
}

impl<S: Space> Solver<S> {
    pub fn state(&self) -> SvmState {
        let mut out = SvmState {
            quiet: self.quiet.clone(),
            epsilon: self.epsilon,
            epochs: self.epochs,
            space: self.space.state(),
            ..SvmState::default()
        };
        for set in &self.sets {
            out.sizes.push(set.alpha.len() as u32);
            out.paths.extend_from_slice(&set.paths);
            out.alpha.extend_from_slice(&set.alpha);
            out.bound.extend_from_slice(&set.bound);
            out.gram.extend_from_slice(&set.gram);
            out.idle.extend_from_slice(&set.idle);
        }
        out
    }

    /// Resume from a state of a solver with the same data and options.
    pub fn restore(&mut self, state: SvmState) -> Result<()> {
        let mismatch = || Error::Value("the state belongs to other data; train again from the start".into());
        let n = self.sets.len();
        if [state.sizes.len(), state.quiet.len()] != [n, n]
            || state.paths.iter().any(|&y| y as usize >= self.work.chart.labels)
        {
            return Err(mismatch());
        }
        let (mut paths, mut alpha, mut bound) = (&state.paths[..], &state.alpha[..], &state.bound[..]);
        let (mut gram, mut idle) = (&state.gram[..], &state.idle[..]);
        let mut sets = Vec::with_capacity(state.sizes.len());
        for (i, &k) in state.sizes.iter().enumerate() {
            let (k, gold) = (k as usize, self.space.gold(i as u32));
            let mut set = WorkingSet {
                paths: take_next(&mut paths, k * gold.len()).to_vec(),
                alpha: take_next(&mut alpha, k).to_vec(),
                bound: take_next(&mut bound, k).to_vec(),
                gram: take_next(&mut gram, k * k).to_vec(),
                idle: take_next(&mut idle, k).to_vec(),
                at: Vec::new(),
            };
            let lengths = [set.paths.len(), set.alpha.len(), set.bound.len(), set.gram.len(), set.idle.len()];
            if lengths != [k * gold.len(), k, k, k * k, k] {
                return Err(mismatch());
            }
            if k > 0 {
                set.update_positions(gold);
            }
            sets.push(set);
        }
        if !(paths.is_empty() && alpha.is_empty() && bound.is_empty() && gram.is_empty() && idle.is_empty()) {
            return Err(mismatch());
        }
        let half = |(i, path, alpha)| (i, path, 0.5 * alpha);
        self.space.restore(state.space, &mut alphas(&sets).map(half))?;
        (self.sets, self.quiet, self.epsilon, self.epochs) = (sets, state.quiet, state.epsilon, state.epochs);
        Ok(())
    }
}
