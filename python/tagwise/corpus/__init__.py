"""Sentences and corpora, the file formats that hold them, raw text, and the bundled corpora."""

from tagwise.corpus.bundled import CorpusInfo, corpora, load_corpus
from tagwise.corpus.conll import format_conll, iter_conll, read_conll, write_conll
from tagwise.corpus.conllu import CONLLU_COLUMNS, format_conllu, iter_conllu, read_conllu, write_conllu
from tagwise.corpus.formats import FORMATS, format_of_name, iter_sentences, read, write
from tagwise.corpus.interop import to_series
from tagwise.corpus.jsonl import format_jsonl, iter_jsonl, read_jsonl, write_jsonl
from tagwise.corpus.pretokenized import format_text, iter_text, read_text, write_text
from tagwise.corpus.sentence import Corpus, Sentence
from tagwise.corpus.text.raw_text import format_raw, iter_raw, read_raw, write_raw
from tagwise.corpus.text.span_jsonl import format_spans, iter_spans, read_spans, write_spans
from tagwise.corpus.text.spans import (
    Alignment,
    Misaligned,
    TextSpan,
    labels_to_spans,
    span_corpus,
    spans_to_labels,
)
from tagwise.corpus.text.tokenizer import Tokenized, Tokenizer

__all__ = [
    "CONLLU_COLUMNS",
    "FORMATS",
    "Alignment",
    "Corpus",
    "CorpusInfo",
    "Misaligned",
    "Sentence",
    "TextSpan",
    "Tokenized",
    "Tokenizer",
    "corpora",
    "format_conll",
    "format_conllu",
    "format_jsonl",
    "format_of_name",
    "format_raw",
    "format_spans",
    "format_text",
    "iter_conll",
    "iter_conllu",
    "iter_jsonl",
    "iter_raw",
    "iter_sentences",
    "iter_spans",
    "iter_text",
    "labels_to_spans",
    "load_corpus",
    "read",
    "read_conll",
    "read_conllu",
    "read_jsonl",
    "read_raw",
    "read_spans",
    "read_text",
    "span_corpus",
    "spans_to_labels",
    "to_series",
    "write",
    "write_conll",
    "write_conllu",
    "write_jsonl",
    "write_raw",
    "write_spans",
    "write_text",
]
