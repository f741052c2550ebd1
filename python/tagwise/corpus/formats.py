"""The table of formats: reading or writing a file of any of them, by its name and contents."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from tagwise.base.exceptions import CorpusError
from tagwise.corpus import conll, conllu, jsonl, pretokenized
from tagwise.corpus.columns import Opened, check_columns, collect
from tagwise.corpus.conll import data_lines
from tagwise.corpus.sentence import Corpus, Sentence
from tagwise.corpus.source_lines import Raw
from tagwise.corpus.streams import File, fail, open_text, shown, source_name
from tagwise.corpus.text import raw_text, span_jsonl


@dataclass(frozen=True)
class Format:
    """What a format is: all that reading, writing and the command line ask of it.

    endings: of file names, the first format with one writes such files; looks: whether the first lines of a text, and
    those of them that hold tokens, look like it, asked format by format in the order of `turn`; unnamed: whether its
    columns have no names of their own.
    """

    name: str
    endings: tuple[str, ...]
    turn: int
    looks: Callable[[str, list[str]], bool]
    sentences: Callable[[Opened], Iterator[Sentence]]
    write: Callable[[Iterable[Sentence], File], None]
    unnamed: bool = False


TABLE: dict[str, Format] = {
    found.name: found
    for found in (
        Format("conll", (".tsv", ".conll"), 3, conll.looks, conll.opened, conll.write_conll, unnamed=True),
        Format("conllu", (".conllu",), 2, conllu.looks, conllu.opened, conllu.write_conllu),
        Format(jsonl.NAME, (".jsonl", ".ndjson"), 1, jsonl.looks, jsonl.opened, jsonl.write_jsonl),
        Format("text", (), 4, pretokenized.looks, pretokenized.opened, pretokenized.write_text),
        Format(
            span_jsonl.NAME,
            (".jsonl", ".ndjson"),
            0,
            span_jsonl.looks,
            span_jsonl.opened,
            span_jsonl.write_spans,
        ),
        Format(raw_text.NAME, (), 5, raw_text.looks, raw_text.opened, raw_text.write_raw),
    )
}
FORMATS = tuple(TABLE)
#: The format of what tells nothing.
DEFAULT = "conll"

_COMPRESSED = (".gz", ".xz", ".bz2")


def formats_of_name(name: str) -> tuple[str, ...]:
    """The formats that have a file's ending; none where it tells nothing (.txt, stdin)."""
    stem, ending = os.path.splitext(name.lower())
    if ending in _COMPRESSED:
        ending = os.path.splitext(stem)[1]
    return tuple(found.name for found in TABLE.values() if ending in found.endings)


def format_of_name(name: str) -> str | None:
    """The format that a file's ending tells, None where it tells nothing (.txt, stdin)."""
    return next(iter(formats_of_name(name)), None)


def format_of_text(head: str, among: Sequence[str] = ()) -> str:
    """The format that the first lines of a text look like, of all there are or `among` some; the first of these, or
    CoNLL columns, in doubt.

    >>> format_of_text("a NN\\nb VB\\n\\n"), format_of_text("a b c\\nd e\\n")
    ('conll', 'text')
    """
    rows = data_lines(head)
    asked = [TABLE[name] for name in among or FORMATS]
    by_turn = sorted(asked, key=lambda found: found.turn)
    doubt = among[0] if among else DEFAULT
    return next((found.name for found in by_turn if rows and found.looks(head, rows)), doubt)


def _check_format(format: str | None) -> None:
    if format is not None and format not in TABLE:
        raise CorpusError(f"format={format!r} is unknown. Use one of {', '.join(FORMATS)}.")


def iter_sentences(
    file: File,
    format: str | None = None,
    *,
    columns: Sequence[str] | None = None,
    label: str | None = "label",
    encoding: str = "utf-8",
    optional_label: bool = False,
    raw: Raw | None = None,
    among: Sequence[str] = (),
) -> tuple[str, Iterator[Sentence]]:
    """The format of a file and its sentences, one at a time; None: by its ending, else by its first lines.

    In CoNLL-U ``label="label"`` stands for upos. `raw` is given the lines as they stand; `among`: what it may be.
    """
    _check_format(format)
    given = (columns, label)
    names, label = check_columns(*given)
    name, chunks = open_text(file, encoding, None if raw is None else raw.append)
    among = among or formats_of_name(name)
    if format is None and len(among) == 1:
        format = among[0]
    if format is None:
        head = ""
        for chunk in chunks:  # a pipe may give a line at a time: go on until the format shows
            head += chunk
            rows = data_lines(head)
            if len(head) > 4096 or (
                rows and (among or "\t" in rows[0] or rows[0][0] == "{" or "\n\n" in head.lstrip())
            ):
                break
        format = format_of_text(head, among)
        if format == "text" and columns is not None and len(columns) > 1:
            format = DEFAULT  # text has no columns to be named
        doubt = conll.ragged(head) if format == "text" else None
        if doubt is not None:
            line, row, k = doubt
            n = row.count(" ") + 1
            fail(
                name,
                line,
                f"{n} column{'s' * (n != 1)} in {shown(row)} where most of the first lines have {k}, "
                "so this is neither text nor columns",
                "Give every token the same columns, or say what the file is: format='conll' or format='text' "
                "(--format on the command line).",
            )
        chunks = itertools.chain([head] if head else [], chunks)
    if format == jsonl.NAME:  # its keys stand for columns
        names, label = check_columns(*jsonl.own_names(*given))
    return format, TABLE[format].sentences(Opened(name, chunks, names, label, optional_label, raw))


def read(
    file: File,
    format: str | None = None,
    *,
    columns: Sequence[str] | None = None,
    label: str | None = "label",
    encoding: str = "utf-8",
    optional_label: bool = False,
) -> Corpus:
    r"""A whole file of any format as a Corpus; the format by its ending or its contents unless given.

    >>> import io
    >>> read(io.StringIO("a\tDT\ndog\tNN\n"), "conll").labels
    [['DT', 'NN']]
    """
    _, sentences = iter_sentences(
        file, format, columns=columns, label=label, encoding=encoding, optional_label=optional_label
    )
    return collect(sentences, file, columns, label)


def write(sentences: Iterable[Sentence], file: File, format: str | None = None) -> None:
    r"""Write sentences in a format, by the file's ending unless given; CoNLL columns in doubt.

    >>> from pathlib import Path
    >>> import tagwise as tw
    >>> write([tw.Sentence({"word": ["a", "dog"], "label": ["DT", "NN"]}, "label")], "two.jsonl")
    >>> Path("two.jsonl").read_text()
    '{"tokens": ["a", "dog"], "labels": ["DT", "NN"]}\n'
    """
    _check_format(format)
    TABLE[format or format_of_name(source_name(file)) or DEFAULT].write(sentences, file)
