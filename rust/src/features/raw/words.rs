//! Token boundaries: words and the characters that join them, symbols, punctuation.

use super::kinds::{is_apostrophe, CharKind, ZWJ};
use super::Text;
use crate::features::text::{class, Class};

/// English clitics after an apostrophe. `n't` is handled separately.
const CLITICS: [&str; 6] = ["s", "m", "d", "re", "ve", "ll"];
/// Punctuation of which a repetition is one token.
const RUNS: &str = ".-=*~+#/\\<>|&^'`\u{2013}\u{2014}\u{2015}\u{2026}\u{ff5e}";

impl Text<'_> {
    /// Return the end of the token that starts here.
    pub(super) fn token(&self, at: usize) -> usize {
        if let Some(end) = self.special(at) {
            return end;
        }
        match self.kind(at) {
            CharKind::Letter | CharKind::Digit | CharKind::Connector | CharKind::Extend => self.word(at),
            CharKind::Single => self.extended(at + 1),
            CharKind::Katakana => {
                let mut end = at + 1;
                while matches!(self.kind(end), CharKind::Katakana | CharKind::Extend) {
                    end += 1;
                }
                end
            }
            CharKind::Flag => self.extended(if self.kind(at + 1) == CharKind::Flag { at + 2 } else { at + 1 }),
            CharKind::Symbol => self.run(at).unwrap_or_else(|| self.pictograph(at)),
            CharKind::Punct => self.clitic(at).or_else(|| self.run(at)).unwrap_or_else(|| self.extended(at + 1)),
            CharKind::Blank => at + 1,
        }
    }

    /// Return the end of a symbol with its modifiers and the symbols joined to it.
    fn pictograph(&self, at: usize) -> usize {
        let mut end = self.extended(at + 1);
        while self.chars[end - 1] == ZWJ && self.kind(end) == CharKind::Symbol {
            end = self.extended(end + 1);
        }
        end
    }

    /// Match two or more of the same punctuation mark, or of ! and ?.
    fn run(&self, at: usize) -> Option<usize> {
        let first = self.chars[at];
        let is_exclamation_or_question = |c: char| c == '!' || c == '?';
        let same = |c: char| c == first || (is_exclamation_or_question(first) && is_exclamation_or_question(c));
        if !is_exclamation_or_question(first) && !RUNS.contains(first) {
            return None;
        }
        let mut end = at + 1;
        while self.char(end).is_some_and(same) {
            end += 1;
        }
        (end > at + 1).then(|| self.extended(end))
    }

    /// Return the end of a word: letters, digits, and characters that join them.
    fn word(&self, at: usize) -> usize {
        let (mut end, mut dots, mut longest, mut since) = (at, 0, 0, 0);
        loop {
            while self.kind(end).in_word() {
                since += usize::from(self.kind(end) != CharKind::Extend);
                end += 1;
            }
            longest = longest.max(since);
            if !self.joins(at, end) {
                break;
            }
            dots += usize::from(self.chars[end] == '.');
            since = 0;
            end += 1;
        }
        if self.char(end) == Some('.')
            && self.char(end + 1) != Some('.')
            && self.dot_belongs_to_word(at, end, dots, longest)
        {
            return end + 1;
        }
        self.end_before_clitic(at, end)
    }

    /// Return whether the character at `at`, inside a word that starts at `from`, joins its neighbours.
    fn joins(&self, from: usize, at: usize) -> bool {
        let Some(c) = self.char(at) else { return false };
        let mut last = at - 1;
        while last > from && self.kind(last) == CharKind::Extend {
            last -= 1;
        }
        let (left, right) = (self.kind(last), self.kind(at + 1));
        let numbers = left == CharKind::Digit && right == CharKind::Digit;
        let letters = left == CharKind::Letter && right == CharKind::Letter;
        let (before, after) = (self.chars[last], self.char(at + 1).unwrap_or(' '));
        match c {
            '.' => {
                let new_sentence = class(before) == Class::Lower && class(after) == Class::Upper;
                numbers || (letters && !new_sentence)
            }
            ',' | ':' | '/' | '\u{66b}' | '\u{66c}' => numbers,
            '&' => letters && class(before) == Class::Upper && class(after) == Class::Upper,
            '\u{b7}' | '\u{5f3}' | '\u{5f4}' => letters,
            '-' | '\u{2010}' | '\u{2011}' => {
                numbers || (!self.options.hyphens && left.in_word() && right.in_word() && right != CharKind::Extend)
            }
            _ => is_apostrophe(c) && left.in_word() && matches!(right, CharKind::Letter | CharKind::Digit),
        }
    }

    /// Return whether the dot after a word belongs to it: U.S., an initial before a name, a known abbreviation.
    fn dot_belongs_to_word(&self, at: usize, end: usize, dots: usize, longest: usize) -> bool {
        if dots > 0 && longest == 1 {
            return self.chars[at..end].iter().all(|&c| c == '.' || super::kinds::kind(c) != CharKind::Digit);
        }
        if end - at == 1 && class(self.chars[at]) == Class::Upper && self.chars[at] != 'I' {
            let mut next = end + 1;
            while next < self.len() && self.kind(next) == CharKind::Blank {
                next += 1;
            }
            return next > end + 1 && self.char(next).is_some_and(|c| class(c) == Class::Upper);
        }
        let word: String = self.chars[at..end].iter().flat_map(|c| c.to_lowercase()).collect();
        self.options.abbreviations.contains(&word)
    }

    /// Return the end of a word without its clitic: do|n't, Anna|'s.
    fn end_before_clitic(&self, at: usize, end: usize) -> usize {
        if !self.options.contractions {
            return end;
        }
        let Some(mark) = (at..end).rev().find(|&k| is_apostrophe(self.chars[k])) else { return end };
        let ending = |text: &str| {
            let found = &self.chars[mark + 1..end];
            found.len() == text.len() && found.iter().zip(text.chars()).all(|(c, t)| c.to_ascii_lowercase() == t)
        };
        if ending("t") && mark > at && self.chars[mark - 1].eq_ignore_ascii_case(&'n') {
            return if mark - 1 > at { mark - 1 } else { end };
        }
        if CLITICS.iter().any(|clitic| ending(clitic)) {
            return if mark > at { mark } else { end };
        }
        end
    }

    /// Return the end of a clitic such as `'s` directly after its word.
    fn clitic(&self, at: usize) -> Option<usize> {
        if !self.options.contractions || !is_apostrophe(self.chars[at]) || self.before(at) == CharKind::Blank {
            return None;
        }
        CLITICS.iter().find_map(|clitic| {
            let end = at + 1 + clitic.len();
            let found = self.chars.get(at + 1..end)?;
            let same = found.iter().zip(clitic.chars()).all(|(c, t)| c.to_ascii_lowercase() == t);
            (same && !self.kind(end).in_word()).then_some(end)
        })
    }
}
