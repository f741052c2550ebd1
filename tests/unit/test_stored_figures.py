"""Storing figures of runs and writing them to pages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from benchmarks import class_study, figure, page
from benchmarks.harness import NoCommit, Result, commit
from benchmarks.taggers import schedule

ABOUT = {"cpu": "A", "cores": 2, "python": "3.12", "system": "L", "versions": {"x": "1"}}
MACHINE = {**ABOUT, "commit": "0123abcd", "date": "2026-11-18"}


def stored(*names: str) -> dict[str, Any]:
    rows = [
        {"name": name, "cells": {"seconds": "1.0"} if name[0] == "a" else {"ratio": "2x"}} for name in names
    ]
    context = {"repeat": 5, "quick": False}
    return {"name": "x", "rows": rows, "notes": [], "machine": MACHINE, "context": context}


def test_a_block_has_the_rows_whose_names_begin_with_its_text_and_no_empty_columns() -> None:
    run = stored("a one", "a two", "b three")
    text = page.written("<!-- table x: a -->\nold\n<!-- end -->\n", {"x": run})
    assert text.startswith("<!-- table x: a -->\n|  | seconds |\n")
    assert "a one" in text
    assert "a two" in text
    assert "b three" not in text
    assert "ratio" not in text
    assert text == page.written(text, {"x": run})
    assert "b three" in page.written("<!-- table x -->\n<!-- end -->", {"x": run})


def test_pages_that_differ_from_the_runs_are_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page, "PICTURES", tmp_path)
    monkeypatch.setattr(page, "ROOT", tmp_path)
    run = stored("a one")
    current = page.written("<!-- table x -->\n<!-- end -->", {"x": run})
    assert page.differences(current, {"x": run}) == []
    assert page.differences(current.replace("1.0", "1.1"), {"x": run}) == ["table x differs from the JSON"]
    result = Result("x", "title")
    result.draw("curve", "title", "epoch", "F1", {"line": [(1, 0.5), (2, 0.75)]})
    drawn = {**run, "pictures": result.pictures}
    assert page.differences(current, {"x": drawn}) == ["curve.svg differs from the JSON"]
    (path, svg), *rest = page.pictures({"x": drawn}).items()
    path.write_text(svg, "utf-8")
    assert not rest
    assert page.differences(current, {"x": drawn}) == []


def test_a_picture_has_a_curve_per_name_and_a_mark_per_point() -> None:
    svg = figure.svg("a < b", "x", "y", {"one": [(0, 0), (1, 1), (2, 4)], "two": [(0, 1), (2, 1)]})
    assert svg.count("<polyline") == 2
    assert svg.count("<circle") == 5
    assert "a &lt; b" in svg


def test_runs_of_one_commit_are_merged_and_others_are_refused(tmp_path: Path) -> None:
    figures = {"score": 90.0, "cpu": 1.0, "stopped": False, "peak_mb": 1.0, "model_mb": 1.0}
    paths = []
    for number, (tool, at) in enumerate(
        [("NLTK", "0123abcd"), ("CRFsuite", "0123abcd"), ("Wapiti", "9999abcd")]
    ):
        name = f"ewt-pos: {tool}"
        run = {
            **stored(),
            "rows": [{"name": name}],
            "raw": {name: figures},
            "machine": {**MACHINE, "commit": at, "versions": {"x": "1", tool: "2", "y": "not installed"}},
        }
        paths.append(tmp_path / f"{number}.json")
        paths[-1].write_text(json.dumps(run), "utf-8")
    merged = schedule.merged(paths[:2])
    assert [row["name"] for row in merged["rows"]] == ["ewt-pos: CRFsuite", "ewt-pos: NLTK"]
    assert [one["machine"]["versions"] for one in merged["runs"]] == [
        {"x": "1", "NLTK": "2", "y": "not installed", "CRFsuite": "2"}
    ]
    with pytest.raises(SystemExit, match="runs of different commits: 0123abcd, 9999abcd"):
        schedule.merged(paths)


def test_results_of_another_commit_are_not_continued(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    results = {"old": {"about": {"commit": "1111aaaa"}}, "new": {"about": {"commit": "2222bbbb"}}}
    path.write_text(json.dumps({"about": {}, "results": results}), "utf-8")
    store = class_study.Store(path, {"commit": "2222bbbb"})
    store.read()
    assert list(store.results) == ["new"]


def test_a_commit_is_hexadecimal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TAGWISE_COMMIT", "0123abcd")
    assert commit() == "0123abcd"
    monkeypatch.setenv("TAGWISE_COMMIT", "unknown")
    with pytest.raises(NoCommit, match="is not a commit"):
        commit()
