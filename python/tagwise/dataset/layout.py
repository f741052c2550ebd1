"""The one Python file that knows where weights lie.

A layout's features are coded as numbers, block by block, each block ascending: node attribute * L + label, edges
label' * L + label, starts and ends label, pairs attribute * L^2 + label' * L + label. The weights of a model lie in
this order: the five blocks one after the other (the core's own account: `layout.rs`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import tagwise._core as _core

Codes = NDArray[np.int64]


class Blocks(NamedTuple):
    """Where each kind of feature lies among the weights."""

    node: slice
    edge: slice
    start: slice
    end: slice
    pair: slice


class Named(NamedTuple):
    """A layout with the texts of its attributes and labels."""

    layout: _core.Layout
    vocabulary: _core.Vocabulary
    labels: Sequence[str]


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


def layout_of(n_attributes: int, n_labels: int, codes: Sequence[Codes], pairs: bool) -> _core.Layout:
    """The layout with these codes; `pairs`: with edge attributes, if only to come."""
    node, edges, starts, ends, pair = codes

    def rows(code: Codes, width: int) -> tuple[NDArray[np.uint64], Codes]:
        """Pointers of the attributes, and the rest of each code: one division, which NumPy has in lanes, not two."""
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
    """Whether edge attributes have a place, if only to come."""
    return len(layout.arrays()["pair_ptr"]) > 0


def blocks_of(layout: _core.Layout) -> Blocks:
    """The five blocks of a layout's weights."""
    arrays = layout.arrays()
    ends = np.cumsum([layout.n_node, *(len(arrays[name]) for name in ("edges", "starts", "ends", "pair"))])
    begins = [0, *ends[:-1].tolist()]
    return Blocks(*(slice(begin, end) for begin, end in zip(begins, ends.tolist())))


def node_attributes(layout: _core.Layout) -> Codes:
    """The attribute of every node feature."""
    return codes_of(layout)[0] // layout.n_labels


# --- other layouts from one ---------------------------------------------------------------------------------


def dense_layout(n_attributes: int, n_labels: int, start_end: bool) -> _core.Layout:
    """Every attribute with every label and every pair of labels: smoothed probabilities are nowhere zero."""
    nothing = np.zeros(0, dtype=np.int64)
    border = np.arange(n_labels) if start_end else nothing
    every = [np.arange(n_attributes * n_labels), np.arange(n_labels * n_labels), border, border, nothing]
    return layout_of(n_attributes, n_labels, every, pairs=False)


def step_layout(layout: _core.Layout) -> _core.Layout:
    """The features of a chain as those of its steps: label pairs, starts and ends become attributes of one token.

    Attributes A + y' (behind label y'), A + L (first) and A + L + 1 (last) follow the A of the model, so the features
    lie in the same order, and one weight vector serves both.
    """
    n, labels = layout.n_attributes, layout.n_labels
    node, edges, starts, ends, _ = codes_of(layout)
    behind = [n * labels + edges, (n + labels) * labels + starts, (n + labels + 1) * labels + ends]
    nothing = np.zeros(0, dtype=np.int64)
    codes = [np.concatenate([node, *behind]), nothing, nothing, nothing, nothing]
    return layout_of(n + labels + 2, labels, codes, pairs=False)


def without_nodes(layout: _core.Layout) -> _core.Layout:
    """The layout of transitions, starts and ends alone, over the same attributes."""
    codes = [np.zeros(0, dtype=np.int64), *codes_of(layout)[1:]]
    return layout_of(layout.n_attributes, layout.n_labels, codes, has_pairs(layout))


def kept(layout: _core.Layout, keep: NDArray[np.bool_]) -> tuple[_core.Layout, NDArray[np.bool_]]:
    """The layout with the features of `keep` alone, and which attributes it still has; others lose their number."""
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


def carried(old: Named, weights: NDArray[np.float32], new: Named) -> NDArray[np.float64]:
    """Weights of an old layout at the places of a new one; features that it lacks get 0. For warm starts."""
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
        """A new label in the old numbering, or -1."""
        found: Codes = to_old[code]
        return found

    def pair(code: Codes) -> Codes:
        """A new label pair in the old numbering, or -1."""
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


def feature_names(named: Named, features: Sequence[int]) -> dict[int, tuple[str, str, str]]:
    """(kind, attribute, label) of some features; the label before stands for the attribute of an edge.

    Not for pairs, which have an attribute and two labels.
    """
    labels, codes, blocks = named.labels, codes_of(named.layout), blocks_of(named.layout)
    out: dict[int, tuple[str, str, str]] = {}
    for k in sorted(set(features)):
        kind = next(i for i, block in enumerate(blocks) if k < block.stop)
        first, label = divmod(int(codes[kind][k - blocks[kind].start]), len(labels))
        before = named.vocabulary.text(first) if kind == 0 else labels[first] if kind == 1 else ""
        out[k] = (("node", "edge", "start", "end")[kind], before, labels[label])
    return out
