"""Batch learners: a loss over the whole training set, a penalty, an optimiser.

    minimise  sum_i w_i loss(x_i, y_i) + l2 ||w||^2 + l1 ||w||_1

The penalties are added to the sum over sentences, not to the mean: l2 and l1 are CRFsuite's c2 and c1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from tagwise import _core
from tagwise.errors import ParameterError, TrainingError
from tagwise.learners.loop import Callback, Result, Stopping, run
from tagwise.optimizers import OPTIMIZERS, Optimizer, Step
from tagwise.optimizers.base import Vector

#: Largest l_i at which the exponential loss takes over from its logarithm, and beyond which it cannot.
IN_RANGE, BEYOND = 20.0, 600.0


def choose_optimizer(name: str, l1: float) -> Optimizer:
    """The optimiser for an objective: by name, or the usual one for "auto"; a mismatch is refused here."""
    if name == "auto":
        return OPTIMIZERS["owlqn" if l1 > 0.0 else "lbfgs"]
    optimizer = OPTIMIZERS[name]
    if l1 > 0.0 and not optimizer.l1:
        able = ", ".join(o.name for o in OPTIMIZERS.values() if o.l1)
        raise ParameterError(f"optimizer={name!r} cannot handle l1={l1:g}; use one of: {able}, or l1=0")
    return optimizer


class Evaluation:
    """The loss of the training set plus l2 ||w||^2, as optimisers see it.

    `log_domain`: log sum_i w_i e^{l_i} in place of the exponential loss; `largest`: at the last point, the largest
    l_i + log w_i, or the largest -log p of a token.
    """

    def __init__(self, objective: _core.Objective | _core.OrderObjective, l2: float, n_jobs: int) -> None:
        self.objective = objective
        self.l2 = l2
        self.n_jobs = n_jobs
        self.log_domain = False
        self.largest = math.inf

    def __call__(self, w: Vector, gradient: Vector) -> float:
        value, self.largest = self.objective.value(w, gradient, self.n_jobs, self.log_domain)
        return value + _core.add_ridge(w, self.l2, gradient, self.n_jobs) if self.l2 else value


def into_range(
    evaluate: Evaluation, states: Callable[[Vector], Iterator[Step]], start: Vector, max_iter: int
) -> tuple[Vector, int]:
    """Weights at which the exponential loss of every sentence is of a workable size, and the iterations spent.

    At zero weights l_i = T log L: e^l of a hundred tokens is beyond any float. log sum_i w_i e^{l_i} has the same
    minima without the penalty and grows only like l, so it is minimised first, until the largest l_i is small.
    """
    evaluate.log_domain = True
    try:
        for iteration, state in enumerate(states(start)):
            start = state.w
            if evaluate.largest <= IN_RANGE:
                return start.copy(), iteration
            if iteration >= max_iter:
                break
    finally:
        evaluate.log_domain = False
    if evaluate.largest > BEYOND:
        raise TrainingError(
            f"the exponential loss stays out of range: a sentence has log loss {evaluate.largest:.0f}; "
            "weight long sentences down (pi), cut them (max_length), or regularise less"
        )
    return start.copy(), iteration


def train(
    objective: _core.Objective | _core.OrderObjective,
    start: Vector,
    stopping: Stopping,
    *,
    loss: str = "log",
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
    evaluate = Evaluation(objective, l2, n_jobs)

    def states(w: Vector) -> Iterator[Step]:
        return chosen.run(evaluate, np.asarray(w, dtype=np.float64), n_jobs=n_jobs, **extra)

    spent = 0
    if loss == "exp":
        start, spent = into_range(evaluate, states, start, stopping.max_iter)
    result = run(states(start), stopping, dev_score=dev_score, callbacks=callbacks)
    result.warmup = spent
    return result
