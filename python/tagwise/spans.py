"""Spans of tokens and of characters, and the label schemes that encode them (IOB2, IOBES, BILOU, ...).

>>> import tagwise as tw
>>> tw.spans.spans(["B-PER", "I-PER", "O"])
[Span(type='PER', begin=0, end=2)]
>>> tw.spans.convert(["B-PER", "I-PER", "O"], "IOB2", "IOBES")
['B-PER', 'E-PER', 'O']
"""

from tagwise.corpus.schemes import (
    SCHEMES,
    Allowed,
    Span,
    allowed,
    boundary,
    convert,
    detect,
    from_spans,
    has_chunks,
    is_chunk_label,
    scheme_name,
    spans,
    split_label,
    valid,
)
from tagwise.corpus.text.spans import (
    Alignment,
    Misaligned,
    TextSpan,
    labels_to_spans,
    span_corpus,
    spans_to_labels,
)
from tagwise.corpus.text.tokenizer import Tokenized

__all__ = [
    "SCHEMES",
    "Alignment",
    "Allowed",
    "Misaligned",
    "Span",
    "TextSpan",
    "Tokenized",
    "allowed",
    "boundary",
    "convert",
    "detect",
    "from_spans",
    "has_chunks",
    "is_chunk_label",
    "labels_to_spans",
    "scheme_name",
    "span_corpus",
    "spans",
    "spans_to_labels",
    "split_label",
    "valid",
]
