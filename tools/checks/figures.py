"""Figures: pages and drawings match the JSON of the runs, which are of one commit."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree

from benchmarks import cited, drawings, page, study
from benchmarks.__main__ import BENCHMARKS

from tagwise.apps.compare import PRESETS
from tools.checks import ROOT, text
from tools.shows import pages

TABLES = study.tables()
#: Parts of a page that may contain figures: generated blocks, marked figures, code, links.
GENERATED = re.compile(
    r"<!-- (?:table|made|cut) .*?<!-- end -->|<!-- (?:fig|calc) [^>]*-->[^<]*<!-- / -->|```.*?```|`[^`]*`|\]\([^)]*\)",
    re.DOTALL,
)


def check_pages_are_current() -> Iterator[str]:
    """Pages match `make study ARGS=--tables`, `python -m benchmarks.cited` and `python -m benchmarks.page`."""
    yield from study.differences()
    yield from page.differences(page.PAGE.read_text("utf-8"), page.runs())
    yield from (
        f"{path} is out of date"
        for path, new in cited.files(cited.tables()).items()
        if path.read_text("utf-8") != new
    )
    for name in cited.PAGES:
        found = text(name)
        cuts, figures = len(cited.CUT.findall(found)), len(cited.FIGURE.findall(found))
        calculated = len(cited.CALC.findall(found))
        marks = [found.count(f"<!-- {kind} ") for kind in ("cut", "fig", "calc")]
        if marks != [cuts, figures, calculated]:
            yield f"{name}: unclosed marker"


def check_figures_are_inline() -> Iterator[str]:
    """No line begins with the marker of a figure, because Markdown reads that line as a block of HTML."""
    for name in pages.PAGES:
        for number, line in enumerate(text(name).splitlines(), 1):
            if re.match(r"\s*<!-- (?:fig|calc) ", line):
                yield f"{name}:{number}: begins with a figure. Move a word of the line before it here"


def check_runs() -> Iterator[str]:
    """Stored runs belong to known benchmarks and have rows and a date."""
    for name, run in page.runs().items():
        dated = re.fullmatch(r"\d{4}-\d\d-\d\d", run["machine"]["date"])
        if name != run["name"] or name not in BENCHMARKS or not dated or not run["rows"]:
            yield f"docs/benchmarks/{name}.json: wrong name, date or no rows"


def check_one_build() -> Iterator[str]:
    """All figures are of one commit."""
    known = {f"benchmarks/{name}": run["machine"]["commit"] for name, run in page.runs().items()}
    known |= {f"study/runs/{name}": run["commit"] for name, run in study.runs().items()}
    usual = Counter(known.values()).most_common(1)[0][0]
    for name, commit in known.items():
        if commit != usual:
            yield f"docs/{name}.json is of commit {commit[:8]}, most figures are of {usual[:8]}"


def check_tables() -> Iterator[str]:
    """Tables name their build and a preset, rows have as many cells as the head, pictures are on the page."""
    for name, table in TABLES.items():
        if not table["build"] or table["preset"] not in (None, *PRESETS, study.WORD_CLASSES):
            yield f"{name}: missing build or unknown preset"
        rows = [*table["rows"], *table.get("from", [])]
        if {len(row) for row in rows} != {len(table["head"])}:
            yield f"{name}: rows do not fit the head"
        if len(table.get("from", table["rows"])) != len(table["rows"]):
            yield f"{name}: the numbers of sources and rows differ"
        drawn = "picture" in table and table["build"] != study.NOT_RUN
        if drawn and not any(f"({name}.svg)" in path.read_text("utf-8") for path in study.pages()):
            yield f"{name}: its picture is on no page"
        yield from references(name, table)


def references(name: str, table: dict[str, Any]) -> Iterator[str]:
    """Yield the references to cells that the preset does not train, since such a row would never change."""
    if not table.get("from"):
        return
    path = study.FOLDER / "runs" / f"{table['preset']}.json"
    summary = json.loads(path.read_text("utf-8"))["summary"] if path.exists() else []
    planned = [] if table["preset"] == study.WORD_CLASSES else PRESETS[table["preset"]].cells()
    cells = {(cell.corpus, cell.learner.name, cell.features) for cell in planned}
    if table["preset"] == study.WORD_CLASSES:
        cells = {(entry["corpus"], entry["learner"], entry["features"]) for entry in summary}
    sizes = {str(cell.size) for cell in planned} | {str(entry["sentences"]) for entry in summary}
    drawn = [y for line in table.get("picture", {"lines": {}})["lines"].values() for _, y in line]
    for row in (*table["from"], [y for y in drawn if isinstance(y, str)]):
        for found in study.REFERENCE.findall(" ".join(row)):
            corpus, learner, features, *size, _ = (part.strip() for part in found.split(";"))
            if (corpus, learner, features) not in cells or not set(size) <= sizes:
                yield f"{name}: {found} is not trained by the preset"


def check_no_typed_figures() -> Iterator[str]:
    """Scores in the text of the study and of the pages on the papers are generated, not typed."""
    for name in ("docs/papers.md", "docs/paper.md", *(str(path.relative_to(ROOT)) for path in study.pages())):
        for number in re.findall(r"(?<![\d.])\d\d\.\d+|\d+\.\d\d+", GENERATED.sub("", text(name))):
            yield f"{name}: {number} is typed. Use a fig or calc marker"


def check_published_figures() -> Iterator[str]:
    """Published figures are in published.toml only: no table of the study has a column or row of a paper."""
    for name, table in TABLES.items():
        if "paper" in " ".join([*table["head"], *(row[0] for row in table["rows"])]):
            yield f"docs/study/{name}.json: published figures belong in published.toml"


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


def check_pictures_are_shown() -> Iterator[str]:
    """Every picture is on a page."""
    shown = "".join(path.read_text("utf-8") for path in [ROOT / "README.md", *ROOT.glob("docs/**/*.md")])
    for path in sorted(ROOT.glob("docs/**/*")):
        if (
            path.suffix in {".svg", ".png", ".gif"}
            and f"{path.name})" not in shown
            and f'{path.name}"' not in shown
        ):
            yield f"{path.relative_to(ROOT)} is on no page"
