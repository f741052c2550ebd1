//! Items of sequences in the forms that python-crfsuite accepts: lists and sets of names, and nested dicts of numbers
//! and texts.
//!
//! This module reads the common cases. Everything else (bytes, numbers of other libraries, names with NUL, errors) is
//! left to the Python package: `read` then returns false and keeps nothing.

use crate::foreign::names::Names;
use crate::machine::simd::prefetch;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PySet, PyString, PyTuple};

/// Maximum depth of nested dicts.
const MAX_DEPTH: usize = 64;

/// Append the items of a sequence. Return false, with nothing appended, if the Python package has to read it.
pub fn read(sequence: &Bound<'_, PyAny>, into: &mut Names) -> bool {
    let (items, names) = (into.items.len(), into.ends.len());
    let is_read = match sequence.cast_exact::<PyList>() {
        Ok(list) => {
            read_strings(list, into) || {
                into.truncate_to(items, names);
                list.iter().all(|one| item(&one, into))
            }
        }
        Err(_) => sequence.cast_exact::<PyTuple>().is_ok_and(|tuple| tuple.iter().all(|one| item(&one, into))),
    };
    if !is_read {
        into.truncate_to(items, names);
    }
    is_read
}

/// Append items that are lists of pairs (name, value), with names of type str or bytes. The Python package builds such
/// pairs.
pub fn read_pairs(sequence: &Bound<'_, PyList>, into: &mut Names) -> PyResult<()> {
    for item in sequence.iter() {
        for pair in item.cast::<PyList>()?.iter() {
            let (name, value): (Bound<'_, PyAny>, f64) = pair.extract()?;
            match name.cast::<PyBytes>() {
                Ok(name) => into.bytes.extend_from_slice(name.as_bytes()),
                Err(_) => into.bytes.extend_from_slice(name.cast::<PyString>()?.to_str()?.as_bytes()),
            }
            into.end(value);
        }
        into.end_item();
    }
    Ok(())
}

/// Whether a name is valid: it has no NUL, and none of the characters that represent bytes (U+10FF80 and up).
#[inline(always)]
fn is_valid(text: &[u8]) -> bool {
    !text.iter().any(|&b| b == 0 || b == 0xf4)
}

/// Append items that are lists of str. Objects are prefetched before they are read.
fn read_strings(sequence: &Bound<'_, PyList>, into: &mut Names) -> bool {
    // SAFETY: items within the lists' lengths, borrowed while the GIL is held. No Python code runs meanwhile.
    unsafe {
        let n = ffi::PyList_Size(sequence.as_ptr());
        for t in 0..n {
            let item = ffi::PyList_GetItem(sequence.as_ptr(), t);
            if ffi::PyList_CheckExact(item) == 0 {
                return false;
            }
            if t + 1 < n {
                let next = ffi::PyList_GetItem(sequence.as_ptr(), t + 1);
                if ffi::PyList_CheckExact(next) != 0 {
                    for i in 0..ffi::PyList_Size(next) {
                        let text = ffi::PyList_GetItem(next, i).cast::<u8>();
                        prefetch(text);
                        prefetch(text.wrapping_add(64));
                    }
                }
            }
            for i in 0..ffi::PyList_Size(item) {
                let text = ffi::PyList_GetItem(item, i);
                if ffi::PyUnicode_CheckExact(text) == 0 {
                    return false;
                }
                let mut len = 0;
                let at = ffi::PyUnicode_AsUTF8AndSize(text, &mut len);
                if at.is_null() {
                    ffi::PyErr_Clear();
                    return false;
                }
                let text = std::slice::from_raw_parts(at.cast::<u8>(), len as usize);
                if !is_valid(text) {
                    return false;
                }
                into.bytes.extend_from_slice(text);
                into.end(1.0);
            }
            into.end_item();
        }
    }
    true
}

/// The bytes of a name.
fn name<'a>(text: &'a Bound<'_, PyAny>) -> Option<&'a [u8]> {
    let text = text.cast_exact::<PyString>().ok()?.to_str().ok()?.as_bytes();
    is_valid(text).then_some(text)
}

fn item(one: &Bound<'_, PyAny>, into: &mut Names) -> bool {
    let read = inner(one, into, &mut Vec::new(), 0);
    into.end_item();
    read
}

/// Append the attributes of a dict, list or set under the enclosing names (`prefix`, with its colon).
fn inner(one: &Bound<'_, PyAny>, into: &mut Names, prefix: &mut Vec<u8>, depth: usize) -> bool {
    let push = |into: &mut Names, prefix: &[u8], text: &[u8], value: f64| {
        into.bytes.extend_from_slice(prefix);
        into.bytes.extend_from_slice(text);
        into.end(value);
    };
    let texts = |into: &mut Names, prefix: &[u8], text: &Bound<'_, PyAny>| {
        name(text).map(|text| push(into, prefix, text, 1.0)).is_some()
    };
    if depth > MAX_DEPTH {
        return false;
    }
    if let Ok(list) = one.cast_exact::<PyList>() {
        return list.iter().all(|text| texts(into, prefix, &text));
    }
    if let Ok(set) = one.cast_exact::<PySet>() {
        return set.iter().all(|text| texts(into, prefix, &text));
    }
    let Ok(dict) = one.cast_exact::<PyDict>() else { return false };
    for (key, value) in dict.iter() {
        let Some(key) = name(&key) else { return false };
        let length = prefix.len();
        if let Ok(number) = number(&value) {
            let Some(number) = number else { return false };
            push(into, prefix, key, number);
            continue;
        }
        prefix.extend_from_slice(key);
        prefix.push(b':');
        let is_read = match value.cast_exact::<PyString>() {
            Ok(_) => texts(into, prefix, &value),
            Err(_) => inner(&value, into, prefix, depth + 1),
        };
        prefix.truncate(length);
        if !is_read {
            return false;
        }
    }
    true
}

/// Return the value of a numeric feature: Err if it is not a number, None if it is a number that the Python package
/// has to read.
fn number(value: &Bound<'_, PyAny>) -> Result<Option<f64>, ()> {
    if let Ok(value) = value.cast_exact::<PyFloat>() {
        return Ok(Some(value.value()).filter(|v| v.is_finite()));
    }
    if let Ok(value) = value.cast_exact::<PyBool>() {
        return Ok(Some(f64::from(u8::from(value.is_true()))));
    }
    if value.is_exact_instance_of::<PyInt>() {
        return Ok(value.extract::<i32>().ok().map(f64::from));
    }
    Err(())
}
