"""Backends, which compute objectives and score sentences.

>>> devices(), current().name
(('cpu', 'cuda'), 'cpu')

`using` chooses the backend of estimators inside a `with` block. Extensions add backends (`base.extensions`). The CPU
computes everything that the protocols do not cover (beams, lookback, model files) from the same weights.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import tagwise._core as _core
from tagwise.base import extensions
from tagwise.base.exceptions import ParameterError
from tagwise.base.parameters import meant
from tagwise.learners.problem import Problem
from tagwise.optimizers.base import HostVectors, VectorSpace
from tagwise.scores.protocols import Exponential, Objective, Scorer

#: Function of layout, weights, forbidden pairs and whether each step is normalised, which returns a scorer.
ScorerMaker = Callable[[_core.Layout, NDArray[np.float32], NDArray[np.uint32] | None, bool], Scorer]


@dataclass(frozen=True)
class Backend:
    """An engine, which creates the objective of a problem and the scorer of weights.

    `descends` is whether it has stochastic epochs. `vectors` creates the vectors of L-BFGS for a number of threads.
    `check` raises an error if the engine cannot be used on this machine.
    """

    name: str
    objective: Callable[[Problem], Objective]
    scorer: ScorerMaker
    descends: bool = False
    vectors: Callable[[int], VectorSpace] = HostVectors
    check: Callable[[], Any] = bool


def _scorer(
    layout: _core.Layout, weights: NDArray[np.float32], forbidden: NDArray[np.uint32] | None, local: bool
) -> Scorer:
    """Return a scorer of features and weights on the CPU."""
    return _core.Scorer(layout, weights, forbidden, local=local)


#: Backends by name. Those of extensions are added when they are first used.
BACKENDS: dict[str, Backend] = {"cpu": Backend("cpu", Problem.cpu_objective, _scorer, descends=True)}


def devices() -> tuple[str, ...]:
    """Return the names of all backends, loaded or not."""
    return tuple(dict.fromkeys((*BACKENDS, *extensions.names("device"))))


def find(name: str) -> Backend:
    """Return the backend of a name.

    Raises:
        ParameterError: If the backend does not exist, or a package that it needs is not installed.
    """
    if name not in devices():
        raise ParameterError(
            f"unknown backend {name!r}{meant(name, devices())}. Available: {', '.join(devices())}"
        )
    if name not in BACKENDS:
        BACKENDS[name] = extensions.load("device", name).BACKEND
    return BACKENDS[name]


_chosen: ContextVar[str] = ContextVar("tagwise_backend", default="cpu")


def current() -> Backend:
    """Return the backend in use."""
    return BACKENDS[_chosen.get()]


@contextmanager
def using(name: str) -> Iterator[Backend]:
    """Use a backend inside a `with` block."""
    backend, token = find(name), _chosen.set(name)
    try:
        yield backend
    finally:
        _chosen.reset(token)


def exponential(objective: Objective) -> Exponential:
    """Return the objective if it has the exponential loss, or raise a ParameterError."""
    if isinstance(objective, Exponential):
        return objective
    raise ParameterError(
        f"{type(objective).__name__} does not support the exponential loss. Use loss='log', or another backend"
    )
