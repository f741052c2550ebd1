"""Tests of the Hidden Markov SVM against its reference implementation: optimum, conditions, bounds, gap, orders."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tagwise import _core

from . import constructors
from .online import close_the_gap, corpus, encode, native
from .reference import chain, enumeration, model, svm
from .strategies import Problem, problems, reals

small = problems(max_sentences=2, max_tokens=3, max_labels=3, max_attributes=2)


@pytest.mark.parametrize("slack", ["instance", "sequence"])
@pytest.mark.parametrize("margin", [False, True])
@settings(max_examples=12)
@given(p=small, C=st.sampled_from([0.3, 1.0]))
def test_optimum_solves_the_quadratic_program(slack: str, margin: bool, p: Problem, C: float) -> None:
    best = svm.solve(p.X, p.y, p.shape, C, slack, margin)
    n = native(p, all_pairs=True)
    solver = n.svm(c=C, slack=slack, rescale=margin, tolerance=1e-6)
    state = close_the_gap(solver, 1e-5)
    assert not state["truncated"]
    assert state["primal"] == pytest.approx(best.primal, abs=1e-4)
    assert state["dual"] == pytest.approx(best.dual, abs=1e-4)
    np.testing.assert_allclose(n.dense(p, solver.weights()), best.w, atol=2e-2)
    # the reported primal is exact
    w = n.dense(p, solver.weights())
    exact = svm.primal(w, p.X, p.y, p.shape, C, slack, margin)
    assert state["primal"] == pytest.approx(exact, abs=1e-5)


@pytest.mark.parametrize("slack", ["instance", "sequence"])
@pytest.mark.parametrize("margin", [False, True])
@settings(max_examples=12)
@given(p=problems(max_sentences=3, max_tokens=3, max_labels=3, values=reals(1.0)))
def test_optimality_conditions(slack: str, margin: bool, p: Problem) -> None:
    """w = 1/2 sum alpha d, alpha > 0 only if the margin is at its slack, and alphas sum to C if the slack is > 0."""
    C, n = 0.7, native(p, all_pairs=True)
    solver = n.svm(c=C, slack=slack, rescale=margin, tolerance=1e-7)
    close_the_gap(solver, 1e-6)
    w = n.dense(p, solver.weights())
    total = np.zeros_like(w)
    held: dict[int, list[tuple[chain.Path, float]]] = {i: [] for i in range(len(p.X))}
    for i, path, alpha in solver.alphas():
        y = tuple(int(x) for x in path)
        assert y != p.y[i]
        assert 0 < alpha <= C + 1e-9
        held[i].append((y, alpha))
        total += alpha / 2 * (model.features(p.X[i], p.y[i], p.shape) - model.features(p.X[i], y, p.shape))
    np.testing.assert_allclose(w, total, atol=1e-5)

    def shortfall(i: int, y: chain.Path) -> float:
        d = model.features(p.X[i], p.y[i], p.shape) - model.features(p.X[i], y, p.shape)
        return float((svm.hamming(p.y[i], y) if margin else 1) - w @ d / 2)

    for i, paths in held.items():
        shortfalls = {y: shortfall(i, y) for j, y in svm.constraints(p.y, p.shape.labels) if j == i}
        worst = max([0.0, *shortfalls.values()])
        used = sum(alpha for _, alpha in paths)
        if slack == "instance":
            assert used <= C + 1e-9
            # complementary slackness, each product at most the gap
            assert all(alpha * (worst - shortfalls[y]) <= 1e-4 for y, alpha in paths)
            assert (C - used) * worst <= 1e-4
        else:
            weight = dict(paths)
            assert all(alpha * -min(shortfalls[y], 0.0) <= 1e-4 for y, alpha in paths)
            assert all((C - weight.get(y, 0.0)) * x <= 1e-4 for y, x in shortfalls.items() if x > 0)


@pytest.mark.parametrize("margin", [False, True])
@pytest.mark.parametrize("most", [1, 2, 4])
@settings(max_examples=12)
@given(p=problems(max_sentences=3, max_tokens=3, max_labels=3), C=st.sampled_from([0.3, 1.0]))
def test_gap_closes_with_truncated_slacks(most: int, margin: bool, p: Problem, C: float) -> None:
    """Only the `most` largest slacks of a sentence count, and the alphas of that program sum to most C.

    A closed gap between a primal by enumeration and a dual of feasible alphas is the optimum.
    """
    n = native(p, all_pairs=True)
    solver = n.svm(c=C, slack="sequence", rescale=margin, most=most, tolerance=1e-6)
    state = close_the_gap(solver, 1e-5)
    w = n.dense(p, solver.weights())
    exact = svm.primal(w, p.X, p.y, p.shape, C, "sequence", margin, most)
    assert state["primal"] == pytest.approx(exact, abs=1e-4)
    used = [0.0] * len(p.X)
    dual, total = 0.0, np.zeros_like(w)
    for i, path, alpha in solver.alphas():
        y = tuple(int(x) for x in path)
        assert 0 < alpha <= C + 1e-9
        used[i] += alpha
        dual += alpha * (svm.hamming(p.y[i], y) if margin else 1)
        total += alpha / 2 * (model.features(p.X[i], p.y[i], p.shape) - model.features(p.X[i], y, p.shape))
    assert max(used) <= most * C + 1e-9
    dual -= float(total @ total) / 2
    assert state["dual"] == pytest.approx(dual, abs=1e-4)
    assert dual - 1e-5 <= exact <= dual + 1e-4 * max(1.0, exact)


@settings(max_examples=20)
@given(problems(max_sentences=3, max_tokens=4, max_labels=3), st.sampled_from(["instance", "sequence"]))
def test_slack_bounds_the_zero_one_risk_at_any_epoch(p: Problem, slack: str) -> None:
    n = native(p, all_pairs=True)
    solver = n.svm(c=0.5, slack=slack)
    for _ in range(3):
        state = solver.epoch()
        assert (
            0 <= state["active"] <= min(len(p.X), state["paths"])
        )  # sentences with a path in the working set
        assert (state["active"] > 0) == (state["paths"] > 0)
        w = n.dense(p, solver.weights())
        ranks = [
            enumeration.rank(model.score_sentence(w, x, p.shape), y) for x, y in zip(p.X, p.y)
        ]  # paths at least as good as gold
        if slack == "instance":
            assert state["slack"] >= sum(r > 0 for r in ranks) - 1e-4
        elif not state["truncated"]:
            assert state["slack"] >= sum(ranks) - 1e-4  # the rank loss


@pytest.mark.parametrize("margin", [False, True])
@pytest.mark.parametrize("labels", [3, 9, 17])
def test_gap_closes_and_the_dual_never_decreases(labels: int, margin: bool) -> None:
    solver = native(corpus(labels, labels), all_pairs=True).svm(c=0.5, rescale=margin, tolerance=1e-3)
    dual, gaps = 0.0, []
    for _ in range(60):
        state = solver.epoch()
        assert state["dual"] >= dual - 1e-5
        assert state["primal"] >= state["dual"] - 1e-5
        dual = state["dual"]
        gaps.append((state["primal"] - dual) / state["primal"])
        if gaps[-1] <= 1e-3:
            break
    assert gaps[-1] <= 1e-3
    assert gaps[-1] < gaps[len(gaps) // 2] < gaps[0]


def test_results_depend_only_on_the_seed() -> None:
    n = native(corpus(4, 7, n=150), all_pairs=True)

    def trained(**parameters: Any) -> tuple[np.ndarray, list[dict[str, Any]]]:
        solver = n.svm(**parameters)
        states = [solver.epoch() for _ in range(3)]
        return solver.weights(), states

    w, states = trained(seed=1, n_jobs=1)
    for n_jobs in (1, 2, 3):
        again, same = trained(seed=1, n_jobs=n_jobs)
        np.testing.assert_array_equal(w, again)
        assert states == same
    assert not np.array_equal(w, trained(seed=2)[0])


def test_optimum_with_edge_attributes() -> None:
    """With the reference implementation's edge attributes the optimum is the quadratic program's."""
    rng = np.random.default_rng(0)
    X = [rng.integers(0, 2, (T, 2)).astype(float) for T in (3, 2)]
    p = Problem(model.Shape(2, 2, True), X, [(0, 1, 1), (1, 0)])
    vocabulary, data = encode(p)
    layout = _core.Layout.build(data, len(vocabulary), 2, all_pairs=True)
    state = close_the_gap(constructors.svm(data, layout, c=0.6, tolerance=1e-6), 1e-5)
    # observed pairs only: the reference optimum over the same features
    a = layout.arrays()
    ids = [int(vocabulary.text(i)) for i in range(len(vocabulary))]
    keep = np.ones(p.shape.size, dtype=bool)
    keep[2 * 2 + 4 + 4 :] = False
    for owner, (begin, end) in enumerate(zip(a["pair_ptr"][:-1], a["pair_ptr"][1:])):
        keep[12 + ids[owner] * 4 + a["pair"][begin:end]] = True
    pairs = svm.constraints(p.y, 2)
    d = np.array([model.features(X[i], p.y[i], p.shape) - model.features(X[i], q, p.shape) for i, q in pairs])
    d = d * keep
    group = np.array([i for i, _ in pairs])
    alpha = svm._dual(d @ d.T / 4, np.ones(len(pairs)), group, 0.6, "instance")
    w = alpha @ d / 2
    assert state["dual"] == pytest.approx(alpha.sum() - w @ w / 2, abs=1e-4)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"c": 0.0}, "C must be a finite number > 0, got 0"),
        ({"c": -1.0}, "C must be a finite number > 0, got -1"),
        ({"c": np.inf}, "C must be a finite number > 0, got inf"),
        ({"c": np.nan}, "C must be a finite number > 0, got NaN"),
        ({"slack": "both"}, 'no slack "both"; there are: instance, sequence'),
        ({"most": 0}, "the working set must hold at least 1 path"),
        ({"tolerance": -1.0}, "the tolerance must be a number >= 0, got -1"),
        ({"tolerance": np.nan}, "the tolerance must be a number >= 0, got NaN"),
        ({"sample_weight": np.ones(3)}, "sample_weight needs 4 finite numbers >= 0, one per sentence"),
        ({"sample_weight": -np.ones(4)}, "sample_weight needs 4 finite numbers >= 0, one per sentence"),
        (
            {"sample_weight": np.full(4, np.nan)},
            "sample_weight needs 4 finite numbers >= 0, one per sentence",
        ),
    ],
    ids=str,
)
def test_invalid_parameters_are_rejected(bad: dict[str, Any], message: str) -> None:
    """The error names the parameter and its domain."""
    n = native(corpus(1, 3, n=4), all_pairs=True)
    with pytest.raises(ValueError, match=re.escape(message)):
        n.svm(**bad)
