//! One file of named arrays: how a model lies on disk.
//!
//! ```text
//! 0   magic    8 bytes  "tagwise\n"
//! 8   version  u32      format version, little endian like everything below
//! 12  crc      u32      CRC-32 of every byte of the file but these four
//! 16  header   u64      bytes of the header
//! 24  arrays   u64      number of arrays
//! 32  header            UTF-8 JSON
//!     table             48 bytes an array: name (24 bytes) and type (8 bytes) padded with NUL, offset u64, elements u64
//!     arrays            each at an offset that is a multiple of 64, counted from the start of the file
//! ```
//! A CRC-32 finds every change of up to four neighbouring bytes. The file is mapped, not read; arrays are used in place.
//! It is written beside its destination, flushed, and renamed over it, so that a reader never sees half a model.

use crate::error::{Error, Result};
use memmap2::Mmap;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::ops::{Deref, Range};
use std::path::Path;
use std::sync::Arc;

pub const MAGIC: &[u8; 8] = b"tagwise\n";
pub const VERSION: u32 = 1;
const HEAD: usize = 32;
const ALIGN: usize = 64;
const NAME: usize = 24;
const RECORD: usize = 48;
const NOT_A_MODEL: &str = "not a tagwise model file; expected one written by `tagwise train` or `save`";

/// Element types an array may have: plain numbers for which every bit pattern is a value.
pub trait Plain: Copy + Send + Sync + 'static {
    const DTYPE: &'static str;
}
impl Plain for u8 {
    const DTYPE: &'static str = "u8";
}
impl Plain for u16 {
    const DTYPE: &'static str = "u16";
}
impl Plain for u32 {
    const DTYPE: &'static str = "u32";
}
impl Plain for u64 {
    const DTYPE: &'static str = "u64";
}
impl Plain for f32 {
    const DTYPE: &'static str = "f32";
}
impl Plain for f64 {
    const DTYPE: &'static str = "f64";
}

/// An array that is either owned or a window of a mapped file; reads like a slice, copies itself when written to.
pub enum Buf<T: Plain> {
    Owned(Vec<T>),
    Mapped(Arc<Mmap>, Range<usize>),
}

impl<T: Plain> Buf<T> {
    /// The array as a vector to change; a mapped one is copied first.
    pub fn to_mut(&mut self) -> &mut Vec<T> {
        if let Buf::Mapped(..) = self {
            *self = Buf::Owned(self.to_vec());
        }
        match self {
            Buf::Owned(v) => v,
            Buf::Mapped(..) => unreachable!("copied above"),
        }
    }
}

impl<T: Plain> Deref for Buf<T> {
    type Target = [T];
    #[inline]
    fn deref(&self) -> &[T] {
        match self {
            Buf::Owned(v) => v,
            // SAFETY: `Container::array` made the range only after checking its bounds and alignment for T, T accepts
            // every bit pattern, and the Arc keeps the mapping alive.
            Buf::Mapped(map, range) => unsafe {
                std::slice::from_raw_parts(map.as_ptr().add(range.start).cast::<T>(), range.len() / size_of::<T>())
            },
        }
    }
}

impl<T: Plain> Default for Buf<T> {
    fn default() -> Self {
        Buf::Owned(Vec::new())
    }
}
impl<T: Plain> From<Vec<T>> for Buf<T> {
    fn from(v: Vec<T>) -> Self {
        Buf::Owned(v)
    }
}
impl<T: Plain> Clone for Buf<T> {
    fn clone(&self) -> Self {
        match self {
            Buf::Owned(v) => Buf::Owned(v.clone()),
            Buf::Mapped(m, r) => Buf::Mapped(m.clone(), r.clone()),
        }
    }
}
impl<T: Plain> std::fmt::Debug for Buf<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Buf<{}>[{}]", T::DTYPE, self.len())
    }
}

/// Bytes of a slice of plain numbers.
pub fn as_bytes<T: Plain>(v: &[T]) -> &[u8] {
    // SAFETY: T is a plain number without padding, and u8 has no alignment to keep.
    unsafe { std::slice::from_raw_parts(v.as_ptr().cast::<u8>(), size_of_val(v)) }
}

/// An array to be written: its name, its type and its bytes.
pub struct Entry<'a> {
    pub name: &'a str,
    pub dtype: &'a str,
    pub bytes: &'a [u8],
}

impl<'a> Entry<'a> {
    pub fn new<T: Plain>(name: &'a str, array: &'a [T]) -> Entry<'a> {
        Entry { name, dtype: T::DTYPE, bytes: as_bytes(array) }
    }
}

/// Write header and arrays to `path`, all or nothing.
pub fn write(path: &Path, header: &str, arrays: &[Entry<'_>]) -> Result<()> {
    let io = |e: std::io::Error| Error::Io(format!("{}: cannot write the model: {e}", path.display()));
    let mut rest = Vec::with_capacity(HEAD + header.len() + arrays.iter().map(|a| a.bytes.len() + 128).sum::<usize>());
    rest.extend_from_slice(&(header.len() as u64).to_le_bytes());
    rest.extend_from_slice(&(arrays.len() as u64).to_le_bytes());
    rest.extend_from_slice(header.as_bytes());
    let mut at = HEAD + header.len() + RECORD * arrays.len();
    let mut offsets = Vec::with_capacity(arrays.len());
    for array in arrays {
        if array.name.len() > NAME || array.dtype.len() > RECORD - NAME - 16 {
            return Err(Error::Value(format!("array name {:?} is longer than {NAME} bytes", array.name)));
        }
        let offset = at.next_multiple_of(ALIGN);
        offsets.push(offset);
        at = offset + array.bytes.len();
        let begin = rest.len();
        rest.extend_from_slice(array.name.as_bytes());
        rest.resize(begin + NAME, 0);
        rest.extend_from_slice(array.dtype.as_bytes());
        rest.resize(begin + RECORD - 16, 0);
        rest.extend_from_slice(&(offset as u64).to_le_bytes());
        rest.extend_from_slice(&((array.bytes.len() / element_size(array.dtype)) as u64).to_le_bytes());
    }
    for (array, offset) in arrays.iter().zip(offsets) {
        rest.resize(offset - 16, 0);
        rest.extend_from_slice(array.bytes);
    }
    let mut crc = crc32fast::Hasher::new();
    crc.update(MAGIC);
    crc.update(&VERSION.to_le_bytes());
    crc.update(&rest);
    let directory = match path.parent() {
        Some(p) if !p.as_os_str().is_empty() => p,
        _ => Path::new("."),
    };
    let name = path.file_name().ok_or_else(|| Error::Io(format!("{}: not a file name", path.display())))?;
    let temporary = directory.join(format!(".{}.{}.tmp", name.to_string_lossy(), std::process::id()));
    let attempt = || -> std::io::Result<()> {
        let mut file = File::create(&temporary)?;
        file.write_all(MAGIC)?;
        file.write_all(&VERSION.to_le_bytes())?;
        file.write_all(&crc.clone().finalize().to_le_bytes())?;
        file.write_all(&rest)?;
        file.sync_all()?;
        std::fs::rename(&temporary, path)
    };
    attempt().map_err(|e| {
        let _ = std::fs::remove_file(&temporary);
        io(e)
    })
}

fn element_size(dtype: &str) -> usize {
    match dtype {
        "u8" => 1,
        "u16" => 2,
        "u32" | "f32" => 4,
        _ => 8,
    }
}

/// Where an array lies in the file: byte offset and number of elements.
#[derive(Clone, Debug)]
struct ArrayPlace {
    dtype: String,
    offset: usize,
    length: usize,
}

/// An open, verified model file.
#[derive(Clone)]
pub struct Container {
    map: Arc<Mmap>,
    header: Range<usize>,
    places: BTreeMap<String, ArrayPlace>,
}

impl Container {
    pub fn open(path: &Path) -> Result<Container> {
        let name = path.display();
        let bad = |what: &str| Error::ModelFile(format!("{name}: {what}"));
        let file = File::open(path).map_err(|e| Error::Io(format!("{name}: cannot open the model: {e}")))?;
        let length = file.metadata().map(|m| m.len()).unwrap_or(0);
        if length < HEAD as u64 {
            return Err(bad(NOT_A_MODEL));
        }
        // SAFETY: the mapping is private and read-only; a model file is replaced by rename, never written in place.
        let map = unsafe { Mmap::map(&file) }.map_err(|e| Error::Io(format!("{name}: cannot map the model: {e}")))?;
        if &map[..8] != MAGIC {
            return Err(bad(NOT_A_MODEL));
        }
        let mut crc = crc32fast::Hasher::new();
        crc.update(&map[..12]);
        crc.update(&map[16..]);
        let word = |at: usize| u32::from_le_bytes([map[at], map[at + 1], map[at + 2], map[at + 3]]);
        let long = |at: usize| (u64::from(word(at)) | u64::from(word(at + 4)) << 32) as usize;
        let (stored, found) = (word(12), crc.finalize());
        if stored != found {
            return Err(bad(&format!(
                "the model file is damaged (checksum {found:08x}, expected {stored:08x}); copy it again or train again"
            )));
        }
        if word(8) != VERSION {
            return Err(bad(&format!(
                "model format {} is not supported (this tagwise reads format {VERSION}); save it with a matching version",
                word(8)
            )));
        }
        let (header, arrays) = (long(16), long(24));
        let table = HEAD.checked_add(header).filter(|&at| at <= map.len());
        let table = table.ok_or_else(|| bad("the header is longer than the file"))?;
        let end = arrays.checked_mul(RECORD).and_then(|n| n.checked_add(table)).filter(|&at| at <= map.len());
        let end = end.ok_or_else(|| bad("the table of arrays is longer than the file"))?;
        std::str::from_utf8(&map[HEAD..table]).map_err(|_| bad("the header is not UTF-8"))?;
        let mut places = BTreeMap::new();
        for record in map[table..end].chunks_exact(RECORD) {
            let text = |part: &[u8]| {
                let used = part.iter().position(|&b| b == 0).unwrap_or(part.len());
                String::from_utf8_lossy(&part[..used]).into_owned()
            };
            let number = |part: &[u8]| part.iter().rev().fold(0usize, |n, &b| n << 8 | b as usize);
            let place = ArrayPlace {
                dtype: text(&record[NAME..RECORD - 16]),
                offset: number(&record[RECORD - 16..RECORD - 8]),
                length: number(&record[RECORD - 8..]),
            };
            let bytes = place.length.checked_mul(element_size(&place.dtype));
            let inside = bytes.and_then(|b| b.checked_add(place.offset)).is_some_and(|e| e <= map.len());
            if !inside || !place.offset.is_multiple_of(ALIGN) {
                return Err(bad("an array lies outside the file"));
            }
            places.insert(text(&record[..NAME]), place);
        }
        Ok(Container { map: Arc::new(map), header: HEAD..table, places })
    }

    /// The JSON header.
    pub fn header(&self) -> &str {
        std::str::from_utf8(&self.map[self.header.clone()]).unwrap_or("")
    }

    /// Names and types of the arrays.
    pub fn arrays(&self) -> impl Iterator<Item = (&str, &str)> {
        self.places.iter().map(|(name, place)| (name.as_str(), place.dtype.as_str()))
    }

    /// An array by name, in place.
    pub fn array<T: Plain>(&self, name: &str) -> Result<Buf<T>> {
        match self.places.get(name) {
            Some(p) if p.dtype == T::DTYPE => {
                Ok(Buf::Mapped(self.map.clone(), p.offset..p.offset + p.length * size_of::<T>()))
            }
            Some(p) => Err(Error::ModelFile(format!("array {name:?} holds {}, expected {}", p.dtype, T::DTYPE))),
            None => Err(Error::ModelFile(format!("the model file has no array {name:?}; it is of another kind"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_changed_byte_is_found() {
        let directory = std::env::temp_dir();
        let path = directory.join(format!("tagwise-container-{}.tagwise", std::process::id()));
        let (a, b) = ([1u32, 2, 3], [0.5f32; 7]);
        write(&path, "{\"x\": 1}", &[Entry::new("a", &a), Entry::new("b", &b)]).unwrap();
        let file = Container::open(&path).unwrap();
        assert_eq!(file.header(), "{\"x\": 1}");
        assert_eq!(&*file.array::<u32>("a").unwrap(), &a);
        assert_eq!(&*file.array::<f32>("b").unwrap(), &b);
        assert!(file.array::<f64>("b").is_err());
        let good = std::fs::read(&path).unwrap();
        for at in 0..good.len() {
            let mut changed = good.clone();
            changed[at] ^= 0x10;
            std::fs::write(&path, &changed).unwrap();
            assert!(matches!(Container::open(&path), Err(Error::ModelFile(_))), "byte {at}");
        }
        for cut in 0..good.len() {
            std::fs::write(&path, &good[..cut]).unwrap();
            assert!(matches!(Container::open(&path), Err(Error::ModelFile(_))), "cut {cut}");
        }
        std::fs::remove_file(&path).unwrap();
    }
}
