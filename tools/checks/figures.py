"""Figures: pages and drawings match the JSON of the runs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree

from benchmarks import cited, drawings, page, study
from benchmarks.__main__ import BENCHMARKS

from tagwise.apps.compare import PRESETS
from tools.checks import ROOT, text

TABLES = study.tables()
#: Tables with figures of papers, and their number.
PAPERS = {
    "small-300": 16,
    "spanish-ner": 23,
    "pos": 13,
    "english-ner": 26,
    "english-k": 10,
    "english-history": 16,
}


def check_pages_are_current() -> Iterator[str]:
    """Pages match `make study ARGS=--tables`, `python -m benchmarks.cited` and `python -m benchmarks.page`."""
    yield from study.differences(study.PAGE.read_text("utf-8"), TABLES)
    yield from page.differences(page.PAGE.read_text("utf-8"), page.runs())
    yield from (
        f"{path} is out of date"
        for path, new in cited.files(TABLES).items()
        if path.read_text("utf-8") != new
    )
    for name in cited.PAGES:
        found = text(name)
        cuts, figures = len(cited.CUT.findall(found)), len(cited.FIGURE.findall(found))
        if not found.count("<!-- cut ") == cuts > 0 or found.count("<!-- fig ") != figures:
            yield f"{name}: unclosed marker"


def check_runs() -> Iterator[str]:
    """Stored runs belong to known benchmarks and have rows and a date."""
    for name, run in page.runs().items():
        dated = re.fullmatch(r"\d{4}-\d\d-\d\d", run["machine"]["date"])
        if name != run["name"] or name not in BENCHMARKS or not dated or not run["rows"]:
            yield f"docs/benchmarks/{name}.json: wrong name, date or no rows"


def check_tables() -> Iterator[str]:
    """Tables name their build and a preset, rows have as many cells as the head, pictures are on the page."""
    for name, table in TABLES.items():
        if not table["build"] or table["preset"] not in (None, *PRESETS):
            yield f"{name}: missing build or unknown preset"
        rows = [*table["rows"], *table.get("from", [])]
        if {len(row) for row in rows} != {len(table["head"])}:
            yield f"{name}: rows do not fit the head"
        if len(table.get("from", table["rows"])) != len(table["rows"]):
            yield f"{name}: the numbers of sources and rows differ"
        drawn = "picture" in table and table["build"] != study.NOT_RUN
        if drawn and f"(study/{name}.svg)" not in study.PAGE.read_text("utf-8"):
            yield f"{name}: its picture is not on the page"
        yield from references(name, table)


def references(name: str, table: dict[str, Any]) -> Iterator[str]:
    """Yield the references to cells that the preset does not train, since such a row would never change."""
    if not table.get("from"):
        return
    preset = PRESETS[table["preset"]]
    cells = {(cell.corpus, cell.learner.name, cell.features) for cell in preset.cells()}
    path = study.FOLDER / "runs" / f"{preset.name}.json"
    summary = json.loads(path.read_text("utf-8"))["summary"] if path.exists() else []
    sizes = {str(cell.size) for cell in preset.cells()} | {str(entry["sentences"]) for entry in summary}
    drawn = [y for line in table.get("picture", {"lines": {}})["lines"].values() for _, y in line]
    for row in (*table["from"], [y for y in drawn if isinstance(y, str)]):
        for found in study.REFERENCE.findall(" ".join(row)):
            corpus, learner, features, *size, _ = (part.strip() for part in found.split(";"))
            if (corpus, learner, features) not in cells or not set(size) <= sizes:
                yield f"{name}: {found} is not trained by the preset"


def check_figures_of_papers() -> Iterator[str]:
    """Figures of papers on the page are published in the preset for the same learner."""
    for name, wanted in PAPERS.items():
        table, count = TABLES[name], 0
        published = {(f.learner, f"{f.value:.2f}") for f in PRESETS[table["preset"]].published}
        above: list[str] = []
        for row in table["from"]:
            learners = {found.split(";")[1].strip() for found in study.REFERENCE.findall(" ".join(row))}
            for at, (head, cell) in enumerate(zip(table["head"], row)):
                if "paper" not in head and "paper" not in row[0]:
                    continue
                if "paper" in row[0]:  # a separate row below ours
                    learners = {found.split(";")[1].strip() for found in study.REFERENCE.findall(above[at])}
                for value in re.findall(r"\d+\.\d\d", study.REFERENCE.sub("", cell)):
                    count += 1
                    if not any((learner, value) in published for learner in learners) or len(learners) > 1:
                        yield f"{name}, {row[0]}: {value} is not published"
            above = row
        if count != wanted:
            yield f"{name}: {count} figures of papers, expected {wanted}"


def check_drawings() -> Iterator[str]:
    """Drawings of docs/concepts/engine.md are current except for numbers, and every SVG is a complete document."""
    for name, draw in drawings.DRAWINGS.items():
        stored, drawn = (drawings.FOLDER / f"{name}.svg").read_text("utf-8"), draw()
        if re.sub(r"[\d.]+", "#", stored) != re.sub(r"[\d.]+", "#", drawn):
            yield f"{name}: run python -m benchmarks.drawings"
        if not ElementTree.fromstring(drawn)[0].tag.endswith("title"):
            yield f"{name}: no title"
    for path in sorted(ROOT.glob("docs/**/*.svg")):
        if ElementTree.fromstring(path.read_text("utf-8")).tag != "{http://www.w3.org/2000/svg}svg":
            yield f"{path.relative_to(ROOT)} is not an SVG document"
