//! Layouts for incremental training: the union of two layouts, and the part of a layout that some sentences use.

use crate::dataset::csr::{Csr, CsrRef};
use crate::dataset::layout::{Layout, LayoutArrays};
use crate::dataset::Dataset;
use crate::error::{Error, Result};

/// Append the sorted union of `a` and `b`, both ascending, to `out`. Appends to `places` the position of each item of
/// `a` in `out`, plus `base`.
fn merge<T: Copy + Ord>(a: &[T], b: &[T], out: &mut Vec<T>, places: &mut Vec<i64>, base: usize) {
    let mut rest = b.iter().copied().peekable();
    for &x in a {
        while let Some(y) = rest.next_if(|&y| y < x) {
            out.push(y);
        }
        rest.next_if_eq(&x);
        places.push((base + out.len()) as i64);
        out.push(x);
    }
    out.extend(rest);
}

/// Return row `a` of flat rows, or an empty slice if it does not exist.
fn row<'a, T>(ptr: &[u64], items: &'a [T], a: usize) -> &'a [T] {
    match ptr.get(a + 1) {
        Some(&end) => &items[ptr[a] as usize..end as usize],
        None => &[],
    }
}

/// Return the layout with the features of both, and the position of each feature of `old` in it. `new` has the
/// attributes and labels of `old` under the same ids, and may have more.
pub fn united(old: &Layout, new: &Layout) -> Result<(Layout, Vec<i64>)> {
    if old.labels > new.labels || old.attributes > new.attributes {
        return Err(Error::Value(
            "a layout that grows keeps its attributes and labels; give the larger one last".into(),
        ));
    }
    let (before, labels) = (old.labels as u32, new.labels as u32);
    let remap = |&e: &u32| e / before * labels + e % before; // id of a label pair; preserves the order
    let mut out = LayoutArrays { labels: new.labels, attributes: new.attributes, ..LayoutArrays::default() };
    let mut places = Vec::with_capacity(old.len());
    let mut node_label = Vec::with_capacity(old.n_node() + new.n_node());
    let mut node_ptr = Vec::with_capacity(new.attributes + 1);
    node_ptr.push(0u64);
    for a in 0..new.attributes {
        let (known, fresh) = (row(&old.node_ptr, &old.node_label, a), row(&new.node_ptr, &new.node_label, a));
        merge(known, fresh, &mut node_label, &mut places, 0);
        node_ptr.push(node_label.len() as u64);
    }
    let mut at = node_label.len();
    let edges: Vec<u32> = old.edges.iter().map(remap).collect();
    merge(&edges, &new.edges, &mut out.edges, &mut places, at);
    at += out.edges.len();
    merge(&old.starts, &new.starts, &mut out.starts, &mut places, at);
    at += out.starts.len();
    merge(&old.ends, &new.ends, &mut out.ends, &mut places, at);
    at += out.ends.len();
    if !(old.pair_ptr.is_empty() && new.pair_ptr.is_empty()) {
        let (mut pair, mut pair_ptr) = (Vec::new(), vec![0u64]);
        for a in 0..new.attributes {
            let known: Vec<u32> = row(&old.pair_ptr, &old.pair, a).iter().map(remap).collect();
            merge(&known, row(&new.pair_ptr, &new.pair, a), &mut pair, &mut places, at);
            pair_ptr.push(pair.len() as u64);
        }
        (out.pair_ptr, out.pair) = (pair_ptr.into(), pair.into());
    }
    (out.node_ptr, out.node_label) = (node_ptr.into(), node_label.into());
    Ok((Layout::new(out)?, places))
}

/// Return the part of a layout that the sentences use: the features of their attributes, and all features of labels
/// alone. Also returns the sentences with attributes renumbered for the part, and the position of each feature of the
/// part in the whole layout. Attributes keep their order, so that sums over them have the same bits. Returns `None` if
/// tokens have vectors, whose attributes must stay consecutive.
pub fn narrowed(layout: &Layout, data: &Dataset) -> Result<Option<(Layout, Dataset, Vec<i64>)>> {
    if data.node.dense().is_some() {
        return Ok(None);
    }
    data.check_layout(layout.attributes)?;
    let node = data.node.csr();
    let mut used: Vec<u32> = node.ids.iter().chain(&data.edge.ids).copied().collect();
    used.sort_unstable();
    used.dedup();
    let mut out = LayoutArrays { labels: layout.labels, attributes: used.len(), ..LayoutArrays::default() };
    let (mut node_ptr, mut node_label, mut places) = (vec![0u64], Vec::new(), Vec::new());
    for &a in &used {
        let (first, labels) = layout.node(a);
        node_label.extend_from_slice(labels);
        node_ptr.push(node_label.len() as u64);
        places.extend((first..first + labels.len()).map(|k| k as i64));
    }
    (out.node_ptr, out.node_label) = (node_ptr.into(), node_label.into());
    (out.edges, out.starts, out.ends) = (layout.edges.clone(), layout.starts.clone(), layout.ends.clone());
    places.extend((layout.edge_at()..layout.pair_at()).map(|k| k as i64));
    if !layout.pair_ptr.is_empty() {
        let (mut pair_ptr, mut pair) = (vec![0u64], Vec::new());
        for &a in &used {
            let (first, pairs) = layout.pairs(a);
            pair.extend_from_slice(pairs);
            pair_ptr.push(pair.len() as u64);
            places.extend((first..first + pairs.len()).map(|k| k as i64));
        }
        (out.pair_ptr, out.pair) = (pair_ptr.into(), pair.into());
    }
    let renumbered = |rows: CsrRef<'_>| Csr {
        ptr: rows.ptr.to_vec(),
        ids: rows.ids.iter().map(|a| used.partition_point(|b| b < a) as u32).collect(),
        values: rows.values.to_vec(),
    };
    let part = Dataset {
        sentences: data.sentences.clone(),
        node: renumbered(node).into(),
        edge: renumbered(data.edge.view()),
        gold: data.gold.clone(),
        cuts: data.cuts.clone(),
    };
    Ok(Some((Layout::new(out)?, part, places)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::layout::Choice;

    fn data(rows: &[(&[u32], u16)]) -> Dataset {
        let mut node = Csr::default();
        for (ids, _) in rows {
            node.ids.extend_from_slice(ids);
            node.end_row();
        }
        let gold = rows.iter().map(|(_, y)| *y).collect();
        Dataset { sentences: vec![0, rows.len()], node: node.into(), gold, ..Dataset::default() }
    }

    /// (kind, attribute or previous label, label) of every feature.
    fn names(layout: &Layout) -> Vec<(u8, usize, usize)> {
        let mut out = Vec::new();
        for a in 0..layout.attributes {
            out.extend(layout.node(a as u32).1.iter().map(|&y| (0, a, y as usize)));
        }
        out.extend(layout.edges.iter().map(|&e| (1, e as usize / layout.labels, e as usize % layout.labels)));
        out.extend(layout.starts.iter().map(|&y| (2, 0, y as usize)));
        out.extend(layout.ends.iter().map(|&y| (3, 0, y as usize)));
        out
    }

    fn layouts() -> (Layout, Layout, Dataset) {
        let choice = Choice { all_pairs: false, start_end: true };
        let one = data(&[(&[0, 1, 4], 0), (&[1, 2], 1), (&[3], 0), (&[4], 1)]);
        let two = data(&[(&[1, 5], 2), (&[0, 6], 0), (&[1], 1)]);
        let old = Layout::build(&one, 5, 2, choice).unwrap();
        let new = Layout::build(&two, 7, 3, choice).unwrap();
        (old, new, two)
    }

    #[test]
    fn united_layouts_have_the_features_of_both_in_order() {
        let (old, new, _) = layouts();
        let (both, places) = united(&old, &new).unwrap();
        let (a, b, found) = (names(&old), names(&new), names(&both));
        let mut expected: Vec<_> = a.iter().chain(&b).copied().collect();
        expected.sort_unstable();
        expected.dedup();
        assert_eq!(found, expected);
        assert!(a.iter().zip(&places).all(|(name, &k)| found[k as usize] == *name));
        assert_eq!(places.len(), a.len());
        assert!(united(&new, &old).is_err());
    }

    #[test]
    fn narrowed_layouts_have_the_features_of_their_attributes() {
        let (old, new, two) = layouts();
        let (both, _) = united(&old, &new).unwrap();
        let (part, renumbered, places) = narrowed(&both, &two).unwrap().unwrap();
        let (all, part_names) = (names(&both), names(&part));
        let used = [0, 1, 5, 6];
        let expected: Vec<_> = all.iter().filter(|(kind, a, _)| *kind > 0 || used.contains(a)).collect();
        let found: Vec<_> = places.iter().map(|&k| &all[k as usize]).collect();
        assert_eq!(found, expected);
        let to_whole = |&(kind, a, y): &(u8, usize, usize)| (kind, if kind == 0 { used[a] } else { a }, y);
        assert!(part_names.iter().zip(&found).all(|(name, whole)| to_whole(name) == **whole));
        let ids: Vec<u32> = renumbered.node.csr().ids.iter().map(|&a| used[a as usize] as u32).collect();
        assert_eq!(ids, two.node.csr().ids);
    }
}
