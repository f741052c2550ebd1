"""Helpers for tests of the labelling page in Chromium, controlled by Playwright (`make test-browser`)."""

from __future__ import annotations

import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.web.annotate_session import NAMES, PLACES, TEXT

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
#: Marks of tests that need a browser.
needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium here")

#: Timeout of the browser in milliseconds. It is long because browsers start slowly on a busy machine.
PATIENCE = 180_000
KEYS = {**dict.fromkeys(NAMES, "1"), **dict.fromkeys(PLACES, "2")}


@contextmanager
def server(folder: Path, *args: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Run `tagwise annotate` as a command, and yield the URL that it prints and the process."""
    command = [sys.executable, "-m", "tagwise", "annotate", "--work", str(folder), "--port", "0", *args]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        before = []
        while (found := re.search(r"http\S+", line := process.stderr.readline())) is None:
            before.append(line)
            assert line, before  # the process has ended
        yield found[0], process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        process.wait(60)
        if process.stderr is not None:
            process.stderr.close()


@contextmanager
def visit(browser: Any, url: str, blocked: int = 0, refused: int = 0, **settings: Any) -> Iterator[Any]:
    """Open a page and yield it when it is ready.

    Console errors and warnings, script errors and requests to other hosts fail the test. The only exceptions
    are exactly `blocked` reports of inline scripts that the content security policy blocks, and `refused` requests that
    the server answers with a status of 400 and more.
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
    try:
        page.goto(url)
        page.wait_for_selector("html[data-ready]")
        yield page
    except BaseException:
        print(f"Console, script errors and requests to other hosts: {wrong}")  # shown with the failure
        raise
    context.close()
    stopped = [said for said in wrong if "inline script violates" in said]
    errors = [said for said in wrong if "the server responded with a status of 4" in said]
    assert (len(stopped), len(errors)) == (blocked, refused), wrong
    assert len(wrong) == blocked + refused, wrong


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
    """Return the number of labelled sentences that the page counts."""
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


def free_port() -> int:
    """Return a port that nothing listens on."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def learned(page: Any) -> None:
    """Make the page count events of the server in `window.learned`, and wait until it listens."""
    page.evaluate(
        "() => new Promise(done => { window.learned = 0; const s = new EventSource('api/events'); "
        "s.addEventListener('learned', () => window.learned++); s.onopen = done; })"
    )


def settled(page: Any) -> None:
    """Wait for a `learned` event, and for everything that the page requests and draws because of it."""
    page.wait_for_function("() => window.learned > 0")
    page.evaluate(
        """async () => {
          const frame = () => new Promise(requestAnimationFrame);
          const requests = () => performance.getEntriesByType("resource").length;
          for (let before = -1; before !== requests();) {
            before = requests();
            await (await fetch("api/labels")).json(); // answered after the requests that the page has sent before
            await frame();
            await frame();
            before += 1; // the request of this function
          }
        }"""
    )


def drag(page: Any, first: int, last: int) -> None:
    """Drag the mouse over the tokens from first to last."""
    begin, end = (page.locator(f"#t{t}").bounding_box() for t in (first, last))
    page.mouse.move(begin["x"] + 3, begin["y"] + begin["height"] / 2)
    page.mouse.down()
    page.mouse.move(end["x"] + end["width"] / 2, end["y"] + end["height"] / 2, steps=4)
    page.mouse.move(end["x"] + end["width"] - 3, end["y"] + end["height"] / 2, steps=2)
    page.mouse.up()


def says(page: Any, text: str) -> None:
    """Wait until the status line contains a text."""
    page.wait_for_function("t => document.getElementById('status').textContent.includes(t)", arg=text)


def rows(page: Any) -> list[str]:
    """Return the texts of the list of sentences."""
    found: list[str] = page.eval_on_selector_all(
        "#rows button", "found => found.map(e => e.querySelector('.phrase').textContent.trim())"
    )
    return found
