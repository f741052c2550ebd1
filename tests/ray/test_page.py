"""Code of documentation pages that need Ray, run on the local cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tools.shows import pages


@pytest.mark.filterwarnings("ignore::DeprecationWarning:ray")  # warnings of Ray about its own code
@pytest.mark.parametrize("page", [page for page in pages.PAGES if "ray" in pages.needed(page)])
def test_code_blocks_of_pages_run(
    page: str, nodes: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = pages.Run(page, tmp_path)
    monkeypatch.chdir(run.work)
    assert run.all("python")
