"""Instances of a trainer, with names numbered by first appearance, and their features.

A feature (attribute, label) or (label, label) is kept if minfreq <= the sum of its values over the training set.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import tagwise._core as _core
from tagwise.compat.pycrfsuite.errors import ItemError
from tagwise.compat.pycrfsuite.items import flat_sequence, name_of
from tagwise.dataset.layout import layout_of

Ids = NDArray[np.int64]


class Instances:
    """Instances that were appended to a trainer."""

    def __init__(self) -> None:
        self.engine = _core.CrfsuiteInstances()

    def append(self, xseq: Any, yseq: Iterable[str | bytes], group: int) -> None:
        """Add a sequence unless it is empty. Python converts the types that the core does not read itself."""
        if self.engine.append(xseq, yseq, group):
            return
        names = [_label(y) for y in yseq]
        items = flat_sequence(xseq)
        if len(items) != len(names):
            raise ValueError(
                f"The numbers of items and labels differ: |x| = {len(items)}, |y| = {len(names)}"
            )
        _check_finite(items)
        self.engine.append_pairs(items, names, group)


def _label(y: Any) -> str:
    if not isinstance(y, (str, bytes)):
        raise TypeError(f"expected a label (str or bytes), found {type(y).__name__} {y!r}")
    return name_of(y)


def _check_finite(items: Sequence[Sequence[tuple[str, float]]]) -> None:
    for t, item in enumerate(items):
        for name, value in item:
            if not np.isfinite(value):
                raise ItemError(f"item {t}, attribute {name!r}: the value {value} is not finite. Remove it")


@dataclass(frozen=True)
class FeatureCodes:
    """Features of a training set: codes of state features (attribute * L + label) and of transitions."""

    node: Ids
    edge: Ids
    n_attributes: int
    n_labels: int
    cut: int  # number of features removed because their sum is below 0 and minfreq is 0

    def __len__(self) -> int:
        return len(self.node) + len(self.edge)

    def layout(self) -> _core.Layout:
        """Return the layout of their weights: state features, then transitions, each in ascending order."""
        nothing = np.zeros(0, np.int64)
        codes = [self.node, self.edge, nothing, nothing, nothing]
        return layout_of(self.n_attributes, self.n_labels, codes, pairs=False)
