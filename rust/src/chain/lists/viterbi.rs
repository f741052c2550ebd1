//! Viterbi for sixteen sentences with lists of edges. It adds the same floats as with whole matrices and therefore
//! finds the same paths. Ties: the lower label.

use super::{Entry, Sparse};
use crate::chain::sums::batch::{Shape, Work};
use crate::chain::viterbi::renormalize;
use crate::machine::simd::find::Find;
use crate::machine::simd::{Lane, WIDTH};

/// The three largest numbers before a step, per lane, among the labels whose edges need not be listed.
struct Tops<S: Find> {
    first: S::F,
    second: S::F,
    third: S::F,
    tied: u32, // lanes in which two of them are equal
}

impl<S: Find> Tops<S> {
    /// # Safety
    /// The labels `inside` are indices into `a`.
    #[inline(always)]
    unsafe fn new(simd: S, a: &[Lane], inside: &[u32]) -> Tops<S> {
        let none = simd.splat(f32::NEG_INFINITY);
        let Some((&y, rest)) = inside.split_first() else {
            return Tops { first: none, second: none, third: none, tied: 0 };
        };
        let (mut first, mut second, mut third) = (simd.load(&a[y as usize]), none, none);
        for &y in rest {
            let x = simd.load(a.get_unchecked(y as usize));
            let lower = simd.min(first, x);
            first = simd.max(x, first);
            let lowest = simd.min(second, lower);
            second = simd.max(lower, second);
            third = simd.max(lowest, third);
        }
        let tied = simd.equal(first, second) & simd.greater(first, none)
            | simd.equal(second, third) & simd.greater(second, none);
        Tops { first, second, third, tied }
    }

    /// Return the maximum without the labels of some edges, and the lanes in which it may be none of the three.
    ///
    /// # Safety
    /// The labels of `list` are indices into `a`, and are inside.
    #[inline(always)]
    unsafe fn without(&self, simd: S, a: &[Lane], list: &[Entry]) -> (S::F, u32) {
        let none = simd.splat(f32::NEG_INFINITY);
        let (mut one, mut two, mut three) = (none, none, none);
        for e in list {
            let x = simd.load(a.get_unchecked(e.label as usize));
            one = simd.max(x, one);
            two = simd.max(simd.select_gt(self.first, x, x, none), two);
            three = simd.max(simd.select_gt(self.second, x, x, none), three);
        }
        let last = simd.select_gt(self.third, three, self.third, none);
        let later = simd.select_gt(self.second, two, self.second, last);
        let best = simd.select_gt(self.first, one, self.first, later);
        let all = !simd.greater(self.second, two) & !simd.greater(self.third, three) & simd.greater(self.third, none);
        (best, !simd.greater(self.first, one) & (self.tied | all))
    }
}

/// `viterbi::batch` with lists. `work.alpha` holds the best score of each label before its node score.
#[inline(always)]
pub(crate) fn best_paths<S: Find>(simd: S, shape: &Shape, sparse: &Sparse, work: &mut Work) -> [f64; WIDTH] {
    let l = shape.labels;
    assert!(sparse.pattern.labels == l && work.is_reserved(shape));
    let none = simd.splat(f32::NEG_INFINITY);
    let mut scores = [0.0; WIDTH];
    for t in 1..shape.positions() {
        let (before, here) = work.psi.split_at_mut(t * l);
        let from = &before[(t - 1) * l..]; // [L]
        let active = (0..WIDTH).fold(0, |bits, i| bits | u32::from(shape.lengths[i] as usize > t) << i);
        // SAFETY: the labels of `sparse`, also below, are those of the shape.
        let tops = unsafe { Tops::new(simd, from, &sparse.from) };
        for y in 0..l {
            let list = sparse.list(y);
            let less = &list[..sparse.less[y] as usize];
            let mut best = if sparse.pattern.to[y] { tops.first } else { none };
            if !less.is_empty() {
                // SAFETY: as above.
                let (top, mut unresolved) = unsafe { tops.without(simd, from, less) };
                best = top;
                unresolved &= active;
                if unresolved != 0 {
                    best = sparse.search(simd, from, y, best, unresolved);
                }
            }
            for e in list {
                // SAFETY: as above.
                let from = unsafe { from.get_unchecked(e.label as usize) };
                best = simd.max(simd.add(simd.load(from), simd.splat(e.value)), best);
            }
            simd.store(best, &mut work.alpha[t * l + y]);
            simd.store(simd.add(best, simd.load(&here[y])), &mut here[y]);
        }
        if renormalize::is_due(t) {
            renormalize::sentences(simd, shape, t, &mut here[..l], &mut scores);
        }
    }
    backtrack(simd, shape, sparse, work, &mut scores);
    scores
}

impl Sparse {
    /// Scores of the edges to a label.
    #[inline(always)]
    fn list(&self, y: usize) -> &[Entry] {
        &self.scores[self.pattern.incoming.of(y)]
    }

    /// Whether an edge is listed.
    #[inline(always)]
    pub(super) fn lists(&self, from: u32, to: usize) -> bool {
        self.pattern.incoming.label[self.pattern.incoming.of(to)].binary_search(&(from as u16)).is_ok()
    }

    /// Maximum over the labels whose edge to y is not listed, searched one by one for some lanes. Other lanes keep
    /// `best`.
    #[inline(always)]
    fn search<S: Find>(&self, simd: S, a: &[Lane], y: usize, best: S::F, lanes: u32) -> S::F {
        let mut out = Lane::ZERO;
        simd.store(best, &mut out);
        for lane in (0..WIDTH).filter(|lane| lanes >> lane & 1 != 0) {
            let mut top = f32::NEG_INFINITY;
            for &from in &self.from {
                let x = a[from as usize].0[lane];
                if x > top && !self.lists(from, y) {
                    top = x;
                }
            }
            out.0[lane] = top;
        }
        simd.load(&out)
    }
}

/// Backward pass for sixteen sentences at a time: find the label that gave the best score of the next one. The best
/// score of each last token is added to `scores`.
#[inline(always)]
fn backtrack<S: Find>(simd: S, shape: &Shape, sparse: &Sparse, work: &mut Work, scores: &mut [f64; WIDTH]) {
    let l = shape.labels;
    let mut at = [0usize; WIDTH];
    for t in (0..shape.positions()).rev() {
        let row = &work.psi[t * l..(t + 1) * l];
        let mut unresolved = 0u32;
        let mut best_scores = Lane::ZERO;
        for lane in 0..WIDTH {
            let n = shape.lengths[lane] as usize;
            if n == t + 1 {
                for (k, s) in row.iter().enumerate() {
                    if s.0[lane] > row[at[lane]].0[lane] {
                        at[lane] = k;
                    }
                }
                scores[lane] += f64::from(row[at[lane]].0[lane]);
            }
            if n > t {
                work.path[t][lane] = at[lane] as u16;
                unresolved |= 1 << lane;
                best_scores.0[lane] = work.alpha[t * l + at[lane]].0[lane];
            }
        }
        if t > 0 {
            before(simd, sparse, &work.psi[(t - 1) * l..t * l], &best_scores, unresolved, &mut at);
        }
    }
}

/// Find the labels before those of `at`, given the best scores of the latter.
#[inline(always)]
fn before<S: Find>(simd: S, sparse: &Sparse, a: &[Lane], best_scores: &Lane, unresolved: u32, at: &mut [usize; WIDTH]) {
    let mut found = [u32::MAX; WIDTH];
    let mut left = 0;
    for lane in (0..WIDTH).filter(|lane| unresolved >> lane & 1 != 0) {
        for e in sparse.list(at[lane]) {
            if a[e.label as usize].0[lane] + e.value == best_scores.0[lane] {
                found[lane] = found[lane].min(e.label);
            }
        }
        left |= u32::from(sparse.pattern.to[at[lane]]) << lane;
    }
    let value = simd.load(best_scores);
    for &y in &sparse.from {
        let mut equal = simd.equal(simd.load(&a[y as usize]), value) & left;
        while equal != 0 {
            let lane = equal.trailing_zeros() as usize;
            equal &= equal - 1;
            if !sparse.lists(y, at[lane]) {
                found[lane] = found[lane].min(y);
                left &= !(1 << lane);
            }
        }
        if left == 0 {
            break;
        }
    }
    for lane in (0..WIDTH).filter(|lane| unresolved >> lane & 1 != 0) {
        at[lane] = if found[lane] == u32::MAX { 0 } else { found[lane] as usize };
    }
}
