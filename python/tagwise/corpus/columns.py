"""Selection of the columns that are read from a file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tagwise.base.exceptions import CorpusError
from tagwise.base.parameters import meant
from tagwise.corpus.source_lines import Raw


class OpenFile(NamedTuple):
    """An open file: its name, its text in chunks, and the requested columns."""

    name: str
    chunks: Iterator[str]
    columns: tuple[str, ...] | None
    label: str | None
    optional_label: bool
    raw: Raw | None = None  # buffer for the unmodified lines, on request


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
