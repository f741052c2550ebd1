//! The loss along one direction in the weights, several features at once. Scores are moved temporarily for each
//! evaluation, and in the state itself once the step is chosen.

use crate::learners::boosting::cells::NONE;
use crate::learners::boosting::chain::{ChainWork, EdgeFactors};
use crate::learners::boosting::index::{self, FeatureKind};
use crate::learners::boosting::loss::SentenceScores;
use crate::learners::boosting::state::State;
use crate::machine::system::stop;
use rayon::prelude::*;

/// Number of tokens that one thread moves at a time.
const TOKENS_PER_TASK: usize = 1024;

/// If a direction's attributes have more than 1 / ENTRY_SHARE of all entries, all tokens are traversed in place of the
/// entries.
const ENTRY_SHARE: usize = 16;

/// Steps of features, and the changes of scores that they cause.
pub struct Direction {
    weights: Vec<(usize, f64)>,
    edges: Vec<(usize, f64)>, // position in a matrix [L, L]
    nodes: Vec<f64>,          // [tokens, P]
}

/// Steps on node features, sorted by attribute. Those of attribute a begin at `at[a]`, which is NONE if there are none.
struct StepsByAttribute {
    at: Vec<u32>,
    steps: Vec<(u32, u32, f64)>, // attribute, label, step
}

/// Scratch of one thread.
#[derive(Default)]
struct LineWork {
    work: ChainWork,
    node: Vec<f64>,
}

impl State {
    /// Direction of these steps.
    pub fn direction(&self, steps: impl Iterator<Item = (usize, f64)>) -> Direction {
        let (width, l) = (self.edges.padded, self.layout.labels);
        let mut out = Direction { weights: steps.collect(), edges: Vec::new(), nodes: vec![0.0; self.node.len()] };
        let entries: usize = out.weights.iter().map(|&(k, _)| self.entries_of(k)).sum();
        let by_token = ENTRY_SHARE * entries > self.index.attribute.len();
        if by_token {
            self.add_steps_by_token(&out.weights, &mut out.nodes);
        }
        for &(k, step) in &out.weights {
            match index::kind(&self.layout, k) {
                FeatureKind::Node { .. } if by_token => {}
                FeatureKind::Node { attribute, label } => {
                    for &e in self.index.postings(attribute) {
                        for (t, value) in self.index.places(e as usize) {
                            out.nodes[t * width + label] += step * value;
                        }
                    }
                }
                FeatureKind::Edge { from, to } => out.edges.push((from * l + to, step)),
                kind @ (FeatureKind::Start { label } | FeatureKind::End { label }) => {
                    let start = matches!(kind, FeatureKind::Start { .. });
                    for s in 0..self.len() {
                        let (begin, end) = (self.data.sentences[s], self.data.sentences[s + 1]);
                        let here = if start { self.data.ends(s).0 } else { self.data.ends(s).1 };
                        if here && begin < end {
                            out.nodes[(if start { begin } else { end - 1 }) * width + label] += step;
                        }
                    }
                }
            }
        }
        out
    }

    /// Number of sentences where a feature can fire.
    pub fn entries_of(&self, k: usize) -> usize {
        match index::kind(&self.layout, k) {
            FeatureKind::Node { attribute, .. } => self.index.postings(attribute).len(),
            FeatureKind::Edge { .. } => self.fires[0],
            FeatureKind::Start { .. } => self.fires[1],
            FeatureKind::End { .. } => self.fires[2],
        }
    }

    /// Sentences where any of several features can fire, ascending.
    pub fn sentences_of_any(&self, features: impl Iterator<Item = usize>, out: &mut Vec<u32>) {
        let (mut attributes, mut chain) = (vec![false; self.layout.attributes], [None; 3]);
        for k in features {
            match index::kind(&self.layout, k) {
                FeatureKind::Node { attribute, .. } => attributes[attribute as usize] = true,
                kind @ FeatureKind::Edge { .. } => chain[0] = Some(kind),
                kind @ FeatureKind::Start { .. } => chain[1] = Some(kind),
                kind @ FeatureKind::End { .. } => chain[2] = Some(kind),
            }
        }
        let entries = |s: usize| &self.index.attribute[self.index.entry_ptr[s]..self.index.entry_ptr[s + 1]];
        let fires = |s: usize| {
            chain.iter().flatten().any(|&kind| index::fires_in(&self.data, kind, s))
                || entries(s).iter().any(|&a| attributes[a as usize])
        };
        out.clear();
        out.extend((0..self.len()).filter(|&s| fires(s)).map(|s| s as u32));
    }

    /// Change of the scores of all tokens by steps on node features, each token with its attributes in order.
    fn add_steps_by_token(&self, weights: &[(usize, f64)], nodes: &mut [f64]) {
        let mut by = StepsByAttribute { at: vec![NONE; self.layout.attributes], steps: Vec::new() };
        for &(k, step) in weights {
            if let FeatureKind::Node { attribute, label } = index::kind(&self.layout, k) {
                by.steps.push((attribute, label as u32, step));
            }
        }
        by.steps.sort_by_key(|&(attribute, label, _)| (attribute, label));
        for (i, &(attribute, ..)) in by.steps.iter().enumerate().rev() {
            by.at[attribute as usize] = i as u32;
        }
        let width = self.edges.padded;
        let stop = stop::current();
        nodes.par_chunks_mut(TOKENS_PER_TASK * width).enumerate().for_each(|(part, nodes)| {
            let _guard = stop.enter();
            for (t, row) in nodes.chunks_exact_mut(width).enumerate() {
                for (a, value) in self.data.node.csr().row(part * TOKENS_PER_TASK + t) {
                    let first = by.at[a as usize];
                    let found = by.steps.get(first as usize..).unwrap_or_default().iter();
                    for &(_, label, step) in found.take_while(|x| x.0 == a) {
                        row[label as usize] += step * f64::from(value);
                    }
                }
            }
        });
    }

    /// Loss of the listed sentences at `scale` along a direction. The state is unchanged.
    pub fn loss_along(&self, sentences: &[u32], direction: &Direction, scale: f64) -> f64 {
        let mut edges = self.edges.clone();
        direction.edges.iter().for_each(|&(at, step)| edges.score[at] += scale * step);
        edges.update();
        // Sums of fixed parts, in order, so that the result does not depend on the number of threads.
        let stop = stop::current();
        let one = |x: &mut LineWork, s: usize| self.sentence_along(direction, scale, &edges, x, s);
        let parts: Vec<f64> = sentences
            .par_chunks(64)
            .map_init(LineWork::default, |scratch, part| {
                let _guard = stop.enter();
                part.iter().map(|&s| one(scratch, s as usize)).sum()
            })
            .collect();
        parts.iter().sum()
    }

    fn sentence_along(
        &self,
        direction: &Direction,
        scale: f64,
        edges: &EdgeFactors,
        x: &mut LineWork,
        s: usize,
    ) -> f64 {
        let width = self.edges.padded;
        let (begin, end) = (self.data.sentences[s], self.data.sentences[s + 1]);
        let rows = begin * width..end * width;
        x.node.clear();
        x.node.extend_from_slice(&self.node[rows.clone()]);
        x.node.iter_mut().zip(&direction.nodes[rows]).for_each(|(node, by)| *node += scale * by);
        let gold = &self.data.gold[begin..end];
        let sentence = SentenceScores { node: &x.node, gold, edges, weight: self.weight[s], shift: self.shift };
        self.target.part(&sentence, &mut x.work)
    }

    /// Move by `scale` along a direction. A call of `refresh` must follow.
    pub fn advance(&mut self, direction: Direction, scale: f64) {
        let width = self.edges.padded;
        for &(k, step) in &direction.weights {
            self.w[k] += scale * step;
        }
        for &(at, step) in &direction.edges {
            self.edges.score[at] += scale * step;
        }
        self.edges.update();
        let rows = self.node.chunks_mut(TOKENS_PER_TASK * width).zip(direction.nodes.chunks(TOKENS_PER_TASK * width));
        for (node, by) in rows {
            stop::check();
            node.iter_mut().zip(by).for_each(|(node, by)| *node += scale * by);
        }
    }
}
