"""The table of formats: reading or writing a file of any of them, by its name and contents."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence

from tagwise.corpus.columns import check_columns, collect
from tagwise.corpus.conll import DOCSTART, Columns, conll_sentences, data_lines, write_conll
from tagwise.corpus.conllu import CONLLU_COLUMNS, conllu_sentences, write_conllu
from tagwise.corpus.jsonl import is_column, jsonl_sentences, write_jsonl
from tagwise.corpus.sentence import Corpus, Sentence
from tagwise.corpus.streams import File, open_text, source_name
from tagwise.corpus.text import text_sentences, write_text
from tagwise.errors import CorpusError

FORMATS = ("conll", "conllu", "jsonl", "text")

_ENDINGS = {".conllu": "conllu", ".jsonl": "jsonl", ".ndjson": "jsonl", ".tsv": "conll", ".conll": "conll"}
_COMPRESSED = (".gz", ".xz", ".bz2")


def format_of_name(name: str) -> str | None:
    """The format that a file's ending tells, None where it tells nothing (.txt, stdin)."""
    stem, ending = os.path.splitext(name.lower())
    if ending in _COMPRESSED:
        ending = os.path.splitext(stem)[1]
    return _ENDINGS.get(ending)


def format_of_text(head: str) -> str:
    """The format that the first lines of a text look like; CoNLL columns in doubt.

    >>> format_of_text("a NN\\nb VB\\n\\n"), format_of_text("a b c\\nd e\\n")
    ('conll', 'text')
    """
    rows = data_lines(head)
    if not rows:
        return "conll"
    if rows[0][0] in "{[":
        try:
            value = json.loads(rows[0])
        except (ValueError, RecursionError):
            value = None
        if isinstance(value, dict) or is_column(value, len(value) if isinstance(value, list) else -1):
            return "jsonl"
    cells = rows[0].split("\t")
    if len(cells) == 10 and cells[0].replace("-", "").replace(".", "").isdecimal():
        return "conllu"
    if any("\t" in row for row in rows) or DOCSTART in head:
        return "conll"
    sizes = {sum(map(bool, row.split(" "))) for row in rows}
    blank = len(rows) > 1 and "\n\n" in head.lstrip("\n")
    return "conll" if len(sizes) == 1 and (blank or len(rows) > 2 or 1 in sizes) else "text"


def _check_format(format: str | None) -> None:
    if format is not None and format not in FORMATS:
        raise CorpusError(f"format={format!r} is unknown. Use one of {', '.join(FORMATS)}.")


def iter_sentences(
    file: File,
    format: str | None = None,
    *,
    columns: Sequence[str] | None = None,
    label: str | None = "label",
    encoding: str = "utf-8",
    optional_label: bool = False,
) -> tuple[str, Iterator[Sentence]]:
    """The format of a file and its sentences, one at a time; None: by its ending, else by its first lines.

    In CoNLL-U ``label="label"`` stands for upos.
    """
    _check_format(format)
    names, label = check_columns(columns, label)
    name, chunks = open_text(file, encoding)
    format = format or format_of_name(name)
    if format is None:
        head = ""
        for chunk in chunks:  # a pipe may give a line at a time: go on until the format shows
            head += chunk
            rows = data_lines(head)
            if len(head) > 4096 or (
                rows and ("\t" in rows[0] or rows[0][0] == "{" or "\n\n" in head.lstrip())
            ):
                break
        format = format_of_text(head)
        chunks = itertools.chain([head] if head else [], chunks)
    if format == "conll":
        return format, conll_sentences(chunks, Columns(name, names, label, optional_label), None, None)
    if format == "conllu":
        label = "upos" if label == "label" and names is None else label
        return format, conllu_sentences(name, chunks, _conllu_columns(names, label), label)
    if format == "jsonl":
        return format, jsonl_sentences(name, chunks, names, label)
    return format, text_sentences(chunks)


def _conllu_columns(names: tuple[str, ...] | None, label: str | None) -> tuple[str, ...]:
    asked = dict.fromkeys((*(names or ()), *((label,) if label else ())))
    wrong = [n for n in asked if n not in CONLLU_COLUMNS]
    if wrong:
        raise CorpusError(
            f"{', '.join(wrong)}: not a column of CoNLL-U. Its columns are {', '.join(CONLLU_COLUMNS)}."
        )
    return names or CONLLU_COLUMNS


def read(
    file: File,
    format: str | None = None,
    *,
    columns: Sequence[str] | None = None,
    label: str | None = "label",
    encoding: str = "utf-8",
    optional_label: bool = False,
) -> Corpus:
    """A whole file of any format as a Corpus; the format by its ending or its contents unless given."""
    _, sentences = iter_sentences(
        file, format, columns=columns, label=label, encoding=encoding, optional_label=optional_label
    )
    return collect(sentences, file, columns, label)


def write(sentences: Iterable[Sentence], file: File, format: str | None = None) -> None:
    """Write sentences in a format, by the file's ending unless given; CoNLL columns in doubt."""
    _check_format(format)
    writers: dict[str, Callable[[Iterable[Sentence], File], None]] = {
        "conll": write_conll,
        "conllu": write_conllu,
        "jsonl": write_jsonl,
        "text": write_text,
    }
    writers[format or format_of_name(source_name(file)) or "conll"](sentences, file)
