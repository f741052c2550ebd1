"""Tables of a report: key figures as cards, and every run of a corpus."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tagwise.apps.compare.report.answer import Entry, duration
from tagwise.apps.compare.report.figures import Entries, spread_text
from tagwise.apps.compare.table import SHARES
from tagwise.base.markup import safe

if TYPE_CHECKING:
    from tagwise.apps.compare.table import Comparison

_WORDS = ("learner", "loss", "features", "chosen")
#: Columns of times: the measure and the head on the page.
_TIMES = {"seconds": ("seconds", "training time"), "CPU s": ("cpu", "CPU time")}
_MEASURES = {head: measure for measure, head in SHARES.items()}


def number(text: str) -> float | None:
    """Return the number at the start of a text, for sorting.

    >>> number("1,234"), number("78.10 ±0.20"), number("S1")
    (1234.0, 78.1, None)
    """
    match = re.match(r"-?\d[\d,]*\.?\d*", text)
    return float(match[0].replace(",", "")) if match else None


def card(title: str, value: str, text: str) -> str:
    """Return a card with one key figure."""
    return (
        f'<div class="card"><b>{safe(value)}</b><span>{safe(title)}</span><small>{safe(text)}</small></div>'
    )


def cards(entries: Entries) -> str:
    """Return cards of the best learner, of the fastest and the sparsest within one point of it, and of the effort."""
    key = entries.key
    if not entries.full:
        return ""
    best = max(entries.full, key=lambda e: e[key])
    near = [e for e in entries.full if e[key] >= best[key] - 0.01]
    fast = min(near, key=lambda e: e["seconds"])
    sparse = min(near, key=lambda e: e["nonzero"])
    runs = sum(e["seeds"] for e in entries.all)
    spent = sum(e["seconds"] * e["seeds"] for e in entries.all)
    return (
        '<div class="cards">'
        + card(f"best {entries.measure}", f"{100 * best[key]:.2f} %", entries.name(best))
        + card("fastest within one point of the best", duration(fast["seconds"]), entries.name(fast))
        + card(
            "fewest features within one point of the best", f"{sparse['nonzero']:,.0f}", entries.name(sparse)
        )
        + card("run" if runs == 1 else "runs", f"{runs:,}", f"{duration(spent)} of training")
        + "</div>"
    )


def corpus_table(
    comparison: Comparison, corpus: str, entries: Entries, links: Mapping[tuple[str, str, str, int], str]
) -> str:
    """Return the table of one corpus: best first, with the learner and its score in the first columns.

    `links` has the identifiers of the panels of models by learner, loss, features and number of sentences.
    """
    head, body = comparison.sheet()
    summary = comparison.summary()
    rows = [(entry, row) for entry, row in zip(summary, body) if entry["corpus"] == corpus]
    rows.sort(key=lambda pair: -(pair[0][entries.key] or 0.0))
    main = SHARES[entries.key]
    first = [head.index(name) for name in ("learner", main)]
    rest = [i for i in range(1, len(head)) if i not in first and any(row[i] for _, row in rows)]
    places = first + rest
    top = {
        i: max(values)
        for i in places
        if head[i] in _MEASURES and (values := [v for _, row in rows if (v := number(row[i])) is not None])
    }
    varying = [name for name in ("features", "sentences") if len({e[name] for e, _ in rows}) > 1]
    lines = []
    for entry, row in rows:
        cells = []
        for i in places:
            name, value = head[i], number(row[i])
            kind = "word" if name in _WORDS else "paper figure" if name.endswith(", paper") else "figure"
            text = safe(row[i])
            if name == "learner":
                key = (entry["learner"], entry["loss"], entry["features"], entry["sentences"])
                text = _learner(entry, varying, links.get(key))
            elif name in _TIMES:
                value = entry[_TIMES[name][0]]
                text = "" if value is None else duration(value)
            elif name in _MEASURES:
                ends = spread_text(comparison.intervals(entry).get(_MEASURES[name]))
                text += f"<small>{ends}</small>" if ends else ""
                kind += " top" if value is not None and value == top[i] else ""
            order = "" if value is None or name in _WORDS else f' data-v="{value:g}"'
            tag = "th scope=row" if name == "learner" else "td"
            cells.append(f'<{tag} class="{kind}"{order}>{text}</{tag.split()[0]}>')
        lines.append(f'<tr data-series="{safe(entry["learner"])}">{"".join(cells)}</tr>')
    heads = "".join(
        f'<th scope="col" class="{"word" if head[i] in _WORDS else "figure"}"><button type="button">'
        f"{safe(_TIMES[head[i]][1] if head[i] in _TIMES else head[i])}</button></th>"
        for i in places
    )
    return table(f"<tr>{heads}</tr>", lines, f"Runs on {corpus}", "sortable runs")


def _learner(entry: Entry, varying: Sequence[str], link: str | None) -> str:
    """Return the first column of a row: the learner, and below it the fields in which rows differ."""
    name = safe(entry["learner"])
    more = [f"{entry[f]:,} sentences" if f == "sentences" else str(entry[f]) for f in varying]
    small = f"<small>{safe(', '.join(more))}</small>" if more else ""
    return (f'<a href="#{link}">{name}</a>' if link else name) + small


def table(head: str, lines: Sequence[str], name: str, kind: str = "") -> str:
    """Return a table that scrolls within its box. The box can be scrolled by keyboard."""
    return (
        f'<div class="scroll" tabindex="0" role="group" aria-label="{safe(name)}"><table class="{kind}">'
        f"<thead>{head}</thead><tbody>{''.join(lines)}</tbody></table></div>"
    )
