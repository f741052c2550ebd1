"""Writers of texts with spans for ``tag``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import rich_click as click

from tagwise.cli.stream import batches
from tagwise.corpus.labels import text as label_text
from tagwise.corpus.schemes import has_chunks
from tagwise.corpus.sentence import Corpus, Sentence
from tagwise.corpus.text import doccano, label_studio, prodigy, raw_text, span_jsonl
from tagwise.corpus.text.prodigy import format_prodigy
from tagwise.corpus.text.raw_text import format_raw
from tagwise.corpus.text.span_jsonl import Records, text_of
from tagwise.corpus.text.spans import text_spans
from tagwise.decoding.lookback import DocumentState
from tagwise.estimators.texts import TokenSpan, token_spans

#: Formats a sentence and its spans. Output that depends on later sentences of the text is returned with those.
SpanWriter = Callable[[Sentence, list[TokenSpan]], str]


def as_record(chunked: bool, marginals: bool) -> SpanWriter:
    """Return a writer of one JSON object per text, with its spans and, if `marginals`, their probabilities."""
    format_record = Records(chunked, include_text=True)

    def write(sentence: Sentence, spans: list[TokenSpan]) -> str:
        chances = [p for *_, p in spans] if marginals else None
        return format_record(sentence, [(label_text(y), begin, end) for y, begin, end, _ in spans], chances)

    return write


def as_marked(chunked: bool, marginals: bool) -> SpanWriter:
    """Return a writer of the text with its spans in brackets: [London LOC], [London LOC 0.9801]."""

    def write(sentence: Sentence, spans: list[TokenSpan]) -> str:
        text, parts, at = text_of(sentence), [], 0
        for span, (*_, p) in zip(text_spans(text, [s[:3] for s in spans]), spans):
            sure = f" {p:.4f}" if marginals and p is not None else ""
            parts += [text.text[at : span.start], f"[{span.text} {label_text(span.label)}{sure}]"]
            at = span.end
        end = format_raw(sentence)[len(text.text) :]
        return "".join([*parts, text.text[at:], end])

    return write


def as_doccano(chunked: bool, marginals: bool) -> SpanWriter:
    """Return a writer of JSONL for doccano, which has no place for probabilities."""
    if marginals:
        raise click.UsageError("--marginals: doccano files have no probabilities. Use --output-format spans")
    format_record = Records(chunked, render=doccano.render)

    def write(sentence: Sentence, spans: list[TokenSpan]) -> str:
        return format_record(sentence, [(label_text(y), begin, end) for y, begin, end, _ in spans])

    return write


def as_prodigy(chunked: bool, marginals: bool) -> SpanWriter:
    """Return a writer of JSONL for Prodigy, one sentence per line."""

    def write(sentence: Sentence, spans: list[TokenSpan]) -> str:
        chances = [p for *_, p in spans] if marginals else None
        found = [(label_text(y), begin, end) for y, begin, end, _ in spans]
        return format_prodigy(sentence, chunked, found, chances)

    return write


class TaskWriter:
    """Writer of an array of tasks for Label Studio, with the spans as predictions."""

    def __init__(self, chunked: bool, marginals: bool) -> None:
        self.marginals = marginals
        self.tasks = label_studio.Tasks("predictions")
        self.records = Records(chunked, render=self.tasks)

    def __call__(self, sentence: Sentence, spans: list[TokenSpan]) -> str:
        chances = [p for *_, p in spans] if self.marginals else None
        return self.records(sentence, [(label_text(y), begin, end) for y, begin, end, _ in spans], chances)

    def end(self) -> str:
        """Return the end of the array."""
        return self.tasks.end()


#: Writers by format.
TEXTS: dict[str, Callable[[bool, bool], SpanWriter]] = {
    span_jsonl.NAME: as_record,
    raw_text.NAME: as_marked,
    doccano.NAME: as_doccano,
    prodigy.NAME: as_prodigy,
    label_studio.NAME: TaskWriter,
}


def texts_written(
    tagger: Any,
    sentences: Iterator[Sentence],
    form: str,
    marginals: bool,
    min_probability: float | None = None,
) -> Iterator[str]:
    """Yield the output batch by batch, without spans whose probability is below `min_probability`."""
    memory = DocumentState()
    write = TEXTS[form](has_chunks(tagger.model_.labels), marginals)
    for batch in batches(sentences):
        sure = marginals or min_probability is not None
        found = token_spans(tagger, Corpus(batch), probability=sure, memory=memory)
        if min_probability is not None:
            found = [
                [span for span in spans if span[3] is None or span[3] >= min_probability] for spans in found
            ]
        yield "".join(write(sentence, spans) for sentence, spans in zip(batch, found))
    if isinstance(write, TaskWriter):
        yield write.end()
