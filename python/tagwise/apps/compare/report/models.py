"""Panels of single models: errors by kind, confusions, scores by type, weights."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tagwise.apps.compare.report.tables import table
from tagwise.base.colours import LabelColours
from tagwise.base.markup import safe
from tagwise.corpus.schemes import spans, split_label
from tagwise.corpus.sentence import Corpus
from tagwise.evaluation.errors import AROUND, Error, Group, find_errors

if TYPE_CHECKING:
    from tagwise.apps.compare.cells import Row
    from tagwise.apps.compare.table import Comparison

#: Bounds of a page: models, kinds of errors per model, errors per kind, types in tables, labels of weights, features
#: per label, and characters of a token or label.
MOST_MODELS, MOST_KINDS, MOST_ERRORS = 20, 16, 5
MOST_TYPES, MOST_LABELS, MOST_FEATURES, MOST_CHARACTERS = 16, 12, 8, 80
KINDS = {
    "missed": "missed",
    "spurious": "spurious",
    "type": "wrong type",
    "borders": "wrong borders",
    "type and borders": "wrong type and borders",
    "label": "wrong label",
}

Detail = Mapping[str, Any]
Mark = tuple[int, int, str, str]  # begin, end, label, class


def clip(text: str) -> str:
    """Return a text as safe HTML, shortened if it is very long."""
    text = str(text)
    return safe(text if len(text) <= MOST_CHARACTERS else text[: MOST_CHARACTERS - 1] + "…")


def marked(tokens: Sequence[str], begin: int, end: int, marks: Iterable[Mark], colours: LabelColours) -> str:
    """Return the tokens from `begin` to `end` with labelled pieces in the colours of their labels."""
    parts, at = ["…"] if begin else [], begin
    for first, last, label, kind in sorted(marks):
        first, last = max(first, at), min(last, end)
        if first >= last:
            continue
        parts += [clip(token) for token in tokens[at:first]]
        text = " ".join(clip(token) for token in tokens[first:last])
        known = f"k{colours.index(label)}{' ' + kind if kind else ''}"
        parts.append(f'<mark class="{known}">{text}<sub>{clip(label)}</sub></mark>')
        at = last
    parts += [clip(token) for token in tokens[at:end]] + (["…"] if end < len(tokens) else [])
    return " ".join(parts)


def pieces(labels: Sequence[str], chunked: bool, at: int = 0) -> list[tuple[int, int, str]]:
    """Return the labelled pieces of a sentence: spans, or tokens with their labels."""
    if chunked:
        return [(at + s.begin, at + s.end, s.type) for s in spans(labels)]
    return [(at + t, at + t + 1, str(label)) for t, label in enumerate(labels)]


def label_colours(details: Iterable[Detail]) -> LabelColours:
    """Return the colours of all types, or of all labels without types, that these models use."""
    names = (name for detail in details for name in detail["per_type"])
    labels = (label for detail in details for label in map(str, detail["labels"]))
    return LabelColours([*names, *(split_label(label)[1] or label for label in labels if label != "O")])


# --- errors -------------------------------------------------------------------------------------------------


def examples(test: Corpus, detail: Detail) -> dict[tuple[str, Any, Any], list[Error]]:
    """Return errors by kind, gold and predicted type, in the sentences whose labels the result keeps."""
    kept = [(i, [detail["labels"][y] for y in labels]) for i, labels in detail["wrong"] if i < len(test)]
    kept = [(i, labels) for i, labels in kept if len(test[i]) == len(labels)]
    if not kept:
        return {}
    corpus = Corpus([test[i] for i, _ in kept])
    found = find_errors(corpus, [labels for _, labels in kept])
    return {(g.kind, g.gold, g.predicted): g.errors for g in found.groups}


def error_line(error: Error, group: Group, colours: LabelColours) -> str:
    """Return an error in its context: gold spans, and the predicted ones if both exist."""
    chunked = group.kind != "label"
    begin, end = max(error.begin - AROUND, 0), min(error.end + AROUND, len(error.tokens))
    gold = [(*piece, "") for piece in pieces(error.gold, chunked, error.begin)]
    guess = [(*piece, "wrong") for piece in pieces(error.predicted, chunked, error.begin)]
    place = f"line {error.line}" if error.line else ""
    text = marked(error.tokens, begin, end, guess if group.kind == "spurious" else gold, colours)
    if group.kind not in ("missed", "spurious"):
        inner = marked(
            error.tokens[error.begin : error.end],
            0,
            error.end - error.begin,
            [(b - error.begin, e - error.begin, label, kind) for b, e, label, kind in guess],
            colours,
        )
        text += f' <span class="found">found {inner}</span>'
    return f"<li>{text}{f' <small>{place}</small>' if place else ''}</li>"


def errors_html(detail: Detail, test: Corpus | None, colours: LabelColours) -> str:
    """Return the errors of a model in groups that open, largest first, as in ``tagwise errors``."""
    counted = detail.get("errors") or []
    total = sum(n for *_, n in counted)
    if not total:
        return "<p>No errors.</p>"
    known = examples(test, detail) if test is not None and detail.get("wrong") else {}
    parts = []
    for kind, gold, predicted, n in counted[:MOST_KINDS]:
        group = Group(kind, gold, predicted)
        lines = [error_line(e, group, colours) for e in known.get((kind, gold, predicted), [])[:MOST_ERRORS]]
        more = f"<li><small>{n - len(lines):,} more</small></li>" if n > len(lines) else ""
        parts.append(
            f'<details class="group" data-kind="{safe(KINDS[kind])}" data-types="{_types(gold, predicted)}"><summary>'
            f'<span class="share" style="--share:{n / total:.3f}"></span>{clip(group.title)} '
            f"<b>{n:,}</b> <small>{_percent(n / total)} %</small></summary><ul>{''.join(lines)}{more}</ul></details>"
        )
    rest = counted[MOST_KINDS:]
    if rest:
        parts.append(f"<p>{len(rest):,} more kinds with {sum(n for *_, n in rest):,} errors.</p>")
    return f'<div class="errors">{"".join(parts)}</div>'


def _types(*names: Any) -> str:
    """Return gold and predicted type as the value of an attribute, separated by line ends."""
    return "&#10;".join(clip(name) for name in dict.fromkeys(names) if name is not None)


# --- confusions ---------------------------------------------------------------------------------------------


def span_confusion(detail: Detail) -> tuple[list[str], list[str], dict[tuple[str, str], int]]:
    """Return gold types, columns and counts of spans: found as which type, with other borders, or missed."""
    types = sorted(detail["per_type"], key=lambda name: (-detail["per_type"][name][0], name))
    counts: dict[tuple[str, str], int] = {(name, name): detail["per_type"][name][2] for name in types}
    for kind, gold, predicted, n in detail["errors"]:
        row = SPURIOUS if kind == "spurious" else gold
        column = MISSED if kind == "missed" else BORDERS if kind == "borders" else predicted
        counts[row, column] = counts.get((row, column), 0) + n
    return [*types, SPURIOUS], [*types, BORDERS, MISSED], counts


def token_confusion(detail: Detail) -> tuple[list[str], list[str], dict[tuple[str, str], int]]:
    """Return labels and counts of tokens, without tokens that are O in both."""
    counts = {(str(g), str(p)): n for g, p, n in detail["confusion"] if not g == p == "O"}
    weight: dict[str, int] = {}
    for (gold, _), n in counts.items():
        weight[gold] = weight.get(gold, 0) + n
    labels = sorted({label for pair in counts for label in pair}, key=lambda x: (-weight.get(x, 0), x))
    return labels, labels, counts


MISSED, BORDERS, SPURIOUS, OTHERS = "(missed)", "(borders)", "(spurious)", "(others)"
_SPECIAL = (MISSED, BORDERS, SPURIOUS, OTHERS)


def confusion_html(detail: Detail, chunked: bool, name: str) -> str:
    """Return the confusions of a model in percent of each row, gold types down and predicted ones across."""
    rows, columns, counts = span_confusion(detail) if chunked else token_confusion(detail)
    kept = [row for row in rows if row not in _SPECIAL][:MOST_TYPES]
    shown = kept + [row for row in rows if row in _SPECIAL]
    across = kept + [column for column in columns if column in _SPECIAL]
    if len(kept) < len([row for row in rows if row not in _SPECIAL]):
        across.append(OTHERS)
    what = "spans" if chunked else "tokens"
    lines = []
    for row in shown:
        mine = {column: n for (gold, column), n in counts.items() if gold == row}
        total = sum(mine.values())
        if not total:
            continue
        mine[OTHERS] = total - sum(mine.get(column, 0) for column in across if column != OTHERS)
        cells = []
        for column in across:
            n = mine.get(column, 0)
            share = n / total
            tone = "hit" if column == row else "miss"
            cells.append(
                f'<td class="{tone}" style="--share:{share:.2f}" title="{n:,} of {total:,}">{_percent(share)}</td>'
                if n
                else "<td></td>"
            )
        lines.append(
            f'<tr><th scope="row">{clip(row)}</th>{"".join(cells)}<td class="figure">{total:,}</td></tr>'
        )
    heads = "".join(f'<th scope="col"><span>{clip(column)}</span></th>' for column in across)
    head = f'<tr><td></td>{heads}<th scope="col"><span>{what}</span></th></tr>'
    return table(head, lines, f"Confusions of {name}", "confusion")


def _percent(share: float) -> str:
    """Format a fraction in percent as HTML, for a small field.

    >>> _percent(0.256), _percent(0.004), _percent(0.997), _percent(1.0)
    ('26', '&lt;1', '&gt;99', '100')
    """
    if share < 1 and round(100 * share) == 100:
        return "&gt;99"
    return f"{100 * share:.0f}" if round(100 * share) else "&lt;1"


# --- types and weights --------------------------------------------------------------------------------------


def types_html(detail: Detail, chunked: bool, name: str, colours: LabelColours) -> str:
    """Return a table of scores by type, or by label."""
    found = sorted(detail["per_type"].items(), key=lambda item: (-item[1][0], item[0]))[:MOST_TYPES]
    lines = []
    for kind, (gold, predicted, correct) in found:
        f1 = 2 * correct / (gold + predicted) if gold + predicted else 0.0
        precision, recall = (correct / n if n else 0.0 for n in (predicted, gold))
        swatch = f'<i class="swatch k{colours.index(str(kind))}"></i>'
        figures = "".join(f'<td class="figure">{100 * x:.1f}</td>' for x in (f1, precision, recall))
        cells = f'{figures}<td class="figure">{gold:,}</td>'
        lines.append(f'<tr><th scope="row">{swatch}{clip(kind) or "(no type)"}</th>{cells}</tr>')
    heads = "".join(
        f'<th scope="col" class="figure">{text}</th>' for text in ("F1", "precision", "recall", "gold")
    )
    head = f'<tr><th scope="col">{"type" if chunked else "label"}</th>{heads}</tr>'
    return table(head, lines, f"Scores of {name} by {'type' if chunked else 'label'}", "types")


def weights_html(detail: Detail, name: str) -> str:
    """Return the strongest features of each label and the transitions between labels."""
    labels = [str(label) for label in detail["labels"]]
    weight: dict[str, int] = {}
    for gold, _, n in detail["confusion"]:
        weight[str(gold)] = weight.get(str(gold), 0) + n
    chosen = sorted(labels, key=lambda label: (-weight.get(label, 0), label))[:MOST_LABELS]
    parts = []
    for label in chosen:
        found = detail.get("strongest", {}).get(label, [])[:MOST_FEATURES]
        items = "".join(f"<li><b>{w:+.2f}</b> <code>{clip(text)}</code></li>" for text, w in found)
        parts.append(f"<div><h5>{clip(label)}</h5><ul>{items}</ul></div>" if items else "")
    strongest = f'<div class="weights">{"".join(parts)}</div>' if any(parts) else ""
    transitions = detail.get("transitions")
    if transitions is None:
        return strongest or "<p>This model has no weights of features.</p>"
    at = {label: i for i, label in enumerate(labels)}
    most = max((abs(x) for row in transitions for x in row if x is not None), default=0.0) or 1.0
    lines = []
    for row in chosen:
        values = [transitions[at[row]][at[column]] for column in chosen]
        cells = "".join(
            '<td class="forbidden" title="forbidden">–</td>'
            if x is None
            else f'<td class="{"hit" if x > 0 else "miss"}" style="--share:{abs(x) / most:.2f}">{x:.1f}</td>'
            for x in values
        )
        lines.append(f'<tr><th scope="row">{clip(row)}</th>{cells}</tr>')
    heads = "".join(f'<th scope="col"><span>{clip(column)}</span></th>' for column in chosen)
    grid = table(f"<tr><td></td>{heads}</tr>", lines, f"Transitions of {name}", "confusion")
    return f"{strongest}<h5>Transitions: from down, to across. Blue favours, orange disfavours.</h5>{grid}"


# --- panels -------------------------------------------------------------------------------------------------


def chosen_rows(comparison: Comparison) -> dict[str, list[int]]:
    """Return the indices of the rows that have a panel, by corpus, best first. Their number is bounded."""
    out: dict[str, list[int]] = {}
    for i, (row, detail) in enumerate(zip(comparison.rows, comparison.details)):
        if detail is not None and row.seed == 0 and "per_type" in detail:
            out.setdefault(row.corpus, []).append(i)
    share = max(2, MOST_MODELS // max(len(out), 1))
    return {
        corpus: sorted(found, key=lambda i: (-comparison.rows[i].sentences, -comparison.rows[i].score))[
            :share
        ]
        for corpus, found in out.items()
    }


def panel(row: Row, detail: Detail, name: str, ident: str, test: Corpus | None, colours: LabelColours) -> str:
    """Return the panel of one model, which opens."""
    chunked = row.f1 is not None
    wrong = sum(n for *_, n in detail.get("errors", ()))
    what = "spans" if chunked else "tokens"
    score = f"{100 * row.score:.2f} % {'F1' if chunked else 'accuracy'}"
    return (
        f'<details class="model" id="{ident}"><summary>{safe(name)} <small>{score}, {wrong:,} wrong {what}</small>'
        f"</summary><h4>Errors by kind</h4>{errors_html(detail, test, colours)}"
        f'<div class="pair"><div><h4>Confusions</h4><p>In percent of each row: gold down, found across.</p>'
        f"{confusion_html(detail, chunked, name)}</div>"
        f"<div><h4>By {'type' if chunked else 'label'}</h4><p>Scores in percent.</p>"
        f"{types_html(detail, chunked, name, colours)}</div></div>"
        f"<details><summary>Weights</summary>{weights_html(detail, name)}</details></details>"
    )
