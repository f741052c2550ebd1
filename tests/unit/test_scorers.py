"""Scorers: their values are those of scikit-learn, and its searches accept them."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest

import tagwise as tw

sklearn = pytest.importorskip("sklearn")

from sklearn.metrics import accuracy_score, f1_score  # noqa: E402
from sklearn.model_selection import GridSearchCV  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import FunctionTransformer  # noqa: E402

X = [
    ["the", "cat", "sleeps"],
    ["a", "dog", "barks"],
    ["the", "dog"],
    ["cats", "sleep"],
    ["a", "cat", "sleeps"],
]
Y = [["DT", "NN", "VB"], ["DT", "NN", "VB"], ["DT", "NN"], ["NN", "VB"], ["DT", "NN", "VB"]]
GOLD = [["DT", "NN", "VB"], ["DT", "NN", "NN"], ["DT", "NN"], ["NN", "NN"], ["VB", "NN", "VB"]]
SCORERS = (
    tw.scorers.accuracy,
    tw.scorers.f1,
    tw.scorers.f1_macro,
    tw.scorers.f1_weighted,
    tw.scorers.sequence_accuracy,
)


def lower(sentences: Any) -> list[list[str]]:
    """Return sentences in lower case."""
    return [[word.lower() for word in (s.tokens if isinstance(s, tw.Sentence) else s)] for s in sentences]


def test_scores_of_labels_equal_those_of_scikit_learn() -> None:
    tagger = tw.CRF(features="S1", max_iter=10).fit(X, Y)
    gold, guess = (list(itertools.chain(*y)) for y in (GOLD, tagger.predict(X)))
    assert tw.scorers.accuracy(tagger, X, GOLD) == pytest.approx(accuracy_score(gold, guess))
    assert tw.scorers.f1(tagger, X, GOLD) == pytest.approx(f1_score(gold, guess, average="micro"))
    assert tw.scorers.f1_macro(tagger, X, GOLD) == pytest.approx(f1_score(gold, guess, average="macro"))
    weighted = f1_score(gold, guess, average="weighted")
    assert tw.scorers.f1_weighted(tagger, X, GOLD) == pytest.approx(weighted)
    right = [a == b for a, b in zip(GOLD, tagger.predict(X))]
    assert tw.scorers.sequence_accuracy(tagger, X, GOLD) == pytest.approx(sum(right) / len(right))
    assert len({scorer(tagger, X, GOLD) for scorer in SCORERS}) == 4  # accuracy equals the micro average


def test_searches_accept_scorers() -> None:
    """A search refits with the best value of the named scorer, and reports all of them."""
    scoring = {scorer.__name__: scorer for scorer in SCORERS}
    grid = GridSearchCV(
        tw.CRF(features="S1", max_iter=3), {"l2": [0.1, 10.0]}, scoring=scoring, refit="f1_macro", cv=2
    ).fit(X, Y)
    for name in scoring:
        assert (
            (grid.cv_results_[f"mean_test_{name}"] >= 0) & (grid.cv_results_[f"mean_test_{name}"] <= 1)
        ).all()
    assert grid.best_score_ == max(grid.cv_results_["mean_test_f1_macro"])


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("scorer", SCORERS, ids=lambda one: one.__name__)
def test_scorers_of_pipelines_and_searches_are_those_of_their_tagger(scorer: Any) -> None:
    """Spans are counted if the tagger was trained on spans, whatever the labels of the call look like."""
    words = [["In", "Oslo"], ["To", "Rome"], ["At", "Bonn"], ["Big", "Cat"]]
    spans = [["O", "B-LOC"], ["O", "B-LOC"], ["O", "B-LOC"], ["O", "O"]]
    pipe = make_pipeline(FunctionTransformer(lower), tw.CRF(features="S1", max_iter=5))
    grid = GridSearchCV(pipe, {"crf__l2": [0.1, 1.0]}, scoring=scorer, cv=2).fit(words, spans)
    assert math.isfinite(grid.best_score_)
    tagger = grid.best_estimator_[-1]
    for gold in (spans, [["O", "O"] for _ in words]):
        expected = scorer(tagger, lower(words), gold)
        assert scorer(grid, words, gold) == scorer(grid.best_estimator_, words, gold) == expected
    assert scorer(grid, tw.Corpus.from_lists(lower(words), spans)) == scorer(tagger, lower(words), spans)


def test_scorers_of_pipelines_accept_integer_labels() -> None:
    pipe = make_pipeline(FunctionTransformer(lower), tw.CRF(features="S1", max_iter=5))
    pipe.fit(X, [list(range(len(words))) for words in X])
    assert tw.scorers.accuracy(pipe, X, [list(range(len(words))) for words in X]) == 1.0
