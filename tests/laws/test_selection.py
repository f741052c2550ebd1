"""Tests of stopping and model selection through the estimators: objectives and dev scores determine the kept model."""

from __future__ import annotations

import math
from typing import Any

import pytest

import tagwise as tw
from tagwise.base.parameters import parameters_of
from tagwise.estimators import LEARNERS

X = [["a", "b", "a"], ["b", "a"], ["c", "a", "b"], ["b", "c"], ["a"], ["c", "c", "b"]]
Y = [["x", "y", "y"], ["y", "x"], ["x", "x", "y"], ["x", "x"], ["y"], ["y", "x", "y"]]


CHUNKS = [["B-p", "I-p", "O", "O"], ["O", "B-l"], ["O", "O", "O"]]
#: Guesses, F1 over chunks and accuracy over tokens, by hand: three tokens in chunks and nine in all.
GUESSES: list[tuple[list[list[str]], float, float]] = [
    (CHUNKS, 1.0, 1.0),
    ([["O", "O", "O", "O"], ["O", "O"], ["O", "O", "O"]], 0.0, 6 / 9),
    ([["B-p", "O", "O", "O"], ["O", "B-l"], ["O", "O", "O"]], 0.5, 8 / 9),
    ([["B-p", "I-p", "O", "O"], ["O", "O"], ["O", "B-l", "O"]], 0.5, 7 / 9),
    ([["B-p", "I-p", "O", "O"], ["O", "O"], ["O", "O", "O"]], 2 / 3, 8 / 9),
]


@pytest.mark.parametrize("chunked", [True, False])
@pytest.mark.parametrize("learner", ["crf", "perceptron", "memm", "boosting", "hmm", "hmsvm"])
def test_dev_score_is_f1_for_chunks_and_accuracy_otherwise(learner: str, chunked: bool) -> None:
    """Dev scores count chunks if the labels are chunks, else tokens."""
    plain = {"B-p": "p", "I-p": "q", "B-l": "r", "O": "o"}

    def written(labels: list[list[str]]) -> list[list[str]]:
        return labels if chunked else [[plain[y] for y in path] for path in labels]

    names = {"B-p": "bp", "I-p": "ip", "B-l": "bl", "O": "out"}
    words = [[names[y]] for y in names for _ in range(4)]
    options: dict[str, Any] = {"features": "S1", "start_end": False}
    options |= {"overlapping": True} if learner == "hmm" else {}
    for guess, f1, accuracy in GUESSES:
        # Each word has one label and is alone in its sentence, so dev's words determine the guess.
        dev = [[names[y] for y in path] for path in guess]
        tagger = LEARNERS[learner](**options)
        tagger.fit(words, written([[y] for y in names for _ in range(4)]), dev=dev, dev_y=written(CHUNKS))
        assert tagger.predict(dev) == written(guess)
        score = f1 if chunked else accuracy
        assert max(entry["dev_score"] for entry in tagger.history_) == pytest.approx(score)
        assert tagger.history_[-1]["dev_score"] == pytest.approx(score)
        assert tagger.model_.meta["metrics"]["dev_score"] == pytest.approx(score)
        assert tagger.score(dev, written(CHUNKS)) == pytest.approx(score)


def ambiguous() -> tuple[list[list[str]], list[list[str]]]:
    """Return dev sentences on which the score rises and falls during training."""
    return [["a", "c"], ["b", "b", "c"], ["c", "a"]], [["x", "y"], ["y", "x", "x"], ["x", "y"]]


@pytest.mark.parametrize("learner", ["crf", "memm", "perceptron", "mira", "pa", "arow", "hmsvm", "boosting"])
def test_model_is_the_best_iterate(learner: str) -> None:
    """With dev the model predicts as in the first of its best iterations, without dev as in its last."""
    dev, dev_y = ambiguous()
    options: dict[str, Any] = {"features": "S1"}
    kind = LEARNERS[learner]
    for name, value in {"max_iter": 12, "every": 1}.items():
        options |= {name: value} if name in parameters_of(kind) else {}
    options |= {"tol": 0.0} if "tol" in parameters_of(kind) else {}
    options |= {"patience": 0}
    tagger = kind(**options).fit(X, Y, dev=dev, dev_y=dev_y)
    scores = [entry["dev_score"] for entry in tagger.history_]
    first = scores.index(max(scores)) + 1
    assert tagger.best_iteration_ == first
    assert tagger.score(dev, dev_y) == scores[first - 1]
    assert tagger.objective_ == tagger.history_[first - 1]["objective"]
    short = kind(**{**options, "max_iter": first}).fit(X, Y)
    assert short.predict_kbest(X + dev, 3) == tagger.predict_kbest(X + dev, 3)
    assert tagger.model_.meta["metrics"]["best_iteration"] == first
    assert tagger.model_.meta["metrics"]["iterations"] == len(scores)
    assert tagger.model_.meta["metrics"]["stopped"] == tagger.stopped_


# -- boosting ends at the level of rounding ---------------------------------------------------------------


@pytest.mark.parametrize("scale", [1.0, 1000.0])
@pytest.mark.parametrize("options", [{}, {"bound": "loose"}, {"step": "line_search"}], ids=str)
def test_boosting_stops_at_rounding_level(options: dict[str, Any], scale: float) -> None:
    """If all is learnt, rounds continue until the loss is 1e-12 of the sentences' weight, and not beyond."""
    words, labels = [["a", "b"], ["b"], ["a"]], [["x", "y"], ["y"], ["x"]]
    paper = {"features_per_round": 1, "every": 1, "epsilon": 0.0, "max_step": 2.0}
    tagger = tw.Boosting(features="S1", max_iter=3000, **paper, **options)
    tagger.fit(words, labels, sample_weight=[scale] * 3)
    assert tagger.stopped_ == "no feature lowers the loss any further"
    level = math.log(1e-12 * 3 * scale)
    losses = [entry["objective"] for entry in tagger.history_]
    assert 10 < len(losses) < 300
    assert losses[-1] <= level < losses[-2]
