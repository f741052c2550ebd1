"""The baselines: hidden Markov models as log probabilities in score arrays, and the MEMM."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from .chain import Array, Path, Scores, counts, edges, log_sum_exp, scores


def additive(n: Array, delta: float = 1.0) -> Array:
    """Return P(o | row) = (n + delta) / (sum n + delta V), along the last axis."""
    return (n + delta) / (n.sum(axis=-1, keepdims=True) + delta * n.shape[-1])


def witten_bell(n: Array) -> Array:
    """Return n / (N + K) for seen, and an equal share of K / (N + K) for unseen events, with K kinds seen.

    Witten & Bell 1991, method C. A row without unseen events keeps relative frequencies, and an empty row is
    uniform.
    """
    V = n.shape[-1]
    kinds, N = (n > 0).sum(axis=-1, keepdims=True), n.sum(axis=-1, keepdims=True)
    unseen = V - kinds
    mass = np.where(unseen > 0, kinds, 0)  # reserved for the unseen
    seen = np.divide(n, N + mass, out=np.zeros_like(n), where=N > 0)
    share = np.divide(mass, (N + mass) * unseen, out=np.full(N.shape, 1 / V), where=(N > 0) & (unseen > 0))
    return np.where(n > 0, seen, np.where(N > 0, share, 1 / V))


def hmm_counts(
    words: Sequence[Sequence[int]], y: Sequence[Path], labels: int, kinds: int
) -> tuple[Array, Array, Array]:
    """Return emissions [L, V] (the unknown word is a kind), moves [L, L + 1] (the last is the end), starts [L]."""
    emit, move, start = np.zeros((labels, kinds)), np.zeros((labels, labels + 1)), np.zeros(labels)
    for sentence, path in zip(words, y):
        start[path[0]] += 1
        move[path[-1], labels] += 1
        for w, a in zip(sentence, path):
            emit[a, w] += 1
        for a, b in pairwise(path):
            move[a, b] += 1
    return emit, move, start


def hmm_scores(sentence: Sequence[int], emit: Array, move: Array, start: Array) -> Scores:
    """Return scores with H = log P(x,y): emissions [L, V] at nodes, moves [L, L + 1] on edges and at the end."""
    return scores(np.log(emit[:, list(sentence)]).T, np.log(move[:, :-1]), np.log(start), np.log(move[:, -1]))


def overlapping_scores(X: Array, emit: Array, move: Array, start: Array) -> Scores:
    """Emit every attribute of a token independently given the label: s_t(y) = sum_a X[t,a] log P(a|y)."""
    return scores(X @ np.log(emit).T, np.log(move[:, :-1]), np.log(start), np.log(move[:, -1]))


def memm_scores(s: Scores) -> Scores:
    """Return a classifier of y_t given y_{t-1} and x_t as a chain: scores out of each label are normalised alone.

    The end score belongs to the last token's classifier. log Z of the result is 0: no path can be penalised as a
    whole, which is the label bias (Lafferty, McCallum & Pereira 2001, section 2).
    """
    T, L = s.node.shape
    node = s.node.copy()
    node[T - 1] += s.end
    first = s.start + node[0]
    edge = edges(s) + node[:, None, :]
    edge = edge - log_sum_exp(edge, axis=2)[:, :, None]
    return scores(np.zeros((T, L)), edge, first - log_sum_exp(first), np.zeros(L))


def memm_loss(s: Scores, gold: Path) -> tuple[float, Scores]:
    """Return -sum_t log P(y_t | y_{t-1}, x_t) and its gradient in the scores before normalisation."""
    T, L = s.node.shape
    local = memm_scores(s)
    full = s._replace(edge=edges(s))
    n = counts(full, gold)
    g = Scores(np.zeros((T, L)), np.zeros((T, L, L)), np.zeros(L), np.zeros(L))
    value = -local.start[gold[0]]
    g.start[...] = g.node[0] = np.exp(local.start)
    for t in range(1, T):
        value -= local.edge[t, gold[t - 1], gold[t]]
        g.edge[t, gold[t - 1]] = g.node[t] = np.exp(local.edge[t, gold[t - 1]])
    g.end[...] = g.node[T - 1]
    out = Scores(*(a - b for a, b in zip(g, n)))
    return float(value), out if s.edge.ndim == 3 else out._replace(edge=out.edge.sum(axis=0))
