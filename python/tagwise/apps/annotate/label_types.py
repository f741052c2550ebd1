"""Labels of sentences by the label types of a project: from spans, checked, and after a type was renamed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from tagwise.apps.annotate.folder import OUTSIDE
from tagwise.apps.annotate.imports import TokenSpan
from tagwise.base.exceptions import ParameterError
from tagwise.base.parameters import meant
from tagwise.corpus import schemes


def labels_of_spans(spans: Any, n: int, kind: str, known: Collection[str]) -> list[str]:
    """Return the labels of n tokens for the spans of a request, which are objects with begin, end and label."""
    if not isinstance(spans, list) or len(spans) > n:
        raise ParameterError(f"spans: expected a list of at most {n} spans, one per token")
    found = []
    for k, one in enumerate(spans):
        if not isinstance(one, dict):
            raise ParameterError(f"span {k}: expected an object with begin, end and label")
        begin, end, label = (one.get(name) for name in ("begin", "end", "label"))
        if type(begin) is not int or type(end) is not int or not 0 <= begin < end <= n:
            raise ParameterError(
                f"span {k}: {begin!r} to {end!r}: expected 0 <= begin < end <= {n}, the number of tokens"
            )
        if label not in known:
            raise ParameterError(f"span {k}: unknown label {label!r}{meant(str(label), known)}. Add it first")
        found.append(schemes.Span(str(label), begin, end))
    found.sort(key=lambda one: one.begin)
    if kind == "spans":
        return schemes.from_spans(found, n, "IOB2")
    labels = [OUTSIDE] * n
    for one in found:
        labels[one.begin : one.end] = [one.type] * (one.end - one.begin)
    if OUTSIDE in labels and OUTSIDE not in known:
        raise ParameterError(f"token {labels.index(OUTSIDE)} has no label. Label every token")
    return labels


def check_labels(labels: Sequence[str], kind: str, known: Collection[str]) -> None:
    """Raise a ParameterError if a sentence of a project with these label types cannot have these labels."""
    before = OUTSIDE
    for t, label in enumerate(labels):
        tag, of = schemes.split_label(label) if isinstance(label, str) else ("", "")
        valid = label == OUTSIDE or (tag in ("B", "I") and of in known)
        if not (valid if kind == "spans" else label in known):
            raise ParameterError(
                f"token {t}: this project has no label {label!r}{meant(str(label), known)}, only "
                f"{' '.join(sorted(known))}. Add it"
            )
        if kind == "spans" and not schemes.valid(before, label, "IOB2"):
            raise ParameterError(f"token {t}: {label} cannot follow {before}. A span begins with B-")
        before = label


def renaming(one: Mapping[str, Any], kind: str) -> Callable[[list[str]], list[str]]:
    """Return the function on labels of tokens that renames or deletes a type."""
    old, new = one["old"], one.get("new")
    if kind == "tokens":
        table = {old: new or OUTSIDE}
    else:
        table = {f"{tag}-{old}": OUTSIDE if new is None else f"{tag}-{new}" for tag in "BI"}
    return lambda labels: [table.get(y, y) for y in labels]


def renamed_spans(spans: Sequence[TokenSpan], one: Mapping[str, Any]) -> list[TokenSpan]:
    """Return spans with a label type renamed or, if it was deleted, without those of this type."""
    found = [(begin, end, one.get("new") if label == one["old"] else label) for begin, end, label in spans]
    return [(begin, end, label) for begin, end, label in found if label is not None]
