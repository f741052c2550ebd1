"""python -m tests.upstream CHECKOUT...: run the tests of python-crfsuite and sklearn-crfsuite on our modules.

A checkout is a folder (an unpacked source distribution) or a git directory. Its folder `tests` is copied to a temporary
folder and run with `tagwise.compat.install()` before any other import. Expected failures must pass, and skipped tests
are run. No upstream file is kept.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

#: Loaded by pytest before the tests to remove the marks of expected failures.
PLUGIN = """
import tagwise.compat

tagwise.compat.install()


def pytest_collection_modifyitems(items):
    for item in items:
        for node in item.listchain():
            node.own_markers = [mark for mark in node.own_markers if mark.name != "xfail"]
"""


def copied(checkout: Path, into: Path) -> None:
    """Copy the tests of a checkout."""
    if (checkout / "tests").is_dir():
        shutil.copytree(checkout / "tests", into / "tests")
        return
    archive = subprocess.run(
        ["git", "--git-dir", str(checkout), "archive", "HEAD", "tests"], check=True, capture_output=True
    )
    subprocess.run(["tar", "-x", "-C", str(into)], input=archive.stdout, check=True)


def run(checkout: Path, more: list[str]) -> int:
    """Run pytest and return its exit code."""
    with tempfile.TemporaryDirectory() as folder:
        copied(checkout, Path(folder))
        Path(folder, "on_tagwise.py").write_text(PLUGIN, "utf-8")
        path = os.pathsep.join([folder, *filter(None, [os.environ.get("PYTHONPATH")])])
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "on_tagwise",
            "-p",
            "no:cacheprovider",
            "tests",
        ]
        return subprocess.run(
            [*command, *more], cwd=folder, env={**os.environ, "PYTHONPATH": path}, check=False
        ).returncode


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.upstream", description=__doc__)
    parser.add_argument("checkouts", nargs="+", type=Path)
    parser.add_argument("--pytest", default="", help="further arguments of pytest")
    given = parser.parse_args()
    return max(run(checkout.resolve(), given.pytest.split()) for checkout in given.checkouts)


if __name__ == "__main__":
    sys.exit(main())
