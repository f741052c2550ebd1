//! Best paths and marginals of unlabelled sentences under fixed weights.

use crate::chain::limits::support::{mask_rows, Support};
use crate::chain::sums;
use crate::chain::sums::batch::{Prefilled, Shape, Work};
use crate::chain::sums::log64::Trellis;
use crate::chain::sums::single::{forward, marginals, Single};
use crate::chain::viterbi;
use crate::chain::viterbi::double::Viterbi64;
use crate::chain::viterbi::sentence::{advance_all, best_path, Chart};
use crate::dataset::plan::{Batch, Plan};
use crate::dataset::Dataset;
use crate::decoding::lists::no_path;
use crate::error::Result;
use crate::machine::simd::dispatch::{dispatch, FlushToZero};
use crate::machine::simd::{square, square_mut, Lane, Simd, WIDTH};
use crate::machine::system::budget;
use crate::machine::system::shared::Shared;
use crate::machine::system::stop;
use crate::machine::system::testing::{self, CodePath, PathCount};
use crate::scores::scorer::Scorer;
use crate::scores::sentence::{doubles, too_large, Scored};
use crate::scores::tagging_layout::{Attributes, Table};
use crate::scores::tile::Tile;
use rayon::prelude::*;
use std::ops::Range;

/// Batches per parallel task.
const TASK: usize = 4;

/// Kind and destination of the results.
enum PathOutput<'a> {
    Paths(Shared<'a, u16>),                      // [tokens]
    Marginals(Shared<'a, f32>, Shared<'a, f64>), // [tokens, L], log Z [N]
}

struct BatchDecoding<'a> {
    scorer: &'a Scorer,
    table: Option<&'a Table>,
    from: Attributes<'a>,
    data: &'a Dataset,
    support: Option<(&'a Support, Vec<Lane>)>,
    output: PathOutput<'a>,
}

impl BatchDecoding<'_> {
    /// Prefetch the attributes of an upcoming batch, whose sentences are scattered over the dataset.
    fn prefetch_batch(&self, batch: &Batch) {
        for &s in &batch.sentences {
            self.from.prefetch(self.data.sentences[s as usize]..self.data.sentences[s as usize + 1]);
        }
    }
}

impl Scorer {
    /// Return the best path of every sentence: [tokens].
    pub fn viterbi(&self, data: &Dataset, support: Option<&Support>) -> Result<Vec<u16>> {
        let mut paths = vec![0u16; data.tokens()];
        self.run(data, support, PathOutput::Paths(Shared::new(&mut paths)))?;
        Ok(paths)
    }

    /// Return the marginals p_t(y) of every token, [tokens, L], and log Z of every sentence, [N].
    pub fn marginals(&self, data: &Dataset, support: Option<&Support>) -> Result<(Vec<f32>, Vec<f64>)> {
        let (tokens, labels) = (data.tokens(), self.layout.labels);
        let what = format!("probabilities of {tokens} tokens and {labels} labels");
        budget::claim(&what, budget::bytes(&[tokens, labels, size_of::<f32>()]), "label fewer sentences at a time")?;
        let mut p = budget::filled(&what, 0.0f32, tokens * labels)?;
        let mut log_z = vec![0.0f64; data.len()];
        self.run(data, support, PathOutput::Marginals(Shared::new(&mut p), Shared::new(&mut log_z)))?;
        Ok((p, log_z))
    }

    fn run(&self, data: &Dataset, support: Option<&Support>, output: PathOutput<'_>) -> Result<()> {
        data.check_model(self.layout.attributes)?;
        let (labels, width) = (self.layout.labels, self.layout.labels.div_ceil(WIDTH));
        let longest = data.sentences.windows(2).map(|s| s[1] - s[0]).max().unwrap_or(0);
        let threads = rayon::current_num_threads().min(data.len().max(1));
        budget::claim(
            &format!("a search over {labels} labels, on {threads} threads, for a sentence of {longest} tokens"),
            budget::bytes(&[threads, longest, labels, BYTES_PER_CELL]),
            "use fewer threads (n_jobs) or cut long sentences",
        )?;
        let support = support.map(|s| (s, mask_rows(&s.sets, self.layout.labels, width)));
        let table = self.table(data.tokens());
        testing::count(PathCount::Table, usize::from(table.is_some()));
        let plan = Plan::new(&data.sentences);
        let runs = data
            .node
            .runs()
            .and_then(|runs| Some((runs, table?.sums(&runs.run_table, self.sums.take().unwrap_or_default())?)));
        let from = match &runs {
            Some((runs, sums)) => Attributes { single: runs.rest.view(), runs: Some((runs, sums)) },
            None => Attributes { single: data.node.csr(), runs: None },
        };
        let job = BatchDecoding { scorer: self, table, from, data, support, output };
        let (tasks, stop) = (plan.batches.par_chunks(TASK), stop::current());
        let failed: Option<u32> = tasks
            .map_init(
                || DecodingWork {
                    row: vec![Lane::ZERO; width],
                    tile: Tile::new(width),
                    chart: Chart::new(labels),
                    ..DecodingWork::default()
                },
                |scratch, batches| {
                    let (_flush_to_zero, _guard) = (FlushToZero::new(), stop.enter());
                    run_batches(&job, batches, scratch)
                },
            )
            .flatten()
            .min();
        if let Some((_, sums)) = runs {
            self.sums.put(sums);
        }
        match failed {
            None => Ok(()),
            Some(s) => Err(no_path(s as usize)),
        }
    }
}

/// Bytes per cell: sixteen sentences in lanes, in three arrays.
const BYTES_PER_CELL: usize = 3 * size_of::<Lane>();
/// Number of tokens ahead for prefetching weights, and for prefetching the entries that refer to them.
const WEIGHT_DISTANCE: usize = 2;
const ENTRY_DISTANCE: usize = 6;

/// Scratch buffers and counters of one thread.
#[derive(Default)]
struct DecodingWork {
    work: Work,
    row: Vec<Lane>, // [width] scores of a token
    tile: Tile,
    chart: Chart,
    single: Single,
    precise: Decoding64,
    failed: Option<u32>, // first sentence without a finite result
    by_lanes: usize,
    by_sentence: usize,
}

impl DecodingWork {
    /// Reset the counters for another task.
    fn begin(&mut self) {
        (self.failed, self.by_lanes, self.by_sentence) = (None, 0, 0);
    }

    /// Decode a sentence in double precision, after the fast paths failed.
    fn decode_in_double(&mut self, job: &BatchDecoding<'_>, sentence: u32) {
        self.failed = self.failed.or(self.precise.run(job, sentence));
    }
}

/// Run the batches of one task and return the first sentence without a finite result.
fn run_batches(job: &BatchDecoding<'_>, batches: &[Batch], scratch: &mut DecodingWork) -> Option<u32> {
    let (scorer, data) = (job.scorer, job.data);
    let l = scorer.layout.labels;
    scratch.begin();
    let log = testing::is_forced(CodePath::Log);
    batches.first().into_iter().for_each(|batch| job.prefetch_batch(batch));
    for (b, batch) in batches.iter().enumerate() {
        stop::check();
        batches.get(b + 1).into_iter().for_each(|batch| job.prefetch_batch(batch));
        let shape = Shape { labels: l, lengths: batch.lengths };
        let by_paths = matches!(job.output, PathOutput::Paths(_));
        if log || scorer.varies(data) || scorer.local || (!by_paths && !scorer.edges.scaled) {
            for &s in &batch.sentences {
                scratch.decode_in_double(job, s);
            }
            continue;
        }
        if scorer.edges.sparse.is_none() && batch.is_sparse(l) {
            for &s in &batch.sentences {
                match one_sentence(job, s as usize, scratch) {
                    true => scratch.by_sentence += 1,
                    false => scratch.decode_in_double(job, s),
                }
            }
            continue;
        }
        scratch.work.reserve(&shape);
        for t in 0..shape.positions() {
            score_position(job, batch, t, scratch);
        }
        match &job.output {
            PathOutput::Paths(paths) => {
                let begin = |lane: usize| data.sentences[batch.sentences[lane] as usize];
                let best = viterbi::batch::viterbi(&shape, &scorer.edges, &mut scratch.work);
                for (lane, &s) in batch.sentences.iter().enumerate() {
                    // SAFETY: each token belongs to one lane of one batch.
                    let path = unsafe { paths.slice(begin(lane), batch.lengths[lane] as usize) };
                    path.iter_mut().zip(&scratch.work.path).for_each(|(y, labels)| *y = labels[lane]);
                    if best[lane].is_finite() {
                        scratch.by_lanes += 1;
                    } else {
                        scratch.decode_in_double(job, s);
                    }
                }
            }
            PathOutput::Marginals(p, log_z) => marginals_of_batch(job, batch, &shape, (p, log_z), scratch),
        }
    }
    testing::count(PathCount::Lanes, scratch.by_lanes);
    testing::count(PathCount::Chart, scratch.by_sentence);
    scratch.failed
}

/// Compute the node scores of a token as a row of lanes and prefetch `upcoming` tokens.
#[inline(always)]
fn score_token<S: Simd>(
    simd: S,
    job: &BatchDecoding<'_>,
    token: usize,
    ends: (bool, bool),
    upcoming: (Option<usize>, Option<usize>),
    row: &mut [Lane],
) {
    match job.table {
        Some(table) => {
            if let Some(later) = upcoming.1 {
                table.prefetch_entries(&job.from, later);
            }
            if let Some(next) = upcoming.0 {
                table.prefetch(&job.from, next);
            }
            // SAFETY: the runs of a job are sums of its table.
            unsafe { table.score(simd, &job.from, token, row) };
            job.scorer.add_ends(ends, row);
        }
        None => {
            row.fill(Lane::ZERO);
            job.scorer.fill(job.data, token, ends, row);
        }
    }
    if let Some((support, masks)) = &job.support {
        let masks = &masks[support.of[token] as usize * row.len()..];
        for (x, mask) in row.iter_mut().zip(masks) {
            simd.store(simd.add(simd.load(x), simd.load(mask)), x);
        }
    }
}

dispatch!(
    /// Compute the node scores of a sentence as rows of lanes.
    fn score_sentence(job: &BatchDecoding<'_>, tokens: Range<usize>, rows: &mut [Lane]) = sentence_kernel
);

#[inline(always)]
fn sentence_kernel<S: Simd>(simd: S, job: &BatchDecoding<'_>, tokens: Range<usize>, rows: &mut [Lane]) {
    let width = job.scorer.layout.labels.div_ceil(WIDTH);
    let upcoming = |token: usize| (token < tokens.end).then_some(token);
    for (token, row) in tokens.clone().zip(rows.chunks_exact_mut(width)) {
        let ends = (token == tokens.start, token + 1 == tokens.end);
        score_token(simd, job, token, ends, (upcoming(token + WEIGHT_DISTANCE), upcoming(token + ENTRY_DISTANCE)), row);
    }
}

/// Decode one sentence with its labels in lanes. Returns false if it has no finite result.
fn one_sentence(job: &BatchDecoding<'_>, sentence: usize, scratch: &mut DecodingWork) -> bool {
    let (scorer, l) = (job.scorer, job.scorer.layout.labels);
    let tokens = job.data.sentences[sentence]..job.data.sentences[sentence + 1];
    let (begin, n, width) = (tokens.start, tokens.len(), l.div_ceil(WIDTH));
    let DecodingWork { chart, single, .. } = scratch;
    match &job.output {
        PathOutput::Paths(paths) => {
            let steps = scorer.chart_steps();
            chart.begin(n, false);
            score_sentence(job, tokens, &mut chart.node[..n * width]);
            advance_all(chart, steps, None);
            // SAFETY: a sentence belongs to one batch, and a batch to one thread, here and below.
            best_path(chart, steps, unsafe { paths.slice(begin, n) }).is_finite()
        }
        PathOutput::Marginals(p, log_zs) => {
            single.reserve(n, l);
            score_sentence(job, tokens, &mut single.psi[..n * width]);
            for row in single.psi.chunks_exact_mut(width).take(n) {
                (l..width * WIDTH).for_each(|y| row[y / WIDTH].0[y % WIDTH] = f32::NEG_INFINITY);
            }
            let Some(log_z) = forward(single, &scorer.edges, n) else { return false };
            // SAFETY: as above.
            unsafe { log_zs.set(sentence, log_z) };
            // SAFETY: as above.
            marginals(single, &scorer.edges, unsafe { p.slice(begin * l, n * l) });
            true
        }
    }
}

dispatch!(
    /// Compute the node scores of position t of a batch.
    fn score_position(job: &BatchDecoding<'_>, batch: &Batch, t: usize, scratch: &mut DecodingWork) = position_kernel
);

#[inline(always)]
fn position_kernel<S: Simd>(simd: S, job: &BatchDecoding<'_>, batch: &Batch, t: usize, scratch: &mut DecodingWork) {
    let (data, l) = (job.data, job.scorer.layout.labels);
    let (width, active) = (l.div_ceil(WIDTH), batch.active(t));
    let begin = |lane: usize| data.sentences[batch.sentences[lane] as usize];
    let after = batch.active(t + 1);
    // The token that many lanes ahead, at this position or the next.
    let token_ahead = |lane: usize| match lane.checked_sub(active) {
        None => Some(begin(lane) + t),
        Some(lane) => (lane < after).then(|| begin(lane) + t + 1),
    };
    let DecodingWork { work, row, tile, .. } = scratch;
    for lane in 0..active {
        let token = begin(lane) + t;
        let ends = (t == 0, t + 1 == batch.lengths[lane] as usize);
        score_token(
            simd,
            job,
            token,
            ends,
            (token_ahead(lane + WEIGHT_DISTANCE), token_ahead(lane + ENTRY_DISTANCE)),
            row,
        );
        (0..width).for_each(|v| tile.0[v][lane] = row[v]);
    }
    for v in 0..width {
        simd.transpose(&tile.0[v], square_mut(&mut work.psi[t * l + v * WIDTH..]));
    }
}

dispatch!(
    /// Compute the marginals and log Z of a batch from its node scores.
    fn marginals_of_batch(
        job: &BatchDecoding<'_>, batch: &Batch, shape: &Shape, out: (&Shared<'_, f32>, &Shared<'_, f64>),
        scratch: &mut DecodingWork,
    ) = marginals_kernel
);

#[inline(always)]
fn marginals_kernel<S: Simd>(
    simd: S,
    job: &BatchDecoding<'_>,
    batch: &Batch,
    shape: &Shape,
    (p, log_zs): (&Shared<'_, f32>, &Shared<'_, f64>),
    scratch: &mut DecodingWork,
) {
    let (edges, data, l) = (&job.scorer.edges, job.data, shape.labels);
    let DecodingWork { work, tile, .. } = &mut *scratch;
    let ones = Lane([1.0; WIDTH]);
    let mut log_z = [0.0; WIDTH];
    sums::batch::forward(shape, edges, work, &mut Prefilled, &mut log_z);
    for (lane, &s) in batch.sentences.iter().enumerate() {
        // SAFETY: a sentence belongs to one batch, as do its tokens below.
        unsafe { log_zs.set(s as usize, log_z[lane]) };
        if log_z[lane].is_nan() {
            sums::batch::clear_lane(shape, work, lane);
        }
    }
    for t in (0..shape.positions()).rev() {
        sums::batch::backward_position(shape, edges, work, &ones, t);
        for v in 0..l.div_ceil(WIDTH) {
            simd.transpose(square(&work.p[v * WIDTH..]), &mut tile.0[v]);
        }
        for lane in 0..batch.active(t) {
            // SAFETY: as above.
            let out = unsafe { p.slice((data.sentences[batch.sentences[lane] as usize] + t) * l, l) };
            for (v, part) in out.chunks_mut(WIDTH).enumerate() {
                part.copy_from_slice(&tile.0[v][lane].0[..part.len()]);
            }
        }
    }
    for (lane, &s) in batch.sentences.iter().enumerate() {
        if !log_z[lane].is_nan() {
            scratch.by_lanes += 1;
        } else {
            scratch.decode_in_double(job, s);
        }
    }
}

/// Decoder of one sentence in double precision and log space.
#[derive(Default)]
struct Decoding64 {
    weights: Vec<f64>,
    scored: Scored,
    path: Vec<u16>,
    search: Viterbi64,
    trellis: Trellis,
}

impl Decoding64 {
    fn run(&mut self, job: &BatchDecoding<'_>, sentence: u32) -> Option<u32> {
        testing::count(PathCount::Log, 1);
        let (scorer, data) = (job.scorer, job.data);
        let l = scorer.layout.labels;
        if self.weights.is_empty() {
            self.weights = doubles(scorer);
        }
        let begin = data.sentences[sentence as usize];
        let support = job.support.as_ref().map(|(support, _)| *support);
        self.scored.fill(scorer, &self.weights, data, support, sentence as usize);
        let scores = self.scored.scores(l);
        match &job.output {
            PathOutput::Paths(paths) => {
                let score = self.search.run(&scores, &mut self.path);
                for (t, &y) in self.path.iter().enumerate() {
                    // SAFETY: no other thread writes to the tokens of this sentence.
                    unsafe { paths.set(begin + t, y) };
                }
                (!score.is_finite()).then_some(sentence)
            }
            PathOutput::Marginals(p, log_z) => {
                self.trellis.forward(&scores);
                self.trellis.backward(&scores);
                // SAFETY: no other thread writes to the tokens of this sentence.
                let out = unsafe { p.slice(begin * l, scores.node.len()) };
                for (at, x) in out.iter_mut().enumerate() {
                    *x = self.trellis.node_marginal(at) as f32;
                }
                // SAFETY: as above.
                unsafe { log_z.set(sentence as usize, self.trellis.log_z) };
                // A local model subtracts sums over its edge scores, which leave no digits if these are too large.
                let out_of_range = scorer.local && too_large(scores.edge);
                (out_of_range || !self.trellis.log_z.is_finite()).then_some(sentence)
            }
        }
    }
}
