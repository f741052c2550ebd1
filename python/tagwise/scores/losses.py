"""Losses of one sentence as functions of its lattice: value and gradient with respect to the scores.

The core computes the same losses for a whole corpus. l = log Z - H(gold) = -log P(gold).

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

from tagwise.scores.lattice import Array, Lattice, scores_html, size_of


class ScoreGradient(NamedTuple):
    """Derivative of a loss with respect to the scores.

    Attributes:
        node: Derivative by the node scores [T, L].
        edge: Derivative by the edge scores of each step [T, L, L], in which block 0 is zero.
    """

    node: Array
    edge: Array

    def __repr__(self) -> str:
        return f"<ScoreGradient: {size_of(self.node)}>"

    def _repr_html_(self) -> str:
        """Return the derivatives of the first tokens and labels for notebooks."""
        return scores_html(self, self.node)


def _difference(lattice: Lattice, gold: Sequence[int]) -> tuple[float, ScoreGradient]:
    """Return l and E[S] - S(gold)."""
    node, edge = lattice.marginals(), lattice.pair_marginals()
    for t, y in enumerate(gold):
        node[t, y] -= 1.0
        if t:
            edge[t, gold[t - 1], y] -= 1.0
    return lattice.log_partition() - lattice.score(gold), ScoreGradient(node, edge)


def log_loss(lattice: Lattice, gold: Sequence[int]) -> tuple[float, ScoreGradient]:
    """Return the log loss l (F1).

    Args:
        lattice: Scores of the sentence.
        gold: Index of the gold label of each token.

    Returns:
        The loss and its `ScoreGradient`.
    """
    return _difference(lattice, gold)


def exp_loss(lattice: Lattice, gold: Sequence[int]) -> tuple[float, ScoreGradient]:
    """Return the exponential loss e^l - 1 (F2), a bound of the number of sequences ranked above the gold one.

    Args:
        lattice: Scores of the sentence.
        gold: Index of the gold label of each token.

    Returns:
        The loss and its `ScoreGradient`.
    """
    value, gradient = _difference(lattice, gold)
    factor = float(np.exp(value))
    return factor - 1.0, ScoreGradient(factor * gradient.node, factor * gradient.edge)


def _pointwise(
    lattice: Lattice, gold: Sequence[int], loss: Callable[[float], tuple[float, float]]
) -> tuple[float, ScoreGradient]:
    """Return sum_t loss(p_t) and sum_t omega_t (E[S] - E[S | y_t = gold_t]), with one pass per condition."""
    p, pairs = lattice.marginals(), lattice.pair_marginals()
    node, edge = np.zeros_like(p), np.zeros_like(pairs)
    total = 0.0
    for t, y in enumerate(gold):
        value, omega = loss(float(p[t, y]))
        total += value
        allowed = np.ones_like(p, dtype=np.bool_)
        allowed[t] = False
        allowed[t, y] = True
        constrained = lattice.restricted(allowed)
        node += omega * (p - constrained.marginals())
        edge += omega * (pairs - constrained.pair_marginals())
    return total, ScoreGradient(node, edge)


def pointwise_log_loss(lattice: Lattice, gold: Sequence[int]) -> tuple[float, ScoreGradient]:
    """Return the pointwise log loss -sum_t log p_t(gold_t) (F3).

    Args:
        lattice: Scores of the sentence.
        gold: Index of the gold label of each token.

    Returns:
        The loss and its `ScoreGradient`.
    """
    return _pointwise(lattice, gold, lambda p: (-float(np.log(p)), 1.0))


def pointwise_exp_loss(lattice: Lattice, gold: Sequence[int]) -> tuple[float, ScoreGradient]:
    """Return the pointwise exponential loss sum_t 1 / p_t(gold_t) (F4).

    Args:
        lattice: Scores of the sentence.
        gold: Index of the gold label of each token.

    Returns:
        The loss and its `ScoreGradient`.
    """
    return _pointwise(lattice, gold, lambda p: (1.0 / p, 1.0 / p))


def loss_curves(margins: Sequence[float] | None = None) -> list[dict[str, float]]:
    """Return the losses of a decision between two labels as functions of its margin.

    Args:
        margins: Margins to evaluate. None is -3 to 3 in steps of 1/4.

    Returns:
        One dict per margin with the values of the zero-one, exponential and log loss.
    """
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
