//! What is boosted: the exponential loss of a sentence, of its label sequence or of its labels one by one, and what both
//! leave for the sums of a round.
//!
//! The bounds of the paper are about the sequential loss, whose terms e^{H(y) - H(gold)} have one path below. The pointwise one,
//!
//! ```text
//! sum_i w_i sum_t 1 / p_it,   p_it = P(y_t = gold | x_i)
//! ```
//!
//! has a sum over paths below: with Q_t the distribution of paths that are right at t, a step on weight k makes of a token's loss
//!
//! ```text
//! E_P[e^{step S}] / (p_t E_Qt[e^{step S}])  <=  E_P[e^{step (S - E_Qt[S])}] / p_t       (Jensen, of the sum below)
//! ```
//!
//! which is convex in the step, has its value and its slope at 0, and is a sum over paths of e^{step u} with u = S - E_Qt[S]. So the
//! paper's bounds hold with E_Qt[S] in place of the gold count. It moves with the weights, and all that stays is u in
//! [-(S^max - S^min), S^max - S^min]: that range has every token of a sentence, and a cell is again a set of sentences. Leaving out the
//! paths that are right at t takes w_i off the mass of each token and nothing off the moments, as before. The same holds for
//! several weights at once, so that steps divided by their number gain at least the mean of their gains, though this loss is not convex.

use crate::learners::boosting::bound::{Over, Range};
use crate::learners::boosting::chain::{self, ChainWork, EdgeFactors};
use crate::learners::boosting::pointwise::{self, Points};
use crate::machine::system::names::named;

named!(
    /// The exponential losses, by the names that they have elsewhere.
    pub enum Boosted: "boosted loss" {
        /// e^{l_i}, l_i = -log P(y_i | x_i).
        Sequence = "exp",
        /// sum_t 1 / p_t(gold).
        Pointwise = "pointwise_exp",
    }
);

/// A loss, and over which label sequences it is summed.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    pub loss: Boosted,
    pub over: Over,
}

/// The scores of one sentence: node scores [T, P], the gold labels, the edge scores.
#[derive(Clone, Copy)]
pub struct SentenceScores<'a> {
    pub node: &'a [f64],
    pub gold: &'a [u16],
    pub edges: &'a EdgeFactors,
    /// w_i, and the logarithm of the factor that is taken out of all sums.
    pub weight: f64,
    pub shift: f64,
}

/// What a sentence loses.
#[derive(Clone, Copy, Debug)]
pub struct Lost {
    /// Logarithm of its loss over all sequences, without its weight: l_i, or log sum_t 1 / p_t.
    pub l: f64,
    /// What its residuals are multiplied by.
    pub e: f64,
    /// Its part of N.
    pub d: f64,
}

impl Target {
    /// A range as the bounds of this loss have it.
    pub fn range(self, range: Range) -> Range {
        match self.loss {
            Boosted::Sequence => range,
            Boosted::Pointwise => range.either(),
        }
    }

    /// The loss of a sentence, and its derivatives by the scores over `e`: nodes in `p` [T, P], sums over positions of edges in
    /// `pairs` [L, P] where that is not empty.
    pub fn residuals(self, x: &SentenceScores<'_>, work: &mut ChainWork, p: &mut [f64], pairs: &mut [f64]) -> Lost {
        match self.loss {
            Boosted::Sequence => {
                let l = chain::marginals(x, work, p, pairs);
                let width = x.edges.padded;
                for (p, &y) in p.chunks_exact_mut(width).zip(x.gold) {
                    // p - 1 of the gold label as minus the others: exact where the sentence is all but learnt.
                    p[y as usize] = 0.0;
                    p[y as usize] = -chain::sum(p);
                }
                for y in x.gold.windows(2).take(if pairs.is_empty() { 0 } else { x.gold.len() }) {
                    pairs[y[0] as usize * width + y[1] as usize] -= 1.0;
                }
                let (e, d) = masses(x.weight, l, x.shift, self.over);
                Lost { l, e, d }
            }
            Boosted::Pointwise => self.lost(x, pointwise::residuals(x, work, Some((p, pairs)))),
        }
    }

    /// The part of N that a sentence has.
    pub fn part(self, x: &SentenceScores<'_>, work: &mut ChainWork) -> f64 {
        match self.loss {
            Boosted::Sequence => masses(x.weight, chain::loss(x, work), x.shift, self.over).1,
            Boosted::Pointwise => self.lost(x, pointwise::residuals(x, work, None)).d,
        }
    }

    fn lost(self, x: &SentenceScores<'_>, points: Points) -> Lost {
        let Points { top, all, wrong } = points;
        let l = if all > 0.0 { top + all.ln() } else { top }; // a sentence without tokens has no loss
        if x.weight == 0.0 {
            return Lost { l, e: 0.0, d: 0.0 };
        }
        let e = x.weight * (top - x.shift).exp();
        let d = match self.over {
            Over::All => e * all,
            Over::Wrong => e * wrong,
        };
        Lost { l, e, d }
    }

    /// Logarithm of a sentence's loss over all sequences where all weights are 0.
    pub fn at_zero(self, tokens: usize, labels: usize) -> f64 {
        match self.loss {
            Boosted::Sequence => tokens as f64 * (labels as f64).ln(),
            Boosted::Pointwise if tokens > 0 => ((tokens * labels) as f64).ln(),
            Boosted::Pointwise => 0.0,
        }
    }

    /// What N has of a sentence that is learnt, without its weight.
    pub fn rest(self, tokens: usize) -> f64 {
        match self.over {
            Over::Wrong => 0.0,
            Over::All => self.right(tokens),
        }
    }

    /// What the gold sequence has of a sentence's loss over all sequences, without its weight.
    pub fn right(self, tokens: usize) -> f64 {
        match self.loss {
            Boosted::Sequence => 1.0,
            Boosted::Pointwise => tokens as f64,
        }
    }
}

/// w e^{l - shift}, and the sentence's part of N: the same, or w (e^l - 1) e^-shift where the gold sequence is left out.
fn masses(weight: f64, l: f64, shift: f64, over: Over) -> (f64, f64) {
    if weight == 0.0 {
        return (0.0, 0.0); // also where e^l is beyond range
    }
    let e = weight * (l - shift).exp();
    let part = match over {
        Over::All => e,
        Over::Wrong if l < 30.0 => weight * (-shift).exp() * l.exp_m1(),
        Over::Wrong => e - weight * (-shift).exp(),
    };
    (e, part)
}
