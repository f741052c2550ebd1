"""Named sets, recipes, and accepted types of X."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tagwise as tw
from tagwise._core import Vocabulary
from tagwise.base.exceptions import CorpusError, ParameterError, TemplateError
from tagwise.base.imports import Functions
from tagwise.features import Recipe, columns_of, kind_of, recipe_for, resolve

CORPUS = tw.Corpus(
    tw.Sentence({"word": word, "pos": pos, "label": label}, "label")
    for word, pos, label in (
        (["Mr.", "Smith-Jones", "RAN"], ["NNP", "NNP", "VBD"], ["O", "B", "O"]),
        (["2010"], ["CD"], ["O"]),
    )
)


def shouting(sentence: Sequence[str]) -> list[dict[str, Any]]:
    return [{"upper": token.isupper(), "length": len(token)} for token in sentence]


# --- named sets ---------------------------------------------------------------------------------------------


def test_s1_and_s2_match_the_paper() -> None:
    """math, section 10: word, last 1-3 letters, class of the first, capital and dot, all caps, hyphen."""
    assert resolve("S1").render(["U.S.-led"]) == [["word[0]=U.S.-led"]]
    wanted = {
        "U.S.": "=U.S. .suffix(1)=. .suffix(2)=S. .suffix(3)=.S. .initial=upper .is_upper?",
        "x-ray": "=x-ray .suffix(1)=y .suffix(2)=ay .suffix(3)=ray .initial=lower .has_hyphen?",
        "2010": "=2010 .suffix(1)=0 .suffix(2)=10 .suffix(3)=010 .initial=alnum",
        ",": "=, .suffix(1)=,",
        "Ox": "=Ox .suffix(1)=x .suffix(2)=Ox .initial=upper",
    }
    rows = [[f"word[0]{part}" for part in parts.split(" ")] for parts in wanted.values()]
    rows[0].append("word[0].is_capitalized? & word[0].has_dot?")
    assert resolve("S2").render([*wanted]) == rows


@pytest.mark.parametrize("window", [0, 1, 2, 3])
def test_s3_is_s2_at_every_window_position(window: int) -> None:
    sentence = ["U.S.", "x-ray", "2010", ",", "Ox"]
    s2 = resolve("S2").render(sentence)
    s3 = resolve(f"S3(window={window})").render(sentence)
    for t, found in enumerate(s3):
        near = [o for o in range(-window, window + 1) if 0 <= t + o < len(sentence)]
        assert sorted(found) == sorted(a.replace("word[0]", f"word[{o}]") for o in near for a in s2[t + o])
    assert resolve("S3").render(sentence) == resolve("S3(window=1)").render(sentence)
    assert resolve("S3").render(sentence) == resolve("S3(1)").render(sentence)


def test_default_uses_all_available_columns() -> None:
    assert recipe_for("default", CORPUS).columns == ("word", "pos")
    assert recipe_for(None, CORPUS[:1]).columns == ("word", "pos")
    assert recipe_for("default", [["a"]]).columns == ("word",)
    assert resolve("default", ["my word", "x-pos"]).columns == ("my word", "x-pos")


# --- kinds of X ---------------------------------------------------------------------------------------------


def test_kind_of_input_is_detected() -> None:
    assert kind_of([[], ["a"]]) == "tokens"
    assert kind_of([[["a"]]]) == "attributes"
    assert kind_of([[{"a": 1}]]) == "attributes"
    assert kind_of(CORPUS) == "columns"
    assert kind_of([{"word": ["a"]}]) == "columns"
    assert kind_of([[], ()]) is None
    assert columns_of(CORPUS) == ("word", "pos")
    assert columns_of([{"form": ["a"]}]) == ("form",)
    for wrong in ("abc", ["abc"], [3], {"word": ["a"]}):
        with pytest.raises(CorpusError, match="sentence"):
            kind_of(wrong)


def encoded(recipe: Recipe, X: Any) -> list[list[str]]:
    vocab = Vocabulary()
    data = recipe.encode(X, vocab, n_jobs=None)
    ptr, ids, _ = data.node()
    texts = vocab.texts()
    return [[texts[i] for i in ids[a:b]] for a, b in pairwise(ptr)]


def test_corpus_mappings_and_tokens_are_encoded_alike() -> None:
    tokens = [s.fields["word"] for s in CORPUS]
    recipe = resolve("S3", ["word", "pos"])
    expected = encoded(recipe, CORPUS)
    assert encoded(recipe, tokens) == expected
    assert encoded(recipe, iter(tokens)) == expected
    assert encoded(recipe, [tuple(s) for s in tokens]) == expected
    assert encoded(recipe, [np.array(s) for s in tokens]) == expected
    assert encoded(recipe, [{"word": s, "other": s} for s in tokens]) == expected


def test_wrong_kinds_of_input_are_reported() -> None:
    two = resolve("word[0] & pos[0]", ["word", "pos"])
    for recipe, X, words in [
        (two, [["a"]], "only tokens"),
        (two, [{"word": ["a"]}], "no column 'pos'"),
        (two, [{"word": ["a"], "pos": ["b"]}, ["a"]], "Do not mix"),
        (two, [[["a"]]], "contains attributes"),
        (resolve("attributes"), [["a"]], "contains tokens"),
        (resolve("S1"), [["a"], [["b"]]], "sentence 1, token 0"),
        (resolve("attributes"), [[["a"]], ["b"]], "sentence 1, token 0"),
    ]:
        with pytest.raises(CorpusError, match=words):
            recipe.encode(X, Vocabulary())


def test_empty_input_is_encoded() -> None:
    for recipe in (resolve("S3"), resolve("attributes"), resolve(shouting)):
        assert len(recipe.encode([], Vocabulary())) == 0
        data = recipe.encode([[], []], Vocabulary())
        assert (len(data), data.n_tokens) == (2, 0)


# --- recipes ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "spec", ["S3(window=2)", "pad: word[-1] & pos[0]", "U0:%x[0,1]/%x[0,0]", shouting, "attributes"]
)
def test_recipes_survive_json_and_pickle(spec: Any) -> None:
    recipe = resolve(spec, ["word", "pos"])
    sentence: Any = {"word": ["a", "b"], "pos": ["c", "d"]}
    if recipe.kind == "function":
        sentence = ["a", "b"]
    if recipe.kind == "attributes":
        sentence = [["a"], {"b": "c"}]
    trusted = Recipe.from_json(recipe.to_json(), Functions(trust=True))
    for other in (trusted, pickle.loads(pickle.dumps(recipe))):
        assert (other.kind, other.columns, other.token_column) == (
            recipe.kind,
            recipe.columns,
            recipe.token_column,
        )
        assert other.render(sentence) == recipe.render(sentence)


def test_template_files(tmp_path: Path) -> None:
    file = tmp_path / "my.template"
    file.write_text("word[0]\nword[1]\n", encoding="utf-8")
    assert resolve(file).render(["a"]) == resolve(str(file)).render(["a"]) == [["word[0]=a"]]
    file.write_text("word[0]\nwrd[1]\n", encoding="utf-8")
    with pytest.raises(TemplateError, match=r"my\.template: line 2"):
        resolve(file)
    file.write_bytes(b"\xff")
    with pytest.raises(TemplateError, match="cannot read"):
        resolve(file)


def test_invalid_specifications_are_rejected() -> None:
    for spec, words in [
        ("S4", "no feature set"),
        ("S2(window=3)", r"S3\(window=3\)"),
        ("S3(window=99)", "wider"),
    ]:
        with pytest.raises(TemplateError, match=words):
            resolve(spec)
    with pytest.raises(TemplateError, match="no columns for features"):
        resolve("S1", [])
    with pytest.raises(ParameterError, match="expected S1"):
        resolve(3)
    with pytest.raises(ParameterError, match="needs tokens"):
        recipe_for("S3", [[["a"]]])
    assert resolve(resolve("S1")) == resolve("S1")


def test_crfpp_counts_columns() -> None:
    """Templates need all columns up to the last one they name, and none after it."""
    columns = ["word", "lemma", "pos", "extra"]
    assert resolve("U00:%x[0,0]\nU01:%x[-1,2]", columns).columns == ("word", "lemma", "pos")
    assert resolve("U00:%x[0,1]", columns).columns == ("word", "lemma")
    assert resolve("word[0]\npos[-1]", columns).columns == ("word", "pos")
