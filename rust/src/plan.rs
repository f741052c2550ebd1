//! Which sentences advance together: batches of sixteen of similar length, batches in chunks.
//!
//! Chunks are the unit of parallel work and of summation. Their number depends on the corpus alone, and their sums are
//! added in order, so results have the same bits for any number of threads.

use crate::simd::WIDTH;
use std::ops::Range;

/// Up to sixteen sentences, longest first. The tokens of a batch have consecutive *slots*, position by position: at
/// position t the lanes 0..active(t) have a token.
#[derive(Clone, Debug)]
pub struct Batch {
    pub sentences: Vec<u32>,   // 1..=16 indices into the dataset
    pub lengths: [u32; WIDTH], // 0 for an unused lane
    pub slot: usize,           // slot of the first lane's first token
}

impl Batch {
    /// Positions: the length of the longest sentence.
    pub fn positions(&self) -> usize {
        self.lengths[0] as usize
    }

    /// Lanes with a token at position t.
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

/// Chunks of a corpus of this many tokens.
fn chunk_count(tokens: usize) -> usize {
    match tokens {
        0..=4_000 => 1,
        4_001..=16_000 => 4,
        16_001..=1_000_000 => 8,
        _ => 16,
    }
}

impl Plan {
    /// Group sentences (given by the offsets of their first tokens, [N + 1]) by length; empty sentences are left out.
    pub fn new(offsets: &[usize]) -> Plan {
        let length = |s: u32| offsets[s as usize + 1] - offsets[s as usize];
        let mut order: Vec<u32> = (0..offsets.len().saturating_sub(1) as u32).filter(|&s| length(s) > 0).collect();
        order.sort_by_key(|&s| std::cmp::Reverse(length(s)));
        let mut slot = 0;
        let mut batches: Vec<Batch> = order
            .chunks(WIDTH)
            .map(|group| {
                let mut lengths = [0; WIDTH];
                for (to, &s) in lengths.iter_mut().zip(group) {
                    *to = length(s) as u32;
                }
                Batch { sentences: group.to_vec(), lengths, slot: 0 }
            })
            .collect();
        // Deal the batches to the chunks in turn, long and short ones alike, so that all chunks are of similar size.
        let n_chunks = chunk_count(offsets.last().copied().unwrap_or(0)).min(batches.len().max(1));
        let mut dealt: Vec<Vec<Batch>> = vec![Vec::new(); n_chunks];
        for (i, batch) in batches.drain(..).enumerate() {
            let (round, k) = (i / n_chunks, i % n_chunks);
            dealt[if round % 2 == 0 { k } else { n_chunks - 1 - k }].push(batch);
        }
        let mut plan = Plan::default();
        for chunk in dealt {
            let begin = plan.batches.len();
            for mut batch in chunk {
                batch.slot = slot;
                slot += batch.lengths.iter().map(|&n| n as usize).sum::<usize>();
                plan.batches.push(batch);
            }
            plan.chunks.push(begin..plan.batches.len());
        }
        plan.slots = slot;
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
    fn every_token_has_one_slot_in_order() {
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
