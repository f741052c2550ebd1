"""Optimisers on objectives with known minima: solutions, reported values, termination."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import islice, pairwise
from typing import Any

import numpy as np
import pytest

from tagwise._core import dot
from tagwise.optimizers import OPTIMIZERS, Evaluate, Step, conjugate_gradient, lbfgs, owlqn
from tagwise.optimizers.base import HostVectors, Vector
from tagwise.optimizers.lbfgs import CURVATURE, SUFFICIENT, LineSearch, _between
from tagwise.optimizers.owlqn import LONGEST, pseudo_gradient
from tagwise.optimizers.pairs import Pairs

Minimiser = Callable[..., Iterator[Step]]
SMOOTH: list[Minimiser] = [lbfgs, conjugate_gradient]


class Counted:
    """An objective that records the points it was evaluated at."""

    def __init__(self, value: Callable[[Vector], float], gradient: Callable[[Vector], Any]) -> None:
        self.value, self.gradient = value, gradient
        self.points: list[Vector] = []

    def __call__(self, w: Vector, gradient: Vector) -> float:
        self.points.append(w.copy())
        assert len(self.points) < 20_000, "it does not end"
        gradient[:] = self.gradient(w)
        return self.value(w)


def quadratic(curves: Vector, at: Vector) -> Counted:
    """Return 1/2 sum_k a_k (w_k - b_k)^2, whose minimum is b."""
    return Counted(lambda w: 0.5 * float(curves @ (w - at) ** 2), lambda w: curves * (w - at))


def rosenbrock() -> Counted:
    """Return the Rosenbrock function, a curved valley with its minimum at (1, 1)."""
    return Counted(
        lambda w: float((1 - w[0]) ** 2 + 100 * (w[1] - w[0] ** 2) ** 2),
        lambda w: (-2 * (1 - w[0]) - 400 * w[0] * (w[1] - w[0] ** 2), 200 * (w[1] - w[0] ** 2)),
    )


def steps(found: Iterator[Step], most: int = 200) -> list[Step]:
    """Collect steps with copies of their points."""
    return [Step(s.w.copy(), s.value, s.gradient_norm, s.evaluations) for s in islice(found, most)]


CURVES, AT = np.array([1.0, 30.0, 0.2, 5.0]), np.array([3.0, -1.0, 0.5, 0.0])


@pytest.mark.parametrize("run", SMOOTH)
def test_the_minimum_of_a_quadratic_is_found(run: Minimiser) -> None:
    """From any start, values decrease and the last gradient is close to zero."""
    for start in (np.zeros(4), np.array([-5.0, 4.0, 9.0, 1.0])):
        found = steps(run(quadratic(CURVES, AT), start, n_jobs=1))
        np.testing.assert_allclose(found[-1].w, AT, atol=1e-6)
        assert found[-1].gradient_norm < 1e-5
        assert all(b.value <= a.value * (1 + 1e-7) for a, b in pairwise(found))
        np.testing.assert_array_equal(found[0].w, start)
        assert start.tolist() in ([0.0] * 4, [-5.0, 4.0, 9.0, 1.0])  # the start is not modified


@pytest.mark.parametrize("run", [*SMOOTH, lambda f, w, **k: owlqn(f, w, l1=0.0, **k)])
def test_starting_points_of_any_numeric_type(run: Minimiser) -> None:
    """Integers, a list or single precision are valid starts."""
    for start in (np.array([1, 2, 3, 4]), [1.0, 2.0, 3.0, 4.0], np.array([1, 2, 3, 4], dtype=np.float32)):
        found = steps(run(quadratic(CURVES, AT), start, n_jobs=1))
        np.testing.assert_allclose(found[-1].w, AT, atol=1e-5)
        assert found[0].w.tolist() == [1.0, 2.0, 3.0, 4.0]


@pytest.mark.parametrize("run", SMOOTH)
def test_rosenbrock_minimum_is_reached(run: Minimiser) -> None:
    """The minimum is reached in far fewer steps than plain gradient descent needs."""
    found = steps(run(rosenbrock(), np.array([-1.2, 1.0]), n_jobs=1))
    np.testing.assert_allclose(found[-1].w, [1.0, 1.0], atol=1e-5)
    assert len(found) < 120


@pytest.mark.parametrize("run", SMOOTH)
def test_steps_report_value_and_gradient_norm(run: Minimiser) -> None:
    """Value and gradient norm belong to the point, and evaluations count the calls so far."""
    objective = rosenbrock()
    for step in islice(run(objective, np.array([-1.2, 1.0]), n_jobs=1), 20):
        assert step.evaluations == len(objective.points)
        assert step.value == pytest.approx(objective.value(step.w), rel=1e-12)
        assert step.gradient_norm == pytest.approx(np.linalg.norm(objective.gradient(step.w)), rel=1e-9)
        assert any(np.array_equal(step.w, p) for p in objective.points)


@pytest.mark.parametrize("run", SMOOTH)
def test_start_at_the_minimum_takes_no_step(run: Minimiser) -> None:
    """A zero gradient ends the run without a step."""
    objective = quadratic(CURVES, AT)
    (only,) = steps(run(objective, AT, n_jobs=1))
    assert (only.value, only.gradient_norm, only.evaluations) == (0.0, 0.0, 1)


@pytest.mark.parametrize("run", SMOOTH)
def test_step_onto_the_minimum_is_the_last(run: Minimiser) -> None:
    """A first step along the gradient that ends at a zero gradient is the last."""
    found = steps(run(quadratic(np.ones(2), np.array([0.6, 0.0])), np.zeros(2), n_jobs=1))
    assert [s.w.tolist() for s in found] == [[0.0, 0.0], [0.6, 0.0]]
    assert found[-1].gradient_norm == 0.0


@pytest.mark.parametrize("run", SMOOTH)
def test_run_ends_after_one_search_without_decrease(run: Minimiser) -> None:
    """If no step delivers the decrease that the gradient promises, the run ends at the start after one line search."""
    objective = Counted(lambda w: float(np.abs(w).sum()), lambda w: np.full_like(w, -1.0))
    (only,) = steps(run(objective, np.zeros(2), n_jobs=1))
    assert only.value == 0.0
    assert 2 < len(objective.points) < 60


@pytest.mark.parametrize("run", SMOOTH)
def test_run_ends_after_one_restart_without_decrease(run: Minimiser) -> None:
    """After two good steps every point is higher: one search, one restart along the gradient, no third."""
    objective = quadratic(CURVES, AT)
    lift = 0.0

    def lifted(w: Vector, gradient: Vector) -> float:
        return objective(w, gradient) + lift

    found = run(lifted, np.zeros(4), n_jobs=1)
    for _ in range(3):
        last = next(found)
    here, begin, lift = last.w.copy(), len(objective.points), 1e3
    assert list(found) == []
    tried = [p - here for p in objective.points[begin:]]
    downhill = -np.array(objective.gradient(here))
    lengths = [float(np.linalg.norm(d) * np.linalg.norm(downhill)) for d in tried]
    along = [bool(abs(d @ downhill) > (1 - 1e-9) * n) for d, n in zip(tried, lengths) if n]
    assert along == sorted(along)
    assert set(along) == {False, True}


@pytest.mark.parametrize("run", SMOOTH)
def test_steps_into_nan_are_shortened(run: Minimiser) -> None:
    """A step to a NaN objective is too long: x - log x has its minimum at 1 and is undefined below 0."""
    with np.errstate(invalid="ignore", divide="ignore"):
        objective = Counted(lambda w: float((w - np.log(w)).sum()), lambda w: 1 - 1 / w)
        found = steps(run(objective, np.array([0.01, 40.0]), n_jobs=1))
    np.testing.assert_allclose(found[-1].w, 1.0, atol=1e-5)
    assert any(not np.all(p > 0) for p in objective.points)  # the undefined region was reached


def test_curvature_pairs_and_scales_save_evaluations() -> None:
    """On a quadratic, curvature pairs save evaluations, and the exact scale saves nearly all."""
    curves = 10.0 ** np.linspace(-2, 2, 12)
    at = np.linspace(-1, 1, 12)

    def needed(**keywords: Any) -> int:
        for step in islice(lbfgs(quadratic(curves, at), np.zeros(12), n_jobs=1, **keywords), 400):
            if step.gradient_norm < 1e-6:
                return step.evaluations
        return 10**6

    scaled = needed(scale=(1 / np.sqrt(curves)).astype(np.float32))
    assert needed(memory=12) < needed(memory=1)
    assert scaled < needed() / 3


@pytest.mark.parametrize("curvature", [CURVATURE, 0.1])
def test_line_searches_satisfy_the_wolfe_conditions(curvature: float) -> None:
    """Sufficient decrease and curvature hold for first steps that are far too short or far too long."""
    objective = rosenbrock()
    w = np.array([-1.2, 1.0])
    slope_at = np.array(objective.gradient(w))
    direction = -slope_at
    slope = float(slope_at @ direction)
    for first in (1e-9, 1e-4, 1e-2, 1.0, 1e3):
        search = LineSearch(objective, np.zeros(2), HostVectors(1), curvature)
        value = search.run(w, objective.value(w), direction, slope, first)
        assert value is not None
        np.testing.assert_allclose(search.w, w + search.step * direction, rtol=1e-12)
        assert value == objective.value(search.w) <= objective.value(w) + SUFFICIENT * search.step * slope
        np.testing.assert_allclose(search.gradient, objective.gradient(search.w))
        after = dot(search.gradient, direction, 1)
        assert (
            curvature * slope <= after <= (2 * SUFFICIENT - 1) * slope
        )  # the approximate Wolfe conditions suffice


def test_cubic_interpolation() -> None:
    """The minimum of the cubic, the midpoint if there is none or it is too close to an end, a tenth before a NaN."""

    def cubic(x: float) -> tuple[float, float]:
        return x**3 - 3 * x, 3 * x * x - 3  # minimum at 1

    for a, b in ((0.2, 2.0), (2.0, 0.2)):
        assert _between(a, *cubic(a), b, *cubic(b)) == pytest.approx(1.0)
    assert _between(0.95, *cubic(0.95), 4.0, *cubic(4.0)) == pytest.approx((0.95 + 4.0) / 2)
    assert _between(0.0, 0.0, 1.0, 2.0, 2.0, 1.0) == 1.0  # a straight line
    assert _between(0.0, 0.0, -1.0, 1.0, -5.0, -1.0) == 0.5  # decreasing everywhere
    assert _between(1.0, 0.0, -1.0, 3.0, math.inf, math.inf) == pytest.approx(1.2)
    assert _between(1.0, 0.0, -1.0, 3.0, 5.0, math.nan) == pytest.approx(1.2)


# -- L1 -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("l1", [0.0, 0.3, 2.0, 100.0])
def test_l1_minimum_is_the_soft_threshold(l1: float) -> None:
    """1/2 a (w - b)^2 + c |w| has its minimum at sign(b) max(|b| - c / a, 0), with exact zeros."""
    expected = np.sign(AT) * np.maximum(np.abs(AT) - l1 / CURVES, 0.0)
    for start in (np.zeros(4), np.array([1.0, 2.0, -3.0, 4.0])):
        found = steps(owlqn(quadratic(CURVES, AT), start, l1=l1, n_jobs=1))
        np.testing.assert_allclose(found[-1].w, expected, atol=1e-5)
        if l1:
            assert np.array_equal(found[-1].w == 0.0, expected == 0.0)
        assert all(b.value <= a.value * (1 + 1e-9) + 1e-12 for a, b in pairwise(found))


def test_steps_with_l1_report_the_penalty_too() -> None:
    """The value includes c ||w||_1, the norm is that of the pseudo-gradient, and evaluations count the calls."""
    objective = rosenbrock()
    for step in islice(owlqn(objective, np.array([-1.2, 1.0]), l1=0.4, n_jobs=1), 15):
        assert step.evaluations == len(objective.points)
        assert step.value == pytest.approx(objective.value(step.w) + 0.4 * np.abs(step.w).sum(), rel=1e-12)
        signed = pseudo_gradient(step.w, np.array(objective.gradient(step.w)), 0.4)
        assert step.gradient_norm == pytest.approx(np.linalg.norm(signed), rel=1e-9)


def test_the_pseudo_gradient_is_the_shortest_subgradient() -> None:
    """Away from zero it is the gradient with the penalty. At zero it is the gradient soft-thresholded by c."""
    w = np.array([2.0, -2.0, 0.0, 0.0, 0.0, 0.0])
    gradient = np.array([1.0, 1.0, 0.3, -0.3, 2.0, -2.0])
    np.testing.assert_allclose(pseudo_gradient(w, gradient, 0.5), [1.5, 0.5, 0.0, 0.0, 1.5, -1.5])


def test_l1_run_ends_at_the_minimum_or_without_decrease() -> None:
    """At a minimum the run ends at once. If no trial decreases the objective, it ends after one search."""
    (only,) = steps(owlqn(quadratic(CURVES, AT), np.zeros(4), l1=1e3, n_jobs=1))
    assert only.gradient_norm == 0.0
    assert only.value == pytest.approx(0.5 * CURVES @ AT**2)
    broken = Counted(lambda w: float(np.abs(w).sum()), lambda w: np.full_like(w, -1.0))
    (only,) = steps(owlqn(broken, np.zeros(2), l1=0.1, n_jobs=1))
    assert len(broken.points) == 41


def test_l1_drops_pairs_without_a_descent_direction(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pairs whose direction does not descend are dropped, and the step follows the pseudo-gradient."""

    def uphill(_: Pairs, gradient: Vector, out: Vector) -> float:
        out[:] = gradient
        return 1.0

    monkeypatch.setattr(Pairs, "direction", uphill)
    objective = quadratic(np.array([1.0, 3.0]), np.array([2.0, -1.0]))
    found = steps(owlqn(objective, np.zeros(2), l1=0.5, n_jobs=1))
    np.testing.assert_allclose(found[-1].w, [1.5, -1 + 0.5 / 3], atol=1e-6)


def test_first_trials_with_l1_are_bounded() -> None:
    """A tiny curvature suggests a huge step, but no weight moves by more than LONGEST."""
    objective = Counted(lambda w: float(np.logaddexp(0, -w).sum()), lambda w: -1 / (1 + np.exp(w)))
    before = np.zeros(2)
    for step in islice(owlqn(objective, before, l1=1e-9, n_jobs=1), 12):
        moved = max((float(np.abs(p - before).max()) for p in objective.points), default=0.0)
        assert moved <= LONGEST * (1 + 1e-12)
        objective.points.clear()
        before = step.w.copy()


@pytest.mark.parametrize("name", sorted(OPTIMIZERS))
def test_table_of_optimisers(name: str) -> None:
    """Each optimiser has its name, only owlqn supports L1, and per-sentence methods do not minimise an objective."""
    entry = OPTIMIZERS[name]
    assert entry.name == name
    assert entry.l1 is (name == "owlqn")
    assert entry.help
    objective: Evaluate = quadratic(CURVES, AT)
    if name in ("sgd", "dual"):
        with pytest.raises(TypeError, match="need sentences"):
            entry.run(objective, np.zeros(4))
        return
    keywords = {"l1": 0.0} if entry.l1 else {}
    np.testing.assert_allclose(steps(entry.run(objective, np.zeros(4), **keywords))[-1].w, AT, atol=1e-5)
