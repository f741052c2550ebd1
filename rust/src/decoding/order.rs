//! Marginals of a corpus under the fixed weights of a chain of order 2 or 3.

use crate::chain::limits::support::Support;
use crate::chain::lookback::Lookback;
use crate::chain::sums::order::{ArcFactors, Graph, OrderWork};
use crate::dataset::Dataset;
use crate::decoding::lists::no_path;
use crate::error::{Error, Result};
use crate::machine::simd::{Lane, WIDTH};
use crate::machine::system::shared::Shared;
use crate::machine::system::stop;
use crate::scores::scorer::Scorer;
use crate::scores::sentence::{doubles, score_sentence, too_large};
use rayon::prelude::*;

const TASK: usize = 16;

/// Return the graph and arc scores of dense weights. A tuple is a state if a nonzero weight starts with it.
fn graph(scorer: &Scorer, terms: &Lookback, rows: &[Lane]) -> (Graph, Vec<f64>) {
    let (l, order, width) = (terms.labels, terms.cell, terms.width());
    let tuple =
        |n: usize, code: usize, y: usize| f64::from(rows[terms.tuple_row(n, code) * width + y / WIDTH].0[y % WIDTH]);
    let used = |n: usize, code: usize| (0..l).any(|y| tuple(n, code, y) != 0.0);
    let mut longer: Vec<Vec<u32>> = vec![Vec::new(); order - 1];
    if order == 3 {
        longer[1] = (0..l * l * l).filter(|&c| used(3, c)).map(|c| c as u32).collect();
    }
    // Prefixes and suffixes of longer states are states too.
    let mut pairs: Vec<bool> = (0..l * l).map(|c| used(2, c)).collect();
    for &c in longer.get(1).into_iter().flatten() {
        pairs[c as usize / l] = true;
        pairs[c as usize % (l * l)] = true;
    }
    longer[0] = (0..(l * l) as u32).filter(|&c| pairs[c as usize]).collect();
    let graph = Graph::new(l, order, &longer);
    let arcs = (0..graph.arcs()).map(|arc| {
        let (s, y) = (arc / l, arc % l);
        let tuples = (2..=graph.length(s)).map(|n| tuple(n, graph.code[s] as usize % l.pow(n as u32), y));
        scorer.edge_scores()[graph.last[s] as usize * l + y] + tuples.sum::<f64>()
    });
    let arcs = arcs.collect();
    (graph, arcs)
}

/// Return the marginals p_t(y) of every token, [tokens, L], and log Z of every sentence, [N].
pub fn marginals(
    scorer: &Scorer,
    terms: &Lookback,
    rows: &[Lane],
    data: &Dataset,
    support: Option<&Support>,
) -> Result<(Vec<f32>, Vec<f64>)> {
    let l = terms.labels;
    if terms.far != 1 || terms.document || !terms.tuples || terms.cell < 2 {
        return Err(Error::Value("only chains whose features lie within a cell have probabilities".into()));
    }
    data.check_model(scorer.layout.attributes)?;
    let (graph, arcs) = graph(scorer, terms, rows);
    let factors = ArcFactors::new(&arcs);
    let weights = doubles(scorer);
    let edges = vec![0.0; l * l];
    let mut p = vec![0.0f32; data.tokens() * l];
    let mut log_z = vec![0.0f64; data.len()];
    let (out, logs) = (Shared::new(&mut p), Shared::new(&mut log_z));
    let stop = stop::current();
    let failed = (0..data.len().div_ceil(TASK)).into_par_iter().filter_map(|task| {
        let _guard = stop.enter();
        let (mut node, mut edge, mut p, mut work) = (Vec::new(), Vec::new(), Vec::new(), OrderWork::default());
        for s in task * TASK..((task + 1) * TASK).min(data.len()) {
            stop::check();
            let begin = data.sentences[s];
            score_sentence(data, &scorer.layout, &weights, &edges, s as u32, &mut node, &mut edge);
            if let Some(support) = support {
                support.forbid(begin, l, &mut node);
            }
            let z = work.forward(&graph, &factors, &node);
            if !z.is_finite() || too_large(&node) || too_large(&arcs) {
                return Some(s);
            }
            p.resize(node.len(), 0.0);
            work.backward(&graph, &factors, 1.0, &mut p, &mut []);
            // SAFETY: no other thread writes to the tokens of this sentence.
            let place = unsafe { out.slice(begin * l, node.len()) };
            for (x, &p) in place.iter_mut().zip(&p) {
                *x = p as f32;
            }
            // SAFETY: as above.
            unsafe { logs.set(s, z) };
        }
        None
    });
    match failed.min() {
        None => Ok((p, log_z)),
        Some(s) => Err(no_path(s)),
    }
}
