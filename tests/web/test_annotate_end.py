"""Flags, comments, patterns, the end of a project, and exports."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import tagwise as tw
from tests.web.annotate_session import NAMES, PLACES, TEXT
from tests.web.browser import (
    PATIENCE,
    accept,
    by_keys,
    needs_browser,
    server,
    spans,
    text_file,
    tokens,
    visit,
)

pytestmark = needs_browser
OPTIONS = ("--format", "text", "--strategy", "order", "--labels", "PER,LOC")


def export(folder: Path, form: str, out: Path) -> subprocess.CompletedProcess[str]:
    command = [
        sys.executable,
        "-m",
        "tagwise",
        "annotate",
        "--work",
        str(folder),
        "--export",
        form,
        "-o",
        str(out),
    ]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ})


def test_flagged_rejected_and_commented_sentences(tmp_path: Path, chromium: Any) -> None:
    """Marks and comments are listed, kept after a restart, undone, and exported. Rejected sentences are left out."""
    work = tmp_path / "w"
    with server(work, text_file(tmp_path), *OPTIONS) as (url, _), visit(chromium, url) as page:
        by_keys(page)
        accept(page)
        page.keyboard.press("1")  # a draft, which a comment does not lose
        page.keyboard.press("c")
        page.keyboard.type("Is this a name?")
        page.keyboard.press("Enter")
        page.wait_for_function("() => document.getElementById('status').textContent === 'Comment saved.'")
        assert spans(page)[0] == (TEXT[1][0], "PER")
        page.keyboard.press("f")
        page.wait_for_function("() => document.getElementById('place').textContent === 'Sentence 3'")
        page.keyboard.press("x")
        page.wait_for_function("() => document.getElementById('place').textContent === 'Sentence 4'")
        page.keyboard.press("p")
        page.wait_for_function("() => document.getElementById('place').textContent === 'Sentence 3'")
        page.keyboard.press("p")
        page.wait_for_function("() => document.getElementById('place').textContent === 'Sentence 2'")
        page.click("#list-flagged")
        page.wait_for_function("() => document.querySelectorAll('#rows li').length === 2")
        assert page.inner_text("#rows .note") == "Is this a name?"
        assert page.locator("#rows .mark.rejected").count() == 1
        page.click("#list-done")
        page.click("#rows button")
        page.wait_for_function("() => document.getElementById('place').textContent === 'Sentence 1'")
        page.keyboard.press("x")  # also a labelled sentence can be rejected
        page.wait_for_function("() => document.getElementById('counts').textContent.startsWith('0 of 15')")
        assert export(work, "conll", tmp_path / "none.tsv").returncode == 0
        assert (tmp_path / "none.tsv").read_bytes() == b""
        page.keyboard.press("u")
        page.wait_for_function("() => document.getElementById('counts').textContent.startsWith('1 of 16')")
    with server(work) as (url, _), visit(chromium, url) as page:
        assert page.inner_text("#list-flagged b") == "2"
        assert export(work, "notes", tmp_path / "notes.jsonl").returncode == 0
    notes = [json.loads(line) for line in (tmp_path / "notes.jsonl").read_text().splitlines()]
    found = [(one["sentence"], one["mark"], one["comment"]) for one in notes]
    assert found == [(2, "flag", "Is this a name?"), (3, "reject", "")]


def test_patterns_pre_label_sentences(tmp_path: Path, chromium: Any) -> None:
    """Terms of a list are proposed from the first sentence on, in any case and over several words."""
    terms = tmp_path / "terms.tsv"
    terms.write_text("".join(f"PER\t{name.lower()}\n" for name in NAMES) + "LOC\tto Paris\n")
    with (
        server(tmp_path / "w", text_file(tmp_path), *OPTIONS[:4], "--patterns", str(terms)) as (url, _),
        visit(chromium, url) as page,
    ):
        assert spans(page) == [(TEXT[0][0], "PER"), ("to Paris", "LOC")]
        assert page.locator("#sentence .span.own").count() == 0
        page.wait_for_function("() => document.querySelectorAll('#rows .mini').length >= 12")
        accept(page)
        assert (TEXT[1][0], "PER") in spans(page)


def test_the_end_has_a_summary_exports_and_a_model(tmp_path: Path, chromium: Any) -> None:
    """When nothing is left, the page shows spans by type, time and agreement. The saved model tags new text."""
    work = tmp_path / "w"
    path = tmp_path / "short.txt"
    path.write_text("\n".join(" ".join(words) for words in TEXT[:12]) + "\n")
    with server(work, str(path), *OPTIONS) as (url, _), visit(chromium, url) as page:
        for _ in range(12):
            by_keys(page)
            accept(page)
        page.wait_for_selector("#end .facts")
        assert page.inner_text("#place") == "All done"
        facts = page.eval_on_selector_all("#end .fact b", "found => found.map(e => e.textContent)")
        assert facts[:2] == ["12", "24"]
        assert facts[2].endswith("s")
        assert (
            facts[3].split()[0] == "100"
        )  # no tagger proposed the first sentence, and the others were right
        types = page.eval_on_selector_all(
            ".types tr", "found => found.map(e => e.innerText.split(/\\s+/).join(' '))"
        )
        assert [one.strip() for one in types] == ["PER 12", "LOC 12"]
        with page.expect_download() as download:
            page.click("#end a:has-text('conll')")
        download.value.save_as(tmp_path / "labelled.tsv")
        with page.expect_download() as download:
            page.click("#savemodel")
        download.value.save_as(tmp_path / "page.tagwise")
        page.click("#doubtful")
        page.wait_for_function(
            "() => /nothing to check|Most doubtful/.test(document.getElementById('status').textContent)"
        )
        assert export(work, "model", tmp_path / "command.tagwise").returncode == 0  # while the page runs
    assert len(tw.read(tmp_path / "labelled.tsv")) == 12
    new = [[NAMES[3], "went", "to", PLACES[0], "."]]
    for name in ("page", "command"):
        assert tw.load(tmp_path / f"{name}.tagwise").predict(new) == [["B-PER", "O", "O", "B-LOC", "O"]]


def test_the_most_doubtful_sentences_are_checked_one_after_the_other(tmp_path: Path, chromium: Any) -> None:
    rows = []
    for k in range(24):
        words = [NAMES[k % 4], "went", "to", PLACES[k // 4 % 4], f"#{k}"]
        labels = ["B-LOC" if k == 5 else "B-PER", "O", "O", "B-PER" if k == 9 else "B-LOC", "O"]
        rows.append("".join(f"{w}\t{y}\n" for w, y in zip(words, labels)))
    path = tmp_path / "labelled.tsv"
    path.write_text("\n".join(rows) + "\n")
    with server(tmp_path / "w", str(path)) as (url, _), visit(chromium, url) as page:
        page.wait_for_selector("#doubtful")
        page.click("#doubtful")
        page.wait_for_selector("#sentence [data-t]")
        seen = {tokens(page)[4]}
        page.keyboard.press("Enter")
        page.wait_for_function(
            "w => !document.getElementById('sentence').textContent.includes(w)", arg=next(iter(seen))
        )
        seen.add(tokens(page)[4])
        assert seen == {"#5", "#9"}


def test_exports_do_not_disturb_the_running_page(tmp_path: Path, chromium: Any) -> None:
    work = tmp_path / "w"
    with server(work, text_file(tmp_path), *OPTIONS) as (url, _), visit(chromium, url) as page:
        for k in range(2):
            by_keys(page)
            accept(page)
            found = export(work, "conll", tmp_path / f"{k}.tsv")
            assert found.returncode == 0, found.stderr
            assert len(tw.read(tmp_path / f"{k}.tsv")) == k + 1


def test_exports_of_other_tools_are_done_proposed_or_open(tmp_path: Path, chromium: Any) -> None:
    """Annotations of Label Studio are done and predictions proposed. A file of doccano is added on the page."""

    def regions(*spans: tuple[int, int, str]) -> list[dict[str, Any]]:
        return [{"result": [{"value": {"start": s, "end": e, "labels": [y]}} for s, e, y in spans]}]

    tasks = [
        {"data": {"text": "Anna met Peter."}, "annotations": regions((0, 4, "PER"), (9, 14, "PER"))},
        {"data": {"text": "She flew to Oslo."}, "annotations": [], "predictions": regions((12, 16, "LOC"))},
        {"data": {"text": "Nobody knows why."}, "annotations": []},
    ]
    path, more = tmp_path / "project-1.json", tmp_path / "doccano.jsonl"
    path.write_text(json.dumps(tasks))
    more.write_text(
        '{"text": "Rome is old.", "label": [[0, 4, "LOC"]]}\n{"text": "So is Paris.", "label": []}\n'
    )
    with (
        server(tmp_path / "w", str(path), "--strategy", "order") as (url, _),
        visit(chromium, url) as page,
    ):
        assert page.inner_text("#list-done b") == "1"
        assert spans(page) == [("Oslo", "LOC")]
        assert page.locator("#sentence .span.own").count() == 0
        page.click("#tab-files")
        page.set_input_files("#importfile", str(more))
        page.wait_for_function("() => document.querySelector('#list-done b').textContent === '2'")
        assert page.inner_text("#list-todo b") == "3"
        accept(page)
        page.click("#list-done")
        page.wait_for_function("() => document.querySelectorAll('#rows li').length === 3")
        found = page.eval_on_selector_all("#rows .mini", "found => found.map(e => e.textContent)")
        assert sorted(found) == ["AnnaPER", "OsloLOC", "PeterPER", "RomeLOC"]


def test_the_summary_of_imported_labels_has_no_time(tmp_path: Path, chromium: Any) -> None:
    """Time and agreement with the tagger are known for sentences that were accepted on the page only."""
    path = tmp_path / "labelled.tsv"
    path.write_text("Anna\tB-PER\nleft\tO\n\nRome\t_\nfell\t_\n")
    dev = tmp_path / "dev.tsv"
    dev.write_text("Anna\tB-PER\n\nshe\t_\nleft\t_\n")
    with (
        server(tmp_path / "w", str(path), "--dev", str(dev)) as (url, _),
        visit(chromium, url) as page,
    ):
        page.click("#finish")
        page.wait_for_selector("#end .facts")
        facts = page.eval_on_selector_all(
            "#end .fact", "found => found.map(e => e.innerText.split(/\\s+/).join(' '))"
        )
        assert facts == ["1 sentence", "1 span"]
        page.wait_for_function("() => document.getElementById('curvelast').textContent === '100.0'")


def test_keys_do_not_edit_the_sentence_behind_the_summary(tmp_path: Path, chromium: Any) -> None:
    with server(tmp_path / "w", text_file(tmp_path), *OPTIONS) as (url, _), visit(chromium, url) as page:
        page.click("#finish")
        page.wait_for_selector("#end .facts")
        assert page.inner_text("#place") == "Summary"
        page.evaluate("() => document.activeElement.blur()")  # Enter on the button would close the summary
        for key in ("1", "Enter", "s", "x", "c", "Delete"):
            page.keyboard.press(key)
        page.click("#finish")
        page.wait_for_selector("#end", state="hidden")
        assert page.inner_text("#place") == "Sentence 1"
        assert (tokens(page), spans(page)) == (TEXT[0], [])
        assert page.locator("#commentform").is_hidden()


def test_a_comment_belongs_to_the_sentence_that_follows_a_slow_action(tmp_path: Path, chromium: Any) -> None:
    with server(tmp_path / "w", text_file(tmp_path), *OPTIONS) as (url, _), visit(chromium, url) as page:
        page.evaluate(
            """() => {
                const send = window.fetch;
                window.fetch = (path, how) => path !== "api/flag" ? send(path, how)
                    : new Promise((answer) => { window.release = () => { answer(send(path, how)); }; });
            }"""
        )
        page.keyboard.press("f")
        page.wait_for_function("() => window.release")
        page.keyboard.press("c")
        assert page.locator("#commentform").is_hidden()
        page.evaluate("() => window.release()")
        page.wait_for_selector("#commentform:not([hidden])")
        assert page.inner_text("#place") == "Sentence 2"
        page.keyboard.type("new?")
        page.keyboard.press("Enter")
        page.wait_for_function("() => document.getElementById('status').textContent === 'Comment saved.'")
        page.click("#rows li:nth-child(3) button")  # a message does not stay when another sentence is shown
        page.wait_for_function("() => document.getElementById('status').textContent === ''")


def test_a_page_whose_first_request_fails_starts_when_the_server_answers(
    tmp_path: Path, chromium: Any
) -> None:
    with server(tmp_path / "w", text_file(tmp_path), *OPTIONS) as (url, _):
        context = chromium.new_context()
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        page.add_init_script(
            """const send = window.fetch;
            window.fetch = (path, how) => {
                window.fetch = send;
                return Promise.reject(new TypeError("The first request fails."));
            };"""
        )
        page.goto(url)
        page.wait_for_selector("html[data-ready]")
        assert (page.inner_text("#place"), tokens(page)) == ("Sentence 1", TEXT[0])
        context.close()
