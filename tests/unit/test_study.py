"""The page of the study says what its JSON says, and the JSON what a run measured."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from benchmarks import study

from tagwise.apps.compare import PRESETS
from tagwise.apps.compare.report.svg import Chart

KNOWN = study.tables()
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


def test_the_page_says_what_the_json_says() -> None:
    """`make study ARGS=--tables` writes the page anew where this fails."""
    assert study.differences(study.PAGE.read_text("utf-8"), KNOWN) == []


def test_every_table_names_its_build_and_fits_its_head() -> None:
    """As many cells as heads, in rows and in where they come from; presets that exist."""
    assert len(KNOWN) >= 9
    for name, table in KNOWN.items():
        assert table["build"], name
        assert table["preset"] is None or table["preset"] in PRESETS, name
        for row in (*table["rows"], *table.get("from", [])):
            assert len(row) == len(table["head"]), (name, row)
        assert len(table.get("from", table["rows"])) == len(table["rows"])


@pytest.mark.parametrize("name", [name for name in KNOWN if KNOWN[name].get("from")])
def test_references_are_of_cells_that_the_preset_trains(name: str) -> None:
    """A reference to nothing would keep its row as it is for ever."""
    preset = PRESETS[KNOWN[name]["preset"]]
    cells = {(cell.corpus, cell.learner.name, cell.features) for cell in preset.cells()}
    path = study.FOLDER / "runs" / f"{preset.name}.json"
    run = json.loads(path.read_text("utf-8")) if path.exists() else {"summary": []}
    sizes = {str(cell.size) for cell in preset.cells()} | {
        str(entry["sentences"]) for entry in run["summary"]
    }
    drawn = [y for line in KNOWN[name].get("picture", {"lines": {}})["lines"].values() for _, y in line]
    for row in (*KNOWN[name]["from"], [y for y in drawn if isinstance(y, str)]):
        for text in study.REFERENCE.findall(" ".join(row)):
            corpus, learner, features, *size, _ = (part.strip() for part in text.split(";"))
            assert (corpus, learner, features) in cells, text
            assert set(size) <= sizes, text


#: Tables of the page with figures of papers, and how many there are.
PAPERS = {
    "small-300": 16,
    "spanish-ner": 23,
    "pos": 13,
    "english-ner": 26,
    "english-k": 10,
    "english-history": 16,
}


@pytest.mark.parametrize("name", PAPERS)
def test_figures_of_papers_are_those_of_the_preset(name: str) -> None:
    """Both were typed from the paper: a figure of the page is one that the preset publishes of the same learner."""
    table, found = KNOWN[name], 0
    published = {(f.learner, f"{f.value:.2f}") for f in PRESETS[table["preset"]].published}
    before: list[str] = []
    for row in table["from"]:
        (learner, *others) = {
            text.split(";")[1].strip() for text in study.REFERENCE.findall(" ".join(row))
        } or {""}
        for at, (head, cell) in enumerate(zip(table["head"], row)):
            if "paper" not in head and "paper" not in row[0]:
                continue
            if "paper" in row[0]:  # a row of its own below ours
                (learner, *others) = {
                    t.split(";")[1].strip() for t in study.REFERENCE.findall(before[at])
                } or {""}
            for value in re.findall(r"\d+\.\d\d", study.REFERENCE.sub("", cell)):
                assert not others
                assert (learner, value) in published, (row[0], value)
                found += 1
        before = row
    assert found == PAPERS[name]


def test_every_picture_is_on_the_page() -> None:
    """What a table draws is shown, and was drawn."""
    page = study.PAGE.read_text("utf-8")
    pictures = {
        name for name, table in KNOWN.items() if "picture" in table and table["build"] != study.NOT_RUN
    }
    for name in pictures:
        assert f"(study/{name}.svg)" in page
        assert (study.FOLDER / f"{name}.svg").read_text("utf-8").startswith("<svg")


@pytest.mark.parametrize("path", sorted(study.ROOT.glob("docs/**/*.svg")), ids=lambda path: path.stem)
def test_every_picture_is_a_file_of_its_own(path: Path) -> None:
    """A browser shows an SVG file where its root says that it is one; a fragment of a page it shows as text."""
    root = ElementTree.fromstring(path.read_text("utf-8"))
    assert root.tag == "{http://www.w3.org/2000/svg}svg"


def test_a_picture_of_no_points_is_a_file_too() -> None:
    """A run may lack every figure of a picture."""
    assert ElementTree.fromstring(Chart("nothing", "x", "y").document()).tag.endswith("}svg")


def test_a_table_of_no_run_says_so() -> None:
    """Until a run has filled a row; then it has figures, and its picture."""
    blank = [["crf", "", ""], ["mira", "", ""]]
    table = {**TABLE, "rows": blank, "build": study.NOT_RUN, "picture": {"title": "t", "lines": {}}}
    assert study.markdown(table, "one") == 'Not run yet: `make study ARGS="--only bundled"`.\n'
    assert study.filled(table, {"summary": [], "build": "new"}) == table
    shown = study.markdown(study.filled(table, {"summary": SUMMARY, "build": "new"}), "one")
    assert "50.00" in shown
    assert shown.endswith("![t](study/one.svg)\n")


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
    assert study.differences("", {"one": TABLE}) == ["docs/study/one.json: no table of the page"]


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
    assert "small-300: left out, corpus conll2002-es is missing" in said
    assert "nowhere" in said
    assert "50.00 ±1.20" in page.read_text("utf-8")
    assert json_of(tmp_path)["one"]["build"] == "bundled ['--seeds', '2']"
    monkeypatch.delenv("TAGWISE_DATA")
    assert all("TAGWISE_DATA" in line for line in study.missing("small-300"))


def json_of(folder: Path) -> dict[str, Any]:
    """The tables of a folder."""
    return {path.stem: json.loads(path.read_text("utf-8")) for path in folder.glob("*.json")}


def test_tables_are_filled_from_the_runs_that_are_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without training: what a run measured goes into its table; one of another preset stays."""
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "bundled.json").write_text(json.dumps({"build": "new", "summary": SUMMARY}))
    (tmp_path / "a.json").write_text(json.dumps(TABLE))
    (tmp_path / "b.json").write_text(json.dumps({**TABLE, "preset": "pos"}))
    page = tmp_path / "page.md"
    page.write_text("<!-- table a -->\n<!-- end --> <!-- table b -->\n<!-- end -->")
    monkeypatch.setattr(study, "FOLDER", tmp_path)
    monkeypatch.setattr(study, "PAGE", page)
    monkeypatch.setattr(study, "tables", lambda folder=tmp_path, of=study.tables: of(folder))
    assert study.main(["--tables"]) == 0
    found = study.tables()
    assert (found["a"]["build"], found["b"]["build"]) == ("new", "old")
    assert found["a"]["rows"][0][1] == "50.00 ±1.20 / 60.00"
    assert "50.00 ±1.20 / 60.00" in page.read_text()
