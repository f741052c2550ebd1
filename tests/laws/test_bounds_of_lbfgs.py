"""Certificates of L-BFGS: lower bounds from the gradient, for small l2 and for losses without dual ascent."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import tagwise as tw
from tagwise._core import CurvaturePairs
from tagwise.learners import gradient
from tagwise.learners.problem import Problem
from tagwise.optimizers.pairs import Pairs


def corpus(n: int, seed: int) -> tuple[list[list[str]], list[list[str]]]:
    """Return sentences whose labels depend on the word, the label before, and chance."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for length in rng.integers(1, 9, n):
        words = rng.integers(0, 30, length)
        labels = (words % 3 + rng.integers(0, 2, length) * (rng.random(length) < 0.3)) % 3
        X.append([f"w{w}" for w in words])
        y.append([f"L{label}" for label in labels])
    return X, y


CASES: dict[str, dict[str, Any]] = {
    "small l2": {"l2": 0.01},
    "l2": {"l2": 0.1},
    "order 2": {"l2": 0.1, "order": 2},
    "class weights": {"l2": 0.1, "class_weight": {"L0": 3.0, "L1": 1.0, "L2": 0.5}},
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("n", [40, 400])
def test_the_bound_is_below_the_optimum_and_tol_holds(name: str, n: int) -> None:
    """The objective is within `gap_` of the optimum, which a run to 1e-12 finds, and `dual` is below the optimum."""
    X, y = corpus(n, seed=n)
    tagger = tw.CRF(features="S1", optimizer="lbfgs", tol=1e-4, max_iter=5000, **CASES[name]).fit(X, y)
    exact = tw.CRF(features="S1", optimizer="lbfgs", tol=1e-12, max_iter=5000, **CASES[name]).fit(X, y)
    assert tagger.stopped_.startswith("tol=0.0001: certified within")
    assert tagger.converged_
    assert tagger.gap_ is not None
    assert tagger.gap_ <= 1e-4
    best = exact.objective_
    assert best <= tagger.objective_ <= best * (1.0 + tagger.gap_) * (1.0 + 1e-9)
    assert tagger.history_[-1]["dual"] <= best * (1.0 + 1e-9)


def test_rounding_of_the_gradient_does_not_prevent_a_certificate(monkeypatch: pytest.MonkeyPatch) -> None:
    """Single precision whose optimum is too far from the true one is left for double precision."""
    X, y = corpus(400, seed=7)
    settings: dict[str, Any] = {"features": "S1", "optimizer": "lbfgs", "l2": 0.1, "tol": 1e-5}
    reference, exact = tw.CRF(**settings).fit(X, y), gradient.Evaluation.__call__
    error = np.random.default_rng(0).normal(size=reference.n_features_)
    error *= 3.0 * np.sqrt(4.0 * 0.1 * 1e-5 * reference.objective_) / np.linalg.norm(error)

    def rounded(self: gradient.Evaluation, w: Any, found: Any) -> float:
        value = exact(self, w, found)
        if self.precise:
            return value
        found += error
        return value + float(error @ w)

    monkeypatch.setattr(gradient.Evaluation, "__call__", rounded)
    tagger = tw.CRF(**settings).fit(X, y)
    assert tagger.stopped_.startswith("tol=1e-05: certified within")
    assert tagger.objective_ == pytest.approx(reference.objective_, rel=2e-5)
    monkeypatch.setattr(gradient, "SLOW", -1.0)
    monkeypatch.setattr(Problem, "rounding", lambda self, value: 0.0)
    alone = tw.CRF(**settings).fit(X, y)
    assert (alone.gap_, "window=10" in alone.stopped_) == (None, True)


def test_losses_that_are_not_convex_have_no_certificate() -> None:
    """Pointwise losses and partial labels end by the improvement over `window` iterations."""
    X, y = corpus(60, seed=3)
    pointwise = tw.CRF(features="S1", loss="pointwise_log", l2=0.1).fit(X, y)
    partial = tw.CRF(features="S1", l2=0.1, partial=True).fit(X, [[*labels[:-1], None] for labels in y])
    for tagger in (pointwise, partial):
        assert "window=10" in tagger.stopped_
        assert tagger.gap_ is None
        assert not any("gap" in entry or "dual" in entry for entry in tagger.history_)


@pytest.mark.parametrize("scaled", [False, True])
def test_smallest_gradient_minimises_the_norm_of_the_combined_gradient(scaled: bool) -> None:
    """On a quadratic, `smallest_gradient` returns weights with the estimated gradient, the least squares solution."""
    rng = np.random.default_rng(0)
    n = 40
    root = rng.normal(size=(n, n))
    hessian, target = root @ root.T + np.eye(n), rng.normal(size=n)
    scale = rng.uniform(0.5, 2.0, n).astype(np.float32) if scaled else None
    pairs = Pairs(6, 1, scale)
    points = [rng.normal(size=n) for _ in range(8)]
    gradients = [hessian @ (w - target) for w in points]
    for k in range(1, 8):
        pairs.push(points[k - 1], points[k], gradients[k - 1], gradients[k])
    w, g = points[-1], gradients[-1]
    found, square = pairs.smallest_gradient(w, g, float(np.linalg.norm(g)))
    there = hessian @ (found - target)
    assert square == pytest.approx(there @ there, rel=1e-4)
    changes = np.array([b - a for a, b in itertools.pairwise(gradients[1:])])
    least = np.linalg.lstsq(changes.T, g, rcond=None)[1]
    assert square == pytest.approx(least[0], rel=1e-3)
    assert square < g @ g


def test_products_do_not_depend_on_the_number_of_threads() -> None:
    """Inner products and combined steps have the same bits for any number of threads."""
    rng = np.random.default_rng(1)
    n = 100_000
    points = [rng.normal(size=(2, n)) for _ in range(4)]
    found = []
    for n_jobs in (1, 2):
        pairs = CurvaturePairs(6, n_jobs)
        for (w0, g0), (w1, g1) in itertools.pairwise(points):
            pairs.push(w0, w1, g0, g0 + (w1 - w0) + 0.01 * g1)
        products, out = pairs.gradient_products(points[-1][1]), np.empty(n)
        pairs.subtract_steps(points[-1][0], [0.5] * len(pairs), out)
        found.append((products, out.tobytes()))
    assert found[0] == found[1]
