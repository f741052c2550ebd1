"""The page in Chromium, controlled by Playwright. Skipped if either is not installed (`make test-browser`)."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import tagwise as tw
from tests.web.annotate_session import HOSTILE, TEXT
from tests.web.browser import (
    accept,
    accepted,
    by_keys,
    by_mouse,
    needs_browser,
    server,
    spans,
    text_file,
    tokens,
    visit,
)

pytestmark = needs_browser


def test_label_by_keys_and_mouse_undo_reload_kill_export(tmp_path: Path, chromium: Any) -> None:
    """Label ten sentences in a new folder with typed labels. The tagger learns each one, and SIGKILL loses none."""
    work = tmp_path / "work"
    with server(work, text_file(tmp_path), "--format", "text", "--strategy", "order") as (url, process):
        with visit(chromium, url) as page:
            assert spans(page) == []
            assert "token=" not in page.url
            page.keyboard.press("n")
            for label in ("PER", "LOC"):
                page.keyboard.type(label)
                page.keyboard.press("Enter")
                page.wait_for_function(
                    "l => document.getElementById('labels').textContent.includes(l)", arg=label
                )
            page.keyboard.press("Escape")
            assert page.evaluate("document.activeElement.id") == "sentence"
            by_keys(page)
            assert spans(page) == [(TEXT[0][0], "PER"), (TEXT[0][3], "LOC")]
            accept(page)
            assert tokens(page) == TEXT[1]
            assert (TEXT[1][0], "PER") in spans(page)  # learned from the first sentence
            for k in range(1, 10):
                (by_keys if k % 2 else by_mouse)(page)
                assert spans(page) == [(TEXT[k][0], "PER"), (TEXT[k][3], "LOC")]
                accept(page, "Enter" if k % 2 else "click")
            page.keyboard.press("u")
            page.wait_for_function("() => parseInt(document.getElementById('counts').textContent) === 9")
            assert tokens(page) == TEXT[9]
            assert spans(page) == [(TEXT[9][0], "PER"), (TEXT[9][3], "LOC")]
            page.keyboard.press("r")
            page.wait_for_function("() => parseInt(document.getElementById('counts').textContent) === 10")
            page.reload()
            page.wait_for_selector("html[data-ready]")
            assert accepted(page) == 10
            assert tokens(page) == TEXT[10]
            page.keyboard.press("w")
            page.wait_for_selector("#panel-why .votes")
        os.kill(process.pid, signal.SIGKILL)
        process.wait(60)
    with server(work) as (url, _), visit(chromium, url) as page:
        assert accepted(page) == 10
        assert tokens(page) == TEXT[10]
        accept(page)
        page.click("#tab-files")
        with page.expect_download() as download:
            page.click("#exports a:has-text('conll')")
        download.value.save_as(tmp_path / "labelled.tsv")
    corpus = tw.read(tmp_path / "labelled.tsv")
    assert len(corpus) == 11
    assert corpus[0].labels == ["B-PER", "O", "O", "B-LOC", "O"]
    tagger = tw.CRF(max_iter=20, n_jobs=1).fit(corpus)
    assert tagger.predict([["Mary", "went", "to", "Oslo", "."]]) == [["B-PER", "O", "O", "B-LOC", "O"]]


def test_hostile_text_is_displayed_and_not_executed(tmp_path: Path, chromium: Any) -> None:
    """Markup is shown as text, bidirectional controls are visible, and no script runs, on a screen of phone size."""
    with (
        server(tmp_path / "work", text_file(tmp_path), "--format", "text", "--labels", "<b>x</b>,ORG") as (
            url,
            _,
        ),
        visit(chromium, url, 1, viewport={"width": 390, "height": 844}, color_scheme="dark") as page,
    ):
        page.fill("#search", "script")
        page.press("#search", "Enter")
        page.wait_for_function("() => document.getElementById('sentence').textContent.includes('script')")
        shown = [word.replace("\u202e", "⟨202E⟩") for word in HOSTILE]
        assert tokens(page) == shown
        page.keyboard.press("Home")
        page.keyboard.press("Shift+ArrowRight")
        page.keyboard.press("1")
        assert spans(page) == [(" ".join(shown[:2]), "<b>x</b>")]
        accept(page)
        assert page.evaluate("window.hit") is None
        assert page.evaluate("document.querySelectorAll('main script, main img, #labels b').length") == 0
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        inline = page.evaluate(
            "() => { const s = document.createElement('script'); s.textContent = 'window.hit = 2'; "
            "try { document.head.append(s); } catch {} return window.hit ?? null; }"
        )
        assert inline is None


def test_every_control_has_an_accessible_name(tmp_path: Path, chromium: Any) -> None:
    """Every visible button, field and link has an accessible name, and tokens have ARIA attributes."""
    with (
        server(tmp_path / "work", text_file(tmp_path), "--format", "text", "--labels", "PER") as (url, _),
        visit(chromium, url) as page,
    ):
        nameless = page.evaluate(
            "() => [...document.querySelectorAll('button, input, select, a')].filter(e => e.offsetParent !== null && "
            "!(e.textContent.trim() || e.ariaLabel || e.labels?.length || e.title)).map(e => e.outerHTML)"
        )
        assert nameless == []
        page.keyboard.press("1")
        assert page.get_attribute("#t0", "aria-label") == f"{tokens(page)[0]}, PER"
        assert page.get_attribute("#t0", "aria-selected") == "true"
        assert page.get_attribute("#sentence", "aria-activedescendant") == "t0"
        assert page.get_attribute("#status", "role") == "status"


#: Script that accepts a sentence and returns the number of elements created between the response and the updated
#: page. No other code of the page runs in between.
MADE = """() => new Promise(done => {
  let made = 0, found = null;
  const own = { mark: performance.mark.bind(performance) };
  performance.mark = (name) => {
    if (name === "answered") made = 0;
    if (name === "shown") found = made;
    if (name === "painted") {
      performance.mark = own.mark;
      Object.assign(document, { createElement: own.createElement, createElementNS: own.createElementNS });
      setTimeout(() => done(found));
    }
    return own.mark(name);
  };
  for (const name of ["createElement", "createElementNS"]) {
    own[name] = document[name].bind(document);
    document[name] = (...given) => { made += 1; return own[name](...given); };
  }
  document.getElementById("accept").click();
})"""


def test_elements_per_correction_do_not_depend_on_queue_length(tmp_path: Path, chromium: Any) -> None:
    """The number of elements on the page, and of elements that a correction creates, does not depend on the queue.

    The number of performance marks does not grow with the number of corrections.
    """
    made, there = {}, {}
    for n in (30, 1000):
        path = tmp_path / f"{n}.txt"
        path.write_text("".join(f"a b c{i}\n" for i in range(1000, 1000 + n)), encoding="utf-8")
        options = ("--format", "text", "--strategy", "order", "--labels", "PER")
        with (
            server(tmp_path / str(n), str(path), *options) as (url, _),
            visit(chromium, url) as page,
        ):
            made[n] = [page.evaluate(MADE) for _ in range(5)]
            assert accepted(page) == 5
            there[n] = page.evaluate("document.querySelectorAll('*').length")
            marks = page.evaluate(
                "performance.getEntriesByType('mark').sort((a, b) => a.startTime - b.startTime).map(m => m.name)"
            )
            assert marks == ["asked", "answered", "shown", "frame", "painted"]
            took = page.evaluate("performance.getEntriesByName('correction').map(m => m.duration)")
            assert took == [float(page.get_attribute("html", "data-took"))]
    assert made[1000] == made[30]
    assert min(made[30]) > 10
    assert there[1000] == there[30]
