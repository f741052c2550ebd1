"""Figures of the study and of the benchmarks that pages cite: parts of tables, figures in the text, charts.

    python -m benchmarks.cited             # write them
    python -m benchmarks.cited --check     # check that the pages match the JSON

On a page, a table is between `<!-- cut TABLE;COLUMN;COLUMN:ROW;ROW -->` and `<!-- end -->` (all rows if none is
named), and a figure in the text is between `<!-- fig TABLE;ROW;COLUMN -->` and `<!-- / -->`. The text shows the first
word of a cell, which is the figure without its deviation. `<!-- calc PRESET: EXPRESSION -->` computes a figure from a
run: a reference of `benchmarks.study` in braces, or the difference (` - `, in points) or ratio (` / `) of two.

Tables are those of the study, those of `docs/benchmarks/*.json`, and views of the comparison of taggers
(`benchmarks/taggers/views.py`).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import page, study
from benchmarks.taggers import views
from tagwise.apps.compare.report.figures import Palette
from tagwise.apps.compare.report.svg import Chart, PlotPoint

ROOT = Path(__file__).parents[1]
PAGES = (
    "README.md",
    "docs/benchmarks.md",
    "docs/comparison.md",
    "docs/howto/choose-learner.md",
    "docs/howto/word-classes.md",
    "docs/papers.md",
    "docs/start/examples.md",
    "docs/paper.md",
    *(path.relative_to(ROOT).as_posix() for path in study.pages()),
)
CUT = re.compile(r"<!-- cut (?P<reference>[^>]*?) -->\n(?P<body>.*?)<!-- end -->", re.DOTALL)
FIGURE = re.compile(r"<!-- fig (?P<reference>[^>]*?) -->(?P<body>[^<]*)<!-- / -->")
CALC = re.compile(r"<!-- calc (?P<reference>[^>]*?) -->(?P<body>[^<]*)<!-- / -->")
#: Charts: table, columns of x and y, title. The x axis is logarithmic.
CHARTS = {
    "learners-names": (
        "sizes-names",
        "CPU s, all",
        "8,323",
        "Spanish entities: F1 against seconds of training",
    ),
    "learners-tags": (
        "sizes-tags",
        "CPU s, all",
        "12,544",
        "Parts of speech: accuracy against seconds of training",
    ),
}

Tables = Mapping[str, Mapping[str, Any]]


def cell(table: Mapping[str, Any], row: str, column: str) -> str:
    """Return a cell by the names of its row and its column."""
    at = table["head"].index(column)
    return str(next(cells for cells in table["rows"] if cells[0] == row)[at])


def cut(reference: str, known: Tables) -> str:
    """Return the table that a marker specifies.

    >>> known = {"t": {"head": ["learner", "F1", "s"], "rows": [["crf", "80", "2"], ["hmm", "60", "1"]]}}
    >>> print(cut("t;learner;F1:crf", known), end="")
    | learner | F1 |
    |---|---|
    | crf | 80 |
    """
    selection, _, rows = reference.partition(":")
    name, *columns = (part.strip() for part in selection.split(";"))
    table = known[name]
    wanted = [row.strip() for row in rows.split(";")] if rows.strip() else [row[0] for row in table["rows"]]
    cells = [[cell(table, row, column) for column in columns] for row in wanted]
    return study.markdown({"head": columns, "rows": cells})


def figure(reference: str, known: Tables) -> str:
    """Return the figure that a marker specifies."""
    name, row, column = (part.strip() for part in reference.split(";"))
    return cell(known[name], row, column).split()[0]


def calculated(reference: str, runs: Tables) -> str:
    """Return the figure that a marker computes from a run."""
    preset, _, expression = reference.partition(":")
    texts = [study.looked_up(text, runs[preset]["summary"]) for text in study.REFERENCE.findall(expression)]
    if None in texts:
        raise KeyError(f"{reference}: not measured")
    numbers = [float(str(text).split()[0].replace(",", "")) for text in texts]
    if len(numbers) == 1:
        return str(texts[0]).split()[0]
    if " / " in study.REFERENCE.sub("", expression):
        return f"{numbers[0] / numbers[1]:.0f}"
    return f"{abs(numbers[0] - numbers[1]):.2f}"


def written(page: str, known: Tables) -> str:
    """Return the page with its tables and figures from the JSON."""
    runs = study.runs()
    page = CALC.sub(
        lambda m: f"<!-- calc {m['reference']} -->{calculated(m['reference'], runs)}<!-- / -->", page
    )
    page = CUT.sub(lambda m: f"<!-- cut {m['reference']} -->\n{cut(m['reference'], known)}<!-- end -->", page)
    return FIGURE.sub(
        lambda m: f"<!-- fig {m['reference']} -->{figure(m['reference'], known)}<!-- / -->", page
    )


def chart(name: str, known: Tables) -> str:
    """Return one of CHARTS as SVG."""
    table, x, y, title = CHARTS[name]
    rows = [row[0] for row in known[table]["rows"]]
    palette = Palette([{"learner": row, "features": ""} for row in rows])
    drawn = Chart(title, "CPU seconds", "percent", log_x=True, height=420)
    for row in rows:
        seconds, score = (float(cell(known[table], row, c).split()[0].replace(",", "")) for c in (x, y))
        drawn.points.append(
            PlotPoint(
                seconds, score, row, palette.colour(row), f"{row}: {score:.2f} in {seconds:.1f} s", label=row
            )
        )
    return drawn.document()


def training_summary(run: Mapping[str, Any]) -> dict[str, Any]:
    """Return the rows of the benchmark `training` that reach the objective of CRFsuite, as plain seconds.

    >>> cells = {"CRFsuite": "62.00 s (60-65) scaled", "ours": "0.80 s (0.7-0.9)", "ratio": "77.5x (70-80)"}
    >>> training_summary({"rows": [{"name": "pos, within 1e-4, 2 threads", "cells": cells}]})["rows"]
    [['pos', '62.00 s', '0.80 s', '77.5x']]
    """
    parts = ("CRFsuite", "ours", "ratio")
    rows = [
        [row["name"].split(",")[0], *(row["cells"][part].split(" (")[0] for part in parts)]
        for row in run["rows"]
        if ", within 1e-4, " in row["name"]
    ]
    return {"head": ["workload", "CRFsuite, one thread", "tagwise, two threads", "ratio"], "rows": rows}


def tables() -> Tables:
    """Return all tables that pages may cite, by name."""
    runs = page.runs()
    return {
        **study.tables(),
        **{name: page.table(run) for name, run in runs.items()},
        **(views.tables(runs["taggers"]) if "taggers" in runs else {}),
        **({"training-summary": training_summary(runs["training"])} if "training" in runs else {}),
    }


def files(known: Tables) -> dict[Path, str]:
    """Return the contents of all generated files by path."""
    out = {ROOT / name: written((ROOT / name).read_text("utf-8"), known) for name in PAGES}
    drawn = {name: chart(name, known) for name in CHARTS} | {"speed": views.chart(known)}
    return out | {ROOT / "docs" / "pictures" / f"{name}.svg": svg for name, svg in drawn.items()}


def main(arguments: Sequence[str] | None = None) -> int:
    """Write or check all files."""
    check = "--check" in (sys.argv[1:] if arguments is None else arguments)
    other = []
    for path, text in files(tables()).items():
        if path.exists() and path.read_text("utf-8") == text:
            continue
        other.append(
            f"{path.relative_to(ROOT)}: differs from the JSON in docs, run python -m benchmarks.cited"
        )
        if not check:
            path.write_text(text, "utf-8")
    return study.report(other) if check else 0


if __name__ == "__main__":
    sys.exit(main())
