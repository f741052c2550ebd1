//! Memory that lies in files: while a `Paged` is open, large blocks are mapped from files without a name instead of taken
//! from the heap, so that the system can write them out and drop them where memory is short, as it does with files that it
//! has read. It is the same memory to whoever computes with it, so no result changes.
//!
//! The allocator of the core asks here. A block that is freed is looked for among those in files, if there are any; nobody
//! else pays more than a comparison. The file has no name as soon as it is open, so that nobody else writes to it and
//! nothing is left of it. Its bytes are written before they are mapped: a full disk is an answer then and no SIGBUS later,
//! and the block comes from the heap.

use memmap2::MmapMut;
use std::alloc::{GlobalAlloc, Layout, System};
use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Smaller blocks stay on the heap: one in a file takes several calls of the system, and a map of which it has 65,530 for a
/// process. What a shard of 200,000 tokens has in smaller ones is some hundred kilobytes.
const LARGE: usize = 1 << 16;
/// What a map begins at a multiple of, on every machine.
const PAGE: usize = 4096;

/// The number of the `Paged` that is open, 0 for none.
static OPEN: AtomicUsize = AtomicUsize::new(0);
/// Blocks that lie in files now.
static COUNT: AtomicUsize = AtomicUsize::new(0);
/// Numbers of owners, and of files, that were given out.
static NUMBERS: AtomicUsize = AtomicUsize::new(0);
static STATE: Mutex<State> = Mutex::new(State { folder: None, blocks: BTreeMap::new() });

struct State {
    folder: Option<PathBuf>,
    blocks: BTreeMap<usize, Block>, // by address
}

struct Block {
    map: MmapMut,
    owner: usize,
}

fn state() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether large blocks lie in files now.
pub fn is_open() -> bool {
    OPEN.load(Relaxed) != 0
}

/// The allocator of the core: the system's, and files while somebody asks for them.
pub struct Allocator;

/// A block in a file; None where there is no room, or nobody has a `Paged` open.
fn mapped(layout: Layout) -> Option<*mut u8> {
    let owner = OPEN.load(Relaxed);
    if owner == 0 || layout.size() < LARGE || layout.align() > PAGE {
        return None;
    }
    let mut state = state();
    let map = file(state.folder.as_deref()?, layout.size()).ok()?;
    let at = map.as_ptr().cast_mut();
    COUNT.fetch_add(1, Relaxed);
    state.blocks.insert(at as usize, Block { map, owner });
    Some(at)
}

/// So many zeros in a file without a name.
fn file(folder: &Path, size: usize) -> std::io::Result<MmapMut> {
    let name = format!(".tagwise-{}-{}.pages", std::process::id(), NUMBERS.fetch_add(1, Relaxed));
    let path = folder.join(name);
    let mut file = OpenOptions::new().read(true).write(true).create_new(true).open(&path)?;
    std::fs::remove_file(&path)?;
    static ZEROS: [u8; 1 << 16] = [0; 1 << 16];
    let mut left = size;
    while left > 0 {
        left -= file.write(&ZEROS[..left.min(ZEROS.len())])?;
    }
    // SAFETY: the file has no name and this process alone has it open: nobody else writes to it or cuts it short.
    unsafe { MmapMut::map_mut(&file) }
}

/// The block that begins here, where it lies in a file.
fn take(at: *mut u8, size: usize) -> Option<Block> {
    if size < LARGE || COUNT.load(Relaxed) == 0 {
        return None;
    }
    let found = state().blocks.remove(&(at as usize));
    found.inspect(|_| {
        COUNT.fetch_sub(1, Relaxed);
    })
}

// SAFETY: a block comes from the system's allocator or is a map of its own that is at least as large, begins at a page and
// lives until it is freed; `take` tells which of them it is, since addresses of live blocks are distinct.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        mapped(layout).unwrap_or_else(|| System.alloc(layout))
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        mapped(layout).unwrap_or_else(|| System.alloc_zeroed(layout))
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        match take(at, layout.size()) {
            Some(block) => drop(block),
            None => System.dealloc(at, layout),
        }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let on_heap = layout.size() < LARGE || COUNT.load(Relaxed) == 0;
        if on_heap && (size < LARGE || OPEN.load(Relaxed) == 0) {
            return System.realloc(at, layout, size);
        }
        let new = self.alloc(Layout::from_size_align_unchecked(size, layout.align()));
        if !new.is_null() {
            std::ptr::copy_nonoverlapping(at, new, size.min(layout.size()));
            self.dealloc(at, layout);
        }
        new
    }
}

/// Whose blocks are in files.
pub struct Paged {
    number: usize,
    folder: PathBuf,
}

impl Paged {
    pub fn new(folder: PathBuf) -> Paged {
        Paged { number: NUMBERS.fetch_add(1, Relaxed) + 1, folder }
    }

    /// Large blocks lie in files from now on, whichever thread asks for them; false where another one is open.
    pub fn open(&self) -> bool {
        let mut state = state();
        let free = OPEN.load(Relaxed) == 0;
        if free {
            state.folder = Some(self.folder.clone());
            OPEN.store(self.number, Relaxed);
        }
        free
    }

    /// Blocks come from the heap again.
    pub fn close(&self) {
        if OPEN.load(Relaxed) == self.number {
            OPEN.store(0, Relaxed);
        }
    }

    /// Bytes in files.
    pub fn bytes(&self) -> usize {
        state().blocks.values().filter(|block| block.owner == self.number).map(|block| block.map.len()).sum()
    }

    /// Let the system have the pages back; what they hold stays in the files, and comes from there when it is read again.
    pub fn release(&self) {
        #[cfg(unix)]
        for block in state().blocks.values().filter(|block| block.owner == self.number) {
            // SAFETY: the pages are shared with the file, which keeps what was written to them.
            let _a_hint = unsafe { block.map.unchecked_advise(memmap2::UncheckedAdvice::DontNeed) };
        }
    }

    /// Ask the system for the pages, which will be read soon.
    pub fn ahead(&self) {
        #[cfg(unix)]
        for block in state().blocks.values().filter(|block| block.owner == self.number) {
            let _a_hint = block.map.advise(memmap2::Advice::WillNeed);
        }
    }
}

impl Drop for Paged {
    fn drop(&mut self) {
        self.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Blocks in files hold what is written to them, through growth, release and the end of their owner; where no file can be
    /// made the heap is there. One test, since one can be open at a time; blocks of other tests may be among those in files.
    #[test]
    fn arrays_in_files_are_arrays() {
        let paged = Paged::new(std::env::temp_dir());
        assert!(paged.open() && !Paged::new(std::env::temp_dir()).open());
        let mut numbers: Vec<u64> = (0..1 << 18).collect();
        let before: Vec<u64> = vec![7; 1 << 17];
        numbers.extend(&before);
        paged.close();
        let most = paged.bytes();
        assert!(most >= 3 << 20);
        paged.release();
        paged.ahead();
        numbers.extend(0..1 << 18); // grows on, on the heap
        drop(before);
        let expected = (0..1 << 18).chain(std::iter::repeat_n(7, 1 << 17)).chain(0..1 << 18);
        assert!(numbers.iter().copied().eq(expected));
        assert!(paged.bytes() <= most - (3 << 20));
        numbers.truncate(3);
        numbers.shrink_to_fit();
        assert_eq!(numbers, [0, 1, 2]);

        let nowhere = Paged::new("/there/is/no/such/folder".into());
        assert!(nowhere.open());
        let zeros = vec![0u8; 1 << 21];
        assert!(nowhere.bytes() == 0 && zeros.iter().all(|&x| x == 0));
    }
}
