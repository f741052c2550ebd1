"""Drawings of docs/concepts/engine.md as SVG: a lattice with its sums, the fold, sixteen sentences in lanes.

    python -m benchmarks.drawings             # write them
    python -m benchmarks.drawings --check     # check that they are up to date

The numbers are computed. The lattice has three labels and four tokens, and the sizes of its circles are the marginals
from `tw.lattice`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from html import escape
from pathlib import Path

import numpy as np

import tagwise as tw

FOLDER = Path(__file__).parents[1] / "docs" / "pictures"
INK, SOFT, BLUE, ORANGE, GREEN = "#222", "#999", "#4c72b0", "#dd8452", "#55a868"


class Sheet:
    """SVG canvas."""

    def __init__(self, width: int, height: int, title: str) -> None:
        self.width, self.height, self.title = width, height, title
        self.parts: list[str] = []

    def text(
        self, x: float, y: float, text: str, *, size: int = 13, anchor: str = "middle", colour: str = INK
    ) -> None:
        self.parts.append(
            f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" fill="{colour}">'
            f"{escape(text)}</text>"
        )

    def line(
        self, x1: float, y1: float, x2: float, y2: float, *, colour: str = SOFT, width: float = 1.0
    ) -> None:
        self.parts.append(
            f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" '
            f'stroke="{colour}" stroke-width="{width:.2f}"/>'
        )

    def circle(self, x: float, y: float, r: float, *, fill: str = "#fff", colour: str = INK) -> None:
        self.parts.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{r:.1f}" fill="{fill}" stroke="{colour}" stroke-width="1.2"/>'
        )

    def box(self, x: float, y: float, w: float, h: float, *, fill: str = "#fff", colour: str = SOFT) -> None:
        self.parts.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{w:.1f}" height="{h:.1f}" rx="2" fill="{fill}" stroke="{colour}"/>'
        )

    def document(self) -> str:
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" role="img" '
            f'font-family="sans-serif"><title>{escape(self.title)}</title>\n'
            f'<rect width="{self.width}" height="{self.height}" fill="#fff"/>\n'
            + "\n".join(self.parts)
            + "\n</svg>\n"
        )


def lattice() -> str:
    """Draw marginals as circles, pair marginals as lines, and the best path in orange."""
    words, labels = ["Peter", "flew", "to", "London"], ["PER", "O", "LOC"]
    nodes = np.array([[2.0, 0.5, 0.8], [-1.0, 2.0, -1.0], [-1.0, 2.5, 0.0], [0.6, 0.2, 1.6]])
    edges = np.array([[0.5, 0.6, -1.0], [0.2, 0.6, 0.8], [-0.8, 0.5, 0.2]])
    scores = tw.lattice.Lattice(nodes, edges)
    p, pairs, best = scores.marginals(), scores.pair_marginals(), scores.viterbi()[1]
    sheet = Sheet(640, 300, "A lattice: every path through it is a labelling")
    x, y = [110 + 150 * t for t in range(4)], [80, 155, 230]
    for t in range(3):
        for i in range(3):
            for j in range(3):
                share = float(pairs[t + 1, i, j])
                on = best[t] == i and best[t + 1] == j
                sheet.line(x[t], y[i], x[t + 1], y[j], colour=ORANGE if on else SOFT, width=0.4 + 7 * share)
    for t, word in enumerate(words):
        sheet.text(x[t], 35, word, size=15)
        for i, label in enumerate(labels):
            sheet.circle(
                x[t], y[i], 7 + 20 * float(p[t, i]) ** 0.5, fill="#fde3d3" if best[t] == i else "#eef2f8"
            )
            sheet.text(x[t], y[i] + 4, f"{float(p[t, i]):.2f}", size=11)
            if t == 0:
                sheet.text(40, y[i] + 4, label, anchor="middle")
    sheet.text(
        320,
        285,
        "circles: P(label at this token), lines: P(both labels), orange: the best path",
        size=12,
        colour="#555",
    )
    return sheet.document()


def fold() -> str:
    """Draw the rows of three tokens before and after the fold."""
    sheet = Sheet(640, 250, "The fold: a row that always occurs with another is added to it once")
    before = [
        ["word=London", "suffix=don", "suffix=on", "shape=Aa"],
        ["word=Boston", "suffix=ton", "suffix=on", "shape=Aa"],
        ["word=London", "suffix=don", "suffix=on", "shape=Aa"],
    ]
    after = [["word=London'"], ["word=Boston'"], ["word=London'"]]
    sheet.text(165, 28, "each token adds four rows", size=14)
    sheet.text(520, 28, "... or one", size=14)
    for t, (rows, fewer) in enumerate(zip(before, after)):
        for i, row in enumerate(rows):
            sheet.box(10 + 80 * i, 45 + 38 * t, 76, 26, fill="#eef2f8")
            sheet.text(48 + 80 * i, 62 + 38 * t, row, size=10)
        sheet.box(462, 45 + 38 * t, 116, 26, fill="#fde3d3")
        sheet.text(520, 62 + 38 * t, fewer[0], size=12)
        sheet.line(340, 58 + 38 * t, 450, 58 + 38 * t, colour=SOFT)
        sheet.text(446, 62 + 38 * t, "▸", size=12, colour=SOFT)
    sheet.text(
        320,
        190,
        "once per evaluation:  row(word=London') = row(word=London) + row(suffix=don) + row(suffix=on) + row(shape=Aa)",
        size=11,
    )
    sheet.text(
        320,
        214,
        "and back:  gradient(suffix=on) = gradient(word=London') + gradient(word=Boston') + ...",
        size=11,
    )
    sheet.text(320, 238, "equal sums with fewer additions", size=12, colour="#555")
    return sheet.document()


def lanes() -> str:
    """Draw sixteen sentences of similar length, one per lane."""
    sheet = Sheet(640, 330, "Sixteen sentences in the lanes of a vector register")
    lengths = [14, 14, 13, 13, 13, 12, 12, 12, 11, 11, 11, 10, 10, 10, 9, 9]
    for lane, length in enumerate(lengths):
        for t in range(length):
            fill = "#fde3d3" if t == 5 else "#eef2f8"
            sheet.box(110 + 32 * t, 40 + 15 * lane, 28, 12, fill=fill, colour=ORANGE if t == 5 else "#c9d3e3")
        sheet.text(100, 50 + 15 * lane, f"sentence {lane + 1}", size=9, anchor="end", colour="#555")
    sheet.text(110 + 32 * 5 + 14, 30, "position t: one vector", size=12, colour=ORANGE)
    sheet.text(320, 305, "alpha_t(y) of sixteen sentences at once, with finished lanes masked", size=12)
    sheet.text(
        320, 323, "batches of similar length, longest first: few masked positions", size=12, colour="#555"
    )
    return sheet.document()


DRAWINGS = {"engine-lattice": lattice, "engine-fold": fold, "engine-lanes": lanes}


def main(arguments: Sequence[str] | None = None) -> int:
    """Write or check the drawings."""
    check = "--check" in (sys.argv[1:] if arguments is None else arguments)
    other = []
    for name, draw in DRAWINGS.items():
        path, text = FOLDER / f"{name}.svg", draw()
        if not (path.exists() and path.read_text("utf-8") == text):
            other.append(str(path))
            if not check:
                path.write_text(text, "utf-8")
    print(*other, sep="\n")
    return int(check and bool(other))


if __name__ == "__main__":
    sys.exit(main())
