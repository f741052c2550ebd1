"""Hidden Markov SVM (Altun, Tsochantaridis and Hofmann 2003). Epochs run in the core until the duality gap is small."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, Protocol

from tagwise.base.domains import AnyOf, Domain, Flag, Integer, ListOf, Numbers, Real, Record
from tagwise.learners.checkpoint import Checkpointer
from tagwise.learners.loop import Callback, Result, Stopping, run
from tagwise.optimizers.base import State, Step, Vector, relative_gap

#: Fields that an epoch adds to its entry of the history.
REPORTED = ("dual", "gap", "slack", "violated", "paths", "decoded", "truncated")


_REPORT = AnyOf((Flag(), Real(any_=True)))
_WHOLE = {"sizes": "u32", "paths": "u16", "idle": "u8", "quiet": "u8"}
_REAL = ("alpha", "bound", "gram", "beta", "edge", "start", "end", "kept")
#: State in a checkpoint: that of the solver, whose lengths the core checks, and the reports of its epochs.
SVM: Domain = Record(
    {
        "solver": Record(
            {
                **{name: Numbers(dtype) for name, dtype in _WHOLE.items()},
                **dict.fromkeys(_REAL, Numbers("f64")),
                "epsilon": Real(),
                "epochs": Integer(0, 2**53),
            }
        ),
        "reports": ListOf(Record(dict.fromkeys(("primal", *REPORTED), _REPORT), more=_REPORT)),
    }
)


class Solver(Protocol):
    """Interface of the solvers of the core: explicit weights (`Svm`) or support tokens (`KernelSvm`)."""

    def epoch(self) -> dict[str, Any]: ...
    def weights(self) -> Vector: ...
    def state(self) -> dict[str, Any]: ...
    def restore(self, state: dict[str, Any], /) -> None: ...


def train(
    solver: Solver,
    max_epochs: int,
    tol: float,
    patience: int,
    *,
    dev_score: Callable[[Vector], float] | None = None,
    callbacks: Iterable[Callback] = (),
    checkpointer: Checkpointer | None = None,
) -> Result:
    """Run epochs until the relative duality gap is at most `tol`. States are those of the core."""
    reports: list[dict[str, Any]] = []
    found = None if checkpointer is None else checkpointer.learner(SVM)
    if checkpointer is not None and found is not None:
        with checkpointer.restoring():
            solver.restore(found["solver"])
        reports = found["reports"]

    def state() -> State:
        return {"solver": solver.state(), "reports": reports}

    kept = None if checkpointer is None else state

    def step() -> Step:
        """Return the step after an epoch, with the primal objective as its value."""
        last = reports[-1]
        found = Step(solver.weights(), last["primal"], None, len(reports), state=kept)
        return replace(found, dual=last["dual"], exact=True, fresh=True)

    def states() -> Iterator[Step]:
        """Yield the starting point, or where the run is resumed, then one step per epoch."""
        yield step() if reports else Step(solver.weights(), 0.0, None, 0, state=kept)
        while True:
            found = solver.epoch()
            reports.append({"gap": max(relative_gap(found["primal"], found["dual"]), 0.0), **found})
            yield step()

    stopping = Stopping(max_epochs, tol, 1, patience)
    result = run(states(), stopping, dev_score=dev_score, callbacks=callbacks, checkpointer=checkpointer)
    for entry, report in zip(result.history, reports):
        entry.update({name: report[name] for name in REPORTED})
    return result
