"""A comparison as a self-contained HTML page with styles, script and drawings."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import tagwise._core as _core
from tagwise.apps.compare.report import figures
from tagwise.apps.compare.report.figures import Palette
from tagwise.base.writing import write_text

if TYPE_CHECKING:
    from tagwise.apps.compare.table import Comparison

#: Maximum number of labels in a matrix, and of confusions in the page.
MOST_LABELS, MOST_CONFUSIONS = 24, 400
_WORDS = ("corpus", "learner", "loss", "features", "chosen")


def asset(name: str) -> str:
    """Return the text of a file in this folder."""
    return files("tagwise.apps.compare.report").joinpath("assets").joinpath(name).read_text(encoding="utf-8")


def number(text: str) -> float | None:
    """Return the number at the start of a cell, for sorting.

    >>> number("1,234"), number("78.10 ±0.20"), number("S1")
    (1234.0, 78.1, None)
    """
    match = re.match(r"-?\d[\d,]*\.?\d*", text)
    return float(match[0].replace(",", "")) if match and not text[0].isalpha() else None


def table(
    head: Sequence[str], body: Sequence[Sequence[str]], best: Mapping[int, set[str]] | None = None
) -> str:
    """Return a table with sortable columns. The cells in `best` are highlighted."""
    words = [name in _WORDS for name in head]
    cells = "".join(
        f'<th scope="col" class="{"word" if word else "figure"}"><button type="button">{escape(name)}</button></th>'
        for name, word in zip(head, words)
    )
    lines = []
    for row in body:
        parts = []
        for i, (text, word) in enumerate(zip(row, words)):
            value = None if word else number(text)
            order = "" if value is None else f' data-v="{value:g}"'
            top = " top" if best and text and text in best.get(i, ()) else ""
            figure = "paper " if head[i].endswith(", paper") else ""
            parts.append(
                f'<td class="{figure}{"word" if word else "figure"}{top}"{order}>{escape(text)}</td>'
            )
        learner = row[head.index("learner")] if "learner" in head else ""
        lines.append(f'<tr data-series="{escape(learner)}">{"".join(parts)}</tr>')
    return (
        f'<div class="scroll"><table class="sortable"><thead><tr>{cells}</tr></thead>'
        f"<tbody>{''.join(lines)}</tbody></table></div>"
    )


def corpus_table(comparison: Comparison, corpus: str) -> str:
    """Return the table of one corpus, with the best figure of each measure highlighted."""
    head, body = comparison.sheet()
    body = [row for row in body if row[0] == corpus]
    kept = [i for i in range(1, len(head)) if any(row[i] for row in body)]
    head, body = [head[i] for i in kept], [[row[i] for i in kept] for row in body]
    best: dict[int, set[str]] = {}
    for i, name in enumerate(head):
        if name in ("accuracy", "F1", "sequences", "dev F1", "dev accuracy", "precision", "recall"):
            values = [(value, row[i]) for row in body if (value := number(row[i])) is not None]
            top = max(value for value, _ in values)
            best[i] = {text for value, text in values if value == top}
    return table(head, body, best)


def card(title: str, value: str, text: str) -> str:
    """Return a card with one key figure."""
    return f'<div class="card"><b>{escape(value)}</b><span>{escape(title)}</span><small>{escape(text)}</small></div>'


def cards(entries: Sequence[Mapping[str, Any]]) -> str:
    """Return cards of the best learner, and of the fastest and the sparsest within one point of it."""
    key, name = figures.score_name(entries)
    scored = [e for e in entries if e[key] is not None]
    if not scored:
        return ""
    best = max(scored, key=lambda e: e[key])
    near = [e for e in scored if e[key] >= best[key] - 0.01]

    def words(e: Mapping[str, Any]) -> str:
        return f"{e['learner']}, {e['features']}"

    fast = min(near, key=lambda e: e["seconds"])
    sparse = min(near, key=lambda e: e["nonzero"])
    return (
        '<div class="cards">'
        + card(f"best {name}", f"{100 * best[key]:.2f}", words(best))
        + card("fastest within one point of it", f"{fast['seconds']:.1f} s", words(fast))
        + card(
            "sparsest within one point of it",
            f"{sparse['nonzero']:,.0f}",
            f"non-zero features: {words(sparse)}",
        )
        + card(
            "cells",
            f"{len(entries):,}",
            f"{sum(e['seconds'] * e['seeds'] for e in entries):,.0f} s of training",
        )
        + "</div>"
    )


def details(comparison: Comparison) -> list[dict[str, Any]]:
    """Return the data for the script of the page: confusion, transitions, types, features and errors per model."""
    out = []
    for row, detail in zip(comparison.rows, comparison.details):
        if detail is None or row.seed != 0:
            continue
        confusion = detail["confusion"]
        weight: dict[str, int] = {}
        for gold, predicted, n in confusion:
            weight[gold] = weight.get(gold, 0) + n
            if gold != predicted:
                weight[predicted] = weight.get(predicted, 0) + n
        shown = sorted(weight, key=lambda label: (-weight[label], label))[:MOST_LABELS]
        kept = set(shown)
        labels, transitions = list(detail["labels"]), detail.get("transitions")
        order = [labels.index(label) for label in shown if label in labels]
        out.append(
            {
                "corpus": row.corpus,
                "learner": row.learner,
                "features": row.features,
                "sentences": row.sentences,
                "score": row.score,
                "chunked": row.f1 is not None,
                "labels": shown,
                "all": len(weight),
                "confusion": [c for c in confusion if c[0] in kept and c[1] in kept][:MOST_CONFUSIONS],
                "types": detail["per_type"],
                "strongest": {
                    label: [[name, round(float(w), 3)] for name, w in found]
                    for label, found in detail.get("strongest", {}).items()
                    if label in kept
                },
                "edge_labels": [labels[i] for i in order],
                "edges": None
                if transitions is None
                else [[_round(transitions[i][j]) for j in order] for i in order],
                "errors": detail["errors"],
            }
        )
    return out


def _round(value: float | None) -> float | None:
    return None if value is None else round(value, 2)


def embed(value: Any) -> str:
    """Return JSON that is safe inside a script element."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def section(
    comparison: Comparison, corpus: str, palette: Palette, summary: Sequence[Mapping[str, Any]]
) -> str:
    """Return the section of one corpus."""
    entries = [e for e in summary if e["corpus"] == corpus]
    published = any(key.endswith("_published") for e in entries for key in e)
    drawings = "".join(
        f"<figure><figcaption>{escape(title)}</figcaption>{drawing}{f'<p>{escape(text)}</p>' if text else ''}</figure>"
        for title, drawing, text in figures.charts(comparison, corpus, palette)
    )
    name = figures.score_name(entries)[1].capitalize()
    return (
        f'<section id="{anchor(corpus)}"><h2>{escape(corpus)}</h2>{cards(entries)}'
        f'<figure class="wide"><figcaption>{escape(name)} of every learner</figcaption>'
        f"{figures.at_a_glance(entries, palette)}{palette.legend(published)}</figure>"
        f"<h3>Table</h3>{corpus_table(comparison, corpus)}"
        f'<h3>Curves</h3><div class="grid2">{drawings}</div></section>'
    )


def anchor(text: str) -> str:
    """Return a text as an identifier."""
    return "c-" + re.sub(r"[^\w-]+", "-", text)


def page(comparison: Comparison) -> str:
    """Return the page."""
    summary = comparison.summary()
    palette = Palette(summary)
    corpora = list(dict.fromkeys(e["corpus"] for e in summary))
    sections = [section(comparison, corpus, palette, summary) for corpus in corpora]
    found = details(comparison)
    links = [f'<a href="#{anchor(corpus)}">{escape(corpus)}</a>' for corpus in corpora]
    if found:
        links.append('<a href="#model">one model</a>')
        sections.append(MODEL)
    if not summary:
        sections.append(
            '<section><figure class="wide narrow"><figcaption>Losses of one decision</figcaption>'
            f"{figures.losses()}</figure></section>"
        )
    sources = sorted({figure.source for figure in comparison.published if figure.source})
    if sources:
        items = "".join(f"<li>{escape(source)}</li>" for source in sources)
        sections.append(f"<section><h2>Published figures</h2><ul>{items}</ul></section>")
    title = escape(comparison.title or "Comparison")
    notes = "".join(f"<p>{escape(text)}</p>" for text in (comparison.note, comparison.caption) if text)
    if comparison.against:
        notes += (
            f"<p>p: paired approximate randomisation over test sentences against {escape(comparison.against)} with the "
            "same features.</p>"
        )
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<style>{asset('page.css')}</style></head><body>"
        f'<header><div class="bar"><strong>tagwise</strong><nav>{"".join(links)}</nav>'
        '<button type="button" id="theme" title="light or dark" aria-label="light or dark">◐</button></div></header>'
        f'<main><h1>{title}</h1><div class="note">{notes}</div>{"".join(sections)}</main>'
        f"<footer>tagwise {escape(_core.__version__)}</footer>"
        f'<script type="application/json" id="data">{embed(found)}</script>'
        f"<script>{asset('page.js')}</script></body></html>\n"
    )


MODEL = (
    '<section id="model"><h2>One model</h2><p class="pick"><label>model <select id="pick"></select></label></p>'
    '<div class="grid2"><figure><figcaption>Confusion: gold down, predicted across</figcaption>'
    '<div id="confusion"></div></figure><figure><figcaption>Transitions: from down, to across</figcaption>'
    '<div id="edges"></div></figure></div>'
    '<div class="grid2"><div><h3 id="types-head">By type</h3><div id="types"></div></div>'
    '<div><h3>Strongest features</h3><p class="pick"><label>label <select id="label"></select></label></p>'
    '<div id="strongest"></div></div></div>'
    '<h3>Errors in context</h3><div id="errors"></div></section>'
)


def write(comparison: Comparison, path: str | os.PathLike[str]) -> None:
    """Write a comparison as a self-contained HTML page."""
    write_text(path, page(comparison))
