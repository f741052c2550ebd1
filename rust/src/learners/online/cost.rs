//! Cost of a guessed label sequence, for learners whose margin is the cost.

use crate::chain::limits::entities::{Entities, Span};
use crate::error::{Error, Result};
use crate::machine::simd::{Lane, WIDTH};
use crate::machine::system::names::named;

/// A user-defined cost: (gold, guess) to a finite number >= 0.
pub type CostFunction = dyn Fn(&[u16], &[u16]) -> Result<f64> + Send + Sync;

/// y gold, y' guess, G and T the sets of their entities.
pub enum Cost {
    /// Number of wrong labels.
    Accuracy,
    /// Square root of the number of wrong labels.
    Root,
    /// 1 for any wrong path.
    ZeroOne,
    /// 1 / F1 of the sentence, at most `cap`, and 0 for the gold labels themselves. F1 is 1 if G and T are both empty.
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

named!(
    /// Built-in costs, by name. Any other cost is a function.
    pub enum CostKind: "cost" {
        Accuracy = "accuracy",
        Root = "root",
        ZeroOne = "zero_one",
        F1 = "f1",
        PrecisionRecall = "precision_recall",
        Weighted = "weighted_accuracy",
    }
);

impl CostKind {
    /// Default parameters of a cost.
    pub fn defaults(self) -> &'static [f64] {
        match self {
            CostKind::Accuracy | CostKind::Root | CostKind::ZeroOne => &[],
            CostKind::F1 => &[10.0],
            CostKind::PrecisionRecall => &[0.5],
            CostKind::Weighted => &[1.0, 1.0, 1.0],
        }
    }

    /// Return the cost with these parameters, of which there must be the same number as in `defaults`.
    pub fn with(self, numbers: &[f64]) -> Result<Cost> {
        let (name, wanted) = (self.name(), self.defaults().len());
        if numbers.len() != wanted {
            let got = numbers.len();
            return Err(Error::Value(format!("the cost {name} takes {wanted} numbers, got {got}")));
        }
        Ok(match self {
            CostKind::Accuracy => Cost::Accuracy,
            CostKind::Root => Cost::Root,
            CostKind::ZeroOne => Cost::ZeroOne,
            CostKind::F1 => Cost::F1 { cap: numbers[0] },
            CostKind::PrecisionRecall => Cost::PrecisionRecall { alpha: numbers[0] },
            CostKind::Weighted => Cost::Weighted { alpha: numbers[0], beta: numbers[1], gamma: numbers[2] },
        })
    }
}

/// A cost, its entity table, and its use in decoding.
pub struct CostOptions {
    pub cost: Cost,
    pub entities: Option<Entities>,
    /// Decode with the cost added to the scores (costs that are sums over tokens).
    pub augment: bool,
}

impl CostOptions {
    /// Cost of each label for each gold label, added in decoding: [L, width], empty for plain decoding.
    pub fn rows(&self, labels: usize, width: usize) -> Vec<Lane> {
        if !self.augment {
            return Vec::new();
        }
        let (none, mut rows) = (Entities::default(), vec![Lane::ZERO; labels * width]);
        let entities = self.entities.as_ref().unwrap_or(&none);
        for y in 0..labels {
            for z in 0..labels {
                let cost = self.cost.of_token(entities, y as u16, z as u16).unwrap_or(0.0);
                rows[y * width + z / WIDTH].0[z % WIDTH] = cost as f32;
            }
        }
        rows
    }
}

/// Scratch: the gold entities of the current sentence.
#[derive(Default)]
pub struct SpanScratch {
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

    /// Cost of one token, if the cost is a sum over tokens.
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

    /// Read the gold labels of a sentence, against which the following guesses are judged.
    pub fn begin(&self, entities: &Entities, span_scratch: &mut SpanScratch, gold: &[u16]) {
        match self {
            Cost::F1 { .. } | Cost::PrecisionRecall { .. } => entities.spans(gold, &mut span_scratch.gold),
            Cost::Accuracy | Cost::Root | Cost::ZeroOne | Cost::Weighted { .. } | Cost::Function(_) => {}
        }
    }

    pub fn of(&self, entities: &Entities, span_scratch: &mut SpanScratch, gold: &[u16], guess: &[u16]) -> Result<f64> {
        let wrong = || gold.iter().zip(guess).filter(|(a, b)| a != b).count();
        let mut right = || {
            entities.spans(guess, &mut span_scratch.guess);
            (count_common(&span_scratch.gold, &span_scratch.guess), span_scratch.gold.len(), span_scratch.guess.len())
        };
        Ok(match self {
            Cost::Accuracy => wrong() as f64,
            Cost::Root => (wrong() as f64).sqrt(),
            Cost::ZeroOne => f64::from(u8::from(gold != guess)),
            Cost::F1 { .. } if gold == guess => 0.0,
            Cost::F1 { cap } => match right() {
                (_, 0, 0) => 1.0,
                (0, _, _) => *cap,
                (common, g, t) => cap.min((g + t) as f64 / (2 * common) as f64),
            },
            Cost::PrecisionRecall { alpha } => {
                let (common, g, t) = right();
                alpha * (t - common) as f64 + (1.0 - alpha) * (g - common) as f64
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

/// Number of spans in both lists, each sorted by start.
fn count_common(a: &[Span], b: &[Span]) -> usize {
    let (mut i, mut j, mut common) = (0, 0, 0);
    while i < a.len() && j < b.len() {
        common += usize::from(a[i] == b[j]);
        match a[i].1.cmp(&b[j].1) {
            std::cmp::Ordering::Less => i += 1,
            std::cmp::Ordering::Greater => j += 1,
            std::cmp::Ordering::Equal => (i, j) = (i + 1, j + 1),
        }
    }
    common
}
