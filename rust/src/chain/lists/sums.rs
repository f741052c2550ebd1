//! Sums over labels and pair expectations of listed edges.

use super::{Entry, Sparse, MAX_CANCELLATION};
use crate::machine::simd::{Lane, Simd};
use std::ops::Range;

/// Operation on the sum of every label. A trait rather than a closure, because a closure would not be compiled for the
/// vector instruction set.
pub trait Finish<S: Simd> {
    fn finish(&mut self, simd: S, y: usize, sum: S::F);
}

/// One direction along the edges.
struct EdgeDirection<'a> {
    list: &'a [Entry],
    ptr: &'a [u32],
    inside: &'a [u32],   // labels over which the first term sums
    outside: &'a [bool], // labels that have the first term
    risky: &'a [bool],
    number: Option<&'a [u32]>, // number of each edge of `list`, if it differs from its index
}

impl Sparse {
    /// Pass sum_y' a(y') M[y', y] of every label y to `finish`. `SIGNED`: a may be negative, so cancellation cannot be
    /// detected from the sum.
    #[inline(always)]
    pub fn forward<S: Simd, const SIGNED: bool>(&self, simd: S, a: &[Lane], finish: &mut impl Finish<S>) {
        let p = &*self.pattern;
        let direction = EdgeDirection {
            list: &self.incoming,
            ptr: &p.incoming.ptr,
            inside: &self.from,
            outside: &p.to,
            risky: &self.risky_next,
            number: Some(&p.number),
        };
        self.sum::<S, SIGNED>(simd, &direction, a, finish);
    }

    /// Pass sum_y M[y', y] a(y) of every label y' to `finish`.
    #[inline(always)]
    pub fn backward<S: Simd, const SIGNED: bool>(&self, simd: S, a: &[Lane], finish: &mut impl Finish<S>) {
        let p = &*self.pattern;
        let direction = EdgeDirection {
            list: &self.outgoing,
            ptr: &p.outgoing.ptr,
            inside: &self.to,
            outside: &p.from,
            risky: &self.risky_previous,
            number: None,
        };
        self.sum::<S, SIGNED>(simd, &direction, a, finish);
    }

    #[inline(always)]
    fn sum<S: Simd, const SIGNED: bool>(
        &self,
        simd: S,
        direction: &EdgeDirection<'_>,
        a: &[Lane],
        finish: &mut impl Finish<S>,
    ) {
        let l = self.pattern.labels;
        assert!(a.len() == l);
        debug_assert!(direction.ptr.len() == l + 1 && direction.list.iter().all(|e| (e.label as usize) < l));
        let (zero, base) = (simd.splat(0.0), simd.splat(self.base));
        let first = simd.mul(base, total(simd, a, direction.inside));
        let least = simd.mul(first, simd.splat(1.0 / MAX_CANCELLATION));
        let (list, labels) = (direction.list.as_ptr(), a.as_ptr());
        for y in 0..l {
            let (mut at, end) = (direction.ptr[y] as usize, direction.ptr[y + 1] as usize);
            let (mut sum, mut other) = (if direction.outside[y] { first } else { zero }, zero);
            // SAFETY: a pattern's `ptr` are indices into its list, and the listed labels are below l.
            unsafe {
                while at + 1 < end {
                    let (e, f) = (*list.add(at), *list.add(at + 1));
                    sum = simd.fma(simd.load(&*labels.add(e.label as usize)), simd.splat(e.value), sum);
                    other = simd.fma(simd.load(&*labels.add(f.label as usize)), simd.splat(f.value), other);
                    at += 2;
                }
                if at < end {
                    let e = *list.add(at);
                    sum = simd.fma(simd.load(&*labels.add(e.label as usize)), simd.splat(e.value), sum);
                }
            }
            sum = simd.add(sum, other);
            if direction.risky[y] && (SIGNED || simd.greater(least, sum) != 0) {
                sum = self.sum_exactly(simd, direction, a, y);
            }
            finish.finish(simd, y, sum);
        }
    }

    /// Sum of a label without differences: unlisted labels, plus listed ones. The label is risky and therefore has the
    /// first term.
    #[inline(always)]
    fn sum_exactly<S: Simd>(&self, simd: S, direction: &EdgeDirection<'_>, a: &[Lane], y: usize) -> S::F {
        let range = direction.ptr[y] as usize..direction.ptr[y + 1] as usize;
        let (mut listed, mut others) = (simd.splat(0.0), simd.splat(0.0));
        let mut inside = direction.inside.iter().peekable();
        for at in range {
            let label = direction.list[at].label;
            while let Some(&y) = inside.next_if(|&&y| y < label) {
                others = simd.add(others, simd.load(&a[y as usize]));
            }
            inside.next_if(|&&y| y == label);
            let number = direction.number.map_or(at, |number| number[at] as usize);
            listed = simd.fma(simd.load(&a[label as usize]), simd.splat(self.m[number]), listed);
        }
        for &y in inside {
            others = simd.add(others, simd.load(&a[y as usize]));
        }
        simd.fma(others, simd.splat(self.base), listed)
    }

    /// Add sum_t left_{t-1}(y') right_t(y) over the given positions, the first of which is at least 1, to `pairs` for
    /// every listed edge, by number.
    #[inline(always)]
    pub fn add_pairs<S: Simd>(
        &self,
        simd: S,
        left: &[Lane],
        right: &[Lane],
        pairs: &mut [Lane],
        positions: Range<usize>,
    ) {
        let l = self.pattern.labels;
        for t in positions {
            self.add_step(simd, &left[(t - 1) * l..t * l], &right[t * l..(t + 1) * l], pairs);
        }
    }

    /// Add left(y') right(y) to `pairs`: `add_pairs` for one position.
    #[inline(always)]
    pub fn add_step<S: Simd>(&self, simd: S, left: &[Lane], right: &[Lane], pairs: &mut [Lane]) {
        let lists = &self.pattern.outgoing;
        let l = self.pattern.labels;
        assert!(pairs.len() >= lists.label.len() && left.len() == l && right.len() == l);
        let (pairs, labels, right) = (pairs.as_mut_ptr(), lists.label.as_ptr(), right.as_ptr());
        let mut e = 0;
        for (y, a) in left.iter().enumerate() {
            let a = simd.load(a);
            let end = lists.ptr[y + 1] as usize;
            while e < end {
                // SAFETY: there are at least as many pairs as listed labels, which are below l.
                let (to, b) = unsafe { (&mut *pairs.add(e), simd.load(&*right.add(*labels.add(e) as usize))) };
                simd.store(simd.fma(a, b, simd.load(to)), to);
                e += 1;
            }
        }
    }

    /// Add the lanes of `pairs` to the pair expectations, by number, and zero them.
    pub fn drain_pairs(&self, pairs: &mut [Lane], expected: &mut [f64]) {
        for ((lane, &m), out) in pairs.iter_mut().zip(&self.m).zip(expected) {
            *out += lane.0.iter().map(|&x| f64::from(x)).sum::<f64>() * f64::from(m);
            *lane = Lane::ZERO;
        }
    }
}

/// sum over the labels `inside` of a.
#[inline(always)]
fn total<S: Simd>(simd: S, a: &[Lane], inside: &[u32]) -> S::F {
    let mut sums = [simd.splat(0.0); 4];
    let (mut i, n) = (0, inside.len());
    while i + 4 <= n {
        for j in 0..4 {
            sums[j] = simd.add(sums[j], simd.load(&a[inside[i + j] as usize]));
        }
        i += 4;
    }
    while i < n {
        sums[0] = simd.add(sums[0], simd.load(&a[inside[i] as usize]));
        i += 1;
    }
    simd.add(simd.add(sums[0], sums[1]), simd.add(sums[2], sums[3]))
}
