"""Lattices and losses in the open: finite differences, constraints, boundaries, errors."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tagwise.base.exceptions import ParameterError
from tagwise.scores import losses
from tagwise.scores.lattice import Lattice

LOSSES = [losses.log_loss, losses.exp_loss, losses.pointwise_log_loss, losses.pointwise_exp_loss]


def random(T: int = 4, L: int = 3, seed: int = 0) -> Lattice:
    rng = np.random.default_rng(seed)
    return Lattice(
        rng.standard_normal((T, L)), rng.standard_normal((L, L)), rng.standard_normal(L), rng.random(L)
    )


def test_log_partition_is_the_sum_over_all_paths() -> None:
    lattice = random()
    scores = [lattice.score(path) for path in itertools.product(range(3), repeat=4)]
    assert lattice.log_partition() == pytest.approx(np.logaddexp.reduce(scores))
    assert lattice.viterbi()[0] == pytest.approx(max(scores))


@pytest.mark.parametrize("loss", LOSSES)
def test_gradients_by_finite_differences(loss) -> None:  # type: ignore[no-untyped-def]
    lattice, gold, step = random(), [0, 2, 1, 1], 1e-5
    node = np.array(lattice.node)
    _, gradient = loss(lattice, gold)
    for t, y in itertools.product(range(4), range(3)):
        values = []
        for sign in (1, -1):
            moved = node.copy()
            moved[t, y] += sign * step
            values.append(loss(Lattice(moved, lattice.edge, lattice.start, lattice.end), gold)[0])
        assert gradient.node[t, y] == pytest.approx((values[0] - values[1]) / (2 * step), rel=1e-4, abs=1e-6)


def test_restrictions_rule_out() -> None:
    lattice = random().restricted(forbidden=[(0, 1)])
    assert lattice.pair_marginals()[:, 0, 1].max() == 0.0
    allowed = np.ones((4, 3), dtype=bool)
    allowed[2, 1] = False
    assert random().restricted(allowed).marginals()[2, 1] == 0.0
    with pytest.raises(ParameterError, match="shape"):
        random().restricted(np.ones((2, 2), dtype=bool))


def test_errors_say_what_was_expected() -> None:
    with pytest.raises(ParameterError, match="every token"):
        random().score([0])
    with pytest.raises(ParameterError, match="expected"):
        Lattice(np.zeros(3), np.zeros((3, 3))).log_partition()
    with pytest.raises(ParameterError, match="start or end"):
        Lattice(np.zeros((2, 3)), np.zeros((3, 3)), start=np.zeros(2)).log_partition()
