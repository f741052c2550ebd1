"""k-best MIRA (Crammer & Singer 2003, McDonald, Crammer & Pereira 2005)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from . import qp
from .chain import Array, Path, kbest
from .model import Shape, features, score_sentence

Cost = Callable[[Path, Path], float]  # gold, guess


def closest(w: Array, d: Array, cost: Array, C: float | None = None) -> Array:
    """Return argmin 1/2 ||w' - w||^2 (+ C xi)  s.t.  w'.d_j >= cost_j (- xi), for the rows of d [k, size].

    w' = w + sum tau_j d_j with tau >= 0 (and sum tau <= C). The dual's linear term is cost_j - w.d_j.
    """
    G, b = d @ d.T, cost - d @ w
    tau = qp.box(G, b) if C is None else qp.groups(G, b, np.zeros(len(b), dtype=int), C)
    return w + tau @ d


def closest_to_one(w: Array, d: Array, cost: float, C: float | None = None) -> Array:
    """Return `closest` for one constraint: tau = max(0, (cost - w.d) / ||d||^2), cut at C."""
    tau = max(0.0, (cost - w @ d) / (d @ d))
    return w + (tau if C is None else min(tau, C)) * d


def mira(
    X: Sequence[Array],
    y: Sequence[Path],
    shape: Shape,
    order: Sequence[Sequence[int]],
    cost: Cost,
    k: int = 1,
    C: float | None = None,
    mask: Array | None = None,
    weight: Sequence[float] | None = None,
) -> tuple[Array, Array]:
    """Project once per sentence onto the margins of its k best paths. Return last and averaged weights.

    ``weight`` [N] multiplies the step of each sentence, which is computed with a weight of 1.
    """
    weight = [1.0] * len(X) if weight is None else weight
    w, total, steps = np.zeros(shape.size), np.zeros(shape.size), 0
    for epoch in order:
        for i in epoch:
            guesses = [p for _, p in kbest(score_sentence(w, X[i], shape), k) if p != y[i]]
            if guesses:
                d = np.array([features(X[i], y[i], shape) - features(X[i], p, shape) for p in guesses])
                d = d if mask is None else d * mask
                w = w + weight[i] * (closest(w, d, np.array([cost(y[i], p) for p in guesses]), C) - w)
            total, steps = total + w, steps + 1
    return w, total / max(steps, 1)
