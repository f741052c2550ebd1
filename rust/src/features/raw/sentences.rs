//! Sentence boundaries: after stops and the quotes and brackets that close behind them, and at blank lines.

use super::kinds::CharKind;
use super::Text;
use crate::features::text::{class, Class};

/// Characters that end a sentence if a blank follows and the next letter is not lower case.
const STOPS: &str =
    ".!?\u{2026}\u{203c}\u{2047}\u{2048}\u{2049}\u{61f}\u{6d4}\u{964}\u{965}\u{589}\u{1362}\u{104b}\u{17d4}";
/// Characters that always end a sentence.
const ALWAYS_STOPS: &str = "\u{3002}\u{ff01}\u{ff1f}\u{ff61}";
const CLOSERS: &str = "\"'\u{201d}\u{2019}\u{bb})]}\u{ff09}\u{300d}\u{300f}\u{3011}\u{300b}\u{3009}";

/// Maximum number of characters to skip before the first letter of the next sentence.
const MAX_SKIPPED: usize = 16;

impl Text<'_> {
    /// Append the first tokens of all sentences after the first.
    pub(super) fn sentences(&self, tokens: &[(u32, u32)], begins: &mut Vec<u32>) {
        let first = |t: usize| self.chars[tokens[t].0 as usize];
        let mut t = 0;
        while t + 1 < tokens.len() {
            let (stop, full) = (STOPS.contains(first(t)), ALWAYS_STOPS.contains(first(t)));
            let mut last = t;
            while (stop || full) && last + 1 < tokens.len() && tokens[last].1 == tokens[last + 1].0 && {
                let next = first(last + 1);
                CLOSERS.contains(next) || STOPS.contains(next) || ALWAYS_STOPS.contains(next)
            } {
                last += 1;
            }
            if last + 1 == tokens.len() {
                return;
            }
            let gap = (tokens[last].1 as usize, tokens[last + 1].0 as usize);
            let ends = full || (stop && gap.0 < gap.1 && !self.continues_in_lower_case(gap.1));
            if ends || self.has_blank_line(gap) {
                begins.push(last as u32 + 1);
            }
            t = last + 1;
        }
    }

    /// Return whether the text after quotes and brackets continues with a lower-case letter.
    fn continues_in_lower_case(&self, mut at: usize) -> bool {
        let limit = at + MAX_SKIPPED;
        while at < limit && matches!(self.kind(at), CharKind::Blank | CharKind::Punct | CharKind::Symbol) {
            at += 1;
        }
        self.char(at).is_some_and(|c| class(c) == Class::Lower)
    }

    /// Return whether a gap between two tokens contains a blank line.
    fn has_blank_line(&self, (begin, end): (usize, usize)) -> bool {
        let gap = &self.chars[begin..end];
        gap.iter().filter(|&&c| c == '\n').count() > 1 || gap.contains(&'\u{2029}')
    }
}
