//! The lists of some sentences' tokens, in order, as one thread reads them.

use super::{At, CellPlaces, RareCell, TokenCells, GROUP};
use crate::dataset::layout::Layout;
use crate::error::{Error, Result};
use crate::machine::simd::WIDTH;
use std::ops::Range;

/// As in `TokenCells`, places counted from the first of these.
#[derive(Default)]
pub(super) struct Lists {
    pub at: Vec<At>,    // [tokens]
    pub spans: Vec<At>, // [sentences]
    pub rows: Vec<u32>, // first lanes, in whole groups
    pub row_values: Vec<f32>,
    pub rare: Vec<RareCell>,
    pub rare_values: Vec<f32>,
    pub pair_ptr: Vec<usize>, // [tokens] where each one's end
    pub pairs: Vec<(u32, u32)>,
    pub pair_values: Vec<f32>,
}

impl Lists {
    pub fn read(of: &TokenCells, layout: &Layout, cells: &CellPlaces, sentences: Range<usize>) -> Result<Lists> {
        let (data, wide) = (&*of.data, cells.wide as u32);
        let valued = !data.node.csr().values.is_empty();
        let mut out = Lists::default();
        let mut here: [Vec<(u32, f32)>; 2] = Default::default(); // of a token: narrow rows, wide ones
        for i in sentences {
            let (begins, ends) = data.ends(i);
            let (begin, end) = of.range(i as u32);
            if (end - begin).saturating_mul(of.width * WIDTH) > u32::MAX as usize {
                return Err(Error::Value("a sentence has more than 4 billion scores; cut it".into()));
            }
            out.spans.push(At { row: out.rows.len(), wide: out.rows.len(), rare: out.rare.len() });
            for t in begin..end {
                let mut at = At { row: out.rows.len(), wide: 0, rare: out.rare.len() };
                here.iter_mut().for_each(Vec::clear);
                out.token((of, layout, cells), begin, t, &mut here);
                for (row, is_there) in cells.boundaries.into_iter().zip([begins && t == begin, ends && t + 1 == end]) {
                    if is_there {
                        here[1].push((row, 1.0));
                    }
                }
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

    /// Single cells and pairs of a token; its rows into `here`.
    fn token(
        &mut self,
        (of, layout, cells): (&TokenCells, &Layout, &CellPlaces),
        begin: usize,
        token: usize,
        here: &mut [Vec<(u32, f32)>; 2],
    ) {
        let data = &*of.data;
        let place = ((token - begin) * of.width * WIDTH) as u32;
        let valued = !data.node.csr().values.is_empty();
        for (a, value) in data.node.csr().row(token) {
            let row = cells.row_of[a as usize];
            if row != u32::MAX {
                here[usize::from(row >= cells.wide as u32)].push((row, value));
                continue;
            }
            let (first, labels) = layout.node(a);
            for (i, &label) in labels.iter().enumerate() {
                self.rare.push(RareCell { cell: of.cell_of[first + i], at: place + u32::from(label) });
                if valued {
                    self.rare_values.push(value);
                }
            }
        }
        if data.has_edge_attributes() {
            for (a, value) in data.edge.row(token) {
                let (first, pairs) = layout.pairs(a);
                for (i, &pair) in pairs.iter().enumerate() {
                    self.pairs.push((of.cell_of[first + i], pair));
                    self.pair_values.push(value);
                }
            }
            self.pair_ptr.push(self.pairs.len());
        }
    }
}
