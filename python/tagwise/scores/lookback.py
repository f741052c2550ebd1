"""Features on labels further back than one, and their weights.

>>> parse("m=1,p=2"), parse((2, float("inf"))), parse("1")
((1, 2), (2, 'inf'), (1, 1))
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

import tagwise._core as _core
from tagwise.base.domains import Anything
from tagwise.base.exceptions import ParameterError

#: With p = inf, every distance below this has its own table. Labels at this distance and further share one.
POOL = 128
#: Value for model files that do not have the field.
OLD_POOL = 8
#: Possible numbers of labels of a cell.
CELLS = (1, 2, 3)


def parse(value: Any) -> tuple[int, int | str]:
    """Parse (m, p) from a pair, "1,2" or "m=1,p=2". An infinite p is returned as "inf"."""
    requested = value
    if isinstance(value, str):
        match = re.fullmatch(r"\s*\(?\s*(?:m\s*=)?\s*(\d+)\s*(?:,\s*(?:p\s*=)?\s*(\w+)\s*)?\)?\s*", value)
        if match is None:
            raise ValueError("expected (m, p) such as 1,2 or m=1,p=inf")
        value = (match[1], match[2] or match[1])
    elif isinstance(value, int) and not isinstance(value, bool):
        value = (value, value)
    try:
        m, p = value
        m = int(m)
        far = math.inf if p in ("inf", "infinity", math.inf) else int(p)
    except (TypeError, ValueError):
        raise ValueError(f"expected (m, p) such as (1, 2), found {requested!r}") from None
    if m not in CELLS:
        raise ValueError(f"m={m}: expected 1, 2 or 3, the number of labels of a cell")
    if not far >= 1:
        raise ValueError(f"p={p}: expected 1 or more, or inf")
    return m, "inf" if far == math.inf else int(far)


HISTORY = Anything("(m, p) with m = 1, 2, 3 and p >= 1 or inf", function=parse, optional=True)


@dataclass(frozen=True)
class Lookback:
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
    pool: int = POOL
    _native: list[_core.HistoryScorer] = field(default_factory=list, compare=False, repr=False)

    @staticmethod
    def of(params: Mapping[str, Any]) -> Lookback | None:
        """Return the settings from the parameters of a learner, or None if it is of first order."""
        requested, document = params.get("history"), params.get("document", False)
        if requested is None and not document:
            return None
        m, p = requested or (1, 1)
        return Lookback(m, math.inf if p == "inf" else p, document, pool=params.get("pool", POOL))

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
        self, old: Lookback | None, before: Sequence[str], labels: Sequence[str]
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

    def with_weights(self, weights: NDArray[Any]) -> Lookback:
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
        pool = {"pool": self.pool} if self.endless and self.pool != OLD_POOL else {}
        return {"m": self.m, "p": p, "document": self.document, "tuples": self.tuples, **pool}

    @staticmethod
    def from_json(data: Mapping[str, Any], weights: NDArray[Any]) -> Lookback:
        """Rebuild from the settings of a header and the weights of its file."""
        m, p = parse((data["m"], data["p"]))
        far = math.inf if p == "inf" else int(p)
        pool = int(data.get("pool", OLD_POOL))
        settings = Lookback(m, far, bool(data["document"]), bool(data["tuples"]), pool=pool)
        return settings.with_weights(weights)
