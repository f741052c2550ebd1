"""The rounds of a boosted model as a table for a terminal and as curves in an SVG file."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich import box
from rich.table import Table

from tagwise.apps.compare.report.svg import Chart, Line
from tagwise.base.terminal import plain

if TYPE_CHECKING:
    from tagwise.estimators.boosting import Round

#: Maximum number of points of a curve. More would be indistinguishable.
POINTS = 1000


def feature_text(found: Round) -> str:
    """Describe a feature in one line.

    >>> from tagwise.estimators.boosting import Round
    >>> feature_text(Round(0, "edge", "O", "B-PER", 0.5, 0.9, 1.0))
    'O -> B-PER'
    """
    if found.kind == "edge":
        return f"{found.attribute} -> {found.label}"
    return f"{found.attribute or found.kind} : {found.label}"


def rounds_table(rounds: Sequence[Round], top: int) -> Table:
    """Return a table of the first `top` chosen features and the last one."""
    out = Table(box=box.SIMPLE_HEAD, title="chosen features", title_justify="left")
    for name in ("round", "step", "bound", "log loss"):
        out.add_column(name, justify="right", no_wrap=True)
    out.add_column("feature", overflow="fold")

    def add(found: Round) -> None:
        figures = (f"{found.round + 1}", f"{found.step:+.4f}", f"{found.bound:.6f}", f"{found.log_loss:.4f}")
        out.add_row(*figures, plain(feature_text(found)))

    for found in rounds[:top]:
        add(found)
    if len(rounds) > top + 1:
        out.add_row("...", "", "", "", f"{len(rounds) - top - 1:,} more")
    if len(rounds) > top:
        add(rounds[-1])
    return out


def rounds_svg(rounds: Sequence[Round]) -> str:
    """Plot the log of the loss and the number of distinct features by round, as an SVG document."""
    seen: set[tuple[str, str, str]] = set()
    different = []
    for found in rounds:
        seen.add((found.kind, found.attribute, found.label))
        different.append(float(len(seen)))
    charts = []
    for name, values in (
        ("log of the training loss", [found.log_loss for found in rounds]),
        ("different features", different),
    ):
        points = [(float(i), value) for i, value in enumerate(values, 1) if math.isfinite(value)]
        shown = [*points[:: -(-len(points) // POINTS)], points[-1]] if points else []
        chart = Chart(name, "chosen features", name, width=720, height=260)
        chart.lines.append(Line(shown, name, "#1f6feb", name))
        charts.append(chart)
    return charts[0].document(charts[1])
