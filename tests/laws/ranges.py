"""Sentences whose scores span a given range, and their exact sums in double precision and log space.

Scores are multiples of the span, so that paths which differ by much at one token tie in the end. An entry lost to
underflow then has most of the probability. The scores are exact in single precision.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np

SPANS = (0, 1, 20, 34, 38, 44, 50, 56, 58, 64, 68, 76, 82, 90, 130, 400, 1e3, 1e4)
KINDS = ("edges", "nodes", "both")
RULES = ("none", "edges", "labels", "both")
LENGTHS = (1, 2, 2, 3, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 6, 7, 9, 12, 24, 40)


class Batch(NamedTuple):
    """A padded batch of sentences. Entries beyond the end of a sentence are 0."""

    node: np.ndarray  # [B, T, L], minus infinity for labels that are not allowed
    edge: np.ndarray  # [L, L], minus infinity for forbidden transitions
    lengths: np.ndarray  # [B]
    gold: np.ndarray  # [B, T]: the best path, or any allowed one (every third sentence)
    free: np.ndarray  # [B, T, L] node scores without the rules

    @property
    def inside(self) -> np.ndarray:
        """Mask of existing tokens, [B, T]."""
        return np.arange(self.node.shape[1]) < self.lengths[:, None]

    @property
    def sets(self) -> np.ndarray:
        """Allowed labels of every token, [tokens, L]."""
        return np.isfinite(self.node)[self.inside]

    @property
    def forbidden(self) -> np.ndarray:
        return np.isneginf(self.edge)


class Exact(NamedTuple):
    log_z: np.ndarray  # [B]
    score: np.ndarray  # [B] of the gold path
    p: np.ndarray  # [B, T, L]
    pairs: np.ndarray  # [B, L, L] sums over the tokens from the second on


@cache
def draw(labels: int, kind: str, span: float, rule: str, seed: int = 0, listed: float = 1.0) -> Batch:
    """Draw a batch in which a share `listed` of the transitions has a nonzero score."""
    rng = np.random.default_rng([labels, KINDS.index(kind), int(span), RULES.index(rule), seed])
    # Sentences of many labels are short, to save time.
    lengths = [n for n in LENGTHS if labels < 20 or n < 10]
    shape = len(lengths), max(lengths), labels

    def scores(size: tuple[int, ...], wide: bool) -> np.ndarray:
        steps = rng.choice([0.0, 0.25, 0.5, 0.75, 1.0], size, p=[0.3, 0.1, 0.2, 0.1, 0.3])
        return np.round(steps * span) * wide + rng.integers(-8, 9, size) / 8 * (span > 0)

    free, edge = scores(shape, kind != "edges"), scores((labels, labels), kind != "nodes")
    plain = rng.random(edge.shape) >= listed
    if labels > 20:  # only three labels count, since with many there would always be another path
        free[:, :, 3:] -= 3.0 * span
        plain[:3, :3] = False
    edge[plain] = 0.0
    node = free.copy()
    # Label 0 may always follow itself, so every sentence keeps a path.
    if rule in ("labels", "both"):
        barred = rng.random(shape) < 0.4
        barred[:, :, 0] = False
        node[barred] = -np.inf
    if rule in ("edges", "both"):
        barred = rng.random(edge.shape) < 0.4
        barred[0, 0] = False
        edge[barred] = -np.inf
    gold = np.zeros(shape[:2], dtype=int)
    for b, n in enumerate(lengths):
        node[b, n:], free[b, n:] = 0.0, 0.0
        path_scores = (
            node[b, :n] if b % 3 else np.where(np.isfinite(node[b, :n]), rng.random((n, labels)), -np.inf)
        )
        steps = edge if b % 3 else np.where(np.isfinite(edge), rng.random(edge.shape), -np.inf)
        gold[b, :n] = best(path_scores, steps)
    return Batch(node, edge, np.array(lengths), gold, free)


def best(node: np.ndarray, edge: np.ndarray) -> list[int]:
    """Return the best path."""
    state, back = node[0], []
    for row in node[1:]:
        path_scores = state[:, None] + edge
        back.append(path_scores.argmax(0))
        state = path_scores.max(0) + row
    path = [int(state.argmax())]
    for came in reversed(back):
        path.append(int(came[path[-1]]))
    return path[::-1]


def log_sum(x: np.ndarray, axis: int) -> np.ndarray:
    top = x.max(axis=axis, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        return np.log(np.exp(x - top).sum(axis=axis)) + top.squeeze(axis)


@cache
def exact(labels: int, kind: str, span: float, rule: str, seed: int = 0, listed: float = 1.0) -> Exact:
    """Return the sums of `draw`'s sentences, for all labels and sentences at once."""
    batch = draw(labels, kind, span, rule, seed, listed)
    node, edge, inside = batch.node, batch.edge, batch.inside
    many, time = inside.shape
    ahead, behind = np.empty_like(node), np.zeros_like(node)
    ahead[:, 0] = node[:, 0]
    for t in range(1, time):
        moved = log_sum(ahead[:, t - 1, :, None] + edge, 1) + node[:, t]
        ahead[:, t] = np.where(inside[:, t, None], moved, ahead[:, t - 1])
    log_z = log_sum(ahead[:, -1], 1)
    for t in range(time - 2, -1, -1):
        moved = log_sum(edge + (node[:, t + 1] + behind[:, t + 1])[:, None, :], 2)
        behind[:, t] = np.where(inside[:, t + 1, None], moved, 0.0)
    p = np.exp(np.where(inside[:, :, None], ahead + behind - log_z[:, None, None], -np.inf))
    pairs = np.zeros((many, labels, labels))
    score = np.zeros(many)
    rows = np.arange(many)
    for t in range(time):
        score += np.where(inside[:, t], node[rows, t, batch.gold[:, t]], 0.0)
        if t:
            both = ahead[:, t - 1, :, None] + edge + (node[:, t] + behind[:, t])[:, None, :]
            pairs += np.exp(np.where(inside[:, t, None, None], both - log_z[:, None, None], -np.inf))
            score += np.where(inside[:, t], edge[batch.gold[:, t - 1], batch.gold[:, t]], 0.0)
    return Exact(log_z, score, p, pairs)
