"""Stochastic descent: search, halving and failure of step sizes, on a hand-written core."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tagwise.base.exceptions import TrainingError
from tagwise.learners.stochastic import FACTOR, FIRST, MOST_TRIALS, SAMPLE_EPOCH, Descent, calibrate


class Core:
    """A core whose epochs are finite below some step size. Each epoch adds one to the weights."""

    def __init__(self, finite_below: float) -> None:
        self.finite_below = finite_below
        self.w = np.zeros(2)
        self.runs: list[float] = []
        self.started: list[float] = []
        self.orders: list[tuple[int, int]] = []

    def set(self, w: np.ndarray) -> None:
        self.w = w.copy()

    def weights(self) -> np.ndarray:
        return self.w.copy()

    def order(self, seed: int, epoch: int) -> list[int]:
        self.orders.append((seed, epoch))
        return [0, 1]

    def run(self, order: Any, eta: float, l2: float, seen: float) -> float:
        self.runs.append(eta)
        self.started.append(seen)
        self.w = self.w + 1.0
        return 1.0 if eta < self.finite_below else math.inf


def descent(core: Core, eta: float, seed: int = 3) -> Descent:
    """Return a descent with a fixed step size."""
    made = Descent.__new__(Descent)
    made.core, made.w, made.l2, made.n, made.seed = core, np.zeros(2), 0.5, 7, seed  # type: ignore[assignment]
    made.eta, made.epochs = eta, 0
    return made


def test_epochs_continue_from_the_previous_weights() -> None:
    """Each epoch has its own order and continues the count of sentences. The weights are those of the core."""
    core = Core(10.0)
    d = descent(core, 4.0)
    assert [d.epoch().tolist() for _ in range(3)] == [[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]]
    assert core.runs == [4.0, 4.0, 4.0]
    assert core.started == [0.0, 7.0, 14.0]
    assert core.orders == [(3, 0), (3, 1), (3, 2)]


def test_diverging_steps_are_halved() -> None:
    """The epoch is repeated from its start with the same order."""
    core = Core(1.5)
    d = descent(core, 4.0)
    assert d.epoch().tolist() == [1.0, 1.0]
    assert core.runs == [4.0, 2.0, 1.0]
    assert core.orders == [(3, 0)] * 3
    assert d.eta == 1.0
    assert d.epoch().tolist() == [2.0, 2.0]
    assert core.runs[3:] == [1.0]


def test_too_many_halvings_raise_an_error() -> None:
    """After the maximum number of halvings the error gives a remedy."""
    core = Core(0.0)
    with pytest.raises(
        TrainingError, match=r"stochastic descent overflows\. Use optimizer='lbfgs', or increase l2"
    ):
        descent(core, 1.0).epoch()
    assert core.runs == [2.0**-i for i in range(MOST_TRIALS)]


class Sampled:
    """A core with a given loss for each step size, read by a pass without steps."""

    def __init__(self, losses: dict[int, float], n: int = 200) -> None:
        self.losses, self.n = losses, n
        self.last = 0.0
        self.calls: list[tuple[int, float, float, float]] = []
        self.sets = 0

    def set(self, w: np.ndarray) -> None:
        assert w.tolist() == [5.0]
        self.sets += 1

    def order(self, seed: int, epoch: int) -> list[int]:
        assert (seed, epoch) == (3, SAMPLE_EPOCH)
        return list(range(self.n))

    def run(self, order: list[int], eta: float, l2: float, seen: float) -> float:
        self.calls.append((len(order), eta, l2, seen))
        if eta:
            self.last = eta
            power = round(math.log2(eta / FIRST))
            return math.inf if power > 8 else 0.0
        if not self.last:  # the initial pass, with step size 0
            return 1000.0
        return self.losses.get(round(math.log2(self.last / FIRST)), 100.0)


@pytest.mark.parametrize(
    ("losses", "power"),
    [
        ({0: 5.0, 1: 4.0, 2: 6.0, -1: 6.0}, 1),  # decreasing, then increasing: the minimum
        ({0: 5.0, 1: 6.0, -1: 3.0, -2: 4.0}, -1),
        ({0: 4.0, 1: 4.3, -1: 9.0}, 1),  # the largest within a tenth of the minimum
        ({0: 4.0, 1: 4.5, -1: 9.0}, 0),
        (
            {0: 4.0, 1: 3.0, 2: 2.0, 3: 1.0, 4: 0.5, 5: 0.4, 6: 0.3, 7: 0.2, 8: 0.1, -1: 5.0},
            8,
        ),  # then not finite
        (
            {0: math.nan, **dict.fromkeys(range(1, 9), math.inf), -1: math.inf, -2: 7.0, -3: 8.0},
            -2,
        ),  # continues while nothing is finite
        ({0: 1.0, 1: -1e-9, 2: 5.0, -1: 5.0}, 1),  # rounding below zero
    ],
)
def test_step_size_is_the_best_of_a_grid(losses: dict[int, float], power: int) -> None:
    """Powers of two from the first, up and then down, until the loss rises. Each pass begins at the start."""
    core: Any = Sampled(losses)
    assert calibrate(core, np.array([5.0]), 0.25, 3) == FIRST * FACTOR**power
    stepping = [call for call in core.calls if call[1]]
    assert core.sets == len(stepping) + 1  # and one evaluation of the start
    assert {call[0] for call in core.calls} == {20}  # a tenth of the batches
    assert {call[2:] for call in stepping} == {(0.25, 0.0)}


def test_small_corpora_are_sampled_completely() -> None:
    """At least sixteen batches, or all if there are fewer."""
    for n, used in ((5, 5), (100, 16), (161, 16), (170, 17)):
        core: Any = Sampled({0: 1.0}, n)
        calibrate(core, np.array([5.0]), 0.0, 3)
        assert {call[0] for call in core.calls} == {used}


def test_divergence_at_every_step_size_raises() -> None:
    """If every pass diverges, the error gives a remedy."""
    core: Any = Sampled(dict.fromkeys(range(-40, 40), math.inf))
    with pytest.raises(
        TrainingError, match=r"overflows with every step size\. Scale real-valued attributes down"
    ):
        calibrate(core, np.array([5.0]), 0.0, 3)
    assert len([call for call in core.calls if call[1]]) == 1 + 2 * MOST_TRIALS
