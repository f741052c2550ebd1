"""Tests of boosting with the pointwise exponential loss against all paths, finite differences and the reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tagwise import _core

from . import constructors
from .online import Native, corpus, native
from .paths import forced
from .reference import boosting, enumeration, model
from .strategies import Problem, problems
from .test_boosting import as_float32, values

SUMS = {"wrong": 1.0, "all": 0.0}


def booster(n: Native, **parameters: Any) -> _core.Boosting:
    return constructors.boosting(n.data, n.layout, loss="pointwise_exp", **parameters)


def loss(p: Problem, n: Native, w: np.ndarray, weight: np.ndarray, less: float = 1.0) -> float:
    """Return sum_i w_i sum_t (1 / p_t(gold) - less), with p_t a sum over all paths."""
    total = 0.0
    for x, y, a in zip(as_float32(p.X), p.y, weight):
        nodes, _ = enumeration.marginals(model.score_sentence(n.dense(p, w), x, p.shape))
        total += a * sum(1 / nodes[t, g] - less for t, g in enumerate(y))
    return float(total)


small = problems(max_tokens=4, max_sentences=3, values=values)


@pytest.mark.parametrize("over", SUMS)
@given(p=small, seed=st.integers(0, 9))
def test_cached_quantities_match_enumeration(over: str, p: Problem, seed: int) -> None:
    """The loss matches enumeration, and its slopes match differences and the reference implementation."""
    n, rng = native(p), np.random.default_rng(seed)
    w, weight = rng.normal(size=len(n.layout)), rng.uniform(0.1, 2.0, len(p.X))
    b = booster(n, start=w, sample_weight=weight, over=over)
    value = loss(p, n, w, weight, SUMS[over])
    assert b.log_loss == pytest.approx(np.log(value), abs=1e-6)
    each = [loss(p, n, w, np.eye(len(p.X))[i], 0.0) for i in range(len(p.X))]
    np.testing.assert_allclose(b.losses(), np.log(each), rtol=1e-9, atol=1e-9)
    q = boosting.quantities(n.dense(p, w), as_float32(p.X), p.y, p.shape, weight, over == "all", True)
    np.testing.assert_allclose(b.slopes(), q.m.sum(axis=0)[n.at], rtol=1e-6, atol=1e-9)
    for i in rng.choice(len(w), size=min(3, len(w)), replace=False):
        ends = [loss(p, n, w + h * np.eye(len(w))[i], weight) for h in (1e-5, -1e-5)]
        assert b.slopes()[i] == pytest.approx((ends[0] - ends[1]) / 2e-5 / value, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("over", SUMS)
@settings(max_examples=20)
@given(p=small, seed=st.integers(0, 9))
def test_bounds_match_the_reference_at_every_step(over: str, p: Problem, seed: int) -> None:
    """At every step, not only the best, the loose bound is above the tight one and this above the loss."""
    n, rng, ones = native(p), np.random.default_rng(seed), np.ones(len(p.X))
    w = rng.normal(size=len(n.layout))
    b = booster(n, start=w, bound="tight", max_step=3.0, over=over)
    q = boosting.quantities(n.dense(p, w), as_float32(p.X), p.y, p.shape, ones, over == "all", True)
    before = loss(p, n, w, ones, SUMS[over])
    found = {bound: b.bounds(bound) for bound in ("loose", "tight")}
    assert np.all(found["loose"][1] >= found["tight"][1] - 1e-9)
    for i in rng.choice(len(w), size=min(4, len(w)), replace=False):
        k = int(n.at[i])
        assert found["loose"][1][i] == pytest.approx(boosting.loose(q, k, 0.0, 3.0)[1], rel=1e-6, abs=1e-8)
        assert found["tight"][1][i] == pytest.approx(boosting.tight(q, k, 3.0)[1], rel=1e-6, abs=1e-8)
        for step in (float(found["tight"][0][i]), *rng.normal(size=3)):
            after = loss(p, n, w + step * np.eye(len(w))[i], ones, SUMS[over])
            assert after / before <= boosting.tight_bound(q, k, step)[0] + 1e-9


@pytest.mark.parametrize("bound", ["loose", "tight"])
@pytest.mark.parametrize("line_search", [False, True])
@pytest.mark.parametrize(("several", "overlap"), [(1, False), (4, False), (4, True)])
@settings(max_examples=8)
@given(p=problems(values=values, max_sentences=4))
def test_loss_never_rises_and_stays_below_the_bounds(
    bound: str, line_search: bool, several: int, overlap: bool, p: Problem
) -> None:
    options = {"line_search": line_search, "features_per_round": several, "overlap": overlap}
    b = booster(native(p), bound=bound, max_step=4.0, **options)
    before = b.log_loss
    done = b.run(12)
    for r in np.unique(done["round"]):
        of = done["round"] == r
        after = done["log_loss"][of][-1]
        if after > -12:  # beyond, 1 - Z has too few digits
            assert after <= before + np.log(max(1 - np.sum(1 - done["bound"][of]), 1e-300)) + 1e-6
        before = after


@pytest.mark.parametrize("bound", ["loose", "tight"])
@pytest.mark.parametrize("overlap", [False, True])
def test_cached_sums_equal_a_recomputation(bound: str, overlap: bool) -> None:
    p, rng = corpus(3, 5, n=40, longest=9), np.random.default_rng(0)
    p = Problem(p.shape, [x * rng.choice([1.0, -0.5, 2.0], x.shape) for x in p.X], p.y)
    n, runs = native(p), []
    options = {"bound": bound, "smoothing": 1e-3, "features_per_round": 3, "overlap": overlap}
    for jobs in (1, 2):
        b = booster(n, n_jobs=jobs, line_search=True, **options)
        done = b.run(60)
        runs.append((done["feature"].tolist(), b.weights().tolist(), b.log_loss))
    assert runs[0] == runs[1]
    assert len(set(runs[0][0])) > 10
    again = booster(n, start=b.weights(), **options)
    assert b.log_loss == pytest.approx(again.log_loss, abs=1e-10)
    np.testing.assert_allclose(b.losses(), again.losses(), atol=1e-10)
    np.testing.assert_allclose(b.slopes(), again.slopes(), atol=1e-9)
    np.testing.assert_allclose(b.bounds(bound)[1], again.bounds(bound)[1], atol=1e-9)


def test_log_space_agrees_and_extends_the_range() -> None:
    """Forced log space gives the same numbers, and finite ones if a gold label's probability underflows."""
    p = corpus(2, 4, n=12, longest=6)
    n = native(p)
    w = np.random.default_rng(0).normal(size=len(n.layout))
    plain = booster(n, start=w)
    with forced("log"):
        log = booster(n, start=w)
    assert log.log_loss == pytest.approx(plain.log_loss, abs=1e-10)
    np.testing.assert_allclose(log.slopes(), plain.slopes(), rtol=1e-8, atol=1e-10)
    far = booster(n, start=400.0 * w)
    assert np.isfinite(far.log_loss)
    assert far.log_loss > 500
    slopes = far.slopes()
    assert np.all(np.isfinite(slopes))
    i = int(np.argmax(np.abs(slopes)))
    ends = [booster(n, start=400.0 * w + h * np.eye(len(w))[i]).log_loss for h in (1e-5, -1e-5)]
    assert slopes[i] == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-4)


def test_tiny_losses_keep_their_digits() -> None:
    """One token with two labels: 1 / p - 1 = e^-margin, down to 1e-9 and below."""
    n = native(Problem(model.Shape(1, 2), [np.ones((3, 1))], [(0, 0, 0)]))
    for margin in (1.0, 20.0, 25.0):
        w = np.where(np.arange(len(n.layout)) < n.layout.n_node, margin, 0.0)
        b = booster(n, start=w)
        q = np.exp(-margin) if n.layout.n_node == 1 else None
        assert q is not None
        assert b.log_loss == pytest.approx(np.log(3) - margin, abs=1e-9)


def test_exact_bound_is_rejected() -> None:
    n = native(corpus(1, 3, n=4))
    with pytest.raises(ValueError, match='no exact bound; use bound="tight"'):
        booster(n, bound="exact")
    with pytest.raises(ValueError, match="no exact bound"):
        booster(n, bound="tight").bounds("exact")
