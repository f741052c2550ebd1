"""`tagwise.compat.install()` makes the names of the originals load the replacements, or raises an error."""

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


def test_install_call() -> None:
    """Installation is idempotent and includes all submodules."""
    assert run(f"import tagwise.compat as c\nc.install()\nc.install()\n{USE}") == "ours"


def test_install_by_environment_variable() -> None:
    """With the environment variable, importing tagwise installs the replacements."""
    assert run(f"import tagwise\n{USE}", TAGWISE_CRFSUITE="1") == "ours"


def test_install_by_distribution() -> None:
    """With the distribution tagwise-crfsuite, programs need not mention tagwise."""
    path = os.pathsep.join([str(SHIM), os.environ.get("PYTHONPATH", "")])
    assert run(USE, PYTHONPATH=path) == "ours"


def test_uninstall_restores_the_originals() -> None:
    """After `uninstall`, imports load the originals."""
    pytest.importorskip("pycrfsuite")
    script = (
        "import tagwise.compat as c\nc.install()\nimport pycrfsuite\nc.uninstall()\ndel pycrfsuite\n"
        "import pycrfsuite\nprint(c.installed(), pycrfsuite.__name__)"
    )
    assert run(script) == "False pycrfsuite"


def test_install_fails_if_the_original_is_imported() -> None:
    """The error names the imported package and the remedy."""
    pytest.importorskip("pycrfsuite")
    script = (
        "import pycrfsuite, tagwise.compat\n"
        "try:\n    tagwise.compat.install()\nexcept ImportError as error:\n    print(error)"
    )
    output = run(script)
    assert output.startswith("pycrfsuite is already imported")
    assert "before anything imports it" in output
