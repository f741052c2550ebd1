//! Labels that each token may take, and the check that an allowed path exists.

use crate::error::{Error, Result};
use crate::machine::simd::{Lane, WIDTH};
use rayon::prelude::*;
use std::collections::HashMap;

/// Labels that each token may take: the distinct sets, and the index of each token's set.
#[derive(Clone, Debug, Default)]
pub struct Support {
    pub sets: Vec<bool>, // [sets, L]
    pub of: Vec<u32>,    // [tokens] index of the token's set
}

impl Support {
    /// Validate sets of the shape [sets, L] and the set of each token. The numbers of labels and tokens must match, and
    /// every token's set must exist.
    pub fn new(sets: Vec<bool>, shape: (usize, usize), of: Vec<u32>, labels: usize, tokens: usize) -> Result<Support> {
        debug_assert!(sets.len() == shape.0 * shape.1);
        match shape.1 != labels || of.len() != tokens || of.iter().any(|&s| s as usize >= shape.0) {
            true => Err(Error::Value(format!(
                "allowed sets of shape {shape:?} for {} tokens do not fit {labels} labels and {tokens} tokens",
                of.len()
            ))),
            false => Ok(Support { sets, of }),
        }
    }

    /// Intersection of the two.
    pub fn and(&self, other: &Support, labels: usize) -> Support {
        let mut known: HashMap<(u32, u32), u32> = HashMap::new();
        let mut sets = Vec::new();
        let mut set = |a: u32, b: u32| {
            let next = known.len() as u32;
            *known.entry((a, b)).or_insert_with(|| {
                let (a, b) = (&self.sets[a as usize * labels..], &other.sets[b as usize * labels..]);
                sets.extend((0..labels).map(|y| a[y] && b[y]));
                next
            })
        };
        let of = self.of.iter().zip(&other.of).map(|(&a, &b)| set(a, b)).collect();
        Support { sets, of }
    }

    /// Set the node scores [T, L] of labels that a sentence may not take to -infinity. `begin` is its first token.
    pub fn forbid(&self, begin: usize, labels: usize, node: &mut [f64]) {
        for (i, s) in node.iter_mut().enumerate() {
            if !self.sets[self.of[begin + i / labels] as usize * labels + i % labels] {
                *s = f64::NEG_INFINITY;
            }
        }
    }

    /// Set the scores of forbidden labels to -infinity in a row of lanes, the node scores of one token.
    pub fn forbid_row(&self, token: usize, labels: usize, row: &mut [Lane]) {
        let set = self.of[token] as usize;
        for (y, &allowed) in self.sets[set * labels..(set + 1) * labels].iter().enumerate() {
            if !allowed {
                row[y / WIDTH].0[y % WIDTH] = f32::NEG_INFINITY;
            }
        }
    }
}

/// Rows of 0 and -infinity for sets of labels [sets, L]. Padding labels are 0.
pub fn mask_rows(sets: &[bool], labels: usize, width: usize) -> Vec<Lane> {
    let mut masks = vec![Lane::ZERO; sets.len() / labels.max(1) * width];
    for (i, &allowed) in sets.iter().enumerate() {
        let (set, y) = (i / labels, i % labels);
        if !allowed {
            masks[set * width + y / WIDTH].0[y % WIDTH] = f32::NEG_INFINITY;
        }
    }
    masks
}

/// Whether each sentence has a path within its sets and allowed pairs.
pub fn feasible(offsets: &[u64], sets: &[bool], of: &[u32], pairs: &[bool], l: usize) -> Vec<bool> {
    offsets
        .par_windows(2)
        .map(|o| {
            let mut reachable: Vec<bool> = Vec::new();
            for t in o[0] as usize..o[1] as usize {
                let set = &sets[of[t] as usize * l..(of[t] as usize + 1) * l];
                reachable = match reachable.is_empty() {
                    true => set.to_vec(),
                    false => (0..l).map(|y| set[y] && (0..l).any(|k| reachable[k] && pairs[k * l + y])).collect(),
                };
                if !reachable.contains(&true) {
                    return false;
                }
            }
            true
        })
        .collect()
}
