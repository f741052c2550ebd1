//! Features and weights, ready to label sentences, as a Python object.

use crate::decoding::lists;
use crate::py::arrays::{Array, Array2};
use crate::py::common::{self, guard, run_of, support, PyLists, PySupport};
use crate::py::encode::PyDataset;
use crate::py::layout::PyLayout;
use crate::scores::scorer::Scorer;
use pyo3::prelude::*;

/// Features and weights, ready to label sentences.
#[pyclass(name = "Scorer", module = "tagwise._core", frozen)]
pub struct PyScorer {
    pub inner: Scorer,
}

#[pymethods]
impl PyScorer {
    #[new]
    #[pyo3(signature = (layout, weights, forbidden = None, *, local = false))]
    fn new(layout: &PyLayout, weights: Array<f32>, forbidden: Option<Array<u32>>, local: bool) -> PyResult<Self> {
        let forbidden = forbidden.unwrap_or_default().0;
        let (layout, weights) = (layout.inner.clone(), weights.0);
        guard(|| Ok(PyScorer { inner: Scorer::new(layout, weights.into(), &forbidden)?.with_local(local) }))
    }

    #[getter]
    fn layout(&self) -> PyLayout {
        PyLayout { inner: self.inner.layout().clone() }
    }

    /// Whether every step is normalised locally, conditional on the previous label.
    #[getter]
    fn local(&self) -> bool {
        self.inner.is_local()
    }

    /// Weights of all features.
    #[getter]
    fn weights(&self) -> Array<f32> {
        Array(self.inner.weights().to_vec())
    }

    /// Edge scores [L, L], -inf for forbidden edges.
    #[getter]
    fn edge_scores(&self) -> Array2<f64> {
        let l = self.inner.layout().labels;
        Array2(self.inner.edge_scores().to_vec(), [l, l])
    }

    /// Best path of each sentence, one label id per token: [tokens].
    #[pyo3(signature = (dataset, *, allowed = None, n_jobs = 0))]
    fn viterbi(
        &self,
        py: Python<'_>,
        dataset: &PyDataset,
        allowed: Option<PySupport>,
        n_jobs: usize,
    ) -> PyResult<Array<u16>> {
        let data = &dataset.inner;
        let support = support(allowed, data.tokens(), self.inner.layout().labels)?;
        let paths = run_of(py, n_jobs, self.inner.steps(data), || self.inner.viterbi(data, support.as_ref()))??;
        Ok(Array(paths))
    }

    /// The k best paths of each sentence: the number per sentence [N], their scores, their labels concatenated.
    #[pyo3(signature = (dataset, k, *, allowed = None, n_jobs = 0))]
    fn kbest(
        &self,
        py: Python<'_>,
        dataset: &PyDataset,
        k: usize,
        allowed: Option<PySupport>,
        n_jobs: usize,
    ) -> PyResult<PyLists> {
        let data = &dataset.inner;
        let support = support(allowed, data.tokens(), self.inner.layout().labels)?;
        let steps = self.inner.steps(data).saturating_mul(k.saturating_add(1)).saturating_mul(4);
        let found = run_of(py, n_jobs, steps, || lists::lists(&self.inner, data, support.as_ref(), k))??;
        Ok(common::lists(found))
    }

    /// Marginals of each token, [tokens, L], and log Z of each sentence, [N].
    #[pyo3(signature = (dataset, *, allowed = None, n_jobs = 0))]
    #[allow(clippy::type_complexity)]
    fn marginals(
        &self,
        py: Python<'_>,
        dataset: &PyDataset,
        allowed: Option<PySupport>,
        n_jobs: usize,
    ) -> PyResult<(Array2<f32>, Array<f64>)> {
        let (data, l) = (&dataset.inner, self.inner.layout().labels);
        let support = support(allowed, data.tokens(), l)?;
        let (p, log_z) = run_of(py, n_jobs, self.inner.steps(data).saturating_mul(4), || {
            self.inner.marginals(data, support.as_ref())
        })??;
        Ok((Array2(p, [data.tokens(), l]), Array(log_z)))
    }
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PyScorer>()
}
