"""A model file cannot choose code: functions it names are passed in or missing. Only `trust` imports them."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import tagwise as tw
from tagwise.base.imports import Functions, MissingFunction
from tagwise.features.recipe import Recipe
from tagwise.model import Model
from tagwise.scores.kernels import KernelFunction

from ..forge.forgery import Forgery
from ..golden import corpus, make
from ..golden.kinds import KINDS

EXPECTED = make.read()


def golden(name: str) -> Forgery:
    """Return a golden file in parts."""
    return Forgery.of(make.FOLDER / f"{name}.tagwise")


#: Places in which a file may name a function, and the operation that needs it.
NAMED: dict[str, tuple[str, Callable[[Forgery, str], Any], str]] = {
    "features": ("crf-function", lambda f, path: f.set("features", "function", to=path), "predict"),
    "other features": (
        "crf",
        lambda f, path: f.set("features", to={"kind": "function", "function": path}),
        "predict",
    ),
    "a part of features": ("crf-sum", lambda f, path: f.set("features", "parts", 2, "function", to=path), "predict"),
    "kernel": ("perceptron-own", lambda f, path: f.set("kernel", "function", to=path), "predict"),
    "kernel's parameter": ("perceptron-own", lambda f, path: f.set("meta", "params", "kernel", to=path), "fit"),
    "cost": ("mira", lambda f, path: f.set("meta", "params", "cost", to=path), "fit"),
}  # fmt: skip


@pytest.fixture
def evil(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return a marker file and provide a module that creates it when imported."""
    mark = tmp_path / "mark"
    text = f"open({str(mark)!r}, 'a').close()\ndef f(*given):\n    raise SystemExit('called')\n"
    (tmp_path / "evil_module.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield mark
    sys.modules.pop("evil_module", None)


@pytest.mark.parametrize("where", NAMED)
def test_loading_imports_and_calls_nothing(where: str, tmp_path: Path, evil: Path) -> None:
    """The model can be inspected, copied and saved. Operations that need the function raise an error that names it."""
    name, edit, needs = NAMED[where]
    forged = golden(name)
    edit(forged, "evil_module:f")
    path = forged.write(tmp_path / "m.tagwise")
    tagger = tw.load(path)
    assert tagger.classes_ == tuple(EXPECTED[name]["labels"])
    assert tagger.inspect(2).labels.keys() == set(tagger.classes_)
    assert tagger.n_features_ == EXPECTED[name]["n_features"]
    assert "evil_module:f" in repr(tagger) + str(tagger.model_.named_functions)
    X, y = KINDS[make.SAVED[name][0]].train()
    for one in (tagger, pickle.loads(pickle.dumps(tagger))):
        with pytest.raises(
            tw.exceptions.MissingFunctionError, match=r"'evil_module:f' is missing: .*functions=.*trust=True"
        ):
            one.predict(X) if needs == "predict" else one.fit(X, y)
    assert ("evil_module:f" in {found.path for found in tagger.model_.missing}) == (needs == "predict")
    tagger.save(tmp_path / "again.tagwise")
    edited, written = forged.header, Forgery.of(tmp_path / "again.tagwise").header
    assert (written["features"], written.get("kernel")) == (edited["features"], edited.get("kernel"))
    assert not evil.exists()
    assert "evil_module" not in sys.modules


def test_standard_library_functions_named_by_a_file_are_not_run(tmp_path: Path) -> None:
    """Functions of the standard library are not an exception, although their modules are already imported."""
    forged = golden("crf").set("features", to={"kind": "function", "function": "subprocess:run"})
    tagger = tw.load(forged.write(tmp_path / "m.tagwise"))
    with pytest.raises(tw.exceptions.MissingFunctionError, match="subprocess:run"):
        tagger.predict([["touch", str(tmp_path / "made")]])
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize("where", NAMED)
def test_trust_imports_and_calls_the_named_function(where: str, tmp_path: Path, evil: Path) -> None:
    """With `trust` the module is imported, and the function is called when it is needed."""
    name, edit, needs = NAMED[where]
    forged = golden(name)
    edit(forged, "evil_module:f")
    tagger = tw.load(forged.write(tmp_path / "m.tagwise"), trust=True)
    assert evil.exists()
    X, y = KINDS[make.SAVED[name][0]].train()
    with pytest.raises((SystemExit, RuntimeError), match="called"):
        tagger.predict(X) if needs == "predict" else tagger.fit(X, y)
    forged.set("features", to={"kind": "function", "function": "no_such_module:f"})
    with pytest.raises(
        tw.exceptions.ModelFileError, match=r"m\.tagwise: features: .*'no_such_module:f' cannot be imported"
    ):
        tw.load(forged.write(tmp_path / "m.tagwise"), trust=True)


@pytest.mark.parametrize(
    ("name", "function"), [("crf-function", corpus.shapes), ("perceptron-own", corpus.cosine)]
)
def test_functions_are_passed_by_path_or_name(name: str, function: Any, tmp_path: Path) -> None:
    """By import path or by name. The golden labels are reproduced, and the file is saved unchanged."""
    path, X = make.FOLDER / f"{name}.tagwise", KINDS[name].test()
    wanted, alone = EXPECTED[name]["predict"], function.__name__
    calls = []

    def wrapped(*given: Any) -> Any:
        calls.append(given)
        return function(*given)

    for given in ({alone: wrapped}, {f"tests.golden.corpus:{alone}": wrapped, alone: None.__class__}):
        tagger = tw.load(path, functions=given)
        assert tagger.predict(X) == Model.load(path, functions=given).predict(X) == wanted
        assert tagger.model_.missing == ()
        tagger.save(tmp_path / "again.tagwise")
        for part in ("features", "kernel", "labels"):
            assert Forgery.of(tmp_path / "again.tagwise").header.get(part) == golden(name).header.get(part)
    assert calls
    before = len(calls)
    assert tw.load(path, functions={alone: wrapped}, trust=True).predict(X) == wanted
    assert len(calls) > before  # functions passed in take precedence over the file's
    for given in ({"other": wrapped}, {}, None):
        with pytest.raises(tw.exceptions.MissingFunctionError, match=alone):
            tw.load(path, functions=given).predict(X)
    for wrong in ([wrapped], {alone: 3}, {3: wrapped}):
        with pytest.raises(tw.exceptions.ParameterError, match="functions"):
            tw.load(path, functions=wrong)  # type: ignore[arg-type]


def test_unpickling_recipes_and_kernels_imports_nothing(evil: Path) -> None:
    """A function named by a recipe or a kernel stays a name. Unpickling resolves only pickle's own references."""
    spec = {"kind": "function", "function": "evil_module:f"}
    recipe, kernel = (
        Recipe.from_json(spec),
        KernelFunction.from_json({"name": "function", "function": "evil_module:f"}),
    )
    for found in (recipe, kernel):
        again = pickle.loads(pickle.dumps(found))
        assert again.function == MissingFunction("evil_module:f", "")
        assert again.to_json() == found.to_json()
    assert not evil.exists()
    assert Recipe.from_json(spec, Functions(trust=True)).function is sys.modules["evil_module"].f


def test_number_of_threads_in_a_file_is_ignored(tmp_path: Path) -> None:
    """The caller chooses the number of threads. A header that names a million is ignored."""
    forged = golden("crf").set("meta", "params", "n_jobs", to=10**6).set("meta", "params", "verbose", to=1)
    tagger = tw.load(forged.write(tmp_path / "m.tagwise"))
    assert (tagger.get_params()["n_jobs"], tagger.get_params()["verbose"]) == (None, 0)
