"""Inference by enumeration of all L**T paths of a chain, to test the other reference implementations."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np

from .chain import Array, Path, Scores, counts, edges, like, score
from .losses import POINTWISE, SEQUENTIAL


def paths(s: Scores) -> list[Path]:
    """Return all paths without a forbidden step."""
    T, L = s.node.shape
    y, t = np.array(list(product(range(L), repeat=T))), np.arange(T)
    least = np.minimum(s.start[y[:, 0]] + s.end[y[:, -1]], s.node[t, y].min(axis=1))
    if T > 1:
        least = np.minimum(least, edges(s)[t[1:], y[:, :-1], y[:, 1:]].min(axis=1))
    return [tuple(path) for path in y[least > -np.inf].tolist()]


def log_partition(s: Scores) -> float:
    """Return log sum_y exp H(x,y)."""
    h = np.array([score(s, y) for y in paths(s)])
    return float(np.log(np.exp(h - h.max()).sum()) + h.max())


def distribution(s: Scores) -> dict[Path, float]:
    """Return P(y|x) of every possible path."""
    log_z = log_partition(s)
    return {y: float(np.exp(score(s, y) - log_z)) for y in paths(s)}


def expectations(s: Scores, given: tuple[int, int] | None = None) -> Scores:
    """Return E[S], or E[S | y_t = c] with ``given`` = (t, c), laid out like the scores."""
    full = s._replace(edge=edges(s))
    total = Scores(*(np.zeros_like(a) for a in full))
    mass = 0.0
    for y, p in distribution(s).items():
        if given is None or y[given[0]] == given[1]:
            total = Scores(*(a + p * b for a, b in zip(total, counts(full, y))))
            mass += p
    return like(s, Scores(*(a / mass for a in total)))


def marginals(s: Scores) -> tuple[Array, Array]:
    """Return node [T, L] and pair [T, L, L] marginals."""
    e = expectations(s._replace(edge=edges(s)))
    return e.node, e.edge


def kbest(s: Scores, k: int) -> list[tuple[float, Path]]:
    """Return the k best paths by score, equal scores by the reversed path."""
    ranked = sorted((-score(s, y), y[::-1]) for y in paths(s))
    return [(-h, y[::-1]) for h, y in ranked[:k]]


def viterbi(s: Scores) -> Path:
    """Return the first path of ``kbest``."""
    return kbest(s, 1)[0][1]


def rank(s: Scores, gold: Sequence[int]) -> int:
    """Return the number of other paths that score at least as much as the gold one (the rank loss)."""
    h = score(s, gold)
    return sum(score(s, y) >= h for y in paths(s) if y != tuple(gold))


def losses(s: Scores, gold: Sequence[int]) -> dict[str, float]:
    """Every loss read off the distribution itself."""
    p = distribution(s)
    node = np.array([sum(q for y, q in p.items() if y[t] == c) for t, c in enumerate(gold)])
    sequential = {name: float(loss(-np.log(p[tuple(gold)]))) for name, loss in SEQUENTIAL.items()}
    return sequential | {name: float(loss(node).sum()) for name, loss in POINTWISE.items()}
