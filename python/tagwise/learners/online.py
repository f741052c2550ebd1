"""Online learners: whole epochs run natively, decisions are taken between them.

Perceptron (Collins 2002), k-best MIRA (Crammer and Singer 2003; McDonald, Crammer and Pereira 2005), passive-aggressive
(Crammer et al. 2006), AROW (Crammer, Kulesza and Dredze 2009).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import tagwise._core as _core
from tagwise.corpus import schemes
from tagwise.errors import ParameterError
from tagwise.importing import function_at
from tagwise.learners.loop import Callback, Result, Stopping, run
from tagwise.optimizers.base import Vector

Learner = _core.Online | _core.HistoryOnline | _core.KernelPerceptron

#: What messages call a cost of one's own.
COST_FUNCTION = "the cost function"
#: Sequence costs by name, and the numbers each takes with their defaults.
COSTS: dict[str, tuple[float, ...]] = {
    "accuracy": (),
    "root": (),
    "zero_one": (),
    "f1": (10.0,),
    "precision_recall": (0.5,),
    "weighted_accuracy": (1.0, 1.0, 1.0),
}


@dataclass(frozen=True)
class Epoch:
    """State after an epoch: `value` is the number of wrong tokens met on the way."""

    w: Vector
    value: float
    gradient_norm: float
    evaluations: int


def parse_cost(cost: Any) -> tuple[Any, list[float]]:
    """A cost and its numbers: a name, a name with numbers such as "precision_recall(0.25)", or a function.

    A function may be named by its import path, module:function, as models name it.

    >>> parse_cost("weighted_accuracy(1, 1.4, 1)")
    ('weighted_accuracy', [1.0, 1.4, 1.0])
    """
    if callable(cost):
        return cost, []
    if isinstance(cost, str) and ":" in cost:
        return function_at(cost, COST_FUNCTION), []
    match = re.fullmatch(r"\s*(\w+)\s*(?:\(([^()]*)\))?\s*", str(cost))
    if match is None or match[1] not in COSTS:
        raise ParameterError(
            f"cost={cost!r}: expected one of {', '.join(COSTS)}, or a function of (gold, guess)"
        )
    default = COSTS[match[1]]
    try:
        given = [float(part) for part in (match[2] or "").split(",") if part.strip()]
    except ValueError:
        raise ParameterError(f"cost={cost!r}: what stands in brackets must be numbers") from None
    if len(given) > len(default):
        raise ParameterError(f"cost={cost!r}: {match[1]} takes {len(default)} numbers, got {len(given)}")
    return match[1], [*given, *default[len(given) :]]


def entity_table(labels: Sequence[str]) -> tuple[NDArray[np.uint16], NDArray[np.uint8]]:
    """How the core reads entities off label ids: the type of each label, and what lies between two labels."""
    split = [schemes.split_label(label)[1] for label in labels]
    types = sorted({kind for label, kind in zip(labels, split) if label != "O"})
    kind = [_core.OUTSIDE if label == "O" else types.index(t) for label, t in zip(labels, split)]
    between = [
        [sum(bit << i for i, bit in enumerate(schemes.boundary(a, b))) for b in labels]
        for a in (*labels, "O")
    ]
    return np.array(kind, dtype=np.uint16), np.array(between, dtype=np.uint8)


def named(function: Callable[[list[str], list[str]], float], labels: Sequence[str]) -> Callable[..., float]:
    """A cost of label names as one of label ids."""
    return lambda gold, guess: float(function([labels[y] for y in gold], [labels[y] for y in guess]))


def epochs(online: Learner, averaged: bool, after: Callable[[], None] | None = None) -> Iterator[Epoch]:
    """The starting point, then one state an epoch; `after` is called before each of these."""
    yield Epoch(online.weights(False), 0.0, 0.0, 0)
    while True:
        tally = online.epoch()
        if after is not None:
            after()
        yield Epoch(
            online.weights(averaged), float(tally["wrong_tokens"]), float(tally["updates"]), online.epochs
        )


def train(
    online: Learner,
    n_epochs: int,
    patience: int,
    *,
    averaged: bool,
    dev_score: Callable[[Vector], float] | None = None,
    callbacks: Iterable[Callback] = (),
) -> Result:
    """Run epochs; `objective` of the history is the number of wrong tokens, `gradient_norm` that of updates.

    Where the average and a dev score are asked for, `plain_dev_score` is that of the weights before averaging: both
    learning curves lie in the history.
    """
    stopping = Stopping(n_epochs, 0.0, 1, patience)
    plain: list[float] = []

    def score_plain() -> None:
        if averaged and dev_score is not None:
            plain.append(dev_score(online.weights(False)))

    result = run(epochs(online, averaged, score_plain), stopping, dev_score=dev_score, callbacks=callbacks)
    for entry, score in zip(result.history, plain):
        entry["plain_dev_score"] = score
    return result
