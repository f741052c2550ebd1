"""All kinds of text on the labelling page: punctuation, emoji, text from right to left, long sentences, markup."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.web.browser import accept, accepted, needs_browser, server, spans, tokens, visit

pytestmark = needs_browser
OPTIONS = ("--strategy", "order", "--labels", "PER,LOC")
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
FAMILY = "👩\u200d👩\u200d👧\u200d👦"
HINDI = "क्\u200dष"
LONG = " ".join(["Mary went to Rome"] * 125)
MARKUP = "<img src=x onerror=window.hit=1>"


def raw_file(folder: Path, *lines: str) -> str:
    path = folder / "raw.txt"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


def left(page: Any, t: int) -> float:
    """Return the left edge of a token."""
    return float(page.locator(f"#t{t}").bounding_box()["x"])


def right(page: Any, t: int) -> float:
    box = page.locator(f"#t{t}").bounding_box()
    return float(box["x"] + box["width"])


@pytest.mark.parametrize("settings", [{}, PHONE], ids=["desktop", "phone"])
def test_punctuation_touches_its_word(tmp_path: Path, chromium: Any, settings: dict[str, Any]) -> None:
    """There is no gap between tokens that the text joins, and a gap between the others."""
    path = raw_file(tmp_path, "It's (not) late.")
    with server(tmp_path / "w", path, *OPTIONS) as (url, _), visit(chromium, url, **settings) as page:
        assert tokens(page) == ["It", "'s", "(", "not", ")", "late", "."]
        gaps = [left(page, t + 1) - right(page, t) for t in range(6)]
        assert [gap > 3 for gap in gaps] == [False, True, False, False, True, False]
        assert all(abs(gap) < 1 for gap in gaps if gap <= 3)


def test_joiners_of_emoji_and_letters_are_not_spelled_out(tmp_path: Path, chromium: Any) -> None:
    """They are part of a character. Elsewhere they are invisible, and shown by their code points."""
    path = raw_file(tmp_path, f"We {FAMILY} read {HINDI} and Pa\u200dris or\u200c not .")
    with (
        server(tmp_path / "w", path, *OPTIONS, "--pretokenized") as (url, _),
        visit(chromium, url) as page,
    ):
        assert tokens(page) == f"We {FAMILY} read {HINDI} and Pa⟨200D⟩ris or⟨200C⟩ not .".split()


def test_search_finds_text_as_it_is_displayed(tmp_path: Path, chromium: Any) -> None:
    path = raw_file(tmp_path, "Nothing here.", 'She said "no (never)", and left.')
    with server(tmp_path / "w", path, *OPTIONS) as (url, _), visit(chromium, url) as page:
        for text in ('"no (never)",  AND', '" no ( never'):
            page.fill("#search", text)
            page.wait_for_function(
                "() => document.getElementById('found').textContent.startsWith('1 sentence')"
            )


def test_words_from_right_to_left_are_selected_in_reading_order(tmp_path: Path, chromium: Any) -> None:
    path = raw_file(tmp_path, "אנה לינדקוויסט גרה בירושלים.")
    with server(tmp_path / "w", path, *OPTIONS) as (url, _), visit(chromium, url) as page:
        assert left(page, 0) > left(page, 1) > left(page, 2)
        page.keyboard.press("Shift+ArrowRight")
        page.keyboard.press("1")
        assert spans(page) == [("אנה לינדקוויסט", "PER")]
        chip = page.locator("#sentence .chip").bounding_box()
        assert chip["x"] + chip["width"] <= left(page, 1) + 1
        accept(page)


def test_a_selection_of_several_words_is_one_band(tmp_path: Path, chromium: Any) -> None:
    with (
        server(tmp_path / "w", raw_file(tmp_path, "one two three four"), *OPTIONS) as (url, _),
        visit(chromium, url) as page,
    ):
        page.keyboard.press("Shift+ArrowRight")
        page.keyboard.press("Shift+ArrowRight")
        chosen = page.eval_on_selector_all("#sentence .chosen", "found => found.map(e => e.textContent)")
        assert "".join(chosen) == "one two three"


@pytest.mark.parametrize("settings", [{}, PHONE], ids=["desktop", "phone"])
def test_a_sentence_of_500_words(tmp_path: Path, chromium: Any, settings: dict[str, Any]) -> None:
    """The keyboard scrolls to the word and moves by lines. The labels stay visible and cover no chosen word."""
    path = raw_file(tmp_path, LONG, "Anna came .")
    with (
        server(tmp_path / "w", path, *OPTIONS, "--pretokenized") as (url, _),
        visit(chromium, url, **settings) as page,
    ):
        assert len(tokens(page)) == 500

        def seen() -> None:
            """Check that the present word is between the header and the labels, which are above the buttons."""
            word = page.locator("#sentence .tok.cursor").bounding_box()
            header, labels, buttons = (
                page.locator(name).bounding_box() for name in ("header", "#labelrow", "#actions")
            )
            assert header["y"] + header["height"] <= word["y"]
            assert word["y"] + word["height"] <= labels["y"]
            assert labels["y"] + labels["height"] <= buttons["y"] + 1

        seen()
        first = page.locator("#t0").bounding_box()
        page.keyboard.press("ArrowDown")
        second = page.locator("#sentence .tok.cursor").bounding_box()
        assert second["y"] > first["y"] + 10
        assert abs(second["x"] - first["x"]) < 100
        page.keyboard.press("ArrowUp")
        assert page.get_attribute("#sentence", "aria-activedescendant") == "t0"
        for _ in range(12):
            page.keyboard.press("ArrowDown")
            seen()
        page.keyboard.press("End")
        seen()
        page.keyboard.press("2")
        assert spans(page) == [("Rome", "LOC")]
        page.keyboard.press("Home")
        seen()
        accept(page)
        assert tokens(page) == ["Anna", "came", "."]


def test_markup_in_every_field_is_text(tmp_path: Path, chromium: Any) -> None:
    """Sentences, labels, descriptions, comments, file names, guidelines, search and errors: nothing is executed."""
    folder = tmp_path / "work"
    label = "<img/src=x/onerror=window.hit=2>"
    (tmp_path / "g.md").write_text(f"# {MARKUP}\n\n- [{MARKUP}](javascript:window.hit=3)\n")
    path = tmp_path / "a<img src=x onerror=window.hit=4>.txt"
    path.write_text(f"{MARKUP} in Oslo\nOslo is old\n")
    options = (*OPTIONS[:2], "--labels", f"{label},LOC", "--guidelines", str(tmp_path / "g.md"), "--raw")
    with server(folder, str(path), *options) as (url, _), visit(chromium, url, refused=2) as page:
        page.keyboard.press("1")
        page.keyboard.press("c")
        page.keyboard.type(MARKUP)
        page.keyboard.press("Enter")
        page.wait_for_function("() => document.getElementById('status').textContent === 'Comment saved.'")
        page.fill("#search", MARKUP)
        page.wait_for_function("() => document.querySelector('#rows .note')")
        assert page.inner_text("#rows .note") == MARKUP
        page.fill("#search", f"{MARKUP}none")
        page.wait_for_function("() => document.getElementById('found').textContent.startsWith('Nothing')")
        page.press("#search", "Escape")
        page.focus("#sentence")
        accept(page)
        page.keyboard.press("w")
        page.wait_for_selector("#panel-why .readings")
        page.keyboard.press("g")
        page.wait_for_selector("#guidelines h2")
        page.keyboard.press("g")
        page.click("#tab-files")
        assert "<img" not in page.inner_html("#documents")
        page.click("#manage")
        page.fill("#newlabel", MARKUP)
        page.press("#newlabel", "Enter")
        page.wait_for_function("() => document.getElementById('labelstatus').textContent.includes('<img')")
        assert (
            "_" in page.inner_text("#labelstatus").rpartition("Use")[2]
        )  # a name without spaces is suggested
        page.get_by_label("Description of LOC").fill(MARKUP)
        page.get_by_label("Description of LOC").press("Tab")
        page.wait_for_function("m => document.querySelector('#labels [title]')?.title === m", arg=MARKUP)
        page.keyboard.press("Escape")
        (tmp_path / "bad.jsonl").write_text(f'{{"text": "ab", "label": [[0, 90, "{MARKUP}"]]}}\n')
        page.set_input_files("#importfile", str(tmp_path / "bad.jsonl"))
        page.wait_for_selector("#status.bad")
        page.click("#finish")
        page.wait_for_selector("#end .facts")
        assert page.locator("body img, main script").count() == 0
        assert page.evaluate("window.hit ?? null") is None


def test_five_thousand_sentences(tmp_path: Path, chromium: Any) -> None:
    """The page opens, searches, and shows a part of the list."""
    path = raw_file(tmp_path, *(f"Anna number {k} lives in Oslo." for k in range(5000)))
    with server(tmp_path / "w", path, *OPTIONS) as (url, _), visit(chromium, url) as page:
        assert page.inner_text("#counts") == "0 of 5,000"
        assert page.locator("#rows li").count() == 12
        page.fill("#search", "lives in")
        page.wait_for_function("() => document.getElementById('found').textContent.startsWith('5,000 sent')")
        assert page.locator("#rows li").count() == 50
        page.fill("#search", "number 4711")
        page.wait_for_function("() => document.getElementById('found').textContent.startsWith('1 sentence')")
        page.press("#search", "Enter")
        page.wait_for_function("() => document.getElementById('place').textContent === 'Sentence 4,712'")
        accept(page)
        assert accepted(page) == 1
