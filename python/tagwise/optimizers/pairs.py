"""Curvature pairs of L-BFGS and OWL-QN, with copies for checkpoints."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tagwise._core import CurvaturePairs
from tagwise.base.domains import Domain, ListOf, Numbers, TupleOf
from tagwise.scores.protocols import Vector

Single = NDArray[np.float32]


def pairs_domain(n: int) -> Domain:
    """Return the domain of `Pairs.state` for n weights. A change out of the range of float32 is infinite."""
    vector = Numbers("f32", n, finite=False)
    return ListOf(TupleOf((vector, vector)), high=1000)


class Pairs:
    """Steps s and changes of the gradient y in the core, with copies if states are kept.

    The core rounds both to float32 first, so that pushing float32 copies in the same order gives bitwise equal pairs
    and inner products. A pair that the core rejects still removes the oldest one if the memory is full, and the copies
    follow.
    """

    def __init__(self, memory: int, n_jobs: int, scale: Single | None = None, *, keep: bool = False) -> None:
        self._core = CurvaturePairs(memory, n_jobs, scale)
        self._kept: list[list[Single]] | None = [] if keep else None

    def __len__(self) -> int:
        return len(self._core)

    def clear(self) -> None:
        """Remove all pairs."""
        self._core.clear()
        self._trim()

    def push(self, w0: Vector, w1: Vector, g0: Vector, g1: Vector) -> None:
        """Add the step from (w0, g0) to (w1, g1) if its curvature is positive."""
        taken = self._core.push(w0, w1, g0, g1)
        if self._kept is not None and taken:
            with np.errstate(over="ignore"):
                self._kept.append([(w1 - w0).astype(np.float32), (g1 - g0).astype(np.float32)])
        self._trim()

    def _trim(self) -> None:
        if self._kept is not None:
            del self._kept[: len(self._kept) - len(self._core)]

    def direction(self, gradient: Vector, direction: Vector) -> float:
        """Compute direction = -H gradient and return the directional derivative."""
        return self._core.direction(gradient, direction)

    def smallest_gradient(self, w: Vector, gradient: Vector, norm: float) -> tuple[Vector, float]:
        """Return the weights w - sum_i c_i s_i with the smallest gradient, and an estimate of its squared norm.

        `norm` is the norm of the gradient g at w.

        The gradient there is g - sum_i c_i y_i if the objective is quadratic, and c minimises the norm of that.
        Gradients of successive iterates alternate in the directions of large curvature, so that their combination is
        much smaller than each of them (minimal residual smoothing, Zhou and Walker 1994).
        """
        products, with_g = self._core.gradient_products(gradient)
        c = _least_squares(products, with_g)
        out = np.empty_like(w)
        self._core.subtract_steps(w, c, out)
        # At the minimum, |g - sum_i c_i y_i|^2 = g.g - c.(Y g).
        return out, max(norm**2 - sum(x * y for x, y in zip(c, with_g)), 0.0)

    def state(self) -> list[list[Single]]:
        """Return the pairs as [s, y], oldest first."""
        return list(self._kept or [])

    def restore(self, pairs: list[list[Single]]) -> None:
        """Replace all pairs."""
        self.clear()
        for s, y in pairs:
            step, change = s.astype(np.float64), y.astype(np.float64)
            nothing = np.zeros_like(step)
            self.push(nothing, step, nothing, change)


def _least_squares(products: list[float], right: list[float]) -> list[float]:
    """Solve the normal equations A c = b of a few unknowns by elimination. A is positive and gets a small ridge.

    Plain Python, since the order of the sums in NumPy depends on the machine.

    >>> [round(c, 12) for c in _least_squares([2.0, 0.0, 0.0, 4.0], [2.0, 2.0])]
    [1.0, 0.5]
    """
    m = len(right)
    ridge = 1e-15 * sum(products[:: m + 1])
    rows = [[*products[i * m : (i + 1) * m], right[i]] for i in range(m)]
    for i in range(m):
        rows[i][i] += ridge
    for i in range(m):
        for k in range(i + 1, m):
            factor = rows[k][i] / rows[i][i] if rows[i][i] > 0.0 else 0.0
            rows[k] = [x - factor * y for x, y in zip(rows[k], rows[i])]
    c = [0.0] * m
    for i in reversed(range(m)):
        rest = rows[i][m] - sum(rows[i][k] * c[k] for k in range(i + 1, m))
        c[i] = rest / rows[i][i] if rows[i][i] > 0.0 else 0.0
    return c
