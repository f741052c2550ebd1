//! Features and weights, ready to label sentences, as a Python object.

use crate::decoding::lists;
use crate::py::common::{self, guard, run_of, support, PyLists, PySupport};
use crate::py::encode::PyDataset;
use crate::py::layout::PyLayout;
use crate::scores::scorer::Scorer;
use numpy::{PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1};
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
    fn new(
        layout: &PyLayout,
        weights: PyReadonlyArray1<'_, f32>,
        forbidden: Option<PyReadonlyArray1<'_, u32>>,
        local: bool,
    ) -> PyResult<Self> {
        let forbidden = forbidden.map(|f| f.as_array().to_vec()).unwrap_or_default();
        let (layout, weights) = (layout.inner.clone(), weights.as_array().to_vec());
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
    fn weights<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f32>> {
        PyArray1::from_slice(py, self.inner.weights())
    }

    /// Edge scores [L, L], -inf for forbidden edges.
    #[getter]
    fn edge_scores<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let l = self.inner.layout().labels;
        let flat = PyArray1::from_slice(py, self.inner.edge_scores());
        flat.reshape([l, l])
    }

    /// Best path of each sentence, one label id per token: [tokens].
    #[pyo3(signature = (dataset, *, allowed = None, n_jobs = 0))]
    fn viterbi<'py>(
        &self,
        py: Python<'py>,
        dataset: &PyDataset,
        allowed: Option<PySupport<'_>>,
        n_jobs: usize,
    ) -> PyResult<Bound<'py, PyArray1<u16>>> {
        let data = &dataset.inner;
        let support = support(allowed, data.tokens(), self.inner.layout().labels)?;
        let paths = run_of(py, n_jobs, self.inner.steps(data), || self.inner.viterbi(data, support.as_ref()))??;
        Ok(PyArray1::from_vec(py, paths))
    }

    /// The k best paths of each sentence: the number per sentence [N], their scores, their labels concatenated.
    #[pyo3(signature = (dataset, k, *, allowed = None, n_jobs = 0))]
    fn kbest<'py>(
        &self,
        py: Python<'py>,
        dataset: &PyDataset,
        k: usize,
        allowed: Option<PySupport<'_>>,
        n_jobs: usize,
    ) -> PyResult<PyLists<'py>> {
        let data = &dataset.inner;
        let support = support(allowed, data.tokens(), self.inner.layout().labels)?;
        let steps = self.inner.steps(data).saturating_mul(k.saturating_add(1)).saturating_mul(4);
        let found = run_of(py, n_jobs, steps, || lists::lists(&self.inner, data, support.as_ref(), k))??;
        Ok(common::lists(py, found))
    }

    /// Marginals of each token, [tokens, L], and log Z of each sentence, [N].
    #[pyo3(signature = (dataset, *, allowed = None, n_jobs = 0))]
    #[allow(clippy::type_complexity)]
    fn marginals<'py>(
        &self,
        py: Python<'py>,
        dataset: &PyDataset,
        allowed: Option<PySupport<'_>>,
        n_jobs: usize,
    ) -> PyResult<(Bound<'py, PyArray2<f32>>, Bound<'py, PyArray1<f64>>)> {
        let (data, l) = (&dataset.inner, self.inner.layout().labels);
        let support = support(allowed, data.tokens(), l)?;
        let (p, log_z) = run_of(py, n_jobs, self.inner.steps(data).saturating_mul(4), || {
            self.inner.marginals(data, support.as_ref())
        })??;
        Ok((PyArray1::from_vec(py, p).reshape([data.tokens(), l])?, PyArray1::from_vec(py, log_z)))
    }
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PyScorer>()
}
