//! Sums over labels and pair expectations of listed edges.

use super::{Entry, Sparse, SAFE};
use crate::machine::simd::{Lane, Simd};
use std::ops::Range;

/// What becomes of the sum of every label. No closure: that would not be compiled for the machine's vectors.
pub trait Finish<S: Simd> {
    /// # Safety
    /// The machine has the instructions of `S`.
    unsafe fn finish(&mut self, y: usize, sum: S::F);
}

/// One way along the edges.
struct Way<'a> {
    list: &'a [Entry],
    ptr: &'a [u32],
    inside: &'a [u32],   // labels that the first term is a sum over
    outside: &'a [bool], // labels that have it
    risky: &'a [bool],
    number: Option<&'a [u32]>, // of each edge of `list`, where that is not its place
}

impl Sparse {
    /// sum_y' a(y') M[y', y] of every label y, for `finish`. `SIGNED`: a may be negative, and nothing is seen from a sum.
    ///
    /// # Safety
    /// The machine has the instructions of `S`; `a` is [L].
    #[inline(always)]
    pub unsafe fn forward<S: Simd, const SIGNED: bool>(&self, a: &[Lane], finish: &mut impl Finish<S>) {
        let p = &*self.pattern;
        let way = Way {
            list: &self.behind,
            ptr: &p.behind.ptr,
            inside: &self.from,
            outside: &p.to,
            risky: &self.before,
            number: Some(&p.number),
        };
        self.sum::<S, SIGNED>(&way, a, finish);
    }

    /// sum_y M[y', y] a(y) of every label y', for `finish`.
    ///
    /// # Safety
    /// The machine has the instructions of `S`; `a` is [L].
    #[inline(always)]
    pub unsafe fn backward<S: Simd, const SIGNED: bool>(&self, a: &[Lane], finish: &mut impl Finish<S>) {
        let p = &*self.pattern;
        let way = Way {
            list: &self.ahead,
            ptr: &p.ahead.ptr,
            inside: &self.to,
            outside: &p.from,
            risky: &self.after,
            number: None,
        };
        self.sum::<S, SIGNED>(&way, a, finish);
    }

    /// # Safety
    /// As for `forward`.
    #[inline(always)]
    unsafe fn sum<S: Simd, const SIGNED: bool>(&self, way: &Way<'_>, a: &[Lane], finish: &mut impl Finish<S>) {
        let l = self.pattern.labels;
        debug_assert!(a.len() == l && way.ptr.len() == l + 1 && way.list.iter().all(|e| (e.label as usize) < l));
        let (zero, base) = (S::splat(0.0), S::splat(self.base));
        let first = S::mul(base, total::<S>(a, way.inside));
        let least = S::mul(first, S::splat(1.0 / SAFE));
        let (list, labels) = (way.list.as_ptr(), a.as_ptr());
        for y in 0..l {
            let (mut at, end) = (way.ptr[y] as usize, way.ptr[y + 1] as usize);
            let (mut sum, mut other) = (if way.outside[y] { first } else { zero }, zero);
            while at + 1 < end {
                let (e, f) = (*list.add(at), *list.add(at + 1));
                sum = S::fma(S::load(&*labels.add(e.label as usize)), S::splat(e.value), sum);
                other = S::fma(S::load(&*labels.add(f.label as usize)), S::splat(f.value), other);
                at += 2;
            }
            if at < end {
                let e = *list.add(at);
                sum = S::fma(S::load(&*labels.add(e.label as usize)), S::splat(e.value), sum);
            }
            sum = S::add(sum, other);
            if way.risky[y] && (SIGNED || S::greater(least, sum) != 0) {
                sum = self.exactly::<S>(way, a, y);
            }
            finish.finish(y, sum);
        }
    }

    /// The sum of a label without differences: the labels between the listed ones, and these.
    ///
    /// # Safety
    /// As for `forward`; the label is risky, and so has the first term.
    #[inline(always)]
    unsafe fn exactly<S: Simd>(&self, way: &Way<'_>, a: &[Lane], y: usize) -> S::F {
        let range = way.ptr[y] as usize..way.ptr[y + 1] as usize;
        let (mut listed, mut others) = (S::splat(0.0), S::splat(0.0));
        let mut inside = way.inside.iter().peekable();
        for at in range {
            let label = way.list[at].label;
            while let Some(&y) = inside.next_if(|&&y| y < label) {
                others = S::add(others, S::load(&a[y as usize]));
            }
            inside.next_if(|&&y| y == label);
            let number = way.number.map_or(at, |number| number[at] as usize);
            listed = S::fma(S::load(&a[label as usize]), S::splat(self.m[number]), listed);
        }
        for &y in inside {
            others = S::add(others, S::load(&a[y as usize]));
        }
        S::fma(others, S::splat(self.base), listed)
    }

    /// Add sum_t left_{t-1}(y') right_t(y) over these positions, from 1 on, to `pairs` for every listed edge, by number.
    ///
    /// # Safety
    /// The machine has the instructions of `S`; `left` and `right` are [T, L], `pairs` [edges], or longer.
    #[inline(always)]
    pub unsafe fn add_pairs<S: Simd>(
        &self,
        left: &[Lane],
        right: &[Lane],
        pairs: &mut [Lane],
        positions: Range<usize>,
    ) {
        let l = self.pattern.labels;
        for t in positions {
            self.add_step::<S>(&left[(t - 1) * l..t * l], &right[t * l..(t + 1) * l], pairs);
        }
    }

    /// Add left(y') right(y) to `pairs`: what `add_pairs` does at one position.
    ///
    /// # Safety
    /// The machine has the instructions of `S`; `left` and `right` are [L], `pairs` [edges] or longer.
    #[inline(always)]
    pub unsafe fn add_step<S: Simd>(&self, left: &[Lane], right: &[Lane], pairs: &mut [Lane]) {
        let lists = &self.pattern.ahead;
        debug_assert!(pairs.len() >= lists.label.len() && left.len() == right.len());
        let (pairs, labels, right) = (pairs.as_mut_ptr(), lists.label.as_ptr(), right.as_ptr());
        let mut e = 0;
        for (y, a) in left.iter().enumerate() {
            let a = S::load(a);
            let end = lists.ptr[y + 1] as usize;
            while e < end {
                let (to, b) = (&mut *pairs.add(e), S::load(&*right.add(*labels.add(e) as usize)));
                S::store(S::fma(a, b, S::load(to)), to);
                e += 1;
            }
        }
    }

    /// Move the lanes of `pairs` into pair expectations by number and clear them.
    pub fn drain_pairs(&self, pairs: &mut [Lane], expected: &mut [f64]) {
        for ((lane, &m), out) in pairs.iter_mut().zip(&self.m).zip(expected) {
            *out += lane.0.iter().map(|&x| f64::from(x)).sum::<f64>() * f64::from(m);
            *lane = Lane::ZERO;
        }
    }
}

/// sum over the labels `inside` of a.
///
/// # Safety
/// The machine has the instructions of `S`; the labels are those of `a`.
#[inline(always)]
unsafe fn total<S: Simd>(a: &[Lane], inside: &[u32]) -> S::F {
    let mut sums = [S::splat(0.0); 4];
    let (mut i, n) = (0, inside.len());
    while i + 4 <= n {
        for j in 0..4 {
            sums[j] = S::add(sums[j], S::load(&a[inside[i + j] as usize]));
        }
        i += 4;
    }
    while i < n {
        sums[0] = S::add(sums[0], S::load(&a[inside[i] as usize]));
        i += 1;
    }
    S::add(S::add(sums[0], sums[1]), S::add(sums[2], sums[3]))
}
