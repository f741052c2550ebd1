//! Best paths where tokens may take few labels, as with a tag dictionary: only what allowed labels need is computed.
//!
//! ```text
//! delta_t(y) = s_t(y) + max_{y' allowed at t-1} delta_{t-1}(y') + A[y', y]        y allowed at t
//! ```
//!
//! One sentence at a time, sixteen labels side by side: a token costs as many steps as the one before it may take labels,
//! times the lanes that its own labels lie in. Labels are numbered by frequency, so that these are one or two. The same
//! floats are added in the same order as in `lanes`, but for those of a token's only label, which all paths share and
//! nobody need look up: both give the same path.

use crate::chain::viterbi::renormalize;
use crate::chain::limits::support::Support;
use crate::machine::simd::{Lane, Simd, WIDTH};

/// Lanes that one walk over the labels before fills.
const MOST: usize = 4;

/// The labels of each set, one after the other, and the lanes that they lie in.
pub struct Allowed {
    labels: Vec<u16>,
    ends: Vec<u32>, // [sets]
    lanes: Vec<u16>,
    lane_ends: Vec<u32>, // [sets]
}

/// Part `set` of a list whose parts end there.
#[inline(always)]
fn part<'a>(list: &'a [u16], ends: &[u32], set: u32) -> &'a [u16] {
    let begin = if set == 0 { 0 } else { ends[set as usize - 1] as usize };
    &list[begin..ends[set as usize] as usize]
}

impl Allowed {
    pub fn new(support: &Support, labels: usize) -> Allowed {
        let mut out = Allowed { labels: Vec::new(), ends: Vec::new(), lanes: Vec::new(), lane_ends: Vec::new() };
        for set in support.sets.chunks_exact(labels.max(1)) {
            out.labels.extend((0..labels).filter(|&y| set[y]).map(|y| y as u16));
            out.ends.push(out.labels.len() as u32);
            let lanes = set.chunks(WIDTH).enumerate().filter(|(_, lane)| lane.contains(&true));
            out.lanes.extend(lanes.map(|(v, _)| v as u16));
            out.lane_ends.push(out.lanes.len() as u32);
        }
        out
    }

    /// Labels of a set, ascending.
    #[inline(always)]
    pub fn of(&self, set: u32) -> &[u16] {
        part(&self.labels, &self.ends, set)
    }

    /// Lanes that they lie in, ascending.
    #[inline(always)]
    pub fn lanes(&self, set: u32) -> &[u16] {
        part(&self.lanes, &self.lane_ends, set)
    }

    /// Steps of a sentence: labels of a token times lanes of the next.
    pub fn steps(&self, sets: &[u32]) -> usize {
        sets.windows(2).map(|s| self.of(s[0]).len() * self.lanes(s[1]).len()).sum()
    }
}

/// Scores of label pairs, [L, L], in whole lanes: [L, lanes of L]; those behind the last label are 0.
pub fn padded(edge: &[f32], labels: usize) -> Vec<Lane> {
    let width = labels.div_ceil(WIDTH);
    let mut out = vec![Lane::ZERO; labels * width];
    for (row, lanes) in edge.chunks_exact(labels.max(1)).zip(out.chunks_exact_mut(width.max(1))) {
        for (y, &x) in row.iter().enumerate() {
            lanes[y / WIDTH].0[y % WIDTH] = x;
        }
    }
    out
}

/// What holds for all sentences of a call.
#[derive(Clone, Copy)]
pub struct Ground<'a> {
    pub lists: &'a Allowed,
    pub masks: &'a [Lane], // [sets, width] 0 and -infinity
    pub edge: &'a [Lane],  // [L, width]
    pub width: usize,
}

/// A sentence as the search sees it. No closure: one would be compiled without the machine's vector instructions.
pub trait Sentence {
    /// The scores of the set's lanes at token t, into a row of lanes; no row for a token that may take one label or none.
    ///
    /// # Safety
    /// The machine has the instructions of `S`.
    unsafe fn node<S: Simd>(&self, t: usize, row: Option<&mut [Lane]>);
    /// The label of token t.
    fn emit(&self, t: usize, label: u16);
}

/// Scratch of one thread.
#[derive(Default)]
pub struct Narrow {
    delta: Vec<Lane>, // [width] of the token before, in its lanes alone
    next: Vec<Lane>,
    back: Vec<Lane>, // label before, as a number, for the lanes of all tokens
    begin: Vec<u32>, // [T] where each token's begin
}

impl Narrow {
    /// Best path of a sentence whose tokens have these sets; whether it has one of a finite score.
    ///
    /// # Safety
    /// The machine has the instructions of `S`; the ground is of one number of labels, and has all of these sets.
    #[inline(always)]
    pub unsafe fn run<S: Simd>(&mut self, ground: &Ground<'_>, sets: &[u32], sentence: &impl Sentence) -> bool {
        let Ground { lists, masks, width, .. } = *ground;
        self.back.clear();
        self.begin.clear();
        self.delta.resize(width, Lane::ZERO);
        self.next.resize(width, Lane::ZERO);
        let mut before: &[u16] = &[];
        for (t, &set) in sets.iter().enumerate() {
            let (here, lanes) = (lists.of(set), lists.lanes(set));
            if here.len() > 1 {
                sentence.node::<S>(t, Some(&mut self.next));
            } else {
                sentence.node::<S>(t, None);
                lanes.iter().for_each(|&v| self.next[v as usize] = Lane::ZERO);
            }
            for &v in lanes {
                let x = &mut self.next[v as usize];
                S::store(S::add(S::load(x), S::load(&masks[set as usize * width + v as usize])), x);
            }
            self.begin.push(self.back.len() as u32);
            if t > 0 {
                for some in lanes.chunks(MOST) {
                    match some.len() {
                        1 => self.step::<S, 1>(ground, before, some),
                        2 => self.step::<S, 2>(ground, before, some),
                        3 => self.step::<S, 3>(ground, before, some),
                        _ => self.step::<S, MOST>(ground, before, some),
                    }
                }
            }
            if renormalize::is_due(t) {
                self.renormalize(here);
            }
            std::mem::swap(&mut self.delta, &mut self.next);
            before = here;
        }
        let score = |y: u16| self.delta[y as usize / WIDTH].0[y as usize % WIDTH];
        let Some(&first) = before.first() else {
            return sets.is_empty();
        };
        let mut y = before.iter().fold(first, |best, &y| if score(y) > score(best) { y } else { best });
        let found = score(y).is_finite();
        if found {
            for (t, &set) in sets.iter().enumerate().rev() {
                sentence.emit(t, y);
                if t > 0 {
                    let place = lists.lanes(set).iter().position(|&v| v == y / WIDTH as u16).unwrap_or(0);
                    y = self.back[self.begin[t] as usize + place].0[y as usize % WIDTH] as u16;
                }
            }
        }
        found
    }

    /// Renormalise the labels of a token, which the others of its lanes are not compared with.
    fn renormalize(&mut self, labels: &[u16]) {
        let at = |y: u16| (y as usize / WIDTH, y as usize % WIDTH);
        let best = labels.iter().map(|&y| self.next[at(y).0].0[at(y).1]).fold(f32::NEG_INFINITY, f32::max);
        let shift = renormalize::shift(best);
        for &y in labels {
            self.next[at(y).0].0[at(y).1] -= shift;
        }
    }

    /// N lanes of a token: the best way to each label from those allowed before it, added to its node score.
    ///
    /// # Safety
    /// As for `run`; there are N lanes.
    #[inline(always)]
    unsafe fn step<S: Simd, const N: usize>(&mut self, ground: &Ground<'_>, before: &[u16], lanes: &[u16]) {
        let mut best = [S::splat(f32::NEG_INFINITY); N];
        let mut from = [S::splat(0.0); N];
        for &a in before {
            let d = S::splat(self.delta[a as usize / WIDTH].0[a as usize % WIDTH]);
            let (row, number) = (&ground.edge[a as usize * ground.width..], S::splat(f32::from(a)));
            for i in 0..N {
                let v = S::add(d, S::load(&row[lanes[i] as usize]));
                from[i] = S::select_gt(v, best[i], number, from[i]);
                best[i] = S::max(v, best[i]);
            }
        }
        for i in 0..N {
            let x = &mut self.next[lanes[i] as usize];
            S::store(S::add(best[i], S::load(x)), x);
            let mut back = Lane::ZERO;
            S::store(from[i], &mut back);
            self.back.push(back);
        }
    }
}
