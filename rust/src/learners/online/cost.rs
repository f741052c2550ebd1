//! How bad a guessed label sequence is, for learners that ask for a margin of that size.

use crate::chain::entities::{Entities, Span};
use crate::error::{Error, Result};

/// A cost from outside: (gold, guess) -> how bad, finite and >= 0.
pub type CostFunction = dyn Fn(&[u16], &[u16]) -> Result<f64> + Send + Sync;

/// y gold, y' guess; G and T the sets of their entities.
pub enum Cost {
    /// Number of wrong labels.
    Accuracy,
    /// Square root of the number of wrong labels.
    Root,
    /// 1 for any wrong path.
    ZeroOne,
    /// 1 / F1 of the sentence, at most `cap`; 0 for the gold labels themselves; F1 is 1 where G and T are both empty.
    F1 {
        cap: f64,
    },
    /// alpha |T \ G| + (1 - alpha) |G \ T|.
    PrecisionRecall {
        alpha: f64,
    },
    /// alpha (outside labelled as entity) + beta (entity labelled outside) + gamma (other wrong labels).
    Weighted {
        alpha: f64,
        beta: f64,
        gamma: f64,
    },
    Function(Box<CostFunction>),
}

/// Scratch: the gold entities of the sentence at hand.
#[derive(Default)]
pub struct Judge {
    gold: Vec<Span>,
    guess: Vec<Span>,
}

impl Cost {
    /// Whether the cost needs entities.
    pub fn needs_entities(&self) -> bool {
        match self {
            Cost::F1 { .. } | Cost::PrecisionRecall { .. } | Cost::Weighted { .. } => true,
            Cost::Accuracy | Cost::Root | Cost::ZeroOne | Cost::Function(_) => false,
        }
    }

    /// Cost of one token where the cost is a sum over tokens.
    pub fn of_token(&self, entities: &Entities, gold: u16, guess: u16) -> Option<f64> {
        Some(match self {
            _ if gold == guess && self.is_sum() => 0.0,
            Cost::Accuracy => 1.0,
            Cost::Weighted { alpha, beta, gamma } => match (entities.outside(gold), entities.outside(guess)) {
                (true, _) => *alpha,
                (false, true) => *beta,
                (false, false) => *gamma,
            },
            Cost::Root | Cost::ZeroOne | Cost::F1 { .. } | Cost::PrecisionRecall { .. } | Cost::Function(_) => {
                return None
            }
        })
    }

    /// Whether the cost is a sum over tokens.
    pub fn is_sum(&self) -> bool {
        match self {
            Cost::Accuracy | Cost::Weighted { .. } => true,
            Cost::Root | Cost::ZeroOne | Cost::F1 { .. } | Cost::PrecisionRecall { .. } | Cost::Function(_) => false,
        }
    }

    /// Read the gold labels of a sentence; the guesses that follow are judged against them.
    pub fn begin(&self, entities: &Entities, judge: &mut Judge, gold: &[u16]) {
        match self {
            Cost::F1 { .. } | Cost::PrecisionRecall { .. } => entities.spans(gold, &mut judge.gold),
            Cost::Accuracy | Cost::Root | Cost::ZeroOne | Cost::Weighted { .. } | Cost::Function(_) => {}
        }
    }

    pub fn of(&self, entities: &Entities, judge: &mut Judge, gold: &[u16], guess: &[u16]) -> Result<f64> {
        let wrong = || gold.iter().zip(guess).filter(|(a, b)| a != b).count();
        let mut right = || {
            entities.spans(guess, &mut judge.guess);
            (in_both(&judge.gold, &judge.guess), judge.gold.len(), judge.guess.len())
        };
        Ok(match self {
            Cost::Accuracy => wrong() as f64,
            Cost::Root => (wrong() as f64).sqrt(),
            Cost::ZeroOne => f64::from(u8::from(gold != guess)),
            Cost::F1 { .. } if gold == guess => 0.0,
            Cost::F1 { cap } => match right() {
                (_, 0, 0) => 1.0,
                (0, _, _) => *cap,
                (both, g, t) => cap.min((g + t) as f64 / (2 * both) as f64),
            },
            Cost::PrecisionRecall { alpha } => {
                let (both, g, t) = right();
                alpha * (t - both) as f64 + (1.0 - alpha) * (g - both) as f64
            }
            Cost::Weighted { .. } => {
                let token = |(&a, &b): (&u16, &u16)| self.of_token(entities, a, b).unwrap_or(0.0);
                gold.iter().zip(guess).map(token).sum()
            }
            Cost::Function(f) => {
                let cost = f(gold, guess)?;
                if !cost.is_finite() || cost < 0.0 {
                    return Err(Error::Value(format!("a cost must be finite and not negative, got {cost}")));
                }
                cost
            }
        })
    }
}

/// Number of spans in both lists, each in order of its beginnings.
fn in_both(a: &[Span], b: &[Span]) -> usize {
    let (mut i, mut j, mut both) = (0, 0, 0);
    while i < a.len() && j < b.len() {
        both += usize::from(a[i] == b[j]);
        match a[i].1.cmp(&b[j].1) {
            std::cmp::Ordering::Less => i += 1,
            std::cmp::Ordering::Greater => j += 1,
            std::cmp::Ordering::Equal => (i, j) = (i + 1, j + 1),
        }
    }
    both
}
