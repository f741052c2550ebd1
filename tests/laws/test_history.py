"""Tests of history, documents and beams against the reference implementation, and by enumeration of exact searches."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tagwise import _core

from . import constructors
from .corpora import Corpus, constraints, lists, random_corpus
from .online import corpus, native
from .reference import history, model
from .strategies import Problem, problems, wholes

Paths = list[list[tuple[float, tuple[int, ...]]]]


class Case:
    """A random corpus with words, documents and integer weights: sums are exact, with many ties."""

    def __init__(
        self,
        seed: int,
        labels: int,
        m: int,
        p: int,
        document: bool = False,
        tuples: bool = False,
        n: int = 12,
        longest: int = 6,
    ) -> None:
        rng = np.random.default_rng(seed)
        self.m, self.L = m, labels
        self.c: Corpus = random_corpus(seed, labels, n=n, longest=longest)
        self.w = rng.integers(-2, 3, len(self.c.layout)).astype(np.float32)
        self.scorer = _core.Scorer(self.c.layout, self.w)
        self.terms = _core.LookbackSpec(labels, m, p, document=document, tuples=tuples)
        self.far = rng.integers(-2, 3, len(self.terms)).astype(np.float32)
        self.offsets = self.c.data.offsets.astype(int)
        self.word = rng.integers(0, 4, self.offsets[-1]).astype(np.uint32)
        self.starts = np.unique(np.concatenate([[0], rng.integers(1, n, 3)])).astype(np.uint32)
        tables = self.far.astype(float).reshape(-1, labels)
        self.tables = {q: tables[(q - 2) * labels : (q - 1) * labels] for q in range(2, p + 1)}
        at = (p - 1) * labels
        self.repeated = tables[at : at + labels] if document else None
        at += labels * document
        self.tuples = {}
        for order in range(2, m + 1 if tuples else 0):
            self.tuples[order] = tables[at : at + labels**order].reshape([labels] * (order + 1))
            at += labels**order

    def native(self, k: int = 1, **more: Any) -> Paths:
        scorer = _core.HistoryScorer(self.terms, self.far)
        words = (self.word, self.starts) if self.repeated is not None else None

        class Bound:
            """Adapts the history scorer to `lists`, which calls a scorer's kbest."""

            @staticmethod
            def kbest(data: _core.Dataset, k: int, **options: Any) -> Any:
                return scorer.kbest(self.scorer, data, k, words=words, **options)

        return lists(Bound, self.c.data, k, **more)  # type: ignore[arg-type]

    def locals(self, answers: Paths) -> list[history.Local]:
        """Return the reference score of each sentence, given the labels of the sentences before it."""
        out = []
        for i, (s, (a, b)) in enumerate(zip(self.c.scores(self.w.astype(float)), pairwise(self.offsets))):
            begin = max(d for d in self.starts if d <= i)
            earlier = [
                (int(self.word[self.offsets[j] + t]), y)
                for j in range(begin, i)
                for t, y in enumerate(answers[j][0][1])
            ]
            words = self.word[a:b].tolist()
            out.append(history.local_score(s, self.tables, self.repeated, words, earlier, self.tuples))
        return out

    @property
    def lengths(self) -> list[int]:
        return np.diff(self.offsets).tolist()


@pytest.mark.parametrize("labels", [1, 2, 3, 17])
@pytest.mark.parametrize("k", [1, 4])
def test_history_of_one_label_equals_the_chain_decoder(labels: int, k: int) -> None:
    case = Case(labels, labels, 1, 1, n=30)
    assert case.native(k) == lists(case.scorer, case.c.data, k)


@pytest.mark.parametrize(("m", "p"), [(1, 2), (1, 3), (1, 5), (2, 2), (2, 4), (3, 3), (3, 5), (2, 1), (3, 1)])
@pytest.mark.parametrize("document", [False, True])
@pytest.mark.parametrize("k", [1, 3])
def test_search_matches_the_reference(m: int, p: int, document: bool, k: int) -> None:
    """Paths, scores and ties agree, with documents whose earlier sentences have their decoded labels."""
    for labels in (2, 3):
        case = Case(100 * m + 10 * p + labels, labels, m, p, document)
        found = case.native(k)
        for local, T, ranked in zip(case.locals(found), case.lengths, found):
            assert ranked == history.decode(local, T, labels, m, k)


@pytest.mark.parametrize("m", [2, 3])
@pytest.mark.parametrize("tuples", [False, True])
def test_search_is_exact_if_cells_cover_the_history(m: int, tuples: bool) -> None:
    """m = p is higher-order Viterbi, compared with an enumeration of all paths."""
    for seed in range(4):
        case = Case(seed, 3, m, m, tuples=tuples, longest=6)
        found = case.native()
        for local, T, ranked in zip(case.locals(found), case.lengths, found):
            assert ranked[0][0] == history.enumerate_best(local, T, 3)
            assert ranked[0][0] == history.total(local, ranked[0][1])


def test_many_labels() -> None:
    """More than one lane of labels."""
    case = Case(3, 18, 2, 3, document=True, longest=4, n=6)
    found = case.native(2)
    for local, T, ranked in zip(case.locals(found), case.lengths, found):
        assert ranked == history.decode(local, T, 18, 2, 2)


def test_endless_history_reuses_the_last_table() -> None:
    case = Case(5, 3, 1, 3, longest=8)
    terms = _core.LookbackSpec(3, 1, 3, endless=True)
    counts, scores, labels = _core.HistoryScorer(terms, case.far).kbest(case.scorer, case.c.data)
    assert counts.tolist() == [1] * len(case.lengths)
    for s, T, score, (a, b) in zip(
        case.c.scores(case.w.astype(float)), case.lengths, scores, pairwise(case.offsets)
    ):
        far = {q: case.tables[min(q, 3)] for q in range(2, T)}
        local = history.local_score(s, far)
        assert (score, tuple(labels[a:b].tolist())) == history.decode(local, T, 3, 1)[0]


@pytest.mark.parametrize("width", [1, 2, 7, 1000])
def test_beam_matches_the_reference(width: int) -> None:
    for document in (False, True):
        case = Case(width, 3, 1, 3, document, longest=5)
        k = min(width, 3)
        found = case.native(k, beam=width)
        for local, T, ranked in zip(case.locals(found), case.lengths, found):
            assert ranked == history.beam(local, T, 3, width)[:k]
            if width >= 3**T:
                assert ranked[0][0] == history.enumerate_best(local, T, 3)


def test_paths_satisfy_the_constraints() -> None:
    case = Case(11, 4, 2, 3, document=True)
    sets, of, forbidden = constraints(case.c, 2)
    case.scorer = _core.Scorer(case.c.layout, case.w, np.flatnonzero(forbidden.ravel()).astype(np.uint32))
    for ranked, (a, _) in zip(case.native(3, allowed=(sets, of)), pairwise(case.offsets)):
        for _, path in ranked:
            assert all(sets[of[a + t], y] for t, y in enumerate(path))
            assert not any(forbidden[y, z] for y, z in pairwise(path))


def test_results_do_not_depend_on_threads() -> None:
    case = Case(7, 5, 1, 4, document=True, n=200, longest=15)
    assert case.native(3, n_jobs=1) == case.native(3, n_jobs=3)


# -- learning ---------------------------------------------------------------------------------------------


def learned(
    p: Problem, m: int, far: int, document: bool, k: int, epochs: int = 3
) -> tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...]]:
    """Return last and averaged weights, by the core and by the reference implementation."""
    n, L = native(p), p.shape.labels
    words = [[str(int(x[t].sum()) % 3) for t in range(len(x))] for x in p.X]
    documents = [list(range(i, min(i + 2, len(p.X)))) for i in range(0, len(p.X), 2)]
    flat = np.array([int(w) for sentence in words for w in sentence], dtype=np.uint32)
    starts = np.array([d[0] for d in documents], dtype=np.uint32)
    learner = constructors.history_online(
        n.data,
        n.layout,
        _core.LookbackSpec(L, m, far, document=document),
        "mira" if k else "perceptron",
        words=(flat, starts) if document else None,
        shuffle=False,
        k=max(k, 1),
    )
    for _ in range(epochs):
        learner.epoch()
    mask = model.observed(list(zip(p.X, p.y)), p.shape)
    terms = history.Terms(L, far, document)
    slow = history.train(p.X, p.y, words, documents, p.shape, terms, m, epochs, mask, k)
    at = np.concatenate([n.at, p.shape.size + np.arange(terms.size)]).astype(int)
    return (learner.weights(averaged=False), learner.weights()), tuple(v[at] for v in slow)


@given(
    problems(values=wholes(), max_sentences=4, max_tokens=5),
    st.integers(1, 3),
    st.integers(1, 4),
    st.booleans(),
)
def test_perceptron_matches_the_reference(p: Problem, m: int, far: int, document: bool) -> None:
    (last, mean), (slow_last, slow_mean) = learned(p, m, far, document, 0)
    np.testing.assert_array_equal(last, slow_last)
    np.testing.assert_allclose(mean, slow_mean, atol=1e-9)


@pytest.mark.parametrize("kind", ["perceptron", "mira"])
def test_learner_without_history_equals_the_plain_learner(kind: str) -> None:
    p = corpus(3, 5, n=40)
    n = native(p)
    plain = n.online(kind, k=3, seed=4)
    ours = constructors.history_online(n.data, n.layout, _core.LookbackSpec(5), kind, k=3, seed=4)
    for _ in range(3):
        first, second = plain.epoch(), ours.epoch()
        assert {**first, "loss": 0} == {**second, "loss": 0}
        assert first["loss"] == pytest.approx(second["loss"])
    np.testing.assert_allclose(plain.weights(), ours.weights(), atol=1e-5)


def test_history_learns_second_order_dependencies() -> None:
    """The labels depend only on the label two back."""
    rng = np.random.default_rng(0)
    y = []
    for _ in range(60):
        path = rng.integers(0, 2, 2).tolist()
        for _ in range(8):
            path.append(1 - path[-2])
        y.append(tuple(path))
    X = [np.zeros((10, 3)) for _ in y]
    for x, path in zip(X, y):
        x[:, 0] = 1
        x[[0, 1], [1 + path[0], 1 + path[1]]] = 1
    n = native(Problem(model.Shape(3, 2), X, y))
    errors = {}
    for far in (1, 2):
        learner = constructors.history_online(n.data, n.layout, _core.LookbackSpec(2, 2, far), "perceptron")
        errors[far] = [learner.epoch()["wrong_tokens"] for _ in range(10)][-1]
    assert errors[2] == 0 < errors[1]


def test_invalid_specifications_are_rejected() -> None:
    with pytest.raises(ValueError, match="m=4"):
        _core.LookbackSpec(3, 4, 1)
    with pytest.raises(ValueError, match="too many cells"):
        _core.LookbackSpec(3000, 3, 1)
    case = Case(1, 3, 1, 2, document=True)
    with pytest.raises(ValueError, match="document features"):
        _core.HistoryScorer(case.terms, case.far).kbest(case.scorer, case.c.data, 1)
    case.starts = np.array([0, 99], dtype=np.uint32)
    with pytest.raises(ValueError, match="begins outside"):
        case.native()
    with pytest.raises(ValueError, match="weights"):
        _core.HistoryScorer(case.terms, case.far[1:])


@pytest.mark.parametrize(
    ("m", "p", "endless", "good"),
    [
        (0, 1, False, False), (1, 0, False, False), (1, 1, False, True), (3, 1000, False, True),
        (3, 100_000, False, True), (3, 2**28, False, False), (1, 1, True, False), (1, 2, True, True),
    ],
)  # fmt: skip
def test_limits_of_cells_and_distances(m: int, p: int, endless: bool, good: bool) -> None:
    """A cell has 1 to 3 labels. Any distance whose weights fit is valid. Endless history needs a shared table."""
    if good:
        assert len(_core.LookbackSpec(2, m, p, endless=endless)) == 4 * (p - 1)
    else:
        with pytest.raises(ValueError, match=f"m={m}" if m == 0 else f"p={p}"):
            _core.LookbackSpec(2, m, p, endless=endless)


@pytest.mark.parametrize(
    ("n", "starts", "match"),
    [
        (0, [], None), (1, [], "begins outside the 1 sentences"), (2, [], "begins outside the 2 sentences"),
        (1, [0], None), (1, [1], "begin at 0"), (2, [0, 1], None), (2, [0, 2], "begins outside the 2 sentences"),
        (2, [0, 0], "ascending"), (2, [0, 1, 1], "ascending"),
    ],
)  # fmt: skip
def test_document_starts_are_checked(n: int, starts: list[int], match: str | None) -> None:
    """The first document starts at the first sentence, the others at later existing ones."""
    case = Case(1, 3, 1, 2, document=True)
    data = _core.encode_attributes(_core.Vocabulary(), [[["a"], ["b"]]] * n)
    words = (np.zeros(2 * n, dtype=np.uint32), np.array(starts, dtype=np.uint32))
    search = _core.HistoryScorer(case.terms, case.far)
    if match is None:
        assert search.kbest(case.scorer, data, 1, words=words)[0].tolist() == [1] * n
    else:
        with pytest.raises(ValueError, match=match):
            search.kbest(case.scorer, data, 1, words=words)
