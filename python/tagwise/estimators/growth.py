"""A model that grows: its labels and features stay where they are, those of more sentences stand behind them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

import tagwise._core as _core
from tagwise.dataset.layout import united
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
    return united(before.scorer.layout, layout)


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
