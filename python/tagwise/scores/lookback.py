"""Features on labels further back than one, and their weights."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

import tagwise._core as _core
from tagwise.base.exceptions import ParameterError
from tagwise.base.options import Lookback


@dataclass(frozen=True)
class LookbackWeights:
    """Features of a model on labels further back, and their weights.

    Attributes:
        m: Number of labels of a cell.
        p: Furthest label back with a feature (y_{t-q}, y_t).
        document: Whether there are features on the labels of earlier tokens of the document with the same word.
        tuples: Whether there are features of the m previous labels together with y_t.
        weights: Weights, table by table.
        pool: With infinite p, the distance from which on labels share one table.
    """

    m: int = 1
    p: float = 1
    document: bool = False
    tuples: bool = False
    weights: NDArray[np.float32] = field(default_factory=lambda: np.zeros(0, dtype=np.float32), compare=False)
    pool: int = Lookback.pool
    _native: list[_core.HistoryScorer] = field(default_factory=list, compare=False, repr=False)

    @staticmethod
    def of(params: Mapping[str, Any]) -> LookbackWeights | None:
        """Return the features of the parameters of a learner, without weights, or None if it is of first order."""
        given: Lookback | None = params.get("lookback")
        return None if given is None else LookbackWeights(given.m, given.p, given.document, pool=given.pool)

    @property
    def exact(self) -> bool:
        """Whether all features are within a cell, so that sums over paths are exact: a chain of order m."""
        return self.tuples and self.p == 1 and not self.document

    @property
    def n_features(self) -> int:
        """Number of weights. Of label tuples only the nonzero ones exist and count."""
        return int(np.count_nonzero(self.weights)) if self.tuples else len(self.weights)

    @property
    def endless(self) -> bool:
        """Whether labels at any distance have features."""
        return self.p == math.inf

    @property
    def max_distance(self) -> int:
        """Furthest distance with a table."""
        return self.pool if self.endless else int(self.p)

    def terms(self, n_labels: int) -> _core.LookbackSpec:
        """Return the features for a number of labels, or raise a ParameterError if they are too many."""
        try:
            return _core.LookbackSpec(
                n_labels,
                self.m,
                self.max_distance,
                endless=self.endless,
                document=self.document,
                tuples=self.tuples,
            )
        except ValueError as error:
            raise ParameterError(str(error)) from error

    def tables(self) -> list[tuple[tuple[Any, ...], int]]:
        """Return the name of each table of weights, in order, and the number of previous labels that it depends on.

        A table of n previous labels is [L] * n + [L]. The last one with p = inf, which further labels share, has its
        own name.
        """
        out: list[tuple[tuple[Any, ...], int]] = [
            (("far", q, self.endless and q == self.max_distance), 1) for q in range(2, self.max_distance + 1)
        ]
        out += [(("document",), 1)] * self.document
        return out + [(("tuple", n), n) for n in range(2, self.m + 1) if self.tuples]

    def n_weights(self, n_labels: int) -> int:
        """Return the number of weights of all tables without listing them, since a file may have any distance."""
        square = n_labels**2 * (max(self.max_distance - 1, 0) + self.document)
        return int(square + sum(n_labels ** (n + 1) for n in range(2, self.m + 1) if self.tuples))

    def transfer_weights(
        self, old: LookbackWeights | None, before: Sequence[str], labels: Sequence[str]
    ) -> NDArray[np.float64]:
        """Return the weights for these labels, taken from another lookback over the labels `before`. New ones are 0."""
        known = {} if old is None else old.named_tables(len(before))
        place = {label: y for y, label in enumerate(before)}
        mine = [y for y, label in enumerate(labels) if label in place]
        theirs = [place[labels[y]] for y in mine]
        out = [np.zeros(0)]
        for name, n in self.tables():
            table = np.zeros([len(labels)] * (n + 1))
            if name in known:
                table[np.ix_(*[mine] * (n + 1))] = known[name][np.ix_(*[theirs] * (n + 1))]
            out.append(table.ravel())
        return np.concatenate(out)

    def named_tables(self, n_labels: int) -> dict[tuple[Any, ...], NDArray[np.float32]]:
        """Return the weights by table, each [L] * n + [L]."""
        out, at = {}, 0
        for name, n in self.tables():
            size = n_labels ** (n + 1)
            out[name] = self.weights[at : at + size].reshape([n_labels] * (n + 1))
            at += size
        return out

    def with_weights(self, weights: NDArray[Any]) -> LookbackWeights:
        """Return a copy with these weights."""
        return replace(self, weights=weights.astype(np.float32), _native=[])

    def native(self, n_labels: int) -> _core.HistoryScorer:
        """Return the scorer of the core, which is created once."""
        if not self._native:
            self._native.append(_core.HistoryScorer(self.terms(n_labels), self.weights))
        return self._native[0]

    def to_json(self) -> dict[str, Any]:
        """Return the settings for the header of a model file."""
        p: int | str = "inf" if self.endless else int(self.p)
        return {"m": self.m, "p": p, "pool": self.pool, "document": self.document, "tuples": self.tuples}

    @staticmethod
    def from_json(data: Mapping[str, Any], weights: NDArray[Any]) -> LookbackWeights:
        """Rebuild from the settings of a header and the weights of its file."""
        far = math.inf if data["p"] == "inf" else int(data["p"])
        settings = LookbackWeights(
            int(data["m"]), far, bool(data["document"]), bool(data["tuples"]), pool=int(data["pool"])
        )
        return settings.with_weights(weights)
