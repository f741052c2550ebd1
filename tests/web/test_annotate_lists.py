"""Lists of sentences on the labelling page, search, explanations and mistakes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import tagwise as tw
from tests.web.annotate_session import NAMES, PLACES, TEXT
from tests.web.browser import (
    accept,
    by_keys,
    needs_browser,
    rows,
    says,
    server,
    spans,
    text_file,
    tokens,
    visit,
)

pytestmark = needs_browser
OPTIONS = ("--format", "text", "--strategy", "order", "--labels", "PER,LOC")


def labelled_file(folder: Path, n: int) -> str:
    """Write n labelled sentences and four without labels, and return the path."""
    rows = []
    for k in range(n + 4):
        words = [NAMES[k % 4], "went", "to", PLACES[k // 4 % 4], f"#{k}", "."]
        labels = ["B-PER", "O", "O", "B-LOC", "O", "O"] if k < n else ["_"] * 6
        rows.append("".join(f"{w}\t{y}\n" for w, y in zip(words, labels)))
    path = folder / "labelled.tsv"
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return str(path)


def opened(page: Any, number: int) -> None:
    """Wait until the page shows a sentence."""
    page.wait_for_function(
        "n => document.getElementById('place').textContent === `Sentence ${n}`", arg=number
    )


def test_tabs_show_done_skipped_and_flagged_sentences_with_coloured_spans(
    tmp_path: Path, chromium: Any
) -> None:
    with server(tmp_path / "w", text_file(tmp_path), *OPTIONS) as (url, _), visit(chromium, url) as page:
        for _ in range(2):
            by_keys(page)
            accept(page)
        page.keyboard.press("s")
        opened(page, 4)
        page.keyboard.press("f")
        opened(page, 5)
        page.wait_for_function("() => document.querySelectorAll('#rows .mini').length > 0")  # proposals
        found = {name: page.inner_text(f"#list-{name} b") for name in ("todo", "done", "skipped", "flagged")}
        assert found == {"todo": "13", "done": "2", "skipped": "1", "flagged": "1"}
        page.click("#list-done")
        page.wait_for_function("() => document.querySelectorAll('#rows li').length === 2")
        assert [re.sub(r"(PER|LOC)", "", one) for one in rows(page)] == [" ".join(TEXT[1]), " ".join(TEXT[0])]
        colours = page.eval_on_selector_all(
            "#rows li:first-child .mini", "found => found.map(e => getComputedStyle(e).backgroundColor)"
        )
        assert len(set(colours)) == 2
        assert "rgba(0, 0, 0, 0)" not in colours
        page.click("#list-skipped")
        page.wait_for_function("() => document.querySelectorAll('#rows li').length === 1")
        page.click("#rows button")
        opened(page, 3)
        assert tokens(page) == TEXT[2]
        page.click("#list-flagged")
        page.click("#rows button")
        opened(page, 4)
        assert "flagged" in page.inner_text("#origin")
        accept(page)  # an accepted sentence is no longer flagged
        page.wait_for_function("() => document.querySelector('#list-flagged b').textContent === '0'")


def test_p_shows_the_previous_sentence_and_edits_are_marked(tmp_path: Path, chromium: Any) -> None:
    with server(tmp_path / "w", text_file(tmp_path), *OPTIONS) as (url, _), visit(chromium, url) as page:
        for _ in range(3):
            by_keys(page)
            accept(page)
        for number in (3, 2, 1):
            page.keyboard.press("p")
            opened(page, number)
        page.keyboard.press("Home")
        page.keyboard.press("Delete")
        page.keyboard.press("Enter")
        opened(page, 4)
        page.click("#list-done")
        page.wait_for_selector("#rows .mark.edited")
        assert page.locator("#rows .mark.edited").count() == 1
        page.reload()
        page.wait_for_selector("html[data-ready]")
        page.keyboard.press("p")  # nothing was shown before in this tab: the last sentence that was labelled
        opened(page, 1)
        assert "edited" in page.inner_text("#origin")


def test_search_finds_accepted_sentences_and_says_if_it_finds_none(tmp_path: Path, chromium: Any) -> None:
    with server(tmp_path / "w", text_file(tmp_path), *OPTIONS) as (url, _), visit(chromium, url) as page:
        by_keys(page)
        accept(page)
        page.keyboard.press("/")
        page.keyboard.type("Kovacs")
        page.wait_for_function(
            "() => document.getElementById('found').textContent.startsWith('Nothing found')"
        )
        assert page.locator("#rows li").count() == 0
        assert tokens(page) == TEXT[1]
        page.fill("#search", " ".join(TEXT[0][:4]).lower())
        page.wait_for_function("() => document.getElementById('found').textContent.startsWith('1 sentence')")
        assert page.inner_text("#rows .mark") == "done"
        page.press("#search", "Enter")
        opened(page, 1)
        assert spans(page) == [(TEXT[0][0], "PER"), (TEXT[0][3], "LOC")]
        page.fill("#search", "oslo")
        page.wait_for_function("() => document.getElementById('found').textContent.startsWith('4 sentences')")
        page.press("#search", "Enter")
        opened(page, 4)
        page.keyboard.press("Enter")  # goes on with what was found
        opened(page, 8)
        page.focus("#search")
        page.keyboard.press("Escape")
        page.wait_for_selector("#order:not([hidden])")


@pytest.mark.parametrize("learner", ["crf", "mira"])
def test_readings_differ_and_their_shares_sum_to_one(tmp_path: Path, chromium: Any, learner: str) -> None:
    options = ("--strategy", "order", "--learner", learner)
    with (
        server(tmp_path / "w", labelled_file(tmp_path, 8), *options) as (url, _),
        visit(chromium, url) as page,
    ):
        page.keyboard.press("w")
        page.wait_for_selector("#panel-why .readings li")
        readings = page.eval_on_selector_all(
            ".readings li", "found => found.map(e => e.querySelector('.phrase, .quiet').textContent)"
        )
        assert len(readings) == len(set(readings)) > 1
        numbers = page.eval_on_selector_all(".readings .num", "found => found.map(e => e.textContent)")
        if learner == "crf":
            shares = [int(number.rstrip(" %")) for number in numbers if number[0] not in "<9"]
            assert sum(number == "0 %" for number in numbers) == 0
            assert shares or numbers[0] == "99+ %"
        else:
            assert numbers[0] == "best"
            assert all(number.startswith("−") for number in numbers[1:])


def test_votes_name_the_word_that_they_are_of(tmp_path: Path, chromium: Any) -> None:
    with (
        server(tmp_path / "w", labelled_file(tmp_path, 8), "--strategy", "order") as (url, _),
        visit(chromium, url) as page,
    ):
        page.keyboard.press("ArrowRight")
        page.keyboard.press("w")
        page.wait_for_selector("#panel-why .votes")
        cells = page.eval_on_selector_all(
            ".votes tr:not(:first-of-type)",
            "found => found.map(e => [...e.querySelectorAll('.word, .feature')].map(c => c.textContent))",
        )
        assert len({(word, feature) for word, feature in cells}) == len(cells)  # no two rows look the same
        assert {word for word, _ in cells} <= set(tokens(page))


def test_why_distinguishes_the_beginning_of_a_span(tmp_path: Path, chromium: Any) -> None:
    """If both labels have one type, the title contrasts the beginning of a span with its continuation."""
    rows = "Anna\tB-PER\nBerg\tI-PER\nand\tO\nPeter\tB-PER\nLund\tI-PER\nleft\tO\n\n"
    path = tmp_path / "names.tsv"
    path.write_text(rows * 3 + rows.replace("Anna", "Mary").replace("B-PER", "_").replace("I-PER", "_"))
    with (
        server(tmp_path / "w", str(path), "--strategy", "order", "--labels", "PER") as (url, _),
        visit(chromium, url) as page,
    ):
        page.keyboard.press("ArrowRight")
        page.keyboard.press("w")
        page.wait_for_selector("#panel-why .votes")
        title = page.inner_text("#panel-why h3:first-child")
        assert re.fullmatch(r"Why “Berg” is (.+) and not (.+)", title), title
        label, other = re.findall(r" is (.+) and not (.+)", title)[0]
        assert label != other
        assert not page.eval_on_selector_all(
            ".votes th",
            "found => found.filter(e => e.getClientRects().length > 1 || e.offsetHeight > 40).length",
        )


def test_percentages_are_shown_once_enough_is_labelled(tmp_path: Path, chromium: Any) -> None:
    """A CRF trained on few sentences shows its proposals without probabilities."""
    for n, shown in ((8, False), (30, True)):
        options = ("--strategy", "order", "--learner", "crf")
        folder = tmp_path / str(n)
        folder.mkdir()
        with (
            server(folder / "w", labelled_file(folder, n), *options) as (url, _),
            visit(chromium, url) as page,
        ):
            assert spans(page)
            assert ("%" in page.inner_text("#sentence")) == shown


def test_mistakes_wait_for_enough_sentences_and_list_few(tmp_path: Path, chromium: Any) -> None:
    few = tmp_path / "few"
    few.mkdir()
    with server(few / "w", labelled_file(few, 16)) as (url, _), visit(chromium, url, refused=1) as page:
        page.click("#tab-mistakes")
        page.click("#findmistakes")
        says(page, "needs 50")
        assert page.locator("#suspects .pair").count() == 0
    path = Path(labelled_file(tmp_path, 60))
    text = path.read_text().replace("Anna\tB-PER", "Anna\tB-LOC", 2)
    path.write_text(text)
    with server(tmp_path / "w", str(path)) as (url, _), visit(chromium, url) as page:
        page.click("#tab-mistakes")
        page.click("#findmistakes")
        page.wait_for_selector("#suspects .pair")
        assert page.locator("#suspects .pair").count() <= 6
        wrong = page.eval_on_selector_all(
            "#suspects .pair p:first-child .mini:first-of-type", "found => found.map(e => e.textContent)"
        )
        assert wrong[:2] == ["AnnaLOC", "AnnaLOC"]
        page.click("#suspects .pair button")
        page.wait_for_function("() => document.getElementById('sentence').textContent.includes('Anna')")


def test_the_list_has_more_than_one_page(tmp_path: Path, chromium: Any) -> None:
    with server(tmp_path / "w", labelled_file(tmp_path, 70)) as (url, _), visit(chromium, url) as page:
        page.click("#list-done")
        page.wait_for_function("() => document.querySelectorAll('#rows li').length === 50")
        page.click("#morerows")
        page.wait_for_function("() => document.querySelectorAll('#rows li').length === 70")
        assert page.locator("#morerows").is_hidden()
    assert len(tw.read(tmp_path / "labelled.tsv")) == 74
