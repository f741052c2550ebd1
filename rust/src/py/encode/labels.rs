//! Count and number the labels of sentences that are lists of strings, faster than a loop in Python.
//!
//! Equal labels are mostly the same object, so a few cached addresses identify nearly all of them. Everything else
//! (other types, lone surrogates) is left to the Python package: the result is then None.

use crate::machine::simd::prefetch;
use crate::machine::system::hash::Key;
use crate::py::arrays::Array;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};
use rapidhash::fast::RandomState;
use std::collections::HashMap;

/// Number of cached addresses, a power of two.
const CACHE_SIZE: usize = 256;

/// Items between prefetching an object and reading it.
const PREFETCH_DISTANCE: ffi::Py_ssize_t = 16;

/// Numbers of texts, in order of first occurrence.
struct LabelNumbers {
    of: HashMap<u64, u32, RandomState>, // by hash, and texts are compared
    texts: Vec<*mut ffi::PyObject>,     // borrowed: the lists that hold them are not changed meanwhile
    cache: [(*mut ffi::PyObject, u32); CACHE_SIZE],
}

impl LabelNumbers {
    fn new() -> LabelNumbers {
        LabelNumbers { of: HashMap::default(), texts: Vec::new(), cache: [(std::ptr::null_mut(), 0); CACHE_SIZE] }
    }

    /// Return the number of a string, a new one if `may_grow`. Return None if the object is not exactly of type str, if
    /// the string is unknown, or if two strings have the same hash.
    ///
    /// # Safety
    /// The object must be alive while `self` is, and the GIL must be held.
    #[inline(always)]
    unsafe fn of(&mut self, object: *mut ffi::PyObject, may_grow: bool) -> Option<u32> {
        let slot = (object as usize >> 4) % CACHE_SIZE;
        if self.cache[slot].0 == object {
            return Some(self.cache[slot].1);
        }
        let number = self.find(object, may_grow)?;
        self.cache[slot] = (object, number);
        Some(number)
    }

    /// # Safety
    /// See `of`.
    unsafe fn find(&mut self, object: *mut ffi::PyObject, may_grow: bool) -> Option<u32> {
        let text = text_of(object)?;
        let new = self.texts.len() as u32;
        let number = match may_grow {
            true => *self.of.entry(Key::lookup(text)).or_insert(new),
            false => *self.of.get(&Key::lookup(text))?,
        };
        if number == new {
            self.texts.push(object);
        }
        (text_of(self.texts[number as usize]) == Some(text)).then_some(number)
    }
}

/// Text of an object that is exactly of type str. None for other types and for lone surrogates.
///
/// # Safety
/// The object must be alive as long as the text is used, and the GIL must be held.
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

/// Prefetch the head of an object and the text of a short string, which follows the head.
#[inline(always)]
fn prefetch_object(object: *const ffi::PyObject) {
    prefetch(object);
    prefetch(object.cast::<u8>().wrapping_add(56));
}

/// Call `visit(object)` for the items of a list or tuple until it returns None.
///
/// # Safety
/// The GIL must be held, and `visit` must not run Python code.
#[inline(always)]
unsafe fn each(object: *mut ffi::PyObject, mut visit: impl FnMut(*mut ffi::PyObject) -> Option<()>) -> Option<()> {
    if ffi::PyList_CheckExact(object) != 0 {
        let n = ffi::PyList_Size(object);
        (0..n.min(PREFETCH_DISTANCE)).for_each(|i| prefetch_object(ffi::PyList_GetItem(object, i)));
        (0..n).try_for_each(|i| {
            if i + PREFETCH_DISTANCE < n {
                prefetch_object(ffi::PyList_GetItem(object, i + PREFETCH_DISTANCE));
            }
            visit(ffi::PyList_GetItem(object, i))
        })
    } else if ffi::PyTuple_CheckExact(object) != 0 {
        (0..ffi::PyTuple_Size(object)).try_for_each(|i| visit(ffi::PyTuple_GetItem(object, i)))
    } else {
        None
    }
}

/// Count each string, in order of first occurrence. Return None if `sentences` are not lists or tuples of strings.
#[pyfunction]
pub(super) fn count_texts<'py>(sentences: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyDict>>> {
    let py = sentences.py();
    // Create the dict first: the allocation may collect garbage, whose finalizers may change the lists.
    let out = PyDict::new(py);
    let (mut numbers, mut counts) = (LabelNumbers::new(), Vec::<u64>::new());
    // SAFETY: the GIL is held, and nothing here runs Python code, so the lists do not change.
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
        // SAFETY: the lists still hold the string.
        out.set_item(unsafe { Borrowed::from_ptr(py, text) }, count)?;
    }
    Ok(Some(out))
}

/// Return the index in `texts` of each string, all sentences concatenated. Return None if `sentences` are not lists or
/// tuples of strings, or if a string is not in `texts`.
#[pyfunction]
pub(super) fn text_ids<'py>(sentences: &Bound<'py, PyAny>, texts: &Bound<'py, PyList>) -> PyResult<Option<Array<u16>>> {
    let Ok(texts) = texts.extract::<Vec<Bound<'py, PyString>>>() else { return Ok(None) };
    let (mut numbers, mut out) = (LabelNumbers::new(), Vec::new());
    // SAFETY: the GIL is held, nothing here runs Python code, and `texts` holds its strings.
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
    Ok(all.map(|()| Array(out)))
}
