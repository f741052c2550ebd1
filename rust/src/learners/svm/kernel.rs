//! Support tokens as the feature space of the Hidden Markov SVM: the products of Altun & Hofmann 2003, equation 12.
//!
//! ```text
//! d.d' = sum_{s,t} (n_s . n'_t) K(x_s, x_t) + transitions      n_s(y) = [gold_s = y] - [path_s = y]
//! ```

use crate::chain::viterbi::sentence::{advance_all, Steps};

use crate::dataset::Dataset;
use crate::error::{Error, Result};
use crate::learners::svm::space::{Space, SpaceState, SpaceWork};
use crate::machine::simd::Lane;
use crate::scores::kernel::table::Betas;

pub struct KernelSpace {
    pub table: Betas,
    edges: Vec<f64>,         // [L * L + 2 L] scratch, 0 between calls
    kernel_values: Vec<f64>, // [positions, positions] kernel values of a sentence
    by: Vec<(u16, f64)>,
    failed: Option<Error>,
}

impl KernelSpace {
    pub fn new(table: Betas) -> KernelSpace {
        let l = table.layout.labels;
        KernelSpace { table, edges: vec![0.0; l * l + 2 * l], kernel_values: Vec::new(), by: Vec::new(), failed: None }
    }

    /// The error of a kernel function, if there was one.
    pub fn failure(&mut self) -> Result<()> {
        self.failed.take().map_or(Ok(()), Err)
    }

    /// Call `add(cell, amount)` for the transitions, starts and ends of S(gold) - S(path).
    fn transitions(table: &Betas, gold: &[u16], path: &[u16], mut add: impl FnMut(usize, f64)) {
        let l = table.layout.labels;
        let last = gold.len() - 1;
        for (t, (&y, &z)) in gold.iter().zip(path).enumerate() {
            for (label, x) in [(y, 1.0), (z, -1.0)] {
                if y != z && t == 0 && table.has_start(label) {
                    add(l * l + label as usize, x);
                }
                if y != z && t == last && table.has_end(label) {
                    add(l * l + l + label as usize, x);
                }
            }
            if t > 0 && (y != z || gold[t - 1] != path[t - 1]) {
                for (from, to, x) in [(gold[t - 1], y, 1.0), (path[t - 1], z, -1.0)] {
                    if table.has_edge(from, to) {
                        add(from as usize * l + to as usize, x);
                    }
                }
            }
        }
    }
}

impl Space for KernelSpace {
    fn data(&self) -> &Dataset {
        &self.table.data
    }

    fn run(&self, work: &mut SpaceWork, sentence: u32, _next: u32, cost: &[Lane]) {
        let (begin, end) = self.table.range(sentence);
        work.chart.begin(end - begin, false);
        for t in 0..end - begin {
            self.table.fill(&mut work.chart, sentence, t, cost, &mut work.row);
        }
        advance_all(&mut work.chart, &self.table.steps, None);
    }

    fn refill(&self, work: &mut SpaceWork, sentence: u32, positions: &[u32], cost: &[Lane]) {
        let (begin, end) = self.table.range(sentence);
        work.chart.begin(end - begin, false);
        for &t in positions {
            self.table.fill(&mut work.chart, sentence, t as usize, cost, &mut work.row);
        }
    }

    fn steps<'a>(&'a self, _work: &'a SpaceWork) -> &'a Steps {
        &self.table.steps
    }

    fn products(&mut self, sentence: u32, paths: &[u16], out: &mut Vec<f64>) {
        let (begin, end) = self.table.range(sentence);
        let n = end - begin;
        let data = self.table.data.clone();
        let gold = &data.gold[begin..end];
        let last = &paths[paths.len() - n..];
        let differing: Vec<usize> = (0..n).filter(|&t| paths.chunks_exact(n).any(|p| p[t] != gold[t])).collect();
        self.kernel_values.clear();
        self.kernel_values.resize(n * n, 0.0);
        for s in (0..n).filter(|&s| last[s] != gold[s]) {
            for &t in &differing {
                let (a, b) = (self.table.distinct.of[begin + s], self.table.distinct.of[begin + t]);
                match self.table.kernel_of(a, b) {
                    Ok(k) => self.kernel_values[s * n + t] = k,
                    Err(error) => self.failed = Some(error),
                }
            }
        }
        let (table, edges) = (&self.table, &mut self.edges);
        Self::transitions(table, gold, last, |cell, x| edges[cell] += x);
        out.clear();
        for path in paths.chunks_exact(n) {
            let mut sum = 0.0;
            Self::transitions(table, gold, path, |cell, x| sum += edges[cell] * x);
            for s in (0..n).filter(|&s| last[s] != gold[s]) {
                for t in (0..n).filter(|&t| path[t] != gold[t]) {
                    let is_same = |a: u16, b: u16| f64::from(u8::from(a == b));
                    let label_product = is_same(gold[s], gold[t]) + is_same(last[s], path[t])
                        - is_same(gold[s], path[t])
                        - is_same(last[s], gold[t]);
                    if label_product != 0.0 {
                        sum += label_product * self.kernel_values[s * n + t];
                    }
                }
            }
            out.push(sum);
        }
        Self::transitions(table, gold, last, |cell, _| edges[cell] = 0.0);
    }

    fn add(&mut self, sentence: u32, paths: &[u16], amounts: &[f64]) {
        let (begin, end) = self.table.range(sentence);
        let (n, l) = (end - begin, self.table.layout.labels);
        let data = self.table.data.clone();
        let gold = &data.gold[begin..end];
        for t in 0..n {
            self.by.clear();
            self.by.push((gold[t], 0.0));
            for (path, &x) in paths.chunks_exact(n).zip(amounts) {
                if path[t] != gold[t] && x != 0.0 {
                    self.by[0].1 += x;
                    match self.by.iter_mut().find(|c| c.0 == path[t]) {
                        Some(c) => c.1 -= x,
                        None => self.by.push((path[t], -x)),
                    }
                }
            }
            if self.by.len() > 1 {
                if let Err(error) = self.table.change(self.table.distinct.of[begin + t], &self.by) {
                    self.failed = Some(error);
                }
            }
        }
        let (table, edges) = (&self.table, &mut self.edges);
        for (path, &x) in paths.chunks_exact(n).zip(amounts).filter(|c| *c.1 != 0.0) {
            Self::transitions(table, gold, path, |cell, one| edges[cell] += x * one);
        }
        for cell in 0..edges.len() {
            let x = std::mem::take(&mut edges[cell]);
            if x == 0.0 {
                continue;
            }
            match cell {
                c if c < l * l => self.table.change_edge((c / l) as u16, (c % l) as u16, x),
                c if c < l * l + l => self.table.change_start((c - l * l) as u16, x),
                c => self.table.change_end((c - l * l - l) as u16, x),
            };
        }
    }

    /// Scores are sums in double precision, so accumulated rounding is far below the gap. The betas are recomputed, so
    /// that those that became 0 are exactly 0.
    fn recompute_weights(&mut self, each: &mut dyn Iterator<Item = (u32, &[u16], f64)>) -> (f64, f64) {
        let l = self.table.layout.labels;
        self.table.weights.beta.fill(0.0);
        for (sentence, path, amount) in each {
            let (begin, end) = self.table.range(sentence);
            for (t, (&y, &z)) in self.table.data.gold[begin..end].iter().zip(path).enumerate() {
                if y != z {
                    let u = self.table.distinct.of[begin + t] as usize;
                    self.table.weights.beta[u * l + y as usize] += amount;
                    self.table.weights.beta[u * l + z as usize] -= amount;
                }
            }
        }
        let norm = self.table.norm();
        (norm, norm)
    }

    fn state(&self) -> SpaceState {
        SpaceState { weights: self.table.weights.clone(), kept: self.table.kept().to_vec() }
    }

    fn restore(&mut self, state: SpaceState, _: &mut dyn Iterator<Item = (u32, &[u16], f64)>) -> Result<()> {
        self.table.restore(state.weights, &state.kept)
    }
}
