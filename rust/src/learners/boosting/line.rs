//! The loss along one direction in the weights, several features at once: scores are moved where it is looked at, and in the
//! state itself once the way is known.

use crate::learners::boosting::chain::{self, ChainWork, EdgeFactors};
use crate::learners::boosting::index::{self, Kind};
use crate::learners::boosting::loss::Sentence;
use crate::learners::boosting::state::State;
use crate::machine::stop;
use rayon::prelude::*;

/// Mean loss above which the forward pass alone tells losses apart: its error is about 1e-14 a sentence.
const COARSE: f64 = 1e-6;

/// Steps of features, and what they add to scores.
pub struct Direction {
    weights: Vec<(usize, f64)>,
    edges: Vec<(usize, f64)>, // place in a matrix [L, L]
    nodes: Vec<f64>,          // [tokens, P]
}

/// Scratch of one thread.
#[derive(Default)]
struct LineWork {
    work: ChainWork,
    node: Vec<f64>,
    psi: Vec<f64>,
    p: Vec<f64>,
}

impl State {
    /// The direction of these steps.
    pub fn direction(&self, steps: impl Iterator<Item = (usize, f64)>) -> Direction {
        let (width, l) = (self.edges.padded, self.layout.labels);
        let mut out = Direction { weights: steps.collect(), edges: Vec::new(), nodes: vec![0.0; self.node.len()] };
        for &(k, step) in &out.weights {
            match index::kind(&self.layout, k) {
                Kind::Node { attribute, label } => {
                    for &e in self.index.postings(attribute) {
                        for (t, value) in self.index.places(e as usize) {
                            out.nodes[t * width + label] += step * value;
                        }
                    }
                }
                Kind::Edge { from, to } => out.edges.push((from * l + to, step)),
                kind @ (Kind::Start { label } | Kind::End { label }) => {
                    let start = matches!(kind, Kind::Start { .. });
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

    /// Loss of the listed sentences so far along a direction; the state stays as it is.
    pub fn loss_along(&self, sentences: &[u32], direction: &Direction, scale: f64) -> f64 {
        let mut edges = self.edges.clone();
        direction.edges.iter().for_each(|&(at, step)| edges.score[at] += scale * step);
        edges.update();
        // Where little is left to learn the forward pass alone has too few digits.
        let coarse = self.wrong() > COARSE * self.weight.iter().sum::<f64>() * (-self.shift).exp();
        // Sums of fixed parts, in order: the same for any number of threads.
        let stop = stop::current();
        let one = |x: &mut LineWork, s: usize| self.sentence_along(direction, scale, &edges, coarse, x, s);
        let parts: Vec<f64> = sentences
            .par_chunks(64)
            .map_init(LineWork::default, |scratch, part| {
                let _mine = stop.enter();
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
        coarse: bool,
        x: &mut LineWork,
        s: usize,
    ) -> f64 {
        let width = self.edges.padded;
        let (begin, end) = (self.data.sentences[s], self.data.sentences[s + 1]);
        let rows = begin * width..end * width;
        x.node.clear();
        x.node.extend_from_slice(&self.node[rows.clone()]);
        x.psi.clear();
        x.psi.extend_from_slice(&self.psi[rows.clone()]);
        for (t, by) in direction.nodes[rows].chunks_exact(width).enumerate() {
            let here = t * width..(t + 1) * width;
            let (node, psi) = (&mut x.node[here.clone()], &mut x.psi[here]);
            if !moved(node, psi, by, scale, self.tops[begin + t]) {
                chain::exponentiate(self.layout.labels, node, psi);
            }
        }
        let gold = &self.data.gold[begin..end];
        let (weight, shift) = (self.weight[s], self.shift);
        let sentence = Sentence { node: &x.node, psi: &x.psi, gold, edges, weight, shift };
        self.target.part(&sentence, coarse, &mut x.work, &mut x.p)
    }

    /// Go so far along a direction; `refresh` must follow.
    pub fn advance(&mut self, direction: Direction, scale: f64) {
        let width = self.edges.padded;
        for &(k, step) in &direction.weights {
            self.w[k] += scale * step;
        }
        for &(at, step) in &direction.edges {
            self.edges.score[at] += scale * step;
        }
        self.edges.update();
        for (t, by) in direction.nodes.chunks_exact(width).enumerate() {
            let here = t * width..(t + 1) * width;
            let (node, psi) = (&mut self.node[here.clone()], &mut self.psi[here]);
            if !moved(node, psi, by, scale, self.tops[t]) {
                self.tops[t] = chain::exponentiate(self.layout.labels, node, psi);
            }
        }
    }
}

/// A row of scores moved by a multiple of another, and its exponentials: false where one is so far from the top, which is only
/// a scale, that they must be computed anew.
#[inline(always)]
fn moved(node: &mut [f64], psi: &mut [f64], by: &[f64], scale: f64, top: f64) -> bool {
    let mut near = true;
    for ((node, psi), &by) in node.iter_mut().zip(psi).zip(by) {
        if by != 0.0 {
            *node += scale * by;
            let relative = *node - top;
            *psi = relative.exp();
            near &= relative.abs() < 30.0;
        }
    }
    near
}
