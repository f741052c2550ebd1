//! Viterbi for one sentence in double precision, for any finite scores.

use crate::chain::lattice::Scores;

/// Scratch of one thread. It grows to the longest sentence.
#[derive(Default)]
pub struct Viterbi64 {
    current: Vec<f64>, // [L] best scores of the prefixes that end in each label
    next: Vec<f64>,    // [L]
    from: Vec<u64>,    // [L] previous labels, as wide as the scores so that both use the same selection
    back: Vec<u16>,    // [T - 1, L]
}

impl Viterbi64 {
    /// Write the best path and return its score. Ties: the lower label, because the first of equal labels is kept.
    pub fn run(&mut self, scores: &Scores<'_>, path: &mut Vec<u16>) -> f64 {
        let (l, n) = (scores.labels, scores.positions());
        path.clear();
        if n == 0 {
            return 0.0;
        }
        let Viterbi64 { current, next, from, back } = self;
        current.clear();
        current.extend_from_slice(&scores.node[..l]);
        next.resize(l, 0.0);
        from.resize(l, 0);
        back.clear();
        for t in 1..n {
            let (edge, best, from) = (scores.edge(t), &mut next[..l], &mut from[..l]);
            best.iter_mut().zip(&edge[..l]).for_each(|(b, e)| *b = current[0] + e);
            from.fill(0);
            for k in 1..l {
                let (score, row) = (current[k], &edge[k * l..(k + 1) * l]);
                for y in 0..l {
                    let v = score + row[y];
                    let better = v > best[y];
                    best[y] = if better { v } else { best[y] };
                    from[y] = if better { k as u64 } else { from[y] };
                }
            }
            best.iter_mut().zip(&scores.node[t * l..(t + 1) * l]).for_each(|(b, x)| *b += x);
            back.extend(from.iter().map(|&k| k as u16));
            std::mem::swap(current, next);
        }
        let mut y = (1..l).fold(0, |best, k| if current[k] > current[best] { k } else { best });
        let score = current[y];
        path.resize(n, 0);
        for t in (0..n).rev() {
            path[t] = y as u16;
            if t > 0 {
                y = back[(t - 1) * l + y] as usize;
            }
        }
        score
    }
}
