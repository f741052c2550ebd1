"""JSONL of texts with spans, one per line: ``{"text": "...", "spans": [{"start": 0, "end": 5, "label": "PER"}]}``."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from tagwise.base.exceptions import CorpusError
from tagwise.corpus.columns import OpenFile
from tagwise.corpus.row_blocks import document_of, json_value, line_batches
from tagwise.corpus.schemes import scheme_name
from tagwise.corpus.sentence import Corpus, Sentence
from tagwise.corpus.streams import File, fail, refuse_breaks, shown, writer
from tagwise.corpus.text.spans import (
    CONTINUED,
    PROPOSED,
    TEXT,
    TOKEN,
    Policy,
    TextSpan,
    aligned,
    check_policy,
    is_chunked,
    sentences_of,
    text_spans,
    token_spans,
)
from tagwise.corpus.text.tokenizer import Tokenized, Tokenizes, offsets_of, tokenized

NAME = "spans"
EXAMPLE = 'Write {"text": "...", "spans": [{"start": 0, "end": 5, "label": "..."}]}, one object per line'
#: Prefix of the CoNLL-U comment with the untokenized sentence.
_COMMENT = "# text = "


class SpanFields(NamedTuple):
    """The members of a JSON object that a format of texts with spans defines. They are checked later."""

    text: Any
    spans: Any  # None: the text is not labelled
    meta: dict[str, Any]
    doc: Any = None
    scheme: Any = None
    tokens: Tokenized | None = None  # None: the tokenizer splits the text
    proposed: Callable[[], Any] = lambda: None  # returns unconfirmed spans
    answered: bool = True  # False: the spans are not confirmed. With an optional label they are proposals


class SpanRecord(NamedTuple):
    """A parsed line of a file."""

    line: int
    text: str
    spans: Sequence[Any] | None
    scheme: str
    doc: str | None
    meta: dict[str, Any]
    tokens: Tokenized | None = None
    proposed: Sequence[Any] | None = None


def own_fields(value: dict[str, Any]) -> SpanFields:
    """Return the members of an object of the format "spans"."""
    meta = {key: v for key, v in value.items() if key not in (TEXT, CONTINUED, "spans", "newdoc", "scheme")}
    return SpanFields(value.get(TEXT), value.get("spans"), meta, value.get("newdoc"), value.get("scheme"))


class RecordFormat(NamedTuple):
    """A format of JSON objects with texts and spans.

    Attributes:
        fields: Returns the members of an object, or None to skip it. It raises a ValueError with the reason if the
            object is not valid.
        member: Name of the member with the spans.
        example: Remedy for messages.
        empty_is_open: Whether an empty list of spans can mean that the text is not labelled yet. If labels are
            optional, it is not labelled.
        missing: Remedy for a labelled file in which some texts have no spans.
    """

    fields: Callable[[dict[str, Any]], SpanFields | None]
    member: str
    example: str
    empty_is_open: bool = False
    missing: str = "Write [] for a text without spans"


OWN = RecordFormat(own_fields, "spans", EXAMPLE)


class SpanOptions(NamedTuple):
    """Options for the conversion of records to sentences."""

    name: str
    tokenizer: Tokenizes | None = None
    scheme: str = "IOB2"
    misaligned: Policy = "error"
    names: tuple[str, str] = ("word", "label")
    labelled: bool = True  # False: spans are not read
    optional: bool = False  # True: some texts may be labelled and others not, and proposed spans are read
    form: RecordFormat = OWN


def first_object(rows: list[str]) -> dict[str, Any]:
    """Return the JSON object in the first line of a text, or an empty one."""
    if rows[0][0] != "{":
        return {}
    try:
        value = json.loads(rows[0])
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def detect(head: str, rows: list[str]) -> bool:
    """Return whether the first line of a text is an object with a text and without tokens."""
    value = first_object(rows)
    return isinstance(value.get(TEXT), str) and not {"tokens", "words"} & value.keys()


def iter_open(
    file: OpenFile,
    *,
    tokenizer: Tokenizes | None = None,
    scheme: str = "IOB2",
    misaligned: Policy = "error",
) -> Iterator[Sentence]:
    """Return the sentences of an open file of texts with spans.

    Each line is an object such as ``{"text": "...", "spans": [{"start": 0, "end": 5, "label": "PER"}]}`` with offsets
    in characters. ``scheme`` overrides the argument of that name, and ``newdoc`` begins a document. Other keys are
    kept in ``Sentence.meta`` of the first sentence. Lines without ``spans`` are unlabelled. The first line determines
    whether the file is labelled, unless labels are optional.

    Args:
        file: The file, with the requested columns.
        tokenizer: Tokenizer, or function that maps a text to its tokens. None means ``Tokenizer()``.
        scheme: Label scheme, or "token" if every token has a span of its own.
        misaligned: Treatment of spans that do not begin and end at tokens, as in `spans_to_labels`.

    Raises:
        CorpusError: The scheme is unknown, a line is not valid, or a span does not fit the tokens with
            ``misaligned="error"``.
    """
    return sentences_of_file(file, OWN, tokenizer, scheme, misaligned)


def sentences_of_file(
    file: OpenFile, form: RecordFormat, tokenizer: Tokenizes | None, scheme: str, misaligned: Policy
) -> Iterator[Sentence]:
    """Return the sentences of an open file of JSON objects with texts and spans."""
    check_policy(misaligned)
    scheme = scheme if scheme == TOKEN else scheme_name(scheme)
    labelled = file.label is not None
    options = SpanOptions(
        file.name, tokenizer, scheme, misaligned, names_of(file), labelled, file.optional_label, form
    )
    return record_sentences(options, file.chunks)


def names_of(file: OpenFile) -> tuple[str, str]:
    """Return the names of the two columns of raw text: tokens and labels."""
    kept = [name for name in file.columns or ("word",) if name not in ("_", file.label)]
    if len(kept) != 1:
        fail(
            file.name,
            None,
            f"raw text has one column of tokens and at most one of labels, found {', '.join(kept) or 'no tokens'}",
            "Name a column of tokens and one of labels, or give a file with columns.",
        )
    return kept[0], file.label or "label"


def record_sentences(options: SpanOptions, chunks: Iterator[str]) -> Iterator[Sentence]:
    """Yield sentences. The texts of each chunk are tokenized in one call. Texts before an error are yielded first."""
    labelled: bool | None = None if options.labelled else False
    for batch in line_batches(chunks):
        records: list[SpanRecord] = []
        error: CorpusError | None = None
        for line, text in batch:
            if not text.strip():
                continue
            try:
                record = read_record(options, line, text)
                if record is None:
                    continue
                labelled = record.spans is not None if labelled is None else labelled
                if options.labelled and not options.optional and labelled is not (record.spans is not None):
                    form, which = options.form, ("missing", "given")[not labelled]
                    fail(
                        options.name,
                        line,
                        f"{form.member!r} is {which}, unlike in the lines before",
                        f"{form.example}. {form.missing}.",
                    )
            except CorpusError as raised:
                error = raised
                break
            records.append(record)
        texts = tokenized([record.tokens or record.text for record in records], options.tokenizer)
        for record, one in zip(records, texts):
            own = options.labelled and record.spans is not None if options.optional else bool(labelled)
            yield from sentences_of_record(options, record, one, own)
        if error is not None:
            raise error


def read_record(options: SpanOptions, line: int, text: str) -> SpanRecord | None:
    """Parse and check a line, or return None to skip it. Its spans are not checked."""
    name, example = options.name, options.form.example
    value = json_value(name, line, text, f"{example}.")
    if not isinstance(value, dict):
        fail(name, line, f"{shown(text)} is not an object with a text", f"{example}.")
    found = _checked(options, line, lambda: options.form.fields(value))
    if found is None:
        return None
    if not isinstance(found.text, str):
        fail(name, line, f"{shown(text)} is not an object with a text", f"{example}.")
    spans, doc, scheme = found.spans, found.doc, found.scheme or options.scheme
    proposed = None
    if options.optional:
        if options.form.empty_is_open and spans == []:
            spans = None
        elif not found.answered:
            spans, proposed = None, spans
        if spans is None and proposed is None:
            proposed = _checked(options, line, found.proposed)
    if spans is not None and not isinstance(spans, list):
        problem = f"{options.form.member!r} is {shown(json.dumps(spans))}, not an array"
        fail(name, line, problem, f"{example}.")
    try:
        scheme = scheme if scheme == TOKEN else scheme_name(str(scheme))
    except CorpusError as e:
        fail(name, line, f"'scheme': {e}", "Leave it out for IOB2.", e)
    begins = document_of(name, line, doc)
    return SpanRecord(line, found.text, spans, scheme, begins, found.meta, found.tokens, proposed)


def _checked(options: SpanOptions, line: int, members: Callable[[], Any]) -> Any:
    """Return the result of a function of a format. Its ValueError becomes a CorpusError with the line."""
    try:
        return members()
    except ValueError as e:
        fail(options.name, line, str(e), f"{options.form.example}.", e)


def sentences_of_record(
    options: SpanOptions, record: SpanRecord, text: Tokenized, labelled: bool
) -> list[Sentence]:
    """Return the sentences of a record."""
    labels = None
    if labelled or record.proposed is not None:
        given = record.spans if labelled else record.proposed
        try:
            labels, _ = aligned(text, given or (), 0, record.scheme, options.misaligned)
        except CorpusError as e:
            raise CorpusError(
                f"{options.name}:{record.line}: {str(e).removeprefix('sentence 0, ')}"
            ) from None
    refuse_breaks(options.name, labels, record.line)
    found = sentences_of(
        text, labels, names=options.names, doc=record.doc, line=record.line, meta=record.meta
    )
    return found if labelled or labels is None else [_with_proposals(one, record.scheme) for one in found]


def _with_proposals(sentence: Sentence, scheme: str) -> Sentence:
    """Return an unlabelled sentence whose labels are spans of tokens in ``meta``."""
    columns = {name: column for name, column in sentence.fields.items() if name != sentence.label}
    spans = token_spans(sentence.labels, scheme != TOKEN)
    meta = {**(sentence.meta or {}), PROPOSED: [[begin, end, label] for label, begin, end in spans]}
    return Sentence(columns, doc=sentence.doc, line=sentence.line, meta=meta)


def as_line(value: dict[str, Any]) -> str:
    """Return an object as a line of JSON, including its newline."""
    return json.dumps(value, ensure_ascii=False) + "\n"


class Records:
    """Converter of sentences to JSON objects. All sentences of a text share one object.

    `render` returns the text of an object, by default as a line of JSON.
    """

    def __init__(
        self,
        chunked: bool | None = None,
        *,
        include_text: bool = False,
        render: Callable[[dict[str, Any]], str] = as_line,
    ) -> None:
        self.chunked = chunked  # whether labels mark chunks (None: detected from the labels of each text)
        self.include_text = include_text  # whether spans include their text
        self.render = render
        self._held: list[tuple[Sentence, Tokenized, Sequence[Any], Sequence[float | None]]] = []

    def __call__(
        self,
        sentence: Sentence,
        spans: Sequence[tuple[Any, int, int]] | None = None,
        chances: Sequence[float | None] | None = None,
    ) -> str:
        """Add a sentence. Return the JSON of its text if this is its last sentence, else an empty string.

        `spans` (in tokens) replace the labels of the sentence. `chances` are their probabilities.
        """
        text = text_of(sentence)
        if spans is None:
            labels = [] if sentence.label is None else sentence.labels
            chunked = is_chunked(labels) if self.chunked is None else self.chunked
            spans = token_spans(labels, chunked)
            self.chunked = False if not chunked else self.chunked
        self._held.append((sentence, text, spans, chances or ()))
        return "" if (sentence.meta or {}).get(CONTINUED) is True else self.rest()

    def rest(self) -> str:
        """Return the JSON of a text whose last sentence is missing, or an empty string."""
        held, self._held = self._held, []
        if not held:
            return ""
        first = held[0][0]
        whole = "".join(text.text for _, text, _, _ in held)
        spans, at = [], 0
        for _, text, found, chances in held:
            for k, span in enumerate(text_spans(text, found)):
                spans.append(self.member(span, at, *([chances[k]] if chances else [])))
            at += len(text.text)
        value: dict[str, Any] = {TEXT: whole}
        if first.label is not None or spans or any(chances for *_, chances in held) or self.include_text:
            value["spans"] = spans
            if self.chunked is False:
                value["scheme"] = TOKEN
        if first.doc is not None:
            value["newdoc"] = first.doc or True
        for key, v in (first.meta or {}).items():
            if key not in (TEXT, CONTINUED):
                value.setdefault(key, v)
        return self.render(value)

    def member(self, span: TextSpan, at: int, *chance: float | None) -> dict[str, Any]:
        """Return a span as a JSON object, with its offsets increased by `at`."""
        out = {"start": span.start + at, "end": span.end + at, "label": span.label}
        if self.include_text:
            out["text"] = span.text
        if chance:
            out["probability"] = None if chance[0] is None else round(chance[0], 6)
        return out


def text_of(sentence: Sentence) -> Tokenized:
    """Return the text of a sentence with the offsets of its tokens.

    The text is ``meta["text"]``, or else the comment ``# text = `` if it contains the tokens, or else the tokens
    joined by spaces.
    """
    tokens = sentence.tokens
    bounds = np.array([0, len(tokens)], dtype=np.uint64)
    own = (sentence.meta or {}).get(TEXT)
    if isinstance(own, str):
        offsets = offsets_of(own, tokens)
        if offsets is None:
            where = f"line {sentence.line}: " if sentence.line else ""
            raise CorpusError(
                f"{where}the text {shown(own)} does not contain the tokens {shown(' '.join(tokens))} in order. Give "
                "tokens that are pieces of the text, or remove the text."
            )
        return Tokenized(own, offsets, bounds)
    for comment in sentence.comments:
        if comment.startswith(_COMMENT):
            offsets = offsets_of(comment[len(_COMMENT) :], tokens)
            if offsets is not None:
                return Tokenized(comment[len(_COMMENT) :], offsets, bounds)
    text = " ".join(tokens)
    ends = np.cumsum([len(token) + 1 for token in tokens], dtype=np.int64)
    begins = np.array([0, *(ends[:-1] if len(tokens) else [])], dtype=np.int64)[: len(tokens)]
    return Tokenized(text, np.stack([begins, ends - 1], axis=1).astype(np.uint32), bounds)


def format_spans(sentence: Sentence) -> str:
    """Return a sentence as a text with spans in one line of JSON, including its newline."""
    records = Records()
    return records(sentence) or records.rest()


def write_spans(sentences: Iterable[Sentence], file: File) -> None:
    r"""Write sentences as JSONL of texts with spans. Sentences of one text are joined.

    Chunk labels become spans. Other labels become one span per token, with ``"scheme": "token"``.

    Args:
        sentences: Corpus or iterable of Sentence.
        file: path, '-' or open file. '-' means stdout. A file at a path appears only when it is complete. The
            extensions .gz, .xz and .bz2 compress it.

    Raises:
        CorpusError: Tokens are not pieces of their text, or the file cannot be written.

    >>> from pathlib import Path
    >>> import tagwise as tw
    >>> write_spans(tw.spans.span_corpus(["In Oslo"], [[(3, 7, "LOC")]]), "texts.jsonl")
    >>> Path("texts.jsonl").read_text()
    '{"text": "In Oslo", "spans": [{"start": 3, "end": 7, "label": "LOC"}]}\n'
    """
    write_records(sentences, file, Records)


def write_records(
    sentences: Iterable[Sentence],
    file: File,
    records: Callable[[bool | None], Records],
    end: Callable[[], str] = str,
) -> None:
    """Write sentences as JSON objects. The result of `end` follows the last one."""
    known = isinstance(sentences, Corpus) and sentences.label is not None and len(sentences) > 0
    convert = records(is_chunked(sentences.label_set) if known else None)  # type: ignore[attr-defined]
    with writer(file) as write:
        for sentence in sentences:
            write(convert(sentence))
        write(convert.rest())
        write(end())
