"""Dual block ascent on the log loss with l2 |w|^2, every q_i a list of the probabilities of all paths.

    P(w) = sum_i s_i log sum_y exp w.(S_i(y) - S_i(y_i)) + l2 |w|^2  >=  D(q) = sum_i s_i entropy(q_i) - l2 |w(q)|^2
    w(q) = -1/(2 l2) sum_i s_i E_{q_i}[S_i(y) - S_i(y_i)]

Le Priol, Piche and Lacoste-Julien 2018, algorithm 1, with an exact line search.
"""

from __future__ import annotations

import numpy as np

from .optimum import Paths, loss


def entropy(q: np.ndarray) -> float:
    """-sum q log q."""
    return float(-(q[q > 0] * np.log(q[q > 0])).sum())


def weights(sentences: list[Paths], qs: list[np.ndarray], s: np.ndarray, l2: float) -> np.ndarray:
    """w(q)."""
    return -sum(a * (q @ paths.less) for a, q, paths in zip(s, qs, sentences)) / (2 * l2)


def ascent(sentences: list[Paths], s: np.ndarray, l2: float, epochs: int) -> list[tuple[float, float]]:
    """(P, D) after each epoch from the gold labels."""
    qs = [(paths.less == 0).all(axis=1).astype(float) for paths in sentences]
    qs = [q / q.sum() for q in qs]
    found = []
    for _ in range(epochs):
        for i, paths in enumerate(sentences):
            w = weights(sentences, qs, s, l2)
            scores = paths.less @ w
            p = np.exp(scores - scores.max())
            d = p / p.sum() - qs[i]
            move = -s[i] * (d @ paths.less) / (2 * l2)

            def dual(g: float, i=i, d=d, w=w, move=move) -> float:
                there = w + g * move
                return s[i] * entropy(qs[i] + g * d) - l2 * float(there @ there)

            low, high = 0.0, 1.0  # the dual is concave along d
            for _ in range(60):
                a, b = low + (high - low) / 3, high - (high - low) / 3
                low, high = (a, high) if dual(a) < dual(b) else (low, b)
            qs[i] = qs[i] + low * d
        w = weights(sentences, qs, s, l2)
        primal = sum(a * loss([paths], "log", w)[0] for a, paths in zip(s, sentences)) + l2 * float(w @ w)
        found.append((primal, sum(a * entropy(q) for a, q in zip(s, qs)) - l2 * float(w @ w)))
    return found
