"""What optimisers take and give."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tagwise.scores.protocols import Vector as Vector

#: objective(w, gradient) -> value, penalty included; the gradient is written in place.
Evaluate = Callable[[Vector, Vector], float]


#: What an optimiser or a learner can go on from: arrays, numbers, texts, None, and lists and dicts of these.
State = dict[str, Any]


def relative_gap(primal: float, dual: float) -> float:
    """(primal - dual) / primal: how far, at most, the objective is from its minimum.

    >>> relative_gap(10.0, 9.5)
    0.05
    """
    return max(primal - dual, 0.0) / primal if primal > 0.0 else 0.0


@dataclass(frozen=True)
class Step:
    """State after an iteration of an optimiser or a learner. `w` is its own array: copy it to keep it."""

    w: Vector
    value: float
    gradient_norm: float
    evaluations: int  # of the objective, since the start
    #: What to go on from, to the bit, where the one who yields was told to `keep` it; until the next step is asked for.
    state: Callable[[], State] | None = field(default=None, repr=False, compare=False)
    step: float = 0.0  # how far along its direction the last line search went, where there was one
    dual: float | None = (
        None  # no objective is below this, where that is known; the gradient then need not be
    )

    @property
    def gap(self) -> float:
        """How far the weights may be from the optimum, relatively; infinite where nothing bounds it."""
        return math.inf if self.dual is None else relative_gap(self.value, self.dual)
