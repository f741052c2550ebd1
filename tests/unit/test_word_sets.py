"""Words of a tag dictionary, looked up for whole corpora, compared with a Python dict."""

from __future__ import annotations

import pickle
import random
from typing import Any

import numpy as np
import pytest

import tagwise as tw
from tagwise import _core
from tagwise.corpus.sentence import Sentence
from tagwise.features.inputs import Inputs
from tagwise.scores.dictionary import TagDictionary


class Word(str):
    """A subclass of str."""


def test_lookup_equals_a_dict() -> None:
    rng = random.Random(0)
    letters = ["a", "b", "é", "語", "😀", "\ud800", "\x00", ""]
    pool = ["".join(rng.choices(letters, k=rng.randrange(4))) for _ in range(600)]
    of = {word: rng.randrange(1, 9) for word in pool[:200]}
    sets = np.ones((9, 3), dtype=np.bool_)
    dictionary = TagDictionary(sets, of)
    sentences: list[list[str]] = [rng.choices(pool, k=rng.randrange(9)) for _ in range(200)]
    wanted = [of.get(word, 0) for sentence in sentences for word in sentence]
    assert {0} < set(wanted)
    for given in (sentences, [tuple(s) for s in sentences], [[Word(w) for w in s] for s in sentences]):
        assert dictionary.support(given)[1].tolist() == wanted
    assert dictionary.support(iter(sentences))[1].tolist() == wanted
    again = pickle.loads(pickle.dumps(dictionary))
    assert again.of == of
    assert again.support(sentences)[1].tolist() == wanted


def test_empty_sets_and_tokens_that_are_not_strings() -> None:
    empty = TagDictionary(np.ones((1, 2), dtype=np.bool_), {})
    assert empty.support([["a"], [], ["b", "c"]])[1].tolist() == [0, 0, 0]
    assert _core.WordSets([b"a"], [1]).of([["a", 1, None, b"a"]]).tolist() == [1, 0, 0, 0]
    with pytest.raises(TypeError):
        _core.WordSets([b"a"], [1]).of([3])


COLUMNED = tw.Corpus(
    Sentence(dict(zip(("word", "kind", "label"), map(str.split, fields))), "label")
    for fields in (("a b é a", "p q p q", "X Y X X"), ("b c", "p p", "X Z"), ("", "", ""))
)


@pytest.mark.parametrize(
    ("given", "features", "on_the_way"),
    [
        (COLUMNED.tokens, "S1", True),
        ([tuple(s) for s in COLUMNED.tokens], "word[-1..1]", True),
        (COLUMNED, "kind[0]\nword[0]", True),
        (COLUMNED, "kind[0]", False),  # the words are not read by any feature
        (list(COLUMNED), "word[0]", False),
        (COLUMNED.tokens, lambda words: [[str(word)] for word in words], False),
    ],
)
def test_lookup_during_encoding_equals_a_second_pass(
    given: Any, features: Any, on_the_way: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lookup during encoding and in a second pass equal a dict and give equal labels. Unneeded passes are skipped."""
    tagger = tw.Perceptron(features=features, max_iter=2, dictionary=1).fit(given, COLUMNED.labels)
    model = tagger.model_
    assert model.dictionary is not None
    X = Inputs.of(given)
    model.encode(X)
    assert bool(X.word_ids) is on_the_way
    wanted = [model.dictionary.of.get(word, 0) for words in COLUMNED.tokens for word in words]
    assert set(wanted) > {0} or 0 not in wanted
    assert X.numbers(model.dictionary.words, "a test").tolist() == wanted
    other = _core.WordSets([b"b"], [7])
    assert X.numbers(other, "a test").tolist() == [7 * (w == "b") for words in COLUMNED.tokens for w in words]
    labels = tagger.predict(given)
    if on_the_way:
        monkeypatch.setattr(Inputs, "words", None)
        assert tagger.predict(given) == labels
        monkeypatch.undo()
        monkeypatch.setattr(Inputs, "numbers", lambda self, words, what: words.of(self.words(what)))
        assert tagger.predict(given) == labels


def test_missing_columns_are_rejected() -> None:
    template = _core.Template("word[0]", ["word"])
    with pytest.raises(ValueError, match="no column 1; the template has 1"):
        _core.encode_words(template, _core.Vocabulary(), [[["a"]]], _core.WordSets([], []), 1)


def zipf(n: int, labels: int, seed: int) -> tuple[list[list[str]], list[list[str]]]:
    """Return words with Zipf frequencies. Each has its own labels: one, two, or any."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        ranks = np.minimum(rng.zipf(1.3, size=rng.integers(0, 12)), 5000)
        X.append([f"{chr(97 + r % 26)}{r * 7919 % 10007:x}{r % 3}" for r in ranks])
        y.append([f"L{(r + rng.integers(1 + r % 3)) % labels}" for r in ranks])
    return X, y


@pytest.mark.parametrize("labels", [5, 20, 50, 70])
def test_dictionary_words_get_only_their_labels(labels: int) -> None:
    """One, two, four and more lanes of labels, with weights in a table, sums of runs, and neither.

    Compared with the path over all labels of every token in double precision.
    """
    X, y = zipf(300, labels, 2)
    tagger = tw.CRF(features="default", max_iter=5, dictionary=2, n_jobs=1).fit(X, y)
    dictionary = tagger.model_.dictionary
    assert dictionary is not None
    X, _ = zipf(900, labels, 3)
    found = {}
    for code_path in ("log", "", "avx2", "baseline", "single", "layout"):
        before = _core.force(code_path)
        try:
            found[code_path] = tagger.predict(X)
        finally:
            _core.force(before)
        assert found[code_path] == found["log"]
    for word, label in ((w, y) for words, path in zip(X, found[""]) for w, y in zip(words, path)):
        row = dictionary.of.get(word, 0)
        assert dictionary.sets[row, tagger.model_.labels.index(label)]
