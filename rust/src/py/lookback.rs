//! History, documents and beams as Python objects.

use crate::chain::lookback::Lookback;
use crate::decoding::chunks::{self, Chunk};
use crate::decoding::lookback::{self, Decoder, LookbackSearch};
use crate::error::Error;
use crate::learners::online::lookback::Learner;
use crate::machine::simd::Lane;
use crate::py::arrays::{Array, Array2};
use crate::py::common::{self, groups, guard, run, support, PyGroups, PyLists, PySupport};
use crate::py::encode::PyDataset;
use crate::py::layout::PyLayout;
use crate::py::online;
use crate::py::options::{self, epoch_sums, PyEntities, PyEpochs, PyLimits, PyRule, Raised};
use crate::py::scorer::PyScorer;
use crate::scores::document::Words;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Word of each token [tokens] and first sentence of each document.
type PyWords = (Array<u32>, Array<u32>);
/// Words of the first document and how often each label was assigned to them before: [n], [n, L].
type PyBefore = (Array<u32>, Array2<f32>);

/// Set of features on labels further back.
#[pyclass(name = "LookbackSpec", module = "tagwise._core", frozen)]
pub struct PyLookbackSpec {
    inner: Lookback,
}

#[pymethods]
impl PyLookbackSpec {
    #[new]
    #[pyo3(signature = (n_labels, cell = 1, far = 1, *, endless = false, document = false, tuples = false))]
    fn new(n_labels: usize, cell: usize, far: usize, endless: bool, document: bool, tuples: bool) -> PyResult<Self> {
        let inner = Lookback { labels: n_labels, cell, far, endless, document, tuples };
        inner.check()?;
        Ok(PyLookbackSpec { inner })
    }

    /// Number of features.
    fn __len__(&self) -> usize {
        self.inner.len()
    }
}

fn words(
    given: Option<PyWords>,
    before: Option<PyBefore>,
    dataset: &PyDataset,
    terms: &Lookback,
) -> PyResult<Option<Words>> {
    let Some((word, starts)) = given else { return Ok(None) };
    let (word, starts) = (word.0, starts.0);
    let mut words = guard(|| Words::new(&dataset.inner, &word, &starts).map_err(Into::into))?;
    if let Some((known, counts)) = before {
        let Array2(counts, shape) = counts;
        if shape != [known.0.len(), terms.labels] {
            return Err(Error::Value(format!("counts of shape {shape:?} for {} labels", terms.labels)).into());
        }
        guard(|| {
            words.set_earlier_counts(&word, &known.0, &counts, terms.labels, &dataset.inner);
            Ok(())
        })?;
    }
    Ok(Some(words))
}

/// Weights of the terms, ready to label sentences together with a scorer.
#[pyclass(name = "HistoryScorer", module = "tagwise._core", frozen)]
pub struct PyHistoryScorer {
    pub(super) terms: Lookback,
    pub(super) rows: Vec<Lane>,
}

#[pymethods]
impl PyHistoryScorer {
    #[new]
    fn new(terms: &PyLookbackSpec, weights: Array<f32>) -> PyResult<Self> {
        let weights = weights.0;
        if weights.len() != terms.inner.len() || weights.iter().any(|x| !x.is_finite()) {
            let (want, got) = (terms.inner.len(), weights.len());
            return Err(Error::ModelFile(format!("history needs {want} finite weights, got {got}")).into());
        }
        guard(|| Ok(PyHistoryScorer { rows: terms.inner.lanes(&weights), terms: terms.inner }))
    }

    /// The k best paths of each sentence: the number per sentence [N], their scores, their labels concatenated.
    #[pyo3(signature = (scorer, dataset, k = 1, *, beam = None, words = None, before = None, allowed = None, n_jobs = 0))]
    fn kbest(
        &self,
        py: Python<'_>,
        scorer: &PyScorer,
        dataset: &PyDataset,
        k: usize,
        beam: Option<usize>,
        words: Option<PyWords>,
        before: Option<PyBefore>,
        allowed: Option<PySupport>,
        n_jobs: usize,
    ) -> PyResult<PyLists> {
        let (data, l) = (&dataset.inner, self.terms.labels);
        if scorer.inner.layout().labels != l {
            return Err(Error::Value("the scorer has another number of labels than the terms".into()).into());
        }
        let support = support(allowed, data.tokens(), l)?;
        let words = self::words(words, before, dataset, &self.terms)?;
        let decoder = match beam {
            None => Decoder::Cells { k },
            Some(width) => Decoder::Beam { width, k },
        };
        let job = LookbackSearch {
            scorer: &scorer.inner,
            terms: self.terms,
            rows: &self.rows,
            data,
            words: words.as_ref(),
            support: support.as_ref(),
            decoder,
        };
        let found = run(py, n_jobs, || lookback::tag(&job))??;
        Ok(common::lists(found))
    }
}

/// Perceptron or MIRA with history, and its training set.
#[pyclass(name = "HistoryOnline", module = "tagwise._core")]
pub struct PyHistoryOnline {
    inner: Learner,
    raised: Raised,
}

#[pymethods]
impl PyHistoryOnline {
    #[new]
    #[pyo3(signature = (dataset, layout, terms, rule, *, words = None, epochs = None, limits = None, sample_weight = None))]
    fn new(
        py: Python<'_>,
        dataset: &PyDataset,
        layout: &PyLayout,
        terms: &PyLookbackSpec,
        rule: &PyRule,
        words: Option<PyWords>,
        epochs: Option<&PyEpochs>,
        limits: Option<&PyLimits>,
        sample_weight: Option<Array<f32>>,
    ) -> PyResult<Self> {
        let (data, layout, raised) = (dataset.inner.clone(), layout.inner.clone(), Raised::default());
        let terms = terms.inner;
        if terms.labels != layout.labels {
            return Err(Error::Value("the layout has another number of labels than the terms".into()).into());
        }
        let limits = options::limits(limits, data.tokens(), layout.labels)?;
        let options = rule.options(py, &raised, epochs, limits, sample_weight)?;
        let words = self::words(words, None, dataset, &terms)?;
        let inner = run(py, 1, || Learner::new(data, &layout, terms, words, options))??;
        Ok(PyHistoryOnline { inner, raised })
    }

    /// Run one pass over the training set. Return sums over its steps.
    fn epoch<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let inner = &mut self.inner;
        let tally = run(py, 1, || inner.epoch())?;
        epoch_sums(py, tally, &self.raised)
    }

    /// Current weights, or their average over all steps, one per feature. Those of the terms come last.
    #[pyo3(signature = (averaged = true))]
    fn weights(&self, py: Python<'_>, averaged: bool) -> PyResult<Array<f64>> {
        let weights = run(py, 1, || self.inner.weights(averaged))??;
        Ok(Array(weights))
    }

    /// Number of epochs so far.
    #[getter]
    fn epochs(&self) -> u64 {
        self.inner.epochs()
    }

    /// State from which training resumes: one number per feature in each array. Those of the terms come last.
    fn state<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        online::state_to_dict(py, guard(|| Ok(self.inner.state()?))?)
    }

    /// Resume from a state returned by `state`, or from weights alone.
    fn restore(&mut self, state: &Bound<'_, PyDict>) -> PyResult<()> {
        let given = online::state_from_dict(state)?;
        guard(|| Ok(self.inner.restore(&given)?))
    }
}

/// Chunks: sentence, first token, end token (exclusive) and type of each, four arrays [chunks].
type PyChunks = (Array<u32>, Array<u32>, Array<u32>, Array<u16>);

/// Probability of each chunk, [chunks].
///
/// `entities`: the type of each label [L] and the boundary between two labels [L + 1, L], in the form that a cost
/// takes.
#[pyfunction]
#[pyo3(signature = (scorer, dataset, chunks, entities, *, allowed = None, once = None, n_jobs = 0))]
fn chunk_probabilities(
    py: Python<'_>,
    scorer: &PyScorer,
    dataset: &PyDataset,
    chunks: PyChunks,
    entities: PyEntities,
    allowed: Option<PySupport>,
    once: Option<PyGroups>,
    n_jobs: usize,
) -> PyResult<Array<f64>> {
    let (sentence, begin, end, kind) = (chunks.0 .0, chunks.1 .0, chunks.2 .0, chunks.3 .0);
    if [begin.len(), end.len(), kind.len()] != [sentence.len(); 3] {
        return Err(Error::Value("sentence, begin, end and kind need the same length".into()).into());
    }
    let chunks: Vec<Chunk> =
        (0..kind.len()).map(|i| Chunk { sentence: sentence[i], begin: begin[i], end: end[i], kind: kind[i] }).collect();
    let (data, entities) = (&dataset.inner, options::entities(entities)?);
    let support = support(allowed, data.tokens(), scorer.inner.layout().labels)?;
    let once = once.map(groups);
    let found =
        run(py, n_jobs, || chunks::chunks(&scorer.inner, data, support.as_ref(), &entities, &chunks, once.as_ref()))??;
    Ok(Array(found))
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PyLookbackSpec>()?;
    m.add_class::<PyHistoryScorer>()?;
    m.add_class::<PyHistoryOnline>()?;
    m.add_function(wrap_pyfunction!(chunk_probabilities, m)?)
}
