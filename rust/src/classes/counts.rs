//! Counts of words and of neighbouring words in a stream of sentences. Counts are kept, not text.
//!
//! The boundary of a sentence is a word of its own, so that every token is once the first and once the second word of a
//! bigram.

use crate::error::{Error, Result};
use crate::features::class_table::normalized;
use crate::features::tokens::{Column, Tokens};
use crate::machine::system::budget;
use crate::machine::system::stop;
use hashbrown::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Number of the sentence boundary among the words.
pub const BOUNDARY: u32 = 0;
/// Sentences between two checks for a stop.
const LOOK: usize = 1024;
/// Bytes of a bigram in the table, at its lowest occupancy.
const ENTRY: usize = 40;

/// Hasher of bigrams: a multiplication spreads both words over all bits.
#[derive(Default)]
pub struct PairHasher(u64);

impl Hasher for PairHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(self.0 ^ u64::from(byte));
        }
    }

    #[inline(always)]
    fn write_u64(&mut self, pair: u64) {
        let product = u128::from(pair ^ 0x9e37_79b9_7f4a_7c15) * 0xd6e8_feb8_6659_fd93;
        self.0 = product as u64 ^ (product >> 64) as u64;
    }
}

/// Counts of a stream.
pub struct Counts {
    ignore_case: bool,
    words: Column,    // word w is text w - 1
    known: Vec<u32>,  // [texts of the tokens] word of each
    tokens: Vec<u64>, // [words] occurrences; those of the boundary are the sentences
    pairs: HashMap<u64, u64, BuildHasherDefault<PairHasher>>,
}

impl Counts {
    pub fn new(ignore_case: bool) -> Counts {
        Counts { ignore_case, words: Column::default(), known: Vec::new(), tokens: vec![0], pairs: HashMap::default() }
    }

    pub fn ignores_case(&self) -> bool {
        self.ignore_case
    }

    /// Return the number of words, including the boundary.
    pub fn words(&self) -> usize {
        self.tokens.len()
    }

    /// Return the text of a word. That of the boundary is empty.
    pub fn text(&self, word: usize) -> &str {
        if word == 0 {
            return "";
        }
        self.words.text(word - 1)
    }

    /// Return the occurrences of every word. Those of the boundary are the sentences.
    pub fn tokens(&self) -> &[u64] {
        &self.tokens
    }

    /// Return the bigrams with their counts, ordered by first and second word.
    pub fn sorted_pairs(&self) -> Vec<(u32, u32, u64)> {
        let mut pairs: Vec<_> = self.pairs.iter().map(|(&pair, &n)| ((pair >> 32) as u32, pair as u32, n)).collect();
        pairs.sort_unstable();
        pairs
    }

    /// Return the number of distinct bigrams.
    pub fn pairs(&self) -> usize {
        self.pairs.len()
    }

    /// Count the sentences of the first column. Distinct texts must have the same numbers in every call.
    pub fn add(&mut self, tokens: &Tokens) -> Result<()> {
        let column = &tokens.columns[0];
        let mut word = String::new();
        for number in self.known.len()..column.texts() {
            word.clear();
            normalized(column.text(number), self.ignore_case, &mut word);
            self.words.push(&word)?;
            let found = self.words.cells.pop().unwrap_or(0) + 1;
            if found as usize == self.tokens.len() {
                self.tokens.push(0);
            }
            self.known.push(found);
        }
        if self.tokens.len() >= u32::MAX as usize {
            return Err(Error::Value("more than 4,294,967,294 distinct words; learn from less text".into()));
        }
        budget::claim_linear(
            "the counts of bigrams",
            budget::bytes(&[self.pairs.len(), ENTRY]),
            "learn from less text",
        )?;
        for (s, bounds) in tokens.sentences.windows(2).enumerate() {
            if s % LOOK == 0 {
                stop::check();
            }
            let mut before = BOUNDARY;
            for &text in &column.cells[bounds[0]..bounds[1]] {
                let word = self.known[text as usize];
                self.tokens[word as usize] += 1;
                *self.pairs.entry(u64::from(before) << 32 | u64::from(word)).or_insert(0) += 1;
                before = word;
            }
            if bounds[0] < bounds[1] {
                self.tokens[BOUNDARY as usize] += 1;
                *self.pairs.entry(u64::from(before) << 32 | u64::from(BOUNDARY)).or_insert(0) += 1;
            }
        }
        Ok(())
    }
}
