//! Memory limits, threads, interruption, model files, reproducible random orders, and enumerations with names.

pub mod budget;
pub mod container;
pub mod driver;
pub mod environment;
pub mod hash;
pub mod names;
pub mod paged;
pub mod pages;
pub mod reused;
pub mod shared;
pub mod shuffle;
pub mod stop;
pub mod testing;
pub mod threads;
