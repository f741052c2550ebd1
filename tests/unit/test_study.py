"""The page of the study says what its JSON says, and the JSON what a run measured."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from benchmarks import study

SUMMARY = [
    {
        "corpus": "c",
        "learner": "crf",
        "features": "S1",
        "f1": 0.5,
        "f1_sd": 0.012,
        "nonzero": 1234.0,
        "cpu": 2.25,
    },
    {"corpus": "c", "learner": "mira", "features": "S1", "f1": None, "nonzero": 7.0, "cpu": 1.0},
]
TABLE: dict[str, Any] = {
    "preset": "bundled",
    "build": "old",
    "head": ["learner", "F1", "features and seconds"],
    "rows": [["crf", "1.00", "old"], ["mira", "2.00", "old"]],
    "from": [
        ["crf", "{c; crf; S1; f1 ±} / 60.00", "{c; crf; S1; nonzero} in {c; crf; S1; cpu} s"],
        ["mira", "{c; mira; S1; f1}", "{c; mira; S1; nonzero}"],
    ],
}


def test_sizes_are_told_apart_and_drawn() -> None:
    """A reference with a number of sentences means that row; a picture has a line of what was measured."""
    rows = [{**SUMMARY[0], "sentences": n, "f1": f1} for n, f1 in ((300, 0.25), (1000, 0.75))]
    assert study.looked_up("c; crf; S1; 1000; f1", rows) == "75.00"
    assert study.looked_up("c; crf; S1; 300; f1", rows) == "25.00"
    assert study.looked_up("c; crf; S1; 7; f1", rows) is None
    lines = {
        "crf": [[n, f"{{c; crf; S1; {n}; f1}}"] for n in (7, 300, 1000)],
        "fixed": [[300, 30.0], [1000, 40]],
    }
    said = {"picture": {"title": "t", "x": "x", "y": "y", "lines": lines}}
    drawn = study.picture(said, {"summary": rows})
    for text in ("crf: 25.00", "crf: 75.00", "fixed: 30.00", "fixed: 40.00"):
        assert text in drawn
    assert drawn.count("crf: ") == 2


def test_drift_is_named() -> None:
    """A figure that was changed by hand, a table without JSON, JSON without a table."""
    page = study.written("<!-- table one -->\n<!-- end -->", {"one": TABLE})
    assert study.differences(page, {"one": TABLE}) == []
    (changed,) = study.differences(page.replace("2.00", "3.00"), {"one": TABLE})
    assert changed.startswith("table one: '| mira | 3.00")
    assert study.differences(page, {}) == ["table one: no docs/study/one.json"]
    assert study.differences("", {"one": TABLE}) == ["docs/study/one.json: not on the page"]


def test_a_run_fills_its_rows() -> None:
    """Shares in percent with their deviation, counts, seconds; a row that lacks a figure stays and is named."""
    out = study.filled(TABLE, {"summary": SUMMARY, "build": "new"})
    assert out["rows"] == [["crf", "50.00 ±1.20 / 60.00", "1,234 in 2.2 s"], ["mira", "2.00", "old"]]
    assert (out["build"], out["older rows"]) == ("new", ["mira"])
    assert study.filled({**TABLE, "from": []}, {"summary": SUMMARY, "build": "new"})["build"] == "old"


def test_a_missing_corpus_is_named_and_the_rest_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Which, and where it is looked for."""
    page = tmp_path / "study.md"
    page.write_text("<!-- table one -->\n<!-- end -->", "utf-8")
    (tmp_path / "one.json").write_text(json.dumps(TABLE), "utf-8")
    monkeypatch.setattr(study, "PAGE", page)
    monkeypatch.setattr(study, "FOLDER", tmp_path)
    monkeypatch.setattr(study, "tables", lambda: json_of(tmp_path))

    def run(name: str, more: list[str]) -> None:
        (tmp_path / "runs").mkdir()
        text = json.dumps({"summary": SUMMARY, "build": f"{name} {more}"})
        (tmp_path / "runs" / f"{name}.json").write_text(text, "utf-8")

    monkeypatch.setattr(study, "run", run)
    monkeypatch.setenv("TAGWISE_DATA", str(tmp_path / "nowhere"))
    assert study.main(["--only", "small-300", "--only", "bundled", "--seeds", "2"]) == 0
    said = capsys.readouterr().err
    assert "small-300: skipped, corpus conll2002-es is missing" in said
    assert "nowhere" in said
    assert "50.00 ±1.20" in page.read_text("utf-8")
    assert json_of(tmp_path)["one"]["build"] == "bundled ['--seeds', '2']"
    monkeypatch.delenv("TAGWISE_DATA")
    assert all("TAGWISE_DATA" in line for line in study.missing("small-300"))


def json_of(folder: Path) -> dict[str, Any]:
    """The tables of a folder."""
    return {path.stem: json.loads(path.read_text("utf-8")) for path in folder.glob("*.json")}
