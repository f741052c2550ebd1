"""Exports of a project: labelled sentences in several formats, and notes."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from tagwise.base.exceptions import ParameterError
from tagwise.base.parameters import meant
from tagwise.corpus.conllu import write_conllu
from tagwise.corpus.formats import write

if TYPE_CHECKING:
    from tagwise.apps.annotate.project import Work

#: Export formats with their file extensions. `notes` has the sentences with a mark or a comment.
EXPORTS = {"conll": "tsv", "spans": "jsonl", "conllu": "conllu", "jsonl": "jsonl", "notes": "jsonl"}


def exported(work: Work, format: str, name: str | None = None) -> bytes:
    """Return the labelled sentences of all documents or of one in a format."""
    if format not in EXPORTS:
        raise ParameterError(
            f"format={format!r}{meant(format, EXPORTS)}: expected one of {', '.join(EXPORTS)}"
        )
    if format == "notes":
        return b"".join(json.dumps(one, ensure_ascii=False).encode() + b"\n" for one in _notes(work))
    among = work.labelled
    places = [i for title, span in work.documents if name in (None, title) for i in span if i in among]
    if format == "spans" and work.settings.kind != "spans":
        raise ParameterError(
            "format='spans': the labels of this project do not mark spans. Use conll, conllu or jsonl"
        )
    out = io.BytesIO()
    if format == "conllu":  # spans have no column of their own, so they go to MISC
        write_conllu(
            work.corpus(places), out, label_column="misc" if work.settings.kind == "spans" else "upos"
        )
    else:
        write(work.corpus(places), out, format)
    return out.getvalue()


def _notes(work: Work) -> Iterator[dict[str, Any]]:
    """Yield the sentences with a mark or a comment, in order."""
    for name, places in work.documents:
        for i in places:
            entry = work.history.entry(i)
            if entry.mark or entry.comment:
                yield {
                    "sentence": i + 1,
                    "document": name,
                    "mark": entry.mark,
                    "comment": entry.comment,
                    "text": " ".join(work.sentences[i].tokens),
                }
