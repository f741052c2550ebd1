//! An epoch on several threads, with the same bits as on one.
//!
//! Visit p is computed at the weights that result from the visits before p - LAG + 1, and visits are applied in order.
//! So the weights do not depend on which thread computes a visit. Each thread has its own copy of the weights and
//! applies all visits to it. Only the moves travel between cores, a few kilobytes each, and not the cache lines of the
//! weights, which all visits touch. Applying a visit takes about a fifth of the time of computing it.
//!
//! ```text
//! claim p                        one counter, every p is claimed by one thread
//! apply the visits ..= p - LAG   to the thread's own weights, in order, each once `done`
//! wait for the slot of p         until every thread that joined has applied visit p - RING
//! find visit p                   moves q_i, writes the move to slot p mod RING, sets `done[p]`
//! ```
//!
//! **Same bits.** A thread finds p after it has applied exactly the visits 0 ..= p - LAG, in this order: `applied`
//! only grows, by one, and claims of one thread ascend. By induction over p the weights at which p is found are those
//! of one thread. The dual point of a sentence is read and written by its own visits alone. Two visits of one sentence
//! are at least LAG apart (`space_out`), so the later one begins after its thread has observed `done` of the earlier
//! one.
//!
//! **No race.** The finder writes slot p mod RING before the release store of `done[p]`, and others read it after an
//! acquire load of `done[p]`. It is overwritten by p + RING only after each joined thread has stored `applied` > p
//! with release, which is after its last read. A thread that joins later receives the weights and the count `applied`
//! = a of the first thread. Slot a is not overwritten before: that requires `applied` > a of the first thread, which
//! is stored after JOINED. A finder checks the first thread first, so one that reads `applied` > a there also observes
//! that the other has joined.
//!
//! **No deadlock.** Let p be the smallest visit that is claimed and not done. Its thread waits for visits <= p - LAG < p, which
//! are done, and for threads that have not applied p - RING. Such a thread has claimed some p' > p and is applying the
//! visits ..= p' - LAG, which include p - RING since RING > LAG. All visits before p are done, so it gets there. A
//! thread that has not claimed yet waits for nothing, and one that ran out of visits sets `applied` to the maximum. A
//! thread that panics sets `is_over`, which ends every wait.
//!
//! A thread that the pool lends late joins late: the calling thread copies its weights for it.

use super::visit::{self, Move};
use super::{Block, Dual, DualProblem, VisitScratch, Visited};
use crate::machine::simd::dispatch::{dispatch, FlushToZero};
use crate::machine::simd::find::Find;
use crate::machine::simd::Lane;
use crate::machine::system::stop;
use std::cell::UnsafeCell;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering::*};

/// Number of moves kept: those of the last visits, which all threads apply before they are overwritten.
const RING: usize = 8;
/// Number of iterations that a wait spins before it yields the core.
const MAX_SPINS: u32 = 200;
/// Placeholder visit, used if the next sentence was visited too recently.
pub(super) const NO_SENTENCE: u32 = u32::MAX;

/// Reorder visits so that no sentence occurs twice within `lag` consecutive visits. Otherwise its dual point would have
/// moved before the second visit, but the weights would not. A visit that comes too soon is postponed.
pub(super) fn space_out(order: Vec<u32>, lag: usize) -> Vec<u32> {
    let mut out: Vec<u32> = Vec::with_capacity(order.len());
    let mut postponed = VecDeque::new();
    let mut rest = order.into_iter();
    loop {
        let is_allowed = |i: &u32| !out[(out.len() + 1).saturating_sub(lag)..].contains(i);
        let next = match postponed.front() {
            Some(i) if is_allowed(i) => postponed.pop_front(),
            _ => loop {
                match rest.next() {
                    Some(i) if !is_allowed(&i) => postponed.push_back(i),
                    other => break other,
                }
            },
        };
        if next.is_none() && postponed.is_empty() {
            return out;
        }
        out.push(next.unwrap_or(NO_SENTENCE));
    }
}

/// State of a thread: its weights, and the number of visits applied to them.
struct WorkerSlot {
    state: AtomicU32,
    w: UnsafeCell<Vec<Lane>>,
    applied: AtomicUsize, // number of visits, in order
}

const EMPTY: u32 = 0;
/// Requests the weights of the calling thread.
const WAITING_FOR_WEIGHTS: u32 = 1;
const JOINED: u32 = 2;

/// State that the threads of an epoch share.
struct EpochRun<'a> {
    problem: &'a DualProblem,
    order: &'a [u32],
    lag: usize,
    labels: usize,
    nodes: *mut f32, // those of `Dual`, each sentence's part accessed only by its visitor
    pairs: *mut f32,
    blocks: *mut Block,
    claimed: AtomicUsize,
    done: Vec<AtomicBool>,        // [visits] found
    moves: Vec<UnsafeCell<Move>>, // [RING]
    workers: Vec<WorkerSlot>,     // one per thread, but the first has its weights elsewhere
    is_over: AtomicBool,          // the first thread has found and applied everything, or a thread unwinds
}

// SAFETY: `claimed` assigns each position of the order, hence each part of nodes, pairs, blocks and each move, to one
// thread. Others read a move after `done` is set, and it is overwritten after all joined threads have applied it. No
// sentence is in two visits less than `lag` apart. A slot's weights are written by the first thread between
// WAITING_FOR_WEIGHTS and JOINED, otherwise by its own thread.
unsafe impl Sync for EpochRun<'_> {}

impl EpochRun<'_> {
    /// Wait until `ready` and return true, or false if the epoch is over before. Unwinds if the call is stopped.
    fn wait(&self, ready: impl Fn() -> bool) -> bool {
        let mut spins = 0u32;
        while !ready() {
            if self.is_over.load(Acquire) {
                return false;
            }
            spins += 1;
            match spins < MAX_SPINS {
                true => std::hint::spin_loop(),
                false => {
                    stop::check();
                    std::thread::yield_now();
                }
            }
        }
        true
    }

    fn slot(&self, visit: usize) -> *mut Move {
        self.moves[visit % RING].get()
    }
}

/// Marks the epoch as over if a thread unwinds, so that no other waits for it.
struct StopOnPanic<'a>(&'a AtomicBool);

impl Drop for StopOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.store(true, Release);
        }
    }
}

/// Run all visits of the order on the threads of this pool.
pub(super) fn run(dual: &mut Dual, order: &[u32], lag: usize) -> Visited {
    let threads = rayon::current_num_threads().min(lag); // a visit must be applied before the visit `lag` later is found
    let Dual { problem, w, nodes, pairs, blocks, .. } = dual;
    let worker = |i| WorkerSlot {
        state: AtomicU32::new(if i == 0 { JOINED } else { EMPTY }),
        w: UnsafeCell::default(),
        applied: AtomicUsize::new(0),
    };
    let run_state = EpochRun {
        order,
        lag,
        labels: problem.cells.labels,
        nodes: nodes.as_mut_ptr(),
        pairs: pairs.as_mut_ptr(),
        blocks: blocks.as_mut_ptr(),
        claimed: AtomicUsize::new(0),
        done: order.iter().map(|_| AtomicBool::new(false)).collect(),
        moves: (0..RING).map(|_| UnsafeCell::default()).collect(),
        workers: (0..threads).map(worker).collect(),
        is_over: AtomicBool::new(false),
        problem,
    };
    let stop = stop::current();
    let others = std::sync::Mutex::new(Visited::default());
    let mut out = rayon::scope(|scope| {
        for number in 1..threads {
            let (run_state, stop, others) = (&run_state, &stop, &others);
            scope.spawn(move |_| {
                let _guard = stop.enter();
                let found = run_worker(run_state, &run_state.workers[number]);
                let mut sum = others.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
                sum.tokens += found.tokens;
                sum.failed += found.failed;
            });
        }
        let stop_on_panic = StopOnPanic(&run_state.is_over);
        let found = work(&run_state, w, &run_state.workers[0], true);
        run_state.is_over.store(true, Release);
        drop(stop_on_panic);
        found
    });
    let others = others.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    out.tokens += others.tokens;
    out.failed += others.failed;
    out
}

/// The work of a lent thread.
fn run_worker(run_state: &EpochRun<'_>, worker: &WorkerSlot) -> Visited {
    let _stop_on_panic = StopOnPanic(&run_state.is_over);
    worker.state.store(WAITING_FOR_WEIGHTS, Release);
    if !run_state.wait(|| worker.state.load(Acquire) == JOINED) {
        return Visited::default();
    }
    // SAFETY: after JOINED the first thread, which wrote these, does not access them.
    work(run_state, unsafe { &mut *worker.w.get() }, worker, false)
}

dispatch!(
    /// Claim visits until none is left. The first thread then applies the remaining ones.
    fn work(run_state: &EpochRun<'_>, w: &mut [Lane], worker: &WorkerSlot, is_first: bool) -> Visited = work_kernel
);

#[inline(always)]
fn work_kernel<S: Find>(
    simd: S,
    run_state: &EpochRun<'_>,
    w: &mut [Lane],
    worker: &WorkerSlot,
    is_first: bool,
) -> Visited {
    let _flush_to_zero = FlushToZero::new();
    let (problem, edges, last) = (run_state.problem, run_state.problem.edge_at.len(), run_state.order.len());
    let mut scratch = VisitScratch::new(problem.cells.labels);
    let mut out = Visited::default();
    let mut applied = worker.applied.load(Acquire);
    loop {
        stop::check();
        if is_first {
            share_weights(run_state, w, applied);
        }
        let p = run_state.claimed.fetch_add(1, Relaxed);
        if p >= last && !is_first {
            worker.applied.store(usize::MAX, Release);
            return out;
        }
        let until = if p >= last { last } else { (p + 1).saturating_sub(run_state.lag) };
        while applied < until {
            if !run_state.wait(|| run_state.done[applied].load(Acquire)) {
                return out; // a thread unwinds, and with it the call
            }
            // SAFETY: the visit is done, and its move is not overwritten before this thread has applied it.
            let found = unsafe { &*run_state.slot(applied) };
            found.prefetch();
            visit::apply(problem, found, w);
            applied += 1;
            worker.applied.store(applied, Release);
        }
        if p >= last {
            return out;
        }
        let has_applied = |worker: &WorkerSlot| {
            worker.state.load(Acquire) != JOINED || worker.applied.load(Acquire).saturating_add(RING) > p
        };
        if !run_state.wait(|| run_state.workers.iter().all(has_applied)) {
            return out;
        }
        // SAFETY: this thread has claimed p, and every thread has applied the previous move of the slot.
        let (i, to) = (run_state.order[p], unsafe { &mut *run_state.slot(p) });
        to.sentence = NO_SENTENCE;
        if i != NO_SENTENCE {
            let rows = |i: u32| {
                let (begin, end) = problem.cells.range(i);
                (run_state.nodes.wrapping_add(begin * run_state.labels), (end - begin) * run_state.labels)
            };
            let upcoming = run_state
                .order
                .get(p + run_state.workers.len())
                .copied()
                .filter(|&next| next != NO_SENTENCE)
                .unwrap_or(i);
            let (at, n) = rows(i);
            // SAFETY: these parts belong to sentence i, and this thread has claimed its visit.
            let own = unsafe {
                visit::SentenceDual {
                    mu: std::slice::from_raw_parts_mut(at, n),
                    pairs: std::slice::from_raw_parts_mut(run_state.pairs.add(i as usize * edges), edges),
                    block: &mut *run_state.blocks.add(i as usize),
                }
            };
            out.failed +=
                usize::from(visit::visit_sentence(simd, problem, own, w, &mut scratch, to, (i, upcoming)).is_none());
            out.tokens += n / run_state.labels;
        }
        run_state.done[p].store(true, Release);
    }
}

/// Copy the weights, with all visits before `applied`, to the threads that have requested them since.
fn share_weights(run_state: &EpochRun<'_>, w: &[Lane], applied: usize) {
    for worker in run_state.workers.iter().filter(|worker| worker.state.load(Acquire) == WAITING_FOR_WEIGHTS) {
        // SAFETY: in the state WAITING_FOR_WEIGHTS only the first thread, which is this one, accesses the slot.
        unsafe { (*worker.w.get()).extend_from_slice(w) };
        worker.applied.store(applied, Release);
        worker.state.store(JOINED, Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn visits_of_a_sentence_are_at_least_the_lag_apart() {
        for (sentences, lag) in [(1, 1), (1, 4), (2, 4), (3, 2), (7, 4), (40, 5)] {
            let order: Vec<u32> = (0..200u32).map(|i| i * i % 31 % sentences).collect();
            let out = space_out(order.clone(), lag);
            for (at, &i) in out.iter().enumerate().filter(|(_, &i)| i != NO_SENTENCE) {
                assert!(!out[at + 1..out.len().min(at + lag)].contains(&i));
            }
            assert!(lag > 1 || out == order);
            let sorted = |mut order: Vec<u32>| {
                order.sort_unstable();
                order
            };
            assert_eq!(sorted(out.into_iter().filter(|&i| i != NO_SENTENCE).collect()), sorted(order));
        }
    }
}
