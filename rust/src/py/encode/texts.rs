//! Sentences whose tokens are concatenated in an array of bytes, like Arrow's lists of strings. They are read in
//! place.

use crate::error::Error;
use crate::features::tokens::Tokens;
use crate::py::exception;
use numpy::{PyArray1, PyArrayMethods, PyReadonlyArray1, PyUntypedArrayMethods};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PySlice};
use std::ops::Range;

/// Sentences of tokens in three arrays. In Python a sequence of lists of strings.
#[pyclass(name = "Texts", module = "tagwise._core", frozen)]
pub struct PyTexts {
    data: Py<PyArray1<u8>>,
    tokens: Py<PyArray1<i32>>,    // [tokens + 1] start of each in `data`
    sentences: Py<PyArray1<i32>>, // [sentences + 1] first token of each
}

/// The borrowed arrays. Other code may have changed their contents, so every access is checked.
struct Arrays<'py> {
    data: PyReadonlyArray1<'py, u8>,
    tokens: PyReadonlyArray1<'py, i32>,
    sentences: PyReadonlyArray1<'py, i32>,
}

/// Range from offset `at` to offset `at + 1`, or None if it is not a range up to `end`.
fn range(offsets: &[i32], at: usize, end: usize) -> Option<Range<usize>> {
    let (from, to) = (usize::try_from(*offsets.get(at)?).ok()?, usize::try_from(*offsets.get(at + 1)?).ok()?);
    (from <= to && to <= end).then_some(from..to)
}

impl Arrays<'_> {
    /// Call `visit(token)` for each token of a sentence. Return the number of tokens.
    fn each(&self, py: Python<'_>, s: usize, mut visit: impl FnMut(&str) -> PyResult<()>) -> PyResult<usize> {
        let (data, tokens) = (self.data.as_slice()?, self.tokens.as_slice()?);
        let invalid =
            |what: &str| Error::Value(format!("its {what} are not offsets that rise within the array")).of_sentence(s);
        let token_range = range(self.sentences.as_slice()?, s, tokens.len() - 1).ok_or_else(|| invalid("tokens"))?;
        for t in token_range.clone() {
            let bytes = &data[range(tokens, t, data.len()).ok_or_else(|| invalid("bytes"))?];
            let text = std::str::from_utf8(bytes).map_err(|_| {
                exception(
                    py,
                    "CorpusError",
                    Some(s),
                    format!("sentence {s}, token {}: not UTF-8", t - token_range.start),
                )
            })?;
            visit(text)?;
        }
        Ok(token_range.len())
    }
}

impl PyTexts {
    fn arrays<'py>(&self, py: Python<'py>) -> PyResult<Arrays<'py>> {
        Ok(Arrays {
            data: self.data.bind(py).try_readonly()?,
            tokens: self.tokens.bind(py).try_readonly()?,
            sentences: self.sentences.bind(py).try_readonly()?,
        })
    }

    fn list<'py>(&self, py: Python<'py>, s: usize) -> PyResult<Bound<'py, PyList>> {
        let out = PyList::empty(py);
        self.arrays(py)?.each(py, s, |text| out.append(text))?;
        Ok(out)
    }

    /// Append all sentences to the only column of the flat table.
    pub fn read(&self, py: Python<'_>, to: &mut Tokens) -> PyResult<()> {
        let arrays = self.arrays(py)?;
        for s in 0..self.__len__(py) {
            let length = arrays.each(py, s, |text| Ok(to.columns[0].push(text)?))?;
            to.end_sentence(length);
        }
        Ok(())
    }
}

#[pymethods]
impl PyTexts {
    #[new]
    fn new(
        data: Bound<'_, PyArray1<u8>>,
        tokens: Bound<'_, PyArray1<i32>>,
        sentences: Bound<'_, PyArray1<i32>>,
    ) -> PyResult<Self> {
        for (offsets, name) in [(&tokens, "tokens"), (&sentences, "sentences")] {
            if offsets.try_readonly()?.as_slice()?.is_empty() {
                return Err(Error::Value(format!("{name} is empty; offsets have one more than what they bound")).into());
            }
        }
        data.try_readonly()?.as_slice()?;
        Ok(PyTexts { data: data.unbind(), tokens: tokens.unbind(), sentences: sentences.unbind() })
    }

    fn __len__(&self, py: Python<'_>) -> usize {
        self.sentences.bind(py).as_untyped().shape()[0].saturating_sub(1)
    }

    /// One sentence as a list of its tokens, or a list of several.
    fn __getitem__<'py>(&self, py: Python<'py>, index: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        let n = self.__len__(py);
        if let Ok(slice) = index.cast::<PySlice>() {
            let found = slice.indices(isize::try_from(n)?)?;
            let (mut at, out) = (found.start, PyList::empty(py));
            for _ in 0..found.slicelength {
                out.append(self.list(py, at as usize)?)?;
                at += found.step;
            }
            return Ok(out);
        }
        let at: isize = index.extract()?;
        let at = if at < 0 { at + n as isize } else { at };
        match usize::try_from(at) {
            Ok(s) if s < n => self.list(py, s),
            _ => Err(PyIndexError::new_err(format!("no sentence {at} of {n}"))),
        }
    }
}
