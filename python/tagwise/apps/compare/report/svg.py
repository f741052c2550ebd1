"""Charts as SVG text. The style sheet of the page colours their classes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from tagwise.base.markup import safe

#: Shapes of marks, in the order of assignment.
SHAPES = ("circle", "square", "triangle", "diamond", "down")


@dataclass(frozen=True)
class PlotPoint:
    """A mark with its position, learner and tooltip. `low` and `high` are the ends of the interval of y."""

    x: float
    y: float
    series: str
    colour: str
    title: str
    shape: str = "circle"  # one of SHAPES, or "none" for a label only
    label: str = ""
    hollow: bool = False
    low: float | None = None
    high: float | None = None


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
    """Return round numbers inside an interval. The step is a power of ten, or two or five of them.

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
    """Return powers of ten, also multiplied by 2 and 5, inside an interval, thinned if there are many."""
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


#: Width of a character of a name, distance of names from each other and from the marks, and the longest name.
CHARACTER, LINE, GAP, LONGEST = 6.1, 13.5, 20, 24
TOP, BOTTOM = 12, 42  # margins of a chart

#: Style of a drawing outside a page.
ALONE = (
    "text{font:12px sans-serif;fill:#333}text.middle{text-anchor:middle}text.end{text-anchor:end}"
    ".grid{stroke:#e6e6e6}.axis{stroke:#777}.line{fill:none;stroke-width:2;stroke-linejoin:round}"
    ".frontier{fill:none;stroke:#999}.leader{stroke:#ccc;fill:none}.whisker{stroke-width:1.4;opacity:.6}"
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
    x_ticks: Sequence[float] = ()  # positions of ticks, by default round numbers

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

    @property
    def tall(self) -> int:
        """Height of the drawing, which grows with the number of names."""
        return max(self.height, TOP + BOTTOM + int(LINE * sum(bool(p.label) for p in self.points)))

    def svg(self) -> str:
        """Return the drawing."""
        xs = [p.x for p in self.points] + [x for line in self.lines for x, _ in line.points]
        ys = [p.y for p in self.points] + [y for line in self.lines for _, y in line.points]
        if not xs:
            return ""
        ys += [end for p in self.points for end in (p.low, p.high) if end is not None]
        named, height = [p for p in self.points if p.label], self.tall
        low, high = self.y_range or spread(ys, self.log_y)
        up = Axis(self.y, low, high, height - BOTTOM, TOP, self.log_y)
        left = 32 + 6.5 * max(len(short(value)) for value in up.ticks())
        longest = max((len(clipped(p.label)) for p in named), default=0)
        right = 14 + (GAP + CHARACTER * longest if named else 0)  # names are in a column right of the marks
        across = Axis(self.x, *spread(xs, self.log_x), left, self.width - right, self.log_x)

        def corners(points: Sequence[tuple[float, float]]) -> str:
            return " ".join(f"{across.at(x):.1f},{up.at(y):.1f}" for x, y in points)

        parts = [
            f'<svg viewBox="0 0 {self.width} {height}" role="img" aria-label="{safe(self.title)}" class="chart">'
        ]
        parts += self._grid(across, up, height)
        if len(self.frontier) > 1:
            parts.append(f'<polyline points="{corners(self.frontier)}" class="frontier"/>')
        for line in self.lines:
            dash = ' stroke-dasharray="5 4"' if line.dashed else ""
            parts.append(
                f'<g data-series="{safe(line.series)}">'
                f'<polyline points="{corners(line.points)}" class="line" stroke="{line.colour}"{dash}>'
                f"<title>{safe(line.title)}</title></polyline></g>"
            )
        parts += self._marks(across, up)
        return "".join(parts) + "</svg>"

    def document(self, *below: Chart) -> str:
        """Return the drawing, and others below it, as a standalone file with its own style."""
        drawings, height = "", 0
        for chart in (self, *below):
            place = f'<svg y="{height}" width="{chart.width}" height="{chart.tall}" '
            drawings += chart.svg().replace("<svg ", place, 1)
            height += chart.tall
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{self.width}" height="{height}" '
            f'viewBox="0 0 {self.width} {height}">'
            f'<style>{ALONE}</style><rect width="100%" height="100%" fill="white"/>{drawings}</svg>\n'
        )

    def _grid(self, across: Axis, up: Axis, height: float) -> list[str]:
        parts = []
        for value in up.ticks():
            y = up.at(value)
            parts.append(
                f'<line x1="{across.begin}" x2="{across.end}" y1="{y:.1f}" y2="{y:.1f}" class="grid"/>'
            )
            parts.append(
                f'<text x="{across.begin - 8}" y="{y + 3.5:.1f}" class="tick end">{short(value)}</text>'
            )
        free = math.inf
        for value in sorted(self.x_ticks or across.ticks(), reverse=True):
            x, text = across.at(value), short(value)
            parts.append(
                f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{up.begin}" y2="{up.begin + 4}" class="axis"/>'
            )
            half = CHARACTER * len(text) / 2 + 3
            if x + half <= free:  # a number that would overlap its neighbour is left out
                parts.append(f'<text x="{x:.1f}" y="{up.begin + 17}" class="tick middle">{text}</text>')
                free = x - half
        parts.append(
            f'<line x1="{across.begin}" x2="{across.end}" y1="{up.begin}" y2="{up.begin}" class="axis"/>'
            f'<text x="{(across.begin + across.end) / 2:.0f}" y="{height - 6}" class="name middle">'
            f"{safe(self.x)}</text>"
            f'<text transform="translate(13 {(up.begin + up.end) / 2:.0f}) rotate(-90)" class="name middle">'
            f"{safe(self.y)}</text>"
        )
        return parts

    def _marks(self, across: Axis, up: Axis) -> list[str]:
        parts = []
        named = sorted((p for p in self.points if p.label), key=lambda p: up.at(p.y))
        heights = spaced([up.at(p.y) for p in named], up.end + LINE / 2, up.begin - LINE / 2)
        for p, y in zip(named, heights):
            x, begin = across.at(p.x), across.end + GAP
            parts.append(
                f'<g data-series="{safe(p.series)}">'
                f'<path d="M{x:.1f} {up.at(p.y):.1f}L{begin - 12:.1f} {y:.1f}H{begin - 7:.1f}" class="leader"/>'
                f"{draw_mark('circle', begin - 4, y, p.colour, size=3)}"
                f'<text x="{begin + 3:.1f}" y="{y + 3.5:.1f}" class="label">{safe(clipped(p.label))}'
                f"<title>{safe(p.label)}</title></text></g>"
            )
        for p in self.points:
            x, y = across.at(p.x), up.at(p.y)
            ends = (
                f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{up.at(p.low):.1f}" y2="{up.at(p.high):.1f}" '
                f'stroke="{p.colour}" class="whisker"/>'
                if p.low is not None and p.high is not None
                else ""
            )
            parts.append(
                f'<g data-series="{safe(p.series)}">{ends}'
                f"{draw_mark(p.shape, x, y, p.colour, hollow=p.hollow)}<title>{safe(p.title)}</title></g>"
            )
        return parts


def clipped(name: str) -> str:
    """Return a name, shortened if it is long.

    >>> clipped("crf"), clipped("a" * 30)
    ('crf', 'aaaaaaaaaaaaaaaaaaaaaaa…')
    """
    return name if len(name) <= LONGEST else name[: LONGEST - 1] + "…"


def spaced(places: Sequence[float], low: float, high: float) -> list[float]:
    """Move ascending positions apart to a distance of LINE, between `low` and `high` if there is room.

    >>> spaced([10.0, 11.0, 90.0], 0.0, 92.0)
    [10.0, 23.5, 90.0]
    """
    out: list[float] = []
    for place in places:
        out.append(max(place, low, out[-1] + LINE if out else low))
    limit = high
    for i in reversed(range(len(out))):
        out[i] = min(out[i], limit)
        limit = out[i] - LINE
    return out
