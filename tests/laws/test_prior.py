"""Tests of training on other sentences under a Gaussian prior around the old weights."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import tagwise as tw
from tagwise import _core
from tagwise.estimators import regularization_path
from tagwise.learners import gradient
from tagwise.learners.loop import Stopping
from tagwise.learners.problem import Problem

from ..golden import corpus
from ..golden.kinds import PLAIN
from ..golden.names import further_back, named
from .corpora import Corpus, random_corpus
from .reference.optimum import Paths, loss, paths_of

optimize = pytest.importorskip("scipy.optimize")

LOSSES = _core.LOSSES


@cache
def problem(seed: int) -> tuple[Corpus, list[Paths], np.ndarray]:
    """Return two to five sentences, all their paths, and the centre of the prior."""
    rng = np.random.default_rng(seed)
    found = random_corpus(seed, int(rng.integers(2, 4)), n=int(rng.integers(2, 6)), longest=4)
    places = np.array(found.places())
    paths = [paths_of(x, y, found.labels, places) for x, y in zip(found.X, found.gold)]
    return found, paths, rng.normal(size=len(found.layout))


def evaluation(seed: int, name: str, l2: float, strength: float) -> gradient.Evaluation:
    found, _, center = problem(seed)
    objective = Problem(found.data, found.layout, name).objective()
    return gradient.Evaluation(objective, l2, 1, gradient.Prior(center, strength))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", LOSSES)
def test_gradient_matches_finite_differences(name: str, seed: int) -> None:
    """The gradient matches finite differences in random directions, at the centre and away from it."""
    evaluate = evaluation(seed, name, 0.3, 0.7)
    center, rng = problem(seed)[2], np.random.default_rng(seed + 100)
    unused = np.empty_like(center)
    for w in (center.copy(), center + 0.3 * rng.normal(size=len(center))):
        slope = np.empty_like(w)
        evaluate(w, slope)
        for _ in range(3):
            d = rng.normal(size=len(w))
            h = 1e-3
            ahead, behind = evaluate(w + h * d, unused), evaluate(w - h * d, unused)
            assert (ahead - behind) / (2 * h) == pytest.approx(slope @ d, rel=2e-3, abs=2e-3)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("l1", [0.0, 0.3])
def test_training_ends_at_the_optimum(seed: int, l1: float) -> None:
    """The optimum is SciPy's on the sum over all paths, with w = u - v if l1 > 0."""
    found, paths, center = problem(seed)
    n, l2, strength = len(center), 0.1, 0.4

    def at(z: np.ndarray) -> tuple[float, np.ndarray]:
        w = z[:n] - z[n:]
        value, slope = loss(paths, "log", w)
        slope = slope + 2 * l2 * w + 2 * strength * (w - center)
        value += l2 * w @ w + strength * (w - center) @ (w - center) + l1 * z.sum()
        return value, np.concatenate([slope + l1, l1 - slope])

    best = optimize.minimize(
        at,
        np.zeros(2 * n),
        jac=True,
        method="L-BFGS-B",
        bounds=[(0, None)] * (2 * n),
        options={"maxiter": 3000, "maxfun": 6000, "ftol": 1e-14, "gtol": 1e-8},
    )
    for optimizer in ("owlqn",) if l1 else ("lbfgs", "cg", "auto"):
        result = gradient.train(
            Problem(found.data, found.layout, "log"),
            center,
            Stopping(500, 1e-12, 10, 0),
            optimizer=optimizer,
            l1=l1,
            l2=l2,
            prior=gradient.Prior(center, strength),
            n_jobs=1,
        )
        assert result.objective == pytest.approx(best.fun, rel=1e-6)


def test_penalty_and_prior_combine_into_one_gaussian() -> None:
    """l2 ||w||^2 + p ||w - w_0||^2 is (l2 + p) ||w - p w_0 / (l2 + p)||^2 and a constant."""
    found, _, center = problem(3)
    objective = Problem(found.data, found.layout).objective()
    one = gradient.Evaluation(objective, 0.5, 1, gradient.Prior(center, 1.5))
    other = gradient.Evaluation(objective, 0.0, 1, gradient.Prior(0.75 * center, 2.0))
    slopes = np.empty((2, len(center)))
    rng = np.random.default_rng(0)
    gaps = []
    for w in rng.normal(size=(5, len(center))):
        gaps.append(one(w, slopes[0]) - other(w, slopes[1]))
        np.testing.assert_allclose(slopes[0], slopes[1], rtol=1e-9, atol=1e-9)
    assert gaps == pytest.approx([gaps[0]] * 5)


# --- estimators ---------------------------------------------------------------------------------------------

WORDS, LABELS = corpus.words(corpus.TRAIN), corpus.LABELS
OLD = WORDS[:8], LABELS[:8]
NEW = [["Nils", "met", "Acme"], ["Acme", "left", "Oslo"]], [["B-PER", "O", "B-ORG"], ["B-ORG", "O", "B-LOC"]]


def crf(**params: Any) -> tw.CRF:
    return tw.CRF(**{"features": PLAIN, "l2": 0.05, "max_iter": 150, "tol": 1e-9, **params})


@pytest.mark.parametrize("order", [1, 2])
def test_prior_strength_interpolates_between_old_and_new(order: int) -> None:
    """A strong prior keeps the old weights. A weak one gives the optimum without a prior. Labels are added."""
    old = crf(order=order).fit(*OLD)
    before = named(old.model_) | further_back(old.model_)
    distance = {}
    for strength in (1e6, 1.0, 1e-9, 0.0):
        new = crf(order=order, prior=strength).fit(*NEW, warm_start=old)
        assert new.classes_ == (*old.classes_, "B-ORG")
        after = named(new.model_) | further_back(new.model_)
        distance[strength] = sum((after[name] - before[name]) ** 2 for name in before) ** 0.5
    assert distance[1e6] < 1e-3 < distance[1.0] < distance[1e-9]
    assert distance[1e-9] == pytest.approx(distance[0.0], rel=1e-2)


def test_prior_prevents_forgetting() -> None:
    """With new sentences of other labels, training forgets the old ones without a prior and keeps them with one."""
    train, _, _ = tw.load_corpus("ewt-pos")
    nouns = [s for s in train if len(s) < 12][:300]
    X, y = [s.tokens for s in nouns], [s.labels for s in nouns]
    fresh = [[f"zz{i}", "!"] for i in range(20)], [["NEW", "PUNCT"] for _ in range(20)]
    old = tw.CRF(features="S2", l2=0.1, max_iter=60).fit(X, y)
    free = tw.CRF(features="S2", l2=0.1, max_iter=60).fit(*fresh, warm_start=old)
    kept = tw.CRF(features="S2", l2=0.1, max_iter=60, prior=1.0).fit(*fresh, warm_start=old)
    assert kept.score(*fresh) == 1.0
    assert kept.score(X, y) > free.score(X, y)
    assert kept.score(X, y) > old.score(X, y) - 0.01


def test_path_keeps_the_prior_model() -> None:
    """Every strength starts from the kept model, not from the step before."""
    old = crf().fit(*OLD)
    path = regularization_path(
        crf(max_iter=30), *NEW[:1], y=NEW[1], dev=OLD[0], dev_y=OLD[1], strengths=[2.0, 0.1],
        parameter="prior", warm_start=old,
    )  # fmt: skip
    for step in path:
        alone = crf(max_iter=30, prior=step.strength).fit(*NEW, warm_start=old)
        assert step.tagger.model_.scorer.weights.tolist() == alone.model_.scorer.weights.tolist()
