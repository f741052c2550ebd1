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
//! A CRC-32 finds every change of up to four neighbouring bytes. The file is read once into memory of the process's own,
//! where it is checked and where its arrays are used: what happens to the file afterwards does not matter. It is mapped
//! only where that is asked for. Then nobody may write to it or cut it short while the model lives; whoever does gets other
//! labels, or a SIGBUS, but never an index out of bounds: indices are copied before they are checked (`indices`).
//! Here a file is made in memory (`image`); the package writes it beside its destination, flushes it and renames it over
//! it, so that a reader never sees half a model.

use crate::error::{Error, Result};
use memmap2::Mmap;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
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

/// As many bytes as arrays are aligned to.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Block([u8; ALIGN]);

/// Keeps the bytes where they are.
enum Keeper {
    Read { _blocks: Vec<Block> },
    Mapped { _map: Mmap },
}

/// The bytes of a file: read into memory of our own, or mapped. They lie at a multiple of `ALIGN`.
pub struct Memory {
    at: *const u8,
    length: usize,
    keeper: Keeper,
}

// SAFETY: nobody writes to the bytes, and whoever reads them holds the memory.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    /// All of a file as it is now; one that grew or shrank meanwhile fails its checksum.
    fn read(mut file: &File, length: usize) -> std::io::Result<Memory> {
        let mut blocks: Vec<Block> = Vec::new();
        let count = length.div_ceil(ALIGN);
        blocks.try_reserve_exact(count).map_err(|_| std::io::ErrorKind::OutOfMemory)?;
        blocks.resize(count, Block([0; ALIGN]));
        let at = blocks.as_mut_ptr().cast::<u8>();
        // SAFETY: `count` blocks hold at least `length` bytes, all of them set, and nobody else has them yet.
        file.read_exact(unsafe { std::slice::from_raw_parts_mut(at, length) })?;
        Ok(Memory { at, length, keeper: Keeper::Read { _blocks: blocks } })
    }

    fn map(file: &File) -> std::io::Result<Memory> {
        // SAFETY: private and read-only. Who asks for a map sees to it that nobody writes to the file or cuts it short.
        let map = unsafe { Mmap::map(file) }?;
        Ok(Memory { at: map.as_ptr(), length: map.len(), keeper: Keeper::Mapped { _map: map } })
    }

    fn is_mapped(&self) -> bool {
        matches!(self.keeper, Keeper::Mapped { .. })
    }

    fn bytes(&self) -> &[u8] {
        // SAFETY: `keeper` holds so many bytes there as long as it lives.
        unsafe { std::slice::from_raw_parts(self.at, self.length) }
    }
}

/// An array that is either owned or a window of a file in memory; reads like a slice, copies itself when written to.
pub enum Buf<T: Plain> {
    Owned(Vec<T>),
    Window(Arc<Memory>, Range<usize>),
}

impl<T: Plain> Buf<T> {
    /// The array as a vector to change; a window is copied first.
    pub fn to_mut(&mut self) -> &mut Vec<T> {
        if let Buf::Window(..) = self {
            *self = Buf::Owned(self.to_vec());
        }
        match self {
            Buf::Owned(v) => v,
            Buf::Window(..) => unreachable!("copied above"),
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
            // every bit pattern, and the Arc keeps the memory alive.
            Buf::Window(memory, range) => unsafe {
                std::slice::from_raw_parts(memory.at.add(range.start).cast::<T>(), range.len() / size_of::<T>())
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
            Buf::Window(m, r) => Buf::Window(m.clone(), r.clone()),
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

/// The bytes of a file of header and arrays; whoever asked for them puts them on disk, all or nothing.
pub fn image(header: &str, arrays: &[Entry<'_>]) -> Result<Vec<u8>> {
    let mut out = Vec::with_capacity(HEAD + header.len() + arrays.iter().map(|a| a.bytes.len() + 128).sum::<usize>());
    out.extend_from_slice(MAGIC);
    out.extend_from_slice(&VERSION.to_le_bytes());
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&(header.len() as u64).to_le_bytes());
    out.extend_from_slice(&(arrays.len() as u64).to_le_bytes());
    out.extend_from_slice(header.as_bytes());
    let mut at = HEAD + header.len() + RECORD * arrays.len();
    let mut offsets = Vec::with_capacity(arrays.len());
    for array in arrays {
        if array.name.len() > NAME || array.dtype.len() > RECORD - NAME - 16 {
            return Err(Error::Value(format!("array name {:?} is longer than {NAME} bytes", array.name)));
        }
        let offset = at.next_multiple_of(ALIGN);
        offsets.push(offset);
        at = offset + array.bytes.len();
        let begin = out.len();
        out.extend_from_slice(array.name.as_bytes());
        out.resize(begin + NAME, 0);
        out.extend_from_slice(array.dtype.as_bytes());
        out.resize(begin + RECORD - 16, 0);
        out.extend_from_slice(&(offset as u64).to_le_bytes());
        out.extend_from_slice(&((array.bytes.len() / element_size(array.dtype)) as u64).to_le_bytes());
    }
    for (array, offset) in arrays.iter().zip(offsets) {
        out.resize(offset, 0);
        out.extend_from_slice(array.bytes);
    }
    let mut crc = crc32fast::Hasher::new();
    crc.update(&out[..12]);
    crc.update(&out[16..]);
    out[12..16].copy_from_slice(&crc.finalize().to_le_bytes());
    Ok(out)
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
    memory: Arc<Memory>,
    header: String,
    places: BTreeMap<String, ArrayPlace>,
}

impl Container {
    /// Opens and checks a model file; `mapped`: used where it lies instead of being read.
    pub fn open(path: &Path, mapped: bool) -> Result<Container> {
        let name = path.display();
        let bad = |what: &str| Error::ModelFile(format!("{name}: {what}"));
        let io = |e: std::io::Error| Error::Io(format!("{name}: cannot open the model: {e}"));
        // Asked for before it is opened: opening a pipe waits for its writer.
        if !std::fs::metadata(path).map_err(io)?.is_file() {
            return Err(bad(NOT_A_MODEL));
        }
        let file = File::open(path).map_err(io)?;
        let length = file.metadata().map(|m| m.len()).unwrap_or(0);
        if length < HEAD as u64 {
            return Err(bad(NOT_A_MODEL));
        }
        let memory = match mapped {
            true => Memory::map(&file),
            false => Memory::read(&file, length as usize),
        };
        let memory = memory.map_err(|e| {
            if e.kind() == std::io::ErrorKind::OutOfMemory {
                return Error::Memory(format!("{name}: no memory for its {length} bytes"));
            }
            if e.kind() == std::io::ErrorKind::UnexpectedEof {
                return bad("the file was cut short while it was read; copy it again");
            }
            Error::Io(format!("{name}: cannot read the model: {e}"))
        })?;
        let map = memory.bytes();
        if map.len() < HEAD || &map[..8] != MAGIC {
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
        let header = String::from_utf8(map[HEAD..table].to_vec()).map_err(|_| bad("the header is not UTF-8"))?;
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
        Ok(Container { memory: Arc::new(memory), header, places })
    }

    /// The JSON header.
    pub fn header(&self) -> &str {
        &self.header
    }

    /// Names and types of the arrays.
    pub fn arrays(&self) -> impl Iterator<Item = (&str, &str)> {
        self.places.iter().map(|(name, place)| (name.as_str(), place.dtype.as_str()))
    }

    /// An array that indices are taken from: where the file is mapped it is copied, so that what is checked stays so.
    pub fn indices<T: Plain>(&self, name: &str) -> Result<Buf<T>> {
        let mut found = self.array(name)?;
        if self.memory.is_mapped() {
            found.to_mut();
        }
        Ok(found)
    }

    /// An array by name, in place.
    pub fn array<T: Plain>(&self, name: &str) -> Result<Buf<T>> {
        match self.places.get(name) {
            Some(p) if p.dtype == T::DTYPE => {
                Ok(Buf::Window(self.memory.clone(), p.offset..p.offset + p.length * size_of::<T>()))
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
        let made = image("{\"x\": 1}", &[Entry::new("a", &a), Entry::new("b", &b)]).unwrap();
        std::fs::write(&path, made).unwrap();
        for mapped in [false, true] {
            let file = Container::open(&path, mapped).unwrap();
            assert_eq!(file.header(), "{\"x\": 1}");
            assert_eq!(&*file.array::<u32>("a").unwrap(), &a);
            assert_eq!(&*file.indices::<u32>("a").unwrap(), &a);
            assert_eq!(&*file.array::<f32>("b").unwrap(), &b);
            assert!(file.array::<f64>("b").is_err());
        }
        let good = std::fs::read(&path).unwrap();
        for at in 0..good.len() {
            let mut changed = good.clone();
            changed[at] ^= 0x10;
            std::fs::write(&path, &changed).unwrap();
            assert!(matches!(Container::open(&path, false), Err(Error::ModelFile(_))), "byte {at}");
        }
        for cut in 0..good.len() {
            std::fs::write(&path, &good[..cut]).unwrap();
            assert!(matches!(Container::open(&path, false), Err(Error::ModelFile(_))), "cut {cut}");
        }
        std::fs::remove_file(&path).unwrap();
    }
}
