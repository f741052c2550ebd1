"""Layouts with room for more attributes and labels.

A layout's features are coded as numbers, block by block, each block ascending: node attribute * L + label, edges
label' * L + label, starts and ends label, pairs attribute * L^2 + label' * L + label (`rust/src/weights.rs`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import tagwise._core as _core

Codes = NDArray[np.int64]


def codes_of(layout: _core.Layout) -> list[Codes]:
    """Codes of a layout's features: node, edge, start, end, pair; together in the order of its weights."""
    arrays, n = layout.arrays(), layout.n_labels

    def rows(ptr: str, target: str, width: int) -> Codes:
        pointers = arrays[ptr].astype(np.int64)
        counts = pointers[1:] - pointers[:-1]
        owner = np.repeat(np.arange(len(counts), dtype=np.int64), counts)
        code: Codes = owner * width + arrays[target].astype(np.int64)
        return code

    plain = [arrays[name].astype(np.int64) for name in ("edges", "starts", "ends")]
    return [rows("node_ptr", "node_label", n), *plain, rows("pair_ptr", "pair", n * n)]


def layout_of(n_attributes: int, n_labels: int, codes: list[Codes], pairs: bool) -> _core.Layout:
    """The layout with these codes; `pairs`: with edge attributes, if only to come."""
    node, edges, starts, ends, pair = codes

    def pointers(code: Codes, width: int) -> NDArray[np.uint64]:
        counts = np.bincount(code // width, minlength=n_attributes)
        return np.concatenate([[0], np.cumsum(counts)]).astype(np.uint64)

    arrays = {
        "node_ptr": pointers(node, n_labels),
        "node_label": (node % n_labels).astype(np.uint16),
        "edges": edges.astype(np.uint32),
        "starts": starts.astype(np.uint16),
        "ends": ends.astype(np.uint16),
        "pair_ptr": pointers(pair, n_labels * n_labels) if pairs else np.zeros(0, np.uint64),
        "pair": (pair % (n_labels * n_labels)).astype(np.uint32),
    }
    return _core.Layout.from_arrays(n_attributes, n_labels, arrays)


def united(old: _core.Layout, new: _core.Layout) -> tuple[_core.Layout, NDArray[np.int64]]:
    """The layout with the features of both, and the place of each old feature in it.

    The new layout has the old one's attributes and labels under the same numbers, and may have more.
    """
    before, n = old.n_labels, new.n_labels

    def recode(code: Codes, i: int) -> Codes:
        if i in (2, 3):
            return code
        label, rest = code % before, code // before
        if i == 4:
            label, rest = rest % before * n + label, rest // before
            return rest * (n * n) + label
        return rest * n + label

    known = [recode(code, i) for i, code in enumerate(codes_of(old))]
    both = [np.union1d(a, b) for a, b in zip(known, codes_of(new))]
    pairs = any(len(layout.arrays()["pair_ptr"]) for layout in (old, new))
    places, at = [], 0
    for a, code in zip(known, both):
        places.append(at + np.searchsorted(code, a))
        at += len(code)
    return layout_of(new.n_attributes, n, both, pairs), np.concatenate(places)
