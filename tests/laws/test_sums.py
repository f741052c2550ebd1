"""Tests of sums of features: the sum has the attributes of its parts in every use."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tagwise as tw
from tagwise._core import Vocabulary
from tagwise.base.imports import Functions, MissingFunction
from tagwise.features import recipe_for, resolve
from tagwise.features.derived_columns import parse_sum
from tagwise.features.recipe import Recipe

from ..golden import corpus
from ..golden.kinds import EDGES, RARE

X = corpus.words(corpus.TRAIN)
CITIES = tw.Gazetteer(["New Oslo", "Oslo", "LUND"], name="cities")
YEAR = tw.Regex("year", r"(19|20)\d\d")
NAMES = tw.Regex("names", "[A-Z][a-z]+", window=0)
CLASSES = tw.WordClasses.learn(X, classes=5, min_count=1)


def shapes(sentence: Any) -> list[list[str]]:
    """A feature function that shares an attribute with a template."""
    return [[f"word[0]={w}", f"n={len(w)}"] for w in sentence.tokens]


def lengths(sentence: Any) -> list[dict[str, Any]]:
    """A feature function with numbers in dicts."""
    return [{"length": len(w) / 8, "word": w, "word[0]=Lund": 3.0} for w in sentence.tokens]


#: Parts of every kind. Templates that read a mark are used only in sums with it.
PARTS: dict[str, Any] = {
    "S1": "S1", "default": "default", "template": "word[0]\nword[-1] & word[0]\n",
    "padded": "pad:\nword[-1]\nword[1]\n", "edges": EDGES, "rare": RARE,
    "crfpp": "U00:%x[0,0]\nU01:%x[-1,0]/%x[0,0]\nB\n", "shapes": shapes, "lengths": lengths, "cities": CITIES,
    "year": YEAR, "names": NAMES, "classes": CLASSES,
}  # fmt: skip


def attributes(recipe: Recipe, sentences: Any) -> list[list[set[str]]]:
    """Return the texts of every token's attributes in a dataset, node and edge together."""
    vocabulary = Vocabulary()
    data = recipe.encode(sentences, vocabulary)
    texts = vocabulary.texts()
    out: list[set[str]] = [set() for _ in range(data.n_tokens)]
    for ptr, ids, _ in (data.node(), data.edge()):
        for t in range(len(ptr) - 1):
            out[t] |= {texts[i] for i in ids[int(ptr[t]) : int(ptr[t + 1])]}
    ends = data.offsets.tolist()
    return [out[a:b] for a, b in pairwise(ends)]


@given(st.lists(st.sampled_from(list(PARTS)), min_size=1, max_size=5), st.booleans())
def test_sum_has_the_union_of_attributes(names: list[str], columns: bool) -> None:
    """The attributes are the union, for any order and repetition of parts, in datasets and in text."""
    sentences = corpus.TRAIN if columns else X
    recipe = recipe_for(tw.Features(*(PARTS[name] for name in names)), sentences).learned(sentences)
    alone = [recipe_for(PARTS[name], sentences).learned(sentences) for name in names]
    found = attributes(recipe, sentences)
    for each in zip(found, *(attributes(part, sentences) for part in alone)):
        for token in zip(*each):
            assert token[0] == set().union(*token[1:])
    for sentence in sentences[:3]:
        shown = zip(recipe.render(sentence), *(part.render(sentence) for part in alone))
        for token in shown:
            assert set(token[0]) == set().union(*map(set, token[1:]))


def test_shared_attributes_take_the_first_value() -> None:
    """An attribute of two parts counts once, with the first part's value."""
    for spec, value in ((tw.Features("S1", lengths), 1.0), (tw.Features(lengths, "S1"), 1.0)):
        vocabulary = Vocabulary()
        ptr, ids, values = resolve(spec, ["word"]).encode([["Lund"]], vocabulary).node()
        texts = vocabulary.texts()
        found = {texts[i]: v for i, v in zip(ids, values)}
        assert len(found) == len(ids) == ptr[-1] == 3
        assert found["length"] == 0.5
        assert found["word:Lund"] == 1.0
        assert found["word[0]=Lund"] == value  # templates run together, before functions
    first = resolve(tw.Features(lengths, shapes), ["word"]).encode([["Lund"]], v := Vocabulary())
    values = dict(zip((v.text(i) for i in first.node()[1]), first.node()[2].tolist()))
    assert values == {"length": 0.5, "word:Lund": 1.0, "word[0]=Lund": 3.0, "n=4": 1.0}


def test_results_do_not_depend_on_threads() -> None:
    recipe = resolve(tw.Features("default", CITIES, shapes), ["word"])
    one, two = Vocabulary(), Vocabulary()
    a, b = recipe.encode(X, one, 1), recipe.encode(X, two, 2)
    assert one.texts() == two.texts()
    assert all((x == y).all() for x, y in zip(a.node(), b.node()))


def test_templates_of_a_sum_can_use_marks_as_columns() -> None:
    """A mark is a column with B, I or nothing, in conjunctions too."""
    recipe = resolve("cities[0] & word[0].lower" + tw.Gazetteer(["Oslo"], name="cities", window=0), ["word"])
    assert recipe.kind == "template"
    assert recipe.render(["in", "Oslo"]) == [
        ["cities[0]= & word[0].lower=in"],
        ["cities[0]=B & word[0].lower=oslo", "cities=B"],
    ]
    assert recipe.columns == ("word",)
    assert resolve(tw.Features("form[0]\npos[1]", shapes), ["form", "pos", "x"]).columns == ("form", "pos")


def test_marks_have_attributes_of_their_window() -> None:
    assert resolve(tw.Gazetteer(["a b"], name="g"), ["word"]).render(["x", "a", "B", "y"]) == [
        ["g[1]=B"],
        ["g[0]=B", "g[1]=I"],
        ["g[-1]=B", "g[0]=I"],
        ["g[-1]=I"],
    ]
    assert resolve(YEAR, ["word"]).render(["in", "1984", "."]) == [["year[1]"], ["year[0]"], ["year[-1]"]]
    assert resolve(NAMES, ["word"]).render(["Ada", "went"]) == [["names"], []]


# --- sums as text -------------------------------------------------------------------------------------------


def test_sums_can_be_written_as_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cities.txt").write_text("\ufeffNew Oslo\n\n  Oslo \nLUND\n", encoding="utf-8")
    (tmp_path / "my.template").write_text("word[-1]\n")
    text = r"S3(window=2) + gazetteer:cities.txt+regex:year=(19|20)\d\d+regex:plus=a+b++template:my.template"
    wanted = (
        "S3(window=2)"
        + CITIES
        + tw.Regex("year", r"(19|20)\d\d")
        + tw.Regex("plus", "a+b+")
        + Path("my.template")
    )
    assert tw.Features(text) == wanted
    assert hash(tw.Features(text)) == hash(wanted)
    assert resolve(text) == resolve(wanted)
    assert tw.Features("gazetteer:towns=cities.txt").parts[0].name == "towns"
    assert parse_sum("default") is None
    assert parse_sum("word[0].one_of('+pos')?") is None
    assert parse_sum("word[0]\n# default+S1") is None
    with pytest.raises(
        tw.exceptions.ParameterError, match=r"a string can name a function only on the command line"
    ):
        resolve("S1+function:os.path:basename")
    assert parse_sum("S1+function:os.path:basename", functions=True)[1].__name__ == "basename"  # type: ignore[index]


@pytest.mark.parametrize(
    ("spec", "error", "message"),
    [
        (lambda: tw.Features(), tw.exceptions.ParameterError, "no part"),
        (lambda: tw.Features("S1") + 3, tw.exceptions.ParameterError, "3 of type int cannot be part of features"),
        (lambda: tw.Features("S1", "attributes"), tw.exceptions.ParameterError, "cannot be part of a sum"),
        (lambda: tw.Features("S1", "sufix"), tw.exceptions.TemplateError, "no feature set 'sufix'"),
        (lambda: tw.Features("S1", "word[0].sufix(2)"), tw.exceptions.TemplateError, "did you mean 'suffix'"),
        (lambda: "S1" + CITIES + "citis[0]", tw.exceptions.TemplateError, 'no column "citis"'),
        (lambda: CITIES + tw.Regex("cities", "x"), tw.exceptions.TemplateError, "several columns are named 'cities'"),
        (lambda: "S1" + tw.Regex("word", "x"), tw.exceptions.TemplateError, "several columns are named 'word'"),
        (lambda: "regex:[0-9]", tw.exceptions.ParameterError, "expected regex:NAME=PATTERN"),
        (lambda: "gazetteer:no.such.file", tw.exceptions.TemplateError, "no.such.file: cannot be read"),
        (lambda: tw.Gazetteer(["a"]), tw.exceptions.ParameterError, "need a name"),
        (lambda: tw.Gazetteer([], name="g"), tw.exceptions.ParameterError, "no entries"),
        (lambda: tw.Gazetteer(["a", " "], name="g"), tw.exceptions.ParameterError, "entry 1 .* is not a name"),
        (lambda: tw.Gazetteer([b"a"], name="g"), tw.exceptions.ParameterError, "entry 0"),
        (lambda: tw.Gazetteer([["a", 3]], name="g"), tw.exceptions.ParameterError, "entry 0"),
        (lambda: tw.Gazetteer(["a " * 101], name="g"), tw.exceptions.ParameterError, "1 to 100 tokens"),
        (lambda: tw.Gazetteer(["a"], name="a b"), tw.exceptions.ParameterError, "is not a valid name"),
        (lambda: tw.Gazetteer(["a"], name="bias"), tw.exceptions.ParameterError, "is not a valid name"),
        (lambda: tw.Gazetteer(["a"], name="g", window=11), tw.exceptions.ParameterError, "window=11"),
        (lambda: tw.Regex("r", "(a"), tw.exceptions.TemplateError, "Regex r: .*unclosed group"),
        (lambda: tw.Regex("r", b"a"), tw.exceptions.ParameterError, "is not a pattern"),  # type: ignore[arg-type]
    ],
)  # fmt: skip
def test_invalid_sums_are_rejected(spec: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        resolve(spec(), ["word"])


# --- gazetteers ---------------------------------------------------------------------------------------------


@given(
    st.lists(st.lists(st.sampled_from("abAB"), min_size=1, max_size=3), min_size=1, max_size=6),
    st.lists(st.sampled_from("abcAB"), max_size=10),
    st.booleans(),
)
def test_matches_are_leftmost_and_longest(entries: list[list[str]], tokens: list[str], fold: bool) -> None:
    """Matches equal those of a regular expression over the tokens that tries longer entries first."""
    known = {"".join(entry) for entry in entries}
    pattern = "|".join(sorted(known, key=lambda e: (-len(e), e)))
    wanted = [""] * len(tokens)
    for match in re.finditer(pattern, "".join(tokens), re.IGNORECASE if fold else 0):
        wanted[match.start() : match.end()] = "B" + "I" * (len(match[0]) - 1)
    assert tw.Gazetteer(entries, name="g", ignore_case=fold).column(tokens) == wanted


def test_case_folding_follows_unicode() -> None:
    g = tw.Gazetteer(["STRASSE", "ΣΊΣΥΦΟΣ"], name="g")
    assert g.column(["Straße", "Σίσυφος", "x"]) == ["B", "B", ""]
    assert tw.Gazetteer(["Rome"], name="g", ignore_case=False).column(["rome", "Rome"]) == ["", "B"]


def test_gazetteers_are_named_after_their_file(tmp_path: Path) -> None:
    path = tmp_path / "2 big-cities.v1.txt"
    path.write_text("New York\r\nParis\n", encoding="utf-8")
    found = tw.Gazetteer(path)
    assert found.name == "_2_big_cities_v1"
    assert found.entries == (("new", "york"), ("paris",))
    assert repr(found) == "<Gazetteer _2_big_cities_v1: 2 entries>"
    path.write_bytes(b"\xff\xfe\n")
    with pytest.raises(tw.exceptions.TemplateError, match=r"cannot read the gazetteer .*UTF-8"):
        tw.Gazetteer(path)
    path.write_text(" \n")
    with pytest.raises(tw.exceptions.TemplateError, match="has no entries"):
        tw.Gazetteer(path)


# --- models -------------------------------------------------------------------------------------------------

SUM = tw.Features("S2", CITIES, YEAR, corpus.shapes)


def trained(features: Any, **params: Any) -> tw.CRF:
    tagger = tw.CRF(features=features, max_iter=8, l2=0.1, **params)
    tagger.fit(X, corpus.LABELS)
    return tagger


def test_models_contain_their_gazetteers_and_patterns(tmp_path: Path) -> None:
    """Gazetteers and patterns are in the file. Nothing else is read or imported, and it is saved unchanged."""
    source = tmp_path / "cities.txt"
    source.write_text("New Oslo\nOslo\nLund\n")
    tagger = trained(f"S1+gazetteer:{source}" + YEAR)
    tagger.save(tmp_path / "m.tagwise")
    source.unlink()
    loaded = tw.load(tmp_path / "m.tagwise")
    assert loaded.model_.named_functions == ()
    assert loaded.predict(X) == tagger.predict(X)
    assert loaded.model_.recipe == tagger.model_.recipe
    assert loaded.model_.recipe.name == "S1 + cities + year"
    loaded.save(tmp_path / "again.tagwise")
    assert (tmp_path / "again.tagwise").read_bytes() == (tmp_path / "m.tagwise").read_bytes()
    again = loaded.fit(X, corpus.LABELS)  # its parts are available for training, too
    assert again.model_.scorer.weights.tolist() == tagger.model_.scorer.weights.tolist()


def test_functions_of_a_sum_are_passed_to_load(tmp_path: Path) -> None:
    tagger = trained(SUM)
    tagger.save(tmp_path / "m.tagwise")
    path = tagger.model_.recipe.named_functions[0]
    loaded = tw.load(tmp_path / "m.tagwise")
    assert [missing.path for missing in loaded.model_.missing] == [path]
    for act in (lambda: loaded.predict(X), lambda: loaded.fit(X, corpus.LABELS)):
        with pytest.raises(tw.exceptions.MissingFunctionError, match=re.escape(path)):
            act()
    found = tw.load(tmp_path / "m.tagwise", functions={"shapes": corpus.shapes})
    assert found.predict(X) == tagger.predict(X)
    assert found.features.parts[-1] is corpus.shapes
    trusted = tw.load(tmp_path / "m.tagwise", trust=True)
    assert trusted.predict(X) == tagger.predict(X)


def test_partial_fit_requires_an_equal_sum() -> None:
    """Lists learnt by a part stay. Another gazetteer makes another recipe."""
    features = tw.Features(RARE, CITIES, shapes)
    before = trained(features)
    after = tw.CRF(features=features, max_iter=2).fit(X[:3], corpus.LABELS[:3], warm_start=before)
    assert after.model_.recipe.parts[0].lists == before.model_.recipe.parts[0].lists
    other = resolve(tw.Features(RARE, tw.Gazetteer(["x"], name="cities"), shapes), ["word"])
    assert not other.is_equivalent_to(before.model_.recipe)


def test_recipes_round_trip_through_json() -> None:
    recipe = recipe_for(SUM + RARE + PARTS["crfpp"], X).learned(X)
    functions = Functions({"shapes": corpus.shapes})
    again = Recipe.from_json(recipe.to_json(), functions)
    assert again.is_equivalent_to(recipe)
    assert again.to_json() == recipe.to_json()
    assert again.functions == (corpus.shapes,)
    assert attributes(again, X) == attributes(recipe, X)
    alone = Recipe.from_json(recipe.to_json())
    assert all(isinstance(function, MissingFunction) for function in alone.functions)
    assert resolve(recipe.spec, ["word"]).learned(X).to_json()["parts"][1:] == recipe.to_json()["parts"][1:]


def test_grid_search_over_recipes() -> None:
    """A search clones, fits and scores each recipe, and the one with the gazetteer wins."""
    selection = pytest.importorskip("sklearn.model_selection", reason="scikit-learn is not installed")
    tokens = [["in", f"{a}{b}", "."] for a in "abcdef" for b in "xyz"]
    known = [f"{a}{b}" for a in "ace" for b in "xyz"]
    labels = [["O", "B-LOC" if t[1] in known else "O", "O"] for t in tokens]
    grid = ["word[-1]", "word[-1]" + tw.Gazetteer(known, name="known"), tw.Features("word[-1]", YEAR)]
    tagger = tw.CRF(max_iter=20, l2=0.01, n_jobs=1)
    search = selection.GridSearchCV(tagger, {"features": grid}, cv=selection.KFold(3))
    search.fit(tokens, labels)
    assert search.best_params_["features"] == grid[1]
    assert search.best_score_ == 1.0


def test_hmm_accepts_marks() -> None:
    tagger = tw.HMM(features="S1" + CITIES, overlapping=True).fit(X, corpus.LABELS)
    assert tagger.score(X, corpus.LABELS) > 0.5
