"""Selection of the columns that are read from a file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tagwise.base.exceptions import CorpusError
from tagwise.base.parameters import meant
from tagwise.corpus.source_lines import Raw
from tagwise.corpus.streams import File

#: Column names that are recognized if no column is specified, ignoring case.
TOKENS = ("word", "words", "token", "tokens", "form", "text")
SENTENCES = (
    "sentence",
    "sentence #",
    "sentence#",
    "sentence_#",
    "sentence_id",
    "sentence id",
    "sentenceid",
    "sentence_idx",
    "sentence_number",
    "sent",
    "sent #",
    "sent_id",
    "sent_idx",
    "sid",
)
LABELS = (
    "label",
    "labels",
    "tag",
    "tags",
    "ner",
    "ner_tag",
    "ner_tags",
    "pos_tags",
    "chunk_tags",
    "ner tag",
    "ner_label",
    "entity",
    "bio",
    "bio_tag",
    "iob",
    "iob_tag",
)


class OpenFile(NamedTuple):
    """An open file: its name, its text in chunks, and the requested columns."""

    name: str
    chunks: Iterator[str]
    columns: tuple[str, ...] | None
    label: str | None
    optional_label: bool
    raw: Raw | None = None  # buffer for the unmodified lines, on request
    file: File | None = None  # the file itself, for formats that are not text


def check_columns(
    columns: Sequence[str] | None, label: str | None
) -> tuple[tuple[str, ...] | None, str | None]:
    """Return the column names as a tuple, and the label column if it is one of them."""
    if columns is None:
        return None, label
    if isinstance(columns, str):
        columns = columns.replace(",", " ").split()
    names = tuple(columns)
    kept = [n for n in names if n != "_"]
    if not kept or len(set(kept)) != len(kept) or not all(isinstance(n, str) and n for n in names):
        raise CorpusError(
            f"columns={names!r} are not column names. "
            "Give one distinct name per column, or '_' to skip a column."
        )
    if label is not None and label not in kept:
        if label != "label":
            raise CorpusError(
                f"label={label!r} is not one of the columns {', '.join(kept)}{meant(label, kept)}. Name one of them."
            )
        label = None
    return names, label
