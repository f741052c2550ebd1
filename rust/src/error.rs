//! One error type for the core. Every message names the problem, the expected value and the remedy.

use std::fmt;

/// An error, by who can fix it. `py` maps each kind to one Python exception.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// A value passed by the caller is outside its domain.
    Value(String),
    /// A template does not parse or names an unknown column. The message starts with its line.
    Template(String),
    /// A model file is damaged, of another version, or not a model file.
    ModelFile(String),
    /// The operation needs more memory or threads than are available. The message states the amount and the limit.
    Memory(String),
    /// A defect of the core that no input may cause.
    Internal(String),
    /// Training cannot continue (a gold label outside its support, a loss that is not finite).
    Training(String),
    /// Another thread stopped the call.
    Stopped,
    /// An error in one sentence, counted from 0. Python reads the number from the attribute `sentence`.
    Sentence(usize, Box<Error>),
}

impl Error {
    /// Attach a sentence number to the error.
    pub fn of_sentence(self, sentence: usize) -> Error {
        Error::Sentence(sentence, self.into())
    }
}

pub type Result<T> = std::result::Result<T, Error>;

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Value(m) | Error::Template(m) | Error::ModelFile(m) | Error::Training(m) => f.write_str(m),
            Error::Memory(m) | Error::Internal(m) => f.write_str(m),
            Error::Stopped => f.write_str("the call was stopped by another thread"),
            Error::Sentence(sentence, error) => write!(f, "sentence {sentence}: {error}"),
        }
    }
}

impl std::error::Error for Error {}
