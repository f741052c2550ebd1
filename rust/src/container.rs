//! One file of named arrays: how a model lies on disk.
//!
//! ```text
//! 0   magic     8 bytes  "tagwise\n"
//! 8   version   u32      format version, little endian like everything below
//! 12  crc       u32      CRC-32 of every byte of the file but these four
//! 16  header    u64      length of the header
//! 24  header    UTF-8 JSON: {"meta": ..., "arrays": [{"name", "dtype", "offset", "length"}, ...]}, padded with spaces
//!     arrays    each at a multiple of 64 bytes; `length` counts elements
//! ```
//! A CRC-32 finds every change of up to four neighbouring bytes. The file is mapped, not read; arrays are used in place.
//! It is written beside its destination, flushed, and renamed over it, so that a reader never sees half a model.

use crate::error::{Error, Result};
use memmap2::Mmap;
use std::fs::File;
use std::io::Write;
use std::ops::{Deref, Range};
use std::path::Path;
use std::sync::Arc;

pub const MAGIC: &[u8; 8] = b"tagwise\n";
pub const VERSION: u32 = 1;
const HEAD: usize = 24;
const ALIGN: usize = 64;

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

/// Where an array lies in the file: byte offset and number of elements.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    pub offset: usize,
    pub length: usize,
}

/// Offsets of arrays of these byte lengths behind a header of `header` bytes.
pub fn layout(header: usize, sizes: &[usize]) -> Vec<usize> {
    let mut at = HEAD + header;
    sizes
        .iter()
        .map(|&size| {
            let offset = at.next_multiple_of(ALIGN);
            at = offset + size;
            offset
        })
        .collect()
}

/// Write header and arrays to `path`; the offsets in the header must be those of `layout`.
pub fn write(path: &Path, header: &str, arrays: &[&[u8]]) -> Result<()> {
    let sizes: Vec<usize> = arrays.iter().map(|a| a.len()).collect();
    let mut rest = Vec::with_capacity(HEAD - 16 + header.len() + sizes.iter().sum::<usize>() + ALIGN * arrays.len());
    rest.extend_from_slice(&(header.len() as u64).to_le_bytes());
    rest.extend_from_slice(header.as_bytes());
    for (array, offset) in arrays.iter().zip(layout(header.len(), &sizes)) {
        rest.resize(offset - 16, 0);
        rest.extend_from_slice(array);
    }
    let mut crc = crc32fast::Hasher::new();
    crc.update(MAGIC);
    crc.update(&VERSION.to_le_bytes());
    crc.update(&rest);
    let io = |e: std::io::Error| Error::Io(format!("{}: cannot write the model: {e}", path.display()));
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

/// An open, verified model file.
#[derive(Clone)]
pub struct Container {
    map: Arc<Mmap>,
    header: Range<usize>,
}

impl Container {
    pub fn open(path: &Path) -> Result<Container> {
        let name = path.display();
        let bad = |what: String| Error::ModelFile(format!("{name}: {what}"));
        let file = File::open(path).map_err(|e| Error::Io(format!("{name}: cannot open the model: {e}")))?;
        // SAFETY: the mapping is private and read-only; a model file is replaced by rename, never written in place.
        let map = unsafe { Mmap::map(&file) }.map_err(|e| Error::Io(format!("{name}: cannot map the model: {e}")))?;
        if map.len() < HEAD || &map[..8] != MAGIC {
            return Err(bad("not a tagwise model file; expected one written by `tagwise train` or `save`".into()));
        }
        let word = |at: usize| u32::from_le_bytes([map[at], map[at + 1], map[at + 2], map[at + 3]]);
        let mut crc = crc32fast::Hasher::new();
        crc.update(&map[..12]);
        crc.update(&map[16..]);
        let (stored, found) = (word(12), crc.finalize());
        if stored != found {
            return Err(bad(format!(
                "the model file is damaged (checksum {found:08x}, expected {stored:08x}); copy it again or train again"
            )));
        }
        if word(8) != VERSION {
            return Err(bad(format!(
                "model format {} is not supported (this tagwise reads format {VERSION}); save it with a matching version",
                word(8)
            )));
        }
        let length = u64::from(word(16)) | u64::from(word(20)) << 32;
        let end = usize::try_from(length).ok().and_then(|n| n.checked_add(HEAD)).filter(|&end| end <= map.len());
        let end = end.ok_or_else(|| bad("the header is longer than the file".into()))?;
        std::str::from_utf8(&map[HEAD..end]).map_err(|_| bad("the header is not UTF-8".into()))?;
        Ok(Container { map: Arc::new(map), header: HEAD..end })
    }

    /// The JSON header.
    pub fn header(&self) -> &str {
        std::str::from_utf8(&self.map[self.header.clone()]).unwrap_or("")
    }

    /// The array at a place, checked against the file's bounds and T's alignment.
    pub fn array<T: Plain>(&self, place: Place) -> Result<Buf<T>> {
        let bytes = place.length.checked_mul(size_of::<T>());
        let end = bytes.and_then(|b| place.offset.checked_add(b)).filter(|&e| e <= self.map.len());
        match end {
            Some(end) if place.offset % ALIGN == 0 && place.offset >= self.header.end => {
                Ok(Buf::Mapped(self.map.clone(), place.offset..end))
            }
            _ => Err(Error::ModelFile(format!(
                "an array of the model file lies outside it (offset {}, {} elements of {})",
                place.offset,
                place.length,
                T::DTYPE
            ))),
        }
    }
}
