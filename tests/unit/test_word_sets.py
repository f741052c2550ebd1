"""Words of a tag dictionary, looked up for whole corpora: what a Python dict says of each."""

from __future__ import annotations

import pickle
import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tagwise as tw
from tagwise import _core
from tagwise.corpus.sentence import Sentence
from tagwise.decoding import paths
from tagwise.decoding.plan import settles
from tagwise.features.inputs import Inputs
from tagwise.scores.constraints import Constraints
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


def zipf(n: int, labels: int, seed: int) -> tuple[list[list[str]], list[list[str]]]:
    """Words of which a few are frequent, each with labels of its own: one, two, or any."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        ranks = np.minimum(rng.zipf(1.3, size=rng.integers(0, 12)), 5000)
        X.append([f"{chr(97 + r % 26)}{r * 7919 % 10007:x}{r % 3}" for r in ranks])
        y.append([f"L{(r + rng.integers(1 + r % 3)) % labels}" for r in ranks])
    return X, y


# Rules that look at one token, and at others; datasets of rows, and of runs (4,000 tokens and more).
@pytest.mark.parametrize("features", ["S2", "default"])
@pytest.mark.parametrize("n", [60, 900])
def test_tokens_with_one_label_need_no_attributes(features: str, n: int) -> None:
    """They have none where the best path is asked for, the others have all of theirs, and the path is the same."""
    X, y = zipf(300, 20, 0)
    model = tw.Perceptron(features=features, epochs=2, dictionary=2).fit(X, y).model_
    assert model.dictionary is not None
    settles_a_label = {
        word for word, row in model.dictionary.of.items() if model.dictionary.sets[row].sum() == 1
    }
    X, _ = zipf(n, 20, 1)
    words = [word for sentence in X for word in sentence]
    assert (len(words) > 4000) is (n == 900)
    ptr, ids, _ = model.encode(X, 1).node()
    rows = [ids[a:b].tolist() for a, b in zip(ptr.tolist(), ptr.tolist()[1:])]
    wanted = [[] if word in settles_a_label else row for word, row in zip(words, rows)]
    assert 0.1 < sum(map(bool, wanted)) / len(rows) < 0.9
    for threads in (1, 2):
        ptr, ids, _ = model.encode(X, threads, settled=False).node()
        assert [ids[a:b].tolist() for a, b in zip(ptr.tolist(), ptr.tolist()[1:])] == wanted
    inputs = Inputs.of(X)
    path = paths.best(model.scoring, inputs, model.encode(inputs))
    assert [y for labels in model.predict(X) for y in labels] == [model.labels[y] for y in path]


@pytest.mark.parametrize("labels", [5, 20, 50, 70])
def test_few_labels_by_themselves_are_all_labels_side_by_side(labels: int) -> None:
    """One lane of labels, two, four and more; weights in a table, sums of runs, and neither."""
    X, y = zipf(300, labels, 2)
    tagger = tw.CRF(features="default", max_iter=5, dictionary=2, n_jobs=1).fit(X, y)
    X, _ = zipf(900, labels, 3)
    found = {}
    for ways in ("broad", "narrow", "narrow,avx2", "narrow,baseline", "narrow,single", "narrow,layout", ""):
        before = _core.force(ways)
        try:
            _core.taken()
            found[ways] = tagger.predict(X)
            taken = _core.taken()
        finally:
            _core.force(before)
        if "narrow" in ways:
            assert taken["narrow"] >= sum(map(bool, X))
        assert found[ways] == found["broad"]


def test_what_an_answer_needs_attributes_for() -> None:
    """Rules that could set the dictionary aside, local models and labels further back have all of them."""
    X, y = zipf(60, 5, 4)
    free = tw.Perceptron(features="S1", epochs=1, dictionary=1).fit(X, y).model_.scoring
    assert settles(free)
    local = tw.MEMM(features="S1", max_iter=2).fit(X, y).model_.scoring
    assert not settles(replace(local, dictionary=free.dictionary))
    assert not settles(replace(free, dictionary=None))
    for rule in ({"forbidden": [("L0", "L1")]}, {"forbidden": [(None, "L1")]}, {"once": ["L1"]}):
        assert not settles(replace(free, constraints=Constraints.parse(rule)))
    further = tw.Perceptron(features="S1", epochs=1, dictionary=1, history=(2, 2)).fit(X, y).model_.scoring
    assert not settles(further)
