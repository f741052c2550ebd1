//! Words that repeat within a document, and the labels assigned in its earlier sentences.

use crate::dataset::Dataset;
use crate::error::{Error, Result};
use crate::machine::simd::{Lane, Simd};
use crate::machine::system::budget;

use crate::chain::lookback::Lookback;

/// Words of a corpus by document.
#[derive(Clone, Debug, Default)]
pub struct Words {
    pub documents: Vec<u32>, // [documents + 1] first sentence of each
    pub local: Vec<u32>,     // [tokens] number of the word within its document
    pub distinct: Vec<u32>,  // [documents] number of distinct words
    pub same: Vec<u32>,      // [tokens] distance to the previous token with the same word in the sentence, 0 if none
    pub before: Vec<f32>, // [words of the first document, L] label counts from before its first sentence here, or empty
}

impl Words {
    /// `word` [tokens]: equal numbers for equal words. `starts`: first sentence of each document.
    pub fn new(data: &Dataset, word: &[u32], starts: &[u32]) -> Result<Words> {
        let n = data.len() as u32;
        if word.len() != data.tokens() {
            return Err(Error::Value(format!(
                "{} words for {} tokens; pass one word per token",
                word.len(),
                data.tokens()
            )));
        }
        if starts.first().is_some_and(|&s| s != 0) || starts.windows(2).any(|w| w[0] >= w[1]) {
            return Err(Error::Value("documents begin at 0 and at ascending sentences".into()));
        }
        if starts.last().is_some_and(|&s| s >= n.max(1)) || (starts.is_empty() && n > 0) {
            return Err(Error::Value(format!("a document begins outside the {n} sentences")));
        }
        let n_words = word.iter().copied().max().map_or(0, |w| w as usize + 1);
        budget::claim("numbers of words", budget::bytes(&[n_words, 16]), "number words from 0 on")?;
        let mut of = vec![(u32::MAX, 0u32); n_words]; // (document, number in it)
        let mut last = vec![usize::MAX; n_words]; // token
        let mut out = Words { documents: starts.to_vec(), ..Words::default() };
        out.documents.push(n);
        for (d, s) in out.documents.windows(2).enumerate() {
            let mut distinct = 0;
            for s in s[0] as usize..s[1] as usize {
                let begin = data.sentences[s];
                for t in begin..data.sentences[s + 1] {
                    let w = word[t] as usize;
                    if of[w].0 != d as u32 {
                        of[w] = (d as u32, distinct);
                        distinct += 1;
                    }
                    out.local.push(of[w].1);
                    let in_sentence = last[w] != usize::MAX && last[w] >= begin;
                    out.same.push(if in_sentence { (t - last[w]) as u32 } else { 0 });
                    last[w] = t;
                }
            }
            out.distinct.push(distinct);
        }
        Ok(out)
    }

    /// Set the labels that words of the first document had before its first sentence. `word`: their numbers as given to
    /// `new`, `counts` [words, L].
    pub fn set_earlier_counts(&mut self, all: &[u32], word: &[u32], counts: &[f32], labels: usize, data: &Dataset) {
        let Some(&distinct) = self.distinct.first() else { return };
        self.before = vec![0.0; distinct as usize * labels];
        let end = data.sentences[self.documents[1] as usize];
        let place: std::collections::HashMap<u32, u32> =
            all[..end].iter().copied().zip(self.local[..end].iter().copied()).collect();
        for (w, row) in word.iter().zip(counts.chunks_exact(labels)) {
            if let Some(&at) = place.get(w) {
                self.before[at as usize * labels..(at as usize + 1) * labels].copy_from_slice(row);
            }
        }
    }
}

/// Labels assigned to the words of one document so far.
#[derive(Default)]
pub struct DocumentState {
    counts: Vec<f32>, // [words of the document, L]
}

impl DocumentState {
    /// Begin document d.
    pub fn begin(&mut self, words: &Words, d: usize, labels: usize) {
        self.counts.clear();
        if d == 0 && !words.before.is_empty() {
            self.counts.extend_from_slice(&words.before);
        }
        self.counts.resize(words.distinct[d] as usize * labels, 0.0);
    }

    /// Number of times each label was assigned to the word of a token.
    #[inline(always)]
    pub fn counts(&self, words: &Words, token: usize, labels: usize) -> &[f32] {
        let at = words.local[token] as usize * labels;
        &self.counts[at..at + labels]
    }

    /// Add the labels of a decoded sentence.
    pub fn add(&mut self, words: &Words, begin: usize, path: &[u16], labels: usize) {
        for (t, &y) in path.iter().enumerate() {
            self.counts[words.local[begin + t] as usize * labels + y as usize] += 1.0;
        }
    }

    /// Add the contribution of earlier sentences to the node scores of a token: sum_u R[y_u, y].
    #[inline(always)]
    pub(crate) fn score<S: Simd>(
        &self,
        simd: S,
        terms: &Lookback,
        rows: &[Lane],
        words: &Words,
        token: usize,
        node: &mut [Lane],
    ) {
        let width = node.len();
        for (label, &n) in self.counts(words, token, terms.labels).iter().enumerate() {
            if n != 0.0 {
                let row = &rows[terms.repeat_row(label) * width..];
                for (x, r) in node.iter_mut().zip(row) {
                    // A product, then a sum: the same bits with and without fused multiply-add.
                    simd.store(simd.add(simd.load(x), simd.mul(simd.splat(n), simd.load(r))), x);
                }
            }
        }
    }
}
