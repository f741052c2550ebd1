//! Environment variables. They are read and checked at their uses, and all of them are checked at import.

use crate::error::{Error, Result};
use crate::machine::simd::dispatch;
use crate::machine::system::budget;
use crate::machine::system::testing;
use crate::machine::system::threads;

/// Return the value of a variable without surrounding spaces, or an empty string if it is not set.
pub fn value(name: &str) -> String {
    std::env::var_os(name).unwrap_or_default().to_string_lossy().trim().to_owned()
}

/// Return the error for an invalid value of a variable.
pub fn invalid_value(name: &str, value: &str, expected: &str) -> Error {
    Error::Value(format!("{name}={value:?}: expected {expected}; correct the environment variable or unset it"))
}

/// Reject invalid values of all variables before anything is computed.
pub fn check() -> Result<()> {
    dispatch::allowed()?;
    testing::from_environment()?;
    budget::from_environment()?;
    threads::from_environment().map(drop)
}
