"""The Hidden Markov SVM (Altun, Tsochantaridis and Hofmann 2003): epochs run natively, the duality gap decides."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol

from tagwise.learners.loop import Callback, Result, Stopping, run
from tagwise.optimizers.base import Step, Vector, relative_gap

#: What an epoch adds to its entry of the history.
REPORTED = ("dual", "gap", "slack", "violated", "paths", "decoded", "truncated")


class Solver(Protocol):
    """What the core offers for one training set: explicit weights (`Svm`) or support tokens (`KernelSvm`)."""

    def epoch(self) -> dict[str, Any]: ...
    def weights(self) -> Vector: ...


def train(
    solver: Solver,
    max_epochs: int,
    tol: float,
    patience: int,
    *,
    dev_score: Callable[[Vector], float] | None = None,
    callbacks: Iterable[Callback] = (),
) -> Result:
    """Run epochs until the relative duality gap is under `tol`."""
    reports: list[dict[str, Any]] = []

    def states() -> Iterator[Step]:
        """A state an epoch: its value is the primal objective, its gradient norm the relative duality gap."""
        yield Step(solver.weights(), 0.0, 0.0, 0)
        while True:
            state = solver.epoch()
            gap = relative_gap(state["primal"], state["dual"])
            reports.append({"gap": gap, **state})
            yield Step(solver.weights(), state["primal"], gap, len(reports), dual=state["dual"])

    result = run(states(), Stopping(max_epochs, tol, 1, patience), dev_score=dev_score, callbacks=callbacks)
    for entry, report in zip(result.history, reports):
        entry.update({name: report[name] for name in REPORTED})
    return result
