"""Tests of when training stops and which iterate it keeps, as tables of values and dev scores."""

from __future__ import annotations

import itertools
import logging
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest

from tagwise import _core
from tagwise.base.exceptions import TrainingError
from tagwise.base.parameters import parameters_of
from tagwise.estimators import LEARNERS
from tagwise.learners import boosting, online, svm
from tagwise.learners.gradient import WARMUP
from tagwise.learners.loop import Iteration, Result, Stopping, converged, run
from tagwise.learners.problem import WORTH_WARMING, Problem
from tagwise.optimizers.base import Step

from ..corpora import X, Y

FALLS = "no step decreases the objective further"
NAN, INF = math.nan, math.inf


def states(values: Sequence[float], norms: Sequence[float] = ()) -> Iterator[Step]:
    """Yield the steps of a learner with these objectives. The weights of iteration k are [k]."""
    for k, value in enumerate(values):
        yield Step(np.array([float(k)]), value, norms[k] if norms else 1.0, 10 * k + 1)


def looked_up(scores: Sequence[float]) -> Callable[[np.ndarray], float]:
    """Return a dev score function that gives iteration k the score scores[k - 1]."""
    return lambda w: scores[int(w[0]) - 1]


# -- the rule itself --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "tol", "window", "expected"),
    [
        ([], 0.5, 1, False),
        ([1.0], 0.5, 1, False),  # nothing to compare with
        ([1.0, 1.0], 0.5, 1, True),
        ([1.0, 1.0], 0.5, 2, False),  # a window of two needs three values
        ([1.0, 1.0, 1.0], 0.5, 2, True),
        ([9.0, 1.0, 1.0], 0.5, 2, False),  # the value two back, not the last
        ([9.0, 1.0, 1.0], 0.5, 1, True),
        ([1.0, 9.0, 1.0], 0.5, 2, True),  # nor the largest
        ([9.0, 1.0, 9.0, 1.0], 0.5, 2, True),
        ([9.0, 1.0, 9.0, 1.0], 0.5, 3, False),
        ([1.5, 1.0], 0.5, 1, True),  # half of the current value: at the bound
        ([1.5078125, 1.0], 0.5, 1, False),
        ([3.0, 2.0], 0.5, 1, True),  # relative to the current value, 1 / 2, not to the previous one
        ([3.0, 1.875], 0.5, 1, False),
        ([150.0, 100.0], 0.5, 1, True),  # at any scale
        ([0.5, 1.0], 0.5, 1, True),  # an increase counts like a decrease
        ([0.4375, 1.0], 0.5, 1, False),
        ([-1.5, -1.0], 0.5, 1, True),  # logarithms are negative: the absolute value counts
        ([-1.6, -1.0], 0.5, 1, False),
        ([1.0, 0.0], 0.5, 1, False),
        ([0.0, 0.0], 0.5, 1, True),
        ([1.0, 1.0], 0.0, 1, False),  # no tolerance: never
        ([1.0, 1.0, 1.0], 0.0, 2, False),
    ],
)
def test_convergence_criterion_of_the_window(
    values: list[float], tol: float, window: int, expected: bool
) -> None:
    """Training converges if |f_{k-window} - f_k| <= tol |f_k|, once more than `window` values exist."""
    assert converged(values, tol, window) is expected


# -- the loop ---------------------------------------------------------------------------------------------


class Case(NamedTuple):
    """Objectives and dev scores of a run, the stopping rules, and the expected end of training."""

    values: Sequence[float]  # of the start, then of every iteration
    rules: Stopping
    scores: Sequence[float] | None  # of iterations 1, 2, ...
    iterations: int  # entries of the history
    kept: int  # iteration whose weights are kept
    reason: str


def steady(n: int) -> list[float]:
    """Return objectives that fall by far more than any tolerance below."""
    return [2.0 ** (n - k) for k in range(n + 1)]


LEVEL = [64.0, 32.0, 16.0, 8.0, 4.0, 4.0, 4.0, 4.0, 4.0, 4.0]  # level from iteration 4 on
LESS = "tol=0.01: improved by less than 0.01 over window={} iterations"
NO_BETTER = "patience={}: no better dev score"

CASES = {
    "the learner ends on its own": Case(steady(3), Stopping(9, 0.01, 1, 0), None, 3, 3, FALLS),
    "max_iter": Case(steady(9), Stopping(4, 0.01, 1, 0), None, 4, 4, "max_iter=4 reached"),
    "max_iter of one": Case(steady(9), Stopping(1, 0.01, 1, 0), None, 1, 1, "max_iter=1 reached"),
    "max_iter of none is the start": Case(steady(9), Stopping(0, 0.01, 1, 0), None, 1, 0, "max_iter=0 reached"),
    "the start may be all there is": Case(steady(0), Stopping(9, 0.01, 1, 0), None, 0, 0, FALLS),
    "a window of one": Case(LEVEL, Stopping(99, 0.01, 1, 0), None, 5, 5, LESS.format(1)),
    "a window of two": Case(LEVEL, Stopping(99, 0.01, 2, 0), None, 6, 6, LESS.format(2)),
    "a window of three": Case(LEVEL, Stopping(99, 0.01, 3, 0), None, 7, 7, LESS.format(3)),
    "the start counts as a value": Case([4.0, 4.0, 1.0], Stopping(9, 0.01, 1, 0), None, 1, 1, LESS.format(1)),
    "no tolerance never stops": Case(LEVEL, Stopping(99, 0.0, 1, 0), None, 9, 9, FALLS),
    "the window is checked before max_iter": Case(LEVEL, Stopping(5, 0.01, 1, 0), None, 5, 5, LESS.format(1)),
    "the best on dev is kept": Case(steady(4), Stopping(9, 0.01, 1, 0), [0.1, 0.9, 0.5, 0.6], 4, 2, FALLS),
    "of equals on dev the first": Case(steady(5), Stopping(9, 0.01, 1, 0), [0.1, 0.7, 0.7, 0.2, 0.7], 5, 2, FALLS),
    "all equal on dev: the first": Case(steady(3), Stopping(9, 0.01, 1, 0), [0.5] * 3, 3, 1, FALLS),
    "a dev score of nothing is one too": Case(steady(2), Stopping(9, 0.01, 1, 0), [0.0, 0.0], 2, 1, FALLS),
    "the last may be the best": Case(steady(3), Stopping(9, 0.01, 1, 0), [0.1, 0.2, 0.3], 3, 3, FALLS),
    "patience of two": Case(
        steady(9), Stopping(9, 0.01, 1, 2), [0.1, 0.5, 0.4, 0.3, 0.9] + [0.9] * 4, 4, 2, NO_BETTER.format(2),
    ),
    "patience of three sees one more": Case(
        steady(9), Stopping(9, 0.01, 1, 3), [0.1, 0.5, 0.4, 0.3, 0.9] + [0.9] * 4, 8, 5, NO_BETTER.format(3),
    ),
    "patience of one": Case(
        steady(9), Stopping(9, 0.01, 1, 1), [0.1, 0.5, 0.5] + [0.9] * 6, 3, 2, NO_BETTER.format(1),
    ),
    "an equal score does not renew patience": Case(
        steady(9), Stopping(9, 0.01, 1, 2), [0.5] * 9, 3, 1, NO_BETTER.format(2),
    ),
    "a better score renews it": Case(steady(5), Stopping(9, 0.01, 1, 2), [0.1, 0.1, 0.2, 0.2, 0.3], 5, 5, FALLS),
    "patience of nothing never stops": Case(
        steady(9), Stopping(9, 0.01, 1, 0), [0.9] + [0.1] * 8, 9, 1, "max_iter=9 reached",
    ),
    "patience without dev never stops": Case(steady(6), Stopping(9, 0.01, 1, 2), None, 6, 6, FALLS),
    "patience is checked before max_iter": Case(
        steady(9), Stopping(3, 0.01, 1, 2), [0.9, 0.1, 0.1], 3, 1, NO_BETTER.format(2),
    ),
    "the window stops with the best on dev": Case(
        LEVEL,
        Stopping(99, 0.01, 1, 0),
        [0.1, 0.9, 0.8, 0.7, 0.7], 5, 2, LESS.format(1),
    ),
    "max_iter with the best on dev": Case(
        steady(9), Stopping(3, 0.01, 1, 0), [0.5, 0.9, 0.1], 3, 2, "max_iter=3 reached",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_iterations_kept_iterate_and_reason(name: str) -> None:
    """The number of iterations, the kept iterate with its objective, and the reason match the table."""
    case = CASES[name]
    dev_score = None if case.scores is None else looked_up(case.scores)
    seen: list[Iteration] = []
    result = run(states(case.values), case.rules, dev_score=dev_score, callbacks=[seen.append])
    reason = case.reason
    if case.scores is not None and case.kept < case.iterations:
        kept = f"kept iteration {case.kept} of {case.iterations} (best dev score)"
        reason = f"{reason.partition(':')[0]}, {kept}"
    assert (len(result.history), result.best_iteration, result.reason) == (*case[3:5], reason)
    assert result.converged == (case.reason == FALLS or case.reason.startswith("tol"))
    assert result.weights.tolist() == [float(case.kept)]
    assert result.objective == case.values[case.kept]
    first = 0 if case.rules.max_iter == 0 else 1
    for k, (entry, reported) in enumerate(zip(result.history, seen, strict=True), start=first):
        assert entry == reported.as_dict()
        assert reported.max_iter == case.rules.max_iter
        assert (entry["iteration"], entry["objective"]) == (k, case.values[k])
        assert (entry["gradient_norm"], entry["evaluations"]) == (1.0, 10 * k + 1)
        assert entry.get("dev_score") == (None if case.scores is None else case.scores[k - 1])


def test_kept_weights_are_copies() -> None:
    """An optimiser that updates its array in place does not change the kept weights."""
    own = np.zeros(1)

    def in_place() -> Iterator[Step]:
        for k in range(4):
            own[0] = k
            yield Step(own, 8.0 - k, 1.0, k)

    kept = run(in_place(), Stopping(9, 0.0, 1, 0), dev_score=lambda w: -abs(w[0] - 2.0))
    last = run(in_place(), Stopping(2, 0.0, 1, 0))
    own[0] = 99.0
    assert kept.weights.tolist() == [2.0]
    assert last.weights.tolist() == [2.0]


def answering(at: int, answer: Any) -> Callable[[Iteration], Any]:
    return lambda entry: answer if entry.iteration == at else None


@pytest.mark.parametrize(
    ("answers", "iterations", "reason"),
    [
        ([answering(2, True)], 2, "a callback returned True"),
        ([answering(9, True), answering(3, True)], 3, "a callback returned True"),  # any of them may stop
        ([answering(2, True), answering(2, False)], 2, "a callback returned True"),
        ([answering(2, 1), answering(2, "yes")], 6, FALLS),  # only True does
        ([], 6, FALLS),
    ],
)
def test_callbacks_stop_training_by_returning_true(
    answers: list[Callable[..., Any]], iterations: int, reason: str
) -> None:
    """If a callback returns True, training ends after all callbacks have run. The iterate is kept."""
    reported: list[int] = []
    everyone = [*answers, lambda entry: reported.append(entry.iteration)]
    result = run(states(steady(6)), Stopping(99, 0.0, 1, 0), callbacks=everyone)
    assert (len(result.history), result.best_iteration, result.reason) == (iterations, iterations, reason)
    assert reported == list(range(1, iterations + 1))
    best = run(
        states(steady(6)), Stopping(99, 0.0, 1, 0), callbacks=everyone, dev_score=looked_up([0.9] + [0.1] * 5)
    )
    assert (best.best_iteration, best.weights.tolist()) == (1, [1.0])


def interrupted_after(n: int, values: Sequence[float]) -> Iterator[Step]:
    """Raise KeyboardInterrupt inside iteration n + 1."""
    yield from itertools.islice(states(values), n + 1)
    raise KeyboardInterrupt


def test_interrupts_keep_the_last_or_best_iterate(caplog: pytest.LogCaptureFixture) -> None:
    """Interrupts in the learner, a callback or the dev score keep the last iterate, or the best one on dev.

    An interrupt before the first iterate propagates.
    """
    rules, reason = Stopping(99, 0.0, 1, 0), "interrupted"

    def raising(entry: Iteration) -> None:
        if entry.iteration == 3:
            raise KeyboardInterrupt

    def scored(w: np.ndarray) -> float:
        if w[0] == 3.0:
            raise KeyboardInterrupt
        return 0.5

    cases: list[tuple[Result, int, int]] = [
        (run(interrupted_after(3, steady(9)), rules), 3, 3),
        (run(interrupted_after(0, steady(9)), rules), 0, 0),
        (run(interrupted_after(3, steady(9)), rules, dev_score=looked_up([0.1, 0.9, 0.3])), 3, 2),
        (run(states(steady(9)), rules, callbacks=[raising]), 3, 3),
        (run(states(steady(9)), rules, dev_score=scored), 2, 1),
    ]
    for result, iterations, kept in cases:
        best = f", kept iteration {kept} of {len(result.history)} (best dev score)"
        assert (len(result.history), result.best_iteration) == (iterations, kept)
        assert result.reason == reason + best * (kept < iterations)
        assert result.weights.tolist() == [float(kept)]
        assert result.objective == steady(9)[kept]
        assert result.interrupted
    assert not run(states(steady(3)), rules).interrupted
    messages = [record.getMessage() for record in caplog.records]
    assert messages == ["training was interrupted, the current model is kept"] * len(cases)

    def at_once() -> Iterator[Step]:
        raise KeyboardInterrupt
        yield

    with pytest.raises(KeyboardInterrupt):
        run(at_once(), rules)


@pytest.mark.parametrize("bad", [NAN, INF, -INF])
@pytest.mark.parametrize("where", ["value", "gradient"])
def test_non_finite_iterates_are_never_kept(bad: float, where: str, caplog: pytest.LogCaptureFixture) -> None:
    """The last finite iterate is kept, or the best one on dev. A start that is not finite is an error."""
    values, norms = [8.0, 4.0, 2.0, 1.0], [1.0] * 4

    def spoilt(at: int) -> Iterator[Step]:
        kept = {"value": list(values), "gradient": list(norms)}
        kept[where][at] = bad
        return states(kept["value"], kept["gradient"])

    rules = Stopping(9, 0.0, 1, 0)
    for at in (1, 2, 3):
        result = run(spoilt(at), rules)
        assert result.reason == "the objective is not finite, the last good iterate is kept"
        assert (len(result.history), result.best_iteration, result.weights.tolist()) == (
            at - 1,
            at - 1,
            [at - 1.0],
        )
        assert result.objective == values[at - 1]
    result = run(spoilt(3), rules, dev_score=looked_up([0.9, 0.1]))
    assert (result.best_iteration, result.weights.tolist(), result.objective) == (1, [1.0], 4.0)
    assert {record.levelno for record in caplog.records} == {logging.WARNING}
    with pytest.raises(TrainingError, match="at the start"):
        run(spoilt(0), rules)
    with pytest.raises(TrainingError, match="no weights"):
        run(iter(()), rules)


def test_interrupt_in_the_first_dev_score_keeps_its_iterate() -> None:
    """Weights and objective belong to the same iteration, which has no entry in the history."""

    def scored(w: np.ndarray) -> float:
        raise KeyboardInterrupt

    result = run(states(steady(9)), Stopping(99, 0.0, 1, 0), dev_score=scored)
    assert (result.best_iteration, result.weights.tolist(), result.objective) == (1, [1.0], steady(9)[1])
    assert result.history == []


# -- learners that train in epochs ------------------------------------------------------------------------


class Scripted:
    """An online learner that makes wrong[k - 1] errors in epoch k.

    The weights after epoch k are [k], and their average is [k / 2].
    """

    def __init__(self, wrong: Sequence[int]) -> None:
        self.wrong, self.epochs = list(wrong), 0

    def epoch(self) -> dict[str, Any]:
        self.epochs += 1
        return {"wrong_tokens": self.wrong[self.epochs - 1], "updates": 100 + self.epochs}

    def weights(self, averaged: bool = True) -> np.ndarray:
        return np.array([self.epochs / 2 if averaged else float(self.epochs)])


@pytest.mark.parametrize("averaged", [True, False])
def test_epochs_of_an_online_learner(averaged: bool) -> None:
    """Training runs all epochs, with or without errors, and reports errors and updates.

    The best epoch on dev is kept, averaged if `averaged` is set.
    """
    wrong = [5, 5, 0, 0, 3, 3, 1]
    result = online.train(Scripted(wrong), 6, 0, averaged=averaged)  # type: ignore[arg-type]
    assert [entry["objective"] for entry in result.history] == wrong[:6]
    assert [entry["updates"] for entry in result.history] == [101, 102, 103, 104, 105, 106]
    assert [entry["evaluations"] for entry in result.history] == [1, 2, 3, 4, 5, 6]
    assert (result.best_iteration, result.objective) == (6, 3)
    assert result.reason == "max_iter=6 reached"
    assert result.weights.tolist() == [3.0 if averaged else 6.0]
    assert "plain_dev_score" not in result.history[0]
    scale = 0.5 if averaged else 1.0
    best = online.train(
        Scripted(wrong),  # type: ignore[arg-type]
        6,
        2,
        averaged=averaged,
        dev_score=lambda w: -abs(w[0] - 3 * scale) / 8,
    )
    assert (best.best_iteration, best.weights.tolist(), best.objective) == (3, [3 * scale], 0)
    assert (len(best.history), best.reason) == (
        5,
        "patience=2, kept iteration 3 of 5 (best dev score)",
    )
    assert [entry["dev_score"] for entry in best.history] == [-abs(k - 3) * scale / 8 for k in range(1, 6)]
    plain = [entry.get("plain_dev_score") for entry in best.history]
    assert plain == ([-abs(k - 1.5) / 8 for k in range(1, 6)] if averaged else [None] * 5)


class Gaps:
    """A solver of the margin problem with scripted objectives. The weights of epoch k are [k]."""

    def __init__(self, pairs: Sequence[tuple[float, float]]) -> None:
        self.pairs, self.epochs = list(pairs), 0

    def epoch(self) -> dict[str, Any]:
        primal, dual = self.pairs[self.epochs]
        self.epochs += 1
        known = {"slack": 0.0, "violated": 1, "paths": 2, "decoded": 3, "truncated": False}
        return {"primal": primal, "dual": dual, **known, "paths": self.epochs}

    def weights(self) -> np.ndarray:
        return np.array([float(self.epochs)])


PAIRS = [(16.0, 0.0), (12.0, 6.0), (8.0, 7.0), (8.0, 7.5), (8.0, 7.75), (8.0, 8.0)]
GAPS = [1.0, 0.5, 0.125, 0.0625, 0.03125, 0.0]


@pytest.mark.parametrize(
    ("tol", "most", "iterations", "reason"),
    [
        (0.5, 9, 2, "tol=0.5: certified within 5.0e-01 of the optimum"),  # a gap at the bound closes
        (0.49, 9, 3, "tol=0.49: certified within 1.2e-01 of the optimum"),
        (0.125, 9, 3, "tol=0.125: certified within 1.2e-01 of the optimum"),
        (0.12, 9, 4, "tol=0.12: certified within 6.2e-02 of the optimum"),
        (0.0, 9, 6, "tol=0: certified within 0.0e+00 of the optimum"),
        (0.0, 5, 5, "max_iter=5 reached"),
        (0.0, 1, 1, "max_iter=1 reached"),
    ],
)
def test_epochs_of_the_svm(tol: float, most: int, iterations: int, reason: str) -> None:
    """Training runs until (primal - dual) / primal <= tol, or for the maximum number of epochs."""
    result = svm.train(Gaps(PAIRS), most, tol, 0)
    assert (len(result.history), result.best_iteration, result.reason) == (iterations, iterations, reason)
    assert result.weights.tolist() == [float(iterations)]
    assert result.objective == PAIRS[iterations - 1][0]
    assert [entry["gap"] for entry in result.history] == GAPS[:iterations]
    assert not any("gradient_norm" in entry for entry in result.history)
    assert [entry["dual"] for entry in result.history] == [dual for _, dual in PAIRS[:iterations]]
    assert [entry["paths"] for entry in result.history] == list(range(1, iterations + 1))


def test_svm_keeps_the_best_epoch_on_dev() -> None:
    """The best epoch on dev is kept. Patience stops training, equal objectives do not."""
    level = Gaps([(8.0, 0.0)] * 9)
    result = svm.train(level, 9, 0.01, 3, dev_score=lambda w: -abs(w[0] - 2))
    assert (len(result.history), result.best_iteration, result.reason) == (
        5,
        2,
        "patience=3, kept iteration 2 of 5 (best dev score)",
    )
    assert result.weights.tolist() == [2.0]
    assert svm.train(Gaps([(8.0, 0.0)] * 9), 9, 0.01, 0).reason == "max_iter=9 reached"


@pytest.mark.parametrize(
    ("primal", "dual", "gap"), [(10.0, 9.5, 0.05), (10.0, 11.0, -0.1), (0.0, -1.0, 0.0), (2.0, -2.0, 2.0)]
)
def test_relative_gap(primal: float, dual: float, gap: float) -> None:
    """The gap is (primal - dual) / primal, which is negative if the bound is above the objective."""
    assert svm.relative_gap(primal, dual) == gap


class Rounds:
    """A booster that takes one feature per round until `end`. The loss of round r is losses[r - 1]."""

    def __init__(self, losses: Sequence[float], per_call: int = 99) -> None:
        self.after, self.per_call, self.rounds, self.calls = list(losses), per_call, 0, 0

    @property
    def log_loss(self) -> float:
        return self.after[self.rounds - 1] if self.rounds else 5.0

    def losses(self) -> np.ndarray:
        return np.zeros(4)

    def weights(self) -> np.ndarray:
        return np.arange(8.0) * (np.arange(8) <= self.rounds)

    def run(self, most: int, seconds: float) -> dict[str, Any]:
        assert seconds == boosting.SECONDS
        self.calls += 1
        done = range(self.rounds, min(self.rounds + min(most, self.per_call), len(self.after)))
        self.rounds = max(self.rounds, done.stop)
        return {
            "round": np.array(done, dtype=np.uint32),
            "feature": np.array([r + 1 for r in done], dtype=np.uint32),
            "step": np.array([0.5 * (r + 1) for r in done], dtype=float),
            "bound": np.array([0.9] * len(done), dtype=float),
            "log_loss": np.array([self.after[r] for r in done], dtype=float),
            "slope": np.array([0.1 * (r + 1) for r in done], dtype=float),
            "sentences": np.array([3] * len(done), dtype=np.uint32),
            "more": len(done) == min(most, self.per_call) and len(done) > 0,
            "raised": None,
        }


NO_FEATURE = "no feature lowers the loss any further"


@pytest.mark.parametrize(
    ("end", "rounds", "every", "blocks", "reason"),
    [
        (9, 6, 2, [2, 4, 6], "max_iter=6 reached"),
        (9, 5, 2, [2, 4, 5], "max_iter=5 reached"),  # the last block has the remaining rounds
        (9, 2, 3, [2], "max_iter=2 reached"),
        (4, 9, 2, [2, 4], NO_FEATURE),
        (3, 9, 2, [2, 3], NO_FEATURE),
        (0, 9, 2, [], NO_FEATURE),
    ],
)
@pytest.mark.parametrize("per_call", [1, 99])
def test_boosting_history_has_one_entry_per_block(
    end: int, rounds: int, every: int, blocks: list[int], reason: str, per_call: int
) -> None:
    """The history has one entry per `every` rounds, independent of the number of rounds per native call."""
    losses = [4.0 - 0.25 * r for r in range(end)]
    result, steps = boosting.train(Rounds(losses, per_call), rounds, every, 0)  # type: ignore[arg-type]
    assert [entry["rounds"] for entry in result.history] == blocks
    assert [entry["chosen"] for entry in result.history] == blocks
    assert [entry["nonzero"] for entry in result.history] == blocks
    assert [entry["objective"] for entry in result.history] == [losses[r - 1] for r in blocks]
    assert [entry["slope"] for entry in result.history] == pytest.approx([0.1 * r for r in blocks])
    assert [entry["evaluations"] for entry in result.history] == [-(-3 * r // 4) for r in blocks]
    assert result.reason == reason
    last = blocks[-1] if blocks else 0
    assert steps["feature"].tolist() == list(range(1, last + 1))
    assert steps["step"].tolist() == [0.5 * r for r in range(1, last + 1)]
    assert {name: column.dtype for name, column in steps.items()} == boosting.COLUMNS
    assert np.count_nonzero(result.weights) == last


def test_boosting_keeps_the_best_block_on_dev() -> None:
    """Patience counts blocks. Features of later blocks are dropped, and equal losses do not stop training."""
    result, steps = boosting.train(
        Rounds([3.0] * 7),  # type: ignore[arg-type]
        7,
        1,
        2,
        dev_score=lambda w: -abs(np.count_nonzero(w) - 3.0),
    )
    assert (len(result.history), result.best_iteration) == (5, 3)
    assert result.reason == "patience=2, kept iteration 3 of 5 (best dev score)"
    assert steps["feature"].tolist() == [1, 2, 3]
    assert np.count_nonzero(result.weights) == 3


def test_interrupted_boosting_block_is_kept() -> None:
    """Rounds completed before Ctrl-C count, and the reason names the interruption."""

    class Stopped(Rounds):
        def run(self, most: int, seconds: float) -> dict[str, Any]:
            if self.calls == 3:
                raise KeyboardInterrupt
            return super().run(most, seconds)

    result, steps = boosting.train(Stopped([4.0 - r for r in range(7)], 1), 7, 2, 0)  # type: ignore[arg-type]
    assert [entry["rounds"] for entry in result.history] == [2, 3]
    assert steps["feature"].tolist() == [1, 2, 3]
    assert np.count_nonzero(result.weights) == 3
    assert result.reason == "interrupted"


# -- before the loop --------------------------------------------------------------------------------------


def test_conditions_for_a_stochastic_start() -> None:
    """Stochastic epochs run first from 200 sentences on, unless a feature of the problem excludes them.

    These are cost, partial labels, order, labels that occur once, and edge attributes.
    """
    vocabulary = _core.Vocabulary()
    few, many = ([[["a"]]] * n for n in (WORTH_WARMING - 1, WORTH_WARMING))
    assert (WORTH_WARMING, WARMUP) == (200, 6)
    data = [
        _core.encode_attributes(vocabulary, given).with_gold(np.zeros(len(given), dtype=np.uint16))
        for given in (few, many)
    ]
    layout = _core.Layout.build(data[0], 1, 1)
    assert not Problem(data[0], layout).warms_up
    assert Problem(data[1], layout).warms_up
    support = (np.ones((1, 1), dtype=bool), np.zeros(WORTH_WARMING, dtype=np.uint32))
    groups = (np.zeros(1, dtype=np.uint32), np.ones((2, 1), dtype=bool))
    for odd in ({"cost": np.zeros((1, 1))}, {"partial": support}, {"once": groups}):
        assert not Problem(data[1], layout, **odd).warms_up  # type: ignore[arg-type]
    edges = _core.encode_attributes(vocabulary, many, many)
    assert not Problem(edges.with_gold(np.zeros(WORTH_WARMING, dtype=np.uint16)), layout).warms_up


#: The parameter that bounds training, of every learner that trains in iterations.
@pytest.mark.parametrize("name", LEARNERS)
def test_stop_reason_names_a_parameter_of_the_learner(name: str) -> None:
    kind = LEARNERS[name]
    if name == "hmm":  # which is trained by counting
        return
    never = {"tol": 0.0} if "tol" in parameters_of(kind) else {}
    tagger = kind(features="S1", max_iter=2, **never).fit(X, Y)
    assert tagger.stopped_ == "max_iter=2 reached"
