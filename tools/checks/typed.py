"""Measured figures typed by hand: none in README, pages and docstrings.

A measured figure is a score, a time, a size, a rate or a ratio in running text or in a table. It is not typed by hand
between the markers of a generated table or figure (`table`, `cut`, `made`, `fig`, `calc`), in a code block, or in the
output of a command. Settings, limits and file formats are written as code (`30 s`) and are not counted either.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tools.checks import ROOT

_NUMBER = r"(?<![\w.,-])\d[\d,]*(?:\.\d+)?"
_TIME = r"ns|µs|ms|s|seconds?|minutes?|hours?"
_LEVEL = r"(?!\s(?:bootstrap|confidence))"  # of an interval, which is a setting
_UNIT = rf"(?:{_TIME}|[kMG]i?B|%{_LEVEL}|percent|points?|tokens/s|(?:tokens|sentences) per second)"
FIGURES = {
    "quantity": rf"{_NUMBER}(?:\s|-|&nbsp;)?{_UNIT}(?![\w/])",
    "ratio": rf"{_NUMBER}\s?(?:x|times)(?!\w)(?!\s*\d)",
    "score": r"(?<![\w.,=-])\d\d\.\d{1,2}(?![\w]|\.\d)",
}
_ANY = re.compile("|".join(FIGURES.values()))
GENERATED = re.compile(
    r"<!-- (?:table|cut|made) [^>]*-->\n.*?<!-- end -->|<!-- (?:fig|calc) [^>]*-->[^<]*<!-- / -->|<!--.*?-->",
    re.DOTALL,
)
FENCE = re.compile(r"^ *```.*?^ *```[ ]*$", re.MULTILINE | re.DOTALL)
#: Pages that a program writes as a whole, with the output of commands.
WRITTEN = (
    "docs/start/shell.md",
    "docs/start/notebook.md",
    "docs/howto/errors-notebook.md",
    "docs/internals/licences.md",
)


def typed(text: str) -> list[str]:
    """Return the figures that are typed by hand in Markdown.

    >>> typed("Training takes 9.7 s, `30 s` is the limit, F1 is <!-- fig a;b;c -->84.3<!-- / --> or 84.46.")
    ['9.7 s', '84.46']
    >>> typed("It is 5x as fast, a 2 x 3 matrix of 4 MB, version 1.24, 20 sentences.")
    ['5x', '4 MB']
    """
    plain = re.sub(r"`[^`\n]*`|\]\([^)]*\)", "", FENCE.sub("", GENERATED.sub("", text)))
    return [match[0] for match in _ANY.finditer(plain)]


def docstrings(path: Path) -> str:
    """Return the docstrings of a module without the examples in them."""
    nodes = ast.walk(ast.parse(path.read_text("utf-8")))
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    found = [ast.get_docstring(node) or "" for node in nodes if isinstance(node, kinds)]
    return "\n\n".join(re.sub(r"^\s*>>>.*?(?=\n\s*\n|\Z)", "", doc, flags=re.M | re.S) for doc in found)


def counts() -> dict[str, list[str]]:
    """Return the typed figures by file."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    names = {str(path.relative_to(ROOT)): typed(path.read_text("utf-8")) for path in pages}
    for path in sorted((ROOT / "python" / "tagwise").rglob("*.py")):
        names[str(path.relative_to(ROOT))] = typed(docstrings(path))
    return {name: found for name, found in names.items() if found and name not in WRITTEN}


def check_typed() -> Iterator[str]:
    """No figure is typed by hand."""
    for name, found in counts().items():
        yield (
            f"{name}: measured figures typed by hand: {', '.join(map(repr, found[:4]))}. "
            "Cite them with benchmarks.cited or write settings as code"
        )
