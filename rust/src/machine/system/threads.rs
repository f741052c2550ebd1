//! The threads of the process: how many a call may have, and the pools that lend them.
//!
//! One pool of several threads is kept, that of the last call that asked for several, and pools of one thread for calls
//! beside each other: a call of one thread never waits for another. No call gets more threads than the machine has cores;
//! `TAGWISE_MOST_THREADS` lets tests have more, results do not depend on it.
//!
//! Threads do not survive a fork. A child finds locks as they stood, some of them held by threads that it does not have, so
//! it never touches what its parent kept: the process that made the pools is noted beside them, and another one begins
//! anew. What the parent had is left where it is.
//!
//! A call that is short needs no other thread: `here` has a pool that is the calling thread itself, so that whatever the
//! call would spread is done in place. Such a pool goes with its thread into a forked child.

use crate::error::{Error, Result};
use crate::machine::system::environment;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::cell::OnceCell;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
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

/// Threads that the environment allows beyond the cores; 0 where it says nothing.
pub fn given() -> Result<usize> {
    let text = environment::value("TAGWISE_MOST_THREADS");
    match text.parse() {
        Ok(n) => Ok(n),
        Err(_) if text.is_empty() => Ok(0),
        Err(_) => Err(environment::refused("TAGWISE_MOST_THREADS", &text, "a whole number")),
    }
}

/// Threads of a call that asks for `n_jobs` (0: one a core): never more than there are cores.
pub fn threads(n_jobs: usize) -> usize {
    let most = || given().unwrap_or(0); // an error of `lend`
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
    if n_jobs > 1 {
        given()?;
    }
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

/// Threads that may have a pool of themselves. rayon never frees what such a thread had (some kilobytes), so that a
/// process that starts a thread for each call must not have one for each.
const MOST_HERE: usize = 256;
static HERE: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static MINE: OnceCell<Option<&'static ThreadPool>> = const { OnceCell::new() };
}

/// The pool that is the calling thread: what it installs is done in place, with whatever that spreads. None for threads
/// beyond `MOST_HERE`.
pub fn here() -> Option<&'static ThreadPool> {
    MINE.with(|mine| {
        *mine.get_or_init(|| {
            if HERE.fetch_add(1, Ordering::Relaxed) >= MOST_HERE {
                HERE.fetch_sub(1, Ordering::Relaxed);
                return None;
            }
            let built = ThreadPoolBuilder::new().num_threads(1).use_current_thread().build();
            built.ok().map(|pool| &*Box::leak(Box::new(pool)))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rayon::prelude::*;

    #[test]
    fn work_that_is_done_here_stays_on_this_thread() {
        let mine = std::thread::current().id();
        for _ in 0..2 {
            let ids = || (0..1000).into_par_iter().map(|_| std::thread::current().id()).collect::<Vec<_>>();
            assert!(here().is_none_or(|pool| pool.install(ids).iter().all(|&id| id == mine)));
            assert_ne!(lend(1).unwrap().pool().install(|| std::thread::current().id()), mine);
        }
    }

    #[test]
    fn threads_that_come_and_go_have_a_pool_of_themselves_up_to_a_number() {
        let tried = |_| std::thread::spawn(|| here().is_some()).join().unwrap();
        let found: Vec<bool> = (0..MOST_HERE + 3).map(tried).collect();
        assert!(!found[MOST_HERE..].contains(&true));
    }

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
