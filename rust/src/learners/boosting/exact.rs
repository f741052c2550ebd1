//! Z itself, for small problems: a dynamic program whose cells carry the amount by which a feature has fired so far
//! (Altun, Hofmann & Johnson 2002, eq. 14). The masses of all sentences by u determine the loss as a function of a
//! feature's step: Z(step) = sum_u mass(u) e^{step u}.

use crate::learners::boosting::bound::{self, Gain, StepLimits};
use crate::learners::boosting::cells::FEATURES;
use crate::learners::boosting::index::{self, FeatureKind};
use crate::learners::boosting::state::State;
use crate::machine::system::stop;
use std::sync::atomic::Ordering;

/// Amounts closer than this are equal: their order of addition differs from path to path.
const SAME: f64 = 1e-9;

/// Gains of all features. Only those of changed blocks are computed again.
pub struct Exact {
    pub gain: Vec<Gain>,
}

/// Mass by amount, amounts ascending.
type Masses = Vec<(f64, f64)>;

fn add(to: &mut Masses, amount: f64, mass: f64) {
    let at = to.partition_point(|x| x.0 < amount - SAME);
    match to.get_mut(at) {
        Some(x) if (x.0 - amount).abs() <= SAME => x.1 += mass,
        _ => to.insert(at, (amount, mass)),
    }
}

impl Exact {
    pub fn new(features: usize) -> Exact {
        Exact { gain: vec![Gain::default(); features] }
    }

    pub fn update(&mut self, state: &State, limits: StepLimits) {
        for (block, changed) in state.changed.iter().enumerate() {
            if changed.swap(false, Ordering::Relaxed) {
                for k in block * FEATURES..((block + 1) * FEATURES).min(self.gain.len()) {
                    self.gain[k] = Exact::evaluate(state, k, limits);
                }
            }
        }
    }

    /// The step that minimises Z (plus the smoothing term), and its gain.
    pub fn evaluate(state: &State, k: usize, limits: StepLimits) -> Gain {
        let masses = Exact::masses(state, k);
        // A mass at u is a cell with its mass at one end of its range.
        let cells = masses.iter().filter(|x| x.0 != 0.0).map(|&(u, mass)| {
            let range = bound::Range { a: (-u).max(0.0), b: u.max(0.0) };
            (range, mass, u * mass)
        });
        bound::tight(cells, state.n, limits, 0.0)
    }

    /// Mass of wrong paths by u_k, over the sentences where the feature can fire.
    pub fn masses(state: &State, k: usize) -> Masses {
        let (mut total, mut sentences) = (Masses::new(), Vec::new());
        state.sentences_of(k, &mut sentences);
        let kind = index::kind(&state.layout, k);
        for &s in &sentences {
            stop::check();
            Exact::sentence(state, kind, s as usize, &mut total);
        }
        total
    }

    fn sentence(state: &State, kind: FeatureKind, s: usize, total: &mut Masses) {
        let (l, width) = (state.layout.labels, state.edges.padded);
        let (begin, end) = (state.data.sentences[s], state.data.sentences[s + 1]);
        // Value that the feature adds at position t with label y.
        let mut values = vec![0.0; end - begin];
        let mut of = usize::MAX;
        match kind {
            FeatureKind::Node { attribute, label } => {
                of = label;
                for at in state.data.node.csr().ptr[begin]..state.data.node.csr().ptr[end] {
                    if state.data.node.csr().ids[at] == attribute {
                        let t = state.data.node.csr().ptr[begin + 1..=end].partition_point(|&p| p <= at);
                        values[t] += f64::from(state.data.node.csr().value(at));
                    }
                }
            }
            FeatureKind::Start { label } => (of, values[0]) = (label, 1.0),
            FeatureKind::End { label } => (of, values[end - begin - 1]) = (label, 1.0),
            FeatureKind::Edge { .. } => {}
        }
        let fires = |t: usize, from: usize, to: usize| match kind {
            FeatureKind::Edge { from: a, to: b } => f64::from(u8::from(t > 0 && from == a && to == b)),
            FeatureKind::Node { .. } | FeatureKind::Start { .. } | FeatureKind::End { .. } if to == of => values[t],
            FeatureKind::Node { .. } | FeatureKind::Start { .. } | FeatureKind::End { .. } => 0.0,
        };
        let gold = &state.data.gold[begin..end];
        let right: f64 = (0..gold.len()).map(|t| fires(t, gold[t.saturating_sub(1)] as usize, gold[t] as usize)).sum();
        // Masses are normalised at every token, so factors of a row, or of all edges, have no effect.
        let largest = |of: &[f64]| of.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let psi = |t: usize, y: usize| {
            let row = &state.node[(begin + t) * width..][..l];
            (row[y] - largest(row)).exp()
        };
        let top = largest(&state.edges.score);
        let mut here: Vec<Masses> = (0..l).map(|y| vec![(fires(0, 0, y), psi(0, y))]).collect();
        for t in 1..gold.len() {
            let mut next = vec![Masses::new(); l];
            let mut sum = 0.0;
            for to in 0..l {
                let psi = psi(t, to);
                for from in 0..l {
                    let (step, by) = (psi * (state.edges.score[from * l + to] - top).exp(), fires(t, from, to));
                    for &(amount, mass) in &here[from] {
                        add(&mut next[to], amount + by, mass * step);
                        sum += mass * step;
                    }
                }
            }
            next.iter_mut().flatten().for_each(|x| x.1 /= sum);
            here = next;
        }
        // Probabilities of paths times e are their e^{H - H(gold)}. The gold path, with u = 0, is subtracted.
        let sum: f64 = here.iter().flatten().map(|x| x.1).sum();
        for &(amount, mass) in here.iter().flatten() {
            add(total, amount - right, state.e[s] * mass / sum);
        }
        add(total, 0.0, state.d[s] - state.e[s]);
    }
}
