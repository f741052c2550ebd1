//! Regular expressions that match a whole token, in linear time for every pattern.
//!
//! Patterns may come from untrusted model files, so the length of a pattern and the size of its automaton are
//! bounded.

use crate::error::{Error, Result};
use regex_automata::meta;
use regex_automata::nfa::thompson::WhichCaptures;
use regex_syntax::hir::{Hir, Look};
use regex_syntax::ParserBuilder;

/// Limits on the characters of a pattern, the nesting of its groups, and the bytes of its automaton.
const MAX_LENGTH: usize = 1000;
const MAX_NESTING: u32 = 50;
const MAX_AUTOMATON_BYTES: usize = 1 << 22;

/// Compiled pattern.
pub struct TokenRegex(meta::Regex);

impl TokenRegex {
    pub fn new(pattern: &str, ignore_case: bool) -> Result<TokenRegex> {
        let length = pattern.chars().count();
        if length > MAX_LENGTH {
            let begin: String = pattern.chars().take(60).collect();
            return Err(Error::Template(format!(
                "regular expression {begin:?}...: {length} characters, the limit is {MAX_LENGTH}; \
                 put lists of words into a gazetteer"
            )));
        }
        let invalid = |at: usize, why: &dyn std::fmt::Display| {
            Error::Template(format!("regular expression {pattern:?}, at character {at}: {why}"))
        };
        let at = |byte: usize| pattern[..byte].chars().count();
        let parsed =
            ParserBuilder::new().case_insensitive(ignore_case).nest_limit(MAX_NESTING).build().parse(pattern).map_err(
                |error| match error {
                    regex_syntax::Error::Parse(e) => invalid(at(e.span().start.offset), e.kind()),
                    regex_syntax::Error::Translate(e) => invalid(at(e.span().start.offset), e.kind()),
                    other => invalid(0, &other),
                },
            )?;
        // Anchors are added to the parsed pattern: in its text they could end up in a comment or an alternative.
        let whole = Hir::concat(vec![Hir::look(Look::Start), parsed, Hir::look(Look::End)]);
        let limits = meta::Config::new().nfa_size_limit(Some(MAX_AUTOMATON_BYTES)).which_captures(WhichCaptures::None);
        match meta::Builder::new().configure(limits).build_from_hir(&whole) {
            Ok(regex) => Ok(TokenRegex(regex)),
            Err(_) => Err(Error::Template(format!(
                "regular expression {pattern:?}: its automaton takes more than {MAX_AUTOMATON_BYTES} bytes; use fewer or smaller \
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
    fn patterns_match_whole_tokens() {
        for (pattern, matching, other_text) in [("a|bc", "bc", "abc"), ("(?x) a # ) b", "a", "a # ) b"), ("", "", "a")]
        {
            let regex = TokenRegex::new(pattern, false).unwrap();
            assert!(regex.matches(matching) && !regex.matches(other_text), "{pattern}");
        }
        assert!(TokenRegex::new("a)|(b", false).is_err());
        assert!(TokenRegex::new("STRASSE", true).unwrap().matches("strasse"));
    }
}
