"""A simple minimiser for few weights: accelerated proximal gradient."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from .chain import Array, Path
from .losses import LOSSES
from .model import Shape, pull_back, score_sentence

Objective = Callable[[Array], tuple[float, Array]]


def objective(
    X: Sequence[Array],
    y: Sequence[Path],
    shape: Shape,
    loss: str = "log",
    weight: Sequence[float] | None = None,
    mask: Array | None = None,
) -> Objective:
    """Return w -> sum_i loss_i and its gradient, without penalty. Masked features have no gradient."""
    weight = [1.0] * len(X) if weight is None else weight

    def evaluate(w: Array) -> tuple[float, Array]:
        total, gradient = 0.0, np.zeros(shape.size)
        for x, path, a in zip(X, y, weight):
            value, g = LOSSES[loss](score_sentence(w, x, shape), path, a)
            total, gradient = total + value, gradient + pull_back(g, x, shape)
        return total, gradient if mask is None else gradient * mask

    return evaluate


def minimise(
    f: Objective, size: int, l1: float = 0.0, l2: float = 0.0, tol: float = 1e-9, steps: int = 20_000
) -> tuple[Array, float]:
    """Return argmin f(w) + l1 ||w||_1 + l2 ||w||^2 and its value (FISTA: Beck & Teboulle 2009, with restarts).

    The step is halved until the quadratic model with that step is an upper bound at the new point. Soft
    thresholding handles l1. Stops when no weight moves by more than ``tol`` steps' worth.
    """

    def smooth(w: Array) -> tuple[float, Array]:
        value, gradient = f(w)
        return value + l2 * float(w @ w), gradient + 2 * l2 * w

    def total(w: Array) -> float:
        return smooth(w)[0] + l1 * float(np.abs(w).sum())

    w = ahead = np.zeros(size)
    step, momentum, best = 1.0, 1.0, np.inf
    for _ in range(steps):
        value, gradient = smooth(ahead)
        while True:
            moved = ahead - step * gradient
            new = np.sign(moved) * np.maximum(np.abs(moved) - step * l1, 0)
            d = new - ahead
            if smooth(new)[0] <= value + gradient @ d + d @ d / (2 * step) + 1e-14 * abs(value):
                break
            step /= 2
        if np.abs(d).max() <= tol * step:
            return new, total(new)
        now = total(new)
        if now > best:  # overshot: reset the momentum
            ahead, momentum, best = w, 1.0, np.inf
            continue
        grown = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        w, ahead, momentum, best = new, new + (momentum - 1) / grown * (new - w), grown, now
    return w, total(w)
