//! A corpus as numbers: attribute ids of every token in one flat array, sentence boundaries, gold labels.

pub mod csr;
pub mod dense;
pub mod extract;
pub mod growth;
pub mod layout;
pub mod plan;
pub mod runs;
pub mod vocab;

use crate::dataset::csr::{Csr, CsrWriter, PagedCsr};
use crate::dataset::dense::Dense;
use crate::dataset::runs::{Rows, TokenRuns};
use crate::error::{Error, Result};
use crate::machine::system::paged::Pages;
use std::ops::Deref;
use std::sync::Arc;

/// Gold label of a token that has none.
pub const NO_LABEL: u16 = u16::MAX;

/// N sentences of tokens: node attributes, edge attributes (conjoined with the label pair ending at the token), gold.
#[derive(Clone, Debug)]
pub struct Dataset {
    pub sentences: Vec<usize>, // [N + 1] first token of each sentence
    pub node: Arc<Rows>,       // one row per token; shared by datasets with other labels or cut elsewhere
    pub edge: Csr,             // one row a token, or no row at all where no edge attribute exists
    pub gold: Vec<u16>,        // [tokens], or empty for an unlabelled corpus
    pub cuts: Vec<bool>,       // [N + 1] whether a sentence goes on behind a border, or empty where none does
}

impl From<Csr> for Arc<Rows> {
    fn from(rows: Csr) -> Self {
        Rows::from(PagedCsr::from(rows)).into()
    }
}

impl From<TokenRuns> for Arc<Rows> {
    fn from(runs: TokenRuns) -> Self {
        Rows::from(runs).into()
    }
}

impl Default for Dataset {
    fn default() -> Self {
        Dataset {
            sentences: vec![0],
            node: Rows::default().into(),
            edge: Csr::default(),
            gold: Vec::new(),
            cuts: Vec::new(),
        }
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

    /// Whether sentence s begins, and whether it ends, where the text does: where start and end features fire. A piece of a
    /// longer one does not on the side where it was cut.
    #[inline(always)]
    pub fn ends(&self, s: usize) -> (bool, bool) {
        match self.cuts.is_empty() {
            true => (true, true),
            false => (!self.cuts[s], !self.cuts[s + 1]),
        }
    }

    /// The sentences of several labelled datasets, in order, without edge attributes, vectors and cuts. The rows are written
    /// to files if there are `pages`; datasets are taken one at a time.
    pub fn joined<P: Deref<Target = Dataset>, E: From<Error>>(
        parts: impl Iterator<Item = std::result::Result<P, E>>,
        mut pages: Option<Pages>,
    ) -> std::result::Result<Dataset, E> {
        let mut rows = CsrWriter::new(pages.as_ref())?;
        let (mut sentences, mut gold) = (vec![0], Vec::new());
        for part in parts {
            let part = part?;
            let whole = part.cuts.is_empty() && part.node.dense().is_none() && !part.has_edge_attributes();
            if !whole || part.gold.len() != part.tokens() {
                return Err(Error::Value(
                    "datasets to join must be labelled, without edge attributes, vectors and cut sentences".into(),
                )
                .into());
            }
            let before = gold.len();
            sentences.extend(part.sentences[1..].iter().map(|&end| before + end));
            gold.extend_from_slice(&part.gold);
            rows.append(part.node.csr())?;
        }
        let node = Arc::new(Rows::from(rows.finish(pages.as_mut())?));
        Ok(Dataset { sentences, node, gold, ..Dataset::default() })
    }

    /// The same dataset with its rows in files. Runs and vectors stay in memory.
    pub fn paged(&self, pages: &mut Pages) -> Result<Dataset> {
        let mut out = self.clone();
        if self.node.runs().is_none() && self.node.dense().is_none() {
            let mut rows = CsrWriter::new(Some(pages))?;
            rows.append(self.node.csr())?;
            out.node = Arc::new(rows.finish(Some(pages))?.into());
        }
        Ok(out)
    }

    /// The same tokens with every sentence of more than `most` tokens cut into pieces of similar length, which know where
    /// they were cut, and the sentence that each piece comes from.
    pub fn cut(&self, most: usize) -> (Dataset, Vec<u32>) {
        let (mut sentences, mut from, mut cuts) = (vec![0], Vec::new(), vec![!self.ends_at(0)]);
        for (i, s) in self.sentences.windows(2).enumerate() {
            let length = s[1] - s[0];
            let pieces = length.div_ceil(most.max(1)).max(1);
            for piece in 1..=pieces {
                sentences.push(s[0] + length * piece / pieces);
                cuts.push(piece < pieces || !self.ends_at(i + 1));
                from.push(i as u32);
            }
        }
        (Dataset { sentences, cuts, ..self.clone() }, from)
    }

    /// Whether a border between sentences is one of the text.
    fn ends_at(&self, border: usize) -> bool {
        !self.cuts.get(border).is_some_and(|&cut| cut)
    }

    /// Every labelled token as a sentence of its own, with where it stands as further attributes: `first` + y' behind
    /// the gold label y', `first` + L at the begin of a sentence, `first` + L + 1 at its end. Its classifier, given the
    /// label before, is then a chain of length one. Tokens without a label, or behind one, are left out: nothing is known
    /// of their step.
    pub fn steps(&self, first: u32, labels: u32, start_end: bool) -> Result<Dataset> {
        if self.gold.len() != self.tokens() {
            return Err(Error::Value("the dataset has no gold labels; steps are those of labelled sentences".into()));
        }
        let unknown = |&y: &u16| y != NO_LABEL && u32::from(y) >= labels;
        if first.checked_add(labels).is_none_or(|n| n >= u32::MAX - 1) || self.gold.iter().any(unknown) {
            return Err(Error::Value(format!(
                "{labels} labels behind attribute {first} have no place for the gold labels"
            )));
        }
        let (mut out, mut rows) = (Dataset::default(), Csr::default());
        for (i, s) in self.sentences.windows(2).enumerate() {
            let (begins, ends) = self.ends(i);
            for t in s[0]..s[1] {
                let before = (t > s[0]).then(|| self.gold[t - 1]);
                if self.gold[t] == NO_LABEL || before == Some(NO_LABEL) {
                    continue;
                }
                for (id, value) in self.node.csr().row(t) {
                    rows.push(id, value);
                }
                match before {
                    Some(y) => rows.push(first + u32::from(y), 1.0),
                    None if start_end && begins => rows.push(first + labels, 1.0),
                    None => {}
                }
                if start_end && ends && t + 1 == s[1] {
                    rows.push(first + labels + 1, 1.0);
                }
                rows.end_row();
                out.gold.push(self.gold[t]);
                out.sentences.push(rows.rows());
            }
        }
        out.node = rows.into();
        Ok(out)
    }

    /// The same sentences with a vector for every token behind its other attributes.
    pub fn with_vectors(&self, dense: Dense) -> Result<Dataset> {
        if dense.tokens() != self.tokens() || self.node.dense().is_some() {
            return Err(Error::Value(format!(
                "{} vectors for {} tokens; give every token of every sentence exactly one vector",
                dense.tokens(),
                self.tokens()
            )));
        }
        let out = Dataset {
            sentences: self.sentences.clone(),
            node: self.node.with_dense(dense).into(),
            edge: self.edge.clone(),
            gold: self.gold.clone(),
            cuts: self.cuts.clone(),
        };
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
