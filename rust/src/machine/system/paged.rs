//! Arrays that can be moved to files, for training sets larger than memory.
//!
//! When memory is short, the system writes the pages of a mapped file out, drops them, and reads them again on access.
//! Computations read the same numbers either way, so results do not change. A file is unlinked as soon as it is open:
//! no other process can write to it, and nothing remains of it. Its bytes are written before they are mapped, so that a
//! full disk is an error and not a SIGBUS.

use crate::error::{Error, Result};
use memmap2::MmapRaw;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

/// Smaller arrays stay in memory: a process may have at most 65,530 maps.
const MIN_FILE_BYTES: usize = 1 << 16;

/// Types that can be stored in files.
///
/// # Safety
/// Values have no padding, and every bit pattern is a value.
pub unsafe trait Flat: Copy + Send + Sync + 'static {}
// SAFETY: numbers.
unsafe impl Flat for u16 {}
// SAFETY: as above.
unsafe impl Flat for u32 {}
// SAFETY: as above.
unsafe impl Flat for usize {}
// SAFETY: as above.
unsafe impl Flat for f32 {}
// SAFETY: two numbers of the same size.
unsafe impl Flat for (u32, u32) {}

/// Vector that can be moved to a file. It is copied back to memory before it grows.
pub enum PagedVec<T: Flat> {
    Memory(Vec<T>),
    File { map: Arc<MmapRaw>, len: usize },
}

impl<T: Flat> PagedVec<T> {
    /// Return the vector in memory, for growth.
    pub fn vec(&mut self) -> &mut Vec<T> {
        if let PagedVec::File { .. } = self {
            *self = PagedVec::Memory(self.to_vec());
        }
        match self {
            PagedVec::Memory(v) => v,
            PagedVec::File { .. } => unreachable!("copied above"),
        }
    }
}

impl<T: Flat> Deref for PagedVec<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        match self {
            PagedVec::Memory(v) => v,
            // SAFETY: `Writer::finish` mapped a file of `len` elements at the start of a page. Only `deref_mut` writes
            // to it.
            PagedVec::File { map, len } => unsafe { std::slice::from_raw_parts(map.as_ptr().cast::<T>(), *len) },
        }
    }
}

impl<T: Flat> DerefMut for PagedVec<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        match self {
            PagedVec::Memory(v) => v,
            // SAFETY: as above. The other owner of the map is `Pages`, which does not access the elements.
            PagedVec::File { map, len } => unsafe {
                std::slice::from_raw_parts_mut(map.as_mut_ptr().cast::<T>(), *len)
            },
        }
    }
}

impl<T: Flat> Default for PagedVec<T> {
    fn default() -> Self {
        PagedVec::Memory(Vec::new())
    }
}

impl<T: Flat> From<Vec<T>> for PagedVec<T> {
    fn from(v: Vec<T>) -> Self {
        PagedVec::Memory(v)
    }
}

fn as_bytes<T: Flat>(values: &[T]) -> &[u8] {
    // SAFETY: T has no padding, and u8 needs no alignment.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast::<u8>(), size_of_val(values)) }
}

/// Array that is written from start to end, to memory or to a file.
pub enum Writer<T: Flat> {
    Memory(Vec<T>),
    File { file: File, folder: PathBuf, len: usize, of: PhantomData<T> },
}

fn write_error(folder: &Path, error: &std::io::Error) -> Error {
    Error::Memory(format!(
        "{}: cannot move training data to a file ({error}); free space there, or allow more memory",
        folder.display()
    ))
}

impl<T: Flat> Writer<T> {
    pub fn new(pages: Option<&Pages>) -> Result<Writer<T>> {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let Some(folder) = pages.map(|pages| pages.folder.clone()) else { return Ok(Writer::Memory(Vec::new())) };
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = folder.join(format!(".tagwise-{}-{number}.pages", std::process::id()));
        let opened = OpenOptions::new().read(true).write(true).create_new(true).open(&path);
        let file = opened.and_then(|file| std::fs::remove_file(&path).map(|()| file));
        let file = file.map_err(|error| write_error(&folder, &error))?;
        Ok(Writer::File { file, folder, len: 0, of: PhantomData })
    }

    /// Reserve capacity for exactly `more` elements in memory.
    pub fn reserve_exact(&mut self, more: usize) {
        if let Writer::Memory(v) = self {
            v.reserve_exact(more);
        }
    }

    pub fn push(&mut self, values: &[T]) -> Result<()> {
        match self {
            Writer::Memory(v) => v.extend_from_slice(values),
            Writer::File { file, folder, len, .. } => {
                file.write_all(as_bytes(values)).map_err(|error| write_error(folder, &error))?;
                *len += values.len();
            }
        }
        Ok(())
    }

    /// Append a value `n` times.
    pub fn fill(&mut self, value: T, n: usize) -> Result<()> {
        if let Writer::Memory(v) = self {
            v.resize(v.len() + n, value);
            return Ok(());
        }
        let chunk = vec![value; n.min(MIN_FILE_BYTES)];
        (0..n).step_by(MIN_FILE_BYTES).try_for_each(|at| self.push(&chunk[..(n - at).min(MIN_FILE_BYTES)]))
    }

    pub fn finish(self, pages: Option<&mut Pages>) -> Result<PagedVec<T>> {
        match self {
            Writer::Memory(v) => Ok(PagedVec::Memory(v)),
            Writer::File { len: 0, .. } => Ok(PagedVec::default()),
            Writer::File { file, folder, len, .. } => {
                let map = MmapRaw::map_raw(&file).map_err(|error| write_error(&folder, &error))?;
                let array = PagedVec::File { map: Arc::new(map), len };
                pages.into_iter().for_each(|pages| pages.add(&array));
                Ok(array)
            }
        }
    }
}

/// The mapped files of one owner.
pub struct Pages {
    folder: PathBuf,
    maps: Vec<Arc<MmapRaw>>,
}

impl Pages {
    pub fn new(folder: PathBuf) -> Pages {
        Pages { folder, maps: Vec::new() }
    }

    /// Move a large array to a file.
    pub fn move_to_file<T: Flat>(&mut self, array: &mut PagedVec<T>) -> Result<()> {
        if matches!(array, PagedVec::Memory(v) if size_of_val(&v[..]) >= MIN_FILE_BYTES) {
            let mut writer = Writer::new(Some(self))?;
            writer.push(array)?;
            *array = writer.finish(Some(self))?;
        }
        Ok(())
    }

    /// Add the file of an array to these files.
    pub fn add<T: Flat>(&mut self, array: &PagedVec<T>) {
        if let PagedVec::File { map, .. } = array {
            self.maps.push(map.clone());
        }
    }

    /// Return the number of bytes in files.
    pub fn bytes(&self) -> usize {
        self.maps.iter().map(|map| map.len()).sum()
    }

    /// Drop the pages from the memory of the process. The files keep their contents.
    pub fn release(&self) {
        #[cfg(unix)]
        for map in &self.maps {
            // SAFETY: the pages are shared with the file, which keeps the data written to them.
            let _ignored = unsafe { map.unchecked_advise(memmap2::UncheckedAdvice::DontNeed) };
        }
    }

    /// Make the system read the pages in the background.
    pub fn prefetch(&self) {
        #[cfg(unix)]
        for map in &self.maps {
            let _ignored = map.advise(memmap2::Advice::WillNeed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Arrays in files keep their contents after release, writes and growth.
    #[test]
    fn arrays_keep_their_contents_in_files() {
        let mut pages = Pages::new(std::env::temp_dir());
        let mut array = PagedVec::from((0..1u32 << 17).collect::<Vec<_>>());
        pages.move_to_file(&mut array).unwrap();
        assert_eq!(pages.bytes(), 4 << 17);
        array[7] = 1;
        pages.release();
        pages.prefetch();
        assert!(array.iter().enumerate().all(|(i, &x)| x == if i == 7 { 1 } else { i as u32 }));
        array.vec().push(9);
        assert_eq!((array.len(), array[7], array[1 << 17]), ((1 << 17) + 1, 1, 9));

        let mut small = PagedVec::from(vec![1u16, 2]);
        pages.move_to_file(&mut small).unwrap();
        assert!(matches!(small, PagedVec::Memory(_)));
        for pages in [None, Some(&mut pages)] {
            let mut writer = Writer::new(pages.as_deref()).unwrap();
            writer.push(&[1.0f32, 2.0]).unwrap();
            writer.fill(3.0, 100_000).unwrap();
            let found = writer.finish(pages).unwrap();
            assert!(found.len() == 100_002 && found[..3] == [1.0, 2.0, 3.0] && found[100_001] == 3.0);
        }
        let missing = Pages::new("/there/is/no/such/folder".into());
        assert!(matches!(Writer::<u32>::new(Some(&missing)), Err(Error::Memory(_))));
    }
}
