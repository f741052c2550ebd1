//! Sums over all paths of a chain: forward-backward, scaled or in log space.
//!
//! - `batch`: 16 sentences at a time, one in each SIMD lane, in single precision
//! - `sentence`: one sentence, its labels in SIMD lanes, in single precision
//! - `single`: one sentence with the same bits as `batch`
//! - `scaled64`: one sentence in double precision, scaled
//! - `log64`: one sentence in double precision and log space, for any scores
//! - `pointwise`: conditional expectations for the pointwise losses
//! - `pointwise64`: these in double precision
//! - `order`: chains of order 2 and 3
//! - `underflow`: when single precision is exact enough

pub mod batch;
pub mod log64;
pub mod order;
pub mod pointwise;
pub(crate) mod pointwise64;
pub(crate) mod scaled64;
pub mod sentence;
pub mod single;
pub mod underflow;
