//! Tokenization and sentence splitting of raw text. Tokens are disjoint spans of the text, in order, separated by
//! blanks only. Positions count characters (code points), as in Python.
//!
//! The rules follow the Unicode word boundaries (UAX 29) if these fit the data that taggers are trained on, and
//! annotated corpora (Penn Treebank, Universal Dependencies) otherwise. See docs/howto/raw-text.md for the full list.

mod kinds;
mod sentences;
mod specials;
mod words;

use crate::error::{Error, Result};
use crate::machine::system::stop;
use kinds::CharKind;
use rayon::prelude::*;
use std::collections::HashSet;

/// Options of the tokenizer.
#[derive(Clone, Debug, Default)]
pub struct Options {
    pub contractions: bool, // do|n't, Anna|'s
    pub hyphens: bool,      // well|-|known
    pub sentences: bool,    // if false, a text is one sentence
    /// Abbreviations in lower case, without their final dot.
    pub abbreviations: HashSet<String>,
}

/// Tokens and sentences of texts.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct TokenSpans {
    pub tokens: Vec<(u32, u32)>, // [tokens] start and end, in characters
    pub sentences: Vec<u64>,     // [sentences + 1] first token
    pub texts: Vec<u64>,         // [texts + 1] first sentence
}

/// Buffers for one text, reused for the next.
#[derive(Default)]
struct TokenizerScratch {
    chars: Vec<char>,
    kinds: Vec<CharKind>,
    tokens: Vec<(u32, u32)>,
    begins: Vec<u32>, // first token of each sentence
}

/// Text as the rules read it.
struct Text<'a> {
    chars: &'a [char],
    kinds: &'a [CharKind],
    options: &'a Options,
}

impl Text<'_> {
    fn len(&self) -> usize {
        self.chars.len()
    }

    /// Return the character at a position, if there is one.
    #[inline]
    fn char(&self, at: usize) -> Option<char> {
        self.chars.get(at).copied()
    }

    /// Return the kind of the character at a position, `Blank` beyond the text.
    #[inline]
    fn kind(&self, at: usize) -> CharKind {
        self.kinds.get(at).copied().unwrap_or(CharKind::Blank)
    }

    /// Return the kind of the character before a position, `Blank` at the start.
    #[inline]
    fn before(&self, at: usize) -> CharKind {
        if at == 0 {
            CharKind::Blank
        } else {
            self.kinds[at - 1]
        }
    }

    /// Return the end of the marks and joiners that extend the character before `at`.
    fn extended(&self, mut at: usize) -> usize {
        while self.kind(at) == CharKind::Extend {
            at += 1;
        }
        at
    }
}

impl TokenizerScratch {
    fn read(&mut self, text: &str, options: &Options) {
        self.chars.clear();
        self.kinds.clear();
        self.tokens.clear();
        self.begins.clear();
        self.chars.extend(text.chars());
        self.kinds.extend(self.chars.iter().map(|&c| kinds::kind(c)));
        let text = Text { chars: &self.chars, kinds: &self.kinds, options };
        let mut at = 0;
        while at < text.len() {
            if text.kind(at) == CharKind::Blank {
                at += 1;
                continue;
            }
            let end = text.token(at);
            self.tokens.push((at as u32, end as u32));
            at = end;
        }
        if !self.tokens.is_empty() {
            self.begins.push(0);
        }
        if options.sentences {
            text.sentences(&self.tokens, &mut self.begins);
        }
    }
}

/// Texts per parallel task.
const TEXTS_PER_TASK: usize = 64;

/// Find the tokens and sentences of texts, in order. The result does not depend on the number of threads.
pub fn tokenize<T: AsRef<str> + Sync>(texts: &[T], options: &Options) -> Result<TokenSpans> {
    if let Some(i) = texts.iter().position(|text| text.as_ref().len() > u32::MAX as usize) {
        return Err(Error::Value(format!("text {i} has more than 4,294,967,295 bytes; cut it into pieces")));
    }
    let stop = stop::current();
    let parts: Vec<TokenSpans> = texts
        .par_chunks(TEXTS_PER_TASK)
        .map(|texts| {
            let _guard = stop.enter();
            let (mut scratch, mut out) = (TokenizerScratch::default(), TokenSpans::default());
            for text in texts {
                stop::check();
                scratch.read(text.as_ref(), options);
                let first = out.tokens.len() as u64;
                out.tokens.extend_from_slice(&scratch.tokens);
                out.sentences.extend(scratch.begins.iter().map(|&t| first + u64::from(t)));
                out.texts.push(out.sentences.len() as u64);
            }
            out
        })
        .collect();
    let mut out = TokenSpans { tokens: Vec::new(), sentences: Vec::new(), texts: vec![0] };
    for part in parts {
        let (tokens, sentences) = (out.tokens.len() as u64, out.sentences.len() as u64);
        out.tokens.extend(part.tokens);
        out.sentences.extend(part.sentences.iter().map(|t| tokens + t));
        out.texts.extend(part.texts.iter().map(|s| sentences + s));
    }
    out.sentences.push(out.tokens.len() as u64);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options() -> Options {
        let abbreviations = ["dr", "etc"].map(str::to_owned).into();
        Options { contractions: true, hyphens: false, sentences: true, abbreviations }
    }

    fn tokens(text: &str) -> Vec<String> {
        let found = tokenize(&[text], &options()).unwrap();
        let chars: Vec<char> = text.chars().collect();
        found.tokens.iter().map(|&(a, b)| chars[a as usize..b as usize].iter().collect()).collect()
    }

    fn sentences(text: &str) -> usize {
        tokenize(&[text], &options()).unwrap().sentences.len() - 1
    }

    #[test]
    fn words_include_joining_punctuation() {
        assert_eq!(
            tokens("Dr. O'Neil doesn't pay $1,000.50."),
            ["Dr.", "O'Neil", "does", "n't", "pay", "$", "1,000.50", "."]
        );
        assert_eq!(tokens("well-known U.S. news, etc..."), ["well-known", "U.S.", "news", ",", "etc", "..."]);
        assert_eq!(tokens("end.Next example.com"), ["end", ".", "Next", "example.com"]);
        assert_eq!(tokens("AT&T's CEO’s"), ["AT&T", "'s", "CEO", "’s"]);
    }

    #[test]
    fn characters_of_several_code_points_are_not_split() {
        assert_eq!(tokens("cafe\u{301} 👩‍🚀👍🏽🇸🇪🇩🇰!"), ["cafe\u{301}", "👩‍🚀", "👍🏽", "🇸🇪", "🇩🇰", "!"]);
        assert_eq!(tokens("東京はカタカナ"), ["東", "京", "は", "カタカナ"]);
        assert_eq!(tokens("हिन्दी می\u{200c}خواهم"), ["हिन्दी", "می\u{200c}خواهم"]);
    }

    #[test]
    fn addresses_handles_and_smileys_are_tokens() {
        assert_eq!(tokens("(see https://a.b/c_(d)?e=1)."), ["(", "see", "https://a.b/c_(d)?e=1", ")", "."]);
        assert_eq!(tokens("me@x.org, @me #tag2 :-) <3"), ["me@x.org", ",", "@me", "#tag2", ":-)", "<3"]);
    }

    #[test]
    fn sentences_end_at_stops_and_blank_lines() {
        assert_eq!(sentences("He went. She stayed! \"Why?\" he asked. 你好。再见。"), 5);
        assert_eq!(sentences("Dr. J. Smith of the U.S. left"), 1);
        assert_eq!(sentences("a heading\n\nand text\nof two lines"), 2);
        assert_eq!(sentences(" \n "), 0);
    }
}
