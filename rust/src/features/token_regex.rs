//! Regular expressions that match a whole token, in linear time for every pattern.
//!
//! Patterns may come from untrusted model files, so that the length of a pattern and the size of its automaton are
//! bounded.

use crate::error::{Error, Result};
use regex_automata::meta;
use regex_automata::nfa::thompson::WhichCaptures;
use regex_syntax::hir::{Hir, Look};
use regex_syntax::ParserBuilder;

/// Limits on the characters of a pattern, the nesting of its groups, and the bytes of its automaton.
const LENGTH: usize = 1000;
const NESTING: u32 = 50;
const AUTOMATON: usize = 1 << 22;

/// Compiled pattern.
pub struct TokenRegex(meta::Regex);

impl TokenRegex {
    pub fn new(pattern: &str, ignore_case: bool) -> Result<TokenRegex> {
        let length = pattern.chars().count();
        if length > LENGTH {
            let begin: String = pattern.chars().take(60).collect();
            return Err(Error::Template(format!(
                "regular expression {begin:?}...: {length} characters, the limit is {LENGTH}; \
                 put lists of words into a gazetteer"
            )));
        }
        let refused = |at: usize, why: &dyn std::fmt::Display| {
            Error::Template(format!("regular expression {pattern:?}, at character {at}: {why}"))
        };
        let at = |byte: usize| pattern[..byte].chars().count();
        let parsed =
            ParserBuilder::new().case_insensitive(ignore_case).nest_limit(NESTING).build().parse(pattern).map_err(
                |error| match error {
                    regex_syntax::Error::Parse(e) => refused(at(e.span().start.offset), e.kind()),
                    regex_syntax::Error::Translate(e) => refused(at(e.span().start.offset), e.kind()),
                    other => refused(0, &other),
                },
            )?;
        // Anchors are added to the parsed pattern: in its text they could end up in a comment or an alternative.
        let whole = Hir::concat(vec![Hir::look(Look::Start), parsed, Hir::look(Look::End)]);
        let limits = meta::Config::new().nfa_size_limit(Some(AUTOMATON)).which_captures(WhichCaptures::None);
        match meta::Builder::new().configure(limits).build_from_hir(&whole) {
            Ok(regex) => Ok(TokenRegex(regex)),
            Err(_) => Err(Error::Template(format!(
                "regular expression {pattern:?}: its automaton takes more than {AUTOMATON} bytes; use fewer or smaller \
                 repeats, and put lists of words into a gazetteer"
            ))),
        }
    }

    /// Return whether the pattern matches the whole token.
    pub fn matches(&self, token: &str) -> bool {
        self.0.is_match(token)
    }
}

#[cfg(test)]
mod tests {
    use super::TokenRegex;

    #[test]
    fn a_token_is_matched_as_a_whole() {
        for (pattern, yes, no) in [("a|bc", "bc", "abc"), ("(?x) a # ) b", "a", "a # ) b"), ("", "", "a")] {
            let regex = TokenRegex::new(pattern, false).unwrap();
            assert!(regex.matches(yes) && !regex.matches(no), "{pattern}");
        }
        assert!(TokenRegex::new("a)|(b", false).is_err());
        assert!(TokenRegex::new("STRASSE", true).unwrap().matches("strasse"));
    }
}
