//! Interruption of a call from outside. Long loops check a flag between sentences.
//!
//! Each call has its own flag, so that stopping one call does not affect concurrent ones. The flag is stored in the
//! thread that works for the call. A task that any thread of a pool may run carries the flag with it:
//!
//! ```text
//! let stop = stop::current();                 // in the call
//! parts.par_iter().map(|part| { let _mine = stop.enter(); ...; stop::look(); ... })
//! ```
//!
//! `look` unwinds with the payload `Stopped`, which the entry point of the call catches. Call it only at points where
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
    static MINE: RefCell<Stop> = RefCell::default();
}

/// Return the flag of the call that this thread works for.
pub fn current() -> Stop {
    MINE.with_borrow(Stop::clone)
}

/// Unwind if the call that this thread works for has been stopped.
#[inline]
pub fn look() {
    if MINE.with_borrow(|stop| stop.0.load(Relaxed)) {
        std::panic::resume_unwind(Box::new(Stopped));
    }
}

/// Return whether the call that this thread works for has been stopped.
pub fn is_asked() -> bool {
    MINE.with_borrow(|stop| stop.0.load(Relaxed))
}

impl Stop {
    /// Stop the call.
    pub fn ask(&self) {
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
        Entered(MINE.replace(self.clone()))
    }
}

/// Guard that returns the thread to the call that it worked for before.
pub struct Entered(Stop);

impl Drop for Entered {
    fn drop(&mut self) {
        MINE.set(std::mem::take(&mut self.0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rayon::prelude::*;
    use std::sync::atomic::AtomicUsize;

    #[test]
    fn one_call_stops_and_the_other_goes_on() {
        let (one, other) = (Stop::default(), Stop::default());
        let done = AtomicUsize::new(0);
        let work = |stop: &Stop, ask: bool| {
            let _mine = stop.enter();
            let mine = current();
            (0..100usize).into_par_iter().with_max_len(1).for_each(|i| {
                let _mine = mine.enter();
                if ask && i == 50 {
                    current().ask();
                }
                look();
                done.fetch_add(1, Relaxed);
            });
        };
        let caught = std::panic::catch_unwind(|| work(&one, true)).unwrap_err();
        assert!(caught.is::<Stopped>());
        assert!(done.swap(0, Relaxed) < 100);
        work(&other, false);
        assert_eq!(done.load(Relaxed), 100);
        assert!(!is_asked());
    }
}
