"""The losses of one sentence as functions of its lattice: value and gradient with respect to the scores.

What the engine computes for a whole corpus, for one sentence and in the open. l = log Z - H(gold) = -log P(gold).

>>> import numpy as np
>>> lattice = Lattice(node=np.zeros((2, 2)), edge=np.zeros((2, 2)))
>>> value, gradient = log_loss(lattice, [0, 1])
>>> round(value, 6) == round(2 * float(np.log(2)), 6), gradient.node.tolist()
(True, [[-0.5, 0.5], [0.5, -0.5]])
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from tagwise.scores.lattice import Array, Lattice


class ScoreGradient(NamedTuple):
    """Derivative by the node scores [T, L] and by the edge scores of each step [T, L, L] (block 0 is zero)."""

    node: Array
    edge: Array


def _difference(lattice: Lattice, gold: Sequence[int]) -> tuple[float, ScoreGradient]:
    """l and E[S] - S(gold)."""
    node, edge = lattice.marginals(), lattice.pair_marginals()
    for t, y in enumerate(gold):
        node[t, y] -= 1.0
        if t:
            edge[t, gold[t - 1], y] -= 1.0
    return lattice.log_partition() - lattice.score(gold), ScoreGradient(node, edge)


def log_loss(lattice: Lattice, gold: Sequence[int]) -> tuple[float, ScoreGradient]:
    """F1: l."""
    return _difference(lattice, gold)


def exp_loss(lattice: Lattice, gold: Sequence[int]) -> tuple[float, ScoreGradient]:
    """F2: e^l - 1, the exponential bound on the number of sequences ranked above the gold one."""
    value, gradient = _difference(lattice, gold)
    factor = float(np.exp(value))
    return factor - 1.0, ScoreGradient(factor * gradient.node, factor * gradient.edge)


def _pointwise(
    lattice: Lattice, gold: Sequence[int], loss: Callable[[float], tuple[float, float]]
) -> tuple[float, ScoreGradient]:
    """sum_t loss(p_t) and sum_t omega_t (E[S] - E[S | y_t = gold_t]), each condition by its own pass."""
    p, pairs = lattice.marginals(), lattice.pair_marginals()
    node, edge = np.zeros_like(p), np.zeros_like(pairs)
    total = 0.0
    for t, y in enumerate(gold):
        value, omega = loss(float(p[t, y]))
        total += value
        allowed = np.ones_like(p, dtype=np.bool_)
        allowed[t] = False
        allowed[t, y] = True
        given = lattice.restricted(allowed)
        node += omega * (p - given.marginals())
        edge += omega * (pairs - given.pair_marginals())
    return total, ScoreGradient(node, edge)


def pointwise_log_loss(lattice: Lattice, gold: Sequence[int]) -> tuple[float, ScoreGradient]:
    """F3: -sum_t log p_t(gold_t)."""
    return _pointwise(lattice, gold, lambda p: (-float(np.log(p)), 1.0))


def pointwise_exp_loss(lattice: Lattice, gold: Sequence[int]) -> tuple[float, ScoreGradient]:
    """F4: sum_t 1 / p_t(gold_t)."""
    return _pointwise(lattice, gold, lambda p: (1.0 / p, 1.0 / p))


def loss_curves(margins: Sequence[float] | None = None) -> list[dict[str, float]]:
    """Loss of one decision between two labels by its margin, as the library's losses compute it."""
    out = []
    for margin in margins if margins is not None else [i / 4 for i in range(-12, 13)]:
        lattice = Lattice(node=np.array([[margin, 0.0]]), edge=np.zeros((2, 2)))
        out.append(
            {
                "margin": margin,
                "zero_one": float(margin <= 0),
                "exp": exp_loss(lattice, [0])[0],
                "log": log_loss(lattice, [0])[0],
            }
        )
    return out
