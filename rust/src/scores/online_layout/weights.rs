//! Weights of an online learner by cell, and the scores of a sentence under them.

use crate::chain::viterbi::sentence::{Chart, Steps};
use crate::machine::simd::dispatch::dispatch;
use crate::machine::simd::find::Find;
use crate::machine::simd::{prefetch, Lane, WIDTH};
use crate::scores::online_layout::TokenCells;

/// Cache lines of the next sentence's lists to prefetch per token.
const LINES: usize = 3;

/// Weights, and the data of their average: w_avg = w - u / steps (Daume 2006, figure 2.3), where u accumulates every
/// change times the number of steps before it. A change costs two additions, and the average is computed only on
/// demand.
#[derive(Clone)]
pub struct OnlineWeights {
    w: Vec<Lane>,           // [cells]
    pub u: Vec<f64>,        // [cells], empty without averaging
    pub variance: Vec<f64>, // [cells], empty except for AROW
    pub clock: f64,         // steps so far
    steps: Steps,           // edge scores in the layout of the chart
}

impl OnlineWeights {
    pub fn new(tokens: &TokenCells, average: bool, variance: Option<f64>) -> OnlineWeights {
        let mut online_weights = OnlineWeights {
            w: vec![Lane::ZERO; tokens.cells() / WIDTH],
            u: vec![0.0; if average { tokens.cells() } else { 0 }],
            variance: variance.map(|v| vec![v; tokens.cells()]).unwrap_or_default(),
            clock: 0.0,
            steps: Steps::new(tokens.labels),
        };
        online_weights.refresh(tokens);
        online_weights
    }

    /// Update the edge scores from the weights.
    pub fn refresh(&mut self, tokens: &TokenCells) {
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

    /// Edge scores in the layout of the chart.
    pub(crate) fn edge_scores(&self) -> &Steps {
        &self.steps
    }

    /// All weights in cell order.
    pub fn lanes_mut(&mut self) -> &mut [Lane] {
        &mut self.w
    }

    /// Prefetch the data that `add` will access for a cell.
    #[inline(always)]
    pub fn prefetch_cell(&self, cell: u32) {
        prefetch(self.u.as_ptr().wrapping_add(cell as usize));
    }

    /// w += amount at a cell. u uses the change after float32 rounding, so that the average is that of the actual
    /// weights.
    #[inline(always)]
    pub fn add(&mut self, tokens: &TokenCells, cell: u32, amount: f32) {
        let at = cell as usize;
        let w = &mut self.w[at / WIDTH].0[at % WIDTH];
        let new = *w + amount;
        if let Some(u) = self.u.get_mut(at) {
            *u += self.clock * (f64::from(new) - f64::from(*w));
        }
        *w = new;
        if cell >= tokens.edges[0] && cell < tokens.edges[1] {
            let (place, size) = (at - tokens.edges[0] as usize, tokens.width * WIDTH);
            let (row, to) = (place / size, place % size);
            if tokens.allowed[row * tokens.labels + to] {
                self.steps.set(0, row, to, new);
            }
        }
    }

    /// Edge scores of the current sentence: `varied`, as left by `run`, if there are edge attributes.
    #[inline(always)]
    pub fn steps<'a>(&'a self, tokens: &TokenCells, varied: &'a Steps) -> &'a Steps {
        if tokens.data.has_edge_attributes() {
            varied
        } else {
            &self.steps
        }
    }

    /// Edge scores by position: A_t = A + sum of the edge attributes' weights.
    fn vary(&self, tokens: &TokenCells, varied: &mut Steps, begin: usize, n: usize) {
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

dispatch!(
    /// Fill and advance the chart for a sentence. `next` is the sentence after it, to prefetch. `cost` [L, width] is
    /// added to the node scores by gold label.
    pub fn run(
        weights: &OnlineWeights, tokens: &TokenCells, chart: &mut Chart, varied: &mut Steps, sentence: u32, next: u32,
        cost: &[Lane]
    ) = run_kernel
);

#[inline(always)]
fn run_kernel<S: Find>(
    simd: S,
    weights: &OnlineWeights,
    tokens: &TokenCells,
    chart: &mut Chart,
    varied: &mut Steps,
    sentence: u32,
    next: u32,
    cost: &[Lane],
) {
    let (begin, end) = tokens.range(sentence);
    let (n, width) = (end - begin, tokens.width);
    let varying = tokens.data.has_edge_attributes();
    chart.begin(n, varying);
    if varying {
        weights.vary(tokens, varied, begin, n);
    }
    let steps = weights.steps(tokens, varied);
    assert!(weights.w.len() * WIDTH == tokens.cells);
    // SAFETY: the weights are those of the cells, and the rows are those of the sentence.
    unsafe { tokens.begin_fill(&weights.w, sentence, &mut chart.node[..n * width]) };
    let mut upcoming = tokens.prefetcher(next);
    for t in 0..=n {
        // Fill one token ahead of the recursion, which depends on the previous token.
        if t < n {
            // SAFETY: as above, and the token belongs to the sentence.
            unsafe { tokens.add_rows(simd, &weights.w, begin + t, &mut chart.node[t * width..(t + 1) * width]) };
            if !cost.is_empty() {
                let y = tokens.data.gold[begin + t] as usize;
                for (node, c) in chart.node[t * width..].iter_mut().zip(&cost[y * width..(y + 1) * width]) {
                    simd.store(simd.add(simd.load(node), simd.load(c)), node);
                }
            }
        }
        if t > 0 {
            chart.advance(simd, steps, t - 1);
        }
        (0..LINES).for_each(|_| upcoming.line());
    }
    upcoming.finish();
    tokens.prefetch_rare(&weights.w, next);
}

dispatch!(
    /// Recompute the node scores of some positions of a sentence, without the recursion. The rest of the chart is
    /// unchanged.
    pub fn refill(
        weights: &OnlineWeights, tokens: &TokenCells, chart: &mut Chart, varied: &mut Steps, sentence: u32,
        positions: &[u32], cost: &[Lane]
    ) = refill_kernel
);

#[inline(always)]
fn refill_kernel<S: Find>(
    simd: S,
    weights: &OnlineWeights,
    tokens: &TokenCells,
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
        weights.vary(tokens, varied, begin, end - begin);
    }
    assert!(weights.w.len() * WIDTH == tokens.cells);
    for &t in positions {
        let (t, token) = (t as usize, begin + t as usize);
        // SAFETY: the weights are those of the cells.
        unsafe { tokens.fill(simd, &weights.w, begin, t, &mut chart.node[t * width..(t + 1) * width]) };
        if !cost.is_empty() {
            let y = tokens.data.gold[token] as usize;
            for (node, c) in chart.node[t * width..].iter_mut().zip(&cost[y * width..(y + 1) * width]) {
                simd.store(simd.add(simd.load(node), simd.load(c)), node);
            }
        }
    }
}
