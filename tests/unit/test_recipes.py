"""Recipes and named sets: the columns they read, functions of every kind, the text of each set."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tagwise._core import Vocabulary
from tagwise.base.exceptions import CorpusError, ParameterError, TemplateError
from tagwise.corpus.sentence import Corpus, Sentence
from tagwise.features import Recipe, columns_of, file_columns, recipe_for, resolve
from tagwise.features.sets import SETS, quoted

LABELLED = Corpus([Sentence({"form": ["a", "b"], "pos": ["N", "V"], "ner": ["X", "Y"]}, "ner")])


# -- columns --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("X", "columns", "of_file"),
    [
        (LABELLED, ("form", "pos"), {"columns": ["form", "pos", "ner"], "label": "ner"}),
        (list(LABELLED), ("form", "pos"), {"columns": ["form", "pos", "ner"], "label": "ner"}),
        (Corpus.from_lists([["a"]]), ("word",), {"columns": ["word", "label"], "label": "label"}),
        (
            [{"word": ["a"], "label": ["N"]}], ("word", "label"),
            {"columns": ["word", "label", "gold"], "label": "gold"},
        ),
        ([["a", "b"]], ("word",), {"columns": ["word", "label"], "label": "label"}),
        ([], ("word",), {"columns": ["word", "label"], "label": "label"}),
    ],
    ids=["corpus", "sentences", "unlabelled", "mappings", "tokens", "nothing"],
)  # fmt: skip
def test_feature_columns_exclude_the_label(X: Any, columns: tuple[str, ...], of_file: dict[str, Any]) -> None:
    """All columns but the label. A file with more columns is read with an unused name for its labels."""
    assert columns_of(X) == columns
    assert file_columns(resolve("S1", columns), X) == of_file
    assert file_columns(resolve("attributes"), X) == {}


def test_templates_keep_the_columns_they_use() -> None:
    """In the order of the sentence's columns. Plain tokens are read as the first one."""
    recipe = resolve("pos[0]\nform[0]", ["form", "pos", "x"])
    assert sorted(recipe.columns) == ["form", "pos"]
    assert recipe.token_column == "form"
    assert recipe.render(LABELLED[0])[1] == ["pos[0]=V", "form[0]=b"]
    bias = resolve("bias", ["form", "pos"])
    assert bias.columns == ("form",)
    assert bias.render(["a"]) == [["bias"]]


def test_only_templates_have_a_token_column() -> None:
    """A function or bare attributes have no token column and no edge attributes."""
    for recipe in (resolve(len), resolve("attributes")):
        assert not recipe.has_edges
        with pytest.raises(TemplateError, match="are not a template"):
            _ = recipe.template
        assert recipe.learned([["a"]]) is recipe
    assert not resolve("word[0]").has_edges
    assert resolve("word[0]\nedge: word[0]").has_edges


# -- functions ------------------------------------------------------------------------------------------------


def each(sentence: Any) -> Iterator[list[str]]:
    """Yield attributes, as a generator function."""
    for word in sentence:
        yield [f"w={word}"]


def of_fields(sentence: Any) -> list[list[str]]:
    """Return attributes of a sentence with columns."""
    return [[f"p={p}"] for p in sentence.fields["pos"]]


class Called:
    """A callable object."""

    def __call__(self, sentence: Any) -> list[list[str]]:
        return [["x"] for _ in sentence]


def test_functions_of_every_kind() -> None:
    """A generator is consumed, the first column gives the number of tokens, and objects are named by their type."""
    assert resolve(each).render(["a", "b"]) == [["w=a"], ["w=b"]]
    assert recipe_for(of_fields, LABELLED).render(LABELLED[0]) == [["p=N"], ["p=V"]]
    assert resolve(each).name == "each"
    assert resolve(Called()).name == "Called"
    assert resolve(each, ["form"]).token_column == "form"
    with pytest.raises(CorpusError, match="sentence 1 has 2 tokens, but each returned attributes for 1"):
        Recipe("function", "each", function=lambda s: [["x"]]).encode([["a"], ["b", "c"]], Vocabulary())


def test_missing_functions_are_named() -> None:
    """The error names the function."""
    with pytest.raises(
        ParameterError, match=r"the feature function 'f' is not available\. Pass the function itself"
    ):
        Recipe("function", "f").encode([["a"]], Vocabulary())


def test_attribute_input_accepts_only_default_features() -> None:
    """None and "default" mean attributes if X contains attributes. A named set is an error."""
    X = [[["a"], {"b": 2.0}]]
    for spec in (None, "default", "attributes"):
        assert recipe_for(spec, X) == Recipe("attributes", "attributes")
    with pytest.raises(
        ParameterError, match="features='S1' needs tokens, but X contains ready-made attributes"
    ):
        recipe_for("S1", X)
    assert recipe_for(None, [["a"]]) == resolve("default")
    assert Recipe.from_json({"kind": "attributes"}) == Recipe("attributes", "attributes")
    with pytest.raises(
        ParameterError, match=r"unknown kind of features 'x'\. The model is from a newer tagwise"
    ):
        Recipe.from_json({"kind": "x"})


# -- named sets -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("column", "text"),
    [("word", "word"), ("p2", "p2"), ("2p", '"2p"'), ("my pos", '"my pos"'), ('a"\\', '"a\\"\\\\"')],
)
def test_column_names_are_quoted_if_needed(column: str, text: str) -> None:
    """Letters, digits and underscores need no quotes, and every set reads the column back."""
    assert quoted(column) == text
    for name in SETS:
        assert column in resolve(name, [column]).columns
