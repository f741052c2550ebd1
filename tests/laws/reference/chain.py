"""Inference on one chain of scores, in log space throughout.

H(x,y) = sum_t node[t,y_t] + sum_{t>=1} edge[t,y_{t-1},y_t] + start[y_0] + end[y_{T-1}].

A score of minus infinity forbids: a label at a token, a transition, a start or an end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
Path = tuple[int, ...]


class Scores(NamedTuple):
    """Scores of one sentence, or a gradient with respect to them (same shapes)."""

    node: Array  # [T, L]
    edge: Array  # [L, L], or [T, L, L] with edge[t] from t-1 to t and edge[0] ignored
    start: Array  # [L]
    end: Array  # [L]


def scores(
    node: ArrayLike,
    edge: ArrayLike,
    start: ArrayLike | None = None,
    end: ArrayLike | None = None,
    allowed: ArrayLike | None = None,
    forbidden: ArrayLike | None = None,
) -> Scores:
    """Collect plain arrays. ``allowed`` [T, L] and ``forbidden`` [L, L] become scores of minus infinity."""
    node, edge = np.array(node, dtype=np.float64), np.array(edge, dtype=np.float64)
    labels = node.shape[1]
    if allowed is not None:
        node[~np.asarray(allowed, dtype=bool)] = -np.inf
    if forbidden is not None:
        edge[..., np.asarray(forbidden, dtype=bool)] = -np.inf
    zero = np.zeros(labels)
    return Scores(
        node,
        edge,
        zero.copy() if start is None else np.array(start, dtype=np.float64),
        zero.copy() if end is None else np.array(end, dtype=np.float64),
    )


def edges(s: Scores) -> Array:
    """Return the edge scores token by token, [T, L, L]."""
    T, L = s.node.shape
    return np.broadcast_to(s.edge, (T, L, L))


def score(s: Scores, y: Sequence[int]) -> float:
    """Return H(x,y), the score of one path."""
    shared = s.edge.ndim == 2
    total = s.start[y[0]] + s.end[y[-1]] + sum(s.node[t, y[t]] for t in range(len(y)))
    steps = ((y[t - 1], y[t]) if shared else (t, y[t - 1], y[t]) for t in range(1, len(y)))
    return float(total + sum(s.edge[step] for step in steps))


def counts(s: Scores, y: Sequence[int]) -> Scores:
    """Return the gradient of H(x,y) in the scores: an indicator of the cells on the path."""
    T, L = s.node.shape
    g = Scores(np.zeros((T, L)), np.zeros((T, L, L)), np.zeros(L), np.zeros(L))
    g.start[y[0]] += 1
    g.end[y[-1]] += 1
    for t in range(T):
        g.node[t, y[t]] += 1
        if t:
            g.edge[t, y[t - 1], y[t]] += 1
    return like(s, g)


def like(s: Scores, g: Scores) -> Scores:
    """Sum the edge part of ``g`` over tokens when the edge scores of ``s`` are shared by all tokens."""
    return g if s.edge.ndim == 3 else g._replace(edge=g.edge.sum(axis=0))


def log_sum_exp(a: Array, axis: int | None = None) -> Array:
    """Return log sum exp a, which is minus infinity if all of ``a`` is."""
    top = np.max(a, axis=axis, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        return np.log(np.sum(np.exp(a - top), axis=axis)) + np.squeeze(top, axis=axis)


def forward(s: Scores) -> Array:
    """Return alpha[t,y], the log of the summed exponentiated scores of all paths that reach y at t. [T, L]"""
    T, L = s.node.shape
    edge, alpha = edges(s), np.empty((T, L))
    alpha[0] = s.start + s.node[0]
    for t in range(1, T):
        alpha[t] = log_sum_exp(alpha[t - 1][:, None] + edge[t], axis=0) + s.node[t]
    return alpha


def backward(s: Scores) -> Array:
    """Return beta[t,y], the log sum over all paths from y at t to the end, without node[t,y]. [T, L]"""
    T, L = s.node.shape
    edge, beta = edges(s), np.empty((T, L))
    beta[T - 1] = s.end
    for t in range(T - 2, -1, -1):
        beta[t] = log_sum_exp(edge[t + 1] + (s.node[t + 1] + beta[t + 1])[None, :], axis=1)
    return beta


def log_partition(s: Scores) -> float:
    """Return log Z(x) = log sum_y exp H(x,y)."""
    return float(log_sum_exp(forward(s)[-1] + s.end))


def marginals(s: Scores) -> tuple[Array, Array]:
    """Return p_t(y) [T, L] and p_t(y',y) [T, L, L]. pair[t] belongs to tokens (t-1, t), and pair[0] is zero."""
    T, L = s.node.shape
    edge, alpha, beta, log_z = edges(s), forward(s), backward(s), log_partition(s)
    pair = np.zeros((T, L, L))
    for t in range(1, T):
        pair[t] = np.exp(alpha[t - 1][:, None] + edge[t] + (s.node[t] + beta[t])[None, :] - log_z)
    return np.exp(alpha + beta - log_z), pair


def expectations(s: Scores) -> Scores:
    """Return E[S] under P(y|x), laid out like the scores: the gradient of log Z."""
    node, pair = marginals(s)
    return like(s, Scores(node, pair, node[0].copy(), node[-1].copy()))


def conditional_expectations(s: Scores, gold: Sequence[int], omega: Array) -> Scores:
    """Return sum_t omega_t E[S | y_t = gold_t], by two more O(T L^2) passes.

    U_s(b) = omega_s [b=c_s] + sum_a U_{s-1}(a) P(y_s=b | y_{s-1}=a)      terms of tokens up to s
    V_s(a) = omega_s [a=c_s] + sum_b V_{s+1}(b) P(y_s=a | y_{s+1}=b)      terms of tokens from s on
    pair at (s,s+1) = U_s(a) P(b|a) + V_{s+1}(b) P(a|b)
    node at s = U_s + V_s - omega_s [.=c_s]
    """
    T, L = s.node.shape
    node, pair = marginals(s)
    own = np.zeros((T, L))
    own[np.arange(T), list(gold)] = omega
    # P(y_t=b | y_{t-1}=a) and P(y_{t-1}=a | y_t=b), indexed [t, a, b], 0 if the condition is impossible
    zero = np.zeros_like(pair)
    before = np.concatenate([np.ones((1, L)), node[:-1]])[:, :, None]
    onward = np.divide(pair, before, out=zero.copy(), where=before > 0)
    back = np.divide(pair, node[:, None, :], out=zero.copy(), where=node[:, None, :] > 0)
    U, V = own.copy(), own.copy()
    for t in range(1, T):
        U[t] += U[t - 1] @ onward[t]
    for t in range(T - 2, -1, -1):
        V[t] += back[t + 1] @ V[t + 1]
    g_node, g_pair = U + V - own, zero
    for t in range(1, T):
        g_pair[t] = U[t - 1][:, None] * onward[t] + V[t][None, :] * back[t]
    return like(s, Scores(g_node, g_pair, g_node[0].copy(), g_node[-1].copy()))


def kbest(s: Scores, k: int) -> list[tuple[float, Path]]:
    """Return the k best paths with their scores, best first, or fewer if fewer are allowed.

    Among equal scores the lower last label comes first, then the lower label before it, and so on: each cell
    keeps its k best prefixes, and ties prefer the lower previous label, then its better prefix.
    """
    T, L = s.node.shape
    edge = edges(s)
    cells: list[list[tuple[float, Path]]] = [[(float(s.start[y] + s.node[0, y]), (y,))] for y in range(L)]
    for t in range(1, T):
        cells = [
            _best([(h + edge[t, a, y] + s.node[t, y], (*p, y)) for a in range(L) for h, p in cells[a]], k)
            for y in range(L)
        ]
    return _best([(h + s.end[y], p) for y in range(L) for h, p in cells[y]], k)


def _best(paths: list[tuple[float, Path]], k: int) -> list[tuple[float, Path]]:
    """Return the k best in a stable order, without paths that have a forbidden step."""
    possible = [(float(h), p) for h, p in paths if h > -np.inf]
    return sorted(possible, key=lambda hp: -hp[0])[:k]


def viterbi(s: Scores) -> Path:
    """Return argmax_y H(x,y), ties to the lower label id (the last token decides first)."""
    T, L = s.node.shape
    edge = edges(s)
    best, back = s.start + s.node[0], np.zeros((T, L), dtype=int)
    for t in range(1, T):
        reach = best[:, None] + edge[t]
        back[t] = reach.argmax(axis=0)  # argmax takes the first of equals
        best = reach.max(axis=0) + s.node[t]
    y = [int((best + s.end).argmax())]
    for t in range(T - 1, 0, -1):
        y.append(int(back[t, y[-1]]))
    return tuple(reversed(y))


def pointwise(s: Scores) -> Path:
    """Return argmax_y p_t(y) of each token, ties to the lower label id."""
    return tuple(int(y) for y in marginals(s)[0].argmax(axis=1))


def entropy(s: Scores) -> float:
    """Return -sum_y P(y|x) log P(y|x) = log Z - E[H], which needs marginals only."""
    e, edge = expectations(s._replace(edge=edges(s))), edges(s)
    terms = [(s.node, e.node), (edge, e.edge), (s.start, e.start), (s.end, e.end)]
    return log_partition(s) - float(sum(np.sum(h[p > 0] * p[p > 0]) for h, p in terms))
