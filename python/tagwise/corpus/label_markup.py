"""HTML of labels for notebooks, in the colours of their types."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from tagwise.base.markup import Markup, label_html, safe
from tagwise.corpus.schemes import has_chunks, split_label


def label_cells(labels: Iterable[Any]) -> list[Markup]:
    """Return labels on their colours. Labels of a scheme have the colour of their type, and O has none."""
    texts = list(map(str, labels))
    chunked = has_chunks(texts)
    return [
        Markup(safe(text)) if text == "O" else label_html(text, split_label(text)[1] if chunked else text)
        for text in texts
    ]


def labels_html(labels: Sequence[Any], most: int = 40) -> Markup:
    """Return the first labels on their colours, in one cell."""
    return Markup(" ".join(label_cells(labels)[:most]) + (" ..." if len(labels) > most else ""))
