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
        let largest = self.largest(a);
        let shared = largest[0].map_or(f32::NEG_INFINITY, |y| a[y as usize]);
        for (b, &to) in best.iter_mut().zip(&p.to) {
            *b = if to { shared } else { f32::NEG_INFINITY };
        }
        let mut lowest = if self.to.len() == l { shared } else { f32::NEG_INFINITY };
        if let Some(first) = largest[0] {
            for e in p.outgoing.of(first as usize) {
                let y = self.rows[e].label as usize;
                if self.rows[e].value < 0.0 && p.to[y] {
                    best[y] = self.first_not_listed(a, &largest[1..], y);
                    lowest = lowest.min(best[y]);
                }
            }
        }
        for (from, (&x, &max)) in a.iter().zip(&self.max_score).enumerate() {
            if x + max > lowest {
                for e in &self.rows[p.outgoing.of(from)] {
                    let b = &mut best[e.label as usize];
                    let value = x + e.value;
                    *b = if value > *b { value } else { *b };
                }
            }
        }
    }

    /// Labels of the three largest numbers, largest first.
    fn largest(&self, a: &[f32]) -> [Option<u32>; 3] {
        let mut largest = [None; 3];
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
                largest.copy_within(place..2, place + 1);
                (values[place], largest[place]) = (x, Some(y));
            }
        }
        largest
    }

    /// Largest number of the labels whose edge to y is not listed: the first of `largest`, in descending order, or if
    /// all of these are listed, the maximum over all labels.
    fn first_not_listed(&self, a: &[f32], largest: &[Option<u32>], y: usize) -> f32 {
        for top in largest {
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
