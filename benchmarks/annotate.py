"""Time from a correction to updated proposals: `python -m benchmarks.annotate [--queue 10000] [--corrections 200]`.

The project has a queue of sentences of wnut17-ner, repeated with another last word until there are enough, and a model
trained on hundreds of labelled sentences. The sentences then get their gold labels one after the other, in the order of
the queue. Times are measured inside the server (journal with fsync, learning, ranking, the next proposal) and over HTTP
on loopback. With `--browser` they are also measured from the key press until the next sentence is drawn, by performance
marks of the page. The CPU time of the thread that answers is reported too. The output is a Markdown table of
milliseconds, median and 95th percentile.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import tagwise as tw
from tagwise.apps.annotate.folder import ProjectSettings
from tagwise.apps.annotate.project import Work
from tagwise.apps.annotate.server import SWITCH, guarded
from tagwise.apps.annotate.session import Session
from tagwise.apps.annotate.why import spans_of
from tagwise.apps.web.running import running

LABELS = ["person", "location", "corporation", "group", "product", "creative-work"]


def unique(sentence: tw.Sentence, i: int) -> tw.Sentence:
    """Return a copy of the sentence with a unique last word, since equal sentences are queued only once."""
    columns = {
        name: [*column, "O" if name == sentence.label else f"#{i}"]
        for name, column in sentence.fields.items()
    }
    return tw.Sentence(columns, sentence.label)


def session_of(folder: Path, queue: int, labelled: int) -> tuple[Session, list[list[str]]]:
    """Return a session with that many open and labelled sentences, and the gold labels of all."""
    train = tw.load_corpus("wnut17-ner")[0]
    work = Work(folder, ProjectSettings(labels=LABELS))
    work.add(train[:labelled], "labelled")
    more = [unique(train[labelled + i % (len(train) - labelled)], i) for i in range(queue)]
    work.add(tw.Corpus(more), "open", fresh=True)
    return Session(work), [s.labels for s in train[:labelled]] + [s.labels for s in more]


def corrected(url: str, token: str, gold: list[list[str]], n: int) -> list[dict[str, float]]:
    """Return the milliseconds of each of n corrections, including those over HTTP."""
    client = http.client.HTTPConnection(url.removeprefix("http://"))
    headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}

    def request(method: str, path: str, value: Any = None) -> Any:
        client.request(method, path, None if value is None else json.dumps(value), headers)
        return json.loads(client.getresponse().read())

    state, out = request("GET", "/api/state"), []
    for _ in range(n):
        i = state["sentence"]["id"]
        spans = [{"begin": b, "end": e, "label": y} for b, e, y in spans_of(gold[i], "spans")]
        begin = time.perf_counter()
        state = request("POST", "/api/accept", {"id": i, "spans": spans})
        took = 1e3 * (time.perf_counter() - begin)
        out.append({**state["milliseconds"], "over HTTP": took})
    return out


def raise_priority() -> None:
    """Give all child processes the scheduling priority of this session.

    Linux shares cores between sessions first (autogroup), and a browser started by a program is a session of its own.
    On a busy machine the measurement would otherwise show how rarely the browser is scheduled.
    """
    own = Path("/proc/self/autogroup")
    if not own.exists():
        return
    nice = own.read_text().split()[-1]
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
    found = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    for pid in found - {os.getpid()}:
        with contextlib.suppress(OSError):
            Path(f"/proc/{pid}/autogroup").write_text(nice)


def in_browser(url: str, token: str, n: int) -> list[dict[str, float]]:
    """Return the milliseconds from Enter on, by the marks of the page, n times. Proposals are accepted unchanged."""
    import shutil

    from playwright.sync_api import sync_playwright

    names = {"answered": "in the page: answered", "shown": "in the page: made", "painted": "on screen"}
    out = []
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page()
        raise_priority()
        page.goto(f"{url}/?token={token}")
        page.wait_for_selector("html[data-ready]")
        raise_priority()
        for _ in range(n):
            page.evaluate("delete document.documentElement.dataset.took")
            page.keyboard.press("Enter")
            page.wait_for_selector("html[data-took]", state="attached")
            at = page.evaluate(
                "Object.fromEntries(performance.getEntriesByType('mark').map(m => [m.name, m.startTime]))"
            )
            out.append({name: at[mark] - at["asked"] for mark, name in names.items()})
        browser.close()
    return out


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queue", type=int, default=10_000)
    parser.add_argument("--labelled", type=int, default=500)
    parser.add_argument("--corrections", type=int, default=200)
    parser.add_argument("--browser", action="store_true")
    given = parser.parse_args()
    token = "benchmark" * 4
    with tempfile.TemporaryDirectory() as folder:
        session, gold = session_of(Path(folder), given.queue, given.labelled)
        try:
            sys.setswitchinterval(SWITCH)
            with running(guarded(session, token)) as url:
                found = corrected(url, token, gold, given.corrections)
                columns = {name: [one[name] for one in found] for name in found[0]}
                if given.browser:
                    seen = in_browser(url, token, min(100, given.corrections))
                    columns |= {name: [one[name] for one in seen] for name in seen[0]}
        finally:
            session.close()
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
    print(
        f"queue {given.queue:,}, {given.labelled} already labelled, {given.corrections} corrections, load {load:.1f}\n"
    )
    print("| milliseconds | median | p95 |\n| --- | --- | --- |")
    for name, values in columns.items():
        print(f"| {name} | {np.median(values):.1f} | {np.quantile(values, 0.95):.1f} |")


if __name__ == "__main__":
    main()
