"""What optimisers take and give."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tagwise.scores.protocols import Vector as Vector

#: objective(w, gradient) -> value, penalty included; the gradient is written in place.
Evaluate = Callable[[Vector, Vector], float]


@dataclass(frozen=True)
class Step:
    """State after an iteration of an optimiser or a learner. `w` is its own array: copy it to keep it."""

    w: Vector
    value: float
    gradient_norm: float
    evaluations: int  # of the objective, since the start
