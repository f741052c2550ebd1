"""The loop around any iterative learner: history, callbacks, dev score, stopping, the best iterate, Ctrl-C."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from tagwise.errors import TrainingError
from tagwise.optimizers.base import Vector

logger = logging.getLogger("tagwise")


@dataclass(frozen=True)
class Iteration:
    """What a callback is told after an iteration."""

    iteration: int
    max_iter: int
    objective: float
    gradient_norm: float
    dev_score: float | None
    seconds: float
    evaluations: int

    def as_dict(self) -> dict[str, Any]:
        """The entry of `history_`."""
        return {
            "iteration": self.iteration,
            "objective": self.objective,
            "gradient_norm": self.gradient_norm,
            "dev_score": self.dev_score,
            "seconds": self.seconds,
            "evaluations": self.evaluations,
        }


#: Called after every iteration; True stops training and keeps the model.
Callback = Callable[[Iteration], Any]


class State(Protocol):
    """What an iterative learner yields: `optimizers.Step` is one."""

    @property
    def w(self) -> Vector: ...
    @property
    def value(self) -> float: ...
    @property
    def gradient_norm(self) -> float: ...
    @property
    def evaluations(self) -> int: ...


@dataclass
class Stopping:
    """When to stop. `tol`: relative improvement over the last `window` iterations; `patience`: dev scores."""

    max_iter: int
    tol: float
    window: int
    patience: int


@dataclass
class Result:
    """Weights and how they were reached."""

    weights: Vector
    history: list[dict[str, Any]]
    reason: str
    best_iteration: int
    objective: float
    warmup: int = 0  # iterations spent before the history begins
    interrupted: bool = False  # by Ctrl-C: to be raised again once the model is kept


def converged(values: Sequence[float], tol: float, window: int) -> bool:
    """|f_{k-window} - f_k| <= tol |f_k|: CRFsuite's rule, with the same meaning of both numbers."""
    if len(values) <= window or tol <= 0.0:
        return False
    before, now = values[-1 - window], values[-1]
    return abs(before - now) <= tol * max(abs(now), 1e-300)


def run(
    states: Iterator[State],
    stopping: Stopping,
    *,
    dev_score: Callable[[Vector], float] | None = None,
    callbacks: Iterable[Callback] = (),
) -> Result:
    """Drive a learner until it stops. With a dev score the best-scoring iterate is returned, else the last.

    Ctrl-C, and a callback that answers True, stop early and keep what was reached; the result says which. Numbers that
    are not finite never reach a model: training ends at the last good iterate, or with a TrainingError where there is
    none.
    """
    begin = time.perf_counter()
    history: list[dict[str, Any]] = []
    values: list[float] = []
    best: Vector | None = None
    last: Vector | None = None
    best_score, best_iteration = -math.inf, 0
    reason, interrupted = "no step decreases the objective further", False
    callbacks = list(callbacks)
    iteration = -1
    try:
        for iteration, state in enumerate(states):
            if not math.isfinite(state.value) or not math.isfinite(state.gradient_norm):
                if last is None:
                    raise TrainingError(
                        f"the objective is {state.value} at the start; scale real-valued attributes down, "
                        "or start from finite weights"
                    )
                reason = "the objective is not finite; the last good iterate is kept"
                logger.warning(reason)
                iteration -= 1  # what is kept is the one before
                break
            last = state.w
            if iteration == 0 and stopping.max_iter > 0:
                values.append(state.value)
                continue  # the starting point is no iteration
            values.append(state.value)
            score = None if dev_score is None else dev_score(state.w)
            seconds = time.perf_counter() - begin
            entry = Iteration(
                iteration,
                stopping.max_iter,
                state.value,
                state.gradient_norm,
                score,
                seconds,
                state.evaluations,
            )
            history.append(entry.as_dict())
            if score is not None and score > best_score:
                best, best_score, best_iteration = state.w.copy(), score, iteration
            stop = [callback(entry) is True for callback in callbacks]
            if any(stop):
                reason = "stopped by a callback"
                break
            if converged(values, stopping.tol, stopping.window):
                reason = f"improved by less than {stopping.tol:g} over {stopping.window} iterations"
                break
            if score is not None and stopping.patience and iteration - best_iteration >= stopping.patience:
                reason = f"no better dev score for {stopping.patience} iterations"
                break
            if iteration >= stopping.max_iter:
                reason = f"reached max_iter={stopping.max_iter}"
                break
    except KeyboardInterrupt:
        if last is None:
            raise
        reason, interrupted = "interrupted; the model reached so far is kept", True
        logger.warning(reason)
    if last is None:
        raise TrainingError("training yielded no weights; is the training set empty?")
    weights = best if best is not None else np.array(last)
    if best is None:
        best_iteration = max(iteration, 0)
    objective = values[min(best_iteration, len(values) - 1)]
    return Result(weights, history, reason, best_iteration, objective, interrupted=interrupted)
