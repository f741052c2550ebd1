"""Training problem of a batch learner: data, layout, loss, limits, and the optimisers that can solve it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

import tagwise._core as _core
from tagwise.base.cached import cached
from tagwise.base.exceptions import ParameterError
from tagwise.dataset.layout import blocks_of, node_attributes
from tagwise.learners.checkpoint import digest
from tagwise.learners.dual import Core
from tagwise.scores.protocols import Objective, Precise, Vector

#: Minimum number of sentences for which stochastic epochs and dual ascent are worthwhile.
WORTH_WARMING = 200
#: With this many labels, of which at most one pair in SEEN_PAIRS occurs, passes over lists of transitions are faster
#: than dual ascent.
MANY_LABELS, SEEN_PAIRS = 192, 8
#: Estimated rounding error of the log loss per token in single precision, if all errors have the same sign.
ROUNDING = 3e-8


def curvature_scale(data: _core.Dataset, layout: _core.Layout) -> NDArray[np.float32]:
    """Return the scale d of the variables w / d of L-BFGS: (1 + n / 100)^(-1/8) for an attribute of n tokens.

    The curvature of a feature grows with its frequency. The exponent is measured: 1/4 is faster to a gap of 1e-2 and
    slower from 1e-3 on.
    """
    counts = np.bincount(data.sparse()[1], minlength=layout.n_attributes)
    if data.vectors is not None:
        first, size = data.vectors
        counts[first : first + size] += data.n_tokens
    return scale_of(counts, data.n_tokens, layout)


def scale_of(counts: NDArray[Any], n_tokens: int, layout: _core.Layout) -> NDArray[np.float32]:
    """Return the scale of `curvature_scale`, from the number of tokens of each attribute."""
    n = np.full(len(layout), float(n_tokens))
    n[blocks_of(layout).node] = counts[node_attributes(layout)]
    scale: NDArray[np.float32] = ((1.0 + 0.01 * n) ** -0.125).astype(np.float32)
    return scale


class ObjectiveMaker(Protocol):
    """Interface of a backend (`learners.backends`) for a problem."""

    @property
    def objective(self) -> Callable[[Problem], Objective]: ...


@dataclass(frozen=True)
class Problem:
    """Objective to minimise. Each engine builds its own copy, so that only one is in memory at a time."""

    data: _core.Dataset
    layout: _core.Layout
    loss: str = "log"
    sample_weight: NDArray[np.float64] | None = None
    forbidden: NDArray[np.uint32] | None = None
    allowed: tuple[NDArray[np.bool_], NDArray[np.uint32]] | None = None
    partial: tuple[NDArray[np.bool_], NDArray[np.uint32]] | None = None
    cost: NDArray[np.float64] | None = None
    once: tuple[NDArray[np.uint32], NDArray[np.bool_]] | None = None  # labels that may form only one span
    order: _core.Order | None = None  # states and features of order 2 or 3
    n_sentences: int | None = None  # if `data` has pieces of sentences
    pieces: NDArray[np.uint32] | None = None  # sentence of each piece, if sentences were cut

    def scale(self) -> NDArray[np.float32]:
        """Return the scale d of the variables w / d of L-BFGS."""
        return curvature_scale(self.data, self.layout)

    def objective(self, backend: ObjectiveMaker | None = None) -> Objective:
        """Return loss and gradient of the whole training set, on the CPU or another backend."""
        return self.cpu_objective() if backend is None else backend.objective(self)

    def cpu_objective(self) -> _core.Objective | _core.OrderObjective:
        """Return loss and gradient of the whole training set, on the CPU."""
        if self.order is not None:
            return _core.OrderObjective(
                self.order, self.data, sample_weight=self.sample_weight, allowed=self.allowed
            )
        return _core.Objective(self.data, self.layout, **self._terms)

    @property
    def _terms(self) -> dict[str, Any]:
        """Arguments of the core that define the loss."""
        return {
            "loss": self.loss,
            "sample_weight": self.sample_weight,
            "limits": _core.Limits(self.forbidden, self.allowed, self.once),
            "partial": self.partial,
            "cost": self.cost,
        }

    def precise(self, objective: Objective) -> Precise:
        """Return the objective in double precision: the given one, or that of the CPU if its backend has none."""
        if isinstance(objective, Precise):
            return objective
        found = self.cpu_objective()
        assert isinstance(found, Precise)
        return found

    def total_loss(self, w: Vector, n_jobs: int) -> float:
        """Return the loss at `w` in double precision."""
        if self.order is not None:
            return self.cpu_objective().value(w, np.empty_like(w), n_jobs)[0]
        return _core.total_loss(self.data, self.layout, w, **self._terms, n_jobs=n_jobs)

    @property
    @cached
    def mass(self) -> tuple[float, float]:
        """Weighted numbers of sentences and tokens."""
        lengths = np.diff(self.data.offsets.astype(np.float64))
        weights = np.ones(len(lengths)) if self.sample_weight is None else self.sample_weight
        return float(weights.sum()), float((weights * lengths).sum())

    def rounding(self, value: float) -> float:
        """Return the estimated rounding error of a value in single precision."""
        sentences, tokens = self.mass
        if self.loss not in _core.BOOSTED:
            return ROUNDING * tokens
        return ROUNDING * tokens * (1.0 + abs(value) / sentences) if sentences else 0.0

    def descent(self, loss: str | None = None) -> _core.Stochastic:
        """Return the stochastic descent, on another loss if one is given."""
        if self.cost is not None or self.partial is not None or self.order is not None:
            raise ParameterError(
                "optimizer='sgd' does not support cost, class_weight, partial labels or order > 1. "
                "Use optimizer='lbfgs'"
            )
        return _core.Stochastic(
            self.data,
            self.layout,
            loss=loss or self.loss,
            sample_weight=self.sample_weight,
            limits=_core.Limits(self.forbidden, self.allowed, self.once),
        )

    def why_no_dual(self, l2: float) -> str | None:
        """Return the feature of the problem that dual ascent does not support, or None."""
        unsupported = {
            f"loss={self.loss!r}": self.loss != "log",
            f"l2={l2:g}": not l2 > 0.0,
            "partial labels": self.partial is not None,
            "cost and class_weight": self.cost is not None,
            "order > 1": self.order is not None,
            "the constraint `once`": self.once is not None,
            "edge attributes": bool(self.data.n_edge_attributes),
            "vectors": self.data.vectors is not None,
        }
        return next((feature for feature, present in unsupported.items() if present), None)

    @property
    def is_convex(self) -> bool:
        """Whether the loss is convex and of a size that its rounding does not grow with (not exponential)."""
        return self.loss == "log" and self.partial is None

    def dual(self, l2: float) -> _core.Dual:
        """Return the dual ascent on the log loss."""
        limits = _core.Limits(self.forbidden, self.allowed, None)
        return _core.Dual(self.data, self.layout, l2, sample_weight=self.sample_weight, limits=limits)

    @contextmanager
    def ascending(self, l2: float) -> Iterator[Core]:
        """Provide the dual ascent inside a `with` block."""
        yield self.dual(l2)

    @property
    @cached
    def digest(self) -> str:
        """Digest that identifies the data of the problem."""
        arrays = (self.data.offsets, self.data.gold, self.data.node(), self.layout.arrays())
        return digest(arrays, self.sample_weight, self.forbidden, self.allowed)

    @property
    def switches_early(self) -> bool:
        """Whether L-BFGS continues dual ascent as soon as it is as fast, even without a certificate."""
        return False

    @property
    def warms_up(self) -> bool:
        """Whether stochastic epochs are possible and worthwhile."""
        plain = self.cost is None and self.partial is None and self.order is None
        plain = plain and self.once is None and not self.data.n_edge_attributes and self.data.vectors is None
        return plain and self.large

    @property
    def many_labels(self) -> bool:
        """Whether there are many labels of which few pairs occur next to each other."""
        pairs = self.layout.n_labels**2
        return pairs >= MANY_LABELS**2 and SEEN_PAIRS * self.layout.n_edge <= pairs

    @property
    def large(self) -> bool:
        """Whether there are enough sentences for methods that visit them one by one."""
        return (len(self.data) if self.n_sentences is None else self.n_sentences) >= WORTH_WARMING
