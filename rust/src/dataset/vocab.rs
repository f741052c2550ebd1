//! Vocabulary: a hash table from 64-bit keys to attribute ids, with the text of each attribute for display.
//!
//! A key is a hash of the whole text if attributes arrive as strings, or of (template, atoms) if they are extracted
//! natively, so that a lookup builds no string. While the vocabulary grows, each key has a second, independent 64-bit
//! hash, the check. Two attributes with equal keys and different checks are a collision, which is reported as an error.
//! Keys are therefore distinct within one vocabulary.

use crate::error::{Error, Result};
use crate::machine::simd::prefetch;
use crate::machine::system::budget;
use crate::machine::system::container::Buf;
use crate::machine::system::hash::Key;
use std::sync::atomic::{AtomicU64, Ordering};

/// Empty slot of the table, and unknown attribute.
pub const NONE: u32 = u32::MAX;

/// Bytes per attribute while the vocabulary grows: key, check, count and end of the text.
const BYTES_PER_ATTRIBUTE: usize = 28;
/// Keys that are looked up or interned together. Their memory accesses overlap, and their data fit into the L1 cache.
const BLOCK: usize = 64;

/// Maximum length of a run of occupied slots. At most half of a table is occupied, so a run of k slots starts at a
/// given place with probability e^(-0.19 k). Tables of text hashes stay far below, and the cost of a search is bounded
/// by a run.
const MAX_RUN: usize = 1024;

/// Open addressing with linear probing over a power of two of slots, of which at most half are occupied.
#[derive(Clone, Debug, Default)]
pub struct Vocab {
    keys: Buf<u64>,     // [A] key of each attribute, in order of first occurrence
    table: Buf<u32>,    // [slots] id or NONE
    text: Buf<u8>,      // texts, one after the other, UTF-8
    text_end: Buf<u64>, // [A] end of each text
    checks: Vec<u64>,   // [A] while growing, empty once locked
    counts: Vec<u32>,   // [A] occurrences seen while growing, empty once locked
    locked: bool,
    stamp: u64, // equal for two locked vocabularies only if they are equal
}

/// Return a new unique number.
fn stamp() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Return a copy with spare capacity, so that the first push does not copy again.
fn with_spare_capacity<T: Copy>(from: &[T]) -> Vec<T> {
    let mut out = Vec::with_capacity(from.len() + from.len() / 16 + 1024);
    out.extend_from_slice(from);
    out
}

/// Return the length of the longest run of occupied slots of a table, which wraps around at its end.
fn longest_run(table: &[u32]) -> usize {
    let empty = table.iter().position(|&id| id == NONE).unwrap_or(0);
    let (mut longest, mut run) = (0, 0);
    for &id in table[empty..].iter().chain(&table[..empty]) {
        run = if id == NONE { 0 } else { run + 1 };
        longest = longest.max(run);
    }
    longest
}

impl Vocab {
    pub fn new() -> Vocab {
        Vocab { table: vec![NONE; 1024].into(), ..Vocab::default() }
    }

    /// Create a locked vocabulary from the arrays of a file, which are checked against each other. A missing table is
    /// rebuilt from the keys.
    pub fn from_parts(keys: Buf<u64>, table: Option<Buf<u32>>, text: Buf<u8>, text_end: Buf<u64>) -> Result<Vocab> {
        let n = keys.len();
        let inconsistent = |what: &str| {
            Err(Error::ModelFile(format!("the vocabulary is inconsistent: {what}; train and save the model again")))
        };
        if text_end.len() != n {
            return inconsistent("keys and texts differ in number");
        }
        if text_end.windows(2).any(|w| w[0] > w[1]) || text_end.last().copied().unwrap_or(0) != text.len() as u64 {
            return inconsistent("a text lies outside the file");
        }
        let whole = match std::str::from_utf8(&text) {
            Ok(whole) => whole,
            Err(at) => return Err(Error::ModelFile(format!("vocab.text is not UTF-8 at byte {}", at.valid_up_to()))),
        };
        if let Some(at) = text_end.iter().find(|&&end| !whole.is_char_boundary(end as usize)) {
            return Err(Error::ModelFile(format!("vocab.end: a text begins inside a character, at byte {at}")));
        }
        let Some(table) = table else {
            let mut out = Vocab { keys, text, text_end, locked: true, stamp: stamp(), ..Vocab::default() };
            out.rehash(2 * n)?;
            return Ok(out);
        };
        if !table.len().is_power_of_two() || table.len() < 2 * n || table.len() > (8 * n).max(1024) {
            return inconsistent("its table has a wrong size");
        }
        if table.iter().any(|&id| id != NONE && id as usize >= n) {
            return inconsistent("its table names an unknown attribute");
        }
        if table.iter().filter(|&&id| id != NONE).count() != n {
            return inconsistent("its table does not name every attribute once");
        }
        if longest_run(&table) > MAX_RUN {
            return inconsistent("its table has a run of more taken slots than hashes lead to");
        }
        Ok(Vocab { keys, table, text, text_end, locked: true, stamp: stamp(), ..Vocab::default() })
    }

    /// Return the arrays of the vocabulary: keys, table, text, text_end.
    pub fn parts(&self) -> (&[u64], &[u32], &[u8], &[u64]) {
        (&self.keys, &self.table, &self.text, &self.text_end)
    }

    pub fn len(&self) -> usize {
        self.keys.len()
    }

    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    pub fn is_locked(&self) -> bool {
        self.locked
    }

    /// Return the stamp of a locked vocabulary. Lookups in a vocabulary with the same stamp have the same results.
    pub fn stamp(&self) -> Option<u64> {
        self.locked.then_some(self.stamp)
    }

    /// Lock the vocabulary: no attribute can be added, and data that only growth needs is dropped.
    pub fn lock(&mut self) {
        if !self.locked {
            self.stamp = stamp();
        }
        self.locked = true;
        self.checks = Vec::new();
        self.counts = Vec::new();
    }

    /// Return the occurrences of each attribute while the vocabulary grew. Empty if locked.
    pub fn counts(&self) -> &[u32] {
        &self.counts
    }

    /// Count one more occurrence of a known attribute.
    #[inline]
    pub fn count(&mut self, id: u32) {
        if let Some(count) = self.counts.get_mut(id as usize) {
            *count = count.saturating_add(1);
        }
    }

    /// Return the data that only growth needs: check and count of each attribute. Empty if locked.
    pub fn growth(&self) -> (&[u64], &[u32]) {
        (&self.checks, &self.counts)
    }

    /// Unlock a vocabulary restored from its arrays, so that it can grow.
    pub fn unlock(mut self, checks: Vec<u64>, counts: Vec<u32>) -> Result<Vocab> {
        if checks.len() != self.len() || counts.len() != self.len() {
            return Err(Error::Value(format!(
                "{} checks and {} counts for {} attributes; pass the arrays of one vocabulary",
                checks.len(),
                counts.len(),
                self.len()
            )));
        }
        if self.table.len() < 1024 {
            self.rehash(1024)?;
        }
        (self.checks, self.counts, self.locked) = (checks, counts, false);
        Ok(self)
    }

    /// Return a copy that accepts new attributes. Existing attributes keep their ids. `lock` dropped the checks and
    /// counts: the check of an existing attribute (0: unknown) is taken from its next occurrence, and its count is set
    /// to the maximum.
    pub fn growing(&self) -> Result<Vocab> {
        if !self.locked {
            return Ok(self.clone());
        }
        let n = self.len();
        let mut out = Vocab {
            keys: with_spare_capacity(&self.keys).into(),
            table: self.table.clone(),
            text: with_spare_capacity(&self.text).into(),
            text_end: with_spare_capacity(&self.text_end).into(),
            checks: vec![0; n],
            counts: vec![u32::MAX; n],
            locked: false,
            stamp: 0,
        };
        if out.table.len() < 1024 {
            out.rehash(1024)?;
        }
        Ok(out)
    }

    /// Return the id of the attribute with this text, or `NONE`. Searches all texts if the hash of the text is unknown.
    pub fn find(&self, text: &str) -> u32 {
        let id = self.get(Key::lookup(text));
        if id != NONE && self.text(id) == Some(text) {
            return id;
        }
        (0..self.len() as u32).find(|&id| self.text(id) == Some(text)).unwrap_or(NONE)
    }

    /// Return the id of a key, or `NONE`.
    #[inline]
    pub fn get(&self, key: u64) -> u32 {
        let mask = self.table.len().wrapping_sub(1);
        let mut slot = key as usize & mask;
        loop {
            match self.table.get(slot) {
                None | Some(&NONE) => return NONE,
                Some(&id) if self.keys[id as usize] == key => return id,
                _ => slot = (slot + 1) & mask,
            }
        }
    }

    /// Look up many keys. Key 0 means no key. Works in blocks: all slots of a block are prefetched before any is read,
    /// and all keys in these slots before any is compared, so that memory latencies overlap.
    pub fn get_many(&self, keys: &[u64], ids: &mut Vec<u32>) {
        ids.clear();
        ids.reserve(keys.len());
        for keys in keys.chunks(BLOCK) {
            self.prefetch_slots(keys.iter().copied());
            let first = ids.len();
            self.append_slot_ids(keys, ids);
            self.resolve_ids(keys, &mut ids[first..]);
        }
    }

    /// Read the ids in the slots of these keys and prefetch the stored keys of these ids. The slots were prefetched by
    /// `prefetch_slots`.
    pub fn read_slots(&self, keys: &[u64], ids: &mut Vec<u32>) {
        ids.clear();
        self.append_slot_ids(keys, ids);
    }

    fn append_slot_ids(&self, keys: &[u64], ids: &mut Vec<u32>) {
        let mask = self.table.len().wrapping_sub(1);
        ids.extend(keys.iter().map(|&key| {
            let id = self.table.get(key as usize & mask).copied().unwrap_or(NONE);
            prefetch(self.keys.as_ptr().wrapping_add(id as usize));
            id
        }));
    }

    /// Replace the ids found in the slots by the ids of the keys.
    pub fn resolve_ids(&self, keys: &[u64], ids: &mut [u32]) {
        for (id, &key) in ids.iter_mut().zip(keys) {
            if key == 0 {
                *id = NONE;
            } else if *id != NONE && self.keys[*id as usize] != key {
                *id = self.get(key);
            }
        }
    }

    /// Prefetch the slots of these keys before they are looked up or interned.
    pub fn prefetch_slots(&self, keys: impl Iterator<Item = u64>) {
        let mask = self.table.len().wrapping_sub(1);
        keys.for_each(|key| prefetch(self.table.as_ptr().wrapping_add(key as usize & mask)));
    }

    /// Prefetch all data for interning these keys: all slots first, then the stored keys that the slots refer to, or
    /// the text of a new attribute, at the address that `text` returns.
    pub fn prefetch_for_intern<T>(&self, keys: &[Key], text: impl Fn(usize) -> *const T) {
        self.prefetch_slots(keys.iter().map(|key| key.key));
        let mask = self.table.len().wrapping_sub(1);
        for (k, key) in keys.iter().enumerate() {
            let id = self.table.get(key.key as usize & mask).copied().unwrap_or(NONE) as usize;
            if id < self.checks.len() {
                prefetch(self.keys.as_ptr().wrapping_add(id));
                prefetch(self.checks.as_ptr().wrapping_add(id));
                prefetch(self.counts.as_ptr().wrapping_add(id));
            } else {
                prefetch(text(k));
            }
        }
    }

    /// Append the ids of many keys. New ones are added in order, with the text that `text` returns.
    pub fn intern_many<'a>(
        &mut self,
        keys: &[Key],
        ids: &mut Vec<u32>,
        text: impl Fn(usize) -> &'a [u8],
    ) -> Result<()> {
        ids.reserve(keys.len());
        for (part, keys) in keys.chunks(BLOCK).enumerate() {
            let text = |k: usize| text(part * BLOCK + k);
            self.prefetch_for_intern(keys, |k| text(k).as_ptr());
            for (k, &key) in keys.iter().enumerate() {
                ids.push(self.intern(key, |out| out.extend_from_slice(text(k)))?);
            }
        }
        Ok(())
    }

    /// Return the text of an attribute as it first occurred.
    pub fn text(&self, id: u32) -> Option<&str> {
        let id = id as usize;
        let end = *self.text_end.get(id)? as usize;
        let begin = if id == 0 { 0 } else { self.text_end[id - 1] as usize };
        std::str::from_utf8(self.text.get(begin..end)?).ok()
    }

    /// Return the id of an attribute. A new one is added with the text that `text` writes. A locked vocabulary returns
    /// `NONE` for a new one.
    #[inline]
    pub fn intern(&mut self, key: Key, text: impl FnOnce(&mut Vec<u8>)) -> Result<u32> {
        if self.locked {
            return Ok(self.get(key.key));
        }
        let mask = self.table.len() - 1;
        let mut slot = key.key as usize & mask;
        loop {
            let id = self.table[slot];
            if id == NONE {
                break;
            }
            if self.keys[id as usize] == key.key {
                if self.checks[id as usize] == 0 {
                    self.checks[id as usize] = key.check;
                } else if self.checks[id as usize] != key.check {
                    let mut other = Vec::new();
                    text(&mut other);
                    return Err(Error::Value(format!(
                        "attributes {:?} and {:?} have the same 64-bit key; rename one of them",
                        self.text(id).unwrap_or(""),
                        String::from_utf8_lossy(&other)
                    )));
                }
                self.counts[id as usize] = self.counts[id as usize].saturating_add(1);
                return Ok(id);
            }
            slot = (slot + 1) & mask;
        }
        let id = self.keys.len() as u32;
        if id == NONE - 1 {
            return Err(Error::Value(
                "more than 4,294,967,294 attributes; raise min_count or use fewer templates".into(),
            ));
        }
        let bytes = self.text.to_mut();
        text(bytes);
        let end = bytes.len() as u64;
        self.text_end.to_mut().push(end);
        self.keys.to_mut().push(key.key);
        self.checks.push(key.check);
        self.counts.push(1);
        self.table.to_mut()[slot] = id;
        if 2 * self.keys.len() > self.table.len() {
            self.claim_growth()?;
            self.rehash(4 * self.keys.len())?;
        }
        Ok(id)
    }

    /// Check that the growth until the table is full again fits into memory: its slots, and twice the current size of
    /// the rest.
    fn claim_growth(&self) -> Result<()> {
        let n = self.keys.len();
        budget::claim_linear(
            &format!("a vocabulary of {} attributes", 2 * n),
            (2 * n * BYTES_PER_ATTRIBUTE + 2 * self.text.len()).saturating_add(8 * n * size_of::<u32>()),
            "raise min_count, use fewer templates, or encode the corpus as shards (tagwise encode)",
        )
    }

    /// Rebuild the table. Keys of a forged file can be chosen so that they collide in a table of another size.
    fn rehash(&mut self, slots: usize) -> Result<()> {
        let slots = slots.next_power_of_two().max(1024);
        let mut table = vec![NONE; slots];
        for (id, &key) in self.keys.iter().enumerate() {
            let mut slot = key as usize & (slots - 1);
            while table[slot] != NONE {
                slot = (slot + 1) & (slots - 1);
            }
            if slot.wrapping_sub(key as usize) & (slots - 1) > MAX_RUN {
                return Err(Error::ModelFile(format!(
                    "the vocabulary has more than {MAX_RUN} attributes whose keys lead to one place, which hashes do not; \
                     train the model again"
                )));
            }
            table[slot] = id as u32;
        }
        self.table = table.into();
        Ok(())
    }

    /// Keep the attributes for which `keep` holds, in order. Returns a map from old ids to new ids or `NONE`.
    pub fn retain(&mut self, keep: impl Fn(u32) -> bool) -> Result<Vec<u32>> {
        let mut map = vec![NONE; self.len()];
        let mut kept = Vocab { locked: self.locked, stamp: stamp(), ..Vocab::default() };
        let grown = !self.counts.is_empty();
        for (old, new) in map.iter_mut().enumerate() {
            if !keep(old as u32) {
                continue;
            }
            *new = kept.keys.len() as u32;
            let begin = if old == 0 { 0 } else { self.text_end[old - 1] as usize };
            kept.text.to_mut().extend_from_slice(&self.text[begin..self.text_end[old] as usize]);
            let end = kept.text.len() as u64;
            kept.text_end.to_mut().push(end);
            kept.keys.to_mut().push(self.keys[old]);
            if grown {
                kept.checks.push(self.checks[old]);
                kept.counts.push(self.counts[old]);
            }
        }
        kept.rehash(2 * kept.keys.len())?;
        *self = kept;
        Ok(map)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_in_order_of_first_occurrence() {
        let mut v = Vocab::new();
        for i in 0..5000u32 {
            let s = format!("a{}", i % 2500);
            let id = v.intern(Key::of_text(&s), |b| b.extend_from_slice(s.as_bytes())).unwrap();
            assert_eq!(id, i % 2500);
        }
        assert_eq!(v.counts()[7], 2);
        assert_eq!(v.text(7), Some("a7"));
        let map = v.retain(|id| id % 2 == 0).unwrap();
        assert_eq!(map[8], 4);
        assert_eq!(v.get(Key::lookup("a8")), 4);
        assert_eq!(v.get(Key::lookup("a9")), NONE);
    }

    #[test]
    fn stamps_identify_locked_vocabularies() {
        let mut v = Vocab::new();
        v.intern(Key { key: 1, check: 1 }, |b| b.extend_from_slice(b"x")).unwrap();
        assert_eq!(v.stamp(), None);
        let mut other = v.clone();
        v.lock();
        other.lock();
        let stamp = v.stamp();
        v.lock();
        assert!(v.stamp() == stamp && v.clone().stamp() == stamp && other.stamp() != stamp);
        let mut grown = v.growing().unwrap();
        assert_eq!(grown.stamp(), None);
        grown.lock();
        let mut fewer = v.clone();
        fewer.retain(|_| false).unwrap();
        assert!(grown.stamp() != stamp && fewer.stamp() != stamp && fewer.stamp().is_some());
    }

    #[test]
    fn tables_with_long_runs_are_rejected() {
        let parts = |keys: Vec<u64>, slots: usize| {
            let mut table = vec![NONE; slots];
            for (id, &key) in keys.iter().enumerate() {
                let mut slot = key as usize & (slots - 1);
                while table[slot] != NONE {
                    slot = (slot + 1) & (slots - 1);
                }
                table[slot] = id as u32;
            }
            let n = keys.len();
            Vocab::from_parts(
                keys.into(),
                Some(table.into()),
                vec![b'x'; n].into(),
                (1..=n as u64).collect::<Vec<_>>().into(),
            )
        };
        let spread = |by: u64| (0..3000u64).map(move |i| i * by);
        // Neighbours in one run, and a run that wraps around at the end of the table.
        assert!(matches!(parts(spread(1).collect(), 8192), Err(Error::ModelFile(_))));
        assert!(matches!(parts(spread(1).map(|k| k.wrapping_sub(1500)).collect(), 8192), Err(Error::ModelFile(_))));
        assert!(matches!(parts(vec![1; 2000], 4096), Err(Error::ModelFile(_))));
        assert!(parts(spread(2).collect(), 8192).is_ok());
        assert!(matches!(parts(vec![1, 2, 3], 2048), Err(Error::ModelFile(_))));
        // Spread over the table of the file, but colliding in a smaller one.
        let colliding = (0..1100u64).map(|i| ((i % 4) << 12) | (i << 20)).chain((0..1000).map(|i| 500 + 2 * i));
        let colliding = parts(colliding.collect(), 16384).unwrap();
        assert!(colliding.clone().retain(|id| id >= 1100).is_ok());
        assert!(matches!(colliding.clone().retain(|id| id < 1100), Err(Error::ModelFile(_))));
    }

    #[test]
    fn a_colliding_key_is_reported() {
        let mut v = Vocab::new();
        v.intern(Key { key: 1, check: 1 }, |b| b.extend_from_slice(b"x")).unwrap();
        let clash = v.intern(Key { key: 1, check: 2 }, |b| b.extend_from_slice(b"y"));
        assert!(matches!(clash, Err(Error::Value(m)) if m.contains("\"x\"") && m.contains("\"y\"")));
    }
}
