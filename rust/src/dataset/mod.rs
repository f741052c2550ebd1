//! A corpus as numbers: attribute ids of every token in one flat array, sentence boundaries, gold labels.

pub mod extract;
pub mod layout;
pub mod plan;
pub mod runs;
pub mod vocab;

use crate::dataset::runs::Rows;
use crate::dataset::vocab::NONE;
use crate::error::{Error, Result};

/// Gold label of a token that has none.
pub const NO_LABEL: u16 = u16::MAX;

/// Rows of (id, value): row r is `ptr[r]..ptr[r + 1]`. All values are 1 while `values` is empty.
#[derive(Clone, Debug)]
pub struct Csr {
    pub ptr: Vec<usize>,
    pub ids: Vec<u32>,
    pub values: Vec<f32>,
}

impl Default for Csr {
    fn default() -> Self {
        Csr { ptr: vec![0], ids: Vec::new(), values: Vec::new() }
    }
}

impl Csr {
    pub fn rows(&self) -> usize {
        self.ptr.len() - 1
    }

    /// Append to the row being built; NONE (an unknown attribute) and zero values are dropped.
    #[inline]
    pub fn push(&mut self, id: u32, value: f32) {
        if id == NONE || value == 0.0 {
            return;
        }
        if value != 1.0 && self.values.is_empty() {
            self.values = vec![1.0; self.ids.len()];
            self.values.reserve(self.ids.capacity() - self.ids.len());
        }
        self.ids.push(id);
        if value != 1.0 || !self.values.is_empty() {
            self.values.push(value);
        }
    }

    /// Append attributes of value 1, dropping NONE: all are written and kept by moving on, because no machine can predict
    /// which a vocabulary knows.
    #[inline]
    pub fn push_ones(&mut self, ids: &[u32]) {
        let mut at = self.ids.len();
        self.ids.resize(at + ids.len(), NONE);
        for &id in ids {
            self.ids[at] = id;
            at += usize::from(id != NONE);
        }
        self.ids.truncate(at);
        if !self.values.is_empty() {
            self.values.resize(at, 1.0);
        }
    }

    /// A row without its values.
    #[inline(always)]
    pub fn ids_of(&self, r: usize) -> &[u32] {
        &self.ids[self.ptr[r]..self.ptr[r + 1]]
    }

    /// Append the rows of another, all of value 1.
    pub fn append_ones(&mut self, other: &Csr) {
        debug_assert!(other.values.is_empty());
        let before = self.ids.len();
        self.ids.extend_from_slice(&other.ids);
        self.ptr.extend(other.ptr[1..].iter().map(|&end| before + end));
        if !self.values.is_empty() {
            self.values.resize(self.ids.len(), 1.0);
        }
    }

    pub fn end_row(&mut self) {
        self.ptr.push(self.ids.len());
    }

    /// Value of entry `at`.
    #[inline]
    pub fn value(&self, at: usize) -> f32 {
        if self.values.is_empty() {
            1.0
        } else {
            self.values[at]
        }
    }

    /// Entries of row r as (id, value).
    #[inline]
    pub fn row(&self, r: usize) -> impl Iterator<Item = (u32, f32)> + '_ {
        (self.ptr[r]..self.ptr[r + 1]).map(|at| (self.ids[at], self.value(at)))
    }

    /// Renumber through `map`, dropping what maps to NONE.
    pub fn renumber(&mut self, map: &[u32]) {
        let (mut write, mut begin) = (0, 0);
        for r in 1..self.ptr.len() {
            let end = self.ptr[r];
            for at in begin..end {
                let id = map[self.ids[at] as usize];
                if id != NONE {
                    self.ids[write] = id;
                    if !self.values.is_empty() {
                        self.values[write] = self.values[at];
                    }
                    write += 1;
                }
            }
            begin = end;
            self.ptr[r] = write;
        }
        self.ids.truncate(write);
        self.values.truncate(write.min(self.values.len()));
    }
}

/// N sentences of tokens: node attributes, edge attributes (conjoined with the label pair ending at the token), gold.
#[derive(Clone, Debug)]
pub struct Dataset {
    pub sentences: Vec<usize>, // [N + 1] first token of each sentence
    pub node: Rows,            // one row a token
    pub edge: Csr,             // one row a token, or no row at all where no edge attribute exists
    pub gold: Vec<u16>,        // [tokens], or empty for an unlabelled corpus
}

impl Default for Dataset {
    fn default() -> Self {
        Dataset { sentences: vec![0], node: Rows::default(), edge: Csr::default(), gold: Vec::new() }
    }
}

impl Dataset {
    pub fn len(&self) -> usize {
        self.sentences.len() - 1
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn tokens(&self) -> usize {
        self.node.rows()
    }

    pub fn has_edge_attributes(&self) -> bool {
        !self.edge.ids.is_empty()
    }

    /// Refuse attributes that a model does not know.
    pub fn check_model(&self, attributes: usize) -> Result<()> {
        self.check(attributes, "is not the model's; encode with the model's vocabulary")
    }

    /// Refuse attributes that a layout has no features for.
    pub fn check_layout(&self, attributes: usize) -> Result<()> {
        self.check(attributes, "has no place in the layout; build it from this dataset")
    }

    fn check(&self, attributes: usize, wrong: &str) -> Result<()> {
        match self.node.largest().max(self.edge.ids.iter().copied().max()) {
            Some(a) if a as usize >= attributes => Err(Error::Value(format!("attribute {a} {wrong}"))),
            _ => Ok(()),
        }
    }

    pub fn end_sentence(&mut self) {
        self.sentences.push(self.node.rows());
    }

    /// The same tokens with every sentence of more than `most` tokens cut into pieces of similar length, and the
    /// sentence that each piece comes from.
    pub fn cut(&self, most: usize) -> (Dataset, Vec<u32>) {
        let (mut sentences, mut from) = (vec![0], Vec::new());
        for (i, s) in self.sentences.windows(2).enumerate() {
            let length = s[1] - s[0];
            let pieces = length.div_ceil(most.max(1)).max(1);
            for piece in 1..=pieces {
                sentences.push(s[0] + length * piece / pieces);
                from.push(i as u32);
            }
        }
        (Dataset { sentences, ..self.clone() }, from)
    }

    /// Every labelled token as a sentence of its own, with where it stands as further attributes: `first` + y' behind
    /// the gold label y', `first` + L at the begin of a sentence, `first` + L + 1 at its end. Its classifier, given the
    /// label before, is then a chain of length one. Tokens without a label, or behind one, are left out: nothing is known
    /// of their step.
    pub fn steps(&self, first: u32, labels: u32, start_end: bool) -> Result<Dataset> {
        if self.gold.len() != self.tokens() {
            return Err(Error::Value("the dataset has no gold labels; steps are those of labelled sentences".into()));
        }
        let mut out = Dataset::default();
        for s in self.sentences.windows(2) {
            for t in s[0]..s[1] {
                let before = (t > s[0]).then(|| self.gold[t - 1]);
                if self.gold[t] == NO_LABEL || before == Some(NO_LABEL) {
                    continue;
                }
                for (id, value) in self.node.row(t) {
                    out.node.push(id, value);
                }
                match before {
                    Some(y) => out.node.push(first + u32::from(y), 1.0),
                    None if start_end => out.node.push(first + labels, 1.0),
                    None => {}
                }
                if start_end && t + 1 == s[1] {
                    out.node.push(first + labels + 1, 1.0);
                }
                out.node.end_row();
                out.gold.push(self.gold[t]);
                out.end_sentence();
            }
        }
        Ok(out)
    }

    /// Attach gold labels: one id a token, `NO_LABEL` where it is unknown.
    pub fn set_gold(&mut self, gold: Vec<u16>) -> Result<()> {
        if gold.len() != self.tokens() {
            return Err(Error::Value(format!(
                "{} labels for {} tokens; give every token of every sentence exactly one label",
                gold.len(),
                self.tokens()
            )));
        }
        self.gold = gold;
        Ok(())
    }
}
