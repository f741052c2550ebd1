//! The fast way in for what most users give: lists of sentences, of tokens, of strings.
//!
//! The strings of a corpus lie scattered over the heap, so reading them is bound by the memory's latency. Everything
//! here goes in strides over many objects, each of which asks for the memory of the next stride, and a second thread
//! hashes and looks up while the first collects addresses.
//!
//! References are the lists' own: no Python code runs between the collecting of an address and its use, and the GIL is
//! held throughout, so nothing can change them; counting them would write to every string.

use crate::dataset::Csr;
use crate::simd::prefetch;
use crate::vocab::{Key, Vocab};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyList;
use std::sync::mpsc::{channel, sync_channel};
use std::sync::Mutex;

/// Strings that one thread hands to another at a time.
const BATCH: usize = 8192;
/// Sentences under which a second thread is not worth its start.
const FEW: usize = 128;
/// Threads beyond which the one that collects is the slowest.
const MOST: usize = 4;

/// UTF-8 of a string that Python keeps.
#[derive(Clone, Copy)]
struct Text {
    at: *const u8,
    len: usize,
}

// SAFETY: read-only memory that outlives every use, see the head of the file.
unsafe impl Send for Text {}
unsafe impl Sync for Text {}

impl Text {
    fn as_str(&self) -> &str {
        // SAFETY: as given by PyUnicode_AsUTF8AndSize, which makes valid UTF-8 only.
        unsafe { std::str::from_utf8_unchecked(std::slice::from_raw_parts(self.at, self.len)) }
    }
}

/// Strings of whole sentences, in order.
#[derive(Default)]
pub(super) struct Strings {
    texts: Vec<Text>,
    ends: Vec<usize>,                 // of each token's strings
    objects: Vec<*mut ffi::PyObject>, // lists of a sentence, then its strings
}

// SAFETY: `objects` is scratch of the collecting thread; what others read are the texts.
unsafe impl Send for Strings {}

impl Strings {
    fn clear(&mut self) {
        self.texts.clear();
        self.ends.clear();
    }

    /// Append a sentence. False, and nothing appended, where it is anything but lists of valid strings.
    pub(super) fn collect(&mut self, sentence: &Bound<'_, PyList>) -> bool {
        let before = (self.texts.len(), self.ends.len());
        let plain = self.try_collect(sentence);
        if !plain {
            self.texts.truncate(before.0);
            self.ends.truncate(before.1);
        }
        plain
    }

    fn try_collect(&mut self, sentence: &Bound<'_, PyList>) -> bool {
        let objects = &mut self.objects;
        let tokens = sentence.len();
        objects.clear();
        // SAFETY: items within the lists' lengths, borrowed while the GIL is held.
        unsafe {
            for t in 0..tokens as ffi::Py_ssize_t {
                let token = ffi::PyList_GetItem(sentence.as_ptr(), t);
                prefetch(token);
                objects.push(token);
            }
            for &token in &*objects {
                if ffi::PyList_CheckExact(token) == 0 {
                    return false;
                }
                (0..ffi::PyList_Size(token)).step_by(8).for_each(|i| prefetch(ffi::PyList_GetItem(token, i)));
            }
            for t in 0..tokens {
                let token = objects[t];
                for i in 0..ffi::PyList_Size(token) {
                    let text = ffi::PyList_GetItem(token, i);
                    prefetch(text);
                    objects.push(text);
                }
                self.ends.push(self.texts.len() + objects.len() - tokens);
            }
            for &text in &objects[tokens..] {
                if ffi::PyUnicode_CheckExact(text) == 0 {
                    return false;
                }
                let mut len = 0;
                let at = ffi::PyUnicode_AsUTF8AndSize(text, &mut len);
                if at.is_null() {
                    ffi::PyErr_Clear(); // a lone surrogate; the slow way says where
                    return false;
                }
                self.texts.push(Text { at: at.cast(), len: len as usize });
            }
        }
        true
    }
}

/// Looks strings up, with its scratch.
#[derive(Default)]
pub(super) struct Lookup {
    keys: Vec<Key>,
    ids: Vec<u32>,
}

impl Lookup {
    /// Rows of the strings by a locked vocabulary; the strings are cleared.
    pub(super) fn known(&mut self, vocab: &Vocab, strings: &mut Strings, rows: &mut Csr) {
        self.keys.clear();
        self.keys.extend(strings.texts.iter().map(|text| Key { key: Key::lookup(text.as_str()), check: 0 }));
        vocab.get_many(&self.keys, &mut self.ids);
        let mut from = 0;
        for &to in &strings.ends {
            rows.push_ones(&self.ids[from..to]);
            rows.end_row();
            from = to;
        }
        strings.clear();
    }

    /// Rows of the strings by a growing vocabulary; the strings are cleared.
    pub(super) fn grown(&mut self, vocab: &mut Vocab, strings: &mut Strings, rows: &mut Csr) -> PyResult<()> {
        self.keys.clear();
        self.keys.extend(strings.texts.iter().map(|text| Key::of_text(text.as_str())));
        vocab.warm(&self.keys);
        let mut from = 0;
        for &to in &strings.ends {
            for at in from..to {
                rows.push(
                    vocab.intern(self.keys[at], |b| b.extend_from_slice(strings.texts[at].as_str().as_bytes()))?,
                    1.0,
                );
            }
            rows.end_row();
            from = to;
        }
        strings.clear();
        Ok(())
    }
}

/// The leading sentences that are plain, with `jobs` threads: rows, and the end of each sentence behind `bounds`.
/// This thread collects, the others look up.
pub(super) fn leading(
    vocab: &Vocab,
    sentences: &Bound<'_, PyList>,
    jobs: usize,
    rows: &mut Csr,
    bounds: &mut Vec<usize>,
) {
    if jobs < 2 || sentences.len() < FEW {
        return;
    }
    let py = sentences.py();
    let (give, take) = sync_channel::<(usize, Strings)>(2 * MOST);
    let take = Mutex::new(take);
    std::thread::scope(|scope| {
        let give = give; // closed when the scope's work ends, also by a panic, so that the others end too
        let (put, get) = channel::<(usize, Csr)>();
        for _ in 1..jobs.min(MOST) {
            let (take, put) = (&take, put.clone());
            scope.spawn(move || {
                let mut lookup = Lookup::default();
                loop {
                    let next = take.lock().map(|queue| queue.recv());
                    let Ok(Ok((n, mut strings))) = next else { break };
                    let mut rows = Csr::default();
                    lookup.known(vocab, &mut strings, &mut rows);
                    if put.send((n, rows)).is_err() {
                        break;
                    }
                }
            });
        }
        drop(put);
        let (mut strings, mut batches, mut tokens) = (Strings::default(), 0, rows.rows());
        for s in 0..sentences.len() {
            // SAFETY: an item within the list's length, borrowed while the GIL is held.
            let sentence =
                unsafe { Borrowed::from_ptr(py, ffi::PyList_GetItem(sentences.as_ptr(), s as ffi::Py_ssize_t)) };
            let Ok(sentence) = sentence.cast_exact::<PyList>() else { break };
            if !strings.collect(&sentence) {
                break;
            }
            tokens += sentence.len();
            bounds.push(tokens);
            if strings.texts.len() >= BATCH {
                let _ = give.send((batches, std::mem::take(&mut strings)));
                batches += 1;
            }
        }
        let _ = give.send((batches, strings));
        drop(give);
        let mut parts: Vec<(usize, Csr)> = get.iter().collect();
        parts.sort_unstable_by_key(|&(n, _)| n);
        parts.iter().for_each(|(_, part)| rows.append_ones(part));
    });
}
