"""The public interface: its exact names, where they are, and that type checkers know them."""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path

import pytest

import tagwise as tw

ROOT = Path(__file__).parents[2]
NAMES = {
    "estimators": "AROW Boosting CRF HMM HMSVM MEMM MIRA PassiveAggressive Perceptron Tagger",
    "parameters": "Dictionary Kernel Lookback Partial Poly RBF",
    "data": "Corpus Sentence Tokenizer read iter_sentences write load_corpus list_corpora Shards encode fit_shards",
    "features": "Features Gazetteer Regex Vectors WordClasses",
    "models": "load pretrained list_pretrained Checkpoint",
    "results": "evaluate compare TagwiseError",
    "submodules": "spans exceptions plot lattice losses scorers",
}
PUBLIC = sorted(name for names in NAMES.values() for name in names.split())
MOST = 45


def test_public_names_are_exactly_these() -> None:
    assert sorted({*tw.__all__} - {"__version__"}) == PUBLIC
    assert len(PUBLIC) <= MOST
    assert dir(tw) == sorted(tw.__all__)


@pytest.mark.parametrize("name", PUBLIC)
def test_public_name_is_importable_and_documented(name: str) -> None:
    value = getattr(importlib.import_module("tagwise"), name)
    assert inspect.getdoc(value)
    pages = (ROOT / "docs" / "reference").glob("*.md")
    assert any(re.search(rf"^::: tagwise\.{name}$", page.read_text("utf-8"), re.M) for page in pages)


@pytest.mark.parametrize("name", NAMES["submodules"].split())
def test_submodule_offers_exactly_its_names(name: str) -> None:
    """A submodule is a module of its own, and star imports bring exactly the names of its `__all__`."""
    module = importlib.import_module(f"tagwise.{name}")
    assert module is getattr(tw, name)
    assert [*module.__all__] == sorted({*module.__all__}, key=lambda n: (not n.isupper(), n[0].islower(), n))
    found = {n for n, v in vars(module).items() if n[0] != "_" and not inspect.ismodule(v)}
    assert found == {*module.__all__}
    assert all(inspect.getdoc(getattr(module, inner)) for inner in module.__all__)


def test_models_have_the_verbs_of_taggers() -> None:
    """`inspect`, `explain`, `evaluate` and `errors` of a model give the results of its tagger."""
    X, y = [["in", "Oslo"], ["to", "Rome"]], [["O", "B-LOC"], ["O", "B-LOC"]]
    tagger = tw.CRF(features="S1", max_iter=5).fit(X, y)
    model, gold = tagger.model_, tw.Corpus.from_lists(X, [["O", "B-PER"], ["O", "B-LOC"]])
    assert model.inspect(3) == tagger.inspect(3)
    assert model.evaluate(gold) == tagger.evaluate(gold) == tw.evaluate(gold, tagger.predict(gold))
    assert model.errors(gold) == tagger.errors(gold)
    assert model.errors(X, y).groups == []
    outside = tw.Corpus.from_lists(
        X, [["O", "O"], ["O", "O"]]
    )  # the labels of the model mark spans, these do not
    for one in (model, tagger):
        assert one.errors(outside).report == one.evaluate(outside)
        assert {group.kind for group in one.errors(outside).groups} == {"spurious"}
    explained = model.explain(X[0], probabilistic=True).to_dict()
    assert explained == tagger.explain(X[0]).to_dict()


def test_completion_of_a_tagger_shows_no_internal_names() -> None:
    """Attributes without an underscore are documented methods, properties and values."""
    internal = {"checked", "resumes", "starts_warm", "PARAMS", "ranks"}
    assert not internal & {name for name in dir(tw.CRF()) if not name.startswith("_")}
