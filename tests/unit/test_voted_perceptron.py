"""The voted perceptron: the model contains its voters, and models without voters raise an error."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tagwise as tw
from tagwise.base.exceptions import ModelFileError, ParameterError

from ..corpora import X, Y

TAGGER = tw.Perceptron(features="S2", max_iter=4, voters=4 * len(X)).fit(X, Y)
#: Sentences with words that do not occur in training, on which the voters differ.
STRANGE = [["the", "unknown", "barks"], ["a", "a", "a", "a"], ["Dog", "zzz", "the"], []]
DECODERS = ("viterbi", "pointwise")


def test_voted_weights_average_to_the_averaged_perceptron() -> None:
    assert TAGGER.predict(X) == Y
    plain = tw.Perceptron(features="S2", max_iter=4).fit(X, Y)
    np.testing.assert_array_equal(TAGGER.model_.scorer.weights, plain.model_.scorer.weights)
    assert TAGGER.history_ == [
        {**entry, "seconds": mine["seconds"]} for mine, entry in zip(TAGGER.history_, plain.history_)
    ]


def test_rules_and_allowed_labels_hold_for_every_voter() -> None:
    label = Y[0][0]
    allowed = [[label] * len(sentence) for sentence in STRANGE]
    for decoder in DECODERS:
        assert TAGGER.predict(STRANGE, allowed=allowed, decoder=decoder) == allowed
    rules = {"forbidden": [(a, b) for a in TAGGER.classes_ for b in TAGGER.classes_ if a != b]}
    for path in TAGGER.predict(STRANGE, constraints=rules):
        assert len(set(path)) <= 1


def test_voters_after_the_best_epoch_are_dropped() -> None:
    dev = [["barks", "the"]]
    tagger = tw.Perceptron(features="S2", max_iter=4, voters=4 * len(X), patience=1)
    tagger.fit(X, Y, dev=dev, dev_y=[[Y[0][0], Y[0][0]]])
    assert tagger.model_.arrays["voters.counts"].sum() == tagger.best_iteration_ * len(X)
    assert tagger.score(dev, [[Y[0][0], Y[0][0]]]) == tagger.history_[tagger.best_iteration_ - 1]["dev_score"]


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"kernel": "rbf"}, "kernel"),
        ({"lookback": (1, 2)}, "lookback"),
        ({"mode": "batch"}, "batch"),
        ({"parts": 2}, "parts"),
        ({"voters": 3}, "voters=3.*max_iter=4"),
    ],
)
def test_unsupported_combinations_are_rejected(params: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        tw.Perceptron(**{"max_iter": 4, "voters": 8, **params}).fit(X, Y)


def test_partial_fit_and_foreign_formats_are_rejected(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="voters=0"):
        copy.deepcopy(TAGGER).partial_fit(X, Y)
    with pytest.raises(ModelFileError, match="voters=0"):
        TAGGER.save(tmp_path / "other", format="crfsuite")


def test_files_with_inconsistent_voters_are_rejected(tmp_path: Path) -> None:
    from dataclasses import replace

    model = TAGGER.model_
    for name, change in (
        ("voters.weights", lambda a: a[:-1]),
        ("voters.weights", lambda a: np.full_like(a, 0x7FC00000)),
        ("voters.counts", lambda a: a * 0),
    ):
        path = tmp_path / "damaged.tagwise"
        replace(model, arrays={**model.arrays, name: change(model.arrays[name])}).save(path)
        with pytest.raises(ModelFileError, match="voters"):
            tw.load(path)
