//! Exact reduction of the number of rows per token: if row b is present in every token that has row a, b's weights are
//! added to a's once per evaluation and b is removed from those tokens.
//!
//! In each token a row b has at most one *owner*: the last row of the token that implies b (last in the order in which
//! attributes were written, so that rows of one template are treated alike). a *carries* b if a owns b in every token
//! that has a. Owners are unique, so nothing is counted twice. a implies b only if b is at least as frequent. Ties
//! between equal columns are broken by row number, so that carrying has no cycles.
//!
//! The remaining rows are reduced further by *joint* rows: two neighbours that often occur together in a token are
//! replaced by one new row that carries both. This is repeated with the new rows (the pairs of byte-pair encoding). A
//! joint row costs two additions per evaluation and saves one addition for every token that has it.

use rapidhash::fast::RandomState;
use rayon::prelude::*;
use std::collections::HashMap;

/// Number of joint occurrences in the corpus from which two neighbours get a joint row. Counted on one token in
/// `SAMPLE`.
const MIN_PAIR_COUNT: usize = 192;
const SAMPLE: usize = 4;
/// A joint row replaces at most 2^JOIN_ROUNDS rows.
const JOIN_ROUNDS: usize = 4;
/// Minimum number of rows per parallel task.
const MIN_ROWS_PER_TASK: usize = 256;

/// Relation between carrying and carried rows.
#[derive(Debug, Default)]
pub struct Fold {
    ptr: Vec<usize>,   // [rows + 1]
    carried: Vec<u32>, // rows carried by each row
    order: Vec<u32>,   // carrying rows, each after all rows that it carries
    // Computed by `compute_levels`: a row's level is above those of all rows that it carries, so that the rows of one
    // level can be processed in parallel. Also the carriers of each row.
    carriers_by_level: Vec<Vec<u32>>, // ascending
    carried_by_level: Vec<Vec<u32>>,  // descending
    carrier_ptr: Vec<usize>,          // [rows + 1]
    carriers: Vec<u32>,
}

impl Fold {
    /// Analyse the tokens (rows of token s: `rows[ptr[s]..ptr[s + 1]]`) and remove carried rows from them. Rows for
    /// which `fixed` holds neither carry nor are carried. The same applies to rows that occur twice in a token, because
    /// they count twice there.
    pub fn new(n_rows: usize, ptr: &mut [usize], rows: &mut Vec<u32>, fixed: impl Fn(u32) -> bool) -> Fold {
        let tokens = ptr.len() - 1;
        let (mut count, mut twice) = (vec![0u32; n_rows], vec![false; n_rows]);
        let mut mark = vec![usize::MAX; n_rows];
        for s in 0..tokens {
            for r in rows[ptr[s]..ptr[s + 1]].iter().map(|&r| r as usize) {
                count[r] += 1;
                twice[r] |= mark[r] == s;
                mark[r] = s;
            }
        }
        let rank = |r: u32| (count[r as usize], r);
        let fixed = |r: u32| twice[r as usize] || fixed(r);
        // implied[a]: rows present in every token so far that has a.
        let mut implied: Vec<Option<Vec<u32>>> = vec![None; n_rows];
        mark.fill(usize::MAX);
        for s in 0..tokens {
            let token = &rows[ptr[s]..ptr[s + 1]];
            token.iter().for_each(|&r| mark[r as usize] = s);
            for &a in token.iter().filter(|&&a| !fixed(a)) {
                match &mut implied[a as usize] {
                    Some(set) if set.is_empty() => {}
                    Some(set) => set.retain(|&b| mark[b as usize] == s),
                    none => {
                        let set = token.iter().copied().filter(|&b| rank(b) > rank(a) && !fixed(b));
                        *none = Some(set.collect());
                    }
                }
            }
        }
        let implied: Vec<Vec<u32>> = implied.into_iter().map(Option::unwrap_or_default).collect();
        // carried[a]: rows that a has owned in every token so far.
        let mut carried = implied.clone();
        let mut owner = vec![u32::MAX; n_rows];
        mark.fill(usize::MAX);
        for s in 0..tokens {
            let token = &rows[ptr[s]..ptr[s + 1]];
            for &a in token.iter().rev() {
                for &b in &implied[a as usize] {
                    if mark[b as usize] != s {
                        (mark[b as usize], owner[b as usize]) = (s, a);
                    }
                }
            }
            for &a in token {
                carried[a as usize].retain(|&b| owner[b as usize] == a);
            }
        }
        // Remove carried rows.
        mark.fill(usize::MAX);
        let (mut write, mut begin) = (0, 0);
        for s in 0..tokens {
            let end = ptr[s + 1];
            for at in begin..end {
                carried[rows[at] as usize].iter().for_each(|&b| mark[b as usize] = s);
            }
            for at in begin..end {
                if mark[rows[at] as usize] != s {
                    rows[write] = rows[at];
                    write += 1;
                }
            }
            begin = end;
            ptr[s + 1] = write;
        }
        rows.truncate(write);
        rows.shrink_to_fit();
        let mut order: Vec<u32> = (0..n_rows as u32).filter(|&a| !carried[a as usize].is_empty()).collect();
        order.sort_by_key(|&a| std::cmp::Reverse(rank(a)));
        let mut fold = Fold { ptr: vec![0], order, ..Fold::default() };
        for list in carried {
            fold.carried.extend(list);
            fold.ptr.push(fold.carried.len());
        }
        fold
    }

    /// Number of rows, including joint ones.
    pub fn n_rows(&self) -> usize {
        self.ptr.len() - 1
    }

    /// Replace neighbours that often occur together by joint rows, also in the tokens. Rows for which `fixed` holds are
    /// never joined.
    pub fn join(&mut self, ptr: &mut [usize], rows: &mut Vec<u32>, fixed: impl Fn(u32) -> bool) {
        let pair = |r: &[u32]| (!fixed(r[0]) && !fixed(r[1])).then_some(u64::from(r[0]) << 32 | u64::from(r[1]));
        let mut pairs: Vec<u64> = Vec::new();
        for _ in 0..JOIN_ROUNDS {
            pairs.clear();
            for s in (0..ptr.len() - 1).step_by(SAMPLE) {
                pairs.extend(rows[ptr[s]..ptr[s + 1]].windows(2).filter_map(pair));
            }
            pairs.par_sort_unstable();
            // Joint row of a pair, and the count of the pair.
            let mut joint: HashMap<u64, (u32, u32), RandomState> = HashMap::default();
            for run in pairs.chunk_by(|a, b| a == b).filter(|run| run.len() >= MIN_PAIR_COUNT / SAMPLE) {
                let row = self.n_rows() as u32;
                joint.insert(run[0], (row, run.len() as u32));
                self.order.push(row);
                self.carried.extend([(run[0] >> 32) as u32, run[0] as u32]);
                self.ptr.push(self.carried.len());
            }
            if joint.is_empty() {
                return;
            }
            let of = |r: &[u32]| pair(r).and_then(|key| joint.get(&key)).copied();
            let (mut write, mut begin) = (0, 0);
            for s in 0..ptr.len() - 1 {
                let (end, mut at) = (ptr[s + 1], begin);
                let mut here = if at + 2 <= end { of(&rows[at..at + 2]) } else { None };
                while at < end {
                    // The more frequent of two overlapping pairs is replaced.
                    let next = if at + 3 <= end { of(&rows[at + 1..at + 3]) } else { None };
                    match here {
                        Some((row, count)) if next.is_none_or(|(_, others)| others <= count) => {
                            rows[write] = row;
                            at += 2;
                            here = if at + 2 <= end { of(&rows[at..at + 2]) } else { None };
                        }
                        _ => {
                            rows[write] = rows[at];
                            at += 1;
                            here = next;
                        }
                    }
                    write += 1;
                }
                begin = end;
                ptr[s + 1] = write;
            }
            rows.truncate(write);
        }
        rows.shrink_to_fit();
    }

    fn carried(&self, row: u32) -> &[u32] {
        &self.carried[self.ptr[row as usize]..self.ptr[row as usize + 1]]
    }

    /// Compute the levels. Call this after the last row was added.
    pub fn compute_levels(&mut self) {
        let n = self.ptr.len().saturating_sub(1);
        let mut level = vec![0usize; n];
        let mut count = vec![0usize; n + 1];
        for &a in &self.order {
            for &b in self.carried(a) {
                level[a as usize] = level[a as usize].max(level[b as usize] + 1);
                count[b as usize + 1] += 1;
            }
        }
        let levels = level.iter().max().map_or(0, |&top| top + 1);
        self.carriers_by_level = vec![Vec::new(); levels];
        for &a in &self.order {
            self.carriers_by_level[level[a as usize]].push(a);
        }
        self.carried_by_level = vec![Vec::new(); levels];
        for b in (0..n).filter(|&b| count[b + 1] > 0) {
            self.carried_by_level[levels - 1 - level[b]].push(b as u32);
        }
        for b in 0..n {
            count[b + 1] += count[b];
        }
        self.carrier_ptr.clone_from(&count);
        self.carriers = vec![0; count[n]];
        for &a in &self.order {
            for &b in &self.carried[self.ptr[a as usize]..self.ptr[a as usize + 1]] {
                self.carriers[count[b as usize]] = a;
                count[b as usize] += 1;
            }
        }
    }

    /// Call `add(row, carried)` for every row that carries others, after these are complete. Rows of one level run in
    /// parallel.
    pub fn gather(&self, add: impl Fn(usize, &[u32]) + Sync) {
        for level in &self.carriers_by_level {
            level.par_iter().with_min_len(MIN_ROWS_PER_TASK).for_each(|&a| add(a as usize, self.carried(a)));
        }
    }

    /// Transpose of `gather`: call `add(row, carriers)` for every carried row, after its carriers are complete.
    pub fn scatter(&self, add: impl Fn(usize, &[u32]) + Sync) {
        for level in &self.carried_by_level {
            level.par_iter().with_min_len(MIN_ROWS_PER_TASK).for_each(|&b| {
                add(b as usize, &self.carriers[self.carrier_ptr[b as usize]..self.carrier_ptr[b as usize + 1]]);
            });
        }
    }

    /// Carrying rows with the rows that they carry, each after all of these.
    pub fn in_order(&self) -> impl Iterator<Item = (usize, &[u32])> {
        self.order.iter().map(|&a| (a as usize, self.carried(a)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::system::shuffle::Generator;
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

    /// For any tokens, the remaining rows together with all rows that they carry are the original rows.
    #[test]
    fn folded_rows_expand_to_the_original_rows() {
        let mut generator = Generator::new(1, 0, 0);
        let mut random = |n: u64| generator.below(n);
        let mut joint = 0;
        for round in 0..200 {
            let n_rows = 12;
            let (mut ptr, mut rows) = (vec![0], Vec::new());
            for _ in 0..random(if round % 2 == 0 { 30 } else { 3600 }) {
                let word = random(5) as u32;
                // A word implies its class, two classes imply each other, and some rows are noise.
                let mut token = vec![word, 5 + word / 2, 8 + word / 4];
                for extra in 10..12 {
                    if random(2) == 0 {
                        token.push(extra);
                    }
                }
                if random(3) == 0 {
                    token.remove(0);
                }
                if round % 3 == 0 && random(4) == 0 {
                    token.push(token[random(token.len() as u64) as usize]);
                }
                rows.extend(token);
                ptr.push(rows.len());
            }
            let before: Vec<Vec<u32>> = ptr.windows(2).map(|p| rows[p[0]..p[1]].to_vec()).collect();
            let total = rows.len();
            let mut fold = Fold::new(n_rows, &mut ptr, &mut rows, |r| r == 11);
            fold.join(&mut ptr, &mut rows, |r| r == 11);
            joint += fold.n_rows() - n_rows;
            let mut members: Vec<Vec<u32>> = (0..n_rows as u32).map(|r| vec![r]).collect();
            members.resize(fold.n_rows(), Vec::new()); // joint rows have no members of their own
            for (a, carried) in fold.in_order() {
                for &b in carried {
                    let others = members[b as usize].clone();
                    members[a].extend(others);
                }
            }
            // Processing by levels gives the same sums, and the transpose propagates each carrier's number to its
            // carried rows.
            fold.compute_levels();
            let sums: Vec<AtomicU64> = (0..fold.n_rows() as u64).map(|r| AtomicU64::new(r * r + 1)).collect();
            let of = |r: u32| sums[r as usize].load(Relaxed);
            fold.gather(|a, carried| {
                sums[a].fetch_add(carried.iter().map(|&b| of(b)).sum(), Relaxed);
            });
            for (a, carried) in fold.in_order() {
                let (own, r) = (of(a as u32), a as u64);
                assert_eq!(own, r * r + 1 + carried.iter().map(|&b| of(b)).sum::<u64>());
            }
            let back: Vec<AtomicU64> = (0..fold.n_rows() as u64).map(|r| AtomicU64::new(r + 1)).collect();
            fold.scatter(|b, carriers| {
                back[b].fetch_add(carriers.iter().map(|&a| back[a as usize].load(Relaxed)).sum(), Relaxed);
            });
            let mut expected: Vec<u64> = (1..=fold.n_rows() as u64).collect();
            for (a, carried) in fold.in_order().collect::<Vec<_>>().into_iter().rev() {
                carried.iter().for_each(|&b| expected[b as usize] += expected[a]);
            }
            assert_eq!(back.iter().map(|x| x.load(Relaxed)).collect::<Vec<_>>(), expected);
            for (s, expected) in before.iter().enumerate() {
                let mut found: Vec<u32> =
                    rows[ptr[s]..ptr[s + 1]].iter().flat_map(|&r| members[r as usize].clone()).collect();
                found.sort_unstable();
                let mut expected = expected.clone();
                expected.sort_unstable();
                assert_eq!(found, expected);
            }
            assert!(rows.len() <= total);
        }
        assert!(joint > 100);
    }
}
