"""Tests of stochastic descent: a step is the gradient, the decay is the penalty, and the end is the optimum."""

from __future__ import annotations

import numpy as np
import pytest

import tagwise as tw
from tagwise import _core
from tagwise.learners import stochastic
from tagwise.optimizers import lbfgs

from .corpora import TWINS, Corpus, random_corpus


def pace(c: Corpus) -> np.ndarray:
    """Return the factor on a feature's step: (1 + n / 100)^-0.35 from 16 tokens on."""
    arrays = c.layout.arrays()
    n = np.full(len(c.layout), float(c.data.n_tokens))
    counts = np.bincount(c.data.node()[1], minlength=c.layout.n_attributes)
    counts = np.where(counts < 16, 0, counts)
    n[: c.layout.n_node] = np.repeat(counts, np.diff(arrays["node_ptr"].astype(np.int64)))
    at = c.layout.n_node + c.layout.n_edge
    n[at:] = len(c.X)  # start and end: once per sentence
    return (1.0 + 0.01 * n) ** -0.35


@pytest.mark.parametrize("name", TWINS)
@pytest.mark.parametrize("valued", [False, True])
def test_step_is_the_scaled_gradient(name: str, valued: bool) -> None:
    """Sixteen sentences are one batch: w changes by -eta pace(n) times the gradient if nothing is clipped."""
    c = random_corpus(3, 4, n=16, longest=4, valued=valued)
    w = 0.3 * np.random.default_rng(0).standard_normal(len(c.layout))
    gradient = np.empty_like(w)
    value = _core.Objective(c.data, c.layout, loss=name).evaluate(w, gradient)
    weight = np.full(16, 1e-3)  # far below the clip
    descent = _core.Stochastic(c.data, c.layout, loss=name, sample_weight=weight)
    descent.set(w)
    np.testing.assert_allclose(descent.weights(), w, rtol=1e-6, atol=1e-7)
    met = descent.run(np.array([0], dtype=np.uint32), 10.0, 0.0, 0.0)
    assert met == pytest.approx(1e-3 * value, rel=1e-5)
    moved = (descent.weights() - w) / -1e-2 / pace(c)
    np.testing.assert_allclose(moved, gradient, rtol=2e-3, atol=2e-3 * np.abs(gradient).max())


def test_weight_decay_equals_the_penalty() -> None:
    """Without data (all sample weights 0) w shrinks by 2 l2 eta pace(n) n / N per step."""
    c = random_corpus(3, 4, n=160, longest=4)
    w = np.random.default_rng(0).standard_normal(len(c.layout))
    descent = _core.Stochastic(c.data, c.layout, sample_weight=np.zeros(160))
    descent.set(w)
    eta, l2 = 1e-3, 5.0
    descent.run(descent.order(0, 0), eta, l2, 0.0)
    np.testing.assert_allclose(descent.weights(), w * np.exp(-2 * l2 * eta * pace(c)), rtol=2e-4, atol=1e-6)


@pytest.mark.parametrize("name", TWINS)
def test_descent_approaches_the_optimum(name: str) -> None:
    c = random_corpus(3, 4, n=200, longest=5)
    l2 = 0.5
    objective = _core.Objective(c.data, c.layout, loss=name)

    def evaluate(w: np.ndarray, gradient: np.ndarray) -> float:
        return objective.evaluate(w, gradient) + _core.add_ridge(w, l2, gradient)

    start = np.zeros(len(c.layout))
    best = [step.value for step, _ in zip(lbfgs(evaluate, start), range(300))][-1]
    core = _core.Stochastic(c.data, c.layout, loss=name)
    steps = stochastic.sgd(evaluate, stochastic.Descent(core, start, l2, 200, seed=0))
    values = [step.value for step, _ in zip(steps, range(41))]
    if (
        name == "exp"
    ):  # clipped steps are not those of e^l: the loss decreases but does not get near the optimum
        assert values[-1] < 0.9 * values[0]
    else:
        assert values[-1] / best - 1.0 < 0.05


def test_results_are_reproducible_per_seed() -> None:
    c = random_corpus(3, 4, n=100, longest=5)
    runs = []
    for seed in (1, 1, 2):
        descent = _core.Stochastic(c.data, c.layout)
        epochs = stochastic.Descent(descent, np.zeros(len(c.layout)), 0.1, 100, seed)
        runs.append([epochs.epoch() for _ in range(3)][-1])
    assert np.array_equal(runs[0], runs[1])
    assert not np.array_equal(runs[0], runs[2])


def test_optimisers_agree_on_the_optimum() -> None:
    """The objective is convex, so all optimisers end at the same value."""
    train, _, _ = tw.load_corpus("wnut17-ner")
    small = train[:300]
    ends = {}
    for optimizer in ("auto", "lbfgs", "cg"):
        tagger = tw.CRF(features="S2", l2=1.0, optimizer=optimizer, tol=1e-7, max_iter=2000).fit(small)
        ends[optimizer] = tagger.objective_
    assert ends["auto"] == pytest.approx(ends["lbfgs"], rel=1e-5)
    assert ends["cg"] == pytest.approx(ends["lbfgs"], rel=1e-5)


def test_unsupported_parameters_are_rejected() -> None:
    c = random_corpus(5, 4, n=5, longest=5, edge_attributes=True)
    with pytest.raises(ValueError, match="edge attributes"):
        _core.Stochastic(c.data, c.layout)
    with pytest.raises(tw.exceptions.ParameterError, match="sgd"):
        tw.CRF(optimizer="sgd", class_weight=2.0, features="S1").fit([["a"]], [["x"]])
    with pytest.raises(tw.exceptions.ParameterError, match="l1"):
        tw.CRF(optimizer="sgd", l1=1.0, features="S1").fit([["a"]], [["x"]])
