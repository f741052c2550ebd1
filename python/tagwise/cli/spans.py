"""Texts with their spans, as ``tag`` writes them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tagwise.cli.stream import batches
from tagwise.corpus.labels import text as label_text
from tagwise.corpus.schemes import has_chunks
from tagwise.corpus.sentence import Corpus, Sentence
from tagwise.corpus.text import raw_text, span_jsonl
from tagwise.corpus.text.raw_text import format_raw
from tagwise.corpus.text.span_jsonl import Records, text_of
from tagwise.corpus.text.spans import text_spans
from tagwise.decoding.lookback import DocumentState
from tagwise.estimators.texts import TokenSpan, token_spans

#: A sentence and its spans as text; what has to wait for the rest of its text comes with that.
Writes = Callable[[Sentence, list[TokenSpan]], str]


def as_record(chunked: bool, marginals: bool) -> Writes:
    """One JSON object a text: its spans with their texts, and their probabilities where asked for."""
    put = Records(chunked, says_text=True)

    def write(sentence: Sentence, spans: list[TokenSpan]) -> str:
        chances = [p for *_, p in spans] if marginals else None
        return put(sentence, [(label_text(y), begin, end) for y, begin, end, _ in spans], chances)

    return write


def as_marked(chunked: bool, marginals: bool) -> Writes:
    """The text itself, its spans in brackets with their labels: [London LOC], [London LOC 0.9801]."""

    def write(sentence: Sentence, spans: list[TokenSpan]) -> str:
        text, parts, at = text_of(sentence), [], 0
        for span, (*_, p) in zip(text_spans(text, [s[:3] for s in spans]), spans):
            sure = f" {p:.4f}" if marginals and p is not None else ""
            parts += [text.text[at : span.start], f"[{span.text} {label_text(span.label)}{sure}]"]
            at = span.end
        end = format_raw(sentence)[len(text.text) :]
        return "".join([*parts, text.text[at:], end])

    return write


#: By format: how texts with spans are written.
TEXTS: dict[str, Callable[[bool, bool], Writes]] = {span_jsonl.NAME: as_record, raw_text.NAME: as_marked}


def texts_written(
    tagger: Any, sentences: Iterator[Sentence], form: str, marginals: bool, least: float | None = None
) -> Iterator[str]:
    """The output, a batch at a time; without spans that are less probable than `least`."""
    memory = DocumentState()
    write = TEXTS[form](has_chunks(tagger.model_.labels), marginals)
    for batch in batches(sentences):
        sure = marginals or least is not None
        found = token_spans(tagger, Corpus(batch), probability=sure, memory=memory)
        if least is not None:
            found = [[span for span in spans if span[3] is None or span[3] >= least] for spans in found]
        yield "".join(write(sentence, spans) for sentence, spans in zip(batch, found))
