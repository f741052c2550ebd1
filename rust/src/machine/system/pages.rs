//! Memory in large pages for a file that is read whole, since lookups in it are scattered.

use memmap2::MmapMut;
use std::fs::File;
use std::sync::Mutex;

/// Size of a large page in bytes.
pub const LARGE: usize = 1 << 21;
/// Maximum number of bytes kept for the next file.
const MAX_KEPT: usize = 64 << 20;

/// Memory of the file that was dropped last. The system clears new memory page by page, which takes longer than reading
/// a cached file. A program that opens one model after another pays for this once.
static SPARE: Mutex<Option<MmapMut>> = Mutex::new(None);

/// Bytes of a file in private memory. Later changes of the file have no effect.
pub struct LargePages {
    map: Option<MmapMut>, // None after `drop`
    size: usize,
}

/// Return memory for `size` bytes: the spare memory if it is large enough and at most twice as large, or new memory.
///
/// Never block on the lock: a fork may have left it locked.
fn allocate(size: usize) -> std::io::Result<MmapMut> {
    let fits = |map: &mut MmapMut| map.len() >= size && map.len() / 2 <= size;
    if let Some(map) = SPARE.try_lock().ok().and_then(|mut spare| spare.take_if(fits)) {
        return Ok(map);
    }
    let map = MmapMut::map_anon(size.next_multiple_of(LARGE))?;
    #[cfg(target_os = "linux")]
    let _ignored = map.advise(memmap2::Advice::HugePage);
    Ok(map)
}

impl LargePages {
    /// Read the first `size` bytes of a file.
    pub fn read(file: &File, size: usize) -> std::io::Result<LargePages> {
        let mut pages = LargePages { map: Some(allocate(size)?), size };
        pages.map.as_mut().map_or(Ok(()), |map| fill(file, &mut map[..size]))?;
        Ok(pages)
    }
}

impl AsRef<[u8]> for LargePages {
    fn as_ref(&self) -> &[u8] {
        self.map.as_ref().map_or(&[], |map| &map[..self.size])
    }
}

impl Drop for LargePages {
    fn drop(&mut self) {
        if let (Some(map), Ok(mut spare)) = (self.map.take_if(|map| map.len() <= MAX_KEPT), SPARE.try_lock()) {
            *spare = Some(map);
        }
    }
}

/// Read a file from its start, one large page per task in parallel.
#[cfg(unix)]
fn fill(file: &File, into: &mut [u8]) -> std::io::Result<()> {
    use rayon::prelude::*;
    use std::os::unix::fs::FileExt;
    let read = |(k, part): (usize, &mut [u8])| file.read_exact_at(part, (k * LARGE) as u64);
    into.par_chunks_mut(LARGE).enumerate().try_for_each(read)
}

#[cfg(not(unix))]
fn fill(mut file: &File, into: &mut [u8]) -> std::io::Result<()> {
    std::io::Read::read_exact(&mut file, into)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    /// Reused memory shows nothing of the file it held before, whether that file was longer or shorter.
    #[test]
    fn reused_memory_has_no_traces_of_earlier_files() -> std::io::Result<()> {
        let path = std::env::temp_dir().join(format!("tagwise-pages-{}", std::process::id()));
        for (size, byte) in [(3 * LARGE, 1), (2 * LARGE + 5, 2), (LARGE, 3), (3 * LARGE + 1, 4)] {
            File::create(&path)?.write_all(&vec![byte; size])?;
            let file = File::open(&path)?;
            let (pages, both) = (LargePages::read(&file, size)?, LargePages::read(&file, size)?);
            assert_eq!(pages.as_ref().len(), size);
            assert!(pages.as_ref().iter().chain(both.as_ref()).all(|&b| b == byte));
            assert!(LargePages::read(&file, size + 1).is_err());
        }
        std::fs::remove_file(&path)
    }
}
