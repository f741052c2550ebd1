"""Table of corpus formats, and reading and writing with automatic detection of the format."""

from __future__ import annotations

import inspect
import itertools
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tagwise.base.exceptions import CorpusError
from tagwise.base.parameters import meant
from tagwise.corpus import conll, conllu, jsonl, parquet, pretokenized, tables
from tagwise.corpus.columns import OpenFile, check_columns
from tagwise.corpus.conll import data_lines
from tagwise.corpus.json_arrays import array_lines, is_array
from tagwise.corpus.row_checks import checked_rows, logger
from tagwise.corpus.sentence import Corpus, Sentence
from tagwise.corpus.sentence_rows import own_names
from tagwise.corpus.source_lines import Raw
from tagwise.corpus.streams import File, fail, open_text, shown, source_name
from tagwise.corpus.table_cells import has_header
from tagwise.corpus.text import doccano, label_studio, prodigy, raw_text, span_jsonl


@dataclass(frozen=True)
class CorpusFormat:
    """A corpus format.

    Attributes:
        name: Name of the format.
        endings: File extensions. The first format with an extension is used to write such files.
        priority: Position in the order in which detection tries the formats.
        detect: Returns whether a text has this format, given its first lines and those of them that hold tokens.
        sentences: Returns the sentences of an open file. Its keyword arguments are the options for reading.
        write: Writes sentences to a file. Its keyword arguments are the options for writing.
        unnamed: Whether the columns of a file have no names.
        columns: Columns of a file without sentences.
        binary: Whether a file is not text.
    """

    name: str
    endings: tuple[str, ...]
    priority: int
    detect: Callable[[str, list[str]], bool]
    sentences: Callable[..., Iterator[Sentence]]
    write: Callable[..., None]
    unnamed: bool = False
    columns: tuple[str, ...] = ()
    binary: bool = False


_LINES = ".jsonl .ndjson .json"
_TEXT = ("word", "label")


def _format(
    name: str, endings: str, priority: int, module: Any, write: Callable[..., None], **more: Any
) -> CorpusFormat:
    """Return the format of a module. `endings` are separated by spaces."""
    return CorpusFormat(
        name, tuple(endings.split()), priority, module.detect, module.iter_open, write, **more
    )


TABLE: dict[str, CorpusFormat] = {
    found.name: found
    for found in (
        _format("conll", ".tsv .conll", 7, conll, conll.write_conll, unnamed=True),
        _format("conllu", ".conllu", 6, conllu, conllu.write_conllu, columns=conllu.CONLLU_COLUMNS),
        _format(tables.NAME, ".csv .tsv", 5, tables, tables.write_csv),
        _format(label_studio.NAME, ".json", 1, label_studio, label_studio.write_label_studio, columns=_TEXT),
        _format(jsonl.NAME, _LINES, 4, jsonl, jsonl.write_jsonl),
        _format(parquet.NAME, ".parquet", 10, parquet, parquet.write_parquet, binary=True),
        _format("text", "", 8, pretokenized, pretokenized.write_text, columns=("word",)),
        _format(span_jsonl.NAME, _LINES, 3, span_jsonl, span_jsonl.write_spans, columns=_TEXT),
        _format(doccano.NAME, _LINES, 2, doccano, doccano.write_doccano, columns=_TEXT),
        _format(prodigy.NAME, _LINES, 0, prodigy, prodigy.write_prodigy, columns=_TEXT),
        _format(raw_text.NAME, "", 9, raw_text, raw_text.write_raw, columns=("word",)),
    )
}
FORMATS = tuple(TABLE)
#: Label of a token without a label.
UNKNOWN = "_"
#: Format of files that neither the extension nor the contents identify.
DEFAULT = "conll"
HEAD = 4096  # characters at the beginning of a file that are read at most to detect its format

#: Translations of requested columns and labels: keys of files with rows, the default label column of CoNLL-U.
_OWN_NAMES = {"conllu": conllu.own_names, jsonl.NAME: own_names, parquet.NAME: own_names}
COMPRESSED = (".gz", ".xz", ".bz2")
#: Extensions of files that other programs could not open if they had columns of text.
_FOREIGN = (
    *(".doc", ".docx", ".odt", ".rtf", ".pdf", ".xls", ".xlsx", ".ods", ".zip", ".tar", ".html", ".htm"),
    *(".xml", ".yaml", ".yml", ".pickle", ".pkl", ".npy", ".npz", ".db", ".sqlite", ".py", ".tagwise"),
)
#: Training data of spaCy 2: pairs of a text and its entities, also as a member of an object, as annotation tools write.
_SPACY = re.compile(r'\s*(?:\{.*"annotations"\s*:\s*)?\[\s*(?:\[\s*)?"(?:[^"\\]|\\.)*"\s*,\s*\{\s*"entities"')


def _ending(name: str) -> str:
    """Return the extension of a file name, without that of a compressed file."""
    stem, ending = os.path.splitext(name.lower())
    return os.path.splitext(stem)[1] if ending in COMPRESSED else ending


def formats_of_name(name: str) -> tuple[str, ...]:
    """Return the formats with the extension of a file name. The tuple is empty for .txt and stdin."""
    ending = _ending(name)
    return tuple(found.name for found in TABLE.values() if ending in found.endings)


def format_of_name(name: str) -> str | None:
    """Return the format for the extension of a file name, or None (.txt, stdin)."""
    return next(iter(formats_of_name(name)), None)


def format_to_write(name: str) -> str:
    """Return the format in which a file is written: that of its extension, or CoNLL columns for .txt and stdout.

    Raises:
        CorpusError: The extension is that of another program.
    """
    found = format_of_name(name)
    if found is None and (ending := _ending(name)) in _FOREIGN:
        known = sorted({known for one in TABLE.values() for known in one.endings} | {".txt"})
        raise CorpusError(f"{name}: tagwise does not write {ending} files. Use one of {', '.join(known)}.")
    return found or DEFAULT


def format_of_text(head: str, among: Sequence[str] = ()) -> str:
    """Detect the format of a text from its first lines.

    `among` restricts the candidates. If no candidate matches, the result is the first of `among`, or CoNLL columns.

    >>> format_of_text("a NN\\nb VB\\n\\n"), format_of_text("It is late .\\nGo !\\n"), format_of_text("It is late.\\n")
    ('conll', 'text', 'raw')
    """
    rows = data_lines(head)
    candidates = sorted((TABLE[name] for name in among or FORMATS), key=lambda found: found.priority)
    fallback = among[0] if among else DEFAULT
    return next((found.name for found in candidates if rows and found.detect(head, rows)), fallback)


def _check_format(format: str | None) -> None:
    if format is not None and format not in TABLE:
        raise CorpusError(
            f"format={format!r} is unknown{meant(str(format), FORMATS)}. Use one of {', '.join(FORMATS)}."
        )


def _options_of(function: Callable[..., Any]) -> list[str]:
    """Return the names of the keyword arguments of a reader or writer."""
    parameters = inspect.signature(function).parameters.values()
    return [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]


def _check_options(format: str, options: Mapping[str, Any], role: Callable[[CorpusFormat], Any]) -> None:
    """Raise a CorpusError if the reader or writer of a format, selected by `role`, lacks one of the options."""
    known = _options_of(role(TABLE[format]))
    for name in options:
        if name in known:
            continue
        others = [found.name for found in TABLE.values() if name in _options_of(role(found))]
        remedy = f"Pass format={' or format='.join(map(repr, others))}" if others else "Drop it"
        own = f"Its options are {', '.join(known)}" if known else "It has no options of its own"
        raise CorpusError(f"format={format!r} has no option {name!r}{meant(name, known)}. {own}. {remedy}.")


def open_sentences(
    file: File,
    format: str | None = None,
    *,
    columns: Sequence[str] | None = None,
    label: str | None = "label",
    encoding: str | None = None,
    optional_label: bool = False,
    raw: Raw | None = None,
    among: Sequence[str] = (),
    options: Mapping[str, Any] | None = None,
) -> tuple[str, Iterator[Sentence]]:
    """Return the format of a file, and an iterator over its sentences.

    If `format` is None, the extension determines it, or else the first lines do. `among` restricts the candidates.
    In CoNLL-U, ``label="label"`` means upos. `raw` receives the unmodified lines. `options` are those of the format.
    """
    _check_format(format)
    name = source_name(file)
    among = among or formats_of_name(name)
    if format is None and len(among) == 1:
        format = among[0]
    if format is not None and TABLE[format].binary:
        chunks: Iterator[str] = iter(())
    else:
        chunks = _open_chunks(file, encoding, raw)
    if format is None:
        format, chunks = _detected(name, chunks, among, columns)
    if format in _OWN_NAMES:
        columns, label = _OWN_NAMES[format](columns, label)
    names, label = check_columns(columns, label)
    _check_options(format, options or {}, lambda found: found.sentences)
    opened = OpenFile(name, chunks, names, label, optional_label, raw, file)
    sentences = TABLE[format].sentences(opened, **(options or {}))
    return format, checked_rows(name, sentences) if format in ("conll", tables.NAME) else sentences


def _open_chunks(file: File, encoding: str | None, raw: Raw | None) -> Iterator[str]:
    """Return the text of a file in chunks of whole lines. The elements of a JSON array become lines.

    `raw` receives the lines of the file, or those of the elements.
    """
    held: list[str] = []
    send: Callable[[str], Any] = held.append
    name, chunks = open_text(file, encoding, None if raw is None else lambda text: send(text))
    head = ""
    while len(head) <= HEAD and head.strip() in ("", "[") and (more := next(chunks, "")):
        head += more
    chunks = itertools.chain([head] if head else [], chunks)
    keep = (lambda _: None) if raw is None else raw.append
    if not is_array(head):
        for text in held:
            keep(text)
        send = keep
        return chunks
    send = lambda _: None  # noqa: E731
    return _passed(array_lines(name, chunks), keep)


def _passed(lines: Iterator[str], keep: Callable[[str], Any]) -> Iterator[str]:
    """Yield text after calling `keep` with it."""
    for text in lines:
        keep(text)
        yield text


def _detected(
    name: str, chunks: Iterator[str], among: Sequence[str], columns: Sequence[str] | None
) -> tuple[str, Iterator[str]]:
    """Return the format that the first lines of a text have, and the text."""
    head = ""
    rows: list[str] = []
    for chunk in chunks:  # a pipe may deliver one line at a time: read until the format is clear
        head += chunk
        rows = data_lines(head)
        if len(head) > HEAD or (
            rows and (among or "\t" in rows[0] or rows[0][0] == "{" or "\n\n" in head.lstrip())
        ):
            break
    if _SPACY.match(head):
        fail(
            name,
            1,
            "pairs of a text and its entities, as spaCy 2 has them",
            'Write one object per text, such as {"text": "In Oslo", "label": [[3, 7, "LOC"]]}.',
        )
    format = format_of_text(head, among)
    plain = format in ("text", raw_text.NAME)
    declared = check_columns(columns, None)[0]
    if declared is not None and (plain or format == "conll") and has_header(head, declared):
        format, plain = tables.NAME, False
    if plain and declared is not None and len(declared) > 1:
        format = DEFAULT  # text has only one column
    doubt = conll.ragged(head) if plain and not among and not conll.is_prose(rows) else None
    if doubt is not None:
        line, row, k = doubt
        n = row.count(" ") + 1
        fail(
            name,
            line,
            f"{n} column{'s' * (n != 1)} in {shown(row)}, but most of the first lines have {k}, "
            "so this is neither text nor columns",
            "Give every token the same columns, or name the format: format='conll', format='text' or format='raw'.",
        )
    return format, itertools.chain([head] if head else [], chunks)


def iter_sentences(
    file: File,
    format: str | None = None,
    *,
    columns: Sequence[str] | None = None,
    label: str | None = "label",
    encoding: str | None = None,
    optional_label: bool = False,
    **options: Any,
) -> Iterator[Sentence]:
    r"""Iterate over the sentences of a corpus file of any format, without holding the file in memory.

    Args:
        file: path, '-' or open file. '-' means stdin. Compression (gz, xz, bz2) is detected from the contents.
        format: str or None, default=None. Name of a format, as listed in `read`. None means detection by the file
            extension and the first lines. Set it if the detection is wrong.
        columns: sequence of str or None, default=None. Column names, as in `read`.
        label: str or None, default="label". Name of the label column, for which CoNLL-U uses upos by default. Use
            None for unlabelled sentences.
        encoding: str or None, default=None. Encoding such as "latin-1". None means UTF-8, or
            UTF-16 and UTF-32 by their byte order mark.
        optional_label: bool, default=False. Accept a CoNLL file that lacks the label column, as in `read`.
        options: Options of the format, as in `read`.

    Returns:
        An iterator over `Sentence` objects.

    Raises:
        CorpusError: An argument is not valid, the format has no such option, or the file cannot be read or is not valid
            in its format. Errors in the file are raised during iteration and include the line number.

    >>> import io
    >>> [sentence.labels for sentence in iter_sentences(io.StringIO("EU NNP B-ORG\n\nHi UH O\n"), "conll")]
    [['B-ORG'], ['O']]
    """
    return open_sentences(
        file,
        format,
        columns=columns,
        label=label,
        encoding=encoding,
        optional_label=optional_label,
        options=options,
    )[1]


def read(
    file: File,
    format: str | None = None,
    *,
    columns: Sequence[str] | None = None,
    label: str | None = "label",
    encoding: str | None = None,
    optional_label: bool = False,
    **options: Any,
) -> Corpus:
    r"""Read a corpus file of any format.

    - "conll": one token per line with its columns, a blank line between sentences. A ``-DOCSTART-`` row begins a
      document.
    - "conllu": CoNLL-U. Sentences keep comments, multiword tokens (``3-4``) and empty nodes (``5.1``).
    - "csv": a table with one token per row, separated by tabs, commas, semicolons or bars, with or without a header
      and quotes. A column such as ``Sentence #`` or ``sentence_id``, or else blank rows, separate sentences.
    - "jsonl": one sentence per line, such as ``{"tokens": [...], "labels": [...], "pos": [...]}`` or an array of
      tokens. Every array with one string per token is a column. Other keys are kept in ``Sentence.meta``. Without
      ``labels``, the only member with a usual name such as ``ner_tags`` holds the labels.
    - "parquet": rows with the columns of "jsonl", as Hugging Face datasets store them. Needs pyarrow.
    - "text": one sentence per line, tokens separated by spaces.
    - "spans": one text per line with offsets in characters, such as
      ``{"text": "In Oslo", "spans": [{"start": 3, "end": 7, "label": "LOC"}]}``.
    - "doccano": JSONL of doccano, ``{"text": "In Oslo", "label": [[3, 7, "LOC"]]}``.
    - "label-studio": JSON of Label Studio with texts and spans.
    - "prodigy": JSONL of Prodigy with texts, tokens and spans. Rejected and ignored texts are skipped.
    - "raw": one text per line, not tokenized.

    Plain text is read as "text" if punctuation stands alone, as in tokenized text, and as "raw" otherwise. Formats of
    JSON lines also accept an array of the objects.

    Args:
        file: path, '-' or open file. '-' means stdin. Compression (gz, xz, bz2) is detected from the contents.
        format: str or None, default=None. Name of a format, as listed in `read`. None means detection by the file
            extension and the first lines. Set it if the detection is wrong.
        columns: sequence of str or None, default=None. Names of the columns to keep. For CoNLL one name per column of
            the file, '_' to skip a column. None means all columns, which for CoNLL are word, pos, chunk, col4, ... with
            the label last. Name fewer to save memory.
        label: str or None, default="label". Name of the label column, for which CoNLL-U uses upos by default. Use
            None for unlabelled sentences.
        encoding: str or None, default=None. Encoding such as "latin-1". None means UTF-8, or
            UTF-16 and UTF-32 by their byte order mark.
        optional_label: bool, default=False. Accept a CoNLL file that lacks the label column, if that is the last of
            ``columns``, and texts with spans of which only some are labelled. The tokens of the others get the label
            "_", and predictions of Label Studio and spans of Prodigy without an answer are kept as spans of tokens in
            ``meta["proposed"]``. Set it to read labelled and unlabelled files alike.
        options: Options of the format.
            "conll": `separator` is a tab, or ' ' for runs of spaces and tabs, detected by default. `comments` is
            whether lines that begin with # and have no tab are comments, by default if columns are separated by tabs.
            "csv": `separator` is a single character, detected by default.
            "jsonl" and "parquet": `label_names` are the names of labels that are numbers in the file.
            "spans", "doccano", "label-studio", "prodigy" and "raw": `tokenizer` is a `Tokenizer` or a function that
            maps a text to its tokens.
            All of these but "raw": `scheme` is the label scheme, "IOB2" by default, or "token" if every token has a
            span of its own. `misaligned` is the treatment of spans that do not begin and end at tokens: "error" (the
            default), "expand", "shrink" or "drop".

    Returns:
        A `Corpus`. A text of "spans" or "raw" may be several of its sentences. A file without sentences is reported
        by a warning.

    Raises:
        CorpusError: An argument is not valid, the format has no such option, or the file cannot be read or is not valid
            in its format.

    >>> import io
    >>> read(io.StringIO("a\tDT\ndog\tNN\n"), "conll").labels
    [['DT', 'NN']]
    >>> read(io.StringIO("It's late. Go!"), "raw", tokenizer=str.split).tokens
    [["It's", 'late.', 'Go!']]
    """
    format, sentences = open_sentences(
        file,
        format,
        columns=columns,
        label=label,
        encoding=encoding,
        optional_label=optional_label,
        options=options,
    )
    if format in _OWN_NAMES:
        columns, label = _OWN_NAMES[format](columns, label)
    names, label = check_columns(columns, label)
    kept = TABLE[format].columns if names is None else [name for name in names if name != "_"]
    if optional_label and label is not None:
        sentences = _all_labelled(list(sentences), label)
    corpus = Corpus(sentences, columns=kept, label=label if label in kept else None, source=source_name(file))
    if not len(corpus):
        logger.warning("%s: the file has no sentences.", corpus.source)
    return corpus


def _all_labelled(sentences: Sequence[Sentence], label: str) -> Iterator[Sentence]:
    """Yield sentences of which all or none have labels. The label "_" stands for a missing one."""
    some = any(sentence.label is not None for sentence in sentences)
    for one in sentences:
        yield one.with_labels([UNKNOWN] * len(one), label) if some and one.label is None else one


def write(sentences: Iterable[Sentence], file: File, format: str | None = None, **options: Any) -> None:
    r"""Write sentences in any format.

    Args:
        sentences: Corpus or iterable of Sentence.
        file: path, '-' or open file. '-' means stdout. A file at a path appears only when it is complete. The
            extensions .gz, .xz and .bz2 compress it.
        format: str or None, default=None. Name of a format, as listed in `read`. None means the format of the file
            extension, or else CoNLL columns.
        options: Options of the format.
            "conll": `columns` to write, in this order, all by default. `separator`, a tab by default, or a space for
            programs that do not accept tabs. `documents`, whether to write a ``-DOCSTART-`` row at the beginning of
            each document, True by default. `comments`, whether to write the comments of sentences, False by default.
            "conllu": `label_column`, column for labels whose own column is not part of CoNLL-U, "upos" by default.
            "text": `join`, separator between each token and its label, as in ``dog/NN``. By default no labels are
            written.

    Raises:
        CorpusError: The format is unknown or has no such option, it cannot hold one of the values, or the file cannot
            be written.

    >>> from pathlib import Path
    >>> import tagwise as tw
    >>> write([tw.Sentence({"word": ["a", "dog"], "label": ["DT", "NN"]}, "label")], "two.jsonl")
    >>> Path("two.jsonl").read_text()
    '{"tokens": ["a", "dog"], "labels": ["DT", "NN"]}\n'
    """
    _check_format(format)
    chosen = format or format_to_write(source_name(file))
    _check_options(chosen, options, lambda found: found.write)
    TABLE[chosen].write(sentences, file, **options)
