//! For tests alone: which of several ways the core takes where it may choose, and which it took.
//!
//! The core has many ways to do the same: sixteen sentences side by side or one, float32 or double precision or log space,
//! rows folded or plain, one instruction set or another. Each is the same function, and most choose themselves by the size
//! or the range of the input. Tests force each of them on the same small input: `_core.force("log")`, or the environment
//! variable `TAGWISE_PATH` (names between commas) before the first use. It is asked for once a call, batch or sentence,
//! never once a token. What cannot be done the way that is asked for is done as ever.

use crate::error::{Error, Result};
use crate::machine::system::environment;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// A way that can be forced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Every sentence by itself in double precision and log space.
    Log,
    /// Every sentence by itself, scaled, in double precision (sequential losses).
    Wide,
    /// Sums in log space term by term, not by products of exponentials.
    Slow,
    /// Batches of one sentence.
    Alone,
    /// Decoding: one sentence after the other.
    Sentence,
    /// Corpora of any size in four chunks.
    Chunks,
    /// Rows are not folded.
    Plain,
    /// Every attribute has a row.
    Rows,
    /// No attribute has one.
    Rare,
    /// Pair sums of all edges, asked for or not.
    Dense,
    /// Lists of the edges that differ from the others.
    Sparse,
    /// No such lists, as with `Dense`.
    Whole,
    /// Best paths: back pointers are noted.
    Noted,
    /// Best paths: the label before is searched for.
    Sought,
    /// Labels further back: all cells.
    Broad,
    /// Weights packed into a table.
    Table,
    /// Weights where the layout has them.
    Layout,
    /// Attributes of locked vocabularies in runs.
    Runs,
    /// All attributes single.
    Single,
    /// At most AVX2.
    Avx2,
    /// No vector instructions beyond the baseline's.
    Baseline,
    /// Short calls are handed to a thread, as long ones are.
    Handed,
}

const WAYS: [(&str, Way); 22] = [
    ("log", Way::Log),
    ("wide", Way::Wide),
    ("slow", Way::Slow),
    ("alone", Way::Alone),
    ("sentence", Way::Sentence),
    ("chunks", Way::Chunks),
    ("plain", Way::Plain),
    ("rows", Way::Rows),
    ("rare", Way::Rare),
    ("dense", Way::Dense),
    ("sparse", Way::Sparse),
    ("whole", Way::Whole),
    ("noted", Way::Noted),
    ("sought", Way::Sought),
    ("broad", Way::Broad),
    ("table", Way::Table),
    ("layout", Way::Layout),
    ("runs", Way::Runs),
    ("single", Way::Single),
    ("avx2", Way::Avx2),
    ("baseline", Way::Baseline),
    ("handed", Way::Handed),
];

/// Nobody has asked yet: the environment decides.
const UNREAD: u32 = 1 << 31;
static FORCED: AtomicU32 = AtomicU32::new(UNREAD);

fn parse(names: &str) -> Result<u32> {
    let mut bits = 0;
    for name in names.split(',').map(str::trim).filter(|name| !name.is_empty()) {
        let Some((_, way)) = WAYS.iter().find(|(known, _)| *known == name) else {
            let known: Vec<&str> = WAYS.iter().map(|(name, _)| *name).collect();
            return Err(Error::Value(format!("no way {name:?} to force; there are: {}", known.join(", "))));
        };
        bits |= 1 << *way as u32;
    }
    Ok(bits)
}

/// The ways that the environment forces.
pub fn given() -> Result<u32> {
    let names = environment::value("TAGWISE_PATH");
    let known = || WAYS.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    parse(&names).map_err(|_| environment::refused("TAGWISE_PATH", &names, &format!("names of {}", known())))
}

#[cold]
fn read() -> u32 {
    let bits = given().unwrap_or(0); // a value that is none has stopped the import
    let _ = FORCED.compare_exchange(UNREAD, bits, Relaxed, Relaxed);
    FORCED.load(Relaxed)
}

/// Whether this way is forced.
#[inline(always)]
pub fn is_forced(way: Way) -> bool {
    let bits = FORCED.load(Relaxed);
    (if bits == UNREAD { read() } else { bits }) >> way as u32 & 1 != 0
}

/// Force these ways (names between commas) and no other; the names of those forced before.
pub fn force(names: &str) -> Result<String> {
    let bits = parse(names)?;
    read();
    let before = FORCED.swap(bits, Relaxed);
    let names: Vec<&str> = WAYS.iter().filter(|(_, way)| before >> *way as u32 & 1 != 0).map(|(n, _)| *n).collect();
    Ok(names.join(","))
}

/// What was done, and how often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// Sentences side by side, scaled, in double precision, in log space, as lists in float32.
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
    /// Batches of best paths by each kind of back pointer.
    Noted,
    Sought,
    /// Batches with lists of edges.
    Sparse,
    /// Calls with weights in a table, datasets with runs.
    Table,
    Runs,
    /// Chunks on each instruction set.
    Avx512,
    Avx2,
    Baseline,
    /// Calls that were done where they were asked for.
    Here,
}

pub const TAKEN: [&str; 18] = [
    "lanes", "wide", "log", "chart", "chunks", "batches", "tiles", "rows", "rare", "noted", "sought", "sparse",
    "table", "runs", "avx512", "avx2", "baseline", "here",
];
static COUNTS: [AtomicU64; TAKEN.len()] = [const { AtomicU64::new(0) }; TAKEN.len()];

/// That was done so many times.
#[inline]
pub fn count(taken: Taken, times: usize) {
    COUNTS[taken as usize].fetch_add(times as u64, Relaxed);
}

/// How often each of `TAKEN` was done since this was asked last.
pub fn taken() -> [u64; TAKEN.len()] {
    std::array::from_fn(|i| COUNTS[i].swap(0, Relaxed))
}

/// Runs `test` with these ways forced; one test at a time. Others may run beside it: every way is the same function.
#[cfg(test)]
pub fn with<R>(names: &str, test: impl FnOnce() -> R) -> R {
    static ONE: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
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
    fn names_are_ways_and_levels_only_go_down() {
        for (i, (name, way)) in WAYS.iter().enumerate() {
            assert_eq!(*way as usize, i);
            with(name, || {
                assert!(is_forced(*way));
                assert!(WAYS.iter().all(|(_, other)| other == way || !is_forced(*other)));
            });
        }
        with(" log , avx2", || assert!(is_forced(Way::Log) && is_forced(Way::Avx2)));
        with("avx2", || assert_ne!(level(), Level::Avx512));
        with("baseline,avx2", || assert_eq!(level(), Level::Baseline));
        assert_eq!(TAKEN[Taken::Baseline as usize], "baseline");
        assert_eq!(TAKEN[Taken::Rows as usize], "rows");
        assert!(matches!(force("log,fast"), Err(Error::Value(m)) if m.contains("\"fast\"") && m.contains("wide")));
    }
}
