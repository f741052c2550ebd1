"""The code of docs/torch.md runs."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch", reason="torch is not installed: make test-torch")

from tests.e2e import test_documentation as pages


def test_the_code_of_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pages.test_the_code_of_a_page_runs(pages.ROOT / "docs" / "torch.md", tmp_path, monkeypatch)
