"""Templates that learn which words are frequent, and the feature sets `pos` and `ner` of the online paper."""

from __future__ import annotations

import pickle
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tagwise as tw
from tagwise._core import Template
from tagwise.base.exceptions import CorpusError, TemplateError
from tagwise.features import Recipe, recipe_for, resolve

SENTENCES = st.lists(st.lists(st.sampled_from(["a", "A", "b", "B", "ccc", "C", ""]), max_size=6), max_size=8)


@given(SENTENCES, SENTENCES, st.integers(1, 4))
def test_words_below_the_count_are_rare(train: list[list[str]], test: list[list[str]], least: int) -> None:
    recipe = resolve(f"word[0].is_rare({least})?\nword[-1].lower.is_frequent({least})?").learned(train)
    exact = Counter(word for sentence in train for word in sentence)
    lower = Counter(word.lower() for sentence in train for word in sentence)
    for sentence in test:
        expected = []
        for t, word in enumerate(sentence):
            row = [f"word[0].is_rare({least})?"] if exact[word] < least else []
            if t > 0 and lower[sentence[t - 1].lower()] >= least:
                row.append(f"word[-1].lower.is_frequent({least})?")
            expected.append(row)
        assert recipe.render(sentence) == expected
        assert pickle.loads(pickle.dumps(recipe)).render(sentence) == expected
        assert Recipe.from_json(recipe.to_json()).render(sentence) == expected


def test_missing_values_are_neither_rare_nor_frequent() -> None:
    """A word too short for its suffix has no value, so it is neither rare nor frequent."""
    recipe = resolve("word[0].suffix(3).is_rare(2)?").learned([["walking", "sing", "is"]])
    assert recipe.lists == (("ing",),)
    assert recipe.render(["ring", "us", "bang"]) == [[], [], ["word[0].suffix(3).is_rare(2)?"]]


def test_word_lists_are_learnt_once_and_before_use() -> None:
    recipe = resolve("pos")
    with pytest.raises(TemplateError, match="fit a tagger"):
        recipe.render(["a"])
    first = recipe.learned([["a", "a", "a"]])
    assert first.learned([["b", "b", "b"]]) is first
    assert recipe.lists is None
    assert resolve("S2").learned([["a"]]).lists is None
    with pytest.raises(TemplateError, match="1 lists of frequent texts, 2 are given"):
        Template("word[0].is_rare(3)?", ["word"], [["a"], ["b"]])


def test_pos_features_match_table_1() -> None:
    train = [["The", "U.S.", "cats"]] * 3 + [["rare", "rare"]]
    recipe = resolve("pos").learned(train)
    assert recipe.render(["The", "cats", "rare", "running", "1,000.5", "IBM"]) == [
        ["word[0]=The", "word[0].is_capitalized?"],
        ["word[0]=cats", 'word[0].ends_with("s")?'],
        ["word[0]=rare", "word[0].is_rare(3)?"],
        ["word[0]=running", "word[0].is_rare(3)?", 'word[0].ends_with("ing")?'],
        ["word[0]=1,000.5", "word[0].is_rare(3)?", "word[0].is_number?"],
        ["word[0]=IBM", "word[0].is_rare(3)?", "word[0].is_upper?", "word[0].is_capitalized?"],
    ]


def test_ner_features_match_table_4() -> None:
    """Every row of the table, at the one token that shows all of them."""
    recipe = resolve("ner", ["word", "pos"])
    words, tags = ["(", "Monday", ")"], ["(", "NNP", ")"]
    assert sorted(recipe.render({"word": words, "pos": tags})[1]) == sorted(
        [
            *["word[-1]=(", "word[0]=Monday", "word[1]=)"],
            *["pos[-1]=(", "pos[0]=NNP", "pos[1]=)"],
            "pos[0]=NNP & word[0]=Monday",
            "pos[-1]=( & word[0]=Monday",
            "pos[-1]=( & pos[0]=NNP & word[0]=Monday",
            *["word[-1].shape=(", "word[0].shape=Aaaaaa", "word[1].shape=)"],
            "word[-1].shape=( & word[0]=Monday",
            "word[0].is_capitalized?",
            "word[0].longer_than(4)?",
            "day",
            *["word[0].prefix(3)=Mon", "word[0].suffix(3)=day"],
            "bracketed",
        ]
    )
    first, _, last = recipe.render({"word": ["Mr.", "SMITHS", "1996"], "pos": ["NNP"] * 3})
    assert {"first", "title[0]", "word[1].is_upper?"} <= set(first)
    assert {"word[-1].is_upper?", "word[0].is_digit?"} <= set(last)
    middle = recipe.render({"word": ['"', "May", '"'], "pos": ["x"] * 3})[1]
    assert {"quoted", "month"} <= set(middle)
    middle = recipe.render({"word": ["Bank", "of", "England"], "pos": ["x"] * 3})[1]
    assert "word[-1].is_capitalized? & word[1].is_capitalized?" in middle
    assert "word[0].is_lower?" in middle


def test_ner_uses_the_tag_column_if_present() -> None:
    assert resolve("ner", ["form", "lemma", "upos"]).columns == ("form", "upos")
    assert resolve("ner", ["word", "tags of mine", "chunk"]).columns == ("word", "tags of mine")
    assert resolve("ner", ["word"]).columns == ("word",)
    with pytest.raises(CorpusError, match="only tokens"):
        resolve("ner", ["word", "pos"]).render(["a"])
    with pytest.raises(TemplateError, match="write a template"):
        resolve("ner(window=2)")


X = [["the", "cat", "runs"], ["the", "dog", "runs"], ["the", "cow", "sings"]]
Y = [["D", "N", "V"]] * 3


def test_a_model_keeps_its_frequent_words(tmp_path: Path) -> None:
    tagger = tw.Perceptron(features="pos", max_iter=5).fit(X, Y)
    assert tagger.model_.recipe.lists == (("the",),)
    test = [["the", "yak", "eats"], ["runs"]]
    expected = tagger.predict_kbest(test, k=3)
    tagger.save(tmp_path / "model")
    again = tw.load(tmp_path / "model").model_
    assert again.recipe == tagger.model_.recipe
    for model in (again, pickle.loads(pickle.dumps(again))):
        assert model.kbest(test, 3) == expected
        # Sentence by sentence, as in a stream: rarity does not depend on the other sentences.
        assert [model.kbest([sentence], 3)[0] for sentence in test] == expected
    # A new word only has its rarity, like a rare training word without its word feature.
    assert "word[0].is_rare(3)?" in again.recipe.render(["yak"])[0]


def test_frequent_words_are_learnt_from_a_corpus() -> None:
    train, _, _ = tw.load_corpus("ewt-pos")
    (frequent,) = recipe_for("pos", train).learned(train).lists or ((),)
    assert {"the", "The", "Bush"} <= set(frequent)
    assert len(frequent) < len({word for sentence in train for word in sentence.fields["word"]})
