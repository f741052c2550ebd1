"""The first examples that people read show what they promise."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from .test_documentation import BLOCK, ROOT


def names_of(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, blocks: int) -> dict[str, object]:
    """What the first blocks of a page leave."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for block in [*BLOCK.finditer((ROOT / page).read_text("utf-8"))][:blocks]:
        exec(block[1], names)
    return names


def test_the_readme_prints_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Parts of speech of a sentence as a person would give them, and an accuracy as stated."""
    names = names_of("README.md", tmp_path, monkeypatch, 1)
    text = (ROOT / "README.md").read_text("utf-8")
    promised = re.search(r"\"!\"\]\]\)\) +# (\[\[.*\]\])", text)
    assert promised is not None
    printed = capsys.readouterr().out
    assert printed.splitlines()[0] == promised[1] == "[['PRP', 'VBP', 'NNP', '.']]"
    share = re.search(r"# (\d+) % right", text)
    assert share is not None
    score = names["tagger"].score(names["test"])  # type: ignore[attr-defined]
    assert round(100 * score) == int(share[1]) >= 90


def test_the_tutorial_finds_london(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its entity tagger knows the place and the person of its own sentences."""
    names = names_of("docs/tutorial.md", tmp_path, monkeypatch, 4)
    found = names["tagger"].predict(names["sentences"])  # type: ignore[attr-defined]
    assert found[0] == ["O", "O", "B-location", "O"]
    assert found[1] == ["B-person", "I-person", "O", "O"]
