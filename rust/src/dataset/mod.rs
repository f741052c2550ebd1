//! Encoded corpora: attribute ids of every token in one flat array, sentence boundaries and gold labels.

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

/// Gold label of an unlabelled token.
pub const NO_LABEL: u16 = u16::MAX;

/// N sentences of tokens: node attributes, edge attributes (conjoined with the label pair that ends at the token) and
/// gold labels.
#[derive(Clone, Debug)]
pub struct Dataset {
    pub sentences: Vec<usize>, // [N + 1] first token of each sentence
    pub node: Arc<Rows>,       // one row per token; shared with datasets of other labels or cuts
    pub edge: Csr,             // one row per token, or no rows without edge attributes
    pub gold: Vec<u16>,        // [tokens], or empty for an unlabelled corpus
    pub cuts: Vec<bool>,       // [N + 1] whether a boundary is inside a sentence, or empty if none is
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

    /// Reject attributes that are not in a model.
    pub fn check_model(&self, attributes: usize) -> Result<()> {
        self.check(attributes, "is not the model's; encode with the model's vocabulary")
    }

    /// Reject attributes without features in a layout.
    pub fn check_layout(&self, attributes: usize) -> Result<()> {
        self.check(attributes, "has no place in the layout; build it from this dataset")
    }

    fn check(&self, attributes: usize, problem: &str) -> Result<()> {
        match self.node.largest().max(self.edge.ids.iter().copied().max()) {
            Some(a) if a as usize >= attributes => Err(Error::Value(format!("attribute {a} {problem}"))),
            _ => Ok(()),
        }
    }

    /// Return whether start and end features fire for sentence s. A piece of a longer sentence has none on the side
    /// where it was cut.
    #[inline(always)]
    pub fn ends(&self, s: usize) -> (bool, bool) {
        match self.cuts.is_empty() {
            true => (true, true),
            false => (!self.cuts[s], !self.cuts[s + 1]),
        }
    }

    /// Return the sentences of several labelled datasets, in order. The datasets must not have edge attributes, vectors
    /// or cuts. They are read one at a time. With `pages`, the rows are written to files.
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

    /// Return a copy of the dataset with its rows in files. Runs and vectors stay in memory.
    pub fn paged(&self, pages: &mut Pages) -> Result<Dataset> {
        let mut out = self.clone();
        if self.node.runs().is_none() && self.node.dense().is_none() {
            let mut rows = CsrWriter::new(Some(pages))?;
            rows.append(self.node.csr())?;
            out.node = Arc::new(rows.finish(Some(pages))?.into());
        }
        Ok(out)
    }

    /// Cut every sentence of more than `max_length` tokens into pieces of similar length. Returns the dataset of
    /// pieces, which records the cuts, and the sentence that each piece comes from.
    pub fn cut(&self, max_length: usize) -> (Dataset, Vec<u32>) {
        let (mut sentences, mut from, mut cuts) = (vec![0], Vec::new(), vec![!self.is_sentence_boundary(0)]);
        for (i, s) in self.sentences.windows(2).enumerate() {
            let length = s[1] - s[0];
            let pieces = length.div_ceil(max_length.max(1)).max(1);
            for piece in 1..=pieces {
                sentences.push(s[0] + length * piece / pieces);
                cuts.push(piece < pieces || !self.is_sentence_boundary(i + 1));
                from.push(i as u32);
            }
        }
        (Dataset { sentences, cuts, ..self.clone() }, from)
    }

    /// Return whether a boundary is the start or end of a whole sentence.
    fn is_sentence_boundary(&self, border: usize) -> bool {
        !self.cuts.get(border).is_some_and(|&cut| cut)
    }

    /// Return a dataset with every labelled token as a sentence of its own and its context as further attributes:
    /// `first` + y' after the gold label y', `first` + L at the start of a sentence, `first` + L + 1 at its end. The
    /// classifier of a token given the previous label is then a chain of length one. Tokens without a label, or after
    /// one without, are left out, since their transition is unknown.
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

    /// Return the sentences with a vector per token after its other attributes.
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

    /// Set the gold labels: one id per token, `NO_LABEL` if it is unknown.
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
