//! Counting of bigrams and learning of word classes, as Python objects.

use crate::classes::counts::Counts;
use crate::classes::exchange::Exchange;
use crate::classes::graph::BigramGraph;
use crate::classes::hierarchy;
use crate::error::Error;
use crate::features::template::Template;
use crate::features::tokens::Tokens;
use crate::py::arrays::Array;
use crate::py::common::{guard, run};
use crate::py::encode::read_bare;
use pyo3::prelude::*;

/// Counts of words and bigrams in a stream of sentences.
#[pyclass(name = "BigramCounts", module = "tagwise._core")]
pub struct PyBigramCounts {
    inner: Counts,
    tokens: Tokens,
    template: Template,
}

#[pymethods]
impl PyBigramCounts {
    #[new]
    #[pyo3(signature = (*, ignore_case = false))]
    fn new(ignore_case: bool) -> PyResult<Self> {
        let template = Template::compile("word[0]", &["word".into()])?;
        Ok(PyBigramCounts { inner: Counts::new(ignore_case), tokens: Tokens::new(1), template })
    }

    /// Count sentences, which are lists of strings.
    fn add(&mut self, py: Python<'_>, sentences: &Bound<'_, PyAny>) -> PyResult<()> {
        self.tokens.clear();
        read_bare(&mut self.tokens, &self.template, sentences)?;
        let (inner, tokens) = (&mut self.inner, &self.tokens);
        run(py, 1, || inner.add(tokens))??;
        Ok(())
    }

    /// Number of sentences that are not empty.
    #[getter]
    fn n_sentences(&self) -> u64 {
        self.inner.tokens()[0]
    }

    #[getter]
    fn n_tokens(&self) -> u64 {
        self.inner.tokens()[1..].iter().sum()
    }

    /// Number of distinct words, after normalization.
    #[getter]
    fn n_words(&self) -> usize {
        self.inner.words() - 1
    }

    /// Number of distinct bigrams, including those with the sentence boundary.
    #[getter]
    fn n_bigrams(&self) -> usize {
        self.inner.pairs()
    }

    /// Number of words that occur at least `min_count` times.
    fn n_frequent(&self, min_count: u64) -> usize {
        self.inner.tokens()[1..].iter().filter(|&&n| n >= min_count).count()
    }
}

/// Assignment of words to classes, improved by exchange.
#[pyclass(name = "ClassExchange", module = "tagwise._core")]
pub struct PyClassExchange {
    inner: Exchange,
}

#[pymethods]
impl PyClassExchange {
    /// Start from the counts of words that occur at least `min_count` times.
    #[new]
    fn new(py: Python<'_>, counts: &PyBigramCounts, n_classes: usize, min_count: u64) -> PyResult<Self> {
        let counts = &counts.inner;
        run(py, 1, || {
            let graph = BigramGraph::new(counts, min_count)?;
            Ok::<_, Error>(PyClassExchange { inner: Exchange::new(graph, n_classes)? })
        })?
        .map_err(PyErr::from)
    }

    /// Visit every word once. Return the number of words that moved.
    #[pyo3(signature = (n_jobs = 0))]
    fn sweep(&mut self, py: Python<'_>, n_jobs: usize) -> PyResult<usize> {
        let inner = &mut self.inner;
        run(py, n_jobs, || inner.sweep())
    }

    /// Objective of the class bigram model.
    #[getter]
    fn objective(&self) -> f64 {
        self.inner.objective()
    }

    /// Change of the objective if a word moves to a class.
    fn gain(&self, word: usize, to: usize) -> PyResult<f64> {
        if word >= self.inner.graph().len() || to >= self.inner.k() {
            let (words, k) = (self.inner.graph().len(), self.inner.k());
            return Err(Error::Value(format!("word {word} of {words}, class {to} of {k}; both count from 0")).into());
        }
        guard(|| Ok(self.inner.gain(word, to)))
    }

    /// Words, and shapes of rare words, by falling frequency. Equally frequent ones are in alphabetical order.
    #[getter]
    fn words(&self) -> Vec<&str> {
        self.inner.graph().words.iter().map(|word| word.text.as_str()).collect()
    }

    /// Whether each of `words` is a shape of rare words.
    #[getter]
    fn is_shape(&self) -> Vec<bool> {
        self.inner.graph().words.iter().map(|word| word.is_shape).collect()
    }

    /// Occurrences of the words.
    #[getter]
    fn counts(&self) -> Array<u32> {
        Array(self.inner.graph().tokens[..self.inner.graph().len()].to_vec())
    }

    /// Class of each word.
    #[getter]
    fn classes(&self) -> Array<u32> {
        Array(self.inner.classes().to_vec())
    }

    /// Merge the classes into a binary tree. Return the path of each class, a string of 0 and 1, and the change of the
    /// objective by each merger in order.
    #[pyo3(signature = (n_jobs = 0))]
    fn tree(&self, py: Python<'_>, n_jobs: usize) -> PyResult<(Vec<String>, Vec<f64>)> {
        let mergers = run(py, n_jobs, || hierarchy::mergers(&self.inner))??;
        let changes = mergers.iter().map(|merger| merger.change).collect();
        Ok((hierarchy::paths(&mergers, self.inner.k()), changes))
    }
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PyBigramCounts>()?;
    m.add_class::<PyClassExchange>()
}
