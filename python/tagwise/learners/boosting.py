"""Sequence boosting: blocks of rounds run natively, decisions are taken between them.

    minimise  N = sum_i w_i (e^{l_i} - 1),  l_i = -log P(y_i | x_i),  one weight a round

Altun, Hofmann and Johnson (2002): AdaBoost.MR for label sequences. Or N = sum_i w_i sum_t (1 / p_t(gold) - 1).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

import tagwise._core as _core
from tagwise.learners.loop import Callback, Result, Stopping, run
from tagwise.optimizers.base import Step, Vector

#: The longest native call: Ctrl-C is heard between two.
SECONDS = 0.2
#: Stands for log 0: a loss of nothing.
LEAST = -1e300
#: Columns of the chosen features, and the type that each has in a model file.
COLUMNS = {
    "round": np.uint32,
    "feature": np.uint32,
    "step": np.float64,
    "bound": np.float64,
    "log_loss": np.float64,
}

Steps = dict[str, NDArray[Any]]


class Ensemble:
    """The features chosen so far, block by block."""

    def __init__(self, booster: _core.Boosting) -> None:
        self.booster = booster
        self.start = booster.log_loss
        self.parts: list[dict[str, Any]] = []
        self.ends = [0]  # features chosen up to the end of each block
        self.interrupted = False

    def blocks(self, rounds: int, every: int) -> Iterator[Step]:
        """The starting point, then a state after every `every` rounds; an interrupted block is a state too.

        The value of a state is the logarithm of the loss, its gradient norm the last feature's slope, its evaluations
        the passes over the training set that the sentences computed so far amount to.
        """
        yield Step(self.booster.weights(), max(self.start, LEAST), 0.0, 0)
        done, sentences, more = 0, 0, True
        n = max(len(self.booster.losses()), 1)
        while done < rounds and more:
            interrupted = None
            wanted, slope = min(done + every, rounds), 0.0
            try:
                while done < wanted and more:
                    part = self.booster.run(wanted - done, SECONDS)
                    done, more = self.booster.rounds, bool(part["more"])
                    if len(part["feature"]):
                        self.parts.append(part)
                        slope, sentences = float(part["slope"][-1]), sentences + int(part["sentences"].sum())
                    if part["raised"] is not None:
                        raise part["raised"]
            except KeyboardInterrupt as signal:
                interrupted, self.interrupted = signal, True
            self.ends.append(sum(len(part["feature"]) for part in self.parts))
            if self.ends[-1] == self.ends[-2] and interrupted is None:
                return
            yield Step(self.booster.weights(), max(self.booster.log_loss, LEAST), slope, -(-sentences // n))
            if interrupted is not None:
                raise interrupted

    def steps(self, block: int) -> Steps:
        """The features chosen up to a block, as columns; all of them for a block that does not exist."""
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
) -> tuple[Result, Steps]:
    """Boost; an iteration of the history is a block of `every` rounds, its objective the logarithm of the loss."""
    ensemble = Ensemble(booster)
    stopping = Stopping(-(-rounds // every), 0.0, 1, patience)
    nonzero: list[int] = []

    def states() -> Iterator[Step]:
        for block in ensemble.blocks(rounds, every):
            nonzero.append(int(np.count_nonzero(block.w)))
            yield block

    result = run(states(), stopping, dev_score=dev_score, callbacks=callbacks)
    steps = ensemble.steps(result.best_iteration)
    for entry in result.history:
        block = entry["iteration"]
        chosen = ensemble.ends[block]
        rounds_of = ensemble.steps(block)["round"]
        entry["rounds"] = int(rounds_of[-1]) + 1 if len(rounds_of) else 0
        entry["chosen"], entry["nonzero"] = chosen, nonzero[block]
    if ensemble.interrupted:
        result.reason, result.interrupted = "interrupted; the ensemble reached so far is kept", True
    elif result.reason.startswith("reached max_iter"):
        result.reason = f"reached rounds={rounds}"
    elif result.reason.startswith("no step"):
        result.reason = "no feature lowers the loss any further"
    return result, steps
