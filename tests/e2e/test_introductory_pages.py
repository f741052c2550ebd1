"""The introductory pages run and produce the results they state."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tools.shows import pages


def names_of(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Return the names that the Python of a page defines."""
    run = pages.Run(page, tmp_path)
    monkeypatch.chdir(run.work)
    assert run.all("python")
    return run.names


def test_readme_example_prints_its_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The spans below the example are those that it prints, with their offsets."""
    names = names_of("README.md", tmp_path, monkeypatch)
    shown = next(block.shown for block in pages.of("README.md") if block.language == "python")
    found = names["tagger"].tag("Anna flew to Oslo. Peter lives in London.")
    assert shown is not None
    assert shown.split() == " ".join(f"{s.label} {s.text} {s.start} {s.end}" for s in found).split()


@pytest.mark.slow
def test_first_ten_minutes_page_finds_london(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The entity tagger finds the place and the person in the page's sentences."""
    names = names_of("docs/start/first-tagger.md", tmp_path, monkeypatch)
    found = names["tagger"].predict(names["sentences"])
    assert found[0] == ["O", "O", "B-location", "O"]
    assert found[1] == ["B-person", "I-person", "O", "O"]
