"""A source file that a page or a comment names is there: names outlive the files they were written for."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NAMED = re.compile(r"(?<![\w./*<-])((?:[\w-]+/)*[\w-]+\.(?:rs|py))(?![\w*/])")
#: Of pages and sources; "." is for the files of the root itself.
FOLDERS = (".", "docs", "python", "rust", "tests", "benchmarks", "examples", "packaging")
#: Stand for any name, or for a file of the reader's own.
EXAMPLES = {"NAME", "mycosts", "mykernels", "mymodule", "features"}


def sources() -> list[Path]:
    return [p for folder in FOLDERS[2:] for kind in ("py", "rs") for p in (ROOT / folder).rglob(f"*.{kind}")]


FILES = frozenset(p.relative_to(ROOT).as_posix() for p in sources())


def exists(name: str) -> bool:
    """Whether a file has this name, or a path that ends with it."""
    return any(file == name or file.endswith("/" + name) for file in FILES)


def missing(text: str) -> Iterator[str]:
    for name in NAMED.findall(text):
        if Path(name).stem not in EXAMPLES and not exists(name):
            yield name


def said(path: Path) -> Iterator[tuple[int, str]]:
    """Lines and texts of the comments and strings of a file; of Rust, its comments."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        yield from enumerate(text.splitlines(), 1)
    elif not NAMED.search(text):
        return
    elif path.suffix == ".rs":
        yield from ((n, s.partition("//")[2]) for n, s in enumerate(text.splitlines(), 1) if "//" in s)
    else:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            docstring = token.type == tokenize.STRING and token.string.startswith(('"""', 'r"""'))
            if token.type == tokenize.COMMENT or docstring:
                yield from enumerate(token.string.splitlines(), token.start[0])


def speaking() -> list[Path]:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "benchmarks").glob("*.md")]
    return [p for p in pages if p.name != "CHANGELOG.md"] + sources()


@pytest.mark.parametrize("folder", FOLDERS)
def test_files_that_are_named_are_there(folder: str) -> None:
    """In pages, docstrings and comments: a path, or the end of one. What was is for the changelog alone."""
    of = [p for p in speaking() if (p.relative_to(ROOT).parent.parts or ["."])[0] == folder]
    assert of
    gone = [
        f"{path.relative_to(ROOT)}:{line} names {name}"
        for path in of
        for line, text in said(path)
        for name in missing(text)
        if path != Path(__file__)  # which names what is not there
    ]
    assert not gone, "\n".join(gone)


def test_a_file_that_is_gone_is_noticed() -> None:
    """The rule itself: bare names, ends of paths, whole paths, and what only looks like one."""
    here = Path(__file__).relative_to(ROOT).as_posix()
    assert not list(missing(f"{here}, `unit/{Path(__file__).name}` and {Path(__file__).name}."))
    assert list(missing("see `rust/src/nowhere.rs`, learners/nobody.py: or gone.rs")) == [
        "rust/src/nowhere.rs",
        "learners/nobody.py",
        "gone.rs",
    ]
    assert not list(missing("corpus/NAME.py, *.rs, a.rst and docs.rs/pyo3"))
