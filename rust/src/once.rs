//! Labels that form at most one contiguous span in a sentence: Viterbi over (set of spans begun, label).
//!
//! Exact. Only the labels that a sentence's best path repeats are tracked: the best path is found without them, those
//! it violates are added, and the search runs again until none is. A path that is best under fewer constraints and keeps
//! them all is best under all of them. With n labels tracked a token costs 2^n times as much, which few sentences pay.

use crate::chart::Steps;
use crate::dataset::Dataset;
use crate::error::{Error, Result};
use crate::history::tag::fill;
use crate::lattice::Support;
use crate::predict::Scorer;
use crate::shared::Shared;
use crate::simd::{Lane, WIDTH};
use rayon::prelude::*;

/// No group.
pub const NONE: u32 = u32::MAX;
/// Labels that can be tracked at once.
pub const MOST: usize = 12;
const TASK: usize = 64;

/// Which labels may occur in one span only.
pub struct Groups {
    pub of: Vec<u32>,      // [L] group of each label, or NONE
    pub begins: Vec<bool>, // [L + 1, L] a span begins between two labels; row L: at the start of the sentence
}

impl Groups {
    /// The groups that begin more than one span on a path.
    pub fn repeated(&self, path: &[u16], found: &mut Vec<u32>) {
        let l = self.of.len();
        let mut seen: Vec<u32> = Vec::new();
        let mut before = l;
        for &y in path {
            let group = self.of[y as usize];
            if group != NONE && self.begins[before * l + y as usize] {
                if seen.contains(&group) && !found.contains(&group) {
                    found.push(group);
                }
                seen.push(group);
            }
            before = y as usize;
        }
    }
}

/// Best path of every sentence in which each group begins at most one span: [tokens].
pub fn viterbi(scorer: &Scorer, data: &Dataset, support: Option<&Support>, groups: &Groups) -> Result<Vec<u16>> {
    let l = scorer.layout.labels;
    if data.has_edge_attributes() {
        return Err(Error::Value("labels that occur once do not go with edge attributes".into()));
    }
    if groups.of.len() != l || groups.begins.len() != (l + 1) * l {
        return Err(Error::Value(format!("groups of {} labels for a model of {l}", groups.of.len())));
    }
    if let Some(&a) = data.node.ids.iter().find(|&&a| a as usize >= scorer.layout.attributes) {
        return Err(Error::Value(format!("attribute {a} is not the model's; encode with the model's vocabulary")));
    }
    let steps = Steps::from_scores(l, &scorer.edges.score);
    let mut paths = vec![0u16; data.tokens()];
    let shared = Shared::new(&mut paths);
    let results: Vec<Result<()>> = (0..data.len().div_ceil(TASK))
        .into_par_iter()
        .map(|task| {
            let mut work = Work::default();
            for s in task * TASK..((task + 1) * TASK).min(data.len()) {
                let (begin, end) = (data.sentences[s], data.sentences[s + 1]);
                work.node(scorer, data, support, begin, end);
                let mut active = Vec::new();
                loop {
                    let found = work.run(&steps, groups, &active, l);
                    if end > begin && !found.is_finite() {
                        return Err(Error::Value(format!(
                            "sentence {s}: no label sequence is allowed, or its score is not finite; relax the constraints"
                        )));
                    }
                    let before = active.len();
                    groups.repeated(&work.path, &mut active);
                    if active.len() == before {
                        break;
                    }
                    if active.len() > MOST {
                        return Err(Error::Value(format!(
                            "sentence {s}: more than {MOST} labels that may occur once compete; let fewer be such"
                        )));
                    }
                }
                // SAFETY: a sentence's tokens are its own.
                unsafe { shared.slice(begin, end - begin) }.copy_from_slice(&work.path);
            }
            Ok(())
        })
        .collect();
    for result in results {
        result?;
    }
    Ok(paths)
}

#[derive(Default)]
struct Work {
    node: Vec<f32>,  // [T, L]
    row: Vec<Lane>,  // one token's lanes
    delta: Vec<f32>, // [2^n, L]
    next: Vec<f32>,  // the same
    back: Vec<u32>,  // [T, 2^n, L] state at t-1
    path: Vec<u16>,
}

impl Work {
    fn node(&mut self, scorer: &Scorer, data: &Dataset, support: Option<&Support>, begin: usize, end: usize) {
        let l = scorer.layout.labels;
        self.node.clear();
        for t in begin..end {
            self.row.clear();
            self.row.resize(l.div_ceil(WIDTH), Lane::ZERO);
            fill(scorer, data, t, (t == begin, t + 1 == end), &mut self.row);
            self.node.extend((0..l).map(|y| match support {
                Some(s) if !s.sets[s.of[t] as usize * l + y] => f32::NEG_INFINITY,
                _ => self.row[y / WIDTH].0[y % WIDTH],
            }));
        }
    }

    /// Best path with the groups of `active` tracked; its score.
    fn run(&mut self, steps: &Steps, groups: &Groups, active: &[u32], l: usize) -> f32 {
        let (n, masks) = (self.node.len() / l, 1usize << active.len());
        self.path.clear();
        self.path.resize(n, 0);
        if n == 0 {
            return 0.0;
        }
        // The bit that a label sets when it begins a span, 0 for the others.
        let bit: Vec<usize> =
            groups.of.iter().map(|g| active.iter().position(|a| a == g).map_or(0, |i| 1 << i)).collect();
        self.delta.clear();
        self.delta.resize(masks * l, f32::NEG_INFINITY);
        self.back.clear();
        self.back.resize(n * masks * l, 0);
        for y in 0..l {
            self.delta[bit[y] * l + y] = self.node[y];
        }
        for t in 1..n {
            self.next.clear();
            self.next.resize(masks * l, f32::NEG_INFINITY);
            let back = &mut self.back[t * masks * l..(t + 1) * masks * l];
            for (state, &base) in self.delta.iter().enumerate() {
                if base == f32::NEG_INFINITY {
                    continue;
                }
                let (mask, a) = (state / l, state % l);
                for y in 0..l {
                    let to = if groups.begins[a * l + y] { bit[y] } else { 0 };
                    if mask & to != 0 {
                        continue;
                    }
                    let at = (mask | to) * l + y;
                    let score = base + steps.get(0, a, y);
                    // Among equals the lower label before wins, whatever the set.
                    if score > self.next[at] || (score == self.next[at] && a < back[at] as usize % l) {
                        self.next[at] = score;
                        back[at] = state as u32;
                    }
                }
            }
            for (at, s) in self.next.iter_mut().enumerate() {
                *s += self.node[t * l + at % l];
            }
            std::mem::swap(&mut self.delta, &mut self.next);
        }
        let mut best = 0;
        for (state, &s) in self.delta.iter().enumerate() {
            if s > self.delta[best] || (s == self.delta[best] && state % l < best % l) {
                best = state;
            }
        }
        let score = self.delta[best];
        let mut state = best;
        for t in (0..n).rev() {
            self.path[t] = (state % l) as u16;
            state = self.back[t * masks * l + state] as usize;
        }
        score
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
