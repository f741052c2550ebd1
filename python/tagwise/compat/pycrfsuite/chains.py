"""A model in double precision, one instance at a time, for trainers that change its weights at every step.

Weights are a table [A, L], of which features that there are not stay 0, and one of transitions [L, L].
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import tagwise._core as _core
from tagwise.compat.pycrfsuite.data import Features, Ids, Instance

Table = NDArray[np.float64]


class Weights:
    """Tables of weights, node [A * L] and edge [L * L], and which of them are features."""

    def __init__(self, features: Features) -> None:
        n = features.n_labels
        self.features, self.n = features, n
        self.node, self.edge = np.zeros(features.n_attributes * n), np.zeros(n * n)
        self.is_node, self.is_edge = np.zeros(len(self.node), bool), np.zeros(n * n, bool)
        self.is_node[features.node] = True
        self.is_edge[features.edge] = True

    def scores(self, row: Instance, scale: float = 1.0) -> tuple[Table, Table]:
        """Scores of an instance: node [T, L], summed in the order of its attributes, and edge [L, L]."""
        table = self.node.reshape(-1, self.n)[row.ids]
        if row.values is not None:
            table = table * row.values[:, None]
        out = np.zeros((len(row), self.n))
        filled = np.flatnonzero(np.diff(row.ptr))
        if len(filled):
            out[filled] = np.add.reduceat(table, row.ptr[filled], axis=0)
        edge = self.edge.reshape(self.n, self.n)
        return (out, edge) if scale == 1.0 else (out * scale, edge * scale)

    def best(self, row: Instance) -> tuple[float, Ids]:
        """The best path of an instance and its score."""
        score, path = _core.chain_viterbi(*self.scores(row))
        return score, path.astype(np.int64)

    def vector(self) -> Table:
        """The weights of the features, state features first."""
        return np.concatenate([self.node[self.features.node], self.edge[self.features.edge]])


def path_score(node: Table, edge: Table, path: Ids) -> float:
    """The score of a path."""
    score = float(node[np.arange(len(path)), path].sum())
    return score + float(edge[path[:-1], path[1:]].sum())


def difference(weights: Weights, row: Instance, path: Ids) -> tuple[tuple[Ids, Table], tuple[Ids, Table]]:
    """F(y) - F(y'): codes and values of state features and of transitions, features alone, none of them 0."""
    n, counts = weights.n, np.diff(row.ptr)
    values = np.ones(len(row.ids)) if row.values is None else row.values
    codes = [row.ids * n + np.repeat(y, counts) for y in (row.labels, path)]
    pairs = [y[:-1] * n + y[1:] for y in (row.labels, path)]
    ones = np.ones(len(path) - 1)
    node = _netted(np.concatenate(codes), np.concatenate([values, -values]), weights.is_node)
    edge = _netted(np.concatenate(pairs), np.concatenate([ones, -ones]), weights.is_edge)
    return node, edge


def _netted(codes: Ids, values: Table, known: NDArray[np.bool_]) -> tuple[Ids, Table]:
    found, at = np.unique(codes, return_inverse=True)
    sums = np.bincount(at, values, minlength=len(found))
    keep = known[found] & (sums != 0.0)
    return found[keep], sums[keep]


__all__ = ["Table", "Weights", "difference", "path_score"]
