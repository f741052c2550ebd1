//! Log-loss of a chain of order 2 or 3 and its gradient: sum_i w_i (log Z(x_i) - H(x_i, y_i)).
//!
//! Features: those of the first order, then one for each tuple of three labels (and of four, for order 3) in the gold
//! labels. The sentences are cut into a fixed number of pieces whose sums are added in order, so that the result does
//! not depend on the number of threads.

use crate::chain::limits::support::Support;
use crate::chain::lookback::Lookback;
use crate::chain::sums::order::{check_codes, ArcFactors, Graph, OrderWork};
use crate::dataset::layout::Layout;
use crate::dataset::Dataset;
use crate::error::{Error, Result};
use crate::learners::tally::not_finite;
use crate::machine::system::stop;
use crate::scores::check::{check_given_weights, check_labels, outside_constraints};
use crate::scores::sentence::score_sentence;
use rayon::prelude::*;
use std::sync::Arc;

/// Pieces that run in parallel.
const PARTS: usize = 8;

/// No feature.
const NONE: u32 = u32::MAX;

/// The features of order 2 or 3 of a training set.
pub struct Order {
    pub layout: Arc<Layout>,
    pub graph: Graph,
    pub tuples: [Vec<u32>; 2], // sorted codes of three and of four labels that have a feature
    of_arc: Vec<[u32; 2]>,     // [arcs] features of three and of four labels of each arc, or NONE
    forbidden: Vec<u32>,       // edges of score -infinity
}

impl Order {
    /// `forbidden`: edges (label' * L + label) that no path may contain.
    pub fn new(data: &Dataset, layout: Arc<Layout>, order: usize, forbidden: &[u32]) -> Result<Order> {
        let l = layout.labels;
        if !(2..=3).contains(&order) {
            return Err(Error::Value(format!("order={order}: expected 2 or 3 (1 is the plain chain)")));
        }
        check_codes(l, order + 1)?;
        check_labels(data, l)?;
        if data.has_edge_attributes() {
            return Err(Error::Value("edge attributes do not go with order > 1; use a template without them".into()));
        }
        let mut is_forbidden = vec![false; l * l];
        for &e in forbidden {
            *is_forbidden
                .get_mut(e as usize)
                .ok_or_else(|| Error::Value(format!("forbidden edge {e} does not exist")))? = true;
        }
        let mut tuples: [Vec<u32>; 2] = Default::default();
        for (i, s) in data.sentences.windows(2).enumerate() {
            let gold = &data.gold[s[0]..s[1]];
            if gold.windows(2).any(|y| is_forbidden[y[0] as usize * l + y[1] as usize]) {
                return Err(outside_constraints(i));
            }
            for (n, seen) in (3..=order + 1).zip(&mut tuples) {
                seen.extend(gold.windows(n).map(|w| w.iter().fold(0, |code, &y| code * l as u32 + u32::from(y))));
                if seen.len() > 1 << 22 {
                    seen.sort_unstable();
                    seen.dedup();
                }
            }
        }
        for seen in &mut tuples {
            seen.sort_unstable();
            seen.dedup();
        }
        // Every feature tuple without its last label is a state.
        let begins = |seen: &[u32]| {
            let mut codes: Vec<u32> = seen.iter().map(|c| c / l as u32).collect();
            codes.dedup();
            codes
        };
        let longer: Vec<Vec<u32>> = tuples[..order - 1].iter().map(|seen| begins(seen)).collect();
        let graph = Graph::new(l, order, &longer);
        let place = |k: usize, code: u64| match tuples[k].binary_search(&(code as u32)) {
            Ok(i) => (k * tuples[0].len() + i) as u32,
            Err(_) => NONE,
        };
        let mut of_arc = Vec::with_capacity(graph.arcs());
        for s in 0..graph.states() {
            let (code, n) = (u64::from(graph.code[s]), graph.length(s));
            for y in 0..l as u64 {
                let three = if n >= 2 { place(0, (code * l as u64 + y) % (l as u64).pow(3)) } else { NONE };
                let four = if n >= 3 { place(1, code * l as u64 + y) } else { NONE };
                of_arc.push([three, four]);
            }
        }
        Ok(Order { graph, layout, tuples, of_arc, forbidden: forbidden.to_vec() })
    }

    /// Number of features beyond the first order.
    pub fn len(&self) -> usize {
        self.tuples[0].len() + self.tuples[1].len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Arc scores of a weight vector: edge and tuples.
    pub fn arc_scores(&self, w: &[f64]) -> Vec<f64> {
        let (l, base) = (self.graph.labels, self.layout.len());
        let mut edges = self.layout.edge_scores(w);
        for &e in &self.forbidden {
            edges[e as usize] = f64::NEG_INFINITY;
        }
        let score = |(arc, features): (usize, &[u32; 2])| {
            let more: f64 = features.iter().filter(|&&f| f != NONE).map(|&f| w[base + f as usize]).sum();
            edges[self.graph.last[arc / l] as usize * l + arc % l] + more
        };
        self.of_arc.iter().enumerate().map(score).collect()
    }

    /// Weights in the layout of `Lookback` with tuples, 0 for tuples without a feature.
    pub fn dense(&self, w: &[f64]) -> Vec<f32> {
        let l = self.graph.labels;
        let terms =
            Lookback { labels: l, cell: self.graph.order, far: 1, endless: false, document: false, tuples: true };
        let mut out = vec![0.0; terms.len()];
        for (k, codes) in self.tuples.iter().enumerate() {
            for (i, &code) in codes.iter().enumerate() {
                let at = terms.tuple_row(k + 2, code as usize / l) * l + code as usize % l;
                out[at] = w[k * self.tuples[0].len() + i] as f32;
            }
        }
        out
    }
}

/// Sums over some sentences: w_i log Z, expectations of first-order features, expectations of arcs.
type OrderSums = (f64, Vec<f64>, Vec<f64>);

/// The objective that is minimised.
pub struct OrderObjective {
    order: Arc<Order>,
    data: Arc<Dataset>,
    weights: Vec<f64>, // [N] of the sentences, or empty for all 1
    support: Option<Support>,
    gold: Vec<f64>, // [features] value of each on the gold paths, weighted
}

impl OrderObjective {
    pub fn new(
        order: Arc<Order>,
        data: Arc<Dataset>,
        weights: Vec<f64>,
        support: Option<Support>,
    ) -> Result<OrderObjective> {
        check_given_weights(&weights, data.len())?;
        check_labels(&data, order.graph.labels)?;
        let (layout, graph) = (&order.layout, &order.graph);
        data.check_layout(layout.attributes)?;
        let l = graph.labels;
        let mut gold = vec![0.0; layout.len() + order.len()];
        for (i, s) in data.sentences.windows(2).enumerate().filter(|(_, s)| s[0] < s[1]) {
            let (path, weight) = (&data.gold[s[0]..s[1]], weights.get(i).copied().unwrap_or(1.0));
            let allowed =
                |x: &Support| path.iter().enumerate().all(|(t, &y)| x.sets[x.of[s[0] + t] as usize * l + y as usize]);
            if !support.as_ref().is_none_or(allowed) {
                return Err(outside_constraints(i));
            }
            for (t, &y) in path.iter().enumerate() {
                for (a, value) in data.node.csr().row(s[0] + t) {
                    let (first, labels) = layout.node(a);
                    if let Ok(j) = labels.binary_search(&y) {
                        gold[first + j] += weight * f64::from(value);
                    }
                }
                if t > 0 {
                    let edge = u32::from(path[t - 1]) * l as u32 + u32::from(y);
                    if let Ok(j) = layout.edges.binary_search(&edge) {
                        gold[layout.edge_at() + j] += weight;
                    }
                }
                for (k, codes) in order.tuples.iter().enumerate().filter(|(k, _)| t >= k + 2) {
                    let code = path[t - k - 2..=t].iter().fold(0, |code, &y| code * l as u32 + u32::from(y));
                    if let Ok(j) = codes.binary_search(&code) {
                        gold[layout.len() + k * order.tuples[0].len() + j] += weight;
                    }
                }
            }
            let (begins, ends) = data.ends(i);
            for (labels, at, y, here) in [
                (&layout.starts, layout.start_at(), path[0], begins),
                (&layout.ends, layout.end_at(), path[path.len() - 1], ends),
            ] {
                if let Some(j) = labels.binary_search(&y).ok().filter(|_| here) {
                    gold[at + j] += weight;
                }
            }
        }
        Ok(OrderObjective { order, data, weights, support, gold })
    }

    pub fn len(&self) -> usize {
        self.gold.len()
    }

    pub fn is_empty(&self) -> bool {
        self.gold.is_empty()
    }

    /// Return the loss at w and write the gradient to `gradient`.
    pub fn evaluate(&self, w: &[f64], gradient: &mut [f64]) -> Result<f64> {
        if w.len() != self.len() || gradient.len() != self.len() {
            return Err(Error::Value(format!("{} weights are needed, got {}", self.len(), w.len())));
        }
        let factors = ArcFactors::new(&self.order.arc_scores(w));
        let (n, stop) = (self.data.len(), stop::current());
        let parts: Vec<Result<OrderSums>> = (0..PARTS)
            .into_par_iter()
            .with_max_len(1)
            .map(|i| {
                let _guard = stop.enter();
                self.part_sums(w, &factors, n * i / PARTS..n * (i + 1) / PARTS)
            })
            .collect();
        let mut loss = 0.0;
        let mut expected = vec![0.0; self.order.graph.arcs()];
        for (g, x) in gradient.iter_mut().zip(&self.gold) {
            *g = -x;
        }
        for part in parts {
            let (value, first, arcs) = part?;
            loss += value;
            gradient.iter_mut().zip(&first).for_each(|(g, x)| *g += x);
            expected.iter_mut().zip(&arcs).for_each(|(e, x)| *e += x);
        }
        self.add_arcs(&expected, gradient);
        loss -= w.iter().zip(&self.gold).map(|(a, b)| a * b).sum::<f64>();
        Ok(loss)
    }

    /// Sum of w_i log Z over some sentences, expectations of their node features, expectations of arcs.
    fn part_sums(&self, w: &[f64], factors: &ArcFactors, range: std::ops::Range<usize>) -> Result<OrderSums> {
        let (layout, graph, data) = (&self.order.layout, &self.order.graph, &self.data);
        let l = graph.labels;
        let edges = vec![0.0; l * l];
        let (mut node, mut edge, mut p, mut work) = (Vec::new(), Vec::new(), Vec::new(), OrderWork::default());
        let (mut sum, mut first, mut arcs) = (0.0, vec![0.0; layout.len()], vec![0.0; graph.arcs()]);
        for s in range {
            stop::check();
            let (begin, end) = (data.sentences[s], data.sentences[s + 1]);
            let weight = self.weights.get(s).copied().unwrap_or(1.0);
            if begin == end || weight == 0.0 {
                continue;
            }
            score_sentence(data, layout, w, &edges, s as u32, &mut node, &mut edge);
            if let Some(support) = &self.support {
                support.forbid(begin, l, &mut node);
            }
            let log_z = work.forward(graph, factors, &node);
            if !log_z.is_finite() {
                return Err(not_finite(s as u32));
            }
            sum += weight * log_z;
            p.resize(node.len(), 0.0);
            work.backward(graph, factors, weight, &mut p, &mut arcs);
            for (t, p) in p.chunks_exact(l).enumerate() {
                for (a, value) in data.node.csr().row(begin + t) {
                    let (at, labels) = layout.node(a);
                    for (g, &y) in first[at..at + labels.len()].iter_mut().zip(labels) {
                        *g += weight * f64::from(value) * p[y as usize];
                    }
                }
            }
            let (begins, ends) = data.ends(s);
            for (labels, at, t, _) in
                [(&layout.starts, layout.start_at(), 0, begins), (&layout.ends, layout.end_at(), end - begin - 1, ends)]
                    .into_iter()
                    .filter(|x| x.3)
            {
                for (i, &y) in labels.iter().enumerate() {
                    first[at + i] += weight * p[t * l + y as usize];
                }
            }
        }
        arcs.iter_mut().zip(&factors.m).for_each(|(e, m)| *e *= m);
        Ok((sum, first, arcs))
    }

    /// Add the expectations of arcs to edges and tuples.
    fn add_arcs(&self, expected: &[f64], gradient: &mut [f64]) {
        let (order, layout, l) = (&self.order, &self.order.layout, self.order.graph.labels);
        let mut edges = vec![0.0; l * l];
        for (arc, (&x, features)) in expected.iter().zip(&order.of_arc).enumerate() {
            edges[order.graph.last[arc / l] as usize * l + arc % l] += x;
            for &f in features.iter().filter(|&&f| f != NONE) {
                gradient[layout.len() + f as usize] += x;
            }
        }
        for (g, &e) in gradient[layout.edge_at()..].iter_mut().zip(&layout.edges) {
            *g += edges[e as usize];
        }
    }
}
