//! Cache of the attributes of distinct texts in a locked vocabulary. It is kept between calls, since most words of a
//! text also occurred in the previous one (Zipf). Results do not depend on it.

use crate::dataset::csr::Csr;
use crate::dataset::extract::{chunks, Extractor, Hash, RulePlan, ABSENT};
use crate::dataset::runs::{RunTable, NOTHING};
use crate::dataset::vocab::{Vocab, NONE};
use crate::features::rule::{outside, TemplateRule};
use crate::features::tokens::Tokens;
use crate::machine::system::reused::Reused;
use std::sync::Arc;

/// Maximum number of distinct texts in the cache, with a few hundred bytes each.
const MOST_TEXTS: usize = 1 << 16;

/// Distinct texts and their lookup results.
pub struct TextCache {
    pub tokens: Tokens,
    stamp: u64, // of the vocabulary
    pub found: TextRuns,
}

/// Lookup results of the texts of each column.
#[derive(Default)]
pub struct TextRuns {
    pub(super) book: Arc<RunTable>,
    /// [columns] [texts] first run of a text, which has one run per group of the column.
    pub(super) first: Vec<Vec<u32>>,
    /// [columns] [texts x shared] values of the atoms that joint rules use.
    pub(super) joined: Vec<Vec<u64>>,
    /// First run outside of a sentence, for each group of the node and of the edge rules. Runs at larger distances
    /// follow it.
    pub(super) outside: [Vec<u32>; 2],
}

impl TextCache {
    pub fn new(columns: usize, stamp: u64) -> TextCache {
        let found =
            TextRuns { first: vec![Vec::new(); columns], joined: vec![Vec::new(); columns], ..TextRuns::default() };
        TextCache { tokens: Tokens::new(columns), stamp, found }
    }

    /// Take the cache of this vocabulary, without sentences, or an empty one. The caller owns it.
    pub fn take(kept: &Reused<TextCache>, columns: usize, stamp: u64) -> TextCache {
        match kept.take().filter(|cache| cache.stamp == stamp) {
            Some(mut cache) => {
                cache.tokens.clear();
                cache
            }
            None => TextCache::new(columns, stamp),
        }
    }

    /// Leave the cache to the next call. It is dropped if it is too large.
    pub fn give(self, kept: &Reused<TextCache>) {
        if self.tokens.texts() <= MOST_TEXTS {
            kept.give(self);
        }
    }

    /// Return the number of texts with lookup results, [columns].
    pub fn since(&self) -> Vec<usize> {
        self.found.first.iter().map(Vec::len).collect()
    }
}

/// Return the key of a rule whose parts are all `distance` tokens outside of the sentence, or `ABSENT`.
fn outside_key(rule: &TemplateRule, distance: isize) -> u64 {
    if !rule.pad || rule.parts.iter().any(|part| part.test) {
        return ABSENT.key;
    }
    let value = outside(distance).key;
    rule.parts.iter().fold(rule.seed.key, |key, _| key.mix(value)).present()
}

/// Append a row of the known attributes.
fn push(ids: &[u32], rows: &mut Csr) {
    rows.ids.extend(ids.iter().filter(|&&id| id != NONE));
    rows.end_row();
}

impl Extractor<'_> {
    /// Look up the texts that are not in the cache yet.
    pub(super) fn meet(&self, vocab: &Vocab, found: &mut TextRuns) {
        if found.book.ids.rows() == 1 {
            found.outside =
                [&self.node, &self.edge].map(|plan| outside_runs(plan, vocab, Arc::make_mut(&mut found.book)));
        }
        for (c, joined) in self.joined::<u64>().into_iter().enumerate() {
            let new = self.since[c]..self.tokens.columns[c].texts();
            debug_assert_eq!(new.start, found.first[c].len());
            if new.is_empty() {
                continue;
            }
            let runs = self.jobs.map(chunks(new.clone()), |texts| (texts.len(), self.runs(c, texts, vocab)));
            let book = Arc::make_mut(&mut found.book); // copied if a dataset shares it
            for (texts, runs) in runs {
                let first = book.append(&runs);
                found.first[c].extend((0..texts).map(|text| first + (text * self.groups[c]) as u32));
            }
            found.joined[c].extend(joined);
        }
    }

    /// Look up the runs of the groups of a column at these texts.
    fn runs(&self, column: usize, texts: std::ops::Range<usize>, vocab: &Vocab) -> Csr {
        let groups = || self.node.groups.iter().chain(&self.edge.groups).filter(|g| g.column == column);
        let (mut rows, mut keys, mut ids) = (Csr::default(), Vec::new(), Vec::new());
        for text in texts {
            keys.clear();
            for group in groups() {
                keys.extend(group.rules.iter().map(|rule| self.group_key(rule, column, text).key));
            }
            vocab.get_many(&keys, &mut ids);
            let mut rest = &ids[..];
            for group in groups() {
                let here;
                (here, rest) = rest.split_at(group.rules.len());
                push(here, &mut rows);
            }
        }
        rows
    }
}

/// Add the runs of each group at positions outside of a sentence, nearest first, and return the first run of each
/// group.
fn outside_runs(plan: &RulePlan<'_>, vocab: &Vocab, book: &mut RunTable) -> Vec<u32> {
    let of = plan.groups.iter().map(|group| {
        if !group.pad {
            return NOTHING;
        }
        let mut rows = Csr::default();
        for distance in 1..=group.offset.abs() {
            let key = |rule: &&TemplateRule| outside_key(rule, distance * group.offset.signum());
            let id = |key: u64| if key == ABSENT.key { NONE } else { vocab.get(key) };
            push(&group.rules.iter().map(key).map(id).collect::<Vec<_>>(), &mut rows);
        }
        book.append(&rows)
    });
    of.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(texts: usize) -> TextCache {
        let mut known = TextCache::new(1, 7);
        (0..texts).for_each(|i| known.tokens.columns[0].push(&i.to_string()).unwrap());
        known.tokens.end_sentence(texts);
        known
    }

    #[test]
    fn texts_are_kept_for_one_caller_one_vocabulary_and_up_to_a_number() {
        let kept = Reused::default();
        let texts = |stamp: u64| TextCache::take(&kept, 1, stamp).tokens.texts();
        of(3).give(&kept);
        let known = TextCache::take(&kept, 1, 7);
        assert_eq!((known.tokens.texts(), known.tokens.len(), known.tokens.tokens()), (3, 0, 0));
        assert_eq!(texts(7), 0); // taken by another caller
        known.give(&kept);
        assert_eq!((texts(8), texts(7)), (0, 0)); // dropped, since it belongs to another vocabulary
        of(MOST_TEXTS).give(&kept);
        assert_eq!(texts(7), MOST_TEXTS);
        of(MOST_TEXTS + 1).give(&kept);
        assert_eq!(texts(7), 0);
    }
}
