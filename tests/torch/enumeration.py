"""Reference implementation of chains, losses and distributions in NumPy, by enumeration of all paths."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.laws.reference import losses

Array = NDArray[np.float64]
Path = tuple[int, ...]


class Chain:
    """All paths of a sentence of n tokens, with their scores."""

    def __init__(
        self, node: Array, transitions: Array, start: Array, end: Array, edges: Array | None = None
    ) -> None:
        self.n, self.labels = node.shape
        self.paths: list[Path] = list(itertools.product(range(self.labels), repeat=self.n))
        scores = []
        for y in self.paths:
            s = start[y[0]] + end[y[-1]] + sum(node[t, y[t]] for t in range(self.n))
            for t in range(1, self.n):
                s += transitions[y[t - 1], y[t]] + (0.0 if edges is None else edges[t, y[t - 1], y[t]])
            scores.append(s)
        self.scores = np.array(scores)

    def log_sum(self, scores: Array) -> float:
        top = scores.max()
        return float(np.log(np.exp(scores - top).sum()) + top) if top > -np.inf else -np.inf

    @property
    def log_z(self) -> float:
        return self.log_sum(self.scores)

    @property
    def p(self) -> Array:
        return np.exp(self.scores - self.log_z)

    def score(self, y: Path) -> float:
        return float(self.scores[self.paths.index(tuple(int(a) for a in y))])

    def marginals(self) -> Array:
        out = np.zeros((self.n, self.labels))
        for y, p in zip(self.paths, self.p):
            for t, label in enumerate(y):
                out[t, label] += p
        return out

    def entropy(self) -> float:
        p = self.p[self.p > 0]
        return float(-(p * np.log(p)).sum())

    def within(self, support: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return a mask of the paths that a support [n, L] allows."""
        return np.array([all(support[t, a] for t, a in enumerate(y)) for y in self.paths])

    def costs(self, cost: Array) -> Array:
        """Return the cost of every path, given the cost of each label at each token [n, L]."""
        return np.array([sum(cost[t, a] for t, a in enumerate(y)) for y in self.paths])


def loss(name: str, chain: Chain, support: NDArray[np.bool_], cost: Array) -> float:
    """Return a loss by its formula. A gold path is a support with one label per token."""
    gold = chain.within(support)
    s, c, p = chain.scores, chain.costs(cost), chain.p
    log_gold, best_gold = chain.log_sum(s[gold]), s[gold].max()
    right = (chain.marginals() * support).sum(1)
    if name in losses.SEQUENTIAL:
        return float(losses.SEQUENTIAL[name](chain.log_z - log_gold))
    if name in losses.POINTWISE:
        return float(losses.POINTWISE[name](right).sum())
    values: dict[str, Any] = {
        "hinge": lambda: (s + c).max() - best_gold,
        "perceptron": lambda: s.max() - best_gold,
        "softmax_margin": lambda: chain.log_sum(s + c) - log_gold,
        "risk": lambda: (p * c).sum(),
    }
    return float(values[name]())
