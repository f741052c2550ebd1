"""Types of the public interface: a user's script passes `mypy --strict` and runs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import tagwise as tw
from tagwise.estimators import LEARNERS

SCRIPT = Path(__file__).with_name("typing_script.py")
PACKAGE = Path(tw.__file__).parent


def test_a_script_with_every_learner_passes_mypy(tmp_path: Path) -> None:
    """`fit`, `partial_fit`, `set_params` and `to` return the learner's own type, and X and y reject numbers."""
    pytest.importorskip("mypy", reason="mypy is not installed")
    installed = "site-packages" in PACKAGE.parts
    ran = subprocess.run(
        [
            sys.executable,
            "-m",
            "mypy",
            "--strict",
            "--config-file=",
            "--follow-imports=silent",
            "--cache-dir",
            str(tmp_path),
            str(SCRIPT),
        ],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=os.environ | ({} if installed else {"MYPYPATH": str(PACKAGE.parent)}),
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_the_script_uses_every_learner_and_runs() -> None:
    """The checked script is complete and true at run time."""
    text = SCRIPT.read_text(encoding="utf-8")
    assert [kind.__name__ for kind in LEARNERS.values() if f": tw.{kind.__name__} = " not in text] == []
    ran = subprocess.run([sys.executable, str(SCRIPT)], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
