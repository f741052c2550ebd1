//! CRF++ template files: `U05:%x[-1,0]/%x[0,0]`, `B`, `B01:%x[0,0]`, `# comments`.
//!
//! The text before the first macro is part of the attribute, so lines with equal text share attributes (bag of
//! words in CRF++). Outside of the sentence a value is _B-1, _B+1, ... A `B` line without a macro requests label
//! bigrams, which every model has, and creates no attribute.

use crate::error::{Error, Result};
use crate::features::rule::{Atom, Draft};

fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let numbered = text.lines().enumerate().map(|(i, line)| (i + 1, line.trim()));
    numbered.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
}

/// Return whether the text is a CRF++ template: all lines start with U or B, and one has a macro.
pub fn recognise(text: &str) -> bool {
    text.contains("%x[") && lines(text).all(|(_, line)| line.starts_with(['U', 'B']))
}

pub(crate) fn parse(text: &str, columns: &[String]) -> Result<Vec<Draft>> {
    let mut drafts = Vec::new();
    for (number, line) in lines(text) {
        let edge = line.starts_with('B');
        let (pieces, parts) = split(line, number, columns)?;
        if !(edge && parts.is_empty()) {
            drafts.push(Draft { parts, pieces, edge, pad: true, first: false, last: false });
        }
    }
    Ok(drafts)
}

type Split = (Vec<String>, Vec<(Atom, isize, bool)>);

/// Split a line into literal pieces and macros.
fn split(line: &str, number: usize, columns: &[String]) -> Result<Split> {
    let bad = |what: String| Error::Template(format!("line {number}: {what}"));
    let (mut pieces, mut parts) = (Vec::new(), Vec::new());
    let mut rest = line;
    let mut piece = String::new();
    while let Some(at) = rest.find('%') {
        piece.push_str(&rest[..at]);
        let inner = rest[at..].strip_prefix("%x[").and_then(|r| r.split_once(']'));
        let (inner, after) = inner
            .ok_or_else(|| bad(format!("expected %x[row,column] at {:?}; only the %x macro is known", &rest[at..])))?;
        let position = inner
            .split_once(',')
            .and_then(|(row, column)| Some((row.trim().parse::<i16>().ok()?, column.trim().parse::<usize>().ok()?)));
        let (row, column) =
            position.ok_or_else(|| bad(format!("%x[{inner}] is not %x[row,column] with two whole numbers")))?;
        if column >= columns.len() {
            return Err(bad(format!(
                "%x[{inner}] asks for column {column}, but there are {} ({}), counted from 0",
                columns.len(),
                columns.join(", ")
            )));
        }
        pieces.push(std::mem::take(&mut piece));
        parts.push((Atom { column, functions: Vec::new() }, isize::from(row), false));
        rest = after;
    }
    piece.push_str(rest);
    pieces.push(piece);
    Ok((pieces, parts))
}
