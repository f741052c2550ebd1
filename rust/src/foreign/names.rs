//! Attributes of sequences by name, before they are numbered.

/// Concatenated names and values of the items of sequences. If `values` is empty, all values are 1.
#[derive(Clone, Debug, Default)]
pub struct Names {
    pub bytes: Vec<u8>,
    pub ends: Vec<usize>, // end of each name
    pub values: Vec<f64>,
    pub items: Vec<usize>, // end of the names of each item
}

impl Names {
    pub fn clear(&mut self) {
        self.truncate_to(0, 0);
    }

    /// Truncate to the first `items` items, which have `names` names.
    pub fn truncate_to(&mut self, items: usize, names: usize) {
        self.items.truncate(items);
        self.ends.truncate(names);
        self.values.truncate(names);
        self.bytes.truncate(self.ends.last().copied().unwrap_or(0));
    }

    /// End the name whose bytes were appended last.
    #[inline]
    pub fn end(&mut self, value: f64) {
        if value != 1.0 && self.values.is_empty() {
            self.values = vec![1.0; self.ends.len()];
        }
        self.ends.push(self.bytes.len());
        if value != 1.0 || !self.values.is_empty() {
            self.values.push(value);
        }
    }

    pub fn end_item(&mut self) {
        self.items.push(self.ends.len());
    }

    #[inline(always)]
    pub fn name(&self, i: usize) -> &[u8] {
        let begin = if i == 0 { 0 } else { self.ends[i - 1] };
        &self.bytes[begin..self.ends[i]]
    }

    #[inline(always)]
    pub fn value(&self, i: usize) -> f64 {
        self.values.get(i).copied().unwrap_or(1.0)
    }
}
