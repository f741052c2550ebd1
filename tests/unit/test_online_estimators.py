"""Online estimators: they learn, repeat to the bit, go on from a model, and rank paths."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import tagwise as tw
from tagwise.learners.costs import parse_cost

from ..corpora import X, Y
from ..names import named

LEARNERS = [
    tw.Perceptron(features="S2", epochs=10),
    tw.Perceptron(features="S2", epochs=10, average=False),
    tw.Perceptron(features="S2", epochs=30, mode="batch", average=False),
    tw.MIRA(features="S2", epochs=5, k=1),
    tw.MIRA(features="S2", epochs=5, k=4, C=1.0),
    tw.MIRA(features="S2", epochs=5, cost=lambda gold, guess: 2.0 * sum(a != b for a, b in zip(gold, guess))),
    tw.PassiveAggressive(features="S2", epochs=5, variant=2),
    tw.AROW(features="S2", epochs=5),
]


@pytest.mark.parametrize("tagger", LEARNERS, ids=named)
def test_learners_learn_and_repeat(tagger: tw.Tagger) -> None:
    first = tagger.fit(X, Y)
    assert first.predict(X) == Y
    weights = first.model_.scorer.weights
    np.testing.assert_array_equal(tagger.fit(X, Y).model_.scorer.weights, weights)
    assert tagger.history_[-1]["objective"] <= tagger.history_[0]["objective"]


def test_parameter_mixing_learns_too() -> None:
    assert tw.Perceptron(features="S2", epochs=10, parts=2).fit(X, Y).predict(X) == Y


def test_training_goes_on_from_a_model() -> None:
    first = tw.Perceptron(features="S2", epochs=3).fit(X, Y)
    again = tw.Perceptron(features="S2", epochs=1).fit(X, Y, warm_start=first)
    assert again.history_[0]["objective"] <= first.history_[0]["objective"]


def test_kbest_of_a_crf_are_its_most_probable_paths() -> None:
    tagger = tw.CRF(features="S2", l2=0.5, max_iter=20).fit(X, Y)
    sentence = [["the", "cat"]]
    best = tagger.predict_kbest(sentence, k=9, probability=True)[0]
    assert len(best) == 9
    assert sum(p for _, p in best) == pytest.approx(1.0, abs=1e-4)
    assert [p for _, p in best] == sorted((p for _, p in best), reverse=True)
    assert best[0][0] == tagger.predict(sentence)[0]
    paths = {tuple(labels) for labels, _ in best}
    assert paths == set(itertools.product(tagger.classes_, repeat=2))
    with pytest.raises(tw.ParameterError, match="k=0"):
        tagger.predict_kbest(sentence, k=0)


def test_costs_are_parsed_and_refused() -> None:
    assert parse_cost("precision_recall(0.25)") == ("precision_recall", [0.25])
    for bad in ("nonsense", "f1(a)", "accuracy(1)"):
        with pytest.raises(tw.ParameterError, match="cost"):
            parse_cost(bad)


def test_entity_costs_move_precision_and_recall() -> None:
    """The more a spurious entity costs beside a missed one, the fewer entities are found."""
    train, _, _ = tw.load_corpus("wnut17-ner")
    found = {}
    for alpha in (0.1, 0.9):
        tagger = tw.MIRA(features="S2", epochs=3, cost=f"precision_recall({alpha})").fit(train[:300])
        found[alpha] = sum(label != "O" for labels in tagger.predict(train[:300]) for label in labels)
    assert found[0.1] > found[0.9]
