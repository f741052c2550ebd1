//! Best paths of sixteen sentences with lists of edges: the same sums of the same floats as with whole matrices, and so the
//! same paths; ties go to the lower label.

use super::{Entry, Sparse};
use crate::chain::sums::batch::{Shape, Work};
use crate::chain::viterbi::renormalize;
use crate::machine::simd::find::Find;
use crate::machine::simd::{Lane, WIDTH};

/// The three largest numbers before a step, lane by lane, among the labels whose edges need not be listed.
struct Tops<S: Find> {
    first: S::F,
    second: S::F,
    third: S::F,
    tied: u32, // lanes where two of them are equal
}

impl<S: Find> Tops<S> {
    /// # Safety
    /// The machine has the instructions of `S`; the labels `inside` are those of `a`.
    #[inline(always)]
    unsafe fn new(a: &[Lane], inside: &[u32]) -> Tops<S> {
        let none = S::splat(f32::NEG_INFINITY);
        let Some((&y, rest)) = inside.split_first() else {
            return Tops { first: none, second: none, third: none, tied: 0 };
        };
        let (mut first, mut second, mut third) = (S::load(&a[y as usize]), none, none);
        for &y in rest {
            let x = S::load(a.get_unchecked(y as usize));
            let lower = S::min(first, x);
            first = S::max(x, first);
            let lowest = S::min(second, lower);
            second = S::max(lower, second);
            third = S::max(lowest, third);
        }
        let tied =
            S::equal(first, second) & S::greater(first, none) | S::equal(second, third) & S::greater(second, none);
        Tops { first, second, third, tied }
    }

    /// The largest without those of some edges, and the lanes where that is another than one of the three.
    ///
    /// # Safety
    /// The machine has the instructions of `S`; the labels of `list` are those of `a`, and inside.
    #[inline(always)]
    unsafe fn without(&self, a: &[Lane], list: &[Entry]) -> (S::F, u32) {
        let none = S::splat(f32::NEG_INFINITY);
        let (mut one, mut two, mut three) = (none, none, none);
        for e in list {
            let x = S::load(a.get_unchecked(e.label as usize));
            one = S::max(x, one);
            two = S::max(S::select_gt(self.first, x, x, none), two);
            three = S::max(S::select_gt(self.second, x, x, none), three);
        }
        let last = S::select_gt(self.third, three, self.third, none);
        let later = S::select_gt(self.second, two, self.second, last);
        let best = S::select_gt(self.first, one, self.first, later);
        let all = !S::greater(self.second, two) & !S::greater(self.third, three) & S::greater(self.third, none);
        (best, !S::greater(self.first, one) & (self.tied | all))
    }
}

/// As `best::viterbi`; `work.alpha` holds the best score of each label before its node score.
///
/// # Safety
/// The machine has the instructions of `S`; `sparse` is of the shape's labels, `work` reserved for the shape.
#[inline(always)]
pub(crate) unsafe fn best_paths<S: Find>(
    shape: &Shape,
    sparse: &Sparse,
    work: &mut Work,
    emit: impl FnMut(usize, usize, u16),
) -> [f64; WIDTH] {
    let l = shape.labels;
    debug_assert!(sparse.pattern.labels == l && work.is_reserved(shape));
    let none = S::splat(f32::NEG_INFINITY);
    let mut scores = [0.0; WIDTH];
    for t in 1..shape.positions() {
        let (before, here) = work.psi.split_at_mut(t * l);
        let from = &before[(t - 1) * l..];
        let active = (0..WIDTH).fold(0, |bits, i| bits | u32::from(shape.lengths[i] as usize > t) << i);
        let tops = Tops::<S>::new(from, &sparse.from);
        for y in 0..l {
            let list = sparse.list(y);
            let less = list.get_unchecked(..sparse.less[y] as usize);
            let mut best = if sparse.pattern.to[y] { tops.first } else { none };
            if !less.is_empty() {
                let (top, mut open) = tops.without(from, less);
                best = top;
                open &= active;
                if open != 0 {
                    best = sparse.search::<S>(from, y, best, open);
                }
            }
            for e in list {
                let x = S::add(S::load(from.get_unchecked(e.label as usize)), S::splat(e.value));
                best = S::max(x, best);
            }
            S::store(best, &mut work.alpha[t * l + y]);
            S::store(S::add(best, S::load(&here[y])), &mut here[y]);
        }
        if renormalize::is_due(t) {
            renormalize::sentences::<S>(shape, t, &mut here[..l], &mut scores);
        }
    }
    ways_back::<S>(shape, sparse, work, emit, &mut scores);
    scores
}

impl Sparse {
    /// Scores of the edges that lead to a label.
    #[inline(always)]
    fn list(&self, y: usize) -> &[Entry] {
        &self.scores[self.pattern.behind.of(y)]
    }

    /// Whether an edge is listed.
    #[inline(always)]
    pub(super) fn lists(&self, from: u32, to: usize) -> bool {
        self.pattern.behind.label[self.pattern.behind.of(to)].binary_search(&(from as u16)).is_ok()
    }

    /// The largest of the labels whose edge to y is not listed, one by one for some lanes; `best` for the others.
    ///
    /// # Safety
    /// The machine has the instructions of `S`.
    #[inline(always)]
    unsafe fn search<S: Find>(&self, a: &[Lane], y: usize, best: S::F, lanes: u32) -> S::F {
        let mut out = Lane::ZERO;
        S::store(best, &mut out);
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
        S::load(&out)
    }
}

/// From the last labels to the first, sixteen sentences side by side: which label gave the best score of the next one?
/// The best score of each last token is added to `scores`.
///
/// # Safety
/// As for `best_paths`.
#[inline(always)]
unsafe fn ways_back<S: Find>(
    shape: &Shape,
    sparse: &Sparse,
    work: &Work,
    mut emit: impl FnMut(usize, usize, u16),
    scores: &mut [f64; WIDTH],
) {
    let l = shape.labels;
    let mut at = [0usize; WIDTH];
    for t in (0..shape.positions()).rev() {
        let row = &work.psi[t * l..(t + 1) * l];
        let mut open = 0u32;
        let mut known = Lane::ZERO;
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
                emit(lane, t, at[lane] as u16);
                open |= 1 << lane;
                known.0[lane] = work.alpha[t * l + at[lane]].0[lane];
            }
        }
        if t > 0 {
            before::<S>(sparse, &work.psi[(t - 1) * l..t * l], &known, open, &mut at);
        }
    }
}

/// The labels before those of `at`, whose best scores are known.
///
/// # Safety
/// As for `best_paths`; `a` is [L].
#[inline(always)]
unsafe fn before<S: Find>(sparse: &Sparse, a: &[Lane], known: &Lane, open: u32, at: &mut [usize; WIDTH]) {
    let mut found = [u32::MAX; WIDTH];
    let mut left = 0;
    for lane in (0..WIDTH).filter(|lane| open >> lane & 1 != 0) {
        for e in sparse.list(at[lane]) {
            if a[e.label as usize].0[lane] + e.value == known.0[lane] {
                found[lane] = found[lane].min(e.label);
            }
        }
        left |= u32::from(sparse.pattern.to[at[lane]]) << lane;
    }
    let value = S::load(known);
    for &y in &sparse.from {
        let mut equal = S::equal(S::load(a.get_unchecked(y as usize)), value) & left;
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
    for lane in (0..WIDTH).filter(|lane| open >> lane & 1 != 0) {
        at[lane] = if found[lane] == u32::MAX { 0 } else { found[lane] as usize };
    }
}
