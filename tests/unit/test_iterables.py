"""Every iterable argument may be a generator, which is read once and completely."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import tagwise as tw
from tagwise.estimators import regularization_path
from tagwise.evaluation import calibration

from ..corpora import X, Y


def once(rows: Any) -> Iterator[Iterator[Any]]:
    """Yield generators."""
    return (iter(row) for row in rows)


LISTS: dict[str, Callable[[Any], Any]] = {
    "generator of lists": iter,
    "generator of generators": once,
    "list of generators": lambda rows: [iter(row) for row in rows],
    "tuple of tuples": lambda rows: tuple(map(tuple, rows)),
    "map": lambda rows: map(list, rows),
    "array": lambda rows: np.array([*rows, None], dtype=object)[:-1],
}


def crf() -> tw.CRF:
    return tw.CRF(features="S2", max_iter=8, l2=0.1)


@pytest.mark.parametrize("form", LISTS)
def test_training_and_tagging_accept_generators(form: str) -> None:
    """`fit` with dev and weights, `partial_fit`, `predict` and `evaluate` give the results of lists."""
    made = LISTS[form]
    weight = [1.0 + i % 3 for i in range(len(X))]
    plain = crf().fit(X, Y, dev=X[:5], dev_y=Y[:5], sample_weight=weight)
    other = crf().fit(
        made(X), made(Y), dev=made(X[:5]), dev_y=made(Y[:5]), sample_weight=iter(weight), callbacks=iter(())
    )
    np.testing.assert_array_equal(other.model_.scorer.weights, plain.model_.scorer.weights)
    assert other.history_[-1]["dev_score"] == plain.history_[-1]["dev_score"]
    assert other.predict(made(X)) == plain.predict(X)
    assert other.predict_kbest(made(X), 2) == plain.predict_kbest(X, 2)
    assert other.score(made(X), made(Y)) == plain.score(X, Y)
    assert tw.evaluate(made(Y), made(plain.predict(X))) == tw.evaluate(Y, plain.predict(X))
    any_label = [[set(plain.classes_)] * len(x) for x in X]
    assert other.predict(X, allowed=made(any_label)) == plain.predict(X)
    online = tw.Perceptron(features="S2").partial_fit(made(X), made(Y)).partial_fit(made(X), made(Y))
    twice = tw.Perceptron(features="S2").partial_fit(X, Y).partial_fit(X, Y)
    np.testing.assert_array_equal(online.model_.scorer.weights, twice.model_.scorer.weights)


@pytest.mark.parametrize("form", LISTS)
def test_regularization_path_and_corpora_accept_generators(form: str) -> None:
    """`regularization_path` and `Corpus.from_lists`."""
    made = LISTS[form]
    found = regularization_path(crf(), made(X), y=made(Y), strengths=iter([1.0, 0.1]), refit=True)
    plain = regularization_path(crf(), X, y=Y, strengths=[1.0, 0.1], refit=True)
    assert [step.score for step in found] == [step.score for step in plain]
    dev = regularization_path(crf(), X, made(X), y=Y, dev_y=made(Y), strengths=[1.0, 0.1])
    assert [step.score for step in dev] == [
        s.score for s in regularization_path(crf(), X, X, y=Y, dev_y=Y, strengths=[1.0, 0.1])
    ]
    assert tw.Corpus.from_lists(made(X), made(Y)) == tw.Corpus.from_lists(X, Y)
    assert calibration(iter([0.9, 0.1]), iter([True, False])).count == (1, 1)


def test_lists_of_sentences_are_accepted_as_corpora() -> None:
    """It provides labels, columns and documents like a corpus."""
    corpus = tw.Corpus(
        [
            tw.Sentence({"word": x, "tag": y, "pos": list(y)}, "tag", doc="d" if i % 4 == 0 else None)
            for i, (x, y) in enumerate(zip(X, Y))
        ]
    )
    for tagger in (crf, lambda: tw.Perceptron(max_iter=2, lookback=tw.Lookback(1, 2, document=True))):
        whole, parts = tagger().fit(corpus), tagger().fit(list(corpus))
        np.testing.assert_array_equal(whole.model_.scorer.weights, parts.model_.scorer.weights)
        assert whole.model_.meta == parts.model_.meta
        assert parts.predict(list(corpus)) == whole.predict(corpus) == parts.predict(iter(corpus))
        assert parts.evaluate(list(corpus)) == whole.evaluate(corpus)
    assert crf().fit(iter(corpus), dev=list(corpus)).history_[-1]["dev_score"] is not None
    assert tw.evaluate(list(corpus), Y).accuracy == 1.0
    bare = [tw.Sentence({"word": x}) for x in X]
    with pytest.raises(tw.exceptions.CorpusError, match="has no label column"):
        crf().fit(bare)
    assert crf().fit(bare, Y).predict(bare) == crf().fit(X, Y).predict(X)
