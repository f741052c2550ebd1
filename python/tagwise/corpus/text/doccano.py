"""Doccano JSONL: a text per line with spans in ``label``, ``labels`` or ``entities``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from tagwise.corpus.columns import OpenFile
from tagwise.corpus.sentence import Sentence
from tagwise.corpus.streams import File
from tagwise.corpus.text.span_jsonl import (
    RecordFormat,
    Records,
    SpanFields,
    as_line,
    first_object,
    sentences_of_file,
    write_records,
)
from tagwise.corpus.text.spans import CONTINUED, TEXT, Policy
from tagwise.corpus.text.tokenizer import Tokenizes

NAME = "doccano"
EXAMPLE = 'Write {"text": "...", "label": [[0, 5, "PER"]]}, one object per line'
#: Members with the text and with the spans, which depend on the version of doccano. The first that exists is used.
_TEXTS, _SPANS = (TEXT, "data"), ("label", "labels", "entities")


def detect(head: str, rows: list[str]) -> bool:
    """Return whether the first line of a text is an object with a text and a list of spans."""
    value = first_object(rows)
    spans = _nested(next((value[key] for key in _SPANS if key in value), None))
    has_text = any(isinstance(value.get(key), str) for key in _TEXTS)
    return has_text and isinstance(spans, list) and all(map(_is_span, spans))


def _nested(spans: Any) -> Any:
    """Return the entities of an object of entities and relations. Other values are returned unchanged."""
    return spans["entities"] if isinstance(spans, dict) and "entities" in spans else spans


def _is_span(value: Any) -> bool:
    return isinstance(value, list) or (isinstance(value, dict) and "start_offset" in value)


def _span(value: Any) -> Any:
    """Return a span in a form that `spans_to_labels` accepts. Other values are returned unchanged and refused there."""
    if isinstance(value, dict):
        return {
            "start": value.get("start_offset"),
            "end": value.get("end_offset"),
            "label": value.get("label"),
        }
    return value


def fields(value: dict[str, Any]) -> SpanFields:
    """Return the members of an object."""
    text = next((key for key in _TEXTS if isinstance(value.get(key), str)), TEXT)
    key = next((key for key in _SPANS if key in value), None)
    spans = None if key is None else _nested(value[key])
    known = (text, key, CONTINUED, "newdoc", "scheme")
    meta = {name: v for name, v in value.items() if name not in known}
    spans = list(map(_span, spans)) if isinstance(spans, list) else spans
    return SpanFields(value.get(text), spans, meta, value.get("newdoc"), value.get("scheme"))


FORMAT = RecordFormat(fields, "label", EXAMPLE, empty_is_open=True)  # as doccano exports untouched texts


def iter_open(
    file: OpenFile, *, tokenizer: Tokenizes | None = None, scheme: str = "IOB2", misaligned: Policy = "error"
) -> Iterator[Sentence]:
    """Return the sentences of an open file. The options are those of `span_jsonl.iter_open`."""
    return sentences_of_file(file, FORMAT, tokenizer, scheme, misaligned)


def render(value: dict[str, Any]) -> str:
    """Return the line for an object of the format "spans"."""
    spans = value.pop("spans", None)
    out = {TEXT: value.pop(TEXT)}
    if spans is not None:
        out["label"] = [[span["start"], span["end"], span["label"]] for span in spans]
    return as_line({**out, **{key: v for key, v in value.items() if key not in _SPANS}})


def write_doccano(sentences: Iterable[Sentence], file: File) -> None:
    r"""Write sentences as JSONL of doccano. Sentences of one text are joined.

    Chunk labels become spans. Other labels become one span per token, with ``"scheme": "token"``.

    Args:
        sentences: Corpus or iterable of Sentence.
        file: path, '-' or open file, as in `write`.

    Raises:
        CorpusError: Tokens are not pieces of their text, or the file cannot be written.

    >>> from pathlib import Path
    >>> from tagwise.spans import span_corpus
    >>> write_doccano(span_corpus(["In Oslo"], [[(3, 7, "LOC")]]), "texts.jsonl")
    >>> Path("texts.jsonl").read_text()
    '{"text": "In Oslo", "label": [[3, 7, "LOC"]]}\n'
    """
    write_records(sentences, file, lambda chunked: Records(chunked, render=render))
