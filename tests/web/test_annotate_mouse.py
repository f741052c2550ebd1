"""Labelling with the mouse and with fingers: an active label, the popover, and one action per span."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.web.annotate_session import TEXT
from tests.web.browser import accept, drag, needs_browser, says, server, spans, text_file, tokens, visit

pytestmark = needs_browser
OPTIONS = ("--format", "text", "--strategy", "order", "--labels", "PER,LOC")
NAMES = "Anna Maria Berg met Peter in New York City yesterday ."


def names_file(folder: Path) -> str:
    """Write sentences with names of several words, and return the path."""
    path = folder / "names.txt"
    path.write_text("\n".join(f"{NAMES} #{k}" for k in range(40)) + "\n", encoding="utf-8")
    return str(path)


def label(page: Any, name: str) -> Any:
    return page.locator("#labels button", has_text=name)


def test_an_active_label_labels_what_is_dragged_clicked_or_double_clicked(
    tmp_path: Path, chromium: Any
) -> None:
    with server(tmp_path / "w", names_file(tmp_path), *OPTIONS) as (url, _), visit(chromium, url) as page:
        label(page, "PER").click()
        assert label(page, "PER").get_attribute("aria-pressed") == "true"
        drag(page, 0, 2)
        assert spans(page) == [("Anna Maria Berg", "PER")]
        page.click("#t4")
        assert spans(page)[-1] == ("Peter", "PER")
        label(page, "LOC").click()
        page.dblclick("#t7")  # the whole run of capitalized words
        assert spans(page) == [("Anna Maria Berg", "PER"), ("Peter", "PER"), ("New York City", "LOC")]
        assert page.locator("#popover").is_hidden()
        page.keyboard.press("Control+z")
        assert len(spans(page)) == 2  # a double click is one action
        page.keyboard.press("Escape")
        assert page.locator("#labels [aria-pressed=true]").count() == 0


def test_a_double_click_extends_a_labelled_word_to_the_name(tmp_path: Path, chromium: Any) -> None:
    with server(tmp_path / "w", names_file(tmp_path), *OPTIONS) as (url, _), visit(chromium, url) as page:
        label(page, "PER").click()
        page.click("#t1")
        assert spans(page) == [("Maria", "PER")]
        page.wait_for_timeout(500)  # two clicks in less time are a double click
        page.dblclick("#t1")
        assert spans(page) == [("Anna Maria Berg", "PER")]


def test_enter_accepts_after_the_mouse_has_used_a_button(tmp_path: Path, chromium: Any) -> None:
    """A button that the keyboard has focused is pressed by Enter as usual."""
    with server(tmp_path / "w", names_file(tmp_path), *OPTIONS) as (url, _), visit(chromium, url) as page:
        for n, button in enumerate(("#theme", "#list-done", "#tab-files", "#finish"), 1):
            page.click(button)
            if button == "#finish":
                page.wait_for_selector("#end .facts")
                page.click(button)
                assert page.evaluate("document.activeElement.id") == "sentence"
            page.keyboard.press("Enter")
            says(page, f"Saved · {n} of")
        page.focus("#theme")
        page.keyboard.press("Tab")
        page.keyboard.press("Shift+Tab")
        before = page.get_attribute("html", "data-theme")
        page.keyboard.press("Enter")
        assert page.get_attribute("html", "data-theme") != before
        says(page, "Saved · 4 of")


def test_a_key_makes_a_label_active_for_the_mouse(tmp_path: Path, chromium: Any) -> None:
    with server(tmp_path / "w", names_file(tmp_path), *OPTIONS) as (url, _), visit(chromium, url) as page:
        page.click("#t4")
        page.keyboard.press("Escape")
        page.keyboard.press("2")
        assert label(page, "LOC").get_attribute("aria-pressed") == "true"
        assert spans(page) == []
        drag(page, 6, 8)
        assert spans(page) == [("New York City", "LOC")]


def test_the_popover_labels_replaces_and_removes(tmp_path: Path, chromium: Any) -> None:
    with server(tmp_path / "w", names_file(tmp_path), *OPTIONS) as (url, _), visit(chromium, url) as page:
        drag(page, 0, 2)
        assert spans(page) == []
        popover, last = page.locator("#popover").bounding_box(), page.locator("#t2").bounding_box()
        assert popover["y"] + popover["height"] <= last["y"] + 1
        assert abs(popover["x"] + popover["width"] / 2 - last["x"] - last["width"]) < 150
        page.click("#popover button:has-text('PER')")
        assert spans(page) == [("Anna Maria Berg", "PER")]
        assert page.locator("#popover").is_hidden()
        page.click("#sentence .chip")
        page.click("#popover button:has-text('LOC')")
        assert spans(page) == [("Anna Maria Berg", "LOC")]
        page.click("#t1")
        page.click("#removespan")
        assert spans(page) == []
        drag(page, 6, 8)
        assert page.locator("#popover").is_visible()
        page.click("#origin")  # a click elsewhere closes it
        assert page.locator("#popover").is_hidden()
        page.keyboard.press("2")  # a key labels the selection too
        assert spans(page) == [("New York City", "LOC")]


def test_a_click_on_a_span_replaces_or_removes_it(tmp_path: Path, chromium: Any) -> None:
    with server(tmp_path / "w", names_file(tmp_path), *OPTIONS) as (url, _), visit(chromium, url) as page:
        label(page, "PER").click()
        drag(page, 6, 8)
        label(page, "LOC").click()
        page.click("#t7")
        assert spans(page) == [("New York City", "LOC")]
        page.click("#t8")  # at another place, so that it is not a double click
        assert spans(page) == []


def test_forty_sentences_take_one_action_per_span(tmp_path: Path, chromium: Any) -> None:
    """Mouse actions of labelling without proposals: one per span, one per change of the label and one per sentence."""
    with server(tmp_path / "w", names_file(tmp_path), *OPTIONS) as (url, _), visit(chromium, url) as page:
        page.evaluate(
            "() => { window.actions = 0; addEventListener('pointerdown', () => window.actions++, true); }"
        )
        n = changes = 0
        active = ""
        for k in range(40):
            if spans(page):  # proposals are removed, so that every span is labelled by the mouse
                for key in ("Home", "Shift+End", "Delete"):
                    page.keyboard.press(key)
            order = [("PER", 0, 2), ("PER", 4, 4), ("LOC", 6, 8)]
            for name, first, last in order if k % 2 == 0 else order[::-1]:
                if name != active:
                    label(page, name).click()
                    active, changes = name, changes + 1
                n += 1
                if first == last:
                    page.click(f"#t{first}")
                elif first == 0 and k % 4 == 0:
                    page.dblclick(f"#t{first}")
                else:
                    drag(page, first, last)
            assert spans(page) == [("Anna Maria Berg", "PER"), ("Peter", "PER"), ("New York City", "LOC")]
            accept(page, "click")
        total = page.evaluate("window.actions")
        doubles = 10  # a double click has two pointer events
        assert n == 120
        assert changes == 41
        assert total - changes - 40 - doubles == n


def swipe(page: Any, first: int, last: int) -> None:
    """Drag a finger over the tokens from first to last."""
    session = page.context.new_cdp_session(page)
    begin, end = (page.locator(f"#t{t}").bounding_box() for t in (first, last))
    y = begin["y"] + begin["height"] / 2
    places = [begin["x"] + 4, begin["x"] + 30, end["x"] + 4, end["x"] + end["width"] - 4]
    for kind, x in zip(("touchStart", "touchMove", "touchMove", "touchMove"), places):
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [{"x": x, "y": y}]})
    session.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})


def test_fingers_label_by_tap_and_by_drag(tmp_path: Path, chromium: Any) -> None:
    phone = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
    with (
        server(tmp_path / "w", text_file(tmp_path), *OPTIONS) as (url, _),
        visit(chromium, url, **phone) as page,
    ):
        page.tap("#t0")
        page.tap("#popover button:has-text('PER')")
        assert spans(page) == [(TEXT[0][0], "PER")]
        label(page, "LOC").tap()
        page.tap("#t3")
        assert spans(page) == [(TEXT[0][0], "PER"), (TEXT[0][3], "LOC")]
        page.tap("#accept")
        page.wait_for_function("() => document.getElementById('counts').textContent.startsWith('1 of')")
        assert tokens(page) == TEXT[1]
        label(page, "PER").tap()
        page.wait_for_selector("#labels [aria-pressed=true]:has-text('PER')")
        swipe(page, 0, 2)
        page.wait_for_selector("#sentence .span:has(#t0):has(#t2)")
        assert (" ".join(TEXT[1][:3]), "PER") in spans(page)
        page.keyboard.press("Escape")  # no label is active
        swipe(page, 1, 2)
        page.click("#popover button:has-text('LOC')")
        page.wait_for_selector("#sentence .span:has(#t1):has(#t2):not(:has(#t0))")
        assert (" ".join(TEXT[1][1:3]), "LOC") in spans(page)


@pytest.mark.parametrize("width", [390, 1280])
def test_the_sentence_is_large_and_centred_between_its_context(
    tmp_path: Path, chromium: Any, width: int
) -> None:
    size = {"viewport": {"width": width, "height": 800}}
    with (
        server(tmp_path / "w", text_file(tmp_path), *OPTIONS) as (url, _),
        visit(chromium, url, **size) as page,
    ):
        page.click("#rows li:nth-child(2) button")
        page.wait_for_function("() => document.getElementById('place').textContent === 'Sentence 2'")
        assert page.inner_text("#before") == " ".join(TEXT[0])
        assert page.inner_text("#after") == " ".join(TEXT[2])
        box = {
            name: page.locator(f"#{name}").bounding_box()
            for name in ("before", "sentence", "after", "labels")
        }
        assert box["before"]["y"] < box["sentence"]["y"] < box["after"]["y"] < box["labels"]["y"]
        editor = page.locator("#editor").bounding_box()
        middle = box["sentence"]["x"] + box["sentence"]["width"] / 2
        assert abs(middle - editor["x"] - editor["width"] / 2) < 3
        sizes = page.evaluate(
            "() => ['sentence', 'before'].map(id => parseFloat(getComputedStyle(document.getElementById(id)).fontSize))"
        )
        assert sizes[0] >= (24 if width == 1280 else 20)
        assert sizes[0] > sizes[1]
        bar = page.locator("#actions").bounding_box()
        assert bar["y"] + bar["height"] == pytest.approx(800, abs=1)
        page.mouse.wheel(0, 300)
        page.wait_for_function("() => scrollY > 0")
        assert page.locator("#accept").bounding_box()["y"] > 700
        page.click("#accept")
        page.wait_for_function("() => document.getElementById('status').textContent.startsWith('Saved')")
        assert re.match(r"Saved · 1 of 17", page.inner_text("#status"))


def test_the_page_uses_everyday_words(tmp_path: Path, chromium: Any) -> None:
    with server(tmp_path / "w", text_file(tmp_path), *OPTIONS) as (url, _), visit(chromium, url) as page:
        for _ in range(4):
            accept(page)
        assert "left" in page.inner_text("#counts")
        assert re.fullmatch(r"Saved · 4 of 17 · .* left", page.inner_text("#status"))
        titles = page.eval_on_selector_all("#strategy option", "found => found.map(e => e.textContent)")
        assert titles[0] == "Most useful first (recommended)"
        shown = page.inner_text("body") + " ".join(titles)
        for word in ("margin", " ms", "Learned in", "posterior", "committee"):
            assert word not in shown


def test_context_stays_in_the_document(tmp_path: Path, chromium: Any) -> None:
    path = tmp_path / "two.jsonl"
    path.write_text(
        '{"tokens": ["one"], "newdoc": "first"}\n{"tokens": ["two"]}\n{"tokens": ["three"], "newdoc": "second"}\n'
    )
    with (
        server(tmp_path / "w", str(path), "--strategy", "order", "--labels", "A") as (url, _),
        visit(chromium, url) as page,
    ):
        found = []
        for number in (1, 2, 3):
            page.click(f"#rows li:nth-child({number}) button")
            page.wait_for_function(
                "n => document.getElementById('place').textContent === `Sentence ${n}`", arg=number
            )
            found.append((page.inner_text("#before"), page.inner_text("#after"), page.inner_text("#origin")))
        titles = [f"two.jsonl · {name}" for name in ("first", "first", "second")]
        assert found == [("", "two", titles[0]), ("one", "", titles[1]), ("", "", titles[2])]


def test_text_is_shown_with_its_own_spaces(tmp_path: Path, chromium: Any) -> None:
    """Tokens of raw text are as far apart as in the text, in the sentence, its context and the list."""
    path = tmp_path / "raw.txt"
    path.write_text("Anna's in Oslo, not Rome.\nShe didn't stay (long).\n", encoding="utf-8")
    with (
        server(tmp_path / "w", str(path), "--strategy", "order", "--labels", "PER,LOC") as (url, _),
        visit(chromium, url) as page,
    ):
        assert tokens(page) == ["Anna", "'s", "in", "Oslo", ",", "not", "Rome", "."]
        assert page.inner_text("#sentence").strip() == "Anna's in Oslo, not Rome."
        assert page.inner_text("#after") == "She didn't stay (long)."
        assert page.inner_text("#rows li:nth-child(2) .phrase").strip() == "She didn't stay (long)."
        label(page, "LOC").click()
        page.click("#t3")
        assert spans(page) == [("Oslo", "LOC")]
        assert re.sub(r"\s*LOC", "", page.inner_text("#sentence")).strip() == "Anna's in Oslo, not Rome."


def test_a_label_is_on_the_line_of_its_last_word(tmp_path: Path, chromium: Any) -> None:
    """On a narrow screen, a span of many words is broken between words, and never before its label."""
    path = tmp_path / "long.txt"
    path.write_text(" ".join(["Word"] * 40) + "\n", encoding="utf-8")
    with (
        server(tmp_path / "w", str(path), *OPTIONS) as (url, _),
        visit(chromium, url, viewport={"width": 390, "height": 844}) as page,
    ):
        label(page, "PER").click()
        for t in range(0, 40, 2):
            page.click(f"#t{t}")
        rows = page.eval_on_selector_all(
            "#sentence .chip",
            "found => found.map(e => [e, e.previousSibling].map(x => { const r = x.getBoundingClientRect(); "
            "return r.top + r.height / 2; }))",
        )
        assert len(rows) == 20
        assert len({round(place) for _, place in rows}) > 3
        assert all(abs(chip - word) < 12 for chip, word in rows)
