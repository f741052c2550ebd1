//! The boosted losses: the exponential loss of a sentence's label sequence, or of its labels one by one, and the terms
//! that both contribute to the sums of a round.
//!
//! The bounds of the paper apply to the sequential loss, whose terms e^{H(y) - H(gold)} have one path in the
//! denominator. The pointwise one,
//!
//! ```text
//! sum_i w_i sum_t 1 / p_it,   p_it = P(y_t = gold | x_i)
//! ```
//!
//! has a sum over paths in the denominator. With Q_t the distribution of paths that are right at t, a step on weight k
//! changes a token's loss to
//!
//! ```text
//! E_P[e^{step S}] / (p_t E_Qt[e^{step S}])  <=  E_P[e^{step (S - E_Qt[S])}] / p_t       (Jensen, in the denominator)
//! ```
//!
//! which is convex in the step, has the value and slope of the loss at 0, and is a sum over paths of e^{step u} with u
//! = S - E_Qt[S]. So the paper's bounds hold with E_Qt[S] in place of the gold count. E_Qt[S] moves with the weights,
//! and the only fixed bound is u in [-(S^max - S^min), S^max - S^min]. Every token of a sentence has that range, and a
//! cell is again a set of sentences. Leaving out the paths that are right at t subtracts w_i from the mass of each
//! token and nothing from the moments, as in the sequential loss. All this holds for several weights at once, so that
//! steps divided by their number gain at least the mean of their gains, although this loss is not convex.

use crate::learners::boosting::bound::{Over, Range};
use crate::learners::boosting::chain::{self, ChainWork, EdgeFactors};
use crate::learners::boosting::pointwise::{self, Points};
use crate::machine::system::names::named;

named!(
    /// The exponential losses, under the names used elsewhere.
    pub enum Boosted: "boosted loss" {
        /// e^{l_i}, l_i = -log P(y_i | x_i).
        Sequence = "exp",
        /// sum_t 1 / p_t(gold).
        Pointwise = "pointwise_exp",
    }
);

/// A loss, and the label sequences over which it is summed.
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
    /// w_i, and the logarithm of the common factor of all sums.
    pub weight: f64,
    pub shift: f64,
}

/// Loss of a sentence.
#[derive(Clone, Copy, Debug)]
pub struct SentenceLoss {
    /// Logarithm of its loss over all sequences, without its weight: l_i, or log sum_t 1 / p_t.
    pub l: f64,
    /// Factor of its residuals.
    pub e: f64,
    /// Its part of N.
    pub d: f64,
}

impl Target {
    /// Convert a range to that of this loss's bounds.
    pub fn range(self, range: Range) -> Range {
        match self.loss {
            Boosted::Sequence => range,
            Boosted::Pointwise => range.symmetric(),
        }
    }

    /// The loss of a sentence, and its derivatives with respect to the scores, divided by `e`: nodes in `p` [T, P],
    /// sums over positions of edges in `pairs` [L, P] if that is not empty.
    pub fn residuals(
        self,
        x: &SentenceScores<'_>,
        work: &mut ChainWork,
        p: &mut [f64],
        pairs: &mut [f64],
    ) -> SentenceLoss {
        match self.loss {
            Boosted::Sequence => {
                let l = chain::marginals(x, work, p, pairs);
                let width = x.edges.padded;
                for (p, &y) in p.chunks_exact_mut(width).zip(x.gold) {
                    // p - 1 of the gold label as minus the sum of the others: exact even if the sentence is almost
                    // learned.
                    p[y as usize] = 0.0;
                    p[y as usize] = -chain::sum(p);
                }
                for y in x.gold.windows(2).take(if pairs.is_empty() { 0 } else { x.gold.len() }) {
                    pairs[y[0] as usize * width + y[1] as usize] -= 1.0;
                }
                let (e, d) = masses(x.weight, l, x.shift, self.over);
                SentenceLoss { l, e, d }
            }
            Boosted::Pointwise => self.lost(x, pointwise::residuals(x, work, Some((p, pairs)))),
        }
    }

    /// The part of N from a sentence.
    pub fn part(self, x: &SentenceScores<'_>, work: &mut ChainWork) -> f64 {
        match self.loss {
            Boosted::Sequence => masses(x.weight, chain::loss(x, work), x.shift, self.over).1,
            Boosted::Pointwise => self.lost(x, pointwise::residuals(x, work, None)).d,
        }
    }

    fn lost(self, x: &SentenceScores<'_>, points: Points) -> SentenceLoss {
        let Points { top, all, wrong } = points;
        let l = if all > 0.0 { top + all.ln() } else { top }; // a sentence without tokens has no loss
        if x.weight == 0.0 {
            return SentenceLoss { l, e: 0.0, d: 0.0 };
        }
        let e = x.weight * (top - x.shift).exp();
        let d = match self.over {
            Over::All => e * all,
            Over::Wrong => e * wrong,
        };
        SentenceLoss { l, e, d }
    }

    /// Logarithm of a sentence's loss over all sequences if all weights are 0.
    pub fn at_zero(self, tokens: usize, labels: usize) -> f64 {
        match self.loss {
            Boosted::Sequence => tokens as f64 * (labels as f64).ln(),
            Boosted::Pointwise if tokens > 0 => ((tokens * labels) as f64).ln(),
            Boosted::Pointwise => 0.0,
        }
    }

    /// The part of N from a sentence that is learned, without its weight.
    pub fn rest(self, tokens: usize) -> f64 {
        match self.over {
            Over::Wrong => 0.0,
            Over::All => self.right(tokens),
        }
    }

    /// The share of the gold sequence in a sentence's loss over all sequences, without its weight.
    pub fn right(self, tokens: usize) -> f64 {
        match self.loss {
            Boosted::Sequence => 1.0,
            Boosted::Pointwise => tokens as f64,
        }
    }
}

/// w e^{l - shift}, and the sentence's part of N: the same number, or w (e^l - 1) e^-shift if the gold sequence is
/// left out.
fn masses(weight: f64, l: f64, shift: f64, over: Over) -> (f64, f64) {
    if weight == 0.0 {
        return (0.0, 0.0); // also if e^l is out of range
    }
    let e = weight * (l - shift).exp();
    let part = match over {
        Over::All => e,
        Over::Wrong if l < 30.0 => weight * (-shift).exp() * l.exp_m1(),
        Over::Wrong => e - weight * (-shift).exp(),
    };
    (e, part)
}
