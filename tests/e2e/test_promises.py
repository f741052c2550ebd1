"""The first pages that people read run, and show what they promise."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from tools.shows import pages


def names_of(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the Python of a page leaves."""
    run = pages.Run(page, tmp_path)
    monkeypatch.chdir(run.work)
    assert run.all("python")
    return run.names


@pytest.mark.slow
def test_the_readme_prints_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts of speech of a sentence as a person would give them, and an accuracy as stated."""
    names = names_of("README.md", tmp_path, monkeypatch)
    text = (pages.ROOT / "README.md").read_text("utf-8")
    promised = re.search(r"\"!\"\]\]\)\) +# (\[\[.*\]\])", text)
    assert promised is not None
    printed = str(names["tagger"].predict([["I", "love", "London", "!"]]))
    assert printed == promised[1] == "[['PRP', 'VBP', 'NNP', '.']]"
    share = re.search(r"# (\d+) % accuracy", text)
    assert share is not None
    assert round(100 * names["tagger"].score(names["test"])) == int(share[1]) >= 90


@pytest.mark.slow
def test_the_first_ten_minutes_find_london(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its entity tagger knows the place and the person of its own sentences."""
    names = names_of("docs/ten-minutes.md", tmp_path, monkeypatch)
    found = names["tagger"].predict(names["sentences"])
    assert found[0] == ["O", "O", "B-location", "O"]
    assert found[1] == ["B-person", "I-person", "O", "O"]
