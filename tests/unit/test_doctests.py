"""The examples in docstrings produce the output they show."""

from __future__ import annotations

import doctest
import importlib
import importlib.util
import pkgutil
from pathlib import Path

import pytest

import tagwise

#: The core, which is not Python, and modules that need a package that is not installed.
NEEDS = {
    "tagwise.torch": "torch",
    "tagwise.apps.annotate.app": "starlette",
    "tagwise.apps.annotate.server": "starlette",
    "tagwise.apps.serve": "starlette",
    "tagwise.apps.web.": "starlette",
}
LEFT_OUT = (
    "tagwise._core",
    *(name for name, package in NEEDS.items() if not importlib.util.find_spec(package)),
)
MODULES = sorted(
    name
    for _, name, _ in pkgutil.walk_packages(tagwise.__path__, "tagwise.")
    if not name.startswith(LEFT_OUT)
)
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def examples(name: str) -> list[doctest.DocTest]:
    """Return the docstrings of a module that contain examples."""
    found = doctest.DocTestFinder(exclude_empty=True).find(importlib.import_module(name), name)
    return [test for test in found if test.examples]


CASES = [
    (name, test) for name in ("tagwise", *MODULES) if not name.endswith("__main__") for test in examples(name)
]


@pytest.mark.parametrize("test", [test for _, test in CASES], ids=[test.name for _, test in CASES])
def test_examples(test: doctest.DocTest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The output equals the documented one. Files are written to an empty folder."""
    monkeypatch.chdir(tmp_path)
    output: list[str] = []
    result = doctest.DocTestRunner(optionflags=FLAGS).run(test, out=output.append, clear_globs=False)
    assert result.attempted == len(test.examples)
    assert not result.failed, "".join(output)


def test_every_docstring_example_is_collected() -> None:
    """Every prompt in a source file belongs to one of the tests above."""
    folder = Path(tagwise.__file__).parent
    written = sum(
        line.lstrip().startswith(">>> ")
        for path in folder.rglob("*.py")
        if not ".".join(("tagwise", *path.relative_to(folder).parts)).startswith(LEFT_OUT)
        for line in path.read_text("utf-8").splitlines()
    )
    assert written == sum(len(test.examples) for _, test in CASES)
    assert written > 0
