//! Labels of sentences that are lists of strings, counted and numbered: what Python would look at one by one.
//!
//! The same label is mostly the same object, so that a few addresses tell nearly all of them. Whatever else there may be (other
//! types, lone surrogates) is left to the package: the answer is None then.

use crate::machine::simd::prefetch;
use crate::machine::system::hash::Key;
use numpy::PyArray1;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};
use rapidhash::fast::RandomState;
use std::collections::HashMap;

/// Addresses that are remembered; a power of two.
const KNOWN: usize = 256;

/// Items between asking for one and reading it.
const SOON: ffi::Py_ssize_t = 16;

/// Numbers of texts, in order of first occurrence.
struct LabelNumbers {
    of: HashMap<u64, u32, RandomState>, // by hash; texts are compared
    texts: Vec<*mut ffi::PyObject>,     // borrowed: the lists that hold them are not changed meanwhile
    known: [(*mut ffi::PyObject, u32); KNOWN],
}

impl LabelNumbers {
    fn new() -> LabelNumbers {
        LabelNumbers { of: HashMap::default(), texts: Vec::new(), known: [(std::ptr::null_mut(), 0); KNOWN] }
    }

    /// The number of a string; a new one where `grows`. None where it is no string of exactly that type, or none that is known, or
    /// where two have the same hash.
    ///
    /// # Safety
    /// An object that is alive while this is; the GIL is held.
    #[inline(always)]
    unsafe fn of(&mut self, object: *mut ffi::PyObject, grows: bool) -> Option<u32> {
        let slot = (object as usize >> 4) % KNOWN;
        if self.known[slot].0 == object {
            return Some(self.known[slot].1);
        }
        let number = self.find(object, grows)?;
        self.known[slot] = (object, number);
        Some(number)
    }

    /// # Safety
    /// As for `of`.
    unsafe fn find(&mut self, object: *mut ffi::PyObject, grows: bool) -> Option<u32> {
        let text = text_of(object)?;
        let new = self.texts.len() as u32;
        let number = match grows {
            true => *self.of.entry(Key::lookup(text)).or_insert(new),
            false => *self.of.get(&Key::lookup(text))?,
        };
        if number == new {
            self.texts.push(object);
        }
        (text_of(self.texts[number as usize]) == Some(text)).then_some(number)
    }
}

/// The text of a string of exactly that type; None for a lone surrogate.
///
/// # Safety
/// An object that is alive as long as the text is used; the GIL is held.
unsafe fn text_of<'a>(object: *mut ffi::PyObject) -> Option<&'a str> {
    if ffi::PyUnicode_CheckExact(object) == 0 {
        return None;
    }
    let mut len = 0;
    let at = ffi::PyUnicode_AsUTF8AndSize(object, &mut len);
    if at.is_null() {
        ffi::PyErr_Clear();
        return None;
    }
    Some(std::str::from_utf8_unchecked(std::slice::from_raw_parts(at.cast(), len as usize)))
}

/// Ask for an object, which lies anywhere: its head, and the text of a short string behind it.
#[inline(always)]
fn ask(object: *const ffi::PyObject) {
    prefetch(object);
    prefetch(object.cast::<u8>().wrapping_add(56));
}

/// `see(object)` for the items of a list or tuple, until it answers None.
///
/// # Safety
/// The GIL is held, and `see` runs no Python code.
#[inline(always)]
unsafe fn each(object: *mut ffi::PyObject, mut see: impl FnMut(*mut ffi::PyObject) -> Option<()>) -> Option<()> {
    if ffi::PyList_CheckExact(object) != 0 {
        let n = ffi::PyList_Size(object);
        (0..n.min(SOON)).for_each(|i| ask(ffi::PyList_GetItem(object, i)));
        (0..n).try_for_each(|i| {
            if i + SOON < n {
                ask(ffi::PyList_GetItem(object, i + SOON));
            }
            see(ffi::PyList_GetItem(object, i))
        })
    } else if ffi::PyTuple_CheckExact(object) != 0 {
        (0..ffi::PyTuple_Size(object)).try_for_each(|i| see(ffi::PyTuple_GetItem(object, i)))
    } else {
        None
    }
}

/// How often each string occurs, in order of first occurrence; None where `sentences` are not lists or tuples of strings.
#[pyfunction]
pub(super) fn count_texts<'py>(sentences: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyDict>>> {
    let py = sentences.py();
    // First of all: to make it may collect garbage, whose finalizers may change the lists.
    let out = PyDict::new(py);
    let (mut numbers, mut counts) = (LabelNumbers::new(), Vec::<u64>::new());
    // SAFETY: the GIL is held; nothing here runs Python code, so that the lists stay as they are.
    let all = unsafe {
        each(sentences.as_ptr(), |sentence| {
            each(sentence, |label| {
                let number = numbers.of(label, true)? as usize;
                counts.resize(counts.len().max(number + 1), 0);
                counts[number] += 1;
                Some(())
            })
        })
    };
    if all.is_none() {
        return Ok(None);
    }
    for (&text, count) in numbers.texts.iter().zip(counts) {
        // SAFETY: a string that the lists still hold.
        out.set_item(unsafe { Borrowed::from_ptr(py, text) }, count)?;
    }
    Ok(Some(out))
}

/// The number of each string among `texts`, all sentences one behind the other; None where `sentences` are not lists or tuples of strings,
/// or where one is not among them.
#[pyfunction]
pub(super) fn text_ids<'py>(
    sentences: &Bound<'py, PyAny>,
    texts: &Bound<'py, PyList>,
) -> PyResult<Option<Bound<'py, PyArray1<u16>>>> {
    let Ok(texts) = texts.extract::<Vec<Bound<'py, PyString>>>() else { return Ok(None) };
    let (mut numbers, mut out) = (LabelNumbers::new(), Vec::new());
    // SAFETY: the GIL is held; nothing here runs Python code; `texts` holds its strings.
    let all = unsafe {
        let listed = texts.iter().enumerate().try_for_each(|(i, text)| {
            (numbers.of(text.as_ptr(), true)? as usize == i && i < usize::from(u16::MAX)).then_some(())
        });
        listed.and_then(|()| {
            each(sentences.as_ptr(), |sentence| {
                each(sentence, |label| {
                    out.push(numbers.of(label, false)? as u16);
                    Some(())
                })
            })
        })
    };
    Ok(all.map(|()| PyArray1::from_vec(sentences.py(), out)))
}
