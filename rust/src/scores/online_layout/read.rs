//! Lists of the tokens of some sentences, in order, as read by one thread.

use super::tokens::{At, RareCell, GROUP};
use super::{Cells, Places};
use crate::error::{Error, Result};
use crate::machine::simd::WIDTH;
use std::ops::Range;

/// Lists as in `TokenCells`, with indices relative to the first of these.
#[derive(Default)]
pub(super) struct TokenLists {
    pub at: Vec<At>,    // [tokens]
    pub spans: Vec<At>, // [sentences]
    pub rows: Vec<u32>, // first lanes, in whole groups
    pub row_values: Vec<f32>,
    pub rare: Vec<RareCell>,
    pub rare_values: Vec<f32>,
    pub pair_ptr: Vec<usize>, // [tokens] end of each token's pairs
    pub pairs: Vec<(u32, u32)>,
    pub pair_values: Vec<f32>,
}

impl TokenLists {
    pub fn read(of: &Cells, places: &Places<'_>, sentences: Range<usize>) -> Result<TokenLists> {
        let (data, wide) = (&*of.data, of.wide as u32);
        let valued = !data.node.csr().values.is_empty();
        let mut out = TokenLists::default();
        let mut here: [Vec<(u32, f32)>; 2] = Default::default(); // of a token: narrow rows, wide rows
        for i in sentences {
            let (begin, end) = of.range(i as u32);
            check_length(of, end - begin)?;
            out.spans.push(At { row: out.rows.len(), wide: out.rows.len(), rare: out.rare.len() });
            for t in 0..end - begin {
                let mut at = At { row: out.rows.len(), wide: 0, rare: out.rare.len() };
                here.iter_mut().for_each(Vec::clear);
                let place = (t * of.width * WIDTH) as u32;
                let row = |row: u32, value| here[usize::from(row >= wide)].push((row, value));
                places.each(of, i, t, row, |cell, label, value| {
                    out.rare.push(RareCell { cell, at: place + u32::from(label) });
                    if valued {
                        out.rare_values.push(value);
                    }
                });
                out.edge_features(of, places, begin + t);
                for (some, none) in here.iter_mut().zip([0, wide]) {
                    at.wide = out.rows.len();
                    some.resize(some.len().next_multiple_of(GROUP), (none, 0.0));
                    out.rows.extend(some.iter().map(|(row, _)| row));
                    if valued {
                        out.row_values.extend(some.iter().map(|(_, value)| value));
                    }
                }
                out.at.push(at);
            }
        }
        Ok(out)
    }

    /// Append the edge attributes of a token.
    fn edge_features(&mut self, of: &Cells, places: &Places<'_>, token: usize) {
        if !of.data.has_edge_attributes() {
            return;
        }
        for (a, value) in of.data.edge.row(token) {
            let (first, pairs) = places.layout.pairs(a);
            for (&cell, &pair) in of.cell_of[first..].iter().zip(pairs) {
                self.pairs.push((cell, pair));
                self.pair_values.push(value);
            }
        }
        self.pair_ptr.push(self.pairs.len());
    }
}

/// Reject a sentence whose places do not fit into four bytes.
pub(super) fn check_length(of: &Cells, tokens: usize) -> Result<()> {
    match tokens.saturating_mul(of.width * WIDTH) > u32::MAX as usize {
        true => Err(Error::Value("a sentence has more than 4 billion scores; cut it".into())),
        false => Ok(()),
    }
}
