"""JSONL: one sentence per line, as an object of arrays with one value per token."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from tagwise.corpus.columns import OpenFile
from tagwise.corpus.row_blocks import json_value, lines_of
from tagwise.corpus.sentence import Sentence
from tagwise.corpus.sentence_rows import EXAMPLE, TO_KEY, RowReader, is_column
from tagwise.corpus.streams import File, fail, shown, writer

NAME = "jsonl"


def detect(head: str, rows: list[str]) -> bool:
    """Return whether the first line of a text is a JSON object or an array of strings."""
    if rows[0][0] not in "{[":
        return False
    try:
        value = json.loads(rows[0])
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) or is_column(value, len(value) if isinstance(value, list) else -1)


def iter_open(file: OpenFile, *, label_names: Sequence[str] | None = None) -> Iterator[Sentence]:
    """Return the sentences of an open file, one per line.

    Each line is an object such as ``{"tokens": [...], "labels": [...], "pos": [...]}`` or an array of tokens.
    ``tokens`` (or ``words``) is the column ``word`` and ``labels`` (or ``tags``) is the column ``label``. Without
    these, the only member with a usual name such as ``ner_tags`` is the label column. Every other array with one string
    per token is a column of that name. ``newdoc`` begins a document. Other keys are kept in ``Sentence.meta``.

    Args:
        file: The file, with the requested columns.
        label_names: Names of labels that are numbers in the file, beginning with the name of 0.
    """
    return jsonl_sentences(file, RowReader(file.name, file.columns, file.label, label_names))


def jsonl_sentences(file: OpenFile, rows: RowReader) -> Iterator[Sentence]:
    """Yield a sentence per line."""
    for line, text in lines_of(file.chunks):
        value = json_value(file.name, line, text, f"{EXAMPLE}.")
        if isinstance(value, list):
            value = {"tokens": value}
        if not isinstance(value, dict):
            fail(file.name, line, f"{shown(text)} is not an object", f"{EXAMPLE}.")
        yield rows.sentence(line, value)


def format_jsonl(sentence: Sentence) -> str:
    """Return a sentence as one line of JSON, including its newline."""
    value: dict[str, Any] = {TO_KEY.get(name, name): values for name, values in sentence.fields.items()}
    if sentence.doc is not None:
        value["newdoc"] = sentence.doc
    if sentence.comments:
        value["comments"] = list(sentence.comments)
    for key, v in (sentence.meta or {}).items():
        value.setdefault(key, v)
    return json.dumps(value, ensure_ascii=False) + "\n"


def write_jsonl(sentences: Iterable[Sentence], file: File) -> None:
    r"""Write sentences as JSONL, one object per line. This format holds any text, comments and metadata.

    Args:
        sentences: Corpus or iterable of Sentence.
        file: path, '-' or open file. '-' means stdout. A file at a path appears only when it is complete. The
            extensions .gz, .xz and .bz2 compress it.

    Raises:
        CorpusError: The file cannot be written.

    >>> from pathlib import Path
    >>> import tagwise as tw
    >>> write_jsonl([tw.Sentence({"word": ["a", "dog"]})], "two.jsonl")
    >>> Path("two.jsonl").read_text()
    '{"tokens": ["a", "dog"]}\n'
    """
    with writer(file) as write:
        for s in sentences:
            write(format_jsonl(s))
