"""Ranks of gold paths among all paths, exact below k, and their margins.

    rank_i  = |{y != y_i : H(x_i, y) >= H(x_i, y_i)}|        gamma_i = H(x_i, y_i) - max_{y != y_i} H(x_i, y)

These are the rank loss (equation 6) and the margin (section 5) of Altun and Hofmann (2003). Ties count against the gold
path. The rank loss is also F^0 of Altun, Johnson and Hofmann (2003, section 3.1), which they replace by the exponential
loss. The rank is 0 if the gold path is the best one. The exponential loss is an upper bound of the rank, because
e^{l_i} - 1 is the sum of e^{H(y) - H(y_i)} over all wrong y.

A list of the k best paths does not show whether other paths tie with its last entry. A list of k + 1 does: if it
contains the gold path with fewer than k others at or above its score, their number is the rank. Otherwise the rank is
k or more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tagwise.base.domains import Integer
from tagwise.base.exceptions import ParameterError
from tagwise.base.parameters import checked
from tagwise.dataset.check import check_lengths, lengths_of
from tagwise.decoding import paths
from tagwise.decoding.plan import Plan, plan_of

#: Code for a rank of k or more.
BEYOND = -1


class Ranks(NamedTuple):
    """Ranks and margins of gold paths, as defined in this module.

    Attributes:
        rank: Rank of each gold path, [N], or BEYOND if it is k or more.
        margin: Margin of each gold path, [N], or -inf if the model lacks a gold label.
        k: Bound of exact ranks.
    """

    rank: NDArray[np.int64]
    margin: NDArray[np.float64]
    k: int

    @property
    def beyond(self) -> float:
        """Fraction of the sentences with a rank of k or more."""
        return float(np.mean(self.rank == BEYOND)) if len(self.rank) else 0.0

    @property
    def risk(self) -> float:
        """Mean rank, with ranks of k or more counted as k. Exact if `beyond` is 0, else a lower bound."""
        return float(np.mean(np.where(self.rank == BEYOND, self.k, self.rank))) if len(self.rank) else 0.0

    @property
    def median_margin(self) -> float:
        """Median margin, which is positive if more than half of the sentences are correct."""
        return float(np.median(self.margin)) if len(self.margin) else 0.0

    def __repr__(self) -> str:
        return (
            f"<Ranks: {len(self.rank)} sentences, mean rank {self.risk:.2f}, {100 * self.beyond:.2f} % of rank "
            f"{self.k} or more, median margin {self.median_margin:.4f}>"
        )

    def _repr_html_(self) -> str:
        from tagwise.base.markup import line_html, table_html

        shown = zip(self.rank[:20].tolist(), self.margin[:20].tolist())
        rows = [
            (s, f"{self.k} or more" if rank == BEYOND else rank, f"{m:.4f}")
            for s, (rank, m) in enumerate(shown)
        ]
        return line_html(repr(self)) + table_html(("sentence", "rank", "margin"), rows, left=0)


def gold_ranks(plan: Plan, gold: Sequence[Sequence[str]], k: int) -> Ranks:
    """Return ranks and margins of gold labels, computed from k-best lists."""
    scoring = plan.scoring
    k = checked("k", k, Integer(2))  # a margin needs the two best paths
    if scoring.lookback is not None and not scoring.lookback.exact:
        raise ParameterError(
            "a model with history has no exact k-best lists, because its search keeps one path per cell. "
            "Train without history."
        )
    lengths = lengths_of(plan.data).tolist()
    check_lengths(plan.data, gold)
    index = {label: i for i, label in enumerate(scoring.labels)}
    lists = paths.kbest(plan, k + 1)
    rank, margin = np.full(len(gold), BEYOND), np.full(len(gold), -np.inf)
    first, at, begin = np.full(len(gold), -np.inf), 0, 0
    known = np.array([all(label in index for label in path) for path in gold], dtype=bool)
    for s, (count, length) in enumerate(zip(lists[0].tolist(), lengths)):
        found = lists[2][at : at + count * length].reshape(count, length)
        scores = np.asarray(lists[1][begin : begin + count], dtype=np.float64)
        at, begin = at + count * length, begin + count
        first[s] = scores[0] if count else -np.inf
        if not known[s]:
            continue
        mine = np.flatnonzero(
            (found == np.array([index[label] for label in gold[s]], dtype=found.dtype)).all(axis=1)
        )
        if not len(mine):
            continue
        others = np.delete(scores, mine[0])
        above = int(np.sum(others >= scores[mine[0]]))
        rank[s] = above if above < k else BEYOND
        margin[s] = scores[mine[0]] - others[0] if len(others) else np.inf
    lost = np.flatnonzero((rank == BEYOND) & known)
    if len(lost):
        held = set(lost.tolist())  # allow only the gold path for these sentences, and all paths for others
        allowed = [[[label] for label in path] if s in held else None for s, path in enumerate(gold)]
        query = replace(plan.query, allowed=allowed, constraints=False)
        only = paths.kbest(plan_of(scoring, plan.X, plan.data, query), 1)
        margin[lost] = np.asarray(only[1], dtype=np.float64)[lost] - first[lost]
    return Ranks(rank, margin, k)
