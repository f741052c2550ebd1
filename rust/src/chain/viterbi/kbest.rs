//! Exact k-best paths of one sentence, best first: Huang & Chiang 2005, algorithm 3, on a chain.
//!
//! The paths that end in label y at position t form a sorted list. Each of them extends a path of some label y' at t-1
//! by one step, so the list is the merge of L sorted lists. The next path of a cell is the top of a heap that holds the
//! next path of each of them. Evaluation is lazy: after a Viterbi pass, one more path costs at most one heap operation
//! per position, and the L-way heaps exist only in cells that some path needed.
//!
//! Ties: among equal scores the lower last label comes first, then the lower label before it, and so on. The first path
//! equals that of `Viterbi64`, and the list for k is the beginning of the list for k + 1.

use crate::chain::lattice::Scores;
use crate::machine::system::budget;
use crate::machine::system::stop;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// Number of paths between two checks for cancellation.
const CHECK_INTERVAL: usize = 256;
/// Entry not computed yet.
const NONE: u32 = u32::MAX;
/// End of a cell's list.
const END: u32 = u32::MAX - 1;

/// Next path of a predecessor, one step longer, without its node score.
struct Candidate {
    score: f64,
    from: u16,
    prev: u32, // entry at the predecessor, NONE for its first
}

impl Ord for Candidate {
    fn cmp(&self, other: &Self) -> Ordering {
        self.score.total_cmp(&other.score).then(other.from.cmp(&self.from))
    }
}
impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl PartialEq for Candidate {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl Eq for Candidate {}

/// One path of a cell's list.
struct CellPath {
    score: f64,
    cell: usize, // t * L + label, or T * L for the cell that collects the ends
    heap: u32,
    from: u16, // label at t-1
    prev: u32, // entry at t-1, NONE for its first until it is computed
    next: u32, // next entry of the cell's list: NONE, END, or an index
}

/// Upper bound on the bytes of a list of k paths for a sentence. Each path can add a new entry at every token.
pub fn bytes(labels: usize, positions: usize, k: usize) -> usize {
    let (found, entry) = (budget::power(labels, positions, k), size_of::<CellPath>() + size_of::<Candidate>());
    budget::bytes(&[found, positions.max(1), entry + size_of::<u16>()])
}

/// Enumerator of the paths of a sentence.
pub struct PathEnumerator<'a> {
    scores: &'a Scores<'a>,
    delta: Vec<f64>, // [T, L] best score of a path to the cell
    first: Vec<u32>, // [T * L + 1] first entry of each cell
    entries: Vec<CellPath>,
    heaps: Vec<BinaryHeap<Candidate>>,
    stack: Vec<u32>,
    last: u32, // entry returned last
}

impl<'a> PathEnumerator<'a> {
    /// Scores may be -infinity, but neither +infinity nor NaN.
    pub fn new(scores: &'a Scores<'a>) -> PathEnumerator<'a> {
        let (l, n) = (scores.labels, scores.positions());
        let mut delta: Vec<f64> = scores.node.iter().map(|s| s + 0.0).collect(); // -0 would not tie with 0
        for t in 1..n {
            let edge = scores.edge(t);
            let (before, here) = delta.split_at_mut(t * l);
            let before = &before[(t - 1) * l..];
            for y in 0..l {
                let best = (0..l).map(|k| before[k] + edge[k * l + y]).fold(f64::NEG_INFINITY, f64::max);
                here[y] += best;
            }
        }
        PathEnumerator {
            scores,
            delta,
            first: vec![NONE; n * l + 1],
            entries: Vec::new(),
            heaps: Vec::new(),
            stack: Vec::new(),
            last: NONE,
        }
    }

    fn step(&self, cell: usize, from: u16) -> f64 {
        let l = self.scores.labels;
        match cell == self.delta.len() {
            true => 0.0,
            false => self.scores.edge(cell / l)[from as usize * l + cell % l],
        }
    }

    /// Return the first entry of a reachable cell. Its heap holds the other predecessors of the cell.
    fn first_entry(&mut self, cell: usize) -> u32 {
        if self.first[cell] != NONE {
            return self.first[cell];
        }
        let (l, t) = (self.scores.labels, cell / self.scores.labels);
        let mut heap = BinaryHeap::new();
        if t > 0 {
            let candidates = (0..l).map(|k| Candidate {
                score: self.delta[(t - 1) * l + k] + self.step(cell, k as u16) + 0.0,
                from: k as u16,
                prev: NONE,
            });
            heap = candidates.filter(|c| c.score > f64::NEG_INFINITY).collect();
        }
        let top = heap.pop();
        let from = top.as_ref().map_or(0, |c| c.from);
        let score = match self.delta.get(cell) {
            Some(&s) => s,
            None => top.map_or(f64::NEG_INFINITY, |c| c.score),
        };
        self.heaps.push(heap);
        let entry = CellPath { score, cell, heap: (self.heaps.len() - 1) as u32, from, prev: NONE, next: NONE };
        self.first[cell] = self.push(entry);
        self.first[cell]
    }

    fn push(&mut self, entry: CellPath) -> u32 {
        self.entries.push(entry);
        (self.entries.len() - 1) as u32
    }

    /// Return the entry after `entry` in its cell's list, or END. Descends the chain of predecessors whose next entry
    /// is not computed yet, then ascends with one heap operation each.
    fn next_entry(&mut self, entry: u32) -> u32 {
        let l = self.scores.labels;
        self.stack.push(entry);
        let mut top = entry;
        while self.entries[top as usize].next == NONE {
            let e = &self.entries[top as usize];
            if e.cell < l {
                self.entries[top as usize].next = END;
                break;
            }
            if e.prev == NONE {
                let predecessor = (e.cell / l - 1) * l + e.from as usize;
                let prev = self.first_entry(predecessor);
                self.entries[top as usize].prev = prev;
            }
            top = self.entries[top as usize].prev;
            self.stack.push(top);
        }
        self.stack.pop();
        while let Some(at) = self.stack.pop() {
            let (cell, heap, from) = {
                let e = &self.entries[at as usize];
                (e.cell, e.heap, e.from)
            };
            let predecessor = self.entries[self.entries[at as usize].prev as usize].next;
            if predecessor != END {
                let score = self.entries[predecessor as usize].score + self.step(cell, from) + 0.0;
                self.heaps[heap as usize].push(Candidate { score, from, prev: predecessor });
            }
            let next = match self.heaps[heap as usize].pop() {
                None => END,
                Some(c) => {
                    let node = self.scores.node.get(cell).copied().unwrap_or(0.0);
                    let score = c.score + node + 0.0;
                    self.push(CellPath { score, cell, heap, from: c.from, prev: c.prev, next: NONE })
                }
            };
            self.entries[at as usize].next = next;
        }
        self.entries[entry as usize].next
    }

    /// Labels of an entry of the last cell.
    fn path(&self, mut entry: u32) -> Vec<u16> {
        let (l, n) = (self.scores.labels, self.scores.positions());
        let mut path = vec![0; n];
        let mut t = n;
        let mut label = 0;
        while t > 0 && entry != NONE {
            let e = &self.entries[entry as usize];
            label = e.from;
            path[t - 1] = label;
            t -= 1;
            entry = e.prev;
        }
        // The remaining prefix, before the label at t, is a best prefix.
        while t > 0 {
            let edge = self.scores.edge(t);
            let score_from = |k: usize| self.delta[(t - 1) * l + k] + edge[k * l + label as usize];
            label = (1..l).fold(0, |best, k| if score_from(k) > score_from(best) { k } else { best }) as u16;
            t -= 1;
            path[t] = label;
        }
        path
    }
}

impl Iterator for PathEnumerator<'_> {
    type Item = (f64, Vec<u16>);

    fn next(&mut self) -> Option<Self::Item> {
        let next = match self.last {
            END => END,
            NONE => self.first_entry(self.delta.len()),
            last if self.delta.is_empty() => {
                debug_assert!(last == 0);
                END // the single path without labels
            }
            last => self.next_entry(last),
        };
        self.last = next;
        let e = self.entries.get(next as usize)?;
        let score = if self.delta.is_empty() { 0.0 } else { e.score };
        if score == f64::NEG_INFINITY {
            self.last = END;
            return None;
        }
        Some((score, self.path(next)))
    }
}

/// Return the k best paths with their scores, or fewer if fewer are allowed.
pub fn kbest(scores: &Scores<'_>, k: usize) -> Vec<(f64, Vec<u16>)> {
    let mut found = Vec::new();
    for path in PathEnumerator::new(scores).take(k) {
        if found.len().is_multiple_of(CHECK_INTERVAL) {
            stop::check();
        }
        found.push(path);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chain::viterbi::double::Viterbi64;
    use crate::machine::system::shuffle::Generator;

    fn enumerate_paths(scores: &Scores<'_>) -> Vec<(f64, Vec<u16>)> {
        let (l, n) = (scores.labels, scores.positions());
        let mut found = Vec::new();
        for number in 0..l.pow(n as u32) {
            // The first label changes fastest, so paths are in the order of their reversed labels.
            let path: Vec<u16> = (0..n).map(|t| (number / l.pow(t as u32) % l) as u16).collect();
            let mut score = 0.0;
            for (t, &y) in path.iter().enumerate() {
                if t > 0 {
                    score += scores.edge(t)[path[t - 1] as usize * l + y as usize];
                }
                score += scores.node[t * l + y as usize];
            }
            if score > f64::NEG_INFINITY {
                found.push((score, path));
            }
        }
        found.sort_by(|a, b| b.0.total_cmp(&a.0));
        found
    }

    #[test]
    fn every_k_agrees_with_enumeration() {
        let mut generator = Generator::new(7, 0, 0);
        for round in 0..300 {
            let (l, n) = (1 + generator.below(4) as usize, 1 + generator.below(4) as usize);
            // Whole numbers tie often and add exactly. A few scores forbid.
            let mut draw = |forbid: u64| match generator.below(10) {
                x if x < forbid => f64::NEG_INFINITY,
                _ => generator.below(5) as f64 - 2.0,
            };
            let node: Vec<f64> = (0..n * l).map(|_| draw(round % 3)).collect();
            let blocks = if round % 2 == 0 { 1 } else { n };
            let edge: Vec<f64> = (0..blocks * l * l).map(|_| draw(round % 2)).collect();
            let scores = Scores { labels: l, node: &node, edge: &edge };
            let expected = enumerate_paths(&scores);
            for k in 0..=expected.len() + 1 {
                assert_eq!(kbest(&scores, k), expected[..k.min(expected.len())]);
            }
            if let Some((score, best)) = expected.first() {
                let mut path = Vec::new();
                assert_eq!(Viterbi64::default().run(&scores, &mut path), *score);
                assert_eq!(&path, best);
            }
        }
    }

    #[test]
    fn empty_sentences_have_one_path() {
        let scores = Scores { labels: 3, node: &[], edge: &[0.0; 9] };
        assert_eq!(kbest(&scores, 5), vec![(0.0, vec![])]);
        assert!(kbest(&scores, 0).is_empty());
    }

    #[test]
    fn long_sentences_do_not_overflow_the_stack() {
        let (l, n) = (3, 20_000);
        let node: Vec<f64> = (0..n * l).map(|i| ((i * 2_654_435_761) % 97) as f64).collect();
        let edge = vec![0.0; l * l];
        let found = kbest(&Scores { labels: l, node: &node, edge: &edge }, 20);
        assert_eq!(found.len(), 20);
        assert!(found.windows(2).all(|w| w[0].0 >= w[1].0 && w[0].1 != w[1].1));
    }
}
