//! One file of named arrays: the format of models, checkpoints and encoded shards.
//!
//! ```text
//! 0   magic    8 bytes  "tagwise\n" for a model, "tagwise:" for other arrays
//! 8   version  u32      format version, little endian like everything below
//! 12  crc      u32      CRC-32 of every byte of the file but these four
//! 16  header   u64      bytes of the header
//! 24  arrays   u64      number of arrays
//! 32  header            UTF-8 JSON
//!     table             48 bytes per array: name (24 bytes) and type (8 bytes) padded with NUL, offset u64, elements u64
//!     arrays            in the order of the table, each at the next multiple of 64. The file ends with the last one
//! ```
//! Arrays neither overlap nor leave gaps, so that copies of all of them take no more memory than the file has bytes. A
//! CRC-32 detects every change of up to four neighbouring bytes.
//!
//! By default the file is read once into private memory, which is verified and holds the arrays. Later changes of
//! the file have no effect. A file is mapped only on request. It must then not be written to or truncated while the
//! model is alive: a change can produce wrong labels or a SIGBUS, but never an index out of bounds, since `indices`
//! copies indices before they are checked.
//!
//! `pieces` returns the bytes of a file. The Python package writes them to a temporary file in the folder of the
//! destination, flushes and renames it, so that a reader never sees a partial file.

use crate::error::{Error, Result};
use crate::machine::system::budget;
use crate::machine::system::stop;
use memmap2::Mmap;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek};
use std::ops::{Deref, Range};
use std::sync::Arc;

/// Kind of a container: its first bytes, and the words used in messages.
pub struct FileKind {
    magic: &'static [u8; 8],
    name: &'static str,
    origin: &'static str,
    remedy: &'static str,
}

/// A model.
pub const MODEL: FileKind = FileKind {
    magic: b"tagwise\n",
    name: "model",
    origin: "`tagwise train` or `save`",
    remedy: "copy it again or train again",
};
/// Arrays that are not a model. The header says what they are.
pub const ARRAYS: FileKind = FileKind {
    magic: b"tagwise:",
    name: "array",
    origin: "this version of tagwise",
    remedy: "copy it again or write it again",
};

pub const VERSION: u32 = 1;
const HEAD: usize = 32;
const ALIGN: usize = 64;
const NAME: usize = 24;
const RECORD: usize = 48;
/// Bytes that are read or checksummed between two checks for a stop request.
const CHUNK: usize = 1 << 22;

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

/// Block of bytes with the alignment of arrays.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct AlignedBlock([u8; ALIGN]);

/// Owner of the bytes.
enum Storage {
    Read { blocks: Vec<AlignedBlock> },
    Mapped { _map: Mmap },
}

/// Bytes of a file, read into private memory or mapped, aligned to `ALIGN`.
pub struct FileBytes {
    at: *const u8,
    length: usize,
    storage: Storage,
}

// SAFETY: the bytes are never written to after reading, and readers hold the memory.
unsafe impl Send for FileBytes {}
// SAFETY: see `Send`.
unsafe impl Sync for FileBytes {}

impl FileBytes {
    /// Return a memory into which nothing has been read yet.
    fn empty() -> FileBytes {
        FileBytes { at: std::ptr::null(), length: 0, storage: Storage::Read { blocks: Vec::new() } }
    }

    fn map(file: &File) -> std::io::Result<FileBytes> {
        // SAFETY: private and read-only. Callers that request a map guarantee that the file is not written to or
        // truncated.
        let map = unsafe { Mmap::map(file) }?;
        Ok(FileBytes { at: map.as_ptr(), length: map.len(), storage: Storage::Mapped { _map: map } })
    }

    /// Continue reading until the first `end` bytes of the file are in memory. Does nothing if the file is mapped.
    fn read_to(&mut self, mut file: &File, end: usize) -> std::io::Result<()> {
        let Storage::Read { blocks } = &mut self.storage else { return Ok(()) };
        let count = end.div_ceil(ALIGN);
        blocks.try_reserve_exact(count.saturating_sub(blocks.len())).map_err(|_| std::io::ErrorKind::OutOfMemory)?;
        self.at = blocks.as_ptr().cast::<u8>();
        while self.length < end {
            stop::check();
            let next = end.min(self.length + CHUNK);
            blocks.resize(next.div_ceil(ALIGN), AlignedBlock([0; ALIGN]));
            let at = blocks.as_mut_ptr().cast::<u8>();
            // SAFETY: the blocks hold at least `next` initialized bytes, and no other reference to them exists yet.
            let bytes = unsafe { std::slice::from_raw_parts_mut(at, next) };
            file.read_exact(&mut bytes[self.length..])?;
            (self.at, self.length) = (at, next);
        }
        Ok(())
    }

    fn is_mapped(&self) -> bool {
        matches!(self.storage, Storage::Mapped { .. })
    }

    fn bytes(&self) -> &[u8] {
        match self.length {
            0 => &[],
            // SAFETY: `storage` owns `length` bytes at this address.
            length => unsafe { std::slice::from_raw_parts(self.at, length) },
        }
    }
}

/// Array that is either owned or a window of a file in memory. Reads like a slice and is copied when written to.
pub enum Buf<T: Plain> {
    Owned(Vec<T>),
    Window(Arc<FileBytes>, Range<usize>),
}

impl<T: Plain> Buf<T> {
    /// Return the array as a mutable vector. A window is copied first.
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
            // SAFETY: `Container::array` creates the range only after checking its bounds and alignment for T, T
            // accepts
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

/// Return the bytes of a slice of plain numbers.
pub fn as_bytes<T: Plain>(v: &[T]) -> &[u8] {
    // SAFETY: T is a plain number without padding, and u8 has alignment 1.
    unsafe { std::slice::from_raw_parts(v.as_ptr().cast::<u8>(), size_of_val(v)) }
}

/// Array to be written: name, type and bytes.
pub struct ArrayEntry<'a> {
    pub name: &'a str,
    pub dtype: &'a str,
    pub bytes: &'a [u8],
}

impl<'a> ArrayEntry<'a> {
    pub fn new<T: Plain>(name: &'a str, array: &'a [T]) -> ArrayEntry<'a> {
        ArrayEntry { name, dtype: T::DTYPE, bytes: as_bytes(array) }
    }
}

/// Return the bytes of a file in pieces: header and table, then the padding and the bytes of each array.
pub fn pieces<'a>(kind: &FileKind, header: &str, arrays: &[ArrayEntry<'a>]) -> Result<Vec<Cow<'a, [u8]>>> {
    let mut head = Vec::with_capacity(HEAD + header.len() + RECORD * arrays.len());
    head.extend_from_slice(kind.magic);
    head.extend_from_slice(&VERSION.to_le_bytes());
    head.extend_from_slice(&[0; 4]);
    head.extend_from_slice(&(header.len() as u64).to_le_bytes());
    head.extend_from_slice(&(arrays.len() as u64).to_le_bytes());
    head.extend_from_slice(header.as_bytes());
    let mut at = HEAD + header.len() + RECORD * arrays.len();
    let mut out = vec![Cow::Borrowed(&[][..])];
    for array in arrays {
        if array.name.len() > NAME || array.dtype.len() > RECORD - NAME - 16 {
            return Err(Error::Value(format!("array name {:?} is longer than {NAME} bytes", array.name)));
        }
        let offset = at.next_multiple_of(ALIGN);
        out.push(Cow::Borrowed(&[0; ALIGN][..offset - at]));
        out.push(Cow::Borrowed(array.bytes));
        at = offset + array.bytes.len();
        let begin = head.len();
        head.extend_from_slice(array.name.as_bytes());
        head.resize(begin + NAME, 0);
        head.extend_from_slice(array.dtype.as_bytes());
        head.resize(begin + RECORD - 16, 0);
        head.extend_from_slice(&(offset as u64).to_le_bytes());
        head.extend_from_slice(&((array.bytes.len() / element_size(array.dtype)) as u64).to_le_bytes());
    }
    let mut crc = crc32fast::Hasher::new();
    crc.update(&head[..12]);
    crc.update(&head[16..]);
    out.iter().for_each(|piece| crc.update(piece));
    head[12..16].copy_from_slice(&crc.finalize().to_le_bytes());
    out[0] = Cow::Owned(head);
    Ok(out)
}

/// Return the checksum stored in the first bytes of a file.
pub fn checksum(head: &[u8]) -> u32 {
    u32::from_le_bytes([head[12], head[13], head[14], head[15]])
}

fn element_size(dtype: &str) -> usize {
    match dtype {
        "u8" => 1,
        "u16" => 2,
        "u32" | "f32" => 4,
        _ => 8,
    }
}

/// Position of an array in the file: byte offset and number of elements.
#[derive(Clone, Debug)]
struct ArrayPlace {
    dtype: String,
    offset: usize,
    length: usize,
}

/// An open, verified file of arrays.
#[derive(Clone)]
pub struct Container {
    memory: Arc<FileBytes>,
    header: String,
    places: BTreeMap<String, ArrayPlace>,
}

/// Parsed header and table of arrays.
struct Preamble {
    header: String,
    places: BTreeMap<String, ArrayPlace>,
    end: usize, // of the last array
}

fn read_u32(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// Read a 64-bit number. Saturates if it is too large for this machine, which is longer than any file.
fn read_u64(bytes: &[u8], at: usize) -> usize {
    let number = u64::from(read_u32(bytes, at)) | u64::from(read_u32(bytes, at + 4)) << 32;
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// Return the ends of the header and of the table, from the first `HEAD` bytes of a file.
fn ends(head: &[u8]) -> Option<(usize, usize)> {
    let table = HEAD.checked_add(read_u64(head, 16))?;
    Some((table, read_u64(head, 24).checked_mul(RECORD)?.checked_add(table)?))
}

impl Preamble {
    /// Parse the header and the table of a file. The error says what is wrong with them.
    fn parse(bytes: &[u8], table: usize, end: usize) -> std::result::Result<Preamble, String> {
        let header = String::from_utf8(bytes[HEAD..table].to_vec()).map_err(|_| "the header is not UTF-8")?;
        let (mut places, mut at) = (BTreeMap::new(), end);
        for record in bytes[table..end].chunks_exact(RECORD) {
            let text = |part: &[u8]| {
                let used = part.iter().position(|&b| b == 0).unwrap_or(part.len());
                String::from_utf8_lossy(&part[..used]).into_owned()
            };
            let (name, dtype) = (text(&record[..NAME]), text(&record[NAME..RECORD - 16]));
            let place =
                ArrayPlace { offset: read_u64(record, RECORD - 16), length: read_u64(record, RECORD - 8), dtype };
            if Some(place.offset) != at.checked_next_multiple_of(ALIGN) {
                return Err(format!("array {name:?} is not where the one before it ends"));
            }
            let bytes = place.length.checked_mul(element_size(&place.dtype));
            at = bytes.and_then(|b| b.checked_add(place.offset)).ok_or("an array lies outside the file")?;
            if places.contains_key(&name) {
                return Err(format!("two arrays have the same name {name:?}"));
            }
            places.insert(name, place);
        }
        Ok(Preamble { header, places, end: at })
    }
}

impl Container {
    /// Open a container of a kind from an open file. `mapped`: map the file instead of reading it. `name` is used in
    /// messages only: all bytes come from the open file, even if the path now names another one.
    ///
    /// The first bytes are read first, then header and table, then the arrays. A file of another version, of a size
    /// that contradicts its table, or beyond the memory budget is rejected before it is read in full.
    pub fn of_file(file: &File, name: &str, kind: &FileKind, mapped: bool) -> Result<Container> {
        let what = kind.name;
        let bad = |why: &str| Error::ModelFile(format!("{name}: {why}"));
        let damaged = |why: &str| bad(&format!("{why}; the {what} file is damaged, {}", kind.remedy));
        let other = || bad(&format!("not a tagwise {what} file; expected one written by {}", kind.origin));
        let io = |e: std::io::Error| {
            if e.kind() == std::io::ErrorKind::OutOfMemory {
                Error::Memory(format!("{name}: the system has no memory for its bytes"))
            } else if e.kind() == std::io::ErrorKind::UnexpectedEof {
                bad("the file was cut short while it was read; copy it again")
            } else {
                bad(&format!("cannot read the {what}: {e}"))
            }
        };
        let length = usize::try_from(file.metadata().map_err(io)?.len()).unwrap_or(usize::MAX);
        if length < HEAD {
            return Err(other());
        }
        let mut memory = if mapped { FileBytes::map(file).map_err(io)? } else { FileBytes::empty() };
        (&*file).rewind().map_err(io)?;
        memory.read_to(file, HEAD).map_err(io)?;
        let head = memory.bytes();
        if head.len() < HEAD || &head[..8] != kind.magic {
            return Err(other());
        }
        if read_u32(head, 8) != VERSION {
            return Err(bad(&format!(
                "{what} format {} is not supported (this tagwise reads format {VERSION}); save it with a matching version",
                read_u32(head, 8)
            )));
        }
        let inside = ends(head).filter(|&(_, end)| end <= length);
        let (table, end) = inside.ok_or_else(|| damaged("header and table of arrays are longer than the file"))?;
        let remedy = "check that it is the model that you want; if it is, load it with mmap=True";
        let claim = |part: &str, bytes: usize| match mapped {
            true => Ok(()),
            false => budget::claim(&format!("{name}: {part}"), bytes, remedy),
        };
        claim(&format!("the header of the {what}"), end)?;
        memory.read_to(file, end).map_err(io)?;
        let preamble = memory.bytes().get(..end).ok_or_else(|| io(std::io::ErrorKind::UnexpectedEof.into()))?;
        let preamble = Preamble::parse(preamble, table, end).map_err(|why| damaged(&why))?;
        if preamble.end > length {
            return Err(damaged("an array lies outside the file"));
        }
        if preamble.end < length {
            return Err(damaged(&format!(
                "{length} bytes: the file is longer than its arrays, which end at {}",
                preamble.end
            )));
        }
        claim(&format!("the {what}"), length)?;
        memory.read_to(file, length).map_err(io)?;
        let (bytes, mut crc) = (memory.bytes(), crc32fast::Hasher::new());
        crc.update(&bytes[..12]);
        bytes[16..].chunks(CHUNK).for_each(|piece| {
            stop::check();
            crc.update(piece);
        });
        let (stored, found) = (read_u32(bytes, 12), crc.finalize());
        if stored != found {
            return Err(bad(&format!(
                "the {what} file is damaged (checksum {found:08x}, expected {stored:08x}); {}",
                kind.remedy
            )));
        }
        Ok(Container { memory: Arc::new(memory), header: preamble.header, places: preamble.places })
    }

    /// Return the checksum stored in the file.
    pub fn checksum(&self) -> u32 {
        checksum(self.memory.bytes())
    }

    /// Return the JSON header.
    pub fn header(&self) -> &str {
        &self.header
    }

    /// Iterate over name, type and number of elements of the arrays.
    pub fn arrays(&self) -> impl Iterator<Item = (&str, &str, usize)> {
        self.places.iter().map(|(name, place)| (name.as_str(), place.dtype.as_str(), place.length))
    }

    /// Return an array of indices. If the file is mapped, the array is copied, so that checked indices cannot change.
    pub fn indices<T: Plain>(&self, name: &str) -> Result<Buf<T>> {
        let mut found = self.array(name)?;
        if self.memory.is_mapped() {
            found.to_mut();
        }
        Ok(found)
    }

    /// Return an array by name, without a copy.
    pub fn array<T: Plain>(&self, name: &str) -> Result<Buf<T>> {
        match self.places.get(name) {
            Some(p) if p.dtype == T::DTYPE => {
                Ok(Buf::Window(self.memory.clone(), p.offset..p.offset + p.length * size_of::<T>()))
            }
            Some(p) => Err(Error::ModelFile(format!("array {name:?} holds {}, expected {}", p.dtype, T::DTYPE))),
            None => Err(Error::ModelFile(format!("the file has no array {name:?}; it is of another kind"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn open(path: &Path, kind: &FileKind, mapped: bool) -> Result<Container> {
        Container::of_file(&File::open(path).unwrap(), "a file", kind, mapped)
    }

    #[test]
    fn every_changed_or_missing_byte_is_detected() {
        let directory = std::env::temp_dir();
        let path = directory.join(format!("tagwise-container-{}.tagwise", std::process::id()));
        let (a, b) = ([1u32, 2, 3], [0.5f32; 7]);
        let bytes = pieces(&MODEL, "{\"x\": 1}", &[ArrayEntry::new("a", &a), ArrayEntry::new("b", &b)]).unwrap();
        std::fs::write(&path, bytes.concat()).unwrap();
        assert!(matches!(open(&path, &ARRAYS, false), Err(Error::ModelFile(_))));
        for mapped in [false, true] {
            let file = open(&path, &MODEL, mapped).unwrap();
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
            assert!(matches!(open(&path, &MODEL, false), Err(Error::ModelFile(_))), "byte {at}");
        }
        for cut in 0..good.len() {
            std::fs::write(&path, &good[..cut]).unwrap();
            assert!(matches!(open(&path, &MODEL, false), Err(Error::ModelFile(_))), "cut {cut}");
        }
        std::fs::remove_file(&path).unwrap();
    }

    /// Copies of arrays that share bytes could take more memory than the file has bytes.
    #[test]
    fn overlaps_and_gaps_are_rejected() {
        let path = std::env::temp_dir().join(format!("tagwise-overlap-{}.tagwise", std::process::id()));
        let (a, b) = ([1u32; 16], [2u32; 16]);
        let good = pieces(&ARRAYS, "{}", &[ArrayEntry::new("a", &a), ArrayEntry::new("b", &b)]).unwrap().concat();
        let assert_rejected = |change: &dyn Fn(&mut Vec<u8>), why: &str| {
            let mut bytes = good.clone();
            change(&mut bytes);
            let mut crc = crc32fast::Hasher::new();
            crc.update(&bytes[..12]);
            crc.update(&bytes[16..]);
            bytes[12..16].copy_from_slice(&crc.finalize().to_le_bytes());
            std::fs::write(&path, &bytes).unwrap();
            match open(&path, &ARRAYS, false) {
                Err(Error::ModelFile(message)) => assert!(message.contains(why), "{message}"),
                _ => panic!("not refused: {why}"),
            }
        };
        let record = |k: usize| HEAD + 2 + RECORD * k;
        let first = good[record(0) + RECORD - 16..record(0) + RECORD - 8].to_vec();
        assert_rejected(
            &|bytes| bytes[record(1) + RECORD - 16..record(1) + RECORD - 8].copy_from_slice(&first),
            "is not where",
        );
        assert_rejected(&|bytes| bytes.extend_from_slice(&[0; 64]), "longer than its arrays");
        assert_rejected(&|bytes| bytes[record(1)] = b'a', "the same name");
        assert_rejected(&|bytes| bytes[record(1) + RECORD - 8] = 17, "outside the file");
        std::fs::remove_file(&path).unwrap();
    }
}
