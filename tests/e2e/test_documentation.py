"""Every Python block of the documentation runs, in its page's order."""

from __future__ import annotations

import doctest
import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(
    "page", [p for p in PAGES if BLOCK.search(p.read_text("utf-8"))], ids=lambda p: p.name
)
def test_the_code_of_a_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = page.read_text("utf-8")
    if "tagwise.torch" in text and importlib.util.find_spec("torch") is None:
        pytest.skip("torch is not installed: make test-torch")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "__page__"}
    for block in BLOCK.finditer(text):
        line = text.count("\n", 0, block.start(1))
        if block[1].startswith(">>>"):
            session = doctest.DocTestParser().get_doctest(block[1], names, page.name, str(page), line)
            outcome = doctest.DocTestRunner(verbose=False).run(session, clear_globs=False)
            assert not outcome.failed, f"{page.name}: {outcome}"
            names = session.globs
            continue
        code = compile("\n" * line + block[1], str(page), "exec")
        exec(code, names)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", page.read_text("utf-8")):
        assert (page.parent / target).exists(), f"{page.name}: {target}"
