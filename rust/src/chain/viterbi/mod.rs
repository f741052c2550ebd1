//! Best paths of a chain (Viterbi 1967).
//!
//! - `batch`: 16 sentences at a time, one in each SIMD lane
//! - `sentence`: one sentence, its labels in SIMD lanes, with its k best paths
//! - `double`: one sentence in double precision
//! - `kbest`: k best paths of one sentence in double precision
//! - `renormalize`: keeps the scores of long sentences exact

pub mod batch;
pub mod double;
pub mod kbest;
pub mod renormalize;
pub mod sentence;
