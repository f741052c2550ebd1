"""Spans of characters, labels of tokens, and files of texts with spans."""

from __future__ import annotations

import io
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tagwise as tw
from tagwise.corpus.formats import open_sentences

from .test_tokenizer import OPTIONS, TEXTS

SCHEMES = ("IOB1", "IOB2", "IOE1", "IOE2", "IOBES", "BILOU")
LABELS = st.sampled_from(["PER", "LOC", "creative-work", "é"])


def stream(*lines: Any) -> io.BytesIO:
    """Return a file of these lines."""
    texts = (line if isinstance(line, str) else json.dumps(line, ensure_ascii=False) for line in lines)
    return io.BytesIO("".join(f"{text}\n" for text in texts).encode())


@st.composite
def annotated(draw: st.DrawFn) -> tuple[tw.spans.Tokenized, list[tuple[int, int, str]]]:
    """Draw a text and spans of its tokens that do not overlap."""
    text = draw(OPTIONS)(draw(TEXTS))
    cuts = sorted(draw(st.sets(st.integers(0, len(text)), max_size=8)))
    spans = []
    for begin, end in pairwise(cuts):
        if draw(st.booleans()):
            spans.append((int(text.offsets[begin, 0]), int(text.offsets[end - 1, 1]), draw(LABELS)))
    return text, spans


# --- spans and labels ---------------------------------------------------------------------------------------


@given(st.lists(annotated(), max_size=4), st.sampled_from(SCHEMES))
def test_spans_and_labels_round_trip(
    data: list[tuple[tw.spans.Tokenized, list[tuple[int, int, str]]]], scheme: str
) -> None:
    """In every scheme. Nothing is misaligned, and the order of spans does not matter."""
    texts, spans = [text for text, _ in data], [found for _, found in data]
    found = tw.spans.spans_to_labels(texts, [list(reversed(of_text)) for of_text in spans], scheme=scheme)
    assert found.misaligned == []
    assert [len(labels) for labels in found.labels] == [len(text) for text in texts]
    back = tw.spans.labels_to_spans(texts, found.labels)
    assert [[(s.start, s.end, s.label) for s in of_text] for of_text in back] == spans
    for text, of_text in zip(texts, back, strict=True):
        assert all(text.text[s.start : s.end] == s.text and s.probability is None for s in of_text)
    assert tw.spans.spans_to_labels(texts, back, scheme=scheme).labels == found.labels


@given(st.data())
def test_every_span_is_used_or_reported(data: st.DataObject) -> None:
    """Aligned spans cover their tokens. Each other span is reported once and treated according to the policy."""
    text = data.draw(OPTIONS)(data.draw(TEXTS))
    n = len(text.text)
    spans = []
    if n:
        for _ in range(data.draw(st.integers(0, 4))):
            begin = data.draw(st.integers(0, n - 1))
            spans.append((begin, data.draw(st.integers(begin + 1, n)), "X"))
    policy: Any = data.draw(st.sampled_from(["expand", "shrink", "drop"]))
    found = tw.spans.spans_to_labels([text], [spans], misaligned=policy)
    kept = [(s.start, s.end) for s in tw.spans.labels_to_spans([text], found.labels)[0]]
    bad = {m.number for m in found.misaligned}
    assert len(bad) == len(found.misaligned)
    starts, ends = set(text.offsets[:, 0].tolist()), set(text.offsets[:, 1].tolist())
    for k, (begin, end, _) in enumerate(spans):
        if k not in bad:
            assert (begin, end) in kept
            assert begin in starts
            assert end in ends
    for m in found.misaligned:
        given_tokens = text.offsets[m.tokens.start : m.tokens.stop].tolist()
        if policy == "drop":
            assert not given_tokens
        if policy == "shrink":
            assert all(m.span.start <= a and b <= m.span.end for a, b in given_tokens)
        if policy == "expand":
            assert all(a < m.span.end and m.span.start < b for a, b in given_tokens)
        assert str(m).startswith(f"sentence 0, span {m.number} ({m.span.start} to {m.span.end}, X ")
    assert len(kept) == len(spans) - sum(not m.tokens for m in found.misaligned)


TEXT = "A Londoner’s  view."
#      0123456789012345678


@pytest.mark.parametrize(
    ("spans", "message"),
    [
        (
            [(2, 8, "LOC")],
            r"sentence 1, span 0 \(2 to 8, LOC 'London'\): it ends at 8, inside the token 'Londoner' \(2 to 10\)",
        ),
        ([(0, 1, "X"), (4, 10, "Y")], r"span 1 \(4 to 10, Y .*: it begins at 4, inside the token 'Londoner'"),
        ([(2, 13, "X")], r"span 0 .* white space around its tokens, which extend from 2 to 12"),
        ([(12, 14, "X")], "span 0 .* does not contain a token"),
        ([(0, 10, "X"), (2, 10, "Y")], r"span 1 \(2 to 10, Y .* shares tokens with the span before it \(X\)"),
        (
            [(2, 8, "X"), (4, 10, "Y")],
            r"\(1 more in this text\)\. Correct the span, .* misaligned='expand' \(or shrink, drop\)",
        ),
    ],
)
def test_misaligned_spans_are_reported(spans: list[Any], message: str) -> None:
    """The error gives the sentence, the span, the conflicting token and the remedy."""
    with pytest.raises(tw.exceptions.CorpusError, match=message):
        tw.spans.spans_to_labels(["x", TEXT], [[], spans])


@pytest.mark.parametrize("policy", ["error", "expand", "shrink", "drop"])
@pytest.mark.parametrize(
    ("span", "message"),
    [
        ((3, 3, "X"), "sentence 0, span 0: 3 to 3 is not inside the text of 19 characters"),
        ((-1, 3, "X"), "-1 to 3 is not inside"),
        ((3, 20, "X"), r"3 to 20 is not inside .* counts characters \(not bytes\)"),
        ((0, True, "X"), "0 to True is not inside"),
        ((0.0, 1.0, "X"), "0.0 to 1.0 is not inside"),
        ((0, 1, ""), "the label '' is not valid"),
        ((0, 1, 5), "the label 5 is not valid"),
        ((0, 1), r"\(0, 1\) is not a span\. Give \(start, end, label\)"),
        ({"start": 0, "label": "X"}, "0 to None is not inside"),
        ({"start": 0, "end": 1, "label": "X", "text": "B"}, "its text differs from the given 'B'"),
        ("abc", "'abc' is not a span"),
    ],
)
def test_invalid_spans_are_rejected_under_every_policy(span: Any, message: str, policy: Any) -> None:
    """Offsets outside the text, invalid labels, texts that differ."""
    with pytest.raises(tw.exceptions.CorpusError, match=message):
        tw.spans.spans_to_labels([TEXT], [[span]], misaligned=policy)


def test_list_counts_policies_and_schemes_are_checked() -> None:
    """One list per text is required, and policies and schemes must have valid names."""
    with pytest.raises(tw.exceptions.CorpusError, match="1 lists of spans for 2 texts"):
        tw.spans.spans_to_labels(["a", "b"], [[]])
    with pytest.raises(tw.exceptions.CorpusError, match="1 lists of labels for 2 texts"):
        tw.spans.labels_to_spans(["a", "b"], [[]])
    with pytest.raises(tw.exceptions.CorpusError, match="sentence 1: 2 labels for 1 tokens"):
        tw.spans.labels_to_spans(["a", "b"], [["O"], ["O", "O"]])
    with pytest.raises(
        tw.exceptions.ParameterError,
        match=r"misaligned='snap' is unknown\. Use one of error, expand, shrink, drop",
    ):
        tw.spans.spans_to_labels([], [], misaligned="snap")  # type: ignore[arg-type]
    with pytest.raises(tw.exceptions.CorpusError, match="unknown label scheme 'XYZ'"):
        tw.spans.spans_to_labels([], [], scheme="XYZ")


def test_token_labels_become_one_span_per_token() -> None:
    """Every token has a span. The inverse with scheme="token" requires one for each."""
    texts, labels = ["Dogs bark.", "Why?"], [["NOUN", "VERB", "PUNCT"], ["ADV", "PUNCT"]]
    spans = tw.spans.labels_to_spans(texts, labels)
    assert [(s.label, s.text) for s in spans[1]] == [("ADV", "Why"), ("PUNCT", "?")]
    assert tw.spans.spans_to_labels(texts, spans, scheme="token").labels == labels
    with pytest.raises(tw.exceptions.CorpusError, match=r"sentence 1: the token '\?' \(3 to 4\) has no span"):
        tw.spans.spans_to_labels(texts, [spans[0], spans[1][:1]], scheme="token")
    with pytest.raises(
        tw.exceptions.CorpusError, match="it has 2 tokens, but scheme='token' needs one span per token"
    ):
        tw.spans.spans_to_labels(["a b"], [[(0, 3, "X")]], scheme="token")


def test_a_corpus_of_texts_with_spans() -> None:
    """Sentences are those of the tokenizer, except that none ends inside a span."""
    text = "I saw Dr. No. Then Mr. Bean! No."
    found = tw.spans.span_corpus([text, ""], [[(6, 12, "FILM"), (19, 32, "FILM")], []])
    assert found.tokens == [["I", "saw", "Dr.", "No", "."], ["Then", "Mr.", "Bean", "!", "No", "."]]
    assert found.labels[1] == ["O", "B-FILM", "I-FILM", "I-FILM", "I-FILM", "I-FILM"]
    assert "".join((s.meta or {})["text"] for s in found) == text


# --- files --------------------------------------------------------------------------------------------------


@given(st.lists(annotated(), min_size=1, max_size=4))
def test_texts_and_spans_round_trip_through_files(
    data: list[tuple[tw.spans.Tokenized, list[tuple[int, int, str]]]],
) -> None:
    """Texts, spans, further keys, documents and their order survive a round trip."""
    rows = [
        {"text": text.text, "spans": [{"start": a, "end": b, "label": y} for a, b, y in spans], "id": i}
        for i, (text, spans) in enumerate(data)
    ]
    try:
        corpus = tw.read(stream(*rows), "spans")
    except tw.exceptions.CorpusError as error:  # drawn with other options than the reader's tokenizer
        assert "inside the token" in str(error)  # noqa: PT017
        return
    out = io.BytesIO()
    tw.write(corpus, out, "spans")
    assert [json.loads(line) for line in out.getvalue().decode().split("\n")[:-1]] == rows
    again = tw.read(io.BytesIO(out.getvalue()), "spans")
    assert again == corpus
    through = io.BytesIO()  # JSONL keeps the texts too
    tw.write(corpus, through, "jsonl")
    back = io.BytesIO()
    tw.write(tw.read(io.BytesIO(through.getvalue()), "jsonl"), back, "spans")
    assert back.getvalue() == out.getvalue()


def test_span_offsets_refer_to_the_whole_text() -> None:
    """Offsets of spans after the first sentence refer to the whole text."""
    row = {
        "text": "  Rosa came. Lund slept.\n\nOslo. ",
        "spans": [{"start": 13, "end": 17, "label": "LOC"}, {"start": 26, "end": 30, "label": "LOC"}],
        "newdoc": "d",
        "source": {"page": 3},
    }
    corpus = tw.read(stream(row), "spans")
    assert [s.tokens for s in corpus] == [["Rosa", "came", "."], ["Lund", "slept", "."], ["Oslo", "."]]
    assert [s.doc for s in corpus] == ["d", None, None]
    assert [(s.line, len(s.meta or {})) for s in corpus] == [(1, 3), (1, 2), (1, 1)]
    out = io.StringIO()
    tw.write(iter(corpus), out, "spans")
    assert json.loads(out.getvalue()) == row


def test_parts_of_speech_round_trip_as_token_spans() -> None:
    """Labels without chunks become one span per token, marked as such in the file, and survive a round trip."""
    corpus = tw.Corpus.from_lists([["Dogs", "bark", "."], ["Why"]], [["NOUN", "VERB", "PUNCT"], ["O"]])
    out = io.StringIO()
    tw.write(corpus, out, "spans")
    first, second = map(json.loads, out.getvalue().splitlines())
    assert (first["text"], first["scheme"], second["scheme"]) == ("Dogs bark .", "token", "token")
    assert tw.read(stream(first, second), "spans").labels == corpus.labels


def test_texts_of_other_formats() -> None:
    """CoNLL-U has the text in a comment. In other formats tokens are joined by spaces."""
    lines = "# text = Rosa's\n1\tRosa\t_\tX\t_\t_\t_\t_\t_\t_\n2\t's\t_\tY\t_\t_\t_\t_\t_\t_\n\n"
    out = io.StringIO()
    tw.write(tw.read(io.StringIO(lines), "conllu"), out, "spans")
    assert [s["end"] for s in json.loads(out.getvalue())["spans"]] == [4, 6]
    out = io.StringIO()
    tw.write(tw.read(io.StringIO(lines.replace("= Rosa's", "= Roses")), "conllu"), out, "spans")
    assert json.loads(out.getvalue())["text"] == "Rosa 's"
    wrong = tw.Sentence({"word": ["a"]}, meta={"text": "b"}, line=4)
    with pytest.raises(
        tw.exceptions.CorpusError, match="line 4: the text 'b' does not contain the tokens 'a'"
    ):
        tw.write([wrong], io.StringIO(), "spans")


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["{"], "<stream>:1: not valid JSON"),
        (["[3]"], "<stream>:1: '\\[3\\]' is not an object with a text"),
        (['{"text": 3}'], "is not an object with a text"),
        (['{"text": "a", "spans": 3}'], "<stream>:1: 'spans' is '3', not an array"),
        (
            ['{"text": "a", "spans": []}', "", '{"text": "a"}'],
            "<stream>:3: 'spans' is missing, unlike in the lines before",
        ),
        (
            ['{"text": "ab", "spans": [{"start": 0, "end": 1, "label": "X"}]}'],
            "<stream>:1: span 0 .*inside the token 'ab'",
        ),
        (['{"text": "ab", "spans": [7]}'], "<stream>:1: span 0: 7 is not a span"),
        (['{"text": "ab", "spans": [], "scheme": "X"}'], "<stream>:1: 'scheme': unknown label scheme"),
        (['{"text": "ab", "spans": [], "newdoc": 1}'], "<stream>:1: 'newdoc' is not a name"),
        (['{"text": "\\ud800", "spans": []}'], "<stream>:1: a lone surrogate"),
    ],
)
def test_malformed_span_lines_are_reported(lines: list[str], message: str) -> None:
    """The error gives the file, line number, fault and remedy."""
    with pytest.raises(tw.exceptions.CorpusError, match=message):
        tw.read(stream(*lines), "spans")


def test_sentences_before_an_error_are_returned() -> None:
    """Sentences before an error are returned, as in every format."""
    sentences = tw.iter_sentences(stream({"text": "a b", "spans": []}, "{"), "spans")
    assert next(sentences).tokens == ["a", "b"]
    with pytest.raises(tw.exceptions.CorpusError, match="<stream>:2"):
        next(sentences)


def test_scheme_policy_and_tokenizer_are_arguments(tmp_path: Path) -> None:
    """Scheme, policy and tokenizer are arguments. `read` detects the format and names the columns."""
    path = tmp_path / "x.jsonl"
    path.write_text('{"text": "a-b c", "spans": [{"start": 0, "end": 1, "label": "X"}]}\n')
    assert tw.read(path, "spans", misaligned="expand", scheme="IOBES").labels == [["S-X", "O"]]
    assert tw.read(path, "spans", tokenizer=tw.Tokenizer(hyphens=True)).labels == [["B-X", "O", "O", "O"]]
    path.write_text('{"text": "a c", "spans": [{"start": 0, "end": 1, "label": "X"}]}\n')
    assert tw.read(path, columns=("token", "ne"), label="ne")[0].fields == {
        "token": ["a", "c"],
        "ne": ["B-X", "O"],
    }
    assert tw.read(path, label=None).columns == ("word",)
    with pytest.raises(
        tw.exceptions.CorpusError,
        match="raw text has one column of tokens and at most one of labels, found word, pos",
    ):
        tw.read(path, columns=("word", "pos", "label"))


def test_raw_text_is_read_and_written() -> None:
    """One text per line, split into tokens and sentences. Writing restores the text."""
    text = "It's here. It isn't!\n\n  Two   spaces\n"
    found = tw.read(io.StringIO(text), "raw")
    assert found.tokens == [["It", "'s", "here", "."], ["It", "is", "n't", "!"], ["Two", "spaces"]]
    assert [s.line for s in found] == [1, 1, 3]
    out = io.StringIO()
    tw.write(found, out, "raw")
    assert out.getvalue() == text.replace("\n\n", "\n")
    assert tw.read(io.StringIO(text), "raw", tokenizer=str.split)[0].tokens == [
        "It's",
        "here.",
        "It",
        "isn't!",
    ]
    assert open_sentences(io.StringIO(text), "raw")[0] == "raw"
    with pytest.raises(
        tw.exceptions.CorpusError, match="a text with a line end cannot be written as raw text"
    ):
        tw.write([tw.Sentence({"word": ["a", "b"]}, meta={"text": "a\nb"})], io.StringIO(), "raw")
