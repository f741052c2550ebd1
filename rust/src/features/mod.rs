//! Feature templates: texts of sentences, rules, and the compiled form of a template.

pub mod class_table;
pub mod crfpp;
pub mod parse;
pub mod raw;
pub mod rule;
pub mod template;
pub mod text;
pub mod token_regex;
pub mod tokens;
pub mod wapiti;
