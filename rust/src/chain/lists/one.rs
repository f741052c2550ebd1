//! One Viterbi step of a single sentence with lists of edges.

use super::Sparse;

impl Sparse {
    /// best(y) = max_y' a(y') + A[y', y] for every label, with the same floats as with whole matrices. Numbers of `a`
    /// and `best` after the last label are neither read nor written.
    ///
    /// Labels y' whose edge to y is not listed contribute one maximum, a(y') of the first label in descending order
    /// that y does not list. It is the same for all y except those that list the top label with a negative score. Lists
    /// are read only for labels y' that can change a result: a(y') plus the largest score of its edges exceeds the
    /// smallest of these maxima.
    pub fn advance(&self, a: &[f32], best: &mut [f32]) {
        let (p, l) = (&*self.pattern, self.pattern.labels);
        let (a, best) = (&a[..l], &mut best[..l]);
        let tops = self.tops(a);
        let shared = tops[0].map_or(f32::NEG_INFINITY, |y| a[y as usize]);
        for (b, &to) in best.iter_mut().zip(&p.to) {
            *b = if to { shared } else { f32::NEG_INFINITY };
        }
        let mut least = if self.to.len() == l { shared } else { f32::NEG_INFINITY };
        if let Some(first) = tops[0] {
            for e in p.ahead.of(first as usize) {
                let y = self.rows[e].label as usize;
                if self.rows[e].value < 0.0 && p.to[y] {
                    best[y] = self.first_not_listed(a, &tops[1..], y);
                    least = least.min(best[y]);
                }
            }
        }
        for (from, (&x, &most)) in a.iter().zip(&self.most).enumerate() {
            if x + most > least {
                for e in &self.rows[p.ahead.of(from)] {
                    let b = &mut best[e.label as usize];
                    let value = x + e.value;
                    *b = if value > *b { value } else { *b };
                }
            }
        }
    }

    /// Labels of the three largest numbers, largest first.
    fn tops(&self, a: &[f32]) -> [Option<u32>; 3] {
        let mut tops = [None; 3];
        let mut values = [f32::NEG_INFINITY; 3];
        for &y in &self.from {
            let x = a[y as usize];
            if x > values[2] {
                let place = if x > values[0] {
                    0
                } else if x > values[1] {
                    1
                } else {
                    2
                };
                values.copy_within(place..2, place + 1);
                tops.copy_within(place..2, place + 1);
                (values[place], tops[place]) = (x, Some(y));
            }
        }
        tops
    }

    /// Largest number of the labels whose edge to y is not listed: the first of `tops`, in descending order, or if all
    /// of these are listed, the maximum over all labels.
    fn first_not_listed(&self, a: &[f32], tops: &[Option<u32>], y: usize) -> f32 {
        for top in tops {
            match top {
                Some(from) if self.lists(*from, y) => {}
                Some(from) => return a[*from as usize],
                None => return f32::NEG_INFINITY,
            }
        }
        let mut best = f32::NEG_INFINITY;
        for &from in &self.from {
            let x = a[from as usize];
            if x > best && !self.lists(from, y) {
                best = x;
            }
        }
        best
    }
}
