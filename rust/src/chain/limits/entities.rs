//! Conversion of label ids to spans.

use crate::error::{Error, Result};

/// Lookup tables for reading entities from label ids.
#[derive(Clone, Debug, Default)]
pub struct Entities {
    pub kind: Vec<u16>,    // [L] type of each label, `OUTSIDE` if it belongs to none
    pub boundary: Vec<u8>, // [L + 1, L] bit 0: an entity ends between two labels, bit 1: one begins, row L: at the start
}

/// Type of a label outside all entities.
pub const OUTSIDE: u16 = u16::MAX;

/// (type, first token, one past the last)
pub type Span = (u16, u32, u32);

impl Entities {
    pub fn new(kind: Vec<u16>, boundary: Vec<u8>) -> Result<Entities> {
        if boundary.len() != (kind.len() + 1) * kind.len() {
            return Err(Error::Value(format!(
                "boundaries need {} by {} entries, got {}",
                kind.len() + 1,
                kind.len(),
                boundary.len()
            )));
        }
        Ok(Entities { kind, boundary })
    }

    pub fn outside(&self, label: u16) -> bool {
        self.kind[label as usize] == OUTSIDE
    }

    pub fn spans(&self, labels: &[u16], spans: &mut Vec<Span>) {
        spans.clear();
        let l = self.kind.len();
        let (mut open, mut before) = (None, l);
        for (t, &y) in labels.iter().enumerate() {
            let between = self.boundary[before * l + y as usize];
            before = y as usize;
            if between != 0 {
                if let Some((kind, begin)) = open.take() {
                    spans.push((kind, begin, t as u32));
                }
            }
            if between & 2 != 0 {
                open = Some((self.kind[y as usize], t as u32));
            }
        }
        if let Some((kind, begin)) = open {
            spans.push((kind, begin, labels.len() as u32));
        }
    }
}
