"""Charts as SVG text. The style sheet of the page colours their classes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape

#: Shapes of marks, in the order of assignment.
SHAPES = ("circle", "square", "triangle", "diamond", "down")


@dataclass(frozen=True)
class PlotPoint:
    """A mark with its position, learner and tooltip."""

    x: float
    y: float
    series: str
    colour: str
    title: str
    shape: str = "circle"  # one of SHAPES, or "none" for a label only
    label: str = ""
    hollow: bool = False


@dataclass(frozen=True)
class Line:
    """A curve through points."""

    points: Sequence[tuple[float, float]]
    series: str
    colour: str
    title: str
    dashed: bool = False


def mark(shape: str, x: float, y: float, size: float = 4.5) -> str:
    """Return the outline of a mark as an SVG element without its closing bracket."""
    if shape == "square":
        s = size * 0.9
        return f'<rect x="{x - s:.1f}" y="{y - s:.1f}" width="{2 * s:.1f}" height="{2 * s:.1f}"'
    if shape == "circle":
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{size:.1f}"'
    r = size * 1.25
    outlines = {
        "triangle": [(0, -r), (r, r * 0.8), (-r, r * 0.8)],
        "diamond": [(0, -r * 1.1), (r * 1.1, 0), (0, r * 1.1), (-r * 1.1, 0)],
        "down": [(0, r), (r, -r * 0.8), (-r, -r * 0.8)],
    }
    corners = " ".join(f"{x + dx:.1f},{y + dy:.1f}" for dx, dy in outlines[shape])
    return f'<polygon points="{corners}"'


def draw_mark(shape: str, x: float, y: float, colour: str, *, hollow: bool = False, size: float = 4.5) -> str:
    """Return a mark, filled or hollow."""
    if shape == "none":
        return ""
    style = f'fill="none" stroke="{colour}" stroke-width="1.6"' if hollow else f'fill="{colour}"'
    return f"{mark(shape, x, y, size)} {style} class='mark'/>"


def ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Return round numbers inside an interval, in steps of 1, 2 or 5 times a power of ten.

    >>> ticks(0, 10)
    [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]
    """
    span = high - low
    if span <= 0 or not math.isfinite(span):
        return [low]
    raw = span / max(most - 1, 1)
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [round(i * step, 10) + 0.0 for i in range(first, math.floor(high / step + 1e-9) + 1)]


def log_ticks(low: float, high: float) -> list[float]:
    """Return 1, 2 and 5 times powers of ten inside an interval, thinned if there are many."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for factors in ((1, 2, 5), (1, 3), (1,)):
        found = [m * 10.0**p for p in powers for m in factors if low * 0.999 <= m * 10.0**p <= high * 1.001]
        if len(found) <= 7:
            break
    return found


def short(value: float) -> str:
    """Format a number for an axis.

    >>> short(0.5), short(20000.0), short(3.0), short(1.5e6)
    ('0.5', '20k', '3', '1.5M')
    """
    for size, sign in ((1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:g}{sign}"
    return f"{value:g}".replace("e-0", "e-")


#: Style of a drawing outside a page.
ALONE = (
    "text{font:12px sans-serif;fill:#333}text.middle{text-anchor:middle}text.end{text-anchor:end}"
    ".grid{stroke:#e6e6e6}.axis{stroke:#777}.line{fill:none;stroke-width:2;stroke-linejoin:round}"
    ".frontier{fill:none;stroke:#999}"
)


@dataclass
class Axis:
    """An axis with its interval in the data and on the page."""

    name: str
    low: float
    high: float
    begin: float
    end: float
    log: bool = False

    def at(self, value: float) -> float:
        """Return the position of a value on the page."""
        low, high = self.low, self.high
        if self.log:
            low, high, value = math.log(low), math.log(high), math.log(max(value, 1e-300))
        share = (value - low) / (high - low) if high > low else 0.5
        return self.begin + share * (self.end - self.begin)

    def ticks(self) -> list[float]:
        """Return the values of the ticks."""
        return log_ticks(self.low, self.high) if self.log else ticks(self.low, self.high)


def spread(values: Sequence[float], log: bool = False, pad: float = 0.06) -> tuple[float, float]:
    """Return an interval slightly wider than the values."""
    low, high = min(values), max(values)
    if log:
        low = max(low, 1e-9)
        factor = max((max(high, low) / low) ** pad, 1.25)
        return low / factor, max(high, low) * factor
    margin = (high - low) * pad or max(abs(high) * pad, 0.5)
    return low - margin, high + margin


@dataclass
class Chart:
    """A chart with two axes."""

    title: str
    x: str
    y: str
    points: list[PlotPoint] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)
    log_x: bool = False
    log_y: bool = False
    width: int = 560
    height: int = 340
    frontier: Sequence[tuple[float, float]] = ()  # Pareto front, drawn behind the marks
    y_range: tuple[float, float] | None = None

    def curve(
        self,
        points: Sequence[tuple[float, float]],
        name: str,
        colour: str,
        title: str,
        *,
        at: int = -1,
        dashed: bool = False,
    ) -> None:
        """Add a line with a mark and its name at one of its points."""
        self.lines.append(Line(points, name, colour, name, dashed))
        self.points.append(PlotPoint(*points[at], name, colour, title, label=name))

    def svg(self) -> str:
        """Return the drawing."""
        xs = [p.x for p in self.points] + [x for line in self.lines for x, _ in line.points]
        ys = [p.y for p in self.points] + [y for line in self.lines for _, y in line.points]
        if not xs:
            return ""
        top, bottom = 12, 42
        low, high = self.y_range or spread(ys, self.log_y)
        up = Axis(self.y, low, high, self.height - bottom, top, self.log_y)
        left = 32 + 6.5 * max(len(short(value)) for value in up.ticks())
        ends = [len(p.label) for p in self.points if self.lines]  # curves are named at their right ends
        right = 14 + 6.2 * max(ends, default=0)
        across = Axis(self.x, *spread(xs, self.log_x), left, self.width - right, self.log_x)

        def corners(points: Sequence[tuple[float, float]]) -> str:
            return " ".join(f"{across.at(x):.1f},{up.at(y):.1f}" for x, y in points)

        parts = [
            f'<svg viewBox="0 0 {self.width} {self.height}" role="img" aria-label="{escape(self.title)}" class="chart">'
        ]
        parts += self._grid(across, up)
        if len(self.frontier) > 1:
            parts.append(f'<polyline points="{corners(self.frontier)}" class="frontier"/>')
        for line in self.lines:
            dash = ' stroke-dasharray="5 4"' if line.dashed else ""
            parts.append(
                f'<g data-series="{escape(line.series)}">'
                f'<polyline points="{corners(line.points)}" class="line" stroke="{line.colour}"{dash}>'
                f"<title>{escape(line.title)}</title></polyline></g>"
            )
        parts += self._marks(across, up)
        return "".join(parts) + "</svg>"

    def document(self, *below: Chart) -> str:
        """Return the drawing, and others below it, as a standalone file with its own style."""
        drawings, height = "", 0
        for chart in (self, *below):
            place = f'<svg y="{height}" width="{chart.width}" height="{chart.height}" '
            drawings += chart.svg().replace("<svg ", place, 1)
            height += chart.height
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{self.width}" height="{height}" '
            f'viewBox="0 0 {self.width} {height}">'
            f'<style>{ALONE}</style><rect width="100%" height="100%" fill="white"/>{drawings}</svg>\n'
        )

    def _grid(self, across: Axis, up: Axis) -> list[str]:
        parts = []
        for value in up.ticks():
            y = up.at(value)
            parts.append(
                f'<line x1="{across.begin}" x2="{across.end}" y1="{y:.1f}" y2="{y:.1f}" class="grid"/>'
            )
            parts.append(
                f'<text x="{across.begin - 8}" y="{y + 3.5:.1f}" class="tick end">{short(value)}</text>'
            )
        for value in across.ticks():
            x = across.at(value)
            parts.append(
                f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{up.begin}" y2="{up.begin + 4}" class="axis"/>'
            )
            parts.append(f'<text x="{x:.1f}" y="{up.begin + 17}" class="tick middle">{short(value)}</text>')
        parts.append(
            f'<line x1="{across.begin}" x2="{across.end}" y1="{up.begin}" y2="{up.begin}" class="axis"/>'
            f'<text x="{(across.begin + across.end) / 2:.0f}" y="{self.height - 6}" class="name middle">'
            f"{escape(self.x)}</text>"
            f'<text transform="translate(13 {(up.begin + up.end) / 2:.0f}) rotate(-90)" class="name middle">'
            f"{escape(self.y)}</text>"
        )
        return parts

    def _marks(self, across: Axis, up: Axis) -> list[str]:
        parts = []
        for p in self.points:
            x, y = across.at(p.x), up.at(p.y)
            parts.append(
                f'<g data-series="{escape(p.series)}">{draw_mark(p.shape, x, y, p.colour, hollow=p.hollow)}'
                f"<title>{escape(p.title)}</title></g>"
            )
        named = sorted((p for p in self.points if p.label), key=lambda p: up.at(p.y))
        if self.lines:
            below: dict[int, float] = {}
            for p in named:
                x = across.at(p.x)
                y = max(up.at(p.y) + 3.5, below.get(round(x / 40), -math.inf) + 12)
                below[round(x / 40)] = y
                text = f'<text x="{x + 8:.1f}" y="{y:.1f}" class="label">{escape(p.label)}</text>'
                parts.append(f'<g data-series="{escape(p.series)}">{text}</g>')
            return parts
        taken = [(across.at(p.x) - 6, up.at(p.y) + 3.5, 12.0) for p in self.points]
        for p in named:
            x, y, width = across.at(p.x), up.at(p.y), 6.1 * len(p.label)
            places = [(x + 8, y + d) for d in (3.5, -5, 13)] + [(x - 8 - width, y + d) for d in (3.5, -5, 13)]
            places += [(x - width / 2, y + d) for d in (-9, 18, -20, 29)]
            spot = next(
                (
                    (u, v)
                    for u, v in places
                    if across.begin <= u and u + width <= self.width and not _overlaps(taken, u, v, width)
                ),
                None,
            )
            if spot is not None:
                taken.append((*spot, width))
                parts.append(
                    f'<text x="{spot[0]:.1f}" y="{spot[1]:.1f}" class="label">{escape(p.label)}</text>'
                )
        return parts


def _overlaps(taken: Sequence[tuple[float, float, float]], x: float, y: float, width: float) -> bool:
    return any(x < ox + ow and ox < x + width and abs(y - oy) < 11 for ox, oy, ow in taken)


@dataclass(frozen=True)
class Strip:
    """A line of a dot plot: a learner and its marks (value, shape, hollow, title)."""

    name: str
    colour: str
    dots: Sequence[tuple[float, str, bool, str]]


def dot_plot(strips: Sequence[Strip], axis: str, title: str) -> str:
    """Return a dot plot with a line per learner, in versions for wide and for narrow pages."""
    wide, slim = (strip_chart(strips, axis, title, width) for width in (1120, 360))
    return f'<div class="roomy">{wide}</div><div class="slim">{slim}</div>' if wide else ""


def strip_chart(strips: Sequence[Strip], axis: str, title: str, width: int) -> str:
    """Return a dot plot of this width, with names left of the dots, or above them on narrow pages."""
    values = [value for strip in strips for value, *_ in strip.dots]
    if not values:
        return ""
    above = width < 700
    left, right, row, top = (14, 14, 44, 4) if above else (190, 24, 24, 8)
    height = top + row * len(strips) + 44
    across = Axis(axis, *spread(values, pad=0.04), left, width - right)
    base = top + row * len(strips)
    parts = [
        f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="{escape(title)}" class="chart wide strips">'
    ]
    for value in ticks(across.low, across.high, 5 if above else 9):
        x = across.at(value)
        parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{top}" y2="{base}" class="grid"/>')
        parts.append(f'<text x="{x:.1f}" y="{base + 17}" class="tick middle">{short(value)}</text>')
    for i, strip in enumerate(strips):
        y = top + row * (i + (0.75 if above else 0.5))
        name = (
            f'x="{left}" y="{y - 12:.1f}" class="row"'
            if above
            else f'x="{left - 12}" y="{y + 4:.1f}" class="row end"'
        )
        inner = [across.at(value) for value, _, hollow, _ in strip.dots if not hollow]
        parts.append(f'<g data-series="{escape(strip.name)}">')
        parts.append(f"<text {name}>{escape(strip.name)}</text>")
        parts.append(f'<line x1="{left}" x2="{width - right}" y1="{y:.1f}" y2="{y:.1f}" class="track"/>')
        if len(inner) > 1:
            parts.append(
                f'<line x1="{min(inner):.1f}" x2="{max(inner):.1f}" y1="{y:.1f}" y2="{y:.1f}" '
                f'stroke="{strip.colour}" class="range"/>'
            )
        for value, shape, hollow, text in strip.dots:
            parts.append(
                f"<g>{draw_mark(shape, across.at(value), y, strip.colour, hollow=hollow, size=5.2)}"
                f"<title>{escape(text)}</title></g>"
            )
        parts.append("</g>")
    parts.append(
        f'<line x1="{left}" x2="{width - right}" y1="{base}" y2="{base}" class="axis"/>'
        f'<text x="{(left + width - right) / 2:.0f}" y="{height - 6}" class="name middle">{escape(axis)}</text></svg>'
    )
    return "".join(parts)
