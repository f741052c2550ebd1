"""Losses of one sentence: (scores, gold) -> value, gradient with respect to the scores.

l = log Z(x) - H(x,y) = -log P(y|x). S are the counts of a path, E[S] their expectation, c_t the gold labels.
Altun, Johnson & Hofmann 2003, "Investigating loss functions and optimization methods for discriminative
learning of label sequences", section 3.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from .chain import (
    Array,
    Scores,
    conditional_expectations,
    counts,
    expectations,
    log_partition,
    log_sum_exp,
    marginals,
    score,
    scores,
)

Loss = Callable[[Scores, Sequence[int], float], tuple[float, Scores]]

#: Loss of a sentence as a function of l, and of a token as a function of p_t(c_t).
SEQUENTIAL: dict[str, Callable[[Array], Array]] = {"log": lambda x: x, "exp": lambda x: np.exp(x) - 1.0}
POINTWISE: dict[str, Callable[[Array], Array]] = {
    "pointwise_log": lambda p: -np.log(p),
    "pointwise_exp": lambda p: 1.0 / p,
}


def combine(a: float, p: Scores, b: float, q: Scores) -> Scores:
    """Return a p + b q, part by part."""
    return Scores(*(a * x + b * y for x, y in zip(p, q)))


def minus_log_p(s: Scores, gold: Sequence[int]) -> float:
    """Return l = log Z(x) - H(x,y)."""
    return log_partition(s) - score(s, gold)


def log_loss(s: Scores, gold: Sequence[int], weight: float = 1.0) -> tuple[float, Scores]:
    """F1, sequential log: w l, with gradient w (E[S] - S(y))."""
    return weight * minus_log_p(s, gold), combine(weight, expectations(s), -weight, counts(s, gold))


def exp_loss(s: Scores, gold: Sequence[int], weight: float = 1.0) -> tuple[float, Scores]:
    """F2, sequential exponential: w (e^l - 1) = w sum_{y != gold} e^{H(y) - H(gold)}. Gradient w e^l (E[S] - S(y))."""
    factor = weight * float(np.exp(minus_log_p(s, gold)))
    return factor - weight, combine(factor, expectations(s), -factor, counts(s, gold))


def pointwise_log_loss(s: Scores, gold: Sequence[int], weight: float = 1.0) -> tuple[float, Scores]:
    """F3, pointwise log: -w sum_t log p_t(c_t), with gradient w sum_t (E[S] - E[S | y_t=c_t])."""
    p = _gold_marginals(s, gold)
    given = conditional_expectations(s, gold, np.ones(len(p)))
    return float(-weight * np.log(p).sum()), combine(weight * len(p), expectations(s), -weight, given)


def pointwise_exp_loss(s: Scores, gold: Sequence[int], weight: float = 1.0) -> tuple[float, Scores]:
    """F4, pointwise exponential: w sum_t 1/p_t(c_t), with gradient w sum_t 1/p_t(c_t) (E[S] - E[S | y_t=c_t])."""
    omega = 1 / _gold_marginals(s, gold)
    given = conditional_expectations(s, gold, omega)
    value = float(weight * omega.sum())
    return value, combine(value, expectations(s), -weight, given)


def _gold_marginals(s: Scores, gold: Sequence[int]) -> Array:
    """Return p_t(c_t), [T]."""
    return marginals(s)[0][np.arange(len(gold)), list(gold)]


LOSSES: dict[str, Loss] = {
    "log": log_loss,
    "exp": exp_loss,
    "pointwise_log": pointwise_log_loss,
    "pointwise_exp": pointwise_exp_loss,
}


def softmax_margin(
    s: Scores, gold: Sequence[int], cost: ArrayLike, weight: float = 1.0
) -> tuple[float, Scores]:
    """log sum_y exp(H(y) + cost(gold,y)) - H(gold) for a cost that adds up over tokens (Gimpel & Smith 2010).

    ``cost`` [L, L] is indexed by (gold label, guessed label). The Hamming cost is one minus the identity.
    """
    augmented = s._replace(node=s.node + np.asarray(cost, dtype=np.float64)[list(gold)])
    value = log_partition(augmented) - score(s, gold)
    return weight * value, combine(weight, expectations(augmented), -weight, counts(s, gold))


def partial_log_loss(s: Scores, allowed: ArrayLike, weight: float = 1.0) -> tuple[float, Scores]:
    """-log P(y is allowed) = log Z - log Z_allowed, with gradient E[S] - E[S | allowed] (Tsuboi et al. 2008).

    ``allowed`` [T, L] has the labels each token may carry. One label per row gives F1, all of them give zero.
    """
    inside = scores(s.node, s.edge, s.start, s.end, allowed=allowed)
    value = log_partition(s) - log_partition(inside)
    return weight * value, combine(weight, expectations(s), -weight, expectations(inside))


def log_of_exp_losses(
    batch: Sequence[tuple[Scores, Sequence[int]]], weights: Sequence[float]
) -> tuple[float, list[Scores]]:
    """log sum_i w_i e^{l_i}, for losses F2 that overflow. The gradients are softmax-weighted F1 gradients."""
    terms = np.array([np.log(w) + minus_log_p(s, y) for (s, y), w in zip(batch, weights)])
    total = float(log_sum_exp(terms))
    return total, [log_loss(s, y, float(np.exp(a - total)))[1] for (s, y), a in zip(batch, terms)]
