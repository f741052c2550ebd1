"""A chain most of whose transitions score the same: sums and maxima over lists of the others.

Let psi_t(y) = e^{node[t, y]}, let transitions that are not listed score 0, and let w be the score of a listed one
(minus infinity if it is forbidden). Then

    alpha_t(y)  = psi_t(y) ( sum_a alpha_{t-1}(a)  +  sum_{(a, y) listed} alpha_{t-1}(a) (e^{w(a, y)} - 1) )
    delta_t(y)  = node[t, y] + max( max_{(a, y) not listed} delta_{t-1}(a),
                                    max_{(a, y) listed} delta_{t-1}(a) + w(a, y) )

in T (L + number of listed transitions) steps instead of T L^2.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from .chain import Array, Path

Listed = Mapping[tuple[int, int], float]  # (label before, label) -> score


def _step(alpha: Array, listed: Listed, ahead: bool) -> Array:
    """Return sum_a alpha(a) M[a, y] for every y (``ahead``), or sum_y M[a, y] alpha(y) for every a."""
    out = np.full(len(alpha), alpha.sum())
    for (a, y), w in listed.items():
        source, to = (a, y) if ahead else (y, a)
        out[to] += alpha[source] * np.expm1(w)
    return out


def marginals(node: Array, listed: Listed) -> tuple[float, Array, dict[tuple[int, int], float]]:
    """Return log Z, p_t(y) [T, L], and sum_t p_t(a, y) of every listed transition."""
    T, L = node.shape
    psi = np.exp(node - node.max(axis=1, keepdims=True))
    alpha, beta, log_z = np.empty((T, L)), np.ones((T, L)), float(node.max(axis=1).sum())
    scale = np.empty(T)
    for t in range(T):
        alpha[t] = psi[t] * (_step(alpha[t - 1], listed, ahead=True) if t else 1.0)
        scale[t] = alpha[t].sum()
        alpha[t] /= scale[t]
    for t in range(T - 2, -1, -1):
        beta[t] = _step(psi[t + 1] * beta[t + 1] / scale[t + 1], listed, ahead=False)
    pairs = {
        (a, y): sum(
            alpha[t - 1, a] * float(np.exp(w)) * psi[t, y] * beta[t, y] / scale[t] for t in range(1, T)
        )
        for (a, y), w in listed.items()
    }
    return log_z + float(np.log(scale).sum()), alpha * beta, pairs


def viterbi(node: Array, listed: Listed) -> Path:
    """Return the best path, ties to the lower label id, the last token first.

    A listed transition may score less than the others. The best label among those not listed is found by walking
    down from the best label until one is not in the list.
    """
    T, L = node.shape
    before: list[list[int]] = [[a for a, z in listed if z == y] for y in range(L)]
    delta, back = node[0].copy(), np.zeros((T, L), dtype=int)
    for t in range(1, T):
        order = sorted(range(L), key=lambda a, d=delta: (-d[a], a))  # type: ignore[misc]
        now = np.empty(L)
        for y in range(L):
            candidates = [(-(delta[a] + listed[a, y]), a) for a in before[y]]
            candidates += [
                (-delta[a], a)
                for a in [next((a for a in order if a not in before[y]), None)]
                if a is not None
            ]
            now[y], back[t, y] = min(candidates)
            now[y] = node[t, y] - now[y]
        delta = now
    path = [int(delta.argmax())]
    for t in range(T - 1, 0, -1):
        path.append(int(back[t, path[-1]]))
    return tuple(reversed(path))
