"""Batch learners: a loss over the whole training set, a penalty, an optimiser.

    minimise  sum_i w_i loss(x_i, y_i) + l2 ||w||^2 + l1 ||w||_1

The penalties are added to the sum over sentences, not to the mean: l2 and l1 are CRFsuite's c2 and c1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from tagwise import _core
from tagwise.errors import ParameterError
from tagwise.learners.loop import Callback, Result, Stopping, run
from tagwise.optimizers import OPTIMIZERS, Optimizer, Step
from tagwise.optimizers.base import Objective, Vector


def choose_optimizer(name: str, l1: float) -> Optimizer:
    """The optimiser for an objective: by name, or the usual one for "auto"; a mismatch is refused here."""
    if name == "auto":
        return OPTIMIZERS["owlqn" if l1 > 0.0 else "lbfgs"]
    optimizer = OPTIMIZERS[name]
    if l1 > 0.0 and not optimizer.l1:
        able = ", ".join(o.name for o in OPTIMIZERS.values() if o.l1)
        raise ParameterError(f"optimizer={name!r} cannot handle l1={l1:g}; use one of: {able}, or l1=0")
    return optimizer


def penalised(objective: _core.Objective, l2: float, n_jobs: int) -> Objective:
    """The loss of the training set plus l2 ||w||^2."""

    def evaluate(w: Vector, gradient: Vector) -> float:
        value = objective.evaluate(w, gradient, n_jobs)
        return value + _core.add_ridge(w, l2, gradient, n_jobs) if l2 else value

    return evaluate


def train(
    objective: _core.Objective,
    start: Vector,
    stopping: Stopping,
    *,
    optimizer: str = "auto",
    l1: float = 0.0,
    l2: float = 0.0,
    n_jobs: int = 0,
    dev_score: Callable[[Vector], float] | None = None,
    callbacks: Iterable[Callback] = (),
) -> Result:
    """Minimise the penalised loss from `start`."""
    chosen = choose_optimizer(optimizer, l1)
    extra: dict[str, Any] = {"l1": l1} if chosen.l1 else {}
    states: Iterator[Step] = chosen.run(
        penalised(objective, l2, n_jobs), np.asarray(start, dtype=np.float64), n_jobs=n_jobs, **extra
    )
    return run(states, stopping, dev_score=dev_score, callbacks=callbacks)
