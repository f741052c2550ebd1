"""The Hidden Markov SVM (Altun, Tsochantaridis & Hofmann 2003), as one big dual and by working sets.

min 1/2 ||w||^2 + C sum xi_i   s.t.   1/2 [H(y_i) - H(y)] >= b_iy - xi_i   for all y != y_i,
with b = 1, or the Hamming distance (margin rescaling, Taskar et al. 2003, Tsochantaridis et al. 2005).
With d_iy = S(y_i) - S(y):  w = 1/2 sum alpha_iy d_iy,   dual  max sum alpha b - 1/2 ||w||^2,   alpha >= 0 and
sum_y alpha_iy <= C (a slack per sentence), or alpha_iy <= C (a slack per sequence: SVM_2).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

from . import qp
from .chain import Array, Path, counts, kbest, scores
from .model import Shape, features, score_sentence
from .perceptron import Kernel


class Solution(NamedTuple):
    """Weights, both objectives, and alpha for each constraint (i, y)."""

    w: Array
    primal: float
    dual: float
    alpha: dict[tuple[int, Path], float]


def hamming(gold: Path, guess: Path) -> int:
    """Return the number of wrong labels."""
    return sum(a != b for a, b in zip(gold, guess))


def constraints(y: Sequence[Path], labels: int) -> list[tuple[int, Path]]:
    """Return every (i, wrong path), for tiny problems only."""
    return [(i, p) for i, g in enumerate(y) for p in product(range(labels), repeat=len(g)) if p != g]


def solve(
    X: Sequence[Array],
    y: Sequence[Path],
    shape: Shape,
    C: float,
    slack: str = "instance",
    margin: bool = False,
) -> Solution:
    """Return the optimum over all constraints at once."""
    pairs = constraints(y, shape.labels)
    d = np.array([features(X[i], y[i], shape) - features(X[i], p, shape) for i, p in pairs])
    b = np.array([hamming(y[i], p) if margin else 1 for i, p in pairs], dtype=float)
    sentence = np.array([i for i, _ in pairs])
    alpha = _dual(d @ d.T / 4, b, sentence, C, slack)
    w = alpha @ d / 2
    shortfall = np.maximum(0, b - d @ w / 2)
    xi = (
        shortfall.sum()
        if slack == "sequence"
        else sum(shortfall[sentence == i].max() for i in set(sentence.tolist()))
    )
    half = w @ w / 2
    return Solution(w, float(half + C * xi), float(alpha @ b - half), dict(zip(pairs, alpha.tolist())))


def _dual(G: Array, b: Array, sentence: Array, C: float, slack: str) -> Array:
    return qp.box(G, b, C) if slack == "sequence" else qp.groups(G, b, sentence, C)


def gram(
    X: Sequence[Array], y: Sequence[Path], labels: int, kernel: Kernel
) -> tuple[Array, list[tuple[int, Path]]]:
    """Return <d_iy, d_jy'> through the kernel: sum_{s,t} n_s . n'_t K(x_s, x_t), plus transitions, starts, ends.

    n_s(sigma) = [gold=sigma] - [y_s=sigma]. With the linear kernel this is d @ d.T.
    """
    pairs = constraints(y, labels)
    zero = [scores(np.zeros((len(g), labels)), np.zeros((labels, labels))) for g in y]
    rows = []
    for i, p in pairs:
        right, wrong = counts(zero[i], y[i]), counts(zero[i], p)
        rows.append([(a - b) for a, b in zip(right, wrong)])
    G = np.empty((len(pairs), len(pairs)))
    for r, (i, _) in enumerate(pairs):
        for q, (j, _) in enumerate(pairs):
            seen = np.sum(kernel(X[i], X[j]) * (rows[r][0] @ rows[q][0].T))
            G[r, q] = seen + sum(np.sum(a * b) for a, b in zip(rows[r][1:], rows[q][1:]))
    return G, pairs


def working_set(
    X: Sequence[Array],
    y: Sequence[Path],
    shape: Shape,
    C: float,
    slack: str = "instance",
    margin: bool = False,
    tol: float = 1e-6,
    epochs: int = 1000,
) -> Solution:
    """Solve sentence by sentence: two-best Viterbi finds the most violating path, then its alphas are optimised.

    A path y violates if 1/2 [H(y_i) - H(y)] < b - xi_i - tol. With Hamming margins the search maximises H + 2
    Hamming.
    """
    alpha: list[dict[Path, float]] = [{} for _ in X]
    w = np.zeros(shape.size)

    def difference(i: int, p: Path) -> Array:
        return features(X[i], y[i], shape) - features(X[i], p, shape)

    def bound(i: int, p: Path) -> float:
        return float(hamming(y[i], p)) if margin else 1.0

    for _ in range(epochs):
        changed = False
        for i in range(len(X)):
            s = score_sentence(w, X[i], shape)
            if margin:
                s = s._replace(node=s.node + 2 * (np.arange(shape.labels) != np.array(y[i])[:, None]))
            # With a slack per sequence the violations of other sequences count, so search beyond those in the set.
            k = 2 + (len(alpha[i]) if slack == "sequence" else 0)
            shortfall = {p: bound(i, p) - w @ difference(i, p) / 2 for p in alpha[i]}
            xi = max([0.0, *shortfall.values()]) if slack == "instance" else 0.0
            for _, p in kbest(s, k):
                if p != y[i] and p not in alpha[i] and bound(i, p) - w @ difference(i, p) / 2 > xi + tol:
                    alpha[i][p], changed = 0.0, True
                    break
            if not alpha[i]:
                continue
            d = np.array([difference(i, p) for p in alpha[i]])
            rest = w - np.array(list(alpha[i].values())) @ d / 2
            b = np.array([bound(i, p) for p in alpha[i]]) - d @ rest / 2
            new = _dual(d @ d.T / 4, b, np.zeros(len(b), dtype=int), C, slack)
            moved = rest + new @ d / 2
            changed |= bool(np.abs(moved - w).max() > tol)
            w = moved
            alpha[i] = {p: a for p, a in zip(alpha[i], new.tolist()) if a > 1e-12}
        if not changed:
            break
    flat = {(i, p): a for i, row in enumerate(alpha) for p, a in row.items()}
    dual = sum(a * bound(i, p) for (i, p), a in flat.items()) - w @ w / 2
    return Solution(w, primal(w, X, y, shape, C, slack, margin), float(dual), flat)


def primal(
    w: Array,
    X: Sequence[Array],
    y: Sequence[Path],
    shape: Shape,
    C: float,
    slack: str,
    margin: bool,
    most: int | None = None,
) -> float:
    """Return 1/2 ||w||^2 + C sum xi by enumeration, with only the `most` largest slacks per sentence if given."""
    total = 0.0
    for i, g in enumerate(y):
        shortfall = [
            max(
                0.0,
                (hamming(g, p) if margin else 1)
                - w @ (features(X[i], g, shape) - features(X[i], p, shape)) / 2,
            )
            for p in product(range(shape.labels), repeat=len(g))
            if p != g
        ]
        total += sum(sorted(shortfall, reverse=True)[:most]) if slack == "sequence" else max(shortfall)
    return float(w @ w / 2 + C * total)
