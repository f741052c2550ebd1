//! Best paths where tokens may take few labels, as with a tag dictionary: only cells of allowed labels exist.
//!
//! ```text
//! delta_t(y) = s_t(y) + max_{y' allowed at t-1} delta_{t-1}(y') + A[y', y]        y allowed at t
//! ```
//!
//! One sentence at a time, label by label: with one or two labels a token that is less work than sixteen sentences side by
//! side with all labels. The same floats are added in the same order as in `lanes`, but for those of a token's only label,
//! which all paths share and nobody need look up: both give the same path.

use crate::chain::support::Support;
use crate::machine::simd::WIDTH;

/// With more labels than this a token's cells are filled side by side.
const MANY: usize = 8;

/// The labels of each set, one after the other.
pub struct Allowed {
    labels: Vec<u16>,
    ends: Vec<u32>, // [sets]
}

impl Allowed {
    pub fn new(support: &Support, labels: usize) -> Allowed {
        let mut out = Allowed { labels: Vec::new(), ends: Vec::new() };
        for set in support.sets.chunks_exact(labels.max(1)) {
            out.labels.extend((0..labels).filter(|&y| set[y]).map(|y| y as u16));
            out.ends.push(out.labels.len() as u32);
        }
        out
    }

    /// Labels of a set, ascending.
    #[inline(always)]
    pub fn of(&self, set: u32) -> &[u16] {
        let begin = if set == 0 { 0 } else { self.ends[set as usize - 1] as usize };
        &self.labels[begin..self.ends[set as usize] as usize]
    }

    /// Pairs of labels that the steps of a sentence look at, sixteen side by side where a token may take many.
    pub fn pairs(&self, sets: &[u32], labels: usize) -> usize {
        let to = |n: usize| if n > MANY { labels.div_ceil(WIDTH) } else { n };
        sets.windows(2).map(|s| self.of(s[0]).len() * to(self.of(s[1]).len())).sum()
    }
}

/// Scratch of one thread.
#[derive(Default)]
pub struct Narrow {
    delta: Vec<f32>, // cells of the token before
    next: Vec<f32>,
    back: Vec<u16>, // [cells of all tokens] place in the list of the token before
    ends: Vec<u32>, // [T] where each token's cells end
    best: Vec<f32>, // [L] of all labels of a token that may take many
    from: Vec<u32>, // [L]
}

impl Narrow {
    /// Best path of a sentence whose tokens have these sets; `node(t, labels, out)` pushes the scores of labels, `edge` is
    /// [L, L], `emit(t, label)` gets the path. Its score, which is not finite where there is none.
    #[inline(always)]
    pub fn run(
        &mut self,
        lists: &Allowed,
        sets: &[u32],
        labels: usize,
        edge: &[f32],
        mut node: impl FnMut(usize, &[u16], &mut Vec<f32>),
        mut emit: impl FnMut(usize, u16),
    ) -> f32 {
        self.back.clear();
        self.ends.clear();
        let mut before: &[u16] = &[];
        for (t, &set) in sets.iter().enumerate() {
            let here = lists.of(set);
            self.next.clear();
            node(t, here, &mut self.next);
            if t > 0 && here.len() > MANY {
                self.best.clear();
                self.best.resize(labels, f32::NEG_INFINITY);
                self.from.clear();
                self.from.resize(labels, 0);
                for (i, (&a, &d)) in before.iter().zip(&self.delta).enumerate() {
                    let row = &edge[a as usize * labels..(a as usize + 1) * labels];
                    for ((best, from), &x) in self.best.iter_mut().zip(self.from.iter_mut()).zip(row) {
                        let v = d + x;
                        *from = if v > *best { i as u32 } else { *from };
                        *best = if v > *best { v } else { *best };
                    }
                }
                for (&y, s) in here.iter().zip(self.next.iter_mut()) {
                    *s += self.best[y as usize];
                    self.back.push(self.from[y as usize] as u16);
                }
            } else {
                for (&y, s) in here.iter().zip(self.next.iter_mut()) {
                    let mut from = 0;
                    if t > 0 {
                        let mut best = f32::NEG_INFINITY;
                        for (i, (&a, &d)) in before.iter().zip(&self.delta).enumerate() {
                            let v = d + edge[a as usize * labels + y as usize];
                            if v > best {
                                (best, from) = (v, i);
                            }
                        }
                        *s += best;
                    }
                    self.back.push(from as u16);
                }
            }
            self.ends.push(self.back.len() as u32);
            std::mem::swap(&mut self.delta, &mut self.next);
            before = here;
        }
        let mut at = 0;
        for (i, &d) in self.delta.iter().enumerate() {
            if d > self.delta[at] {
                at = i;
            }
        }
        let Some(&score) = self.delta.get(at).filter(|_| !sets.is_empty()) else {
            return if sets.is_empty() { 0.0 } else { f32::NEG_INFINITY };
        };
        if score.is_finite() {
            for t in (0..sets.len()).rev() {
                emit(t, lists.of(sets[t])[at]);
                let begin = if t == 0 { 0 } else { self.ends[t - 1] as usize };
                at = self.back[begin + at] as usize;
            }
        }
        score
    }
}
