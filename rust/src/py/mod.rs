//! The Python surface: conversions and nothing else. Each entry releases the GIL around its work.

use crate::chain::viterbi::renormalize;
use crate::error::Error;
use pyo3::prelude::*;

pub mod boosting;
mod chains;
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

impl From<Error> for PyErr {
    fn from(error: Error) -> PyErr {
        Python::attach(|py| {
            let typed = |class: &str, message: String| -> PyErr {
                match py.import("tagwise.base.exceptions").and_then(|m| m.getattr(class)) {
                    Ok(kind) => match kind.call1((message,)) {
                        Ok(value) => PyErr::from_value(value),
                        Err(e) => e,
                    },
                    Err(e) => e,
                }
            };
            match error {
                Error::Value(m) => typed("ParameterError", m),
                Error::Template(m) => typed("TemplateError", m),
                Error::ModelFile(m) => typed("ModelFileError", m),
                Error::Memory(m) => typed("MemoryLimitError", m),
                Error::Internal(m) => typed("InternalError", m),
                Error::Training(m) => typed("TrainingError", m),
                Error::Stopped => typed("StoppedError", error.to_string()),
            }
        })
    }
}

#[pymodule]
fn _core(m: &Bound<'_, PyModule>) -> PyResult<()> {
    boosting::register(m)?;
    chains::register(m)?;
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
