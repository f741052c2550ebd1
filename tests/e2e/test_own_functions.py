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
from tagwise.base.exceptions import MissingFunctionError

X = [["Ada", "left"], ["Bob", "slept"]]
Y = [["N", "V"], ["N", "V"]]

SCRIPT = """
import sys
import tagwise as tw
from tagwise.base.exceptions import MissingFunctionError

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
            timeout=600,
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


def test_a_function_under_another_name_is_mentioned(tmp_path: Path) -> None:
    """The names that were passed are in the message, so that a typing error shows."""
    path = tmp_path / "own.tagwise"
    tw.CRF(features=feature_function()).fit(X, Y).save(path)
    tagger = tw.load(path, functions={"feets": feature_function()})
    with pytest.raises(MissingFunctionError, match="'feats' is missing, and functions has only 'feets':"):
        tagger.predict(X)


def test_the_command_line_imports_functions_of_the_working_directory(tmp_path: Path) -> None:
    """The messages name an option that works."""
    (tmp_path / "script.py").write_text(SCRIPT.replace("if sys.argv", "if len(sys.argv) > 1 and sys.argv"))
    (tmp_path / "own.py").write_text(SCRIPT.partition("if sys.argv")[0])
    (tmp_path / "in.txt").write_text("Eve left.\n")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    command = [
        sys.executable,
        "-c",
        "import sys; sys.path.remove(''); from tagwise.cli import main; main()",
        "tag",
    ]

    def run(*args: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            args, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=600
        )

    assert run(sys.executable, "script.py", "save").returncode == 0
    tag = [*command, "own.tagwise", "in.txt"]
    assert "pass it when loading with --functions MODULE:feats" in run(*tag).stderr
    assert "expected module:name, such as own:feats" in run(*tag, "--functions", "own.py:feats").stderr
    done = run(*tag, "--functions", "own:feats")
    assert (done.returncode, done.stderr) == (0, "")
    assert '"text": "Eve"' in done.stdout


def test_a_column_as_an_index_names_the_columns() -> None:
    """A feature function may take a sentence for a mapping."""
    sentence = tw.Sentence({"word": ["a"], "pos": ["DT"]})
    with pytest.raises(
        TypeError, match=r"'word' is not an index of tokens. Columns are in the attribute fields: word, pos"
    ):
        sentence["word"]  # type: ignore[call-overload]
