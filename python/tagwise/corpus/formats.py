"""JSONL and plain tokens, and reading or writing a file of any format by its name and contents."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from tagwise.corpus.conll import DOCSTART, Columns, check_columns, conll_sentences, data_lines, write_conll
from tagwise.corpus.conllu import CONLLU_COLUMNS, conllu_sentences, write_conllu
from tagwise.corpus.sentence import Corpus, Sentence
from tagwise.corpus.streams import File, fail, open_text, shown, source_name, writer
from tagwise.errors import CorpusError

FORMATS = ("conll", "conllu", "jsonl", "text")

_TO_COLUMN = {"tokens": "word", "words": "word", "labels": "label", "tags": "label"}
_TO_KEY = {"word": "tokens", "label": "labels"}
_ENDINGS = {".conllu": "conllu", ".jsonl": "jsonl", ".ndjson": "jsonl", ".tsv": "conll", ".conll": "conll"}
_COMPRESSED = (".gz", ".xz", ".bz2")


def iter_jsonl(
    file: File, columns: Sequence[str] | None = None, label: str | None = "label", *, encoding: str = "utf-8"
) -> Iterator[Sentence]:
    """Sentences of a JSONL file, one object a line: ``{"tokens": [...], "labels": [...], "pos": [...]}``.

    ``tokens`` (or ``words``) is the column word, ``labels`` (or ``tags``) the column label; any other array
    with one string a token is a column of its name. Other keys are kept with the sentence; ``newdoc`` begins
    a document. A line may also be just an array of tokens. ``columns`` names those wanted; None: those of
    the first line.
    """
    names, label = check_columns(columns, label)
    name, chunks = open_text(file, encoding)
    return _jsonl(name, chunks, names, label)


def _lines(chunks: Iterator[str]) -> Iterator[tuple[int, str]]:
    """Non-blank lines with their numbers."""
    number = 0
    for chunk in chunks:
        for line in chunk[:-1].split("\n"):
            number += 1
            line = line.strip(" \t")
            if line:
                yield number, line


def _is_column(value: object, size: int) -> bool:
    return isinstance(value, list) and len(value) == size and all(isinstance(v, str) for v in value)


def _jsonl(
    name: str, chunks: Iterator[str], names: tuple[str, ...] | None, label: str | None
) -> Iterator[Sentence]:
    example = 'Write {"tokens": ["..."], "labels": ["..."]}, one object a line'
    for line, text in _lines(chunks):
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
            rest = [k for k, v in found.items() if k not in ("word", label) and _is_column(v, size)]
            label = label if label in found else None
            names = ("word", *rest) if label is None else ("word", *rest, label)
        kept = [n for n in names if n != "_"]
        size = -1
        for column in kept:
            values = found.get(column)
            key = next((k for k in value if _TO_COLUMN.get(k, k) == column), _TO_KEY.get(column, column))
            if not isinstance(values, list):
                was = "missing" if column not in found else f"{shown(json.dumps(values))}, not an array"
                fail(
                    name, line, f"{key!r} is {was}", f"{example}, with the columns {', '.join(kept)} in each."
                )
            size = len(values) if size < 0 else size
            if len(values) != size:
                fail(
                    name,
                    line,
                    f"{len(values)} values of {key!r} for {size} tokens",
                    "Give one value a token, or name the columns of the file with columns=(...).",
                )
            for t, v in enumerate(values):
                if not isinstance(v, str) or not v:
                    what = (
                        "an empty label"
                        if v == "" and column == label
                        else f"{shown(json.dumps(v))} in {key!r}"
                    )
                    fail(name, line, f"{what} at token {t}", "Give a string that is not empty.")
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
        yield Sentence(fields, label, comments=tuple(comments), doc=begins, line=line, meta=meta)


def read_jsonl(
    file: File, columns: Sequence[str] | None = None, label: str | None = "label", *, encoding: str = "utf-8"
) -> Corpus:
    """A whole JSONL file as a Corpus; the arguments are those of iter_jsonl."""
    return _collect(iter_jsonl(file, columns, label, encoding=encoding), file, columns, label)


def _collect(
    sentences: Iterator[Sentence], file: File, columns: Sequence[str] | None, label: str | None
) -> Corpus:
    names = [n for n in check_columns(columns, label)[0] or () if n != "_"]
    return Corpus(sentences, columns=names, label=label if label in names else None, source=source_name(file))


def format_jsonl(sentence: Sentence) -> str:
    """A sentence as one line of JSON, its newline included."""
    value: dict[str, Any] = {_TO_KEY.get(name, name): values for name, values in sentence.fields.items()}
    if sentence.doc is not None:
        value["newdoc"] = sentence.doc
    if sentence.comments:
        value["comments"] = list(sentence.comments)
    for key, v in (sentence.meta or {}).items():
        value.setdefault(key, v)
    return json.dumps(value, ensure_ascii=False) + "\n"


def write_jsonl(sentences: Iterable[Sentence], file: File) -> None:
    """Write sentences as JSONL; ``file`` as in write_conll."""
    with writer(file) as write:
        for s in sentences:
            write(format_jsonl(s))


def iter_text(file: File, *, encoding: str = "utf-8") -> Iterator[Sentence]:
    """Unlabelled sentences of a text with one sentence a line, its tokens separated by spaces."""
    _, chunks = open_text(file, encoding)
    return _text(chunks)


def _text(chunks: Iterator[str]) -> Iterator[Sentence]:
    for number, line in _lines(chunks):
        if "\t" in line:
            line = line.replace("\t", " ")
        words = line.split(" ")
        if "" in words:
            words = [w for w in words if w]
        yield Sentence({"word": words}, line=number)


def read_text(file: File, *, encoding: str = "utf-8") -> Corpus:
    """A whole text file of tokens as an unlabelled Corpus."""
    return Corpus(iter_text(file, encoding=encoding), columns=("word",), source=source_name(file))


def format_text(sentence: Sentence, *, join: str | None = None) -> str:
    """A sentence as a line of tokens separated by spaces; with ``join="/"`` as word/label."""
    values = sentence.tokens
    if join is not None:
        values = [f"{w}{join}{y}" for w, y in zip(values, sentence.labels)]
    text = " ".join(values)
    if not values or text.count(" ") != len(values) - 1 or "" in values or any(c in text for c in "\t\n\r\0"):
        raise CorpusError(
            f"{shown(text)}: a token that is empty or has a space or line end in it cannot stand "
            "in a line of tokens. "
            "Replace it, or write JSONL, which holds any text."
        )
    return text + "\n"


def write_text(sentences: Iterable[Sentence], file: File, *, join: str | None = None) -> None:
    """Write sentences as lines of tokens; ``file`` as in write_conll."""
    with writer(file) as write:
        for s in sentences:
            write(format_text(s, join=join))


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
        if isinstance(value, dict) or _is_column(value, len(value) if isinstance(value, list) else -1):
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
        return format, _jsonl(name, chunks, names, label)
    return format, _text(chunks)


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
    return _collect(sentences, file, columns, label)


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
