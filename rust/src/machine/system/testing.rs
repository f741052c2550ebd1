//! Forced code paths and counters of the paths taken, for tests only.
//!
//! The core has several implementations of one function: sixteen sentences in lanes or one at a time, float32, double
//! precision or log space, folded or plain rows, different instruction sets. Most are selected by the size or the range
//! of the input. Tests force each of them on the same small input with `_core.force("log")` or, before the first use,
//! with the environment variable `TAGWISE_PATH` (names separated by commas). The setting is read once per call, batch
//! or sentence, never per token. An input that the forced path does not support takes the default path.

use crate::error::{Error, Result};
use crate::machine::system::environment;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// Code path that can be forced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodePath {
    /// Each sentence separately, in double precision and log space.
    Log,
    /// Each sentence separately, scaled, in double precision (sequential losses).
    Wide,
    /// Sums in log space term by term instead of products of exponentials.
    Slow,
    /// Batches of one sentence.
    Alone,
    /// Decoding of one sentence after the other.
    Sentence,
    /// Four chunks for corpora of any size.
    Chunks,
    /// Rows are not folded.
    Plain,
    /// A row for every attribute.
    Rows,
    /// A row for no attribute.
    Rare,
    /// Pair sums of all edges, even if they are not requested.
    Dense,
    /// Lists of the edges whose scores differ from the common value.
    Sparse,
    /// No edge lists, as with `Dense`.
    Whole,
    /// Viterbi with stored back pointers.
    Noted,
    /// Viterbi that recomputes the previous label during backtracking.
    Sought,
    /// All cells for labels further back.
    Broad,
    /// Weights packed into a table.
    Table,
    /// Weights in the layout of the model.
    Layout,
    /// Attributes of locked vocabularies in runs.
    Runs,
    /// Every attribute of locked vocabularies separately.
    Single,
    /// At most AVX2.
    Avx2,
    /// Only the vector instructions of the baseline.
    Baseline,
    /// Short calls run on a pool thread, like long ones.
    Handed,
}

const CODE_PATHS: [(&str, CodePath); 22] = [
    ("log", CodePath::Log),
    ("wide", CodePath::Wide),
    ("slow", CodePath::Slow),
    ("alone", CodePath::Alone),
    ("sentence", CodePath::Sentence),
    ("chunks", CodePath::Chunks),
    ("plain", CodePath::Plain),
    ("rows", CodePath::Rows),
    ("rare", CodePath::Rare),
    ("dense", CodePath::Dense),
    ("sparse", CodePath::Sparse),
    ("whole", CodePath::Whole),
    ("noted", CodePath::Noted),
    ("sought", CodePath::Sought),
    ("broad", CodePath::Broad),
    ("table", CodePath::Table),
    ("layout", CodePath::Layout),
    ("runs", CodePath::Runs),
    ("single", CodePath::Single),
    ("avx2", CodePath::Avx2),
    ("baseline", CodePath::Baseline),
    ("handed", CodePath::Handed),
];

/// Initial value: the environment has not been read yet.
const UNREAD: u32 = 1 << 31;
static FORCED: AtomicU32 = AtomicU32::new(UNREAD);

fn parse(names: &str) -> Result<u32> {
    let mut bits = 0;
    for name in names.split(',').map(str::trim).filter(|name| !name.is_empty()) {
        let Some((_, path)) = CODE_PATHS.iter().find(|(known, _)| *known == name) else {
            let known: Vec<&str> = CODE_PATHS.iter().map(|(name, _)| *name).collect();
            return Err(Error::Value(format!("no code path {name:?} to force; there are: {}", known.join(", "))));
        };
        bits |= 1 << *path as u32;
    }
    Ok(bits)
}

/// Return the paths that the environment forces.
pub fn from_environment() -> Result<u32> {
    let names = environment::value("TAGWISE_PATH");
    let known = || CODE_PATHS.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    parse(&names).map_err(|_| environment::invalid_value("TAGWISE_PATH", &names, &format!("names of {}", known())))
}

#[cold]
fn read() -> u32 {
    let bits = from_environment().unwrap_or(0); // an invalid value has already failed the import
    let _ = FORCED.compare_exchange(UNREAD, bits, Relaxed, Relaxed);
    FORCED.load(Relaxed)
}

/// Return whether a path is forced.
#[inline(always)]
pub fn is_forced(path: CodePath) -> bool {
    let bits = FORCED.load(Relaxed);
    (if bits == UNREAD { read() } else { bits }) >> path as u32 & 1 != 0
}

/// Force exactly these paths (names separated by commas) and return the names of the paths forced before.
pub fn force(names: &str) -> Result<String> {
    let bits = parse(names)?;
    read();
    let before = FORCED.swap(bits, Relaxed);
    let names: Vec<&str> =
        CODE_PATHS.iter().filter(|(_, path)| before >> *path as u32 & 1 != 0).map(|(n, _)| *n).collect();
    Ok(names.join(","))
}

/// Counters of the paths taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathCount {
    /// Sentences in lanes, scaled in double precision, in log space, and as lists in float32.
    Lanes,
    Wide,
    Log,
    Chart,
    /// Chunks, batches and tiles of pair sums of an evaluation.
    Chunks,
    Batches,
    Tiles,
    /// Entries of rows and of rare features of a training set.
    Rows,
    Rare,
    /// Batches of best paths by kind of back pointers.
    Noted,
    Sought,
    /// Batches with edge lists.
    Sparse,
    /// Calls with weights in a table, datasets with runs.
    Table,
    Runs,
    /// Chunks by instruction set.
    Avx512,
    Avx2,
    Baseline,
    /// Calls that ran on the calling thread.
    Here,
}

pub const COUNTER_NAMES: [&str; 18] = [
    "lanes", "wide", "log", "chart", "chunks", "batches", "tiles", "rows", "rare", "noted", "sought", "sparse",
    "table", "runs", "avx512", "avx2", "baseline", "here",
];
static COUNTS: [AtomicU64; COUNTER_NAMES.len()] = [const { AtomicU64::new(0) }; COUNTER_NAMES.len()];

/// Add `times` to a counter.
#[inline]
pub fn count(counter: PathCount, times: usize) {
    COUNTS[counter as usize].fetch_add(times as u64, Relaxed);
}

/// Return the counters of `COUNTER_NAMES` and reset them to zero.
pub fn take_counts() -> [u64; COUNTER_NAMES.len()] {
    std::array::from_fn(|i| COUNTS[i].swap(0, Relaxed))
}

/// Run `test` with these paths forced, one test at a time. Tests outside of `with` may run concurrently, since every
/// path computes the same function.
#[cfg(test)]
pub fn with<R>(names: &str, test: impl FnOnce() -> R) -> R {
    static SERIAL: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _serial = SERIAL.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let before = force(names).unwrap();
    let out = test();
    force(&before).unwrap();
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::simd::dispatch::level;
    use crate::machine::simd::Level;

    #[test]
    fn every_name_forces_its_path_and_levels_only_decrease() {
        for (i, (name, path)) in CODE_PATHS.iter().enumerate() {
            assert_eq!(*path as usize, i);
            with(name, || {
                assert!(is_forced(*path));
                assert!(CODE_PATHS.iter().all(|(_, other)| other == path || !is_forced(*other)));
            });
        }
        with(" log , avx2", || assert!(is_forced(CodePath::Log) && is_forced(CodePath::Avx2)));
        with("avx2", || assert_ne!(level(), Level::Avx512));
        with("baseline,avx2", || assert_eq!(level(), Level::Baseline));
        assert_eq!(COUNTER_NAMES[PathCount::Baseline as usize], "baseline");
        assert_eq!(COUNTER_NAMES[PathCount::Rows as usize], "rows");
        assert!(matches!(force("log,fast"), Err(Error::Value(m)) if m.contains("\"fast\"") && m.contains("wide")));
    }
}
