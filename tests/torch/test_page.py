"""Code of documentation pages that need torch, and docstring examples of tagwise.torch."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="torch is not installed: make test-torch")

from tools.shows import pages


@pytest.mark.parametrize("page", [page for page in pages.PAGES if "torch" in pages.needed(page)])
def test_code_blocks_of_pages_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = pages.Run(page, tmp_path)
    monkeypatch.chdir(run.work)
    assert run.all("python")


@pytest.mark.parametrize("name", ["layer", "heads", "distribution"])
def test_docstring_examples(name: str) -> None:
    module = importlib.import_module(f"tagwise.torch.{name}")
    found = doctest.testmod(module)
    assert found.attempted
    assert not found.failed
