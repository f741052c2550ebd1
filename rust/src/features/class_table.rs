//! Classes of words as a function of a text: the word, normalized, to the path of its class in a binary tree.
//!
//! A cut of the tree into n classes has the classes that remain when the class with the most words is split n - 1 times,
//! beginning with all words in one. A class of a cut is a prefix of the paths of its classes. Cuts have classes of similar
//! size, while prefixes of one length do not, since the branches of the tree differ in depth.

use crate::error::{Error, Result};
use crate::features::text::{digits, lower, short_shape};
use crate::features::tokens::Column;
use std::collections::BinaryHeap;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

/// Number of the next table, which identifies it.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// Append the word as it is counted and looked up: digits become 0, and letters lower case if case is ignored.
pub fn normalized(text: &str, ignore_case: bool, out: &mut String) {
    if ignore_case {
        let mut small = String::new();
        lower(text, &mut small);
        digits(&small, out);
    } else {
        digits(text, out);
    }
}

/// Words or shapes of each class.
pub type Members = Vec<Vec<String>>;

/// Words and shapes of unknown words, and the path of the class of each.
#[derive(Debug)]
pub struct ClassTable {
    number: u64,
    ignore_case: bool,
    words: Column,
    shapes: Column,
    word_class: Vec<u32>,
    shape_class: Vec<u32>,
    paths: Vec<String>,     // in lexicographic order
    splits: Vec<TreeSplit>, // of the class with the most words, in order
}

/// Split of the classes `begin..end`, whose paths differ first at character `depth`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct TreeSplit {
    words: usize,
    begin: std::cmp::Reverse<usize>, // the first of equally large classes is split first
    end: usize,
    depth: usize,
}

/// Cut of a tree into a number of classes.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Cut {
    table: Arc<ClassTable>,
    n: usize,
    lengths: Vec<usize>, // [classes] length of the prefix
}

impl Cut {
    pub fn new(table: Arc<ClassTable>, n: usize) -> Cut {
        let mut lengths = vec![0; table.paths.len()];
        for split in table.splits.iter().take(n.saturating_sub(1)) {
            lengths[split.begin.0..split.end].fill(split.depth + 1);
        }
        Cut { table, n, lengths }
    }

    /// Return the beginning of the path of a word's class.
    pub fn path(&self, text: &str) -> Option<&str> {
        self.table.class(text).map(|class| &self.table.paths[class][..self.lengths[class]])
    }
}

impl ClassTable {
    /// Build a table from the members of each class: words, and shapes of unknown words.
    pub fn new(paths: Vec<String>, members: &[Vec<String>], shapes: &[Vec<String>], ignore_case: bool) -> Result<Self> {
        let binary = |path: &String| !path.is_empty() && path.bytes().all(|b| b == b'0' || b == b'1');
        let ascending = paths.windows(2).all(|p| p[0] < p[1] && !p[1].starts_with(&p[0]));
        if !paths.iter().all(binary) || !ascending {
            return Err(Error::Value(
                "paths of classes must be strings of 0 and 1 in lexicographic order, none the beginning of another"
                    .into(),
            ));
        }
        let (words, word_class) = numbered(members, paths.len(), "word")?;
        let (shapes, shape_class) = numbered(shapes, paths.len(), "shape")?;
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let splits = splits(&paths, members);
        Ok(ClassTable { number, ignore_case, words, shapes, word_class, shape_class, paths, splits })
    }

    /// Return the number of the class of a word. That of an unknown word is the class of its shape, if it has one.
    pub fn class(&self, text: &str) -> Option<usize> {
        let mut word = String::new();
        normalized(text, self.ignore_case, &mut word);
        if let Some(found) = self.words.find(&word) {
            return Some(self.word_class[found] as usize);
        }
        let mut shape = String::new();
        short_shape(&word, &mut shape);
        self.shapes.find(&shape).map(|found| self.shape_class[found] as usize)
    }

    /// Return the arguments of `new`.
    pub fn arguments(&self) -> (Vec<String>, Members, Members, bool) {
        let listed = |column: &Column, class: &[u32]| {
            let mut lists = vec![Vec::new(); self.paths.len()];
            class.iter().enumerate().for_each(|(i, &c)| lists[c as usize].push(column.text(i).to_owned()));
            lists
        };
        let (words, shapes) = (listed(&self.words, &self.word_class), listed(&self.shapes, &self.shape_class));
        (self.paths.clone(), words, shapes, self.ignore_case)
    }

    /// Return the path of the class of a word.
    pub fn path(&self, text: &str) -> Option<&str> {
        self.class(text).map(|class| self.paths[class].as_str())
    }
}

/// Return the splits of the tree in order.
fn splits(paths: &[String], members: &[Vec<String>]) -> Vec<TreeSplit> {
    let node = |begin: usize, end: usize| {
        let (first, last) = (paths[begin].as_bytes(), paths[end - 1].as_bytes());
        let depth = first.iter().zip(last).take_while(|(a, b)| a == b).count();
        let words = members[begin..end].iter().map(Vec::len).sum();
        TreeSplit { words, begin: std::cmp::Reverse(begin), end, depth }
    };
    let (mut heap, mut found) = (BinaryHeap::new(), Vec::new());
    if paths.len() > 1 {
        heap.push(node(0, paths.len()));
    }
    while let Some(split) = heap.pop() {
        let (begin, end) = (split.begin.0, split.end);
        let middle = begin + paths[begin..end].partition_point(|path| path.as_bytes()[split.depth] == b'0');
        found.push(split);
        [(begin, middle), (middle, end)]
            .into_iter()
            .filter(|(a, b)| b - a > 1)
            .for_each(|(a, b)| heap.push(node(a, b)));
    }
    found
}

/// Return the texts of all classes and the class of each.
fn numbered(classes: &[Vec<String>], n: usize, what: &str) -> Result<(Column, Vec<u32>)> {
    if classes.len() != n {
        return Err(Error::Value(format!("{} lists of {what}s for {n} classes; one for each", classes.len())));
    }
    let (mut column, mut class) = (Column::default(), Vec::new());
    for (c, texts) in classes.iter().enumerate() {
        for text in texts {
            column.push(text)?;
            if column.texts() == class.len() {
                return Err(Error::Value(format!("the {what} {text:?} is in two classes, or twice in one")));
            }
            class.push(c as u32);
        }
    }
    column.cells = Vec::new();
    Ok((column, class))
}

impl PartialEq for ClassTable {
    fn eq(&self, other: &ClassTable) -> bool {
        self.number == other.number
    }
}

impl Eq for ClassTable {}

impl Hash for ClassTable {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.number.hash(state);
    }
}
