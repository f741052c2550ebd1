"""Instances of a trainer: names numbered by first appearance, rows of numbers, and the features they give.

A feature (attribute, label) or (label, label) is kept where minfreq <= the sum of its values over the training set.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

import tagwise._core as _core
from tagwise.compat.pycrfsuite.errors import ItemError
from tagwise.compat.pycrfsuite.items import flat_sequence, is_plain_sequence, name_of
from tagwise.dataset.layout import layout_of

Ids = NDArray[np.int64]


@dataclass(frozen=True)
class Instance:
    """A sequence: row pointers [T + 1], attribute ids, their values (None: all 1), labels [T]."""

    ptr: Ids
    ids: Ids
    values: NDArray[np.float64] | None
    labels: Ids
    group: int

    def __len__(self) -> int:
        return len(self.labels)


class Instances:
    """What was appended to a trainer."""

    def __init__(self) -> None:
        self.vocabulary = _core.Vocabulary()
        self.labels: dict[str, int] = {}
        self.rows: list[Instance] = []

    def append(self, xseq: Any, yseq: Iterable[str | bytes], group: int) -> None:
        """One more sequence; an empty one is dropped."""
        names = [_label(y) for y in yseq]
        plain = is_plain_sequence(xseq)
        items = xseq if plain else flat_sequence(xseq)
        if len(items) != len(names):
            raise ValueError(
                f"The numbers of items and labels differ: |x| = {len(items)}, |y| = {len(names)}"
            )
        if not names:
            return
        values = None
        rows = items
        if not plain:
            rows = [[name for name, _ in item] for item in items]
            every = np.array([value for item in items for _, value in item], np.float64)
            if not np.isfinite(every).all():
                _refuse_value(items)
            values = None if (every == 1.0).all() else every
        ptr, ids, _ = _core.encode_attributes(self.vocabulary, [rows]).node()
        labels = np.array([self.labels.setdefault(name, len(self.labels)) for name in names], np.int64)
        self.rows.append(Instance(ptr.astype(np.int64), ids.astype(np.int64), values, labels, group))

    def chosen(self, holdout: int, inside: bool) -> list[Instance]:
        """The instances to train on, or those of the holdout group."""
        return [row for row in self.rows if (holdout >= 0 and row.group == holdout) == inside]


def _label(y: Any) -> str:
    if not isinstance(y, (str, bytes)):
        raise TypeError(f"expected a label (str or bytes), found {type(y).__name__} {y!r}")
    return name_of(y)


def _refuse_value(items: Sequence[Sequence[tuple[str, float]]]) -> None:
    for t, item in enumerate(items):
        for name, value in item:
            if not np.isfinite(value):
                raise ItemError(
                    f"item {t}, attribute {name!r}: the value {value} is not finite; leave it out"
                )


@dataclass(frozen=True)
class Features:
    """The features of a training set: codes of state features (attribute * L + label) and of transitions."""

    node: Ids
    edge: Ids
    n_attributes: int
    n_labels: int
    cut: int  # how many were left out because their sum is below 0 and minfreq is 0

    def __len__(self) -> int:
        return len(self.node) + len(self.edge)

    def layout(self) -> _core.Layout:
        """Where their weights lie: state features first, each kind ascending."""
        nothing = np.zeros(0, np.int64)
        codes = [self.node, self.edge, nothing, nothing, nothing]
        return layout_of(self.n_attributes, self.n_labels, codes, pairs=False)


def _kept(codes: Ids, values: NDArray[np.float64], least: float) -> tuple[Ids, int]:
    found, at = np.unique(codes, return_inverse=True)
    sums = np.bincount(at, values, minlength=len(found))
    keep = least <= sums
    return found[keep], int(((sums < 0.0) & ~keep).sum())


def features_of(
    rows: Sequence[Instance], n_attributes: int, n_labels: int, least: float, states: bool, transitions: bool
) -> Features:
    """The features of training instances; states, transitions: those that do not occur too, with a sum of 0."""
    nothing, none = np.zeros(0, np.int64), np.zeros(0)
    node = [row.ids * n_labels + np.repeat(row.labels, np.diff(row.ptr)) for row in rows]
    values = [np.ones(len(row.ids)) if row.values is None else row.values for row in rows]
    edge = [row.labels[:-1] * n_labels + row.labels[1:] for row in rows]
    pairs = np.concatenate([nothing, *edge])
    ones = np.ones(len(pairs))
    if states and rows:
        used = np.unique(np.concatenate([row.ids for row in rows]))
        node.append((used[:, None] * n_labels + np.arange(n_labels)).ravel())
        values.append(np.zeros(len(node[-1])))
    if transitions:
        pairs = np.concatenate([pairs, np.arange(n_labels * n_labels)])
        ones = np.concatenate([ones, np.zeros(n_labels * n_labels)])
    kept, cut = _kept(np.concatenate([nothing, *node]), np.concatenate([none, *values]), least)
    edges, _ = _kept(pairs, ones, least)
    return Features(kept, edges, n_attributes, n_labels, cut if least <= 0.0 else 0)


def dataset_of(vocabulary: _core.Vocabulary, rows: Sequence[Instance], texts: NDArray[Any]) -> _core.Dataset:
    """The instances as the engine has them; vocabulary: locked; texts: its texts, an array of objects."""
    sentences = []
    for row in rows:
        named = texts[row.ids].tolist()
        if row.values is not None:
            named = list(zip(named, row.values.tolist()))
        bounds = row.ptr.tolist()
        sentences.append([named[a:b] for a, b in pairwise(bounds)])
    data = _core.encode_attributes(vocabulary, sentences)
    gold = np.concatenate([np.zeros(0, np.int64), *(row.labels for row in rows)])
    return data.with_gold(gold.astype(np.uint16))


__all__ = ["Features", "Instance", "Instances", "dataset_of", "features_of"]
