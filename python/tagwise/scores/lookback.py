"""Labels further back than one: which features look at them, and their weights.

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

#: With p = inf every distance below this has a table of its own; labels so far back, and further, share one.
POOL = 128
#: The same of model files that do not say it.
OLD_POOL = 8
#: Labels that a cell may hold.
CELLS = (1, 2, 3)


def parse(value: Any) -> tuple[int, int | str]:
    """(m, p) of what a user writes: a pair, "1,2", "m=1,p=2"; p may be infinite, written "inf" from here on."""
    given = value
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
        raise ValueError(f"expected (m, p) such as (1, 2), got {given!r}") from None
    if m not in CELLS:
        raise ValueError(f"m={m}: a cell holds 1, 2 or 3 labels")
    if not far >= 1:
        raise ValueError(f"p={p}: expected 1 or more, or inf")
    return m, "inf" if far == math.inf else int(far)


HISTORY = Anything("(m, p) with m = 1, 2, 3 and p >= 1 or inf", function=parse, optional=True)


@dataclass(frozen=True)
class Lookback:
    """Which features on labels further back a model has, and their weights.

    m: labels of a cell; p: furthest label back with a feature (y_{t-q}, y_t); document: features on the labels of
    earlier tokens of the document with the same word; tuples: features of the m labels before together with y_t;
    pool: with p infinite, the distance from which on labels share one table.
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
        """The settings among a learner's parameters; None where it is first-order."""
        given, document = params.get("history"), params.get("document", False)
        if given is None and not document:
            return None
        m, p = given or (1, 1)
        return Lookback(m, math.inf if p == "inf" else p, document, pool=params.get("pool", POOL))

    @property
    def exact(self) -> bool:
        """Whether all features lie within a cell, so that sums over paths are exact: a chain of order m."""
        return self.tuples and self.p == 1 and not self.document

    @property
    def n_features(self) -> int:
        """Number of weights; of label tuples only those that are not zero count, since only those exist."""
        return int(np.count_nonzero(self.weights)) if self.tuples else len(self.weights)

    @property
    def endless(self) -> bool:
        """Whether labels at any distance have features."""
        return self.p == math.inf

    @property
    def far(self) -> int:
        """The furthest distance with a table."""
        return self.pool if self.endless else int(self.p)

    def terms(self, n_labels: int) -> _core.Terms:
        """The features for so many labels; a ParameterError if they are too many."""
        try:
            return _core.Terms(
                n_labels, self.m, self.far, endless=self.endless, document=self.document, tuples=self.tuples
            )
        except ValueError as error:
            raise ParameterError(str(error)) from error

    def tables(self) -> list[tuple[tuple[Any, ...], int]]:
        """What each table of weights is of, in their order, and how many labels before a token it looks at.

        A table of n labels before is [L] * n + [L]; the last one of p = inf, which further labels share, is its own.
        """
        out: list[tuple[tuple[Any, ...], int]] = [
            (("far", q, self.endless and q == self.far), 1) for q in range(2, self.far + 1)
        ]
        out += [(("document",), 1)] * self.document
        return out + [(("tuple", n), n) for n in range(2, self.m + 1) if self.tuples]

    def n_weights(self, n_labels: int) -> int:
        """Number of weights of all tables, counted without making a list of them: a file may name any distance."""
        square = n_labels**2 * (max(self.far - 1, 0) + self.document)
        return int(square + sum(n_labels ** (n + 1) for n in range(2, self.m + 1) if self.tuples))

    def carried(
        self, old: Lookback | None, before: Sequence[str], labels: Sequence[str]
    ) -> NDArray[np.float64]:
        """Weights for these labels from another lookback over the labels `before`; what that lacks gets 0."""
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
        """The weights table by table: [L] * n + [L] each."""
        out, at = {}, 0
        for name, n in self.tables():
            size = n_labels ** (n + 1)
            out[name] = self.weights[at : at + size].reshape([n_labels] * (n + 1))
            at += size
        return out

    def with_weights(self, weights: NDArray[Any]) -> Lookback:
        """The same settings with weights."""
        return replace(self, weights=weights.astype(np.float32), _native=[])

    def native(self, n_labels: int) -> _core.HistoryScorer:
        """The core's scorer, made once."""
        if not self._native:
            self._native.append(_core.HistoryScorer(self.terms(n_labels), self.weights))
        return self._native[0]

    def to_json(self) -> dict[str, Any]:
        """Settings for a model file's header."""
        p: int | str = "inf" if self.endless else int(self.p)
        pool = {"pool": self.pool} if self.endless and self.pool != OLD_POOL else {}
        return {"m": self.m, "p": p, "document": self.document, "tuples": self.tuples, **pool}

    @staticmethod
    def from_json(data: Mapping[str, Any], weights: NDArray[Any]) -> Lookback:
        """Settings from a header, weights from the file's array."""
        m, p = parse((data["m"], data["p"]))
        far = math.inf if p == "inf" else int(p)
        pool = int(data.get("pool", OLD_POOL))
        settings = Lookback(m, far, bool(data["document"]), bool(data["tuples"]), pool=pool)
        return settings.with_weights(weights)


__all__ = [
    "CELLS",
    "HISTORY",
    "OLD_POOL",
    "POOL",
    "Lookback",
    "parse",
]
