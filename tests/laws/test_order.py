"""Tests of chains of order 2 and 3: loss, gradient, marginals and paths by enumeration."""

from __future__ import annotations

from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tagwise as tw
from tagwise import _core

from .corpora import Corpus, random_corpus
from .reference import chain


class Case:
    """A small corpus, its order and random weights, with the score of any path by counting features."""

    def __init__(self, seed: int, order: int, labels: int = 3, longest: int = 5, **more: Any) -> None:
        rng = np.random.default_rng(seed)
        self.c: Corpus = random_corpus(seed, labels, n=12, longest=longest, **more)
        self.L, self.m = labels, order
        self.order = _core.Order(self.c.data, self.c.layout, order)
        self.sample = rng.uniform(0, 2, len(self.c.gold))
        self.objective = _core.OrderObjective(self.order, self.c.data, sample_weight=self.sample)
        self.w = rng.normal(size=len(self.objective))
        grams = {
            n: sorted({g[i : i + n] for g in self.c.gold for i in range(len(g) - n + 1)}) for n in (3, 4)
        }
        tuples = [*grams[3], *(grams[4] if order == 3 else [])]
        assert len(tuples) == len(self.order)
        self.feature = {t: i for i, t in enumerate(tuples)}

    def scores(self, w: np.ndarray) -> list[dict[tuple[int, ...], float]]:
        """Return the scores of every path of every sentence."""
        n = len(self.c.layout)
        out = []
        for s in self.c.scores(w[:n]):
            found = {}
            for path in product(range(self.L), repeat=len(s.node)):
                tuples = [path[i : i + k] for k in (3, 4) for i in range(len(path) - k + 1)]
                more = sum(w[n + self.feature[t]] for t in tuples if t in self.feature)
                found[path] = chain.score(s, path) + more
            out.append(found)
        return out

    def model(self) -> tuple[_core.Scorer, _core.HistoryScorer, np.ndarray]:
        """Return the model of the weights, and the weights as rounded by it."""
        n = len(self.c.layout)
        w = self.w.astype(np.float32)
        scorer = _core.Scorer(self.c.layout, w[:n])
        dense = self.order.dense(w[n:].astype(float))
        return (
            scorer,
            _core.HistoryScorer(_core.LookbackSpec(self.L, self.m, tuples=True), dense),
            w.astype(float),
        )


@pytest.mark.parametrize("order", [2, 3])
@pytest.mark.parametrize("seed", range(3))
def test_loss_matches_enumeration(order: int, seed: int) -> None:
    case = Case(seed, order, valued=seed == 1)
    loss, _ = case.objective.value(case.w, np.zeros_like(case.w))
    want = sum(
        weight * (np.logaddexp.reduce(list(found.values())) - found[gold])
        for weight, found, gold in zip(case.sample, case.scores(case.w), case.c.gold)
    )
    assert loss == pytest.approx(want, rel=1e-10)


#: Order, labels, longest sentence. Sums over labels are in blocks of eight.
SIZES = [(2, 3, 5), (3, 3, 5), (2, 9, 4)]


@pytest.mark.parametrize(("order", "labels", "longest"), SIZES)
def test_gradient_matches_finite_differences(order: int, labels: int, longest: int) -> None:
    case = Case(5, order, labels, longest, valued=True)
    gradient = np.zeros_like(case.w)
    case.objective.value(case.w, gradient)
    scratch, step = np.zeros_like(case.w), 1e-5
    for i in np.random.default_rng(0).permutation(len(case.w))[:60].tolist() + list(range(-10, 0)):
        up, down = case.w.copy(), case.w.copy()
        up[i] += step
        down[i] -= step
        slope = (case.objective.value(up, scratch)[0] - case.objective.value(down, scratch)[0]) / (2 * step)
        assert gradient[i] == pytest.approx(slope, abs=1e-5)


@pytest.mark.parametrize(("order", "labels", "longest"), SIZES)
def test_paths_and_marginals_match_enumeration(order: int, labels: int, longest: int) -> None:
    case = Case(7, order, labels, longest)
    scorer, history, w = case.model()
    p, log_z = _core.order_marginals(scorer, history, case.c.data)
    counts, scores, labels = history.kbest(scorer, case.c.data, 3)
    at = path = 0
    for found, z, count, (a, b) in zip(
        case.scores(w), log_z, counts.tolist(), pairwise(case.c.data.offsets.astype(int))
    ):
        assert z == pytest.approx(np.logaddexp.reduce(list(found.values())), abs=1e-6)
        slow = np.zeros((b - a, case.L))
        for y, score in found.items():
            slow[np.arange(b - a), list(y)] += np.exp(score - z)
        np.testing.assert_allclose(p[a:b], slow, atol=1e-5)
        best = sorted(found.values(), reverse=True)[:3]
        assert scores[path : path + count] == pytest.approx(best, abs=1e-4)
        for score in scores[path : path + count]:
            y = tuple(labels[at : at + b - a].tolist())
            assert found[y] == pytest.approx(score, abs=1e-4)
            at += b - a
        path += count


def test_results_do_not_depend_on_threads() -> None:
    case = Case(2, 2, labels=4)
    one, two = np.zeros_like(case.w), np.zeros_like(case.w)
    assert case.objective.value(case.w, one, 1) == case.objective.value(case.w, two, 3)
    np.testing.assert_array_equal(one, two)


def test_zero_tuple_weights_equal_the_first_order_chain() -> None:
    """With no weight on tuples, order 2 is the plain chain."""
    c = random_corpus(1, 5, n=60, longest=8)
    order = _core.Order(c.data, c.layout, 2)
    w = np.random.default_rng(3).normal(size=len(c.layout))
    plain, ours = np.zeros(len(w)), np.zeros(len(w) + len(order))
    first = _core.Objective(c.data, c.layout).evaluate(w, plain)
    loss, _ = _core.OrderObjective(order, c.data).value(np.concatenate([w, np.zeros(len(order))]), ours)
    assert loss == pytest.approx(first, rel=1e-5)
    np.testing.assert_allclose(ours[: len(w)], plain, atol=1e-3)


def waves(n: int = 60, seed: int = 0) -> tuple[list[list[str]], list[list[str]]]:
    """Return labels that change two tokens after the last change, which the previous label cannot predict."""
    rng = np.random.default_rng(seed)
    y = []
    for _ in range(n):
        shift = int(rng.integers(0, 4))
        y.append(["AABB"[(shift + t) % 4] for t in range(12)])
    X = [[labels[0].lower(), labels[1].lower(), *["x"] * 10] for labels in y]
    return X, y


def test_second_order_dependencies_are_learnt(tmp_path: Path) -> None:
    (X, y), test = waves(), waves(seed=1)
    first = tw.CRF(features="S1", l2=0.01, max_iter=50).fit(X, y)
    second = tw.CRF(features="S1", l2=0.01, max_iter=50, order=2).fit(X, y, dev=test[0], dev_y=test[1])
    assert first.score(*test) < 0.9
    assert second.score(*test) == 1.0
    second.save(tmp_path / "m.tagwise")
    again = tw.load(tmp_path / "m.tagwise")
    assert again.predict(test[0]) == second.predict(test[0])
    for a, b in zip(again.predict_marginals(test[0]), second.predict_marginals(test[0])):
        np.testing.assert_array_equal(a, b)
    best = again.predict_kbest(test[0], 2, probability=True)
    assert all(1.0 >= ranked[0][1] > 0.5 for ranked in best)
    np.testing.assert_allclose(
        again.sequence_probability(test[0], [ranked[0][0] for ranked in best]),
        [ranked[0][1] for ranked in best],
        rtol=1e-3,
    )
    assert again.predict(test[0], decoder="pointwise") == test[1]


def test_unsupported_combinations_are_rejected() -> None:
    X, y = waves(5)
    for more, message in (({"loss": "exp"}, "loss"), ({"cost": 1.0}, "cost"), ({"order": 4}, "order")):
        with pytest.raises(tw.exceptions.ParameterError, match=message):
            tw.CRF(features="S1", **{"order": 2, **more}).fit(X, y)
    with pytest.raises(tw.exceptions.TrainingError, match="sentence"):
        tw.CRF(features="S1", order=2, constraints={"forbidden": [("A", "B")]}).fit(X, y)
