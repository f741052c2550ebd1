//! Word classes learned from raw text: words that occur in the same contexts share a class.
//!
//! A class bigram model (Brown et al. 1992) has the log likelihood, up to a constant,
//!
//! ```text
//! F = sum_{c,d} N(c, d) log N(c, d)  -  2 sum_c N(c) log N(c)
//! ```
//!
//! with N(c, d) the number of bigrams whose words have the classes c and d, and N(c) the number of tokens of class c.
//! `counts` counts bigrams of a stream, `graph` keeps those of frequent words, `exchange` maximises F over assignments
//! of words to classes (Kneser and Ney 1993, Martin et al. 1998), and `hierarchy` merges the classes into a binary tree.

pub mod counts;
pub mod exchange;
pub mod graph;
pub mod hierarchy;
mod matrix;
mod n_log_n;
