"""Charts of a comparison: scores by learner, by time, by sparsity and along training."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from tagwise.apps.compare.report.svg import SHAPES, Chart, Line, PlotPoint, Strip, dot_plot, draw_mark

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
MOST_LINES = 14
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

    def legend(self, published: bool = False) -> str:
        """Return a legend of colours and shapes as HTML."""
        items = []
        for name in self.learners:
            swatch = f'<i style="background:{self.colour(name)}"></i>'
            items.append(f'<span class="key" data-series="{escape(name)}">{swatch}{escape(name)}</span>')
        glyphs = [(name, draw_mark(self.shape(name), 7, 7, "currentColor")) for name in self.features]
        if published:
            glyphs.append(("published", draw_mark("circle", 7, 7, "currentColor", hollow=True)))
        shapes = [
            f'<span class="key"><svg viewBox="0 0 14 14" class="glyph">{glyph}</svg>{escape(name)}</span>'
            for name, glyph in glyphs
        ]
        return f'<div class="legend"><div>{"".join(items)}</div><div class="shapes">{"".join(shapes)}</div></div>'


def score_name(entries: Sequence[Mapping[str, Any]]) -> tuple[str, str]:
    """Return the main measure of a corpus and its name: F1 if labels mark spans, else accuracy."""
    return ("f1", "F1") if any(entry["f1"] is not None for entry in entries) else ("accuracy", "accuracy")


def describe(entry: Mapping[str, Any], key: str) -> str:
    """Describe a row in one line, for a tooltip."""
    spread = f" ±{100 * entry[key + '_sd']:.2f}" if entry.get(key + "_sd") is not None else ""
    return (
        f"{entry['learner']}, {entry['features']}, {entry['sentences']:,} sentences: {100 * entry[key]:.2f}{spread} · "
        f"{entry['seconds']:.1f} s · {entry['nonzero']:,.0f} non-zero features"
    )


def at_a_glance(entries: Sequence[Mapping[str, Any]], palette: Palette) -> str:
    """Return a dot plot with a line per learner, for the largest training size."""
    key, name = score_name(entries)
    most = max(entry["sentences"] for entry in entries)
    strips = []
    for learner in palette.learners:
        mine = [
            e for e in entries if e["learner"] == learner and e["sentences"] == most and e[key] is not None
        ]
        dots = [(100 * e[key], palette.shape(e["features"]), False, describe(e, key)) for e in mine]
        for e in mine:
            figure = e.get(f"{key}_published")
            if figure is not None:
                text = f"{learner}, {e['features']}: {figure:.2f} in the paper"
                dots.insert(0, (figure, palette.shape(e["features"]), True, text))
        if dots:
            strips.append(
                (max(d[0] for d in dots if not d[2]), Strip(learner, palette.colour(learner), dots))
            )
    strips.sort(key=lambda pair: -pair[0])
    return dot_plot([strip for _, strip in strips], f"{name}, %", f"{name} of every learner")


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


def against(entries: Sequence[Mapping[str, Any]], palette: Palette, cost: str, name: str, title: str) -> str:
    """Plot scores against a cost. Points of the Pareto front are labelled."""
    key, score = score_name(entries)
    usable = [e for e in entries if e[key] is not None and e[cost] is not None]
    places = [(max(float(e[cost]), 1e-3), 100 * e[key]) for e in usable]
    front = best_front(places)
    chart = Chart(title, name, f"{score}, %", log_x=True, frontier=front)
    seen: set[tuple[float, float]] = set()
    for entry, place in zip(usable, places):
        first = place in front and place not in seen
        seen.add(place)
        chart.points.append(
            PlotPoint(
                *place,
                series=entry["learner"],
                colour=palette.colour(entry["learner"]),
                title=describe(entry, key),
                shape=palette.shape(entry["features"]),
                label=f"{entry['learner']} {entry['features']}" if first else "",
            )
        )
    return chart.svg()


def by_size(entries: Sequence[Mapping[str, Any]], palette: Palette, features: str) -> str:
    """Plot scores against the number of training sentences, one curve per learner."""
    key, score = score_name(entries)
    chart = Chart(
        f"{score} by training sentences, {features}", "training sentences", f"{score}, %", log_x=True
    )
    for learner in palette.learners:
        mine = sorted(
            (
                e
                for e in entries
                if e["learner"] == learner and e["features"] == features and e[key] is not None
            ),
            key=lambda e: e["sentences"],
        )
        if len(mine) < 2:
            continue
        colour = palette.colour(learner)
        chart.lines.append(Line([(e["sentences"], 100 * e[key]) for e in mine], learner, colour, learner))
        for i, e in enumerate(mine):
            label = learner if i + 1 == len(mine) else ""
            chart.points.append(
                PlotPoint(
                    e["sentences"],
                    100 * e[key],
                    learner,
                    colour,
                    describe(e, key),
                    palette.shape(features),
                    label,
                )
            )
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
    chart = Chart(f"{name}, {features}", "iterations", name, log_x=not dev, log_y=not dev)
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


def precision_recall(entries: Sequence[Mapping[str, Any]], palette: Palette) -> str:
    """Plot precision against recall of spans."""
    chart = Chart("precision against recall", "recall, %", "precision, %")
    for entry in entries:
        if entry["recall"] is None or not entry["f1"]:
            continue
        chart.points.append(
            PlotPoint(
                100 * entry["recall"],
                100 * entry["precision"],
                entry["learner"],
                palette.colour(entry["learner"]),
                describe(entry, "f1"),
                palette.shape(entry["features"]),
            )
        )
    return chart.svg() if len(chart.points) > 2 else ""


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
    chart = Chart(f"margins, {features}", "margin, in units of the median", "sentences, %")
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
        f"ranks, {features}", "wrong paths no worse than the gold one, and one", "sentences, %", log_x=True
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


def charts(comparison: Comparison, corpus: str, palette: Palette) -> list[tuple[str, str, str]]:
    """Return title, drawing and caption of every chart of a corpus that is not empty."""
    entries = [e for e in comparison.summary() if e["corpus"] == corpus]
    rows = [
        (row, detail)
        for row, detail in zip(comparison.rows, comparison.details)
        if row.corpus == corpus and row.seed == 0 and detail is not None
    ]
    if rows:
        most = max(row.sentences for row, _ in rows)
        rows = [pair for pair in rows if pair[0].sentences == most]
    score = score_name(entries)[1].capitalize()
    out = [
        (
            f"{score} against training time",
            against(entries, palette, "seconds", "training seconds (log)", "score against time"),
            "Labelled: no other is both faster and better.",
        ),
        (
            f"{score} against sparsity",
            against(entries, palette, "nonzero", "non-zero features (log)", "score against sparsity"),
            "Labelled: no other is both smaller and better.",
        ),
        ("Precision against recall", precision_recall(entries, palette), ""),
    ]
    for features in palette.features:
        out.append((f"Learning curve, {features}", by_size(entries, palette, features), ""))
        text = "Zero: the gold path has the score of the best wrong one."
        out.append((f"Margins of gold paths, {features}", margins(rows, palette, features), text))
        text = (
            "At the left the gold path is the best one. Gold paths beyond the end of a curve are in no list."
        )
        out.append((f"Ranks of gold paths, {features}", ranks(rows, palette, features), text))
        tracked = by_iteration(rows, palette, features, "dev_score")
        out.append((f"Dev score along training, {features}", tracked, ""))
        if not tracked:
            drawn = by_iteration(rows, palette, features, "objective")
            text = (
                "Distance of each objective from its minimum, relative to the first iteration: "
                "batch learners count loss, online ones wrong tokens."
            )
            out.append((f"Objective along training, {features}", drawn, text))
    return [(title, drawing, text) for title, drawing, text in out if drawing]
