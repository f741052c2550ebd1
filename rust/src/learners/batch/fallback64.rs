//! Loss and gradient of one sentence in double precision, scaled or in log space: the fallback of single precision.

use crate::chain::sums::log64::Trellis;

use crate::chain::lattice::Scores;
use crate::chain::limits::at_most_once::sum::Sum;
use crate::chain::sums::pointwise64::{self, Pointwise};
use crate::chain::sums::scaled64::{self, Factors, Scaled64};
use crate::chain::sums::underflow::exceeds_log_z;
use crate::learners::batch::loss::Loss;
use crate::learners::batch::terms::Setting;
use crate::machine::simd::double::Doubles;
use crate::machine::simd::{Lane, WIDTH};
use crate::machine::system::testing::{self, PathCount};
use crate::scores::sentence::score_sentence;

/// Destination of a sentence's residuals.
pub struct Sink<'a> {
    pub nodes: &'a mut [Lane], // [T, L] of its batch
    pub edges: &'a mut [f64],
    pub pairs: &'a mut [f64],
}

/// Whether the scaled recursions do not apply to the objective.
fn needs_log_space(setting: &Setting<'_>) -> bool {
    setting.partial.is_some()
        || setting.once.is_some()
        || !setting.cost.is_empty()
        || setting.data.has_edge_attributes()
}

/// Node residuals from rows [T, width].
fn set_residual(residual: &mut [f64], rows: &[Doubles], l: usize, factor: f64) {
    for (to, row) in residual.chunks_exact_mut(l).zip(rows.chunks_exact(l.div_ceil(WIDTH))) {
        to.iter_mut().zip(row.iter().flat_map(|x| x.0)).for_each(|(to, x)| *to = factor * x);
    }
}

#[derive(Default)]
pub struct Fallback64 {
    node: Vec<f64>,
    edge: Vec<f64>,
    trellis: Trellis,
    sum: Option<Sum>, // replaces the trellis if labels may occur once
    precise: Scaled64,
    points: Pointwise,
    expected: Vec<Doubles>, // [L, width] pairs of the scaled recursions, divided by the factors of the edges
    residual: Vec<f64>,     // [T, L]
    pairs: Vec<f64>,        // [T, L, L] weighted pair residuals, block 0 unused
}

impl Fallback64 {
    /// Write the sentence's residuals to the sink. Return its loss and l, or None if they are not finite.
    pub fn run(
        &mut self,
        setting: &Setting<'_>,
        sentence: u32,
        lane: usize,
        weight: f64,
        sink: &mut Sink<'_>,
    ) -> Option<(f64, f64)> {
        let (data, l) = (setting.data, setting.layout.labels);
        let (begin, end) = (data.sentences[sentence as usize], data.sentences[sentence as usize + 1]);
        let gold = &data.gold[begin..end];
        self.score(setting, sentence);
        self.residual.clear();
        self.residual.resize(self.node.len(), 0.0);
        if let Some(value) = self.run_scaled(setting, gold, weight, sink) {
            testing::count(PathCount::Wide, 1);
            self.emit_nodes(lane, sink);
            return Some(value);
        }
        testing::count(PathCount::Log, 1);
        self.pairs.clear();
        self.pairs.resize(gold.len() * l * l, 0.0);
        let value = if let Some(partial) = setting.partial {
            let z = self.expect(l, weight);
            partial.forbid(begin, l, &mut self.node);
            let given = self.expect(l, -weight);
            let difference = z - given;
            (weight * difference, difference)
        } else {
            if !setting.cost.is_empty() {
                for (t, &y) in gold.iter().enumerate() {
                    for k in 0..l {
                        self.node[t * l + k] += setting.cost[y as usize * l + k];
                    }
                }
            }
            let h = self.gold_score(gold, l);
            if setting.loss.is_pointwise() {
                self.pointwise(gold, l, weight, setting.loss)
            } else {
                let scores = Scores { labels: l, node: &self.node, edge: &self.edge };
                let log_z = match setting.once {
                    Some(groups) => self.sum.get_or_insert_with(|| Sum::new(groups)).forward(&scores, groups),
                    None => self.trellis.forward(&scores),
                };
                let minus_log_p = log_z - h;
                if setting.loss.is_out_of_range(weight, minus_log_p, setting.shift) {
                    self.emit_nodes(lane, sink); // zeros: the caller shifts and retries
                    return Some((0.0, minus_log_p));
                }
                let (value, factor) = setting.loss.sequential(weight, minus_log_p, setting.shift);
                if !factor.is_finite() {
                    return None;
                }
                if setting.once.is_some() {
                    self.expect_lawful(l, factor);
                } else {
                    self.expect(l, factor);
                }
                self.subtract_gold(gold, l, factor);
                (value, minus_log_p)
            }
        };
        if !value.0.is_finite() || !value.1.is_finite() {
            return None;
        }
        self.emit(setting, gold.len(), lane, begin, sink);
        Some(value)
    }

    /// Loss and residuals by the scaled recursions. None if the sentence is out of their range.
    fn run_scaled(
        &mut self,
        setting: &Setting<'_>,
        gold: &[u16],
        weight: f64,
        sink: &mut Sink<'_>,
    ) -> Option<(f64, f64)> {
        let l = setting.layout.labels;
        let factors = setting.edge_scores.factors().filter(|_| !needs_log_space(setting))?;
        let log_z = self.scaled_log_z(factors)?;
        self.expected.clear();
        self.expected.resize(l * l.div_ceil(WIDTH), Doubles::ZERO);
        let found = if setting.loss.is_pointwise() {
            self.scaled_pointwise(setting.loss, factors, gold, weight)?
        } else {
            let score = self.gold_score(gold, l);
            debug_assert!(!exceeds_log_z(score, log_z, gold.len()), "the gold path scores {score}, log Z is {log_z}");
            let minus_log_p = log_z - score;
            if setting.loss.is_out_of_range(weight, minus_log_p, setting.shift) {
                return Some((0.0, minus_log_p)); // the caller shifts and retries
            }
            let (value, factor) = setting.loss.sequential(weight, minus_log_p, setting.shift);
            if !value.is_finite() || !factor.is_finite() || !minus_log_p.is_finite() {
                return None;
            }
            scaled64::marginals(&mut self.precise, factors, gold.len(), factor, &mut self.expected);
            self.precise.subtract(gold, l.div_ceil(WIDTH));
            set_residual(&mut self.residual, &self.precise.m, l, factor);
            for y in gold.windows(2) {
                sink.edges[y[0] as usize * l + y[1] as usize] -= factor;
            }
            (value, minus_log_p)
        };
        let (width, pairs) = (l.div_ceil(WIDTH), self.expected.iter().zip(factors.rows()).map(|(c, m)| (c.0, m.0)));
        for (at, (c, m)) in pairs.enumerate() {
            let (from, first) = (at / width, at % width * WIDTH);
            for y in first..(first + WIDTH).min(l) {
                let (c, m) = (c[y - first], m[y - first]);
                sink.edges[from * l + y] += if m > 0.0 { c * m } else { 0.0 };
            }
        }
        Some(found)
    }

    /// The pointwise losses after `scaled_log_z`: value and largest -log p_t(gold). None if a gold marginal is out of
    /// range.
    fn scaled_pointwise(&mut self, loss: Loss, factors: &Factors, gold: &[u16], weight: f64) -> Option<(f64, f64)> {
        let l = factors.labels();
        scaled64::marginals(&mut self.precise, factors, gold.len(), 0.0, &mut []);
        let shares = pointwise64::gold_shares(&self.precise, l.div_ceil(WIDTH), gold)?;
        let of = |&(right, _): &(f64, f64)| loss.pointwise(weight, right.min(1.0));
        let omega: Vec<f64> = shares.iter().map(|share| of(share).1).collect();
        pointwise64::scaled(&mut self.points, &self.precise, factors, gold, &omega, &mut self.expected);
        set_residual(&mut self.residual, &self.points.nodes, l, 1.0);
        let worst = shares.iter().fold(0.0f64, |worst, (right, _)| worst.max(-right.ln()));
        Some((shares.iter().map(|share| of(share).0).sum::<f64>(), worst)).filter(|found| found.0.is_finite())
    }

    /// log Z of the current node scores by the scaled recursion. None if they are out of its range.
    fn scaled_log_z(&mut self, factors: &Factors) -> Option<f64> {
        let l = factors.labels();
        if self.node.is_empty() {
            return Some(0.0);
        }
        self.precise.set_nodes(&self.node, l, l);
        Some(scaled64::backward(&mut self.precise, factors, self.node.len() / l)?.value)
    }

    /// Loss of one sentence times its weight, without residuals. None if it is not finite.
    pub fn loss(&mut self, setting: &Setting<'_>, sentence: u32, weight: f64) -> Option<f64> {
        let (data, l) = (setting.data, setting.layout.labels);
        let (begin, end) = (data.sentences[sentence as usize], data.sentences[sentence as usize + 1]);
        let gold = &data.gold[begin..end];
        let factors = setting.edge_scores.factors().filter(|_| !needs_log_space(setting));
        if let Some(factors) = factors {
            self.score(setting, sentence);
            if let Some(log_z) = self.scaled_log_z(factors) {
                let value = match setting.loss.is_pointwise() {
                    true => self.pointwise_loss(setting.loss, factors, gold, weight),
                    false => setting.loss.sequential(weight, log_z - self.gold_score(gold, l), 0.0).0,
                };
                if value.is_finite() {
                    return Some(value);
                }
            }
        }
        let mut nodes = vec![Lane::ZERO; gold.len() * l];
        let (mut edges, mut pairs) = (vec![0.0; l * l], vec![0.0; setting.layout.pair.len()]);
        let mut sink = Sink { nodes: &mut nodes, edges: &mut edges, pairs: &mut pairs };
        let (value, l) = self.run(setting, sentence, 0, weight, &mut sink)?;
        let beyond = setting.loss.is_out_of_range(weight, l, 0.0);
        Some(if beyond { setting.loss.sequential(weight, l, 0.0).0 } else { value })
    }

    /// The pointwise losses after `scaled_log_z`, without residuals.
    fn pointwise_loss(&mut self, loss: Loss, factors: &Factors, gold: &[u16], weight: f64) -> f64 {
        let width = factors.labels().div_ceil(WIDTH);
        self.expected.clear();
        scaled64::marginals(&mut self.precise, factors, gold.len(), 0.0, &mut self.expected);
        let at = |t: usize, y: u16| self.precise.m[t * width + y as usize / WIDTH].0[y as usize % WIDTH];
        gold.iter().enumerate().map(|(t, &y)| loss.pointwise(weight, at(t, y).min(1.0)).0).sum()
    }

    /// Node and edge scores of a sentence, -infinity for labels that are not allowed.
    fn score(&mut self, setting: &Setting<'_>, sentence: u32) {
        let (data, edge_scores) = (setting.data, setting.edge_scores.scores());
        score_sentence(data, setting.layout, setting.w, edge_scores, sentence, &mut self.node, &mut self.edge);
        if let Some(support) = setting.support {
            support.forbid(data.sentences[sentence as usize], setting.layout.labels, &mut self.node);
        }
    }

    fn gold_score(&self, gold: &[u16], l: usize) -> f64 {
        let scores = Scores { labels: l, node: &self.node, edge: &self.edge };
        let mut h = 0.0;
        for (t, &y) in gold.iter().enumerate() {
            h += self.node[t * l + y as usize];
            if t > 0 {
                h += scores.edge(t)[gold[t - 1] as usize * l + y as usize];
            }
        }
        h
    }

    /// Add `factor` times the expected counts under the current scores. Return log Z.
    fn expect(&mut self, l: usize, factor: f64) -> f64 {
        let scores = Scores { labels: l, node: &self.node, edge: &self.edge };
        let log_z = self.trellis.forward(&scores);
        if !log_z.is_finite() {
            return f64::NAN;
        }
        self.trellis.backward(&scores);
        for (at, r) in self.residual.iter_mut().enumerate() {
            *r += factor * self.trellis.node_marginal(at);
        }
        for t in 1..scores.positions() {
            self.trellis.add_pairs(&scores, t, factor, &mut self.pairs[t * l * l..(t + 1) * l * l]);
        }
        log_z
    }

    /// Add `factor` times the expected counts over the allowed paths, after `Sum::forward`.
    fn expect_lawful(&mut self, l: usize, factor: f64) {
        let scores = Scores { labels: l, node: &self.node, edge: &self.edge };
        let Some(sum) = &mut self.sum else { return };
        sum.backward(&scores);
        sum.add_nodes(factor, &mut self.residual);
        for t in 1..scores.positions() {
            sum.add_pairs(&scores, t, factor, &mut self.pairs[t * l * l..(t + 1) * l * l]);
        }
    }

    fn subtract_gold(&mut self, gold: &[u16], l: usize, factor: f64) {
        for (t, &y) in gold.iter().enumerate() {
            self.residual[t * l + y as usize] -= factor;
            if t > 0 {
                self.pairs[t * l * l + gold[t - 1] as usize * l + y as usize] -= factor;
            }
        }
    }

    /// The pointwise losses in log space: value and largest -log p_t(gold).
    fn pointwise(&mut self, gold: &[u16], l: usize, weight: f64, loss: Loss) -> (f64, f64) {
        let scores = Scores { labels: l, node: &self.node, edge: &self.edge };
        if !self.trellis.forward(&scores).is_finite() {
            return (f64::NAN, f64::NAN);
        }
        self.trellis.backward(&scores);
        let (mut value, mut worst, mut omega) = (0.0, 0.0f64, Vec::with_capacity(gold.len()));
        for (t, &y) in gold.iter().enumerate() {
            let log_p = self.trellis.log_marginal(t * l + y as usize);
            let (v, o) = loss.pointwise_of_log(weight, log_p);
            value += v;
            worst = worst.max(-log_p);
            omega.push(o);
        }
        let pairs = &mut self.pairs;
        pointwise64::in_log_space(&mut self.points, &self.trellis, &scores, gold, &omega, |t, a, b, residual| {
            pairs[t * l * l + a * l + b] = residual;
        });
        set_residual(&mut self.residual, &self.points.nodes, l, 1.0);
        (value, worst)
    }

    /// Write the node residuals to the sentence's lane.
    fn emit_nodes(&self, lane: usize, sink: &mut Sink<'_>) {
        for (to, r) in sink.nodes.iter_mut().zip(&self.residual) {
            to.0[lane] = *r as f32;
        }
    }

    /// Write the residuals to the buffers from which the gradient is computed.
    fn emit(&mut self, setting: &Setting<'_>, positions: usize, lane: usize, begin: usize, sink: &mut Sink<'_>) {
        let l = setting.layout.labels;
        for t in 1..positions {
            let block = &self.pairs[t * l * l..(t + 1) * l * l];
            for (sum, r) in sink.edges.iter_mut().zip(block) {
                *sum += r;
            }
            if setting.data.has_edge_attributes() {
                for (a, value) in setting.data.edge.row(begin + t) {
                    let (first, pairs) = setting.layout.pairs(a);
                    for (i, &pair) in pairs.iter().enumerate() {
                        sink.pairs[first + i - setting.layout.pair_at()] += block[pair as usize] * f64::from(value);
                    }
                }
            }
        }
        self.emit_nodes(lane, sink);
    }
}
