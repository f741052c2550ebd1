"""A model that grows: its labels and features stay, those of more sentences are laid out among them.

What a few sentences change are weights of features that they see. `Part` is a training set of these alone, so that a
step on one sentence costs what the sentence does, and what it changed goes back into the whole.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

import tagwise._core as _core
from tagwise.model.model import Model, check_explicit
from tagwise.scores.lookback import Lookback


def joined(before: Model | None, labels: Sequence[str]) -> list[str]:
    """The labels of a model and, behind them, those that are new."""
    return list(dict.fromkeys([*(() if before is None else before.labels), *labels]))


def grown(before: Model | None, layout: _core.Layout) -> tuple[_core.Layout, NDArray[np.int64] | None]:
    """The layout with the features of a model too, and the place of each of these; a layout as it is without one."""
    if before is None:
        return layout, None
    check_explicit(before)
    both, places = before.scorer.layout.united(layout)
    return both, places


#: Arrays of a state of training that have a number a feature.
ARRAYS = ("weights", "sums", "variance")


@dataclass(frozen=True)
class Part:
    """The part of a training task that its sentences see: see `_core.Layout.narrowed`.

    Online learners change no other weight, and what they add up stands in the same order: the weights are to the bit
    those of training with the whole layout. `size`: features of the whole.
    """

    layout: _core.Layout
    data: _core.Dataset
    places: NDArray[np.int64]
    size: int

    @staticmethod
    def of(layout: _core.Layout, data: _core.Dataset) -> Part | None:
        """The part that these sentences see; None where it is no smaller than half of the whole."""
        found = layout.narrowed(data)
        if found is None or 2 * len(found[0]) > len(layout):
            return None
        return Part(*found, len(layout))

    def inside(self, state: Mapping[str, Any]) -> dict[str, Any]:
        """A state of the whole as one of the part."""
        return {
            name: value[self.places] if name in ARRAYS and len(value) else value
            for name, value in state.items()
        }

    def outside(self, before: Mapping[str, Any], after: Mapping[str, Any], fill: float) -> dict[str, Any]:
        """The state of the whole: as it was before, with the part as it is now; `fill`: a variance where none was."""
        out = dict(after)
        for name, start in zip(ARRAYS, (0.0, 0.0, fill)):
            if len(after[name]):
                known = before.get(name, ())
                out[name] = np.array(known) if len(known) else np.full(self.size, start)
                out[name][self.places] = after[name]
        return out


def weights_of(state: Mapping[str, Any], averaged: bool) -> NDArray[np.float64]:
    """The weights of a state, or their average: w - u / t for the sum u of changes times the steps before, t steps."""
    weights: NDArray[np.float64] = state["weights"]
    return weights - state["sums"] / max(state["steps"], 1.0) if averaged else weights


def with_tuples(
    data: _core.Dataset, lookback: Lookback | None, before: Sequence[str], labels: Sequence[str]
) -> _core.Dataset:
    """The gold labels of `data` and, as sentences of their own, the label tuples that a model has weights of.

    The features of a chain of order 2 or 3 are the tuples that gold labels have; attributes are left out.
    """
    if lookback is None or not lookback.tuples:
        return data
    number = {label: y for y, label in enumerate(labels)}
    to_new = np.array([number[label] for label in before], dtype=np.uint16)
    offsets = data.offsets.tolist()
    lengths, gold = [end - begin for begin, end in pairwise(offsets)], [data.gold]
    for name, table in lookback.named_tables(len(before)).items():
        if name[0] == "tuple":
            found = np.argwhere(table)
            lengths += [found.shape[1]] * len(found)
            gold.append(to_new[found].ravel())
    bare = _core.encode_attributes(_core.Vocabulary(), [[[]] * n for n in lengths])
    return bare.with_gold(np.concatenate(gold))
