//! Texts of sentences in one flat table: columns x tokens, each cell the number of a distinct text.
//!
//! Texts repeat (Zipf), so each column stores its distinct texts once. Functions of a text alone are then computed
//! once per distinct text instead of once per token.

use crate::error::{Error, Result};
use crate::machine::system::hash::{hash, Key};

const EMPTY: u32 = u32::MAX;

/// Distinct texts in order of first occurrence, and the text of every token.
#[derive(Clone, Debug)]
pub struct Column {
    pub cells: Vec<u32>, // [tokens] number of the text of each token
    bytes: String,       // concatenated distinct texts
    ends: Vec<usize>,    // [texts]
    keys: Vec<Key>,      // [texts] hash of each
    table: Vec<u32>,     // open addressing, a power of two of slots, at most half of them occupied
}

impl Default for Column {
    fn default() -> Self {
        Column { cells: Vec::new(), bytes: String::new(), ends: Vec::new(), keys: Vec::new(), table: vec![EMPTY; 256] }
    }
}

impl Column {
    /// Return the number of distinct texts.
    pub fn texts(&self) -> usize {
        self.ends.len()
    }

    /// Return a distinct text.
    #[inline]
    pub fn text(&self, number: usize) -> &str {
        let begin = if number == 0 { 0 } else { self.ends[number - 1] };
        &self.bytes[begin..self.ends[number]]
    }

    /// Return the hash of a distinct text.
    #[inline]
    pub fn key(&self, number: usize) -> Key {
        self.keys[number]
    }

    /// Return the number of a distinct text.
    pub fn find(&self, text: &str) -> Option<usize> {
        let (key, mask) = (Key::lookup(text), self.table.len() - 1);
        let mut slot = key as usize & mask;
        loop {
            let number = self.table[slot];
            if number == EMPTY {
                return None;
            }
            if self.keys[number as usize].key == key && self.text(number as usize) == text {
                return Some(number as usize);
            }
            slot = (slot + 1) & mask;
        }
    }

    /// Append one token.
    #[inline]
    pub fn push(&mut self, text: &str) -> Result<()> {
        let key = Key::lookup(text);
        let mask = self.table.len() - 1;
        let mut slot = key as usize & mask;
        loop {
            let number = self.table[slot];
            if number == EMPTY {
                break;
            }
            if self.keys[number as usize].key == key && self.text(number as usize) == text {
                self.cells.push(number);
                return Ok(());
            }
            slot = (slot + 1) & mask;
        }
        let number = self.ends.len() as u32;
        if number == EMPTY {
            return Err(Error::Value(
                "a column has 4,294,967,295 distinct texts; encode fewer sentences at a time".into(),
            ));
        }
        self.table[slot] = number;
        self.bytes.push_str(text);
        self.ends.push(self.bytes.len());
        self.keys.push(hash(text.as_bytes()));
        self.cells.push(number);
        if 2 * self.ends.len() > self.table.len() {
            self.grow();
        }
        Ok(())
    }

    fn grow(&mut self) {
        let slots = 4 * self.table.len();
        let mut table = vec![EMPTY; slots];
        for (number, key) in self.keys.iter().enumerate() {
            let mut slot = key.key as usize & (slots - 1);
            while table[slot] != EMPTY {
                slot = (slot + 1) & (slots - 1);
            }
            table[slot] = number as u32;
        }
        self.table = table;
    }
}

/// Sentences of tokens in columns.
#[derive(Clone, Debug)]
pub struct Tokens {
    pub columns: Vec<Column>,
    pub sentences: Vec<usize>, // [N + 1] first token of each sentence
}

impl Tokens {
    pub fn new(columns: usize) -> Tokens {
        Tokens { columns: vec![Column::default(); columns], sentences: vec![0] }
    }

    /// Return the number of sentences.
    pub fn len(&self) -> usize {
        self.sentences.len() - 1
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Return the number of tokens in finished sentences.
    pub fn tokens(&self) -> usize {
        self.sentences.last().copied().unwrap_or(0)
    }

    /// Close the sentence whose tokens were pushed to every column.
    pub fn end_sentence(&mut self, length: usize) {
        self.sentences.push(self.tokens() + length);
    }

    /// Remove all sentences. Distinct texts keep their numbers.
    pub fn clear(&mut self) {
        self.columns.iter_mut().for_each(|column| column.cells.clear());
        self.sentences.truncate(1);
    }

    /// Return the number of distinct texts in all columns.
    pub fn texts(&self) -> usize {
        self.columns.iter().map(Column::texts).sum()
    }

    /// Return the text of a token.
    pub fn text(&self, column: usize, token: usize) -> &str {
        let column = &self.columns[column];
        column.text(column.cells[token] as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_tokens_are_preserved() {
        let mut tokens = Tokens::new(1);
        let words: Vec<String> = (0..3000).map(|i| format!("w{}", i * i % 1237)).collect();
        for word in &words {
            tokens.columns[0].push(word).unwrap();
        }
        tokens.end_sentence(words.len());
        assert!(words.iter().enumerate().all(|(t, w)| tokens.text(0, t) == w));
        assert!(tokens.columns[0].texts() <= 1237);
    }
}
