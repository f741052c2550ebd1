"""The training problem of a batch learner: data, weight layout, loss, limits, and which optimisers can solve it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

import tagwise._core as _core
from tagwise.base.exceptions import ParameterError
from tagwise.dataset.layout import blocks_of, node_attributes
from tagwise.learners.checkpoint import digest
from tagwise.learners.dual import Core
from tagwise.scores.protocols import Objective, Precise, Vector

#: The number of sentences from which on stochastic epochs and dual ascent pay.
WORTH_WARMING = 200
#: Labels from which on passes with lists of transitions beat dual ascent, where at most one pair in so many was seen.
MANY_LABELS, SEEN_PAIRS = 192, 8
#: About what rounding in single precision adds to the log loss for each token, if it always goes the same way.
ROUNDING = 3e-8


def curvature_scale(data: _core.Dataset, layout: _core.Layout) -> NDArray[np.float32]:
    """d of L-BFGS's variables w / d: (1 + n / 100)^(-1/8) for a feature whose attribute n tokens have.

    The curvature of a feature grows with how often it is met. The power is measured: 1/4 is faster to a gap of 1e-2 and
    slower from 1e-3 on.
    """
    counts = np.bincount(data.sparse()[1], minlength=layout.n_attributes)
    if data.vectors is not None:
        first, size = data.vectors
        counts[first : first + size] += data.n_tokens
    return scale_of(counts, data.n_tokens, layout)


def scale_of(counts: NDArray[Any], n_tokens: int, layout: _core.Layout) -> NDArray[np.float32]:
    """The same from how many tokens have each attribute."""
    n = np.full(len(layout), float(n_tokens))
    n[blocks_of(layout).node] = counts[node_attributes(layout)]
    scale: NDArray[np.float32] = ((1.0 + 0.01 * n) ** -0.125).astype(np.float32)
    return scale


class ObjectiveMaker(Protocol):
    """A backend (`learners.backends`), as a problem sees it."""

    @property
    def objective(self) -> Callable[[Problem], Objective]: ...


@dataclass(frozen=True)
class Problem:
    """What is minimised: built anew for each engine that works on it, so that only one is in memory at a time."""

    data: _core.Dataset
    layout: _core.Layout
    loss: str = "log"
    sample_weight: NDArray[np.float64] | None = None
    forbidden: NDArray[np.uint32] | None = None
    allowed: tuple[NDArray[np.bool_], NDArray[np.uint32]] | None = None
    partial: tuple[NDArray[np.bool_], NDArray[np.uint32]] | None = None
    cost: NDArray[np.float64] | None = None
    once: tuple[NDArray[np.uint32], NDArray[np.bool_]] | None = None  # labels that form one span at most
    order: _core.Order | None = None  # of a chain of order 2 or 3
    n_sentences: int | None = None  # where `data` is cut finer than the corpus
    pieces: NDArray[np.uint32] | None = None  # the sentence of each piece, where sentences were cut

    def scale(self) -> NDArray[np.float32]:
        """d of L-BFGS's variables w / d."""
        return curvature_scale(self.data, self.layout)

    def objective(self, backend: ObjectiveMaker | None = None) -> Objective:
        """Loss and gradient of the whole training set, by the CPU or another backend."""
        return self.cpu_objective() if backend is None else backend.objective(self)

    def cpu_objective(self) -> _core.Objective | _core.OrderObjective:
        """Loss and gradient of the whole training set, by the CPU."""
        if self.order is not None:
            return _core.OrderObjective(
                self.order, self.data, sample_weight=self.sample_weight, allowed=self.allowed
            )
        return _core.Objective(
            self.data,
            self.layout,
            loss=self.loss,
            sample_weight=self.sample_weight,
            limits=_core.Limits(self.forbidden, self.allowed, self.once),
            partial=self.partial,
            cost=self.cost,
        )

    def precise(self, objective: Objective) -> Precise:
        """An objective in double precision: the given one, or that of the CPU if its backend has none."""
        if isinstance(objective, Precise):
            return objective
        found = self.cpu_objective()
        assert isinstance(found, Precise)
        return found

    def total_loss(self, w: Vector, n_jobs: int) -> float:
        """The loss at `w` in double precision."""
        if self.order is not None:
            return self.cpu_objective().value(w, np.empty_like(w), n_jobs)[0]
        return _core.total_loss(
            self.data,
            self.layout,
            w,
            loss=self.loss,
            sample_weight=self.sample_weight,
            limits=_core.Limits(self.forbidden, self.allowed, self.once),
            partial=self.partial,
            cost=self.cost,
            n_jobs=n_jobs,
        )

    @cached_property
    def mass(self) -> tuple[float, float]:
        """Sentences and tokens, as often as their weights say."""
        lengths = np.diff(self.data.offsets.astype(np.float64))
        weights = np.ones(len(lengths)) if self.sample_weight is None else self.sample_weight
        return float(weights.sum()), float((weights * lengths).sum())

    def rounding(self, value: float) -> float:
        """About how much of a value in single precision may be rounding."""
        sentences, tokens = self.mass
        if self.loss not in _core.EXPONENTIAL_LOSSES and self.loss != "pointwise_exp":
            return ROUNDING * tokens
        return ROUNDING * tokens * (1.0 + abs(value) / sentences) if sentences else 0.0

    def descent(self, loss: str | None = None) -> _core.Stochastic:
        """Stochastic descent, on another loss where one is named."""
        if self.cost is not None or self.partial is not None or self.order is not None:
            raise ParameterError(
                "optimizer='sgd' can do neither cost, class_weight nor partial labels nor order > 1; use lbfgs"
            )
        return _core.Stochastic(
            self.data,
            self.layout,
            loss=loss or self.loss,
            sample_weight=self.sample_weight,
            limits=_core.Limits(self.forbidden, self.allowed, self.once),
        )

    def why_no_dual(self, l2: float) -> str | None:
        """What of the problem dual ascent cannot do; None where it can."""
        odd = {
            f"loss={self.loss!r}": self.loss != "log",
            f"l2={l2:g}": not l2 > 0.0,
            "partial labels": self.partial is not None,
            "cost and class_weight": self.cost is not None,
            "order > 1": self.order is not None,
            "labels that occur once": self.once is not None,
            "edge attributes": bool(self.data.n_edge_attributes),
            "vectors": self.data.vectors is not None,
        }
        return next((what for what, there in odd.items() if there), None)

    def dual(self, l2: float) -> _core.Dual:
        """Dual ascent on the log loss."""
        limits = _core.Limits(self.forbidden, self.allowed, None)
        return _core.Dual(self.data, self.layout, l2, sample_weight=self.sample_weight, limits=limits)

    @contextmanager
    def ascending(self, l2: float) -> Iterator[Core]:
        """Dual ascent by whoever does it here, for as long as it is needed."""
        yield self.dual(l2)

    @cached_property
    def digest(self) -> str:
        """What tells the data of one problem from that of another."""
        arrays = (self.data.offsets, self.data.gold, self.data.node(), self.layout.arrays())
        return digest(arrays, self.sample_weight, self.forbidden, self.allowed)

    @property
    def hasty(self) -> bool:
        """Whether L-BFGS goes on from dual ascent as soon as it is as fast, certificate or not."""
        return False

    @property
    def warms_up(self) -> bool:
        """Whether stochastic epochs are possible and pay."""
        plain = self.cost is None and self.partial is None and self.order is None
        plain = plain and self.once is None and not self.data.n_edge_attributes and self.data.vectors is None
        return plain and self.large

    @property
    def many_labels(self) -> bool:
        """Whether labels are many and few pairs of them were seen side by side."""
        pairs = self.layout.n_labels**2
        return pairs >= MANY_LABELS**2 and SEEN_PAIRS * self.layout.n_edge <= pairs

    @property
    def large(self) -> bool:
        """Whether sentences are enough for what visits them one by one to pay."""
        return (len(self.data) if self.n_sentences is None else self.n_sentences) >= WORTH_WARMING
