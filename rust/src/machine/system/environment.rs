//! Environment variables: read and checked where they are used, and all of them once when the module is imported.

use crate::error::{Error, Result};
use crate::machine::simd::dispatch;
use crate::machine::system::budget;
use crate::machine::system::testing;
use crate::machine::system::threads;

/// The value of a variable without spaces around it; empty if it is not set.
pub fn value(name: &str) -> String {
    std::env::var_os(name).unwrap_or_default().to_string_lossy().trim().to_owned()
}

/// The error of a value that a variable may not have.
pub fn refused(name: &str, value: &str, expected: &str) -> Error {
    Error::Value(format!("{name}={value:?}: expected {expected}; correct the environment variable or unset it"))
}

/// Refuses values that mean nothing, before anything is computed.
pub fn check() -> Result<()> {
    dispatch::allowed()?;
    testing::given()?;
    budget::given()?;
    threads::given().map(drop)
}
