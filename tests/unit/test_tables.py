"""Tables with one token per row: headers, sentence columns, separators, quotes, and what is refused."""

from __future__ import annotations

import io
import logging
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import tagwise as tw
from tagwise.base.exceptions import CorpusError
from tagwise.cli import cli
from tagwise.corpus.formats import open_sentences

ROWS = [
    ["Sentence #", "Word", "POS", "Tag"],
    ["Sentence: 1", "Rosa", "N", "B-PER"],
    ["", "runs", "V", "O"],
    ["", '"', "Q", "O"],
    ["Sentence: 2", "Lund", "N", "B-LOC"],
]
TOKENS = [["Rosa", "runs", '"'], ["Lund"]]
LABELS = [["B-PER", "O", "O"], ["B-LOC"]]


def table(separator: str, rows: list[list[str]] = ROWS) -> str:
    return "".join(separator.join(row) + "\n" for row in rows)


def found(text: str, **how: Any) -> tw.Corpus:
    return tw.read(io.StringIO(text), **how)


@pytest.mark.parametrize("separator", ["\t", ",", ";", "|"])
@pytest.mark.parametrize("quotes", [False, True])
def test_kaggle_layout(separator: str, quotes: bool) -> None:
    """A header, a sentence column with blank cells, and a token that is a quote, with and without quoting."""
    text = table(separator)
    if quotes:
        cells = [['"' + cell.replace('"', '""') + '"' for cell in row] for row in ROWS]
        text = table(separator, cells)
    corpus = found(text)
    assert (corpus.tokens, corpus.labels) == (TOKENS, LABELS)
    assert corpus.columns == ("word", "POS", "label")
    assert [s.line for s in corpus] == [2, 5]


@pytest.mark.parametrize("name", ["Sentence #", "sentence_id", "sentence", "SENT_ID"])
def test_names_of_sentence_columns(name: str) -> None:
    """Usual names of sentence columns are recognized, and every row may name its sentence."""
    rows = [[name, "token", "ner_tags"], ["1", "a", "O"], ["1", "b", "X"], ["2", "a", "O"]]
    corpus = found(table(",", rows))
    assert corpus.labels == [["O", "X"], ["O"]]


def test_blank_rows_separate_sentences_without_a_sentence_column() -> None:
    """Also rows of separators alone, as spreadsheets write them."""
    for blank in ("", ",", " , "):
        corpus = found(f"word,tag\na,O\nb,X\n{blank}\nc,O\n")
        assert corpus.labels == [["O", "X"], ["O"]]


def test_tables_without_a_header() -> None:
    """Rows that end in labels are a table, with the default names of columns."""
    corpus = found("EU,B-ORG\nrejects,O\n\nHi,O\n")
    assert corpus.tokens == [["EU", "rejects"], ["Hi"]]
    assert found("1;EU;B-ORG\n1;no;O\n2;Hi;O\n", format="csv", columns="sentence_id,word,label").tokens == [
        ["EU", "no"],
        ["Hi"],
    ]


def test_columns_and_labels_are_chosen_by_name() -> None:
    """Names of the header in any case, aliases, and names for all positions."""
    text = table(",")
    assert found(text, columns="word,label").columns == ("word", "label")
    assert found(text, columns="Word,POS,Tag", label="Tag").columns == ("Word", "POS", "Tag")
    assert found(text, columns="_,word,pos,label").columns == ("word", "pos", "label")
    assert found(text, columns="_,word,pos,label").tokens == TOKENS
    assert found(text, label="POS").labels == [["N", "V", "Q"], ["N"]]
    assert found(text, label=None).columns == ("word", "POS", "Tag")


def test_a_header_of_unusual_names_is_recognized_if_it_is_named() -> None:
    """Columns that equal the first row are its header."""
    text = "mot\tétiquette\nRosa\tB-PER\nva\tO\n"
    corpus = found(text, columns="mot,étiquette", label="étiquette")
    assert corpus.labels == [["B-PER", "O"]]


@pytest.mark.parametrize(
    ("text", "how", "message"),
    [
        ("word,tag\na\n", {}, r":2: 1 column separated by ',' in 'a', expected 2"),
        ("word,tag\na,O,x\n", {}, r":2: 3 columns"), ("word,tag\na,\n", {}, r":2: an empty label"),
        ("word,tag\n,O\n", {}, r":2: an empty value in column word"),
        ("word,ner_tags,pos_tags\na,O,N\n", {}, r"several columns may hold the labels: ner_tags, pos_tags"),
        ("word,tag\na,O\n", {"label": "tga"}, r"no column is named 'tga' \(did you mean 'tag'\?\)"),
        ("word,tag\na,O\n", {"columns": "word,lemma,x"}, r"no column is named 'lemma'"),
        ("sentence_id,word,tag\n1,a,O\n2,b,O\n1,c,O\n", {}, r":4: sentence '1' continues after another sentence"),
        ("word,tag\na,O\n", {"separator": "ab"}, r"separator='ab' is not a separator"),
        ("word,tag\na,B\x01X\n", {}, r":2: .*U\+0001"),
        ('word,tag\n"a,O\n"b",O,x\n', {}, r":3: 3 columns"),
    ],
)  # fmt: skip
def test_malformed_tables_are_reported(text: str, how: dict[str, Any], message: str) -> None:
    """The error names the line, the fault and the existing columns."""
    with pytest.raises(CorpusError, match=message):
        found(text, format="csv", **how)


def test_a_long_table_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sentence without an end does not fill the memory, and neither does a line."""
    monkeypatch.setenv("TAGWISE_MAX_SENTENCE", "1000")
    with pytest.raises(CorpusError, match="a sentence of more than 1,000 bytes"):
        found("word,tag\n" + "a,O\n" * 1000)
    with pytest.raises(CorpusError, match="a sentence of more than 1,000 bytes"):
        found("word,tag\n" + "a" * 2000 + ",O\n")


@pytest.mark.parametrize("text", ["", "\n\n", "word,tag\n", "sentence_id,word,tag\n\n"])
def test_empty_tables_have_no_sentences(text: str) -> None:
    assert len(found(text, format="csv")) == 0


def test_documents_are_kept() -> None:
    """-DOCSTART- rows begin documents and are not tokens."""
    corpus = found("word,tag\n-DOCSTART-,O\na,O\n\nb,O\n-DOCSTART-,O\nc,O\n")
    assert [s.doc for s in corpus] == ["", None, ""]
    out = io.StringIO()
    tw.write(corpus, out, "csv")
    assert [s.doc for s in found(out.getvalue())] == ["", None, ""]


def test_one_long_sentence_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    """A file without sentence ends is read with a warning, which a short or divided one does not get."""
    with caplog.at_level(logging.WARNING):
        found("a\tO\n" * 201)
        assert "one sentence of 201 tokens" in caplog.text
        caplog.clear()
        found("a\tO\n" * 200)
        found("a\tO\n" * 201 + "\nb\tO\n")
        assert caplog.text == ""


def test_an_unusual_label_of_the_first_row_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    """A header that is not recognized is a label that occurs once."""
    body = "a O\nb B-X\n\n" * 150
    with caplog.at_level(logging.WARNING):
        found("mot entité\n" + body)
        assert "the label 'entité' occurs only in the first row, with the token 'mot'" in caplog.text
        caplog.clear()
        found("palabra,etiqueta\nRosa,B-PER\nruns,O\n\nTom,B-PER\n")
        assert (
            "the label 'etiqueta' occurs only in the first row" in caplog.text
        )  # all others are usual labels
        caplog.clear()
        found("EU,person\nx,other\n\nTom,nobody\n")
        found("EU B-ORG\n" + body)
        found("mot entité\nx entité\n" + body)
        assert caplog.text == ""


def test_training_on_a_table_with_a_header(tmp_path: Path) -> None:
    """The header is neither a sentence nor a label, and sentences are those of the table."""
    path, model = tmp_path / "table.tsv", tmp_path / "m.tagwise"
    rows = [
        ROWS[0],
        *([[f"S{i}" if not k else "", *row[1:]] for i in range(200) for k, row in enumerate(ROWS[1:4])]),
    ]
    path.write_text(table("\t", rows))
    result = CliRunner().invoke(cli, ["train", str(path), "-o", str(model), "-f", "S1"])
    assert result.exit_code == 0, result.stderr
    assert "200 sentences, 600 tokens, 2 labels" in result.stderr
    assert set(tw.load(model).classes_) == {"B-PER", "O"}


@pytest.mark.parametrize("kind", [str, Path])
def test_fit_and_evaluate_read_files(kind: Any, tmp_path: Path) -> None:
    """`fit` and `evaluate` accept the path of a corpus file."""
    path = tmp_path / "train.csv"
    path.write_text(table(","))
    tagger = tw.CRF(features="S1").fit(kind(path), dev=kind(path))
    assert tagger.predict([["Lund"]]) == tw.CRF(features="S1").fit(tw.read(path), dev=tw.read(path)).predict(
        [["Lund"]]
    )
    assert tagger.evaluate(kind(path)).accuracy == tagger.evaluate(tw.read(path)).accuracy
    assert tw.MIRA(features="S1").partial_fit(kind(path)).predict([["Lund"]])
    with pytest.raises(FileNotFoundError, match="cannot be opened"):
        tw.CRF().fit(kind(tmp_path / "none.csv"))
    (tmp_path / "t.txt").write_text("I live in Paris.\n")
    with pytest.raises(CorpusError, match="no column is the label"):
        tw.CRF().fit(kind(tmp_path / "t.txt"))


def test_suffixes_select_tables() -> None:
    """Files that end in .csv are tables, and .tsv files with a header too."""
    for name, text, kind in (
        ("a.csv", "a,b\n", "csv"),
        ("a.tsv", table("\t"), "csv"),
        ("a.tsv", "a\tO\n", "conll"),
    ):
        stream = io.StringIO(text)
        stream.name = name  # type: ignore[misc]
        assert open_sentences(stream)[0] == kind


def test_quoted_cells_may_contain_line_ends() -> None:
    """A quoted cell continues on the next lines, also a blank one, and the numbers of lines stay right."""
    text = 'sentence_id,word,note,label\n1,a,"two\n\nlines",O\n1,"b ""c""",x,B-X\n2,"d,e",x,O\n'
    for nl in ("\n", "\r\n"):
        corpus = tw.read(io.BytesIO(text.replace("\n", nl).encode()), "csv")
        assert corpus.tokens == [["a", 'b "c"'], ["d,e"]]
        assert corpus.labels == [["O", "B-X"], ["O"]]
        assert corpus[0].fields["note"] == ["two\n\nlines", "x"]
        assert [s.line for s in corpus] == [2, 6]


@pytest.mark.parametrize("rest", ["", "2,b,x,O\n", "2,b,x,O\n" * 500])
def test_a_quote_that_is_not_closed_is_reported_at_its_row(rest: str) -> None:
    with pytest.raises(CorpusError, match=r":2: a quote that is not closed in '1,a,\"two"):
        found('sentence_id,word,note,label\n1,a,"two\n' + rest)


@pytest.mark.parametrize("labels", ["B-PER O O B-LOC", "['B-PER', 'O', 'O', 'B-LOC']"])
def test_a_row_with_a_whole_sentence_is_refused(labels: str) -> None:
    """A table with one sentence per row has no tokens that could be labelled."""
    with pytest.raises(CorpusError, match=r":3: a row with 4 words and 4 labels, expected one token per row"):
        found(f'text,labels\nHello,O\n"Rosa lives in Lund","{labels}"\n')
    assert found('text,labels\n"New York",B-LOC\n').tokens == [["New York"]]


def test_blank_sentence_cells_without_a_header_name_the_remedy() -> None:
    """Names of sentences without numbers are not recognized without a header."""
    rows = [[row[0].replace(": 1", "-one").replace(": 2", "-two"), *row[1:]] for row in ROWS[1:]]
    text = table(",", rows)
    with pytest.raises(
        CorpusError, match="If the first column numbers the sentences, pass columns="
    ) as error:
        found(text)
    names = str(error.value).partition("columns=(")[2].partition(")")[0]
    corpus = found(text, columns=[name.strip(" '") for name in names.split(",")])
    assert (corpus.tokens, corpus.labels) == (TOKENS, LABELS)


@pytest.mark.parametrize("first", [["Sentence: 1", "", "", "Sentence: 2"], ["1", "1", "1", "2"]])
def test_numbers_of_sentences_are_recognized_without_a_header(first: list[str]) -> None:
    """A first column of rising numbers with repetitions names the sentences. One without repetitions does not."""
    rows = [[name, *row[1:]] for name, row in zip(first, ROWS[1:])]
    corpus = found(table(",", rows))
    assert (corpus.tokens, corpus.labels) == (TOKENS, LABELS)
    numbered = [[str(i), *row[1:]] for i, row in enumerate(ROWS[1:])]
    assert found(table(",", numbered)).tokens == [["0", "1", "2", "3"]]


@pytest.mark.parametrize("header", ["Word,Word,Tag", "word,tag,TAG"])
def test_a_header_with_equal_names_is_refused(header: str) -> None:
    """It is no row of tokens, and columns named in the order of the file replace it."""
    text = f"{header}\nRosa,a,B-PER\nruns,b,O\n"
    with pytest.raises(CorpusError, match=r":1: the header has several columns named '(Word|TAG)'"):
        found(text)
    assert found(text, columns=("word", "_", "label")).labels == [["B-PER", "O"]]


def test_a_row_with_lists_is_refused() -> None:
    """A data set of sentences saved as CSV has lists in its cells."""
    with pytest.raises(CorpusError, match=r":2: a row with lists of tokens and labels"):
        found("id,tokens,ner_tags\n1,\"['Rosa', 'runs']\",\"['B-PER', 'O']\"\n")
    assert found("word,label\n[,O\n],O\n").tokens == [["[", "]"]]


def test_texts_as_tokens_are_reported(caplog: pytest.LogCaptureFixture) -> None:
    """A table of texts with one class each is not a corpus of tokens."""
    with caplog.at_level(logging.WARNING):
        found("id,text,label\n1,I love it,pos\n2,It is bad,neg\n")
        assert "most tokens have several words, such as 'I love it'" in caplog.text
        caplog.clear()
        found("word,label\nNew York City,LOC\nis,O\nbig,O\n")
        assert caplog.text == ""
