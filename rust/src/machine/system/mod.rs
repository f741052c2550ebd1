//! Memory and its limits, threads, calls that stop, model files, fixed random orders, enumerations by name.

pub mod budget;
pub mod container;
pub mod driver;
pub mod environment;
pub mod hash;
pub mod names;
pub mod paged;
pub mod pages;
pub mod shared;
pub mod shuffle;
pub mod stop;
pub mod testing;
pub mod threads;
