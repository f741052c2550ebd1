//! Tokens that may contain punctuation: URLs, e-mail addresses, handles, hashtags, smileys.

use super::kinds::CharKind;
use super::Text;

/// Maximum lengths of the name of a scheme and of a mailbox (RFC 5321).
const SCHEME: usize = 20;
const MAILBOX: usize = 64;
/// Maximum length of the name of a host.
const HOST: usize = 253;

impl Text<'_> {
    /// Return the end of a special token that starts here.
    pub(super) fn special(&self, at: usize) -> Option<usize> {
        let first = self.chars[at];
        if self.before(at).in_word() || !first.is_ascii() {
            return None;
        }
        match first {
            'a'..='z' | 'A'..='Z' | '0'..='9' => self.page(at).or_else(|| self.mailbox(at)),
            '@' | '#' => self.handle(at),
            ':' | ';' | '=' | '<' => self.smiley(at),
            _ => None,
        }
    }

    /// Match https://host/path or www.host, up to the punctuation of the surrounding sentence.
    fn page(&self, at: usize) -> Option<usize> {
        let mut from = at;
        while from < at + SCHEME && self.char(from).is_some_and(|c| c.is_ascii_alphanumeric() || "+.-".contains(c)) {
            from += 1;
        }
        if self.chars[from..].starts_with(&[':', '/', '/']) && self.chars[at].is_ascii_alphabetic() {
            from += 3;
        } else if self.chars[at..].len() > 4
            && self.chars[at..at + 3].iter().all(|c| c.eq_ignore_ascii_case(&'w'))
            && self.chars[at + 3] == '.'
        {
            from = at + 4;
        } else {
            return None;
        }
        if !self.kind(from).in_word() {
            return None; // before the scan, which would be quadratic on repeated prefixes
        }
        let mut end = from;
        while end < self.len() && self.in_address(end) {
            end += 1;
        }
        let count = |c: char| self.chars[from..end].iter().filter(|&&x| x == c).count();
        let mut unmatched =
            [('(', ')'), ('[', ']')].map(|(open, close)| (close, count(close).saturating_sub(count(open))));
        while end > from {
            let last = self.chars[end - 1];
            let bracket = unmatched.iter_mut().find(|(close, left)| *close == last && *left > 0);
            match bracket {
                Some((_, left)) => *left -= 1,
                None if ".,;:!?'".contains(last) => {}
                None => break,
            }
            end -= 1;
        }
        (end > from).then_some(end)
    }

    /// Return whether an address may contain a character: letters of any script, and ASCII except quotes and angle
    /// brackets.
    fn in_address(&self, at: usize) -> bool {
        let c = self.chars[at];
        match self.kind(at) {
            CharKind::Blank => false,
            CharKind::Punct | CharKind::Symbol | CharKind::Flag => c.is_ascii() && !"<>\"`{}|\\^".contains(c),
            CharKind::Letter
            | CharKind::Digit
            | CharKind::Connector
            | CharKind::Extend
            | CharKind::Single
            | CharKind::Katakana => true,
        }
    }

    /// Match name@host.org.
    fn mailbox(&self, at: usize) -> Option<usize> {
        let mut end = at;
        while end <= at + MAILBOX && self.char(end).is_some_and(|c| c.is_ascii_alphanumeric() || "._%+-".contains(c)) {
            end += 1;
        }
        if self.char(end) != Some('@') || end == at {
            return None;
        }
        let from = end + 1;
        end = from;
        while end <= from + HOST && self.char(end).is_some_and(|c| c.is_ascii_alphanumeric() || ".-".contains(c)) {
            end += 1;
        }
        while end > from && !self.chars[end - 1].is_ascii_alphanumeric() {
            end -= 1;
        }
        let host = &self.chars[from..end];
        let dot = host.iter().rposition(|&c| c == '.')?;
        let top = &host[dot + 1..];
        let whole = dot > 0 && top.len() > 1 && top.iter().all(char::is_ascii_alphabetic);
        (whole && !self.kind(end).in_word()).then_some(end)
    }

    /// Match @name or #name, which must contain a letter.
    fn handle(&self, at: usize) -> Option<usize> {
        let (mut end, mut named) = (at + 1, false);
        loop {
            let kind = self.kind(end);
            if !kind.in_word() && !matches!(kind, CharKind::Single | CharKind::Katakana) {
                break;
            }
            named |= matches!(kind, CharKind::Letter | CharKind::Single | CharKind::Katakana);
            end += 1;
        }
        (named && self.kind(at + 1) != CharKind::Extend).then_some(end)
    }

    /// Match :) ;-) =D <3, surrounded by blanks.
    fn smiley(&self, at: usize) -> Option<usize> {
        if self.before(at) != CharKind::Blank {
            return None;
        }
        let mut end = at + 1;
        if self.chars[at] == '<' {
            end += usize::from(self.char(end)? == '3');
        } else {
            end += usize::from("-^'o".contains(self.char(end)?) && self.kind(end + 1) != CharKind::Blank);
            let mouth = self.char(end)?;
            while self.char(end) == Some(mouth) && ")(][DPpOo/\\|*".contains(mouth) {
                end += 1;
            }
            if end < at + 2 || self.chars[end - 1] != mouth {
                return None;
            }
        }
        (end > at + 1 && self.kind(end) == CharKind::Blank).then_some(end)
    }
}
