//! Decoding with features of earlier labels and documents, document by document and sentence by sentence.

use crate::chain::viterbi::sentence::Steps;

use crate::chain::limits::support::Support;
use crate::chain::lookback::beam::{self, Beam};
use crate::chain::lookback::search::{self, Search, Sentence};
use crate::chain::lookback::Lookback;
use crate::dataset::Dataset;
use crate::decoding::lists::{no_path, PathLists};
use crate::error::{Error, Result};
use crate::machine::simd::dispatch::dispatch;
use crate::machine::simd::find::Find;
use crate::machine::simd::Lane;
use crate::machine::system::budget;
use crate::machine::system::stop;
use crate::scores::document::{DocumentState, Words};
use crate::scores::scorer::Scorer;
use rayon::prelude::*;

/// Sentences per parallel task without documents.
const TASK: usize = 64;

/// Search strategy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decoder {
    /// Viterbi over cells of the last m labels, with lists of k paths.
    Cells { k: usize },
    /// Beam search over whole paths, of which the k best are returned.
    Beam { width: usize, k: usize },
}

/// Data and scores of a search.
pub struct LookbackSearch<'a> {
    pub scorer: &'a Scorer,
    pub terms: Lookback,
    pub rows: &'a [Lane], // [rows, width]
    pub data: &'a Dataset,
    pub words: Option<&'a Words>, // if the terms have document features
    pub support: Option<&'a Support>,
    pub decoder: Decoder,
}

/// Return the paths of every sentence. Documents run in parallel. The sentences of a document run in order, since later
/// ones depend on the labels of earlier ones.
pub fn tag(job: &LookbackSearch<'_>) -> Result<PathLists> {
    let (layout, data) = (&job.scorer.layout, job.data);
    data.check_model(layout.attributes)?;
    if data.has_edge_attributes() {
        return Err(Error::Value(
            "edge attributes do not go with history, documents or beams; use a template without them".into(),
        ));
    }
    if job.terms.document != job.words.is_some() {
        return Err(Error::Value("words and documents are needed for document features, and only for them".into()));
    }
    match job.decoder {
        Decoder::Cells { k } => job.terms.check_lists(k)?,
        Decoder::Beam { width: 0, .. } => return Err(Error::Value("a beam needs a width of at least 1".into())),
        Decoder::Beam { .. } => {}
    }
    let longest = data.sentences.windows(2).map(|s| s[1] - s[0]).max().unwrap_or(0);
    let (what, one) = match job.decoder {
        Decoder::Cells { k } => {
            let what = format!("a search of {k} paths with cells of {} of {} labels", job.terms.cell, layout.labels);
            (what, Search::bytes(&job.terms, k, longest))
        }
        Decoder::Beam { width, k } => {
            (format!("a beam of {}", width.max(k)), beam::bytes(layout.labels, longest, width.max(k)))
        }
    };
    let threads = rayon::current_num_threads().min(data.len().max(1));
    budget::claim(
        &format!("{what}, on {threads} threads, for a sentence of {longest} tokens"),
        budget::bytes(&[one, threads]),
        "use a smaller k, beam or history, fewer threads (n_jobs), or cut long sentences",
    )?;
    let steps = Steps::from_scores(layout.labels, job.scorer.edge_floats());
    let n = data.len();
    let pieces: Vec<(usize, usize)> = match job.words {
        Some(words) => words.documents.windows(2).map(|d| (d[0] as usize, d[1] as usize)).collect(),
        None => (0..n.div_ceil(TASK)).map(|i| (i * TASK, ((i + 1) * TASK).min(n))).collect(),
    };
    let stop = stop::current();
    let one = |i: usize| {
        let _guard = stop.enter();
        run(job, &steps, i, pieces[i])
    };
    let parts: Vec<Result<PathLists>> = (0..pieces.len()).into_par_iter().map(one).collect();
    PathLists::join(parts)
}

dispatch!(fn run(job: &LookbackSearch<'_>, steps: &Steps, piece: usize, sentences: (usize, usize)) -> Result<PathLists> = run_kernel);

#[inline(always)]
fn run_kernel<S: Find>(
    simd: S,
    job: &LookbackSearch<'_>,
    steps: &Steps,
    piece: usize,
    sentences: (usize, usize),
) -> Result<PathLists> {
    let (terms, data, l) = (&job.terms, job.data, job.terms.labels);
    let width = terms.width();
    let (mut found, mut beam, mut memory) = (Search::new(*terms), Beam::default(), DocumentState::default());
    let (mut scores, mut paths, mut node) = (Vec::new(), Vec::new(), Vec::new());
    let mut out = PathLists::default();
    if let Some(words) = job.words {
        memory.begin(words, piece, l);
    }
    for s in sentences.0..sentences.1 {
        stop::check();
        let (begin, end) = (data.sentences[s], data.sentences[s + 1]);
        let n = end - begin;
        node.clear();
        node.resize(n * width, Lane::ZERO);
        for (t, row) in node.chunks_exact_mut(width).enumerate() {
            job.scorer.fill(data, begin + t, (t == 0, t + 1 == n), row);
            if let Some(words) = job.words {
                memory.score(simd, terms, job.rows, words, begin + t, row);
            }
            if let Some(support) = job.support {
                support.forbid_row(begin + t, l, row);
            }
        }
        let same = job.words.map_or(&[][..], |w| &w.same[begin..end]);
        let x = Sentence { node: &node, steps, rows: job.rows, same };
        let k = match job.decoder {
            Decoder::Cells { k } => {
                search::search(&mut found, &x, k, &mut scores, &mut paths);
                k
            }
            Decoder::Beam { width, k } => {
                beam.run(terms, &x, width.max(k), &mut scores, &mut paths);
                k
            }
        };
        if k > 0 && !scores.first().is_some_and(|x| x.is_finite()) {
            return Err(no_path(s));
        }
        let kept = scores.len().min(k);
        out.counts.push(kept as u32);
        out.append(&paths, kept, n, |path| search::score(terms, &x, path));
        if let Some(words) = job.words.filter(|_| k > 0) {
            memory.add(words, begin, &paths[..n], l);
        }
    }
    Ok(out)
}
