//! Beam search over whole paths: at each token the best prefixes are kept, regardless of their last labels (Ratnaparkhi
//! 1996).
//!
//! Not exact: unlike `search`, it may keep many prefixes with the same ending and none of a label that would win later.
//! Its cost does not grow with the square of the number of labels, which is an advantage with many labels. Ties: the
//! lower label, then the better prefix.

use crate::chain::lookback::search::Sentence;
use crate::chain::lookback::Lookback;
use crate::chain::viterbi::renormalize;
use crate::machine::simd::WIDTH;
use crate::machine::system::budget;
use crate::machine::system::stop;
use std::cmp::Ordering;

/// Scratch for one sentence at a time.
#[derive(Default)]
pub struct Beam {
    kept: Vec<f32>,                   // scores of the prefixes at t-1
    back: Vec<(u32, u16)>,            // previous prefix and label of each kept prefix, in token order
    begins: Vec<usize>,               // [T] index of each token's first prefix
    extensions: Vec<(f32, u16, u32)>, // score, label, prefix
    row: Vec<f32>,
    labels: Vec<u16>,
}

/// Bytes that a beam needs for a sentence of `positions` tokens: the kept prefixes, their extensions, and their paths.
pub fn bytes(labels: usize, positions: usize, beam: usize) -> usize {
    let kept = budget::power(labels, positions, beam);
    let extension_bytes = budget::bytes(&[kept, labels, size_of::<(f32, u16, u32)>()]);
    extension_bytes.saturating_add(budget::bytes(&[kept, positions, size_of::<(u32, u16)>() + size_of::<u16>()]))
}

impl Beam {
    /// Find up to `beam` complete paths, best first: their scores and their concatenated labels.
    pub fn run(
        &mut self,
        terms: &Lookback,
        x: &Sentence<'_>,
        beam: usize,
        scores: &mut Vec<f64>,
        paths: &mut Vec<u16>,
    ) {
        let (width, l) = (terms.width(), terms.labels);
        let n = x.node.len() / width;
        scores.clear();
        paths.clear();
        self.kept.clear();
        self.kept.push(0.0);
        self.back.clear();
        self.begins.clear();
        self.labels.resize(n.max(self.labels.len()), 0);
        let mut shift = 0.0;
        for t in 0..n {
            stop::check();
            self.extensions.clear();
            for (i, &base) in self.kept.iter().enumerate() {
                let at = i as u32;
                self.row.clear();
                self.row.resize(l, 0.0);
                if t > 0 {
                    // Labels of the prefix, as far back as features look.
                    let mut entry = at;
                    for u in (0..t).rev() {
                        let (before, label) = self.back[self.begins[u] + entry as usize];
                        self.labels[u] = label;
                        entry = before;
                    }
                    let last = self.labels[t - 1] as usize;
                    for (y, r) in self.row.iter_mut().enumerate() {
                        *r = x.steps.get(0, last, y);
                    }
                    let row = &mut self.row;
                    terms.at(&self.labels[..t], t, x.same, |number| {
                        for (y, r) in row.iter_mut().enumerate() {
                            *r += x.rows[number * width + y / WIDTH].0[y % WIDTH];
                        }
                    });
                }
                for (y, &r) in self.row.iter().enumerate() {
                    let score = base + r + x.node[t * width + y / WIDTH].0[y % WIDTH];
                    if score > f32::NEG_INFINITY {
                        self.extensions.push((score, y as u16, at));
                    }
                }
            }
            let order = |a: &(f32, u16, u32), b: &(f32, u16, u32)| -> Ordering {
                b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)).then(a.2.cmp(&b.2))
            };
            if self.extensions.len() > beam {
                self.extensions.select_nth_unstable_by(beam - 1, order);
                self.extensions.truncate(beam);
            }
            self.extensions.sort_unstable_by(order);
            self.kept.clear();
            self.begins.push(self.back.len());
            let best = self.extensions.first().map_or(0.0, |r| renormalize::shift(r.0));
            let subtracted = if renormalize::is_due(t) { best } else { 0.0 };
            shift += f64::from(subtracted);
            for &(score, label, before) in &self.extensions {
                self.kept.push(score - subtracted);
                self.back.push((before, label));
            }
        }
        for (i, &score) in self.kept.iter().enumerate() {
            scores.push(f64::from(score) + shift);
            let begin = paths.len();
            paths.resize(begin + n, 0);
            let mut at = i;
            for t in (0..n).rev() {
                let (before, label) = self.back[self.begins[t] + at];
                paths[begin + t] = label;
                at = before as usize;
            }
        }
    }
}
