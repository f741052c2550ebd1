//! Interruption of a call from outside. Long loops check a flag between sentences.
//!
//! Each call has its own flag, so that stopping one call does not affect concurrent ones. The flag is stored in the
//! thread that works for the call. A task that any thread of a pool may run carries the flag with it:
//!
//! ```text
//! let stop = stop::current();                 // in the call
//! parts.par_iter().map(|part| { let _mine = stop.enter(); ...; stop::check(); ... })
//! ```
//!
//! `check` unwinds with the payload `Stopped`, which the entry point of the call catches. Call it only at points where
//! partial results are discarded or can be resumed.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::Arc;

/// Payload of the unwinding.
pub struct Stopped;

/// The flag of one call.
#[derive(Clone, Default)]
pub struct Stop(Arc<AtomicBool>);

thread_local! {
    static CURRENT: RefCell<Stop> = RefCell::default();
}

/// Return the flag of the call that this thread works for.
pub fn current() -> Stop {
    CURRENT.with_borrow(Stop::clone)
}

/// Unwind if the call that this thread works for has been stopped.
#[inline]
pub fn check() {
    if CURRENT.with_borrow(|stop| stop.0.load(Relaxed)) {
        std::panic::resume_unwind(Box::new(Stopped));
    }
}

/// Return whether the call that this thread works for has been stopped.
pub fn is_stopped() -> bool {
    CURRENT.with_borrow(|stop| stop.0.load(Relaxed))
}

impl Stop {
    /// Stop the call.
    pub fn request(&self) {
        self.0.store(true, Relaxed);
    }

    /// Return whether the call has been stopped.
    pub fn is_set(&self) -> bool {
        self.0.load(Relaxed)
    }

    /// Make this thread work for the call while the returned guard is alive. Unwinds at once if the call has been
    /// stopped.
    pub fn enter(&self) -> Entered {
        if self.0.load(Relaxed) {
            std::panic::resume_unwind(Box::new(Stopped));
        }
        Entered(CURRENT.replace(self.clone()))
    }
}

/// Guard that returns the thread to the call that it worked for before.
pub struct Entered(Stop);

impl Drop for Entered {
    fn drop(&mut self) {
        CURRENT.set(std::mem::take(&mut self.0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rayon::prelude::*;
    use std::sync::atomic::AtomicUsize;

    #[test]
    fn stopping_one_call_does_not_stop_another() {
        let (one, other) = (Stop::default(), Stop::default());
        let done = AtomicUsize::new(0);
        let work = |stop: &Stop, request: bool| {
            let _guard = stop.enter();
            let mine = current();
            (0..100usize).into_par_iter().with_max_len(1).for_each(|i| {
                let _guard = mine.enter();
                if request && i == 50 {
                    current().request();
                }
                check();
                done.fetch_add(1, Relaxed);
            });
        };
        let payload = std::panic::catch_unwind(|| work(&one, true)).unwrap_err();
        assert!(payload.is::<Stopped>());
        assert!(done.swap(0, Relaxed) < 100);
        work(&other, false);
        assert_eq!(done.load(Relaxed), 100);
        assert!(!is_stopped());
    }
}
