"""Conversion between character spans and token labels, with a report of misaligned spans.

>>> text = "Peter flew to London."
>>> found = spans_to_labels([text], [[(0, 5, "PER"), (14, 20, "LOC")]])
>>> found.labels
[['B-PER', 'O', 'O', 'B-LOC', 'O']]
>>> labels_to_spans([text], found.labels)[0][1]
TextSpan(label='LOC', text='London', start=14, end=20, probability=None)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from tagwise.base.exceptions import CorpusError, ParameterError
from tagwise.base.parameters import meant
from tagwise.corpus import schemes
from tagwise.corpus.labels import lists
from tagwise.corpus.sentence import Corpus, Sentence
from tagwise.corpus.text.tokenizer import Bounds, Tokenized, Tokenizes, tokenized

#: Treatment of a span that does not begin and end at tokens.
Policy = Literal["error", "expand", "shrink", "drop"]
POLICIES = ("error", "expand", "shrink", "drop")
#: Alternative to a scheme: every token has a span of its own.
TOKEN = "token"
#: Keys of `Sentence.meta`: its piece of the text, and whether the next sentence continues the text.
TEXT, CONTINUED = "text", "continued"
#: Key of `Sentence.meta` with spans of tokens (begin, end, label) of a model that are not confirmed.
PROPOSED = "proposed"


class TextSpan(NamedTuple):
    """A labelled piece of a text.

    Attributes:
        label: Label of the span.
        text: The piece itself, ``whole[start:end]``.
        start: Offset of its first character.
        end: Offset after its last character.
        probability: Probability that exactly this span has this label, or None if it was not computed.

    >>> span = TextSpan("LOC", "London", 14, 20)
    >>> span.label, "Peter flew to London."[span.start : span.end] == span.text
    ('LOC', True)
    """

    label: Any
    text: str
    start: int
    end: int
    probability: float | None = None

    def _repr_html_(self) -> str:
        from tagwise.base.markup import Markup, box, object_html

        sure = [] if self.probability is None else [("probability", f"{self.probability:.4f}")]
        rows = [
            ("span", Markup(box(self.text, str(self.label)))),
            ("characters", f"{self.start} to {self.end}"),
        ]
        return object_html(self, [*rows, *sure])


class TaggedText(list[TextSpan]):
    """Spans of one text. Notebooks show the text with its spans on the colours of their labels.

    Attributes:
        text: The text.

    >>> TaggedText("In Oslo.", [TextSpan("LOC", "Oslo", 3, 7)])[0].label
    'LOC'
    """

    def __init__(self, text: str, spans: Iterable[TextSpan] = ()) -> None:
        super().__init__(spans)
        self.text = text

    def __reduce__(self) -> tuple[Any, ...]:
        return TaggedText, (self.text, list(self))

    def _repr_html_(self) -> str:
        from tagwise.base.markup import text_html

        return text_html(
            self.text, [(span.start, span.end, str(span.label)) for span in self if span.label != "O"]
        )


class TaggedTexts(list[TaggedText]):
    """Spans of several texts. Notebooks show the first ones."""

    def _repr_html_(self) -> str:
        more = f"<p>{len(self) - 20:,} more texts</p>" if len(self) > 20 else ""
        return "".join(text._repr_html_() for text in self[:20]) + more


class Misaligned(NamedTuple):
    """A span that does not begin and end at tokens. Its string form is a message.

    Attributes:
        sentence: Index of the text.
        number: Index of the span in its text.
        span: The span.
        reason: Explanation in words.
        tokens: Tokens that received its label. The range is empty for a dropped span.

    >>> print(spans_to_labels(["In Oslo."], [[(3, 5, "LOC")]], misaligned="drop").misaligned[0])
    sentence 0, span 0 (3 to 5, LOC 'Os'): it ends at 5, inside the token 'Oslo' (3 to 7)
    """

    sentence: int
    number: int
    span: TextSpan
    reason: str
    tokens: range

    def __str__(self) -> str:
        return f"{place_of(self.sentence, self.number, self.span)}: {self.reason}"


@dataclass(frozen=True)
class Alignment:
    """Result of `spans_to_labels`. Its string form is a report of the misaligned spans.

    Attributes:
        texts: Tokenized texts.
        labels: Labels of each text, one per token.
        misaligned: Spans that do not begin and end at tokens.

    >>> spans_to_labels(["In Oslo."], [[(3, 7, "LOC")]]).misaligned
    []
    """

    texts: list[Tokenized]
    labels: list[list[str]]
    misaligned: list[Misaligned]

    def __repr__(self) -> str:
        return f"<Alignment: {len(self.texts)} texts, {len(self.misaligned)} misaligned spans>"

    def _repr_html_(self) -> str:
        from tagwise.base.markup import object_html

        return object_html(self, [(i, str(each)) for i, each in enumerate(self.misaligned[:20])])

    def __str__(self) -> str:
        head = f"{len(self.misaligned)} spans do not align with tokens, in {len(self.texts)} texts"
        return "\n".join([head, *map(str, self.misaligned)])


def place_of(i: int, k: int, span: TextSpan) -> str:
    """Describe a span in messages."""
    return f"sentence {i}, span {k} ({span.start} to {span.end}, {span.label} {span.text[:40]!r})"


def span_of(value: Any, text: str, i: int, k: int) -> TextSpan:
    """Convert user input to a checked span: (start, end, label), a mapping, or a TextSpan."""
    start: Any
    end: Any
    label: Any
    own: Any
    if isinstance(value, TextSpan):
        start, end, label, own = value.start, value.end, value.label, value.text
    elif isinstance(value, Mapping):
        start, end, label = (value.get(key) for key in ("start", "end", "label"))
        own = value.get("text")
    elif isinstance(value, Sequence) and not isinstance(value, str) and len(value) == 3:
        start, end, label = value
        own = None
    else:
        raise CorpusError(
            f"sentence {i}, span {k}: {value!r} is not a span. Give (start, end, label), or a mapping with these keys."
        )
    whole = all(isinstance(x, (int, np.integer)) and not isinstance(x, bool) for x in (start, end))
    if not whole or not 0 <= start < end <= len(text):
        raise CorpusError(
            f"sentence {i}, span {k}: {start!r} to {end!r} is not inside the text of {len(text)} characters. start "
            "counts characters (not bytes) from 0, and end is exclusive."
        )
    if not isinstance(label, str) or not label:
        raise CorpusError(
            f"sentence {i}, span {k}: the label {label!r} is not valid. Give a non-empty string."
        )
    found = TextSpan(label, text[start:end], int(start), int(end))
    if own is not None and own != found.text:
        raise CorpusError(
            f"{place_of(i, k, found)}: its text differs from the given {own!r}. start and end count characters (not "
            "bytes) of the unmodified text."
        )
    return found


def spans_to_labels(
    texts: Iterable[str | Tokenized],
    spans: Iterable[Sequence[Any]],
    *,
    tokenizer: Tokenizes | None = None,
    scheme: str = "IOB2",
    misaligned: Policy = "error",
) -> Alignment:
    """Convert character spans to token labels.

    Args:
        texts: iterable of str or Tokenized. Texts, or results of a tokenizer.
        spans: iterable of sequences of spans. For each text, a list of (start, end, label) tuples, of mappings with
            these keys, or of `TextSpan`. Spans that overlap are treated as misaligned.
        tokenizer: Tokenizer, callable or None, default=None. Tokenizer, or function that maps a text to its tokens.
            None means ``Tokenizer()``. Choose one that splits at the ends of the spans.
        scheme: str, default="IOB2". Label scheme. Use "token" if every token has a span of its own.
        misaligned: str, default="error". Treatment of spans that do not begin and end at tokens. "error" raises,
            "expand" takes all tokens that the span touches, "shrink" only the tokens inside it, and "drop" none.
            Use another value than "error" for annotations with known flaws, and inspect the report.

    Returns:
        An `Alignment` with the tokens, the labels and a report of the misaligned spans.

    Raises:
        CorpusError: A span is not valid, or, with ``misaligned="error"``, is misaligned or overlaps another one.
        ParameterError: ``misaligned`` is not one of its choices.

    >>> spans_to_labels(["In New York."], [[(3, 11, "LOC")]]).labels
    [['O', 'B-LOC', 'I-LOC', 'O']]
    """
    check_policy(misaligned)
    scheme = scheme if scheme == TOKEN else schemes.scheme_name(scheme)
    found = tokenized(texts, tokenizer)
    given = list(spans)
    if len(given) != len(found):
        raise CorpusError(f"{len(given)} lists of spans for {len(found)} texts. Give one list per text.")
    labels, reports = [], []
    for i, (text, of_text) in enumerate(zip(found, given)):
        one, report = aligned(text, of_text, i, scheme, misaligned)
        labels.append(one)
        reports += report
    return Alignment(found, labels, reports)


def check_policy(misaligned: str) -> None:
    """Raise a ParameterError for an unknown treatment of misaligned spans."""
    if misaligned not in POLICIES:
        raise ParameterError(
            f"misaligned={misaligned!r} is unknown{meant(str(misaligned), POLICIES)}. "
            f"Use one of {', '.join(POLICIES)}."
        )


def aligned(
    text: Tokenized, given: Sequence[Any], i: int, scheme: str, misaligned: Policy
) -> tuple[list[str], list[Misaligned]]:
    """Return the token labels and the misaligned spans of the text with index i."""
    starts, ends = text.offsets[:, 0], text.offsets[:, 1]
    spans = sorted(
        ((k, span_of(value, text.text, i, k)) for k, value in enumerate(given)),
        key=lambda entry: (entry[1].start, entry[1].end),
    )
    chunks: list[schemes.Span] = []
    report: list[Misaligned] = []
    for k, span in spans:
        first = int(np.searchsorted(ends, span.start, side="right"))
        last = int(np.searchsorted(starts, span.end, side="left"))
        reason = _misfit(text, span, first, last)
        if reason is not None and misaligned == "shrink":
            first = int(np.searchsorted(starts, span.start, side="left"))
            last = int(np.searchsorted(ends, span.end, side="right"))
        if misaligned == "drop" and reason is not None:
            last = first
        if first < last and chunks and first < chunks[-1].end:
            reason, last = f"it shares tokens with the span before it ({chunks[-1].type})", first
        if first < last and scheme == TOKEN and last - first > 1:
            reason, last = f"it has {last - first} tokens, but scheme='token' needs one span per token", first
        if reason is not None:
            report.append(Misaligned(i, k, span, reason, range(first, max(first, last))))
        if first < last:
            chunks.append(schemes.Span(span.label, first, last))
    if report and misaligned == "error":
        more = f" ({len(report) - 1} more in this text)" if len(report) > 1 else ""
        raise CorpusError(
            f"{report[0]}{more}. Correct the span, use a tokenizer that splits there, or pass misaligned='expand' "
            "(or shrink, drop)."
        )
    if scheme == TOKEN:
        return _of_tokens(text, chunks, i), report
    return schemes.from_spans(chunks, len(text), scheme), report


def _misfit(text: Tokenized, span: TextSpan, first: int, last: int) -> str | None:
    """Return why a span does not fit the tokens it touches, or None if it fits."""
    if first >= last:
        return "it does not contain a token"
    (begin, head), (tail, end) = text.offsets[first].tolist(), text.offsets[last - 1].tolist()
    for wrong, what, place, token in (
        (begin < span.start, "begins", span.start, (begin, head)),
        (end > span.end, "ends", span.end, (tail, end)),
    ):
        if wrong:
            return f"it {what} at {place}, inside the token {text.text[slice(*token)]!r} ({token[0]} to {token[1]})"
    if begin > span.start or end < span.end:
        return f"it includes white space around its tokens, which extend from {begin} to {end}"
    return None


def _of_tokens(text: Tokenized, chunks: Sequence[schemes.Span], i: int) -> list[str]:
    """Return one label per token for the scheme "token"."""
    labels = [""] * len(text)
    for chunk in chunks:
        labels[chunk.begin] = chunk.type
    if "" in labels:
        t = labels.index("")
        begin, end = text.offsets[t].tolist()
        raise CorpusError(
            f"sentence {i}: the token {text.tokens[t]!r} ({begin} to {end}) has no span. With scheme='token' every "
            "token needs one."
        )
    return labels


def labels_to_spans(
    texts: Iterable[str | Tokenized], labels: Iterable[Sequence[str]], *, tokenizer: Tokenizes | None = None
) -> list[list[TextSpan]]:
    """Convert token labels to character spans.

    Chunk labels (B-, I-, ...) become one span per chunk. Other labels become one span per token.

    Args:
        texts: iterable of str or Tokenized. Texts, or results of a tokenizer.
        labels: iterable of sequences of str. One label per token of each text.
        tokenizer: Tokenizer, callable or None, default=None. Tokenizer, or function that maps a text to its tokens.
            None means ``Tokenizer()``. Use the one that produced the labelled tokens.

    Returns:
        A list of `TextSpan` for each text.

    Raises:
        CorpusError: The numbers of labels and tokens differ, or a label is not valid.

    >>> labels_to_spans(["In New York."], [["O", "B-LOC", "I-LOC", "O"]])
    [[TextSpan(label='LOC', text='New York', start=3, end=11, probability=None)]]
    """
    found, given = tokenized(texts, tokenizer), lists(labels, "labels")
    if len(given) != len(found):
        raise CorpusError(f"{len(given)} lists of labels for {len(found)} texts. Give one list per text.")
    chunked = is_chunked(y for of_text in given for y in of_text)
    out = []
    for i, (text, of_text) in enumerate(zip(found, given)):
        if len(of_text) != len(text):
            raise CorpusError(
                f"sentence {i}: {len(of_text)} labels for {len(text)} tokens. Give one label per token."
            )
        try:
            chunks = token_spans(of_text, chunked)
        except CorpusError as error:
            raise CorpusError(f"sentence {i}, {error}") from None
        out.append(text_spans(text, chunks))
    return out


def is_chunked(labels: Iterable[str]) -> bool:
    """Return whether all labels are chunk labels. Otherwise every token is a span of its own."""
    return all(isinstance(y, str) and schemes.is_chunk_label(y) for y in set(labels))


def token_spans(labels: Sequence[Any], chunked: bool) -> list[tuple[Any, int, int]]:
    """Return the token spans of a label sequence, as (label, begin, end)."""
    if chunked:
        return [(span.type, span.begin, span.end) for span in schemes.spans(labels)]
    return [(y, t, t + 1) for t, y in enumerate(labels)]


def text_spans(
    text: Tokenized,
    spans: Iterable[tuple[Any, int, int]],
    chances: Iterable[float | None] | None = None,
    first: int = 0,
) -> list[TextSpan]:
    """Convert token spans, with indices relative to the token `first`, to character spans."""
    found, out = list(spans), []
    sure = [None] * len(found) if chances is None else list(chances)
    offsets = text.offsets
    for (label, begin, end), p in zip(found, sure):
        start, stop = int(offsets[first + begin, 0]), int(offsets[first + end - 1, 1])
        out.append(TextSpan(label, text.text[start:stop], start, stop, p))
    return out


def sentences_of(
    text: Tokenized,
    labels: Sequence[str] | None = None,
    *,
    names: tuple[str, str] = ("word", "label"),
    doc: str | None = None,
    line: int | None = None,
    meta: Mapping[str, Any] | None = None,
) -> list[Sentence]:
    """Split a tokenized text into sentences, each with its piece of the text, so that they can be joined again.

    No sentence ends inside a span. Two sentences with a span across their boundary become one.
    """
    bounds = text.bounds.tolist() if labels is None else _without_cuts(text.bounds, labels)
    if len(bounds) < 2:
        bounds = [0, 0]
    begins = [0, *(int(text.offsets[t, 0]) for t in bounds[1:-1]), len(text.text)]
    out = []
    for k in range(len(bounds) - 1):
        begin, end = bounds[k], bounds[k + 1]
        own: dict[str, Any] = {TEXT: text.text[begins[k] : begins[k + 1]]}
        if k + 2 < len(bounds):
            own[CONTINUED] = True
        fields = {names[0]: text.tokens[begin:end]}
        if labels is not None:
            fields[names[1]] = list(labels[begin:end])
        more = {key: v for key, v in (meta or {}).items() if key not in (TEXT, CONTINUED)} if k == 0 else {}
        label = None if labels is None else names[1]
        out.append(Sentence(fields, label, doc=doc if k == 0 else None, line=line, meta={**own, **more}))
    return out


def _without_cuts(bounds: Bounds, labels: Sequence[str]) -> list[int]:
    """Return the sentence boundaries that are not inside a span."""
    if not is_chunked(labels):
        return [int(b) for b in bounds]
    inside: set[int] = set()
    for chunk in schemes.spans(labels):
        inside.update(range(chunk.begin + 1, chunk.end))
    return [int(b) for b in bounds if int(b) not in inside]


def span_corpus(
    texts: Iterable[str | Tokenized],
    spans: Iterable[Sequence[Any]],
    *,
    tokenizer: Tokenizes | None = None,
    scheme: str = "IOB2",
    misaligned: Policy = "error",
) -> Corpus:
    """Create a corpus from texts with character spans.

    Args:
        texts: iterable of str or Tokenized. Texts, or results of a tokenizer.
        spans: iterable of sequences of spans. For each text, a list of (start, end, label) tuples, of mappings with
            these keys, or of `TextSpan`. Spans that overlap are treated as misaligned.
        tokenizer: Tokenizer, callable or None, default=None. Tokenizer, or function that maps a text to its tokens.
            None means ``Tokenizer()``. Choose one that splits at the ends of the spans.
        scheme: str, default="IOB2". Label scheme. Use "token" if every token has a span of its own.
        misaligned: str, default="error". Treatment of spans that do not begin and end at tokens: "error", "expand",
            "shrink" or "drop". See `spans_to_labels`.

    Returns:
        A `Corpus` for training, in which a text may be several sentences.

    Raises:
        CorpusError: A span is not valid, or, with ``misaligned="error"``, is misaligned or overlaps another one.
        ParameterError: ``misaligned`` is not one of its choices.

    >>> span_corpus(["Anna left.", "In Oslo."], [[(0, 4, "PER")], [(3, 7, "LOC")]]).labels
    [['B-PER', 'O', 'O'], ['O', 'B-LOC', 'O']]
    """
    found = spans_to_labels(texts, spans, tokenizer=tokenizer, scheme=scheme, misaligned=misaligned)
    made = [s for text, labels in zip(found.texts, found.labels) for s in sentences_of(text, labels)]
    return Corpus([s for s in made if len(s)], columns=("word", "label"), label="label")
