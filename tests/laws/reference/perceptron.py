"""The structured perceptron of Collins 2002, primal and dual.

Sentences are visited in the order given (one permutation per epoch), so that any shuffling can be replayed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from . import enumeration
from .chain import Array, Path, Scores, counts, scores, viterbi
from .model import Shape, features, score_sentence

Kernel = Callable[[Array, Array], Array]  # [S, A], [T, A] -> [S, T]


def perceptron(
    X: Sequence[Array],
    y: Sequence[Path],
    shape: Shape,
    order: Sequence[Sequence[int]],
    mask: Array | None = None,
    weight: Sequence[float] | None = None,
) -> tuple[Array, Array]:
    """Return the last weights and their average, with y^ = argmax H and w += S(y_i) - S(y^) if y^ != y_i.

    The average is over the weights after each sentence, updated or not: (1 / steps) sum_j w_j. ``mask``
    [size] keeps the weights of features the model does not have at zero. ``weight`` [N] multiplies the update
    of each sentence. Its step counts in the average for any weight.
    """
    weight = [1.0] * len(X) if weight is None else weight
    w, total, steps = np.zeros(shape.size), np.zeros(shape.size), 0
    for epoch in order:
        for i in epoch:
            w = w + weight[i] * update(w, X[i], y[i], shape, mask)
            total, steps = total + w, steps + 1
    return w, total / max(steps, 1)


def update(w: Array, X: Array, y: Path, shape: Shape, mask: Array | None = None) -> Array:
    """Return S(y) - S(y^), which is zero if the prediction is right."""
    guess = viterbi(score_sentence(w, X, shape))
    step = features(X, y, shape) - features(X, guess, shape)
    return step if mask is None else step * mask


def after_each_step(
    X: Sequence[Array],
    y: Sequence[Path],
    shape: Shape,
    order: Sequence[Sequence[int]],
    mask: Array | None = None,
) -> list[Array]:
    """Return the weights after each sentence, updated or not: the voters of Freund and Schapire 1999."""
    w, out = np.zeros(shape.size), []
    for epoch in order:
        for i in epoch:
            w = w + update(w, X[i], y[i], shape, mask)
            out.append(w)
    return out


def voted(voters: Sequence[Array], votes: Sequence[int], X: Array, shape: Shape) -> tuple[Path, Path]:
    """Return argmax_y sum_j c_j [y = argmax H(y; w_j)] over all paths, and the majority label of each token.

    Ties go to lower labels.
    """
    paths = [enumeration.viterbi(score_sentence(w, X, shape)) for w in voters]
    tally = {path: sum(c for p, c in zip(paths, votes) if p == path) for path in set(paths)}
    tokens = [
        [sum(c for p, c in zip(paths, votes) if p[t] == label) for label in range(shape.labels)]
        for t in range(len(X))
    ]
    return min(tally, key=lambda path: (-tally[path], path)), tuple(row.index(max(row)) for row in tokens)


def batch_perceptron(
    X: Sequence[Array],
    y: Sequence[Path],
    shape: Shape,
    epochs: int,
    mask: Array | None = None,
    weight: Sequence[float] | None = None,
) -> tuple[Array, Array]:
    """Run the perceptron with the updates of an epoch summed before they are applied. The average is over epochs."""
    weight = [1.0] * len(X) if weight is None else weight
    w, total = np.zeros(shape.size), np.zeros(shape.size)
    for _ in range(epochs):
        w = w + np.sum([weight[i] * update(w, X[i], y[i], shape, mask) for i in range(len(X))], axis=0)
        total = total + w
    return w, total / max(epochs, 1)


def linear(a: Array, b: Array) -> Array:
    """Return <x, x'>."""
    return a @ b.T


def polynomial(c: float, degree: int) -> Kernel:
    """Return (c + <x, x'>)^d."""
    return lambda a, b: (c + a @ b.T) ** degree


def rbf(gamma: float) -> Kernel:
    """Return exp(-gamma ||x - x'||^2)."""
    return lambda a, b: np.exp(-gamma * ((a[:, None, :] - b[None, :, :]) ** 2).sum(axis=2))


class Dual:
    """Weights as beta [S, L] on training tokens, explicit on transitions, starts and ends.

    s_t(sigma) = sum_s beta_s(sigma) K(x_t, x_s), where beta_s(sigma) = times sigma was right minus times
    predicted.
    """

    def __init__(self, X: Sequence[Array], labels: int, kernel: Kernel) -> None:
        self.tokens = np.concatenate(X)  # [S, A]
        self.offsets = np.cumsum([0] + [len(x) for x in X])
        self.kernel = kernel
        self.beta = np.zeros((len(self.tokens), labels))
        self.transition = np.zeros((labels, labels))
        self.start = np.zeros(labels)
        self.end = np.zeros(labels)

    def score(self, X: Array) -> Scores:
        """Return scores of any sentence."""
        return scores(self.kernel(X, self.tokens) @ self.beta, self.transition, self.start, self.end)

    def add(self, i: int, y: Path, amount: float) -> None:
        """Add amount * S(x_i, y) to w, for training sentence i."""
        n = counts(scores(np.zeros((len(y), len(self.start))), self.transition), y)
        self.beta[self.offsets[i] : self.offsets[i + 1]] += amount * n.node
        self.transition += amount * n.edge
        self.start += amount * n.start
        self.end += amount * n.end

    def blend(self, other: Dual, amount: float) -> None:
        """Add amount times the weights of `other` (for averages)."""
        for part in ("beta", "transition", "start", "end"):
            getattr(self, part)[...] += amount * getattr(other, part)


def dual_perceptron(
    X: Sequence[Array],
    y: Sequence[Path],
    labels: int,
    order: Sequence[Sequence[int]],
    kernel: Kernel,
    weight: Sequence[float] | None = None,
) -> tuple[Dual, Dual]:
    """Run the perceptron through kernel values only. Return the last and the averaged model."""
    weight = [1.0] * len(X) if weight is None else weight
    w, mean = Dual(X, labels, kernel), Dual(X, labels, kernel)
    steps = sum(len(epoch) for epoch in order)
    for epoch in order:
        for i in epoch:
            guess = viterbi(w.score(X[i]))
            if guess != y[i]:
                w.add(i, y[i], weight[i])
                w.add(i, guess, -weight[i])
            mean.blend(w, 1 / steps)
    return w, mean
