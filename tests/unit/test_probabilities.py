"""Learners without probabilities refuse every call that would return some, and the error names an alternative."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest

import tagwise as tw
from tagwise.apps.annotate.why import why
from tagwise.corpus.sentence import Sentence
from tagwise.estimators import LEARNERS, has_probabilities

X = [["John", "Smith", "sleeps"], ["Mary", "sleeps"]]
Y = [["B-PER", "I-PER", "O"], ["B-PER", "O"]]
WITH = ("crf", "hmm", "memm")
METHODS: dict[str, Callable[[tw.Tagger], Any]] = {
    "predict_marginals": lambda t: t.predict_marginals(X),
    "predict_confidence": lambda t: t.predict_confidence(X),
    "predict_kbest": lambda t: t.predict_kbest(X, 2, probability=True),
    "predict": lambda t: t.predict(X, min_probability=0.5),
    "evaluate": lambda t: t.evaluate(X, Y, min_probability=0.5),
    "choose_threshold": lambda t: t.choose_threshold(X, Y),
    "sequence_probability": lambda t: t.sequence_probability(X, Y),
    "chunk_probability": lambda t: t.chunk_probability(X, [[("PER", 0, 2)], []]),
}


@functools.cache
def fitted(name: str) -> tw.Tagger:
    return LEARNERS[name](features="S1").fit(X, Y)


@pytest.mark.parametrize("name", LEARNERS)
def test_only_probabilistic_learners_return_probabilities(name: str) -> None:
    """The others raise an error that names the learner and those with probabilities."""
    tagger = fitted(name)
    assert tagger.probabilistic is (name in WITH) is has_probabilities(tagger.model_)
    named = ", ".join(sorted(kind.__name__ for kind in LEARNERS.values() if kind.probabilistic))
    message = (
        f"the scores of {name} are not probabilities. Use predict_kbest for scores, or train a learner with"
    )
    for method, call in METHODS.items():
        if name in WITH:
            assert call(tagger) is not None, method
            continue
        with pytest.raises(tw.exceptions.ParameterError, match=message) as caught:
            call(tagger)
        assert str(caught.value).endswith(f"train a learner with probabilities ({named})"), method


@pytest.mark.parametrize("name", ["mira", "crf"])
def test_labelling_page_shows_scores_and_probabilities(name: str) -> None:
    """Differences of scores always, shares of the probability if the learner has probabilities."""
    sentence = Sentence({"word": X[0]})
    found = why(fitted(name).model_, sentence, 0, kind="spans", labelled={}, sentences=[sentence])
    sure = name in WITH
    assert all(one["behind"] >= 0.0 for one in found["readings"])
    assert all((one["share"] is not None) is sure for one in found["readings"])
    assert found["decision"] is not None
