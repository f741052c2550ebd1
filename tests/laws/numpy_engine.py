"""A second implementation of the score interface: the reference implementations in plain NumPy."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from tagwise import _core
from tagwise.dataset.layout import blocks_of, codes_of
from tagwise.learners.backends import Backend
from tagwise.learners.problem import Problem
from tagwise.scores.protocols import Lists, Scorer, Support, Vector

from .reference import chain
from .reference.losses import log_loss


class Dense:
    """Weights as tables: node [A, L], edges [L, L], starts [L], ends [L]. Features that do not exist weigh 0."""

    def __init__(self, layout: _core.Layout, forbidden: NDArray[np.uint32] | None) -> None:
        n, self.shape = layout.n_labels, (layout.n_attributes, layout.n_labels)
        sizes = (layout.n_attributes * n, n * n, n, n)
        self.size, begins = sum(sizes), np.cumsum([0, *sizes[:-1]])
        places = [begin + code for begin, code in zip(begins, codes_of(layout))]
        self.place = np.concatenate(places)  # of every weight of the layout
        assert blocks_of(layout).pair == slice(len(self.place), len(self.place))
        self.forbidden = None
        if forbidden is not None:
            self.forbidden = np.zeros((n, n), dtype=bool)
            self.forbidden.ravel()[forbidden] = True

    def spread(self, w: NDArray[np.floating]) -> Vector:
        """Return one vector of all four tables."""
        out = np.zeros(self.size)
        out[self.place] = w
        return out

    def scores(self, dense: Vector, X: Vector, allowed: NDArray[np.bool_] | None) -> chain.Scores:
        """Return the scores of a sentence with attribute values X [T, A]."""
        A, L = self.shape
        node, edge, start, end = np.split(dense, np.cumsum([A * L, L * L, L]))
        return chain.scores(
            X @ node.reshape(A, L), edge.reshape(L, L), start, end, allowed=allowed, forbidden=self.forbidden
        )


def sentences(data: _core.Dataset, n_attributes: int) -> Iterator[tuple[slice, Vector]]:
    """Yield the tokens of each sentence, and their attribute values [T, A]."""
    ptr, ids, values = data.node()
    offsets, n = data.offsets.astype(int), ptr.astype(int)
    for begin, end in pairwise(offsets.tolist()):
        X = np.zeros((end - begin, n_attributes))
        for t in range(begin, end):
            some = slice(n[t], n[t + 1])
            np.add.at(X[t - begin], ids[some], values[some] if len(values) else 1.0)
        yield slice(begin, end), X


class NumpyObjective:
    """The objective sum_i w_i l_i and its gradient."""

    def __init__(self, problem: Problem) -> None:
        assert problem.loss == "log"
        assert (problem.partial, problem.cost, problem.once, problem.order) == (None,) * 4
        self.dense = Dense(problem.layout, problem.forbidden)
        n, support = problem.layout.n_attributes, problem.allowed
        weight = np.ones(len(problem.data)) if problem.sample_weight is None else problem.sample_weight
        gold = problem.data.gold.astype(int)
        self.corpus = [
            (X, gold[at].tolist(), None if support is None else support[0][support[1][at]], weight[s])
            for s, (at, X) in enumerate(sentences(problem.data, n))
            if len(X)
        ]
        self.calls = 0

    def value(self, w: Vector, gradient: Vector, n_jobs: int = 0, /) -> tuple[float, float]:
        self.calls += 1
        dense, total, largest = self.dense.spread(w), 0.0, -np.inf
        slope = np.zeros(self.dense.size)
        for X, gold, allowed, weight in self.corpus:
            value, g = log_loss(self.dense.scores(dense, X, allowed), gold, 1.0)
            total, largest = total + weight * value, max(largest, value)
            edge = g.edge.sum(axis=0) if g.edge.ndim == 3 else g.edge
            slope += weight * np.concatenate([(X.T @ g.node).ravel(), edge.ravel(), g.start, g.end])
        gradient[:] = slope[self.dense.place]
        return total, largest


class NumpyScorer:
    """Paths, lists and marginals, one sentence after the other."""

    local = False

    def __init__(
        self, layout: _core.Layout, weights: NDArray[np.float32], forbidden: NDArray[np.uint32] | None
    ) -> None:
        self.layout, self.weights = layout, weights
        self.dense = Dense(layout, forbidden)
        self.calls = 0

    def _scores(self, data: _core.Dataset, allowed: Support | None) -> Iterator[chain.Scores]:
        self.calls += 1
        dense = self.dense.spread(self.weights)
        for at, X in sentences(data, self.layout.n_attributes):
            yield self.dense.scores(dense, X, None if allowed is None else allowed[0][allowed[1][at]])

    def viterbi(
        self, dataset: _core.Dataset, *, allowed: Support | None = None, n_jobs: int = 0
    ) -> NDArray[np.uint16]:
        found = [chain.viterbi(s) for s in self._scores(dataset, allowed) if len(s.node)]
        return np.array([y for path in found for y in path], dtype=np.uint16)

    def kbest(
        self, dataset: _core.Dataset, k: int, *, allowed: Support | None = None, n_jobs: int = 0
    ) -> Lists:
        found = [chain.kbest(s, k) if len(s.node) else [(0.0, ())] for s in self._scores(dataset, allowed)]
        labels = [y for paths in found for _, path in paths for y in path]
        return (
            np.array([len(paths) for paths in found], dtype=np.uint32),
            np.array([score for paths in found for score, _ in paths]),
            np.array(labels, dtype=np.uint16),
        )

    def marginals(
        self, dataset: _core.Dataset, *, allowed: Support | None = None, n_jobs: int = 0
    ) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
        p, log_z = [np.zeros((0, self.layout.n_labels))], []
        for s in self._scores(dataset, allowed):
            p.append(chain.marginals(s)[0] if len(s.node) else s.node)
            log_z.append(chain.log_partition(s) if len(s.node) else 0.0)
        return np.concatenate(p).astype(np.float32), np.array(log_z)


def scorer(
    layout: _core.Layout, weights: NDArray[np.float32], forbidden: NDArray[np.uint32] | None, local: bool
) -> Scorer:
    """Return the scorer of these weights."""
    assert not local
    return NumpyScorer(layout, weights, forbidden)


NUMPY = Backend("numpy", NumpyObjective, scorer)
