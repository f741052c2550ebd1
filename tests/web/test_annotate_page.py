"""The page in Chromium, controlled by Playwright. Skipped if either is not installed (`make test-browser`)."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import tagwise as tw
from tests.web.annotate_session import HOSTILE, NAMES, PLACES, TEXT

pytest.importorskip("starlette", reason="tagwise[web] is not installed")
pytest.importorskip("uvicorn", reason="tagwise[web] is not installed")
api = pytest.importorskip(
    "playwright.sync_api", reason="playwright is not installed: make test-browser has it"
)
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium here")

#: Timeout of the browser in milliseconds. It is long because browsers start slowly on a busy machine.
PATIENCE = 60_000
KEYS = {**dict.fromkeys(NAMES, "1"), **dict.fromkeys(PLACES, "2")}


@contextmanager
def server(folder: Path, *args: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Run `tagwise annotate` as a command, and yield the URL that it prints and the process."""
    command = [sys.executable, "-m", "tagwise", "annotate", "--work", str(folder), "--port", "0", *args]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        line = process.stderr.readline()
        found = re.search(r"http\S+", line)
        assert found is not None, line + process.stderr.read()
        yield found[0], process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        process.wait(60)
        if process.stderr is not None:
            process.stderr.close()


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with api.sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@contextmanager
def visit(browser: Any, url: str, blocked: int = 0, **settings: Any) -> Iterator[Any]:
    """Open a page and yield it when it is ready.

    Console errors and warnings, script errors and requests to other hosts fail the test. The only exception is exactly
    `blocked` reports of inline scripts that the content security policy blocks.
    """
    context = browser.new_context(**{"viewport": {"width": 1200, "height": 800}, **settings})
    page, wrong = context.new_page(), []
    page.set_default_timeout(PATIENCE)
    page.on("console", lambda told: wrong.append(told.text) if told.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    home = re.match(r"http://[^/]+", url)
    page.on(
        "request",
        lambda asked: (
            None if asked.url.startswith((home[0] if home else "", "data:")) else wrong.append(asked.url)
        ),
    )
    page.goto(url)
    page.wait_for_selector("html[data-ready]")
    yield page
    context.close()
    stopped = [said for said in wrong if "inline script violates" in said]
    assert len(wrong) == len(stopped) == blocked, wrong


def tokens(page: Any) -> list[str]:
    found: list[str] = page.eval_on_selector_all(
        "#sentence [data-t]", "found => found.map(e => e.textContent)"
    )
    return found


def spans(page: Any) -> list[tuple[str, str]]:
    """Return the words and the label of each span on the page."""
    found = page.eval_on_selector_all(
        "#sentence .span",
        "found => found.map(e => [[...e.querySelectorAll('[data-t]')].map(t => t.textContent).join(' '), "
        "e.querySelector('.chip').firstChild.textContent])",
    )
    return [tuple(one) for one in found]


def accepted(page: Any) -> int:
    return int(page.inner_text("#counts").split()[0])


def accept(page: Any, way: str = "Enter") -> None:
    """Accept the sentence and wait until the page counts it."""
    before = accepted(page)
    if way == "Enter":
        page.keyboard.press("Enter")
    else:
        page.click("#accept")
    page.wait_for_function(
        "n => parseInt(document.getElementById('counts').textContent) === n + 1", arg=before
    )


def by_keys(page: Any) -> None:
    """Label the sentence on the page with the keyboard only."""
    words = tokens(page)
    for key in ("Home", "Shift+End", "Delete", "Home"):
        page.keyboard.press(key)
    for t, word in enumerate(words):
        if word in KEYS:
            page.keyboard.press(KEYS[word])
        if t + 1 < len(words):
            page.keyboard.press("ArrowRight")


def by_mouse(page: Any) -> None:
    """Label the sentence on the page by dragging and clicking."""
    words = tokens(page)
    page.keyboard.press("Home")
    page.keyboard.press("Shift+End")
    page.click("#clear")
    for t, word in enumerate(words):
        if word in KEYS:
            box = page.locator(f"#t{t}").bounding_box()
            page.mouse.move(box["x"] + 2, box["y"] + box["height"] / 2)
            page.mouse.down()
            page.mouse.move(box["x"] + box["width"] - 2, box["y"] + box["height"] / 2)
            page.mouse.up()
            page.click(f"#labels button:nth-child({KEYS[word]})")


def text_file(folder: Path) -> str:
    path = folder / "text.txt"
    path.write_text("\n".join(" ".join(words) for words in TEXT) + "\n", encoding="utf-8")
    return str(path)


def test_label_by_keys_and_mouse_undo_reload_kill_export(tmp_path: Path, chromium: Any) -> None:
    """Label ten sentences in a new folder with typed labels. The tagger learns each one, and SIGKILL loses none."""
    work = tmp_path / "work"
    with server(work, text_file(tmp_path), "--format", "text", "--strategy", "order") as (url, process):
        with visit(chromium, url) as page:
            assert spans(page) == []
            assert "token=" not in page.url
            for label in ("PER", "LOC"):
                page.keyboard.press("n")
                page.keyboard.type(label)
                page.keyboard.press("Enter")
                page.wait_for_function(
                    "l => document.getElementById('labels').textContent.includes(l)", arg=label
                )
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
        assert page.locator("[role=status]").count() == 1


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
