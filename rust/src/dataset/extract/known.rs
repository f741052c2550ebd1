//! Cache of the attributes of distinct texts in a locked vocabulary. It is kept between calls, since most words of a
//! text also occurred in the previous one (Zipf). Results do not depend on it.

use crate::dataset::csr::Csr;
use crate::dataset::extract::{chunks, Extractor, Hash, RulePlan, ABSENT};
use crate::dataset::runs::{RunTable, NO_RUN};
use crate::dataset::vocab::{Vocab, NONE};
use crate::features::rule::{outside, TemplateRule};
use crate::features::tokens::Tokens;
use crate::machine::system::reused::Reused;
use std::sync::Arc;

/// Maximum number of distinct texts in the cache, with a few hundred bytes each.
const MAX_TEXTS: usize = 1 << 16;

/// Distinct texts and their lookup results.
pub struct TextCache {
    pub tokens: Tokens,
    stamp: u64, // of the vocabulary
    pub found: TextRuns,
}

/// Lookup results of the texts of each column.
#[derive(Default)]
pub struct TextRuns {
    pub(super) run_table: Arc<RunTable>,
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
    pub fn put_back(self, kept: &Reused<TextCache>) {
        if self.tokens.texts() <= MAX_TEXTS {
            kept.put(self);
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
    pub(super) fn look_up_new_texts(&self, vocab: &Vocab, found: &mut TextRuns) {
        if found.run_table.ids.rows() == 1 {
            found.outside =
                [&self.node, &self.edge].map(|plan| outside_runs(plan, vocab, Arc::make_mut(&mut found.run_table)));
        }
        for (c, joined) in self.joined::<u64>().into_iter().enumerate() {
            let new = self.since[c]..self.tokens.columns[c].texts();
            debug_assert_eq!(new.start, found.first[c].len());
            if new.is_empty() {
                continue;
            }
            let runs = self.jobs.map(chunks(new.clone()), |texts| (texts.len(), self.runs(c, texts, vocab)));
            let run_table = Arc::make_mut(&mut found.run_table); // copied if a dataset shares it
            for (texts, runs) in runs {
                let first = run_table.append(&runs);
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
fn outside_runs(plan: &RulePlan<'_>, vocab: &Vocab, run_table: &mut RunTable) -> Vec<u32> {
    let of = plan.groups.iter().map(|group| {
        if !group.pad {
            return NO_RUN;
        }
        let mut rows = Csr::default();
        for distance in 1..=group.offset.abs() {
            let key = |rule: &&TemplateRule| outside_key(rule, distance * group.offset.signum());
            let id = |key: u64| if key == ABSENT.key { NONE } else { vocab.get(key) };
            push(&group.rules.iter().map(key).map(id).collect::<Vec<_>>(), &mut rows);
        }
        run_table.append(&rows)
    });
    of.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(texts: usize) -> TextCache {
        let mut cache = TextCache::new(1, 7);
        (0..texts).for_each(|i| cache.tokens.columns[0].push(&i.to_string()).unwrap());
        cache.tokens.end_sentence(texts);
        cache
    }

    #[test]
    fn cached_texts_belong_to_one_caller_and_one_vocabulary_and_are_bounded() {
        let kept = Reused::default();
        let texts = |stamp: u64| TextCache::take(&kept, 1, stamp).tokens.texts();
        of(3).put_back(&kept);
        let cache = TextCache::take(&kept, 1, 7);
        assert_eq!((cache.tokens.texts(), cache.tokens.len(), cache.tokens.tokens()), (3, 0, 0));
        assert_eq!(texts(7), 0); // taken by another caller
        cache.put_back(&kept);
        assert_eq!((texts(8), texts(7)), (0, 0)); // dropped, since it belongs to another vocabulary
        of(MAX_TEXTS).put_back(&kept);
        assert_eq!(texts(7), MAX_TEXTS);
        of(MAX_TEXTS + 1).put_back(&kept);
        assert_eq!(texts(7), 0);
    }
}
