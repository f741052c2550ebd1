//! One error type for the core. Every message says what was wrong, what was expected and what to do.

use std::fmt;

/// What went wrong, sorted by who can mend it; `py` maps each kind to one Python exception.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// A value handed in by the caller is outside its domain.
    Value(String),
    /// A template does not parse or names an unknown column; the message starts with its line.
    Template(String),
    /// A model file is damaged, of another version, or not a model file.
    ModelFile(String),
    /// It would take more memory, or more threads, than there are: how much, and the limit.
    Memory(String),
    /// A defect of the core: what no input may lead to.
    Internal(String),
    /// Training cannot go on (a gold label outside its support, a loss that is not finite).
    Training(String),
    /// Another thread stopped the call.
    Stopped,
}

pub type Result<T> = std::result::Result<T, Error>;

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Error::Value(m) | Error::Template(m) | Error::ModelFile(m) | Error::Training(m) => m,
            Error::Memory(m) | Error::Internal(m) => m,
            Error::Stopped => "the call was stopped by another thread",
        })
    }
}

impl std::error::Error for Error {}
