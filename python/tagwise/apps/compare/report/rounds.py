"""A boosted model's rounds: a table for a terminal, curves as one SVG file."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from rich import box
from rich.table import Table

from tagwise.base.terminal import plain

if TYPE_CHECKING:
    from tagwise.estimators.boosting import Round

WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 720, 260, 70, 40, 30
#: Most points of a curve; more could not be told apart.
POINTS = 1000


def feature_text(found: Round) -> str:
    """A feature in one line.

    >>> from tagwise.estimators.boosting import Round
    >>> feature_text(Round(0, "edge", "O", "B-PER", 0.5, 0.9, 1.0))
    'O -> B-PER'
    """
    if found.kind == "edge":
        return f"{found.attribute} -> {found.label}"
    return f"{found.attribute or found.kind} : {found.label}"


def rounds_table(rounds: Sequence[Round], top: int) -> Table:
    """The first `top` chosen features and the last one."""
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


def _ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Round numbers between two others."""
    if high <= low:
        return [low]
    rough = (high - low) / most
    size = 10.0 ** math.floor(math.log10(rough))
    step = next(m * size for m in (1, 2, 5, 10) if m * size >= rough)
    first = math.ceil(low / step)
    return [i * step for i in range(first, math.floor(high / step) + 1)]


def _panel(y0: int, title: str, xs: Sequence[float], ys: Sequence[float]) -> list[str]:
    """One curve with its axes; y0 is the upper edge."""
    pairs = [(x, y) for x, y in zip(xs, ys) if math.isfinite(y)]
    low, high = min(y for _, y in pairs), max(y for _, y in pairs)
    if high == low:
        high = low + 1.0
    right, below = max(max(xs), 1.0), y0 + HEIGHT - BOTTOM

    def at(x: float, y: float) -> tuple[float, float]:
        px = LEFT + (WIDTH - LEFT - 20) * x / right
        return px, below - (HEIGHT - BOTTOM - TOP) * (y - low) / (high - low)

    out = [f'<text x="{LEFT}" y="{y0 + 18}" font-weight="bold">{escape(title)}</text>']
    for tick in _ticks(low, high):
        _, y = at(0.0, tick)
        out.append(f'<line x1="{LEFT}" x2="{WIDTH - 20}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>')
        out.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{tick:,.6g}</text>')
    for tick in _ticks(0.0, right):
        x, _ = at(tick, low)
        out.append(f'<text x="{x:.1f}" y="{below + 18}" text-anchor="middle">{tick:,.6g}</text>')
    every = -(-len(pairs) // POINTS)
    shown = [*pairs[::every], pairs[-1]]
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in (at(*pair) for pair in shown))
    out.append(f'<polyline points="{points}" fill="none" stroke="#1f6feb" stroke-width="1.5"/>')
    out.append(f'<text x="{WIDTH - 20}" y="{below + 34}" text-anchor="end">chosen features</text>')
    return out


def rounds_svg(rounds: Sequence[Round]) -> str:
    """Logarithm of the loss, and the number of different features, against chosen features: an SVG document."""
    if not rounds:
        return '<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1"></svg>\n'
    numbers = [float(i) for i in range(1, len(rounds) + 1)]
    seen: set[tuple[str, str, str]] = set()
    different: list[float] = []
    for found in rounds:
        seen.add((found.kind, found.attribute, found.label))
        different.append(float(len(seen)))
    body = _panel(0, "log of the training loss", numbers, [found.log_loss for found in rounds])
    body += _panel(HEIGHT, "different features", numbers, different)
    size = f'viewBox="0 0 {WIDTH} {2 * HEIGHT}" font-family="sans-serif" font-size="12"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size}>'
    return "\n".join([head, '<rect width="100%" height="100%" fill="white"/>', *body, "</svg>"]) + "\n"
