//! Labels that form at most one contiguous span in a sentence: searches and sums over states (set of spans begun,
//! label).
//!
//! A state has the scores of its label. A step that begins a span of a group whose bit is already set is not allowed.
//! Each label path corresponds to one path of states, so the best paths, log Z and marginals of the states are those of
//! the allowed label paths. With n tracked groups, a token costs 2^n times as much.
//!
//! `search` tracks only the groups that a sentence's best paths repeat, `sum` all of them.

pub mod search;
pub mod sum;

use crate::error::{Error, Result};

/// No group.
pub const NONE: u32 = u32::MAX;
/// Maximum number of groups that can be tracked at once.
pub const MAX_GROUPS: usize = 12;

/// Lengths of the k-best lists that are searched for an allowed path, if the search cannot enforce the rule itself.
pub const LISTS: [usize; 3] = [16, 128, 1024];

/// Labels that may occur in only one span.
#[derive(Clone, Debug)]
pub struct Groups {
    pub of: Vec<u32>,      // [L] group of each label, or NONE
    pub begins: Vec<bool>, // [L + 1, L] whether a span begins between two labels, row L: at the start of the sentence
}

impl Groups {
    /// Check the number of labels.
    pub fn check(&self, labels: usize) -> Result<()> {
        match self.of.len() == labels && self.begins.len() == (labels + 1) * labels {
            true => Ok(()),
            false => Err(Error::Value(format!("groups of {} labels for a model of {labels}", self.of.len()))),
        }
    }

    /// Add the groups that begin more than one span on a path to `found`.
    pub fn repeated(&self, path: &[u16], found: &mut Vec<u32>) {
        let l = self.of.len();
        let mut before = l;
        for (t, &y) in path.iter().enumerate() {
            let group = self.of[y as usize];
            if group != NONE && self.begins[before * l + y as usize] && !found.contains(&group) {
                // Spans are few and short compared with sentences, so scan back for another beginning. An earlier token
                // of the group is not enough: a group of I-X alone continues after B-X without beginning a span.
                let mut previous = l;
                for &z in &path[..t] {
                    if self.of[z as usize] == group && self.begins[previous * l + z as usize] {
                        found.push(group);
                        break;
                    }
                    previous = z as usize;
                }
            }
            before = y as usize;
        }
    }

    /// Whether every group begins at most one span on a path.
    pub fn allows(&self, path: &[u16]) -> bool {
        let mut found = Vec::new();
        self.repeated(path, &mut found);
        found.is_empty()
    }

    /// All groups.
    pub fn all(&self) -> Vec<u32> {
        let mut all: Vec<u32> = self.of.iter().copied().filter(|&g| g != NONE).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Bit that a label sets when it begins a span, 0 for labels of untracked groups: [L].
    fn bits(&self, tracked: &[u32]) -> Vec<usize> {
        self.of.iter().map(|g| tracked.iter().position(|a| a == g).map_or(0, |i| 1 << i)).collect()
    }

    /// Check that gold paths satisfy the rule. `sentences` [N + 1]: the first token of each.
    pub fn check_gold(&self, sentences: &[usize], gold: &[u16], labels: usize) -> Result<()> {
        self.check(labels)?;
        for (i, s) in sentences.windows(2).enumerate() {
            if !self.allows(&gold[s[0]..s[1]]) {
                let message =
                    "a label that may occur once has two spans in its gold labels; correct the sentence, let \
                               the label not be such, or leave the rule to decoding (constraints= of predict)";
                return Err(Error::Training(message.into()).of_sentence(i));
            }
        }
        Ok(())
    }

    /// Check that sums over states are feasible.
    pub fn check_sum(&self) -> Result<()> {
        match self.all().len() <= MAX_GROUPS {
            true => Ok(()),
            false => Err(Error::Value(format!(
                "{} labels may occur once, sums over paths can keep track of {MAX_GROUPS}; let fewer be such, or leave the rule \
                 to decoding (constraints= of predict)",
                self.all().len()
            ))),
        }
    }
}

pub(crate) fn too_many(sentence: usize, groups: usize) -> Error {
    Error::Value(format!(
        "{groups} labels that may occur once compete, {MAX_GROUPS} can be told apart; let fewer be such"
    ))
    .of_sentence(sentence)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Labels O, B, I. The group is I alone, which begins a span after O and continues one after B and I.
    #[test]
    fn a_token_that_continues_a_span_begins_no_other() {
        let mut begins = vec![false; 4 * 3];
        for (before, y) in [(0, 1), (1, 1), (2, 1), (0, 2), (3, 0), (3, 1), (3, 2)] {
            begins[before * 3 + y] = true;
        }
        let groups = Groups { of: vec![NONE, NONE, 0], begins };
        assert!(groups.allows(&[1, 2, 0, 2])); // B I O I: one span of the group, after O
        assert!(!groups.allows(&[2, 0, 2])); // I O I: two
        assert!(groups.allows(&[1, 2, 2, 1, 2]));
    }
}
