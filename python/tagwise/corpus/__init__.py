"""Sentences and corpora, the file formats that hold them, raw text, and the bundled corpora."""

from tagwise.corpus.bundled import CorpusInfo, list_corpora, load_corpus
from tagwise.corpus.conll import format_conll
from tagwise.corpus.conllu import CONLLU_COLUMNS, format_conllu
from tagwise.corpus.formats import FORMATS, format_of_name, iter_sentences, read, write
from tagwise.corpus.interop import corpus_of, to_series
from tagwise.corpus.jsonl import format_jsonl
from tagwise.corpus.pretokenized import format_text
from tagwise.corpus.sentence import Corpus, Sentence
from tagwise.corpus.text.raw_text import format_raw
from tagwise.corpus.text.span_jsonl import format_spans
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
    "corpus_of",
    "format_conll",
    "format_conllu",
    "format_jsonl",
    "format_of_name",
    "format_raw",
    "format_spans",
    "format_text",
    "iter_sentences",
    "labels_to_spans",
    "list_corpora",
    "load_corpus",
    "read",
    "span_corpus",
    "spans_to_labels",
    "to_series",
    "write",
]
