"""Line plots as SVG, for curves of benchmarks: `Result.draw` stores the points, `benchmarks.page` draws them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

Points = Sequence[tuple[float, float]]

COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#8c564b")
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 720, 440, 60, 190, 40, 50


def ticks(low: float, high: float) -> list[float]:
    """Return about six round numbers from low to high."""
    raw = max(high - low, 1e-9) / 5
    unit = 10.0 ** math.floor(math.log10(raw))
    step = next(unit * m for m in (1, 2, 5, 10) if unit * m >= raw)
    first = math.ceil(low / step)
    return [n * step for n in range(first, math.floor(high / step + 1e-9) + 1)]


def svg(title: str, x_name: str, y_name: str, curves: Mapping[str, Points]) -> str:
    """Return one plot: each curve with a mark at every point and its name at the right."""
    xs = [x for points in curves.values() for x, _ in points]
    ys = [y for points in curves.values() for _, y in points]
    pad = 0.05 * (max(ys) - min(ys) or 1.0)
    x_low, x_high, y_low, y_high = min(xs), max(xs), min(ys) - pad, max(ys) + pad

    def at(x: float, y: float) -> tuple[float, float]:
        across = (x - x_low) / (x_high - x_low or 1.0) * (WIDTH - LEFT - RIGHT)
        up = (y - y_low) / (y_high - y_low) * (HEIGHT - TOP - BOTTOM)
        return LEFT + across, HEIGHT - BOTTOM - up

    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
        'font-size="12">',
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="{LEFT}" y="22" font-size="15">{escape(title)}</text>',
        f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 12}" text-anchor="middle">{escape(x_name)}</text>',
        f'<text transform="translate(16 {(TOP + HEIGHT - BOTTOM) / 2}) rotate(-90)" text-anchor="middle">'
        f"{escape(y_name)}</text>",
    ]
    for x in ticks(x_low, x_high):
        a, _ = at(x, y_low)
        out.append(f'<line x1="{a:.1f}" x2="{a:.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}" stroke="#eee"/>')
        out.append(f'<text x="{a:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{x:g}</text>')
    for y in ticks(y_low, y_high):
        _, b = at(x_low, y)
        out.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{b:.1f}" y2="{b:.1f}" stroke="#eee"/>')
        out.append(f'<text x="{LEFT - 6}" y="{b + 4:.1f}" text-anchor="end">{y:g}</text>')
    for i, (name, points) in enumerate(curves.items()):
        colour = COLOURS[i % len(COLOURS)]
        places = [at(x, y) for x, y in points]
        line = " ".join(f"{a:.1f},{b:.1f}" for a, b in places)
        out.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        out += [f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3" fill="{colour}"/>' for a, b in places]
        label = TOP + 16 + 20 * i
        out.append(f'<rect x="{WIDTH - RIGHT + 14}" y="{label - 9}" width="10" height="10" fill="{colour}"/>')
        out.append(f'<text x="{WIDTH - RIGHT + 30}" y="{label}">{escape(name)}</text>')
    return "\n".join([*out, "</svg>"]) + "\n"
