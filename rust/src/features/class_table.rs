//! Classes of words as a function of a text: the word, normalized, to the path of its class in a binary tree.

use crate::error::{Error, Result};
use crate::features::text::{digits, lower, short_shape};
use crate::features::tokens::Column;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};

/// Number of the next table, which tells tables apart.
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

/// Words and shapes of unknown words, and the path of the class of each.
#[derive(Debug)]
pub struct ClassTable {
    number: u64,
    ignore_case: bool,
    words: Column,
    shapes: Column,
    word_class: Vec<u32>,
    shape_class: Vec<u32>,
    paths: Vec<String>,
}

impl ClassTable {
    /// Build a table from the members of each class: words, and shapes of unknown words.
    pub fn new(paths: Vec<String>, members: &[Vec<String>], shapes: &[Vec<String>], ignore_case: bool) -> Result<Self> {
        let (words, word_class) = numbered(members, paths.len(), "word")?;
        let (shapes, shape_class) = numbered(shapes, paths.len(), "shape")?;
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Ok(ClassTable { number, ignore_case, words, shapes, word_class, shape_class, paths })
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
    pub fn arguments(&self) -> (Vec<String>, Vec<Vec<String>>, Vec<Vec<String>>, bool) {
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
