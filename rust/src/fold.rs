//! Fewer rows a token, exactly: where row b is present in every token that has row a, b's weights are added to a's once
//! an evaluation and b is dropped from those tokens.
//!
//! In each token a row b has at most one *owner*: the last row of the token that implies b (last in the order in which
//! attributes were written, so that rows made by one template are treated alike). a *carries* b if a owns b in every
//! token that has a. Owners are unique, so nothing is counted twice. a implies b only if b is at least as frequent;
//! equal columns are told apart by their number, so that carrying has no cycles.

/// Who carries whom.
#[derive(Debug, Default)]
pub struct Fold {
    ptr: Vec<usize>,   // [rows + 1]
    carried: Vec<u32>, // rows carried by each row
    order: Vec<u32>,   // carrying rows; a row comes after every row that it carries
}

impl Fold {
    /// Analyse the tokens (rows of token s: `rows[ptr[s]..ptr[s + 1]]`) and drop carried rows from them. Rows for which
    /// `fixed` holds neither carry nor are carried.
    pub fn new(n_rows: usize, ptr: &mut [usize], rows: &mut Vec<u32>, fixed: impl Fn(u32) -> bool) -> Fold {
        let mut count = vec![0u32; n_rows];
        for &r in rows.iter() {
            count[r as usize] += 1;
        }
        let rank = |r: u32| (count[r as usize], r);
        let tokens = ptr.len() - 1;
        // implied[a]: rows seen in every token so far that has a.
        let mut implied: Vec<Option<Vec<u32>>> = vec![None; n_rows];
        let mut mark = vec![usize::MAX; n_rows];
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
        // Drop what is carried.
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
        let mut fold = Fold { ptr: vec![0], carried: Vec::new(), order };
        for list in carried {
            fold.carried.extend(list);
            fold.ptr.push(fold.carried.len());
        }
        fold
    }

    fn carried(&self, row: u32) -> &[u32] {
        &self.carried[self.ptr[row as usize]..self.ptr[row as usize + 1]]
    }

    /// Add to each row what it carries: `add(carrier, carried)`, carried rows being complete.
    pub fn gather(&self, mut add: impl FnMut(usize, usize)) {
        for &a in &self.order {
            self.carried(a).iter().for_each(|&b| add(a as usize, b as usize));
        }
    }

    /// The transpose: `add(carried, carrier)`, carriers being complete.
    pub fn scatter(&self, mut add: impl FnMut(usize, usize)) {
        for &a in self.order.iter().rev() {
            self.carried(a).iter().for_each(|&b| add(b as usize, a as usize));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever the tokens, the rows that are left, each with all that it carries, are the rows there were.
    #[test]
    fn every_row_is_counted_once() {
        let mut state = 1u64;
        let mut random = |n: u64| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) % n
        };
        for _ in 0..200 {
            let n_rows = 12;
            let (mut ptr, mut rows) = (vec![0], Vec::new());
            for _ in 0..random(30) {
                let word = random(5) as u32;
                // A word implies its class; two classes imply each other; some noise.
                let mut token = vec![word, 5 + word / 2, 8 + word / 4];
                for extra in 10..12 {
                    if random(2) == 0 {
                        token.push(extra);
                    }
                }
                if random(3) == 0 {
                    token.remove(0);
                }
                rows.extend(token);
                ptr.push(rows.len());
            }
            let before: Vec<Vec<u32>> = ptr.windows(2).map(|p| rows[p[0]..p[1]].to_vec()).collect();
            let total = rows.len();
            let fold = Fold::new(n_rows, &mut ptr, &mut rows, |r| r == 11);
            let mut members: Vec<Vec<u32>> = (0..n_rows as u32).map(|r| vec![r]).collect();
            fold.gather(|a, b| {
                let more = members[b].clone();
                members[a].extend(more);
            });
            for (s, want) in before.iter().enumerate() {
                let mut have: Vec<u32> =
                    rows[ptr[s]..ptr[s + 1]].iter().flat_map(|&r| members[r as usize].clone()).collect();
                have.sort_unstable();
                let mut want = want.clone();
                want.sort_unstable();
                assert_eq!(have, want);
            }
            assert!(rows.len() <= total);
        }
    }
}
