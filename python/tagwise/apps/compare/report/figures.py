"""Charts of a comparison: scores by learner, by time, by sparsity and along training."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tagwise.apps.compare.report.answer import Entry, duration, namer, score_name
from tagwise.apps.compare.report.svg import SHAPES, Chart, Line, PlotPoint, ticks
from tagwise.base.markup import safe

if TYPE_CHECKING:
    from tagwise.apps.compare.table import Comparison

#: Colours by learner: one hue per family, readable on white and on near-black.
COLOURS = {
    "crf": "#3b82f6",
    "crf-l1": "#6366f1",
    "crf-exp": "#38bdf8",
    "crf-pointwise-log": "#0ea5a4",
    "crf-pointwise-exp": "#2dd4bf",
    "perceptron": "#f97316",
    "mira": "#e11d48",
    "pa": "#f59e0b",
    "arow": "#b45309",
    "hmsvm": "#a855f7",
    "boosting": "#d946ef",
    "hmm": "#65a30d",
    "hmm-overlapping": "#22c55e",
    "memm": "#84cc16",
}
SPARE = (
    "#3b82f6",
    "#f97316",
    "#22c55e",
    "#e11d48",
    "#a855f7",
    "#0ea5a4",
    "#f59e0b",
    "#6366f1",
    "#84cc16",
    "#d946ef",
)
MOST_LINES, MOST_POINTS = 14, 24
SIZE: dict[str, Any] = {"width": 380, "height": 290}
CUT = 0.5  # bars begin at zero if the lowest is below this fraction of the highest
LEAST = 1e-5  # fraction of the total decrease of an objective below which a curve is cut


class Palette:
    """Colours of learners and shapes of feature sets, the same in every chart of a page."""

    def __init__(self, summary: Sequence[Mapping[str, Any]]) -> None:
        self.learners = list(dict.fromkeys(entry["learner"] for entry in summary))
        self.features = list(dict.fromkeys(entry["features"] for entry in summary))
        unknown = [name for name in self.learners if name not in COLOURS]
        known = len(unknown) < len(self.learners)
        spare = [
            c for c in SPARE if not known or c not in {COLOURS.get(name) for name in self.learners}
        ] or SPARE
        self._colours = {name: spare[i % len(spare)] for i, name in enumerate(unknown)}

    def colour(self, learner: str) -> str:
        """Return the colour of a learner."""
        return COLOURS.get(learner) or self._colours.get(learner, SPARE[0])

    def shape(self, features: str) -> str:
        """Return the shape of a feature set."""
        return SHAPES[self.features.index(features) % len(SHAPES)] if features in self.features else SHAPES[0]


def spread_text(ends: tuple[float, float] | None) -> str:
    """Format the interval of a fraction in percent, or return an empty text for None.

    >>> spread_text((0.7891, 0.8123))
    '78.9 to 81.2'
    """
    return "" if ends is None else f"{100 * ends[0]:.1f} to {100 * ends[1]:.1f}"


class Entries:
    """The entries of one corpus with their names, scores and intervals."""

    def __init__(self, comparison: Comparison, corpus: str, summary: Sequence[Entry]) -> None:
        self.all = [entry for entry in summary if entry["corpus"] == corpus]
        self.key, self.measure = score_name(self.all)
        self.scored = [entry for entry in self.all if entry[self.key] is not None]
        most = max((entry["sentences"] for entry in self.scored), default=0)
        self.full = [entry for entry in self.scored if entry["sentences"] == most]
        self.name = namer(self.full)
        self._comparison = comparison

    def interval(self, entry: Entry) -> tuple[float, float] | None:
        """Return the interval of the main score of an entry, or None if it is unknown."""
        return self._comparison.intervals(entry).get(self.key)

    def describe(self, entry: Entry) -> str:
        """Describe an entry in one line, for a tooltip."""
        spread = f" ±{100 * entry[self.key + '_sd']:.2f}" if entry.get(self.key + "_sd") is not None else ""
        ends = spread_text(self.interval(entry))
        return (
            f"{entry['learner']}, {entry['features']}, {entry['sentences']:,} sentences: "
            f"{100 * entry[self.key]:.2f}{spread}{f' ({ends})' if ends else ''} · {duration(entry['seconds'])} · "
            f"{entry['nonzero']:,.0f} non-zero features"
        )

    def point(self, entry: Entry, x: float, palette: Palette, label: str) -> PlotPoint:
        """Return the mark of an entry with its interval."""
        low, high = self.interval(entry) or (None, None)
        return PlotPoint(
            x,
            100 * entry[self.key],
            entry["learner"],
            palette.colour(entry["learner"]),
            self.describe(entry),
            palette.shape(entry["features"]),
            label,
            low=None if low is None else 100 * low,
            high=None if high is None else 100 * high,
        )

    def shown(self) -> tuple[list[Entry], str]:
        """Return the entries for charts, best first, and a remark on those that are omitted."""
        best = sorted(self.full, key=lambda entry: -entry[self.key])
        rest = len(best) - MOST_POINTS
        return best[:MOST_POINTS], f"The table has {rest:,} more." if rest > 0 else ""


def bar_axis(lows: Sequence[float], highs: Sequence[float]) -> tuple[float, float]:
    """Return the ends of the axis of bars, in percent: from zero, or cut if bars from zero would look alike.

    >>> bar_axis([20.0, 60.0], [25.0, 65.0]), bar_axis([81.0, 83.0], [84.0, 86.0])
    ((0.0, 65.0), (80.0, 86.0))
    """
    low, high = min(lows), max(highs)
    if low < CUT * high or low == high:
        return 0.0, max(high, 1e-9)
    first, second, *_ = ticks(low, high, 5)
    return (second - first) * math.floor((low - 0.1 * (high - low)) / (second - first)), high


def bars(entries: Entries, palette: Palette) -> str:
    """Return a bar for each entry with the most training sentences, with its interval, best first."""
    shown, remark = entries.shown()
    if not shown:
        return ""
    key = entries.key
    values = {id(e): 100 * e[key] for e in shown}
    ends = {id(e): entries.interval(e) or (e[key], e[key]) for e in shown}
    papers = {id(e): e[f"{key}_published"] for e in shown if e.get(f"{key}_published") is not None}
    every = [*values.values(), *papers.values()]
    low, high = bar_axis(
        [*every, *(100 * one for one, _ in ends.values())],
        [*every, *(100 * other for _, other in ends.values())],
    )

    def at(value: float) -> str:
        return f"{100 * (value - low) / (high - low):.2f}%"

    lines = []
    for e in shown:
        one, other = ends[id(e)]
        whisker = (
            f'<u style="left:{at(100 * one)};right:calc(100% - {at(100 * other)})"></u>'
            if other > one
            else ""
        )
        paper = papers.get(id(e))
        ring = (
            f'<s style="left:{at(paper)}" title="{paper:.2f} in the paper"></s>' if paper is not None else ""
        )
        note = spread_text(entries.interval(e))
        printed = f"<small>paper {paper:.2f}</small>" if paper is not None else ""
        lines.append(
            f'<li data-series="{safe(e["learner"])}"><span class="name">{safe(entries.name(e))}</span>'
            f'<span class="track{" cut" if low else ""}" title="{safe(entries.describe(e))}">'
            f'<i style="width:{at(values[id(e)])};background:{palette.colour(e["learner"])}"></i>{whisker}{ring}</span>'
            f'<span class="value">{values[id(e)]:.2f}{f"<small>{note}</small>" if note else ""}{printed}</span></li>'
        )
    notes = (
        ["Lines show 95 % intervals, by the bootstrap over test sentences."]
        if any(other > one for one, other in ends.values())
        else []
    )
    if low:
        notes.append(f"The bars are cut: they begin at {low:g} %, not at zero.")
    if papers:
        notes.append("Rings are published figures.")
    scale = "".join(
        f'<span style="left:{at(value)}">{value:g}</span>' for value in ticks(low, high, 6) if value >= low
    )
    return (
        f'<ol class="bars">{"".join(lines)}</ol><div class="scale" aria-hidden="true"><div>{scale}</div></div>'
        f"<p>{safe(' '.join([*notes, remark]).strip())}</p>"
    )


def best_front(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the Pareto front: points without another point further left and higher.

    >>> best_front([(1, 5), (2, 4), (3, 9)])
    [(1, 5), (3, 9)]
    """
    front: list[tuple[float, float]] = []
    for x, y in sorted(points, key=lambda p: (p[0], -p[1])):
        if not front or y > front[-1][1]:
            front.append((x, y))
    return front


def against(entries: Entries, palette: Palette, cost: str, name: str, title: str) -> str:
    """Plot scores against a cost. Every point has a name."""
    shown = [e for e in entries.shown()[0] if e[cost] is not None]
    places = [(max(float(e[cost]), 1e-4), 100 * e[entries.key]) for e in shown]
    chart = Chart(title, name, f"{entries.measure}, %", log_x=True, frontier=best_front(places), **SIZE)
    for entry, (x, _) in zip(shown, places):
        chart.points.append(entries.point(entry, x, palette, entries.name(entry)))
    return chart.svg()


def by_size(entries: Entries, palette: Palette, features: str) -> str:
    """Plot scores against the number of training sentences, one curve per learner, with ticks at the sizes."""
    mine = [e for e in entries.scored if e["features"] == features]
    name = f"{entries.measure} by training sentences, {features}"
    chart = Chart(name, "training sentences", f"{entries.measure}, %", log_x=True, **SIZE)
    curves: dict[tuple[str, str], list[Entry]] = {}
    for entry in sorted(mine, key=lambda entry: entry["sentences"]):
        curves.setdefault((entry["learner"], entry["loss"]), []).append(entry)
    names = [learner for learner, _ in curves]
    for (learner, loss), found in list(curves.items()):
        if len(found) < 2 or len(chart.lines) >= MOST_LINES:
            continue
        text = learner if names.count(learner) == 1 else f"{learner}, {loss}"
        course = [(e["sentences"], 100 * e[entries.key]) for e in found]
        chart.lines.append(Line(course, learner, palette.colour(learner), text))
        for e in found:
            label = text if e is found[-1] else ""
            chart.points.append(entries.point(e, e["sentences"], palette, label))
    chart.x_ticks = sorted({float(x) for line in chart.lines for x, _ in line.points})
    return chart.svg() if chart.lines else ""


def by_iteration(
    rows: Sequence[tuple[Any, Mapping[str, Any]]], palette: Palette, features: str, measure: str
) -> str:
    """Plot the dev score, or the distance of the objective from its minimum, by iteration.

    An objective converges to a value other than 0, so its own logarithm would flatten. The relative distance
    (f_i - min f) / (f_1 - min f) keeps falling while training makes progress.
    """
    dev = measure == "dev_score"
    name = "dev score, %" if dev else "objective above its minimum"
    chart = Chart(f"{name}, {features}", "iterations", name, log_x=not dev, log_y=not dev, **SIZE)
    for row, detail in rows:
        if row.features != features:
            continue
        known = [(e["iteration"], e[measure]) for e in detail["history"] if e[measure] is not None]
        if dev:
            points = [(i, 100 * value) for i, value in known]
        else:
            points = [(i, share) for i, share in above_lowest(known) if share >= LEAST]
        if len(points) > 1 and len(chart.lines) < MOST_LINES:
            dashed = "unaveraged" in row.learner
            x, y = points[-1]
            title = (
                f"{row.learner}: {y:.2f} after {x} iterations" if dev else f"{row.learner}: {y:.2g} after {x}"
            )
            chart.curve(points, row.learner, palette.colour(row.learner), title, dashed=dashed)
    return chart.svg() if chart.lines else ""


def above_lowest(values: Sequence[tuple[int, float]]) -> list[tuple[int, float]]:
    """Return the distances from the minimum as fractions of the first one, without the minimum itself.

    >>> above_lowest([(1, 10.0), (2, 6.0), (3, 5.0)])
    [(1, 1.0), (2, 0.2)]
    """
    finite = [(i, value) for i, value in values if math.isfinite(value)]
    if not finite:
        return []
    low = min(value for _, value in finite)
    first = finite[0][1] - low
    return [(i, (value - low) / first) for i, value in finite if value > low] if first > 0 else []


def precision_recall(entries: Entries, palette: Palette) -> str:
    """Plot precision against recall of spans."""
    chart = Chart("precision against recall", "recall, %", "precision, %", **SIZE)
    for entry in entries.shown()[0]:
        if entry["recall"] is None or not entry["f1"]:
            continue
        chart.points.append(
            PlotPoint(
                100 * entry["recall"],
                100 * entry["precision"],
                entry["learner"],
                palette.colour(entry["learner"]),
                entries.describe(entry),
                palette.shape(entry["features"]),
                entries.name(entry),
            )
        )
    return chart.svg() if len(chart.points) > 1 else ""


def binned(values: Sequence[float], bins: int = 24, kept: float = 0.02) -> list[tuple[float, float]]:
    """Return a histogram as points (middle, fraction). The outermost bins hold the `kept` fraction at either end.

    >>> binned([0.0, 1.0, 1.0, 2.0], bins=2, kept=0.0)
    [(0.5, 0.25), (1.5, 0.75)]
    """
    ordered = sorted(values)
    if not ordered:
        return []
    out = int(kept * len(ordered))
    low, high = ordered[out], ordered[len(ordered) - 1 - out]
    if low == high:
        return [(low, 1.0)]
    width, counts = (high - low) / bins, [0] * bins
    for value in ordered:
        counts[max(0, min(bins - 1, int((value - low) / width)))] += 1
    return [(low + (i + 0.5) * width, n / len(ordered)) for i, n in enumerate(counts)]


def margins(rows: Sequence[tuple[Any, Mapping[str, Any]]], palette: Palette, features: str) -> str:
    """Plot histograms of the margins of gold paths, in units of each learner's median: scores have no common scale."""
    chart = Chart(f"margins, {features}", "margin, in units of the median", "sentences, %", **SIZE)
    for row, detail in rows:
        found = [m for m in detail.get("margins", ()) if m is not None]
        if row.features != features or len(found) < 2 or len(chart.lines) >= MOST_LINES:
            continue
        unit = sorted(map(abs, found))[len(found) // 2] or 1.0
        points = [(x, 100 * y) for x, y in binned([m / unit for m in found])]
        top = max(range(len(points)), key=lambda i: points[i][1])
        title = f"{row.learner}: median margin {row.margin}"
        chart.curve(points, row.learner, palette.colour(row.learner), title, at=top)
    return chart.svg() if chart.lines else ""


def ranks(rows: Sequence[tuple[Any, Mapping[str, Any]]], palette: Palette, features: str) -> str:
    """Plot the fraction of sentences whose gold path is among the r + 1 best, by r, up to the length of the lists."""
    chart = Chart(
        f"ranks, {features}",
        "wrong paths no worse than the gold one, and one",
        "sentences, %",
        log_x=True,
        **SIZE,
    )
    for row, detail in rows:
        found = detail.get("ranks", ())
        if row.features != features or not found or len(chart.lines) >= MOST_LINES:
            continue
        k, known = detail["k"], [r for r in found if r >= 0]
        points = [
            (float(r + 1), 100 * sum(x <= r for x in known) / len(found)) for r in sorted({0, *known, k - 1})
        ]
        title = f"{row.learner}: {points[-1][1]:.1f} % of the gold paths among the {k} best"
        chart.curve(points, row.learner, palette.colour(row.learner), title)
    return chart.svg() if chart.lines else ""


def losses() -> str:
    """Plot the 0-1, exponential and logarithmic loss by margin."""
    from tagwise.scores.losses import loss_curves

    chart = Chart("losses by margin", "margin", "loss", y_range=(0.0, 8.0))
    curves = loss_curves([i / 20 for i in range(-41, 61)])
    for name, text, colour in (
        ("zero_one", "0-1", "#64748b"),
        ("exp", "exp", COLOURS["crf-exp"]),
        ("log", "log", COLOURS["crf"]),
    ):
        points = [(c["margin"], c[name]) for c in curves]
        chart.lines.append(Line(points, text, colour, text))
        x, y = points[8 if name == "exp" else 0]
        above = 0.1 if name == "exp" else 0.25
        chart.points.append(PlotPoint(x, y + above, text, colour, text, shape="none", label=f"{text} loss"))
    return chart.svg()


Figure = tuple[str, str, str]  # title, drawing, caption


def charts(
    comparison: Comparison, corpus: str, entries: Entries, palette: Palette
) -> tuple[list[Figure], list[Figure]]:
    """Return the charts of a corpus that are not empty, and those of the course of training."""
    rows = [
        (row, detail)
        for row, detail in zip(comparison.rows, comparison.details)
        if row.corpus == corpus and row.seed == 0 and detail is not None
    ]
    if rows:
        most = max(row.sentences for row, _ in rows)
        rows = [pair for pair in rows if pair[0].sentences == most]
    score = entries.measure.capitalize()
    out: list[Figure] = [
        (
            f"{score} against training time",
            against(entries, palette, "seconds", "training seconds (log)", "score against time"),
            "Dotted: no other is both faster and better.",
        ),
        (
            f"{score} against sparsity",
            against(entries, palette, "nonzero", "non-zero features (log)", "score against sparsity"),
            "Dotted: no other is both smaller and better.",
        ),
        ("Precision against recall", precision_recall(entries, palette), ""),
    ]
    training: list[Figure] = []
    for features in palette.features:
        out.append((f"Learning curve, {features}", by_size(entries, palette, features), ""))
        text = "Zero: the gold path has the score of the best wrong one."
        out.append((f"Margins of gold paths, {features}", margins(rows, palette, features), text))
        text = (
            "At the left the gold path is the best one. Gold paths beyond the end of a curve are in no list."
        )
        out.append((f"Ranks of gold paths, {features}", ranks(rows, palette, features), text))
        tracked = by_iteration(rows, palette, features, "dev_score")
        training.append((f"Dev score along training, {features}", tracked, ""))
        if not tracked:
            drawn = by_iteration(rows, palette, features, "objective")
            text = (
                "Distance of each objective from its minimum, relative to the first iteration. Batch learners count "
                "loss, online learners wrong tokens, so compare the shapes and not the heights."
            )
            training.append((f"Objective along training, {features}", drawn, text))
    return [figure for figure in out if figure[1]], [figure for figure in training if figure[1]]
