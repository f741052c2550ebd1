"""Tests of the score interface: implementations of the two protocols can train and tag instead of the CPU engine."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tagwise as tw
from tagwise import _core
from tagwise.base.exceptions import ParameterError
from tagwise.base.parameters import checked_parameters
from tagwise.features import Inputs
from tagwise.learners import backends, gradient
from tagwise.learners.backends import exponential
from tagwise.learners.problem import Problem
from tagwise.learners.sharded.objective import OverShards
from tagwise.learners.sums import PartialSum
from tagwise.optimizers.lbfgs import lbfgs
from tagwise.scores.protocols import Exponential, Objective, Scorer, native

from .numpy_engine import NUMPY, NumpyObjective, NumpyScorer

X = [
    ["the", "dog", "barks"],
    ["a", "cat", "sees", "the", "dog"],
    ["dogs", "bark"],
    ["the", "old", "cat"],
    ["sees"],
]
Y = [["D", "N", "V"], ["D", "N", "V", "D", "N"], ["N", "V"], ["D", "A", "N"], ["V"]]
NEW = [["the", "cat", "barks"], ["an", "old", "dog", "sees", "a", "cat"], [], ["bark"]]
SETTINGS = {"features": "S2", "l2": 0.1, "max_iter": 200, "tol": 1e-12}


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Register the engine of the tests under its name."""
    monkeypatch.setitem(backends.BACKENDS, NUMPY.name, NUMPY)


def problem(parts: slice = slice(None), weight: Any = None, **settings: Any) -> Problem:
    """Return the problem of some of the sentences, over the features of all."""
    tagger = tw.CRF(**SETTINGS)
    task = tagger._task(Inputs.of(X), Y, checked_parameters(tagger))
    vocabulary, numbers = task.vocabulary, {y: i for i, y in enumerate(task.labels)}
    data = task.recipe.encode(X[parts], vocabulary)
    data = data.with_gold(np.array([numbers[y] for path in Y[parts] for y in path], dtype=np.uint16))
    return Problem(data, task.layout, sample_weight=weight, **settings)


def same(one: Objective, other: Objective, w: Any, log: bool = False) -> None:
    """Two objectives are equal at a point, and so are their logarithms if `log`."""
    slopes = [np.empty_like(w), np.empty_like(w)]
    calls = [exponential(o).log_value if log else o.value for o in (one, other)]
    values = [call(w, slope) for call, slope in zip(calls, slopes)]
    assert values[0][0] == pytest.approx(values[1][0], rel=1e-5)
    np.testing.assert_allclose(slopes[0], slopes[1], atol=2e-5 * max(1.0, np.abs(slopes[0]).max()))


@pytest.mark.parametrize("weight", [None, np.array([1.0, 0.5, 0.0, 2.0, 1.0])])
def test_objectives_of_both_engines_agree(weight: Any) -> None:
    """Value and gradient agree, with and without sentence weights."""
    p = problem(weight=weight)
    cpu, ours = p.objective(), p.objective(NUMPY)
    assert isinstance(cpu, _core.Objective)
    w = np.random.default_rng(0).normal(size=len(p.layout))
    same(cpu, ours, w)


class InMemory:
    """Parts of a corpus whose objectives are in memory."""

    def __init__(self, objectives: list[Any]) -> None:
        self.objectives = objectives

    def call(self, method: str, *arguments: Any, **options: Any) -> list[Any]:
        """Return the values and gradients of all objectives, as `ShardObjectives.sums` does."""
        (w, kind), found = arguments, []
        for k, objective in enumerate(self.objectives):
            gradient = np.empty(len(w))
            evaluate = exponential(objective).log_value if kind == "log_value" else objective.value
            found.append(PartialSum(k, 0, *evaluate(w, gradient, options["n_jobs"]), gradient))
        return [found]

    def close(self) -> None:
        """Nothing to free."""


def over(objectives: list[Any]) -> OverShards:
    """Return the sum of objectives."""
    return OverShards(InMemory(objectives))


@pytest.mark.parametrize(
    ("backend", "loss"),
    [("cpu", "log"), ("cpu", "exp"), ("cpu", "pointwise_log"), ("cpu", "pointwise_exp"), ("numpy", "log")],
)
def test_shard_objectives_sum_to_the_corpus_objective(backend: str, loss: str) -> None:
    """The sum over fixed shards is the objective of the corpus, in the log domain too.

    A fixed order gives equal bits.
    """
    engine = backends.BACKENDS[backend]
    shards = [problem(part, loss=loss).objective(engine) for part in (slice(0, 2), slice(2, 3), slice(3, 5))]
    whole = problem(loss=loss).objective(engine)
    w = np.random.default_rng(1).normal(size=len(problem().layout))
    same(whole, over(shards), w)
    if loss == "exp":
        same(whole, over(shards), w, log=True)
    slopes = [np.empty_like(w), np.empty_like(w)]
    assert over(shards).value(w, slopes[0], 1) == over(shards).value(w, slopes[1], 2)
    assert slopes[0].tobytes() == slopes[1].tobytes()


def test_objectives_without_log_domain_loss_raise() -> None:
    """Objectives without it raise an error that names them."""
    ours = problem().objective(NUMPY)
    w = np.zeros(len(problem().layout))
    assert isinstance(problem(loss="exp").objective(), Exponential)
    assert not isinstance(ours, Exponential)
    order = _core.Order(problem().data, problem().layout, 2)
    assert not isinstance(_core.OrderObjective(order, problem().data), Exponential)
    with pytest.raises(ParameterError, match="NumpyObjective does not support the exponential loss"):
        over([ours]).log_value(w, np.empty_like(w))
    evaluate = gradient.Evaluation(ours, 0.0, 1)
    with pytest.raises(ParameterError, match="NumpyObjective does not support"):
        gradient.into_range(evaluate, lambda w: lbfgs(evaluate, w), w, 1)


@pytest.mark.parametrize(("optimizer", "l1"), [("auto", 0.0), ("lbfgs", 0.0), ("auto", 0.3), ("cg", 0.0)])
def test_other_engine_trains_the_same_model(tmp_path: Path, optimizer: str, l1: float) -> None:
    """Through the public estimator: features, weights and file are equal up to the last digits."""
    params = {**SETTINGS, "optimizer": optimizer, "l1": l1}
    cpu = tw.CRF(**params).fit(X, Y)
    with backends.using("numpy"):
        ours = tw.CRF(**params).fit(X, Y, dev=X[:2], dev_y=Y[:2])
    assert isinstance(ours.model_.scorer, NumpyScorer)
    assert ours.model_.scorer.calls == 0
    assert ours.classes_ == cpu.classes_
    assert ours.model_.vocabulary.texts() == cpu.model_.vocabulary.texts()
    plain = tw.CRF(**params)
    with backends.using("numpy"):
        plain.fit(X, Y)
    np.testing.assert_allclose(plain.model_.scorer.weights, cpu.model_.scorer.weights, atol=5e-3)
    assert plain.objective_ == pytest.approx(cpu.objective_, rel=1e-4)
    plain.save(tmp_path / "numpy.tagwise")
    again = tw.load(tmp_path / "numpy.tagwise")
    assert isinstance(again.model_.scorer, _core.Scorer)
    assert again.predict(NEW) == cpu.predict(NEW) == plain.predict(NEW)


def test_other_engine_tags_like_the_cpu() -> None:
    """Paths, lists with scores and probabilities, marginals, allowed labels and rules agree for equal weights."""
    rules = {"forbidden": [("D", "V"), ("N", "N"), (None, "A")]}
    with backends.using("numpy"):
        tagger = tw.CRF(**SETTINGS, constraints=rules).fit(X, Y)
    ours = tagger.model_.scorer
    assert isinstance(ours, NumpyScorer)
    cpu_tagger = tw.CRF(**SETTINGS, constraints=rules)
    cpu_tagger.model_ = replace(tagger.model_, scorer=tagger.model_.native)
    assert isinstance(cpu_tagger.model_.scorer, _core.Scorer)
    allowed = [None, [None, ["A", "N"], None, None, None, "N"], [], [["V"]]]
    for keywords in ({}, {"allowed": allowed}):
        assert tagger.predict(NEW, **keywords) == cpu_tagger.predict(NEW, **keywords)
        for a, b in zip(
            tagger.predict_marginals(NEW, **keywords), cpu_tagger.predict_marginals(NEW, **keywords)
        ):
            np.testing.assert_allclose(a, b, atol=1e-5)
        for probability in (False, True):
            lists = [
                t.predict_kbest(NEW, 4, probability=probability, **keywords) for t in (tagger, cpu_tagger)
            ]
            for a, b in zip(*lists):
                assert [path for path, _ in a] == [path for path, _ in b]
                assert [s for _, s in a] == pytest.approx([s for _, s in b], abs=1e-4)
    assert ours.calls > 0
    # Methods outside the protocol run on the CPU with the same weights.
    for keywords in (
        {"decoder": "beam", "beam": 3},
        {"constraints": False},
        {"constraints": {"once": ["D"]}},
    ):
        assert tagger.predict(NEW, **keywords) == cpu_tagger.predict(NEW, **keywords)


def test_unsupported_engine_features_raise() -> None:
    """Stochastic epochs run only on the CPU.

    An unknown engine is an error, and the CPU is active again after a block.
    """
    with backends.using("numpy"), pytest.raises(tw.exceptions.ParameterError, match="numpy"):
        tw.CRF(optimizer="sgd", features="S1").fit(X, Y)
    with (
        pytest.raises(
            tw.exceptions.ParameterError, match=r"unknown backend 'abacus'\. Available: cpu, numpy, cuda"
        ),
        backends.using("abacus"),
    ):
        pass
    assert backends.current().name == "cpu"


def test_engines_satisfy_the_protocols() -> None:
    """The assignments fail a type checker if an engine violates a protocol."""
    p = problem()
    objectives: list[Objective] = [p.objective(), NumpyObjective(p), over([p.objective()])]
    weights = np.zeros(len(p.layout), dtype=np.float32)
    scorers: list[Scorer] = [_core.Scorer(p.layout, weights), NumpyScorer(p.layout, weights, None)]
    assert all(callable(objective.value) for objective in objectives)
    assert len({scorer.viterbi(p.data).shape for scorer in scorers}) == 1


@pytest.mark.parametrize("local", [False, True])
def test_cpu_scorer_receives_all_scores_of_another_engine(local: bool) -> None:
    """The CPU scorer gets weights, forbidden pairs, and whether every step is normalised locally."""
    p = problem()
    weights = np.random.default_rng(3).normal(size=len(p.layout)).astype(np.float32)
    forbidden = np.array([1, 6], dtype=np.uint32)

    class Elsewhere(NumpyScorer):
        pass

    Elsewhere.local = local
    found = native(Elsewhere(p.layout, weights, forbidden), forbidden)
    assert found.local is local
    marginals = {
        normalised: _core.Scorer(p.layout, weights, forbidden, local=normalised).marginals(p.data)[0]
        for normalised in (False, True)
    }
    np.testing.assert_array_equal(found.marginals(p.data)[0], marginals[local])
    assert not np.allclose(marginals[False], marginals[True], atol=1e-3)
    assert native(found, None) is found
