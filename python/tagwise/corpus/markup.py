"""Small pieces of HTML for notebooks: sentences, decisions, tables."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from tagwise.base.terminal import visible

#: Hues of kinds of spans, one after the other.
HUES = (210, 25, 140, 280, 340, 180, 55, 250, 95, 310)
TABLE = "border-collapse:collapse;margin:.3em 0;font-variant-numeric:tabular-nums"
CELL = "padding:.15em .6em;border-bottom:1px solid rgba(128,128,128,.25)"


def hue(name: str, names: Sequence[str]) -> int:
    """The hue of a name among the names there are."""
    return HUES[names.index(name) % len(HUES)]


def safe(text: str) -> str:
    """A text from outside in a page: no markup, and nothing that turns the direction of what stands around it."""
    return escape(visible(text))


def box(text: str, label: str, colour: int) -> str:
    """Text on a coloured ground with its label, in the page's own colour of text: for light and dark pages."""
    return (
        f'<span style="background:hsla({colour},75%,55%,.28);border-radius:.35em;padding:.1em .35em;margin:0 .1em;'
        f'-webkit-box-decoration-break:clone;box-decoration-break:clone">{safe(text)}&nbsp;'
        f'<small style="opacity:.75;font-weight:600;white-space:nowrap">{safe(label)}</small></span>'
    )


def table_html(head: Sequence[str], rows: Sequence[Sequence[Any]], left: int = 1) -> str:
    """A plain table: the first `left` columns hold words, the others figures. Too wide, it alone scrolls."""

    def line(cells: Sequence[Any], tag: str) -> str:
        sides = ["left" if i < left else "right" for i in range(len(cells))]
        return "".join(
            f'<{tag} style="{CELL};text-align:{side}">{safe(str(cell))}</{tag}>'
            for cell, side in zip(cells, sides)
        )

    body = "".join(f"<tr>{line(cells, 'td')}</tr>" for cells in rows)
    table = f'<table style="{TABLE}"><thead><tr>{line(head, "th")}</tr></thead><tbody>{body}</tbody></table>'
    return f'<div style="overflow-x:auto">{table}</div>'


def sentence_html(tokens: Sequence[str], marked: Sequence[tuple[int, int, str]]) -> str:
    """A sentence with its labelled pieces, (begin, end, label), in colours; one colour a label."""
    names = sorted({label for _, _, label in marked})
    parts, at = [], 0
    for begin, end, label in sorted(marked):
        parts += [safe(token) for token in tokens[at:begin]]
        parts.append(box(" ".join(tokens[begin:end]), label, hue(label, names)))
        at = end
    parts += [safe(token) for token in tokens[at:]]
    return f'<div style="line-height:2;overflow-wrap:anywhere">{" ".join(parts)}</div>'


def page_html(title: str, parts: Sequence[str]) -> str:
    """Pieces of HTML as a page of its own, light or dark as its reader likes it."""
    return (
        f'<!doctype html>\n<html><head><meta charset="utf-8"><title>{safe(title)}</title>'
        '<meta name="viewport" content="width=device-width"><style>:root{color-scheme:light dark}'
        "body{font-family:sans-serif;max-width:60em;margin:2em auto;padding:0 1em}</style></head>"
        f"<body><h1>{safe(title)}</h1>\n" + "\n".join(parts) + "\n</body></html>\n"
    )


__all__ = ["box", "hue", "page_html", "safe", "sentence_html", "table_html"]
