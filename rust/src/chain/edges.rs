//! Edge scores of a first-order chain, in the form used by the recursions of `sums::batch`.

use crate::chain::lists::{Pattern, Sparse};
use crate::chain::sums::underflow::{Underflow, MAX_RANGE};
use crate::machine::simd::{Lane, WIDTH};
use once_cell::race::OnceBox;
use std::sync::Arc;

/// Matrices, or lists instead of them.
#[derive(Clone, Debug)]
pub struct Edges {
    pub labels: usize,
    pub sparse: Option<Sparse>,
    pub score: Vec<f32>, // [L, L] A[y', y], -infinity if forbidden
    columns: OnceBox<Vec<Lane>>,
    padded: OnceBox<(Vec<Lane>, Vec<Lane>)>,
    pub m: Vec<f32>, // [L, L] exp(A - max)
    /// [L, L] max + log M: the scores actually used by the recursions, including the rounding of M. The gold path is
    /// scored with them, so that the rounding error of an edge that occurs hundreds of thousands of times cancels in
    /// log Z - H.
    pub rounded: Vec<f64>,
    pub transposed: Vec<f32>, // [L, L] M[y', y] at [y, y']
    pub max: f64,
    /// Whether the scaled recursions may be used at all.
    pub scaled: bool,
    /// Thresholds for flagging sentences.
    pub underflow: Underflow,
}

impl Edges {
    /// Build lists from the weights of the edge features, in the order of the pattern's.
    pub fn listed(pattern: &Arc<Pattern>, weights: &[f64]) -> Edges {
        let (sparse, max, span) = Sparse::new(pattern, weights);
        Edges {
            labels: pattern.labels,
            sparse: Some(sparse),
            score: Vec::new(),
            columns: OnceBox::new(),
            padded: OnceBox::new(),
            m: Vec::new(),
            rounded: Vec::new(),
            transposed: Vec::new(),
            max,
            scaled: is_scaled(max, span),
            underflow: Underflow::new(pattern.labels, span, pattern.forbids()),
        }
    }

    /// Number of edges with pair expectations: all, or the listed ones.
    pub fn len(&self) -> usize {
        self.sparse.as_ref().map_or(self.labels * self.labels, |sparse| sparse.pattern.len())
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Scores of all edges into each label, A[., y] for y = 0..L: [L, L padded to 16], NaN in the padding. Computed on
    /// first use.
    pub fn columns(&self) -> &[Lane] {
        let width = self.labels.div_ceil(WIDTH);
        self.columns.get_or_init(|| {
            let mut out = vec![Lane([f32::NAN; WIDTH]); self.labels * width];
            for (edge, &score) in self.score.iter().enumerate() {
                let (from, to) = (edge / self.labels, edge % self.labels);
                out[to * width + from / WIDTH].0[from % WIDTH] = score;
            }
            Box::new(out)
        })
    }

    /// M and its transpose in whole lanes, [L, L padded to 16] each, 0 in the padding.
    pub fn padded(&self) -> (&[Lane], &[Lane]) {
        let lanes = |m: &[f32]| {
            let padded = |part: &[f32]| Lane(std::array::from_fn(|k| part.get(k).copied().unwrap_or(0.0)));
            m.chunks(self.labels).flat_map(|row| row.chunks(WIDTH).map(padded)).collect::<Vec<Lane>>()
        };
        let (m, transposed) = self.padded.get_or_init(|| Box::new((lanes(&self.m), lanes(&self.transposed))));
        (m, transposed)
    }

    /// Index of the pair expectation of an edge (label' * L + label).
    #[inline(always)]
    pub fn pair_index(&self, edge: u32) -> Option<usize> {
        match &self.sparse {
            None => Some(edge as usize),
            Some(sparse) => sparse.pattern.find(edge),
        }
    }

    /// Score of an edge as actually used by the recursions.
    #[inline(always)]
    pub fn rounded_score(&self, edge: u32) -> f64 {
        match &self.sparse {
            None => self.rounded[edge as usize],
            Some(sparse) => sparse.rounded(edge),
        }
    }

    pub fn new(labels: usize, score: &[f64]) -> Edges {
        let finite = || score.iter().copied().filter(|x| x.is_finite());
        let max = finite().fold(f64::NEG_INFINITY, f64::max);
        let min = finite().fold(f64::INFINITY, f64::min);
        let valid = score.iter().all(|&x| x.is_finite() || x == f64::NEG_INFINITY);
        let m: Vec<f32> = score.iter().map(|&x| (x - max).exp() as f32).collect();
        let mut transposed = vec![0.0; labels * labels];
        for from in 0..labels {
            for to in 0..labels {
                transposed[to * labels + from] = m[from * labels + to];
            }
        }
        let rounded = m.iter().map(|&x| max + f64::from(x).ln()).collect();
        let span = if valid { max - min } else { f64::NAN };
        let forbids = score.contains(&f64::NEG_INFINITY);
        Edges {
            labels,
            sparse: None,
            score: score.iter().map(|&x| x as f32).collect(),
            columns: OnceBox::new(),
            padded: OnceBox::new(),
            m,
            rounded,
            transposed,
            max,
            scaled: is_scaled(max, span),
            underflow: Underflow::new(labels, span, forbids),
        }
    }
}

/// Whether edges of this largest score and span are in the range of the scaled recursions.
fn is_scaled(max: f64, span: f64) -> bool {
    span <= f64::from(MAX_RANGE) && max.abs() < 1e30
}
