//! Thread pools of the process, and the number of threads of a call.
//!
//! The pool of the last call with several threads is kept, and so are pools of one thread for concurrent calls: a call
//! with one thread never waits for another call. A call gets at most one thread per core. `TAGWISE_MOST_THREADS` allows
//! more in tests, and results do not depend on it.
//!
//! Threads do not survive a fork. A child process inherits locks that may be held by threads it does not have, so it
//! must not use the pools of its parent. The pools are stored with the id of the process that created them. A process
//! with another id creates its own, and those of the parent are leaked.
//!
//! A short call needs no other thread: `current_thread_pool` returns a pool that consists of the calling thread, so
//! parallel loops run in place. Such a pool stays valid in a forked child.

use crate::error::{Error, Result};
use crate::machine::system::environment;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::cell::OnceCell;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

#[derive(Default)]
struct IdlePools {
    single: Vec<ThreadPool>, // idle pools of one thread each
    several: Option<Arc<ThreadPool>>,
}

/// Pools of one process.
struct Pools {
    process: u32,
    idle: Mutex<IdlePools>,
}

static POOLS: AtomicPtr<Pools> = AtomicPtr::new(std::ptr::null_mut());

/// Return the pools of this process. They are created on first use and after a fork.
fn pools() -> &'static Pools {
    let process = std::process::id();
    let found = POOLS.load(Ordering::Acquire);
    // SAFETY: the pointer came from `Box::into_raw` below and is never freed.
    if let Some(pools) = unsafe { found.as_ref() }.filter(|pools| pools.process == process) {
        return pools;
    }
    let new = Box::into_raw(Box::new(Pools { process, idle: Mutex::default() }));
    match POOLS.compare_exchange(found, new, Ordering::AcqRel, Ordering::Acquire) {
        // SAFETY: just created, and never freed from here on.
        Ok(_) => unsafe { &*new },
        Err(other) => {
            // SAFETY: no other thread has seen `new`, and `other` was stored by a thread of this process.
            unsafe {
                drop(Box::from_raw(new));
                &*other
            }
        }
    }
}

impl Pools {
    fn lock(&self) -> MutexGuard<'_, IdlePools> {
        self.idle.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// Return the number of cores that the process may use.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, |n| n.get())
}

/// Return the number of threads that the environment allows beyond the cores, or 0 if it is not set.
pub fn from_environment() -> Result<usize> {
    let text = environment::value("TAGWISE_MOST_THREADS");
    match text.parse() {
        Ok(n) => Ok(n),
        Err(_) if text.is_empty() => Ok(0),
        Err(_) => Err(environment::invalid_value("TAGWISE_MOST_THREADS", &text, "a whole number")),
    }
}

/// Return the number of threads of a call with `n_jobs` (0: one per core), at most one per core.
pub fn threads(n_jobs: usize) -> usize {
    let allowed = || from_environment().unwrap_or(0); // `lend` reports the error
    match n_jobs {
        0 => cores(),
        1 => 1,
        n => n.min(cores().max(allowed())),
    }
}

/// Threads lent for one call.
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
            let mut idle = pools().lock();
            if idle.single.len() < cores() {
                idle.single.extend(single.take());
            }
        }
    }
}

fn build(threads: usize) -> Result<ThreadPool> {
    let built = ThreadPoolBuilder::new().num_threads(threads).thread_name(|i| format!("tagwise-{i}")).build();
    built.map_err(|e| Error::Memory(format!("cannot start {threads} threads: {e}; use a smaller n_jobs")))
}

/// Lend threads to a call with `n_jobs`.
pub fn lend(n_jobs: usize) -> Result<Lent> {
    if n_jobs > 1 {
        from_environment()?;
    }
    let n = threads(n_jobs);
    let mut idle = pools().lock();
    if n == 1 {
        let single = idle.single.pop();
        drop(idle);
        return Ok(Lent::Single(Some(single.map_or_else(|| build(1), Ok)?)));
    }
    if let Some(pool) = idle.several.as_ref().filter(|pool| pool.current_num_threads() == n) {
        return Ok(Lent::Several(pool.clone()));
    }
    let pool = Arc::new(build(n)?);
    idle.several = Some(pool.clone());
    Ok(Lent::Several(pool))
}

/// Maximum number of threads with a pool of their own. rayon never frees the data of such a thread (some kilobytes), so
/// a process that starts a thread per call must not create one pool per thread.
const MAX_THREAD_POOLS: usize = 256;
static THREAD_POOLS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static CURRENT: OnceCell<Option<&'static ThreadPool>> = const { OnceCell::new() };
}

/// Return the pool that consists of the calling thread: parallel work installed in it runs in place. `None` for threads
/// beyond `MAX_THREAD_POOLS`.
pub fn current_thread_pool() -> Option<&'static ThreadPool> {
    CURRENT.with(|current| {
        *current.get_or_init(|| {
            if THREAD_POOLS.fetch_add(1, Ordering::Relaxed) >= MAX_THREAD_POOLS {
                THREAD_POOLS.fetch_sub(1, Ordering::Relaxed);
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
    fn work_in_the_current_thread_pool_stays_on_its_thread() {
        let current = std::thread::current().id();
        for _ in 0..2 {
            let ids = || (0..1000).into_par_iter().map(|_| std::thread::current().id()).collect::<Vec<_>>();
            assert!(current_thread_pool().is_none_or(|pool| pool.install(ids).iter().all(|&id| id == current)));
            assert_ne!(lend(1).unwrap().pool().install(|| std::thread::current().id()), current);
        }
    }

    #[test]
    fn number_of_current_thread_pools_is_bounded() {
        let try_thread = |_| std::thread::spawn(|| current_thread_pool().is_some()).join().unwrap();
        let found: Vec<bool> = (0..MAX_THREAD_POOLS + 3).map(try_thread).collect();
        assert!(!found[MAX_THREAD_POOLS..].contains(&true));
    }

    #[test]
    fn concurrent_single_thread_calls_do_not_block_each_other() {
        let (one, other) = (lend(1).unwrap(), lend(1).unwrap());
        let (sender, receiver) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            scope.spawn(|| one.pool().install(move || receiver.recv().unwrap()));
            scope.spawn(|| other.pool().install(move || sender.send(1).unwrap()));
        });
    }

    #[test]
    fn number_of_threads_is_at_most_the_number_of_cores() {
        assert_eq!(threads(0), cores());
        assert_eq!(threads(usize::MAX), cores());
        for n in [2, 3, 1_000_000, usize::MAX] {
            let lent = lend(n).unwrap();
            assert_eq!(lent.pool().current_num_threads(), threads(n));
            assert_eq!(lent.pool().install(|| (0..1000).into_par_iter().sum::<u64>()), 499_500);
        }
    }
}
