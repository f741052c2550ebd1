//! Raw text to tokens and sentences, many texts per call.

use crate::features::raw::{self, Options};
use crate::py::arrays::Array;
use crate::py::common::run_of;
use crate::py::encode::{corpus_error, each, kind, utf8};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::PyString;

/// Character offsets [tokens * 2], first tokens of sentences [sentences + 1], first sentences of texts [texts + 1].
type PyFound = (Array<u32>, Array<u64>, Array<u64>);

/// Split texts into tokens and sentences. Return three arrays: start and end offset (exclusive, in characters) of each
/// token, the first token of each sentence followed by the number of tokens, and the first sentence of each text
/// followed by the number of sentences.
#[pyfunction]
#[pyo3(signature = (texts, abbreviations = Vec::new(), *, contractions = true, hyphens = false, sentences = true, n_jobs = 1))]
fn tokenize<'py>(
    py: Python<'py>,
    texts: &Bound<'py, PyAny>,
    abbreviations: Vec<String>,
    contractions: bool,
    hyphens: bool,
    sentences: bool,
    n_jobs: usize,
) -> PyResult<PyFound> {
    let mut strings: Vec<PyBackedStr> = Vec::new();
    let wrong = || format!("expected a list of texts, found {}", kind(texts));
    each(texts, wrong, |i, text| {
        let Ok(text) = text.cast::<PyString>() else {
            return Err(corpus_error(py, format!("text {i}: expected a string, found {}", kind(text))));
        };
        utf8(text, || format!("text {i}"))?;
        strings.push(text.clone().try_into()?);
        Ok(())
    })?;
    let abbreviations = abbreviations.into_iter().collect();
    let options = Options { contractions, hyphens, sentences, abbreviations };
    let steps = strings.iter().map(|text| 20 * text.len()).sum();
    let found = run_of(py, n_jobs, steps, || raw::tokenize(&strings, &options))??;
    let offsets = found.tokens.iter().flat_map(|&(begin, end)| [begin, end]).collect();
    Ok((Array(offsets), Array(found.sentences), Array(found.texts)))
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(tokenize, m)?)
}
