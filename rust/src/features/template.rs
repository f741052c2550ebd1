//! Compiler of the template language, from text to rules. See docs/reference/templates.md. `parse` reads native templates,
//! `crfpp` those of CRF++.
//!
//! A rule is a list of atoms at offsets with literal text between them. An atom is (column, functions) and is shared by
//! all rules that use it. An attribute is identified by the literal pieces of its rule and the values of its atoms.
//! Each is hashed separately, so that no value can be mistaken for another split of the text, whatever characters it
//! contains.

use crate::error::{Error, Result};
use crate::features::rule::{Atom, Draft, Part, TemplateRule};
use crate::features::text::{apply, Function, TextScratch};
use crate::features::tokens::Tokens;
use crate::machine::system::hash::hash;
use std::collections::HashMap;
use std::sync::Arc;

/// Compiled template.
#[derive(Clone, Debug)]
pub struct Template {
    pub columns: Vec<String>,
    pub atoms: Vec<Atom>,
    pub rules: Vec<TemplateRule>,
}

/// Column that is a function of the text of another column. It is computed once per distinct text.
#[derive(Clone, Debug)]
pub struct Derived {
    pub name: String,
    pub column: usize,
    pub function: Function,
}

impl Template {
    /// Compile template text over named columns. CRF++ templates are recognized by their `%x[row,column]`.
    pub fn compile(text: &str, columns: &[String]) -> Result<Template> {
        Template::compile_derived(text, columns, &[])
    }

    /// Compile template text over named columns and columns derived from them.
    pub fn compile_derived(text: &str, columns: &[String], derived: &[Derived]) -> Result<Template> {
        if columns.is_empty() {
            return Err(Error::Template("a template needs at least one column to look at; name it".into()));
        }
        if let Some(wrong) = derived.iter().find(|d| d.column >= columns.len()) {
            return Err(Error::Template(format!(
                "{:?} is derived from column {}, which does not exist",
                wrong.name, wrong.column
            )));
        }
        let names: Vec<&String> = columns.iter().chain(derived.iter().map(|d| &d.name)).collect();
        for (i, name) in names.iter().enumerate() {
            if names[..i].contains(name) {
                return Err(Error::Template(format!("column {name:?} is named twice; give every column its own name")));
            }
        }
        let drafts = if crate::features::crfpp::recognise(text) {
            crate::features::crfpp::parse(text, columns)?
        } else {
            crate::features::parse::parse(text, columns, derived)?
        };
        let mut template = Template { columns: columns.to_vec(), atoms: Vec::new(), rules: Vec::new() };
        for draft in drafts {
            let rule = template.rule(draft);
            if !template.rules.contains(&rule) {
                template.rules.push(rule);
            }
        }
        if template.rules.is_empty() {
            return Err(Error::Template(
                "the template makes no attribute; write at least one line, for example word[0]".into(),
            ));
        }
        Ok(template)
    }

    fn rule(&mut self, draft: Draft) -> TemplateRule {
        let parts = draft
            .parts
            .into_iter()
            .map(|(atom, offset, test)| {
                let known = self.atoms.iter().position(|a| *a == atom);
                let atom = known.unwrap_or_else(|| {
                    self.atoms.push(atom);
                    self.atoms.len() - 1
                });
                Part { atom, offset, test }
            })
            .collect();
        let mut seed_bytes = vec![u8::from(draft.edge)];
        for piece in &draft.pieces {
            seed_bytes.extend_from_slice(&(piece.len() as u64).to_le_bytes());
            seed_bytes.extend_from_slice(piece.as_bytes());
        }
        TemplateRule {
            parts,
            seed: hash(&seed_bytes),
            pieces: draft.pieces,
            edge: draft.edge,
            pad: draft.pad,
            first: draft.first,
            last: draft.last,
        }
    }

    /// Return the lists of frequent texts, one per atom that needs one, in the order of the atoms. `None` if not yet
    /// learned.
    pub fn lists(&self) -> Vec<Option<Arc<[String]>>> {
        self.atoms.iter().filter_map(Atom::frequent).map(|(_, list)| list.texts.clone()).collect()
    }

    /// Return whether a list has not been learned yet.
    pub fn is_open(&self) -> bool {
        self.lists().iter().any(Option::is_none)
    }

    /// Return the template with previously learned lists.
    pub fn with_lists(mut self, lists: Vec<Vec<String>>) -> Result<Template> {
        let (wanted, found) = (self.lists().len(), lists.len());
        if wanted != found {
            return Err(Error::Template(format!(
                "the template asks for {wanted} lists of frequent texts, {found} are given; the model is damaged"
            )));
        }
        for (atom, mut texts) in self.atoms.iter_mut().filter(|a| a.frequent().is_some()).zip(lists) {
            texts.sort_unstable();
            atom.set_frequent(texts);
        }
        Ok(self)
    }

    /// Return the template with its lists learned from training tokens: for `column.functions.is_rare(n)?` the values
    /// of `column.functions` that occur at least n times.
    pub fn learn(&self, tokens: &Tokens) -> Template {
        let mut learned = self.clone();
        for atom in &mut learned.atoms {
            let Some((before, list)) = atom.frequent() else { continue };
            let column = &tokens.columns[atom.column];
            let mut count = vec![0usize; column.texts()];
            column.cells.iter().for_each(|&text| count[text as usize] += 1);
            let mut scratch = TextScratch::default();
            let mut value_counts: HashMap<String, usize> = HashMap::new();
            for (text, n) in count.into_iter().enumerate() {
                if let Some(value) = apply(before, column.text(text), &mut scratch) {
                    match value_counts.get_mut(value) {
                        Some(sum) => *sum += n,
                        None => drop(value_counts.insert(value.to_owned(), n)),
                    }
                }
            }
            let min_count = list.min_count;
            let mut texts: Vec<String> =
                value_counts.into_iter().filter(|&(_, n)| n >= min_count).map(|(t, _)| t).collect();
            texts.sort_unstable();
            atom.set_frequent(texts);
        }
        learned
    }

    /// Return whether a rule creates edge attributes.
    pub fn has_edges(&self) -> bool {
        self.rules.iter().any(|r| r.edge)
    }

    /// Return whether a column is used.
    pub fn uses(&self, column: usize) -> bool {
        self.atoms.iter().any(|a| a.column == column)
    }
}
