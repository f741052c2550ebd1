//! Construction of the nodes of a training set: which attributes get rows, and the rows and rare features of each
//! token.

use crate::dataset::csr::CsrRef;
use crate::dataset::dense::Dense;
use crate::dataset::layout::Layout;
use crate::dataset::plan::{Batch, Plan};
use crate::dataset::{Dataset, NO_LABEL};
use crate::error::{Error, Result};
use crate::machine::simd::WIDTH;
use crate::machine::system::paged::PagedVec;
use crate::machine::system::testing::{self, PathCount};
use crate::scores::corpus_layout::bundle::Bundles;
use crate::scores::corpus_layout::dense::DenseRows;
use crate::scores::corpus_layout::fold::Fold;
use crate::scores::corpus_layout::steps::PositionSlots;
use crate::scores::corpus_layout::{Masks, Nodes, RareFeature, HOT, NO_GOLD};

/// Number of labels up to which all frequent attributes have rows, even if few of their labels have features.
const MAX_FULL_LABELS: usize = 4 * WIDTH;

/// Options for splitting tokens into rows and rare features.
#[derive(Clone, Copy, Debug)]
pub struct RowOptions {
    /// Number of occurrences from which an attribute gets a row.
    pub frequent: u32,
    /// Whether rows that always occur together are folded. Learners that change single rows need them separate.
    pub fold: bool,
    /// Number of batches that are processed together in each phase.
    pub group: usize,
    /// Whether vectors are multiplied as matrices. Otherwise their numbers are treated as ordinary attributes.
    pub vectors: bool,
}

/// Attributes with rows, and the features of each row: frequent attributes in order of their ids, then start and end.
struct FrequentRows {
    of: Vec<u32>,           // [attributes] row, or u32::MAX
    features: Vec<u64>,     // [rows + 1] into `index`
    index: Vec<(u32, u16)>, // (feature, label)
    boundaries: [u32; 2],   // rows of start and end
}

impl FrequentRows {
    fn new(rows: CsrRef<'_>, dense: Option<&Dense>, layout: &Layout, min_count: u32) -> FrequentRows {
        let mut count = vec![0u32; layout.attributes];
        for &a in rows.ids {
            count[a as usize] += 1;
        }
        let full = dense.map_or(0..0, Dense::attributes);
        let mut out = FrequentRows {
            of: vec![u32::MAX; layout.attributes],
            features: vec![0],
            index: Vec::new(),
            boundaries: [0; 2],
        };
        for a in 0..layout.attributes {
            let (first, labels) = layout.node(a as u32);
            // With many labels a row is mostly zeros, and all rows together exceed any cache.
            let filled = layout.labels <= MAX_FULL_LABELS || labels.len() * WIDTH >= layout.labels || min_count == 0;
            if (!labels.is_empty() && count[a] >= min_count && filled) || full.contains(&a) {
                out.of[a] = out.push(first, labels);
            }
        }
        let start = out.push(layout.start_at(), &layout.starts);
        out.boundaries = [start, out.push(layout.end_at(), &layout.ends)];
        out
    }

    /// Append a row of the features starting at `first`.
    fn push(&mut self, first: usize, labels: &[u16]) -> u32 {
        self.index.extend(labels.iter().enumerate().map(|(i, &y)| ((first + i) as u32, y)));
        self.features.push(self.index.len() as u64);
        (self.features.len() - 2) as u32
    }
}

/// Location of a token: its batch and chunk.
struct TokenPosition<'a> {
    chunk: usize,
    batch: &'a Batch,
    lane: usize,
    t: usize,
    token: usize,
}

impl Nodes {
    pub fn new(data: &Dataset, layout: &Layout, plan: &Plan, row_options: RowOptions) -> Result<Nodes> {
        if layout.len() >= u32::MAX as usize {
            return Err(Error::Value("more than 4 billion features; raise min_count or use fewer templates".into()));
        }
        let dense = data.node.dense().filter(|dense| {
            row_options.vectors && dense.attributes().all(|a| layout.node(a as u32).1.len() == layout.labels)
        });
        let attributes = if dense.is_some() { data.node.sparse() } else { data.node.csr() };
        let mut frequent = FrequentRows::new(attributes, dense, layout, row_options.frequent);
        let mut out = Nodes::empty(layout.labels, &mut frequent, plan.slots, row_options.group);
        out.count_gold_edges(data);
        let mut row_ptr = out.read_tokens(data, attributes, layout, plan, row_options, &frequent)?;
        let vectors = dense.map_or(0..0, |dense| {
            let first = frequent.of[dense.first as usize];
            first..first + dense.size as u32
        });
        if row_options.fold && attributes.values.is_empty() {
            let n_rows = out.n_rows();
            let is_fixed = |r| frequent.boundaries.contains(&r) || vectors.contains(&r);
            out.fold = Fold::new(n_rows, &mut row_ptr, out.rows.vec(), is_fixed);
            out.fold.join(&mut row_ptr, out.rows.vec(), is_fixed);
            // Joint rows have no features of their own.
            out.row_features.resize(out.fold.n_rows() + 1, out.row_index.len() as u64);
            out.fold.compute_levels();
        }
        testing::count(PathCount::Rows, out.rows.len());
        testing::count(PathCount::Rare, out.rare.len());
        out.sort_by_length(&row_ptr, plan);
        if let Some(dense) = dense {
            out.set_vectors(dense, vectors.start as usize, data, plan);
        }
        out.bundle(plan, row_options.group);
        Ok(out)
    }

    /// Nodes without tokens. Takes the features of the rows from `frequent`.
    fn empty(labels: usize, frequent: &mut FrequentRows, slots: usize, group: usize) -> Nodes {
        Nodes {
            labels,
            width: labels.div_ceil(WIDTH),
            group,
            order: PagedVec::default(),
            row_ptr: PagedVec::default(),
            rows: PagedVec::default(),
            row_values: PagedVec::default(),
            bundles: Bundles::default(),
            row_steps: PagedVec::default(),
            steps: PositionSlots::default(),
            rare_ptr: vec![0],
            rare: PagedVec::default(),
            rare_values: PagedVec::default(),
            gold: Vec::with_capacity(slots).into(),
            gold_edges: PagedVec::default(),
            gold_edge_ptr: vec![0],
            row_features: std::mem::take(&mut frequent.features),
            row_index: std::mem::take(&mut frequent.index),
            row_at: Vec::new(),
            hot: Vec::new(),
            copies: PagedVec::default(),
            copy_ptr: vec![0],
            fold: Fold::default(),
            dense: None,
            support: Masks::default(),
            partial: Masks::default(),
            costs: Vec::new(),
        }
    }

    /// Read the rows, rare features and gold positions of all tokens in slot order. Return the first row of each:
    /// [slots + 1].
    fn read_tokens(
        &mut self,
        data: &Dataset,
        attributes: CsrRef<'_>,
        layout: &Layout,
        plan: &Plan,
        row_options: RowOptions,
        frequent: &FrequentRows,
    ) -> Result<Vec<usize>> {
        let labels = self.labels;
        let mut row_ptr = Vec::with_capacity(plan.slots + 1);
        row_ptr.push(0);
        // First copy of a rare attribute's features, and the chunk of that copy.
        let mut copy_of = vec![(0u32, u32::MAX); layout.attributes];
        for (chunk, batches) in plan.chunks.iter().enumerate() {
            for batch in &plan.batches[batches.clone()] {
                // Positions are indices into a batch's scores and into the tiles of a group.
                if batch.positions() * labels.max(self.width * row_options.group) * WIDTH >= NO_GOLD as usize {
                    return Err(Error::Value(format!(
                        "a sentence of {} tokens with {labels} labels is too long; cut it with max_length",
                        batch.positions()
                    )));
                }
                self.steps.begin();
                for t in 0..batch.positions() {
                    self.steps.push(self.gold.len(), self.rare.len());
                    for lane in 0..batch.active(t) {
                        let token = data.sentences[batch.sentences[lane] as usize] + t;
                        let position = TokenPosition { chunk, batch, lane, t, token };
                        self.read_token(data, attributes, layout, frequent, &position, &mut copy_of);
                        row_ptr.push(self.rows.len());
                    }
                }
                self.steps.push(self.gold.len(), self.rare.len());
                self.rare_ptr.push(self.rare.len());
            }
            self.copy_ptr.push(self.copies.len());
        }
        if self.rows.len().max(self.copies.len()) >= u32::MAX as usize {
            return Err(Error::Value("more than 4 billion attributes; raise min_count or use fewer templates".into()));
        }
        Ok(row_ptr)
    }

    fn read_token(
        &mut self,
        data: &Dataset,
        attributes: CsrRef<'_>,
        layout: &Layout,
        frequent: &FrequentRows,
        position: &TokenPosition<'_>,
        copy_of: &mut [(u32, u32)],
    ) {
        let TokenPosition { chunk, batch, lane, t, token } = *position;
        let labels = self.labels;
        let valued = !attributes.values.is_empty();
        let place = |y: u16| ((t * labels + y as usize) * WIDTH + lane) as u32;
        for at in attributes.ptr[token]..attributes.ptr[token + 1] {
            let (a, value) = (attributes.ids[at] as usize, attributes.value(at));
            if frequent.of[a] != u32::MAX {
                self.rows.vec().push(frequent.of[a]);
                if valued {
                    self.row_values.vec().push(value);
                }
                continue;
            }
            let (first, of) = layout.node(a as u32);
            if copy_of[a].1 != chunk as u32 {
                copy_of[a] = ((self.copies.len() - self.copy_ptr[chunk]) as u32, chunk as u32);
                self.copies.vec().extend((first..first + of.len()).map(|f| f as u32));
            }
            for (i, &y) in of.iter().enumerate() {
                self.rare.vec().push(RareFeature { copy: copy_of[a].0 + i as u32, place: place(y) });
                if valued {
                    self.rare_values.vec().push(value);
                }
            }
        }
        let (n, (begins, ends)) = (batch.lengths[lane] as usize, data.ends(batch.sentences[lane] as usize));
        for (row, here) in frequent.boundaries.into_iter().zip([begins && t == 0, ends && t + 1 == n]) {
            if here && self.row_features[row as usize] < self.row_features[row as usize + 1] {
                self.rows.vec().push(row);
                if valued {
                    self.row_values.vec().push(1.0);
                }
            }
        }
        let gold = data.gold.get(token).copied().unwrap_or(NO_LABEL);
        self.gold.vec().push(if (gold as usize) < labels { place(gold) } else { NO_GOLD });
    }

    /// Set the vectors of tokens, whose rows begin with row `first`. Every token contributes to their sums, so all of
    /// these rows are hot.
    fn set_vectors(&mut self, dense: &Dense, first: usize, data: &Dataset, plan: &Plan) {
        let mut tokens = vec![0; plan.slots];
        plan.for_each_slot(|slot, b, lane, t| {
            if self.is_wide() {
                tokens[slot] = (data.sentences[plan.batches[b].sentences[lane] as usize] + t) as u32;
            }
        });
        for batch in plan.batches.iter().filter(|_| !self.is_wide()) {
            for slot in batch.slot..batch.slot + batch.tokens() {
                let (t, lane) = (self.order[slot] as usize / (self.width * WIDTH), self.order[slot] as usize % WIDTH);
                tokens[slot] = (data.sentences[batch.sentences[lane] as usize] + t) as u32;
            }
        }
        let at = self.row_at[first] as usize;
        debug_assert!(self.row_at[first + dense.size] as usize == at + dense.size * self.width);
        self.hot.extend(at as u32..(at + dense.size * self.width) as u32);
        self.dense = Some(DenseRows { dense: dense.clone(), at, tokens });
    }

    /// Group the entries by row.
    fn bundle(&mut self, plan: &Plan, group: usize) {
        if self.is_wide() {
            self.row_steps = self.row_values.to_vec().into();
            return;
        }
        let (classes, lanes) = (self.classes(), self.n_lanes());
        let (rows, row_ptr, order) = (&self.rows, &self.row_ptr, &self.order);
        let entries = |batch: &Batch, entry: &mut dyn FnMut(usize, u32, u32)| {
            for slot in batch.slot..batch.slot + batch.tokens() {
                for class in 0..classes {
                    let at = slot * classes + class;
                    for &row in &rows[row_ptr[at] as usize..row_ptr[at + 1] as usize] {
                        entry(class, row, order[slot]);
                    }
                }
            }
        };
        let (bundles, steps) = Bundles::new(plan, group, self.width, classes, lanes, entries, &self.row_values);
        (self.bundles, self.row_steps) = (bundles, steps.into());
    }

    /// Count the gold edges of each sentence. Most neighbouring tokens have one of a few pairs of labels.
    fn count_gold_edges(&mut self, data: &Dataset) {
        let mut edges: Vec<u32> = Vec::new();
        for s in data.sentences.windows(2) {
            let gold = data.gold.get(s[0]..s[1]).unwrap_or_default();
            edges.clear();
            if gold.iter().all(|&y| (y as usize) < self.labels) {
                edges.extend(gold.windows(2).map(|y| u32::from(y[0]) * self.labels as u32 + u32::from(y[1])));
            }
            edges.sort_unstable();
            self.gold_edges.vec().extend(edges.chunk_by(|a, b| a == b).map(|run| (run[0], run.len() as u32)));
            self.gold_edge_ptr.push(self.gold_edges.len() as u32);
        }
    }

    /// Number of row lengths that are distinguished. With very many labels all rows have full length.
    fn classes(&self) -> usize {
        if self.width <= 4 {
            self.width
        } else {
            1
        }
    }

    /// Assign lanes to every row, a carrier having at least those of the rows it carries, and sort each token's rows by
    /// length. The tokens of a batch are ordered by the number of rows of each length, so that consecutive loops over
    /// rows have equal lengths and their ends are predicted correctly.
    fn sort_by_length(&mut self, row_ptr: &[usize], plan: &Plan) {
        let classes = self.classes();
        let mut lanes: Vec<usize> = (0..self.n_rows())
            .map(|r| {
                let of = &self.row_index[self.row_features[r] as usize..self.row_features[r + 1] as usize];
                let last = of.iter().map(|&(_, y)| y as usize / WIDTH + 1).max().unwrap_or(1);
                if classes == 1 {
                    self.width
                } else {
                    last
                }
            })
            .collect();
        for (carrier, carried) in self.fold.in_order() {
            lanes[carrier] = carried.iter().map(|&b| lanes[b as usize]).fold(lanes[carrier], usize::max);
        }
        self.row_at = vec![0];
        for &n in &lanes {
            self.row_at.push(self.row_at[self.row_at.len() - 1] + n as u32);
        }
        let class = |r: u32| if classes == 1 { 0 } else { lanes[r as usize] - 1 };
        let (rows, values) = (std::mem::take(&mut self.rows), std::mem::take(&mut self.row_values));
        self.rows.vec().reserve_exact(rows.len());
        self.row_values.vec().reserve_exact(values.len());
        self.order.vec().reserve_exact(plan.slots);
        self.row_ptr.vec().reserve_exact(plan.slots * classes + 1);
        self.row_ptr.vec().push(0);
        let mut tokens: Vec<([u32; 4], u32, usize)> = Vec::new(); // rows of each length, position, slot
        for batch in &plan.batches {
            let mut slot = batch.slot;
            tokens.clear();
            for t in 0..batch.positions() {
                for lane in 0..batch.active(t) {
                    let mut count = [0; 4];
                    rows[row_ptr[slot]..row_ptr[slot + 1]].iter().for_each(|&r| count[class(r)] += 1);
                    let place = if self.is_wide() { lane } else { t * self.width * WIDTH + lane };
                    tokens.push((count, place as u32, slot));
                    slot += 1;
                }
            }
            if !self.is_wide() {
                tokens.sort_unstable();
            }
            for &(_, place, slot) in &tokens {
                self.order.vec().push(place);
                let range = row_ptr[slot]..row_ptr[slot + 1];
                for c in 0..classes {
                    for at in range.clone().filter(|&at| class(rows[at]) == c) {
                        self.rows.vec().push(self.row_at[rows[at] as usize]);
                        self.row_values.vec().extend(values.get(at));
                    }
                    self.row_ptr.vec().push(self.rows.len() as u32);
                }
            }
        }
        let mut count = vec![0u32; self.n_lanes() + 1];
        for &first in self.rows.iter() {
            count[first as usize] += 1;
        }
        let hot = (0..self.n_rows()).filter(|&r| count[self.row_at[r] as usize] >= HOT);
        self.hot = hot.flat_map(|r| self.row_at[r]..self.row_at[r + 1]).collect();
    }
}
