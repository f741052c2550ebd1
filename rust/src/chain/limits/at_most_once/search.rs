//! Best allowed paths of one sentence.
//!
//! The k best paths are first found without the rule. Then the groups that one of them repeats are tracked and the
//! search runs again, until no group is repeated. The k best paths under a subset of the constraints are the k best
//! under all of them if they satisfy all. A sentence whose best paths repeat nothing has no extra cost.

use crate::chain::lattice::Scores;
use crate::chain::limits::at_most_once::{Groups, MAX_GROUPS};
use crate::chain::viterbi::sentence::{Chart, Steps};

/// One path of a state's list.
#[derive(Clone, Copy)]
struct StatePath {
    score: f64,
    state: u32, // at t-1: mask * L + label
    rank: u32,  // in that state's list
}

/// Scratch of one thread, and the last result.
#[derive(Default)]
pub struct AtMostOnceSearch {
    pub scores: Vec<f64>, // best first
    pub paths: Vec<u16>,  // [paths, T]
    lists: Vec<StatePath>,
    ends: Vec<u32>, // [T, states] end of each state's list in `lists`
    found: Vec<StatePath>,
    candidates: Vec<(StatePath, Vec<u16>)>,
    node: Vec<f64>, // scores copied from a chart
    edge: Vec<f64>,
}

impl AtMostOnceSearch {
    /// Find the k best allowed paths. Ties: the lower label at the last token at which paths differ, as everywhere.
    /// Return `Err` with the number of competing groups if there are too many to track. If there is no path, `scores`
    /// is empty.
    pub fn run(&mut self, scores: &Scores<'_>, groups: &Groups, k: usize) -> Result<(), usize> {
        let n = scores.positions();
        let mut tracked = Vec::new();
        loop {
            self.tracked(scores, groups, &tracked, k);
            if n == 0 {
                return Ok(());
            }
            let before = tracked.len();
            for path in self.paths.chunks_exact(n) {
                groups.repeated(path, &mut tracked);
            }
            if tracked.len() == before {
                return Ok(());
            }
            if tracked.len() > MAX_GROUPS {
                return Err(tracked.len());
            }
        }
    }

    /// `run` over the scores of a chart.
    pub fn of_chart(&mut self, chart: &Chart, steps: &Steps, groups: &Groups, k: usize) -> Result<(), usize> {
        let (l, n) = (chart.labels, chart.positions);
        let (mut node, mut edge) = (std::mem::take(&mut self.node), std::mem::take(&mut self.edge));
        node.clear();
        node.extend((0..n * l).map(|at| f64::from(chart.node(at / l, at % l))));
        edge.clear();
        let blocks = if chart.varies() { n } else { 1 };
        edge.extend((0..blocks * l * l).map(|at| f64::from(steps.get(at / (l * l), at / l % l, at % l))));
        let found = self.run(&Scores { labels: l, node: &node, edge: &edge }, groups, k);
        (self.node, self.edge) = (node, edge);
        found
    }

    /// Find the k best paths that repeat no group of `tracked`.
    fn tracked(&mut self, scores: &Scores<'_>, groups: &Groups, tracked: &[u32], k: usize) {
        let (l, n) = (scores.labels, scores.positions());
        let (bit, states) = (groups.bits(tracked), l << tracked.len());
        self.scores.clear();
        self.paths.clear();
        if n == 0 {
            self.scores.push(0.0);
            return;
        }
        self.lists.clear();
        self.ends.clear();
        for state in 0..states {
            let y = state % l;
            if state / l == if groups.begins[l * l + y] { bit[y] } else { 0 } && scores.node[y] > f64::NEG_INFINITY {
                self.lists.push(StatePath { score: scores.node[y], state: 0, rank: 0 });
            }
            self.ends.push(self.lists.len() as u32);
        }
        for t in 1..n {
            let edge = scores.edge(t);
            for state in 0..states {
                let (mask, y) = (state / l, state % l);
                let here = scores.node[t * l + y];
                self.found.clear();
                for a in (0..l).filter(|_| here > f64::NEG_INFINITY) {
                    let before = match previous_mask(mask, bit[y], groups.begins[a * l + y]) {
                        Some(mask) => mask * l + a,
                        None => continue,
                    };
                    let step = edge[a * l + y];
                    if step == f64::NEG_INFINITY {
                        continue;
                    }
                    let list = list(&self.ends, (t - 1) * states + before);
                    self.found.extend(self.lists[list].iter().enumerate().map(|(rank, e)| StatePath {
                        score: e.score + step + here,
                        state: before as u32,
                        rank: rank as u32,
                    }));
                }
                // Stable sort: ties keep the lower previous label, then the earlier rank. Each previous label has one
                // source mask.
                self.found.sort_by(|a, b| b.score.total_cmp(&a.score));
                self.found.truncate(k);
                self.lists.extend_from_slice(&self.found);
                self.ends.push(self.lists.len() as u32);
            }
        }
        self.collect(l, n, states, k);
    }

    /// Collect the best entries of the last states' lists.
    fn collect(&mut self, l: usize, n: usize, states: usize, k: usize) {
        self.found.clear();
        for state in 0..states {
            let list = list(&self.ends, (n - 1) * states + state);
            self.found.extend(self.lists[list].iter().enumerate().map(|(rank, e)| StatePath {
                score: e.score,
                state: state as u32,
                rank: rank as u32,
            }));
        }
        self.found.sort_by(|a, b| b.score.total_cmp(&a.score));
        // Paths that tie with the last one are ordered by their labels from the end.
        let lowest = match self.found.get(k.min(self.found.len()).wrapping_sub(1)) {
            Some(e) => e.score,
            None => return,
        };
        self.candidates.clear();
        for e in self.found.iter().take_while(|e| e.score >= lowest) {
            let mut path = vec![0u16; n];
            let (mut state, mut rank) = (e.state as usize, e.rank as usize);
            for t in (0..n).rev() {
                path[t] = (state % l) as u16;
                let entry = self.lists[list(&self.ends, t * states + state).start + rank];
                (state, rank) = (entry.state as usize, entry.rank as usize);
            }
            self.candidates.push((*e, path));
        }
        self.candidates
            .sort_by(|(a, p), (b, q)| b.score.total_cmp(&a.score).then_with(|| p.iter().rev().cmp(q.iter().rev())));
        for (e, path) in self.candidates.iter().take(k) {
            self.scores.push(e.score);
            self.paths.extend_from_slice(path);
        }
    }
}

/// The entries of a state.
fn list(ends: &[u32], at: usize) -> std::ops::Range<usize> {
    let begin = if at == 0 { 0 } else { ends[at - 1] as usize };
    begin..ends[at] as usize
}

/// Mask before a step into `mask` by a label whose bit is `bit`, or `None` if the step begins a tracked span that is
/// not in `mask`.
#[inline(always)]
pub fn previous_mask(mask: usize, bit: usize, begins: bool) -> Option<usize> {
    match begins && bit != 0 {
        false => Some(mask),
        true if mask & bit != 0 => Some(mask ^ bit),
        true => None,
    }
}
