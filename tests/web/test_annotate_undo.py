"""Nothing that a person does on the labelling page is lost: undo, drafts, two tabs, a restart of the server."""

from __future__ import annotations

import os
import signal
import stat
from pathlib import Path
from typing import Any

from tests.web.annotate_session import TEXT
from tests.web.browser import (
    accept,
    accepted,
    free_port,
    learned,
    needs_browser,
    says,
    server,
    settled,
    spans,
    text_file,
    tokens,
    visit,
)

pytestmark = needs_browser
OPTIONS = ("--format", "text", "--strategy", "order", "--labels", "PER,LOC")


def test_undo_keeps_the_labels_when_the_model_has_been_retrained(tmp_path: Path, chromium: Any) -> None:
    """The labels that undo brings back stay on the page after the `learned` event, and Enter accepts them again."""
    with server(tmp_path / "w", text_file(tmp_path), *OPTIONS) as (url, _), visit(chromium, url) as page:
        for _ in range(3):  # the tagger learns PER for the first word
            page.keyboard.press("Home")
            page.keyboard.press("1")
            accept(page)
        mine = [(TEXT[3][1], "LOC"), (TEXT[3][2], "LOC")]
        page.keyboard.press("Home")
        page.keyboard.press("Delete")
        for _ in range(2):
            page.keyboard.press("ArrowRight")
            page.keyboard.press("2")
        assert spans(page) == mine
        accept(page)
        learned(page)
        page.keyboard.press("u")
        settled(page)
        assert tokens(page) == TEXT[3]
        assert spans(page) == mine
        page.reload()
        page.wait_for_selector("html[data-ready]")
        assert spans(page) == mine
        accept(page)
        page.click("#list-done")
        page.click("#rows li:first-child button")
        page.wait_for_function("n => document.getElementById('place').textContent.endsWith(n)", arg="4")
        assert spans(page) == mine


def test_ctrl_z_undoes_edits_of_the_sentence_only(tmp_path: Path, chromium: Any) -> None:
    with server(tmp_path / "w", text_file(tmp_path), *OPTIONS) as (url, _), visit(chromium, url) as page:
        accept(page)
        page.keyboard.press("1")
        page.keyboard.press("ArrowRight")
        page.keyboard.press("2")
        both = [(TEXT[1][0], "PER"), (TEXT[1][1], "LOC")]
        assert spans(page) == both
        page.keyboard.press("Control+z")
        assert spans(page) == both[:1]
        page.keyboard.press("Control+z")
        assert spans(page) == []
        page.keyboard.press("Control+z")
        says(page, "Nothing to undo in this sentence")
        assert (accepted(page), tokens(page)) == (1, TEXT[1])
        page.keyboard.press("Control+y")
        page.keyboard.press("Control+Shift+Z")
        assert spans(page) == both


def test_drafts_survive_another_sentence_and_a_reload(tmp_path: Path, chromium: Any) -> None:
    with server(tmp_path / "w", text_file(tmp_path), *OPTIONS) as (url, _), visit(chromium, url) as page:
        page.keyboard.press("1")
        page.keyboard.press("ArrowRight")
        page.keyboard.press("2")
        mine = [(TEXT[0][0], "PER"), (TEXT[0][1], "LOC")]
        page.click("#rows li:nth-child(3) button")
        page.wait_for_function(
            "w => document.getElementById('sentence').textContent.includes(w)", arg=TEXT[2][3]
        )
        assert spans(page) == []
        page.click("#rows li:nth-child(1) button")
        page.wait_for_function(
            "w => document.getElementById('sentence').textContent.includes(w)", arg=TEXT[0][3]
        )
        assert spans(page) == mine
        page.reload()
        page.wait_for_selector("html[data-ready]")
        assert spans(page) == mine
        accept(page)
        page.keyboard.press("p")
        page.wait_for_function("() => document.getElementById('place').textContent === 'Sentence 1'")
        assert spans(page) == mine
        kept = page.evaluate("Object.keys(localStorage).filter(name => name.startsWith('tagwise-draft'))")
        assert kept == []


def test_a_sentence_labelled_in_another_tab_is_a_conflict_with_both_versions(
    tmp_path: Path, chromium: Any
) -> None:
    with (
        server(tmp_path / "w", text_file(tmp_path), *OPTIONS) as (url, _),
        visit(chromium, url) as one,
    ):
        context = one.context
        two = context.new_page()
        two.goto(one.url)
        two.wait_for_selector("html[data-ready]")
        two.keyboard.press("2")
        one.evaluate("localStorage.clear()")  # as if the tabs were in two browsers
        one.reload()
        one.wait_for_selector("html[data-ready]")
        one.keyboard.press("1")
        accept(one)
        two.wait_for_selector("#conflict:not([hidden])")  # without any action in the second tab
        versions = two.eval_on_selector_all("#conflict .mini b", "found => found.map(e => e.textContent)")
        assert versions == ["LOC", "PER"]
        two.keyboard.press("Escape")
        before = accepted(two)
        two.click("#conflict button:has-text('Keep mine')")
        two.wait_for_selector("#conflict", state="hidden")
        assert spans(two) == [(TEXT[0][0], "LOC")]
        two.keyboard.press("Enter")
        two.wait_for_function("() => document.getElementById('place').textContent === 'Sentence 2'")
        assert accepted(two) == before == 1
        two.click("#list-done")
        two.wait_for_selector("#rows .mark.edited")
        assert two.inner_text("#rows .mini b") == "LOC"


def test_an_outdated_request_is_refused_and_shown(tmp_path: Path, chromium: Any) -> None:
    """If the event of the other tab does not arrive, the server refuses the labels (409), and the page shows both."""
    with server(tmp_path / "w", text_file(tmp_path), *OPTIONS) as (url, _):
        context = chromium.new_context()
        two = context.new_page()
        two.route("**/api/events", lambda route: route.abort())
        two.goto(url)
        two.wait_for_selector("html[data-ready]")
        with visit(chromium, url) as one:
            one.keyboard.press("1")
            accept(one)
        two.keyboard.press("2")
        with two.expect_response("**/api/accept") as answer:
            two.keyboard.press("Enter")
        assert answer.value.status == 409
        two.wait_for_selector("#conflict:not([hidden])")
        versions = two.eval_on_selector_all("#conflict .mini b", "found => found.map(e => e.textContent)")
        assert versions == ["LOC", "PER"]
        two.click("#conflict button:has-text('Use the other')")
        two.wait_for_selector("#conflict", state="hidden")
        assert spans(two) == [(TEXT[0][0], "PER")]
        context.close()


def test_an_open_tab_works_after_a_restart_of_the_server(tmp_path: Path, chromium: Any) -> None:
    """The token is kept in the folder, readable by the owner only, so that tabs and edits survive SIGKILL."""
    work, port = tmp_path / "w", str(free_port())
    context = chromium.new_context()
    page = context.new_page()
    with server(work, text_file(tmp_path), *OPTIONS, "--port", port) as (url, process):
        page.goto(url)
        page.wait_for_selector("html[data-ready]")
        accept(page)
        page.keyboard.press("1")
        os.kill(process.pid, signal.SIGKILL)
        process.wait(60)
    page.wait_for_selector("#offline:not([hidden])")
    assert "does not answer" in page.inner_text("#offline")
    page.keyboard.press("Enter")
    says(page, "does not answer")
    assert stat.S_IMODE((work / "token").stat().st_mode) == 0o600
    with server(work, "--port", port) as (again, _):
        assert again == url
        page.wait_for_selector("#offline", state="hidden", timeout=20_000)
        assert spans(page) == [(TEXT[1][0], "PER")]
        accept(page)
        page.reload()
        page.wait_for_selector("html[data-ready]")
        assert accepted(page) == 2
    context.close()


def test_a_visitor_without_the_token_gets_a_page_in_words(tmp_path: Path, chromium: Any) -> None:
    with server(tmp_path / "w", text_file(tmp_path), *OPTIONS) as (url, _):
        context = chromium.new_context()
        page = context.new_page()
        answer = page.goto(url.partition("?")[0])
        assert answer.status == 401
        assert answer.headers["content-type"].startswith("text/html")
        assert "{" not in page.inner_text("body")
        assert "Open the URL that the server printed" in page.inner_text("body")
        context.close()
