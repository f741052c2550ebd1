//! Model files of CRFsuite, used as they lie: attributes are looked up and scored in the bytes of the file.

pub mod cqdb;
pub mod instances;
pub mod lcrf;
pub mod names;
pub mod online;
