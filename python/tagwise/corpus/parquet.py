"""Parquet files with one sentence per row, as Hugging Face datasets store them. They need pyarrow."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from tagwise.base.exceptions import CorpusError, TagwiseError
from tagwise.base.writing import atomic
from tagwise.corpus.columns import OpenFile
from tagwise.corpus.sentence import Corpus, Sentence
from tagwise.corpus.sentence_rows import TO_KEY, RowReader
from tagwise.corpus.streams import File, fail, limit, source_name

NAME = "parquet"
#: Rows that are read or written at once.
ROWS = 1024


def need_pyarrow(source: str) -> tuple[Any, Any]:
    """Return the modules of pyarrow and its Parquet files, or raise a TagwiseError if they are not installed."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ModuleNotFoundError as error:
        raise TagwiseError(
            f"{source}: Parquet files need the package pyarrow, which is not installed. Run pip install "
            "'tagwise[parquet]'."
        ) from error
    return pyarrow, pyarrow.parquet


def detect(head: str, rows: list[str]) -> bool:
    """Return False, because a Parquet file is not text. Its extension or ``format`` identifies it."""
    return False


def open_parquet(file: File) -> Any:
    """Return an open ParquetFile."""
    name = source_name(file)
    arrow, parquet = need_pyarrow(name)
    if name == "<stdin>":
        fail(name, None, "a Parquet file cannot be read from a stream", "Give the path of the file.")
    try:
        return parquet.ParquetFile(os.fspath(file) if isinstance(file, (str, os.PathLike)) else file)
    except FileNotFoundError as error:
        raise CorpusError(
            f"{name}: cannot be opened (No such file or directory). Give a readable file."
        ) from error
    except (arrow.ArrowException, OSError, ValueError, TypeError) as error:
        raise CorpusError(f"{name}: not a readable Parquet file ({error}). Write the file again.") from error


def features_of(schema: Any) -> Any:
    """Return the ``features`` that Hugging Face datasets store in the metadata of a schema, or None."""
    try:
        return json.loads((schema.metadata or {})[b"huggingface"])["info"]["features"]
    except (KeyError, TypeError, ValueError, RecursionError):
        return None


def iter_open(file: OpenFile, *, label_names: Sequence[str] | None = None) -> Iterator[Sentence]:
    """Return the sentences of an open file, one per row, with the columns of `jsonl.iter_open`.

    Args:
        file: The file, with the requested columns.
        label_names: Names of labels that are numbers in the file, beginning with the name of 0. None means those in the
            metadata of the file.
    """
    if file.file is None:
        raise CorpusError(f"{file.name}: a Parquet file is not text. Give its path.")
    opened = open_parquet(file.file)
    features = features_of(opened.schema_arrow)
    return row_sentences(opened, RowReader(file.name, file.columns, file.label, label_names, features))


def row_sentences(file: Any, rows: RowReader) -> Iterator[Sentence]:
    """Yield a sentence per row. Errors give the number of the row, counted from 1."""
    arrow, _ = need_pyarrow(rows.source)
    most, number = limit("TAGWISE_MAX_SENTENCE"), 0
    batches = file.iter_batches(ROWS)
    while True:
        try:
            batch = next(batches, None)
            values = [] if batch is None else batch.to_pylist()
        except (arrow.ArrowException, OSError, UnicodeError) as error:
            fail(
                rows.source,
                number + 1,
                f"reading failed near this row ({error})",
                "Write the file again.",
                error,
            )
        if batch is None:
            return
        if batch.nbytes > most * ROWS:
            fail(
                rows.source, number + 1, f"rows of {batch.nbytes:,} bytes", "Split the texts into sentences."
            )
        for value in values:
            number += 1
            yield rows.sentence(number, {k: v for k, v in value.items() if v is not None})


def write_parquet(sentences: Iterable[Sentence], file: File) -> None:
    """Write sentences as a Parquet file, one row per sentence with a list of strings per column.

    Args:
        sentences: Corpus or iterable of Sentence.
        file: path or open binary file.

    Raises:
        CorpusError: Columns differ between sentences, or the file cannot be written.
        TagwiseError: The package pyarrow is not installed.
    """
    name = source_name(file)
    need_pyarrow(name)
    if isinstance(file, (str, os.PathLike)) and os.fspath(file) != "-":
        with atomic(os.fspath(file), CorpusError) as out:
            _write(sentences, out, name)
        return
    if isinstance(file, (str, os.PathLike)) or not hasattr(file, "write"):
        raise CorpusError(
            f"{name}: a Parquet file cannot be written to a stream of text. Give the path of a file."
        )
    _write(sentences, file, name)


def _write(sentences: Iterable[Sentence], out: Any, name: str) -> None:
    """Write sentences to a binary file. The first sentence, or the corpus, determines the columns."""
    arrow, parquet = need_pyarrow(name)
    found = iter(sentences)
    first = next(found, None)
    columns = list(first.fields) if first is not None else list(getattr(sentences, "columns", ())) or ["word"]
    documents = isinstance(sentences, Corpus) and sentences.has_documents
    strings = arrow.list_(arrow.string())
    fields = [(TO_KEY.get(column, column), strings) for column in columns]
    schema = arrow.schema([*fields, *([("newdoc", arrow.string())] if documents else [])])
    rest = itertools.chain([] if first is None else [first], found)
    with parquet.ParquetWriter(out, schema) as writer:
        while batch := list(itertools.islice(rest, ROWS)):
            for sentence in batch:
                if list(sentence.fields) != columns:
                    raise CorpusError(
                        f"{name}: rows have the same columns, found {', '.join(sentence.fields)} after "
                        f"{', '.join(columns)}"
                    )
            rows = [
                {
                    **{TO_KEY.get(key, key): values for key, values in sentence.fields.items()},
                    **({"newdoc": sentence.doc} if documents else {}),
                }
                for sentence in batch
            ]
            writer.write_table(arrow.Table.from_pylist(rows, schema=schema))
