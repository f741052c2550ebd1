"""HTML fragments for notebooks: sentences, decisions, tables."""

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


def box(text: str, label: str) -> str:
    """Return text on the colour of its label. The text colour is inherited, for light and dark pages."""
    return (
        f'<span style="background:{SHARED.tint(label)};border-radius:.35em;padding:.1em .35em;margin:0 .1em;'
        f'-webkit-box-decoration-break:clone;box-decoration-break:clone">{safe(text)}&nbsp;'
        f'<small style="font-weight:600;white-space:nowrap">{safe(label)}</small></span>'
    )


def table_html(head: Sequence[str], rows: Sequence[Sequence[Any]], left: int = 1) -> str:
    """Return a table whose first `left` columns are left-aligned and the others right-aligned.

    A wide table scrolls horizontally without the rest of the page.
    """

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
    """Return a sentence with highlighted pieces (begin, end, label), in one colour per label."""
    parts, at = [], 0
    for begin, end, label in sorted(marked):
        parts += [safe(token) for token in tokens[at:begin]]
        parts.append(box(" ".join(tokens[begin:end]), label))
        at = end
    parts += [safe(token) for token in tokens[at:]]
    return f'<div style="line-height:2;overflow-wrap:anywhere">{" ".join(parts)}</div>'


def page_html(title: str, parts: Sequence[str]) -> str:
    """Return a self-contained page of HTML fragments that follows the reader's light or dark setting."""
    return (
        f'<!doctype html>\n<html><head><meta charset="utf-8"><title>{safe(title)}</title>'
        '<meta name="viewport" content="width=device-width"><style>:root{color-scheme:light dark}'
        "body{font-family:sans-serif;max-width:60em;margin:2em auto;padding:0 1em}</style></head>"
        f"<body><h1>{safe(title)}</h1>\n" + "\n".join(parts) + "\n</body></html>\n"
    )
