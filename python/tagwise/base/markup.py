"""HTML fragments for notebooks: labels, sentences, tables, curves."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from tagwise.base.colours import SHARED
from tagwise.base.terminal import visible

TABLE = "border-collapse:collapse;margin:.3em 0;font-variant-numeric:tabular-nums"
CELL = "padding:.15em .6em;border-bottom:1px solid rgba(128,128,128,.25)"


def safe(text: str) -> str:
    """Escape untrusted text for HTML, including control characters that change the text direction."""
    return escape(visible(text))


def safe_lines(text: str) -> str:
    """Escape untrusted text for HTML and keep its line ends."""
    return escape(visible(text, keep="\n"))


def box(text: str, label: str) -> str:
    """Return text on the colour of its label. The text colour is inherited, for light and dark pages."""
    return (
        f'<span style="background:{SHARED.tint(label)};border-radius:.35em;padding:.1em .35em;margin:0 .1em;'
        f'-webkit-box-decoration-break:clone;box-decoration-break:clone">{safe(text)}&nbsp;'
        f'<small style="font-weight:600;white-space:nowrap">{safe(label)}</small></span>'
    )


class Markup(str):
    """Text that is HTML already, for cells of a table."""

    __slots__ = ()


def label_html(label: str, name: str | None = None) -> Markup:
    """Return a label on its colour. `name` is the type whose colour it has, such as PER for B-PER."""
    style = (
        f"background:{SHARED.tint(label if name is None else name)};border-radius:.35em;padding:.05em .35em"
    )
    return Markup(f'<span style="{style};white-space:nowrap">{safe(label)}</span>')


def line_html(text: str) -> str:
    """Return a line of code, such as the one-line representation of an object."""
    return f'<p style="overflow-wrap:anywhere;margin:.3em 0"><code>{safe(text)}</code></p>'


def object_html(thing: object, rows: Sequence[Sequence[Any]]) -> str:
    """Return the one-line representation of an object and a table of its properties."""
    return line_html(repr(thing)) + (table_html((), rows, left=len(rows[0])) if rows else "")


def table_html(head: Sequence[str], rows: Sequence[Sequence[Any]], left: int = 1) -> str:
    """Return a table whose first `left` columns are left-aligned and the others right-aligned.

    A wide table scrolls horizontally without the rest of the page.
    """

    def line(cells: Sequence[Any], tag: str) -> str:
        sides = ["left" if i < left else "right" for i in range(len(cells))]
        return "".join(
            f'<{tag} style="{CELL};text-align:{side}">{cell if isinstance(cell, Markup) else safe(str(cell))}</{tag}>'
            for cell, side in zip(cells, sides)
        )

    body = "".join(f"<tr>{line(cells, 'td')}</tr>" for cells in rows)
    top = f"<thead><tr>{line(head, 'th')}</tr></thead>" if head else ""
    table = f'<table style="{TABLE}">{top}<tbody>{body}</tbody></table>'
    return f'<div style="overflow-x:auto">{table}</div>'


def sentence_html(tokens: Sequence[str], marked: Sequence[tuple[int, int, str]]) -> str:
    """Return a sentence with highlighted pieces (begin, end, label), in one colour per label."""
    parts, at = [], 0
    for begin, end, label in sorted(marked):
        parts += [safe(token) for token in tokens[at:begin]]
        parts.append(box(" ".join(tokens[begin:end]), label))
        at = end
    parts += [safe(token) for token in tokens[at:]]
    return f'<div style="line-height:2;overflow-wrap:anywhere">{" ".join(parts)}</div>'


def text_html(text: str, marked: Sequence[tuple[int, int, str]]) -> str:
    """Return a text with highlighted pieces (begin, end, label), which count characters."""
    parts, at = [], 0
    for begin, end, label in sorted(marked):
        parts += [safe_lines(text[at:begin]), box(text[begin:end], label)]
        at = end
    parts.append(safe_lines(text[at:]))
    return f'<div style="line-height:2;overflow-wrap:anywhere;white-space:pre-wrap">{"".join(parts)}</div>'


def curve_html(points: Sequence[tuple[float, float]], x: str, y: str) -> str:
    """Return a curve in the unit square with its diagonal, drawn in the colour of the text."""
    line = " ".join(f"{30 + 150 * a:.1f},{160 - 150 * b:.1f}" for a, b in points)
    dots = "".join(
        f'<circle cx="{30 + 150 * a:.1f}" cy="{160 - 150 * b:.1f}" r="3"></circle>' for a, b in points
    )
    return (
        '<svg width="190" height="190" viewBox="0 0 190 190" role="img" fill="currentColor" stroke="none" '
        f'font-family="sans-serif" font-size="10" aria-label="{safe(y)} by {safe(x)}">'
        '<g fill="none" stroke="currentColor"><path d="M30 10V160H180" opacity=".5"></path>'
        '<path d="M30 160L180 10" opacity=".5" stroke-dasharray="3 3"></path>'
        f'<polyline points="{line}" stroke-width="1.5"></polyline></g>{dots}'
        f'<text x="105" y="182" text-anchor="middle">{safe(x)}</text>'
        f'<text transform="translate(14 85) rotate(-90)" text-anchor="middle">{safe(y)}</text>'
        '<text x="30" y="171" text-anchor="middle">0</text><text x="180" y="171" text-anchor="middle">1</text></svg>'
    )


def page_html(title: str, parts: Sequence[str]) -> str:
    """Return a self-contained page of HTML fragments that follows the reader's light or dark setting."""
    return (
        f'<!doctype html>\n<html><head><meta charset="utf-8"><title>{safe(title)}</title>'
        '<meta name="viewport" content="width=device-width"><style>:root{color-scheme:light dark}'
        "body{font-family:sans-serif;max-width:60em;margin:2em auto;padding:0 1em}</style></head>"
        f"<body><h1>{safe(title)}</h1>\n" + "\n".join(parts) + "\n</body></html>\n"
    )
