//! Sentences to attributes: texts, rules, and what a template compiles to.

pub mod crfpp;
pub mod parse;
pub mod raw;
pub mod rule;
pub mod template;
pub mod text;
pub mod token_regex;
pub mod tokens;
pub mod wapiti;
