//! Character classes of the tokenizer.

use crate::features::text::{class, Class};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CharKind {
    Blank,     // space, controls, direction marks: in no token
    Letter,    // part of a word
    Digit,     // part of a word or a number
    Connector, // _ and similar: part of a word
    Extend,    // marks, joiners, variation selectors: part of the previous character
    Single,    // Han and Hiragana: one token per character
    Katakana,  // a sequence is one token
    Flag,      // regional indicators: a pair is a flag
    Symbol,    // emoji and all other symbols
    Punct,
}

impl CharKind {
    /// Return whether the character can continue a word.
    #[inline]
    pub fn in_word(self) -> bool {
        matches!(self, CharKind::Letter | CharKind::Digit | CharKind::Connector | CharKind::Extend)
    }
}

/// Zero-width joiner: 👩 and 🚀 form one character.
pub const ZWJ: char = '\u{200d}';

/// Return the kind of a character, with a fast path for ASCII.
#[inline]
pub fn kind(c: char) -> CharKind {
    match c {
        'a'..='z' | 'A'..='Z' => CharKind::Letter,
        '0'..='9' => CharKind::Digit,
        '\0'..=' ' | '\x7f' => CharKind::Blank,
        '_' => CharKind::Connector,
        '$' | '+' | '<' | '=' | '>' | '^' | '`' | '|' | '~' => CharKind::Symbol,
        '!'..='\x7e' => CharKind::Punct,
        _ => non_ascii_kind(c),
    }
}

/// Return the kind of a character outside of ASCII.
fn non_ascii_kind(c: char) -> CharKind {
    match c {
        // Not a space by category, but invisible: these characters separate words.
        '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
            CharKind::Blank
        }
        '\u{feff}' | '\u{fff9}'..='\u{fffb}' => CharKind::Blank,
        '\u{80}'..='\u{a0}' | '\u{1680}' | '\u{2000}'..='\u{200a}' | '\u{2028}' | '\u{2029}' | '\u{202f}' => {
            CharKind::Blank
        }
        '\u{205f}' | '\u{3000}' => CharKind::Blank,
        '\u{ad}' | '\u{200c}' | ZWJ | '\u{2060}'..='\u{2064}' | '\u{e0000}'..='\u{e007f}' => CharKind::Extend,
        '\u{ff9e}' | '\u{ff9f}' => CharKind::Extend, // half-width voiced marks
        '\u{1f3fb}'..='\u{1f3ff}' => CharKind::Extend, // skin tones
        '\u{1f1e6}'..='\u{1f1ff}' => CharKind::Flag,
        '\u{3005}'..='\u{3007}' | '\u{3021}'..='\u{3029}' | '\u{3038}'..='\u{303b}' => CharKind::Single,
        '\u{3041}'..='\u{3096}' | '\u{309d}'..='\u{309f}' | '\u{1b001}'..='\u{1b11f}' => CharKind::Single,
        '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}' => {
            CharKind::Single
        }
        '\u{30a1}'..='\u{30fa}' | '\u{30fc}'..='\u{30ff}' | '\u{31f0}'..='\u{31ff}' | '\u{ff66}'..='\u{ff9d}' => {
            CharKind::Katakana
        }
        '\u{203f}' | '\u{2040}' | '\u{2054}' | '\u{fe33}' | '\u{fe34}' | '\u{fe4d}'..='\u{fe4f}' | '\u{ff3f}' => {
            CharKind::Connector
        }
        _ => match class(c) {
            Class::Upper | Class::Lower | Class::Letter | Class::Number => CharKind::Letter,
            Class::Digit => CharKind::Digit,
            Class::Mark => CharKind::Extend,
            Class::Punct => CharKind::Punct,
            Class::Symbol => CharKind::Symbol,
            // Format characters of scripts (such as Arabic number signs), private use, unassigned.
            Class::Other => CharKind::Letter,
        },
    }
}

/// Return whether a character is an apostrophe, typewriter or typographic.
pub fn is_apostrophe(c: char) -> bool {
    matches!(c, '\'' | '\u{2019}' | '\u{ff07}')
}
