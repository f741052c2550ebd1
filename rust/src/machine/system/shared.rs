//! Array that parallel threads write to, each element from exactly one thread.

use std::marker::PhantomData;

pub struct Shared<'a, T> {
    at: *mut T,
    len: usize,
    life: PhantomData<&'a mut [T]>,
}

// SAFETY: the callers of `set`, `add` and `slice` guarantee that no two threads access the same element.
unsafe impl<T: Send> Sync for Shared<'_, T> {}

impl<'a, T: Copy> Shared<'a, T> {
    pub fn new(array: &'a mut [T]) -> Self {
        Shared { at: array.as_mut_ptr(), len: array.len(), life: PhantomData }
    }

    /// # Safety
    /// `i` is inside the array, and no other thread accesses the element.
    #[inline(always)]
    pub unsafe fn set(&self, i: usize, value: T) {
        debug_assert!(i < self.len);
        *self.at.add(i) = value;
    }

    /// # Safety
    /// `i` is inside the array, and no other thread accesses the element.
    #[inline(always)]
    pub unsafe fn add(&self, i: usize, value: T)
    where
        T: std::ops::AddAssign,
    {
        debug_assert!(i < self.len);
        *self.at.add(i) += value;
    }

    /// # Safety
    /// The range is inside the array, and no other thread accesses it.
    #[allow(clippy::mut_from_ref)]
    pub unsafe fn slice(&self, begin: usize, len: usize) -> &mut [T] {
        debug_assert!(begin + len <= self.len);
        std::slice::from_raw_parts_mut(self.at.add(begin), len)
    }
}
