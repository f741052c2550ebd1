"""`tagwise.compat.install()`: the names of the originals mean ours, or an error says why not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SHIM = Path(__file__).parents[2] / "packaging" / "tagwise-crfsuite" / "src"


def run(script: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", script],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


USE = """
import pycrfsuite
from pycrfsuite import Trainer
from pycrfsuite._dumpparser import ParsedDump
import sklearn_crfsuite, sklearn_crfsuite.metrics, sklearn_crfsuite.trainer
from sklearn_crfsuite.utils import flatten
import tagwise.compat.pycrfsuite as ours
assert pycrfsuite is ours and Trainer is ours.Trainer
assert sklearn_crfsuite.trainer.LinePerIterationTrainer.__mro__[1] is Trainer
assert pycrfsuite.__name__ == "tagwise.compat.pycrfsuite" and pycrfsuite.__spec__.name == pycrfsuite.__name__
print("ours")
"""


def test_by_a_call() -> None:
    """Twice is once; afterwards everything below the names is ours."""
    assert run(f"import tagwise.compat as c; c.install(); c.install()\n{USE}") == "ours"


def test_by_the_environment() -> None:
    """As soon as tagwise is imported."""
    assert run(f"import tagwise\n{USE}", TAGWISE_CRFSUITE="1") == "ours"


def test_by_the_distribution() -> None:
    """Without a word of tagwise in the program."""
    path = os.pathsep.join([str(SHIM), os.environ.get("PYTHONPATH", "")])
    assert run(USE, PYTHONPATH=path) == "ours"


def test_the_originals_come_back() -> None:
    """For imports to come."""
    pytest.importorskip("pycrfsuite")
    script = (
        "import sys, tagwise.compat as c; c.install(); import pycrfsuite; c.uninstall(); del pycrfsuite\n"
        "import pycrfsuite; print(c.installed(), pycrfsuite.__name__)"
    )
    assert run(script) == "False pycrfsuite"


def test_refused_where_the_original_is_in_use() -> None:
    """By name, with what to do."""
    pytest.importorskip("pycrfsuite")
    script = (
        "import pycrfsuite, tagwise.compat\n"
        "try:\n    tagwise.compat.install()\nexcept ImportError as error:\n    print(error)"
    )
    said = run(script)
    assert said.startswith("pycrfsuite is imported already")
    assert "before anything imports it" in said
