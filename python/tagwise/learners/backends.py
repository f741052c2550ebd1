"""Engines behind the two protocols: who computes objectives, and who scores sentences.

>>> sorted(BACKENDS), current().name
(['cpu'], 'cpu')

A further one is a row of `BACKENDS`; `using` makes it the one that estimators take. What the protocols do not ask
(beams, lookback, model files), the CPU does from the same weights.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

import tagwise._core as _core
from tagwise.errors import ParameterError
from tagwise.scores.protocols import Objective, Scorer, Vector

if TYPE_CHECKING:
    from tagwise.learners.gradient import Problem

#: layout, weights, forbidden pairs, whether steps are normalised one by one -> scorer.
ScorerMaker = Callable[[_core.Layout, NDArray[np.float32], NDArray[np.uint32] | None, bool], Scorer]


@dataclass(frozen=True)
class Backend:
    """An engine: makes the objective of a problem and the scorer of weights; `descends`: has stochastic epochs."""

    name: str
    objective: Callable[[Problem], Objective]
    scorer: ScorerMaker
    descends: bool = False


def _objective(problem: Problem) -> Objective:
    """Loss and gradient of the whole training set, on the CPU."""
    if problem.order is not None:
        return _core.OrderObjective(
            problem.order, problem.data, sample_weight=problem.sample_weight, allowed=problem.allowed
        )
    return _core.Objective(
        problem.data,
        problem.layout,
        loss=problem.loss,
        sample_weight=problem.sample_weight,
        forbidden=problem.forbidden,
        allowed=problem.allowed,
        partial=problem.partial,
        cost=problem.cost,
        once=problem.once,
    )


def _scorer(
    layout: _core.Layout, weights: NDArray[np.float32], forbidden: NDArray[np.uint32] | None, local: bool
) -> Scorer:
    """Features and weights on the CPU."""
    return _core.Scorer(layout, weights, forbidden, local=local)


#: Every engine by its name.
BACKENDS: dict[str, Backend] = {"cpu": Backend("cpu", _objective, _scorer, descends=True)}

_chosen: ContextVar[str] = ContextVar("tagwise_backend", default="cpu")


def current() -> Backend:
    """The engine that is used here and now."""
    return BACKENDS[_chosen.get()]


@contextmanager
def using(name: str) -> Iterator[Backend]:
    """Use an engine inside a `with` block."""
    if name not in BACKENDS:
        raise ParameterError(f"there is no backend {name!r}; there are: {', '.join(BACKENDS)}")
    token = _chosen.set(name)
    try:
        yield BACKENDS[name]
    finally:
        _chosen.reset(token)


class Sum:
    """The objective of a corpus from those of its shards, added in their order.

    In the log domain log sum_s e^{v_s} of their values v_s, and their gradients weighted by e^{v_s} over that sum.
    """

    def __init__(self, parts: Sequence[Objective]) -> None:
        self.parts = tuple(parts)

    def value(
        self, w: Vector, gradient: Vector, n_jobs: int = 0, log_domain: bool = False, /
    ) -> tuple[float, float]:
        """Loss at `w`, the largest of the shards' largest; the gradient is written in place."""
        found, gradients = [], []
        for part in self.parts:
            here = np.empty_like(gradient)
            found.append(part.value(w, here, n_jobs, log_domain))
            gradients.append(here)
        values = [value for value, _ in found]
        total, factors = sum(values), [1.0] * len(values)
        if log_domain:
            most = max(values)
            total = most + math.log(sum(math.exp(value - most) for value in values))
            factors = [math.exp(value - total) for value in values]
        gradient[:] = 0.0
        for factor, here in zip(factors, gradients):
            gradient += factor * here
        return total, max(largest for _, largest in found)


__all__ = ["BACKENDS", "Backend", "Sum", "current", "using"]
