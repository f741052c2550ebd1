"""Property tests draw equal examples on every machine, and other ones for another seed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROPERTY = """
import json
from hypothesis import given, settings, strategies as st

drawn = []

@settings(max_examples=30)
@given(st.integers(), st.floats())
def test_a_law(i, x):
    drawn.append(repr((i, x)))
    assert {law}

def test_shows_them():
    print(json.dumps(drawn))
"""
#: Constants that Hypothesis would mix in if it inspected local modules.
CONSTANTS = "".join(f"N{i} = {i * 7919 + 10**9}\nX{i} = {i}.0625\n" for i in range(300))


def started(
    folder: Path, *command: str, law: str = "True", **changed: str
) -> subprocess.CompletedProcess[str]:
    """Run the property test above in an empty folder, with the settings of all tests."""
    (folder / "test_property.py").write_text(PROPERTY.format(law=law), "utf-8")
    servers = ("CI", "TF_BUILD", "BUILDKITE", "CIRCLECI", "GITHUB_ACTIONS", "GITLAB_CI", "TEAMCITY_VERSION")
    environment = {k: v for k, v in os.environ.items() if k not in servers and not k.startswith("PYTEST")}
    environment |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT / "python"), str(ROOT)])
    return subprocess.run(
        [sys.executable, *command, "-p", "tests.conftest", "-c", os.devnull, "--rootdir", ".", "test_property.py"],
        cwd=folder,
        env={**environment, **changed},
        capture_output=True,
        text=True,
    )  # fmt: skip


def examples(folder: Path, *options: str, **changed: str) -> list[str]:
    """Return the drawn examples."""
    done = started(folder, "-m", "pytest", "-s", "-q", "-p", "_hypothesis_pytestplugin", *options, **changed)
    assert done.returncode == 0, done.stdout + done.stderr
    return [str(x) for x in json.loads(done.stdout[done.stdout.index("[") : done.stdout.rindex("]") + 1])]


def test_examples_are_deterministic_per_seed(tmp_path: Path) -> None:
    """Also on a build server and after other imports. A seed draws others."""
    usual = examples(tmp_path)
    assert len(set(usual)) > 20
    (tmp_path / "local_constants.py").write_text(CONSTANTS, "utf-8")
    path = os.pathsep.join([str(tmp_path), str(ROOT / "python"), str(ROOT)])
    assert (
        examples(tmp_path, "-p", "local_constants", PYTHONPATH=path, CI="1", GITHUB_ACTIONS="true") == usual
    )
    assert examples(tmp_path, "--hypothesis-seed=7") != usual
    assert not (tmp_path / ".hypothesis" / "examples").exists()
