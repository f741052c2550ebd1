"""What optimisers take and give."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tagwise._core import add_ridge, add_scaled, dot
from tagwise.optimizers.pairs import Pairs
from tagwise.scores.protocols import Vector as Vector

#: objective(w, gradient) -> value, penalty included; the gradient is written in place.
Evaluate = Callable[[Vector, Vector], float]


#: What an optimiser or a learner can go on from: arrays, numbers, texts, None, and lists and dicts of these.
State = dict[str, Any]


def relative_gap(primal: float, dual: float) -> float:
    """(primal - dual) / primal: how far, at most, the objective is from its minimum.

    Negative where rounding has put the bound above the objective: then it bounds nothing.

    >>> relative_gap(10.0, 9.5)
    0.05
    """
    return (primal - dual) / primal if primal > 0.0 else 0.0


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
    exact: bool = False  # the value is that of the weights in single precision, summed in double precision
    fresh: bool = False  # the value cannot be compared with those before: it is of another precision

    @property
    def gap(self) -> float:
        """How far the weights may be from the optimum, relatively; infinite where nothing bounds it."""
        return math.inf if self.dual is None else relative_gap(self.value, self.dual)


class Vectors(Protocol):
    """Who keeps the vectors of an optimiser and does their arithmetic. What it calls a vector is its own affair."""

    def held(self, w: Vector, /) -> Any:
        """A copy of a vector, where this one keeps them."""

    def host(self, w: Any, /) -> Vector:
        """A vector as NumPy's: its own array or a buffer of this one's."""

    def like(self, w: Any, /) -> Any:
        """Room for another one."""

    def add_scaled(self, w: Any, step: float, direction: Any, out: Any, /) -> None:
        """out = w + step direction."""

    def dot(self, a: Any, b: Any, /) -> float:
        """The inner product."""

    def add_ridge(self, w: Any, strength: float, gradient: Any, /) -> float:
        """strength |w|^2; its derivative, 2 strength w, is added to the gradient."""

    def pairs(self, memory: int, scale: NDArray[np.float32] | None = None, *, keep: bool = False) -> Any:
        """Curvature pairs, with the methods of `Pairs`."""


class HostVectors:
    """NumPy's vectors and the core's arithmetic, by so many threads."""

    def __init__(self, n_jobs: int) -> None:
        self.n_jobs = n_jobs

    def held(self, w: Vector, /) -> Vector:
        """A copy of a vector."""
        return np.array(w, dtype=np.float64)

    def host(self, w: Vector, /) -> Vector:
        """The vector itself."""
        return w

    def like(self, w: Vector, /) -> Vector:
        """Room for another one."""
        return np.empty_like(w)

    def add_scaled(self, w: Vector, step: float, direction: Vector, out: Vector, /) -> None:
        """out = w + step direction."""
        add_scaled(w, step, direction, out, self.n_jobs)

    def dot(self, a: Vector, b: Vector, /) -> float:
        """The inner product."""
        return dot(a, b, self.n_jobs)

    def add_ridge(self, w: Vector, strength: float, gradient: Vector, /) -> float:
        """strength |w|^2; its derivative is added to the gradient."""
        return add_ridge(w, strength, gradient, self.n_jobs)

    def pairs(self, memory: int, scale: NDArray[np.float32] | None = None, *, keep: bool = False) -> Pairs:
        """Curvature pairs in the core."""
        return Pairs(memory, self.n_jobs, scale, keep=keep)
