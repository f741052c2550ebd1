"""Dual block ascent on the log loss with l2 |w|^2, every q_i a list of the probabilities of all paths.

    P(w) = sum_i s_i log sum_y exp w.(S_i(y) - S_i(y_i)) + l2 |w|^2  >=  D(q) = sum_i s_i entropy(q_i) - l2 |w(q)|^2
    w(q) = -1/(2 l2) sum_i s_i E_{q_i}[S_i(y) - S_i(y_i)]

Le Priol, Piche and Lacoste-Julien 2018, algorithm 1, with an exact line search.
"""

from __future__ import annotations

import numpy as np

from .optimum import Paths, loss


def entropy(q: np.ndarray) -> float:
    """Return -sum q log q."""
    return float(-(q[q > 0] * np.log(q[q > 0])).sum())


def weights(sentences: list[Paths], qs: list[np.ndarray], s: np.ndarray, l2: float) -> np.ndarray:
    """Return w(q)."""
    return -sum(a * (q @ paths.less) for a, q, paths in zip(s, qs, sentences)) / (2 * l2)


def ascent(sentences: list[Paths], s: np.ndarray, l2: float, epochs: int) -> list[tuple[float, float]]:
    """Return (P, D) after each epoch from the gold labels."""
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


def rounds(
    sentences: list[Paths], s: np.ndarray, l2: float, parts: list[range], sigma: float, n: int
) -> list[tuple[float, float]]:
    """Return (P, D) after each of n rounds, in which parts ascend independently from common weights and are added.

    Let x be the change of part k of w(q). Part k gains entropies minus l2 (2 w.x + sigma |x|^2), which up to a
    constant is entropies minus l2 / sigma |w + sigma x|^2. If sigma is the number of parts, the sum of their gains
    is a lower bound of the total gain. Ma et al. 2015, equation 9, with gamma = 1.
    """
    qs = [(paths.less == 0).all(axis=1).astype(float) for paths in sentences]
    qs = [q / q.sum() for q in qs]
    found = []
    for _ in range(n):
        w = weights(sentences, qs, s, l2)
        for part in parts:
            x = np.zeros(len(w))
            for i in part:
                less = sentences[i].less
                scores = less @ (w + sigma * x)
                p = np.exp(scores - scores.max())
                d = p / p.sum() - qs[i]
                move = -s[i] * (d @ less) / (2 * l2)

                def gain(g: float, i=i, d=d, w=w, x=x, move=move) -> float:
                    there = x + g * move
                    return s[i] * entropy(qs[i] + g * d) - l2 * float(2 * w @ there + sigma * there @ there)

                low, high = 0.0, 1.0
                for _ in range(60):
                    a, b = low + (high - low) / 3, high - (high - low) / 3
                    low, high = (a, high) if gain(a) < gain(b) else (low, b)
                qs[i], x = qs[i] + low * d, x + low * move
        w = weights(sentences, qs, s, l2)
        primal = sum(a * loss([paths], "log", w)[0] for a, paths in zip(s, sentences)) + l2 * float(w @ w)
        found.append((primal, sum(a * entropy(q) for a, q in zip(s, qs)) - l2 * float(w @ w)))
    return found
