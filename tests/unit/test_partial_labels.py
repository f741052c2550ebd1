"""Partial labels: sets and unknown labels in fit, from lists and from files."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

import tagwise as tw
from tagwise import _core
from tagwise.base.exceptions import CorpusError, ParameterError
from tagwise.dataset import encode, partial


def words(n: int, seed: int = 0) -> tuple[list[list[str]], list[list[str]]]:
    """Return sentences whose words determine their labels three times out of four."""
    rng = random.Random(seed)
    X, y = [], []
    for _ in range(n):
        labels = [rng.choice("ABC") for _ in range(rng.randint(1, 6))]
        X.append([f"{a if rng.random() < 0.75 else rng.choice('ABC')}{rng.randint(0, 4)}" for a in labels])
        y.append(labels)
    return X, y


def crf(**params: object) -> tw.CRF:
    return tw.CRF(**{"features": "S1", "l2": 0.1, "tol": 1e-7, "max_iter": 300, **params})


def test_singleton_label_sets_equal_plain_training() -> None:
    X, y = words(80)
    plain, sets = (
        crf(optimizer="lbfgs").fit(X, y),
        crf(optimizer="lbfgs").fit(X, [[{a} for a in s] for s in y]),
    )
    assert plain.classes_ == sets.classes_
    assert plain.n_features_ == sets.n_features_
    assert sets.objective_ == pytest.approx(plain.objective_, rel=1e-5)
    assert sets.predict(X) == plain.predict(X)


def test_layout_of_singleton_sets_is_the_plain_layout() -> None:
    X, y = words(30)
    X = [[[word, word[0]] for word in s] for s in X]
    vocabulary = _core.Vocabulary()
    data = _core.encode_attributes(vocabulary, X, X)
    labels = encode.collect_labels(y)
    support = partial.support_of(partial.parse(y), labels)
    mine = partial.layout_of(data, len(vocabulary), support, all_pairs=False, start_end=True)
    usual = _core.Layout.build(encode.with_labels(data, y, labels), len(vocabulary), len(labels))
    for name, array in usual.arrays().items():
        np.testing.assert_array_equal(mine.arrays()[name], array, err_msg=name)


def test_label_sets_create_features_and_unknown_labels_none() -> None:
    tagger = crf(start_end=False).fit([["a", "b", "c"]], [["A|B", "_", "C"]])  # "A|B" is one label here
    assert set(tagger.classes_) == {"A|B", "_", "C"}
    tagger = crf(start_end=False, partial=True).fit([["a", "b", "c"]], [["A|B", "_", "C"]])
    assert set(tagger.classes_) == {"A", "B", "C"}
    assert tagger.n_features_ == 3  # a-A, a-B and c-C, but nothing for b and therefore no label pair


def test_separator_and_unknown_mark_are_configurable(tmp_path: Path) -> None:
    file = tmp_path / "train.tsv"
    file.write_text("the\tD\ndog\tN/V\n\na\tD\ncat\t?\n\nsees\tV\n", encoding="utf-8")
    corpus = tw.read(file, "conll", columns=("word", "label"))
    tagger = crf(partial=tw.Partial(separator="/", unknown="?")).fit(corpus)
    assert set(tagger.classes_) == {"D", "N", "V"}
    tagger.save(tmp_path / "m")
    assert tw.load(tmp_path / "m").predict(corpus) == tagger.predict(corpus)


@pytest.mark.parametrize(
    ("params", "y", "error", "match"),
    [
        ({"loss": "exp"}, [[{"A", "B"}]], ParameterError, "loss"),
        ({"order": 2}, [[{"A", "B"}]], ParameterError, "order"),
        ({}, [[None]], CorpusError, r"sentence 0, token 0: the label is None\. .* partial=True"),
        ({"partial": True}, [[None]], CorpusError, "no token"),
        ({"partial": True}, [["A|"]], CorpusError, "empty part"),
        ({}, [[{"A"}, {"B"}]], CorpusError, "1 tokens and 2 labels"),
        ({}, [[[]]], CorpusError, "not a collection"),
        ({"optimizer": "sgd"}, [[{"A", "B"}]], ParameterError, "sgd"),
    ],
)
def test_unsupported_combinations_are_rejected(
    params: dict[str, object], y: object, error: type[Exception], match: str
) -> None:
    with pytest.raises(error, match=match):
        crf(**params).fit([["a"]], y)
