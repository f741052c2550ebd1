"""Models that grow: labels and features of more sentences are added to those of the model.

A few sentences change only the weights of their own features. `NarrowedTask` is a training set of these features, so
that an update takes time in proportion to the sentence. The changed weights are then copied back.
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
from tagwise.scores.lookback import LookbackWeights


def extended_labels(before: Model | None, labels: Sequence[str]) -> list[str]:
    """Return the labels of a model followed by the new ones."""
    return list(dict.fromkeys([*(() if before is None else before.labels), *labels]))


def extended_layout(
    before: Model | None, layout: _core.Layout
) -> tuple[_core.Layout, NDArray[np.int64] | None]:
    """Return the layout with the features of a model added, and the new indices of these (None without a model)."""
    if before is None:
        return layout, None
    check_explicit(before)
    both, places = before.scorer.layout.united(layout)
    return both, places


#: Arrays of a state of training with one number per feature.
ARRAYS = ("weights", "sums", "variance")


@dataclass(frozen=True)
class NarrowedTask:
    """Part of a training task with only the features of its sentences. See `_core.Layout.narrowed`.

    Online learners change no other weight, and the order of all sums is the same, so the weights are bit for bit those
    of training with the whole layout. `places` has the index of each feature in the whole layout, `size` its length.
    """

    layout: _core.Layout
    data: _core.Dataset
    places: NDArray[np.int64]
    size: int

    @staticmethod
    def of(layout: _core.Layout, data: _core.Dataset) -> NarrowedTask | None:
        """Return the part with the features of these sentences, or None if it has more than half of all features."""
        found = layout.narrowed(data)
        if found is None or 2 * len(found[0]) > len(layout):
            return None
        return NarrowedTask(*found, len(layout))

    def narrow_state(self, state: Mapping[str, Any]) -> dict[str, Any]:
        """Return the state of the part, taken from a state of the whole."""
        return {
            name: value[self.places] if name in ARRAYS and len(value) else value
            for name, value in state.items()
        }

    def widen_state(self, before: Mapping[str, Any], after: Mapping[str, Any], fill: float) -> dict[str, Any]:
        """Return the state of the whole: `before`, updated with the part. `fill` is the variance of new features."""
        out = dict(after)
        for name, start in zip(ARRAYS, (0.0, 0.0, fill)):
            if len(after[name]):
                known = before.get(name, ())
                out[name] = np.array(known) if len(known) else np.full(self.size, start)
                out[name][self.places] = after[name]
        return out


def weights_of(state: Mapping[str, Any], averaged: bool) -> NDArray[np.float64]:
    """Return the weights of a state, or their average w - u / t.

    u is the sum of all changes, each times the number of steps before it, and t is the number of steps.
    """
    weights: NDArray[np.float64] = state["weights"]
    return weights - state["sums"] / max(state["steps"], 1.0) if averaged else weights


def with_tuples(
    data: _core.Dataset, lookback: LookbackWeights | None, before: Sequence[str], labels: Sequence[str]
) -> _core.Dataset:
    """Return the gold labels of `data` followed by the label tuples that a model has weights for, as extra sentences.

    The features of orders 2 and 3 are the tuples that occur in gold labels. The extra sentences have no attributes.
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
