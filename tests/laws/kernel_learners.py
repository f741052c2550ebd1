"""Kernel learners on random corpora, with their reference implementations."""

from __future__ import annotations

from typing import Any

import numpy as np

from tagwise import _core
from tagwise.scores.kernels import KernelFunction

from . import constructors
from .online import corpus, encode
from .reference import perceptron
from .strategies import Problem

TWIN = {
    "linear": perceptron.linear,
    "poly": perceptron.polynomial(1.0, 2),
    "rbf": perceptron.rbf(0.3),
}


def frame(vocabulary: _core.Vocabulary, data: _core.Dataset, labels: int) -> _core.Layout:
    """Return a layout with every transition, start and end, and no node feature."""
    layout = _core.Layout.build(data, len(vocabulary), labels, all_pairs=True)
    arrays = layout.arrays()
    arrays["node_ptr"] = np.zeros(len(vocabulary) + 1, dtype=np.uint64)
    arrays["node_label"] = np.zeros(0, dtype=np.uint16)
    return _core.Layout.from_arrays(len(vocabulary), labels, arrays)


class KernelProblem:
    """A tiny problem in the form of the kernel learners."""

    def __init__(self, p: Problem) -> None:
        self.vocabulary, self.data = encode(p)
        self.layout = frame(self.vocabulary, self.data, p.shape.labels)
        self.labels, self.n = p.shape.labels, len(self.vocabulary)
        # distinct rows in order of first occurrence, as the core numbers them
        rows = [tuple(x) for sentence in p.X for x in sentence]
        self.distinct = list(dict.fromkeys(rows))
        self.of = np.array([self.distinct.index(x) for x in rows])

    def perceptron(self, kernel: KernelFunction, **parameters: Any) -> _core.KernelPerceptron:
        return constructors.kernel_perceptron(self.data, self.layout, kernel, **parameters)

    def svm(self, kernel: KernelFunction, **parameters: Any) -> _core.KernelSvm:
        return constructors.kernel_svm(self.data, self.layout, kernel, **parameters)

    def split(self, w: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return beta [U, L], transitions, starts, ends."""
        L = self.labels
        parts = np.split(w, [L * L, L * L + L, L * L + 2 * L])
        return parts[3].reshape(-1, L), parts[0].reshape(L, L), parts[1], parts[2]

    def shared(self, beta: np.ndarray) -> np.ndarray:
        """Return the reference betas, one per token, summed over equal tokens."""
        out = np.zeros((len(self.distinct), self.labels))
        np.add.at(out, self.of, beta)
        return out


def random_sparse(seed: int, n: int = 40, values: bool = False) -> Problem:
    p = corpus(seed, 5, n=n, attributes=25)
    if values:
        rng = np.random.default_rng(seed)
        p = Problem(p.shape, [x * rng.normal(1.0, 0.5, x.shape).round(2) for x in p.X], p.y)
    return p
