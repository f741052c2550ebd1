//! Words of a tag dictionary and the number of each one's label set, looked up for whole corpora.

use crate::machine::system::hash::{hash, Key};
use crate::py::arrays::Array;
use crate::py::common::guard;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString};

/// Words and a number for each: a hash table with open addressing, at most half full.
#[pyclass(name = "WordSets", module = "tagwise._core", frozen)]
pub struct PyWordSets {
    table: Vec<(Key, u32)>, // 0 for an empty slot
}

#[pymethods]
impl PyWordSets {
    /// `words`: their UTF-8, with lone surrogates passed through. `of`: the number of each, 1 or more.
    #[new]
    fn new(words: Vec<Bound<'_, PyBytes>>, of: Vec<u32>) -> PyResult<Self> {
        guard(|| {
            let size = (2 * words.len() + 1).next_power_of_two();
            let mut table = vec![(Key { key: 0, check: 0 }, 0); size];
            for (word, &set) in words.iter().zip(&of) {
                let key = hash(word.as_bytes());
                let mut at = key.key as usize & (size - 1);
                while table[at].1 != 0 && table[at].0 != key {
                    at = (at + 1) & (size - 1);
                }
                table[at] = (key, set);
            }
            Ok(PyWordSets { table })
        })
    }

    /// Numbers of all tokens of some sentences, concatenated. 0 for unknown words.
    fn of<'py>(&self, sentences: &Bound<'py, PyList>) -> PyResult<Array<u32>> {
        let mut out = Vec::new();
        for sentence in sentences.iter() {
            match sentence.cast::<PyList>() {
                Ok(words) => {
                    for word in words.iter() {
                        out.push(self.find(&word)?);
                    }
                }
                Err(_) => {
                    for word in sentence.try_iter()? {
                        out.push(self.find(&word?)?);
                    }
                }
            }
        }
        Ok(Array(out))
    }
}

impl PyWordSets {
    /// Number of a word, 0 if it is unknown.
    fn find(&self, word: &Bound<'_, PyAny>) -> PyResult<u32> {
        let Ok(string) = word.cast::<PyString>() else {
            return Ok(0);
        };
        let mut len = 0;
        // SAFETY: the string is alive and the GIL is held. The result is null for a lone surrogate.
        let text = unsafe { ffi::PyUnicode_AsUTF8AndSize(word.as_ptr(), &mut len) };
        if text.is_null() {
            drop(PyErr::take(word.py()));
            let bytes = string.call_method1("encode", ("utf-8", "surrogatepass"))?;
            return Ok(self.get(hash(bytes.cast::<PyBytes>()?.as_bytes())));
        }
        // SAFETY: the string owns its UTF-8 as long as it is alive.
        Ok(self.get(hash(unsafe { std::slice::from_raw_parts(text.cast::<u8>(), len as usize) })))
    }

    /// Number of a word by its hash.
    pub fn get(&self, key: Key) -> u32 {
        let mask = self.table.len() - 1;
        let mut at = key.key as usize & mask;
        while self.table[at].1 != 0 && self.table[at].0 != key {
            at = (at + 1) & mask;
        }
        self.table[at].1
    }
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PyWordSets>()
}
