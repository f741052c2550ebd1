"""Sentences, corpora, and the CoNLL, CoNLL-U, JSONL and text formats."""

from __future__ import annotations

import gzip
import io
import os
import pickle
import sys
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tagwise as tw
from tagwise import corpus as tc
from tagwise.base.exceptions import CorpusError
from tagwise.corpus import Corpus, Sentence, streams
from tagwise.corpus.formats import format_of_text, open_sentences
from tagwise.corpus.labels import break_in

from ..corpora import CONLL, CONLL_TEXT, CONLLU, JSONL


def conll(text: str | bytes, columns: object = None, label: object = "label", **options: object) -> Corpus:
    file = io.BytesIO(text) if isinstance(text, bytes) else io.StringIO(text, newline="")
    return tw.read(file, "conll", columns=columns, label=label, **options)  # type: ignore[arg-type]


# Any text that a cell can hold, including exotic separators.
CELL = st.text(
    st.characters(exclude_categories=("Cs",), exclude_characters="\t\n\r\0 ", codec="utf-8")
    | st.sampled_from("\u2028\u2029\x85\x0b\x0c\x1c\x1d\x1e\u00a0\u3000\ufeff#-O"),
    min_size=1,
    max_size=6,
).filter(lambda s: s != "-DOCSTART-")


@st.composite
def sentence_lists(
    draw: st.DrawFn, width: int, cell: st.SearchStrategy[str] = CELL
) -> list[list[tuple[str, ...]]]:
    label = cell.filter(lambda text: break_in(text) is None)  # labels cannot contain control characters
    row = st.tuples(*[cell] * (width - 1), label)
    return draw(st.lists(st.lists(row, min_size=1, max_size=4), min_size=1, max_size=4))


def corpus_of(sentences: list[list[tuple[str, ...]]], marks: list[bool] | None = None) -> Corpus:
    names = ("word", "pos", "label") if len(sentences[0][0]) == 3 else ("word", "label")
    return Corpus(
        Sentence(dict(zip(names, map(list, zip(*rows)))), "label", doc="" if marks and marks[i] else None)
        for i, rows in enumerate(sentences)
    )


class TestSentenceAndCorpus:
    def test_columns_and_labels(self) -> None:
        c = conll(CONLL)
        assert c.columns == ("word", "pos", "label")
        assert c.label == "label"
        assert c.tokens == [["EU", "rejects"], ["Good"], ["Hi"]]
        assert c.labels == [["B-ORG", "O"], ["O"], ["O"]]
        assert c.column("pos") == [["NNP", "VBZ"], ["UH"], ["UH"]]
        assert c.label_set == ["B-ORG", "O"]
        assert c.n_tokens == 4
        assert [s.line for s in c] == [3, 6, 10]
        assert "4 tokens" in repr(c)
        assert "EU" in repr(c[0])

    def test_documents(self) -> None:
        c = conll(CONLL)
        assert c.has_documents
        assert c.documents == [range(2), range(2, 3)]
        assert c[1:].documents == [range(1), range(1, 2)]
        plain = conll("a O\n\nb O\n")
        assert not plain.has_documents
        assert plain.documents == [range(2)]
        assert Corpus([]).documents == []

    def test_slices_sums_and_copies(self) -> None:
        c = conll(CONLL)
        assert isinstance(c[:2], Corpus)
        assert c[:2] + c[2:] == c
        assert c[:0] + c == c
        assert c[:0].columns == c.columns
        assert pickle.loads(pickle.dumps(c)) == c
        assert c != c[:1]

    def test_with_labels(self) -> None:
        c = conll(CONLL)
        other = c.with_labels([["X", "Y"], ["Z"], ["X"]])
        assert other.labels == [["X", "Y"], ["Z"], ["X"]]
        assert c.labels[0] == ["B-ORG", "O"]
        assert other.documents == c.documents
        bare = Corpus.from_lists([["a"]]).with_labels([["X"]])
        assert bare.columns == ("word", "label")
        with pytest.raises(CorpusError, match=r"1 labels for the sentence at line 3 of 2 tokens"):
            c.with_labels([["X"], ["Z"], ["X"]])
        with pytest.raises(CorpusError, match="2 label sequences for 3"):
            c.with_labels([["X"], ["Z"]])

    def test_invalid_sentences_and_columns_are_rejected(self) -> None:
        with pytest.raises(CorpusError, match="word: 1, label: 2"):
            Sentence({"word": ["a"], "label": ["X", "Y"]}, "label")
        with pytest.raises(CorpusError, match="no column is named 'ner'"):
            Sentence({"word": ["a"]}, "ner")
        with pytest.raises(CorpusError, match="no label column"):
            _ = Sentence({"word": ["a"]}).labels
        with pytest.raises(CorpusError, match="no label column"):
            _ = Corpus.from_lists([["a"]]).labels
        with pytest.raises(CorpusError, match="no column 'pos'"):
            Corpus.from_lists([["a"]]).column("pos")
        with pytest.raises(CorpusError, match="same columns"):
            Corpus([Sentence({"word": ["a"]}), Sentence({"token": ["a"]})])


class TestConll:
    @settings(max_examples=10)
    @given(sentence_lists(3), st.lists(st.booleans(), min_size=4, max_size=4), st.sampled_from(["\t", " "]))
    def test_round_trip(self, rows: list[list[tuple[str, ...]]], marks: list[bool], separator: str) -> None:
        c = corpus_of(rows, marks)
        out = io.BytesIO()
        tw.write(c, out, "conll", separator=separator)
        again = tw.read(
            io.BytesIO(out.getvalue()), "conll", columns=c.columns, separator=separator, comments=False
        )
        if rows[0][0][0][0] == "\ufeff" and not marks[0]:
            return  # a first token that begins with a BOM looks like the file's own BOM
        assert again == c

    def test_optional_label_column_may_be_missing(self) -> None:
        c = conll("a NN\n", ("word", "pos", "label"), optional_label=True)
        assert c.columns == ("word", "pos")
        assert c.label is None

    def test_comments(self) -> None:
        text = "# newdoc id = d\n# text = a\n#\tSYM\tO\na\tNN\tO\n\n# newdoc\n#x\tNN\tO\n"
        c = conll(text)
        assert c.tokens == [["#", "a"], ["#x"]]
        assert c[0].comments == ("# newdoc id = d", "# text = a")
        assert [s.doc for s in c] == ["d", ""]
        assert c[0].line == 3
        out = io.StringIO()
        tw.write(c, out, "conll", comments=True, documents=False)
        assert tw.read(io.StringIO(out.getvalue()), "conll") == c
        assert conll("# O\na O\n").tokens == [["#", "a"]]
        assert conll("# O x\na O\n", comments=True).tokens == [["a"]]

    @pytest.mark.parametrize("token", ["#", "#x", "# "])
    @pytest.mark.parametrize("mark", ["", "-DOCSTART-\t-X-\tO\n\n"])
    def test_first_token_may_begin_with_a_hash(self, token: str, mark: str) -> None:
        """A row with a tab is a token even if the only lines before it are comments and document marks."""
        (s,) = conll(f"# a comment\n{mark}{token}\tN\tGOLD\n")
        assert (s.tokens, s.labels, s.comments) == ([token.strip()], ["GOLD"], ("# a comment",))
        assert len(conll("# a comment\n-DOCSTART-\t-X-\n")) == 0

    @pytest.mark.parametrize("size", [1, 7, 1 << 18])
    def test_many_comments_before_the_first_token(self, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
        """The separator is that of the first rows, however many comments precede them."""
        monkeypatch.setattr("tagwise.corpus.streams.CHUNK", size)
        comments = [f"# {i}" for i in range(300)]
        (s,) = conll("\n".join([*comments, "a\tN\tGOLD"]))
        assert (s.tokens, s.labels, list(s.comments)) == (["a"], ["GOLD"], comments)

    @pytest.mark.parametrize(
        ("text", "line", "expected_text"),
        [
            (b"a\tX\nb\n", 2, "1 column separated by a tab"),
            (b"a X\nb X Y\n", 2, "3 columns separated by spaces"),
            (b"a\tX\n\nb\tX\tY\n", 3, "3 columns"),
            (b"a\tX\tY\nb\tX\nc\tX\tY\tZ\n", 2, "2 columns"),
            (b"a\tX\nb\t\n", 2, "an empty label"),
            (b"a\t\nb\tX\n", 1, "an empty label"),
            (b"a\tX\nb\t \n", 2, "an empty label"),
            (b"a\tX\n\tX\n", 2, "an empty value in column word"),
            (b"a\tX\tY\nb\t\tY\n", 2, "an empty value in column pos"),
            (b"a\tX\n\nb\tX\nc\xff\tX\n", 4, "not valid UTF-8"),
            (b"a\tX\nb\0\tX\n", 2, "NUL"),
            (b"a\tX\nb\rc\tX\n", 2, "carriage return"),
            ("a\tX\n".encode("utf-16-le"), 1, "NUL"),
        ],
    )
    def test_errors_name_file_line_and_remedy(
        self, tmp_path: Path, text: bytes, line: int, expected_text: str
    ) -> None:
        path = tmp_path / "bad.txt"
        path.write_bytes(text)
        with pytest.raises(CorpusError) as e:
            tw.read(path, "conll")
        message = str(e.value)
        assert message.startswith(f"{path}:{line}: ")
        assert expected_text in message
        assert len(message.split(". ", 1)[1]) > 10

    def test_other_encodings(self) -> None:
        assert conll("año\tX\n".encode("latin-1"), encoding="latin-1").tokens == [["año"]]


class TestConllu:
    def test_conllu_round_trip_keeps_every_line(self) -> None:
        c = tw.read(io.StringIO(CONLLU), "conllu")
        assert c.tokens == [["do", "n't", "stop"], ["New York"], ["yes"]]
        assert c.labels[0] == ["AUX", "PART", "VERB"]
        assert c.column("xpos")[0] == ["VBP", "RB", "VB"]
        assert [s.doc for s in c] == ["d1", None, ""]
        assert c.documents == [range(2), range(2, 3)]
        assert [at for at, _ in c[0].rows] == [0, 2]
        out = io.StringIO()
        tw.write(c, out, "conllu")
        assert out.getvalue() == CONLLU

    def test_multiword_range_may_cover_one_word(self) -> None:
        """Its range ends at its first word or later, not before."""
        text = CONLLU.replace("1-2\t", "1-1\t", 1)
        out = io.StringIO()
        tw.write(tw.read(io.StringIO(text), "conllu"), out, "conllu")
        assert out.getvalue() == text
        with pytest.raises(CorpusError, match="id '1-0' after token 0"):
            tw.read(io.StringIO(CONLLU.replace("1-2\t", "1-0\t", 1)), "conllu")


class TestJsonl:
    def test_jsonl_reads_columns_and_keeps_other_keys(self) -> None:
        c = tw.read(io.StringIO(JSONL), "jsonl")
        assert c.columns == ("word", "pos", "label")
        assert c.tokens == [["a", "b c"], ["ü"]]
        assert c[0].doc == "d"
        assert c[0].meta == {"id": 7}
        assert c[1].comments == ("# hi",)
        out = io.StringIO()
        tw.write(c, out, "jsonl")
        assert tw.read(io.StringIO(out.getvalue()), "jsonl") == c

    def test_unlabelled_lines(self) -> None:
        c = tw.read(io.StringIO('["a", "b"]\n\n{"words": ["c"]}\n{"tokens": []}'), "jsonl")
        assert c.tokens == [["a", "b"], ["c"], []]
        assert c.label is None

    @given(sentence_lists(2, st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=5)))
    def test_jsonl_round_trips_any_text(self, rows: list[list[tuple[str, ...]]]) -> None:
        c = corpus_of(rows)
        out = io.BytesIO()
        tw.write(c, out, "jsonl")
        assert tw.read(io.BytesIO(out.getvalue()), "jsonl") == c


class TestText:
    @given(st.lists(st.lists(CELL, min_size=1, max_size=4), min_size=1, max_size=4))
    def test_round_trip(self, tokens: list[list[str]]) -> None:
        out = io.BytesIO()
        tw.write(Corpus.from_lists(tokens), out, "text")
        if tokens[0][0][0] != "\ufeff":
            assert tw.read(io.BytesIO(out.getvalue()), "text").tokens == tokens


class TestAnyFormat:
    @pytest.mark.parametrize(
        ("text", "format"),
        [
            (CONLL, "conll"),
            (CONLL_TEXT, "conll"),
            (CONLLU, "conllu"),
            (JSONL, "jsonl"),
            ('["a", "b"]\n', "jsonl"),
            ("a\nb\n\nc\n", "conll"),
            ("The dog barks .\nIt is late\n", "text"),
            ("The dog barks .\n", "text"),
            ("[ a b\nc\n", "text"),
            ("", "conll"),
        ],
    )
    def test_format_is_detected_from_contents(self, text: str, format: str) -> None:
        assert format_of_text(text) == format
        found, sentences = open_sentences(io.StringIO(text))
        assert found == format
        list(sentences)

    def test_standard_streams_without_a_byte_buffer(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, "stdin", io.StringIO("a O\n\nb O\n"))
        out = io.StringIO()
        monkeypatch.setattr(sys, "stdout", out)
        tc.write(tc.read("-"), "-")
        assert out.getvalue() == "a\tO\n\nb\tO\n\n"


class TestWriting:
    def test_gzip_output_is_deterministic(self, tmp_path: Path) -> None:
        for name in ("a.gz", "b.gz"):
            tw.write(conll(CONLL), tmp_path / name, "conll")
        assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64])
def test_reading_does_not_depend_on_chunk_boundaries(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    commented = "# newdoc\n# a b\na\tO\n\nb\tO\n"
    texts = [
        CONLL,
        CONLL_TEXT,
        commented,
        CONLLU,
        JSONL,
        "\ufeff\n\n a  O \r\n\t\r\n\r\n\r\nbü O",
        "a\n\n\n\n\nb",
    ]
    for text in texts:
        whole = tc.read(io.BytesIO(text.encode()))
        packed = gzip.compress(text.encode())
        with monkeypatch.context() as m:
            m.setattr(streams, "CHUNK", size)
            for data in (text.encode(), packed):
                pieces = tc.read(io.BytesIO(data))
                assert pieces == whole
                assert [s.line for s in pieces] == [s.line for s in whole]


def test_reading_streams_at_constant_memory() -> None:
    block = b"".join(b"w%d\tX\n" % i for i in range(20)) + b"\n"

    class Endless(io.RawIOBase):
        left = 30 << 20

        def readable(self) -> bool:
            return True

        def readinto(self, buffer: object) -> int:
            data = (block * 400)[: min(len(buffer), self.left) // len(block) * len(block)]  # type: ignore[arg-type]
            self.left -= len(data)
            buffer[: len(data)] = data  # type: ignore[index]
            return len(data)

    stream = tw.iter_sentences(io.BufferedReader(Endless(), 1 << 20), "conll")  # type: ignore[arg-type]
    next(stream)
    tracemalloc.start()
    n = 0
    for s in stream:
        n += len(s)
        if n > 300_000:
            break
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert n > 300_000
    assert peak < 6 << 20


class TestBundled:
    @pytest.mark.parametrize(
        ("name", "sizes"), [("ewt-pos", (12_544, 2_001, 2_077)), ("wnut17-ner", (3_394, 1_009, 1_287))]
    )
    def test_bundled_corpora_load(self, name: str, sizes: tuple[int, int, int]) -> None:
        parts = tc.load_corpus(name)
        assert tuple(len(p) for p in parts if p is not None) == sizes
        assert {p.columns for p in parts if p is not None} == {("word", "label")}

    def test_labels_of_ewt(self) -> None:
        xpos, upos = tc.load_corpus("ewt-pos")[2], tc.load_corpus("ewt-pos", label="upos")[2]
        assert xpos.tokens == upos.tokens
        assert len(upos.label_set) <= 17 < len(xpos.label_set)

    def test_bundled_corpora_have_licence_and_attribution(self) -> None:
        for info in tc.list_corpora():
            if info.bundled:
                note = Path(tc.__file__).parent / "data" / info.folder / "ATTRIBUTION.txt"
                assert "creativecommons.org/licenses/" in note.read_text(encoding="utf-8")

    @pytest.mark.skipif(
        not os.environ.get("TAGWISE_DATA"), reason="TAGWISE_DATA does not name a folder of corpora"
    )
    @pytest.mark.parametrize(
        ("name", "sizes", "columns"),
        [
            ("conll2000", (8_936, None, 2_012), ("word", "pos", "label")),
            ("conll2002-es", (8_323, 1_915, 1_517), ("word", "pos", "label")),
            ("conll2003-en", (14_041, 3_250, 3_453), ("word", "pos", "chunk", "label")),
            ("ptb-sample", (3_400, None, 514), ("word", "label")),
        ],
    )
    def test_external_corpora_have_expected_sizes(
        self, name: str, sizes: tuple[int, int | None, int], columns: tuple[str, ...]
    ) -> None:
        parts = tc.load_corpus(name)
        assert tuple(None if p is None else len(p) for p in parts) == sizes
        assert parts[0].columns == columns
        if name == "conll2003-en":
            assert [len(p.documents) for p in parts if p is not None] == [946, 216, 231]
