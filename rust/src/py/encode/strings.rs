//! Fast path for the most common input: lists of sentences, of tokens, of strings.
//!
//! The strings of a corpus are scattered over the heap, so reading them is bound by memory latency. All loops run in
//! strides over many objects and prefetch the next stride. Only the thread that holds the GIL collects addresses. The
//! others hash and look up, and the first thread helps them if they cannot keep up.
//!
//! References are borrowed from the lists: no Python code runs between the collection of an address and its use, and
//! the GIL is held throughout, so nothing can change them. Reference counting would write to every string.

use crate::dataset::csr::Csr;
use crate::dataset::vocab::Vocab;
use crate::error::Result;
use crate::machine::simd::prefetch;
use crate::machine::system::hash::Key;
use crate::machine::system::threads;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyList;
use std::sync::mpsc::{channel, sync_channel, TrySendError};
use std::sync::Mutex;

/// Number of strings that one thread passes to another at a time.
const BATCH: usize = 8192;
/// Minimum number of sentences for which other threads are started.
const MIN_PARALLEL_SENTENCES: usize = 128;
/// Number of sentences between two checks for signals.
const SENTENCES_PER_CHECK: usize = 4096;
/// Maximum number of threads. With more, the collecting thread is the bottleneck.
const MAX_THREADS: usize = 4;
/// Number of batches in the queue from which the first thread processes one itself.
const QUEUE_LENGTH: usize = 2;

/// UTF-8 text owned by a Python string.
#[derive(Clone, Copy)]
struct Utf8Slice {
    at: *const u8,
    len: usize,
}

// SAFETY: read-only memory that outlives every use, see the module comment.
unsafe impl Send for Utf8Slice {}
// SAFETY: see `Send`.
unsafe impl Sync for Utf8Slice {}

impl Utf8Slice {
    fn as_str(&self) -> &str {
        // SAFETY: from PyUnicode_AsUTF8AndSize, which returns valid UTF-8 only.
        unsafe { std::str::from_utf8_unchecked(std::slice::from_raw_parts(self.at, self.len)) }
    }
}

/// Strings of whole sentences, in order.
#[derive(Default)]
struct Strings {
    texts: Vec<Utf8Slice>,
    ends: Vec<usize>, // end of each token's strings
    keys: Vec<Key>,   // of the texts, if a vocabulary grows
}

impl Strings {
    fn clear(&mut self) {
        self.texts.clear();
        self.ends.clear();
        self.keys.clear();
    }

    /// Hash the texts that are not hashed yet.
    fn hash(&mut self) {
        let new = &self.texts[self.keys.len()..];
        self.keys.extend(new.iter().map(|text| Key::of_text(text.as_str())));
    }

    /// Append the rows of the hashed strings, numbered by a growing vocabulary, and clear the strings.
    fn grow_rows(&mut self, vocab: &mut Vocab, rows: &mut Csr) -> Result<()> {
        let before = rows.ids.len();
        vocab.intern_many(&self.keys, &mut rows.ids, |at| self.texts[at].as_str().as_bytes())?;
        if !rows.values.is_empty() {
            rows.values.resize(rows.ids.len(), 1.0);
        }
        rows.ptr.extend(self.ends.iter().map(|&end| before + end));
        self.clear();
        Ok(())
    }

    /// Append the strings of a listed sentence, and prefetch those of the next one: memory access overlaps with the
    /// work on the current string.
    fn read(&mut self, sentence: &Objects, next: &Objects) -> bool {
        let before = self.texts.len();
        let mut upcoming = next.strings.iter();
        for &text in &sentence.strings {
            if let Some(&text) = upcoming.next() {
                prefetch_string(text);
            }
            // SAFETY: the list holds the object, and the GIL is held.
            let (at, len) = unsafe {
                let mut len = 0;
                let is_string = ffi::PyUnicode_CheckExact(text) != 0;
                (if is_string { ffi::PyUnicode_AsUTF8AndSize(text, &mut len) } else { std::ptr::null() }, len)
            };
            if at.is_null() {
                // Not a string, or a lone surrogate. The slow path reports its position.
                // SAFETY: the GIL is held.
                unsafe { ffi::PyErr_Clear() };
                self.texts.truncate(before);
                return false;
            }
            self.texts.push(Utf8Slice { at: at.cast(), len: len as usize });
        }
        upcoming.for_each(|&text| prefetch_string(text));
        self.ends.extend(sentence.ends.iter().map(|&end| before + end));
        true
    }
}

/// Prefetch the head of a string and the text that follows it.
#[inline(always)]
fn prefetch_string(text: *const ffi::PyObject) {
    prefetch(text);
    prefetch(text.cast::<u8>().wrapping_add(64));
}

/// A sentence's lists and strings, borrowed from it.
#[derive(Default)]
struct Objects {
    lists: Vec<*mut ffi::PyObject>,
    strings: Vec<*mut ffi::PyObject>,
    ends: Vec<usize>,
}

impl Objects {
    /// Collect the objects of a sentence without reading the strings. Return false if its tokens are not lists.
    fn list(&mut self, sentence: &Bound<'_, PyList>) -> bool {
        self.lists.clear();
        self.strings.clear();
        self.ends.clear();
        // SAFETY: items within the lists' lengths, borrowed while the GIL is held.
        unsafe {
            for t in 0..sentence.len() as ffi::Py_ssize_t {
                let token = ffi::PyList_GetItem(sentence.as_ptr(), t);
                prefetch(token);
                self.lists.push(token);
            }
            for &token in &self.lists {
                if ffi::PyList_CheckExact(token) == 0 {
                    return false;
                }
                (0..ffi::PyList_Size(token)).step_by(8).for_each(|i| prefetch(ffi::PyList_GetItem(token, i)));
            }
            for &token in &self.lists {
                self.strings.extend((0..ffi::PyList_Size(token)).map(|i| ffi::PyList_GetItem(token, i)));
                self.ends.push(self.strings.len());
            }
        }
        true
    }
}

/// String lookup and its scratch buffers.
#[derive(Default)]
struct Lookup {
    keys: Vec<u64>,
    ids: Vec<u32>,
}

impl Lookup {
    /// Append the rows of the strings, numbered by a locked vocabulary, and clear the strings.
    fn append_known(&mut self, vocab: &Vocab, strings: &mut Strings, rows: &mut Csr) {
        self.keys.clear();
        self.keys.extend(strings.texts.iter().map(|text| Key::lookup(text.as_str())));
        vocab.get_many(&self.keys, &mut self.ids);
        let mut from = 0;
        for &to in &strings.ends {
            rows.push_ones(&self.ids[from..to]);
            rows.end_row();
            from = to;
        }
        strings.clear();
    }

    /// Return the rows of a batch, numbered by a locked vocabulary.
    fn batch(&mut self, vocab: &Vocab, mut strings: Strings) -> Csr {
        let mut rows = Csr::default();
        rows.ids.reserve(strings.texts.len());
        rows.ptr.reserve(strings.ends.len());
        self.append_known(vocab, &mut strings, &mut rows);
        rows
    }
}

/// Lists the sentences of a corpus, one ahead of the current sentence.
struct ReadAhead<'a, 'py> {
    sentences: &'a Bound<'py, PyList>,
    at: usize,
    current: Objects,
    next: Option<Objects>, // None if the next sentence is not plain, or at the end
}

impl<'a, 'py> ReadAhead<'a, 'py> {
    fn new(sentences: &'a Bound<'py, PyList>, at: usize) -> Self {
        let mut out = ReadAhead { sentences, at, current: Objects::default(), next: None };
        out.next = out.list(Objects::default());
        out
    }

    fn list(&self, mut objects: Objects) -> Option<Objects> {
        if self.at >= self.sentences.len() {
            return None;
        }
        // SAFETY: an item within the list's length, borrowed while the GIL is held.
        let sentence = unsafe {
            let item = ffi::PyList_GetItem(self.sentences.as_ptr(), self.at as ffi::Py_ssize_t);
            Borrowed::from_ptr(self.sentences.py(), item)
        };
        let plain = sentence.cast_exact::<PyList>().is_ok_and(|sentence| objects.list(&sentence));
        plain.then_some(objects)
    }

    /// Read the next sentence. Return its number of tokens, or None if it is not plain or at the end.
    fn read(&mut self, strings: &mut Strings) -> Option<usize> {
        let old = std::mem::replace(&mut self.current, self.next.take()?);
        self.at += 1;
        self.next = self.list(old);
        let none = Objects::default();
        strings.read(&self.current, self.next.as_ref().unwrap_or(&none)).then_some(self.current.ends.len())
    }
}

/// The vocabulary: locked or growing.
pub(super) enum Ids<'a> {
    Locked(&'a Vocab),
    Growing(&'a mut Vocab),
}

/// Read plain sentences from the end of `bounds` to the first that is not plain: rows, and the end of each sentence.
///
/// Signals are checked between pieces, when no object is borrowed, because a handler may change the list.
pub(super) fn plain(
    ids: &mut Ids<'_>,
    sentences: &Bound<'_, PyList>,
    jobs: usize,
    rows: &mut Csr,
    bounds: &mut Vec<usize>,
) -> PyResult<()> {
    loop {
        let before = bounds.len();
        let mut reader = ReadAhead::new(sentences, before - 1);
        let several =
            threads::threads(jobs) >= 2 && sentences.len() - reader.at.min(sentences.len()) >= MIN_PARALLEL_SENTENCES;
        match (&mut *ids, several) {
            (Ids::Locked(vocab), true) => read_locked(vocab, &mut reader, jobs, rows, bounds),
            (Ids::Growing(vocab), true) => read_growing(vocab, &mut reader, rows, bounds)?,
            (ids, false) => read_serially(ids, &mut reader, rows, bounds)?,
        }
        if bounds.len() < before + SENTENCES_PER_CHECK {
            return Ok(());
        }
        sentences.py().check_signals()?;
    }
}

/// Process up to `SENTENCES_PER_CHECK` sentences on this thread.
fn read_serially(
    ids: &mut Ids<'_>,
    reader: &mut ReadAhead<'_, '_>,
    rows: &mut Csr,
    bounds: &mut Vec<usize>,
) -> Result<()> {
    let (mut lookup, mut strings, last) = (Lookup::default(), Strings::default(), bounds.len() + SENTENCES_PER_CHECK);
    while bounds.len() < last && reader.read(&mut strings).is_some() {
        match ids {
            Ids::Locked(vocab) => lookup.append_known(vocab, &mut strings, rows),
            Ids::Growing(vocab) => {
                strings.hash();
                strings.grow_rows(vocab, rows)?;
            }
        }
        bounds.push(rows.rows());
    }
    Ok(())
}

/// Process up to `SENTENCES_PER_CHECK` sentences with a growing vocabulary: this thread collects and hashes, another
/// numbers, in order.
fn read_growing(
    vocab: &mut Vocab,
    reader: &mut ReadAhead<'_, '_>,
    rows: &mut Csr,
    bounds: &mut Vec<usize>,
) -> Result<()> {
    let last = bounds.len() + SENTENCES_PER_CHECK;
    let (sender, receiver) = sync_channel::<Strings>(QUEUE_LENGTH);
    std::thread::scope(|scope| {
        let mut tokens = rows.rows();
        let sender = sender; // closed when this thread is done, even by a panic, so that the other one ends too
        let numbering = scope.spawn(move || receiver.iter().try_for_each(|mut strings| strings.grow_rows(vocab, rows)));
        let mut strings = Strings::default();
        while bounds.len() < last {
            let Some(n) = reader.read(&mut strings) else { break };
            strings.hash();
            tokens += n;
            bounds.push(tokens);
            if strings.texts.len() >= BATCH && sender.send(std::mem::take(&mut strings)).is_err() {
                break;
            }
        }
        let _reported_by_receiver = sender.send(strings);
        drop(sender);
        numbering.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Process up to `SENTENCES_PER_CHECK` sentences with a locked vocabulary.
fn read_locked(vocab: &Vocab, reader: &mut ReadAhead<'_, '_>, jobs: usize, rows: &mut Csr, bounds: &mut Vec<usize>) {
    let last = bounds.len() + SENTENCES_PER_CHECK;
    let mut strings = Strings::default();
    let (sender, receiver) = sync_channel::<(usize, Strings)>(QUEUE_LENGTH);
    let receiver = Mutex::new(receiver);
    std::thread::scope(|scope| {
        let sender = sender; // closed when the scope's work ends, even by a panic, so that the others end too
        let (results, finished) = channel::<(usize, Csr)>();
        for _ in 1..threads::threads(jobs).min(MAX_THREADS) {
            let (receiver, results) = (&receiver, results.clone());
            scope.spawn(move || {
                let mut lookup = Lookup::default();
                loop {
                    let next = receiver.lock().map(|queue| queue.recv());
                    let Ok(Ok((n, strings))) = next else { break };
                    if results.send((n, lookup.batch(vocab, strings))).is_err() {
                        break;
                    }
                }
            });
        }
        drop(results);
        let (mut batches, mut tokens) = (0, rows.rows());
        let mut lookup = Lookup::default();
        let mut parts: Vec<(usize, Csr)> = Vec::new();
        while bounds.len() < last {
            let Some(n) = reader.read(&mut strings) else { break };
            tokens += n;
            bounds.push(tokens);
            if strings.texts.len() >= BATCH {
                match sender.try_send((batches, std::mem::take(&mut strings))) {
                    Ok(()) => {}
                    Err(TrySendError::Full((n, strings)) | TrySendError::Disconnected((n, strings))) => {
                        parts.push((n, lookup.batch(vocab, strings)));
                    }
                }
                batches += 1;
            }
        }
        drop(sender);
        parts.push((batches, lookup.batch(vocab, strings)));
        parts.extend(finished.iter());
        parts.sort_unstable_by_key(|&(n, _)| n);
        rows.ids.reserve(parts.iter().map(|(_, part)| part.ids.len()).sum());
        rows.ptr.reserve(tokens);
        parts.iter().for_each(|(_, part)| rows.append_ones(part));
    });
}
