//! Training tokens and weights laid out for learning one sentence at a time.
//!
//! A weight lies in a *cell*. Frequent attributes have a row of cells, one a label, padded to whole lanes, so that
//! scoring adds vectors; the others have a cell a feature, listed behind each token with its label. The edge weights
//! are rows too, and so are start and end. Cells without a feature stay 0.

use crate::chart::{Chart, Find, Steps};
use crate::dataset::Dataset;
use crate::error::{Error, Result};
use crate::lattice::{mask_rows, Support};
use crate::simd::{Lane, Simd, WIDTH};
use crate::weights::Layout;
use std::sync::Arc;

/// An attribute seen this often gets a row ...
const FREQUENT: u32 = 16;
/// ... and so does one with this many features: a list of so many would be slower.
const MANY: usize = 8;

#[derive(Clone, Copy, Debug)]
struct Rare {
    cell: u32,
    label: u16,
}

/// Where a token's lists begin.
#[derive(Clone, Copy, Debug, Default)]
struct At {
    row: usize,
    rare: usize,
}

/// Ask for the cache line of an address.
#[inline(always)]
fn prefetch<T>(at: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a hint; any address will do, and every x86-64 has it.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(at.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}

/// Ask for all lines of a slice.
#[inline(always)]
fn prefetch_all<T>(slice: &[T]) {
    let bytes = std::mem::size_of_val(slice);
    for line in 0..bytes.div_ceil(64) {
        prefetch(slice.as_ptr().cast::<u8>().wrapping_add(64 * line));
    }
}

/// The training data: what each token adds to its scores, and where each feature lies. Never changes.
pub struct Tokens {
    pub data: Arc<Dataset>,
    pub labels: usize,
    pub width: usize, // lanes of a row
    at: Vec<At>,      // [tokens + 1]
    rows: Vec<u32>,   // first lane of each row
    row_values: Vec<f32>,
    rare: Vec<Rare>,
    rare_values: Vec<f32>,
    pair_ptr: Vec<usize>,   // [tokens + 1], empty without edge attributes
    pairs: Vec<(u32, u32)>, // (cell, label' * L + label)
    pair_values: Vec<f32>,
    exists: Vec<u16>,   // [lanes of rows] bit y: the cell has a feature
    cell_of: Vec<u32>,  // [features]
    edges: [u32; 2],    // first cell of the edge rows, and the one behind their last
    cells: usize,       // a multiple of 16
    masks: Vec<Lane>,   // [sets, width]
    mask_of: Vec<u32>,  // [tokens], empty without support
    allowed: Vec<bool>, // [L, L] edges that are not forbidden
}

impl Tokens {
    /// `forbidden`: edges (label' * L + label) of score -infinity.
    pub fn new(data: Arc<Dataset>, layout: &Layout, forbidden: &[u32], support: Option<&Support>) -> Result<Tokens> {
        let (l, width) = (layout.labels, layout.labels.div_ceil(WIDTH));
        if data.gold.len() != data.tokens() || data.gold.iter().any(|&y| y as usize >= l) {
            return Err(Error::Value("every training token needs a gold label of the label set".into()));
        }
        if let Some(&a) = data.node.ids.iter().chain(&data.edge.ids).find(|&&a| a as usize >= layout.attributes) {
            return Err(Error::Value(format!("attribute {a} has no place in the layout; build it from this dataset")));
        }
        let mut allowed = vec![true; l * l];
        for &e in forbidden {
            *allowed
                .get_mut(e as usize)
                .ok_or_else(|| Error::Value(format!("forbidden edge {e} is outside the {l} by {l} label pairs")))? =
                false;
        }
        check_gold(&data, l, &allowed, support)?;

        let mut count = vec![0u32; layout.attributes];
        for &a in &data.node.ids {
            count[a as usize] = count[a as usize].saturating_add(1);
        }
        let is_row = |a: usize| count[a] >= FREQUENT || layout.node(a as u32).1.len() >= MANY;
        let n_rows = (0..layout.attributes).filter(|&a| is_row(a)).count() + 2 + l;
        let n_rare = layout.n_node().saturating_add(layout.pair.len());
        if (n_rows * width * WIDTH).saturating_add(n_rare) >= u32::MAX as usize - WIDTH {
            return Err(Error::Value("more than 4 billion weights; raise min_count or use fewer templates".into()));
        }
        let mut cell_of = vec![0u32; layout.len()];
        let mut exists = vec![0u16; n_rows * width];
        let mut next_row = 0;
        let mut row = |features: usize, labels: &[u16], cell_of: &mut [u32]| {
            let lane = next_row * width;
            next_row += 1;
            for (i, &y) in labels.iter().enumerate() {
                exists[lane + y as usize / WIDTH] |= 1 << (y as usize % WIDTH);
                cell_of[features + i] = (lane * WIDTH + y as usize) as u32;
            }
            lane as u32
        };
        // Rows: frequent attributes in order of their ids, then start and end, then the edges.
        let mut row_of = vec![u32::MAX; layout.attributes];
        for a in (0..layout.attributes).filter(|&a| is_row(a)) {
            let (first, labels) = layout.node(a as u32);
            row_of[a] = row(first, labels, &mut cell_of);
        }
        let start = row(layout.start_at(), &layout.starts, &mut cell_of);
        let end = row(layout.end_at(), &layout.ends, &mut cell_of);
        let mut edges = [0u32; 2];
        let mut i = 0;
        for from in 0..l {
            let begin = i;
            let labels: Vec<u16> = std::iter::from_fn(|| {
                let e = *layout.edges.get(i).filter(|&&e| e as usize / l == from)?;
                i += 1;
                Some((e as usize % l) as u16)
            })
            .collect();
            let lane = row(layout.edge_at() + begin, &labels, &mut cell_of);
            if from == 0 {
                edges[0] = lane * WIDTH as u32;
            }
        }
        edges[1] = edges[0] + (l * width * WIDTH) as u32;
        // Single cells: the other attributes in order of their ids, then pairs.
        let mut cells = n_rows * width * WIDTH;
        for a in (0..layout.attributes).filter(|&a| !is_row(a)) {
            let (first, labels) = layout.node(a as u32);
            for i in 0..labels.len() {
                cell_of[first + i] = cells as u32;
                cells += 1;
            }
        }
        for i in 0..layout.pair.len() {
            cell_of[layout.pair_at() + i] = cells as u32;
            cells += 1;
        }
        let mut out = Tokens {
            labels: l,
            width,
            at: Vec::with_capacity(data.tokens() + 1),
            rows: Vec::new(),
            row_values: Vec::new(),
            rare: Vec::new(),
            rare_values: Vec::new(),
            pair_ptr: Vec::new(),
            pairs: Vec::new(),
            pair_values: Vec::new(),
            exists,
            cell_of,
            edges,
            cells: cells.next_multiple_of(WIDTH),
            masks: support.map(|s| mask_rows(&s.sets, l, width)).unwrap_or_default(),
            mask_of: support.map(|s| s.of.clone()).unwrap_or_default(),
            allowed,
            data: data.clone(),
        };
        out.at.push(At::default());
        if data.has_edge_attributes() {
            out.pair_ptr.push(0);
        }
        for s in data.sentences.windows(2) {
            for t in s[0]..s[1] {
                out.push_token(layout, &row_of, t);
                for (row, here) in [(start, t == s[0]), (end, t + 1 == s[1])] {
                    if here {
                        out.rows.push(row);
                        if !data.node.values.is_empty() {
                            out.row_values.push(1.0);
                        }
                    }
                }
                out.at.push(At { row: out.rows.len(), rare: out.rare.len() });
            }
        }
        Ok(out)
    }

    fn push_token(&mut self, layout: &Layout, row_of: &[u32], token: usize) {
        let data = self.data.clone();
        let valued = !data.node.values.is_empty();
        for (a, value) in data.node.row(token) {
            if row_of[a as usize] != u32::MAX {
                self.rows.push(row_of[a as usize]);
                if valued {
                    self.row_values.push(value);
                }
                continue;
            }
            let (first, labels) = layout.node(a);
            for (i, &label) in labels.iter().enumerate() {
                self.rare.push(Rare { cell: self.cell_of[first + i], label });
                if valued {
                    self.rare_values.push(value);
                }
            }
        }
        if data.has_edge_attributes() {
            for (a, value) in data.edge.row(token) {
                let (first, pairs) = layout.pairs(a);
                for (i, &pair) in pairs.iter().enumerate() {
                    self.pairs.push((self.cell_of[first + i], pair));
                    self.pair_values.push(value);
                }
            }
            self.pair_ptr.push(self.pairs.len());
        }
    }

    /// First token of a sentence and the one behind its last.
    #[inline(always)]
    pub fn range(&self, sentence: u32) -> (usize, usize) {
        (self.data.sentences[sentence as usize], self.data.sentences[sentence as usize + 1])
    }

    pub fn gold(&self, sentence: u32) -> &[u16] {
        let (begin, end) = self.range(sentence);
        &self.data.gold[begin..end]
    }

    /// Node scores of a token into a row of the chart.
    #[inline(always)]
    pub(crate) unsafe fn fill<S: Simd>(&self, weights: &[Lane], token: usize, out: &mut [Lane]) {
        let (here, next) = (self.at.get_unchecked(token), self.at.get_unchecked(token + 1));
        let ids = self.rows.get_unchecked(here.row..next.row);
        let values = if self.row_values.is_empty() { &[][..] } else { &self.row_values[here.row..next.row] };
        let mut v = 0;
        while v < self.width {
            match self.width - v {
                1 => self.fill_some::<S, 1, 4>(weights, ids, values, token, v, out),
                2 => self.fill_some::<S, 2, 2>(weights, ids, values, token, v, out),
                3 => self.fill_some::<S, 3, 2>(weights, ids, values, token, v, out),
                _ => self.fill_some::<S, 4, 2>(weights, ids, values, token, v, out),
            }
            v += 4;
        }
        let (cells, scores) = (weights.as_ptr().cast::<f32>(), out.as_mut_ptr().cast::<f32>());
        if self.rare_values.is_empty() {
            for f in self.rare.get_unchecked(here.rare..next.rare) {
                *scores.add(f.label as usize) += *cells.add(f.cell as usize);
            }
        } else {
            for at in here.rare..next.rare {
                let f = self.rare.get_unchecked(at);
                *scores.add(f.label as usize) += *cells.add(f.cell as usize) * self.rare_values[at];
            }
        }
    }

    /// N lanes of labels from lane v on, in U sums that do not wait for each other.
    #[inline(always)]
    unsafe fn fill_some<S: Simd, const N: usize, const U: usize>(
        &self,
        weights: &[Lane],
        ids: &[u32],
        values: &[f32],
        token: usize,
        v: usize,
        out: &mut [Lane],
    ) {
        let mut sums = [[S::splat(0.0); N]; U];
        if let Some(&set) = self.mask_of.get(token) {
            for (j, s) in sums[0].iter_mut().enumerate() {
                *s = S::load(&self.masks[set as usize * self.width + v + j]);
            }
        }
        let weights = weights.as_ptr().add(v);
        let add = |sum: &mut [S::F; N], id: u32| {
            let row = weights.add(id as usize);
            for (j, s) in sum.iter_mut().enumerate() {
                *s = S::add(*s, S::load(&*row.add(j)));
            }
        };
        if values.is_empty() {
            let groups = ids.chunks_exact(U);
            for (sum, &id) in sums.iter_mut().zip(groups.remainder()) {
                add(sum, id);
            }
            for group in groups {
                for (sum, &id) in sums.iter_mut().zip(group) {
                    add(sum, id);
                }
            }
        } else {
            for (&id, &value) in ids.iter().zip(values) {
                // A product, then a sum: the same bits with and without fused instructions.
                let (row, x) = (weights.add(id as usize), S::splat(value));
                for (j, s) in sums[0].iter_mut().enumerate() {
                    *s = S::add(*s, S::mul(x, S::load(&*row.add(j))));
                }
            }
        }
        for j in 0..N {
            let sum = sums[1..].iter().fold(sums[0][j], |sum, more| S::add(sum, more[j]));
            S::store(sum, &mut out[v + j]);
        }
    }

    /// `add(cell, amount)` for every feature of S(gold) - S(guess), as often as it occurs.
    #[inline(always)]
    pub fn difference(&self, sentence: u32, gold: &[u16], guess: &[u16], mut add: impl FnMut(u32, f32)) {
        let begin = self.range(sentence).0;
        for (t, (&y, &z)) in gold.iter().zip(guess).enumerate() {
            if y != z {
                self.token_features(begin + t, y, z, &mut add);
            }
            if t > 0 && (y != z || gold[t - 1] != guess[t - 1]) {
                self.edge_features(begin + t, [gold[t - 1], y], 1.0, &mut add);
                self.edge_features(begin + t, [guess[t - 1], z], -1.0, &mut add);
            }
        }
    }

    #[inline(always)]
    fn token_features(&self, token: usize, gold: u16, guess: u16, add: &mut impl FnMut(u32, f32)) {
        let (here, next) = (self.at[token], self.at[token + 1]);
        for at in here.row..next.row {
            let value = if self.row_values.is_empty() { 1.0 } else { self.row_values[at] };
            for (y, amount) in [(gold as usize, value), (guess as usize, -value)] {
                let lane = self.rows[at] as usize + y / WIDTH;
                if self.exists[lane] >> (y % WIDTH) & 1 == 1 {
                    add((lane * WIDTH + y % WIDTH) as u32, amount);
                }
            }
        }
        for at in here.rare..next.rare {
            let f = self.rare[at];
            let value = if self.rare_values.is_empty() { 1.0 } else { self.rare_values[at] };
            if f.label == gold {
                add(f.cell, value);
            } else if f.label == guess {
                add(f.cell, -value);
            }
        }
    }

    #[inline(always)]
    fn edge_features(&self, token: usize, pair: [u16; 2], amount: f32, add: &mut impl FnMut(u32, f32)) {
        let (from, to) = (pair[0] as usize, pair[1] as usize);
        let lane = self.edges[0] as usize / WIDTH + from * self.width + to / WIDTH;
        if self.exists[lane] >> (to % WIDTH) & 1 == 1 {
            add((lane * WIDTH + to % WIDTH) as u32, amount);
        }
        let number = (from * self.labels + to) as u32;
        for at in self.pairs_of(token) {
            if self.pairs[at].1 == number {
                add(self.pairs[at].0, amount * self.pair_values[at]);
            }
        }
    }

    fn pairs_of(&self, token: usize) -> std::ops::Range<usize> {
        match self.pair_ptr.is_empty() {
            true => 0..0,
            false => self.pair_ptr[token]..self.pair_ptr[token + 1],
        }
    }

    /// Ask for the lists of a sentence: sentences come in any order, so that the machine cannot know which is next.
    #[inline(always)]
    pub fn prefetch_lists(&self, sentence: u32) {
        let (begin, end) = self.range(sentence);
        let (first, last) = (self.at[begin], self.at[end]);
        prefetch_all(&self.at[begin..=end]);
        prefetch_all(&self.rows[first.row..last.row]);
        prefetch_all(&self.rare[first.rare..last.rare]);
    }

    /// Number of cells.
    pub fn cells(&self) -> usize {
        self.cells
    }

    /// Values of the features from those of the cells.
    pub fn gather(&self, of_cell: impl Fn(usize) -> f64) -> Vec<f64> {
        self.cell_of.iter().map(|&c| of_cell(c as usize)).collect()
    }

    /// `set(cell, value)` for the value of every feature.
    pub fn scatter(&self, of_feature: &[f64], mut set: impl FnMut(usize, f64)) {
        for (&c, &x) in self.cell_of.iter().zip(of_feature) {
            set(c as usize, x);
        }
    }
}

/// The gold labels of every sentence must be possible.
pub(crate) fn check_gold(data: &Dataset, l: usize, allowed: &[bool], support: Option<&Support>) -> Result<()> {
    for (i, s) in data.sentences.windows(2).enumerate() {
        let gold = &data.gold[s[0]..s[1]];
        let outside =
            support.is_some_and(|x| (s[0]..s[1]).any(|t| !x.sets[x.of[t] as usize * l + data.gold[t] as usize]));
        if outside || gold.windows(2).any(|y| !allowed[y[0] as usize * l + y[1] as usize]) {
            return Err(Error::Training(format!(
                "sentence {i}: its gold labels are outside what the constraints allow; correct the sentence or relax the constraint"
            )));
        }
    }
    Ok(())
}

/// The weights, and what their average is made from: w_avg = w - u / steps (Daume 2006, figure 2.3), where u collects
/// every change times the number of steps before it. A change costs two additions, the average nothing until asked for.
#[derive(Clone)]
pub struct Bank {
    w: Vec<Lane>,           // [cells]
    pub u: Vec<f64>,        // [cells], empty without averaging
    pub variance: Vec<f64>, // [cells], empty except for AROW
    pub clock: f64,         // steps so far
    steps: Steps,           // edge scores as the chart reads them
}

impl Bank {
    pub fn new(tokens: &Tokens, average: bool, variance: Option<f64>) -> Bank {
        let mut bank = Bank {
            w: vec![Lane::ZERO; tokens.cells / WIDTH],
            u: vec![0.0; if average { tokens.cells } else { 0 }],
            variance: variance.map(|v| vec![v; tokens.cells]).unwrap_or_default(),
            clock: 0.0,
            steps: Steps::new(tokens.labels),
        };
        bank.refresh(tokens);
        bank
    }

    /// Bring the edge scores up to date with the weights.
    pub fn refresh(&mut self, tokens: &Tokens) {
        let l = tokens.labels;
        for pair in 0..l * l {
            let at = tokens.edges[0] as usize + pair / l * tokens.width * WIDTH + pair % l;
            let score = if tokens.allowed[pair] { self.w(at) } else { f32::NEG_INFINITY };
            self.steps.set(0, pair / l, pair % l, score);
        }
    }

    #[inline(always)]
    pub fn w(&self, cell: usize) -> f32 {
        self.w[cell / WIDTH].0[cell % WIDTH]
    }

    pub fn set_w(&mut self, cell: usize, x: f32) {
        self.w[cell / WIDTH].0[cell % WIDTH] = x;
    }

    pub(crate) fn lanes(&self) -> &[Lane] {
        &self.w
    }

    /// Edge scores as the chart reads them.
    pub(crate) fn edge_scores(&self) -> &Steps {
        &self.steps
    }

    /// All weights, cell by cell.
    pub fn lanes_mut(&mut self) -> &mut [Lane] {
        &mut self.w
    }

    /// w += amount at a cell. u takes what float32 really added, so that the average is that of the real weights.
    #[inline(always)]
    pub fn add(&mut self, tokens: &Tokens, cell: u32, amount: f32) {
        let at = cell as usize;
        let w = &mut self.w[at / WIDTH].0[at % WIDTH];
        let new = *w + amount;
        if let Some(u) = self.u.get_mut(at) {
            *u += self.clock * (f64::from(new) - f64::from(*w));
        }
        *w = new;
        if cell >= tokens.edges[0] && cell < tokens.edges[1] {
            let (row, to) = ((at - tokens.edges[0] as usize) / WIDTH / tokens.width, at % (tokens.width * WIDTH));
            let to = to - tokens.edges[0] as usize % (tokens.width * WIDTH);
            if tokens.allowed[row * tokens.labels + to] {
                self.steps.set(0, row, to, new);
            }
        }
    }

    /// The edge scores of the sentence at hand: `varied`, as `run` left it, with edge attributes.
    #[inline(always)]
    pub fn steps<'a>(&'a self, tokens: &Tokens, varied: &'a Steps) -> &'a Steps {
        if tokens.data.has_edge_attributes() {
            varied
        } else {
            &self.steps
        }
    }

    /// Fill and advance the chart for a sentence, `next` being the one after it; `cost` [L, width] is added to the node
    /// scores of each gold label.
    #[inline(always)]
    pub(crate) unsafe fn run<S: Find>(
        &self,
        tokens: &Tokens,
        chart: &mut Chart,
        varied: &mut Steps,
        sentence: u32,
        next: u32,
        cost: &[Lane],
    ) {
        let (begin, end) = tokens.range(sentence);
        tokens.prefetch_lists(next);
        let (n, width) = (end - begin, tokens.width);
        let varying = tokens.data.has_edge_attributes();
        chart.begin(n, varying);
        if varying {
            self.vary(tokens, varied, begin, n);
        }
        let steps = self.steps(tokens, varied);
        for t in 0..=n {
            // One token ahead: what single cells add to a row is in memory when the recursion loads the row.
            if t < n {
                tokens.fill::<S>(&self.w, begin + t, &mut chart.node[t * width..(t + 1) * width]);
                if !cost.is_empty() {
                    let y = tokens.data.gold[begin + t] as usize;
                    for (node, c) in chart.node[t * width..].iter_mut().zip(&cost[y * width..(y + 1) * width]) {
                        S::store(S::add(S::load(node), S::load(c)), node);
                    }
                }
            }
            if t > 0 {
                chart.advance::<S>(steps, t - 1);
            }
        }
    }

    /// Node scores of some positions of a sentence, without the recursion; the rest of the chart is left as it is.
    #[inline(always)]
    pub(crate) unsafe fn refill<S: Find>(
        &self,
        tokens: &Tokens,
        chart: &mut Chart,
        varied: &mut Steps,
        sentence: u32,
        positions: &[u32],
        cost: &[Lane],
    ) {
        let (begin, end) = tokens.range(sentence);
        let width = tokens.width;
        let varying = tokens.data.has_edge_attributes();
        chart.begin(end - begin, varying);
        if varying {
            self.vary(tokens, varied, begin, end - begin);
        }
        for &t in positions {
            let (t, token) = (t as usize, begin + t as usize);
            tokens.fill::<S>(&self.w, token, &mut chart.node[t * width..(t + 1) * width]);
            if !cost.is_empty() {
                let y = tokens.data.gold[token] as usize;
                for (node, c) in chart.node[t * width..].iter_mut().zip(&cost[y * width..(y + 1) * width]) {
                    S::store(S::add(S::load(node), S::load(c)), node);
                }
            }
        }
    }

    /// Edge scores position by position: A_t = A + sum of the edge attributes' weights.
    fn vary(&self, tokens: &Tokens, varied: &mut Steps, begin: usize, n: usize) {
        let l = tokens.labels;
        varied.resize(n);
        for t in 0..n {
            varied.copy_block(t, &self.steps);
            for at in tokens.pairs_of(begin + t) {
                let (cell, pair) = (tokens.pairs[at].0 as usize, tokens.pairs[at].1 as usize);
                let score = varied.get(t, pair / l, pair % l) + self.w(cell) * tokens.pair_values[at];
                varied.set(t, pair / l, pair % l, score);
            }
        }
    }
}
