//! State from which boosting resumes: everything that rounds update by differences, and the cache of the selection.
//!
//! Sums updated by differences are not bit for bit those computed from the weights, and the choice of features depends
//! on them. So they are saved as they are.

use crate::error::{Error, Result};
use crate::learners::boosting::bound::Gain;
use crate::learners::boosting::select::KnownGain;
use crate::learners::boosting::Boosting;
use std::sync::atomic::{AtomicBool, Ordering};

/// Bound on the sums of a state, such that their squares are finite. A common factor is taken out of large sums.
const MAX_SUM: f64 = 1e150;

/// Arrays of a state, by name.
pub type Saved = Vec<(&'static str, Vec<f64>)>;

impl Boosting {
    pub fn saved(&self) -> Saved {
        let (state, selector) = (&self.state, &self.selector);
        let flag = |changed: &AtomicBool| f64::from(u8::from(changed.load(Ordering::Relaxed)));
        let known = selector.known.iter().flat_map(|k| [k.gain, k.slack, k.n]).collect();
        let exact = selector.exact.iter().flat_map(|exact| &exact.gain).flat_map(|g| [g.step, g.gain]).collect();
        let counts = [self.rounds, selector.evaluated, selector.estimated].map(|x| x as f64);
        let [rounds, evaluated, estimated] = counts;
        vec![
            ("numbers", vec![rounds, evaluated, estimated, state.shift, state.n, state.n_at_build, selector.floor]),
            ("w", state.w.clone()),
            ("edges", state.edges.score.clone()),
            ("node", state.node.clone()),
            ("residual", state.residual.clone()),
            ("pairs", state.pairs.clone()),
            ("l", state.l.clone()),
            ("e", state.e.clone()),
            ("d", state.d.clone()),
            ("m", state.m.clone()),
            ("mass", state.mass.clone()),
            ("changed", state.changed.iter().map(flag).collect()),
            ("estimate", selector.estimate.clone()),
            ("best", selector.best.clone()),
            ("known", known),
            ("exact", exact),
        ]
    }

    /// Resume from a state of a booster with the same data and options. `array` returns the arrays by name.
    pub fn restore(&mut self, mut array: impl FnMut(&str) -> Result<Vec<f64>>) -> Result<()> {
        let mut found = Vec::new();
        for (name, own) in self.saved() {
            let given = array(name)?;
            if given.len() != own.len() {
                return Err(Error::Value("the state belongs to other data; train again from the start".into()));
            }
            // The lower limit of N for estimates (`floor`), the last of the numbers, is infinite initially.
            let finite = if name == "numbers" { &given[..given.len() - 1] } else { &given[..] };
            if let Some(x) = finite.iter().find(|x| x.is_nan() || x.abs() > MAX_SUM) {
                return Err(Error::Value(format!(
                    "{name} of the state has {x}, which training cannot produce; train again from the start"
                )));
            }
            found.push(given);
        }
        let mut found = found.into_iter();
        let mut next = || found.next().unwrap_or_default();
        let (state, selector) = (&mut self.state, &mut self.selector);
        let numbers = next();
        self.rounds = numbers[0] as u64;
        (selector.evaluated, selector.estimated) = (numbers[1] as u64, numbers[2] as u64);
        (state.shift, state.n, state.n_at_build, selector.floor) = (numbers[3], numbers[4], numbers[5], numbers[6]);
        state.w = next();
        state.edges.score = next();
        state.edges.update();
        for array in [&mut state.node, &mut state.residual, &mut state.pairs] {
            *array = next();
        }
        for array in [&mut state.l, &mut state.e, &mut state.d, &mut state.m, &mut state.mass] {
            *array = next();
        }
        let changed = next();
        state.changed.iter().zip(changed).for_each(|(flag, x)| flag.store(x != 0.0, Ordering::Relaxed));
        (selector.estimate, selector.best) = (next(), next());
        let known = next();
        selector.known = known.chunks_exact(3).map(|k| KnownGain { gain: k[0], slack: k[1], n: k[2] }).collect();
        let gains = next();
        if let Some(exact) = &mut selector.exact {
            exact.gain = gains.chunks_exact(2).map(|g| Gain { step: g[0], gain: g[1] }).collect();
        }
        self.backup = None;
        Ok(())
    }
}
