//! CQDB, the string table of a CRFsuite model: records, 256 hash tables, offsets by id.
//!
//! ```text
//! head 24 B · 256 x (offset, slots) · records (id, length with NUL, bytes) · tables of (hash, offset) · offsets by id
//! ```
//! Offsets count from the first byte of the CQDB. The hash is Bob Jenkins' lookup3 (hashlittle) of the string with its
//! NUL.

use crate::error::{Error, Result};
use crate::machine::simd::prefetch;
use crate::machine::system::stop;

const HEAD: usize = 24;
const FIRST_STRING: usize = HEAD + 2048;
const BYTE_ORDER_MARK: u32 = 0x6244_5371;
/// Maximum length of a run of occupied slots. Half of the slots of a table are occupied, so a run of k slots
/// starts at a given place with probability e^(-0.19 k). A longer run cannot come from a writer that hashes.
const MAX_PROBES: usize = 1024;
/// Maximum length of a string that is hashed before the string is checked.
const MAX_PREHASHED: usize = 4096;

/// Return the number at a byte, which must be inside.
#[inline(always)]
pub fn u32_at(data: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(data[at..at + 4].try_into().unwrap_or([0; 4]))
}

/// Append numbers.
pub fn push(out: &mut Vec<u8>, numbers: &[usize]) {
    numbers.iter().for_each(|&x| out.extend_from_slice(&(x as u32).to_le_bytes()));
}

/// lookup3 of a string with its NUL: blocks of 12 bytes are mixed, and the last 1 to 12 bytes go through the final mix.
#[inline]
pub fn hash(text: &[u8]) -> u32 {
    let start = 0xdead_beef_u32.wrapping_add(text.len() as u32 + 1);
    let (mut a, mut b, mut c) = (start, start, start);
    macro_rules! add {
        ($block:expr) => {
            a = a.wrapping_add(u32_at($block, 0));
            b = b.wrapping_add(u32_at($block, 4));
            c = c.wrapping_add(u32_at($block, 8));
        };
    }
    macro_rules! mix {
        ($x:ident, $y:ident, $z:ident, $k:expr) => {
            $x = $x.wrapping_sub($z) ^ $z.rotate_left($k);
            $z = $z.wrapping_add($y);
        };
    }
    macro_rules! finish {
        ($x:ident, $y:ident, $k:expr) => {
            $x = ($x ^ $y).wrapping_sub($y.rotate_left($k));
        };
    }
    let mut blocks = text.chunks_exact(12);
    for block in &mut blocks {
        add!(block);
        mix!(a, b, c, 4);
        mix!(b, c, a, 6);
        mix!(c, a, b, 8);
        mix!(a, b, c, 16);
        mix!(b, c, a, 19);
        mix!(c, a, b, 4);
    }
    let (rest, mut last) = (blocks.remainder(), [0; 12]);
    last[..rest.len()].copy_from_slice(rest);
    add!(&last);
    finish!(c, b, 14);
    finish!(a, c, 11);
    finish!(b, a, 25);
    finish!(c, b, 16);
    finish!(a, c, 4);
    finish!(b, a, 14);
    finish!(c, b, 24);
    c
}

/// Error for a run of occupied slots that hashing cannot produce.
#[derive(Debug)]
pub struct LongRun;

impl LongRun {
    pub const TEXT: &'static str = "a hash table with a run of more taken slots than hashes lead to";
}

/// CQDB whose header and tables were checked by `open`. Its records are checked there too, or each one when it is used.
#[derive(Debug)]
pub struct Cqdb {
    at: usize,                   // position in the file
    tables: Vec<(usize, usize)>, // [256] position of each table in the file, number of slots
    offsets_at: usize,           // position of the offsets by id in the file
    count: usize,
    size: usize, // in bytes
}

impl Cqdb {
    /// Open the CQDB at a byte of a file, with the ids 0 to `count` - 1. If `whole`, all strings are checked both ways:
    /// every id has a string, and every string is found by its hash and is unique. Otherwise `find` checks each string
    /// that it reads.
    pub fn open(file: &[u8], at: usize, count: usize, what: &str, whole: bool) -> Result<Cqdb> {
        let damaged =
            |found: String| Error::ModelFile(format!("the {what}: {found}; the file is damaged, copy it again"));
        if at + FIRST_STRING > file.len() {
            return Err(damaged("they lie outside the file".into()));
        }
        let head = |i: usize| u32_at(file, at + 4 * i);
        let (size, mark, entries, offsets_at) = (head(1) as usize, head(3), head(4) as usize, head(5) as usize);
        if &file[at..at + 4] != b"CQDB" || mark != BYTE_ORDER_MARK {
            let found = format!("b'{}'", file[at..at + 4].escape_ascii());
            return Err(damaged(format!("expected a CQDB of this byte order, found {found} with the mark {mark:#x}")));
        }
        if size < FIRST_STRING || size > file.len() - at {
            return Err(damaged(format!("a CQDB of {size} bytes, of which the file has {}", file.len() - at)));
        }
        let data = &file[at..at + size];
        let table_of = |t: usize| (u32_at(data, HEAD + 8 * t) as usize, u32_at(data, HEAD + 8 * t + 4) as usize);
        let (mut tables, mut total) = (Vec::with_capacity(256), 0);
        for (begin, slots) in (0..256).map(table_of) {
            total += slots;
            if slots % 2 == 1 || total > size / 8 || (slots > 0 && begin + 8 * slots > size) {
                return Err(damaged("a hash table of odd size, or outside the CQDB".into()));
            }
            tables.push(if slots == 0 { (at, 0) } else { (at + begin, slots) });
        }
        if entries < count || (entries > 0 && offsets_at + 4 * entries > size) {
            return Err(damaged("a number outside those that the header counts".into()));
        }
        let cqdb = Cqdb { at, tables, offsets_at: at + offsets_at, count, size };
        if whole {
            cqdb.check(file, what)?;
        }
        Ok(cqdb)
    }

    /// Check all strings.
    pub fn check(&self, file: &[u8], what: &str) -> Result<()> {
        let damaged =
            |found: String| Error::ModelFile(format!("the {what}: {found}; the file is damaged, copy it again"));
        let mut found = 0;
        for &(begin, slots) in &self.tables {
            let occupied = file[begin..].chunks_exact(8).take(slots).filter(|slot| u32_at(slot, 4) != 0).count();
            if slots > 0 && occupied >= slots {
                return Err(damaged("a hash table without an empty slot".into()));
            }
            found += occupied;
        }
        if found != self.count {
            return Err(damaged(format!("expected {}, as the header says, found {found}", self.count)));
        }
        match self.fault(file) {
            Some(fault) => Err(damaged(fault.into())),
            None => Ok(()),
        }
    }

    /// Return the first fault of the strings, if there is one.
    ///
    /// Tables and strings are scattered over the file. Hashes are therefore computed one block ahead, and their slots
    /// prefetched.
    fn fault(&self, file: &[u8]) -> Option<&'static str> {
        const PREFETCH_BLOCK: usize = 64;
        let (size, data) = (self.size, &file[self.at..self.at + self.size]);
        let (mut total, mut hashes) = (0, [0; PREFETCH_BLOCK]);
        for id in 0..self.count {
            if id % PREFETCH_BLOCK == 0 {
                stop::check();
                for (k, h) in hashes.iter_mut().enumerate().take(self.count - id) {
                    let at = u32_at(file, self.offsets_at + 4 * (id + k)) as usize;
                    let length = data.get(at..at + 8).map_or(0, |head| u32_at(head, 4) as usize);
                    let text = data.get(at + 8..at + 8 + length.saturating_sub(1)).unwrap_or(&[]);
                    *h = if text.len() <= MAX_PREHASHED { hash(text) } else { 0 };
                    self.prefetch_slot(file, *h);
                }
            }
            let at = u32_at(file, self.offsets_at + 4 * id) as usize;
            if at < FIRST_STRING || at + 9 > size {
                return Some("a string outside the CQDB");
            }
            let length = u32_at(data, at + 4) as usize;
            if length < 1 || at + 8 + length > size {
                return Some("a string outside the CQDB");
            }
            if u32_at(data, at) as usize != id {
                return Some("numbers and strings that disagree");
            }
            let text = &data[at + 8..at + 8 + length];
            if text[length - 1] != 0 || text[..length - 1].contains(&0) {
                return Some("a string that does not end where its length says");
            }
            total += length;
            if total > size {
                return Some("strings that overlap");
            }
            let text = &text[..length - 1];
            let known = if text.len() <= MAX_PREHASHED { hashes[id % PREFETCH_BLOCK] } else { hash(text) };
            match self.find(file, text, known) {
                Ok(Some(other)) if other as usize == id => {}
                Ok(Some(_)) => return Some("a string with two numbers"),
                Ok(None) => return Some("a string that its hash does not lead to"),
                Err(LongRun) => return Some(LongRun::TEXT),
            }
        }
        None
    }

    pub fn len(&self) -> usize {
        self.count
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Return the string of an id, which must be below `len`.
    pub fn text<'a>(&self, file: &'a [u8], id: usize) -> &'a [u8] {
        let at = self.at + u32_at(file, self.offsets_at + 4 * id) as usize;
        &file[at + 8..at + 7 + u32_at(file, at + 4) as usize]
    }

    /// Return the table of a hash (position, number of slots) and the first slot to search.
    #[inline(always)]
    fn first_slot(&self, hash: u32) -> (usize, usize, usize) {
        let (begin, slots) = self.tables[(hash & 255) as usize];
        let slot = if slots == 0 { 0 } else { (hash >> 8) as usize % slots };
        (begin, slots, slot)
    }

    /// Prefetch the first slot to search for a hash.
    #[inline(always)]
    pub fn prefetch_slot(&self, file: &[u8], hash: u32) {
        let (begin, _, slot) = self.first_slot(hash);
        prefetch(file.as_ptr().wrapping_add(begin + 8 * slot));
    }

    /// Prefetch the string in the first slot to search for a hash.
    #[inline(always)]
    pub fn prefetch_text(&self, file: &[u8], hash: u32) {
        let (begin, slots, slot) = self.first_slot(hash);
        if slots > 0 {
            prefetch(file.as_ptr().wrapping_add(self.at + u32_at(file, begin + 8 * slot + 4) as usize));
        }
    }

    /// Return the id of a string with this hash.
    #[inline]
    pub fn find(&self, file: &[u8], text: &[u8], hash: u32) -> std::result::Result<Option<u32>, LongRun> {
        let (begin, slots, mut slot) = self.first_slot(hash);
        for _ in 0..slots.min(MAX_PROBES) {
            let place = begin + 8 * slot;
            let at = u32_at(file, place + 4) as usize;
            if at == 0 {
                return Ok(None);
            }
            if u32_at(file, place) == hash {
                let Some(record) = file.get(self.at + at..self.at + at + 9 + text.len()) else { return Ok(None) };
                if record[8 + text.len()] == 0 && &record[8..8 + text.len()] == text {
                    return Ok(Some(u32_at(record, 0)));
                }
            }
            slot = if slot + 1 == slots { 0 } else { slot + 1 };
        }
        if slots > MAX_PROBES {
            Err(LongRun)
        } else {
            Ok(None)
        }
    }
}

/// Return the size in bytes of the CQDB of strings.
pub fn size(strings: &[&[u8]]) -> usize {
    FIRST_STRING + strings.iter().map(|text| text.len() + 9 + 16 + 4).sum::<usize>()
}

/// Append the CQDB of strings, which must be distinct and without NUL, with ids in their order.
///
/// A table of m strings has 2m slots. A string is stored in the first empty slot from (hash >> 8) % 2m on, in the order
/// of writing.
pub fn write(out: &mut Vec<u8>, strings: &[&[u8]]) {
    let m = strings.len();
    let hashes: Vec<u32> = strings.iter().map(|text| hash(text)).collect();
    let mut counts = [0; 256];
    hashes.iter().for_each(|&h| counts[(h & 255) as usize] += 1);
    let mut place = FIRST_STRING;
    let mut places = Vec::with_capacity(m);
    for text in strings {
        places.push(place);
        place += text.len() + 9;
    }
    let offsets_at = place + 16 * m;
    out.extend_from_slice(b"CQDB");
    push(out, &[offsets_at + 4 * m, 0, BYTE_ORDER_MARK as usize, m, if m == 0 { 0 } else { offsets_at }]);
    let (mut begins, mut begin) = ([0; 256], 0);
    for (first, &count) in begins.iter_mut().zip(&counts) {
        *first = begin;
        push(out, &if count == 0 { [0, 0] } else { [place + 8 * begin, 2 * count] });
        begin += 2 * count;
    }
    for (id, text) in strings.iter().enumerate() {
        push(out, &[id, text.len() + 1]);
        out.extend_from_slice(text);
        out.push(0);
    }
    let mut slots = vec![(0, 0); 2 * m];
    for (&h, &place) in hashes.iter().zip(&places) {
        let (first, size) = (begins[(h & 255) as usize], 2 * counts[(h & 255) as usize]);
        let mut slot = (h >> 8) as usize % size;
        while slots[first + slot].1 != 0 {
            slot = if slot + 1 == size { 0 } else { slot + 1 };
        }
        slots[first + slot] = (h as usize, place);
    }
    slots.iter().for_each(|&(h, place)| push(out, &[h, place]));
    push(out, &places);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All slots that a search reads are occupied.
    #[test]
    fn tables_with_long_runs_are_rejected() {
        let names: Vec<Vec<u8>> = (0..40_000 * 256usize)
            .map(|i| format!("{i:x}").into_bytes())
            .filter(|text| hash(text) & 255 == 7)
            .take(3000)
            .collect();
        let strings: Vec<&[u8]> = names.iter().map(Vec::as_slice).collect();
        let mut file = Vec::new();
        write(&mut file, &strings);
        assert!(Cqdb::open(&file, 0, strings.len(), "labels", true).is_ok());
        let (begin, slots) = (u32_at(&file, HEAD + 56) as usize, u32_at(&file, HEAD + 60) as usize);
        let place = u32_at(&file, file.len() - 4).to_le_bytes();
        for slot in 0..slots - 1 {
            let at = begin + 8 * slot + 4;
            if file[at..at + 4] == [0; 4] {
                file[at..at + 4].copy_from_slice(&place);
            }
        }
        let open = Cqdb::open(&file, 0, strings.len(), "labels", false).unwrap();
        assert!(matches!(open.find(&file, b"none", 7), Err(LongRun)));
        let open = Cqdb::open(&file, 0, strings.len(), "labels", true).unwrap_err();
        assert!(open.to_string().contains("expected 3000"));
    }

    /// Hashes computed by the original implementation.
    #[test]
    fn hash_matches_lookup3() {
        let known: [(&[u8], u32); 8] = [
            (b"", 0x8ba9_414b),
            (b"X", 0xa5d8_29b7),
            (b"a", 0x42b1_7671),
            (b"b", 0xd98f_2820),
            (b"O", 0xc877_80e6),
            (b"B-LOC", 0x658f_10e4),
            ("é".as_bytes(), 0x8a4c_e77c),
            (b"word.lower=rainbow", 0xc6c2_7365),
        ];
        known.into_iter().for_each(|(text, expected)| assert_eq!(hash(text), expected, "{text:?}"));
    }
}
