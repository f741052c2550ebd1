"""Scores of one sentence, with log Z, marginals and the best path.

Losses and decoders use only scores, not features and weights. So they can be tried on hand-made arrays.

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
#: Number of tokens and of labels that notebooks show.
SHOWN = 10


@dataclass(frozen=True, repr=False)
class Lattice:
    """Scores of one sentence, in double precision.

        H(x, y) = sum_t node[t, y_t] + sum_{t>0} edge[y_{t-1}, y_t] + start[y_0] + end[y_{T-1}]

    A score of -inf forbids a label or a pair. All other scores must be finite.

    Args:
        node: Node scores [T, L].
        edge: Edge scores [L, L], or [T, L, L] with block t for the step from t-1 to t (block 0 is ignored).
        start: Scores of the first label [L]. None is zero.
        end: Scores of the last label [L]. None is zero.

    >>> import numpy as np
    >>> Lattice(node=np.zeros((2, 2)), edge=np.array([[0.0, 1.0], [0.0, 0.0]])).viterbi()
    (1.0, [0, 1])
    """

    node: ArrayLike
    edge: ArrayLike
    start: ArrayLike | None = None
    end: ArrayLike | None = None

    def __repr__(self) -> str:
        return f"<Lattice: {size_of(self.node)}>"

    def _repr_html_(self) -> str:
        """Return the node scores of the first tokens and labels for notebooks."""
        return scores_html(self, self.node)

    def restricted(
        self, allowed: ArrayLike | None = None, forbidden: Iterable[tuple[int, int]] = ()
    ) -> Lattice:
        """Return a lattice in which some labels and label pairs are forbidden.

        Args:
            allowed: Allowed labels, bool [T, L]. None allows all.
            forbidden: Pairs (label, next label) of indices.

        Returns:
            The new lattice.

        Raises:
            ParameterError: If `allowed` has another shape than the node scores.
        """
        node, edge = self._arrays(fold=False)
        if allowed is not None:
            mask = np.asarray(allowed, dtype=np.bool_)
            if mask.shape != node.shape:
                raise ParameterError(
                    f"allowed has shape {mask.shape}, expected that of the node scores, {node.shape}"
                )
            node = np.where(mask, node, -np.inf)
        edge = edge.copy()
        for before, after in forbidden:
            edge[..., before, after] = -np.inf
        return Lattice(node, edge, self.start, self.end)

    def log_partition(self) -> float:
        """Return log Z = log sum_y exp H(x, y).

        Returns:
            The log partition function.
        """
        return _core.chain_log_partition(*self._arrays())

    def marginals(self) -> Array:
        """Return the marginals p_t(y).

        Returns:
            An array [T, L].
        """
        return _core.chain_marginals(*self._arrays())[1]

    def pair_marginals(self) -> Array:
        """Return the pair marginals p_t(y', y) of the step from t-1 to t.

        Returns:
            An array [T, L, L], in which block 0 is zero.
        """
        return _core.chain_marginals(*self._arrays())[2]

    def viterbi(self) -> tuple[float, list[int]]:
        """Return the best path. Ties go to the lower label.

        Returns:
            The score and the labels.
        """
        score, path = _core.chain_viterbi(*self._arrays())
        return score, path.tolist()

    def score(self, path: Sequence[int]) -> float:
        """Return the score H(x, y) of a path.

        Args:
            path: One label index per token.

        Returns:
            The score.

        Raises:
            ParameterError: If the path has another length than the sentence.
        """
        node, edge = self._arrays()
        if len(path) != len(node):
            raise ParameterError(
                f"a path of {len(path)} labels for {len(node)} tokens, expected one label per token"
            )
        total = float(sum(node[t, y] for t, y in enumerate(path)))
        for t in range(1, len(path)):
            step = edge if edge.ndim == 2 else edge[t]
            total += float(step[path[t - 1], path[t]])
        return total

    def _arrays(self, fold: bool = True) -> tuple[Array, Array]:
        """Return the node scores with start and end added to their rows, and the edge scores, for the core."""
        node = np.array(self.node, dtype=np.float64)
        edge = np.ascontiguousarray(self.edge, dtype=np.float64)
        if node.ndim != 2:
            raise ParameterError(f"node scores of shape {node.shape}, expected [tokens, labels]")
        if fold and len(node):
            for row, extra in ((0, self.start), (-1, self.end)):
                if extra is not None:
                    node[row] += _boundary(extra, node.shape[1])
        return node, edge


def size_of(node: ArrayLike) -> str:
    """Return the number of tokens and labels of node scores, as text."""
    shape = np.shape(node)
    return f"{shape[0]} tokens, {shape[1]} labels" if len(shape) == 2 else f"node scores of shape {shape}"


def scores_html(thing: object, node: ArrayLike) -> str:
    """Return the representation of scores for notebooks: those of the first tokens and labels."""
    from tagwise.base.markup import line_html, table_html

    values = np.asarray(node, dtype=np.float64)
    if values.ndim != 2:
        return line_html(repr(thing))
    tokens, labels = (min(n, SHOWN) for n in values.shape)
    more = ["..."] * (values.shape[1] > SHOWN)
    rows = [[str(t), *(f"{x:.3f}" for x in values[t, :labels]), *more] for t in range(tokens)]
    rows += [["..."] * (1 + labels + len(more))] * (values.shape[0] > SHOWN)
    return line_html(repr(thing)) + table_html(("token", *map(str, range(labels)), *more), rows)


def _boundary(scores: Any, labels: int) -> Array:
    out = np.asarray(scores, dtype=np.float64)
    if out.shape != (labels,):
        raise ParameterError(f"start or end scores of shape {out.shape}, expected [{labels}]")
    return out
