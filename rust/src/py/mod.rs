//! The Python bindings: conversions only. Each entry point releases the GIL around its work.

use crate::chain::viterbi::renormalize;
use crate::error::Error;
use pyo3::prelude::*;

mod arrays;
pub mod boosting;
mod chains;
mod class_table;
mod classes;
pub mod common;
pub mod crfsuite;
mod driver;
pub mod dual;
pub mod encode;
pub mod file;
pub mod kernel;
pub mod lattice;
pub mod layout;
pub mod lcrf;
pub mod lookback;
pub mod objective;
pub mod once;
pub mod online;
pub mod options;
pub mod order;
pub mod raw;
pub mod scorer;
mod stop;
pub mod svm;
mod token_regex;
pub mod vector;
mod wapiti;
pub mod words;

/// Return an exception of a class of `tagwise.base.exceptions`, with or without a sentence number.
pub fn exception(py: Python<'_>, class: &str, sentence: Option<usize>, message: String) -> PyErr {
    let made = py.import("tagwise.base.exceptions").and_then(|m| m.getattr(class)?.call1((message,)));
    match made.and_then(|error| error.setattr("sentence", sentence).map(|()| error)) {
        Ok(error) => PyErr::from_value(error),
        Err(e) => e,
    }
}

impl From<Error> for PyErr {
    fn from(error: Error) -> PyErr {
        let (mut sentence, mut cause) = (None, &error);
        if let Error::Sentence(number, inner) = cause {
            (sentence, cause) = (Some(*number), inner);
        }
        let class = match cause {
            Error::Value(_) => "ParameterError",
            Error::Template(_) => "TemplateError",
            Error::ModelFile(_) => "ModelFileError",
            Error::Memory(_) => "MemoryLimitError",
            Error::Training(_) => "TrainingError",
            Error::Stopped => "StoppedError",
            Error::Internal(_) | Error::Sentence(..) => "InternalError",
        };
        Python::attach(|py| exception(py, class, sentence, error.to_string()))
    }
}

#[pymodule]
fn _core(m: &Bound<'_, PyModule>) -> PyResult<()> {
    boosting::register(m)?;
    chains::register(m)?;
    class_table::register(m)?;
    classes::register(m)?;
    common::register(m)?;
    driver::register(m)?;
    dual::register(m)?;
    crfsuite::register(m)?;
    encode::register(m)?;
    objective::register(m)?;
    file::register(m)?;
    lookback::register(m)?;
    kernel::register(m)?;
    lattice::register(m)?;
    layout::register(m)?;
    lcrf::register(m)?;
    vector::register(m)?;
    once::register(m)?;
    online::register(m)?;
    options::register(m)?;
    order::register(m)?;
    raw::register(m)?;
    scorer::register(m)?;
    stop::register(m)?;
    svm::register(m)?;
    token_regex::register(m)?;
    wapiti::register(m)?;
    words::register(m)?;
    m.add("RENORMALIZED", (renormalize::FIRST, renormalize::EVERY))?;
    m.add("__version__", env!("CARGO_PKG_VERSION"))
}
