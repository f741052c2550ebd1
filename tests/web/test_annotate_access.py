"""Accessibility of the labelling page by the rules of axe-core, and the page on a phone."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from tests.web.browser import accept, by_keys, drag, needs_browser, server, text_file, visit

pytestmark = needs_browser
OPTIONS = ("--format", "text", "--strategy", "order", "--labels", "PER,LOC,ORG")
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
DESKTOP = {"viewport": {"width": 1280, "height": 800}}
#: Controls that are smaller than 44 px in one direction.
SMALL = """() => [...document.querySelectorAll("button, a, input, select, .file")].filter(e => {
  const { width, height } = e.getBoundingClientRect();
  return e.checkVisibility() && !e.matches(".skip, .file input") && (height < 43.5 || width < 43.5);
}).map(e => e.outerHTML.slice(0, 80))"""


def violations(page: Any) -> list[str]:
    """Return the violations that axe-core finds, with the first element of each."""
    source = pytest.importorskip(
        "axe_playwright_python", reason="axe-core is not installed: make test-browser"
    )
    if not page.evaluate("() => 'axe' in window"):
        page.evaluate((resources.files(source) / "axe.min.js").read_text())
    found = page.evaluate("async () => (await axe.run({ resultTypes: ['violations'] })).violations")
    return [f"{one['id']}: {one['nodes'][0]['html'][:150]}" for one in found]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("screen", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_axe_finds_no_violation(tmp_path: Path, chromium: Any, screen: dict[str, Any], scheme: str) -> None:
    """In every view: labelling, lists, panels, popover, label dialog, keys, guidelines, and the end."""
    (tmp_path / "g.md").write_text("# Guidelines\n\n- one\n")
    options = (*OPTIONS, "--guidelines", str(tmp_path / "g.md"))
    with (
        server(tmp_path / "w", text_file(tmp_path), *options) as (url, _),
        visit(chromium, url, color_scheme=scheme, **screen) as page,
    ):
        for _ in range(2):
            by_keys(page)
            accept(page)
        page.keyboard.press("s")
        page.wait_for_function("() => document.querySelector('#list-skipped b').textContent === '1'")
        page.keyboard.press("f")
        page.wait_for_function("() => document.querySelector('#list-flagged b').textContent === '1'")
        assert violations(page) == []
        for tab in ("done", "skipped", "flagged", "todo"):
            page.click(f"#list-{tab}")
            page.wait_for_function(
                "tab => document.querySelectorAll('#rows li').length === "
                "Math.min(12, parseInt(document.querySelector(`#list-${tab} b`).textContent))",
                arg=tab,
            )
            assert violations(page) == []
        for tab in ("mistakes", "compare", "files"):
            page.click(f"#tab-{tab}")
            assert violations(page) == []
        page.focus("#sentence")
        page.keyboard.press("w")
        page.wait_for_selector("#panel-why .votes")
        assert violations(page) == []
        page.evaluate("scrollTo(0, 0)")
        drag(page, 1, 2)
        page.wait_for_selector("#popover:not([hidden])")
        assert violations(page) == []
        page.click("#manage")
        page.wait_for_selector("#labellist li")
        assert violations(page) == []
        page.keyboard.press("Escape")
        page.keyboard.press("?")
        assert violations(page) == []
        page.keyboard.press("Escape")
        page.keyboard.press("g")
        page.wait_for_selector("#guidelines h2")
        assert violations(page) == []
        page.keyboard.press("g")
        page.click("#finish")
        page.wait_for_selector("#end .facts")
        assert violations(page) == []


def test_targets_on_a_phone_are_large_and_the_header_is_short(tmp_path: Path, chromium: Any) -> None:
    with (
        server(tmp_path / "w", text_file(tmp_path), *OPTIONS) as (url, _),
        visit(chromium, url, **PHONE) as page,
    ):
        by_keys(page)
        accept(page)
        assert page.evaluate(SMALL) == []
        heights = page.eval_on_selector_all(
            "#sentence .tok", "found => found.map(e => e.getBoundingClientRect().height)"
        )
        assert min(heights) >= 44
        assert page.locator("header").bounding_box()["height"] <= 56
        assert page.locator("kbd:visible").count() == 0
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        page.click("#commentbutton")
        assert page.evaluate(SMALL) == []
        lines = page.eval_on_selector_all(
            "#commentform :is(label, button)", "found => found.map(e => e.getClientRects().length)"
        )
        assert lines == [1, 1]
        assert page.locator("#commentform label").bounding_box()["height"] < 30
        for tab in ("mistakes", "compare", "files"):
            page.click(f"#tab-{tab}")
            assert page.evaluate(SMALL) == []
        page.click("#manage")
        page.wait_for_selector("#labellist li")
        assert page.evaluate(SMALL) == []
        assert page.evaluate("document.querySelector('#labeldialog').scrollWidth <= innerWidth")
        page.keyboard.press("Escape")
        page.click("#finish")
        page.wait_for_selector("#end .facts")
        assert page.evaluate(SMALL) == []
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
