"""Feature functions and kernels of scripts and notebooks: saved by name, passed to `load`, never run from a file."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import tagwise as tw

X = [["Ada", "left"], ["Bob", "slept"]]
Y = [["N", "V"], ["N", "V"]]

SCRIPT = """
import sys
import tagwise as tw

def feats(sentence):
    return [[word[0], str(word.istitle())] for word in sentence.tokens]

if sys.argv[1] == "save":
    tw.CRF(features=feats).fit([["Ada", "left"]], [["N", "V"]]).save("own.tagwise")
else:
    print(tw.load("own.tagwise", functions={"feats": feats}).predict([["Eve", "left"]]))
"""


def feature_function() -> Any:
    """Return a function that cannot be imported, as every function of a notebook."""

    def feats(sentence: Any) -> list[list[str]]:
        return [[word[0], str(word.istitle())] for word in sentence.tokens]

    return feats


def dot(a: Any, b: Any) -> Any:
    return a.dots(b)


def test_functions_of_a_script_are_saved_by_name(tmp_path: Path) -> None:
    """Another process defines the function again and predicts."""
    (tmp_path / "script.py").write_text(SCRIPT)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}

    def run(action: str) -> str:
        done = subprocess.run(
            [sys.executable, "script.py", action],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    assert run("save") == ""
    assert run("load") == "[['N', 'V']]\n"


@pytest.mark.parametrize("trust", [False, True])
def test_error_for_a_missing_function_shows_the_argument_to_pass(trust: bool, tmp_path: Path) -> None:
    """`trust` changes nothing, since there is no module to import."""
    feats = feature_function()
    tagger = tw.CRF(features=feats).fit(X, Y)
    tagger.save(tmp_path / "m.tagwise")
    assert tagger.model_.named_functions == (":feats",)
    loaded = tw.load(tmp_path / "m.tagwise", trust=trust)
    with pytest.raises(
        tw.exceptions.MissingFunctionError,
        match=r"the feature function 'feats' is missing: .* functions=\{'feats': feats\}",
    ):
        loaded.predict(X)
    given = tw.load(tmp_path / "m.tagwise", functions={"feats": feats})
    assert given.predict(X) == tagger.predict(X)
    assert given.features is feats
    given.save(tmp_path / "again.tagwise")
    assert (tmp_path / "again.tagwise").read_bytes() == (tmp_path / "m.tagwise").read_bytes()


def test_importable_functions_passed_for_a_name_keep_the_name(tmp_path: Path) -> None:
    """A model saved from a notebook is still loaded by name after the function moves to a module."""
    tw.CRF(features=feature_function()).fit(X, Y).save(tmp_path / "m.tagwise")
    tw.load(tmp_path / "m.tagwise", functions={"feats": dot}).save(tmp_path / "again.tagwise")
    assert tw.load(tmp_path / "again.tagwise").model_.named_functions == (":feats",)


def test_functions_without_a_name_are_reported_before_training(caplog: pytest.LogCaptureFixture) -> None:
    """A lambda, or two functions of one name. The first iteration comes after the warning."""
    logged: list[str] = []

    def record(_: Any) -> None:
        logged.append(caplog.text)

    feats = feature_function()
    same = tw.Features(feats, feature_function())
    for features, message in (
        (lambda sentence: feats(sentence), "<lambda> has no name"),
        (same, "two feature functions are named 'feats'"),
    ):
        caplog.clear()
        with caplog.at_level(logging.WARNING, "tagwise"):
            tagger = tw.CRF(features=features, max_iter=2).fit(X, Y, callbacks=[record])
        assert message in logged[-1]
        with pytest.raises(tw.exceptions.ParameterError, match=r"has no name|two feature functions"):
            tagger.save("never.tagwise")
    caplog.clear()
    with caplog.at_level(logging.WARNING, "tagwise"):
        tw.CRF(features=feats, max_iter=2).fit(X, Y)
    assert caplog.text == ""
