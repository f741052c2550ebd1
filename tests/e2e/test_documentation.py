"""Every block of code on every page runs or gives a reason for not running."""

from __future__ import annotations

from pathlib import Path

import pytest
from tools.shows import pages


@pytest.mark.parametrize(
    "page",
    [
        page
        for page in pages.PAGES
        if page not in pages.PROMISES + pages.WRITTEN
        and any(b.language == "python" and not b.not_run for b in pages.of(page))
    ],
)
def test_python_blocks_of_pages_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks run in order, in one namespace and an empty folder. The output equals that on the page."""
    run = pages.Run(page, tmp_path)
    monkeypatch.chdir(run.work)
    monkeypatch.syspath_prepend(run.work)
    if not run.all("python"):
        pytest.skip(f"needs {', '.join(sorted(pages.needed(page)))}: make test-torch, test-ray, test-browser")


@pytest.mark.slow
@pytest.mark.parametrize("page", pages.with_commands())
def test_pages_with_commands_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands and Python run from top to bottom in one folder."""
    run = pages.Run(page, tmp_path)
    monkeypatch.chdir(run.work)
    monkeypatch.syspath_prepend(run.work)
    assert run.all(*pages.RUN)
