"""What optimisers take and give."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]

#: objective(w, gradient) -> value; the gradient is written in place.
Objective = Callable[[Vector, Vector], float]


@dataclass(frozen=True)
class Step:
    """State after an iteration. `w` is the optimiser's own array: copy it to keep it."""

    w: Vector
    value: float
    gradient_norm: float
    evaluations: int  # of the objective, since the start
