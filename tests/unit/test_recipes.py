"""Recipes and named sets: the columns they look at, functions of every kind, the text of each set."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tagwise._core import Vocabulary
from tagwise.base.exceptions import CorpusError, ParameterError, TemplateError
from tagwise.base.imports import Functions
from tagwise.corpus.sentence import Corpus, Sentence
from tagwise.features import Recipe, columns_of, crfpp, file_columns, recipe_for, resolve
from tagwise.features.sets import SETS, quoted, template_text

LABELLED = Corpus([Sentence({"form": ["a", "b"], "pos": ["N", "V"], "ner": ["X", "Y"]}, "ner")])


# -- columns --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("X", "columns", "of_file"),
    [
        (LABELLED, ("form", "pos"), {"columns": ["form", "pos", "ner"], "label": "ner"}),
        (list(LABELLED), ("form", "pos"), {"columns": ["form", "pos", "ner"], "label": "ner"}),
        (
            Corpus.from_lists([["a"]]),
            ("word",),
            {"columns": ["word", "label"], "label": "label"},
        ),
        (
            [{"word": ["a"], "label": ["N"]}],
            ("word", "label"),
            {"columns": ["word", "label", "gold"], "label": "gold"},
        ),
        ([["a", "b"]], ("word",), {"columns": ["word", "label"], "label": "label"}),
        ([], ("word",), {"columns": ["word", "label"], "label": "label"}),
    ],
    ids=["corpus", "sentences", "unlabelled", "mappings", "tokens", "nothing"],
)
def test_columns_to_look_at(X: Any, columns: tuple[str, ...], of_file: dict[str, Any]) -> None:
    """All but the label; a file of more is read with a name for its labels that is not taken."""
    assert columns_of(X) == columns
    assert file_columns(resolve("S1", columns), X) == of_file
    assert file_columns(resolve("attributes"), X) == {}


def test_templates_keep_the_columns_they_use() -> None:
    """In the order of the sentence's columns; the first one stands for plain tokens."""
    recipe = resolve("pos[0]\nform[0]", ["form", "pos", "x"])
    assert sorted(recipe.columns) == ["form", "pos"]
    assert recipe.token_column == "form"
    assert recipe.render(LABELLED[0])[1] == ["pos[0]=V", "form[0]=b"]
    bias = resolve("bias", ["form", "pos"])
    assert bias.columns == ("form",)
    assert bias.render(["a"]) == [["bias"]]


def test_only_templates_have_one() -> None:
    """A function or bare attributes have none, and make no edge attributes."""
    for recipe in (resolve(len), resolve("attributes")):
        assert not recipe.has_edges
        with pytest.raises(TemplateError, match="are not a template; only templates have one"):
            _ = recipe.template
        assert recipe.learned([["a"]]) is recipe
    assert not resolve("word[0]").has_edges
    assert resolve("word[0]\nedge: word[0]").has_edges


# -- functions ------------------------------------------------------------------------------------------------


def each(sentence: Any) -> Iterator[list[str]]:
    """A generator of attributes."""
    for word in sentence:
        yield [f"w={word}"]


def of_fields(sentence: Any) -> list[list[str]]:
    """Attributes of a sentence with columns."""
    return [[f"p={p}"] for p in sentence.fields["pos"]]


class Called:
    """An object that is called."""

    def __call__(self, sentence: Any) -> list[list[str]]:
        return [["x"] for _ in sentence]


def test_functions_of_every_kind() -> None:
    """A generator is read out; sentences with columns have as many tokens as their first; objects are named by type."""
    assert resolve(each).render(["a", "b"]) == [["w=a"], ["w=b"]]
    assert recipe_for(of_fields, LABELLED).render(LABELLED[0]) == [["p=N"], ["p=V"]]
    assert resolve(each).name == "each"
    assert resolve(Called()).name == "Called"
    assert resolve(each, ["form"]).token_column == "form"
    with pytest.raises(CorpusError, match="sentence 1 has 2 tokens, but each returned attributes for 1"):
        Recipe("function", "each", function=lambda s: [["x"]]).encode([["a"], ["b", "c"]], Vocabulary())


def test_a_function_that_is_not_loaded() -> None:
    """It is named."""
    with pytest.raises(
        ParameterError, match="the feature function 'f' is not loaded; import it and resolve it again"
    ):
        Recipe("function", "f").encode([["a"]], Vocabulary())


def test_pickled_functions_are_the_same() -> None:
    """By their import path, with the column that tokens stand for."""
    back = pickle.loads(pickle.dumps(resolve(each, ["form"])))
    assert back.function is each
    assert (back.kind, back.name, back.token_column) == ("function", "each", "form")
    assert Recipe.from_json(resolve(each).to_json(), Functions(trust=True)).function is each
    assert resolve(each).to_json() == {"kind": "function", "function": f"{__name__}:each"}


def test_what_attributes_are_given_for_is_left_alone() -> None:
    """None and default mean attributes where X has them; a set does not."""
    X = [[["a"], {"b": 2.0}]]
    for spec in (None, "default", "attributes"):
        assert recipe_for(spec, X) == Recipe("attributes", "attributes")
    with pytest.raises(ParameterError, match="features='S1' needs tokens, but X holds attributes already"):
        recipe_for("S1", X)
    assert recipe_for(None, [["a"]]) == resolve("default")
    assert Recipe.from_json({"kind": "attributes"}) == Recipe("attributes", "attributes")
    with pytest.raises(
        ParameterError, match="unknown kind of features 'x'; the model is from a newer tagwise"
    ):
        Recipe.from_json({"kind": "x"})


def test_learnt_lists_are_kept() -> None:
    """Frequent words are learnt once, from training sentences, and go into the file."""
    recipe = resolve("word[0].is_rare(2)?")
    learnt = recipe.learned([["a", "b", "a"], ["c", "b"]])
    assert recipe.lists is None
    assert learnt.lists is not None
    assert [sorted(texts) for texts in learnt.lists] == [["a", "b"]]
    assert learnt.learned([["z", "z"]]) is learnt
    assert Recipe.from_json(learnt.to_json()).render(["a", "c"]) == [[], ["word[0].is_rare(2)?"]]
    assert "lists" not in recipe.to_json()


def test_templates_by_path(tmp_path: Path) -> None:
    """A file of one's own, or of CRF++; what is wrong is said with its path."""
    path = tmp_path / "t.txt"
    path.write_bytes(b"\xef\xbb\xbfU00:%x[-1,0]\nB\n")
    assert crfpp.read_template(path).render(["a", "b"])[1] == ["U00:a"]
    assert resolve(str(path)).name == "t.txt"
    with pytest.raises(TemplateError, match=r"none\.txt: cannot be read .*a UTF-8 text file"):
        resolve(tmp_path / "none.txt")
    path.write_text("word[")
    with pytest.raises(TemplateError, match=r"t\.txt: line 1"):
        resolve(path)


# -- named sets -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("column", "text"),
    [("word", "word"), ("p2", "p2"), ("2p", '"2p"'), ("my pos", '"my pos"'), ('a"\\', '"a\\"\\\\"')],
)
def test_names_are_quoted_where_they_must_be(column: str, text: str) -> None:
    """Letters, digits and underscores stand as they are; every set reads the column back."""
    assert quoted(column) == text
    for name in SETS:
        assert column in resolve(name, [column]).columns


def test_s1_s2_s3_in_full() -> None:
    """The word; its spelling; the same at each offset of the window."""
    assert template_text("S1", ["w"]) == "w[0]\n"
    spelling = ["", ".suffix(1..3)", ".initial", ".is_upper?", ".has_hyphen?"]
    lines = [f"w[0]{s}" for s in spelling] + ["w[0].is_capitalized? & w[0].has_dot?"]
    assert template_text("S2", ["w"]).splitlines() == template_text("S3(0)", ["w"]).splitlines() == lines
    near = [f"w[-2..2]{s}" for s in spelling]
    near += [f"w[{o}].is_capitalized? & w[{o}].has_dot?" for o in range(-2, 3)]
    assert template_text(" S3 ( window = 2 ) ", ["w"]).splitlines() == near
    assert template_text("S3") == template_text("S3(window=1)") == template_text("S3()")


def test_the_default_set_has_a_window_and_other_columns() -> None:
    """Half-width 2 unless told; each other column joins in with its own lines."""
    text = template_text("default", ["w", "p", "q"])
    assert "w[-2..2].lower\n" in text
    assert "w[-4..4].lower\n" in template_text("default(4)", ["w"])
    assert "word[" not in text
    for column in "pq":
        assert f"{column}[-2..2]\n" in text
        assert f"{column}[0] & w[0].lower\n" in text
    assert "p[" not in template_text("default", ["w"])


def test_the_ner_set_finds_the_tags() -> None:
    """pos before xpos before upos before tag, else the second column; without one its lines are left out."""
    for columns, tag in (
        (["w", "upos", "xpos"], "xpos"),
        (["w", "tag", "upos", "pos"], "pos"),
        (["w", "x", "tag"], "tag"),
        (["w", "x", "y"], "x"),
    ):
        text = template_text("ner", columns)
        assert text.endswith(f"{tag}[-1] & {tag}[0] & w[0]\n")
        assert sum(f"{c}[" in text for c in columns[1:]) == 1
    assert "[-1..1]\nw" not in template_text("ner", ["w"]).split("bracketed")[1]


def test_the_lists_of_the_ner_set() -> None:
    """Titles, months and days fire on their words in any case, and on nothing else."""
    recipe = resolve("ner", ["word"])
    found = [
        {name for name in ("month", "day", "title") if any(a.startswith(name) for a in attributes)}
        for attributes in recipe.render(
            ["MAY", "x", "x", "Sept.", "x", "x", "Friday", "x", "x", "Mr.", "x", "x"]
        )
    ]
    assert [f & {"month", "day"} for f in found] == [
        {"month"}, set(), set(), {"month"}, set(), set(), {"day"}, set(), set(), set(), set(), set(),
    ]  # fmt: skip
    assert [t for t, f in enumerate(found) if "title" in f] == [8, 9, 10]


def test_the_pos_set_learns_rare_words() -> None:
    """The word, rarity by the training sentences, capitals, numbers, three endings."""
    recipe = resolve("pos", ["word"]).learned([["the"] * 3])
    assert recipe.render(["the", "Runnings", "22", "ED"]) == [
        ["word[0]=the"],
        ["word[0]=Runnings", "word[0].is_rare(3)?", "word[0].is_capitalized?", 'word[0].ends_with("s")?'],
        ["word[0]=22", "word[0].is_rare(3)?", "word[0].is_number?"],
        ["word[0]=ED", "word[0].is_rare(3)?", "word[0].is_upper?", "word[0].is_capitalized?"],
    ]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("S4", r"no feature set 'S4'; there are S1, S2, S3, S2pairs, pos, ner, default, or write a template"),
        ("S3(x=1)", r"no feature set 'S3\(x=1\)'"),
        ("S3(-1)", r"no feature set"),
        ("S1(2)", r"S1 looks at the current word alone; for a window use S3\(window=2\)"),
        ("S2(window=3)", r"S2 looks at the current word alone; for a window use S3\(window=3\)"),
        ("pos(1)", "pos looks at the current word alone; write its template out"),
        ("ner(1)", "ner looks at the words beside the current one; write its template out"),
        ("S3(51)", "window=51 is wider than 50 words; choose a smaller half-width"),
    ],
)
def test_sets_that_are_not_there(name: str, said: str) -> None:
    """No such set, a window where there is none, one too wide."""
    with pytest.raises(TemplateError, match=said):
        template_text(name)
    assert "word[-50..50]" in template_text("S3(50)")
