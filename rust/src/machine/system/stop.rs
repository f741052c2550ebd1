//! Stopping a call from outside: long loops look between sentences whether somebody asked.
//!
//! Each call has a flag of its own, so that stopping one leaves those beside it alone. It is kept by the thread that works
//! for the call; a piece of work that any thread of a pool may take carries it along:
//!
//! ```text
//! let stop = stop::current();                 // in the call
//! parts.par_iter().map(|part| { let _mine = stop.enter(); ...; stop::look(); ... })
//! ```
//!
//! `look` unwinds with `Stopped` as its payload, which the entry that began the call catches. So it may stand only where
//! whatever is half done goes to waste, or can be gone on with.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::Arc;

/// The payload of the unwinding.
pub struct Stopped;

/// The flag of one call.
#[derive(Clone, Default)]
pub struct Stop(Arc<AtomicBool>);

thread_local! {
    static MINE: RefCell<Stop> = RefCell::default();
}

/// The flag of the call that this thread works for.
pub fn current() -> Stop {
    MINE.with_borrow(Stop::clone)
}

/// Unwinds where the call that this thread works for is to stop.
#[inline]
pub fn look() {
    if MINE.with_borrow(|stop| stop.0.load(Relaxed)) {
        std::panic::resume_unwind(Box::new(Stopped));
    }
}

/// Whether it is to stop.
pub fn is_asked() -> bool {
    MINE.with_borrow(|stop| stop.0.load(Relaxed))
}

impl Stop {
    /// Ask the call to stop.
    pub fn ask(&self) {
        self.0.store(true, Relaxed);
    }

    /// Whether the call was asked to stop.
    pub fn is_set(&self) -> bool {
        self.0.load(Relaxed)
    }

    /// This thread works for the call while the answer lives; unwinds at once where it is to stop.
    pub fn enter(&self) -> Entered {
        if self.0.load(Relaxed) {
            std::panic::resume_unwind(Box::new(Stopped));
        }
        Entered(MINE.replace(self.clone()))
    }
}

/// Gives the thread back to the call that it worked for before.
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
