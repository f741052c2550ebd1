"""Tests of sentence weights in the core beyond the range of floats, in log space, order and boosting.

The weighted losses are in test_paths, those of learners in test_weights_estimators.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

import numpy as np
import pytest

from tagwise import _core

from . import constructors
from .weighted import COUNTS, WEIGHTS, Bag

LOSSES = _core.LOSSES
DOUBLE = ("float32", "wide", "log space")


@cache
def bag(path: str, edges: bool = False, n: int = 9) -> Bag:
    return Bag(5, path=path, edge_attributes=edges, n=n)


Point = tuple[float, np.ndarray, float]  # value, gradient, largest


def evaluated(
    b: Bag,
    w: np.ndarray,
    which: Iterable[int],
    weight: np.ndarray | None,
    loss: str,
    option: str,
    log: bool = False,
) -> Point:
    """Evaluate a separate objective of these sentences."""
    which = list(which)
    more = b.options(option, which)
    objective = constructors.objective(b.data(which), b.layout, loss=loss, sample_weight=weight, **more)
    gradient = np.full_like(w, np.nan)
    value, largest = (objective.log_value if log else objective.value)(w, gradient)
    return value, gradient, largest


def close(got: Point, value: float, gradient: np.ndarray) -> None:
    assert got[0] == pytest.approx(value, rel=1e-5, abs=1e-6)
    scale = max(1.0, np.abs(gradient).max())
    np.testing.assert_allclose(got[1], gradient, rtol=1e-4, atol=1e-5 * scale)


@pytest.mark.parametrize(
    ("path", "option"),
    [
        *((path, option) for path in (*DOUBLE, "flagged") for option in ("plain", "limits", "once", "edges")),
        *(("long", option) for option in ("plain", "limits", "once", "edges")),
    ],
)
def test_log_exponential_loss_is_of_the_weighted_sum(path: str, option: str) -> None:
    """The value is log sum_i w_i e^{l_i}, and gradients are weighted by each sentence's share, 0 for weight 0."""
    b = bag(path, option == "edges")
    w = b.weights(2)
    alone = [evaluated(b, w, [i], None, "log", option) for i in b.everyone]
    for weight in (WEIGHTS, COUNTS.astype(float), 1e-6 * WEIGHTS):
        with np.errstate(divide="ignore"):
            terms = np.log(weight) + [found[0] for found in alone]
        value = np.logaddexp.reduce(terms)
        gradient = sum(np.exp(t - value) * found[1] for t, found in zip(terms, alone))
        got = evaluated(b, w, b.everyone, weight, "exp", option, log=True)
        close(got, value, gradient)  # type: ignore[arg-type]
        assert got[2] == pytest.approx(terms.max(), rel=1e-5)


@pytest.mark.parametrize("path", DOUBLE)
@pytest.mark.parametrize(
    ("loss", "option"),
    [
        *((loss, option) for loss in LOSSES for option in ("plain", "limits", "edges")),
        *(("log", option) for option in ("partial", "cost", "once")),
        ("exp", "once"),
    ],
)
def test_zero_weight_sentences_may_be_out_of_range(loss: str, option: str, path: str) -> None:
    """The gold path of the first sentence has a probability of e^-1200. With weight 0 it has no effect."""
    b = bag(path, option == "edges")
    w = b.weights(3)
    extreme = w.copy()
    rare = b.layout.arrays()["node_ptr"][b.vocabulary.get("first alone")]
    at = slice(int(rare), int(rare) + b.labels)
    extreme[at] = 1200.0
    extreme[int(rare) + b.gold[0][0]] = 0.0
    weight = np.where(b.everyone == 0, 0.0, 1.5)
    for log in (False, True) if loss == "exp" else (False,):
        want = evaluated(b, w, b.everyone[1:], weight[1:], loss, option, log)
        close(evaluated(b, extreme, b.everyone, weight, loss, option, log), *want[:2])


@pytest.mark.parametrize("order", [2, 3])
@pytest.mark.parametrize("limits", [False, True])
@pytest.mark.parametrize("size", [1.0, 100.0])
def test_higher_order_chains_are_linear_in_the_weights(order: int, limits: bool, size: float) -> None:
    b = bag("float32")
    states = _core.Order(b.data(b.everyone), b.layout, order, b.forbidden if limits else None)
    w = size * np.random.default_rng(4).standard_normal(len(b.layout) + len(states))

    def at(which: Iterable[int], weight: np.ndarray | None) -> Point:
        which = list(which)
        allowed = b.support(which) if limits else None
        objective = _core.OrderObjective(states, b.data(which), sample_weight=weight, allowed=allowed)
        gradient = np.full_like(w, np.nan)
        value, largest = objective.value(w, gradient)
        return value, gradient, largest

    close(at(b.everyone, COUNTS.astype(float)), *at(np.repeat(b.everyone, COUNTS), None)[:2])
    alone = [at([i], None) for i in b.everyone]
    value, gradient = (sum(x * found[j] for x, found in zip(WEIGHTS, alone)) for j in (0, 1))
    close(at(b.everyone, WEIGHTS), value, gradient)  # type: ignore[arg-type]


# -- stochastic descent -----------------------------------------------------------------------------------


def stepped(
    b: Bag, w: np.ndarray, weight: np.ndarray, loss: str, option: str, eta: float
) -> tuple[np.ndarray, float]:
    """Return the weights after one step over all sentences, and the loss before it."""
    core = constructors.stochastic(
        b.data(b.everyone), b.layout, loss=loss, sample_weight=weight, **b.options(option, b.everyone)
    )
    core.set(w)
    assert core.n_batches == 1
    met = core.run(np.zeros(1, dtype=np.uint32), eta, 0.0, 0.0)
    return core.weights() - w, met


@pytest.mark.parametrize("loss", ["log", "pointwise_log"])
def test_stochastic_step_does_not_clip_weights(loss: str) -> None:
    """The loss of a sentence is clipped, its weight is not."""
    b = bag("float32")
    w = b.weights(6, 0.3).astype(np.float32).astype(float)
    small, large = (stepped(b, w, k * WEIGHTS, loss, "plain", 1.0 / k)[0] for k in (0.1, 10.0))
    np.testing.assert_allclose(large, small, rtol=1e-2, atol=2e-3 * np.abs(small).max())


@pytest.mark.parametrize(("loss", "unit"), [("log", 30.0), ("pointwise_log", -np.log(1e-12))])
def test_skipped_sentences_count_by_their_weight(loss: str, unit: float) -> None:
    """Sentences out of the range of float32 count a fixed loss each (or per token), times their weights."""
    b = bag("flagged")
    w = b.weights(1)
    lengths = np.diff(b.data(b.everyone).offsets.astype(int))
    flagged = b.everyone % 3 == 0
    _, met = stepped(b, w, np.where(flagged, WEIGHTS, 0.0), loss, "plain", 0.0)
    tokens = lengths if loss == "pointwise_log" else np.ones(b.n)
    assert met == pytest.approx(unit * (WEIGHTS * tokens)[flagged].sum(), rel=1e-6)


# -- boosting ---------------------------------------------------------------------------------------------


def boosted(
    b: Bag, which: Iterable[int], weight: np.ndarray | None, w: np.ndarray, **more: Any
) -> _core.Boosting:
    return constructors.boosting(b.data(which), b.layout, sample_weight=weight, start=w, **more)


BOOSTERS: dict[str, dict[str, Any]] = {
    "loose": {"bound": "loose", "smoothing": 0.01},
    "tight": {"bound": "tight"},
    "exact": {"bound": "exact"},
    "line search": {"bound": "tight", "line_search": True},
    "several": {"bound": "tight", "features_per_round": 3},
    "overlap": {"bound": "tight", "features_per_round": 3, "overlap": True},
}


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        *((kind, path) for kind in BOOSTERS for path in ("float32", "log space")),
        ("tight", "long"),
        ("line search", "long"),
    ],
)
def test_boosting_counts_weights_as_repetitions(kind: str, path: str) -> None:
    """Loss, slopes, bounds and rounds with weights equal those with repeated sentences.

    The range of the loose bound, and the features that share sentences, depend on all sentences, also those
    of weight 0.
    """
    b = bag(path)
    counts = np.maximum(COUNTS, 1) if kind in ("loose", "several") else COUNTS
    rounds = 2 if path == "long" else 6
    w = b.weights(7, 0.2)
    if path == "log space":
        w[:] = np.where(w == -400.0, -40.0, w)
    repeated = np.repeat(b.everyone, counts)
    a = boosted(b, b.everyone, counts.astype(float), w, **BOOSTERS[kind])
    c = boosted(b, repeated, None, w, **BOOSTERS[kind])
    for _ in range(2):
        assert a.log_loss == pytest.approx(c.log_loss, rel=1e-5)
        np.testing.assert_allclose(a.losses()[repeated], c.losses(), rtol=1e-5)
        np.testing.assert_allclose(a.slopes(), c.slopes(), rtol=1e-4, atol=1e-6)
        if path != "long":
            felt = np.abs(c.slopes()) > 1e-12  # rounding decides the steps of other features
            for bound in ("loose",) if kind == "loose" else ("tight", "exact"):
                for x, y in zip(a.bounds(bound), c.bounds(bound)):
                    np.testing.assert_allclose(x[felt], y[felt], rtol=1e-3, atol=1e-4)
        first, second = a.run(rounds), c.run(rounds)
        assert first["feature"].tolist() == second["feature"].tolist()
        np.testing.assert_allclose(first["step"], second["step"], rtol=1e-3, atol=1e-4)
    # real weights: N is the weighted sum over sentences, and its slope that of the weighted sum
    real = boosted(b, b.everyone, WEIGHTS, w, **BOOSTERS[kind])
    own = real.losses()
    with np.errstate(divide="ignore"):
        terms = np.log(WEIGHTS) + own + np.log1p(-np.exp(-own))
    assert real.log_loss == pytest.approx(np.logaddexp.reduce(terms), rel=1e-9)
    alone = [boosted(b, [i], None, w, **BOOSTERS[kind]).slopes() for i in b.everyone]
    share = np.exp(terms - np.logaddexp.reduce(terms))
    np.testing.assert_allclose(real.slopes(), share @ np.array(alone), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("bound", ["loose", "tight"])
def test_boosting_ignores_overflow_of_zero_weight_sentences(bound: str) -> None:
    """e^l of a thousand tokens overflows. Times a weight of 0 it contributes nothing."""
    b, zero = bag("long"), np.zeros(len(bag("long").layout))
    weight = np.where(b.everyone == 0, 0.0, 1.0)
    a, c = (
        boosted(b, b.everyone, weight, zero, bound=bound),
        boosted(b, b.everyone[1:], None, zero, bound=bound),
    )
    assert a.log_loss == pytest.approx(c.log_loss, rel=1e-9)
    np.testing.assert_allclose(a.losses()[1:], c.losses(), rtol=1e-9)
    np.testing.assert_allclose(a.slopes(), c.slopes(), atol=1e-9)
