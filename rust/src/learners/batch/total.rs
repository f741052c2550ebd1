//! The loss of a corpus in double precision, without its gradient, for the report of a trained model.

use crate::dataset::layout::Layout;
use crate::dataset::plan::Plan;
use crate::dataset::Dataset;
use crate::error::{Error, Result};
use crate::learners::batch::fallback64::Fallback64;
use crate::learners::batch::terms::{check, not_finite, EdgeScores, Setting, Terms};
use crate::machine::simd::dispatch::FlushToZero;
use crate::machine::system::stop;
use rayon::prelude::*;

/// Return the loss at weights `w`. The sums of fixed chunks are added in order, so that the result does not depend on
/// threads.
pub fn total_loss(data: &Dataset, layout: &Layout, mut terms: Terms, w: &[f64]) -> Result<f64> {
    if w.len() != layout.len() {
        return Err(Error::Value(format!("expected {} weights, got {}", layout.len(), w.len())));
    }
    if terms.weights.is_empty() {
        terms.weights = vec![1.0; data.len()];
    }
    check(data, layout.labels, &terms)?;
    data.check_layout(layout.attributes)?;
    let plan = Plan::new(&data.sentences);
    let edge_scores = EdgeScores::new(layout, w, &terms.limits);
    let setting = Setting { precise: true, ..Setting::new(data, layout, &terms, w, &edge_scores) };
    let stop = stop::current();
    let sums: Vec<std::result::Result<f64, u32>> = (plan.chunks.par_iter())
        .with_max_len(1)
        .map(|chunk| {
            let (_flush_to_zero, _guard) = (FlushToZero::new(), stop.enter());
            let (mut fallback, mut sum) = (Fallback64::default(), 0.0);
            for &s in plan.batches[chunk.clone()].iter().flat_map(|batch| &batch.sentences) {
                stop::check();
                let weight = terms.weights[s as usize];
                if weight > 0.0 {
                    sum += fallback.loss(&setting, s, weight).ok_or(s)?;
                }
            }
            Ok(sum)
        })
        .collect();
    sums.into_iter().sum::<std::result::Result<f64, u32>>().map_err(not_finite)
}
