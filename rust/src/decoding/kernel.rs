//! Decoding with kernel models: node scores of the distinct tokens, then the usual recursions.
//!
//! The inverted index finds the support tokens that share an attribute with a token. For all others the inner product
//! is 0, so the kernel is a constant (poly) or a product of two factors (rbf), and their contributions are one
//! precomputed sum.

use crate::chain::viterbi::sentence::{advance_all, best_path, best_paths, Chart, Steps};

use crate::chain::limits::support::Support;
use crate::dataset::csr::Csr;
use crate::dataset::Dataset;
use crate::decoding::lists::{claim_lists, no_path, PathLists};
use crate::error::{Error, Result};
use crate::machine::simd::WIDTH;
use crate::machine::system::stop;
use crate::scores::kernel::expand::{self, Products};
use crate::scores::kernel::rows::{block, Distinct, Inverted};
use crate::scores::kernel::{Form, Kernel};
use rayon::prelude::*;

/// Distinct tokens, or sentences, per parallel task.
const TASK: usize = 64;

/// Support tokens of a model with their betas.
#[derive(Clone, Debug, Default)]
pub struct SupportTokens {
    pub rows: Csr,          // [M] attributes of each token, ascending
    pub beta_ptr: Vec<u32>, // [M + 1]
    pub beta_label: Vec<u16>,
    pub beta: Vec<f64>,
}

/// Scores of transitions, starts and ends.
#[derive(Clone, Debug, Default)]
pub struct Frame {
    pub labels: usize,
    pub edge: Vec<f32>, // [L, L]
    pub start: Vec<f32>,
    pub end: Vec<f32>,
}

/// Kernel model prepared for scoring.
pub struct KernelScorer {
    pub tokens: SupportTokens,
    kernel: Kernel,
    frame: Frame,
    steps: Steps,
    attributes: usize,
    square: Vec<f64>, // [M]
    index: Inverted,
    rest: Vec<f64>, // [L] sum of beta_s K at an inner product of 0, without the token's factor
    expanded: Option<(Products, Vec<f32>)>, // weights [terms, L], factors included
}

impl KernelScorer {
    pub fn new(
        tokens: SupportTokens,
        frame: Frame,
        kernel: Kernel,
        attributes: usize,
        form: Form,
    ) -> Result<KernelScorer> {
        kernel.check()?;
        let (l, m) = (frame.labels, tokens.rows.rows());
        let inconsistent = |what: &str| {
            Err(Error::ModelFile(format!("the support tokens are inconsistent: {what}; train and save again")))
        };
        if tokens.beta_ptr.len() != m + 1
            || tokens.beta_ptr.first() != Some(&0)
            || tokens.beta_ptr.windows(2).any(|w| w[0] > w[1])
            || tokens.beta_ptr[m] as usize != tokens.beta.len()
            || tokens.beta.len() != tokens.beta_label.len()
        {
            return inconsistent("betas");
        }
        if tokens.beta_label.iter().any(|&y| y as usize >= l) || tokens.beta.iter().any(|x| !x.is_finite()) {
            return inconsistent("labels or values of betas");
        }
        if tokens.rows.ids.iter().any(|&a| a as usize >= attributes)
            || (0..m)
                .any(|r| tokens.rows.ids[tokens.rows.ptr[r]..tokens.rows.ptr[r + 1]].windows(2).any(|w| w[0] >= w[1]))
        {
            return inconsistent("attributes");
        }
        if frame.edge.len() != l * l || frame.start.len() != l || frame.end.len() != l {
            return inconsistent("transitions");
        }
        let square: Vec<f64> =
            (0..m).map(|r| tokens.rows.row(r).map(|(_, v)| f64::from(v) * f64::from(v)).sum()).collect();
        let mut out = KernelScorer {
            index: Inverted::new(&tokens.rows, attributes),
            steps: Steps::from_scores(l, &frame.edge),
            rest: vec![0.0; l],
            expanded: None,
            tokens,
            kernel,
            frame,
            attributes,
            square,
        };
        let is_expanded_form = match form {
            Form::Rows => false,
            Form::Expanded if !expand::possible(&out.kernel) => {
                return Err(Error::Value("only linear and polynomial kernels up to degree 2 can be written out".into()))
            }
            Form::Expanded => true,
            Form::Auto => expand::possible(&out.kernel) && out.expansion_is_cheaper(),
        };
        if is_expanded_form {
            out.expand();
        } else if !matches!(out.kernel, Kernel::Function(_)) {
            for r in 0..m {
                let k = out.kernel.of(0.0, 0.0, out.square[r]);
                for at in out.tokens.beta_ptr[r] as usize..out.tokens.beta_ptr[r + 1] as usize {
                    out.rest[out.tokens.beta_label[at] as usize] += k * out.tokens.beta[at];
                }
            }
        }
        Ok(out)
    }

    pub fn is_expanded(&self) -> bool {
        self.expanded.is_some()
    }

    pub fn labels(&self) -> usize {
        self.frame.labels
    }

    /// Return whether expanded terms are faster for a token like the support tokens and take at most 1 GiB.
    fn expansion_is_cheaper(&self) -> bool {
        let (rows, m) = (&self.tokens.rows, self.tokens.rows.rows().max(1) as f64);
        let terms: f64 = rows.ptr.windows(2).map(|w| expand::count(&self.kernel, w[1] - w[0]) as f64).sum();
        let matched: f64 = rows.ids.iter().map(|&a| self.index.count(a) as f64).sum();
        let memory = terms * (24.0 + 4.0 * self.frame.labels as f64);
        memory <= (1u64 << 30) as f64 && terms / m * 8.0 < matched / m + 2.0 * m
    }

    fn expand(&mut self) {
        let (l, mut terms, mut weight) = (self.frame.labels, Products::default(), Vec::<f64>::new());
        let mut row = Vec::new();
        for r in 0..self.tokens.rows.rows() {
            row.clear();
            row.extend(self.tokens.rows.row(r));
            let betas = self.tokens.beta_ptr[r] as usize..self.tokens.beta_ptr[r + 1] as usize;
            expand::terms(&self.kernel, &row, |a, b, f, factor| {
                let id = terms.intern(a, b) as usize;
                if weight.len() < (id + 1) * l {
                    weight.resize((id + 1) * l, 0.0);
                }
                for at in betas.clone() {
                    weight[id * l + self.tokens.beta_label[at] as usize] += factor * f * self.tokens.beta[at];
                }
            });
        }
        self.expanded = Some((terms, weight.iter().map(|&x| x as f32).collect()));
    }

    /// Return the node scores of every distinct token of a dataset, without transitions: [U, L].
    fn distinct_scores(&self, distinct: &Distinct) -> Result<Vec<f32>> {
        let (n, l) = (distinct.len(), self.frame.labels);
        let mut scores = vec![0.0f32; n * l];
        let stop = stop::current();
        let failed: Vec<Error> = scores
            .par_chunks_mut(TASK * l)
            .enumerate()
            .map_init(KernelWork::default, |scratch, (task, out)| {
                let (first, _guard) = (task * TASK, stop.enter());
                if let Kernel::Function(function) = &self.kernel {
                    return self.by_function(function, distinct, first, out).err();
                }
                for (i, out) in out.chunks_exact_mut(l).enumerate() {
                    stop::check();
                    scratch.row.clear();
                    scratch.row.extend(distinct.rows.row(first + i));
                    match &self.expanded {
                        Some((terms, weight)) => self.by_terms(terms, weight, scratch),
                        None => self.by_support(distinct.square[first + i], scratch),
                    }
                    for (x, &sum) in out.iter_mut().zip(&scratch.sum) {
                        *x = sum as f32;
                    }
                }
                None
            })
            .filter_map(|e| e)
            .collect();
        failed.into_iter().next().map_or(Ok(scores), Err)
    }

    fn by_support(&self, square: f64, scratch: &mut KernelWork) {
        let (tokens, m) = (&self.tokens, self.tokens.rows.rows());
        scratch.dots.resize(m, 0.0);
        self.index.dots(scratch.row.iter().copied(), &mut scratch.dots);
        // At an inner product of 0 the kernel is that of the support token times a factor of this token (1 except for
        // rbf).
        let factor = match self.kernel {
            Kernel::Rbf { gamma } => (-gamma * square).exp(),
            Kernel::Linear | Kernel::Poly { .. } | Kernel::Function(_) => 1.0,
        };
        scratch.sum.clear();
        scratch.sum.extend(self.rest.iter().map(|x| factor * x));
        for (r, &dot) in scratch.dots.iter().enumerate() {
            if dot != 0.0 {
                let other = self.square[r];
                let k = self.kernel.of(f64::from(dot), square, other) - factor * self.kernel.of(0.0, 0.0, other);
                for at in tokens.beta_ptr[r] as usize..tokens.beta_ptr[r + 1] as usize {
                    scratch.sum[tokens.beta_label[at] as usize] += k * tokens.beta[at];
                }
            }
        }
    }

    fn by_terms(&self, terms: &Products, weight: &[f32], scratch: &mut KernelWork) {
        let l = self.frame.labels;
        scratch.sum.clear();
        scratch.sum.resize(l, 0.0);
        let sum = &mut scratch.sum;
        expand::terms(&self.kernel, &scratch.row, |a, b, f, _| {
            if let Some(id) = terms.get(a, b) {
                for (x, &w) in sum.iter_mut().zip(&weight[id as usize * l..(id as usize + 1) * l]) {
                    *x += f * f64::from(w);
                }
            }
        });
    }

    fn by_function(
        &self,
        function: &crate::scores::kernel::KernelFunction,
        distinct: &Distinct,
        first: usize,
        out: &mut [f32],
    ) -> Result<()> {
        let (l, m) = (self.frame.labels, self.tokens.rows.rows());
        let count = out.len() / l;
        let values = function(&block(&distinct.rows, first..first + count), &self.tokens.rows)?;
        for (values, out) in values.chunks_exact(m.max(1)).zip(out.chunks_exact_mut(l)) {
            let mut sum = vec![0.0; l];
            for (r, &k) in values.iter().enumerate() {
                for at in self.tokens.beta_ptr[r] as usize..self.tokens.beta_ptr[r + 1] as usize {
                    sum[self.tokens.beta_label[at] as usize] += k * self.tokens.beta[at];
                }
            }
            out.iter_mut().zip(&sum).for_each(|(x, &s)| *x = s as f32);
        }
        Ok(())
    }

    /// Return the node scores of every token, including starts and ends: [tokens, L].
    pub fn nodes(&self, data: &Dataset) -> Result<Vec<f32>> {
        data.check_model(self.attributes)?;
        if data.has_edge_attributes() {
            return Err(Error::Value("a kernel model knows no edge attributes; encode with the model's recipe".into()));
        }
        let l = self.frame.labels;
        let distinct = Distinct::new(data.node.csr());
        let scores = self.distinct_scores(&distinct)?;
        let mut out = Vec::with_capacity(data.tokens() * l);
        for &u in &distinct.of {
            out.extend_from_slice(&scores[u as usize * l..(u as usize + 1) * l]);
        }
        for s in data.sentences.windows(2).filter(|s| s[0] < s[1]) {
            for y in 0..l {
                out[s[0] * l + y] += self.frame.start[y];
                out[(s[1] - 1) * l + y] += self.frame.end[y];
            }
        }
        Ok(out)
    }

    /// Return the k best paths of every sentence, or fewer if fewer are allowed.
    pub fn lists(&self, data: &Dataset, support: Option<&Support>, k: usize) -> Result<PathLists> {
        claim_lists(data, self.frame.labels, k)?;
        let nodes = self.nodes(data)?;
        let job = KernelSearch { scorer: self, data, support, nodes: &nodes, k };
        let tasks: Vec<usize> = (0..data.len().div_ceil(TASK)).collect();
        let stop = stop::current();
        let one = |&task: &usize| {
            let _guard = stop.enter();
            run(&job, task)
        };
        let parts: Vec<Result<PathLists>> = tasks.par_iter().map(one).collect();
        PathLists::join(parts)
    }
}

/// Scratch buffers of one thread.
#[derive(Default)]
struct KernelWork {
    row: Vec<(u32, f32)>,
    dots: Vec<f32>, // [M]
    sum: Vec<f64>,  // [L]
}

struct KernelSearch<'a> {
    scorer: &'a KernelScorer,
    data: &'a Dataset,
    support: Option<&'a Support>,
    nodes: &'a [f32],
    k: usize,
}

fn run(job: &KernelSearch<'_>, task: usize) -> Result<PathLists> {
    let (data, l, steps) = (job.data, job.scorer.frame.labels, &job.scorer.steps);
    let mut chart = Chart::new(l);
    let (mut scores, mut paths) = (Vec::new(), Vec::new());
    let mut out = PathLists::default();
    for s in task * TASK..((task + 1) * TASK).min(data.len()) {
        stop::check();
        let (begin, n) = (data.sentences[s], data.sentences[s + 1] - data.sentences[s]);
        chart.begin(n, false);
        let width = chart.width;
        for t in 0..n {
            let row = &mut chart.node[t * width..(t + 1) * width];
            for (y, &x) in job.nodes[(begin + t) * l..(begin + t + 1) * l].iter().enumerate() {
                let allowed = job.support.is_none_or(|a| a.sets[a.of[begin + t] as usize * l + y]);
                row[y / WIDTH].0[y % WIDTH] = if allowed { x } else { f32::NEG_INFINITY };
            }
        }
        advance_all(&mut chart, steps, None);
        if job.k == 1 {
            paths.clear();
            paths.resize(n, 0);
            scores.clear();
            scores.push(best_path(&chart, steps, &mut paths));
        } else {
            best_paths(&mut chart, steps, job.k, &mut scores, &mut paths);
        }
        if job.k > 0 && !scores.first().is_some_and(|x| x.is_finite()) {
            return Err(no_path(s));
        }
        out.counts.push(scores.len() as u32);
        out.append(&paths, scores.len(), n, |path| chart.score(steps, path));
    }
    Ok(out)
}
