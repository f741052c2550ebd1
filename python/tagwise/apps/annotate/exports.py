"""Formats of exports: labelled sentences, and notes."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tagwise.apps.annotate.history import Entry
from tagwise.base.exceptions import ParameterError
from tagwise.base.parameters import meant
from tagwise.corpus.conllu import write_conllu
from tagwise.corpus.formats import write
from tagwise.corpus.sentence import Corpus, Sentence

#: Export formats with their file extensions. `notes` has the sentences with a mark or a comment.
EXPORTS = {"conll": "tsv", "spans": "jsonl", "conllu": "conllu", "jsonl": "jsonl", "notes": "jsonl"}


def check_export(format: str, kind: str) -> None:
    """Raise a ParameterError if labels of this kind cannot be exported in a format."""
    if format not in EXPORTS:
        raise ParameterError(
            f"format={format!r}{meant(format, EXPORTS)}: expected one of {', '.join(EXPORTS)}"
        )
    if format == "spans" and kind != "spans":
        raise ParameterError(
            "format='spans': the labels of this project do not mark spans. Use conll, conllu or jsonl"
        )


def written(corpus: Corpus, format: str, kind: str) -> bytes:
    """Return labelled sentences in a format."""
    out = io.BytesIO()
    if format == "conllu":  # spans have no column of their own, so they go to MISC
        write_conllu(corpus, out, label_column="misc" if kind == "spans" else "upos")
    else:
        write(corpus, out, format)
    return out.getvalue()


def written_notes(
    documents: Iterable[tuple[str, range]], sentences: Sequence[Sentence], entries: Mapping[int, Entry]
) -> bytes:
    """Return the sentences with a mark or a comment as JSONL, in order."""
    lines = []
    for name, places in documents:
        for i in places:
            entry = entries.get(i, Entry())
            if entry.mark or entry.comment:
                note: dict[str, Any] = {
                    "sentence": i + 1,
                    "document": name,
                    "mark": entry.mark,
                    "comment": entry.comment,
                    "text": " ".join(sentences[i].tokens),
                }
                lines.append(json.dumps(note, ensure_ascii=False) + "\n")
    return "".join(lines).encode()
