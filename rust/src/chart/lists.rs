//! The k best paths of a sentence whose chart is filled: `kbest`'s algorithm with one vector maximum in place of a heap.

use super::{top, Chart, Find, Steps};
use crate::simd::{Lane, WIDTH};

/// No entry known yet.
const NONE: u32 = u32::MAX;
/// The list of a cell ends here.
const END: u32 = u32::MAX - 1;

/// One path of a cell's list: it ends in `label` at position t; t = T gathers the ends.
#[derive(Clone, Copy)]
struct Entry {
    score: f32,
    t: u32,
    open: u32, // place of the cell's candidates
    prev: u32, // entry of label `from` at t-1; NONE for its first while nobody needed it
    next: u32, // the entry after this one in the cell's list: NONE, END, or its number
    label: u16,
    from: u16,
}

/// Scratch. Entry t, t <= T, is the first of the cell that the best path takes at t.
#[derive(Default)]
pub(super) struct Lists {
    first: Vec<u32>, // [T * L + 1] first entry of each cell; NONE between sentences
    entries: Vec<Entry>,
    candidates: Vec<Lane>, // [opened, width] next path of each predecessor, the node score not yet added
    candidate: Vec<u32>,   // [opened, width * 16] its entry at the predecessor; NONE for its first
    tops: Vec<(f32, u16)>, // [opened] the best candidate and its label: most steps leave the candidates as they are
    stack: Vec<u32>,
}

impl Chart {
    /// The k best paths, once every position is advanced: their scores, and their labels one after the other.
    #[inline(always)]
    pub(crate) unsafe fn best_paths<S: Find>(
        &mut self,
        steps: &Steps,
        k: usize,
        scores: &mut Vec<f32>,
        paths: &mut Vec<u16>,
    ) {
        let n = self.positions;
        scores.clear();
        paths.clear();
        if k == 0 {
            return;
        }
        paths.resize(n, 0);
        let score = self.best_path::<S>(steps, paths);
        if score == f32::NEG_INFINITY {
            paths.clear();
            return;
        }
        scores.push(score);
        if k == 1 || n == 0 || !score.is_finite() {
            return;
        }
        self.open_best::<S>(steps, score, paths);
        let mut at = n as u32;
        for begin in (1..k).map(|j| j * n) {
            at = self.after::<S>(steps, at);
            if at == END {
                return;
            }
            scores.push(self.lists.entries[at as usize].score);
            paths.resize(begin + n, 0);
            let (best, path) = paths.split_at_mut(begin);
            let (mut t, mut y, mut entry) = (n, 0, at);
            while t > 0 {
                if entry != NONE {
                    let e = &self.lists.entries[entry as usize];
                    (y, entry) = (e.from as usize, e.prev);
                } else {
                    y = self.before::<S>(steps, t, y);
                }
                t -= 1;
                path[t] = y as u16;
                // From here on the best way to a cell of the best path.
                if entry as usize == t || (entry == NONE && best[t] as usize == y) {
                    path[..t].copy_from_slice(&best[..t]);
                    break;
                }
            }
        }
    }

    /// Open the cells of the best path, which every other path needs: entry t at position t.
    #[inline(always)]
    unsafe fn open_best<S: Find>(&mut self, steps: &Steps, score: f32, best: &[u16]) {
        let (n, l, width) = (self.positions, self.labels, self.width);
        let lists = &mut self.lists;
        for e in &lists.entries {
            lists.first[e.t as usize * l + e.label as usize] = NONE;
        }
        lists.entries.clear();
        lists.candidates.clear();
        lists.candidate.clear();
        if lists.first.len() <= n * l {
            lists.first.resize(n * l + 1, NONE);
        }
        lists.candidates.resize((n + 1) * width, Lane([f32::NEG_INFINITY; WIDTH]));
        lists.candidate.resize((n + 1) * width * WIDTH, NONE);
        lists.tops.clear();
        for t in 0..=n {
            let y = if t < n { best[t] as usize } else { 0 };
            let from = if t > 0 { best[t - 1] as usize } else { 0 };
            let here = &mut lists.candidates[t * width..(t + 1) * width];
            let mut score = score;
            if t < n {
                score = self.delta[t * width + y / WIDTH].0[y % WIDTH];
                if t > 0 {
                    let block = if self.varying { t } else { 0 };
                    let column = &steps.columns[(block * l + y) * width..(block * l + y + 1) * width];
                    for (v, c) in here.iter_mut().enumerate() {
                        S::store(S::add(S::load(&self.delta[(t - 1) * width + v]), S::load(&column[v])), c);
                    }
                }
            } else {
                here.copy_from_slice(&self.delta[(n - 1) * width..n * width]);
            }
            lists.tops.push(top_without::<S>(here, from));
            lists.first[t * l + y] = t as u32;
            lists.entries.push(Entry {
                score,
                t: t as u32,
                open: t as u32,
                prev: if t > 0 { t as u32 - 1 } else { NONE },
                next: NONE,
                label: y as u16,
                from: from as u16,
            });
        }
    }

    /// The first entry of label y at position t; its candidates are the other ways there.
    #[inline(always)]
    unsafe fn open<S: Find>(&mut self, steps: &Steps, t: usize, y: usize) -> u32 {
        let (l, width) = (self.labels, self.width);
        let cell = t * l + y;
        if self.lists.first[cell] != NONE {
            return self.lists.first[cell];
        }
        let open = self.lists.candidates.len() / width;
        let begin = open * width;
        self.lists.candidates.resize(begin + width, Lane([f32::NEG_INFINITY; WIDTH]));
        self.lists.candidate.resize((begin + width) * WIDTH, NONE);
        let mut from = 0;
        if t > 0 {
            let column = (self.block(t) * l + y) * width;
            for v in 0..width {
                let delta = S::load(&self.delta[(t - 1) * width + v]);
                S::store(S::add(delta, S::load(&steps.columns[column + v])), &mut self.lists.candidates[begin + v]);
            }
            from = self.before::<S>(steps, t, y);
        }
        let score = self.delta[t * width + y / WIDTH].0[y % WIDTH];
        let lists = &mut self.lists;
        lists.tops.push(top_without::<S>(&mut lists.candidates[begin..], from));
        lists.first[cell] = lists.entries.len() as u32;
        lists.entries.push(Entry {
            score,
            t: t as u32,
            open: open as u32,
            prev: NONE,
            next: NONE,
            label: y as u16,
            from: from as u16,
        });
        lists.first[cell]
    }

    /// The entry after `entry` in its cell's list, or END: down the chain of predecessors whose own next is not known,
    /// then up again.
    #[inline(always)]
    unsafe fn after<S: Find>(&mut self, steps: &Steps, entry: u32) -> u32 {
        let width = self.width;
        let mut top = entry;
        while self.lists.entries[top as usize].next == NONE {
            let e = self.lists.entries[top as usize];
            if e.t == 0 {
                self.lists.entries[top as usize].next = END;
                break;
            }
            self.lists.stack.push(top);
            if e.prev == NONE {
                let below = self.open::<S>(steps, e.t as usize - 1, e.from as usize);
                self.lists.entries[top as usize].prev = below;
                top = below;
            } else {
                top = e.prev;
            }
        }
        while let Some(at) = self.lists.stack.pop() {
            let e = self.lists.entries[at as usize];
            let (t, y, from, begin) = (e.t as usize, e.label as usize, e.from as usize, e.open as usize * width);
            let end = t == self.positions;
            let below = self.lists.entries[e.prev as usize].next;
            let mut next = Entry { score: f32::NEG_INFINITY, prev: below, next: NONE, ..e };
            if below != END {
                let step = if end { 0.0 } else { steps.get(self.block(t), from, y) };
                next.score = self.lists.entries[below as usize].score + step;
            }
            // The others against the successor of the last path, which is not among the candidates yet.
            let lists = &mut self.lists;
            let (score, other) = lists.tops[e.open as usize];
            if score > next.score || (score == next.score && other < e.from) {
                let candidates = &mut lists.candidates[begin..begin + width];
                candidates[from / WIDTH].0[from % WIDTH] = next.score;
                lists.candidate[begin * WIDTH + from] = below;
                (next.score, next.from) = (score, other);
                next.prev = lists.candidate[begin * WIDTH + other as usize];
                lists.tops[e.open as usize] = top_without::<S>(candidates, other as usize);
            }
            if next.score == f32::NEG_INFINITY {
                lists.entries[at as usize].next = END;
                continue;
            }
            if !end {
                next.score += self.node[t * width + y / WIDTH].0[y % WIDTH];
            }
            lists.entries[at as usize].next = lists.entries.len() as u32;
            lists.entries.push(next);
        }
        self.lists.entries[entry as usize].next
    }
}

/// Take a label out of a cell's candidates; the best of the rest.
#[inline(always)]
unsafe fn top_without<S: Find>(candidates: &mut [Lane], label: usize) -> (f32, u16) {
    candidates[label / WIDTH].0[label % WIDTH] = f32::NEG_INFINITY;
    let (score, other) = top::<S>(candidates);
    (score, other as u16)
}
