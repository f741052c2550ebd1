"""Prodigy JSONL: a text per line with its tokens, spans and the answer of the annotator."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from tagwise.base.exceptions import CorpusError
from tagwise.corpus.columns import OpenFile
from tagwise.corpus.sentence import Corpus, Sentence
from tagwise.corpus.streams import File, writer
from tagwise.corpus.text.span_jsonl import (
    RecordFormat,
    SpanFields,
    as_line,
    first_object,
    sentences_of_file,
    text_of,
)
from tagwise.corpus.text.spans import CONTINUED, TEXT, TOKEN, Policy, is_chunked, text_spans, token_spans
from tagwise.corpus.text.tokenizer import Tokenized, Tokenizes

NAME = "prodigy"
EXAMPLE = (
    'Write {"text": "Oslo", "tokens": [{"text": "Oslo", "start": 0, "end": 4}], "spans": [{"start": 0, "end": 4, '
    '"label": "LOC"}]}, one object per line'
)
_ACCEPT = "accept"


def detect(head: str, rows: list[str]) -> bool:
    """Return whether the first line of a text is an object with a text, and tokens with offsets or an answer."""
    value = first_object(rows)
    tokens = value.get("tokens")
    placed = isinstance(tokens, list) and bool(tokens) and isinstance(tokens[0], dict)
    answered = value.get("answer") in (_ACCEPT, "reject", "ignore") and tokens is None
    return isinstance(value.get(TEXT), str) and (placed or answered)


def _tokenized(text: str, tokens: Any) -> Tokenized:
    """Return a text with the offsets of its tokens."""
    if not isinstance(tokens, list) or not all(isinstance(token, dict) for token in tokens):
        raise ValueError("'tokens' is not an array of objects")
    places, at = [], 0
    for t, token in enumerate(tokens):
        start, end = token.get("start"), token.get("end")
        whole = all(type(x) is int for x in (start, end))
        if not whole or not at <= start < end <= len(text) or text[start:end].isspace():
            raise ValueError(
                f"token {t}: {start!r} to {end!r} is not a piece of the text of {len(text)} characters after the token "
                "before it"
            )
        if token.get(TEXT, text[start:end]) != text[start:end]:
            raise ValueError(
                f"token {t} is {token[TEXT]!r}, but the text has {text[start:end]!r} at its place"
            )
        places.append((start, end))
        at = end
    offsets = np.array(places, dtype=np.uint32).reshape(-1, 2)
    return Tokenized(text, offsets, np.array([0, len(places)], dtype=np.uint64))


def fields(value: dict[str, Any]) -> SpanFields | None:
    """Return the members of an object, or None if the annotator rejected or ignored it."""
    if value.get("answer", _ACCEPT) != _ACCEPT:
        return None
    text, tokens = value.get(TEXT), value.get("tokens")
    known = (TEXT, CONTINUED, "tokens", "spans", "answer", "newdoc", "scheme")
    meta = {key: v for key, v in value.items() if key not in known and not key.startswith("_")}
    spans = value.get("spans", [] if "answer" in value else None)
    placed = _tokenized(text, tokens) if tokens is not None and isinstance(text, str) else None
    answered = "answer" in value
    return SpanFields(text, spans, meta, value.get("newdoc"), value.get("scheme"), placed, answered=answered)


FORMAT = RecordFormat(fields, "spans", EXAMPLE)


def iter_open(
    file: OpenFile, *, tokenizer: Tokenizes | None = None, scheme: str = "IOB2", misaligned: Policy = "error"
) -> Iterator[Sentence]:
    """Return the sentences of an open file. The options are those of `span_jsonl.iter_open`.

    Tokens of the file are kept, and only texts without tokens are tokenized. Rejected and ignored texts are skipped.
    """
    return sentences_of_file(file, FORMAT, tokenizer, scheme, misaligned)


def format_prodigy(
    sentence: Sentence,
    chunked: bool | None = None,
    spans: Sequence[tuple[Any, int, int]] | None = None,
    chances: Sequence[float | None] | None = None,
) -> str:
    """Return a sentence as a line of JSON. `spans` (in tokens, with probabilities `chances`) replace its labels."""
    text = text_of(sentence)
    if not len(text):
        raise CorpusError(
            "a Prodigy file cannot contain a sentence without tokens. Remove it, or write JSONL."
        )
    labelled = spans is not None or sentence.label is not None
    if spans is None:
        labels = sentence.labels if labelled else []
        chunked = is_chunked(labels) if chunked is None else chunked
        spans = token_spans(labels, chunked)
    places = text.offsets.tolist()
    value: dict[str, Any] = {TEXT: text.text}
    value["tokens"] = [
        {
            TEXT: text.text[start:end],
            "start": start,
            "end": end,
            "id": t,
            "ws": text.text[end : end + 1].isspace(),
        }
        for t, (start, end) in enumerate(places)
    ]
    if labelled:
        value["spans"] = [
            {
                "start": span.start,
                "end": span.end,
                "token_start": begin,
                "token_end": end - 1,
                "label": span.label,
            }
            for span, (_, begin, end) in zip(text_spans(text, spans), spans)
        ]
        for span, chance in zip(value["spans"], chances or ()):
            span["probability"] = None if chance is None else round(chance, 6)
        if chunked is False:
            value["scheme"] = TOKEN
    if sentence.doc is not None:
        value["newdoc"] = sentence.doc or True
    for key, v in (sentence.meta or {}).items():
        if key not in (TEXT, CONTINUED):
            value.setdefault(key, v)
    return as_line(value)


def write_prodigy(sentences: Iterable[Sentence], file: File) -> None:
    r"""Write sentences as JSONL of Prodigy, one sentence per line with its tokens.

    Chunk labels become spans. Other labels become one span per token, with ``"scheme": "token"``.

    Args:
        sentences: Corpus or iterable of Sentence.
        file: path, '-' or open file, as in `write`.

    Raises:
        CorpusError: Tokens are not pieces of their text, a sentence has no tokens, or the file cannot be written.

    >>> import json
    >>> from pathlib import Path
    >>> from tagwise.spans import span_corpus
    >>> write_prodigy(span_corpus(["In Oslo"], [[(3, 7, "LOC")]]), "texts.jsonl")
    >>> json.loads(Path("texts.jsonl").read_text())["spans"]
    [{'start': 3, 'end': 7, 'token_start': 1, 'token_end': 1, 'label': 'LOC'}]
    """
    known = isinstance(sentences, Corpus) and sentences.label is not None and len(sentences) > 0
    chunked = is_chunked(sentences.label_set) if known else None  # type: ignore[attr-defined]
    with writer(file) as write:
        for sentence in sentences:
            write(format_prodigy(sentence, chunked))
