"""Scores of one sentence and the primitives on them: log Z, marginals, the best path.

Everything above this seam sees scores alone, everything below it features and weights; so a loss or a decoder can be
tried on arrays made by hand.

>>> import numpy as np
>>> lattice = Lattice(node=np.array([[1.0, 0.0], [0.0, 2.0]]), edge=np.array([[0.5, 0.0], [0.0, 0.5]]))
>>> lattice.viterbi()
(3.0, [0, 1])
>>> lattice.marginals().sum(axis=1).round(6).tolist()
[1.0, 1.0]
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

import tagwise._core as _core
from tagwise.base.exceptions import ParameterError

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Lattice:
    """H(x, y) = sum_t node[t, y_t] + sum_{t>0} edge[y_{t-1}, y_t] + start[y_0] + end[y_{T-1}].

    node: [T, L]; edge: [L, L], or [T, L, L] whose block t belongs to the step from t-1 to t (block 0 is not used);
    start, end: [L], zero where left out. A score of -inf forbids. Double precision, any finite scores.
    """

    node: ArrayLike
    edge: ArrayLike
    start: ArrayLike | None = None
    end: ArrayLike | None = None

    def restricted(
        self, allowed: ArrayLike | None = None, forbidden: Iterable[tuple[int, int]] = ()
    ) -> Lattice:
        """The lattice with labels outside `allowed` ([T, L] of bool) and `forbidden` label pairs ruled out."""
        node, edge = self._arrays(fold=False)
        if allowed is not None:
            mask = np.asarray(allowed, dtype=np.bool_)
            if mask.shape != node.shape:
                raise ParameterError(
                    f"allowed has shape {mask.shape}, the node scores {node.shape}; they must agree"
                )
            node = np.where(mask, node, -np.inf)
        edge = edge.copy()
        for before, after in forbidden:
            edge[..., before, after] = -np.inf
        return Lattice(node, edge, self.start, self.end)

    def log_partition(self) -> float:
        """log Z = log sum_y exp H(x, y)."""
        return _core.chain_log_partition(*self._arrays())

    def marginals(self) -> Array:
        """p_t(y): [T, L]."""
        return _core.chain_marginals(*self._arrays())[1]

    def pair_marginals(self) -> Array:
        """p_t(y', y) of the step from t-1 to t: [T, L, L]; block 0 is zero."""
        return _core.chain_marginals(*self._arrays())[2]

    def viterbi(self) -> tuple[float, list[int]]:
        """Score and labels of the best path; ties go to the lower label."""
        score, path = _core.chain_viterbi(*self._arrays())
        return score, path.tolist()

    def score(self, path: Sequence[int]) -> float:
        """H(x, y) of a path."""
        node, edge = self._arrays()
        if len(path) != len(node):
            raise ParameterError(f"a path of {len(path)} labels for {len(node)} tokens; give every token one")
        total = float(sum(node[t, y] for t, y in enumerate(path)))
        for t in range(1, len(path)):
            step = edge if edge.ndim == 2 else edge[t]
            total += float(step[path[t - 1], path[t]])
        return total

    def _arrays(self, fold: bool = True) -> tuple[Array, Array]:
        """Node scores with start and end added to their rows, and edge scores, as the core takes them."""
        node = np.array(self.node, dtype=np.float64)
        edge = np.ascontiguousarray(self.edge, dtype=np.float64)
        if node.ndim != 2:
            raise ParameterError(f"node scores of shape {node.shape}; expected [tokens, labels]")
        if fold and len(node):
            for row, extra in ((0, self.start), (-1, self.end)):
                if extra is not None:
                    node[row] += _boundary(extra, node.shape[1])
        return node, edge


def _boundary(scores: Any, labels: int) -> Array:
    out = np.asarray(scores, dtype=np.float64)
    if out.shape != (labels,):
        raise ParameterError(f"start or end scores of shape {out.shape}; expected [{labels}]")
    return out
