"""Tests of best paths of long sentences: rounding errors do not grow with the length, on any code path.

Scores of prefixes grow with every token. The score of the path found, in double precision, equals that of a
double-precision search, at 200 tokens and at 100,000.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
import pytest

import tagwise as tw
from tagwise import _core
from tagwise.scores.lookback import LookbackWeights

from .paths import forced

#: Below the rounding of single decisions, far below the error of sums of 100,000 float32 (tenths).
CLOSE = 2e-4
WORDS = 60
LEVELS = ("", "avx2", "baseline")
#: Lengths around the first renormalised position, far beyond it, and the longest.
LENGTHS, LONGEST = (127, 128, 129, 145, 20_000), 100_000


class Case(NamedTuple):
    """A sentence, its scores, the allowed labels if not all are, and the best score."""

    data: _core.Dataset
    node: np.ndarray  # [T, L]
    edge: np.ndarray  # [L, L]
    support: tuple[np.ndarray, np.ndarray] | None
    best: float

    def score(self, path: np.ndarray) -> float:
        """Return the score of a path, with rounding errors that do not grow with its length."""
        y = path.astype(int)
        nodes = np.sum(self.node[np.arange(len(y)), y], dtype=np.longdouble)
        return float(nodes + np.sum(self.edge[y[:-1], y[1:]], dtype=np.longdouble))


class Long:
    """A random model over words with float32 scores that are positive on average.

    It has only some edges if `edges` < 1.
    """

    def __init__(self, labels: int, *, edges: float = 1.0, whole: bool = False) -> None:
        rng = np.random.default_rng(labels)
        self.labels, self.rng = labels, rng
        node = rng.normal(3.0, 1.0, (WORDS, labels))
        edge = rng.normal(0.5, 1.0, (labels, labels))
        self.node, self.edge = ((np.round(x) if whole else x).astype(np.float32) for x in (node, edge))
        seen = np.argwhere(rng.random((labels, labels)) < edges)
        gold = [[y] for y in np.tile(np.arange(labels), WORDS)] + seen.tolist()
        X = [[[f"w{i}"]] for i in np.repeat(np.arange(WORDS), labels)] + [[["w0"], ["w0"]]] * len(seen)
        self.vocabulary = _core.Vocabulary()
        data = _core.encode_attributes(self.vocabulary, X)
        data = data.with_gold(np.array([y for path in gold for y in path], dtype=np.uint16))
        self.layout = _core.Layout.build(data, WORDS, labels, start_end=False)
        at = self.layout.arrays()["edges"].astype(int)
        mask = np.zeros(labels * labels, dtype=bool)
        mask[at] = True
        self.edge *= mask.reshape(labels, labels)
        self.weights = np.concatenate([self.node.ravel(), self.edge.ravel()[at]])
        assert len(self.weights) == len(self.layout)

    def scorer(self) -> _core.Scorer:
        """Return a scorer. Build it under forced code paths, which decide whether edges are in lists."""
        return _core.Scorer(self.layout, self.weights)

    @cache  # noqa: B019
    def case(self, length: int, limited: bool = False) -> Case:
        words = self.rng.integers(WORDS, size=length)
        data = _core.encode_attributes(self.vocabulary, [[[f"w{i}"] for i in words]])
        node, edge, support = self.node[words].astype(np.float64), self.edge.astype(np.float64), None
        if limited:
            sets = self.rng.random((30, self.labels)) < 0.3
            sets[np.arange(30), self.rng.integers(self.labels, size=30)] = True
            of = self.rng.integers(30, size=length).astype(np.uint32)
            node, support = np.where(sets[of], node, -np.inf), (sets, of)
        return Case(data, node, edge, support, best(node, edge))


@cache
def model(labels: int, edges: float = 1.0) -> Long:
    return Long(labels, edges=edges)


def best(node: np.ndarray, edge: np.ndarray) -> float:
    """Return the best score of a chain in double precision, subtracting the maximum of each position."""
    delta, total = node[0], 0.0
    for row in node[1:]:
        delta = (delta[:, None] + edge).max(0) + row
        top = delta.max()
        total, delta = total + top, delta - top
    return total + float(delta.max())


def check(m: Long, code_path: str, length: int, limited: bool = False) -> dict[str, int]:
    """Compare the path of a sentence on these code paths, and return the code paths taken."""
    case = m.case(length, limited)
    with forced(code_path):
        path = m.scorer().viterbi(case.data, allowed=case.support, n_jobs=1)
        done = _core.path_counts()
    assert abs(case.best - case.score(path)) <= CLOSE
    return done


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(
    ("code_path", "labels", "name"),
    [
        ("sentence", 5, "chart"),
        ("alone,noted", 5, "noted"),
        ("alone,sought", 5, "sought"),
        ("noted,table", 5, "table"),
        ("alone,sought,layout", 40, "sought"),
        ("log", 5, "log"),
    ],
)
def test_best_paths(code_path: str, labels: int, name: str, level: str) -> None:
    """One sentence alone, sixteen in lanes with back pointers stored or recomputed, and double precision."""
    for length in LENGTHS if labels < 10 else LENGTHS[:-1]:
        assert name in check(model(labels), f"{code_path},{level}", length)


@pytest.mark.parametrize("code_path", ["sentence", "alone,noted", "alone,sought"])
def test_a_hundred_thousand_tokens(code_path: str) -> None:
    check(model(5), code_path, LONGEST)


@pytest.mark.parametrize("level", LEVELS)
def test_lists_of_edges(level: str) -> None:
    for length in (128, 129, 5_000):
        assert "sparse" in check(model(40, 0.05), f"sparse,{level}", length)


@pytest.mark.parametrize("level", LEVELS)
def test_allowed_labels(level: str) -> None:
    for length in LENGTHS:
        check(model(5), level, length, limited=True)


def test_code_paths_give_equal_labels() -> None:
    """All code paths subtract the same numbers, so paths are equal, also for ties of integers."""
    m = Long(7, whole=True)
    data = m.case(2_000).data
    every = (np.ones((1, 7), dtype=bool), np.zeros(2_000, dtype=np.uint32))
    found = {}
    for code_path in ("log", "noted", "sought", "sparse"):
        with forced(code_path):
            found[code_path] = m.scorer().viterbi(data, allowed=every, n_jobs=1)
            first = m.scorer().kbest(data, 2, n_jobs=1)[2][:2_000]
        np.testing.assert_array_equal(found[code_path], found["log"])
        np.testing.assert_array_equal(first, found["log"])


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(("code_path", "labels", "edges"), [("", 5, 1.0), ("sparse", 40, 0.05)])
def test_lists_of_paths(code_path: str, labels: int, edges: float, level: str) -> None:
    """Scores are those of their paths, descending, and each is as good as in double precision."""
    m = model(labels, edges)
    for length in (129, 5_000):
        case, found = m.case(length), []
        for each in ("log", f"{code_path},{level}"):
            with forced(each):
                counts, scores, labelled = m.scorer().kbest(case.data, 6, n_jobs=1)
            assert counts.tolist() == [6]
            assert (np.diff(scores) <= 0).all()
            for score, path in zip(scores, labelled.reshape(6, -1)):
                assert abs(score - case.score(path)) <= 1e-6
            found.append(scores)
        np.testing.assert_allclose(*found, rtol=0, atol=CLOSE)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(("m", "p"), [(1, 1), (2, 2), (2, 1)])
@pytest.mark.parametrize("code_path", ["", "broad"])
def test_searches_with_history(m: int, p: int, code_path: str, level: str) -> None:
    """Cells of m labels, exact for m >= p, match a double-precision search over pairs of labels."""
    L, settings = 5, LookbackWeights(m, p)
    far = np.random.default_rng(6).normal(0.3, 0.5, len(settings.terms(L))).astype(np.float32)
    history = settings.with_weights(far).native(L)
    table = far.reshape(L, L).astype(np.float64) if p == 2 else np.zeros((L, L))
    for length in (100, 129, 5_000):
        case = model(L).case(length)
        with forced(f"{code_path},{level}"):
            counts, scores, labels = history.kbest(model(L).scorer(), case.data, 2, n_jobs=1)
        y = labels[:length].astype(int)
        extra = float(np.sum(table[y[:-2], y[2:]], dtype=np.longdouble))
        assert counts.tolist() == [2]
        assert abs(scores[0] - case.score(y) - extra) <= 1e-6
        # delta over (label before, label): A[b, c] + F_2[a, c]
        delta, total = case.node[0][:, None] + case.edge + case.node[1][None, :], 0.0
        for row in case.node[2:]:
            moved = (delta[:, :, None] + table[:, None, :]).max(0) + case.edge + row
            top = moved.max()
            total, delta = total + top, moved - top
        assert abs(scores[0] - total - delta.max()) <= CLOSE


def beam(case: Case, width: int) -> float:
    """Return the score of the best path that a beam keeps, in double precision."""
    scores, last, total = case.node[0], np.arange(case.node.shape[1]), 0.0
    for row in case.node[1:]:
        reached = (scores[:, None] + case.edge[last] + row).ravel()
        kept = np.argsort(-reached, kind="stable")[:width]
        scores, last = reached[kept] - reached[kept[0]], kept % case.node.shape[1]
        total += reached[kept[0]]
    return total


def test_beams() -> None:
    """A beam finds the path of double precision for any length, and the score is that of the path."""
    nothing = LookbackWeights().with_weights(np.zeros(0, dtype=np.float32)).native(5)
    for length in (129, 1_500):
        case = model(5).case(length)
        _, scores, labels = nothing.kbest(model(5).scorer(), case.data, 1, beam=8, n_jobs=1)
        assert abs(scores[0] - case.score(labels)) <= 1e-6
        assert abs(scores[0] - beam(case, 8)) <= CLOSE


def test_taggers() -> None:
    """predict, the first of predict_kbest, and online training handle a long sentence."""
    rng = np.random.default_rng(8)
    X = [[f"w{i}" for i in rng.integers(30, size=15_000)]]
    Y = [[f"L{int(w[1:]) % 3 if rng.random() < 0.7 else rng.integers(3)}" for w in X[0]]]
    for tagger in (tw.CRF(features="S1", max_iter=5, l2=0.01), tw.Perceptron(features="S1", max_iter=1)):
        tagger.fit(X, Y)
        ((path, found), *_) = tagger.predict_kbest(X, 2)[0]
        with forced("log"):
            exact = tagger.predict_kbest(X, 1)[0][0][1]
        assert abs(found - exact) <= CLOSE * max(1.0, abs(exact) / 1e5)
        assert tagger.predict(X)[0] == path
