"""A comparison as a self-contained HTML page with styles, script and drawings."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from tagwise.apps.compare.report import figures, models, sentences
from tagwise.apps.compare.report.answer import Origin, answer, namer
from tagwise.apps.compare.report.figures import Entries, Palette
from tagwise.apps.compare.report.tables import cards, corpus_table
from tagwise.base.colours import PALETTE, tint
from tagwise.base.markup import safe
from tagwise.base.writing import write_text

if TYPE_CHECKING:
    from tagwise.apps.compare.table import Comparison


def asset(name: str) -> str:
    """Return the text of a file in this folder."""
    return files("tagwise.apps.compare.report").joinpath("assets").joinpath(name).read_text(encoding="utf-8")


def embed(value: Any) -> str:
    """Return JSON that is safe inside a script element."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def unbroken(text: str) -> str:
    """Return a text as HTML whose figures stay with their signs and units.

    >>> unbroken("crf: 84.91 % (p = 0.3)")
    'crf: 84.91&nbsp;% (p&nbsp;=&nbsp;0.3)'
    """
    return safe(text).replace(" %", "&nbsp;%").replace("p = ", "p&nbsp;=&nbsp;")


def drawn(found: Sequence[figures.Figure]) -> str:
    """Return charts with their titles and captions."""
    return "".join(
        f"<figure><figcaption>{safe(title)}</figcaption>{drawing}{f'<p>{safe(text)}</p>' if text else ''}</figure>"
        for title, drawing, text in found
    )


def section(
    comparison: Comparison, corpus: str, number: int, palette: Palette, summary: Sequence[Mapping[str, Any]]
) -> str:
    """Return the section of one corpus: figures, charts, and the models one by one and compared."""
    entries = Entries(comparison, corpus, summary)
    chosen = models.chosen_rows(comparison).get(corpus, [])
    rows = [comparison.rows[i] for i in chosen]
    links = {(row.learner, row.loss, row.features, row.sentences): f"m-{i}" for i, row in zip(chosen, rows)}
    charts, training = figures.charts(comparison, corpus, entries, palette)
    folded = (
        f'<details class="fold"><summary>Training curves</summary><div class="charts">{drawn(training)}</div></details>'
        if training
        else ""
    )
    parts = [
        f'<section id="c-{number}"><h2>{safe(corpus)}</h2>',
        cards(entries),
        f'<figure class="wide"><figcaption>{safe(entries.measure.capitalize())} of every learner</figcaption>'
        f"{figures.bars(entries, palette)}</figure>",
        f"<h3>All runs</h3>{corpus_table(comparison, corpus, entries, links)}",
        f'<h3>Curves</h3><div class="charts">{drawn(charts)}</div>{folded}',
    ]
    if rows:
        parts += _models(comparison, corpus, number, chosen)
    return "".join(parts) + "</section>"


def _models(comparison: Comparison, corpus: str, number: int, chosen: Sequence[int]) -> list[str]:
    """Return the parts of a section about single models: their comparison by sentence, and a panel per model."""
    rows = [comparison.rows[i] for i in chosen]
    details = [detail for i in chosen if (detail := comparison.details[i]) is not None]
    colours, test = models.label_colours(details), comparison.tests.get(corpus)
    entry = [
        {name: getattr(row, name) for name in ("learner", "features", "sentences", "loss")} for row in rows
    ]
    name = namer(entry)
    names = [name(e) for e in entry]
    largest = [i for i, row in enumerate(rows) if row.sentences == rows[0].sentences]
    short = namer([entry[i] for i in largest])
    chunked = rows[0].f1 is not None
    text, data = sentences.comparison_html(
        [details[i] for i in largest], [short(entry[i]) for i in largest], chunked, test, colours
    )
    parts = []
    if text:
        parts.append(
            f'<h3>Who is right where</h3><div class="versus" id="v-{number}">{text}'
            f'<script type="application/json">{embed(data)}</script></div>'
        )
    parts.append(
        "<h3>Models</h3><p>Errors in groups, confusions, scores by type and weights of each model.</p>"
    )
    more = sum(r.corpus == corpus and r.seed == 0 for r in comparison.rows) - len(rows)
    panels = "".join(
        models.panel(row, detail, text, f"m-{i}", test, colours)
        for i, row, detail, text in zip(chosen, rows, details, names)
    )
    parts.append(f'<div class="models">{panels}</div>')
    parts.append(f"<p>The table has {more:,} more models.</p>" if more > 0 else "")
    return parts


def head_html(comparison: Comparison, summary: Sequence[Mapping[str, Any]], origin: Origin) -> str:
    """Return the top of the page: the answer for each corpus, the origin of the figures, and notes."""
    corpora = list(dict.fromkeys(e["corpus"] for e in summary))
    answers = "".join(
        f'<li><a href="#c-{i}">{safe(corpus)}</a> '
        f"{unbroken(answer(comparison, [e for e in summary if e['corpus'] == corpus]))}</li>"
        for i, corpus in enumerate(corpora)
    )
    rows = "".join(
        f"<dt>{name}</dt><dd>{f'<code>{safe(value)}</code>' if name == 'Command' else safe(value)}</dd>"
        for name, value in origin.rows()
    )
    notes = [text for text in (comparison.note, comparison.caption) if text]
    if comparison.against:
        notes.append(
            f"Column p: paired approximate randomization over test sentences, compared with {comparison.against} with "
            "the same features."
        )
    if summary:
        notes.append(
            "Answers: paired approximate randomization over test sentences, corrected for the number of learners "
            "(Holm). A difference with p of 0.05 or more may be chance. Small figures: 95 % bootstrap intervals."
        )
    listed = "".join(f"<p>{safe(text)}</p>" for text in notes)
    return (
        (f'<ul class="answers">{answers}</ul>' if answers else "")
        + (f'<dl class="origin">{rows}</dl>' if rows else "")
        + f'<div class="note">{listed}</div>'
    )


def page(comparison: Comparison, origin: Origin | None = None) -> str:
    """Return the page. The default origin is this machine, now, without a command."""
    summary = comparison.summary()
    palette = Palette(summary)
    corpora = list(dict.fromkeys(e["corpus"] for e in summary))
    sections = [section(comparison, corpus, i, palette, summary) for i, corpus in enumerate(corpora)]
    links = "".join(f'<a href="#c-{i}">{safe(corpus)}</a>' for i, corpus in enumerate(corpora))
    if not summary:
        sections.append(
            '<section><figure class="wide narrow"><figcaption>Losses of one decision</figcaption>'
            f"{figures.losses()}</figure></section>"
        )
    sources = sorted({figure.source for figure in comparison.published if figure.source})
    if sources:
        items = "".join(f"<li>{safe(source)}</li>" for source in sources)
        sections.append(f"<section><h2>Published figures</h2><ul>{items}</ul></section>")
    title = safe(comparison.title or "Comparison")
    colours = "".join(f".k{i}{{background:{tint(i)}}}" for i in range(len(PALETTE)))
    head = head_html(comparison, summary, Origin.now() if origin is None else origin)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<style>{asset('page.css')}{colours}</style></head><body>"
        f'<header><div class="bar"><strong>tagwise</strong><nav aria-label="Corpora">{links}</nav>'
        '<button type="button" id="theme" aria-label="Light or dark" hidden>◐</button></div></header>'
        f"<main><h1>{title}</h1>{head}{''.join(sections)}</main>"
        f"<script>{asset('page.js')}</script></body></html>\n"
    )


def write(comparison: Comparison, path: str | os.PathLike[str], command: str = "") -> None:
    """Write a comparison as a self-contained HTML page. `command` is the command line that made it, if any."""
    write_text(path, page(comparison, Origin.now(command)))
