"""JSONL: one sentence per line, as an object of arrays with one value per token."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from tagwise.corpus.columns import OpenFile
from tagwise.corpus.row_blocks import lines_of
from tagwise.corpus.sentence import Sentence
from tagwise.corpus.streams import File, fail, refuse_breaks, shown, writer

NAME = "jsonl"
_TO_COLUMN = {"tokens": "word", "words": "word", "labels": "label", "tags": "label"}


_TO_KEY = {"word": "tokens", "label": "labels"}


def own_names(columns: Sequence[str] | None, label: str | None) -> tuple[Sequence[str] | None, str | None]:
    """Translate keys of the file, such as ``tokens``, to column names.

    >>> own_names(("tokens", "pos", "tags"), "tags")
    (('word', 'pos', 'label'), 'label')
    """
    if columns is None or isinstance(columns, str):
        return columns, label
    names = tuple(_TO_COLUMN.get(name, name) for name in columns)
    return names, label if label in names else _TO_COLUMN.get(str(label), label)


def is_column(value: object, size: int) -> bool:
    return isinstance(value, list) and len(value) == size and all(isinstance(v, str) for v in value)


def detect(head: str, rows: list[str]) -> bool:
    """Return whether the first line of a text is a JSON object or an array of strings."""
    if rows[0][0] not in "{[":
        return False
    try:
        value = json.loads(rows[0])
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) or is_column(value, len(value) if isinstance(value, list) else -1)


def iter_open(file: OpenFile) -> Iterator[Sentence]:
    """Return the sentences of an open file, one per line.

    Each line is an object such as ``{"tokens": [...], "labels": [...], "pos": [...]}`` or an array of tokens.
    ``tokens`` (or ``words``) is the column ``word`` and ``labels`` (or ``tags``) is the column ``label``. Every other
    array with one string per token is a column of that name. ``newdoc`` begins a document. Other keys are kept in
    ``Sentence.meta``.
    """
    return jsonl_sentences(file.name, file.chunks, file.columns, file.label)


def jsonl_sentences(
    name: str, chunks: Iterator[str], names: tuple[str, ...] | None, label: str | None
) -> Iterator[Sentence]:
    example = 'Write {"tokens": ["..."], "labels": ["..."]}, one object per line'
    for line, text in lines_of(chunks):
        try:
            value = json.loads(text)
        except (ValueError, RecursionError) as e:
            fail(name, line, f"not valid JSON ({str(e)[:80]}) in {shown(text)}", f"{example}.", e)
        if isinstance(value, list):
            value = {"tokens": value}
        if not isinstance(value, dict):
            fail(name, line, f"{shown(text)} is not an object", f"{example}.")
        found: dict[str, Any] = {_TO_COLUMN.get(str(key), str(key)): v for key, v in value.items()}
        comments = found.pop("comments", ())
        doc = found.pop("newdoc", None)
        if names is None:
            first = found.get("word")
            size = len(first) if isinstance(first, list) else -1
            rest = [k for k, v in found.items() if k not in ("word", label) and is_column(v, size)]
            label = label if label in found else None
            names = ("word", *rest) if label is None else ("word", *rest, label)
        kept = [n for n in names if n != "_"]
        size = -1
        for column in kept:
            values = found.get(column)
            key = next((k for k in value if _TO_COLUMN.get(k, k) == column), _TO_KEY.get(column, column))
            if not isinstance(values, list):
                keys = ", ".join(map(str, value)) or "no keys"
                problem = (
                    f"missing among {keys}"
                    if column not in found
                    else f"{shown(json.dumps(values))}, not an array"
                )
                fail(
                    name,
                    line,
                    f"{key!r} is {problem}",
                    f"{example}, with the columns {', '.join(kept)} in each.",
                )
            size = len(values) if size < 0 else size
            if len(values) != size:
                fail(
                    name,
                    line,
                    f"{len(values)} values of {key!r} for {size} tokens",
                    "Give one value per token, or name the columns of the file with columns=(...).",
                )
            for t, v in enumerate(values):
                if not isinstance(v, str) or not v:
                    problem = (
                        "an empty label"
                        if v == "" and column == label
                        else f"{shown(json.dumps(v))} in {key!r}"
                    )
                    fail(name, line, f"{problem} at token {t}", "Give a non-empty string.")
        if "\\u" in text:
            try:
                json.dumps(value, ensure_ascii=False).encode()
            except UnicodeEncodeError as e:
                fail(name, line, "a lone surrogate (\\ud800 to \\udfff)", "Write whole characters.", e)
        if not (
            isinstance(comments, (list, tuple))
            and all(isinstance(c, str) and "\n" not in c for c in comments)
        ):
            fail(name, line, "'comments' is not an array of lines", "Give strings without line ends.")
        if not (doc is None or isinstance(doc, (str, bool))) or (isinstance(doc, str) and "\n" in doc):
            fail(name, line, "'newdoc' is not a name", "Give a string in one line, or true.")
        begins = doc if isinstance(doc, str) else "" if doc else None
        meta = {k: v for k, v in found.items() if k not in names} or None
        fields = {n: found[n] for n in kept}
        refuse_breaks(name, fields.get(label or ""), line)
        yield Sentence(fields, label, comments=tuple(comments), doc=begins, line=line, meta=meta)


def format_jsonl(sentence: Sentence) -> str:
    """Return a sentence as one line of JSON, including its newline."""
    value: dict[str, Any] = {_TO_KEY.get(name, name): values for name, values in sentence.fields.items()}
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
