//! Functions of the text of one token: affixes, shapes, casing, tests. All count characters (code points), not bytes,
//! and classify them by Unicode general category, with a fast path for ASCII.

use crate::features::class_table::{ClassTable, Cut};
use std::sync::Arc;
use unicode_general_category::{get_general_category, GeneralCategory as G};

/// Class of a character, for shapes and tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    Upper,  // Lu, Lt
    Lower,  // Ll
    Letter, // Lo, Lm: letters without case
    Mark,   // Mn, Mc, Me: part of the previous letter
    Digit,  // Nd
    Number, // Nl, No
    Punct,  // P*
    Symbol, // S*
    Other,  // Z*, C*
}

#[inline]
#[allow(clippy::wildcard_enum_match_arm)] // a non-exhaustive enum of another crate
pub fn class(c: char) -> Class {
    match c {
        'a'..='z' => Class::Lower,
        'A'..='Z' => Class::Upper,
        '0'..='9' => Class::Digit,
        _ => match get_general_category(c) {
            G::UppercaseLetter | G::TitlecaseLetter => Class::Upper,
            G::LowercaseLetter => Class::Lower,
            G::OtherLetter | G::ModifierLetter => Class::Letter,
            G::NonspacingMark | G::SpacingMark | G::EnclosingMark => Class::Mark,
            G::DecimalNumber => Class::Digit,
            G::LetterNumber | G::OtherNumber => Class::Number,
            G::ConnectorPunctuation
            | G::DashPunctuation
            | G::OpenPunctuation
            | G::ClosePunctuation
            | G::InitialPunctuation
            | G::FinalPunctuation
            | G::OtherPunctuation => Class::Punct,
            G::MathSymbol | G::CurrencySymbol | G::ModifierSymbol | G::OtherSymbol => Class::Symbol,
            // Separators, controls, and future categories.
            _ => Class::Other,
        },
    }
}

/// Function from a text to another text, or to no value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Function {
    Prefix(usize),
    Suffix(usize),
    Lower,
    Digits,
    Shape,
    ShortShape,
    Length,
    Initial,
    /// Path of the class of a word.
    Class(Arc<ClassTable>),
    /// Path of the class of a word in a cut of the tree.
    Cut(Arc<Cut>),
    Test(Test),
}

/// Predicate of a text. Its attribute exists only if the predicate holds.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Test {
    IsCapitalized,
    IsUpper,
    IsLower,
    IsTitle,
    IsDigit,
    IsAlpha,
    IsAlnum,
    IsPunct,
    IsNumber,
    HasUpper,
    HasDigit,
    HasLetter,
    HasHyphen,
    HasDot,
    LongerThan(usize),
    StartsWith(Vec<String>),
    EndsWith(Vec<String>),
    Contains(Vec<String>),
    OneOf(Vec<String>),
    /// The text occurs less often in training than the list of frequent texts requires. Unseen texts are rare too.
    IsRare(Frequent),
    IsFrequent(Frequent),
}

/// Texts that occur at least `min_count` times in the training sentences.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Frequent {
    pub min_count: usize,
    /// Sorted. `None` until `Template::learn` has filled it.
    pub texts: Option<Arc<[String]>>,
}

impl Frequent {
    /// Return whether a text is in the list. False for every text before the list is learned.
    fn contains(&self, text: &str) -> bool {
        self.texts.as_ref().is_some_and(|texts| texts.binary_search_by(|t| t.as_str().cmp(text)).is_ok())
    }
}

/// Return the first n characters, or `None` if there are fewer.
pub fn prefix(text: &str, n: usize) -> Option<&str> {
    let mut ends = text.char_indices().map(|(at, _)| at).skip(n);
    match ends.next() {
        Some(at) => Some(&text[..at]),
        None => (text.chars().count() == n).then_some(text),
    }
}

/// Return the last n characters, or `None` if there are fewer.
pub fn suffix(text: &str, n: usize) -> Option<&str> {
    if n == 0 {
        return Some("");
    }
    text.char_indices().rev().nth(n - 1).map(|(at, _)| &text[at..])
}

/// Append the shape of a text: upper-case and title-case letters become A, other letters a, decimal digits 0. Marks are
/// dropped, and other characters are kept.
pub fn shape(text: &str, out: &mut String) {
    out.extend(text.chars().filter_map(shape_of));
}

/// Append the shape with repeated characters collapsed to one.
pub fn short_shape(text: &str, out: &mut String) {
    let mut last = None;
    for c in text.chars().filter_map(shape_of) {
        if last != Some(c) {
            out.push(c);
            last = Some(c);
        }
    }
}

#[inline]
fn shape_of(c: char) -> Option<char> {
    match class(c) {
        Class::Upper => Some('A'),
        Class::Lower | Class::Letter => Some('a'),
        Class::Digit => Some('0'),
        Class::Mark => None,
        Class::Number | Class::Punct | Class::Symbol | Class::Other => Some(c),
    }
}

/// Append the text with every decimal digit of any script replaced by 0.
pub fn digits(text: &str, out: &mut String) {
    out.extend(text.chars().map(|c| if class(c) == Class::Digit { '0' } else { c }));
}

/// Append the text in lower case, by full Unicode case mapping (including the final sigma).
pub fn lower(text: &str, out: &mut String) {
    if text.is_ascii() {
        out.extend(text.bytes().map(|b| b.to_ascii_lowercase() as char));
    } else {
        out.push_str(&text.to_lowercase());
    }
}

/// Return the class of the first character: lower, upper, alnum (digits and letters without case), or `None` for
/// others.
pub fn initial(text: &str) -> Option<&'static str> {
    match class(text.chars().next()?) {
        Class::Lower => Some("lower"),
        Class::Upper => Some("upper"),
        Class::Letter | Class::Digit | Class::Number => Some("alnum"),
        Class::Mark | Class::Punct | Class::Symbol | Class::Other => None,
    }
}

impl Test {
    pub fn holds(&self, text: &str) -> bool {
        let all = |f: fn(Class) -> bool| !text.is_empty() && text.chars().all(|c| f(class(c)));
        let any = |f: fn(Class) -> bool| text.chars().any(|c| f(class(c)));
        match self {
            Test::IsCapitalized => text.chars().next().is_some_and(|c| class(c) == Class::Upper),
            Test::IsUpper => any(|c| c == Class::Upper) && !any(|c| c == Class::Lower),
            Test::IsLower => any(|c| c == Class::Lower) && !any(|c| c == Class::Upper),
            Test::IsTitle => {
                let mut chars = text.chars();
                let mut rest = false;
                chars.next().is_some_and(|c| class(c) == Class::Upper)
                    && chars.all(|c| {
                        rest |= class(c) == Class::Lower;
                        class(c) != Class::Upper
                    })
                    && rest
            }
            Test::IsDigit => all(|c| c == Class::Digit),
            Test::IsAlpha => {
                any(|c| matches!(c, Class::Upper | Class::Lower | Class::Letter))
                    && all(|c| matches!(c, Class::Upper | Class::Lower | Class::Letter | Class::Mark))
            }
            Test::IsAlnum => {
                any(|c| c != Class::Mark) && all(|c| !matches!(c, Class::Punct | Class::Symbol | Class::Other))
            }
            Test::IsPunct => all(|c| matches!(c, Class::Punct | Class::Symbol)),
            Test::IsNumber => {
                any(|c| c == Class::Digit)
                    && text.chars().all(|c| class(c) == Class::Digit || ".,:/%+-\u{2212}".contains(c))
            }
            Test::HasUpper => any(|c| c == Class::Upper),
            Test::HasDigit => any(|c| c == Class::Digit),
            Test::HasLetter => any(|c| matches!(c, Class::Upper | Class::Lower | Class::Letter)),
            Test::HasHyphen => text.contains(['-', '\u{2010}', '\u{2011}']),
            Test::HasDot => text.contains('.'),
            Test::LongerThan(n) => text.chars().nth(*n).is_some(),
            Test::StartsWith(list) => list.iter().any(|s| text.starts_with(s.as_str())),
            Test::EndsWith(list) => list.iter().any(|s| text.ends_with(s.as_str())),
            Test::Contains(list) => list.iter().any(|s| text.contains(s.as_str())),
            Test::OneOf(list) => list.iter().any(|s| text == s),
            Test::IsRare(list) => !list.contains(text),
            Test::IsFrequent(list) => list.contains(text),
        }
    }
}

/// Buffers of `apply`.
#[derive(Default)]
pub struct TextScratch {
    value: String,
    spare: String,
}

/// Apply a chain of functions. Returns `None` if it has no value: the text is too short for an affix, or a test fails.
pub fn apply<'a>(functions: &[Function], text: &'a str, scratch: &'a mut TextScratch) -> Option<&'a str> {
    let mut rewritten = false;
    let (mut begin, mut end) = (0, text.len());
    for function in functions {
        let current = if rewritten { &scratch.value[begin..end] } else { &text[begin..end] };
        match function {
            Function::Prefix(n) => end = begin + prefix(current, *n)?.len(),
            Function::Suffix(n) => begin = end - suffix(current, *n)?.len(),
            Function::Test(test) if test.holds(current) => end = begin,
            Function::Test(_) => return None,
            Function::Lower
            | Function::Digits
            | Function::Shape
            | Function::ShortShape
            | Function::Length
            | Function::Initial
            | Function::Class(_)
            | Function::Cut(_) => {
                scratch.spare.clear();
                rewrite(function, current, &mut scratch.spare)?;
                std::mem::swap(&mut scratch.value, &mut scratch.spare);
                rewritten = true;
                (begin, end) = (0, scratch.value.len());
            }
        }
    }
    Some(if rewritten { &scratch.value[begin..end] } else { &text[begin..end] })
}

fn rewrite(function: &Function, text: &str, out: &mut String) -> Option<()> {
    match function {
        Function::Lower => lower(text, out),
        Function::Digits => digits(text, out),
        Function::Shape => shape(text, out),
        Function::ShortShape => short_shape(text, out),
        Function::Length => out.push_str(&text.chars().count().to_string()),
        Function::Initial => out.push_str(initial(text)?),
        Function::Class(table) => out.push_str(table.path(text)?),
        Function::Cut(cut) => out.push_str(cut.path(text)?),
        Function::Prefix(_) | Function::Suffix(_) | Function::Test(_) => out.push_str(text),
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(functions: &[Function], text: &str) -> Option<String> {
        apply(functions, text, &mut TextScratch::default()).map(str::to_owned)
    }

    #[test]
    fn affixes_count_characters() {
        assert_eq!(suffix("naïve", 3), Some("ïve"));
        assert_eq!(suffix("日本", 3), None);
        assert_eq!(prefix("日本", 2), Some("日本"));
        assert_eq!(prefix("日本", 1), Some("日"));
        assert_eq!(prefix("", 1), None);
        assert_eq!(value(&[Function::Lower, Function::Suffix(2), Function::Prefix(1)], "ΟΔΟΣ"), Some("ο".into()));
    }

    #[test]
    fn shapes_support_all_scripts() {
        let shape = |s: &str| value(&[Function::Shape], s).unwrap();
        assert_eq!(shape("Ab-9ß"), "Aa-0a");
        assert_eq!(shape("Привет"), "Aaaaaa");
        assert_eq!(shape("हिन्दी"), "aaa");
        assert_eq!(shape("٣٤"), "00");
        assert_eq!(shape("e\u{301}"), "a");
        assert_eq!(value(&[Function::ShortShape], "McDonald's-1990").unwrap(), "AaAa'a-0");
    }
}
