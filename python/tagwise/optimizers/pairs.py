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

    def flattest(self, w: Vector, gradient: Vector, norm: float) -> tuple[Vector, float]:
        """Return the weights w - sum_i c_i s_i with the smallest gradient, and an estimate of its squared norm.

        `norm` is the norm of the gradient g at w.

        The gradient there is g - sum_i c_i y_i if the objective is quadratic, and c minimises the norm of that.
        Gradients of successive iterates alternate in the directions of large curvature, so that their combination is
        much smaller than each of them (minimal residual smoothing, Zhou and Walker 1994).
        """
        products, with_g = map(np.array, self._core.gradient_products(gradient))
        gram = products.reshape(len(with_g), len(with_g))
        c = np.linalg.lstsq(gram, with_g, rcond=1e-12)[0]
        out = np.empty_like(w)
        self._core.subtract_steps(w, c.tolist(), out)
        return out, max(float(norm**2 - 2.0 * c @ with_g + c @ gram @ c), 0.0)

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
