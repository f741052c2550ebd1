//! Bigrams of the words that get a class, as lists of neighbours.
//!
//! A word below the minimum count has no class of its own. It counts as the shape of its letters, which is learned like
//! a word, so that unknown words have the class of their shape.

use crate::classes::counts::{Counts, BOUNDARY};
use crate::error::{Error, Result};
use crate::features::text::short_shape;
use hashbrown::HashMap;
use std::hash::{BuildHasherDefault, DefaultHasher};

/// Word, or shape of rare words.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Member {
    pub is_shape: bool,
    pub text: String,
}

/// Words by falling frequency, and the neighbours of each. Two words follow that are not moved: the boundary of
/// sentences, and the rest, which represents all rare words of rare shapes.
pub struct BigramGraph {
    pub words: Vec<Member>, // [V]
    pub tokens: Vec<u32>,   // [V + 2] occurrences
    pub own: Vec<u32>,      // [V + 2] bigrams of a word with itself
    right: Neighbours,
    left: Neighbours,
}

/// Neighbours of each word in one direction and the number of bigrams with each, without the word itself.
struct Neighbours {
    ptr: Vec<usize>,
    list: Vec<(u32, u32)>,
}

impl Neighbours {
    /// Build lists from bigrams (word, neighbour, count), in any order but each once. Lists are in order of neighbours.
    fn new(nodes: usize, pairs: &[(u32, u32, u32)]) -> Neighbours {
        let mut ptr = vec![0; nodes + 1];
        pairs.iter().for_each(|&(w, _, _)| ptr[w as usize + 1] += 1);
        for w in 0..nodes {
            ptr[w + 1] += ptr[w];
        }
        let mut next = ptr.clone();
        let mut list = vec![(0, 0); pairs.len()];
        for &(w, v, n) in pairs {
            list[next[w as usize]] = (v, n);
            next[w as usize] += 1;
        }
        (0..nodes).for_each(|w| list[ptr[w]..ptr[w + 1]].sort_unstable());
        Neighbours { ptr, list }
    }

    fn of(&self, word: usize) -> &[(u32, u32)] {
        &self.list[self.ptr[word]..self.ptr[word + 1]]
    }
}

impl BigramGraph {
    /// Keep the words that occur at least `min_count` times.
    pub fn new(counts: &Counts, min_count: u64) -> Result<BigramGraph> {
        let tokens = counts.tokens();
        if tokens.iter().sum::<u64>() >= u64::from(u32::MAX) {
            return Err(Error::Value("more than 4,294,967,295 tokens; learn from less text".into()));
        }
        let min_count = min_count.max(1);
        let (mut members, mut total) = (Vec::new(), Vec::new()); // of every member, in order of first occurrence
        let mut shapes: HashMap<String, usize, BuildHasherDefault<DefaultHasher>> = HashMap::default();
        let mut member = vec![usize::MAX; tokens.len()];
        for w in 1..tokens.len() {
            let text = counts.text(w);
            if tokens[w] >= min_count {
                member[w] = members.len();
                members.push(Member { is_shape: false, text: text.to_owned() });
                total.push(tokens[w]);
                continue;
            }
            let mut shape = String::new();
            short_shape(text, &mut shape);
            let at = *shapes.entry(shape).or_insert_with_key(|shape| {
                members.push(Member { is_shape: true, text: shape.clone() });
                total.push(0);
                members.len() - 1
            });
            member[w] = at;
            total[at] += tokens[w];
        }
        let mut order: Vec<usize> = (0..members.len()).filter(|&m| total[m] >= min_count).collect();
        order.sort_unstable_by_key(|&m| (std::cmp::Reverse(total[m]), &members[m]));
        let words: Vec<Member> = order.iter().map(|&m| members[m].clone()).collect();
        let (boundary, rest) = (words.len() as u32, words.len() as u32 + 1);
        let mut place = vec![rest; members.len()];
        order.iter().enumerate().for_each(|(i, &m)| place[m] = i as u32);
        let node: Vec<u32> =
            (0..tokens.len()).map(|w| if w == BOUNDARY as usize { boundary } else { place[member[w]] }).collect();
        let mut of_node = vec![0u32; words.len() + 2];
        tokens.iter().zip(&node).for_each(|(&n, &i)| of_node[i as usize] += n as u32);
        let mut own = vec![0u32; words.len() + 2];
        let mut pairs: Vec<(u32, u32, u32)> = Vec::with_capacity(counts.pairs());
        for (v, w, n) in counts.sorted_pairs() {
            let (v, w) = (node[v as usize], node[w as usize]);
            match v == w {
                true => own[v as usize] += n as u32,
                false => pairs.push((v, w, n as u32)),
            }
        }
        pairs.sort_unstable();
        pairs.dedup_by(|next, kept| {
            let same = (next.0, next.1) == (kept.0, kept.1);
            kept.2 += if same { next.2 } else { 0 };
            same
        });
        let nodes = words.len() + 2;
        let right = Neighbours::new(nodes, &pairs);
        pairs.iter_mut().for_each(|pair| *pair = (pair.1, pair.0, pair.2));
        let left = Neighbours::new(nodes, &pairs);
        Ok(BigramGraph { words, tokens: of_node, own, right, left })
    }

    /// Return the number of words that get a class.
    pub fn len(&self) -> usize {
        self.words.len()
    }

    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Return the words that follow a word and how often each does.
    pub fn right(&self, word: usize) -> &[(u32, u32)] {
        self.right.of(word)
    }

    /// Return the words before a word and how often each is.
    pub fn left(&self, word: usize) -> &[(u32, u32)] {
        self.left.of(word)
    }
}
