"""Tests of D <= P* <= P on difficult problems, and of the reported objective, which is that of the kept weights."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import tagwise as tw
from tagwise.features.inputs import Inputs
from tagwise.model import Model

from .hard_problems import KINDS, PENALTIES, TOLERANCES, Hostile, certificates, draw

SEEDS = 3
#: Relative error of the optimum by Newton's method and of the reference sums.
REFERENCE = 1e-10


def stored(weights: np.ndarray) -> np.ndarray:
    """Round weights as a model stores them."""
    return weights.astype(np.float32).astype(np.float64)


def lattice_of(model: Model, sentence: list[str]) -> tw.lattice.Lattice:
    """Return the scores of a sentence in double precision, from the model's stored weights."""
    layout, w = model.scorer.layout, model.scorer.weights.astype(np.float64)
    arrays = {name: values.astype(int) for name, values in layout.arrays().items()}
    data = model.encode(Inputs.of([sentence]), 1)
    ptr, ids, _ = data.node()
    L = layout.n_labels
    table = np.zeros((layout.n_attributes, L))
    owner = np.repeat(np.arange(layout.n_attributes), np.diff(arrays["node_ptr"]))
    table[owner, arrays["node_label"]], rest = w[: layout.n_node], w[layout.n_node :]
    node = np.array([table[ids[a:b].astype(int)].sum(axis=0) for a, b in pairwise(ptr)])
    found = []
    for name, size in (("edges", L * L), ("starts", L), ("ends", L)):
        scores, n = np.zeros(size), len(arrays[name])
        scores[arrays[name]], rest = rest[:n], rest[n:]
        found.append(scores)
    return tw.lattice.Lattice(node, found[0].reshape(L, L), found[1], found[2])


def check_fit(problem: Hostile, l2: float, tol: float) -> None:
    """Compare a fit by dual ascent with the optimum."""
    best, result = problem.optimum(l2), problem.fit("dual", l2, tol)
    true = problem.objective(stored(result.weights), l2)
    assert result.objective == pytest.approx(true, rel=1e-8, abs=1e-12)
    assert all(e["dual"] <= best * (1 + REFERENCE) + 1e-12 for e in result.history if "dual" in e)
    if "certified" in result.reason:
        assert result.history[-1]["gap"] <= tol
        assert true - best <= tol * true * (1 + 1e-6) + REFERENCE * best
    if (
        tol <= 1e-9
    ):  # L-BFGS stops when ten iterations gain less than tol, possibly some hundred times tol above the optimum
        assert true - best <= 1e-6 * best + 1e-12


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("l2", PENALTIES)
def test_dual_bound_is_below_every_objective(kind: str, l2: float) -> None:
    for seed in range(SEEDS):
        for found in certificates(draw(kind, seed), l2, (1, 3, 10, 40)):
            assert found.margin >= -REFERENCE
            assert abs(found.primal) <= 1e-9
            assert found.gap >= found.distance - REFERENCE


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("l2", PENALTIES)
def test_certified_gaps_hold(kind: str, l2: float) -> None:
    for seed, tol in enumerate(TOLERANCES[2:]):
        check_fit(draw(kind, seed), l2, tol)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_certified_gaps_hold_on_many_problems(kind: str) -> None:
    for seed in range(20):
        for l2 in PENALTIES:
            for tol in TOLERANCES:
                check_fit(draw(kind, seed), l2, tol)


@pytest.mark.parametrize("optimizer", ["lbfgs", "cg", "owlqn"])
@pytest.mark.parametrize("kind", ["plain", "repeated 300", "weights"])
@pytest.mark.parametrize("l2", [1e-2, 1e-4])
def test_optimisers_reach_optima_beyond_single_precision(kind: str, optimizer: str, l2: float) -> None:
    problem = draw(kind, 0)
    best, result = problem.optimum(l2), problem.fit(optimizer, l2, 1e-10)
    true = problem.objective(stored(result.weights), l2)
    assert true - best <= 1e-6 * best
    assert result.objective == pytest.approx(true, rel=1e-8)


def test_certificates_with_repeated_sentences() -> None:
    """Rounding errors of equal sentences have the same sign, and the loss of each is small."""
    sentence = tw.load_corpus("ewt-pos")[0][0]
    X, y = [list(sentence.tokens)[:8]] * 300, [list(sentence.labels)[:8]] * 300
    taggers = [
        tw.CRF(features="S2", l2=1e-3, n_jobs=1, optimizer=name, tol=1e-9, max_iter=5000).fit(X, y)
        for name in ("auto", "lbfgs", "cg")
    ]
    best = min(tagger.objective_ for tagger in taggers)
    for tagger in taggers:
        assert tagger.objective_ == pytest.approx(best, rel=1e-6)
        assert all(e["dual"] <= best * (1 + 1e-9) for e in tagger.history_ if "dual" in e)


@pytest.mark.parametrize("loss", ["log", "exp", "pointwise_log", "pointwise_exp"])
def test_reported_objective_belongs_to_the_kept_weights(loss: str) -> None:
    """The objective is exact also for separable text without a penalty, where it is a sum of many small numbers."""
    rng = np.random.default_rng(0)
    X = [[f"w{i}" for i in rng.integers(0, 8, 5)] for _ in range(30)]
    y = [["A" if int(token[1:]) % 2 else "B" for token in sentence] for sentence in X]
    tagger = tw.CRF(features="S1", loss=loss, l2=0.0, max_iter=60, n_jobs=1).fit(X, y)
    model = tagger.model_
    total = 0.0
    for sentence, labels in zip(X, y):
        lattice = lattice_of(model, sentence)
        gold = [model.labels.index(label) for label in labels]
        if loss in ("log", "exp"):
            less = lattice.log_partition() - lattice.score(gold)
            total += less if loss == "log" else np.expm1(less)
        else:
            p = lattice.marginals()[np.arange(len(gold)), gold]
            total += -np.log(p).sum() if loss == "pointwise_log" else (1.0 / p).sum()
    assert tagger.objective_ == pytest.approx(total, rel=1e-7)
    assert tagger.history_[-1]["objective"] == tagger.objective_
