"""Types of the public interface: `mypy --strict` knows every name, and a user's script passes and runs."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import tagwise as tw
from tagwise.estimators import LEARNERS

from .test_public_names import NAMES, PUBLIC

SCRIPT = Path(__file__).with_name("typing_script.py")
PACKAGE = Path(tw.__file__).parent


def test_mypy_passes_a_script_and_knows_every_public_name(tmp_path: Path) -> None:
    """The script uses every learner: methods return the learner's own type, and X and y reject numbers.

    Each public name has a type, in submodules too, and unknown names are reported.
    """
    pytest.importorskip("mypy", reason="mypy is not installed")
    lines = ["import tagwise as tw", *(f"from tagwise import {name} as {name}" for name in PUBLIC)]
    lines += [f"reveal_type(tw.{name})" for name in PUBLIC]
    for name in NAMES["submodules"].split():
        inner = importlib.import_module(f"tagwise.{name}").__all__
        lines += [f"from tagwise.{name} import {one} as {name}_{one}" for one in inner]
        lines += [f"reveal_type(tw.{name}.{one})" for one in inner]
    names = tmp_path / "names.py"
    names.write_text("\n".join([*lines, "tw.CFR", "tw.read_conll"]))
    options = ("--strict", "--config-file=", "--follow-imports=silent", "--cache-dir", str(tmp_path))
    installed = "site-packages" in PACKAGE.parts
    found = subprocess.run(
        [sys.executable, "-m", "mypy", *options, str(SCRIPT), str(names)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=os.environ | ({} if installed else {"MYPYPATH": str(PACKAGE.parent)}),
    )
    revealed = re.findall(r"Revealed type is \"(.*)\"", found.stdout)
    assert len(revealed) == sum(line.startswith("reveal") for line in lines), found.stdout + found.stderr
    assert "Any" not in revealed
    errors = [line for line in found.stdout.splitlines() if ": error:" in line]
    assert len(errors) == 2, found.stdout
    assert all("names.py" in line and "Module has no attribute" in line for line in errors)


def test_the_script_uses_every_learner_and_runs() -> None:
    """The checked script is complete and true at run time."""
    text = SCRIPT.read_text(encoding="utf-8")
    assert [kind.__name__ for kind in LEARNERS.values() if f": tw.{kind.__name__} = " not in text] == []
    ran = subprocess.run([sys.executable, str(SCRIPT)], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
