//! Instances of CRFsuite trainers: names numbered by first occurrence, rows of ids, and their features.

use crate::dataset::csr::Csr;
use crate::dataset::vocab::Vocab;
use crate::dataset::{Dataset, NO_LABEL};
use crate::error::{Error, Result};
use crate::foreign::claim_pairs;
use crate::foreign::names::Names;
use crate::machine::system::hash::Key;
use std::collections::HashMap;

/// Instances appended to a trainer.
#[derive(Default)]
pub struct Instances {
    pub vocab: Vocab,
    pub labels: Vec<String>,
    numbers: HashMap<String, u16>,
    pub ptr: Vec<usize>, // [items + 1] start of the attributes of each item
    pub ids: Vec<u32>,
    pub values: Vec<f64>,   // empty if all are 1
    pub gold: Vec<u16>,     // [items]
    pub bounds: Vec<usize>, // [N + 1] start of the items of each sequence
    groups: Vec<i64>,
    keys: Vec<Key>,
}

/// Codes of features, ascending: attribute * L + label for nodes, label' * L + label for edges.
pub struct Features {
    pub node: Vec<i64>,
    pub edge: Vec<i64>,
    pub negative: usize, // number of features left out with a sum below 0
}

impl Instances {
    pub fn new() -> Instances {
        Instances { vocab: Vocab::new(), ptr: vec![0], bounds: vec![0], ..Instances::default() }
    }

    /// Return the number of a label, which is added if it is new.
    pub fn number(&mut self, label: &str) -> Result<u16> {
        if let Some(&y) = self.numbers.get(label) {
            return Ok(y);
        }
        if self.labels.len() + 1 >= NO_LABEL as usize {
            return Err(Error::Value(format!("more than {} labels; expected fewer", NO_LABEL - 2)));
        }
        let y = self.labels.len() as u16;
        self.labels.push(label.into());
        self.numbers.insert(label.into(), y);
        Ok(y)
    }

    /// Append a sequence: names, which must be UTF-8, and one label per item.
    pub fn append(&mut self, names: &Names, labels: &[&str], group: i64) -> Result<()> {
        if labels.is_empty() {
            return Ok(());
        }
        let text = |i: usize| std::str::from_utf8(names.name(i)).unwrap_or("");
        self.keys.clear();
        self.keys.extend((0..names.ends.len()).map(|i| Key::of_text(text(i))));
        self.vocab.intern_many(&self.keys, &mut self.ids, |i| names.name(i))?;
        let before_append = self.ids.len() - names.ends.len();
        if !names.values.is_empty() {
            self.values.resize(before_append, 1.0);
            self.values.extend_from_slice(&names.values);
        } else if !self.values.is_empty() {
            self.values.resize(self.ids.len(), 1.0);
        }
        let before = self.ptr[self.ptr.len() - 1];
        self.ptr.extend(names.items.iter().map(|&end| before + end));
        for &label in labels {
            let y = self.number(label)?;
            self.gold.push(y);
        }
        self.bounds.push(self.gold.len());
        self.groups.push(group);
        Ok(())
    }

    /// Return the sequences to train on, or those of the holdout group if `inside`. A negative `holdout` means none.
    pub fn chosen(&self, holdout: i64, inside: bool) -> Vec<usize> {
        (0..self.groups.len()).filter(|&s| (holdout >= 0 && self.groups[s] == holdout) == inside).collect()
    }

    pub fn items(&self, s: usize) -> std::ops::Range<usize> {
        self.bounds[s]..self.bounds[s + 1]
    }

    #[inline(always)]
    pub fn value(&self, i: usize) -> f64 {
        self.values.get(i).copied().unwrap_or(1.0)
    }

    /// Return the features of sequences whose values sum to at least `min_sum`. `states` and `transitions` include
    /// those that do not occur, with a sum of 0. Only attributes that occur count.
    pub fn features(&self, chosen: &[usize], min_sum: f64, states: bool, transitions: bool) -> Result<Features> {
        let l = self.labels.len();
        let mut begin = vec![0u64; self.vocab.len() + 1];
        let items = || chosen.iter().flat_map(|&s| self.items(s));
        for t in items() {
            self.ids[self.ptr[t]..self.ptr[t + 1]].iter().for_each(|&id| begin[id as usize + 1] += 1);
        }
        (1..begin.len()).for_each(|a| begin[a] += begin[a - 1]);
        let total = begin[begin.len() - 1] as usize;
        let (mut label, mut value) = (vec![0u16; total], vec![0.0; if self.values.is_empty() { 0 } else { total }]);
        for t in items() {
            for i in self.ptr[t]..self.ptr[t + 1] {
                let at = &mut begin[self.ids[i] as usize];
                label[*at as usize] = self.gold[t];
                if !value.is_empty() {
                    value[*at as usize] = self.values[i];
                }
                *at += 1;
            }
        }
        // `begin` of an attribute is now its end.
        let (mut node, mut negative, mut from) = (Vec::new(), 0, 0);
        let (mut sums, mut seen, mut seen_labels) = (vec![0.0; l], vec![false; l], Vec::new());
        for (a, &to) in begin[..self.vocab.len()].iter().enumerate() {
            let to = to as usize;
            for i in from..to {
                let y = label[i] as usize;
                if !seen[y] {
                    (seen[y], sums[y]) = (true, 0.0);
                    seen_labels.push(y);
                }
                sums[y] += value.get(i).copied().unwrap_or(1.0);
            }
            if states && to > from {
                seen_labels.extend((0..l).filter(|&y| !seen[y]));
                (0..l).filter(|&y| !seen[y]).for_each(|y| sums[y] = 0.0);
            }
            seen_labels.sort_unstable();
            for y in seen_labels.drain(..) {
                seen[y] = false;
                if min_sum <= sums[y] {
                    node.push((a * l + y) as i64);
                } else if sums[y] < 0.0 {
                    negative += 1;
                }
            }
            from = to;
        }
        claim_pairs(l, 9)?;
        let mut pairs = vec![0.0; l * l];
        let mut exists = vec![transitions; l * l];
        for &s in chosen {
            for y in self.gold[self.items(s)].windows(2) {
                let code = y[0] as usize * l + y[1] as usize;
                pairs[code] += 1.0;
                exists[code] = true;
            }
        }
        let edge = (0..l * l).filter(|&code| exists[code] && min_sum <= pairs[code]).map(|code| code as i64).collect();
        Ok(Features { node, edge, negative })
    }

    /// Convert sequences to a dataset of the engine.
    pub fn dataset(&self, chosen: &[usize]) -> Result<Dataset> {
        let mut rows = Csr::default();
        let mut data = Dataset { sentences: vec![0], ..Dataset::default() };
        for &s in chosen {
            for t in self.items(s) {
                let part = self.ptr[t]..self.ptr[t + 1];
                if self.values.is_empty() {
                    rows.push_ones(&self.ids[part]);
                } else {
                    for i in part {
                        let value = self.values[i] as f32;
                        if !value.is_finite() {
                            let name = self.vocab.text(self.ids[i]).unwrap_or("");
                            return Err(Error::Value(format!(
                                "sequence {s}, attribute {name:?}: the value {:e} is beyond float32 (3.4e38); scale it",
                                self.values[i]
                            )));
                        }
                        rows.push(self.ids[i], value);
                    }
                }
                rows.end_row();
                data.gold.push(self.gold[t]);
            }
            data.sentences.push(rows.rows());
        }
        data.node = rows.into();
        Ok(data)
    }
}
