"""Round trips of tables and of the formats of annotation tools, and readers on arbitrary input."""

from __future__ import annotations

import contextlib
import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tagwise as tw
from tagwise.base.exceptions import CorpusError
from tagwise.corpus.formats import FORMATS, TABLE
from tagwise.spans import span_corpus

CHARACTERS = st.characters(
    codec="utf-8", exclude_categories=["Cs", "Cc", "Zl", "Zp"], exclude_characters="\ufeff"
)
CELLS = st.text(CHARACTERS, min_size=1, max_size=6).filter(lambda s: s.strip() and s != "-DOCSTART-")
LABELS = st.text(st.sampled_from('ABO-_",;|x '), min_size=1, max_size=4).filter(str.strip)
ROWS = st.lists(st.lists(st.tuples(CELLS, CELLS, LABELS), min_size=1, max_size=4), min_size=1, max_size=4)


@given(ROWS, st.sampled_from([",", ";", "|", "\t"]))
def test_tables_round_trip(rows: list[list[tuple[str, str, str]]], separator: str) -> None:
    """Any value without a line end is restored, also quotes and separators."""
    given_corpus = tw.Corpus(
        tw.Sentence({"word": list(w), "pos": list(p), "label": list(y)}, "label")
        for w, p, y in (zip(*s) for s in rows)
    )
    out = io.StringIO()
    tw.write(given_corpus, out, "csv", separator=separator)
    assert tw.read(io.StringIO(out.getvalue()), "csv", separator=separator) == given_corpus


@given(ROWS)
def test_prodigy_keeps_tokens(rows: list[list[tuple[str, str, str]]]) -> None:
    """Tokens are restored exactly, whatever they are, with labels of any kind."""
    words = [[w.strip() or "x" for w, _, _ in s] for s in rows]
    labels = [["".join(y.split()) or "O" for _, _, y in s] for s in rows]
    given_corpus = tw.Corpus.from_lists(words, labels)
    out = io.StringIO()
    tw.write(given_corpus, out, "prodigy")
    back = tw.read(io.StringIO(out.getvalue()), "prodigy")
    assert back.tokens == given_corpus.tokens
    again = io.StringIO()
    tw.write(back, again, "prodigy")
    assert again.getvalue() == out.getvalue()


WORDS = st.sampled_from(["Anna", "Oslo", "left", "\U0001f600", "is", "don't", "(", "3.5", "\u00e9t\u00e9"])
TEXTS = st.lists(
    st.tuples(st.lists(WORDS, min_size=1, max_size=6), st.integers(0, 5)), min_size=1, max_size=4
)


@given(TEXTS, st.sampled_from(["doccano", "label-studio", "spans", "prodigy"]))
def test_texts_with_spans_round_trip(texts: list[tuple[list[str], int]], format: str) -> None:
    """Texts, tokens and spans are restored, with characters outside of the basic plane."""
    lines, spans = [], []
    for words, place in texts:
        line = " ".join(words) + "."
        at = place % len(words)
        begin = len(" ".join([*words[:at], ""]))
        lines.append(line)
        spans.append([(begin, begin + len(words[at]), "X")])
    given_corpus = span_corpus(lines, spans, misaligned="expand")
    out = io.StringIO()
    tw.write(given_corpus, out, format)
    back = tw.read(io.StringIO(out.getvalue()))
    assert (back.tokens, back.labels) == (given_corpus.tokens, given_corpus.labels)
    assert [(s.meta or {})["text"] for s in back] == [(s.meta or {})["text"] for s in given_corpus]


MEMBERS = (
    *("text", "data", "label", "labels", "entities", "spans", "tokens", "annotations", "result", "value", "start"),
    *("end", "id", "answer", "start_offset", "end_offset", "ner_tags", "newdoc", "scheme", "comments"),
)  # fmt: skip
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 20) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(MEMBERS), inner, max_size=4),
    max_leaves=12,
)
NAMES = [None, *(name for name in FORMATS if not TABLE[name].binary)]


@pytest.mark.parametrize("format", NAMES)
@given(value=VALUES, labelled=st.booleans())
def test_any_json_is_read_or_refused(format: str | None, value: Any, labelled: bool) -> None:
    """Whatever a line or an array holds, the result is a corpus or a CorpusError."""
    for text in (json.dumps(value), json.dumps([value, value], indent=1)):
        with contextlib.suppress(CorpusError):
            tw.read(io.StringIO(text + "\n"), format, label="label" if labelled else None)


@pytest.mark.parametrize("format", NAMES)
@given(data=st.binary(max_size=80) | st.text('[]{}",;|\t\n aOB-1:\\#', max_size=80).map(str.encode))
def test_any_bytes_are_read_or_refused(format: str | None, data: bytes) -> None:
    """NUL, other encodings, quotes that never end: a corpus or a CorpusError."""
    with contextlib.suppress(CorpusError):
        tw.read(io.BytesIO(data), format)
