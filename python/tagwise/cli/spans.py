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
from tagwise.estimators.texts import token_spans

#: Formats a sentence, its spans (label, begin, end) in tokens, and on request their probabilities. Output that depends
#: on later sentences of the text is returned with those.
SpanWriter = Callable[[Sentence, list[tuple[str, int, int]], "list[float | None] | None"], str]


def as_marked(chunked: bool, marginals: bool) -> SpanWriter:
    """Return a writer of the text with its spans in brackets: [London LOC], [London LOC 0.9801]."""

    def write(
        sentence: Sentence, spans: list[tuple[str, int, int]], chances: list[float | None] | None
    ) -> str:
        text, parts, at = text_of(sentence), [], 0
        for span in text_spans(text, spans, chances):
            sure = "" if span.probability is None else f" {span.probability:.4f}"
            parts += [text.text[at : span.start], f"[{span.text} {span.label}{sure}]"]
            at = span.end
        end = format_raw(sentence)[len(text.text) :]
        return "".join([*parts, text.text[at:], end])

    return write


def as_doccano(chunked: bool, marginals: bool) -> SpanWriter:
    """Return a writer of JSONL for doccano, which has no place for probabilities."""
    if marginals:
        raise click.UsageError("--marginals: doccano files have no probabilities. Use --output-format spans")
    return Records(chunked, render=doccano.render)


class TaskWriter(Records):
    """Writer of an array of tasks for Label Studio, with the spans as predictions."""

    def __init__(self, chunked: bool, marginals: bool) -> None:
        self.tasks = label_studio.Tasks("predictions")
        super().__init__(chunked, render=self.tasks)

    def end(self) -> str:
        """Return the end of the array."""
        return self.tasks.end()


#: Writers by format.
TEXTS: dict[str, Callable[[bool, bool], SpanWriter]] = {
    span_jsonl.NAME: lambda chunked, _: Records(chunked, include_text=True),
    raw_text.NAME: as_marked,
    doccano.NAME: as_doccano,
    prodigy.NAME: lambda chunked, _: lambda sentence, *found: format_prodigy(sentence, chunked, *found),
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
    document_state = DocumentState()
    write = TEXTS[form](has_chunks(tagger.model_.labels), marginals)
    for batch in batches(sentences):
        sure = marginals or min_probability is not None
        found = token_spans(tagger, Corpus(batch), probability=sure, document_state=document_state)
        if min_probability is not None:
            found = [
                [span for span in spans if span[3] is None or span[3] >= min_probability] for spans in found
            ]
        yield "".join(
            write(
                sentence,
                [(label_text(y), begin, end) for y, begin, end, _ in spans],
                [p for *_, p in spans] if marginals else None,
            )
            for sentence, spans in zip(batch, found)
        )
    if isinstance(write, TaskWriter):
        yield write.end()
