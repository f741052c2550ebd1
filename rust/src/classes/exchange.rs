//! Exchange: every word moves to the class that raises the objective most (Kneser and Ney 1993; Martin, Liermann and Ney
//! 1998), until no single move does.
//!
//! With h(n) = n log n, R(d) and L(d) the bigrams of word w with words of class d to its right and left, and the word
//! taken out of its class, putting it into class c changes the objective by
//!
//! ```text
//! sum_d h(N(c,d) + R(d)) - h(N(c,d))  +  sum_d h(N(d,c) + L(d)) - h(N(d,c))  -  2 [h(N(c) + n) - h(N(c))]
//! ```
//!
//! and the cell (c, c) gets R(c) + L(c) and the bigrams of the word with itself at once. A cell that is 0 adds h(R(d)),
//! which is the same for every class. So only classes that have a neighbour class in common with the word are summed,
//! and all others differ in the term of their size alone. This is exact.
//!
//! Words are proposed new classes in parallel, in chunks of fixed size, from the state at the beginning of the chunk.
//! Then the moves of a chunk are made one after the other, each only if it raises the objective of the current state.
//! Results therefore do not depend on the number of threads, and the objective never falls.

use crate::classes::graph::BigramGraph;
use crate::classes::matrix::{bytes, Bigrams};
use crate::classes::n_log_n::NLogN;
use crate::error::{Error, Result};
use crate::machine::system::budget;
use crate::machine::system::stop;
use rayon::prelude::*;
use std::sync::Mutex;

/// Words of a chunk, and of a parallel task.
const CHUNK: usize = 64;
const TASK: usize = 8;
/// Smallest gain of a move. Smaller ones may be rounding errors.
const LEAST: f64 = 1e-6;

/// Bigrams of one word with the classes of its neighbours.
struct Context {
    right: Vec<u32>,   // [classes]
    left: Vec<u32>,    // [classes]
    follow: Vec<u32>,  // classes with right > 0
    precede: Vec<u32>, // classes with left > 0
    gain: Vec<f64>,    // [classes] scratch of `best`
}

impl Context {
    fn new(classes: usize) -> Context {
        Context {
            right: vec![0; classes],
            left: vec![0; classes],
            follow: Vec::new(),
            precede: Vec::new(),
            gain: vec![0.0; classes],
        }
    }

    /// Replace the content by the neighbours of a word.
    fn read(&mut self, graph: &BigramGraph, class: &[u32], word: usize) {
        let fill = |list: &[(u32, u32)], of: &mut Vec<u32>, seen: &mut Vec<u32>| {
            seen.drain(..).for_each(|d| of[d as usize] = 0);
            for &(neighbour, n) in list {
                let d = class[neighbour as usize];
                if of[d as usize] == 0 {
                    seen.push(d);
                }
                of[d as usize] += n;
            }
        };
        fill(graph.right(word), &mut self.right, &mut self.follow);
        fill(graph.left(word), &mut self.left, &mut self.precede);
    }
}

/// Assignment of words to classes, and the counts of class bigrams that follow from it.
pub struct Exchange {
    graph: BigramGraph,
    k: usize,        // classes of words; class k is the boundary, class k + 1 the rest
    class: Vec<u32>, // [V + 2]
    sizes: Vec<u32>, // [k + 2] tokens of each class
    bigrams: Bigrams,
    h: NLogN,
}

impl Exchange {
    /// Start with the `k` most frequent words in classes of their own, the others in turn.
    pub fn new(graph: BigramGraph, k: usize) -> Result<Exchange> {
        if k == 0 || graph.len() < k {
            return Err(Error::Value(format!("{k} classes for {} words; use 1 to {0}", graph.len())));
        }
        budget::claim("the table of class bigrams", bytes(k + 2), "use fewer classes")?;
        let class = (0..graph.len()).map(|w| (w % k) as u32).chain([k as u32, k as u32 + 1]).collect();
        Exchange::of_classes(graph, k, class)
    }

    /// Start with a given class for every word, [V + 2].
    fn of_classes(graph: BigramGraph, k: usize, class: Vec<u32>) -> Result<Exchange> {
        let mut bigrams = Bigrams::new(k + 2);
        let mut sizes = vec![0; k + 2];
        for (w, &c) in class.iter().enumerate() {
            sizes[c as usize] += graph.tokens[w];
            bigrams.add(c as usize, c as usize, graph.own[w]);
            for &(v, n) in graph.right(w) {
                bigrams.add(c as usize, class[v as usize] as usize, n);
            }
        }
        let most = graph.tokens.iter().map(|&n| u64::from(n)).sum();
        Ok(Exchange { graph, k, class, sizes, bigrams, h: NLogN::new(most) })
    }

    pub fn graph(&self) -> &BigramGraph {
        &self.graph
    }

    /// Return the class of every word.
    pub fn classes(&self) -> &[u32] {
        &self.class[..self.graph.len()]
    }

    /// Return the number of classes of words.
    pub fn k(&self) -> usize {
        self.k
    }

    /// Return the class bigrams and the tokens of every class, with the boundary and the rest as the last two.
    pub(super) fn state(&self) -> (&Bigrams, &[u32], &NLogN) {
        (&self.bigrams, &self.sizes, &self.h)
    }

    /// Return the objective F.
    pub fn objective(&self) -> f64 {
        let mut sum = 0.0;
        for c in 0..self.k + 2 {
            self.bigrams.right.each(c, |_, n| sum += self.h.of(n));
            sum -= 2.0 * self.h.of(self.sizes[c]);
        }
        sum
    }

    /// Return the change of the objective if a word moves to another class.
    pub fn gain(&self, word: usize, to: usize) -> f64 {
        let mut context = Context::new(self.k + 2);
        context.read(&self.graph, &self.class, word);
        self.move_gain(word, to, &context)
    }

    /// Visit every word once. Return the number of words that moved.
    pub fn sweep(&mut self) -> usize {
        let spare: Mutex<Vec<Context>> = Mutex::default();
        let mut own = Context::new(self.k + 2);
        let stop = stop::current();
        let mut moved = 0;
        for begin in (0..self.graph.len()).step_by(CHUNK) {
            stop::check();
            let words = begin..self.graph.len().min(begin + CHUNK);
            let (this, spare) = (&*self, &spare);
            let proposals: Vec<Vec<Option<usize>>> = words
                .clone()
                .into_par_iter()
                .step_by(TASK)
                .map(|first| {
                    let _mine = stop.enter();
                    let mut context = locked(spare).pop().unwrap_or_else(|| Context::new(this.k + 2));
                    let task = first..words.end.min(first + TASK);
                    let found = task.map(|word| this.best(word, &mut context)).collect();
                    locked(spare).push(context);
                    found
                })
                .collect();
            for (word, to) in words.zip(proposals.into_iter().flatten()) {
                let Some(to) = to else { continue };
                own.read(&self.graph, &self.class, word);
                if self.move_gain(word, to, &own) > LEAST {
                    self.put(word, to, &own);
                    moved += 1;
                }
            }
        }
        moved
    }

    /// Return the class whose gain for a word is largest, if that is a gain. The first of equal classes wins.
    fn best(&self, word: usize, context: &mut Context) -> Option<usize> {
        context.read(&self.graph, &self.class, word);
        let (h, from, own) = (&self.h, self.class[word] as usize, self.graph.own[word]);
        let Context { right, left, follow, precede, gain } = context;
        gain.fill(0.0);
        // Column `from` of N without the word is N(c, from) - L(c), and row `from` is N(from, c) - R(c).
        for (seen, counts, opposite, matrix) in
            [(&*follow, &*right, &*left, &self.bigrams.left), (&*precede, &*left, &*right, &self.bigrams.right)]
        {
            for &d in seen {
                let (d, n) = (d as usize, counts[d as usize]);
                let (join, before) = (h.join(n), gain[d]);
                match d == from {
                    true => matrix.each(d, |c, cell| gain[c] += join.with(cell.saturating_sub(opposite[c]))),
                    false => matrix.each(d, |c, cell| gain[c] += join.with(cell)),
                }
                gain[d] = before; // the cell (d, d) is added below
            }
        }
        let diagonal = |c: usize| {
            let cell = self.bigrams.at(c, c);
            h.of(cell + right[c] + left[c] + own) - h.of(cell) - h.of(right[c]) - h.of(left[c])
        };
        if own > 0 {
            (0..self.k).for_each(|c| gain[c] += diagonal(c));
        } else {
            follow.iter().for_each(|&c| gain[c as usize] += diagonal(c as usize));
            precede.iter().filter(|&&c| right[c as usize] == 0).for_each(|&c| gain[c as usize] += diagonal(c as usize));
        }
        let n = self.graph.tokens[word];
        let mut found = (f64::NEG_INFINITY, 0);
        for c in (0..self.k).filter(|&c| c != from) {
            let size = self.sizes[c];
            let value = gain[c] - 2.0 * (h.of(size + n) - h.of(size));
            if value > found.0 {
                found = (value, c);
            }
        }
        (found.0 - self.stay(word, context) > LEAST).then_some(found.1)
    }

    /// Return the gain of putting a word back into its class after taking it out, less h of its neighbour counts.
    fn stay(&self, word: usize, context: &Context) -> f64 {
        let (h, c, n) = (&self.h, self.class[word] as usize, self.graph.tokens[word]);
        let Context { right, left, .. } = context;
        let less = |cell: u32, n: u32| h.of(cell) - h.of(cell - n) - h.of(n);
        let mut sum = 0.0;
        for d in context.follow.iter().map(|&d| d as usize).filter(|&d| d != c) {
            sum += less(self.bigrams.right.at(c, d), right[d]);
        }
        for d in context.precede.iter().map(|&d| d as usize).filter(|&d| d != c) {
            sum += less(self.bigrams.left.at(c, d), left[d]);
        }
        let cell = self.bigrams.at(c, c);
        sum += h.of(cell) - h.of(cell - right[c] - left[c] - self.graph.own[word]) - h.of(right[c]) - h.of(left[c]);
        sum - 2.0 * (h.of(self.sizes[c]) - h.of(self.sizes[c] - n))
    }

    /// Return the change of the objective if a word moves, given its context.
    fn move_gain(&self, word: usize, to: usize, context: &Context) -> f64 {
        let (h, from, n) = (&self.h, self.class[word] as usize, self.graph.tokens[word]);
        if from == to {
            return 0.0;
        }
        let Context { right, left, .. } = context;
        let mut sum = 0.0;
        for d in context.follow.iter().map(|&d| d as usize).filter(|&d| d != to) {
            let taken = if d == from { left[to] } else { 0 };
            sum += h.joined(self.bigrams.right.at(to, d) - taken, right[d]);
        }
        for d in context.precede.iter().map(|&d| d as usize).filter(|&d| d != to) {
            let taken = if d == from { right[to] } else { 0 };
            sum += h.joined(self.bigrams.left.at(to, d) - taken, left[d]);
        }
        let cell = self.bigrams.at(to, to);
        sum += h.of(cell + right[to] + left[to] + self.graph.own[word]) - h.of(cell) - h.of(right[to]) - h.of(left[to]);
        let size = self.sizes[to];
        sum - 2.0 * (h.of(size + n) - h.of(size)) - self.stay(word, context)
    }

    /// Move a word, given its context.
    fn put(&mut self, word: usize, to: usize, context: &Context) {
        let (from, n, own) = (self.class[word] as usize, self.graph.tokens[word], self.graph.own[word]);
        for d in context.follow.iter().map(|&d| d as usize) {
            self.bigrams.take(from, d, context.right[d]);
            self.bigrams.add(to, d, context.right[d]);
        }
        for d in context.precede.iter().map(|&d| d as usize) {
            self.bigrams.take(d, from, context.left[d]);
            self.bigrams.add(d, to, context.left[d]);
        }
        self.bigrams.take(from, from, own);
        self.bigrams.add(to, to, own);
        self.sizes[from] -= n;
        self.sizes[to] += n;
        self.class[word] = to as u32;
    }
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
