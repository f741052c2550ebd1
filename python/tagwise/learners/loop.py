"""Training loop of all iterative learners: history, callbacks, dev score, stopping, best iterate, Ctrl-C."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tagwise.base.domains import DomainError, Flag, Integer, ListOf, Numbers, Real, Record
from tagwise.base.exceptions import TrainingError
from tagwise.learners.checkpoint import Checkpointer
from tagwise.optimizers.base import Step, Vector

logger = logging.getLogger("tagwise")

#: Share of `tol` below which an improvement over `window` iterations ends training that could still be certified.
STALLED = 0.003


@dataclass(frozen=True)
class Iteration:
    """Report on one iteration, which callbacks receive.

    Attributes:
        iteration: Number of the iteration, from 1.
        max_iter: Maximum number of iterations.
        objective: Value of the objective. Online learners count wrong tokens.
        gradient_norm: Norm of the gradient, or None if it was not computed.
        dev_score: Score on the dev set, or None without one.
        seconds: Seconds since training started.
        evaluations: Number of evaluations of the objective so far.
        dual: Lower bound of the optimum, or None if this iteration has no certificate.
        gap: Bound of the relative distance from the optimum, (objective - dual) / objective, or None.
        measures: Further measurements by name, such as the number of updates of an online epoch.
    """

    iteration: int
    max_iter: int
    objective: float
    gradient_norm: float | None
    dev_score: float | None
    seconds: float
    evaluations: int
    dual: float | None = None
    gap: float | None = None
    measures: dict[str, float] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Return the entry of `history_`.

        Returns:
            A dict of the fields that were measured, without `max_iter`.
        """
        hidden = ("max_iter", "measures")
        measured = {k: x for k, x in vars(self).items() if x is not None and k not in hidden}
        return {**measured, **self.measures}


#: Function that is called after every iteration. Returning True stops training and keeps the model.
Callback = Callable[[Iteration], Any]


@dataclass
class Stopping:
    """Stopping rule of a run.

    `patience` counts dev scores. `tol` is compared with the relative gap, if the optimiser has a bound of the optimum
    and the objective is exact, and with the relative improvement over the last `window` iterations with comparable
    values. If a certificate may still be found, only an improvement of less than STALLED times `tol` ends training.
    `limit` is the parameter that bounds the number of iterations, with its value,
    if it is not `max_iter`.
    """

    max_iter: int
    tol: float
    window: int
    patience: int
    limit: str = ""

    @property
    def reached(self) -> str:
        """Reason to stop after `max_iter` iterations."""
        return f"{self.limit or f'max_iter={self.max_iter}'} reached"


@dataclass
class Result:
    """Weights, and the history of training that led to them."""

    weights: Vector
    history: list[dict[str, Any]]
    reason: str
    best_iteration: int
    objective: float
    converged: bool = False  # whether `tol` ended training, or no step decreased the objective
    exact: bool = (
        False  # whether the objective is summed in double precision, for weights in single precision
    )
    warmup: int = 0  # iterations before the history begins
    interrupted: bool = False  # by Ctrl-C, which is raised again when the model is stored


def converged(values: Sequence[float], tol: float, window: int) -> bool:
    """Return whether |f_{k-window} - f_k| <= tol |f_k|, which is the rule of CRFsuite."""
    if len(values) <= window or tol <= 0.0:
        return False
    before, now = values[-1 - window], values[-1]
    return abs(before - now) <= tol * max(abs(now), 1e-300)


@dataclass
class TrainingState:
    """Progress of a run, apart from the state of its learner."""

    iteration: int = -1
    history: list[dict[str, Any]] = field(default_factory=list)
    values: list[float] = field(default_factory=list)  # objectives, starting with that of the start weights
    best: Vector | None = None  # weights with the best dev score
    best_score: float = -math.inf
    best_iteration: int = 0
    seconds: float = 0.0  # so far
    gap: float | None = None  # of the last iteration, if known
    since: int = 0  # index of the first value that is comparable with the last
    exact: bool = False  # whether the last value is that of the stored weights, see `Step`

    def scored(self, entry: Iteration, w: Vector) -> None:
        """Record an iteration, and its weights if its dev score is the best so far."""
        self.history.append(entry.as_dict())
        if entry.dev_score is not None and entry.dev_score > self.best_score:
            self.best, self.best_score, self.best_iteration = w.copy(), entry.dev_score, entry.iteration

    def reaches_tol(self, stopping: Stopping) -> str | None:
        """Return how `tol` is reached, or None."""
        tol, window = stopping.tol, stopping.window
        if self.gap is not None and self.exact and 0.0 <= self.gap <= tol:
            return f"tol={tol:g}: certified within {self.gap:.1e} of the optimum"
        least = tol if self.gap is None else STALLED * tol
        if converged(self.values[self.since :], least, window):
            return f"tol={tol:g}: improved by less than {least:g} over window={window} iterations"
        return None

    def ends(self, stopping: Stopping) -> str | None:
        """Return the reason to stop other than `tol`, or None."""
        scored = bool(self.history) and "dev_score" in self.history[-1]
        if scored and stopping.patience and self.iteration - self.best_iteration >= stopping.patience:
            return f"patience={stopping.patience}: no better dev score"
        return stopping.reached if self.iteration >= stopping.max_iter else None


_NUMBER, _COUNT = Real(any_=True), Integer(0, 2**53)
_MAYBE = Real(any_=True, optional=True)
#: Domain of a `TrainingState` in a checkpoint.
COURSE = Record(
    {
        "iteration": _COUNT,
        "history": ListOf(
            Record(
                {
                    "iteration": _COUNT,
                    "objective": _NUMBER,
                    "seconds": Real(0.0),
                    "evaluations": _COUNT,
                },
                more=_NUMBER,
            )
        ),
        "values": ListOf(_NUMBER, low=1),
        "best": Numbers("f64", optional=True),
        "best_score": _NUMBER,
        "best_iteration": _COUNT,
        "seconds": Real(0.0),
        "gap": _MAYBE,
        "since": _COUNT,
        "exact": Flag(),
    }
)


def _resumed(checkpointer: Checkpointer | None) -> TrainingState | None:
    """Return the progress stored in a checkpoint, or None at the start of a run."""
    found = None if checkpointer is None else checkpointer.loop(COURSE)
    if checkpointer is None or found is None:
        return None
    progress = TrainingState(**found)
    last, noted = progress.iteration, [entry["iteration"] for entry in progress.history]
    with checkpointer.restoring():
        if len(progress.values) != last + 1 or max(progress.best_iteration, progress.since) > last:
            raise DomainError(
                f"values: expected one for each of {last + 1} iterations, and a best iteration among them"
            )
        if noted != list(range(last + 1 - len(noted), last + 1)) or (noted and noted[0] < 0):
            raise DomainError(f"history: expected entries up to iteration {last}")
    return progress


def run(
    states: Iterator[Step],
    stopping: Stopping,
    *,
    dev_score: Callable[[Vector], float] | None = None,
    callbacks: Iterable[Callback] = (),
    checkpointer: Checkpointer | None = None,
) -> Result:
    """Run a learner until it stops. Return the iterate with the best dev score, or the last one without dev scores.

    Ctrl-C and a callback that returns True stop early and keep the current iterate. The result has the reason. Numbers
    that are not finite never reach a model: training ends at the last good iterate, or raises a TrainingError if there
    is none.

    `checkpointer` receives the state when a checkpoint is due and when a callback stops. If it resumes, the first of
    `states` is the iterate of the checkpoint.
    """
    begin = time.perf_counter()
    found = _resumed(checkpointer)
    resumed, progress = found is not None, found or TrainingState()
    before, first = progress.seconds, max(progress.iteration, 0)
    last: Vector | None = None
    reason: str | None = None
    interrupted, reached, callbacks = False, None, list(callbacks)
    try:
        for iteration, state in enumerate(states, first):
            if not (math.isfinite(state.value) and math.isfinite(state.gradient_norm or 0.0)):
                if last is None:
                    raise TrainingError(
                        f"the objective is {state.value} at the start. Scale real-valued attributes down, "
                        "or start from finite weights"
                    )
                reason = "the objective is not finite, the last good iterate is kept"
                logger.warning(reason)
                break
            if last is None and progress.best is not None and len(progress.best) != len(state.w):
                raise TrainingError(
                    f"the checkpoint has {len(progress.best):,} weights of the best iteration, expected "
                    f"{len(state.w):,}. Remove it, or train from the start."
                )
            last, progress.iteration = state.w, iteration
            progress.gap = None if state.dual is None else state.gap
            progress.exact = state.exact
            stop = False
            if not (resumed and iteration == first):  # already in the history of the checkpoint
                if state.fresh:
                    progress.since = len(progress.values)
                progress.values.append(state.value)
                if iteration == 0 and stopping.max_iter > 0:
                    continue  # the starting point is not an iteration
                score = None if dev_score is None else dev_score(state.w)
                progress.seconds = before + time.perf_counter() - begin
                entry = Iteration(
                    iteration,
                    stopping.max_iter,
                    state.value,
                    state.gradient_norm,
                    score,
                    progress.seconds,
                    state.evaluations,
                    state.dual if state.exact else None,
                    progress.gap if state.exact else None,
                    state.measures,
                )
                progress.scored(entry, state.w)
                answers = [callback(entry) for callback in callbacks]
                stop = any(answer is True for answer in answers)
            reached = progress.reaches_tol(stopping)
            reason = "a callback returned True" if stop else reached or progress.ends(stopping)
            if checkpointer is not None and state.state is not None and (stop or checkpointer.due(iteration)):
                checkpointer.write(vars(progress), state.state())
            if reason is not None:
                break
    except KeyboardInterrupt:
        if last is None:
            raise
        reason, interrupted = "interrupted", True
        logger.warning("training was interrupted, the current model is kept")
    if last is None:
        raise TrainingError("training returned no weights. Check that the training set is not empty")
    weights = progress.best if progress.best is not None else np.array(last)
    if progress.best is None:
        progress.best_iteration = max(progress.iteration, 0)
    objective = progress.values[min(progress.best_iteration, len(progress.values) - 1)]
    ended = reason or "no step decreases the objective further"
    is_last = progress.best_iteration == max(progress.iteration, 0)
    if not is_last:
        total = progress.history[-1]["iteration"]
        kept = f"kept iteration {progress.best_iteration} of {total} (best dev score)"
        ended = f"{ended.partition(':')[0]}, {kept}"
    result = Result(weights, progress.history, ended, progress.best_iteration, objective)
    result.converged = reason is None or reason == reached
    result.exact, result.interrupted = progress.exact and is_last, interrupted
    return result
