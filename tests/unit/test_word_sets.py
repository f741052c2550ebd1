"""Words of a tag dictionary, looked up for whole corpora: what a Python dict says of each."""

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
from tagwise.scores.dictionary import Dictionary


class Word(str):
    """A string of another class."""


def test_every_token_has_what_a_dict_says() -> None:
    rng = random.Random(0)
    letters = ["a", "b", "é", "語", "😀", "\ud800", "\x00", ""]
    pool = ["".join(rng.choices(letters, k=rng.randrange(4))) for _ in range(600)]
    of = {word: rng.randrange(1, 9) for word in pool[:200]}
    sets = np.ones((9, 3), dtype=np.bool_)
    dictionary = Dictionary(sets, of)
    sentences: list[list[str]] = [rng.choices(pool, k=rng.randrange(9)) for _ in range(200)]
    wanted = [of.get(word, 0) for sentence in sentences for word in sentence]
    assert {0} < set(wanted)
    for given in (sentences, [tuple(s) for s in sentences], [[Word(w) for w in s] for s in sentences]):
        assert dictionary.support(given)[1].tolist() == wanted
    assert dictionary.support(iter(sentences))[1].tolist() == wanted
    again = pickle.loads(pickle.dumps(dictionary))
    assert again.of == of
    assert again.support(sentences)[1].tolist() == wanted


def test_none_and_what_is_no_word() -> None:
    empty = Dictionary(np.ones((1, 2), dtype=np.bool_), {})
    assert empty.support([["a"], [], ["b", "c"]])[1].tolist() == [0, 0, 0]
    assert _core.WordSets([b"a"], [1]).of([["a", 1, None, b"a"]]).tolist() == [1, 0, 0, 0]
    with pytest.raises(TypeError):
        _core.WordSets([b"a"], [1]).of([3])


def test_a_token_with_one_label_is_not_scored_and_the_path_is_the_best_one() -> None:
    """Against all paths that the dictionary allows, by their scores in k-best lists."""
    words, labels = ["a", "b", "c", "d"], ["X", "Y", "Z"]
    rng = random.Random(1)
    X = [rng.choices(words, k=rng.randrange(1, 6)) for _ in range(40)]
    Y = [["X" if w == "a" else rng.choice(labels[: 2 if w == "b" else 3]) for w in s] for s in X]
    tagger = tw.Perceptron(features="S1", epochs=3, dictionary=1).fit(X, Y)
    every = tagger.predict_kbest(X, 3**5)
    for sentence, path, ranked in zip(X, tagger.predict(X), every):
        assert all(y == "X" for w, y in zip(sentence, path) if w == "a")
        scores = {tuple(labels_): score for labels_, score in ranked}
        assert scores[tuple(path)] == max(scores.values())


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
        (COLUMNED, "kind[0]", False),  # the words are read nowhere else
        (list(COLUMNED), "word[0]", False),
        (COLUMNED.tokens, lambda words: [[str(word)] for word in words], False),
    ],
)
def test_words_are_looked_up_while_features_are_made(
    given: Any, features: Any, on_the_way: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Either way a token has what a dict says, and its labels are the same; the second walk is not taken in vain."""
    tagger = tw.Perceptron(features=features, epochs=2, dictionary=1).fit(given, COLUMNED.labels)
    model = tagger.model_
    assert model.dictionary is not None
    X = Inputs.of(given)
    model.encode(X)
    assert bool(X.noted) is on_the_way
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


def test_a_column_that_is_not_there() -> None:
    template = _core.Template("word[0]", ["word"])
    with pytest.raises(ValueError, match="no column 1; the template has 1"):
        _core.encode_words(template, _core.Vocabulary(), [[["a"]]], _core.WordSets([], []), 1)
