//! CRFsuite models, and the sequences that they label.

use crate::error::{Error, Result};
use crate::foreign::lcrf::{Bytes, Lcrf, LcrfWork, Listed};
use crate::foreign::names::Names;
use crate::foreign::writer::{write_model, Weighted};
use crate::machine::system::budget;
use crate::machine::system::pages::{LargePages, LARGE};
use crate::machine::system::threads;
use crate::py::arrays::{Array, Array2};
use crate::py::common::{guard, run};
use crate::py::encode::{items, GcPause};
use crate::py::file::opened;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyList, PyString};
use rayon::prelude::*;
use std::io::{Read, Seek};

/// Number of items that one thread labels at a time.
const ITEMS_PER_TASK: usize = 512;
/// Maximum number of items that one thread labels without starting others.
const MAX_SERIAL_ITEMS: usize = 1024;
/// Number of names read before the GIL is released for a while.
const NAMES_PER_READ: usize = 1 << 22;

/// Attributes of the items of one sequence, parsed once.
#[pyclass(name = "CrfsuiteSequence", module = "tagwise._core", frozen)]
pub struct PySequence {
    names: Names,
}

#[pymethods]
impl PySequence {
    /// Return the sequence, or None if the Python package has to read it.
    #[staticmethod]
    fn read(sequence: &Bound<'_, PyAny>) -> Option<PySequence> {
        let mut names = Names::default();
        items::read(sequence, &mut names).then_some(PySequence { names })
    }

    /// Return the sequence of lists of pairs (name, value).
    #[staticmethod]
    fn from_pairs(sequence: &Bound<'_, PyList>) -> PyResult<PySequence> {
        let mut names = Names::default();
        items::read_pairs(sequence, &mut names)?;
        Ok(PySequence { names })
    }

    fn __len__(&self) -> usize {
        self.names.items.len()
    }
}

/// An open CRFsuite model file.
#[pyclass(name = "CrfsuiteModel", module = "tagwise._core", frozen)]
pub struct PyLcrf {
    inner: Lcrf,
    labels: Vec<Py<PyString>>,
}

impl PyLcrf {
    fn of(py: Python<'_>, bytes: Bytes) -> PyResult<PyLcrf> {
        let inner = run(py, 1, || Lcrf::open(bytes))??;
        let name = |y: usize| -> PyResult<Py<PyString>> {
            let text = PyBytes::new(py, inner.label(y)).call_method1("decode", ("utf-8", "surrogateescape"))?;
            Ok(text.cast_into::<PyString>()?.unbind())
        };
        let labels = (0..inner.n_labels()).map(name).collect::<PyResult<_>>()?;
        Ok(PyLcrf { inner, labels })
    }

    fn label_names<'py>(&self, py: Python<'py>, path: &[u16]) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, path.iter().map(|&y| self.labels[y as usize].bind(py)))
    }
}

/// Codes and weights of features.
type FeatureArrays = (Array<i64>, Array<f64>);

fn feature_arrays(of: Listed) -> FeatureArrays {
    (Array(of.codes), Array(of.weights))
}

/// Bytes of names. `raw` converts a name that is not plain text to bytes.
fn names_of(given: &Bound<'_, PyList>, raw: &Bound<'_, PyAny>) -> PyResult<Names> {
    let mut out = Names::default();
    for name in given.iter() {
        match name.cast::<PyString>()?.to_str().map(str::as_bytes) {
            Ok(text) if !text.contains(&0xf4) => out.bytes.extend_from_slice(text),
            _ => out.bytes.extend_from_slice(raw.call1((name,))?.cast::<PyBytes>()?.as_bytes()),
        }
        out.end(1.0);
    }
    Ok(out)
}

/// Return the bytes of a model file in CRFsuite's format: labels and attributes by number, codes and weights of state
/// features and transitions, ascending. `raw` converts a name that is not plain text to bytes.
#[pyfunction]
fn crfsuite_model_bytes<'py>(
    py: Python<'py>,
    labels: &Bound<'py, PyList>,
    attributes: &Bound<'py, PyList>,
    node: (Array<i64>, Array<f64>),
    edge: (Array<i64>, Array<f64>),
    raw: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyBytes>> {
    let (labels, attributes) = (names_of(labels, raw)?, names_of(attributes, raw)?);
    let node = Weighted { codes: &node.0 .0, weights: &node.1 .0 };
    let edge = Weighted { codes: &edge.0 .0, weights: &edge.1 .0 };
    let bytes = run(py, 1, || write_model(&labels, &attributes, node, edge))??;
    Ok(PyBytes::new(py, &bytes))
}

#[pymethods]
impl PyLcrf {
    /// Read a model from the bytes of a file.
    #[new]
    fn new(py: Python<'_>, data: &Bound<'_, PyBytes>) -> PyResult<PyLcrf> {
        let bytes = Box::new(PyBackedBytes::from(data.clone()));
        PyLcrf::of(py, bytes)
    }

    /// Read a model from a file that Python has open (`py::file::opened`) into memory.
    #[staticmethod]
    fn open(py: Python<'_>, file: i64) -> PyResult<PyLcrf> {
        let mut file = opened(file)?;
        let size = file.metadata()?.len() as usize;
        budget::claim("the CRFsuite model", size, "check that it is the model that you want")?;
        let bytes: Bytes = match size >= LARGE {
            true => Box::new(run(py, 0, || LargePages::read(&file, size))??),
            false => {
                let mut bytes = Vec::with_capacity(size);
                py.detach(|| file.rewind().and_then(|()| file.read_to_end(&mut bytes)))?;
                Box::new(bytes)
            }
        };
        PyLcrf::of(py, bytes)
    }

    /// Bytes of the file.
    fn data<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.inner.file())
    }

    /// Labels, by number.
    #[getter]
    fn labels<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, self.labels.iter().map(|label| label.bind(py)))
    }

    /// Return the contents of the file after checking all of it: attributes, and codes and weights of state features
    /// and transitions in the order of the lists. The callback converts the bytes of names that are not plain text.
    #[allow(clippy::type_complexity)]
    fn whole<'py>(
        &self,
        py: Python<'py>,
        decode: &Bound<'py, PyAny>,
    ) -> PyResult<(Bound<'py, PyList>, FeatureArrays, FeatureArrays)> {
        let (node, edge) = run(py, 1, || self.inner.whole())??;
        let _gc_pause = GcPause::new(py);
        let texts = PyList::empty(py);
        for name in (0..self.inner.n_attributes()).map(|id| self.inner.attribute(id)) {
            match std::str::from_utf8(name) {
                Ok(text) if !name.contains(&0xf4) => texts.append(PyString::new(py, text))?,
                _ => texts.append(decode.call1((PyBytes::new(py, name),))?)?,
            }
        }
        Ok((texts, feature_arrays(node), feature_arrays(edge)))
    }

    /// Return the labels of a sequence.
    fn tag<'py>(&self, py: Python<'py>, sequence: &Bound<'_, PySequence>) -> PyResult<Bound<'py, PyList>> {
        let names = &sequence.get().names;
        if self.labels.is_empty() && !names.items.is_empty() {
            return Err(Error::Value("The model has no labels: it was trained on nothing".into()).into());
        }
        let mut work = LcrfWork::default();
        let best = || -> Result<()> {
            self.inner.score(names, 0..names.items.len(), &mut work)?;
            self.inner.best(&mut work);
            Ok(())
        };
        match names.items.len() > MAX_SERIAL_ITEMS {
            true => run(py, 1, best)??,
            false => guard(|| Ok(py.detach(best)?))?,
        }
        self.label_names(py, &work.path)
    }

    /// Return the labels of sequences, on `n_jobs` threads (0: one per core). `convert` converts the sequences that the
    /// Python package has to read.
    #[pyo3(signature = (sequences, convert, n_jobs = 0))]
    fn tag_many<'py>(
        &self,
        py: Python<'py>,
        sequences: &Bound<'py, PyList>,
        convert: &Bound<'py, PyAny>,
        n_jobs: usize,
    ) -> PyResult<Bound<'py, PyList>> {
        let out = PyList::empty(py);
        let mut at = 0;
        while at < sequences.len() {
            let (mut names, mut bounds) = (Names::default(), vec![0]);
            while at < sequences.len() && names.ends.len() < NAMES_PER_READ {
                let sequence = sequences.get_item(at)?;
                if !items::read(&sequence, &mut names) {
                    items::read_pairs(convert.call1((sequence,))?.cast::<PyList>()?, &mut names)?;
                }
                bounds.push(names.items.len());
                at += 1;
            }
            if self.labels.is_empty() && !names.items.is_empty() {
                return Err(Error::Value("The model has no labels: it was trained on nothing".into()).into());
            }
            let paths = self.paths(py, &names, &bounds, n_jobs)?;
            let _gc_pause = GcPause::new(py);
            let mut path = paths.iter().flatten().copied();
            for b in bounds.windows(2) {
                let here: Vec<u16> = path.by_ref().take(b[1] - b[0]).collect();
                out.append(self.label_names(py, &here)?)?;
            }
        }
        Ok(out)
    }

    /// Node scores [T, L], log Z and marginals [T, L] of a sequence.
    #[allow(clippy::type_complexity)]
    fn marginals(&self, py: Python<'_>, sequence: &Bound<'_, PySequence>) -> PyResult<(Array2<f64>, f64, Array2<f64>)> {
        let names = &sequence.get().names;
        let mut work = LcrfWork::default();
        let sums = || {
            self.inner.score(names, 0..names.items.len(), &mut work)?;
            Ok(self.inner.marginals(&work.node))
        };
        let (log_z, p) = match names.items.len() > MAX_SERIAL_ITEMS {
            true => run(py, 1, sums)??,
            false => guard(|| Ok(py.detach::<Result<_>, _>(sums)?))?,
        };
        let shape = [names.items.len(), self.inner.n_labels()];
        Ok((Array2(work.node, shape), log_z, Array2(p, shape)))
    }

    /// Transitions [L, L].
    fn edge(&self) -> Array2<f64> {
        let l = self.inner.n_labels();
        Array2(self.inner.edge().to_vec(), [l, l])
    }
}

impl PyLcrf {
    /// Best paths of sequences, in pieces of whole sequences.
    fn paths(&self, py: Python<'_>, names: &Names, bounds: &[usize], n_jobs: usize) -> PyResult<Vec<Vec<u16>>> {
        let mut pieces = vec![0];
        for (s, &end) in bounds.iter().enumerate() {
            if end - bounds[pieces[pieces.len() - 1]] >= ITEMS_PER_TASK || s + 1 == bounds.len() {
                pieces.push(s);
            }
        }
        let jobs = if names.items.len() <= MAX_SERIAL_ITEMS { 1 } else { threads::threads(n_jobs) };
        let one = |piece: &[usize]| -> Result<Vec<u16>> {
            let (mut work, mut path) = (LcrfWork::default(), Vec::new());
            for b in bounds[piece[0]..=piece[1]].windows(2) {
                self.inner.score(names, b[0]..b[1], &mut work)?;
                self.inner.best(&mut work);
                path.extend_from_slice(&work.path);
            }
            Ok(path)
        };
        match names.items.len() <= MAX_SERIAL_ITEMS {
            true => guard(|| Ok(py.detach(|| pieces.windows(2).map(one).collect::<Result<_>>())?)),
            false => Ok(run(py, jobs, || pieces.par_windows(2).map(one).collect::<Result<_>>())??),
        }
    }
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PySequence>()?;
    m.add_function(wrap_pyfunction!(crfsuite_model_bytes, m)?)?;
    m.add_class::<PyLcrf>()
}
