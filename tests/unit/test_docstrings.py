"""Docstrings of the public interface are complete: parameters, return values, learned attributes."""

from __future__ import annotations

import importlib
import inspect
import re
import types
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import tagwise as tw
from tagwise.base.parameters import parameters_of
from tagwise.estimators import LEARNERS

X, Y = [["the", "cat", "sleeps"], ["a", "dog", "barks"]], [["DT", "NN", "VBZ"], ["DT", "NN", "VBZ"]]
#: Results and functions that are public in their packages.
MORE = (
    "apps.pretrained.TaggerInfo", "corpus.corpus_of", "corpus.to_series", "estimators.RegularizationPath",
    "estimators.documents.spacy_component", "estimators.regularization_path", "evaluation.Calibration",
    "evaluation.Report", "evaluation.calibration", "evaluation.find_errors", "model.Model",
)  # fmt: skip
#: Maximum number of words of the help of a parameter, which is one paragraph on the command line.
MOST_WORDS = 45


def sections(doc: str) -> dict[str, str]:
    """Return the text of each section of a docstring by its title."""
    found = re.findall(r"^([A-Z]\w+):\n((?:(?: {4}.*)?\n)*)", inspect.cleandoc(doc) + "\n", re.MULTILINE)
    return dict(found)


def entries(doc: str, *titles: str) -> dict[str, str]:
    """Return the entries of these sections of a docstring, each on one line."""
    parts = sections(doc)
    text = "".join(parts.get(title, "") for title in titles)
    found = re.findall(r"^ {4}(\w+): (.*(?:\n {5,}.*)*)", text, re.MULTILINE)
    return {name: " ".join(text.split()) for name, text in found}


def is_ours(value: Any) -> bool:
    """Return whether a class or function is defined in the package and not in the core."""
    module = getattr(value, "__module__", None) or ""
    return module.startswith("tagwise.") and not module.startswith("tagwise._core")


def public() -> Iterator[tuple[str, Any]]:
    """Yield every public class and function, also those of public modules, with its name."""
    for name in tw.__all__:
        value = getattr(tw, name)
        if isinstance(value, types.ModuleType):
            own = ((inner, getattr(value, inner)) for inner in value.__all__)
            yield from ((f"{name}.{inner}", found) for inner, found in own if callable(found))
        elif callable(value) and is_ours(value):
            yield name, value
    for path in MORE:
        module, _, name = path.rpartition(".")
        yield name, getattr(importlib.import_module(f"tagwise.{module}"), name)


NAMES = dict(sorted(public()))
CLASSES = {
    name: value
    for name, value in NAMES.items()
    if inspect.isclass(value) and not issubclass(value, Exception)
}
FUNCTIONS = {name: value for name, value in NAMES.items() if inspect.isfunction(value)}
METHODS = {
    f"{name}.{inner}": found
    for name, kind in CLASSES.items()
    for inner, found in inspect.getmembers(kind, inspect.isfunction)
    if not inner.startswith("_") and is_ours(found)
}


def parameters(function: Callable[..., Any]) -> list[str]:
    """Return the names of the parameters of a function, without `self` and placeholders."""
    return [
        name
        for name in inspect.signature(function).parameters
        if name not in ("self", "cls") and not name.startswith("_")
    ]


def test_public_interface_is_enumerated() -> None:
    """Classes, functions and inherited methods."""
    assert {"CRF", "Checkpoint", "Model", "RegularizationPath", "Tagger", "lattice.Lattice"} <= CLASSES.keys()
    assert {"fit_shards", "load", "losses.log_loss", "regularization_path"} <= FUNCTIONS.keys()
    assert {"CRF.predict", "MIRA.partial_fit", "Model.save", "Tagger.fit"} <= METHODS.keys()


def test_summaries() -> None:
    """The first line is a complete sentence."""
    for name, value in NAMES.items():
        first, *rest = inspect.cleandoc(value.__doc__ or "").splitlines()
        assert first.endswith((".", ":")), name
        assert not rest or not rest[0], name


def test_functions() -> None:
    """Args lists exactly the parameters, and Returns describes a returned value."""
    for name, function in {**FUNCTIONS, **METHODS}.items():
        doc = function.__doc__ or ""
        assert list(entries(doc, "Args")) == parameters(function), name
        returned = inspect.signature(function).return_annotation
        assert returned is not inspect.Signature.empty, name
        assert returned in (None, "None") or {"Returns", "Yields"} & sections(doc).keys(), name


def test_constructors_and_properties() -> None:
    """Each parameter is in Args (or Attributes) of the class or of its constructor. Properties have docstrings."""
    for name, kind in CLASSES.items():
        wanted = [] if kind is tw.Tagger else parameters(kind)  # only its subclasses have constructors
        own = (kind.__doc__ or "", kind.__init__.__doc__ or "")
        found = [entry for doc in own for entry in entries(doc, "Args")]
        if wanted and not found:
            found = list(entries(own[0], "Attributes"))
        assert found == wanted, name
        for inner, value in inspect.getmembers(kind, lambda value: isinstance(value, property)):
            assert inner.startswith("_") or value.__doc__, f"{name}.{inner}"


@pytest.mark.parametrize("learner", LEARNERS)
def test_learned_attributes(learner: str) -> None:
    """Attributes of a fitted tagger that end with an underscore are in Attributes, and no others are."""
    kind = LEARNERS[learner]
    tagger = kind(features="S1").fit(X, Y)
    learned = {name for name in dir(tagger) if re.fullmatch(r"[a-z]\w*[a-z]_", name)}
    assert {"model_", "history_", "objective_", "stopped_"} <= learned
    assert set(entries(kind.__doc__ or "", "Attributes")) == learned


@pytest.mark.parametrize("learner", LEARNERS)
def test_help(learner: str) -> None:
    """The help of a parameter gives its meaning and when to change it, in one paragraph."""
    for name, param in parameters_of(LEARNERS[learner]).items():
        sentences = re.findall(r"[^.]+(?:\.(?=\S)[^.]*)*\.(?= |$)", param.help)
        assert len(sentences) >= 2, name
        assert len(param.help.split()) <= MOST_WORDS, name
        assert param.help[0].isupper(), name
