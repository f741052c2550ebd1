"""The notebooks and the shell session of the documentation run and reproduce their committed output."""

from __future__ import annotations

import re
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tools.shows import notebook, pages, refresh, session

import tagwise as tw

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(autouse=True)
def ctrl_c() -> Iterator[None]:
    """Enable SIGINT here and in child processes. A shell starts background jobs with SIGINT ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def outputs(book: dict[str, Any]) -> list[tuple[str, list[str], list[str]]]:
    """Return the kinds of each cell's outputs and the first line of the text. Later lines depend on rounding."""
    out = []
    for cell in book["cells"]:
        for shown in cell.get("outputs", []):
            text = shown.get("text") or shown["data"]["text/plain"]
            out.append((shown["output_type"], sorted(shown.get("data", ())), pages.masked("".join(text))[:1]))
    return out


def answers(page: str) -> list[tuple[str, list[str], bool]]:
    """Return the commands of a page, the first line that each prints, and whether it fails."""
    out = []
    for block in session.BLOCK.finditer(page):
        parts = re.split(r"(?m)^\$ ", block[1])[1:]
        for command, part in zip(session.commands(block[1]), parts):
            printed = part[len(command) + 1 :]
            out.append((command, pages.masked(printed)[:1], "[exit status" in printed))
    return out


#: Notebooks that train on whole corpora and take more than a few seconds.
LONG = {"everyday.ipynb"}


@pytest.mark.parametrize(
    "book",
    [
        pytest.param(str(path.relative_to(DOCS)), marks=[pytest.mark.slow] if path.name in LONG else [])
        for path in sorted(DOCS.rglob("*.ipynb"))
    ],
)
def test_notebooks_reproduce_their_committed_output(
    book: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cells run in order. Texts equal the committed ones except for figures, and displays include HTML."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TAGWISE_CACHE", str(tmp_path / "cache"))
    committed = notebook.read(DOCS / book)
    again = notebook.run(committed)
    assert outputs(again) == outputs(committed)
    html = [
        "".join(shown["data"].get("text/html", ""))
        for cell in committed["cells"]
        for shown in cell.get("outputs", [])
        if "data" in shown
    ]
    assert sum(bool(text) for text in html) >= 5  # corpora, sentences, taggers, reports, explanations


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("bash") is None, reason="the session is bash's")
def test_shell_session_reproduces_its_committed_output(tmp_path: Path) -> None:
    """Commands run in order in an empty home. Their output equals the page except for figures."""
    page = (DOCS / "start" / "shell.md").read_text("utf-8")
    again = session.made(page, tmp_path)
    assert answers(again) == answers(page)
    assert "Traceback" not in page
    assert page.count("\n$ ") == len(
        [c for b in session.BLOCK.finditer(page) for c in session.commands(b[1])]
    )
    assert f"tagwise {tw.__version__}" in page


def test_outputs_on_pages_are_refreshed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`tools.shows.refresh` replaces numbers in the outputs of Python blocks and commands."""
    for module in (pages, refresh):
        monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.chdir(tmp_path)
    page = "```python\nprint('F1', 12.5)\n```\n\n```text\nF1 99.9\n```\n\n```console\n$ echo took 3 s\ntook 2 s\n```\n"
    (tmp_path / "page.md").write_text(page)
    refresh.main(["page.md"])
    assert (tmp_path / "page.md").read_text() == page.replace("99.9", "12.5").replace("took 2", "took 3")
