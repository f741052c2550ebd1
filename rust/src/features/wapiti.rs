//! Regular expressions of Wapiti patterns, matched bytewise, with match lengths as counted by Wapiti.
//!
//! Items are `.`, classes (`\a \d \l \u \p \s \w`, with a capital for the complement), escaped bytes and literal bytes.
//! After an item, `*` means any number of times, shortest first, and `?` means once or not at all, longest first. `^`
//! at the start and `$` at the end anchor the match. A NUL ends the text.
//!
//! Wapiti adds to the length of a match during the search and does not subtract it when an item fails. Only `?` takes
//! back its own byte, and `*` restarts from its initial length. A length may therefore be too large. Models were
//! trained with the resulting texts, so the lengths are reproduced.
//!
//! Let F(i, t) = (whether the items from i on match at byte t, the length they add whether or not they match). Both
//! depend on (i, t) only, and each is one step from F(i + 1, t), F(i + 1, t + 1) and F(i, t + 1). Filling the table row
//! by row takes items x bytes steps and one row of memory.

use crate::error::{Error, Result};
use crate::machine::system::stop;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Times {
    Once,
    Any,
    Optional,
}

/// Set of matching bytes, one bit per byte, and number of repetitions.
struct RegexItem {
    fits: [u64; 4],
    times: Times,
}

/// Compiled expression.
pub struct Regex {
    items: Vec<RegexItem>,
    at_begin: bool,
    at_end: bool,
}

fn bytes(is_in: impl Fn(u8) -> bool) -> [u64; 4] {
    let mut out = [0; 4];
    for byte in (1..=255u8).filter(|&byte| is_in(byte)) {
        out[byte as usize / 64] |= 1 << (byte % 64);
    }
    out
}

/// Return the bytes of `\name` in the C locale.
fn class(name: u8) -> [u64; 4] {
    let is_in: fn(&u8) -> bool = match name.to_ascii_lowercase() {
        b'a' => u8::is_ascii_alphabetic,
        b'd' => u8::is_ascii_digit,
        b'l' => u8::is_ascii_lowercase,
        b'u' => u8::is_ascii_uppercase,
        b'p' => u8::is_ascii_punctuation,
        b's' => |byte| matches!(byte, b' ' | b'\t'..=b'\r'),
        b'w' => u8::is_ascii_alphanumeric,
        _ => return bytes(|byte| byte == name),
    };
    bytes(|byte| is_in(&byte) == name.is_ascii_lowercase())
}

impl Regex {
    /// Compile an expression.
    pub fn new(source: &[u8]) -> Result<Regex> {
        let at_begin = source.first() == Some(&b'^');
        let (mut items, mut at, mut at_end) = (Vec::new(), usize::from(at_begin), false);
        while let Some(&first) = source.get(at) {
            if first == b'$' && at + 1 == source.len() {
                at_end = true;
                break;
            }
            if matches!(first, b'*' | b'?') {
                let (source, sign) = (source.escape_ascii(), first as char);
                return Err(Error::Template(format!(
                    "the expression \"{source}\" has nothing before {sign} to repeat; write \\{sign} for the character"
                )));
            }
            let escaped = if first == b'\\' { source.get(at + 1) } else { None };
            let fits = match escaped {
                Some(&name) => class(name),
                None if first == b'.' => bytes(|_| true),
                None => bytes(|byte| byte == first),
            };
            at += 1 + usize::from(escaped.is_some());
            let times = match source.get(at) {
                Some(b'*') => Times::Any,
                Some(b'?') => Times::Optional,
                _ => Times::Once,
            };
            at += usize::from(times != Times::Once);
            items.push(RegexItem { fits, times });
        }
        Ok(Regex { items, at_begin, at_end })
    }

    /// Return the number of steps of a search.
    pub fn steps(&self, text: &[u8]) -> usize {
        (self.items.len() + 1).saturating_mul(text.len() + 1)
    }

    /// Return the start of the leftmost match and its length as counted by Wapiti.
    pub fn find(&self, text: &[u8]) -> Option<(usize, u64)> {
        let text = &text[..text.iter().position(|&byte| byte == 0).unwrap_or(text.len())];
        let n = text.len();
        let mut row: Vec<(bool, u64)> = (0..=n).map(|t| (t == n || !self.at_end, 0)).collect();
        for item in self.items.iter().rev() {
            stop::check();
            let fits =
                |t: usize| text.get(t).is_some_and(|&byte| item.fits[byte as usize / 64] >> (byte % 64) & 1 == 1);
            match item.times {
                Times::Once => (0..=n).for_each(|t| {
                    let (matched, length) = if fits(t) { row[t + 1] } else { (false, 0) };
                    row[t] = (matched, length.saturating_add(1));
                }),
                Times::Optional => (0..=n).filter(|&t| fits(t)).for_each(|t| {
                    let ((with, length), (without, more)) = (row[t + 1], row[t]);
                    row[t] = (with || without, length.saturating_add(if with { 1 } else { more }));
                }),
                Times::Any => (0..n).rev().filter(|&t| fits(t)).for_each(|t| {
                    if !row[t].0 {
                        row[t] = (row[t + 1].0, row[t + 1].1.saturating_add(1));
                    }
                }),
            }
        }
        let begins = if self.at_begin { 1 } else { n + 1 };
        row[..begins].iter().position(|found| found.0).map(|begin| (begin, row[begin].1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_match_those_of_wapiti() {
        let find = |source: &[u8], text: &[u8]| Regex::new(source).unwrap().find(text);
        assert_eq!(find(b"a?ab", b"abX"), Some((0, 3))); // one too many: `a?` has tried the first byte
        assert_eq!(find(b"\\d.*\\p", b"x1abc.d."), Some((1, 5)));
        assert_eq!(find(b"^b", b"ab"), None);
        assert_eq!(find(b"b$", b"bab"), Some((2, 1)));
        assert_eq!(find(b"b", b"a\0b"), None);
        assert_eq!(find(b"", b""), Some((0, 0)));
        assert!(Regex::new(b"^*").is_err());
    }

    #[test]
    fn long_expressions_take_linear_time_and_no_stack() {
        let source = b"a?".repeat(100_000);
        assert_eq!(Regex::new(&source).unwrap().find(b"aab"), Some((0, 2)));
        let (stars, text) = (b".*".repeat(5), vec![b'a'; 1_000_000]);
        assert_eq!(Regex::new(&[&stars[..], b"x"].concat()).unwrap().find(&text), None);
    }
}
