//! Plan of which sentences advance together: batches of up to sixteen sentences of similar length, grouped into chunks.
//!
//! Chunks are the unit of parallel work and of summation. Their number depends on the corpus only, and their sums are
//! added in order, so that results have the same bits for any number of threads.

use crate::machine::simd::WIDTH;
use crate::machine::system::testing::{self, CodePath};
use std::ops::Range;

/// Up to sixteen sentences, longest first. The tokens of a batch have consecutive *slots*, position by position: at
/// position t the lanes 0..active(t) have a token.
#[derive(Clone, Debug)]
pub struct Batch {
    pub sentences: Vec<u32>,   // 1..=16 indices into the dataset
    pub lengths: [u32; WIDTH], // 0 for an unused lane
    pub slot: usize,           // slot of the first lane's first token
    pub index: usize,          // index in the plan
    pub chunk: usize,
}

impl Batch {
    /// Return the number of positions, which is the length of the longest sentence.
    pub fn positions(&self) -> usize {
        self.lengths[0] as usize
    }

    /// Return the number of tokens of all sentences.
    pub fn tokens(&self) -> usize {
        self.lengths.iter().map(|&n| n as usize).sum()
    }

    /// Return whether few lanes have a token, so that one sentence after the other, with `labels` in lanes, is faster.
    ///
    /// A step of sixteen sentences takes L^2 vector operations. A step of one sentence takes L times the lanes of L,
    /// and these operations depend on each other and take about twice as long.
    pub fn is_sparse(&self, labels: usize) -> bool {
        let few = 2 * self.tokens() * labels.div_ceil(WIDTH) <= self.positions() * labels;
        (few || testing::is_forced(CodePath::Sentence)) && !testing::is_forced(CodePath::Alone)
    }

    /// Return the number of lanes with a token at position t.
    #[inline]
    pub fn active(&self, t: usize) -> usize {
        let mut n = self.sentences.len();
        while n > 0 && self.lengths[n - 1] as usize <= t {
            n -= 1;
        }
        n
    }
}

#[derive(Clone, Debug, Default)]
pub struct Plan {
    pub batches: Vec<Batch>,
    pub chunks: Vec<Range<usize>>, // ranges of batches
    pub slots: usize,
}

/// Return the number of chunks of a corpus with this many tokens.
fn chunk_count(tokens: usize) -> usize {
    match tokens {
        0..=4_000 => 1,
        4_001..=400_000 => 4,
        400_001..=2_000_000 => 8,
        _ => 16,
    }
}

impl Plan {
    /// Divide the sentences (given by the offsets of their first tokens, [N + 1]) into chunks of neighbours with
    /// similar numbers of tokens, and group the sentences of each chunk by length. Neighbours share words, and
    /// attributes are numbered in order of occurrence, so a chunk accesses a small part of the weights. Empty
    /// sentences are left out.
    pub fn new(offsets: &[usize]) -> Plan {
        let tokens = offsets.last().copied().unwrap_or(0);
        let n_chunks = if testing::is_forced(CodePath::Chunks) { 4 } else { chunk_count(tokens) };
        Plan::of(offsets, n_chunks, if testing::is_forced(CodePath::Alone) { 1 } else { WIDTH })
    }

    pub fn in_chunks(offsets: &[usize], n_chunks: usize) -> Plan {
        Plan::of(offsets, n_chunks, WIDTH)
    }

    /// Create batches of at most `max_sentences` sentences.
    fn of(offsets: &[usize], n_chunks: usize, max_sentences: usize) -> Plan {
        let (n, tokens) = (offsets.len().saturating_sub(1), offsets.last().copied().unwrap_or(0));
        let length = |s: u32| offsets[s as usize + 1] - offsets[s as usize];
        let mut plan = Plan::default();
        let mut first = 0;
        for chunk in 1..=n_chunks {
            let target_tokens = tokens * chunk / n_chunks;
            let end =
                if chunk == n_chunks { n } else { first + offsets[first..n].partition_point(|&t| t < target_tokens) };
            let mut order: Vec<u32> = (first as u32..end as u32).filter(|&s| length(s) > 0).collect();
            order.sort_by_key(|&s| std::cmp::Reverse(length(s)));
            let begin = plan.batches.len();
            for group in order.chunks(max_sentences) {
                let mut lengths = [0; WIDTH];
                for (to, &s) in lengths.iter_mut().zip(group) {
                    *to = length(s) as u32;
                }
                let index = plan.batches.len();
                plan.batches.push(Batch {
                    sentences: group.to_vec(),
                    lengths,
                    slot: plan.slots,
                    index,
                    chunk: chunk - 1,
                });
                plan.slots += lengths.iter().map(|&n| n as usize).sum::<usize>();
            }
            plan.chunks.push(begin..plan.batches.len());
            first = end;
        }
        plan
    }

    /// Visit every token as (slot, batch index, lane, position).
    pub fn for_each_slot(&self, mut visit: impl FnMut(usize, usize, usize, usize)) {
        for (b, batch) in self.batches.iter().enumerate() {
            let mut slot = batch.slot;
            for t in 0..batch.positions() {
                for lane in 0..batch.active(t) {
                    visit(slot, b, lane, t);
                    slot += 1;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_enumerate_every_token_once() {
        let lengths = [3usize, 0, 17, 1, 1, 5, 40, 2, 2, 2, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 1];
        let mut offsets = vec![0];
        for n in lengths {
            offsets.push(offsets[offsets.len() - 1] + n);
        }
        let plan = Plan::new(&offsets);
        let mut seen = vec![0; offsets[lengths.len()]];
        let mut expected = 0;
        plan.for_each_slot(|slot, b, lane, t| {
            assert_eq!(slot, expected);
            expected += 1;
            seen[offsets[plan.batches[b].sentences[lane] as usize] + t] += 1;
        });
        assert!(seen.iter().all(|&n| n == 1));
        assert_eq!(plan.slots, seen.len());
        assert_eq!(plan.chunks.iter().map(|c| c.len()).sum::<usize>(), plan.batches.len());
    }
}
