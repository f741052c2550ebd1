"""The introductory pages run and produce the results they state."""

from __future__ import annotations

import re
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


@pytest.mark.slow
def test_readme_results_are_reproduced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Correct parts of speech for a sentence, and the stated accuracy."""
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
def test_first_ten_minutes_page_finds_london(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The entity tagger finds the place and the person in the page's sentences."""
    names = names_of("docs/start/first-tagger.md", tmp_path, monkeypatch)
    found = names["tagger"].predict(names["sentences"])
    assert found[0] == ["O", "O", "B-location", "O"]
    assert found[1] == ["B-person", "I-person", "O", "O"]
