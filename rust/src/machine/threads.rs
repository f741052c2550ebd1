//! The threads of the process: how many a call may have, and the pools that lend them.
//!
//! One pool of several threads is kept, that of the last call that asked for several, and pools of one thread for calls
//! beside each other: a call of one thread never waits for another. No call gets more threads than the machine has cores;
//! `TAGWISE_MOST_THREADS` lets tests have more, results do not depend on it.
//!
//! Threads do not survive a fork. A child finds locks as they stood, some of them held by threads that it does not have, so
//! it never touches what its parent kept: the process that made the pools is noted beside them, and another one begins
//! anew. What the parent had is left where it is.

use crate::error::{Error, Result};
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

#[derive(Default)]
struct Kept {
    single: Vec<ThreadPool>, // of one thread each, nobody's at the moment
    several: Option<Arc<ThreadPool>>,
}

/// What one process keeps.
struct Pools {
    process: u32,
    kept: Mutex<Kept>,
}

static POOLS: AtomicPtr<Pools> = AtomicPtr::new(std::ptr::null_mut());

/// The pools of this process, made where there are none or where those there are belong to the parent.
fn pools() -> &'static Pools {
    let process = std::process::id();
    let found = POOLS.load(Ordering::Acquire);
    // SAFETY: what was stored came from `Box::into_raw` below and is never freed.
    if let Some(pools) = unsafe { found.as_ref() }.filter(|pools| pools.process == process) {
        return pools;
    }
    let new = Box::into_raw(Box::new(Pools { process, kept: Mutex::default() }));
    match POOLS.compare_exchange(found, new, Ordering::AcqRel, Ordering::Acquire) {
        // SAFETY: just made, and never freed from here on.
        Ok(_) => unsafe { &*new },
        Err(other) => {
            // SAFETY: nobody else has seen `new`; `other` was stored by a thread of this process.
            unsafe {
                drop(Box::from_raw(new));
                &*other
            }
        }
    }
}

impl Pools {
    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// Cores of this machine that the process may use.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, |n| n.get())
}

/// Threads of a call that asks for `n_jobs` (0: one a core): never more than there are cores.
pub fn threads(n_jobs: usize) -> usize {
    let most = || std::env::var("TAGWISE_MOST_THREADS").ok().and_then(|n| n.parse().ok()).unwrap_or(0);
    match n_jobs {
        0 => cores(),
        1 => 1,
        n => n.min(cores().max(most())),
    }
}

/// Threads that are lent for a call.
pub enum Lent {
    Single(Option<ThreadPool>),
    Several(Arc<ThreadPool>),
}

impl Lent {
    pub fn pool(&self) -> &ThreadPool {
        match self {
            Lent::Single(Some(pool)) => pool,
            Lent::Several(pool) => pool,
            Lent::Single(None) => unreachable!("taken by `drop` alone"),
        }
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if let Lent::Single(single) = self {
            let mut kept = pools().lock();
            if kept.single.len() < cores() {
                kept.single.extend(single.take());
            }
        }
    }
}

fn build(threads: usize) -> Result<ThreadPool> {
    let built = ThreadPoolBuilder::new().num_threads(threads).thread_name(|i| format!("tagwise-{i}")).build();
    built.map_err(|e| Error::Memory(format!("cannot start {threads} threads: {e}; use a smaller n_jobs")))
}

/// Threads for a call that asks for `n_jobs`.
pub fn lend(n_jobs: usize) -> Result<Lent> {
    let n = threads(n_jobs);
    let mut kept = pools().lock();
    if n == 1 {
        let single = kept.single.pop();
        drop(kept);
        return Ok(Lent::Single(Some(single.map_or_else(|| build(1), Ok)?)));
    }
    if let Some(pool) = kept.several.as_ref().filter(|pool| pool.current_num_threads() == n) {
        return Ok(Lent::Several(pool.clone()));
    }
    let pool = Arc::new(build(n)?);
    kept.several = Some(pool.clone());
    Ok(Lent::Several(pool))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rayon::prelude::*;

    #[test]
    fn calls_of_one_thread_do_not_wait_for_each_other() {
        let (one, other) = (lend(1).unwrap(), lend(1).unwrap());
        let (tell, told) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            scope.spawn(|| one.pool().install(move || told.recv().unwrap()));
            scope.spawn(|| other.pool().install(move || tell.send(1).unwrap()));
        });
    }

    #[test]
    fn no_more_threads_than_cores() {
        assert_eq!(threads(0), cores());
        assert_eq!(threads(usize::MAX), cores());
        for n in [2, 3, 1_000_000, usize::MAX] {
            let lent = lend(n).unwrap();
            assert_eq!(lent.pool().current_num_threads(), threads(n));
            assert_eq!(lent.pool().install(|| (0..1000).into_par_iter().sum::<u64>()), 499_500);
        }
    }
}
