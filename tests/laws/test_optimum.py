"""Tests that every optimiser ends at the optimum, on small problems with objectives summed over all paths."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from tagwise.learners import gradient
from tagwise.learners.loop import Result, Stopping
from tagwise.learners.problem import Problem
from tagwise.optimizers.owlqn import pseudo_gradient

from .corpora import Corpus, random_corpus
from .reference.optimum import Paths, loss, newton, paths_of

scipy_optimize = pytest.importorskip("scipy.optimize")

#: Allowed distance from the optimum, relative to the objective.
CLOSE = 1e-6
SMOOTH, CONVEX = ("lbfgs", "cg", "auto"), ("log", "exp")


@cache
def problem(seed: int) -> tuple[Corpus, list[Paths]]:
    """Return two to five sentences of up to four tokens with two or three labels."""
    rng = np.random.default_rng(seed)
    corpus = random_corpus(seed, int(rng.integers(2, 4)), n=int(rng.integers(2, 6)), longest=4)
    places = np.array(corpus.places())
    return corpus, [paths_of(x, y, corpus.labels, places) for x, y in zip(corpus.X, corpus.gold)]


def trained(seed: int, name: str, optimizer: str, l1: float, l2: float, max_iter: int = 500) -> Result:
    """Return the result of training with a negligible tolerance."""
    corpus, _ = problem(seed)
    return gradient.train(
        Problem(corpus.data, corpus.layout, name),
        np.zeros(len(corpus.layout)),
        Stopping(max_iter, 1e-12, 10, 0),
        optimizer=optimizer,
        l1=l1,
        l2=l2,
        n_jobs=1,
    )


def penalised(seed: int, name: str, w: np.ndarray, l1: float, l2: float) -> tuple[float, np.ndarray]:
    """Return the objective by enumeration, and the shortest subgradient."""
    value, slope = loss(problem(seed)[1], name, w)
    slope = pseudo_gradient(w, slope + 2 * l2 * w, l1)
    return value + l2 * float(w @ w) + l1 * float(np.abs(w).sum()), slope


def bounded_gap(seed: int, name: str, w: np.ndarray, l1: float, l2: float) -> float:
    """Return an upper bound of the relative gap.

    f(w) - min f <= ||g||^2 / (4 l2), since l2 ||w||^2 alone has a curvature of 2 l2.
    """
    value, slope = penalised(seed, name, w, l1, l2)
    return float(slope @ slope) / (4 * l2) / value


def scipy_optimum(seed: int, name: str, l1: float, l2: float, start: np.ndarray | None = None) -> float:
    """Run SciPy's L-BFGS-B on w = u - v with u, v >= 0, in which the l1 norm is linear."""
    sentences, n = problem(seed)[1], len(problem(seed)[0].layout)
    start = np.zeros(n) if start is None else start

    def at(z: np.ndarray) -> tuple[float, np.ndarray]:
        w = z[:n] - z[n:]
        value, slope = loss(sentences, name, w)
        slope = slope + 2 * l2 * w
        return value + l2 * w @ w + l1 * z.sum(), np.concatenate([slope + l1, l1 - slope])

    first = np.concatenate([np.maximum(start, 0.0), np.maximum(-start, 0.0)])
    options = {"maxiter": 3000, "maxfun": 6000, "ftol": 1e-14, "gtol": 1e-8, "maxcor": 20}
    found = scipy_optimize.minimize(
        at, first, jac=True, method="L-BFGS-B", bounds=[(0, None)] * (2 * n), options=options
    )
    return float(found.fun)


@pytest.mark.parametrize("block", range(3))
@pytest.mark.parametrize("name", CONVEX)
def test_every_optimiser_reaches_the_optimum(name: str, block: int) -> None:
    """Smooth penalties: within CLOSE, by a bound that needs no other optimiser, or by Newton's method."""
    for seed in range(4 * block, 4 * block + 4):
        for l2 in (0.01, 0.3):
            for optimizer in SMOOTH:
                result = trained(seed, name, optimizer, 0.0, l2)
                w = np.asarray(result.weights)
                if bounded_gap(seed, name, w, 0.0, l2) <= CLOSE:
                    continue
                least = newton(problem(seed)[1], name, l2, len(w))[0]
                value = penalised(seed, name, w, 0.0, l2)[0]
                assert value <= least * (1 + CLOSE), (seed, l2, optimizer, value / least - 1, result.reason)


@pytest.mark.parametrize("block", range(3))
@pytest.mark.parametrize("name", CONVEX)
@pytest.mark.parametrize(("l1", "l2"), [(0.3, 0.0), (0.1, 0.05)], ids=["l1", "elastic"])
def test_l1_penalties_reach_the_optimum(name: str, l1: float, l2: float, block: int) -> None:
    """l1 penalties, with and without l2, are within CLOSE by the bound if it applies, else by SciPy."""
    for seed in range(3 * block, 3 * block + 3):
        result = trained(seed, name, "auto", l1, l2)
        w = np.asarray(result.weights)
        if l2 and bounded_gap(seed, name, w, l1, l2) <= CLOSE:
            continue
        least = scipy_optimum(seed, name, l1, l2)
        value = penalised(seed, name, w, l1, l2)[0]
        assert value <= least * (1 + CLOSE), (seed, value / least - 1, result.reason)


@pytest.mark.parametrize("name", ["pointwise_log", "pointwise_exp"])
@pytest.mark.parametrize("optimizer", SMOOTH)
def test_pointwise_losses_end_at_a_local_minimum(name: str, optimizer: str) -> None:
    """The pointwise losses are not convex: another optimiser started from the result finds nothing lower."""
    for seed in range(6):
        w = np.asarray(trained(seed, name, optimizer, 0.0, 0.1).weights)
        value = penalised(seed, name, w, 0.0, 0.1)[0]
        assert value <= scipy_optimum(seed, name, 0.0, 0.1, w) * (1 + CLOSE), seed


@pytest.mark.parametrize("name", CONVEX)
def test_newton_and_scipy_agree(name: str) -> None:
    """Newton's method and SciPy agree on the enumerated objective."""
    for seed in range(5):
        n = len(problem(seed)[0].layout)
        value, w = newton(problem(seed)[1], name, 0.1, n)
        assert scipy_optimum(seed, name, 0.0, 0.1) == pytest.approx(value, rel=1e-8)
        assert bounded_gap(seed, name, w, 0.0, 0.1) < 1e-9


@pytest.mark.parametrize("name", CONVEX)
@pytest.mark.parametrize("optimizer", ["lbfgs", "cg", "sgd", "owlqn"])
def test_early_stops_are_reported(name: str, optimizer: str) -> None:
    """A run that is cut off reports the limit. Convergence is reported only at the optimum."""
    for seed in range(5):
        result = trained(seed, name, optimizer, 0.0, 0.1, max_iter=3)
        if result.reason == "no step decreases the objective further":
            assert bounded_gap(seed, name, np.asarray(result.weights), 0.0, 0.1) <= CLOSE
        else:
            assert result.reason == "max_iter=3 reached"
