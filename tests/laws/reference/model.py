"""From weights to scores and back, with dense attribute matrices (tiny problems only).

A sentence is X [T, A], the value of every attribute at every token. Weights are one flat vector made of

    node [A, L]    transition [L, L]    start [L]    end [L]    edge attributes [A, L, L] (optional)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from .chain import Array, Scores, counts, scores


class Shape(NamedTuple):
    """Numbers of attributes and labels, and whether attributes are also conjoined with label pairs."""

    attributes: int
    labels: int
    edge_attributes: bool = False

    @property
    def size(self) -> int:
        """Number of weights."""
        A, L = self.attributes, self.labels
        return A * L + L * L + 2 * L + (A * L * L if self.edge_attributes else 0)


def split(w: Array, shape: Shape) -> tuple[Array, Array, Array, Array, Array | None]:
    """Return the vector's parts (views): node, transition, start, end, edge attributes or None."""
    A, L, conjoined = shape
    node, transition, start, end, rest = np.split(w, np.cumsum([A * L, L * L, L, L]))
    return (
        node.reshape(A, L),
        transition.reshape(L, L),
        start,
        end,
        rest.reshape(A, L, L) if conjoined else None,
    )


def score_sentence(w: Array, X: Array, shape: Shape) -> Scores:
    """Return s_t(y) = sum_a X[t,a] W[a,y], and A_t = A + sum_a X[t,a] E[a] with edge attributes."""
    node, transition, start, end, edge = split(w, shape)
    if edge is None:
        return scores(X @ node, transition, start, end)
    return scores(X @ node, transition + np.einsum("ta,ayz->tyz", X, edge), start, end)


def pull_back(g: Scores, X: Array, shape: Shape) -> Array:
    """Map a gradient in the scores to the gradient in the weights: the transpose of ``score_sentence``."""
    parts = [X.T @ g.node, g.edge.sum(axis=0) if g.edge.ndim == 3 else g.edge, g.start, g.end]
    if shape.edge_attributes:
        parts.append(np.einsum("ta,tyz->ayz", X, g.edge))
    return np.concatenate([p.ravel() for p in parts])


def features(X: Array, y: Sequence[int], shape: Shape) -> Array:
    """Return S(x,y), the total value of each feature along the path, so that H(x,y) = w . S(x,y)."""
    return pull_back(counts(score_sentence(np.zeros(shape.size), X, shape), y), X, shape)


def observed(batch: Sequence[tuple[Array, Sequence[int]]], shape: Shape) -> Array:
    """Return a mask [size] of the features on some gold path, the only ones a model has by default."""
    present = [features((X != 0).astype(float), y, shape) for X, y in batch]
    return np.any(np.array(present) != 0, axis=0)
