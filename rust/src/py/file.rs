//! Model files, and files of other arrays.

use crate::dataset::layout::{Layout, LayoutArrays};
use crate::dataset::vocab::Vocab;
use crate::error::Error;
use crate::machine::system::container::{self, ArrayEntry, Container, FileKind, ARRAYS, MODEL};
use crate::py::common::{guard, run};
use crate::py::encode::PyVocab;
use crate::py::scorer::PyScorer;
use crate::scores::scorer::Scorer;
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use std::fs::File;
use std::sync::Arc;

/// An open, verified model file: read into memory, or used in place (`mmap`).
#[pyclass(name = "ModelFile", module = "tagwise._core", frozen)]
pub struct PyModelFile {
    inner: Container,
}

#[pymethods]
impl PyModelFile {
    /// `file` is the descriptor of a file that Python has open, which is read from its first byte. `name` is for
    /// messages.
    #[new]
    #[pyo3(signature = (file, name, *, mmap = false))]
    fn new(py: Python<'_>, file: i64, name: &str, mmap: bool) -> PyResult<Self> {
        let file = opened(file).map_err(|e| Error::ModelFile(format!("{name}: cannot read the model: {e}")))?;
        Ok(PyModelFile { inner: run(py, 1, || Container::of_file(&file, name, &MODEL, mmap))?? })
    }

    /// The JSON header.
    #[getter]
    fn header(&self) -> &str {
        self.inner.header()
    }

    /// Names and types of the arrays.
    #[getter]
    fn arrays(&self) -> Vec<(String, String)> {
        self.inner.arrays().map(|(name, dtype, _)| (name.to_owned(), dtype.to_owned())).collect()
    }

    /// A copy of an array.
    fn array<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        copy_array(py, &self.inner, name)
    }

    /// The vocabulary. Its texts are used in place.
    fn vocabulary(&self) -> PyResult<PyVocab> {
        let f = &self.inner;
        let parts = (f.array("vocab.keys")?, f.indices("vocab.table")?, f.array("vocab.text")?, f.array("vocab.end")?);
        guard(|| Ok(PyVocab { inner: Vocab::from_parts(parts.0, Some(parts.1), parts.2, parts.3)? }))
    }

    /// The scorer. Its weights are used in place.
    #[pyo3(signature = (n_attributes, n_labels, forbidden = None, *, local = false))]
    fn scorer(
        &self,
        n_attributes: usize,
        n_labels: usize,
        forbidden: Option<PyReadonlyArray1<'_, u32>>,
        local: bool,
    ) -> PyResult<PyScorer> {
        let f = &self.inner;
        let arrays = LayoutArrays {
            labels: n_labels,
            attributes: n_attributes,
            node_ptr: f.indices("node_ptr")?,
            node_label: f.indices("node_label")?,
            edges: f.indices("edges")?.to_vec(),
            starts: f.indices("starts")?.to_vec(),
            ends: f.indices("ends")?.to_vec(),
            pair_ptr: f.indices("pair_ptr")?,
            pair: f.indices("pair")?,
        };
        let forbidden = forbidden.map(|f| f.as_array().to_vec()).unwrap_or_default();
        guard(|| {
            let layout = Layout::new(arrays)?;
            let scorer = Scorer::new(Arc::new(layout), f.array("weights")?, &forbidden)?;
            Ok(PyScorer { inner: scorer.with_local(local) })
        })
    }
}

/// A copy of an array of a file.
fn copy_array<'py>(py: Python<'py>, file: &Container, name: &str) -> PyResult<Bound<'py, PyAny>> {
    let dtype = file.arrays().find(|(n, _, _)| *n == name).map(|(_, d, _)| d.to_owned());
    Ok(match dtype.as_deref() {
        Some("u8") => PyArray1::from_slice(py, &file.array::<u8>(name)?).into_any(),
        Some("u16") => PyArray1::from_slice(py, &file.array::<u16>(name)?).into_any(),
        Some("u32") => PyArray1::from_slice(py, &file.array::<u32>(name)?).into_any(),
        Some("u64") => PyArray1::from_slice(py, &file.array::<u64>(name)?).into_any(),
        Some("f32") => PyArray1::from_slice(py, &file.array::<f32>(name)?).into_any(),
        _ => PyArray1::from_slice(py, &file.array::<f64>(name)?).into_any(),
    })
}

/// An open, verified, memory-mapped file of arrays. Arrays are copied on access.
#[pyclass(name = "ArrayFile", module = "tagwise._core", frozen)]
pub struct PyArrayFile {
    inner: Container,
}

#[pymethods]
impl PyArrayFile {
    /// `file` and `name`: see `PyModelFile`.
    #[new]
    fn new(py: Python<'_>, file: i64, name: &str) -> PyResult<Self> {
        let file = opened(file).map_err(|e| Error::ModelFile(format!("{name}: cannot read the arrays: {e}")))?;
        Ok(PyArrayFile { inner: run(py, 1, || Container::of_file(&file, name, &ARRAYS, true))?? })
    }

    /// The JSON header.
    #[getter]
    fn header(&self) -> &str {
        self.inner.header()
    }

    /// Checksum stored in the file.
    #[getter]
    fn checksum(&self) -> u32 {
        self.inner.checksum()
    }

    /// Names, types and lengths of the arrays.
    #[getter]
    fn arrays(&self) -> Vec<(String, String, usize)> {
        self.inner.arrays().map(|(name, dtype, n)| (name.to_owned(), dtype.to_owned(), n)).collect()
    }

    /// A copy of an array.
    fn array<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        copy_array(py, &self.inner, name)
    }
}

/// Duplicate a file that Python has open, by its descriptor, or on Windows by its handle (`msvcrt.get_osfhandle`).
#[cfg(unix)]
pub fn opened(file: i64) -> std::io::Result<File> {
    use std::os::fd::{BorrowedFd, RawFd};
    let bad = || std::io::Error::from(std::io::ErrorKind::InvalidInput);
    let file = RawFd::try_from(file).ok().filter(|&fd| fd >= 0).ok_or_else(bad)?;
    // SAFETY: the number is duplicated at once. `dup` fails if it is not the descriptor of an open file.
    Ok(unsafe { BorrowedFd::borrow_raw(file) }.try_clone_to_owned()?.into())
}

#[cfg(windows)]
pub fn opened(file: i64) -> std::io::Result<File> {
    use std::os::windows::io::BorrowedHandle;
    // SAFETY: the handle is duplicated at once. `DuplicateHandle` fails if it is not the handle of an open file.
    Ok(unsafe { BorrowedHandle::borrow_raw(file as _) }.try_clone_to_owned()?.into())
}

/// Number of bytes written to a Python stream at a time. Signals are handled between two writes.
const WRITE_BYTES: usize = 1 << 20;

/// A Python array that is written without conversion.
enum ArrayArgument<'py> {
    U8(PyReadonlyArray1<'py, u8>),
    U16(PyReadonlyArray1<'py, u16>),
    U32(PyReadonlyArray1<'py, u32>),
    U64(PyReadonlyArray1<'py, u64>),
    F32(PyReadonlyArray1<'py, f32>),
    F64(PyReadonlyArray1<'py, f64>),
}

impl<'py> ArrayArgument<'py> {
    fn of(name: &str, array: &Bound<'py, PyAny>) -> PyResult<ArrayArgument<'py>> {
        if let Ok(a) = array.extract() {
            return Ok(ArrayArgument::U8(a));
        } else if let Ok(a) = array.extract() {
            return Ok(ArrayArgument::U16(a));
        } else if let Ok(a) = array.extract() {
            return Ok(ArrayArgument::U32(a));
        } else if let Ok(a) = array.extract() {
            return Ok(ArrayArgument::U64(a));
        } else if let Ok(a) = array.extract() {
            return Ok(ArrayArgument::F32(a));
        } else if let Ok(a) = array.extract() {
            return Ok(ArrayArgument::F64(a));
        }
        let expected = "one dimension of uint8, uint16, uint32, uint64, float32 or float64";
        Err(Error::Value(format!("array {name:?}: expected {expected}")).into())
    }

    fn entry<'a>(&'a self, name: &'a str) -> PyResult<ArrayEntry<'a>> {
        Ok(match self {
            ArrayArgument::U8(a) => ArrayEntry::new(name, a.as_slice()?),
            ArrayArgument::U16(a) => ArrayEntry::new(name, a.as_slice()?),
            ArrayArgument::U32(a) => ArrayEntry::new(name, a.as_slice()?),
            ArrayArgument::U64(a) => ArrayEntry::new(name, a.as_slice()?),
            ArrayArgument::F32(a) => ArrayEntry::new(name, a.as_slice()?),
            ArrayArgument::F64(a) => ArrayEntry::new(name, a.as_slice()?),
        })
    }
}

/// The arrays of a dict, in its order.
fn array_arguments<'py>(arrays: &Bound<'py, PyDict>) -> PyResult<Vec<(String, ArrayArgument<'py>)>> {
    let each = |(name, array): (Bound<'py, PyAny>, Bound<'py, PyAny>)| {
        let name: String = name.extract()?;
        let array = ArrayArgument::of(&name, &array)?;
        Ok((name, array))
    };
    arrays.iter().map(each).collect()
}

/// Write the bytes of a file to a Python stream. Return its checksum.
fn write_file(
    py: Python<'_>,
    stream: &Bound<'_, PyAny>,
    kind: &FileKind,
    header: &str,
    entries: &[ArrayEntry<'_>],
) -> PyResult<u32> {
    let pieces = run(py, 1, || container::pieces(kind, header, entries))??;
    for part in pieces.iter().flat_map(|piece| piece.chunks(WRITE_BYTES)) {
        stream.call_method1("write", (PyBytes::new(py, part),))?;
    }
    Ok(container::checksum(&pieces[0]))
}

/// Write arrays and a header to an open binary stream. Return the checksum of the file.
#[pyfunction]
fn write_arrays(py: Python<'_>, stream: &Bound<'_, PyAny>, header: &str, arrays: &Bound<'_, PyDict>) -> PyResult<u32> {
    let array_arguments = array_arguments(arrays)?;
    let entries = array_arguments.iter().map(|(name, array)| array.entry(name)).collect::<PyResult<Vec<_>>>()?;
    write_file(py, stream, &ARRAYS, header, &entries)
}

/// Write a model to an open binary stream: header, vocabulary, scorer, and further named arrays.
#[pyfunction]
fn write_model(
    py: Python<'_>,
    stream: &Bound<'_, PyAny>,
    header: &str,
    vocabulary: &PyVocab,
    scorer: &PyScorer,
    extra: &Bound<'_, PyDict>,
) -> PyResult<()> {
    let extra = array_arguments(extra)?;
    let (layout, weights) = (scorer.inner.layout(), scorer.inner.weights());
    let (keys, table, text, end) = vocabulary.inner.parts();
    let mut entries = vec![
        ArrayEntry::new("vocab.keys", keys),
        ArrayEntry::new("vocab.table", table),
        ArrayEntry::new("vocab.text", text),
        ArrayEntry::new("vocab.end", end),
        ArrayEntry::new("node_ptr", &layout.node_ptr),
        ArrayEntry::new("node_label", &layout.node_label),
        ArrayEntry::new("edges", &layout.edges),
        ArrayEntry::new("starts", &layout.starts),
        ArrayEntry::new("ends", &layout.ends),
        ArrayEntry::new("pair_ptr", &layout.pair_ptr),
        ArrayEntry::new("pair", &layout.pair),
        ArrayEntry::new("weights", weights),
    ];
    for (name, array) in &extra {
        entries.push(array.entry(name)?);
    }
    write_file(py, stream, &MODEL, header, &entries).map(drop)
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PyModelFile>()?;
    m.add_class::<PyArrayFile>()?;
    m.add_function(wrap_pyfunction!(write_arrays, m)?)?;
    m.add_function(wrap_pyfunction!(write_model, m)?)?;
    m.add("MODEL_FORMAT", container::VERSION)
}
