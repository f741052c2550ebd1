"""Scorecard of the study: published tables of the papers, our figures, and their differences.

Published figures are in `tagwise/apps/compare/published.toml`, ours in `docs/study/runs`. A block of a page is between
`<!-- made NAME -->` and `<!-- end -->`: `scorecard`, `runs`, or `PAPER; TABLE; PART` for a published table.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tagwise.apps.compare.published import PAPERS, TABLES, PublishedCell, PublishedTable
from tagwise.apps.compare.report.figures import Palette
from tagwise.apps.compare.report.svg import Chart, Line, PlotPoint
from tagwise.scores.losses import loss_curves

#: A figure agrees if it differs by at most NEAR points or two deviations over seeds.
NEAR = 1.0
#: Pairs of published figures that differ by more than this many points count for the ranking.
APART = 0.5
#: Smallest share of agreeing figures, or of pairs in the same order, for a verdict.
SHARE = 0.75
#: Pages of the papers, relative to the page of the scorecard.
PAGES = {name: f"study/{name}.md" for name in PAPERS}

Runs = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Compared:
    """A published figure, ours and its deviation over seeds, in the unit of the paper."""

    cell: PublishedCell
    ours: float
    spread: float | None

    @property
    def difference(self) -> float:
        """Our figure less the published one."""
        return round(self.ours - self.cell.figure, 2)

    @property
    def agrees(self) -> bool:
        """Whether the figures differ by at most NEAR points or two deviations."""
        return abs(self.difference) <= max(NEAR, 2 * (self.spread or 0.0))


def published(paper: str, table: str) -> PublishedTable:
    """Return a published table by the names of its paper and its table."""
    return next(found for found in TABLES if (found.paper, found.table) == (paper, table))


def compared(table: PublishedTable, runs: Runs, part: int = 0) -> list[Compared]:
    """Return the figures of a table that a run has measured."""
    found = (one(table, cell, runs) for cell in table.cells(part))
    return [figure for figure in found if figure is not None]


def one(table: PublishedTable, cell: PublishedCell, runs: Runs) -> Compared | None:
    """Return a published figure with ours, or None if it was not measured."""
    for entry in runs.get(table.preset, {"summary": []})["summary"]:
        wanted = ((cell.learner, "learner"), (cell.features, "features"), (cell.corpus, "corpus"))
        if any(value is not None and entry[name] != value for value, name in wanted):
            continue
        name = "cpu" if cell.measure == "seconds" else cell.measure
        value, spread = entry.get(name), entry.get(f"{name}_sd")
        if value is None:
            continue
        scale = 1 / 60 if cell.measure == "seconds" else 100
        ours = 100 - scale * value if table.errors else scale * value
        return Compared(cell, round(ours, 2), None if spread is None else round(scale * spread, 2))
    return None


def same_order(figures: Sequence[Compared]) -> tuple[int, int]:
    """Return how many pairs have the same order as in the paper, and how many the paper separates by APART.

    Pairs are of one measure and one corpus.

    >>> cells = [PublishedCell(str(x), "", x, "", "f1") for x in (80.0, 81.0, 83.0)]
    >>> same_order([Compared(cell, ours, None) for cell, ours in zip(cells, (70.0, 72.0, 71.0))])
    (2, 3)
    """
    pairs = [
        (a, b)
        for a, b in itertools.combinations(figures, 2)
        if (a.cell.measure, a.cell.corpus) == (b.cell.measure, b.cell.corpus)
        and abs(a.cell.figure - b.cell.figure) > APART
    ]
    same = sum((a.ours - b.ours) * (a.cell.figure - b.cell.figure) > 0 for a, b in pairs)
    return same, len(pairs)


def verdict(table: PublishedTable, figures: Sequence[Compared]) -> str:
    """Return the verdict on a table: reproduced, order only, other data or differs."""
    if table.data == "other":
        return "other data"
    same, pairs = same_order(figures)
    ordered = same >= SHARE * pairs
    if ordered and sum(figure.agrees for figure in figures) >= SHARE * len(figures):
        return "reproduced"
    return "order only" if ordered else "differs"


def mean_difference(figures: Sequence[Compared]) -> float:
    """Return the mean difference in points, positive if our scores are higher."""
    return statistics.fmean(figure.difference for figure in figures)


def minutes(run: Mapping[str, Any]) -> str:
    """Return the CPU minutes that training the cells of a run took, without the choice of parameters."""
    return f"{sum(entry['cpu'] * entry['seeds'] for entry in run['summary']) / 60:.1f}"


def scorecard(runs: Runs) -> dict[str, Any]:
    """Return head and rows of the scorecard."""
    head = ["paper, table", "data", "figures", "agree", "mean difference", "same order", "verdict"]
    head += ["why it differs", "command", "CPU minutes"]
    rows = []
    for table in TABLES:
        figures = compared(table, runs)
        if not table.scored or not figures:
            continue
        same, pairs = same_order(figures)
        why = [table.cause]
        for part in range(1, len(table.parts)):
            others = compared(table, runs, part)
            why += [f"Mean difference on {table.parts[part]['name']}: {mean_difference(others):+.2f}"] * bool(
                others
            )
        rows.append(
            [
                f"[{table.source}]({PAGES[table.paper]}#{anchor(table)})",
                f"{table.data}: {table.parts[0]['name']}",
                str(len(figures)),
                str(sum(figure.agrees for figure in figures)),
                f"{mean_difference(figures):+.2f}",
                f"{same} of {pairs}",
                f"**{verdict(table, figures)}**",
                ". ".join(why),
                f"`tagwise compare {table.preset}`",
                minutes(runs[table.preset]),
            ]
        )
    return {"head": head, "rows": rows}


def anchor(table: PublishedTable) -> str:
    """Return the anchor of the heading of a table on the page of its paper.

    >>> anchor(next(table for table in TABLES if table.table == "Table 1, NER"))
    'table-1-ner'
    """
    return table.table.lower().replace(",", "").replace(" ", "-")


def layout(table: PublishedTable, runs: Runs, part: int = 0) -> dict[str, Any]:
    """Return one table in the layout of its paper: ours with its deviation, published, difference.

    Differences that do not agree are bold. For training times the ratio replaces the difference.
    """
    found = {(figure.cell.row, figure.cell.column): figure for figure in compared(table, runs, part)}
    published = {(cell.row, cell.column): cell.figure for cell in table.cells(part)}
    times = table.measures == {"seconds"}
    rows = []
    for row in table.rows:
        lines: list[list[str]] = [
            [row["head"], "ours"],
            ["", "published"],
            ["", "ratio" if times else "difference"],
        ]
        for column in table.columns:
            key = (row["head"], column["head"])
            figure = found.get(key)
            lines[1].append(f"{published[key]:.{0 if times else 2}f}" if key in published else "")
            if figure is None:
                lines[0].append("")
                lines[2].append("")
                continue
            spread = "" if figure.spread is None or times else f" ±{figure.spread:.2f}"
            lines[0].append(f"{figure.ours:.2f}{spread}")
            difference = f"{figure.difference:+.2f}"
            if times:
                difference = f"{figure.cell.figure / max(figure.ours, 0.01):,.0f}"
            elif not figure.agrees:
                difference = f"**{difference}**"
            lines[2].append(difference)
        rows += lines
    return {"head": ["", "", *(column["head"] for column in table.columns)], "rows": rows}


def summary(table: PublishedTable, runs: Runs, part: int = 0) -> str:
    """Return a sentence on the agreement of a table."""
    figures = compared(table, runs, part)
    if not figures:
        return f'Not run yet: `make study ARGS="--only {table.preset}"`.\n'
    same, pairs = same_order(figures)
    agree = sum(figure.agrees for figure in figures)
    ranking = (
        f"{same} of {pairs} pairs are in the same order" if pairs else "no pair is far enough apart to rank"
    )
    return (
        f"{agree} of {len(figures)} figures agree, the mean difference is {mean_difference(figures):+.2f}, and "
        f"{ranking}.\n"
    )


def plot(paper: str | None, runs: Runs) -> str:
    """Draw our figures against the published ones, with the diagonal, for one paper or for all.

    With all papers, errors are drawn as accuracy.
    """
    tables = [t for t in TABLES if t.scored and paper in (None, t.paper) and compared(t, runs)]
    names = [table.table if paper else f"{table.paper}, {table.table}" for table in tables]
    palette = Palette([{"learner": name, "features": ""} for name in names])
    chart = Chart("Our figures against the published ones", "published", "ours", height=460, width=640)
    low, high = 200.0, 0.0
    for table, name in zip(tables, names):
        figures = compared(table, runs)
        for figure in figures:
            x, y = figure.cell.figure, figure.ours
            if table.errors and paper is None:
                x, y = 100 - x, 100 - y
            low, high = min(low, x, y), max(high, x, y)
            title = f"{name}, {figure.cell.row}, {figure.cell.column}: ours {y:.2f}, published {x:.2f}"
            chart.points.append(
                PlotPoint(
                    x, y, name, palette.colour(name), title, label=name if figure is figures[-1] else ""
                )
            )
    chart.lines.append(Line([(low, low), (high, high)], "equal", "#888", "equal figures", dashed=True))
    return chart.document()


def loss_figure() -> str:
    """Draw the losses of one decision by its margin: Figure 2 of Altun, Johnson and Hofmann (2003)."""
    chart = Chart("Losses of a decision by its margin", "margin", "loss", height=420, y_range=(0.0, 5.0))
    names = {"zero_one": "0-1", "exp": "exponential", "log": "logarithmic"}
    palette = Palette([{"learner": name, "features": ""} for name in names.values()])
    margins = [i / 20 - 1e-9 * (i == 0) for i in range(-30, 61)]
    for key, name in names.items():
        points = [(entry["margin"], entry[key]) for entry in loss_curves(margins)]
        chart.curve(points, name, palette.colour(name), name)
    return chart.document()


#: Drawings of dev scores by iterations: name, corpus, title, and axis.
CURVES = {
    "curve-tags": ("ewt-pos", "Figure 2: dev accuracy by iterations, parts of speech", "dev accuracy"),
    "curve-names": ("conll2003-en", "Figure 3: dev F1 by iterations, English entities", "dev F1"),
}


def curves(runs: Runs) -> dict[str, str]:
    """Draw the dev scores of the preset `convergence` by iterations."""
    out = {}
    for name, (corpus, title, axis) in CURVES.items():
        entries = [entry for entry in runs["convergence"]["summary"] if entry["corpus"] == corpus]
        palette = Palette([{"learner": entry["learner"], "features": ""} for entry in entries])
        chart = Chart(title, "iterations", axis, height=420)
        for entry in entries:
            points = [(i + 1.0, 100 * score) for i, score in enumerate(entry["curve"])]
            chart.curve(points, entry["learner"], palette.colour(entry["learner"]), entry["learner"])
        out[name] = chart.document()
    return out


def provenance(runs: Runs) -> dict[str, Any]:
    """Return head and rows of the table of runs: commit, date, machine, CPU minutes."""
    rows = []
    for name, run in runs.items():
        machine = run["machine"]
        about = f"{machine['cpu']}, {machine['cores']} cores, Python {machine['python']}"
        rows.append([f"`{name}`", f"`{run['commit'][:8]}`", machine["date"], about, minutes(run)])
    return {"head": ["preset", "commit", "date", "machine", "CPU minutes"], "rows": rows}
