//! Scores of the gold tags of sentences, and counts of their labels and pairs of labels.

use crate::chain::emissions::{Chains, Expected};
use crate::chain::sums::underflow::exceeds_log_z;
use crate::machine::system::shared::Shared;

impl Chains<'_> {
    /// Gold tags of a sentence, if there are any. Tags that are not labels are not counted.
    #[inline(always)]
    fn tags_of(&self, b: usize) -> Option<&[i64]> {
        let begin = b * self.time;
        self.tags.map(|tags| &tags[begin..begin + self.lengths[b] as usize])
    }

    /// log Z, or the log-likelihood of the tags. It is -infinity if no path is allowed, and NaN if a tag is not a
    /// label. `edge`: the edge scores that log Z was computed from.
    pub fn value(&self, b: usize, log_z: f64, edge: &[f64]) -> f64 {
        let Some(tags) = self.tags_of(b) else { return log_z };
        let (l, mut score, mut before) = (self.labels, 0.0, None);
        let node = self.node[b * self.time * l..].chunks_exact(l);
        for (&tag, row) in tags.iter().zip(node) {
            if tag < 0 || tag >= l as i64 {
                return f64::NAN;
            }
            let y = tag as usize;
            score += f64::from(row[y]) + before.map_or(f64::from(self.start[y]), |k: usize| edge[k * l + y]);
            before = Some(y);
        }
        score += before.map_or(0.0, |y| f64::from(self.end[y]));
        debug_assert!(!exceeds_log_z(score, log_z, tags.len()), "the tags score {score}, log Z is {log_z}");
        if log_z == f64::NEG_INFINITY {
            log_z
        } else {
            score - log_z
        }
    }

    /// Add the weight of a sentence for each of its tags and each pair of neighbouring tags.
    ///
    /// # Safety
    /// No other thread works on the sentence.
    pub unsafe fn count(&self, b: usize, weight: f64, out: &Shared<'_, f32>, sums: &mut Expected) {
        let Some(tags) = self.tags_of(b) else { return };
        let (l, mut before) = (self.labels, None);
        let label = |&tag: &i64| usize::try_from(tag).ok().filter(|&y| y < l);
        for (t, y) in tags.iter().map(label).enumerate() {
            if let Some(y) = y {
                out.add((b * self.time + t) * l + y, weight as f32);
                if let Some(k) = before {
                    let k: usize = k;
                    sums.edge[k * l + y] += weight;
                }
            }
            before = y;
        }
        if let Some(y) = tags.first().and_then(label) {
            sums.start[y] += weight;
        }
        if let Some(y) = before {
            sums.end[y] += weight;
        }
    }
}
