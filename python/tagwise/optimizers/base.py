"""Interfaces of optimisers: objectives, steps, states, vectors."""

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

#: objective(w, gradient) -> value, including the penalty. The gradient is written in place.
Evaluate = Callable[[Vector, Vector], float]


#: State of an optimiser or a learner to resume from: arrays, numbers, strings, None, and lists and dicts of these.
State = dict[str, Any]


def relative_gap(primal: float, dual: float) -> float:
    """Return (primal - dual) / primal, a bound of the relative distance of the objective from its minimum.

    It is negative if rounding has put the bound above the objective, and then bounds nothing.

    >>> relative_gap(10.0, 9.5)
    0.05
    """
    return (primal - dual) / primal if primal > 0.0 else 0.0


@dataclass(frozen=True)
class Step:
    """State after an iteration of an optimiser or a learner. `w` is its own array: copy it to keep it."""

    w: Vector
    value: float
    gradient_norm: float | None  # None if the gradient was not computed
    evaluations: int  # number of evaluations of the objective so far
    #: Returns the state to resume from exactly, if the optimiser was called with `keep`. Valid until the next step.
    state: Callable[[], State] | None = field(default=None, repr=False, compare=False)
    step: float = 0.0  # step length of the last line search, if there was one
    dual: float | None = None  # lower bound of the optimum, 0 until one is computed, None if none will be
    #: Returns nearby weights whose gradient is estimated to be small, and the estimate of its squared norm.
    smallest_gradient: Callable[[], tuple[Vector, float]] | None = field(
        default=None, repr=False, compare=False
    )
    measures: dict[str, float] = field(default_factory=dict)  # further entries of `history_`
    exact: bool = False  # whether the value is summed in double precision, for weights in single precision
    fresh: bool = False  # whether the precision changed, so that earlier values are not comparable

    @property
    def gap(self) -> float:
        """Bound of the relative distance from the optimum, infinite without a bound."""
        return math.inf if self.dual is None else relative_gap(self.value, self.dual)


class VectorSpace(Protocol):
    """Storage and arithmetic of the vectors of an optimiser, in a representation of its own."""

    def held(self, w: Vector, /) -> Any:
        """Return a copy of a vector in this storage."""

    def host(self, w: Any, /) -> Vector:
        """Return a vector as a NumPy array, which may be shared."""

    def like(self, w: Any, /) -> Any:
        """Allocate another vector."""

    def add_scaled(self, w: Any, step: float, direction: Any, out: Any, /) -> None:
        """Compute out = w + step direction."""

    def dot(self, a: Any, b: Any, /) -> float:
        """Return the inner product."""

    def add_ridge(self, w: Any, strength: float, gradient: Any, /) -> float:
        """Return strength |w|^2, and add its derivative 2 strength w to the gradient."""

    def pairs(self, memory: int, scale: NDArray[np.float32] | None = None, *, keep: bool = False) -> Any:
        """Return curvature pairs, with the methods of `Pairs`."""


class HostVectors:
    """NumPy vectors with the arithmetic of the core, in `n_jobs` threads."""

    def __init__(self, n_jobs: int) -> None:
        self.n_jobs = n_jobs

    def held(self, w: Vector, /) -> Vector:
        """Return a copy of a vector."""
        return np.array(w, dtype=np.float64)

    def host(self, w: Vector, /) -> Vector:
        """Return the vector itself."""
        return w

    def like(self, w: Vector, /) -> Vector:
        """Allocate another vector."""
        return np.empty_like(w)

    def add_scaled(self, w: Vector, step: float, direction: Vector, out: Vector, /) -> None:
        """Compute out = w + step direction."""
        add_scaled(w, step, direction, out, self.n_jobs)

    def dot(self, a: Vector, b: Vector, /) -> float:
        """Return the inner product."""
        return dot(a, b, self.n_jobs)

    def add_ridge(self, w: Vector, strength: float, gradient: Vector, /) -> float:
        """Return strength |w|^2, and add its derivative to the gradient."""
        return add_ridge(w, strength, gradient, self.n_jobs)

    def pairs(self, memory: int, scale: NDArray[np.float32] | None = None, *, keep: bool = False) -> Pairs:
        """Return curvature pairs in the core."""
        return Pairs(memory, self.n_jobs, scale, keep=keep)
