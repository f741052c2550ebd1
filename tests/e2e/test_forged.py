"""Invalid model files with valid checksums: each raises a ModelFileError that gives the location."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tagwise as tw
from tagwise import _core

from ..forge.__main__ import run
from ..forge.forgery import Forgery
from ..forge.mutate import nest
from ..golden import make

NAN, INF = float("nan"), float("inf")


def golden(name: str) -> Forgery:
    """Return a golden file in parts."""
    return Forgery.of(make.FOLDER / f"{name}.tagwise")


def retext(change: Callable[[str], str]) -> Callable[[Forgery], Any]:
    """Return a change of the header's text."""

    def edit(forged: Forgery) -> None:
        forged.text = change(json.dumps(forged.header))

    return edit


def split_character(forged: Forgery) -> None:
    """Split a character of two bytes between two texts."""
    text, ends = forged.array("vocab.text").data, forged.array("vocab.end").data
    at = int(ends[0])
    text[at - 1 : at + 1] = list("é".encode())


#: File, change, and the expected part of the message.
FAULTS: list[tuple[str, Callable[[Forgery], Any], str]] = [
    ("crf", lambda f: f.drop("labels"), "the member 'labels' is missing"),
    ("crf", lambda f: f.set("labels", to=[]), r"labels: expected list of 1 to"),
    ("crf", lambda f: f.set("labels", to="ABCDE"), "labels: expected list"),
    ("crf", lambda f: f.set("labels", 1, to=3), r"labels\[1\]: expected text, found 3"),
    ("crf", lambda f: f.set("labels", 1, to=f.header["labels"][0]), "labels: expected distinct entries"),
    ("crf", lambda f: f.set("labels", 1, to="\ud800"), "a lone surrogate"),
    ("crf", lambda f: f.set("labels", to=[str(i) for i in range(70_000)]), "labels: expected list of 1 to 65534"),
    ("crf", lambda f: f.set("n_attributes", to=-1), "n_attributes: expected integer"),
    ("crf", lambda f: f.set("n_attributes", to=2**64 - 1), "n_attributes: expected integer"),
    ("crf", lambda f: f.set("n_attributes", to=10**400), r"n_attributes: .*a number of 1329 bits"),
    ("crf", lambda f: f.set("n_attributes", to=1.5), "n_attributes: expected integer"),
    ("crf", lambda f: f.set("n_attributes", to=f.header["n_attributes"] + 1), "n_attributes: expected"),
    ("crf", lambda f: f.set("features", to=[]), "features: expected object"),
    ("crf", lambda f: f.set("features", "kind", to="x"), "features.kind: expected one of"),
    ("crf", lambda f: f.set("features", "kind", to={}), "features.kind: expected one of"),
    ("crf", lambda f: f.set("features", "columns", to=[]), "features.columns: expected list"),
    ("crf", lambda f: f.set("features", "template", to="word[0].nothing"), "features: line 1"),
    ("crf", lambda f: f.set("features", "template", to="pos[0]"), "features: line 1"),
    ("crf", lambda f: f.drop("features", "token_column"), "features: the member 'token_column' is missing"),
    (
        "crf",
        lambda f: f.set("features", to={"kind": "function", "function": "f"}),
        "features.function: expected text",
    ),
    ("crf", lambda f: f.set("local", to=1), "local: expected true or false"),
    ("crf", lambda f: f.set("meta", to=None), "meta: expected object"),
    ("crf", lambda f: f.set("meta", "learner", to={}), "meta.learner: expected text"),
    ("crf", lambda f: f.set("meta", "learner", to="x"), "no learner 'x'"),
    ("crf", lambda f: f.drop("meta", "learner"), "no learner None"),
    ("crf", lambda f: f.set("meta", "params", to=[1]), "meta.params: expected object"),
    ("crf", lambda f: f.set("meta", "params", "l2", to=-1.0), "meta.params: l2=-1.0: expected number >= 0"),
    (
        "crf",
        lambda f: f.set("meta", "params", "l2", to=10**400),
        "meta.params: l2=a number of 1329 bits: expected finite number",
    ),
    ("crf", lambda f: f.set("meta", "params", "features", to=[1]), "meta.params: features: expected"),
    (
        "crf",
        lambda f: f.set("meta", "metrics", "objective", to="x"),
        "meta.metrics.objective: expected number, found 'x'",
    ),
    (
        "crf",
        lambda f: f.set("meta", "metrics", "objective", to=10**400),
        "meta.metrics.objective: expected finite number, found a number of 1329 bits",
    ),
    ("crf", lambda f: f.set("meta", "metrics", "best_iteration", to=-1), "meta.metrics.best_iteration: expected"),
    ("crf-columns", lambda f: f.set("meta", "columns", to="x"), "meta.columns: expected list"),
    ("crf", lambda f: f.set("arrays", to=["weights"]), "arrays: 'weights': expected an array of the learner"),
    ("crf", lambda f: f.set("arrays", to=["nothing"]), "arrays: 'nothing': expected an array of the learner"),
    ("crf-order2", lambda f: f.set("lookback", "m", to=4), "lookback.m: expected integer >= 1 and <= 3"),
    ("crf-order2", lambda f: f.set("lookback", "p", to=10**9), "lookback: expected [0-9]+ weights for 5 labels"),
    ("crf-order2", lambda f: f.set("lookback", "m", to=3), "lookback: expected 750 weights for 5 labels, found 125"),
    ("crf-order2", lambda f: f.drop("lookback", "tuples"), "lookback: the member 'tuples' is missing"),
    ("crf-rules", lambda f: f.set("constraints", "forbidden", to=[["X", "O"]]), "constraints: .*unknown label 'X'"),
    ("crf-rules", lambda f: f.set("constraints", "forbidden", to=[["O"]]), r"constraints.forbidden\[0\]: expected"),
    ("crf-rules", lambda f: f.set("constraints", "scheme", to="x"), "constraints: .*x"),
    ("crf-rules", lambda f: f.set("constraints", "more", to=1), "constraints: unknown member .more., expected"),
    ("perceptron-poly", lambda f: f.set("kernel", "name", to="sigmoid"), "kernel.name: expected one of"),
    ("perceptron-poly", lambda f: f.set("kernel", "degree", to=10**9), "kernel.degree: expected integer"),
    ("perceptron-poly", lambda f: f.set("kernel", "gamma", to=NAN), "kernel.gamma: expected number"),
    ("perceptron-state", lambda f: f.set("meta", "state", "epochs", to=-1), "meta.state.epochs: expected"),
    ("perceptron-state", lambda f: f.replace("state.sums", np.zeros(3)), "state.sums: expected"),
    ("crf", retext(lambda text: text[:-1]), "the header: not JSON"),
    ("crf", retext(lambda text: "[" * 100_000), "nested too deeply"),
    ("crf", retext(lambda text: "[1]"), "expected object"),
    ("crf", retext(lambda text: text[:-1] + ', "labels": ["A"]}'), "'labels' occurs twice"),
    ("crf", retext(lambda text: nest(json.dumps({"meta": {}}), 10)), "'meta' occurs twice"),
    (
        "crf",
        retext(lambda text: text.replace('"tagwise"', '"x": ' + "[" * 900 + "]" * 900 + ', "tagwise"')),
        "levels",
    ),
    (
        "crf",
        retext(lambda text: text.replace('"n_attributes"', '"n": ' + "1" * 5000 + ', "n_attributes"')),
        "not JSON",
    ),
    ("crf", lambda f: f.add("weights", f.array("weights").data + 1), "have the same name"),
    ("crf", lambda f: f.remove("ends"), "array 'ends' is missing"),
    ("crf", lambda f: f.replace("starts", f.array("starts").data.astype("<u4")), "'starts': expected type u16"),
    ("crf", lambda f: f.change("vocab.text", 0, 0xFF), "vocab.text is not UTF-8"),
    ("crf-columns", lambda f: split_character(f), "vocab.end: a text begins inside a character"),
    ("crf", lambda f: f.change("weights", 3, NAN), r"weights\[3\] is nan"),
    ("crf", lambda f: f.change("weights", 0, -INF), r"weights\[0\] is -inf"),
    ("crf-order2", lambda f: f.change("lookback", 7, INF), r"lookback\[7\] is inf"),
    ("perceptron-poly", lambda f: f.change("beta.value", 0, NAN), r"beta.value\[0\] is nan"),
    ("perceptron-linear", lambda f: f.change("support.values", 0, INF), r"support.values\[0\] is inf"),
    ("perceptron-state", lambda f: f.change("state.sums", 2, NAN), r"state.sums\[2\] is nan"),
    ("perceptron-state", lambda f: f.change("state.weights", 2, 0x7F800000), r"state.weights\[2\] is inf"),
    ("boosting", lambda f: f.change("boosting.feature", 0, 10**6), "boosting.feature: expected features below"),
    ("boosting", lambda f: f.change("boosting.step", 0, INF), r"boosting.step\[0\] is inf"),
    ("boosting", lambda f: f.remove("boosting.step"), "array 'boosting.step' is missing"),
    (
        "crf-dictionary",
        lambda f: f.change("dictionary.of", 0, 10**6),
        "dictionary: expected a non-empty set for every word",
    ),
    ("crf-dictionary", lambda f: f.change("dictionary.end", 0, 10**6), "dictionary: expected words inside its text"),
    ("crf-dictionary", lambda f: f.change("dictionary.sets", 0, 7), "dictionary.sets: expected rows of 5"),
    ("crf-dictionary", lambda f: f.remove("dictionary.sets"), "array 'dictionary.sets' is missing"),
]  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS, ids=[f"{i} {row[0]} {row[2]:.40}" for i, row in enumerate(FAULTS)])
def test_errors_name_file_field_and_expected_value(
    fault: tuple[str, Callable[[Forgery], Any], str], tmp_path: Path
) -> None:
    """The error gives the file, the field and the expected value."""
    name, edit, message = fault
    forged = golden(name)
    edit(forged)
    path = forged.write(tmp_path / "forged.tagwise")
    with pytest.raises(tw.exceptions.ModelFileError, match=rf"^{path}: .*{message}"):
        tw.load(path)


@pytest.mark.parametrize("name", make.SAVED)
def test_unmodified_forgery_equals_the_golden_file(name: str, tmp_path: Path) -> None:
    """Forging without a change is harmless: loaded and saved, the file has the bytes of the golden file."""
    path = make.FOLDER / f"{name}.tagwise"
    how = {"state": True} if "state" in make.SAVED[name][1] else {}
    tw.load(golden(name).write(tmp_path / "m")).save(tmp_path / "again", **how)
    tw.load(path).save(tmp_path / "direct", **how)
    assert (tmp_path / "again").read_bytes() == (tmp_path / "direct").read_bytes()


# --- what is not written ------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrong", [NAN, INF, -INF])
def test_non_finite_weights_are_not_saved(wrong: float, tmp_path: Path) -> None:
    """Weights of features, higher-order labels and learner state. The error names the file, which is not created."""
    path = tmp_path / "m.tagwise"
    model = tw.load(make.FOLDER / "crf-order2.tagwise").model_
    weights = model.scorer.weights.copy()
    weights[1] = wrong
    assert model.lookback is not None
    further = model.lookback.weights.copy()
    further[2] = wrong
    for broken, message in (
        (replace(model, scorer=_core.Scorer(model.scorer.layout, weights)), r"weights\[1\]"),
        (replace(model, lookback=model.lookback.with_weights(further)), r"lookback\[2\]"),
        (replace(model, arrays={"mine": np.array([wrong])}), r"mine\[0\]"),
    ):
        with pytest.raises(tw.exceptions.ModelFileError, match=rf"^{path}: not written: {message} is"):
            broken.save(path)
    assert list(tmp_path.iterdir()) == []


def test_large_finite_weights_are_saved(tmp_path: Path) -> None:
    """The sum of these weights is infinite, but each weight is finite."""
    forged = golden("crf")
    forged.array("weights").data[:] = 3e38
    model = tw.load(forged.write(tmp_path / "m")).model_
    assert np.all(model.scorer.weights == np.float32(3e38))
    model.save(tmp_path / "again")


@pytest.mark.parametrize(
    "entry",
    [b"x", "\ud800", {1, 2}, object(), np.float32(1)],
    ids=["bytes", "surrogate", "set", "object", "NumPy"],
)
def test_unserializable_metadata_is_rejected(entry: Any, tmp_path: Path) -> None:
    """Entries that users add to a model's metadata."""
    model = tw.load(make.FOLDER / "crf.tagwise").model_.with_meta(mine=entry)
    with pytest.raises(
        tw.exceptions.ModelFileError, match="not written: the header cannot be written as JSON"
    ):
        model.save(tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


# --- by chance ----------------------------------------------------------------------------------------------


def test_forged_model_files_load_or_raise_a_typed_error() -> None:
    """Each loads and works or raises a TagwiseError. No other exception is raised, and no process dies."""
    seen, found = run(seed=1, first=0, count=400)
    assert found == []
    assert sum(seen.values()) == 400
    assert seen["load: ModelFileError"] > 200
    assert seen["went well"] > 20
