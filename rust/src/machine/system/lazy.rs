//! A value that is made when somebody first asks for it, without waiting for anybody.
//!
//! `OnceLock` lets others wait while one thread makes the value. In a process forked meanwhile that thread does not exist,
//! and the wait has no end. Here two threads may both make the value; one of them is kept.

use std::sync::atomic::{AtomicPtr, Ordering};

pub struct Lazy<T>(AtomicPtr<T>);

// SAFETY: the value is owned as by a Box; it is set once and shared by reference from then on.
unsafe impl<T: Send> Send for Lazy<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for Lazy<T> {}

impl<T> Default for Lazy<T> {
    fn default() -> Self {
        Lazy(AtomicPtr::new(std::ptr::null_mut()))
    }
}

impl<T> From<T> for Lazy<T> {
    fn from(value: T) -> Self {
        Lazy(AtomicPtr::new(Box::into_raw(Box::new(value))))
    }
}

impl<T> Lazy<T> {
    pub fn get(&self) -> Option<&T> {
        // SAFETY: null, or from `Box::into_raw`, and freed by `drop` alone.
        unsafe { self.0.load(Ordering::Acquire).as_ref() }
    }

    pub fn get_mut(&mut self) -> Option<&mut T> {
        // SAFETY: as above, and nobody else has it.
        unsafe { self.0.get_mut().as_mut() }
    }

    #[inline]
    pub fn get_or_make(&self, make: impl FnOnce() -> T) -> &T {
        match self.get() {
            Some(value) => value,
            None => self.set(make()),
        }
    }

    #[cold]
    fn set(&self, value: T) -> &T {
        let new = Box::into_raw(Box::new(value));
        match self.0.compare_exchange(std::ptr::null_mut(), new, Ordering::AcqRel, Ordering::Acquire) {
            // SAFETY: just made, and freed by `drop` alone.
            Ok(_) => unsafe { &*new },
            Err(other) => {
                // SAFETY: nobody else has seen `new`; `other` is freed by `drop` alone.
                unsafe {
                    drop(Box::from_raw(new));
                    &*other
                }
            }
        }
    }
}

impl<T> Drop for Lazy<T> {
    fn drop(&mut self) {
        let value = *self.0.get_mut();
        if !value.is_null() {
            // SAFETY: from `Box::into_raw`, and nobody else has it any more.
            drop(unsafe { Box::from_raw(value) });
        }
    }
}

impl<T: Clone> Clone for Lazy<T> {
    fn clone(&self) -> Self {
        self.get().cloned().map_or_else(Lazy::default, Lazy::from)
    }
}

impl<T: std::fmt::Debug> std::fmt::Debug for Lazy<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Lazy").field(&self.get()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_threads_get_the_same_value() {
        let lazy = Lazy::<Vec<usize>>::default();
        assert!(lazy.get().is_none());
        let found: Vec<usize> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8)
                .map(|i| {
                    scope.spawn({
                        let lazy = &lazy;
                        move || lazy.get_or_make(|| vec![i])[0]
                    })
                })
                .collect();
            threads.into_iter().map(|t| t.join().unwrap()).collect()
        });
        assert!(found.windows(2).all(|w| w[0] == w[1]));
        assert_eq!(lazy.clone().get(), lazy.get());
        assert_eq!(Lazy::from(3).get_mut(), Some(&mut 3));
    }
}
