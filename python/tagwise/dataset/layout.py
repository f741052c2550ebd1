"""Positions of features in the weight vector.

Each feature of a layout has an integer code. The weights of a model are in five consecutive blocks (see `layout.rs`),
each in ascending order of its codes:

    node    attribute * L + label
    edge    label' * L + label
    start   label
    end     label
    pair    attribute * L^2 + label' * L + label

This is the only Python module that depends on this order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import tagwise._core as _core

Codes = NDArray[np.int64]


class Blocks(NamedTuple):
    """Slices of the weight vector, one per kind of feature."""

    node: slice
    edge: slice
    start: slice
    end: slice
    pair: slice


class NamedLayout(NamedTuple):
    """A layout with the names of its attributes and labels."""

    layout: _core.Layout
    vocabulary: _core.Vocabulary
    labels: Sequence[str]


def codes_of(layout: _core.Layout) -> list[Codes]:
    """Return the feature codes of each block: node, edge, start, end, pair."""
    arrays, n = layout.arrays(), layout.n_labels

    def rows(ptr: str, target: str, width: int) -> Codes:
        pointers = arrays[ptr].astype(np.int64)
        counts = pointers[1:] - pointers[:-1]
        owner = np.repeat(np.arange(len(counts), dtype=np.int64), counts)
        code: Codes = owner * width + arrays[target].astype(np.int64)
        return code

    plain = [arrays[name].astype(np.int64) for name in ("edges", "starts", "ends")]
    return [rows("node_ptr", "node_label", n), *plain, rows("pair_ptr", "pair", n * n)]


def layout_of(n_attributes: int, n_labels: int, codes: Sequence[Codes], pairs: bool) -> _core.Layout:
    """Return the layout with these feature codes. `pairs` reserves edge attributes even if there are none yet."""
    node, edges, starts, ends, pair = codes

    def rows(code: Codes, width: int) -> tuple[NDArray[np.uint64], Codes]:
        """Return row pointers and the remainder of each code. One vectorized division is faster than divmod."""
        owner = code // width
        out = np.zeros(n_attributes + 1, dtype=np.uint64)
        np.cumsum(np.bincount(owner, minlength=n_attributes), out=out[1:])
        return out, code - owner * width

    node_ptr, node_label = rows(node, n_labels)
    pair_ptr, pair_labels = rows(pair, n_labels * n_labels) if pairs else (np.zeros(0, np.uint64), pair)
    arrays = {
        "node_ptr": node_ptr,
        "node_label": node_label.astype(np.uint16),
        "edges": edges.astype(np.uint32),
        "starts": starts.astype(np.uint16),
        "ends": ends.astype(np.uint16),
        "pair_ptr": pair_ptr,
        "pair": pair_labels.astype(np.uint32),
    }
    return _core.Layout.from_arrays(n_attributes, n_labels, arrays)


def has_pairs(layout: _core.Layout) -> bool:
    """Return whether a layout supports edge attributes, even if it has none yet."""
    return len(layout.arrays()["pair_ptr"]) > 0


def blocks_of(layout: _core.Layout) -> Blocks:
    """Return the five blocks of the weight vector of a layout."""
    arrays = layout.arrays()
    ends = np.cumsum([layout.n_node, *(len(arrays[name]) for name in ("edges", "starts", "ends", "pair"))])
    begins = [0, *ends[:-1].tolist()]
    return Blocks(*(slice(begin, end) for begin, end in zip(begins, ends.tolist())))


def node_attributes(layout: _core.Layout) -> Codes:
    """Return the attribute of every node feature."""
    return codes_of(layout)[0] // layout.n_labels


# --- derived layouts ----------------------------------------------------------------------------------------


def dense_layout(n_attributes: int, n_labels: int, start_end: bool) -> _core.Layout:
    """Return the layout of all attribute-label and label pairs, for models whose smoothed probabilities are never 0."""
    empty = np.zeros(0, dtype=np.int64)
    border = np.arange(n_labels) if start_end else empty
    every = [np.arange(n_attributes * n_labels), np.arange(n_labels * n_labels), border, border, empty]
    return layout_of(n_attributes, n_labels, every, pairs=False)


def step_layout(layout: _core.Layout) -> _core.Layout:
    """Return the layout of per-token classifiers: label pairs, starts and ends become attributes of a token.

    Attributes A + y' (previous label y'), A + L (first token) and A + L + 1 (last token) follow the A attributes of the
    model. The order of the features does not change, so both layouts share a weight vector.
    """
    n, labels = layout.n_attributes, layout.n_labels
    node, edges, starts, ends, _ = codes_of(layout)
    other_codes = [n * labels + edges, (n + labels) * labels + starts, (n + labels + 1) * labels + ends]
    empty = np.zeros(0, dtype=np.int64)
    codes = [np.concatenate([node, *other_codes]), empty, empty, empty, empty]
    return layout_of(n + labels + 2, labels, codes, pairs=False)


def without_nodes(layout: _core.Layout) -> _core.Layout:
    """Return the layout without node features, over the same attributes."""
    codes = [np.zeros(0, dtype=np.int64), *codes_of(layout)[1:]]
    return layout_of(layout.n_attributes, layout.n_labels, codes, has_pairs(layout))


def kept(layout: _core.Layout, keep: NDArray[np.bool_]) -> tuple[_core.Layout, NDArray[np.bool_]]:
    """Return the layout with only the features in `keep`, and a mask of the attributes that remain.

    Remaining attributes are renumbered.
    """
    n, codes = layout.n_labels, codes_of(layout)
    left = [code[keep[block]] for code, block in zip(codes, blocks_of(layout))]
    used = np.zeros(layout.n_attributes, dtype=np.bool_)
    for i, width in ((0, n), (4, n * n)):
        used[left[i] // width] = True
    number = np.cumsum(used) - 1
    for i, width in ((0, n), (4, n * n)):
        left[i] = number[left[i] // width] * width + left[i] % width
    return layout_of(int(used.sum()), n, left, has_pairs(layout)), used


# --- weights by name ----------------------------------------------------------------------------------------


def transfer_weights(old: NamedLayout, weights: NDArray[np.float32], new: NamedLayout) -> NDArray[np.float64]:
    """Transfer weights from an old layout to a new one, for warm starts. Features that are new get weight 0."""
    n_old, n_new = len(old.labels), len(new.labels)
    label_of = {label: i for i, label in enumerate(old.labels)}
    to_old = np.array([label_of.get(label, -1) for label in new.labels], dtype=np.int64)
    old_keys, new_keys = old.vocabulary.arrays()[0], new.vocabulary.arrays()[0]
    if len(old_keys) and len(new_keys):
        order = np.argsort(old_keys, kind="stable")
        at = np.minimum(np.searchsorted(old_keys[order], new_keys), len(old_keys) - 1)
        attribute = np.where(old_keys[order][at] == new_keys, order[at].astype(np.int64), -1)
    else:
        attribute = np.full(len(new_keys), -1, dtype=np.int64)

    def label(code: Codes) -> Codes:
        """Return the old id of a new label, or -1."""
        found: Codes = to_old[code]
        return found

    def pair(code: Codes) -> Codes:
        """Return the old code of a new label pair, or -1."""
        begin, end = to_old[code // n_new], to_old[code % n_new]
        return np.where((begin >= 0) & (end >= 0), begin * n_old + end, -1)

    def conjoin(code: Codes, width: int, before: int, inner: Callable[[Codes], Codes]) -> Codes:
        owner, rest = attribute[code // width], inner(code % width)
        return np.where((owner >= 0) & (rest >= 0), owner * before + rest, -1)

    node, edges, starts, ends, pairs = codes_of(new.layout)
    wanted = [
        conjoin(node, n_new, n_old, label),
        pair(edges),
        label(starts),
        label(ends),
        conjoin(pairs, n_new * n_new, n_old * n_old, pair),
    ]
    out = [np.zeros(0)]
    for known, codes, block in zip(codes_of(old.layout), wanted, blocks_of(old.layout)):
        part, w = np.zeros(len(codes)), weights[block].astype(np.float64)
        if len(known) and len(codes):
            place = np.minimum(np.searchsorted(known, codes), len(known) - 1)
            found = (codes >= 0) & (known[place] == codes)
            part[found] = w[place[found]]
        out.append(part)
    return np.concatenate(out)


def feature_names(named: NamedLayout, features: Sequence[int]) -> dict[int, tuple[str, str, str]]:
    """Return (kind, attribute, label) of some features. An edge has the previous label in place of an attribute.

    Pair features, which have an attribute and two labels, are not supported.
    """
    labels, codes, blocks = named.labels, codes_of(named.layout), blocks_of(named.layout)
    out: dict[int, tuple[str, str, str]] = {}
    for k in sorted(set(features)):
        kind = next(i for i, block in enumerate(blocks) if k < block.stop)
        first, label = divmod(int(codes[kind][k - blocks[kind].start]), len(labels))
        before = named.vocabulary.text(first) if kind == 0 else labels[first] if kind == 1 else ""
        out[k] = (("node", "edge", "start", "end")[kind], before, labels[label])
    return out
