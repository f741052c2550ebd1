"""CoNLL-U: ten columns separated by tabs, with multiword tokens, empty nodes and comments."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NoReturn

from tagwise.base.exceptions import CorpusError
from tagwise.base.parameters import meant
from tagwise.corpus.columns import OpenFile
from tagwise.corpus.row_blocks import StringCache, blocks, doc_of, tidy_tabs
from tagwise.corpus.sentence import Sentence
from tagwise.corpus.streams import (
    File,
    check_size,
    fail,
    limit,
    refuse_breaks,
    shown,
    writer,
)

CONLLU_COLUMNS = ("word", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")

_UNSHARED = frozenset(("head", "deps", "misc"))  # short, or rarely repeated

_RANGE = re.compile(r"([1-9][0-9]{0,8})-([1-9][0-9]{0,8})$", re.ASCII)
_EMPTY_NODE = re.compile(r"(0|[1-9][0-9]{0,8})\.([1-9][0-9]{0,8})$", re.ASCII)


def detect(head: str, rows: list[str]) -> bool:
    """Return whether the first line with a token has ten cells, the first of them a number."""
    cells = next((row for row in rows if row[0] != "#"), "").split("\t")  # a comment may contain tabs
    return len(cells) == 10 and cells[0].replace("-", "").replace(".", "").isdecimal()


def own_names(columns: Sequence[str] | None, label: str | None) -> tuple[Sequence[str] | None, str | None]:
    """Translate the default label column ``label`` to upos, if that is read.

    >>> own_names(None, "label"), own_names(("word", "upos"), "label"), own_names(("word", "xpos"), "xpos")
    ((None, 'upos'), (('word', 'upos'), 'upos'), (('word', 'xpos'), 'xpos'))
    """
    return columns, "upos" if label == "label" and (columns is None or "upos" in columns) else label


def iter_open(file: OpenFile) -> Iterator[Sentence]:
    """Return the sentences of an open file.

    Sentences keep their comments, multiword tokens (``3-4``) and empty nodes (``5.1``), and `write_conllu` writes
    them back. ``# newdoc`` begins a document.
    """
    names, label = file.columns, file.label
    requested = dict.fromkeys((*(names or ()), *((label,) if label else ())))
    wrong = [n for n in requested if n not in CONLLU_COLUMNS]
    if wrong:
        raise CorpusError(
            f"CoNLL-U has no column {wrong[0]!r}{meant(wrong[0], CONLLU_COLUMNS)}. Its columns are "
            f"{', '.join(CONLLU_COLUMNS)}."
        )
    return conllu_sentences(file.name, file.chunks, names or CONLLU_COLUMNS, label)


def conllu_sentences(
    name: str, chunks: Iterator[str], names: tuple[str, ...], label: str | None
) -> Iterator[Sentence]:
    shared = StringCache()
    places = [(n, 1 + CONLLU_COLUMNS.index(n)) for n in names]
    ids: list[str] = []
    pending: list[str] = []
    doc: str | None = None
    held, most = 0, limit("TAGWISE_MAX_SENTENCE")
    for line, block in blocks(name, chunks, tidy_tabs):
        begin = 0
        while block.startswith("#", begin):
            end = block.find("\n", begin)
            comment = block[begin : end if end >= 0 else len(block)]
            doc = doc_of(comment, doc)
            pending.append(comment)
            begin += len(comment) + 1
            line += 1
        if begin:
            held += begin
            check_size(name, line, held, most)
            block = block[begin:]
        if not block:
            continue
        # One split yields all cells, with line ends as separate cells (see conll.Columns.sentence).
        cells = block.replace("\n", "\t\n\t").split("\t")
        n = block.count("\n") + 1
        if len(cells) != 11 * n - 1 or cells[10::11].count("\n") != n - 1 or "" in cells:
            _bad_conllu_block(name, line, block.split("\n"))
        if len(ids) < n:
            ids = list(map(str, range(1, 2 * n + 1)))
        extra: tuple[tuple[int, str], ...] = ()
        if cells[0::11] == ids[:n]:
            fields = {}
            for column, i in places:
                values = cells[i::11]
                plain = column in _UNSHARED or values.count("_") == n
                fields[column] = values if plain else shared.column(values)
        else:
            tokens, extra = _split_rows(name, line, block.split("\n"))
            fields = {column: shared.column([row[i] for row in tokens]) for column, i in places}
        refuse_breaks(name, fields.get(label or ""), line)
        yield Sentence(fields, label, comments=tuple(pending), doc=doc, line=line, rows=extra)
        pending, doc, held = [], None, 0


def _bad_conllu_block(name: str, line: int, lines: list[str]) -> NoReturn:
    """Raise a CorpusError for the first malformed row of a block."""
    for i, text in enumerate(lines):
        cells = text.split("\t")
        if len(cells) != 10 or "" in cells:
            _bad_conllu_row(name, line + i, text, cells)
    raise AssertionError(f"{name}:{line}: the rows are valid, but the sentence is not")


def _bad_conllu_row(name: str, line: int, text: str, cells: list[str]) -> NoReturn:
    if text[0] == "#":
        fail(
            name,
            line,
            f"a comment inside a sentence: {shown(text)}",
            "Write comments before the tokens of the sentence.",
        )
    if len(cells) != 10:
        fail(
            name,
            line,
            f"{len(cells)} column{'s' * (len(cells) != 1)} in {shown(text)}, "
            "expected the 10 of CoNLL-U separated by tabs",
            "Give all ten (_ for no value), or read the file with format='conll'.",
        )
    column = ("id", *CONLLU_COLUMNS)[cells.index("")]
    fail(name, line, f"an empty value in column {column} of {shown(text)}", "Write _ for a missing value.")


def _split_rows(
    name: str, line: int, lines: list[str]
) -> tuple[list[list[str]], tuple[tuple[int, str], ...]]:
    """Return the rows of tokens, and the other rows, each with the index of the token that follows it."""
    tokens: list[list[str]] = []
    extra: list[tuple[int, str]] = []
    last_range, last_empty, range_line = 0, (0, 0), line
    for i, text in enumerate(lines):
        row = text.split("\t")
        key, n = row[0], len(tokens)
        if key == str(n + 1):
            tokens.append(row)
            continue
        span, node = _RANGE.match(key), _EMPTY_NODE.match(key)
        if span and int(span[1]) == n + 1 and int(span[2]) >= n + 1 and n >= last_range:
            last_range, range_line = int(span[2]), line + i
        elif node and int(node[1]) == n and (n, int(node[2])) > last_empty:
            last_empty = (n, int(node[2]))
        else:
            fail(
                name,
                line + i,
                f"id {shown(key)} after token {n}",
                f"Number the tokens of each sentence 1, 2, ... (here {n + 1}). A multiword token is "
                f"{n + 1}-{n + 2}, an empty node {n}.1. Write a blank line between sentences.",
            )
        extra.append((n, text))
    if last_range > len(tokens):
        fail(
            name,
            range_line,
            f"a multiword token up to {last_range} in a sentence of {len(tokens)} tokens",
            "End its range at a token of the sentence.",
        )
    if not tokens:
        fail(name, line, "a sentence without tokens", "Give at least one row with the id 1.")
    return tokens, tuple(extra)


def format_conllu(sentence: Sentence, *, label_column: str = "upos") -> str:
    """Return a sentence as CoNLL-U text, including its blank line.

    Columns that CoNLL-U does not have are dropped, and missing columns are ``_``. A label column with another name
    is written to ``label_column``.
    """
    if label_column not in CONLLU_COLUMNS:
        raise CorpusError(
            f"label_column={label_column!r} is not a column of CoNLL-U{meant(label_column, CONLLU_COLUMNS)}. "
            f"Use one of {', '.join(CONLLU_COLUMNS)}."
        )
    T = len(sentence)
    if not T:
        raise CorpusError(
            "a CoNLL-U file cannot contain a sentence without tokens. Remove it, or write JSONL."
        )
    fields = dict(sentence.fields)
    fields.setdefault("word", sentence.tokens)
    if sentence.label is not None and sentence.label not in CONLLU_COLUMNS:
        fields[label_column] = sentence.labels
    cols = [fields.get(name) or ["_"] * T for name in CONLLU_COLUMNS]
    for name, values in zip(CONLLU_COLUMNS, cols):
        for t, value in enumerate(values):
            if not value or value[0] == " " or value[-1] == " " or any(c in value for c in "\t\n\r\0"):
                raise CorpusError(
                    f"token {t}: {name} is {shown(value)}, which a CoNLL-U file cannot contain. "
                    "Replace it (_ for no value), or write JSONL, which can contain any text."
                )
    out = [f"{t}\t" + "\t".join(cells) for t, cells in enumerate(zip(*cols), 1)]
    for at, row in reversed(sentence.rows):
        out.insert(at, row)
    comments = list(sentence.comments)
    if sentence.doc is not None and not any(doc_of(c, None) is not None for c in comments):
        comments.insert(0, f"# newdoc id = {sentence.doc}" if sentence.doc else "# newdoc")
    return "\n".join([*comments, *out]) + "\n\n"


def write_conllu(sentences: Iterable[Sentence], file: File, *, label_column: str = "upos") -> None:
    r"""Write sentences as CoNLL-U.

    Columns that CoNLL-U does not have are dropped, and missing columns are ``_``.

    Args:
        sentences: Corpus or iterable of Sentence.
        file: path, '-' or open file. '-' means stdout. A file at a path appears only when it is complete. The
            extensions .gz, .xz and .bz2 compress it.
        label_column: str, default="upos". Column for labels whose own column is not part of CoNLL-U. Use "xpos" for
            language-specific tags.

    Raises:
        CorpusError: ``label_column`` is not a column of CoNLL-U, a value cannot be written in this format, or the
            file cannot be written.

    >>> from pathlib import Path
    >>> import tagwise as tw
    >>> write_conllu([tw.Sentence({"word": ["dog"], "label": ["NOUN"]}, "label")], "one.conllu")
    >>> Path("one.conllu").read_text().split("\t")[:4]
    ['1', 'dog', '_', 'NOUN']
    """
    with writer(file) as write:
        for s in sentences:
            write(format_conllu(s, label_column=label_column))
