"""Sequence boosting. Blocks of rounds run in the core, and this module decides between them.

    minimise  N = sum_i w_i (e^{l_i} - 1),  l_i = -log P(y_i | x_i),  one weight per round

This is AdaBoost.MR for label sequences (Altun, Hofmann and Johnson 2002). The pointwise loss is
N = sum_i w_i sum_t (1 / p_t(gold) - 1).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

import tagwise._core as _core
from tagwise.base.domains import Domain, DomainError, Flag, Integer, ListOf, Numbers, Record, name_of
from tagwise.learners.checkpoint import Checkpointer
from tagwise.learners.loop import Callback, Result, Stopping, run
from tagwise.optimizers.base import State, Step, Vector

#: Maximum seconds of a call of the core. Ctrl-C is checked between calls.
SECONDS = 0.2
#: Finite value in place of log 0, for a loss of 0.
LEAST = -1e300
#: Columns of the chosen features, and their types in a model file.
COLUMNS = {
    "round": np.uint32,
    "feature": np.uint32,
    "step": np.float64,
    "bound": np.float64,
    "log_loss": np.float64,
}

Steps = dict[str, NDArray[Any]]
_COUNT = Integer(0, 2**53)


#: State in a checkpoint. The core checks the lengths of the arrays of the booster, one of whose numbers may be
#: infinite.
BOOSTING: Domain = Record(
    {
        "booster": Record(more=Numbers("f64", finite=False)),
        "steps": Record({name: Numbers(name_of(dtype)) for name, dtype in COLUMNS.items()}),
        "ends": ListOf(_COUNT, low=1),
        "nonzero": ListOf(_COUNT),
        "sentences": _COUNT,
        "more": Flag(),
    }
)


def _check(state: State, n_features: int) -> None:
    """Raise a DomainError for a state whose columns and blocks are inconsistent."""
    columns, ends = state["steps"], state["ends"]
    (length, *others) = {len(column) for column in columns.values()}
    if (
        others
        or ends != sorted(ends)
        or [ends[0], ends[-1]] != [0, length]
        or len(state["nonzero"]) != len(ends)
    ):
        raise DomainError("steps: expected columns of equal length, in consecutive blocks")
    if length and int(columns["feature"].max()) >= n_features:
        raise DomainError(f"steps.feature: expected numbers below {n_features:,}")


class Ensemble:
    """Features chosen so far, in blocks, from the beginning or from a state."""

    def __init__(self, booster: _core.Boosting, resume: State | None = None) -> None:
        self.booster = booster
        self.parts: list[dict[str, Any]] = []
        self.ends = [0]  # number of features chosen up to the end of each block
        self.nonzero = list[int]()  # number of nonzero weights, at the start and after each block
        self.sentences, self.more = 0, True
        self.interrupted = False
        if resume is not None:
            _check(resume, len(booster.weights()))
            booster.restore(resume["booster"])
            self.parts = [resume["steps"]]
            self.ends, self.nonzero = list(resume["ends"]), list(resume["nonzero"])
            self.sentences, self.more = resume["sentences"], resume["more"]

    def state(self) -> State:
        """Return the state from which training resumes exactly."""
        return {
            "booster": self.booster.state(),
            "steps": self.steps(len(self.ends)),
            "ends": self.ends,
            "nonzero": self.nonzero,
            "sentences": self.sentences,
            "more": self.more,
        }

    def _step(self, slope: float, keep: bool) -> Step:
        """Return the current step."""
        w, passes = self.booster.weights(), -(-self.sentences // max(len(self.booster.losses()), 1))
        if len(self.nonzero) < len(self.ends):  # not at the block where a run is resumed
            self.nonzero.append(int(np.count_nonzero(w)))
        return Step(
            w,
            max(self.booster.log_loss, LEAST),
            None,
            passes,
            self.state if keep and not self.booster.interrupted else None,
            measures={"slope": slope},
        )

    def blocks(self, rounds: int, every: int, *, keep: bool = False) -> Iterator[Step]:
        """Yield the starting point, then a step after every `every` rounds. An interrupted block gives a step too.

        The value of a step is the logarithm of the loss, `slope` among its measures that of the last feature. Its
        evaluations are the number of passes over the training set that the sentences computed so far amount to.
        """
        yield self._step(0.0, keep)
        while self.booster.rounds < rounds and self.more:
            interrupted = None
            wanted, slope = min(self.booster.rounds + every, rounds), 0.0
            try:
                while self.booster.rounds < wanted and self.more:
                    part = self.booster.run(wanted - self.booster.rounds, SECONDS)
                    self.more = bool(part["more"])
                    if len(part["feature"]):
                        self.parts.append(part)
                        slope = float(part["slope"][-1])
                        self.sentences += int(part["sentences"].sum())
                    if part["raised"] is not None:
                        raise part["raised"]
            except KeyboardInterrupt as signal:
                interrupted, self.interrupted = signal, True
            self.ends.append(sum(len(part["feature"]) for part in self.parts))
            if self.ends[-1] == self.ends[-2] and interrupted is None:
                return
            yield self._step(slope, keep)
            if interrupted is not None:
                raise interrupted

    def steps(self, block: int) -> Steps:
        """Return the features chosen up to a block as columns, or all of them if the block does not exist."""
        end = self.ends[block] if block < len(self.ends) else None
        return {
            name: np.concatenate([np.zeros(0, dtype)] + [part[name] for part in self.parts]).astype(dtype)[
                :end
            ]
            for name, dtype in COLUMNS.items()
        }


def train(
    booster: _core.Boosting,
    rounds: int,
    every: int,
    patience: int,
    *,
    dev_score: Callable[[Vector], float] | None = None,
    callbacks: Iterable[Callback] = (),
    checkpointer: Checkpointer | None = None,
) -> tuple[Result, Steps]:
    """Boost. An iteration of the history is a block of `every` rounds, its objective the logarithm of the loss."""
    found = None if checkpointer is None else checkpointer.learner(BOOSTING)
    with contextlib.nullcontext() if checkpointer is None else checkpointer.restoring():
        ensemble = Ensemble(booster, found)
    stopping = Stopping(-(-rounds // every), 0.0, 1, patience, limit=f"max_iter={rounds}")
    blocks = ensemble.blocks(rounds, every, keep=checkpointer is not None)
    result = run(blocks, stopping, dev_score=dev_score, callbacks=callbacks, checkpointer=checkpointer)
    steps = ensemble.steps(result.best_iteration)
    for entry in result.history:
        block = entry["iteration"]
        chosen = ensemble.ends[block]
        rounds_of = ensemble.steps(block)["round"]
        entry["rounds"] = int(rounds_of[-1]) + 1 if len(rounds_of) else 0
        entry["chosen"], entry["nonzero"] = chosen, ensemble.nonzero[block]
    if ensemble.interrupted:
        result.reason, result.interrupted = "interrupted", True
    elif result.reason.startswith("no step"):
        result.reason = "no feature lowers the loss any further"
    return result, steps
